/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The counters of a queue: values that follow from the scenario by
 * arithmetic, edges of the bins, and a reset at any time.
 */
#include <string.h>
#include <sys/eventfd.h>

#include "nic-harness.h"

/* Both rings are idle, and everything counts from zero. */
static NicHarness *new_nic(const char *props)
{
    NicHarness *h = nic_harness_new(&(NicOptions) { .props = props });

    virtio_net_reset_stats(h->nic);
    return h;
}

static VirtIONetQueueStats stats_of(NicHarness *h, unsigned idx)
{
    VirtIONetQueueStats s;

    virtio_net_queue_stats_base(h->nic, idx, &s);
    return s;
}

static VirtIONetTx *tx_of(NicHarness *h)
{
    return &h->nic->pairs[0]->tx;
}

static uint64_t sum(const uint64_t *bins, unsigned n)
{
    uint64_t total = 0;

    for (unsigned i = 0; i < n; i++) {
        total += bins[i];
    }
    return total;
}

#define SUM(bins) sum(bins, G_N_ELEMENTS(bins))

/* What holds whatever has happened, once nothing is going on. */
static void check_sums(const VirtIONetQueueStats *s)
{
    g_assert_cmpuint(s->flushes, ==, s->flush_empty + s->flush_budget +
                                     s->flush_full + s->flush_error);
    g_assert_cmpuint(s->flushes, ==, SUM(s->batch_size));
    g_assert_cmpuint(s->fires, ==, s->fires_found + s->fires_empty +
                                   s->fires_blocked);
    g_assert_cmpuint(s->fires_late, <=, s->fires);
}

/* ---- the table ------------------------------------------------------- */

static void test_bins(void)
{
    static const struct { uint64_t value; unsigned bins, bin; } cases[] = {
        { 0, 13, 0 }, { 1, 13, 1 }, { 2, 13, 2 }, { 3, 13, 2 }, { 4, 13, 3 },
        { 7, 13, 3 }, { 8, 13, 4 }, { 1023, 13, 10 }, { 1024, 13, 11 },
        { 2047, 13, 11 }, { 2048, 13, 12 }, { UINT64_MAX, 13, 12 },
        { UINT64_MAX, 65, 64 }, { 0, 1, 0 }, { 5, 1, 0 },
    };

    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_assert_cmpuint(virtio_net_stats_bin(cases[i].value, cases[i].bins),
                         ==, cases[i].bin);
    }
}

/* Each word of the struct has one name; each name its own. */
static void test_infos(void)
{
    g_autoptr(GHashTable) names = g_hash_table_new(g_str_hash, g_str_equal);
    size_t n, words = 0;
    const VirtIONetStatInfo *infos = virtio_net_stat_infos(&n);

    for (size_t i = 0; i < n; i++) {
        g_assert_true(g_hash_table_add(names, (char *)infos[i].name));
        g_assert_cmpuint(infos[i].offset, ==, words);
        g_assert_cmpuint(infos[i].ways & ~VIRTIO_NET_STAT_BOTH, ==, 0);
        g_assert_cmpuint(infos[i].ways, !=, 0);
        words += MAX(infos[i].bins, 1);
    }
    g_assert_cmpuint(words * 8, ==, sizeof(VirtIONetQueueStats));
}

/* ---- transmit passes ------------------------------------------------- */

static void test_flush(void)
{
    NicHarness *h = new_nic(NULL);
    VirtIONetQueueStats s;

    nic_harness_transmit(h, 10, 60);
    s = stats_of(h, 1);
    check_sums(&s);
    g_assert_cmpuint(s.kicks, ==, 1);
    g_assert_cmpuint(s.packets, ==, 10);
    g_assert_cmpuint(s.bytes, ==, 600);
    g_assert_cmpuint(s.flush_empty, ==, 1);
    g_assert_cmpuint(s.batches, ==, 1);
    g_assert_cmpuint(s.batch_size[4], ==, 1);           /* 8 to 15 */
    g_assert_cmpuint(s.arm_empty, ==, 1);
    g_assert_cmpuint(s.window[1], ==, 1);
    g_assert_cmpuint(SUM(s.window), ==, 1);
    /* the other ring has seen nothing */
    s = stats_of(h, 0);
    g_assert_cmpuint(s.kicks + s.flushes + s.packets, ==, 0);
    nic_harness_free(h);
}

