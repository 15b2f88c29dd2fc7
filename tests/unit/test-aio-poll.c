/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Adaptive polling: the pure decision, then the loop around it.
 */
#include <sched.h>
#include <sys/resource.h>

#include "util/aio-poll.h"
#include "util/aio.h"
#include "util/event-notifier.h"

#define MAX_NS  32000

/* ---- the decision ---------------------------------------------------- */

static void test_off(void)
{
    AioPollState s;

    aio_poll_state_init(&s, 0);
    aio_poll_account(&s, AIO_POLL_EVENT, 0, 0);
    aio_poll_account(&s, AIO_POLL_EVENT, 0, 100);
    g_assert_cmpint(aio_poll_window_ns(&s), ==, 0);
}

/* Events that come just too late, until the window catches them. */
static void test_grow(void)
{
    static const int64_t windows[] = { 4000, 8000, 16000, 32000, 32000 };
    AioPollState s;

    aio_poll_state_init(&s, MAX_NS);
    g_assert_cmpint(aio_poll_window_ns(&s), ==, 0);
    for (unsigned i = 0; i < G_N_ELEMENTS(windows); i++) {
        int64_t polled_ns = aio_poll_window_ns(&s) / 8;

        aio_poll_account(&s, AIO_POLL_EVENT, polled_ns, MAX_NS);
        g_assert_cmpint(aio_poll_window_ns(&s), ==, windows[i]);
    }
    aio_poll_account(&s, AIO_POLL_HIT, 20000, 20000);
    g_assert_cmpint(aio_poll_window_ns(&s), ==, 32000);
}

static void test_small_max(void)
{
    AioPollState s;

    aio_poll_state_init(&s, 1000);
    aio_poll_account(&s, AIO_POLL_EVENT, 0, 900);
    g_assert_cmpint(aio_poll_window_ns(&s), ==, 1000);
    aio_poll_account(&s, AIO_POLL_EVENT, 1000, 5000);
    g_assert_cmpint(aio_poll_window_ns(&s), ==, 0);
}

/* Nothing comes: halved, and in the end no polling at all. */
static void test_shrink(void)
{
    static const int64_t windows[] = { 16000, 8000, 4000, 0, 0 };
    AioPollState s = {
        .max_ns = MAX_NS,
        .window_ns = MAX_NS,
        .credit_ns = AIO_POLL_CREDIT_MAX * MAX_NS,
    };

    for (unsigned i = 0; i < G_N_ELEMENTS(windows); i++) {
        AioPollEnd end = i % 2 ? AIO_POLL_TIMER : AIO_POLL_EVENT;

        aio_poll_account(&s, end, aio_poll_window_ns(&s), MAX_NS + 1);
        g_assert_cmpint(aio_poll_window_ns(&s), ==, windows[i]);
    }
}

/* A deadline within max_ns is no reason to change. */
static void test_timer_neutral(void)
{
    AioPollState s = {
        .max_ns = MAX_NS,
        .window_ns = 8000,
        .credit_ns = MAX_NS,
    };

    aio_poll_account(&s, AIO_POLL_TIMER, 8000, MAX_NS);
    g_assert_cmpint(s.window_ns, ==, 8000);
    g_assert_cmpint(s.credit_ns, ==, MAX_NS - 8000 + (MAX_NS - 8000) / 16);
}

/* Out of credit: no polling, however wide the window; sleep pays it back. */
static void test_credit(void)
{
    AioPollState s = {
        .max_ns = MAX_NS,
        .window_ns = 16000,
        .credit_ns = 10000,
    };

    g_assert_cmpint(aio_poll_window_ns(&s), ==, 10000);
    aio_poll_account(&s, AIO_POLL_TIMER, 10500, 10500);
    g_assert_cmpint(s.credit_ns, ==, -500);
    g_assert_cmpint(aio_poll_window_ns(&s), ==, 0);
    aio_poll_account(&s, AIO_POLL_TIMER, 0, 16000);
    g_assert_cmpint(aio_poll_window_ns(&s), ==, 500);
    aio_poll_account(&s, AIO_POLL_HIT, 100, 100);
    g_assert_cmpint(aio_poll_window_ns(&s), ==, 16000);
    for (unsigned i = 0; i < 100; i++) {
        aio_poll_account(&s, AIO_POLL_HIT, 100, 100);
    }
    g_assert_cmpint(s.credit_ns, ==, AIO_POLL_CREDIT_MAX * MAX_NS);
}

