/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What guests do with a network card: closed loops, which wait for what they
 * sent, and senders that do not care.
 *
 * A load is written NAME or NAME:BYTES, and several of them LOAD+LOAD.  BYTES
 * is the size of a frame, of a write, or of request and response, by the load.
 */
#ifndef TESTS_BENCH_VNET_BENCH_LOADS_H
#define TESTS_BENCH_VNET_BENCH_LOADS_H

#include "vnet-bench-guest.h"

/* What loads have in common. */
typedef struct BenchLoadConf {
    unsigned socket_pkts;       /* udp */
    double rate_pps;            /* open, clock, on-off */
    unsigned burst;             /* on-off */
    int64_t ping_ns;            /* the mean time between two */
} BenchLoadConf;

/* bench_loads_check: @loads can be run; with a peer that answers or without. */
bool bench_loads_check(const char *loads, bool has_peer, GError **errp);

/* bench_loads_add: the flows of @loads, which were checked, to @g. */
void bench_loads_add(BenchGuest *g, const char *loads,
                     const BenchLoadConf *conf);

/*
 * bench_loads_add_peer: what makes a guest the other end of a wire.  @tick_ns:
 * it also sends a frame that often; 0: it does not.
 */
void bench_loads_add_peer(BenchGuest *g, int64_t tick_ns);

/* bench_loads_help: one line per load.  Caller frees. */
char *bench_loads_help(void);

#endif /* TESTS_BENCH_VNET_BENCH_LOADS_H */
