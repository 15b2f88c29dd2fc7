/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Messages: what a line looks like, and how a guest's are limited.
 */
#include <glib.h>

#include "util/clock.h"
#include "util/report.h"

static void say_everything(void)
{
    ReportLimit limit = { 0 };

    report_init("/usr/bin/qemu-net-daemon");
    g_assert_cmpstr(report_program(), ==, "qemu-net-daemon");
    report_error("no %s", "tap");
    report_warning("slow");
    report_info("ready");
    report_gerror(g_error_new(VNET_ERROR, 0, "from a GError"));
    report_guest(&limit, "bad\nname\x1b[1m");
}

static void test_lines(void)
{
    if (g_test_subprocess()) {
        say_everything();
        return;
    }
    g_test_trap_subprocess(NULL, 0, 0);
    g_test_trap_assert_passed();
    g_test_trap_assert_stderr("qemu-net-daemon: no tap\n"
                              "qemu-net-daemon: warning: slow\n"
                              "qemu-net-daemon: ready\n"
                              "qemu-net-daemon: from a GError\n"
                              "qemu-net-daemon: guest: bad name [1m\n");
}

static void test_gerror(void)
{
    g_autoptr(GError) err = NULL;

    vnet_set_error(&err, "%s: %d", "x", 3);
    g_assert_error(err, VNET_ERROR, 0);
    g_assert_cmpstr(err->message, ==, "x: 3");
}

static void test_limit(void)
{
    ReportLimit limit = { 0 };
    uint64_t suppressed = 99;
    int64_t start_ns = 5;

    for (unsigned i = 0; i < REPORT_LIMIT_BURST; i++) {
        g_assert_true(report_limit_pass(&limit, start_ns + i, &suppressed));
        g_assert_cmpuint(suppressed, ==, 0);
    }
    for (unsigned i = 0; i < 1000; i++) {
        g_assert_false(report_limit_pass(&limit, start_ns + i, &suppressed));
    }
    g_assert_false(report_limit_pass(&limit,
                                     start_ns + REPORT_LIMIT_WINDOW_NS - 1,
                                     &suppressed));
    g_assert_true(report_limit_pass(&limit, start_ns + REPORT_LIMIT_WINDOW_NS,
                                    &suppressed));
    g_assert_cmpuint(suppressed, ==, 1001);
    for (unsigned i = 1; i < REPORT_LIMIT_BURST; i++) {
        g_assert_true(report_limit_pass(&limit, start_ns +
                                        REPORT_LIMIT_WINDOW_NS, &suppressed));
        g_assert_cmpuint(suppressed, ==, 0);
    }
    g_assert_false(report_limit_pass(&limit, start_ns + REPORT_LIMIT_WINDOW_NS,
                                     &suppressed));
}

/* A flood through the real outlet: the burst and nothing else. */
static void flood(void)
{
    ReportLimit limit = { 0 };

    for (unsigned i = 0; i < 100000; i++) {
        report_guest(&limit, "x");
    }
}

static void test_flood(void)
{
    if (g_test_subprocess()) {
        report_init("p");
        flood();
        return;
    }
    g_test_trap_subprocess(NULL, 0, 0);
    g_test_trap_assert_passed();
    g_test_trap_assert_stderr("p: guest: x\np: guest: x\np: guest: x\n"
                              "p: guest: x\np: guest: x\n");
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/report/lines", test_lines);
    g_test_add_func("/report/gerror", test_gerror);
    g_test_add_func("/report/limit", test_limit);
    g_test_add_func("/report/flood", test_flood);
    return g_test_run();
}
