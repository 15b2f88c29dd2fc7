/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The figures of a run: one row of the table each.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "util/clock.h"
#include "vnet-bench-report.h"

/* All guests' together; the times are the mean of theirs. */
typedef struct Sum {
    BenchCounts count;
    double seconds;
    double cpu_seconds;
    double slowest, fastest;    /* guest, packets/s */
    GArray *round_ns, *delay_ns;
} Sum;

/* ---- adding up ------------------------------------------------------- */

static double seconds_of(const BenchCounts *c)
{
    return MAX(c->ended_ns - c->began_ns, 1) / 1e9;
}

static void add_counts(BenchCounts *sum, const BenchCounts *c)
{
    sum->sent += c->sent;
    sum->done += c->done;
    sum->done_bytes += c->done_bytes;
    sum->refused += c->refused;
    sum->received += c->received;
    sum->received_bytes += c->received_bytes;
    sum->kicks += c->kicks;
    sum->calls[BENCH_RX] += c->calls[BENCH_RX];
    sum->calls[BENCH_TX] += c->calls[BENCH_TX];
    sum->rounds += c->rounds;
    sum->gap_ns = MAX(sum->gap_ns, c->gap_ns);
}

static int compare(gconstpointer a, gconstpointer b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

    return (x > y) - (x < y);
}

static void add_guest(Sum *s, const BenchGuest *g)
{
    double seconds = seconds_of(&g->count);
    double pps = g->count.done / seconds;

    add_counts(&s->count, &g->count);
    s->seconds += seconds;
    s->slowest = MIN(s->slowest, pps);
    s->fastest = MAX(s->fastest, pps);
    g_array_append_vals(s->round_ns, g->round_ns->data, g->round_ns->len);
    g_array_append_vals(s->delay_ns, g->delay_ns->data, g->delay_ns->len);
}

static void add_up(Sum *s, const BenchRun *run)
{
    unsigned n = run->conf->nics;

    *s = (Sum) { .slowest = HUGE_VAL, .cpu_seconds = run->cpu_ns / 1e9 };
    s->round_ns = g_array_new(FALSE, FALSE, sizeof(uint32_t));
    s->delay_ns = g_array_new(FALSE, FALSE, sizeof(uint32_t));
    for (unsigned i = 0; i < n; i++) {
        add_guest(s, bench_run_guest(run, i));
    }
    s->seconds /= n;
    g_array_sort(s->round_ns, compare);
    g_array_sort(s->delay_ns, compare);
}

/* ---- figures --------------------------------------------------------- */

static double percentile_us(const GArray *sorted, unsigned percent)
{
    return sorted->len
           ? g_array_index(sorted, uint32_t, (sorted->len - 1) *
                           (guint64)percent / 100) / 1e3
           : NAN;
}

/*
 * X(name, unit, value, meaning); s is the Sum.  A value that is not a number
 * has nothing to be taken from.
 */
#define FIGURES(X)                                                           \
    X(seconds, "s", s->seconds, "measured")                                  \
    X(pps, "1/s", s->count.done / s->seconds, "packets sent")                \
    X(mbps, "Mb/s", s->count.done_bytes * 8e-6 / s->seconds, "... in bits")  \
    X(slowest_pps, "1/s", s->slowest, "... of the NIC with the fewest")      \
    X(fastest_pps, "1/s", s->fastest, "... and with the most")               \
    X(kicks, "1/s", s->count.kicks / s->seconds, "notifications, transmit")  \
    X(tx_calls, "1/s", s->count.calls[BENCH_TX] / s->seconds,                \
      "interrupts, transmit")                                                \
    X(rx_calls, "1/s", s->count.calls[BENCH_RX] / s->seconds,                \
      "interrupts, receive")                                                 \
    X(rx_pps, "1/s", s->count.received / s->seconds, "frames received")      \
    X(refused, "1/s", s->count.refused / s->seconds,                         \
      "packets the guest had no room for")                                   \
    X(rounds, "1/s", s->count.rounds / s->seconds, "round trips")            \
    X(rtt_p50_us, "us", percentile_us(s->round_ns, 50), "round trip, median") \
    X(rtt_p99_us, "us", percentile_us(s->round_ns, 99), "... 99 of 100")     \
    X(tick_p50_us, "us", percentile_us(s->delay_ns, 50),                     \
      "from the peer to the guest, median")                                  \
    X(tick_p99_us, "us", percentile_us(s->delay_ns, 99), "... 99 of 100")    \
    X(rx_gap_us, "us", s->count.gap_ns ? s->count.gap_ns / 1e3 : NAN,        \
      "longest time between two deliveries")                                 \
    X(cpu, "cores", s->cpu_seconds / s->seconds, "CPU of the device")        \
    X(cpu_ns_pkt, "ns", s->count.done                                        \
      ? s->cpu_seconds * 1e9 / s->count.done : NAN, "... per packet sent")

static void print_row(const char *name, const char *unit, double value,
                      const char *meaning)
{
    if (!isnan(value)) {
        printf("%-12s %12.1f %-6s %s\n", name, value, unit, meaning);
    }
}

static void print_table(const Sum *s)
{
#define X(name, unit, value, meaning) print_row(#name, unit, value, meaning);
    FIGURES(X)
#undef X
}

static void print_member(const char *name, double value)
{
    if (isnan(value)) {
        printf(",\"%s\":null", name);
    } else {
        printf(",\"%s\":%.6g", name, value);
    }
}

static void print_json(const BenchRun *run, const Sum *s)
{
    printf("{\"nics\":%u,\"ring\":%u", run->conf->nics,
           run->conf->daemon.ring);
#define X(name, unit, value, meaning) print_member(#name, value);
    FIGURES(X)
#undef X
    printf("}\n");
}

void bench_report(const BenchRun *run, bool json)
{
    Sum s;

    add_up(&s, run);
    if (json) {
        print_json(run, &s);
    } else {
        print_table(&s);
    }
    g_array_free(s.round_ns, TRUE);
    g_array_free(s.delay_ns, TRUE);
}

char *bench_report_help(void)
{
    GString *text = g_string_new("Figures, all NICs together:\n");

#define X(name, unit, value, meaning) \
    g_string_append_printf(text, "  %-12s %-6s %s\n", #name, unit, meaning);
    FIGURES(X)
#undef X
    return g_string_free(text, FALSE);
}
