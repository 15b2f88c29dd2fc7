/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * tx=bh against simulated guests: what holds do to each, compared with the
 * same guest and kicks alone.  Time goes in steps of 100 ns.  Everything is
 * made of four costs: what a packet and a kick cost the guest, how long a
 * kick takes to wake the host, what a packet costs the host.
 */
#include <glib.h>

#include "hw/net/virtio-net-tx-policy.h"
#include "util/clock.h"

#define STEP_NS 100
#define HOLD_NS (50 * NS_PER_US)
#define RING    256
#define FRAME_BYTES 60

typedef struct Guest {
    unsigned packet_ns, kick_ns;    /* the guest's */
    unsigned wake_ns, send_ns;      /* the host's */
    unsigned outstanding;           /* requests at once; 0: a sender */
    unsigned answer_ns;             /* from a request sent to its answer */
    unsigned gap_ns;                /* a sender's, between packets */
    bool random;                    /* ... on average */
} Guest;

typedef enum HostState { ARMED, WAKING, SENDING, HOLDING } HostState;

typedef struct Sim {
    const Guest *g;
    TxPolicy policy;
    int64_t now_ns;
    /* the guest */
    int64_t free_ns;                /* busy until then */
    int64_t due_ns;                 /* a sender's next packet */
    unsigned ready;                 /* requests it may send */
    int64_t answers[RING];          /* when each request is answered */
    unsigned answer_head, answer_tail;
    uint32_t seed;
    /* the ring and the host */
    unsigned ring, pass;
    HostState host;
    int64_t host_ns;                /* end of what it does */
    /* counts */
    unsigned long sent, kicks, holds, decisions;
} Sim;

static void sim_init(Sim *s, const Guest *g, int64_t hold_ns)
{
    *s = (Sim) {
        .g = g,
        .ready = g->outstanding,
        .seed = 1,
        .policy = { .mode = VIRTIO_NET_TX_BH, .hold_ns = hold_ns },
    };
}

static bool guest_may_send(const Sim *s)
{
    if (s->now_ns < s->free_ns || s->ring == RING) {
        return false;
    }
    return s->g->outstanding ? s->ready > 0 : s->now_ns >= s->due_ns;
}

/* 0 to twice the gap, evenly: about as irregular as traffic gets. */
static unsigned next_gap(Sim *s)
{
    if (!s->g->random) {
        return s->g->gap_ns;
    }
    s->seed = s->seed * 1664525 + 1013904223;
    return (uint64_t)s->seed * 2 * s->g->gap_ns >> 32;
}

static void guest_step(Sim *s)
{
    while (s->answer_head != s->answer_tail &&
           s->answers[s->answer_head % RING] <= s->now_ns) {
        s->answer_head++;
        s->ready++;
    }
    if (!guest_may_send(s)) {
        return;
    }
    s->ready -= s->g->outstanding ? 1 : 0;
    s->due_ns += next_gap(s);
    s->free_ns = s->now_ns + s->g->packet_ns;
    s->ring++;
    if (s->host == ARMED) {
        s->kicks++;
        s->free_ns += s->g->kick_ns;
        s->host = WAKING;
        s->host_ns = s->now_ns + s->g->wake_ns;
    }
}

static void host_pass_ends(Sim *s)
{
    TxPass pass = { .packets = s->pass, .descs = s->pass,
                    .bytes = s->pass * FRAME_BYTES,
                    .reason = TX_STOP_RING_EMPTY };
    TxDecision d;

    tx_policy_note(&s->policy, s->now_ns, &pass);
    d = tx_policy_flushed(&s->policy, s->now_ns, &pass);
    s->decisions++;
    s->pass = 0;
    if (d.action == TX_HOLD) {
        g_assert_cmpint(d.deadline_ns, ==, s->now_ns + HOLD_NS);
        s->holds++;
        s->host = HOLDING;
        s->host_ns = d.deadline_ns;
        return;
    }
    g_assert_cmpint(d.action, ==, TX_ARM);
    s->host = ARMED;
}

