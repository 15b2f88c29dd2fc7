/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What the files of hw/net/ share: the structs of the device, fenced by
 * owner.  Not for other directories (tests excepted).
 */
#ifndef HW_NET_VIRTIO_NET_INTERNAL_H
#define HW_NET_VIRTIO_NET_INTERNAL_H

#include "hw/net/virtio-net-coalesce.h"
#include "hw/net/virtio-net-hdr.h"
#include "hw/net/virtio-net-stats.h"
#include "hw/net/virtio-net-tx-policy.h"
#include "hw/net/virtio-net.h"
#include "util/event-notifier.h"
#include "util/iothread.h"
#include "util/report.h"

/*
 * Chains taken, sent and published at a time.  One publication and at most
 * one call per batch; the batch's packets, headers and element pointers
 * (about 4 KiB) stay in the first-level cache.
 */
#define VIRTIO_NET_BATCH 64

/*
 * A pass is over after this many bytes or packets, whichever is first: about
 * 100 us of copying, or 200 of system calls, after which the other direction
 * and the other NICs of the context have their turn: the next pass is behind
 * whatever the event loop finds to do by then.
 */
#define VIRTIO_NET_PASS_BYTES (512 * 1024)
#define VIRTIO_NET_PASS_PKTS  128

/* Largest frame with the largest header we negotiate. */
#define VIRTIO_NET_MAX_PACKET (NET_MAX_FRAME_BYTES + sizeof(VirtIONetHdr))

/* iovecs a readv or writev takes (IOV_MAX; fixed by the kernel's ABI) */
#define VIRTIO_NET_IOV_MAX 1024

/* ---- what both directions have ---------------------------------------- */

struct VirtIONetQueue {
    /* set at creation */
    VirtIONet *n;
    unsigned idx;                   /* 2p receive, 2p+1 transmit */
    AioContext *ctx;                /* the queue's context */
    NetQueue *nq;
    VirtIONetStats *stats;          /* never NULL; owners: see there */

    /* main: changes them while it waits for the queue's context, or the
     * queue is paused or stopped */
    bool started;
    bool enabled;
    bool paused;                /* quiet; what happens now waits for main */
    VirtQueue *vq;
    EventNotifier kick;
    EventNotifier call;
    EventNotifier err;
    AioHandler *kick_handler;

    /* queue context; others read, relaxed */
    bool carrier;               /* the backend's link, as far as known here */

    /* queue context */
    VirtIONetCoalesce coalesce;
};

/* ---- transmit ----------------------------------------------------------- */

/*
 * The one state machine of transmit.  "Ring" columns say how the driver's
 * notifications stand; every wake-up enters through virtio_net_tx_wake().
 *
 * state      ring      leaves by
 * STOPPED    disarmed  start.  Nothing of the ring is touched.
 * IDLE       armed     kick, or a poll hit.
 * ARMED      window    kick at the window's last packet, or the deadline
 *                      timer, which is always armed here.
 * HOLDING    parked    the deadline timer, which is always armed here.
 * POLLING    parked    a poll hit, or the end of polling (which arms).  Only
 *                      entered from IDLE.
 * SCHEDULED  parked    the bottom half, which is always scheduled here.
 * FLUSHING   parked    the end of the pass.  Only seen from within it.
 * BLOCKED    parked    tx_ready() or tx_complete() of the backend.
 */
typedef enum TxState {
    TX_STATE_STOPPED,
    TX_STATE_IDLE,
    TX_STATE_ARMED,
    TX_STATE_HOLDING,
    TX_STATE_POLLING,
    TX_STATE_SCHEDULED,
    TX_STATE_FLUSHING,
    TX_STATE_BLOCKED,
} TxState;

typedef enum TxWake {
    TX_WAKE_START,          /* ring started, enabled, link changed, remapped */
    TX_WAKE_KICK,
    TX_WAKE_DEADLINE,
    TX_WAKE_POLL,
    TX_WAKE_RESUME,         /* the backend has room, or has completed */
} TxWake;

/*
 * What goes with a chain in flight: our copy of its header and, behind it, of
 * a short frame.  One buffer is cheaper than several for the kernel (write
 * against writev: 85 ns of 1045 at 64 bytes), and up to here cheaper than the
 * copy costs.
 */
#define VIRTIO_NET_TX_COPY_BYTES 256

typedef struct TxSlot {
    union {
        VirtIONetHdr hdr;
        uint8_t bytes[sizeof(VirtIONetHdr) + VIRTIO_NET_TX_COPY_BYTES];
    };
} TxSlot;

typedef struct VirtIONetTx {
    VirtIONetQueue q;

    /* queue context */
    TxState state;
    TxPolicy policy;
    TxGroup *group;             /* of the queues of this context */
    AioBH *bh;
    AioTimer deadline;
    unsigned budget_pkts;

    /* one batch, valid inside a pass */
    VirtQueueElem *elems[VIRTIO_NET_BATCH];
    NetPacket pkts[VIRTIO_NET_BATCH];

    /* valid while the chain is in flight */
    TxSlot *slots;
    VirtQueueElem *bounced;     /* whose packet is in the bounce, or NULL */
    uint8_t bounce[VIRTIO_NET_MAX_PACKET];  /* a packet in too many pieces */
} VirtIONetTx;

/* Queue context.  Created by main, see virtio-net.c. */
void virtio_net_tx_init(VirtIONetTx *tx);
void virtio_net_tx_cleanup(VirtIONetTx *tx);
void virtio_net_tx_wake(VirtIONetTx *tx, TxWake why);