/* Twice as much each time, up to a limit; sleep pays it back. */
static void test_preempted(void)
{
    AioPollState s = {
        .max_ns = MAX_NS,
        .window_ns = MAX_NS,
        .credit_ns = AIO_POLL_CREDIT_MAX * MAX_NS,
    };

    aio_poll_preempted(&s);
    g_assert_cmpint(aio_poll_window_ns(&s), ==, 0);
    aio_poll_account(&s, AIO_POLL_TIMER, 0, 16 * MAX_NS);
    g_assert_cmpint(s.credit_ns, ==, 0);
    s.window_ns = MAX_NS;
    aio_poll_account(&s, AIO_POLL_EVENT, 0, MAX_NS);
    g_assert_cmpint(aio_poll_window_ns(&s), >, 0);
    s.credit_ns = MAX_NS;
    aio_poll_preempted(&s);
    g_assert_cmpint(s.credit_ns, ==, -2 * MAX_NS);
    for (unsigned i = 0; i < 20; i++) {
        s.credit_ns = MAX_NS;
        aio_poll_preempted(&s);
    }
    g_assert_cmpint(s.credit_ns, ==, -AIO_POLL_PENALTY_MAX * MAX_NS);
}

/* What others wanted long ago does not count for ever. */
static void test_preempted_forgotten(void)
{
    AioPollState s;

    aio_poll_state_init(&s, MAX_NS);
    for (unsigned i = 0; i < 20; i++) {
        aio_poll_preempted(&s);
    }
    for (unsigned i = 0; i < 1000; i++) {
        aio_poll_account(&s, AIO_POLL_HIT, 100, 100);
    }
    s.credit_ns = 0;
    aio_poll_preempted(&s);
    g_assert_cmpint(s.credit_ns, ==, -MAX_NS);
}

/*
 * However well polling hits: if others want the CPU in each phase, it rests
 * for nearly all of the time.
 */
static void test_preempted_always(void)
{
    int64_t polled_ns = 0, slept_ns = 0;
    AioPollState s;

    aio_poll_state_init(&s, MAX_NS);
    for (unsigned i = 0; i < 100000; i++) {
        int64_t window_ns = aio_poll_window_ns(&s);

        if (window_ns >= MAX_NS / 2) {
            polled_ns += MAX_NS / 2;
            aio_poll_account(&s, AIO_POLL_HIT, MAX_NS / 2, MAX_NS / 2);
            aio_poll_preempted(&s);
        } else {
            slept_ns += MAX_NS / 2;
            aio_poll_account(&s, AIO_POLL_EVENT, 0, MAX_NS / 2);
        }
    }
    g_assert_cmpint(polled_ns, >, 0);
    g_assert_cmpint(polled_ns, <, slept_ns / 1000);
}

/* The bound the header states, for arrivals meant to fool the policy. */
static void check_waste(int64_t (*gap)(unsigned i, GRand *rnd))
{
    GRand *rnd = g_rand_new_with_seed(42);
    int64_t wasted_ns = 0, slept_ns = 0, hits = 0;
    AioPollState s;

    aio_poll_state_init(&s, MAX_NS);
    for (unsigned i = 0; i < 100000; i++) {
        int64_t window_ns = aio_poll_window_ns(&s);
        int64_t gap_ns = gap(i, rnd);

        if (gap_ns <= window_ns) {
            hits++;
            aio_poll_account(&s, AIO_POLL_HIT, gap_ns, gap_ns);
        } else {
            wasted_ns += window_ns;
            slept_ns += gap_ns - window_ns;
            aio_poll_account(&s, AIO_POLL_EVENT, window_ns, gap_ns);
        }
        g_assert_cmpint(wasted_ns, <=, AIO_POLL_CREDIT_START * MAX_NS +
                        hits * MAX_NS + slept_ns / AIO_POLL_SLEEP_SHARE);
    }
    g_rand_free(rnd);
}

