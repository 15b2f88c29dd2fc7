/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * AioContext: the order of an iteration, bottom halves, timers, ownership,
 * and what an iteration costs in system calls.  Descriptor handlers have a
 * test of their own (test-aio-handler.c), as have several threads
 * (test-aio-stress.c).
 *
 * Callbacks append a letter to a log, so that a test states the order.
 */
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <stddef.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "util/aio.h"
#include "util/event-notifier.h"

static Clock *vclock;
static AioContext *ctx;
static GString *ran;            /* the log */

static void setup(void)
{
    vclock = clock_virtual_new(1000);
    ctx = aio_context_new("test", vclock, NULL);
    ran = g_string_new(NULL);
}

static void teardown(void)
{
    aio_context_free(ctx);
    clock_free(vclock);
    g_string_free(ran, TRUE);
}

#define assert_log(s) do {                      \
        g_assert_cmpstr(ran->str, ==, s);       \
        g_string_truncate(ran, 0);              \
    } while (0)

static void log_letter(void *opaque)
{
    g_string_append(ran, opaque);
}

static AioBH *new_bh(const char *letter)
{
    return aio_bh_new(ctx, log_letter, (void *)letter);
}

/* ---- bottom halves --------------------------------------------------- */

static void test_bh_once(void)
{
    AioBH *bh = new_bh("a");

    g_assert_false(aio_poll(ctx, false));
    aio_bh_schedule(bh);
    aio_bh_schedule(bh);
    assert_log("");
    g_assert_true(aio_poll(ctx, false));
    assert_log("a");
    g_assert_false(aio_poll(ctx, false));
    aio_bh_schedule(bh);
    g_assert_true(aio_poll(ctx, true));
    assert_log("a");
    aio_bh_delete(bh);
    aio_bh_delete(NULL);
}

static void test_bh_order(void)
{
    AioBH *a = new_bh("a"), *b = new_bh("b"), *c = new_bh("c");

    aio_context_bind(ctx);
    aio_bh_schedule(b);
    aio_bh_schedule(a);
    aio_bh_schedule_oneshot(ctx, log_letter, (void *)"o");
    aio_bh_schedule(c);
    aio_bh_schedule(b);
    g_assert_true(aio_poll(ctx, true));
    assert_log("baoc");
    aio_bh_delete(a);
    aio_bh_delete(b);
    aio_bh_delete(c);
}

static void schedule_c(void *opaque)
{
    log_letter((void *)"h");
    aio_bh_schedule(opaque);
}

/* Behind handlers, timers and what they schedule, one iteration later. */
static void test_bh_behind(void)
{
    AioBH *a = new_bh("a"), *b = new_bh("b"), *c = new_bh("c");
    AioTimer t;

    aio_context_bind(ctx);
    aio_timer_init(&t, ctx, schedule_c, c);
    aio_timer_mod_ns(&t, 0);
    aio_bh_schedule_behind(a);
    aio_bh_schedule_behind(b);
    aio_bh_schedule(a);                 /* is scheduled already */
    g_assert_true(aio_poll(ctx, true));
    assert_log("hcab");
    aio_bh_schedule_behind(a);
    aio_bh_schedule_behind(b);
    aio_bh_cancel(a);
    aio_bh_delete(b);
    g_assert_false(aio_poll(ctx, false));
    assert_log("");
    aio_bh_delete(a);
    aio_bh_delete(c);
}

/* A callback has its next turn in the next iteration, behind the others. */
static void again_behind(void *opaque)
{
    AioBH **self = opaque;

    log_letter((void *)"a");
    aio_bh_schedule_behind(*self);
}

static void test_bh_behind_again(void)
{
    AioBH *a, *b = new_bh("b");
    AioTimer t;

    a = aio_bh_new(ctx, again_behind, &a);
    aio_context_bind(ctx);
    aio_timer_init(&t, ctx, again_behind, &a);
    aio_timer_mod_ns(&t, 0);
    g_assert_true(aio_poll(ctx, true));
    assert_log("a");
    aio_bh_schedule(b);
    g_assert_true(aio_poll(ctx, true));
    assert_log("ba");
    aio_bh_delete(a);
    aio_bh_delete(b);
}

