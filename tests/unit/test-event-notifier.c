/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * EventNotifier: set, test-and-clear, and what a peer's descriptor may do.
 */
#include <fcntl.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "util/event-notifier.h"

static void test_basic(void)
{
    EventNotifier e;

    g_assert_true(event_notifier_init(&e, false, NULL));
    g_assert_cmpint(fcntl(e.fd, F_GETFL) & O_NONBLOCK, !=, 0);
    g_assert_cmpint(fcntl(e.fd, F_GETFD) & FD_CLOEXEC, !=, 0);
    g_assert_false(event_notifier_test_and_clear(&e));
    g_assert_true(event_notifier_set(&e));
    g_assert_true(event_notifier_set(&e));
    g_assert_true(event_notifier_test_and_clear(&e));
    g_assert_false(event_notifier_test_and_clear(&e));
    event_notifier_cleanup(&e);
    g_assert_cmpint(e.fd, ==, -1);
    event_notifier_cleanup(&e);

    g_assert_true(event_notifier_init(&e, true, NULL));
    g_assert_true(event_notifier_test_and_clear(&e));
    g_assert_false(event_notifier_test_and_clear(&e));
    event_notifier_cleanup(&e);
}

static void test_none(void)
{
    EventNotifier e;

    event_notifier_init_fd(&e, -1);
    g_assert_true(event_notifier_set(&e));
    g_assert_false(event_notifier_test_and_clear(&e));
    event_notifier_cleanup(&e);
}

/* A blocking eventfd whose counter the peer has filled. */
static void test_full(void)
{
    EventNotifier e;
    uint64_t full = UINT64_MAX - 1;
    int fd = eventfd(0, EFD_CLOEXEC);

    g_assert_cmpint(write(fd, &full, sizeof(full)), ==, sizeof(full));
    event_notifier_init_fd(&e, fd);
    g_assert_cmpint(e.fd, ==, fd);
    g_assert_false(event_notifier_set(&e));
    g_assert_true(event_notifier_test_and_clear(&e));
    g_assert_false(event_notifier_test_and_clear(&e));
    g_assert_true(event_notifier_set(&e));
    event_notifier_cleanup(&e);
    g_assert_cmpint(fcntl(fd, F_GETFD), ==, -1);
}

static void test_not_an_eventfd(void)
{
    EventNotifier e;

    event_notifier_init_fd(&e, open("/dev/null", O_RDONLY | O_CLOEXEC));
    g_assert_false(event_notifier_set(&e));
    g_assert_false(event_notifier_test_and_clear(&e));
    event_notifier_cleanup(&e);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/event-notifier/basic", test_basic);
    g_test_add_func("/event-notifier/none", test_none);
    g_test_add_func("/event-notifier/full", test_full);
    g_test_add_func("/event-notifier/not-an-eventfd", test_not_an_eventfd);
    return g_test_run();
}