/* 5 packets by twos: two passes at the budget, one that empties. */
static void test_flush_budget(void)
{
    NicHarness *h = new_nic("x-txburst=2");
    VirtIONetQueueStats s;

    nic_harness_transmit(h, 5, 60);
    s = stats_of(h, 1);
    check_sums(&s);
    g_assert_cmpuint(s.flush_budget, ==, 2);
    g_assert_cmpuint(s.flush_empty, ==, 1);
    g_assert_cmpuint(s.batch_size[2], ==, 2);
    g_assert_cmpuint(s.batch_size[1], ==, 1);
    nic_harness_free(h);
}

static void test_flush_full(void)
{
    NicHarness *h = new_nic(NULL);
    VirtIONetQueueStats s;

    h->net->room = 3;
    nic_harness_transmit(h, 5, 60);
    s = stats_of(h, 1);
    check_sums(&s);
    g_assert_cmpuint(s.flush_full, ==, 1);
    g_assert_cmpuint(s.arm_empty, ==, 0);
    fake_net_ready(h->net, UINT_MAX);
    nic_harness_run(h);
    s = stats_of(h, 1);
    check_sums(&s);
    g_assert_cmpuint(s.packets, ==, 5);
    g_assert_cmpuint(s.flush_empty, ==, 1);
    g_assert_cmpuint(s.batch_size[2], ==, 2);           /* 3 and 2 */
    nic_harness_free(h);
}

static void test_flush_error(void)
{
    NicHarness *h = new_nic(NULL);
    VirtIONetQueueStats s;

    vring_driver_set_avail_idx(&h->tx, 1000);
    eventfd_write(h->kick[1], 1);
    nic_harness_run(h);
    s = stats_of(h, 1);
    check_sums(&s);
    g_assert_cmpuint(s.flush_error, ==, 1);
    g_assert_cmpuint(s.batch_size[0], ==, 1);
    nic_harness_free(h);
}

/* Stopped while a pass is due: that one is not run. */
static void test_flush_stopped(void)
{
    NicHarness *h = new_nic(NULL);
    VirtIONetQueueStats s;

    nic_harness_send(h, 0, 60);
    virtio_net_tx_wake(tx_of(h), TX_WAKE_KICK);
    virtio_net_queue_stop(h->nic, 1);
    s = stats_of(h, 1);
    check_sums(&s);
    g_assert_cmpuint(s.flush_stopped, ==, 1);
    g_assert_cmpuint(s.flushes, ==, 0);
    nic_harness_free(h);
}

/* Another ring breaks the device: counted once, the later stop included. */
static void test_flush_sibling_broken(void)
{
    NicHarness *h = new_nic(NULL);
    VirtIONetQueueStats s;

    vring_driver_set_avail_idx(&h->rx, 1000);
    eventfd_write(h->kick[0], 1);
    nic_harness_run(h);
    fake_net_deliver(h->net, NULL, "0123456789abcdef", 16);
    nic_harness_run(h);
    g_assert_true(virtio_net_queue_broken(h->nic, 1));
    nic_harness_transmit(h, 1, 60);
    virtio_net_queue_stop(h->nic, 1);
    s = stats_of(h, 1);
    g_assert_cmpuint(s.kicks, ==, 1);
    g_assert_cmpuint(s.flush_stopped, ==, 1);
    g_assert_cmpuint(s.flushes, ==, 0);
    nic_harness_free(h);
}

static void test_drops(void)
{
    NicHarness *h = new_nic(NULL);
    VirtIONetQueueStats s;

    h->net->drop_nth = 2;
    nic_harness_transmit(h, 3, 60);
    vring_driver_add(&h->tx, NH_TX_BUF, NH_HDR, 0);     /* no frame in it */
    nic_harness_kick(h, 1);
    nic_harness_run(h);
    virtio_net_set_link(h->nic, false);
    nic_harness_transmit(h, 7, 60);
    s = stats_of(h, 1);
    g_assert_cmpuint(s.packets, ==, 2);
    g_assert_cmpuint(s.dropped_host, ==, 1);
    g_assert_cmpuint(s.dropped_guest, ==, 1);
    g_assert_cmpuint(s.dropped_down, ==, 7);
    g_assert_cmpuint(s.dropped_buffers, ==, 0);
    nic_harness_free(h);
}

/* ---- residence ------------------------------------------------------- */

