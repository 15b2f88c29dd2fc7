/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Network backends (-netdev): where a NIC's packets go and come from.
 *
 * A NetBackend is one netdev with one or more NetQueues (a tap with queues=N
 * has N).  A NIC queue pair attaches to one NetQueue and drives it:
 *
 *   transmit: net_send_batch() takes packets in order and answers each; a
 *     backend that is full takes fewer than it was offered, and calls
 *     tx_ready() once when it is worth trying again;
 *   receive: rx_ready() says that there is something; the NIC *pulls* with
 *     net_recv() straight into guest buffers, until NET_RECV_EMPTY; a NIC
 *     without buffers says net_rx_want(false), and the backend then holds the
 *     traffic back where it comes from.
 *
 * Frames start with a vnet header of the length the NIC has set, or with the
 * Ethernet header if that length is 0 (backends whose caps lack vnet_hdr).
 *
 * Threads: the tx half (send_batch, tx_ready, cancel_tx) belongs to the tx
 * context given to net_queue_attach(), the rx half (recv, rx_want, rx_ready)
 * to the rx context.  Everything else is for main while the queue's
 * contexts do not use the backend.  No call sleeps.
 */
#ifndef NET_NET_H
#define NET_NET_H

#include <glib.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/uio.h>

#include "util/aio.h"
#include "util/keyval.h"

typedef struct NetBackend NetBackend;
typedef struct NetQueue NetQueue;

/* Largest frame accepted in either direction, vnet header not counted: a
 * 64 KiB GSO packet with its Ethernet and VLAN headers. */
#define NET_MAX_FRAME_BYTES (65535 + 14 + 4)

/* ---- what a backend can do ------------------------------------------- */

typedef struct NetCaps {
    bool vnet_hdr;          /* carries vnet headers: checksum and TSO */
    bool ufo;
    bool uso;               /* UDP segmentation offload */
    unsigned queues;        /* NetQueues it has */
} NetCaps;

/* Offloads that the guest accepts to *receive* (VIRTIO_NET_F_GUEST_*). */
enum {
    NET_OFFLOAD_CSUM = 1 << 0,
    NET_OFFLOAD_TSO4 = 1 << 1,
    NET_OFFLOAD_TSO6 = 1 << 2,
    NET_OFFLOAD_ECN  = 1 << 3,
    NET_OFFLOAD_UFO  = 1 << 4,
    NET_OFFLOAD_USO4 = 1 << 5,
    NET_OFFLOAD_USO6 = 1 << 6,
};

/* ---- packets out ----------------------------------------------------- */

typedef enum NetTxAnswer {
    NET_TX_DONE,            /* on its way; buffers are free */
    NET_TX_DROPPED,         /* refused by the host; buffers are free */
    NET_TX_PENDING,         /* buffers are held: tx_complete() will come */
} NetTxAnswer;

typedef struct NetPacket {
    const struct iovec *iov;
    unsigned iovcnt;
    uint32_t bytes;         /* all of iov, vnet header included */
    NetTxAnswer answer;     /* out */
    void *cookie;           /* handed to tx_complete() */
} NetPacket;

/* ---- packets in ------------------------------------------------------ */

typedef enum NetRecvStatus {
    NET_RECV_PACKET,        /* one frame was stored */
    NET_RECV_DROPPED,       /* one frame was consumed and is of no use (too
                             * short, longer than the room given): go on */
    NET_RECV_EMPTY,         /* nothing there; rx_ready() will come */
    NET_RECV_DEAD,          /* the backend is gone for good (tap deleted) */
} NetRecvStatus;

/* ---- what a NIC gives to a backend ----------------------------------- */

typedef struct NetNicOps {
    void (*rx_ready)(void *opaque);         /* rx context */
    void (*tx_ready)(void *opaque);         /* tx context */
    /* Once for each PENDING packet; tx context. */
    void (*tx_complete)(void *opaque, void *cookie, NetTxAnswer answer);
    /* Carrier, in the rx context and not from inside a call of the NIC's,
     * which takes it to the tx context itself. */
    void (*link_changed)(void *opaque, bool up);
} NetNicOps;

/* ---- life ------------------------------------------------------------ */