/* After quiesce: nothing in flight, ring disarmed, timers and bottom half
 * off. */
void virtio_net_tx_quiesce(VirtIONetTx *tx);

/* A PENDING packet is finished (NetNicOps). */
void virtio_net_tx_complete(VirtIONetTx *tx, VirtQueueElem *elem,
                            NetTxAnswer answer);

extern const AioHandlerOps virtio_net_tx_kick_ops;

/*
 * tx_group_get: the group of the transmit queues of @ctx, made by the first
 * who asks.  tx_group_put: and gone with the last.  Main context, or the
 * context while main waits.
 */
TxGroup *tx_group_get(AioContext *ctx);
void tx_group_put(TxGroup *group);

/* ---- receive --------------------------------------------------------- */

/*
 * state      ring      backend    leaves by
 * STOPPED    disarmed  not wanted start; also: disabled, link down
 * RUNNING    parked    wanted     a pass that runs out of buffers
 * STARVED    armed     not wanted a kick (buffers were added)
 */
typedef enum RxState {
    RX_STATE_STOPPED,
    RX_STATE_RUNNING,
    RX_STATE_STARVED,
} RxState;

/*
 * Buffers are popped ahead into a window and stay there until frames use
 * them, so that descriptor reads are proportional to the frames.  A frame is
 * read straight into the window; what is longer than it runs over into the
 * spill, where a frame also waits that found too few buffers.
 */
typedef struct VirtIONetRx {
    VirtIONetQueue q;

    /* queue context */
    RxState state;
    AioBH *bh;
    bool yields;                /* the next pass is the bottom half's */
    unsigned budget_pkts;

    VirtQueueElem *win[VIRTQUEUE_MAX_SIZE];
    unsigned win_head;          /* first unused element */
    unsigned win_tail;          /* behind the last */
    size_t win_bytes;           /* writable bytes from head to tail */

    size_t room;                /* bytes to offer to a frame directly */
    size_t largest;             /* largest frame of the current round */
    unsigned round_pkts;        /* frames in the current round */

    size_t pending_bytes;       /* a frame waits in the spill; 0: none */
    struct iovec iov[NET_MAX_RECV_IOV];
    uint8_t spill[VIRTIO_NET_MAX_PACKET];
} VirtIONetRx;

void virtio_net_rx_init(VirtIONetRx *rx);
void virtio_net_rx_cleanup(VirtIONetRx *rx);

/* Start, enable, link and map changes: look at everything anew. */
void virtio_net_rx_update(VirtIONetRx *rx);
void virtio_net_rx_quiesce(VirtIONetRx *rx);

/* The backend has traffic (NetNicOps). */
void virtio_net_rx_ready(VirtIONetRx *rx);

extern const AioHandlerOps virtio_net_rx_kick_ops;

/* ---- the device ------------------------------------------------------ */

typedef struct VirtIONetPair {
    VirtIONetRx rx;
    VirtIONetTx tx;
    AioBH *tx_carrier_bh;       /* the rx context to the tx context */
} VirtIONetPair;

struct VirtIONet {
    /* set at creation */
    VirtIONetConf conf;
    NetBackend *nb;
    AioContext *ctx;            /* of the receive queues */
    unsigned max_pairs;
    uint64_t offered;
    VirtIONetPair **pairs;

    /* main */
    IOThread **threads;         /* tx-thread= */
    unsigned nthreads;

    /* main writes while all queues are paused or stopped; their contexts
     * read */
    uint64_t features;
    unsigned hdr_len;
    bool link_up;               /* the administrator's switch */

    /* main writes, queue contexts read, relaxed */
    bool main_waits;            /* for one of them */

    /* any queue context sets it, relaxed; main clears it at a start */
    bool broken;
    ReportLimit report;         /* of who has set it */
};

/* ---- transmit threads: main ------------------------------------------- */

/* Contexts as tx-thread= says, still without threads. */
bool virtio_net_threads_new(VirtIONet *n, GError **errp);

/* Ends the threads; their contexts must be empty. */
void virtio_net_threads_free(VirtIONet *n);

/* The context of the transmit queue of pair @pair. */
AioContext *virtio_net_tx_context(const VirtIONet *n, unsigned pair);

/* ---- what the files share ---------------------------------------------- */

/* Bits to offer; bits accepted -> NET_OFFLOAD_*.  Pure. */
uint64_t virtio_net_compute_features(const VirtIONetConf *conf,
                                     const NetCaps *caps, unsigned pairs);
unsigned virtio_net_guest_offloads(uint64_t features);

/* Frames flow only if all of this holds. */
static inline bool virtio_net_queue_live(const VirtIONetQueue *q)
{
    return q->started && q->enabled && q->n->link_up && q->carrier;
}

/*
 * virtio_net_main_waits: main is waiting for a queue of this NIC, maybe for
 * one of the same context: come to an end.  A hint.
 */
static inline bool virtio_net_main_waits(const VirtIONet *n)
{
    return __atomic_load_n(&n->main_waits, __ATOMIC_RELAXED);
}

/*
 * virtio_net_queue_usable: false once the ring, or another one of the device,
 * is broken; the ring then is, too.
 */
bool virtio_net_queue_usable(VirtIONetQueue *q);

#endif /* HW_NET_VIRTIO_NET_INTERNAL_H */
