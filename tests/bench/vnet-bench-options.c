/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The command line: see the header.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "util/clock.h"
#include "util/report.h"
#include "vnet-bench-options.h"
#include "vnet-bench-report.h"

/* ---- words ----------------------------------------------------------- */

static const char *const backends[] = {
    [BENCH_TAP] = "tap", [BENCH_PAIR] = "pair", [BENCH_HOLE] = "hole", NULL,
};
static const char *const completions[] = {
    [BENCH_NAPI] = "napi", [BENCH_ORPHAN] = "orphan", NULL,
};
static const char *const on_off[] = { "off", "on", NULL };

/* As GOption wants them: unset ones keep these. */
typedef struct Raw {
    char *backend, *completions, *event_idx;
    int nics, ring, socket, burst, seed;
    int kick_ns, irq_ns, packet_ns, kib_ns;
    double rate, ping_us, tick_us, warm_up, seconds;
    gboolean iothreads, json, selftest;
} Raw;

static bool take_word(const char *option, const char *word,
                      const char *const *words, int *index, GError **errp)
{
    g_autofree char *list = g_strjoinv(", ", (char **)words);

    if (!word) {
        return true;
    }
    for (int i = 0; words[i]; i++) {
        if (!strcmp(word, words[i])) {
            *index = i;
            return true;
        }
    }
    vnet_set_error(errp, "%s: '%s' is none of %s", option, word, list);
    return false;
}

static bool in_range(const char *option, double value, double min, double max,
                     GError **errp)
{
    if (value >= min && value <= max) {
        return true;
    }
    vnet_set_error(errp, "%s: %g is not from %g to %g", option, value, min,
                   max);
    return false;
}

/* ---- from raw to configuration --------------------------------------- */

static bool check_numbers(const Raw *raw, GError **errp)
{
    if (raw->ring != 256 && raw->ring != 512 && raw->ring != 1024) {
        vnet_set_error(errp, "--ring: %d is none of 256, 512, 1024",
                       raw->ring);
        return false;
    }
    return in_range("--nics", raw->nics, 1, BENCH_NICS_MAX, errp) &&
           in_range("--socket", raw->socket, 1, BENCH_QDISC, errp) &&
           in_range("--burst", raw->burst, 1, BENCH_QDISC, errp) &&
           in_range("--rate", raw->rate, 1, 1e8, errp) &&
           in_range("--ping-us", raw->ping_us, 1, 1e6, errp) &&
           in_range("--tick-us", raw->tick_us, 0, 1e6, errp) &&
           in_range("--warm-up", raw->warm_up, 0, 3600, errp) &&
           in_range("--seconds", raw->seconds, 0.01, 3600, errp) &&
           in_range("--kick-ns", raw->kick_ns, 0, 1e6, errp) &&
           in_range("--irq-ns", raw->irq_ns, 0, 1e6, errp) &&
           in_range("--packet-ns", raw->packet_ns, 0, 1e6, errp) &&
           in_range("--kib-ns", raw->kib_ns, 0, 1e6, errp);
}

static bool take_words(BenchConf *conf, const Raw *raw, GError **errp)
{
    int backend = BENCH_TAP, mode = BENCH_NAPI, event_idx = 1;
    bool good = take_word("--backend", raw->backend, backends, &backend,
                          errp) &&
                take_word("--completions", raw->completions, completions,
                          &mode, errp) &&
                take_word("--event-idx", raw->event_idx, on_off, &event_idx,
                          errp);

    conf->daemon.backend = backend;
    conf->completions = mode;
    conf->event_idx = event_idx;
    return good;
}

static void take_numbers(BenchConf *conf, const Raw *raw)
{
    conf->nics = raw->nics;
    conf->seed = raw->seed;
    conf->daemon.ring = raw->ring;
    conf->daemon.iothreads = raw->iothreads;
    conf->load = (BenchLoadConf) {
        .socket_pkts = raw->socket, .rate_pps = raw->rate,
        .burst = raw->burst, .ping_ns = lrint(raw->ping_us * 1e3),
    };
    conf->costs = (BenchCosts) {
        raw->kick_ns, raw->irq_ns, raw->packet_ns, raw->kib_ns,
    };
    conf->tick_ns = lrint(raw->tick_us * 1e3);
    conf->warm_up_ns = lrint(raw->warm_up * 1e9);
    conf->measure_ns = lrint(raw->seconds * 1e9);
}

/* NICs that somebody serves: how many, and who is behind them. */
static bool take_connections(BenchOptions *opt, const Raw *raw, GError **errp)
{
    BenchConf *conf = &opt->conf;
    unsigned n = g_strv_length(opt->connect);

    if (!raw->backend) {
        conf->daemon.backend = BENCH_HOLE;
    }
    if (conf->daemon.backend == BENCH_TAP || opt->props || raw->iothreads) {
        vnet_set_error(errp, "--connect: the other side decides about"
                       " --backend tap, --props and --iothreads");
        return false;
    }
    if (conf->daemon.backend == BENCH_PAIR) {
        if (n % 2) {
            vnet_set_error(errp, "--connect: %u NICs are no pairs", n);
            return false;
        }
        n /= 2;
    }
    conf->nics = n;
    conf->connect = (const char *const *)opt->connect;
    return in_range("--connect", n, 1, BENCH_NICS_MAX, errp);
}