/*
 * net_backend_new: create a netdev from its option.
 * @kv: "-netdev TYPE,id=..."; keys are taken from it and leftovers refused
 * @ctx: the context of the NIC that will use it, where its receive queues
 *       are; libslirp runs there
 *
 * Main context.  Returns NULL with @errp set: one line that names option,
 * value and remedy.  Descriptors passed by number are taken over if it
 * succeeds.
 */
NetBackend *net_backend_new(KeyVal *kv, AioContext *ctx, GError **errp);

/* net_backend_free: all queues must be detached. */
void net_backend_free(NetBackend *nb);

/* net_backend_help: one line per type, for "-netdev help". Caller frees. */
char *net_backend_help(void);

const char *net_backend_id(const NetBackend *nb);
const char *net_backend_type(const NetBackend *nb);
const NetCaps *net_backend_caps(const NetBackend *nb);

/* net_backend_info: one line for people ("tap ifname=tap0"). Caller frees. */
char *net_backend_info(const NetBackend *nb);

/*
 * net_backend_set_vnet_hdr_len: header length on all queues: 10, 12 or 20,
 * or 0 if the caps lack vnet_hdr.  Returns false if the backend cannot.
 */
bool net_backend_set_vnet_hdr_len(NetBackend *nb, unsigned len);

/*
 * net_backend_set_offload: NET_OFFLOAD_* on all queues.  Bits the caps do not
 * cover are an internal error.
 */
void net_backend_set_offload(NetBackend *nb, unsigned offload);

/* net_backend_claim: one NIC per netdev; false if it is taken already. */
bool net_backend_claim(NetBackend *nb);

/* ---- queues ---------------------------------------------------------- */

/* net_backend_queue: @i < caps.queues */
NetQueue *net_backend_queue(NetBackend *nb, unsigned i);

/*
 * net_queue_attach: connect a queue pair.  Reception starts switched off
 * (net_rx_want()).  Main context, before the contexts use the queue.
 */
void net_queue_attach(NetQueue *nq, AioContext *tx_ctx, AioContext *rx_ctx,
                      const NetNicOps *ops, void *opaque);

/*
 * net_queue_detach: the reverse; pending transmits must be cancelled.  Main
 * context: it waits for both contexts, and no callback comes after it.
 */
void net_queue_detach(NetQueue *nq);

/*
 * net_queue_set_enabled: a multi-queue tap steers flows only to queues that
 * are enabled.  Queue 0 starts enabled, the others disabled.  Main context,
 * with both rings of the pair quiesced.
 */
void net_queue_set_enabled(NetQueue *nq, bool enabled);

/*
 * net_send_batch: send packets, in order.
 *
 * Returns how many were taken; each of those has its answer.  Fewer than @n:
 * the backend is full, later packets were not looked at, and tx_ready() will
 * be called once.  Errors of one packet are its DROPPED, never a stop.  A
 * tx_ready() that nobody waited for may come, and means nothing.
 */
unsigned net_send_batch(NetQueue *nq, NetPacket *pkts, unsigned n);

/*
 * net_cancel_tx: give up what is pending, without waiting for a slow peer.
 * Each PENDING packet completes (as DONE if it already left, else DROPPED)
 * before this returns; a tx_ready() that was owed is forgotten.
 */
void net_cancel_tx(NetQueue *nq);

/*
 * net_recv: take one frame.
 * @bytes: out, with NET_RECV_PACKET: its length, vnet header included
 *
 * A frame longer than the vector is consumed and reported as DROPPED; one
 * that fills it exactly is a packet.  Entries after the first
 * NET_MAX_RECV_IOV are not used.
 */
#define NET_MAX_RECV_IOV 1023

NetRecvStatus net_recv(NetQueue *nq, const struct iovec *iov, unsigned iovcnt,
                       size_t *bytes);

/*
 * net_rx_want: have rx_ready() called (again) while there is traffic, or not.
 * Level semantics: switching on with traffic waiting calls rx_ready() from
 * the rx context's loop.
 */
void net_rx_want(NetQueue *nq, bool want);

/*
 * net_inject: make the backend carry one raw frame (no vnet header) out, as
 * far as it can without waiting: gratuitous ARP/RARP after a migration.  Tx
 * context.
 */
void net_inject(NetQueue *nq, const void *frame, size_t bytes);

#endif /* NET_NET_H */
