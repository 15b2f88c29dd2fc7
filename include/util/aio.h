/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * AioContext: an event loop for one thread.
 *
 * A context owns file descriptor handlers, timers and bottom halves.  One
 * thread at a time, the owner, runs it with aio_poll(); callbacks run in that
 * thread only.  Everything here is for the owner unless its comment says "any
 * thread".  Before a context has an owner (no thread has called aio_poll() or
 * aio_context_bind() yet, or the last one called aio_context_unbind()) the
 * thread that sets it up counts as the owner.
 *
 * One iteration of the loop, in this order: wait (busy polling first if it
 * is enabled, then epoll, ended at the latest by a timerfd at the first
 * timer), run ready handlers, run due timers, run the bottom halves that were
 * scheduled before this point.  A bottom half that is scheduled while bottom
 * halves run waits for the next iteration, behind handlers and timers: that
 * is what makes rescheduling fair.  Last are those of an earlier iteration that
 * were scheduled with aio_bh_schedule_behind().  An iteration makes one system
 * call; with work at hand it only looks, it does not sleep.
 *
 * The owner thread's timer slack is set to its minimum by aio_context_bind().
 */
#ifndef UTIL_AIO_H
#define UTIL_AIO_H

#include <glib.h>
#include <stdbool.h>
#include <stdint.h>

#include "util/clock.h"

typedef struct AioContext AioContext;
typedef struct AioHandler AioHandler;
typedef struct AioBH AioBH;
typedef struct AioTimer AioTimer;

typedef void AioFunc(void *opaque);

/* ---- contexts -------------------------------------------------------- */

/*
 * aio_context_new: create a context.
 * @name: for messages and traces, copied
 * @clock: its time; must outlive the context
 *
 * Any thread.  Returns NULL with @errp set when the kernel refuses an epoll
 * instance or an eventfd.  Free with aio_context_free().
 */
AioContext *aio_context_new(const char *name, Clock *clock, GError **errp);

/*
 * aio_context_free: free a context that no thread runs any more.
 *
 * Handlers, timers and bottom halves must be gone; one-shot bottom halves
 * that are still scheduled are run first.
 */
void aio_context_free(AioContext *ctx);

const char *aio_context_name(const AioContext *ctx);
Clock *aio_context_clock(const AioContext *ctx);

/* aio_now_ns: clock_now_ns() of the context's clock.  Any thread. */
int64_t aio_now_ns(const AioContext *ctx);

/*
 * aio_context_bind: make the calling thread the owner.
 *
 * Sets the thread's timer slack to 1 ns.  aio_poll() binds by itself when
 * the context has no owner.  aio_context_unbind() gives it up.
 */
void aio_context_bind(AioContext *ctx);
void aio_context_unbind(AioContext *ctx);

/*
 * aio_context_in_owner: true if the calling thread is the owner, or if the
 * context has none.  Any thread.
 */
bool aio_context_in_owner(const AioContext *ctx);

/*
 * aio_poll: run one iteration.
 * @blocking: wait for something to do; false only looks
 *
 * Returns true if any callback ran.  A blocking call may return false: after
 * a signal, aio_notify(), or a wake-up whose reason has gone meanwhile.  With
 * a virtual clock it waits for handlers, bottom halves and aio_notify() but
 * never for a timer.  Not to be called from a callback of @ctx.
 */
bool aio_poll(AioContext *ctx, bool blocking);

/*
 * aio_notify: make a blocking aio_poll() of another thread return.
 *
 * Any thread.  Costs a system call only when the owner is, or is about to
 * be, asleep.
 */
void aio_notify(AioContext *ctx);

/*
 * aio_context_set_poll_max_ns: enable adaptive busy polling.
 * @max_ns: longest time to poll before a wait; 0 switches polling off
 *
 * The time adapts between 0 and @max_ns to how long events really take to
 * arrive (see util/aio-poll.h), and rests when the kernel takes the CPU from
 * the polling thread, which costs two getrusage() per phase.  With a virtual
 * clock a phase is one pass.  Owner.
 */
void aio_context_set_poll_max_ns(AioContext *ctx, int64_t max_ns);

/*
 * aio_context_polls: whether adaptive busy polling is enabled.
 *
 * Owner, or any thread once the context has been set up.
 */
bool aio_context_polls(const AioContext *ctx);

/* ---- bottom halves --------------------------------------------------- */

/*
 * aio_bh_new: create a bottom half: a callback run once per scheduling in
 * the context's thread.
 *
 * Any thread.  Free with aio_bh_delete().
 */
AioBH *aio_bh_new(AioContext *ctx, AioFunc *fn, void *opaque);

/*
 * aio_bh_schedule: have the callback run soon.
 *
 * Any thread.  Scheduling a scheduled bottom half is a no-op.  Memory written
 * before this call is seen by the callback.  Those scheduled by one thread
 * run in that order, those of the other threads before the owner's.
 */
void aio_bh_schedule(AioBH *bh);

/*
 * aio_bh_schedule_behind: have it run in the next iteration, behind what that
 * finds: also behind bottom halves that are scheduled there by handlers and
 * timers.  For long work that goes on, so that others come in between.
 *
 * From a callback of the context.  Nothing changes if it is scheduled already.
 */
void aio_bh_schedule_behind(AioBH *bh);