static bool take_raw(BenchOptions *opt, const Raw *raw, GError **errp)
{
    BenchConf *conf = &opt->conf;

    opt->json = raw->json;
    opt->selftest = raw->selftest;
    conf->loads = opt->loads;
    conf->daemon.program = opt->program;
    conf->daemon.props = opt->props;
    if (!check_numbers(raw, errp) || !take_words(conf, raw, errp)) {
        return false;
    }
    take_numbers(conf, raw);
    if (opt->connect && !take_connections(opt, raw, errp)) {
        return false;
    }
    if (conf->tick_ns && conf->daemon.backend == BENCH_HOLE) {
        vnet_set_error(errp, "--tick-us needs somebody who sends: --backend"
                       " tap or pair");
        return false;
    }
    return bench_loads_check(conf->loads, conf->daemon.backend != BENCH_HOLE,
                             errp);
}

/* ---- parsing --------------------------------------------------------- */

/* Where the build puts it, seen from this program. */
static char *default_program(void)
{
    g_autofree char *self = g_file_read_link("/proc/self/exe", NULL);
    g_autofree char *dir = g_path_get_dirname(self ? self : ".");

    return g_build_filename(dir, "..", "..", "qemu-net-daemon", NULL);
}

static void print_help(GOptionContext *ctx)
{
    g_autofree char *options = g_option_context_get_help(ctx, TRUE, NULL);
    g_autofree char *loads = bench_loads_help();
    g_autofree char *figures = bench_report_help();

    printf("%s%s\n%s", options, loads, figures);
}

static bool parse(GOptionContext *ctx, int argc, char **argv, gboolean *help,
                  GError **errp)
{
    if (!g_option_context_parse(ctx, &argc, &argv, errp)) {
        return false;
    }
    if (argc > 1) {
        vnet_set_error(errp, "'%s' is no option, see --help", argv[1]);
        return false;
    }
    if (*help) {
        print_help(ctx);
    }
    return true;
}

bool bench_options_parse(BenchOptions *opt, int argc, char **argv,
                         GError **errp)
{
    Raw raw = {
        .nics = 1, .ring = 256, .socket = 230, .burst = 64, .seed = 1,
        .kick_ns = 2000, .irq_ns = 3000, .packet_ns = 500, .kib_ns = 80,
        .rate = 20000, .ping_us = 1000, .warm_up = 0.2, .seconds = 1,
    };
    gboolean help = FALSE;
#define ROW(name, kind, field, text, arg) \
    { name, 0, 0, G_OPTION_ARG_##kind, &field, text, arg }
    const GOptionEntry entries[] = {
        ROW("load", STRING, opt->loads, "what guests do [udp]", "LOADS"),
        ROW("nics", INT, raw.nics, "guests, each with one [1]", "N"),
        ROW("backend", STRING, raw.backend,
            "tap: each on one, root only; pair: each wired to a guest that "
            "answers; hole: nobody answers [tap]", "WORD"),
        ROW("props", STRING, opt->props,
            "of the NICs: tx=timer,tx-thread=on,...", "P=V,..."),
        ROW("iothreads", NONE, raw.iothreads, "one for each NIC", NULL),
        ROW("connect", FILENAME_ARRAY, opt->connect,
            "load a NIC served there; once for each [start a daemon]", "PATH"),
        ROW("daemon", FILENAME, opt->program, "qemu-net-daemon to start",
            "PATH"),
        ROW("ring", INT, raw.ring, "entries: 256, 512, 1024 [256]", "N"),
        ROW("event-idx", STRING, raw.event_idx, "on or off [on]", "WORD"),
        ROW("completions", STRING, raw.completions,
            "napi: packets are freed by interrupts; orphan: when sent, "
            "with interrupts only for a full ring [napi]", "WORD"),
        ROW("socket", INT, raw.socket, "packets in a UDP socket [230]", "N"),
        ROW("rate", DOUBLE, raw.rate,
            "packets/s of open, clock, on-off [20000]", "N"),
        ROW("burst", INT, raw.burst, "packets, of on-off [64]", "N"),
        ROW("ping-us", DOUBLE, raw.ping_us, "from ping to ping [1000]", "US"),
        ROW("tick-us", DOUBLE, raw.tick_us,
            "the peer sends a frame that often; 0: none [0]", "US"),
        ROW("kick-ns", INT, raw.kick_ns, "cost of a kick [2000]", "NS"),
        ROW("irq-ns", INT, raw.irq_ns, "cost of an interrupt [3000]", "NS"),
        ROW("packet-ns", INT, raw.packet_ns,
            "cost of a packet in the guest's stack [500]", "NS"),
        ROW("kib-ns", INT, raw.kib_ns, "cost of writing 1 KiB [80]", "NS"),
        ROW("warm-up", DOUBLE, raw.warm_up, "before it is measured [0.2]",
            "S"),
        ROW("seconds", DOUBLE, raw.seconds, "measured [1]", "S"),
        ROW("seed", INT, raw.seed, "of random choices [1]", "N"),
        ROW("json", NONE, raw.json, "one line of JSON", NULL),
        ROW("selftest", NONE, raw.selftest, "exact counts, as TAP", NULL),
        ROW("help", NONE, help, "this text", NULL),
        { NULL },
    };
#undef ROW
    GOptionContext *ctx = g_option_context_new("- load a virtio-net device");
    bool good;

    *opt = (BenchOptions) { 0 };
    g_option_context_set_help_enabled(ctx, FALSE);
    g_option_context_add_main_entries(ctx, entries, NULL);
    good = parse(ctx, argc, argv, &help, errp);
    g_option_context_free(ctx);
    opt->done = help;
    opt->loads = opt->loads ? opt->loads : g_strdup("udp");
    opt->program = opt->program ? opt->program : default_program();
    good = good && (opt->done || take_raw(opt, &raw, errp));
    g_free(raw.backend);
    g_free(raw.completions);
    g_free(raw.event_idx);
    return good;
}

void bench_options_cleanup(BenchOptions *opt)
{
    g_free(opt->program);
    g_strfreev(opt->connect);
    g_free(opt->loads);
    g_free(opt->props);
}