/* Without an owner the other list is used; the promise is the same. */
static void test_bh_order_unbound(void)
{
    AioBH *a = new_bh("a"), *b = new_bh("b"), *c = new_bh("c");

    aio_bh_schedule(b);
    aio_bh_schedule(a);
    aio_bh_schedule(c);
    aio_bh_schedule(b);
    aio_bh_cancel(a);
    aio_bh_delete(c);
    g_assert_true(aio_poll(ctx, true));
    assert_log("b");
    aio_bh_delete(a);
    aio_bh_delete(b);
}

static void test_bh_cancel(void)
{
    AioBH *a = new_bh("a"), *b = new_bh("b");

    aio_context_bind(ctx);
    aio_bh_cancel(a);
    aio_bh_schedule(a);
    aio_bh_cancel(a);
    aio_bh_cancel(a);
    g_assert_false(aio_poll(ctx, false));
    aio_bh_schedule(a);
    aio_bh_schedule(b);
    aio_bh_cancel(a);
    aio_bh_schedule(a);
    g_assert_true(aio_poll(ctx, false));
    assert_log("ab");
    aio_bh_delete(a);
    aio_bh_delete(b);
}

static void test_bh_delete_scheduled(void)
{
    AioBH *a = new_bh("a"), *b = new_bh("b");

    aio_context_bind(ctx);
    aio_bh_schedule(a);
    aio_bh_schedule(b);
    aio_bh_delete(a);
    g_assert_true(aio_poll(ctx, false));
    assert_log("b");
    aio_bh_delete(b);
    g_assert_false(aio_poll(ctx, false));
}

typedef struct Victim {
    AioBH *self, *other;
    void (*act)(AioBH *bh);
} Victim;

static void act_on_both(void *opaque)
{
    Victim *v = opaque;

    g_string_append_c(ran, 'v');
    v->act(v->other);
    v->act(v->self);
}

static void run_victim(void (*act)(AioBH *bh))
{
    AioBH *first = new_bh("f"), *last = new_bh("l");
    Victim v = { .act = act };

    aio_context_bind(ctx);
    v.self = aio_bh_new(ctx, act_on_both, &v);
    v.other = new_bh("o");
    aio_bh_schedule(first);
    aio_bh_schedule(v.self);
    aio_bh_schedule(v.other);
    aio_bh_schedule(last);
    g_assert_true(aio_poll(ctx, false));
    assert_log("fvl");
    g_assert_false(aio_poll(ctx, false));
    aio_bh_delete(first);
    aio_bh_delete(last);
    if (act != aio_bh_delete) {
        aio_bh_delete(v.self);
        aio_bh_delete(v.other);
    }
}

static void test_bh_delete_in_callback(void)
{
    run_victim(aio_bh_delete);
}

static void test_bh_cancel_in_callback(void)
{
    run_victim(aio_bh_cancel);
}

typedef struct Again {
    AioBH *bh;
    unsigned left;
} Again;

static void run_again(void *opaque)
{
    Again *again = opaque;

    g_string_append_c(ran, 'r');
    if (again->left) {
        again->left--;
        aio_bh_schedule(again->bh);
    }
}

/* Rescheduled bottom halves leave room for descriptors and timers. */
static void event_seen(void *opaque)
{
    g_string_append_c(ran, 'h');
    event_notifier_test_and_clear(opaque);
}

static const AioHandlerOps event_ops = { .readable = event_seen };

static void test_bh_fairness(void)
{
    EventNotifier e;
    AioHandler *h;
    AioTimer t;
    Again again = { .left = 3 };

    event_notifier_init(&e, true, NULL);
    h = aio_handler_new(ctx, e.fd, AIO_READ, &event_ops, &e, NULL);
    aio_timer_init(&t, ctx, log_letter, (void *)"t");
    aio_timer_mod_ns(&t, 1000);
    again.bh = aio_bh_new(ctx, run_again, &again);
    aio_bh_schedule(again.bh);
    g_assert_true(aio_poll(ctx, true));
    assert_log("htr");
    event_notifier_set(&e);
    aio_timer_mod_ns(&t, 1000);
    g_assert_true(aio_poll(ctx, true));
    assert_log("htr");
    g_assert_true(aio_poll(ctx, true));
    assert_log("r");
    g_assert_true(aio_poll(ctx, true));
    assert_log("r");
    g_assert_false(aio_poll(ctx, false));
    aio_bh_delete(again.bh);
    aio_handler_delete(h);
    event_notifier_cleanup(&e);
}