static void host_step(Sim *s)
{
    if (s->host == ARMED || s->now_ns < s->host_ns) {
        return;
    }
    if (s->host != SENDING) {
        s->host = SENDING;
    } else {
        s->ring--;
        s->pass++;
        s->sent++;
        if (s->g->outstanding) {
            s->answers[s->answer_tail++ % RING] =
                s->now_ns + s->g->answer_ns;
        }
    }
    if (s->ring) {
        s->host_ns = s->now_ns + s->g->send_ns;
    } else {
        host_pass_ends(s);
    }
}

/* Go on for @ns; the counts are of this time. */
static void sim_run(Sim *s, int64_t ns)
{
    int64_t end_ns = s->now_ns + ns;

    s->sent = s->kicks = s->holds = s->decisions = 0;
    for (; s->now_ns < end_ns; s->now_ns += STEP_NS) {
        guest_step(s);
        host_step(s);
    }
}

/* The second second of @g: packets with holds over packets with kicks. */
static double gain(const Guest *g, Sim *s)
{
    Sim kicks;

    sim_init(&kicks, g, 0);
    sim_run(&kicks, NS_PER_SEC);
    sim_run(&kicks, NS_PER_SEC);
    g_assert_cmpuint(kicks.holds, ==, 0);
    sim_init(s, g, HOLD_NS);
    sim_run(s, NS_PER_SEC);
    sim_run(s, NS_PER_SEC);
    return (double)s->sent / kicks.sent;
}

/* ---- guests ---------------------------------------------------------- */

/* As fast as it can, and a kick costs it half a packet. */
static const Guest flood = { 11000, 5500, 15000, 4500, 0, 0, 0, false };

static void test_flood(void)
{
    Sim s;

    g_assert_cmpfloat(gain(&flood, &s), >=, 1.15);
    g_assert_cmpuint(s.kicks * 10, <, s.sent);
}

/* Requests, many at once: one that waits for a hold's end is not answered. */
static const Guest waiting[] = {
    { 500, 1000, 5000, 1000, 16, 8000, 0, false },
    { 500, 1000, 5000, 1000, 4, 8000, 0, false },
    { 500, 1000, 5000, 1000, 1, 8000, 0, false },       /* one at a time */
    { 50000, 5000, 20000, 5000, 1, 50000, 0, false },   /* a slow guest's */
};

static void test_waiting(void)
{
    for (unsigned i = 0; i < G_N_ELEMENTS(waiting); i++) {
        Sim s;

        g_assert_cmpfloat(gain(&waiting[i], &s), >=, 0.98);
        g_assert_cmpuint(s.holds * 50, <=, s.decisions);
    }
}

/* It sends at its own pace, so nothing is gained: kicks, for the latency. */
static void test_open_loop(void)
{
    static const unsigned gaps[] = { 500000, 100000, 33000, 14000, 5500 };

    for (unsigned i = 0; i < 2 * G_N_ELEMENTS(gaps); i++) {
        Guest g = { 1000, 1000, 15000, 2000, 0, 0, gaps[i / 2], i % 2 };
        Sim s;
        double ratio = gain(&g, &s);

        g_assert_cmpfloat(ratio, >, 0.99);
        g_assert_cmpfloat(ratio, <, 1.01);
        g_assert_cmpuint(s.holds * 50, <=, s.decisions);
    }
}

/* Another guest from now on, with nothing of the last left. */
static void sim_change(Sim *s, const Guest *g)
{
    s->g = g;
    s->ready = g->outstanding;
    s->answer_head = s->answer_tail;
    s->due_ns = s->now_ns;
    s->ring = 0;
    s->pass = 0;
    s->host = ARMED;
}

/*
 * What was learned of one load is forgotten with it, at whatever moment that
 * comes; at the latest with the next check, since held they may look alike.
 * (100 ms of holds and a few trials, of 500 ms.)
 */
