/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What a backend implements.  One NetBackendType per file in net/, listed in
 * net.c's table.
 */
#ifndef NET_NET_INTERNAL_H
#define NET_NET_INTERNAL_H

#include "net/net.h"

typedef struct NetBackendType {
    const char *name;
    const char *help;           /* one line for -netdev help */
    /*
     * Fills nb->caps, nb->queues[].  Takes its keys from @kv and refuses
     * leftovers (keyval_check_empty()) before it opens, runs or creates
     * anything outside this process.
     */
    NetBackend *(*create)(KeyVal *kv, const char *id, AioContext *ctx,
                          GError **errp);
    void (*free)(NetBackend *nb);
    char *(*info)(const NetBackend *nb);
    bool (*set_vnet_hdr_len)(NetBackend *nb, unsigned len);     /* or NULL */
    void (*set_offload)(NetBackend *nb, unsigned offload);      /* or NULL */

    /* Packet path.  The contract of each is that of net_*() in net.h. */
    void (*attach)(NetQueue *nq);
    void (*detach)(NetQueue *nq);
    void (*set_enabled)(NetQueue *nq, bool enabled);            /* or NULL */
    unsigned (*send_batch)(NetQueue *nq, NetPacket *pkts, unsigned n);
    void (*cancel_tx)(NetQueue *nq);
    NetRecvStatus (*recv)(NetQueue *nq, const struct iovec *iov,
                          unsigned iovcnt, size_t *bytes);
    void (*rx_want)(NetQueue *nq, bool want);
} NetBackendType;

/* Embedded first in each backend's own struct. */
struct NetBackend {
    const NetBackendType *type;
    char *id;
    NetCaps caps;
    bool claimed;
    unsigned vnet_hdr_len;
    NetQueue **queues;          /* caps.queues of them, owned by the backend */
};

/* Embedded first in each backend's own queue struct. */
struct NetQueue {
    NetBackend *nb;
    unsigned index;
    AioContext *tx_ctx;
    AioContext *rx_ctx;
    const NetNicOps *nic;       /* NULL: not attached */
    void *nic_opaque;
};

extern const NetBackendType net_tap_type;
extern const NetBackendType net_user_type;
extern const NetBackendType net_hubport_type;

/*
 * net_backend_init: fill the common part; @nb is zeroed.  The queue array is
 * allocated, its entries are the backend's to fill with net_queue_init().
 * net_backend_fini: free the common part, not the queues themselves.
 */
void net_backend_init(NetBackend *nb, const NetBackendType *type,
                      const char *id, unsigned queues);
void net_backend_fini(NetBackend *nb);

/* net_queue_init: make @nq queue number @index of @nb. */
void net_queue_init(NetQueue *nq, NetBackend *nb, unsigned index);

/* net_set_error: vnet_set_error() that starts with keyval_subject(). */
void net_set_error(GError **errp, const KeyVal *kv, const char *fmt, ...)
    G_GNUC_PRINTF(3, 4);

#endif /* NET_NET_INTERNAL_H */