/* From the first packet's kick to the pass, for all that it finds. */
static void test_residence_timer(void)
{
    NicHarness *h = new_nic("tx=timer");
    VirtIONetQueueStats s;

    nic_harness_step(h, NS_PER_SEC);            /* idle: nobody waits */
    nic_harness_send(h, 0, 60);
    nic_harness_kick(h, 1);
    nic_harness_run(h);
    nic_harness_step(h, 100 * NS_PER_US);
    nic_harness_send(h, 1, 60);
    nic_harness_step(h, 50 * NS_PER_US);
    s = stats_of(h, 1);
    g_assert_cmpuint(s.residence_us[8], ==, 2);         /* 128 to 255 */
    g_assert_cmpuint(SUM(s.residence_us), ==, 2);
    nic_harness_free(h);
}

/* 1000 us at a full backend. */
static void test_residence_full(void)
{
    NicHarness *h = new_nic(NULL);
    VirtIONetQueueStats s;

    h->net->room = 0;
    nic_harness_transmit(h, 1, 60);
    nic_harness_step(h, 1000 * NS_PER_US);
    fake_net_ready(h->net, UINT_MAX);
    nic_harness_run(h);
    s = stats_of(h, 1);
    g_assert_cmpuint(s.residence_us[10], ==, 1);        /* 512 to 1023 */
    g_assert_cmpuint(SUM(s.residence_us), ==, 1);
    nic_harness_free(h);
}

static void take_10_us(void *opaque)
{
    NicHarness *h = opaque;

    clock_virtual_advance(h->clock, 10 * NS_PER_US);
}

/* A pass behind a pass at its budget: its packets have waited for both. */
static void test_residence_budget(void)
{
    NicHarness *h = new_nic("x-txburst=2");
    VirtIONetQueueStats s;

    h->net->on_send = take_10_us;
    h->net->on_send_opaque = h;
    nic_harness_transmit(h, 5, 60);
    s = stats_of(h, 1);
    g_assert_cmpuint(s.residence_us[4], ==, 2);         /* 10 us */
    g_assert_cmpuint(s.residence_us[5], ==, 3);         /* 20, and 30 */
    g_assert_cmpuint(SUM(s.residence_us), ==, 5);
    nic_harness_free(h);
}

/*
 * A window of many: the kick is for the last of them, so the first may have
 * come at any time since the ring was empty.
 */
static void test_residence_window(void)
{
    NicHarness *h = new_nic(NULL);
    VirtIONetQueue *q = &tx_of(h)->q;
    int64_t now_ns = aio_now_ns(h->ctx);
    VirtIONetQueueStats s;

    virtio_net_stats_waited(q, now_ns, 0, TX_STOP_RING_EMPTY);
    virtio_net_stats_arm(q, 64, VQ_ARM_EMPTY);
    virtio_net_stats_work(q, now_ns + 300 * NS_PER_US);
    virtio_net_stats_waited(q, now_ns + 400 * NS_PER_US, 64,
                            TX_STOP_RING_EMPTY);
    s = stats_of(h, 1);
    g_assert_cmpuint(s.residence_us[9], ==, 64);        /* 256 to 511 */
    nic_harness_free(h);
}

/* ---- waiting --------------------------------------------------------- */

static void test_arms(void)
{
    NicHarness *h = new_nic(NULL);
    VirtIONetQueue *q = &tx_of(h)->q;
    VirtIONetQueueStats s;

    virtio_net_stats_arm(q, 1, VQ_ARM_EMPTY);
    virtio_net_stats_arm(q, 64, VQ_ARM_PARTIAL);
    virtio_net_stats_arm(q, 63, VQ_ARM_PARTIAL);
    virtio_net_stats_arm(q, 1024, VQ_ARM_CROSSED);
    s = stats_of(h, 1);
    g_assert_cmpuint(s.arm_empty, ==, 1);
    g_assert_cmpuint(s.arm_partial, ==, 2);
    g_assert_cmpuint(s.arm_crossed, ==, 1);
    g_assert_cmpuint(s.window[1], ==, 1);
    g_assert_cmpuint(s.window[6], ==, 1);               /* 32 to 63 */
    g_assert_cmpuint(s.window[7], ==, 1);
    g_assert_cmpuint(s.window[11], ==, 1);              /* 1024, the most */
    nic_harness_free(h);
}

