/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Exact counts: see the header.
 *
 * A hub between two ports loses nothing and keeps the order, so each figure is
 * known beforehand: what the guest sends, its peer has; what asks for an answer
 * gets one; what is taken back is what was sent; no packet needs two kicks.
 */
#include <stdio.h>

#include "util/clock.h"
#include "util/report.h"
#include "vnet-bench-selftest.h"

#define PACKETS     600

typedef struct Case {
    const char *loads;
    uint16_t ring;
    bool event_idx;
    BenchCompletions completions;
    const char *props;
    bool answered;              /* every packet is */
} Case;

static const Case cases[] = {
    { "udp:64", 256, true, BENCH_NAPI, NULL, false },
    { "udp:1400", 256, false, BENCH_NAPI, "tx=timer", false },
    { "udp:64", 256, true, BENCH_ORPHAN, NULL, false },
    { "udp:64", 256, false, BENCH_ORPHAN, "tx=adaptive", false },
    { "udp:64", 1024, true, BENCH_ORPHAN, NULL, false },
    { "udp:64", 1024, false, BENCH_ORPHAN, NULL, false },
    { "flood", 512, true, BENCH_NAPI, "x-txburst=64", false },
    { "tcp:1460", 256, true, BENCH_NAPI, "tx-thread=on", false },
    { "tcp:65536", 256, true, BENCH_ORPHAN, NULL, false },
    { "rr", 256, true, BENCH_NAPI, NULL, true },
    { "rr:4096", 256, false, BENCH_NAPI, "tx-coal-usecs=0", true },
    { "rr16", 256, true, BENCH_NAPI, "tx=adaptive,tx-thread=on", true },
    { "ping", 256, true, BENCH_ORPHAN, NULL, true },
    { "on-off", 256, true, BENCH_NAPI, "tx-coal-frames=8,tx-coal-usecs=64",
      false },
};

/* ---- one case -------------------------------------------------------- */

static bool equal(const char *what, uint64_t got, uint64_t want)
{
    if (got != want) {
        printf("# %s: %" G_GUINT64_FORMAT ", want %" G_GUINT64_FORMAT "\n",
               what, got, want);
    }
    return got == want;
}

static bool judge(const Case *c, const BenchGuest *g, const BenchGuest *peer)
{
    bool good = equal("sent", g->count.sent, PACKETS);

    good &= equal("taken back", g->count.done, PACKETS);
    good &= equal("arrived", peer->peer.frames, PACKETS);
    good &= equal("bytes arrived", peer->peer.bytes, g->count.done_bytes);
    good &= equal("out of order", peer->peer.disordered, 0);
    good &= equal("refused", g->count.refused, 0);
    good &= equal("more kicks than packets", g->count.kicks > PACKETS, 0);
    good &= equal("answers taken back", peer->count.done, peer->count.sent);
    if (c->answered) {
        good &= equal("answers sent", peer->count.sent, PACKETS);
        good &= equal("round trips", g->count.rounds, PACKETS);
    }
    /* After a start no event index is behind: the first publication calls. */
    if (c->completions == BENCH_ORPHAN && c->ring > PACKETS) {
        good &= equal("interrupts that nobody wants",
                      g->count.calls[BENCH_TX] > c->event_idx, 0);
    }
    return good;
}

/* Returns the signal that came first, or 0. */
static int exchange(const Case *c, BenchGuest *g, BenchGuest *peer)
{
    int sig = 0;

    g->budget = PACKETS;
    g->expected = c->answered ? PACKETS : 0;
    peer->expected = PACKETS;
    bench_guest_start(peer);
    bench_guest_start(g);
    while (!sig && !(bench_guest_finished(g) && bench_guest_finished(peer))) {
        sig = bench_run_wait(NS_PER_MS);
    }
    bench_guest_stop(g);
    bench_guest_stop(peer);
    return sig;
}

static BenchConf configure(const BenchConf *base, const Case *c)
{
    BenchConf conf = *base;

    conf.loads = c->loads;
    conf.nics = 1;
    conf.connect = NULL;
    conf.event_idx = c->event_idx;
    conf.completions = c->completions;
    conf.daemon.backend = BENCH_PAIR;
    conf.daemon.ring = c->ring;
    conf.daemon.props = c->props;
    conf.tick_ns = 0;
    return conf;
}

static bool run_case(const BenchConf *base, const Case *c, int *sig)
{
    BenchConf conf = configure(base, c);
    GError *err = NULL;
    BenchRun run;
    bool good = bench_run_init(&run, &conf, &err);

    if (good) {
        *sig = exchange(c, run.guests[0], run.guests[1]);
        good = !*sig && judge(c, run.guests[0], run.guests[1]);
    } else {
        report_gerror(err);
    }
    return bench_run_cleanup(&run) && good;
}

/* ---- all ------------------------------------------------------------- */

static void print_result(unsigned i, const Case *c, bool good)
{
    printf("%s %u - %s, ring %u, event_idx %s, %s%s%s\n",
           good ? "ok" : "not ok", i + 1, c->loads, c->ring,
           c->event_idx ? "on" : "off",
           c->completions == BENCH_NAPI ? "napi" : "orphan",
           c->props ? ", " : "", c->props ? c->props : "");
    fflush(stdout);
}

int bench_selftest(const BenchConf *base)
{
    bool all = true;
    int sig = 0;

    printf("1..%zu\n", G_N_ELEMENTS(cases));
    for (unsigned i = 0; i < G_N_ELEMENTS(cases) && !sig; i++) {
        bool good = run_case(base, &cases[i], &sig);

        print_result(i, &cases[i], good);
        all &= good;
    }
    return sig ? 128 + sig : !all;
}
