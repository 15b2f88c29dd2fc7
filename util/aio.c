/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * AioContext: ownership, sleeping and waking, one iteration of the loop.
 *
 * Sleep and wake-up are a handshake over two flags:
 *
 *     owner, aio_wait()               other thread, aio_notify()
 *     ------------------------        ---------------------------
 *     notify_me = true                (work is published)
 *     full barrier                    notified = true
 *     notified?  -> do not sleep      full barrier
 *     epoll                           notify_me?  -> write the eventfd
 *
 * At least one side sees the other's flag, so either the owner does not sleep
 * or it is woken.  The barriers are the sequentially consistent accesses of
 * both sides.  Whoever finds notify_me set also clears it, so one sleep costs
 * at most one write.  The eventfd is edge-triggered and never read: a write
 * is an edge.  A late write may end the next sleep early, which is harmless.
 *
 * An iteration makes one system call.  With work at hand it is a look with
 * timeout zero, so that descriptors get their turn while bottom halves keep
 * rescheduling each other.
 *
 * Deadlines end a sleep through a timerfd, armed for the first one.  A timeout
 * of the wait itself would be armed and taken back at each sleep, and in a
 * virtual machine each of the two is an exit: 10 us of CPU a sleep, against 4
 * with a timerfd that stays armed while later deadlines come and go (request
 * and response, 70 us a round).  It is one more system call only when the
 * first deadline moves ahead of what is armed.
 *
 * Limits: aio_poll() does not nest on one context.
 */
#include "aio-internal.h"

#include <errno.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "util/report.h"

/* Its address names the thread. */
static __thread char aio_thread_tag;

/* ---- life and ownership ---------------------------------------------- */

static bool aio_context_open(AioContext *ctx, GError **errp)
{
    struct epoll_event ev = { .events = EPOLLIN | EPOLLET };

    ctx->epfd = epoll_create1(EPOLL_CLOEXEC);
    if (ctx->epfd < 0) {
        vnet_set_error(errp, "cannot create an epoll instance: %s",
                       g_strerror(errno));
        return false;
    }
    if (!event_notifier_init(&ctx->notifier, false, errp)) {
        return false;
    }
    ctx->timer_fd = timerfd_create(CLOCK_MONOTONIC,
                                   TFD_NONBLOCK | TFD_CLOEXEC);
    if (ctx->timer_fd < 0) {
        vnet_set_error(errp, "cannot create a timerfd: %s",
                       g_strerror(errno));
        return false;
    }
    if (epoll_ctl(ctx->epfd, EPOLL_CTL_ADD, ctx->notifier.fd, &ev) < 0 ||
        epoll_ctl(ctx->epfd, EPOLL_CTL_ADD, ctx->timer_fd, &ev) < 0) {
        vnet_set_error(errp, "cannot watch an eventfd: %s",
                       g_strerror(errno));
        return false;
    }
    return true;
}

static void aio_context_destroy(AioContext *ctx)
{
    event_notifier_cleanup(&ctx->notifier);
    if (ctx->timer_fd >= 0) {
        close(ctx->timer_fd);
    }
    if (ctx->epfd >= 0) {
        close(ctx->epfd);
    }
    g_free(ctx->name);
    free(ctx);
}

AioContext *aio_context_new(const char *name, Clock *clock, GError **errp)
{
    /* Not g_new0(): the struct asks for the alignment of a cache line. */
    AioContext *ctx = aligned_alloc(AIO_CACHE_LINE, sizeof(*ctx));

    if (!ctx) {
        g_error("out of memory");
    }
    memset(ctx, 0, sizeof(*ctx));
    ctx->name = g_strdup(name);
    ctx->clock = clock;
    ctx->notifier.fd = -1;
    ctx->timer_fd = -1;
    aio_bhs_init(ctx);
    if (!aio_context_open(ctx, errp)) {
        aio_context_destroy(ctx);
        return NULL;
    }
    return ctx;
}

void aio_context_free(AioContext *ctx)
{
    if (!ctx) {
        return;
    }
    assert(aio_context_in_owner(ctx) && !ctx->in_poll);
    /* Until quiet: a one-shot may schedule another. */
    while (aio_bhs_run(ctx, aio_bhs_take_behind(ctx))) {
    }
    assert(LIST_EMPTY(&ctx->handlers) && !ctx->timers);
    aio_context_destroy(ctx);
}

