/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Messages for the user, and for what a guest did.
 *
 * One question decides: could the guest (or the peer) cause this?  Then it is
 * report_guest(): rate-limited, so that a hostile guest cannot fill a log.
 * Otherwise it is report_error() or report_warning().  Each message is one
 * line on stderr, "PROGRAM: text" ("PROGRAM: warning: text"), written in one
 * piece; control characters in it become blanks.  Any thread.
 */
#ifndef UTIL_REPORT_H
#define UTIL_REPORT_H

#include <glib.h>
#include <stdbool.h>
#include <stdint.h>

/*
 * report_init: sets the program name that starts each line.  At start-up,
 * before there are other threads.
 */
void report_init(const char *argv0);
const char *report_program(void);

void report_error(const char *fmt, ...) G_GNUC_PRINTF(1, 2);
void report_warning(const char *fmt, ...) G_GNUC_PRINTF(1, 2);
void report_info(const char *fmt, ...) G_GNUC_PRINTF(1, 2);

/* report_gerror: report_error() of @err->message, which is freed. */
void report_gerror(GError *err);

/*
 * ReportLimit: at most REPORT_LIMIT_BURST messages per window; the first one
 * after a suppression says how many were left out.  Zero-initialise; one per
 * subject (a NIC, a connection).
 */
#define REPORT_LIMIT_BURST      5
#define REPORT_LIMIT_WINDOW_NS  10000000000LL

typedef struct ReportLimit {
    int64_t window_start_ns;
    unsigned in_window;
    uint64_t suppressed;
} ReportLimit;

/*
 * report_limit_pass: the decision of report_guest(), for other outlets.
 * @suppressed: set, if the answer is true, to how many were left out before
 *
 * Thread of the limit's owner.  Returns true if this message may be shown.
 */
bool report_limit_pass(ReportLimit *limit, int64_t now_ns,
                       uint64_t *suppressed);

/*
 * report_guest: what a guest or peer did wrong ("PROGRAM: guest: text").
 * @limit: used in its owner's thread only
 */
void report_guest(ReportLimit *limit, const char *fmt, ...) G_GNUC_PRINTF(2, 3);

/* The error domain of messages that a user reads; codes carry no meaning. */
#define VNET_ERROR (vnet_error_quark())
GQuark vnet_error_quark(void);

/* vnet_set_error: g_set_error() in that domain. */
#define vnet_set_error(errp, ...) g_set_error(errp, VNET_ERROR, 0, __VA_ARGS__)

#endif /* UTIL_REPORT_H */
