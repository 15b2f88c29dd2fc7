/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The command line of qemu-net-daemon.
 */
#ifndef DAEMON_OPTIONS_H
#define DAEMON_OPTIONS_H

#include <glib.h>
#include <stdbool.h>

/* Strings belong to argv. */
typedef struct DaemonOptions {
    GPtrArray *objects;         /* arguments of --object, in order */
    GPtrArray *netdevs;
    GPtrArray *devices;
    GPtrArray *exports;
    GPtrArray *qmps;
    const char *pidfile;        /* NULL: none */
    const char *private_dir;    /* NULL: none */
    const char *lifeline_fd;    /* NULL: none; else a number */
    const char *stats;          /* NULL: serve; else show, and nothing else */
    const char *interval;       /* NULL: the default */
    int64_t interval_ns;        /* what that means */
    bool daemonize;
    bool keep_stderr;
} DaemonOptions;

typedef enum DaemonOptionsResult {
    DAEMON_OPTIONS_RUN,         /* go on */
    DAEMON_OPTIONS_DONE,        /* help was printed: exit 0 */
    DAEMON_OPTIONS_ERROR,       /* @errp is set: exit 1 */
} DaemonOptionsResult;

/*
 * daemon_options_parse: read argv.
 *
 * "--option value" and "--option=value"; one dash is as good as two, as in
 * QEMU.  What is inside a value is checked later, except for "help".
 * daemon_options_clear() is due in any case.
 */
DaemonOptionsResult daemon_options_parse(DaemonOptions *opt, int argc,
                                         char **argv, GError **errp);
void daemon_options_clear(DaemonOptions *opt);

#endif /* DAEMON_OPTIONS_H */
