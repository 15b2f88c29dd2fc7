/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * IOThread: life, ownership, and doors from the main thread.
 */
#include <pthread.h>
#include <signal.h>
#include <sys/prctl.h>

#include "util/iothread.h"

typedef struct Seen {
    pthread_t thread;
    char name[16];
    int timer_slack_ns;
    bool sigterm_blocked;
    bool in_owner;
    AioContext *ctx;
    unsigned runs;
} Seen;

static void look_around(void *opaque)
{
    Seen *seen = opaque;
    sigset_t set;

    seen->thread = pthread_self();
    pthread_getname_np(seen->thread, seen->name, sizeof(seen->name));
    seen->timer_slack_ns = prctl(PR_GET_TIMERSLACK);
    pthread_sigmask(SIG_BLOCK, NULL, &set);
    seen->sigterm_blocked = sigismember(&set, SIGTERM);
    seen->in_owner = aio_context_in_owner(seen->ctx);
    seen->runs++;
}

static void test_life(void)
{
    g_autoptr(GError) err = NULL;
    IOThread *iot = iothread_new("io-with-a-long-name", clock_monotonic(),
                                 &err);
    Seen seen = { .ctx = iothread_context(iot) };

    g_assert_no_error(err);
    g_assert_cmpstr(iothread_id(iot), ==, "io-with-a-long-name");

    /* No thread yet: the caller is the owner. */
    aio_wait_bh_oneshot(seen.ctx, look_around, &seen);
    g_assert_true(pthread_equal(seen.thread, pthread_self()));
    aio_bh_schedule_oneshot(seen.ctx, look_around, &seen);
    g_assert_cmpuint(seen.runs, ==, 1);

    g_assert_true(iothread_start(iot, &err));
    g_assert_false(aio_context_in_owner(seen.ctx));
    aio_wait_bh_oneshot(seen.ctx, look_around, &seen);
    g_assert_cmpuint(seen.runs, ==, 3);
    g_assert_false(pthread_equal(seen.thread, pthread_self()));
    g_assert_cmpstr(seen.name, ==, "io-with-a-long-");
    g_assert_cmpint(seen.timer_slack_ns, ==, 1);
    g_assert_true(seen.sigterm_blocked);
    g_assert_true(seen.in_owner);

    /* The signals of this thread are as before. */
    look_around(&seen);
    g_assert_false(seen.sigterm_blocked);
    iothread_free(iot);
}

static void test_never_started(void)
{
    IOThread *iot = iothread_new("io", clock_monotonic(), NULL);
    Seen seen = { .ctx = iothread_context(iot) };

    aio_bh_schedule_oneshot(seen.ctx, look_around, &seen);
    iothread_free(iot);
    g_assert_cmpuint(seen.runs, ==, 1);
    iothread_free(NULL);
}

/* What is scheduled before the end still runs. */
static void test_pending_at_end(void)
{
    IOThread *iot = iothread_new("io", clock_monotonic(), NULL);
    Seen seen = { .ctx = iothread_context(iot) };

    g_assert_true(iothread_start(iot, NULL));
    for (unsigned i = 0; i < 100; i++) {
        aio_bh_schedule_oneshot(seen.ctx, look_around, &seen);
    }
    iothread_free(iot);
    g_assert_cmpuint(seen.runs, ==, 100);
}

typedef struct Ticker {
    AioTimer timer;
    unsigned ticks;
    pthread_mutex_t lock;
    pthread_cond_t cond;
    bool done;
} Ticker;

static void tick(void *opaque)
{
    Ticker *t = opaque;

    if (++t->ticks < 20) {
        aio_timer_mod_ns(&t->timer, t->timer.deadline_ns + 10 * NS_PER_US);
        return;
    }
    pthread_mutex_lock(&t->lock);
    t->done = true;
    pthread_cond_signal(&t->cond);
    pthread_mutex_unlock(&t->lock);
}

static void start_ticker(void *opaque)
{
    Ticker *t = opaque;

    aio_timer_mod_ns(&t->timer, aio_now_ns(t->timer.ctx));
}

static void test_timer(void)
{
    IOThread *iot = iothread_new("io", clock_monotonic(), NULL);
    Ticker t = {
        .lock = PTHREAD_MUTEX_INITIALIZER,
        .cond = PTHREAD_COND_INITIALIZER,
    };

    g_assert_true(iothread_start(iot, NULL));
    aio_timer_init(&t.timer, iothread_context(iot), tick, &t);
    aio_bh_schedule_oneshot(iothread_context(iot), start_ticker, &t);
    pthread_mutex_lock(&t.lock);
    while (!t.done) {
        pthread_cond_wait(&t.cond, &t.lock);
    }
    pthread_mutex_unlock(&t.lock);
    iothread_free(iot);
    g_assert_cmpuint(t.ticks, ==, 20);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/iothread/life", test_life);
    g_test_add_func("/iothread/never-started", test_never_started);
    g_test_add_func("/iothread/pending-at-end", test_pending_at_end);
    g_test_add_func("/iothread/timer", test_timer);
    return g_test_run();
}
