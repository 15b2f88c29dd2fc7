/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * --stats: what a running daemon does, live.
 */
#ifndef DAEMON_STATS_VIEW_H
#define DAEMON_STATS_VIEW_H

#include <glib.h>
#include <stdbool.h>
#include <stdint.h>

/*
 * stats_view_run: show the counters of the daemon whose monitor is at @path,
 * each @interval_ns, until 'q', a signal that ends programs, or the end of
 * the daemon.  On a terminal a screen that is drawn anew; else lines.
 *
 * After process_block_signals().  Returns false with @errp set, one line, if
 * there is no daemon (any more), or nobody who reads.
 */
bool stats_view_run(const char *path, int64_t interval_ns, GError **errp);

#endif /* DAEMON_STATS_VIEW_H */
