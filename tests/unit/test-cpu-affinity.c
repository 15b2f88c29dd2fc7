/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * CPU affinity: the option's spellings, and a thread that is moved.
 */
#include <string.h>

#include "util/clock.h"
#include "util/cpu-affinity.h"
#include "util/iothread.h"

/* A CPU no machine of ours has. */
#define ABSENT  (CPU_SETSIZE - 1)

static bool take(const char *text, cpu_set_t *cpus, GError **errp)
{
    KeyVal *kv = keyval_parse("-object", text, NULL, NULL);
    bool good;

    g_assert_nonnull(kv);
    good = cpu_affinity_take(kv, "cpus", cpus, errp) &&
           keyval_check_empty(kv, errp);
    keyval_free(kv);
    return good;
}

static void assert_cpus(const char *text, uint64_t want)
{
    GError *err = NULL;
    cpu_set_t cpus;

    g_assert_true(take(text, &cpus, &err));
    g_assert_no_error(err);
    g_assert_cmpint(CPU_COUNT(&cpus), ==, __builtin_popcountll(want));
    for (unsigned i = 0; i < 64; i++) {
        g_assert_cmpint(!!CPU_ISSET(i, &cpus), ==, want >> i & 1);
    }
}

static void test_take(void)
{
    assert_cpus("", 0);
    assert_cpus("cpus=0", 1);
    assert_cpus("cpus=0-3", 0xf);
    assert_cpus("cpus=5-5", 0x20);
    assert_cpus("cpus=0-1,cpus=4,cpus=1-2", 0x17);
    assert_cpus("{\"cpus\": [\"0-1\", 4]}", 0x13);
    assert_cpus("{\"cpus\": 3}", 0x8);
}

static void test_take_errors(void)
{
    static const char *const bad[] = {
        "", "x", "-1", "1-", "3-2", "0,,1", "1024", "0-1024", "0x1", "1 ",
        "18446744073709551616", "0-18446744073709551617",
    };

    for (unsigned i = 0; i < G_N_ELEMENTS(bad); i++) {
        g_autofree char *text = g_strdup_printf("cpus=%s", bad[i]);
        GError *err = NULL;
        cpu_set_t cpus;

        g_assert_false(take(text, &cpus, &err));
        g_assert_nonnull(strstr(err->message, "parameter 'cpus' expects a "
                                "CPU number or FIRST-LAST, not '"));
        g_error_free(err);
    }
}

static void get_affinity(void *opaque)
{
    g_assert_cmpint(sched_getaffinity(0, sizeof(cpu_set_t), opaque), ==, 0);
}

/* The thread is moved to the last CPU that is there; the caller is not. */
static void test_apply(void)
{
    IOThread *iot = iothread_new("moved", clock_monotonic(), NULL);
    cpu_set_t mine, want, got;
    GError *err = NULL;
    int last = 0;

    get_affinity(&mine);
    for (int i = 0; i < CPU_SETSIZE; i++) {
        last = CPU_ISSET(i, &mine) ? i : last;
    }
    CPU_ZERO(&want);
    CPU_SET(last, &want);
    g_assert_true(iothread_start(iot, NULL));
    g_assert_true(cpu_affinity_apply(iothread_context(iot), "cpus", &want,
                                     &err));
    g_assert_no_error(err);
    aio_wait_bh_oneshot(iothread_context(iot), get_affinity, &got);
    g_assert_true(CPU_EQUAL(&got, &want));
    get_affinity(&got);
    g_assert_true(CPU_EQUAL(&got, &mine));

    /* an empty set changes nothing */
    CPU_ZERO(&got);
    g_assert_true(cpu_affinity_apply(iothread_context(iot), "cpus", &got,
                                     &err));
    aio_wait_bh_oneshot(iothread_context(iot), get_affinity, &got);
    g_assert_true(CPU_EQUAL(&got, &want));
    iothread_free(iot);
}

/* One that is not there is refused in company, too. */
static void test_apply_absent(void)
{
    IOThread *iot = iothread_new("moved", clock_monotonic(), NULL);
    g_autoptr(GError) err = NULL;
    cpu_set_t want;

    get_affinity(&want);
    CPU_SET(ABSENT, &want);
    g_assert_true(iothread_start(iot, NULL));
    g_assert_false(cpu_affinity_apply(iothread_context(iot), "cpus", &want,
                                      &err));
    g_assert_true(g_str_has_prefix(err->message, "parameter 'cpus' expects "
                                   "CPUs among "));
    g_assert_true(g_str_has_suffix(err->message, ", not '1023'"));
    iothread_free(iot);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/cpu-affinity/take", test_take);
    g_test_add_func("/cpu-affinity/take-errors", test_take_errors);
    g_test_add_func("/cpu-affinity/apply", test_apply);
    g_test_add_func("/cpu-affinity/apply-absent", test_apply_absent);
    return g_test_run();
}
