/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * vnet-bench: a vhost-user front-end with synthetic guests, which loads the
 * device and measures what it makes of that.
 *
 *   guest threads          qemu-net-daemon           the other end
 *   (vnet-bench-guest)     a child, or found         host thread on taps
 *        |   rings, kicks and calls  |               (vnet-bench-host), or
 *        +---------------------------+-------------- guests that answer
 *
 * Limits: one queue pair a NIC, split rings, one descriptor a packet, no
 * offloads.  A guest is a model: what its kernel does is spinning, and its
 * interrupts wait until the CPU is between two packets.
 */
#include <signal.h>
#include <stdlib.h>

#include "util/report.h"
#include "vnet-bench-options.h"
#include "vnet-bench-report.h"
#include "vnet-bench-selftest.h"

/* Returns the exit status. */
static int run_bench(const BenchOptions *opt)
{
    GError *err = NULL;
    BenchRun run;
    int sig = 0;
    bool good = bench_run_init(&run, &opt->conf, &err);

    if (good) {
        sig = bench_run_measure(&run);
    } else if (run.ended) {
        g_error_free(err);
    } else {
        report_gerror(err);
    }
    if (good && !sig) {
        bench_report(&run, opt->json);
    }
    good &= bench_run_cleanup(&run);
    return sig ? 128 + sig : !good;
}

int main(int argc, char **argv)
{
    BenchOptions opt;
    GError *err = NULL;
    int status = 0;

    report_init(argv[0]);
    if (!bench_options_parse(&opt, argc, argv, &err)) {
        report_gerror(err);
        status = EXIT_FAILURE;
    } else if (!opt.done) {
        bench_run_signals();
        status = opt.selftest ? bench_selftest(&opt.conf) : run_bench(&opt);
    }
    bench_options_cleanup(&opt);
    return status;
}
