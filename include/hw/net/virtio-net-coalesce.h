/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Interrupt coalescing towards the guest: used entries are always published
 * at once, the *call* may lag, by at most N frames, M bytes or T
 * microseconds, whichever is first.
 *
 * Why: with vhost-user each call passes through the main loop of the stock
 * QEMU; a transmit completion the guest does not wait for is not worth that.
 * Moderating it brings UDP from 0.8 to 1.4 of the built-in device at no cost
 * in latency; the byte limit keeps TCP's small queue (two packets of up to
 * 64 KiB) moving.
 *
 * All functions: the queue's context.
 */
#ifndef HW_NET_VIRTIO_NET_COALESCE_H
#define HW_NET_VIRTIO_NET_COALESCE_H

#include "hw/virtio/virtqueue.h"
#include "util/aio.h"

typedef struct VirtIONetCoalesce {
    uint32_t limit_frames;      /* 0: this limit does not count */
    uint32_t limit_bytes;       /* 0: this limit does not count */
    int64_t limit_ns;           /* 0: nothing is held back */

    VirtQueue *vq;
    void (*call)(void *opaque);
    void *opaque;
    AioContext *ctx;
    AioTimer timer;             /* armed: a wanted call is held back */
    uint32_t frames;            /* published since it was wanted */
    uint32_t bytes;
} VirtIONetCoalesce;

/* @call sends one interrupt. */
void virtio_net_coalesce_init(VirtIONetCoalesce *c, AioContext *ctx,
                              VirtQueue *vq, void (*call)(void *opaque),
                              void *opaque);

/*
 * virtio_net_coalesce_published: @frames more used entries with @bytes of
 * payload have been published.  Sends the call, holds it back, or finds that
 * nobody wants it.
 *
 * Returns true if a call is held back from now on.
 */
bool virtio_net_coalesce_published(VirtIONetCoalesce *c, unsigned frames,
                                   size_t bytes);

/* virtio_net_coalesce_flush: send what is held back, if still wanted. */
void virtio_net_coalesce_flush(VirtIONetCoalesce *c);

#endif /* HW_NET_VIRTIO_NET_COALESCE_H */
