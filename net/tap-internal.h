/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The parts of -netdev tap: tap-options.c (what was asked for), tap.c (life
 * of the netdev), tap-queue.c (packets), tap-linux.c (ioctls).
 */
#ifndef NET_TAP_INTERNAL_H
#define NET_TAP_INTERNAL_H

#include <stdatomic.h>

#include "net-internal.h"
#include "tap-linux.h"

/* ---- options --------------------------------------------------------- */

typedef struct TapOptions {
    char ifname[IFNAMSIZ];      /* "": the kernel chooses */
    const char *script;         /* NULL: none; belongs to the KeyVal */
    const char *downscript;
    bool vnet_hdr;
    bool vnet_hdr_required;     /* vnet_hdr=on was given */
    int sndbuf_bytes;           /* INT_MAX: no limit */
    bool sndbuf_required;
    unsigned queues;
    bool have_fds;              /* fds[0 .. queues - 1] were passed */
    int fds[TAP_MAX_QUEUES];
} TapOptions;

/* tap_options_parse: nothing is opened or run; leftover keys are refused. */
bool tap_options_parse(TapOptions *o, KeyVal *kv, GError **errp);

/* ---- queues ---------------------------------------------------------- */

typedef struct TapQueue {
    NetQueue nq;

    /* Main, with the queue's contexts stopped. */
    int fd;
    bool enabled;

    /* Set once by either half, when the interface has gone. */
    atomic_bool dead;

    /* Tx context. */
    AioHandler *tx_handler;     /* NULL: cannot be watched */
    AioTimer tx_retry;

    /* Rx context. */
    AioHandler *rx_handler;     /* NULL: cannot be watched */
    AioBH *dead_bh;
    bool rx_wanted;
    uint8_t spill;              /* receives the first byte too many */
} TapQueue;

void tap_queue_attach(NetQueue *nq);
void tap_queue_detach(NetQueue *nq);
void tap_queue_set_enabled(NetQueue *nq, bool enabled);
unsigned tap_queue_send_batch(NetQueue *nq, NetPacket *pkts, unsigned n);
void tap_queue_cancel_tx(NetQueue *nq);
NetRecvStatus tap_queue_recv(NetQueue *nq, const struct iovec *iov,
                             unsigned iovcnt, size_t *bytes);
void tap_queue_rx_want(NetQueue *nq, bool want);

#endif /* NET_TAP_INTERNAL_H */
