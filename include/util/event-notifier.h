/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * EventNotifier: an eventfd that one side sets and another waits for.
 */
#ifndef UTIL_EVENT_NOTIFIER_H
#define UTIL_EVENT_NOTIFIER_H

#include <glib.h>
#include <stdbool.h>

typedef struct EventNotifier {
    int fd;                 /* -1: none */
} EventNotifier;

/*
 * event_notifier_init: create the eventfd (non-blocking, close-on-exec).
 * @signalled: start set
 *
 * Returns false with @errp set if the kernel has none to give.
 */
bool event_notifier_init(EventNotifier *e, bool signalled, GError **errp);

/* event_notifier_init_fd: take over an existing descriptor, or -1. */
void event_notifier_init_fd(EventNotifier *e, int fd);

/* event_notifier_cleanup: close it; it is then "none". */
void event_notifier_cleanup(EventNotifier *e);

/*
 * event_notifier_set: wake the other side.  Any thread.
 *
 * Returns false if the write failed: the descriptor is not an eventfd, or
 * its counter is full, in which case the other side is awake anyway.  A
 * notifier that is "none" swallows the event and returns true.
 */
bool event_notifier_set(EventNotifier *e);

/* event_notifier_test_and_clear: true if it was set.  Any thread. */
bool event_notifier_test_and_clear(EventNotifier *e);

#endif /* UTIL_EVENT_NOTIFIER_H */
