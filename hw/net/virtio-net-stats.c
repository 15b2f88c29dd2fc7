/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What a queue counts.
 *
 * The residence of a packet costs no clock reading of its own.  A pass reads
 * the clock once, at its end.  A pass that empties the ring makes that the
 * time since when nothing can have waited; so does the wake-up of a ring that
 * was armed for the next packet and empty.  Every packet of the next pass is
 * younger, whatever lies between: a hold, a window that was not full, passes
 * that ended at their budget or at a full backend.  So the histogram has upper
 * bounds, of the first packet of a pass close ones.
 *
 * Limits: what a kick takes from the driver to its wake-up is not seen, nor is
 * what passes between the last look at the ring and the reading behind it.
 */
#include "hw/net/virtio-net-stats.h"

#include <stdlib.h>
#include <string.h>

#include "hw/net/virtio-net-internal.h"
#include "util/clock.h"
#include "util/probe.h"

/* Later than this is late: more than a wake-up and a small pass take. */
#define LATE_NS (50 * NS_PER_US)

#define WORDS (sizeof(VirtIONetQueueStats) / sizeof(uint64_t))

/* ---- the tables ------------------------------------------------------ */

#define WORD_OF(name) \
    (offsetof(VirtIONetQueueStats, name) / sizeof(uint64_t))