static int64_t gap_random(unsigned i, GRand *rnd)
{
    return g_rand_int_range(rnd, 0, 4 * MAX_NS);
}

/* Always within max_ns, always later than the window. */
static int64_t gap_just_late(unsigned i, GRand *rnd)
{
    return MAX_NS + 1 - (i % 2);
}

static int64_t gap_alternating(unsigned i, GRand *rnd)
{
    return i % 2 ? MAX_NS / 2 : 3 * MAX_NS;
}

static int64_t gap_idle(unsigned i, GRand *rnd)
{
    return i % 1000 ? 1000 * MAX_NS : 1;
}

static void test_waste(void)
{
    check_waste(gap_random);
    check_waste(gap_just_late);
    check_waste(gap_alternating);
    check_waste(gap_idle);
}

/* A steady stream within max_ns is caught nearly always. */
static void test_steady(void)
{
    unsigned hits = 0;
    AioPollState s;

    aio_poll_state_init(&s, MAX_NS);
    for (unsigned i = 0; i < 1000; i++) {
        int64_t window_ns = aio_poll_window_ns(&s);

        if (20000 <= window_ns) {
            hits++;
            aio_poll_account(&s, AIO_POLL_HIT, 20000, 20000);
        } else {
            aio_poll_account(&s, AIO_POLL_EVENT, window_ns, 20000);
        }
    }
    g_assert_cmpuint(hits, >=, 995);
}

/* ---- the loop -------------------------------------------------------- */

/*
 * With a virtual clock a polling phase is a single pass, so the order of
 * calls is exact.  Waits are measured in real time even then; max_ns is a
 * second, and a wait for an event that is already there ends well within.
 */
typedef struct Source {
    EventNotifier e;
    AioHandler *h;
    bool poll_hit, end_hit;
    void (*in_poll)(struct Source *s);
} Source;

static Clock *vclock;
static AioContext *ctx;
static GString *ran;

#define assert_log(s) do {                      \
        g_assert_cmpstr(ran->str, ==, s);       \
        g_string_truncate(ran, 0);              \
    } while (0)

static void source_readable(void *opaque)
{
    Source *s = opaque;

    g_string_append_c(ran, 'r');
    event_notifier_test_and_clear(&s->e);
}

static bool source_poll(void *opaque)
{
    Source *s = opaque;

    g_string_append_c(ran, 'p');
    if (s->in_poll) {
        s->in_poll(s);
    }
    return s->poll_hit;
}

static void source_begin(void *opaque)
{
    g_string_append_c(ran, '<');
}

static bool source_end(void *opaque)
{
    Source *s = opaque;

    g_string_append_c(ran, '>');
    return s->end_hit;
}

static const AioHandlerOps source_ops = {
    .readable = source_readable,
    .poll = source_poll,
    .poll_begin = source_begin,
    .poll_end = source_end,
};

static void source_init(Source *s)
{
    *s = (Source) { 0 };
    event_notifier_init(&s->e, false, NULL);
    s->h = aio_handler_new(ctx, s->e.fd, AIO_READ, &source_ops, s, NULL);
    g_assert_nonnull(s->h);
}

static void source_cleanup(Source *s)
{
    aio_handler_delete(s->h);
    event_notifier_cleanup(&s->e);
}

