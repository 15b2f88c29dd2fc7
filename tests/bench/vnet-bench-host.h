/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The host's end of taps: a network namespace of this process, and a thread
 * that answers what guests send through a packet socket on each tap.
 *
 * The namespace has no name: it is gone with the last process in it.
 */
#ifndef TESTS_BENCH_VNET_BENCH_HOST_H
#define TESTS_BENCH_VNET_BENCH_HOST_H

#include <glib.h>
#include <stdbool.h>
#include <stdint.h>

typedef struct BenchHost BenchHost;

/*
 * bench_host_enter: into a new namespace, with this thread and all that it
 * starts later.  Needs root.
 */
bool bench_host_enter(GError **errp);

/*
 * bench_host_new: the peer of taps that exist, named as bench_host_tap() does.
 * @tick_ns: it sends a frame to each guest that often; 0: it does not.
 */
BenchHost *bench_host_new(unsigned taps, int64_t tick_ns, GError **errp);

/* bench_host_free: also its thread.  NULL is allowed. */
void bench_host_free(BenchHost *h);

/* bench_host_tap: the name of tap @i.  Caller frees. */
char *bench_host_tap(unsigned i);

#endif /* TESTS_BENCH_VNET_BENCH_HOST_H */