static void test_load_changes(void)
{
    for (unsigned i = 0; i < 3; i++) {
        Sim kicks;

        sim_init(&kicks, &waiting[i], 0);
        sim_run(&kicks, NS_PER_SEC / 2);
        for (unsigned ms = 200; ms < 310; ms += 11) {
            Sim s;

            sim_init(&s, &flood, HOLD_NS);
            sim_run(&s, ms * NS_PER_MS);
            sim_change(&s, &waiting[i]);
            sim_run(&s, NS_PER_SEC / 2);
            g_assert_cmpfloat((double)s.sent / kicks.sent, >=, 0.75);
            sim_change(&s, &flood);
            sim_run(&s, NS_PER_SEC / 2);
            sim_run(&s, NS_PER_SEC / 2);
            g_assert_cmpuint(s.kicks * 10, <, s.sent);
        }
    }
}

/* A load that begins within a window, or grows, is not one that gains. */
static void test_lead_in(void)
{
    static const Guest trickle = { 1000, 1000, 5000, 1000, 0, 0, 900000,
                                   false };

    for (unsigned us = 0; us < 10000; us += 500) {
        Sim s;

        sim_init(&s, &trickle, HOLD_NS);
        sim_run(&s, 20 * NS_PER_MS + us * NS_PER_US);
        sim_change(&s, &waiting[1]);
        for (unsigned ms = 0; ms < 100; ms += 5) {
            sim_run(&s, 5 * NS_PER_MS);
            g_assert_cmpint(s.policy.pace.phase, !=, TX_PHASE_HOLD);
        }
    }
}

static void test_ramp(void)
{
    Guest g = { 1000, 1000, 15000, 2000, 0, 0, 30000, false };
    Sim s;

    sim_init(&s, &g, HOLD_NS);
    for (unsigned i = 0; i < 100; i++) {
        sim_run(&s, 2 * NS_PER_MS);
        g_assert_cmpint(s.policy.pace.phase, !=, TX_PHASE_HOLD);
        g.gap_ns -= g.gap_ns / 32;
    }
}

/* ---- decisions ------------------------------------------------------- */

#define EVERY_NS (40 * NS_PER_US)

typedef struct Feed {
    TxPolicy p;
    int64_t now_ns;
} Feed;

static void feed_init(Feed *f)
{
    *f = (Feed) {
        .p = { .mode = VIRTIO_NET_TX_BH, .hold_ns = HOLD_NS },
        .now_ns = NS_PER_SEC,
    };
}

/* One pass, and 40 us until the next. */
static TxAction feed_pass(Feed *f, unsigned packets, size_t bytes,
                          TxStop reason)
{
    TxPass pass = { .packets = packets, .descs = packets, .bytes = bytes,
                    .reason = reason };
    TxDecision d;

    tx_policy_note(&f->p, f->now_ns, &pass);
    d = tx_policy_flushed(&f->p, f->now_ns, &pass);
    f->now_ns += EVERY_NS;
    return d.action;
}

static TxAction feed(Feed *f, unsigned packets)
{
    return feed_pass(f, packets, packets * FRAME_BYTES, TX_STOP_RING_EMPTY);
}

/* Passes until @phase is over; returns how long that took. */
static int64_t feed_while(Feed *f, TxPhase phase, unsigned packets)
{
    int64_t begin_ns = f->now_ns;

    while (f->p.pace.phase == phase) {
        feed(f, packets);
    }
    return f->now_ns - begin_ns;
}

static void make_it_hold(Feed *f)
{
    feed_init(f);
    feed_while(f, TX_PHASE_KICK, 6);
    g_assert_cmpint(f->p.pace.phase, ==, TX_PHASE_TRIAL);
    feed_while(f, TX_PHASE_TRIAL, 9);
    g_assert_cmpint(f->p.pace.phase, ==, TX_PHASE_CHECK);
    feed_while(f, TX_PHASE_CHECK, 6);
    g_assert_cmpint(f->p.pace.phase, ==, TX_PHASE_HOLD);
}

/* While nothing is there, and after a silence, a kick is asked for. */
static void test_idle(void)
{
    Feed f;

    make_it_hold(&f);
    g_assert_cmpint(feed(&f, 9), ==, TX_HOLD);
    g_assert_cmpint(feed(&f, 0), ==, TX_ARM);
    g_assert_cmpint(feed(&f, 9), ==, TX_HOLD);
    f.now_ns += 20 * NS_PER_MS;
    g_assert_cmpint(feed(&f, 9), ==, TX_ARM);
}

