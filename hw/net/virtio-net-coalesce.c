/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Interrupt coalescing.
 *
 * Two states, told by the timer: nothing is owed, or a call is wanted and
 * held back.  The question "does the driver want it" is asked when something
 * is published and once more when the call is due, since a guest that has
 * looked by itself meanwhile has moved its event index on.  A "no" is final
 * for all that is published (see virtqueue_should_signal()), so it clears the
 * account.
 */
#include "hw/net/virtio-net-coalesce.h"

static void settle(VirtIONetCoalesce *c)
{
    c->frames = 0;
    c->bytes = 0;
    aio_timer_del(&c->timer);
}

static void send_call(VirtIONetCoalesce *c)
{
    settle(c);
    virtqueue_signalled(c->vq);
    c->call(c->opaque);
}

static void call_if_wanted(VirtIONetCoalesce *c)
{
    if (virtqueue_should_signal(c->vq)) {
        send_call(c);
    } else {
        settle(c);
    }
}

static void coalesce_timer(void *opaque)
{
    call_if_wanted(opaque);
}

void virtio_net_coalesce_guest_looks(VirtIONetCoalesce *c)
{
    c->frames = 0;
    c->bytes = 0;
}

void virtio_net_coalesce_flush(VirtIONetCoalesce *c)
{
    if (aio_timer_armed(&c->timer)) {
        call_if_wanted(c);
    }
}

static bool limit_reached(const VirtIONetCoalesce *c)
{
    return !c->limit_ns ||
           (c->limit_frames && c->frames >= c->limit_frames) ||
           (c->limit_bytes && c->bytes >= c->limit_bytes);
}

bool virtio_net_coalesce_published(VirtIONetCoalesce *c, unsigned frames,
                                   size_t bytes)
{
    if (!virtqueue_should_signal(c->vq)) {
        settle(c);
        return false;
    }
    c->frames += frames;
    c->bytes += MIN(bytes, UINT32_MAX - c->bytes);
    if (limit_reached(c)) {
        send_call(c);
        return false;
    }
    if (aio_timer_armed(&c->timer)) {
        return false;
    }
    aio_timer_mod_ns(&c->timer, aio_now_ns(c->ctx) + c->limit_ns);
    return true;
}

void virtio_net_coalesce_init(VirtIONetCoalesce *c, AioContext *ctx,
                              VirtQueue *vq, void (*call)(void *opaque),
                              void *opaque)
{
    c->ctx = ctx;
    c->vq = vq;
    c->call = call;
    c->opaque = opaque;
    aio_timer_init(&c->timer, ctx, coalesce_timer, c);
}
