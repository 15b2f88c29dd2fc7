/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * One run: the daemon, its NICs, a guest on each and whoever is at the other
 * end; a warm-up, and a measurement.
 */
#ifndef TESTS_BENCH_VNET_BENCH_RUN_H
#define TESTS_BENCH_VNET_BENCH_RUN_H

#include "vnet-bench-daemon.h"
#include "vnet-bench-guest.h"
#include "vnet-bench-loads.h"

#define BENCH_NICS_MAX  64

typedef struct BenchConf {
    const char *loads;
    BenchLoadConf load;
    BenchDaemonConf daemon;
    const char *const *connect; /* paths of NICs that are served; or NULL */
    unsigned nics;              /* with a guest under load */
    bool event_idx;
    BenchCompletions completions;
    BenchCosts costs;
    int64_t tick_ns;            /* the peer sends a frame that often; 0: no */
    int64_t warm_up_ns, measure_ns;
    uint32_t seed;
} BenchConf;

typedef struct BenchRun {
    const BenchConf *conf;
    unsigned n;                 /* guests, the peers of pairs included */
    BenchGuest **guests;        /* of a pair: 2i under load, 2i + 1 its peer */
    BenchDaemon *daemon;
    struct BenchHost *host;     /* or NULL */
    int64_t cpu_ns;             /* the daemon's, while it was measured */
    bool ended;                 /* the daemon has said why, and ended */
} BenchRun;

/*
 * bench_run_init: all is up, no guest runs yet.  To be cleaned up in any
 * case.  With @errp set: not up; if @run->ended, the daemon told the user.
 */
bool bench_run_init(BenchRun *run, const BenchConf *conf, GError **errp);

/*
 * bench_run_measure: guests run for the warm-up and the measurement, and have
 * stopped.  Returns the number of a signal that ended it before its time, or
 * 0.  SIGINT, SIGTERM and SIGHUP have to be blocked: see bench_run_signals().
 */
int bench_run_measure(BenchRun *run);

/* bench_run_signals: block those that end a run.  Before any thread. */
void bench_run_signals(void);

/* bench_run_wait: let @ns pass, or less: returns the signal that came, or 0. */
int bench_run_wait(int64_t ns);

/* bench_run_guest: number @i of those under load. */
BenchGuest *bench_run_guest(const BenchRun *run, unsigned i);

/* bench_run_cleanup: false if the daemon has failed. */
bool bench_run_cleanup(BenchRun *run);

#endif /* TESTS_BENCH_VNET_BENCH_RUN_H */
