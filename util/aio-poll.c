/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Adaptive busy polling: the decision (pure) and the polling loop.
 *
 * A wake-up from sleep costs some ten microseconds; looking costs CPU.  The
 * window follows the arrivals (see the header), the credit caps what wrong
 * guesses may cost.  A wait ended by a timer within max_ns teaches nothing.
 * An involuntary switch while polling says that somebody else wants the CPU.
 *
 * While polling, other threads see notify_me == false, so their aio_notify()
 * makes no system call.
 *
 * Limits: descriptors without a poll callback are not looked at during a
 * window, so they may be served up to one window late.
 */
#include "aio-internal.h"

void aio_poll_state_init(AioPollState *s, int64_t max_ns)
{
    assert(max_ns >= 0 && max_ns <= NS_PER_SEC);
    *s = (AioPollState) {
        .max_ns = max_ns,
        .credit_ns = AIO_POLL_CREDIT_START * max_ns,
    };
}

int64_t aio_poll_window_ns(const AioPollState *s)
{
    return MAX(MIN(s->window_ns, s->credit_ns), 0);
}

static void aio_poll_grow(AioPollState *s)
{
    s->window_ns = MIN(MAX(2 * s->window_ns, AIO_POLL_MIN_NS), s->max_ns);
}

static void aio_poll_shrink(AioPollState *s)
{
    s->window_ns /= 2;
    if (s->window_ns < AIO_POLL_MIN_NS) {
        s->window_ns = 0;
    }
}

void aio_poll_account(AioPollState *s, AioPollEnd end, int64_t polled_ns,
                      int64_t waited_ns)
{
    if (end == AIO_POLL_HIT) {
        s->credit_ns += s->max_ns;
        s->penalty_ns -= s->penalty_ns / AIO_POLL_PENALTY_HITS;
    } else {
        s->credit_ns -= polled_ns;
        s->credit_ns += (waited_ns - polled_ns) / AIO_POLL_SLEEP_SHARE;
        if (waited_ns > s->max_ns) {
            aio_poll_shrink(s);
        } else if (end == AIO_POLL_EVENT) {
            aio_poll_grow(s);
        }
    }
    s->credit_ns = MIN(s->credit_ns, AIO_POLL_CREDIT_MAX * s->max_ns);
}

void aio_poll_preempted(AioPollState *s)
{
    s->penalty_ns = CLAMP(2 * s->penalty_ns, s->max_ns,
                          AIO_POLL_PENALTY_MAX * s->max_ns);
    s->credit_ns = MIN(s->credit_ns, 0) - s->penalty_ns;
}

/* ---- the loop -------------------------------------------------------- */

static void aio_pollers_begin(AioContext *ctx)
{
    AioHandler *h;

    LIST_FOREACH(h, &ctx->pollers, poll_link) {
        if (!h->deleted) {
            h->polling = true;
            h->ops->poll_begin(h->opaque);
        }
    }
}

/* Handlers made by a callback meanwhile have had no poll_begin: left out. */
static bool aio_pollers_pass(AioContext *ctx)
{
    AioHandler *h;
    bool hit = false;

    LIST_FOREACH(h, &ctx->pollers, poll_link) {
        if (h->polling && !h->deleted) {
            hit |= h->ops->poll(h->opaque);
        }
    }
    return hit;
}

static bool aio_pollers_end(AioContext *ctx)
{
    AioHandler *h;
    bool hit = false;

    LIST_FOREACH(h, &ctx->pollers, poll_link) {
        if (h->polling && !h->deleted) {
            h->polling = false;
            hit |= h->ops->poll_end(h->opaque);
        }
    }
    return hit;
}

bool aio_busy_poll(AioContext *ctx, int64_t end_ns, bool *progress)
{
    bool hit, again;

    aio_handlers_walk_begin(ctx);
    aio_pollers_begin(ctx);
    do {
        hit = aio_pollers_pass(ctx);
        again = !hit && !aio_notified(ctx) && !aio_bhs_local_pending(ctx) &&
                !clock_is_virtual(ctx->clock) &&
                clock_now_ns(clock_monotonic()) < end_ns;
    } while (again);
    hit |= aio_pollers_end(ctx);
    aio_handlers_walk_end(ctx);

    *progress |= hit;
    return hit || aio_notified(ctx) || aio_bhs_local_pending(ctx);
}
