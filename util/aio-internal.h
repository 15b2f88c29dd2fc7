/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What the parts of the event loop share: aio.c (context and iteration),
 * aio-handler.c (descriptors), bh.c, timer.c and aio-poll.c.
 *
 * Private to util/; the public view, and the rules of use, are in
 * include/util/aio.h.
 */
#ifndef UTIL_AIO_INTERNAL_H
#define UTIL_AIO_INTERNAL_H

#include <assert.h>
#include <stdatomic.h>
#include <sys/epoll.h>
#include <sys/queue.h>

#include "util/aio.h"
#include "util/aio-poll.h"
#include "util/event-notifier.h"

#define AIO_CACHE_LINE  64

/*
 * Events taken from the kernel at once.  What does not fit comes first next
 * time, as epoll rotates its ready list.
 */
#define AIO_MAX_EVENTS  64

struct AioHandler {
    AioContext *ctx;
    const AioHandlerOps *ops;
    void *opaque;
    int fd;             /* the caller's, or our duplicate of it */
    bool fd_is_dup;
    unsigned want;
    bool watched;       /* in the epoll set */
    bool polling;       /* between poll_begin and poll_end */
    bool deleted;       /* waits in ctx->deleted for the walk to end */
    LIST_ENTRY(AioHandler) link;        /* ctx->handlers */
    LIST_ENTRY(AioHandler) poll_link;   /* ctx->pollers, if ops->poll */
    SLIST_ENTRY(AioHandler) deleted_link;
};

/* A singly linked list in order of scheduling. */
typedef struct AioBHList {
    AioBH *first;
    AioBH **tail;
} AioBHList;

struct AioContext {
    /* Set at creation. */
    char *name;
    Clock *clock;
    int epfd;
    EventNotifier notifier;     /* in epfd, edge-triggered, never read */
    int timer_fd;               /* likewise */

    /* Written when the owner changes, read by any thread. */
    _Atomic(const void *) owner;

    /* Any thread. */
    _Alignas(AIO_CACHE_LINE)
    atomic_bool notified;       /* do not sleep; cleared by the owner */
    atomic_bool notify_me;      /* the owner sleeps, or is about to */
    _Atomic(AioBH *) remote_bhs;        /* pushed by others, newest first */

    /* Owner. */
    _Alignas(AIO_CACHE_LINE)
    AioBHList local_bhs;        /* scheduled by the owner itself */
    AioBHList behind_bhs;       /* ... for the end of the next iteration */
    AioTimer *timers;           /* armed, by deadline */
    int64_t timer_fd_ns;        /* what it was last armed for */
    AioTimer *due_timers;       /* being run, by deadline */
    int64_t due_ns;             /* the reading that found them due */
    AioPollState poll;
    LIST_HEAD(, AioHandler) handlers;
    LIST_HEAD(, AioHandler) pollers;
    SLIST_HEAD(, AioHandler) deleted;
    bool walking;               /* handlers may not be freed */
    bool in_poll;
    struct epoll_event events[AIO_MAX_EVENTS];
};

/* aio_context_is_mine: the calling thread is the owner, by name. */
bool aio_context_is_mine(const AioContext *ctx);

/* aio_handlers_dispatch: run the handlers of @n entries of ctx->events. */
bool aio_handlers_dispatch(AioContext *ctx, int n);

/* aio_handlers_walk_begin/end: no handler is freed in between. */
void aio_handlers_walk_begin(AioContext *ctx);
void aio_handlers_walk_end(AioContext *ctx);

/* aio_timers_run: run what is due now. */
bool aio_timers_run(AioContext *ctx);

/*
 * aio_bhs_take_behind: those whose turn is in the iteration that begins.
 * aio_bhs_run: run what has been scheduled up to now, and @behind.
 */
AioBH *aio_bhs_take_behind(AioContext *ctx);
bool aio_bhs_run(AioContext *ctx, AioBH *behind);

/* aio_bhs_init: empty lists. */
void aio_bhs_init(AioContext *ctx);

/* aio_bhs_local_pending: the owner itself has scheduled something. */
static inline bool aio_bhs_local_pending(const AioContext *ctx)
{
    return ctx->local_bhs.first || ctx->behind_bhs.first;
}

/* aio_notified: somebody wants the loop to go round. */
static inline bool aio_notified(AioContext *ctx)
{
    return atomic_load_explicit(&ctx->notified, memory_order_relaxed);
}

/*
 * aio_busy_poll: poll for work until @end_ns of the monotonic clock, once
 * with a virtual clock.  Returns true if something was found; *@progress is
 * set if a handler took care of work.
 */
bool aio_busy_poll(AioContext *ctx, int64_t end_ns, bool *progress);

#endif /* UTIL_AIO_INTERNAL_H */
