/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The command line of vnet-bench.
 */
#ifndef TESTS_BENCH_VNET_BENCH_OPTIONS_H
#define TESTS_BENCH_VNET_BENCH_OPTIONS_H

#include "vnet-bench-run.h"

typedef struct BenchOptions {
    BenchConf conf;
    bool json;
    bool selftest;
    bool done;                  /* --help was all */
    char *program;              /* what the configuration points to */
    char **connect;
    char *loads, *props;
} BenchOptions;

/*
 * bench_options_parse: defaults, and what the user wants.  To be cleaned up in
 * any case.
 */
bool bench_options_parse(BenchOptions *opt, int argc, char **argv,
                         GError **errp);
void bench_options_cleanup(BenchOptions *opt);

#endif /* TESTS_BENCH_VNET_BENCH_OPTIONS_H */
