/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * qemu-net-daemon: serves NICs to QEMU, in the manner of qemu-storage-daemon;
 * or shows what another one does.
 */
#include <signal.h>
#include <stdlib.h>

#include "daemon.h"
#include "options.h"
#include "process.h"
#include "stats-view.h"
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

static bool be_daemon(const DaemonOptions *opt, GError **errp)
{
    if (opt->daemonize && !process_daemonize(errp)) {
        return false;
    }
    process_block_signals();
    return serve(opt, errp);
}

/* A viewer whose reader has gone ends like other programs in a pipe. */
static bool show_stats(const DaemonOptions *opt, GError **errp)
{
    signal(SIGPIPE, SIG_DFL);
    process_block_signals();
    return stats_view_run(opt->stats, opt->interval_ns, errp);
}

static bool run(int argc, char **argv, GError **errp)
{
    DaemonOptions opt;
    DaemonOptionsResult result = daemon_options_parse(&opt, argc, argv, errp);
    bool good = result == DAEMON_OPTIONS_DONE;

    if (result == DAEMON_OPTIONS_RUN) {
        good = opt.stats ? show_stats(&opt, errp) : be_daemon(&opt, errp);
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