const char *aio_context_name(const AioContext *ctx)
{
    return ctx->name;
}

Clock *aio_context_clock(const AioContext *ctx)
{
    return ctx->clock;
}

int64_t aio_now_ns(const AioContext *ctx)
{
    return clock_now_ns(ctx->clock);
}

/* The acquire pairs with the release in aio_context_unbind(). */
void aio_context_bind(AioContext *ctx)
{
    const void *none = NULL;

    if (aio_context_is_mine(ctx)) {
        return;
    }
    if (!atomic_compare_exchange_strong_explicit(&ctx->owner, &none,
                                                 &aio_thread_tag,
                                                 memory_order_acquire,
                                                 memory_order_relaxed)) {
        g_error("AioContext '%s' is run by two threads", ctx->name);
    }
    prctl(PR_SET_TIMERSLACK, 1);
}

void aio_context_unbind(AioContext *ctx)
{
    assert(aio_context_is_mine(ctx));
    atomic_store_explicit(&ctx->owner, NULL, memory_order_release);
}

bool aio_context_is_mine(const AioContext *ctx)
{
    return atomic_load_explicit(&ctx->owner, memory_order_relaxed) ==
           &aio_thread_tag;
}

bool aio_context_in_owner(const AioContext *ctx)
{
    const void *owner = atomic_load_explicit(&ctx->owner,
                                             memory_order_acquire);

    return !owner || owner == &aio_thread_tag;
}

void aio_context_set_poll_max_ns(AioContext *ctx, int64_t max_ns)
{
    assert(aio_context_in_owner(ctx));
    aio_poll_state_init(&ctx->poll, max_ns);
}

bool aio_context_polls(const AioContext *ctx)
{
    return ctx->poll.max_ns > 0;
}

/* ---- sleeping and waking --------------------------------------------- */

void aio_notify(AioContext *ctx)
{
    /* Full barrier: pairs with the store to notify_me in aio_wait(). */
    atomic_exchange(&ctx->notified, true);
    if (atomic_load(&ctx->notify_me) &&
        atomic_exchange(&ctx->notify_me, false)) {
        event_notifier_set(&ctx->notifier);
    }
}

/*
 * Have the timerfd fire at the first deadline, or before it.  What it is armed
 * for is left alone while that is good enough: it may fire for a deadline that
 * has been taken back, which ends one sleep for nothing.
 */
static void aio_arm_timer_fd(AioContext *ctx, int64_t now_ns)
{
    int64_t deadline_ns = aio_next_deadline_ns(ctx);
    struct itimerspec spec = {
        .it_value.tv_sec = deadline_ns / NS_PER_SEC,
        .it_value.tv_nsec = deadline_ns % NS_PER_SEC,
    };

    if (ctx->timer_fd_ns > now_ns && ctx->timer_fd_ns <= deadline_ns) {
        return;
    }
    ctx->timer_fd_ns = deadline_ns;
    if (timerfd_settime(ctx->timer_fd, TFD_TIMER_ABSTIME, &spec, NULL) < 0) {
        g_error("timerfd_settime: %s", g_strerror(errno));
    }
}

/*
 * @timeout_ns: 0: do not sleep; -1: no limit; else the time that is left to
 *              the first deadline
 *
 * Returns the number of events, 0 after a signal.
 */
static int aio_wait(AioContext *ctx, int64_t timeout_ns)
{
    int n;

    if (timeout_ns) {
        /* Full barrier: pairs with the one on notified in aio_notify(). */
        atomic_store(&ctx->notify_me, true);
        if (atomic_load(&ctx->notified)) {
            timeout_ns = 0;
        }
    }
    if (timeout_ns > 0) {
        aio_arm_timer_fd(ctx, aio_next_deadline_ns(ctx) - timeout_ns);
    }
    n = epoll_wait(ctx->epfd, ctx->events, AIO_MAX_EVENTS,
                   timeout_ns ? -1 : 0);
    atomic_store_explicit(&ctx->notify_me, false, memory_order_relaxed);
    if (n < 0 && errno != EINTR) {
        g_error("epoll_wait: %s", g_strerror(errno));
    }
    return MAX(n, 0);
}

