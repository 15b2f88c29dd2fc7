/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * qemu-net-daemon: serves NICs to QEMU, in the manner of qemu-storage-daemon.
 */
#include <stdlib.h>

#include "daemon.h"
#include "options.h"
#include "process.h"
#include "util/report.h"

static bool become_ready(Daemon *d, const DaemonOptions *opt, GError **errp)
{
    return process_drop_privileges(errp) && daemon_start(d, errp) &&
           (!opt->daemonize || process_ready(opt->keep_stderr, errp));
}

/* The process id appears when the sockets listen: scripts wait for it. */
static bool serve_with_pidfile(Daemon *d, const DaemonOptions *opt,
                               GError **errp)
{
    PidFile *pidfile = NULL;
    bool good;

    if (opt->pidfile) {
        g_autofree char *path = g_canonicalize_filename(opt->pidfile, NULL);

        pidfile = pidfile_new(path, errp);
        if (!pidfile) {
            return false;
        }
    }
    good = become_ready(d, opt, errp);
    if (good) {
        daemon_run(d);
    }
    pidfile_free(pidfile);
    return good;
}

static bool serve(const DaemonOptions *opt, GError **errp)
{
    Daemon *d = daemon_new(opt, errp);
    bool good;

    if (!d) {
        return false;
    }
    good = serve_with_pidfile(d, opt, errp);
    daemon_free(d);
    return good;
}

static bool run(int argc, char **argv, GError **errp)
{
    DaemonOptions opt;
    DaemonOptionsResult result = daemon_options_parse(&opt, argc, argv, errp);
    bool good = result == DAEMON_OPTIONS_DONE;

    if (result == DAEMON_OPTIONS_RUN &&
        (!opt.daemonize || process_daemonize(errp))) {
        process_block_signals();
        good = serve(&opt, errp);
    }
    daemon_options_clear(&opt);
    return good;
}

int main(int argc, char **argv)
{
    GError *err = NULL;

    report_init(argv[0]);
    process_setup();
    if (!run(argc, argv, &err)) {
        report_gerror(err);
        return EXIT_FAILURE;
    }
    return EXIT_SUCCESS;
}