/*
 * aio_bh_cancel: take back a scheduling.
 *
 * Any thread.  From the owner thread the callback is certain not to run
 * until it is scheduled again; from elsewhere it may be running now.
 */
void aio_bh_cancel(AioBH *bh);

/*
 * aio_bh_delete: free a bottom half, from its own callback too (NULL is
 * allowed).
 *
 * Any thread.  From the owner thread the callback will not run any more;
 * from elsewhere it may be running now, and never starts after that.  No
 * thread may schedule, cancel or delete it any more; the memory is freed
 * when the owner comes by.
 */
void aio_bh_delete(AioBH *bh);

/*
 * aio_bh_schedule_oneshot: run @fn once in the context's thread.
 *
 * Any thread.
 */
void aio_bh_schedule_oneshot(AioContext *ctx, AioFunc *fn, void *opaque);

/*
 * aio_wait_bh_oneshot: run @fn once in the context's thread and wait for it.
 *
 * Main context only: no other context may wait (docs/devel/contexts.rst).
 * Runs @fn directly if the caller owns @ctx or nobody does.
 */
void aio_wait_bh_oneshot(AioContext *ctx, AioFunc *fn, void *opaque);

/* ---- timers ---------------------------------------------------------- */

/*
 * AioTimer: a one-shot deadline.  The fields are private to util/timer.c;
 * the struct is public so that it can live inside its user.
 */
struct AioTimer {
    AioContext *ctx;
    AioFunc *fn;
    void *opaque;
    int64_t deadline_ns;
    AioTimer *next;
    bool armed;
};

/* aio_timer_init: prepare a timer; no resource is taken. */
void aio_timer_init(AioTimer *t, AioContext *ctx, AioFunc *fn, void *opaque);

/*
 * aio_timer_mod_ns: (re)arm for an absolute time of the context's clock.
 *
 * A time in the past fires in this iteration if timers have not run yet,
 * else in the next.
 */
void aio_timer_mod_ns(AioTimer *t, int64_t deadline_ns);

/* aio_timer_del: disarm; a no-op if it is not armed. */
void aio_timer_del(AioTimer *t);

static inline bool aio_timer_armed(const AioTimer *t)
{
    return t->armed;
}

/*
 * aio_timer_late_ns: in the timer's own callback, before it is armed again:
 * how long after its deadline it was found due.  Takes no clock reading.
 */
int64_t aio_timer_late_ns(const AioTimer *t);

/* aio_next_deadline_ns: the first deadline, or INT64_MAX.  Owner. */
int64_t aio_next_deadline_ns(const AioContext *ctx);

/* ---- file descriptors ------------------------------------------------ */

enum {
    AIO_READ  = 1 << 0,     /* call .readable */
    AIO_WRITE = 1 << 1,     /* call .writable */
    /*
     * Edge-triggered: a callback per new event.  For eventfds that are
     * never read: each write of the peer is an edge.
     */
    AIO_EDGE  = 1 << 2,
};

typedef struct AioHandlerOps {
    AioFunc *readable;
    AioFunc *writable;
    /*
     * Error or hang-up.  The descriptor has already been taken out of the
     * wait set (such events cannot be masked and would spin).  If there is
     * something left to read and AIO_READ is wanted, .readable is called
     * once before: read until the descriptor has no more.  The callback
     * deletes the handler or lets it rest; aio_handler_want() puts it back.
     * Reported even while nothing is wanted.
     *
     * NULL: .readable and .writable are called, whichever is wanted, as for
     * a normal event, again and again until the callback sees the error of
     * its read or write and acts; while nothing is wanted, nothing happens.
     */
    AioFunc *hangup;
    /*
     * Busy polling (all three or none).  poll returns true if it found, and
     * took care of, work.  It must be cheap and must not sleep.  poll_begin
     * and poll_end fence a polling phase: notifications may be switched off
     * in between, and poll_end must look once more after switching them on,
     * returning true if it found work.  A handler that is deleted within a
     * phase gets no poll_end.
     */
    bool (*poll)(void *opaque);
    AioFunc *poll_begin;
    bool (*poll_end)(void *opaque);
} AioHandlerOps;

/*
 * aio_handler_new: watch a descriptor.
 * @fd: stays the caller's, who closes it after aio_handler_delete()
 * @want: AIO_READ, AIO_WRITE, AIO_EDGE
 * @ops: must outlive the handler
 *
 * Several handlers may watch one descriptor, for instance one for each
 * direction.  Returns NULL with @errp set if the descriptor cannot be watched
 * (regular files cannot).
 */
AioHandler *aio_handler_new(AioContext *ctx, int fd, unsigned want,
                            const AioHandlerOps *ops, void *opaque,
                            GError **errp);

/*
 * aio_handler_want: change the events of interest (AIO_READ, AIO_WRITE;
 * AIO_EDGE stays as it was).  Costs a system call only if they change.  An
 * event of this iteration that is no longer wanted is not delivered; wanted
 * again, it comes back, with AIO_EDGE too.
 */
void aio_handler_want(AioHandler *h, unsigned want);

/*
 * aio_handler_delete: stop watching, from the handler's own callbacks too
 * (NULL is allowed).  No callback of this handler runs after that.
 */
void aio_handler_delete(AioHandler *h);

#endif /* UTIL_AIO_H */