static void test_fires(void)
{
    NicHarness *h = new_nic("tx=timer");
    VirtIONetQueueStats s;

    nic_harness_transmit(h, 3, 60);
    nic_harness_step(h, 150 * NS_PER_US);       /* found */
    eventfd_write(h->kick[1], 1);
    nic_harness_run(h);
    nic_harness_step(h, 150 * NS_PER_US);       /* a kick for nothing */
    h->net->room = 0;
    nic_harness_transmit(h, 3, 60);
    nic_harness_step(h, 150 * NS_PER_US);       /* and nobody takes them */
    s = stats_of(h, 1);
    check_sums(&s);
    g_assert_cmpuint(s.holds, ==, 3);
    g_assert_cmpuint(s.fires, ==, 3);
    g_assert_cmpuint(s.fires_found, ==, 1);
    g_assert_cmpuint(s.fires_empty, ==, 1);
    g_assert_cmpuint(s.fires_blocked, ==, 1);
    g_assert_cmpuint(s.fires_late, ==, 0);
    nic_harness_free(h);
}

static void test_fires_late(void)
{
    static const struct { int64_t late_ns; unsigned fires_late; } cases[] = {
        { 0, 0 }, { 50000, 0 }, { 50001, 1 }, { 1000000, 1 },
    };

    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        NicHarness *h = new_nic("tx=timer");

        nic_harness_transmit(h, 1, 60);
        nic_harness_step(h, 150 * NS_PER_US + cases[i].late_ns);
        g_assert_cmpuint(stats_of(h, 1).fires, ==, 1);
        g_assert_cmpuint(stats_of(h, 1).fires_late, ==, cases[i].fires_late);
        nic_harness_free(h);
    }
}

/* A deadline whose pass a stop takes away is not judged by a later one. */
static void test_fire_stopped(void)
{
    NicHarness *h = new_nic("tx=timer");
    VirtIONetQueueStats s;

    nic_harness_transmit(h, 1, 60);
    virtio_net_tx_wake(tx_of(h), TX_WAKE_DEADLINE);
    virtio_net_set_map(h->nic, h->map);
    nic_harness_run(h);
    s = stats_of(h, 1);
    g_assert_cmpuint(s.fires, ==, 1);
    g_assert_cmpuint(s.flush_stopped, ==, 1);
    g_assert_cmpuint(s.fires_found + s.fires_empty + s.fires_blocked, ==, 0);
    g_assert_cmpuint(s.packets, ==, 1);
    nic_harness_free(h);
}

static void test_polls(void)
{
    NicHarness *h = new_nic(NULL);
    const AioHandlerOps *ops = &virtio_net_tx_kick_ops;
    VirtIONetTx *tx = tx_of(h);
    VirtIONetQueueStats s;

    ops->poll_begin(tx);
    g_assert_false(ops->poll(tx));
    g_assert_false(ops->poll_end(tx));
    s = stats_of(h, 1);
    g_assert_cmpuint(s.polls_lost, ==, 1);
    g_assert_cmpuint(s.arm_empty, ==, 1);

    nic_harness_step(h, NS_PER_SEC);
    ops->poll_begin(tx);
    nic_harness_send(h, 0, 60);
    g_assert_false(nic_harness_kick(h, 1));
    g_assert_true(ops->poll(tx));
    g_assert_false(ops->poll_end(tx));
    nic_harness_run(h);
    s = stats_of(h, 1);
    g_assert_cmpuint(s.polls_won, ==, 1);
    g_assert_cmpuint(s.polls_lost, ==, 1);
    g_assert_cmpuint(s.kicks, ==, 0);
    g_assert_cmpuint(s.residence_us[0], ==, 1);
    nic_harness_free(h);
}

static void test_phases(void)
{
    NicHarness *h = new_nic(NULL);
    VirtIONetQueue *q = &tx_of(h)->q;
    static const unsigned phases[] = { 0, 1, 1, 3, 0, 0 };

    for (size_t i = 0; i < G_N_ELEMENTS(phases); i++) {
        virtio_net_stats_phase(q, phases[i]);
    }
    g_assert_cmpuint(stats_of(h, 1).policy_changes, ==, 3);
    nic_harness_free(h);
}

/* ---- calls ----------------------------------------------------------- */

static void look(NicHarness *h)
{
    nic_harness_tx_used(h);
    vring_driver_enable_call(&h->tx);
}

static void test_call_held(void)
{
    NicHarness *h = new_nic(NULL);
    VirtIONetQueueStats s;

    look(h);
    nic_harness_transmit(h, 1, 60);
    nic_harness_transmit(h, 1, 60);             /* joins */
    s = stats_of(h, 1);
    g_assert_cmpuint(s.calls_held, ==, 1);
    g_assert_cmpuint(s.calls, ==, 0);
    nic_harness_step(h, 150 * NS_PER_US);
    s = stats_of(h, 1);
    g_assert_cmpuint(s.calls, ==, 1);
    g_assert_cmpuint(s.calls_lapsed, ==, 0);
    g_assert_cmpuint(s.batches, ==, 2);
    nic_harness_free(h);
}

