/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * --stats: from two readings of the counters to the text that shows what
 * happened in between.  Pure functions.
 */
#ifndef DAEMON_STATS_TABLE_H
#define DAEMON_STATS_TABLE_H

#include <glib.h>
#include <json-glib/json-glib.h>
#include <stdbool.h>
#include <stdint.h>

/* ---- readings ---------------------------------------------------------- */

/* What query-virtio-net-stats returned. */
typedef struct StatsSample StatsSample;

/*
 * stats_sample_new: returns NULL with @errp set if @value is something else.
 * Counters that are not there are 0; names are made printable ASCII.
 */
StatsSample *stats_sample_new(JsonNode *value, GError **errp);
void stats_sample_free(StatsSample *s);
G_DEFINE_AUTOPTR_CLEANUP_FUNC(StatsSample, stats_sample_free)

/* ---- histograms -------------------------------------------------------- */

/*
 * A histogram as QMP has it: @n boundaries between n + 1 bins.  Within a bin
 * values count as spread evenly, in the last, which has no end, as being at
 * its begin.  Both return NAN if there are none.
 */
double stats_hist_mean(const uint64_t *bins, const uint64_t *boundaries,
                       unsigned n);
/* @share of the values, 0 to 1, are below what is returned. */
double stats_hist_quantile(const uint64_t *bins, const uint64_t *boundaries,
                           unsigned n, double share);

/* ---- text -------------------------------------------------------------- */

/*
 * Between @before and @now lie @seconds.  Rings that were not there before,
 * all of them without @before (NULL), show "-" for what cannot be known; so
 * does a waiting time when nothing was sent.  A counter that has gone down
 * was reset: what it has come to since is shown.
 */

/*
 * stats_table_lines: one line per ring, for pipes and files: @at, then what
 * the screen shows.  @header: a line with the columns' names first.  Caller
 * frees.
 */
char *stats_table_lines(const StatsSample *now, const StatsSample *before,
                        double seconds, double at, bool header);

/*
 * stats_table_screen: a screen of @columns by @rows, to be written from its
 * top left corner: what was there before is cleared, nothing is wider or
 * longer than the screen, and the screen does not scroll.
 * @title: shown above
 */
char *stats_table_screen(const StatsSample *now, const StatsSample *before,
                         double seconds, const char *title, unsigned columns,
                         unsigned rows);

#endif /* DAEMON_STATS_TABLE_H */