/* More is there than the budget: go on, whatever the phase. */
static void test_budget(void)
{
    Feed f;

    make_it_hold(&f);
    g_assert_cmpint(feed_pass(&f, 512, 30720, TX_STOP_BUDGET), ==, TX_FLUSH);
}

/* However a burst is cut into passes, it is one look at the ring. */
static void test_small_budget(void)
{
    Feed f;

    feed_init(&f);
    for (unsigned i = 0; f.p.pace.phase == TX_PHASE_KICK; i++) {
        g_assert_cmpuint(i, <, 2000);
        for (unsigned j = 0; j < 3; j++) {
            g_assert_cmpint(feed_pass(&f, 1, FRAME_BYTES, TX_STOP_BUDGET), ==,
                            TX_FLUSH);
            f.now_ns -= EVERY_NS;
        }
        feed(&f, 0);
    }
    g_assert_cmpint(f.p.pace.phase, ==, TX_PHASE_TRIAL);
}

/* What a pass sent before the backend was full has been sent. */
static void test_full(void)
{
    Feed f;

    feed_init(&f);
    while (f.p.pace.phase == TX_PHASE_KICK) {
        feed(&f, 3);
        feed_pass(&f, 6, 6 * FRAME_BYTES, TX_STOP_BACKEND_FULL);
    }
    feed_while(&f, TX_PHASE_TRIAL, 5);
    g_assert_cmpint(f.p.pace.phase, ==, TX_PHASE_KICK);
}

/* Larger packets are more as well; as many smaller ones are not. */
static void test_bytes(void)
{
    static const struct {
        size_t kick, hold;
        TxPhase phase;
    } cases[] = {
        { 3 * 10000, 3 * 13000, TX_PHASE_CHECK },
        { 3 * 10000, 4 * 7000, TX_PHASE_KICK },
    };

    for (unsigned i = 0; i < G_N_ELEMENTS(cases); i++) {
        Feed f;

        feed_init(&f);
        while (f.p.pace.phase == TX_PHASE_KICK) {
            feed_pass(&f, 3, cases[i].kick, TX_STOP_RING_EMPTY);
        }
        while (f.p.pace.phase == TX_PHASE_TRIAL) {
            feed_pass(&f, 3 + i, cases[i].hold, TX_STOP_RING_EMPTY);
        }
        g_assert_cmpint(f.p.pace.phase, ==, cases[i].phase);
    }
}

/* Kicks are checked again now and then, in one window if all is as before. */
static void test_hold_ends(void)
{
    int64_t ns;
    Feed f;

    make_it_hold(&f);
    for (unsigned i = 0; i < 5; i++) {
        ns = feed_while(&f, TX_PHASE_HOLD, 9);
        g_assert_cmpint(ns, >, 90 * NS_PER_MS);
        g_assert_cmpint(ns, <, 115 * NS_PER_MS);
        g_assert_cmpint(f.p.pace.phase, ==, TX_PHASE_CHECK);
        g_assert_cmpint(feed_while(&f, TX_PHASE_CHECK, 6), <,
                        11 * NS_PER_MS);
        g_assert_cmpint(f.p.pace.phase, ==, TX_PHASE_HOLD);
    }
    feed_while(&f, TX_PHASE_HOLD, 9);
    feed_while(&f, TX_PHASE_CHECK, 9);
    g_assert_cmpint(f.p.pace.phase, ==, TX_PHASE_KICK);
}

/* A load that changes, to less or to more, is looked at anew. */
static void test_another_load(void)
{
    static const unsigned other[] = { 6, 12, 1 };
    Feed f;

    for (unsigned i = 0; i < G_N_ELEMENTS(other); i++) {
        make_it_hold(&f);
        g_assert_cmpint(feed_while(&f, TX_PHASE_HOLD, other[i]), <,
                        11 * NS_PER_MS);
        g_assert_cmpint(f.p.pace.phase, ==, TX_PHASE_KICK);
    }
}

