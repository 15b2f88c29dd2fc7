/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Messages for the user, and for what a guest did.
 *
 * One question decides: could the guest (or the peer) cause this?  Then it is
 * report_guest(): rate-limited, so that a hostile guest cannot fill a log.
 * Otherwise it is report_error() or report_warning().  Each message is one
 * line on stderr, "PROGRAM: text".  Any thread.
 */
#ifndef UTIL_REPORT_H
#define UTIL_REPORT_H

#include <glib.h>
#include <stdint.h>

/* report_init: sets the program name that starts each line. */
void report_init(const char *argv0);
const char *report_program(void);

void report_error(const char *fmt, ...) G_GNUC_PRINTF(1, 2);
void report_warning(const char *fmt, ...) G_GNUC_PRINTF(1, 2);
void report_info(const char *fmt, ...) G_GNUC_PRINTF(1, 2);

/* report_gerror: report_error() of @err->message, which is freed. */
void report_gerror(GError *err);

/*
 * ReportLimit: at most @burst messages per 10 seconds; the first one after a
 * silence says how many were suppressed.  Zero-initialise; one per subject
 * (a NIC, a connection).
 */
typedef struct ReportLimit {
    int64_t window_start_ns;
    unsigned in_window;
    uint64_t suppressed;
} ReportLimit;

/* report_guest: what a guest or peer did wrong.  @limit: owner's thread. */
void report_guest(ReportLimit *limit, const char *fmt, ...) G_GNUC_PRINTF(2, 3);

/* The error domain of messages that a user reads; codes carry no meaning. */
#define VNET_ERROR (vnet_error_quark())
GQuark vnet_error_quark(void);

/* vnet_set_error: g_set_error() in that domain. */
#define vnet_set_error(errp, ...) g_set_error(errp, VNET_ERROR, 0, __VA_ARGS__)

#endif /* UTIL_REPORT_H */