/* The first wait does not poll; its event is reason to start. */
static void warm_up(Source *s)
{
    event_notifier_set(&s->e);
    g_assert_true(aio_poll(ctx, true));
    assert_log("r");
}

static void test_loop_hit(void)
{
    Source s;

    source_init(&s);
    warm_up(&s);
    s.poll_hit = true;
    g_assert_true(aio_poll(ctx, true));
    assert_log("<p>");
    /* A look is no wait. */
    g_assert_false(aio_poll(ctx, false));
    assert_log("");
    source_cleanup(&s);
}

static void test_loop_end_hit(void)
{
    Source s;

    source_init(&s);
    warm_up(&s);
    s.end_hit = true;
    g_assert_true(aio_poll(ctx, true));
    assert_log("<p>");
    source_cleanup(&s);
}

static void test_loop_miss(void)
{
    Source s;

    source_init(&s);
    warm_up(&s);
    event_notifier_set(&s.e);
    g_assert_true(aio_poll(ctx, true));
    assert_log("<p>r");
    source_cleanup(&s);
}

static void test_loop_nothing_to_wait_for(void)
{
    AioTimer t;
    Source s;

    source_init(&s);
    warm_up(&s);
    aio_notify(ctx);
    g_assert_false(aio_poll(ctx, true));
    assert_log("");
    aio_timer_init(&t, ctx, source_begin, NULL);
    aio_timer_mod_ns(&t, 0);
    g_assert_true(aio_poll(ctx, true));
    assert_log("<");
    source_cleanup(&s);
}

static void schedule_from_poll(Source *s)
{
    s->in_poll = NULL;
    aio_bh_schedule_oneshot(ctx, source_begin, NULL);
}

/* What a poll callback schedules runs in this iteration: no sleep. */
static void test_loop_schedule(void)
{
    Source s;

    source_init(&s);
    warm_up(&s);
    s.in_poll = schedule_from_poll;
    g_assert_true(aio_poll(ctx, true));
    assert_log("<p><");
    source_cleanup(&s);
}

static void delete_from_poll(Source *s)
{
    aio_handler_delete(s->h);
    s->h = NULL;
    aio_notify(ctx);
}

static void test_loop_delete(void)
{
    Source s;

    source_init(&s);
    warm_up(&s);
    s.in_poll = delete_from_poll;
    g_assert_false(aio_poll(ctx, true));
    assert_log("<p");
    source_cleanup(&s);
}

static Source added;

static void add_from_poll(Source *s)
{
    s->in_poll = NULL;
    source_init(&added);
}

/* A new handler joins the next phase, not the end of this one. */
static void test_loop_add(void)
{
    Source s;

    source_init(&s);
    warm_up(&s);
    s.in_poll = add_from_poll;
    s.poll_hit = true;
    g_assert_true(aio_poll(ctx, true));
    assert_log("<p>");
    g_assert_true(aio_poll(ctx, true));
    assert_log("<<pp>>");
    source_cleanup(&added);
    source_cleanup(&s);
}

/* The real clock: polling ends at the deadline, and the timer runs. */
static void test_loop_deadline(void)
{
    AioContext *saved = ctx;
    unsigned polls = 0;
    AioTimer t;
    Source s;

    ctx = aio_context_new("real", clock_monotonic(), NULL);
    aio_context_set_poll_max_ns(ctx, NS_PER_SEC);
    source_init(&s);
    warm_up(&s);
    aio_timer_init(&t, ctx, source_begin, NULL);
    aio_timer_mod_ns(&t, aio_now_ns(ctx) + 2 * NS_PER_MS);
    while (aio_timer_armed(&t)) {
        aio_poll(ctx, true);
        polls++;
    }
    g_assert_cmpuint(polls, ==, 1);
    source_cleanup(&s);
    aio_context_free(ctx);
    ctx = saved;
}

static gpointer want_the_cpu(gpointer until)
{
    while (!g_atomic_int_get((gint *)until)) {
    }
    return NULL;
}