static void schedule_next(void *opaque)
{
    g_string_append_c(ran, '1');
    aio_bh_schedule_oneshot(ctx, log_letter, (void *)"2");
}

static void test_bh_oneshot(void)
{
    aio_bh_schedule_oneshot(ctx, schedule_next, NULL);
    g_assert_true(aio_poll(ctx, true));
    assert_log("1");
    g_assert_true(aio_poll(ctx, true));
    assert_log("2");
    g_assert_false(aio_poll(ctx, false));
}

static void test_free_runs_oneshots(void)
{
    AioContext *other = aio_context_new("other", vclock, NULL);

    aio_bh_delete(aio_bh_new(other, log_letter, (void *)"x"));
    aio_context_bind(other);
    aio_bh_schedule_oneshot(other, log_letter, (void *)"a");
    aio_context_unbind(other);
    aio_bh_schedule_oneshot(other, log_letter, (void *)"b");
    aio_context_free(other);
    g_assert_cmpuint(ran->len, ==, 2);
    g_assert_nonnull(strchr(ran->str, 'a'));
    g_assert_nonnull(strchr(ran->str, 'b'));
}

/* ---- timers ---------------------------------------------------------- */

static void test_timer_order(void)
{
    static const struct {
        const char *letter;
        int64_t deadline_ns;
    } cases[] = {
        { "c", 1030 }, { "a", 1010 }, { "d", 1040 }, { "e", 1040 },
        { "b", 1020 }, { "x", 1050 },
    };
    AioTimer t[G_N_ELEMENTS(cases)];

    g_assert_cmpint(aio_next_deadline_ns(ctx), ==, INT64_MAX);
    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        aio_timer_init(&t[i], ctx, log_letter, (void *)cases[i].letter);
        g_assert_false(aio_timer_armed(&t[i]));
        aio_timer_mod_ns(&t[i], cases[i].deadline_ns);
        g_assert_true(aio_timer_armed(&t[i]));
    }
    g_assert_cmpint(aio_next_deadline_ns(ctx), ==, 1010);
    clock_virtual_advance(vclock, 9);
    g_assert_false(aio_poll(ctx, false));
    clock_virtual_advance(vclock, 1);
    g_assert_true(aio_poll(ctx, true));
    assert_log("a");
    g_assert_false(aio_timer_armed(&t[1]));
    clock_virtual_advance(vclock, 30);
    g_assert_true(aio_poll(ctx, true));
    assert_log("bcde");
    g_assert_cmpint(aio_next_deadline_ns(ctx), ==, 1050);
    aio_timer_del(&t[5]);
    aio_timer_del(&t[5]);
    clock_virtual_advance(vclock, 1000);
    g_assert_false(aio_poll(ctx, false));
}

static void test_timer_rearm(void)
{
    AioTimer a, b;

    aio_timer_init(&a, ctx, log_letter, (void *)"a");
    aio_timer_init(&b, ctx, log_letter, (void *)"b");
    aio_timer_mod_ns(&a, 1010);
    aio_timer_mod_ns(&b, 1020);
    aio_timer_mod_ns(&a, 1030);         /* later */
    g_assert_cmpint(aio_next_deadline_ns(ctx), ==, 1020);
    clock_virtual_advance(vclock, 25);
    aio_poll(ctx, false);
    assert_log("b");
    aio_timer_mod_ns(&a, 1005);         /* earlier: past */
    g_assert_true(aio_poll(ctx, true));
    assert_log("a");
    aio_timer_mod_ns(&a, INT64_MIN);
    g_assert_true(aio_poll(ctx, true));
    assert_log("a");
    aio_timer_mod_ns(&a, INT64_MAX);    /* never */
    g_assert_false(aio_poll(ctx, false));
    aio_timer_del(&a);
}

typedef struct TimerTest {
    AioTimer first, second, third;
} TimerTest;

static void del_others(void *opaque)
{
    TimerTest *t = opaque;

    g_string_append_c(ran, 'd');
    aio_timer_del(&t->second);
    aio_timer_mod_ns(&t->third, 0);     /* due already: next iteration */
    aio_timer_mod_ns(&t->first, 0);
}

