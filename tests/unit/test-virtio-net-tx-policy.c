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

typedef struct Guest {
    unsigned packet_ns, kick_ns;    /* the guest's */
    unsigned wake_ns, send_ns;      /* the host's */
    unsigned outstanding;           /* requests at once; 0: a sender */
    unsigned answer_ns;             /* from a request sent to its answer */
    unsigned gap_ns;                /* a sender's, between packets */
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
    s->due_ns += s->g->gap_ns;
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
    TxDecision d = tx_policy_flushed(&s->policy, s->now_ns, s->pass,
                                     TX_STOP_RING_EMPTY);

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
static const Guest flood = { 11000, 5500, 15000, 4500, 0, 0, 0 };

/* Many requests at once: what waits for the end of a hold is not answered. */
static const Guest pipeline = { 500, 1000, 5000, 1000, 16, 8000, 0 };

static void test_flood(void)
{
    Sim s;

    g_assert_cmpfloat(gain(&flood, &s), >=, 1.15);
    g_assert_cmpuint(s.kicks * 10, <, s.sent);
}

static const Guest waiting[] = {
    { 500, 1000, 5000, 1000, 16, 8000, 0 },
    { 500, 1000, 5000, 1000, 4, 8000, 0 },
    { 500, 1000, 5000, 1000, 1, 8000, 0 },      /* one at a time */
    { 50000, 5000, 20000, 5000, 1, 50000, 0 },  /* ... of a slow guest */
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

    for (unsigned i = 0; i < G_N_ELEMENTS(gaps); i++) {
        Guest g = { 1000, 1000, 15000, 2000, 0, 0, gaps[i] };
        Sim s;
        double ratio = gain(&g, &s);

        g_assert_cmpfloat(ratio, >, 0.999);
        g_assert_cmpfloat(ratio, <, 1.001);
        g_assert_cmpuint(s.holds * 50, <=, s.decisions);
    }
}

/* What was learned of one load is forgotten with it. */
static void test_load_changes(void)
{
    Sim s, kicks;

    sim_init(&kicks, &pipeline, 0);
    sim_run(&kicks, NS_PER_SEC);
    sim_init(&s, &flood, HOLD_NS);
    sim_run(&s, NS_PER_SEC);
    s.g = &pipeline;
    s.ready = pipeline.outstanding;
    sim_run(&s, NS_PER_SEC);
    g_assert_cmpfloat((double)s.sent / kicks.sent, >=, 0.9);
    s.g = &flood;
    s.due_ns = s.now_ns;
    sim_run(&s, 2 * NS_PER_SEC);
    sim_run(&s, NS_PER_SEC);
    g_assert_cmpuint(s.kicks * 10, <, s.sent);
}

/* ---- decisions ------------------------------------------------------- */

/* Passes that bring @packets each @every_ns, for @ns. */
static TxDecision feed(TxPolicy *p, int64_t *now_ns, unsigned packets,
                       int64_t every_ns, int64_t ns)
{
    TxDecision d = { TX_ARM };

    for (int64_t end = *now_ns + ns; *now_ns < end; *now_ns += every_ns) {
        d = tx_policy_flushed(p, *now_ns, packets, TX_STOP_RING_EMPTY);
    }
    return d;
}

/* ... every 40 us, until @phase is over. */
static void feed_while(TxPolicy *p, int64_t *now_ns, TxPhase phase,
                       unsigned packets)
{
    while (p->pace.phase == phase) {
        feed(p, now_ns, packets, 40 * NS_PER_US, 40 * NS_PER_US);
    }
}

static void make_it_hold(TxPolicy *p, int64_t *now_ns)
{
    *p = (TxPolicy) { .mode = VIRTIO_NET_TX_BH, .hold_ns = HOLD_NS };
    feed(p, now_ns, 3, 40 * NS_PER_US, 12 * NS_PER_MS);
    g_assert_cmpint(p->pace.phase, ==, TX_PHASE_TRIAL);
    feed(p, now_ns, 5, 40 * NS_PER_US, 15 * NS_PER_MS);
    g_assert_cmpint(p->pace.phase, ==, TX_PHASE_HOLD);
}

/* While nothing is there, and after a silence, a kick is asked for. */
static void test_idle(void)
{
    int64_t now_ns = NS_PER_SEC;
    TxPolicy p;

    make_it_hold(&p, &now_ns);
    g_assert_cmpint(feed(&p, &now_ns, 5, 40000, 40000).action, ==, TX_HOLD);
    g_assert_cmpint(feed(&p, &now_ns, 0, 40000, 40000).action, ==, TX_ARM);
    g_assert_cmpint(feed(&p, &now_ns, 5, 40000, 40000).action, ==, TX_HOLD);
    now_ns += 20 * NS_PER_MS;
    g_assert_cmpint(feed(&p, &now_ns, 5, 40000, 40000).action, ==, TX_ARM);
}

/* More is there than the budget: go on, whatever the phase. */
static void test_budget(void)
{
    int64_t now_ns = NS_PER_SEC;
    TxPolicy p;

    make_it_hold(&p, &now_ns);
    g_assert_cmpint(tx_policy_flushed(&p, now_ns, 512,
                                      TX_STOP_BUDGET).action, ==, TX_FLUSH);
}

/* Kicks are tried again now and then. */
static void test_hold_ends(void)
{
    int64_t now_ns = NS_PER_SEC, begin_ns;
    TxPolicy p;

    make_it_hold(&p, &now_ns);
    begin_ns = now_ns;
    feed_while(&p, &now_ns, TX_PHASE_HOLD, 5);
    g_assert_cmpint(p.pace.phase, ==, TX_PHASE_KICK);
    g_assert_cmpint(now_ns - begin_ns, >, 180 * NS_PER_MS);
    g_assert_cmpint(now_ns - begin_ns, <, 220 * NS_PER_MS);
    begin_ns = now_ns;
    feed_while(&p, &now_ns, TX_PHASE_KICK, 3);
    g_assert_cmpint(p.pace.phase, ==, TX_PHASE_TRIAL);
    g_assert_cmpint(now_ns - begin_ns, <, 11 * NS_PER_MS);
}

/* A trial in vain waits 20 ms, 40 ms, ... 1.28 s for the next. */
static void test_backoff(void)
{
    TxPolicy p = { .mode = VIRTIO_NET_TX_BH, .hold_ns = HOLD_NS };
    int64_t now_ns = NS_PER_SEC, wait_ms = 20;

    for (unsigned i = 0; i < 9; i++) {
        feed_while(&p, &now_ns, TX_PHASE_KICK, 3);
        g_assert_cmpint(p.pace.phase, ==, TX_PHASE_TRIAL);
        feed_while(&p, &now_ns, TX_PHASE_TRIAL, 3);
        g_assert_cmpint(p.pace.phase, ==, TX_PHASE_KICK);
        g_assert_cmpint(p.pace.backoff_ns, ==, wait_ms * NS_PER_MS);
        wait_ms = MIN(2 * wait_ms, 1280);
    }
}

/* Bursts at one instant are no evidence: a clock that stands never holds. */
static void test_clock_stands(void)
{
    TxPolicy p = { .mode = VIRTIO_NET_TX_BH, .hold_ns = HOLD_NS };

    for (unsigned i = 0; i < 100000; i++) {
        g_assert_cmpint(tx_policy_flushed(&p, 7, 10,
                                          TX_STOP_RING_EMPTY).action, ==,
                        TX_ARM);
    }
}

/* tx=timer knows no holds after a pass. */
static void test_timer(void)
{
    TxPolicy p = { .mode = VIRTIO_NET_TX_TIMER, .timer_ns = 150000,
                   .hold_ns = HOLD_NS };
    int64_t now_ns = NS_PER_SEC;
    TxDecision d;

    for (unsigned i = 1; i < 10; i++) {
        g_assert_cmpint(feed(&p, &now_ns, i, 200000, NS_PER_SEC / 10).action,
                        ==, TX_ARM);
    }
    d = tx_policy_work(&p, now_ns);
    g_assert_cmpint(d.action, ==, TX_HOLD);
    g_assert_cmpint(d.deadline_ns, ==, now_ns + 150000);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/net/tx-policy/flood", test_flood);
    g_test_add_func("/net/tx-policy/waiting", test_waiting);
    g_test_add_func("/net/tx-policy/open-loop", test_open_loop);
    g_test_add_func("/net/tx-policy/load-changes", test_load_changes);
    g_test_add_func("/net/tx-policy/idle", test_idle);
    g_test_add_func("/net/tx-policy/budget", test_budget);
    g_test_add_func("/net/tx-policy/hold-ends", test_hold_ends);
    g_test_add_func("/net/tx-policy/backoff", test_backoff);
    g_test_add_func("/net/tx-policy/clock-stands", test_clock_stands);
    g_test_add_func("/net/tx-policy/timer", test_timer);
    return g_test_run();
}
