/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The device under load: a qemu-net-daemon of our own, or one that runs
 * already.
 *
 * Our own is a child and ends with us, however we end.  Its NICs are reached
 * through inherited sockets: no file is made.
 */
#ifndef TESTS_BENCH_VNET_BENCH_DAEMON_H
#define TESTS_BENCH_VNET_BENCH_DAEMON_H

#include <glib.h>
#include <stdbool.h>
#include <stdint.h>

typedef struct BenchDaemon BenchDaemon;

/* What its NICs are connected to. */
typedef enum BenchBackend {
    BENCH_TAP,                  /* each to a tap: bench_host_tap() */
    BENCH_PAIR,                 /* 2i and 2i+1 to each other */
    BENCH_HOLE,                 /* each to a port that swallows */
} BenchBackend;

typedef struct BenchDaemonConf {
    const char *program;        /* path of qemu-net-daemon */
    BenchBackend backend;
    const char *props;          /* of each NIC, as after a comma; or NULL */
    uint16_t ring;
    bool iothreads;             /* one for each NIC */
} BenchDaemonConf;

/*
 * bench_daemon_start: @nics NICs; socks[i] is set to that of NIC i, or -1, and
 * the caller closes it in any case.  What the daemon has to complain about, it
 * says itself, and the sockets then end.
 */
BenchDaemon *bench_daemon_start(const BenchDaemonConf *conf, unsigned nics,
                                int *socks, GError **errp);

/* bench_daemon_find: whoever serves @sock. */
BenchDaemon *bench_daemon_find(int sock, GError **errp);

/*
 * bench_daemon_end: end our own, or leave the other one alone, and free.
 * Returns the status for wait() of our own, or 0.  NULL is allowed.
 */
int bench_daemon_end(BenchDaemon *d);

/* bench_daemon_cpu_ns: what its threads that live now have used. */
int64_t bench_daemon_cpu_ns(const BenchDaemon *d);

#endif /* TESTS_BENCH_VNET_BENCH_DAEMON_H */