static void poll_until_switched(Source *s)
{
    struct rusage before, now;

    getrusage(RUSAGE_THREAD, &before);
    do {
        getrusage(RUSAGE_THREAD, &now);
    } while (now.ru_nivcsw == before.ru_nivcsw);
    s->in_poll = NULL;
}

/* Both threads on the CPU that the caller is on. */
static GThread *begin_competitor(cpu_set_t *saved, gint *until)
{
    cpu_set_t one;

    CPU_ZERO(&one);
    CPU_SET(sched_getcpu(), &one);
    sched_getaffinity(0, sizeof(*saved), saved);
    sched_setaffinity(0, sizeof(one), &one);
    return g_thread_new("competitor", want_the_cpu, until);
}

/* Somebody else wants the CPU: the next wait is a sleep, although we hit. */
static void test_loop_preempted(void)
{
    AioContext *saved_ctx = ctx;
    GThread *competitor;
    cpu_set_t saved;
    gint until = 0;
    Source s;

    ctx = aio_context_new("real", clock_monotonic(), NULL);
    aio_context_set_poll_max_ns(ctx, NS_PER_SEC);
    source_init(&s);
    warm_up(&s);
    competitor = begin_competitor(&saved, &until);
    s.in_poll = poll_until_switched;
    s.poll_hit = true;
    g_assert_true(aio_poll(ctx, true));
    assert_log("<p>");
    event_notifier_set(&s.e);
    g_assert_true(aio_poll(ctx, true));
    assert_log("r");
    g_atomic_int_set(&until, 1);
    g_thread_join(competitor);
    sched_setaffinity(0, sizeof(saved), &saved);
    source_cleanup(&s);
    aio_context_free(ctx);
    ctx = saved_ctx;
}

static const struct {
    const char *path;
    void (*fn)(void);
} loop_tests[] = {
    { "/aio-poll/loop/hit", test_loop_hit },
    { "/aio-poll/loop/end-hit", test_loop_end_hit },
    { "/aio-poll/loop/miss", test_loop_miss },
    { "/aio-poll/loop/nothing-to-wait-for", test_loop_nothing_to_wait_for },
    { "/aio-poll/loop/schedule", test_loop_schedule },
    { "/aio-poll/loop/delete", test_loop_delete },
    { "/aio-poll/loop/add", test_loop_add },
    { "/aio-poll/loop/deadline", test_loop_deadline },
    { "/aio-poll/loop/preempted", test_loop_preempted },
};

static void run_loop_case(const void *opaque)
{
    void (*const *fn)(void) = opaque;

    vclock = clock_virtual_new(0);
    ctx = aio_context_new("test", vclock, NULL);
    aio_context_set_poll_max_ns(ctx, NS_PER_SEC);
    ran = g_string_new(NULL);
    (*fn)();
    aio_context_free(ctx);
    clock_free(vclock);
    g_string_free(ran, TRUE);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/aio-poll/off", test_off);
    g_test_add_func("/aio-poll/grow", test_grow);
    g_test_add_func("/aio-poll/small-max", test_small_max);
    g_test_add_func("/aio-poll/shrink", test_shrink);
    g_test_add_func("/aio-poll/timer-neutral", test_timer_neutral);
    g_test_add_func("/aio-poll/credit", test_credit);
    g_test_add_func("/aio-poll/waste", test_waste);
    g_test_add_func("/aio-poll/steady", test_steady);
    g_test_add_func("/aio-poll/preempted", test_preempted);
    g_test_add_func("/aio-poll/preempted-forgotten",
                    test_preempted_forgotten);
    g_test_add_func("/aio-poll/preempted-always", test_preempted_always);
    for (size_t i = 0; i < G_N_ELEMENTS(loop_tests); i++) {
        g_test_add_data_func(loop_tests[i].path, &loop_tests[i].fn,
                             run_loop_case);
    }
    return g_test_run();
}