static void test_timer_change_in_callback(void)
{
    TimerTest t;

    aio_timer_init(&t.first, ctx, del_others, &t);
    aio_timer_init(&t.second, ctx, log_letter, (void *)"2");
    aio_timer_init(&t.third, ctx, log_letter, (void *)"3");
    aio_timer_mod_ns(&t.first, 1);
    aio_timer_mod_ns(&t.second, 2);
    aio_timer_mod_ns(&t.third, 3);
    g_assert_true(aio_poll(ctx, true));
    assert_log("d");
    g_assert_false(aio_timer_armed(&t.second));
    g_assert_true(aio_timer_armed(&t.third));
    g_assert_true(aio_poll(ctx, true));
    assert_log("3d");
    aio_timer_del(&t.first);
    aio_timer_del(&t.third);
}

static void free_self(void *opaque)
{
    g_string_append_c(ran, 'f');
    g_free(opaque);
}

static void test_timer_free_in_callback(void)
{
    AioTimer *t = g_new(AioTimer, 1);

    aio_timer_init(t, ctx, free_self, t);
    aio_timer_mod_ns(t, 1000);
    g_assert_true(aio_poll(ctx, true));
    assert_log("f");
}

typedef struct LateTimer {
    AioTimer timer;
    int64_t late_ns;
} LateTimer;

static void note_late(void *opaque)
{
    LateTimer *t = opaque;

    t->late_ns = aio_timer_late_ns(&t->timer);
}

/* Both of one round are measured from the reading that found them due. */
static void test_timer_late(void)
{
    LateTimer a, b;

    aio_timer_init(&a.timer, ctx, note_late, &a);
    aio_timer_init(&b.timer, ctx, note_late, &b);
    aio_timer_mod_ns(&a.timer, 1010);
    aio_timer_mod_ns(&b.timer, 1040);
    clock_virtual_advance(vclock, 40);
    g_assert_true(aio_poll(ctx, false));
    g_assert_cmpint(a.late_ns, ==, 30);
    g_assert_cmpint(b.late_ns, ==, 0);
}

/* A handler arms a past deadline: timers have not run yet. */
static void arm_now(void *opaque)
{
    g_string_append_c(ran, 'h');
    aio_timer_mod_ns(opaque, 0);
}

static void test_timer_same_iteration(void)
{
    static const AioHandlerOps ops = { .readable = arm_now };
    EventNotifier e;
    AioHandler *h;
    AioTimer t;

    event_notifier_init(&e, true, NULL);
    aio_timer_init(&t, ctx, log_letter, (void *)"t");
    h = aio_handler_new(ctx, e.fd, AIO_READ | AIO_EDGE, &ops, &t, NULL);
    g_assert_true(aio_poll(ctx, true));
    assert_log("ht");
    aio_handler_delete(h);
    event_notifier_cleanup(&e);
}

/* The real clock: one wait, and never early. */
static void test_timer_real(void)
{
    AioContext *real = aio_context_new("real", clock_monotonic(), NULL);
    GString *saved = ran;
    AioTimer t;
    int64_t deadline_ns;

    ran = g_string_new(NULL);
    aio_timer_init(&t, real, log_letter, (void *)"t");
    for (int64_t ns = 1; ns <= 10 * NS_PER_MS; ns *= 10) {
        deadline_ns = aio_now_ns(real) + ns;
        aio_timer_mod_ns(&t, deadline_ns);
        g_assert_true(aio_poll(real, true));
        g_assert_cmpint(aio_now_ns(real), >=, deadline_ns);
        assert_log("t");
    }
    aio_context_free(real);
    g_string_free(ran, TRUE);
    ran = saved;
}

/*
 * What the kernel is armed for may be a deadline that was taken back: it ends
 * one sleep, and the later deadline is neither missed nor early.
 */