static const VirtIONetStatInfo infos[] = {
#define X(name, ways, meaning) \
    { #name, meaning, VIRTIO_NET_STAT_##ways, 0, WORD_OF(name) },
    VIRTIO_NET_QUEUE_STATS(X)
#undef X
#define X(name, bins, ways, meaning) \
    { #name, meaning, VIRTIO_NET_STAT_##ways, bins, WORD_OF(name) },
    VIRTIO_NET_QUEUE_HISTS(X)
#undef X
};

const VirtIONetStatInfo *virtio_net_stat_infos(size_t *n)
{
    *n = G_N_ELEMENTS(infos);
    return infos;
}

const uint64_t *virtio_net_stat_values(const VirtIONetQueueStats *stats,
                                       const VirtIONetStatInfo *info)
{
    return (const uint64_t *)stats + info->offset;
}

unsigned virtio_net_stats_bin(uint64_t value, unsigned bins)
{
    unsigned bin = value ? 64 - __builtin_clzll(value) : 0;

    return MIN(bin, bins - 1);
}

char *virtio_net_stats_help(void)
{
    static const char *const ways[] = {
        [VIRTIO_NET_STAT_RX] = "rx", [VIRTIO_NET_STAT_TX] = "tx",
        [VIRTIO_NET_STAT_BOTH] = "",
    };
    GString *out = g_string_new("counters of a ring:\n");

    for (size_t i = 0; i < G_N_ELEMENTS(infos); i++) {
        g_autofree char *name = g_strdelimit(g_strdup(infos[i].name), "_",
                                             '-');

        g_string_append_printf(out, "  %-16s %-2s  %s%s\n", name,
                               ways[infos[i].ways], infos[i].meaning,
                               infos[i].bins ? " (histogram)" : "");
    }
    return g_string_free(out, FALSE);
}

/* ---- reading --------------------------------------------------------- */

VirtIONetStats *virtio_net_stats_new(void)
{
    /* Not g_new0(): the struct asks for the alignment of a cache line. */
    VirtIONetStats *s = aligned_alloc(_Alignof(VirtIONetStats), sizeof(*s));

    if (!s) {
        g_error("out of memory");
    }
    memset(s, 0, sizeof(*s));
    return s;
}

void virtio_net_stats_free(VirtIONetStats *s)
{
    free(s);
}

void virtio_net_stats_read(const VirtIONetStats *s, VirtIONetQueueStats *out)
{
    const uint64_t *from = (const uint64_t *)&s->count;
    uint64_t *to = (uint64_t *)out;

    for (size_t i = 0; i < WORDS; i++) {
        to[i] = __atomic_load_n(&from[i], __ATOMIC_RELAXED);
    }
}

void virtio_net_stats_read_base(const VirtIONetStats *s,
                                VirtIONetQueueStats *out)
{
    const uint64_t *base = (const uint64_t *)&s->base;
    uint64_t *to = (uint64_t *)out;

    virtio_net_stats_read(s, out);
    for (size_t i = 0; i < WORDS; i++) {
        to[i] -= base[i];
    }
}

void virtio_net_stats_reset(VirtIONetStats *s)
{
    virtio_net_stats_read(s, &s->base);
}

/* ---- counting -------------------------------------------------------- */

/* A probe, with the ring's names as its first arguments. */
#define TRACE(q, name, ...)                                                  \
    PROBE(name, (q)->n->conf.id, (q)->idx, ##__VA_ARGS__)

#define COUNT(q, name) virtio_net_stats_add(&(q)->stats->count.name, 1)

static void count_bin(uint64_t *hist, unsigned bins, uint64_t value,
                      unsigned n)
{
    virtio_net_stats_add(&hist[virtio_net_stats_bin(value, bins)], n);
}

#define COUNT_BIN(q, hist, value, n)                                         \
    count_bin((q)->stats->count.hist,                                        \
              G_N_ELEMENTS((q)->stats->count.hist), value, n)

void virtio_net_stats_start(VirtIONetQueue *q, int64_t now_ns)
{
    q->stats->since_ns = now_ns;
    q->stats->idle = false;
    q->stats->fired = false;
    q->stats->phase = 0;
    TRACE(q, queue_start);
}

void virtio_net_stats_stop(VirtIONetQueue *q)
{
    TRACE(q, queue_stop);
}

void virtio_net_stats_kick(VirtIONetQueue *q)
{
    COUNT(q, kicks);
    TRACE(q, kick);
}

void virtio_net_stats_work(VirtIONetQueue *q, int64_t now_ns)
{
    if (q->stats->idle) {
        q->stats->idle = false;
        q->stats->since_ns = now_ns;
    }
}

/* ---- passes ---------------------------------------------------------- */

void virtio_net_stats_flush_begin(VirtIONetQueue *q)
{
    COUNT(q, flushes);
    TRACE(q, flush_begin);
}

static void count_reason(VirtIONetQueue *q, TxStop reason)
{
    switch (reason) {
    case TX_STOP_RING_EMPTY:
        COUNT(q, flush_empty);
        return;
    case TX_STOP_BUDGET:
        COUNT(q, flush_budget);
        return;
    case TX_STOP_BACKEND_FULL:
        COUNT(q, flush_full);
        TRACE(q, backend_full);
        return;
    case TX_STOP_GUEST_ERROR:
        COUNT(q, flush_error);
    }
}

void virtio_net_stats_flush_end(VirtIONetQueue *q, unsigned packets,
                                size_t bytes, TxStop reason)
{
    count_reason(q, reason);
    COUNT_BIN(q, batch_size, packets, 1);
    TRACE(q, flush_end, packets, bytes, reason);
}

static void count_fire(VirtIONetQueue *q, unsigned packets, TxStop reason)
{
    if (packets) {
        COUNT(q, fires_found);
    } else if (reason == TX_STOP_BACKEND_FULL) {
        COUNT(q, fires_blocked);
    } else {
        COUNT(q, fires_empty);
    }
}

void virtio_net_stats_waited(VirtIONetQueue *q, int64_t now_ns,
                             unsigned packets, TxStop reason)
{
    VirtIONetStats *s = q->stats;

    if (s->fired) {
        s->fired = false;
        count_fire(q, packets, reason);
    }
    if (packets) {
        COUNT_BIN(q, residence_us, (now_ns - s->since_ns) / NS_PER_US,
                  packets);
    }
    if (reason == TX_STOP_RING_EMPTY) {
        s->since_ns = now_ns;
    }
}

void virtio_net_stats_resume(VirtIONetQueue *q)
{
    TRACE(q, backend_resume);
}

void virtio_net_stats_flush_stopped(VirtIONetQueue *q)
{
    q->stats->fired = false;
    COUNT(q, flush_stopped);
}

/* ---- waiting --------------------------------------------------------- */

void virtio_net_stats_arm(VirtIONetQueue *q, unsigned window,
                          VirtQueueArm outcome)
{
    COUNT_BIN(q, window, window, 1);
    if (window > 1) {
        COUNT(q, windows);
    }
    q->stats->idle = window == 1 && outcome == VQ_ARM_EMPTY;
    TRACE(q, arm, window, outcome);
    switch (outcome) {
    case VQ_ARM_EMPTY:
        COUNT(q, arm_empty);
        return;
    case VQ_ARM_PARTIAL:
        COUNT(q, arm_partial);
        return;
    case VQ_ARM_CROSSED:
        COUNT(q, arm_crossed);
    }
}

void virtio_net_stats_hold(VirtIONetQueue *q, int64_t deadline_ns)
{
    COUNT(q, holds);
    TRACE(q, hold, deadline_ns);
}

void virtio_net_stats_fire(VirtIONetQueue *q, bool armed, int64_t late_ns)
{
    q->stats->fired = true;
    COUNT(q, fires);
    if (armed) {
        COUNT(q, fires_window);
    }
    TRACE(q, fire, late_ns);
    if (late_ns > LATE_NS) {
        COUNT(q, fires_late);
    }
}

void virtio_net_stats_poll(VirtIONetQueue *q, bool won)
{
    if (won) {
        COUNT(q, polls_won);
    } else {
        COUNT(q, polls_lost);
    }
}

void virtio_net_stats_phase(VirtIONetQueue *q, unsigned phase)
{
    unsigned before = q->stats->phase;

    if (phase != before) {
        q->stats->phase = phase;
        COUNT(q, policy_changes);
        TRACE(q, policy, before, phase);
    }
}

/* ---- calls ----------------------------------------------------------- */

void virtio_net_stats_published(VirtIONetQueue *q, VirtIONetCallFate fate)
{
    COUNT(q, batches);
    if (fate == VIRTIO_NET_CALL_HELD) {
        COUNT(q, calls_held);
        TRACE(q, call_held);
    } else if (fate == VIRTIO_NET_CALL_UNWANTED) {
        COUNT(q, calls_suppressed);
    }
}

void virtio_net_stats_call(VirtIONetQueue *q)
{
    COUNT(q, calls);
    TRACE(q, call_sent);
}

void virtio_net_stats_call_lapsed(VirtIONetQueue *q)
{
    COUNT(q, calls_lapsed);
    TRACE(q, call_lapsed);
}

/* ---- packets --------------------------------------------------------- */

void virtio_net_stats_drop(VirtIONetQueue *q, VirtIONetDrop cause,
                           unsigned packets)
{
    static const size_t counters[] = {
        [VIRTIO_NET_DROP_HOST] = WORD_OF(dropped_host),
        [VIRTIO_NET_DROP_GUEST] = WORD_OF(dropped_guest),
        [VIRTIO_NET_DROP_BUFFERS] = WORD_OF(dropped_buffers),
        [VIRTIO_NET_DROP_DOWN] = WORD_OF(dropped_down),
    };

    virtio_net_stats_add((uint64_t *)&q->stats->count + counters[cause],
                         packets);
    TRACE(q, drop, cause, packets);
}
