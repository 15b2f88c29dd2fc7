/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * EventNotifier: a thin layer over eventfd(2).
 *
 * The counter is never looked at: set adds one, test-and-clear takes all.
 * Descriptors handed in by a peer are made non-blocking, because a peer that
 * fills the counter, or empties it behind our back, must not stop our thread.
 *
 * Limits: the peer shares the flag.  One that takes it back and fills the
 * counter stops our thread; peers are trusted that far (docs/options).
 */
#include "util/event-notifier.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "util/report.h"

bool event_notifier_init(EventNotifier *e, bool signalled, GError **errp)
{
    e->fd = eventfd(signalled, EFD_NONBLOCK | EFD_CLOEXEC);
    if (e->fd < 0) {
        vnet_set_error(errp, "cannot create an eventfd: %s",
                       g_strerror(errno));
        return false;
    }
    return true;
}

void event_notifier_init_fd(EventNotifier *e, int fd)
{
    int flags;

    e->fd = fd;
    if (fd < 0) {
        return;
    }
    flags = fcntl(fd, F_GETFL);
    if (flags >= 0 && !(flags & O_NONBLOCK)) {
        fcntl(fd, F_SETFL, flags | O_NONBLOCK);
    }
}

void event_notifier_cleanup(EventNotifier *e)
{
    if (e->fd >= 0) {
        close(e->fd);
    }
    e->fd = -1;
}

bool event_notifier_set(EventNotifier *e)
{
    static const uint64_t one = 1;
    ssize_t ret;

    if (e->fd < 0) {
        return true;
    }
    do {
        ret = write(e->fd, &one, sizeof(one));
    } while (ret < 0 && errno == EINTR);
    return ret == sizeof(one);
}

bool event_notifier_test_and_clear(EventNotifier *e)
{
    uint64_t value;
    ssize_t ret;

    if (e->fd < 0) {
        return false;
    }
    do {
        ret = read(e->fd, &value, sizeof(value));
    } while (ret < 0 && errno == EINTR);
    return ret == sizeof(value);
}