static void test_timer_taken_back(void)
{
    static const AioHandlerOps ops = { .readable = log_letter };
    AioContext *real = aio_context_new("real", clock_monotonic(), NULL);
    unsigned sleeps = 0;
    int64_t deadline_ns;
    EventNotifier e;
    AioHandler *h;
    AioTimer t;

    event_notifier_init(&e, true, NULL);
    h = aio_handler_new(real, e.fd, AIO_READ | AIO_EDGE, &ops, (void *)"h",
                        NULL);
    aio_timer_init(&t, real, log_letter, (void *)"t");
    aio_timer_mod_ns(&t, aio_now_ns(real) + NS_PER_MS);
    g_assert_true(aio_poll(real, true));
    assert_log("h");
    aio_timer_del(&t);
    deadline_ns = aio_now_ns(real) + 3 * NS_PER_MS;
    aio_timer_mod_ns(&t, deadline_ns);
    while (!aio_poll(real, true)) {
        sleeps++;
    }
    g_assert_cmpint(aio_now_ns(real), >=, deadline_ns);
    g_assert_cmpuint(sleeps, <=, 1);
    assert_log("t");
    aio_handler_delete(h);
    event_notifier_cleanup(&e);
    aio_context_free(real);
}

/* ---- system calls ---------------------------------------------------- */

/* From now on @nr answers @hit and all other system calls @miss. */
static void filter_syscall(int nr, uint32_t hit, uint32_t miss)
{
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, nr, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, hit),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, __NR_exit_group, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
        BPF_STMT(BPF_RET | BPF_K, miss),
    };
    struct sock_fprog prog = { G_N_ELEMENTS(code), code };

    g_assert_cmpint(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), ==, 0);
    g_assert_cmpint(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &prog), ==, 0);
}

static void count(void *opaque)
{
    (*(unsigned *)opaque)++;
}

static void count_again(void *opaque)
{
    Again *again = opaque;

    again->left++;
    aio_bh_schedule(again->bh);
}

/* Anything but epoll_wait() would be fatal here. */
static void one_syscall_an_iteration(void)
{
    Again again = { .left = 0 };
    unsigned other = 0, timer = 0;
    AioBH *bh = aio_bh_new(ctx, count, &other);
    AioTimer t;

    aio_timer_init(&t, ctx, count, &timer);
    again.bh = aio_bh_new(ctx, count_again, &again);
    aio_context_bind(ctx);
    aio_bh_schedule(again.bh);
    filter_syscall(__NR_epoll_wait, SECCOMP_RET_ALLOW,
                   SECCOMP_RET_KILL_PROCESS);
    for (unsigned i = 0; i < 100; i++) {
        aio_bh_schedule(bh);
        aio_timer_mod_ns(&t, 0);
        aio_notify(ctx);        /* nobody sleeps: no write */
        aio_poll(ctx, true);
    }
    /* Not exit(): a sanitizer has more to say there. */
    syscall(__NR_exit_group,
            again.left == 100 && other == 100 && timer == 100 ? 0 : 1);
}

/* The thread sanitizer's run-time makes system calls of its own. */
static bool runtime_is_silent(void)
{
#if defined(__SANITIZE_THREAD__)
    return false;
#elif defined(__has_feature)
    return !__has_feature(thread_sanitizer);
#else
    return true;
#endif
}

static void test_syscalls(void)
{
    if (!runtime_is_silent()) {
        g_test_skip("the thread sanitizer makes system calls of its own");
        return;
    }
    if (g_test_subprocess()) {
        one_syscall_an_iteration();
    }
    g_test_trap_subprocess(NULL, 0, 0);
    g_test_trap_assert_passed();
}

/* ---- ownership and notification -------------------------------------- */

static void *owner_seen_elsewhere(void *opaque)
{
    return GINT_TO_POINTER(aio_context_in_owner(opaque) ? 1 : 2);
}

static int owner_from_thread(void)
{
    pthread_t thread;
    void *ret;

    g_assert_cmpint(pthread_create(&thread, NULL, owner_seen_elsewhere, ctx),
                    ==, 0);
    pthread_join(thread, &ret);
    return GPOINTER_TO_INT(ret);
}

static void test_owner(void)
{
    g_assert_true(aio_context_in_owner(ctx));
    g_assert_cmpint(owner_from_thread(), ==, 1);
    aio_context_bind(ctx);
    aio_context_bind(ctx);
    g_assert_cmpint(prctl(PR_GET_TIMERSLACK), ==, 1);
    g_assert_true(aio_context_in_owner(ctx));
    g_assert_cmpint(owner_from_thread(), ==, 2);
    aio_context_unbind(ctx);
    g_assert_cmpint(owner_from_thread(), ==, 1);
    aio_poll(ctx, false);
    g_assert_cmpint(owner_from_thread(), ==, 2);
}

