/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A test of vnet-bench and of the device: what goes in must come out.
 */
#ifndef TESTS_BENCH_VNET_BENCH_SELFTEST_H
#define TESTS_BENCH_VNET_BENCH_SELFTEST_H

#include "vnet-bench-run.h"

/*
 * bench_selftest: a few hundred packets of several loads over a wire between
 * two NICs, counted.  No limit of time.  TAP on stdout; @base has the costs
 * and the daemon's path.  Returns the exit status.
 */
int bench_selftest(const BenchConf *base);

#endif /* TESTS_BENCH_VNET_BENCH_SELFTEST_H */
