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
 *
 * A deadline costs a wake-up, even if it finds that the guest has looked.  In
 * request and response it often does, since the response made the guest
 * look: a call for the other ring during the hold, few publications, few
 * bytes.  After PATIENT_HOLDS such deadlines the next ones come PATIENT_FACTOR
 * times later (but not more than PATIENT_NS), and are put off while all that
 * the guest has not seen is younger than the limit, or than twice the limit if
 * it was called for the other ring just now.
 *
 * A deadline without a response ends that; so does a stream, at its first
 * limit.  A guest that had a response and has not looked is slow rather than
 * changed: it is called, and REGAIN_HOLDS more are asked of it.  So one that
 * changes its ways waits too long once.
 */
#include "hw/net/virtio-net-coalesce.h"

#include <glib.h>

#define PATIENT_HOLDS   64
#define REGAIN_HOLDS    16
#define PATIENT_BATCHES 4
#define PATIENT_BYTES   16384
#define PATIENT_FACTOR  8
#define PATIENT_NS      (2 * NS_PER_MS)

G_STATIC_ASSERT(REGAIN_HOLDS <= PATIENT_HOLDS);

static void set_held(VirtIONetCoalesce *c, bool held)
{
    __atomic_store_n(&c->held, held, __ATOMIC_RELAXED);
}

static void settle(VirtIONetCoalesce *c)
{
    c->frames = 0;
    c->bytes = 0;
    aio_timer_del(&c->timer);
    set_held(c, false);
}

/* The driver has looked by itself, or does not care. */
static void lapse(VirtIONetCoalesce *c)
{
    bool held = aio_timer_armed(&c->timer);

    settle(c);
    if (held) {
        c->lapsed(c->opaque);
    }
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
        lapse(c);
    }
}

static bool is_patient(const VirtIONetCoalesce *c)
{
    return c->may_be_patient && c->in_vain == PATIENT_HOLDS;
}

/* What a guest waits at most beyond the limit. */
static int64_t extra_ns(const VirtIONetCoalesce *c)
{
    return is_patient(c) ?
        MIN((PATIENT_FACTOR - 1) * c->limit_ns, PATIENT_NS) : 0;
}

static void set_deadline(VirtIONetCoalesce *c)
{
    aio_timer_mod_ns(&c->timer, c->unseen_ns + c->limit_ns + extra_ns(c));
    set_held(c, true);
}

/*
 * What was just published is the first that the guest has not seen.  (A driver
 * may look, and ask anew only after the next was published: then there is one
 * more it has not seen, and that is older.)
 */
static void first_unseen(VirtIONetCoalesce *c)
{
    c->event = virtqueue_call_event(c->vq);
    c->unseen_ns = aio_now_ns(c->ctx);
}

/*
 * Called for the other ring less than a limit ago, it may still be on its way
 * to look.
 */
static bool may_be_looking(const VirtIONetCoalesce *c, int64_t now_ns)
{
    return c->answered && now_ns - c->answered_ns < c->limit_ns;
}

static bool may_wait(const VirtIONetCoalesce *c, int64_t now_ns)
{
    int64_t most_ns = c->limit_ns;

    if (may_be_looking(c, now_ns)) {
        most_ns += MIN(c->limit_ns, extra_ns(c));
    }
    return is_patient(c) && now_ns - c->unseen_ns < most_ns;
}

/* The deadline found nobody who waits. */
static void note_in_vain(VirtIONetCoalesce *c)
{
    bool is_exchange = c->answered &&
                       (is_patient(c) || (c->batches <= PATIENT_BATCHES &&
                                          c->hold_bytes <= PATIENT_BYTES));

    c->in_vain = is_exchange ? MIN(c->in_vain + 1, PATIENT_HOLDS) : 0;
}

/* The deadline found one that waits, or has not come to look yet. */
static void note_waiting(VirtIONetCoalesce *c)
{
    if (!c->answered) {
        c->in_vain = 0;
    } else if (is_patient(c)) {
        c->in_vain -= REGAIN_HOLDS;
    }
}

void virtio_net_coalesce_guest_looks(VirtIONetCoalesce *c)
{
    if (__atomic_load_n(&c->held, __ATOMIC_RELAXED)) {
        __atomic_store_n(&c->looked_ns, aio_now_ns(c->ctx), __ATOMIC_RELAXED);
    }
    /* Pairs with the acquire in take_looks(); one writer needs no more. */
    __atomic_store_n(&c->looks, c->looks + 1, __ATOMIC_RELEASE);
}

/* What the other ring's context has counted since the last time. */
static void take_looks(VirtIONetCoalesce *c)
{
    uint32_t looks = __atomic_load_n(&c->looks, __ATOMIC_ACQUIRE);

    if (looks == c->looks_seen) {
        return;
    }
    c->looks_seen = looks;
    c->frames = 0;
    c->bytes = 0;
    if (c->held) {
        c->answered = true;
        c->answered_ns = __atomic_load_n(&c->looked_ns, __ATOMIC_RELAXED);
    }
}

static void coalesce_timer(void *opaque)
{
    VirtIONetCoalesce *c = opaque;
    int64_t now_ns = aio_now_ns(c->ctx);

    take_looks(c);
    if (!virtqueue_should_signal(c->vq)) {
        note_in_vain(c);
        settle(c);
        c->lapsed(c->opaque);
    } else if (may_wait(c, now_ns)) {
        note_in_vain(c);
        c->answered = false;
        set_deadline(c);
    } else {
        note_waiting(c);
        send_call(c);
    }
}

void virtio_net_coalesce_flush(VirtIONetCoalesce *c)
{
    c->in_vain = 0;
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

VirtIONetCallFate virtio_net_coalesce_published(VirtIONetCoalesce *c,
                                                unsigned frames, size_t bytes)
{
    if (!virtqueue_should_signal(c->vq)) {
        lapse(c);
        return VIRTIO_NET_CALL_UNWANTED;
    }
    take_looks(c);
    c->frames += frames;
    c->bytes += MIN(bytes, UINT32_MAX - c->bytes);
    if (limit_reached(c)) {
        c->in_vain = 0;
        send_call(c);
        return VIRTIO_NET_CALL_SENT;
    }
    if (aio_timer_armed(&c->timer)) {
        c->batches += c->batches < UINT8_MAX;
        c->hold_bytes += MIN(bytes, UINT32_MAX - c->hold_bytes);
        if (is_patient(c) && virtqueue_call_event(c->vq) != c->event) {
            first_unseen(c);
        }
        return VIRTIO_NET_CALL_JOINED;
    }
    c->batches = 1;
    c->hold_bytes = bytes;
    c->answered = false;
    first_unseen(c);
    set_deadline(c);
    return VIRTIO_NET_CALL_HELD;
}

void virtio_net_coalesce_init(VirtIONetCoalesce *c, AioContext *ctx,
                              VirtQueue *vq, void (*call)(void *opaque),
                              void (*lapsed)(void *opaque), void *opaque)
{
    c->ctx = ctx;
    c->vq = vq;
    c->call = call;
    c->lapsed = lapsed;
    c->opaque = opaque;
    aio_timer_init(&c->timer, ctx, coalesce_timer, c);
}
