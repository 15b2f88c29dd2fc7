/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Interrupt coalescing towards the guest: used entries are always published
 * at once, the *call* may lag, by at most N frames, M bytes or T
 * microseconds, whichever is first.  (T, but for a guest that is found to look
 * by itself: up to eight times that, or 2 ms more.)
 *
 * Why: with vhost-user each call passes through the main loop of the stock
 * QEMU; a transmit completion the guest does not wait for is not worth that.
 * Moderating it brings UDP from 0.8 to 1.4 of the built-in device at no cost
 * in latency; the byte limit keeps TCP's small queue moving.  Its default is
 * four GSO packets: with one (64 KiB) most calls of a bulk stream are due to
 * it, and TCP 64K loses 7 % with tx=bh and 8 % with tx=timer (six rounds).
 *
 * A call for the other ring of the pair makes a guest look at this one as
 * well (Linux cleans its transmit ring whenever it polls for receive), so
 * frames and bytes count from there; the deadline stays where it was.  On a
 * stream with acknowledgements that saves calls that nobody waits for: TCP
 * 64K gains another 9 %.
 *
 * The other ring may have another context.  It counts its calls in a word of
 * ours and never waits; we look at the word where it can matter, when
 * something is published or a deadline has come.
 *
 * All functions: the queue's context, unless they say otherwise.
 */
#ifndef HW_NET_VIRTIO_NET_COALESCE_H
#define HW_NET_VIRTIO_NET_COALESCE_H

#include "hw/virtio/virtqueue.h"
#include "util/aio.h"

typedef struct VirtIONetCoalesce {
    uint32_t limit_frames;      /* 0: this limit does not count */
    uint32_t limit_bytes;       /* 0: this limit does not count */
    int64_t limit_ns;           /* 0: nothing is held back */
    bool may_be_patient;        /* a guest that looks by itself may wait */
                                /* longer, see virtio-net-coalesce.c */

    VirtQueue *vq;
    void (*call)(void *opaque);
    void (*lapsed)(void *opaque);
    void *opaque;
    AioContext *ctx;
    AioTimer timer;             /* armed: a wanted call is held back */
    bool held;                  /* the same; the other ring's context reads, */
                                /* relaxed */
    uint32_t frames;            /* published since it was wanted, or since */
    uint32_t bytes;             /* the guest had reason to look */
    uint16_t in_vain;           /* deadlines that nobody waited for */
    uint8_t batches;            /* publications of this hold */
    uint32_t hold_bytes;        /* their bytes */
    uint32_t looks_seen;        /* of .looks */
    bool answered;              /* the guest was called for the other ring */
    int64_t answered_ns;        /* ... the last time */
    uint16_t event;             /* the driver's word at unseen_ns */
    int64_t unseen_ns;          /* since when there is something unseen */

    /* the other ring's context writes, this one reads */
    uint32_t looks;             /* calls for the other ring */
    int64_t looked_ns;          /* ... the last one that found .held */
} VirtIONetCoalesce;

/*
 * @call sends one interrupt.  @lapsed is told when one that was held back is
 * not wanted any more.
 */
void virtio_net_coalesce_init(VirtIONetCoalesce *c, AioContext *ctx,
                              VirtQueue *vq, void (*call)(void *opaque),
                              void (*lapsed)(void *opaque), void *opaque);

/* What became of the call for a publication. */
typedef enum VirtIONetCallFate {
    VIRTIO_NET_CALL_SENT,
    VIRTIO_NET_CALL_HELD,       /* back from now on */
    VIRTIO_NET_CALL_JOINED,     /* one is held back already */
    VIRTIO_NET_CALL_UNWANTED,
} VirtIONetCallFate;

/*
 * virtio_net_coalesce_published: @frames more used entries with @bytes of
 * payload have been published.  Sends the call, holds it back, or finds that
 * nobody wants it.
 */
VirtIONetCallFate virtio_net_coalesce_published(VirtIONetCoalesce *c,
                                                unsigned frames,
                                                size_t bytes);

/*
 * virtio_net_coalesce_guest_looks: the guest is being called for the other
 * ring of the pair.
 *
 * The other ring's context.  Two contexts may differ for a moment about
 * whether a call is held; then this look is late or early by as much, which
 * costs an interrupt or saves one.
 */
void virtio_net_coalesce_guest_looks(VirtIONetCoalesce *c);

/*
 * virtio_net_coalesce_flush: send what is held back, if still wanted, and
 * forget what is known of the guest's ways: it may be another's ring next.
 */
void virtio_net_coalesce_flush(VirtIONetCoalesce *c);

#endif /* HW_NET_VIRTIO_NET_COALESCE_H */