/* 64 frames: at once. */
static void test_call_sent(void)
{
    NicHarness *h = new_nic(NULL);
    VirtIONetQueueStats s;

    look(h);
    nic_harness_transmit(h, 64, 60);
    s = stats_of(h, 1);
    g_assert_cmpuint(s.calls, ==, 1);
    g_assert_cmpuint(s.calls_held, ==, 0);
    nic_harness_free(h);
}

static void test_call_lapsed(void)
{
    NicHarness *h = new_nic(NULL);
    VirtIONetQueueStats s;

    nic_harness_transmit(h, 1, 60);             /* the first is always due */
    nic_harness_step(h, 150 * NS_PER_US);
    look(h);
    nic_harness_transmit(h, 1, 60);
    look(h);
    nic_harness_step(h, 150 * NS_PER_US);
    s = stats_of(h, 1);
    g_assert_cmpuint(s.calls_held, ==, 2);
    g_assert_cmpuint(s.calls, ==, 1);
    g_assert_cmpuint(s.calls_lapsed, ==, 1);
    g_assert_cmpuint(s.calls_suppressed, ==, 0);
    nic_harness_free(h);
}

static void test_call_suppressed(void)
{
    NicHarness *h = new_nic(NULL);
    VirtIONetQueueStats s;

    nic_harness_transmit(h, 1, 60);
    nic_harness_step(h, 150 * NS_PER_US);
    nic_harness_transmit(h, 1, 60);             /* nobody has asked anew */
    nic_harness_transmit(h, 1, 60);
    s = stats_of(h, 1);
    g_assert_cmpuint(s.calls, ==, 1);
    g_assert_cmpuint(s.calls_held, ==, 1);
    g_assert_cmpuint(s.calls_suppressed, ==, 2);
    nic_harness_free(h);
}

/* ---- receive --------------------------------------------------------- */

static void deliver(NicHarness *h, unsigned n)
{
    for (unsigned i = 0; i < n; i++) {
        fake_net_deliver(h->net, NULL, "0123456789abcdef", 16);
    }
}

/* Four buffers, then six frames: the pass ends without buffers. */
static void test_receive(void)
{
    NicHarness *h = new_nic(NULL);
    VirtIONetQueueStats s;

    deliver(h, 6);                      /* no buffers: nobody asks for them */
    g_assert_cmpuint(stats_of(h, 0).flushes, ==, 0);
    for (unsigned i = 0; i < 4; i++) {
        nic_harness_post(h, 2048);
    }
    nic_harness_kick(h, 0);
    nic_harness_run(h);
    s = stats_of(h, 0);
    check_sums(&s);
    g_assert_cmpuint(s.kicks, ==, 1);
    g_assert_cmpuint(s.packets, ==, 4);
    g_assert_cmpuint(s.bytes, ==, 64);
    g_assert_cmpuint(s.flush_full, ==, 1);
    g_assert_cmpuint(s.batch_size[3], ==, 1);
    g_assert_cmpuint(s.arm_empty, ==, 1);
    g_assert_cmpuint(s.batches, ==, 1);
    g_assert_cmpuint(s.calls, ==, 1);
    nic_harness_post(h, 2048);
    nic_harness_post(h, 2048);
    nic_harness_post(h, 2048);
    nic_harness_kick(h, 0);
    nic_harness_run(h);
    s = stats_of(h, 0);
    check_sums(&s);
    g_assert_cmpuint(s.packets, ==, 6);
    g_assert_cmpuint(s.flush_empty, ==, 1);
    g_assert_cmpuint(s.batch_size[2], ==, 1);
    nic_harness_free(h);
}

/* Without mergeable buffers, one that is too short for the frame. */
static void test_receive_drop(void)
{
    NicHarness *h = nic_harness_new(&(NicOptions) {
        .features = NH_MODERN & ~VH_FEATURE(VIRTIO_NET_F_MRG_RXBUF) });

    nic_harness_post(h, NH_HDR + 15);
    nic_harness_kick(h, 0);
    nic_harness_run(h);
    deliver(h, 1);
    g_assert_cmpuint(nic_harness_stat(h, 0, "dropped_buffers"), ==, 1);
    g_assert_cmpuint(nic_harness_stat(h, 0, "packets"), ==, 0);
    nic_harness_free(h);
}