static void test_names(void)
{
    g_assert_cmpstr(aio_context_name(ctx), ==, "test");
    g_assert_true(aio_context_clock(ctx) == vclock);
    g_assert_cmpint(aio_now_ns(ctx), ==, 1000);
}

/* A notification that comes before the wait is not lost. */
static void test_notify_before_wait(void)
{
    aio_notify(ctx);
    aio_notify(ctx);
    g_assert_false(aio_poll(ctx, true));
    aio_context_bind(ctx);
    aio_notify(ctx);
    g_assert_false(aio_poll(ctx, true));
}

static void test_wait_oneshot_direct(void)
{
    aio_wait_bh_oneshot(ctx, log_letter, (void *)"u");
    assert_log("u");
    aio_context_bind(ctx);
    aio_wait_bh_oneshot(ctx, log_letter, (void *)"o");
    assert_log("o");
}

/* One descriptor after the other is refused. */
static void run_out_of_descriptors(void)
{
    static const char *const messages[] = {
        "cannot create an epoll instance: Too many open files",
        "cannot create an eventfd: Too many open files",
    };
    int first_free = dup(0);
    struct rlimit limit;

    g_assert_cmpint(getrlimit(RLIMIT_NOFILE, &limit), ==, 0);
    close(first_free);
    for (unsigned i = 0; i < G_N_ELEMENTS(messages); i++) {
        g_autoptr(GError) err = NULL;

        limit.rlim_cur = first_free + i;
        g_assert_cmpint(setrlimit(RLIMIT_NOFILE, &limit), ==, 0);
        g_assert_null(aio_context_new("x", vclock, &err));
        g_assert_cmpstr(err->message, ==, messages[i]);
    }
}

static void test_no_descriptors(void)
{
    if (g_test_subprocess()) {
        run_out_of_descriptors();
        return;
    }
    g_test_trap_subprocess(NULL, 0, 0);
    g_test_trap_assert_passed();
}

static const struct {
    const char *path;
    void (*fn)(void);
} tests[] = {
    { "/aio/names", test_names },
    { "/aio/no-descriptors", test_no_descriptors },
    { "/aio/owner", test_owner },
    { "/aio/notify-before-wait", test_notify_before_wait },
    { "/aio/wait-oneshot-direct", test_wait_oneshot_direct },
    { "/aio/bh/once", test_bh_once },
    { "/aio/bh/order", test_bh_order },
    { "/aio/bh/order-unbound", test_bh_order_unbound },
    { "/aio/bh/behind", test_bh_behind },
    { "/aio/bh/behind-again", test_bh_behind_again },
    { "/aio/bh/cancel", test_bh_cancel },
    { "/aio/bh/delete-scheduled", test_bh_delete_scheduled },
    { "/aio/bh/delete-in-callback", test_bh_delete_in_callback },
    { "/aio/bh/cancel-in-callback", test_bh_cancel_in_callback },
    { "/aio/bh/fairness", test_bh_fairness },
    { "/aio/bh/oneshot", test_bh_oneshot },
    { "/aio/bh/free-runs-oneshots", test_free_runs_oneshots },
    { "/aio/timer/order", test_timer_order },
    { "/aio/timer/rearm", test_timer_rearm },
    { "/aio/timer/late", test_timer_late },
    { "/aio/timer/change-in-callback", test_timer_change_in_callback },
    { "/aio/timer/free-in-callback", test_timer_free_in_callback },
    { "/aio/timer/same-iteration", test_timer_same_iteration },
    { "/aio/timer/real", test_timer_real },
    { "/aio/timer/taken-back", test_timer_taken_back },
    { "/aio/syscalls", test_syscalls },
};

static void run_case(const void *opaque)
{
    void (*const *fn)(void) = opaque;

    setup();
    (*fn)();
    teardown();
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    for (size_t i = 0; i < G_N_ELEMENTS(tests); i++) {
        g_test_add_data_func(tests[i].path, &tests[i].fn, run_case);
    }
    return g_test_run();
}
