/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What a run has shown, as a table or as one line of JSON.
 */
#ifndef TESTS_BENCH_VNET_BENCH_REPORT_H
#define TESTS_BENCH_VNET_BENCH_REPORT_H

#include "vnet-bench-run.h"

/* bench_report: print it; the guests have stopped. */
void bench_report(const BenchRun *run, bool json);

/* bench_report_help: one line per figure.  Caller frees. */
char *bench_report_help(void);

#endif /* TESTS_BENCH_VNET_BENCH_REPORT_H */