/* ---- reset ----------------------------------------------------------- */

static void test_reset(void)
{
    NicHarness *h = new_nic(NULL);
    VirtIONetQueueStats raw, s;

    nic_harness_transmit(h, 10, 60);
    virtio_net_reset_stats(h->nic);
    s = stats_of(h, 1);
    for (size_t i = 0; i < sizeof(s) / sizeof(uint64_t); i++) {
        g_assert_cmpuint(((uint64_t *)&s)[i], ==, 0);
    }
    nic_harness_transmit(h, 3, 60);
    s = stats_of(h, 1);
    g_assert_cmpuint(s.packets, ==, 3);
    g_assert_cmpuint(s.batch_size[2], ==, 1);
    g_assert_cmpuint(SUM(s.batch_size), ==, 1);
    virtio_net_queue_stats(h->nic, 1, &raw);
    g_assert_cmpuint(raw.packets, ==, 13);
    nic_harness_free(h);
}

#define WRITER_PACKETS 300000

static void *write_counters(void *opaque)
{
    VirtIONetStats *s = opaque;

    for (unsigned i = 0; i < WRITER_PACKETS; i++) {
        virtio_net_stats_packet(s, 3);
    }
    return NULL;
}

/* What is read between two resets grows, and nothing is lost over all. */
static void test_reset_while_running(void)
{
    VirtIONetStats *s = virtio_net_stats_new();
    GThread *writer = g_thread_new("writer", write_counters, s);
    VirtIONetQueueStats raw = { 0 }, now;
    uint64_t total = 0;

    while (raw.packets < WRITER_PACKETS) {
        uint64_t last = 0;

        for (unsigned i = 0; i < 4; i++) {
            virtio_net_stats_read_base(s, &now);
            g_assert_cmpuint(now.packets, >=, last);
            g_assert_cmpuint(now.bytes % 3, ==, 0);
            last = now.packets;
        }
        g_assert_cmpuint(last, <=, WRITER_PACKETS);
        virtio_net_stats_read(s, &raw);
        virtio_net_stats_reset(s);
        total = s->base.packets;
    }
    g_thread_join(writer);
    virtio_net_stats_read_base(s, &now);
    g_assert_cmpuint(total + now.packets, ==, WRITER_PACKETS);
    virtio_net_stats_free(s);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/net/stats/bins", test_bins);
    g_test_add_func("/net/stats/infos", test_infos);
    g_test_add_func("/net/stats/flush/empty", test_flush);
    g_test_add_func("/net/stats/flush/budget", test_flush_budget);
    g_test_add_func("/net/stats/flush/full", test_flush_full);
    g_test_add_func("/net/stats/flush/error", test_flush_error);
    g_test_add_func("/net/stats/flush/stopped", test_flush_stopped);
    g_test_add_func("/net/stats/flush/sibling-broken",
                    test_flush_sibling_broken);
    g_test_add_func("/net/stats/drops", test_drops);
    g_test_add_func("/net/stats/residence/timer", test_residence_timer);
    g_test_add_func("/net/stats/residence/full", test_residence_full);
    g_test_add_func("/net/stats/residence/budget", test_residence_budget);
    g_test_add_func("/net/stats/residence/window", test_residence_window);
    g_test_add_func("/net/stats/arms", test_arms);
    g_test_add_func("/net/stats/fires/kinds", test_fires);
    g_test_add_func("/net/stats/fires/late", test_fires_late);
    g_test_add_func("/net/stats/fires/stopped", test_fire_stopped);
    g_test_add_func("/net/stats/polls", test_polls);
    g_test_add_func("/net/stats/phases", test_phases);
    g_test_add_func("/net/stats/calls/held", test_call_held);
    g_test_add_func("/net/stats/calls/sent", test_call_sent);
    g_test_add_func("/net/stats/calls/lapsed", test_call_lapsed);
    g_test_add_func("/net/stats/calls/suppressed", test_call_suppressed);
    g_test_add_func("/net/stats/receive/buffers", test_receive);
    g_test_add_func("/net/stats/receive/drop", test_receive_drop);
    g_test_add_func("/net/stats/reset/zero", test_reset);
    g_test_add_func("/net/stats/reset/running", test_reset_while_running);
    return g_test_run();
}