/* A trial in vain waits 20 ms, 40 ms, ... 1.28 s for the next. */
static void test_backoff(void)
{
    int64_t wait_ms = 20;
    Feed f;

    feed_init(&f);
    feed_while(&f, TX_PHASE_KICK, 3);
    for (unsigned i = 0; i < 9; i++) {
        int64_t ns;

        g_assert_cmpint(f.p.pace.phase, ==, TX_PHASE_TRIAL);
        feed_while(&f, TX_PHASE_TRIAL, 3);
        ns = feed_while(&f, TX_PHASE_KICK, 3);
        g_assert_cmpint(ns, >=, (wait_ms - 1) * NS_PER_MS);
        g_assert_cmpint(ns, <=, (wait_ms + 11) * NS_PER_MS);
        wait_ms = MIN(2 * wait_ms, 1280);
    }
}

/* A stream that stops during its trial was not tried in vain. */
static void test_trial_cut_short(void)
{
    Feed f;

    feed_init(&f);
    for (unsigned i = 0; i < 9; i++) {
        g_assert_cmpint(feed_while(&f, TX_PHASE_KICK, 3), <, 22 * NS_PER_MS);
        g_assert_cmpint(f.p.pace.phase, ==, TX_PHASE_TRIAL);
        f.now_ns += 50 * NS_PER_MS;
        feed(&f, 3);
        g_assert_cmpint(f.p.pace.phase, ==, TX_PHASE_KICK);
    }
}

/* Bursts at one instant are no evidence: a clock that stands never holds. */
static void test_clock_stands(void)
{
    Feed f;

    feed_init(&f);
    for (unsigned i = 0; i < 100000; i++) {
        g_assert_cmpint(feed(&f, 10), ==, TX_ARM);
        f.now_ns = NS_PER_SEC;
    }
}

static void test_restart(void)
{
    Feed f;

    make_it_hold(&f);
    tx_policy_start(&f.p, 256, NULL);
    g_assert_cmpint(feed(&f, 9), ==, TX_ARM);
}

/* tx=timer knows no holds after a pass. */
static void test_timer(void)
{
    TxDecision d;
    Feed f;

    feed_init(&f);
    f.p.mode = VIRTIO_NET_TX_TIMER;
    f.p.timer_ns = 150000;
    for (unsigned i = 0; i < 10000; i++) {
        g_assert_cmpint(feed(&f, i % 9), ==, TX_ARM);
    }
    d = tx_policy_work(&f.p, f.now_ns);
    g_assert_cmpint(d.action, ==, TX_HOLD);
    g_assert_cmpint(d.deadline_ns, ==, f.now_ns + 150000);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/net/tx-policy/flood", test_flood);
    g_test_add_func("/net/tx-policy/waiting", test_waiting);
    g_test_add_func("/net/tx-policy/open-loop", test_open_loop);
    g_test_add_func("/net/tx-policy/load-changes", test_load_changes);
    g_test_add_func("/net/tx-policy/lead-in", test_lead_in);
    g_test_add_func("/net/tx-policy/ramp", test_ramp);
    g_test_add_func("/net/tx-policy/idle", test_idle);
    g_test_add_func("/net/tx-policy/budget", test_budget);
    g_test_add_func("/net/tx-policy/small-budget", test_small_budget);
    g_test_add_func("/net/tx-policy/full", test_full);
    g_test_add_func("/net/tx-policy/bytes", test_bytes);
    g_test_add_func("/net/tx-policy/hold-ends", test_hold_ends);
    g_test_add_func("/net/tx-policy/another-load", test_another_load);
    g_test_add_func("/net/tx-policy/backoff", test_backoff);
    g_test_add_func("/net/tx-policy/trial-cut-short", test_trial_cut_short);
    g_test_add_func("/net/tx-policy/clock-stands", test_clock_stands);
    g_test_add_func("/net/tx-policy/restart", test_restart);
    g_test_add_func("/net/tx-policy/timer", test_timer);
    return g_test_run();
}
