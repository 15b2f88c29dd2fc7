/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Clocks: the monotonic one never goes back, a virtual one only moves when
 * told to.
 */
#include <glib.h>
#include <time.h>

#include "util/clock.h"

static int64_t kernel_now_ns(void)
{
    struct timespec ts;

    clock_gettime(CLOCK_MONOTONIC, &ts);
    return ts.tv_sec * NS_PER_SEC + ts.tv_nsec;
}

static void test_monotonic(void)
{
    Clock *clock = clock_monotonic();
    int64_t before = kernel_now_ns();
    int64_t now = clock_now_ns(clock);

    g_assert_false(clock_is_virtual(clock));
    g_assert_true(clock == clock_monotonic());
    g_assert_cmpint(before, <=, now);
    g_assert_cmpint(now, <=, kernel_now_ns());
}

static void test_virtual(void)
{
    Clock *a = clock_virtual_new(100);
    Clock *b = clock_virtual_new(-5);

    g_assert_true(clock_is_virtual(a));
    g_assert_cmpint(clock_now_ns(a), ==, 100);
    clock_virtual_advance(a, 0);
    g_assert_cmpint(clock_now_ns(a), ==, 100);
    clock_virtual_advance(a, 3 * NS_PER_SEC + 7);
    g_assert_cmpint(clock_now_ns(a), ==, 3000000107);
    g_assert_cmpint(clock_now_ns(b), ==, -5);
    clock_virtual_advance(b, 2 * NS_PER_MS + 3 * NS_PER_US);
    g_assert_cmpint(clock_now_ns(b), ==, 2002995);
    clock_free(a);
    clock_free(b);
    clock_free(NULL);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/clock/monotonic", test_monotonic);
    g_test_add_func("/clock/virtual", test_virtual);
    return g_test_run();
}