/*
 * Before anything is run: what comes with a later notification may then be
 * missed by this iteration, but not by the next.  The acquire pairs with the
 * exchange in aio_notify().
 */
static bool aio_accept_notification(AioContext *ctx)
{
    return aio_notified(ctx) &&
           atomic_exchange_explicit(&ctx->notified, false,
                                    memory_order_acquire);
}

/* 0: do not sleep; -1: no limit. */
static int64_t aio_timeout_ns(const AioContext *ctx)
{
    int64_t deadline_ns = aio_next_deadline_ns(ctx);
    int64_t now_ns;

    if (deadline_ns == INT64_MAX) {
        return -1;
    }
    now_ns = aio_now_ns(ctx);
    if (deadline_ns <= now_ns) {
        return 0;
    }
    return clock_is_virtual(ctx->clock) ? -1 : deadline_ns - now_ns;
}

/*
 * How often the kernel took the CPU from this thread, which wanted it.  On a
 * virtual clock other threads' doings are no part of what happens.
 */
static long aio_involuntary_switches(const AioContext *ctx)
{
    struct rusage usage;

    if (clock_is_virtual(ctx->clock)) {
        return 0;
    }
    getrusage(RUSAGE_THREAD, &usage);
    return usage.ru_nivcsw;
}

/* Sleep, after polling in vain for @polled_ns since @start_ns. */
static int aio_wait_learning(AioContext *ctx, int64_t timeout_ns,
                             int64_t start_ns, int64_t polled_ns)
{
    int n = aio_wait(ctx, timeout_ns);
    /* A lone event at a deadline is the timerfd's. */
    bool timed_out = n <= 1 && !aio_notified(ctx) && aio_timeout_ns(ctx) == 0;

    aio_poll_account(&ctx->poll, timed_out ? AIO_POLL_TIMER : AIO_POLL_EVENT,
                     polled_ns, clock_now_ns(clock_monotonic()) - start_ns);
    return n;
}

/* A wait that polls first, and learns. */
static int aio_wait_polling(AioContext *ctx, int64_t timeout_ns,
                            bool *progress)
{
    const Clock *real = clock_monotonic();
    int64_t start_ns = clock_now_ns(real);
    int64_t window_ns = aio_poll_window_ns(&ctx->poll);
    int64_t polled_ns;
    bool hit, preempted;
    long switches;
    int n;

    if (timeout_ns > 0) {
        window_ns = MIN(window_ns, timeout_ns);
    }
    if (!window_ns) {
        return aio_wait_learning(ctx, timeout_ns, start_ns, 0);
    }
    switches = aio_involuntary_switches(ctx);
    hit = aio_busy_poll(ctx, start_ns + window_ns, progress);
    preempted = aio_involuntary_switches(ctx) != switches;
    polled_ns = clock_now_ns(real) - start_ns;
    if (hit) {
        aio_poll_account(&ctx->poll, AIO_POLL_HIT, polled_ns, polled_ns);
        n = aio_wait(ctx, 0);
    } else {
        n = aio_wait_learning(ctx, aio_timeout_ns(ctx), start_ns, polled_ns);
    }
    if (preempted) {
        aio_poll_preempted(&ctx->poll);
    }
    return n;
}

/* ---- the loop -------------------------------------------------------- */

bool aio_poll(AioContext *ctx, bool blocking)
{
    bool progress = false;
    int64_t timeout_ns = 0;
    AioBH *behind;
    int n;

    aio_context_bind(ctx);
    assert(!ctx->in_poll);
    ctx->in_poll = true;
    if (blocking && !aio_bhs_local_pending(ctx) && !aio_notified(ctx)) {
        timeout_ns = aio_timeout_ns(ctx);
    }
    if (timeout_ns && ctx->poll.max_ns && !LIST_EMPTY(&ctx->pollers)) {
        n = aio_wait_polling(ctx, timeout_ns, &progress);
    } else {
        n = aio_wait(ctx, timeout_ns);
    }
    aio_accept_notification(ctx);
    behind = aio_bhs_take_behind(ctx);
    progress |= aio_handlers_dispatch(ctx, n);
    progress |= aio_timers_run(ctx);
    progress |= aio_bhs_run(ctx, behind);
    ctx->in_poll = false;
    return progress;
}
