/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Timers: one list per context, sorted by deadline.
 *
 * A context has a handful of timers (a deadline per queue, a few for the
 * backend), so a list beats a heap: the first deadline is one load away, and
 * arming walks past the few that come earlier.  Equal deadlines keep the
 * order in which they were armed.
 *
 * Running moves what is due to a second list first.  A callback may delete or
 * re-arm any timer, also one of that list, and a timer that is re-armed in
 * the past waits for the next iteration instead of running for ever.
 */
#include "aio-internal.h"

void aio_timer_init(AioTimer *t, AioContext *ctx, AioFunc *fn, void *opaque)
{
    *t = (AioTimer) { .ctx = ctx, .fn = fn, .opaque = opaque };
}

static bool timer_unlink(AioTimer **list, AioTimer *t)
{
    for (; *list; list = &(*list)->next) {
        if (*list == t) {
            *list = t->next;
            return true;
        }
    }
    return false;
}

void aio_timer_del(AioTimer *t)
{
    if (!t->armed) {
        return;
    }
    assert(aio_context_in_owner(t->ctx));
    if (!timer_unlink(&t->ctx->timers, t)) {
        timer_unlink(&t->ctx->due_timers, t);
    }
    t->armed = false;
}

void aio_timer_mod_ns(AioTimer *t, int64_t deadline_ns)
{
    AioTimer **pos = &t->ctx->timers;

    assert(aio_context_in_owner(t->ctx));
    aio_timer_del(t);
    while (*pos && (*pos)->deadline_ns <= deadline_ns) {
        pos = &(*pos)->next;
    }
    t->deadline_ns = deadline_ns;
    t->next = *pos;
    t->armed = true;
    *pos = t;
}

int64_t aio_next_deadline_ns(const AioContext *ctx)
{
    return ctx->timers ? ctx->timers->deadline_ns : INT64_MAX;
}

int64_t aio_timer_late_ns(const AioTimer *t)
{
    return t->ctx->due_ns - t->deadline_ns;
}

/* Cut off the timers that are due: they are the head of the list. */
static void timers_collect_due(AioContext *ctx, int64_t now_ns)
{
    AioTimer **end = &ctx->timers;
    AioTimer *rest;

    while (*end && (*end)->deadline_ns <= now_ns) {
        end = &(*end)->next;
    }
    rest = *end;
    *end = NULL;
    ctx->due_timers = ctx->timers;
    ctx->timers = rest;
}

bool aio_timers_run(AioContext *ctx)
{
    bool progress = false;
    AioTimer *t;

    if (!ctx->timers) {
        return false;   /* saves the clock reading */
    }
    ctx->due_ns = aio_now_ns(ctx);
    timers_collect_due(ctx, ctx->due_ns);
    while ((t = ctx->due_timers)) {
        ctx->due_timers = t->next;
        t->armed = false;
        t->fn(t->opaque);       /* may free t */
        progress = true;
    }
    return progress;
}
