/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * tx=adaptive in the device: what each setting asks of the driver, how long a
 * packet waits, and what a stop or a full backend finds.  The setting is put
 * in place by hand; when which one is chosen is test-tx-sim.c's.
 */
#include <unistd.h>

#include "nic-harness.h"

static VirtIONetTx *tx_of(NicHarness *h)
{
    return &h->nic->pairs[0]->tx;
}

static TxAdaptive *policy_of(NicHarness *h)
{
    return &tx_of(h)->policy.adaptive;
}

/*
 * A device of this setting that has just carried a packet.  The virtual clock
 * moves by microseconds from here on, so no window of measurement ends.
 */
static NicHarness *new_with(uint64_t features, TxKind kind, uint8_t step)
{
    NicHarness *h = nic_harness_new(&(NicOptions) {
        .features = features, .props = "tx=adaptive,tx-latency=320",
        .vnet = features & VH_FEATURE(VIRTIO_NET_F_CSUM) });
    TxAdaptive *a = policy_of(h);

    h->net->record = false;
    nic_harness_transmit(h, 1, 60);
    nic_harness_tx_used(h);
    g_assert_cmpint(a->setting.kind, ==, TX_KIND_KICK);
    a->setting = (TxSetting) { kind, step };
    a->window = 10;
    return h;
}

/* Publish one; does the driver kick? */
static bool publish(NicHarness *h)
{
    bool kicked;

    nic_harness_send(h, 0, 60);
    kicked = nic_harness_kick(h, 1);
    nic_harness_run(h);
    return kicked;
}

static void assert_idle(NicHarness *h)
{
    g_assert_cmpint(tx_of(h)->state, ==, TX_STATE_IDLE);
    /* (completions may be held back for a call) */
    g_assert_false(aio_timer_armed(&tx_of(h)->deadline));
}

/* ---- WINDOW ---------------------------------------------------------- */

/* Of W packets the last one kicks, and takes the others with it. */
static void test_window(void)
{
    NicHarness *h = new_with(0, TX_KIND_WINDOW, 0);
    unsigned w = tx_adaptive_window(policy_of(h));
    unsigned sent;

    g_assert_cmpuint(w, ==, 10);
    g_assert_true(publish(h));
    sent = h->net->sent;
    g_assert_cmpint(tx_of(h)->state, ==, TX_STATE_ARMED);
    for (unsigned i = 1; i < w; i++) {
        g_assert_false(publish(h));
        g_assert_cmpuint(h->net->sent, ==, sent);
    }
    g_assert_true(publish(h));
    g_assert_cmpuint(h->net->sent, ==, sent + w);
    g_assert_cmpuint(nic_harness_stat(h, 1, "fires_window"), ==, 0);
    nic_harness_free(h);
}

/* A window that is full leaves no deadline behind, whatever is next. */
static void test_window_deadline_ends(void)
{
    NicHarness *h = new_with(0, TX_KIND_WINDOW, 0);
    unsigned w = tx_adaptive_window(policy_of(h));

    publish(h);
    policy_of(h)->setting = (TxSetting) { TX_KIND_KICK };
    for (unsigned i = 0; i < w; i++) {
        publish(h);
    }
    assert_idle(h);
    nic_harness_step(h, NS_PER_MS);
    g_assert_cmpuint(nic_harness_stat(h, 1, "fires"), ==, 0);
    nic_harness_free(h);
}

/* Fewer than W: the deadline, no later than tx-latency from the arm. */
static void test_window_deadline(void)
{
    NicHarness *h = new_with(0, TX_KIND_WINDOW, 0);
    unsigned sent;

    publish(h);
    sent = h->net->sent;
    g_assert_false(publish(h));
    g_assert_false(publish(h));
    nic_harness_step(h, 250 * NS_PER_US);
    g_assert_cmpuint(h->net->sent, ==, sent);
    nic_harness_step(h, 70 * NS_PER_US);
    g_assert_cmpuint(h->net->sent, ==, sent + 2);
    g_assert_cmpuint(nic_harness_stat(h, 1, "fires_window"), ==, 1);
    nic_harness_free(h);
}

/* A window that nobody used ends with a plain arm: no timer on an idle ring. */
static void test_window_empty(void)
{
    NicHarness *h = new_with(0, TX_KIND_WINDOW, 0);

    publish(h);
    nic_harness_step(h, 320 * NS_PER_US);
    assert_idle(h);
    g_assert_true(publish(h));
    nic_harness_free(h);
}

typedef struct Meanwhile {
    NicHarness *h;
    unsigned packets;
    unsigned kicks;
} Meanwhile;

static void publish_quietly(void *opaque)
{
    Meanwhile *m = opaque;

    for (; m->packets; m->packets--) {
        nic_harness_send(m->h, 0, 60);
        m->kicks += nic_harness_kick(m->h, 1);
    }
}

/*
 * What is published while a pass runs is taken by that pass; the window is
 * counted from what it saw last.
 */
static void test_window_during_pass(void)
{
    NicHarness *h = new_with(0, TX_KIND_WINDOW, 0);
    unsigned w = tx_adaptive_window(policy_of(h));
    Meanwhile m = { .h = h, .packets = 3 };
    unsigned sent = h->net->sent;

    h->net->on_send = publish_quietly;
    h->net->on_send_opaque = &m;
    g_assert_true(publish(h));
    g_assert_cmpuint(h->net->sent, ==, sent + 4);
    for (unsigned i = 1; i < w; i++) {
        g_assert_false(publish(h));
    }
    g_assert_true(publish(h));
    nic_harness_free(h);
}

/* A deadline's pass: the window is given up, and kicks nobody. */
static void test_window_deadline_quiet(void)
{
    NicHarness *h = new_with(0, TX_KIND_WINDOW, 0);
    unsigned w = tx_adaptive_window(policy_of(h));
    Meanwhile m = { .h = h, .packets = w };
    unsigned sent;

    publish(h);
    sent = h->net->sent;
    publish(h);
    h->net->on_send = publish_quietly;
    h->net->on_send_opaque = &m;
    nic_harness_step(h, 320 * NS_PER_US);
    g_assert_cmpuint(h->net->sent, ==, sent + 1 + w);
    g_assert_cmpuint(m.kicks, ==, 0);
    nic_harness_free(h);
}

/* Chains of several descriptors: the window is what fits a quarter ring. */
static void test_window_descriptors(void)
{
    NicHarness *h = new_with(0, TX_KIND_WINDOW, 0);
    TxAdaptive *a = policy_of(h);

    a->gap_ns = 100;
    a->spare_4 = 4;
    a->descs_16 = 16;
    g_assert_cmpuint(tx_adaptive_fit(a), ==, 64);
    a->descs_16 = 4 * 16;
    g_assert_cmpuint(tx_adaptive_fit(a), ==, 16);
    /* packets that come more slowly than a wait lasts: each one kicks */
    a->gap_ns = NS_PER_MS;
    g_assert_cmpuint(tx_adaptive_fit(a), ==, 1);
    a->gap_ns = 0;
    g_assert_cmpuint(tx_adaptive_fit(a), ==, 1);
    nic_harness_free(h);
}

/* Without EVENT_IDX nobody counts for us: kicks off, and the deadline. */
static void test_window_flags(void)
{
    NicHarness *h = new_with(NH_MODERN & ~VH_EVENT_IDX, TX_KIND_WINDOW, 0);
    unsigned w = tx_adaptive_window(policy_of(h));
    unsigned sent;

    g_assert_true(publish(h));
    sent = h->net->sent;
    for (unsigned i = 0; i < w + 5; i++) {
        g_assert_false(publish(h));
    }
    g_assert_cmpuint(h->net->sent, ==, sent);
    nic_harness_step(h, 320 * NS_PER_US);
    g_assert_cmpuint(h->net->sent, ==, sent + w + 5);
    nic_harness_step(h, 320 * NS_PER_US);
    assert_idle(h);
    g_assert_true(publish(h));
    nic_harness_free(h);
}

/* ---- DELAY and HOLD -------------------------------------------------- */

/* The kick starts the wait; more packets join, without kicks. */
static void check_delay(uint64_t features)
{
    NicHarness *h = new_with(features, TX_KIND_DELAY, TX_STEPS - 1);
    unsigned sent = h->net->sent;
    int64_t wait_ns = tx_adaptive_wait_ns(policy_of(h));

    g_assert_cmpint(wait_ns, ==, 300 * NS_PER_US);
    g_assert_true(publish(h));
    g_assert_cmpint(tx_of(h)->state, ==, TX_STATE_HOLDING);
    nic_harness_step(h, wait_ns / 2);
    g_assert_false(publish(h));
    nic_harness_step(h, wait_ns / 2 - 1);
    g_assert_cmpuint(h->net->sent, ==, sent);
    nic_harness_step(h, 1);
    g_assert_cmpuint(h->net->sent, ==, sent + 2);
    assert_idle(h);
    nic_harness_free(h);
}

static void test_delay(void)
{
    check_delay(NH_MODERN);
    check_delay(NH_MODERN & ~VH_EVENT_IDX);
}

/* The pass starts the wait; only an empty one asks for a kick. */
static void test_hold(void)
{
    NicHarness *h = new_with(0, TX_KIND_HOLD, 3);
    unsigned sent = h->net->sent;
    int64_t wait_ns = tx_adaptive_wait_ns(policy_of(h));

    g_assert_cmpint(wait_ns, ==, 75 * NS_PER_US);
    g_assert_true(publish(h));
    g_assert_cmpuint(h->net->sent, ==, sent + 1);
    for (unsigned i = 2; i < 5; i++) {
        g_assert_false(publish(h));
        nic_harness_step(h, wait_ns);
        g_assert_cmpuint(h->net->sent, ==, sent + i);
    }
    nic_harness_step(h, wait_ns);
    assert_idle(h);
    nic_harness_free(h);
}

/* Lateness comes off the allowance, and the shortest waits go first. */
static void test_late(void)
{
    NicHarness *h = new_with(0, TX_KIND_HOLD, TX_STEPS - 1);
    TxAdaptive *a = policy_of(h);

    g_assert_cmpint(tx_adaptive_wait_ns(a), ==, 300 * NS_PER_US);
    for (unsigned i = 0; i < 100; i++) {
        tx_adaptive_fired(a, 40 * NS_PER_US, false);
    }
    /* 300 - 5/4 of 40 */
    g_assert_cmpint(tx_adaptive_wait_ns(a), ==, 250 * NS_PER_US);
    a->setting.step = 0;
    g_assert_cmpint(tx_adaptive_kind(a), ==, TX_KIND_KICK);
    a->setting.step = 2;
    g_assert_cmpint(tx_adaptive_kind(a), ==, TX_KIND_HOLD);
    /* a machine too slow for any wait */
    for (unsigned i = 0; i < 100; i++) {
        tx_adaptive_fired(a, NS_PER_MS, false);
    }
    a->setting.step = TX_STEPS - 1;
    g_assert_cmpint(tx_adaptive_kind(a), ==, TX_KIND_KICK);
    nic_harness_free(h);
}

/* A host that was elsewhere for once takes little off the waits after that. */
static void test_late_once(void)
{
    NicHarness *h = new_with(0, TX_KIND_DELAY, TX_STEPS - 1);
    TxAdaptive *a = policy_of(h);
    int64_t wait_ns;

    for (unsigned i = 0; i < 100; i++) {
        tx_adaptive_fired(a, 40 * NS_PER_US, false);
    }
    wait_ns = tx_adaptive_wait_ns(a);
    tx_adaptive_fired(a, 5 * NS_PER_MS, false);
    g_assert_cmpint(tx_adaptive_wait_ns(a), <, wait_ns);
    g_assert_cmpint(tx_adaptive_wait_ns(a), >, wait_ns * 9 / 10);
    g_assert_cmpint(tx_adaptive_kind(a), ==, TX_KIND_DELAY);
    nic_harness_free(h);
}

/* ---- another load ---------------------------------------------------- */

/* A window of 10 ms with that many packets of no bytes. */
static void judge_window_of(TxAdaptive *a, int64_t *now_ns, unsigned packets)
{
    tx_adaptive_note(a, &(TxPass) { .packets = packets, .descs = packets });
    *now_ns += 10 * NS_PER_MS;
    tx_adaptive_judge(a, *now_ns, 0);
}

/*
 * A stream makes way for something of a tenth of its rate: three windows later
 * kicks are in force, however much the stream's own rate had changed.
 */
static void check_collapse(int64_t variance)
{
    NicHarness *h = new_with(0, TX_KIND_DELAY, TX_STEPS - 1);
    TxAdaptive *a = policy_of(h);
    int64_t now_ns = clock_now_ns(h->clock);

    a->is_settling = false;
    a->begin_ns = now_ns;
    a->credit_ns = -NS_PER_SEC;         /* no comparisons here */
    a->known_rate = 0;
    judge_window_of(a, &now_ns, 1000);
    a->variance = variance;
    for (unsigned i = 0; i < 3; i++) {
        g_assert_cmpint(tx_adaptive_kind(a), ==, TX_KIND_DELAY);
        judge_window_of(a, &now_ns, 100);
    }
    g_assert_cmpint(tx_adaptive_kind(a), ==, TX_KIND_KICK);
    nic_harness_free(h);
}

static void test_collapse(void)
{
    check_collapse(80 * 80);
    check_collapse(200 * 200);
    check_collapse(600 * 600);
}

/* What a deadline was late comes off the next wait. */
static void test_late_deadline(void)
{
    NicHarness *h = new_with(0, TX_KIND_HOLD, TX_STEPS - 1);
    int64_t wait_ns = tx_adaptive_wait_ns(policy_of(h));

    publish(h);
    nic_harness_step(h, wait_ns + 40 * NS_PER_US);
    g_assert_cmpint(policy_of(h)->late_ns, >, 0);
    g_assert_cmpint(tx_adaptive_wait_ns(policy_of(h)), <, wait_ns);
    nic_harness_free(h);
}

/* ---- ends ------------------------------------------------------------ */

/*
 * A stop within any wait: nothing is sent, the ring is the next owner's, the
 * deadline is off; nothing is known of the driver afterwards.
 */
static void check_stop(TxKind kind)
{
    NicHarness *h = new_with(0, kind, TX_STEPS - 1);
    unsigned sent;
    uint16_t base;

    publish(h);
    sent = h->net->sent;
    publish(h);
    base = virtio_net_queue_stop(h->nic, 1);
    g_assert_cmpuint(base, ==, (uint16_t)sent);
    g_assert_cmpint(aio_next_deadline_ns(h->ctx), ==, INT64_MAX);
    nic_harness_send(h, 0, 60);
    nic_harness_step(h, NS_PER_MS);
    g_assert_cmpuint(h->net->sent, ==, sent);
    close(h->kick[1]);
    close(h->call[1]);
    nic_harness_start(h, 1, base);
    nic_harness_run(h);
    g_assert_cmpuint(h->net->sent, ==, h->tx.avail_idx);
    g_assert_cmpint(policy_of(h)->setting.kind, ==, TX_KIND_KICK);
    assert_idle(h);
    nic_harness_free(h);
}

static void test_stop(void)
{
    check_stop(TX_KIND_WINDOW);
    check_stop(TX_KIND_DELAY);
    check_stop(TX_KIND_HOLD);
}

/* A backend that is full when the deadline comes: no timer, no loss. */
static void check_full(TxKind kind)
{
    NicHarness *h = new_with(0, kind, TX_STEPS - 1);
    unsigned sent = h->net->sent;

    publish(h);
    nic_harness_step(h, 320 * NS_PER_US);
    h->net->room = 1;
    for (unsigned i = 0; i < 3; i++) {
        publish(h);
    }
    nic_harness_step(h, 320 * NS_PER_US);
    g_assert_cmpint(tx_of(h)->state, ==, TX_STATE_BLOCKED);
    g_assert_false(aio_timer_armed(&tx_of(h)->deadline));
    fake_net_ready(h->net, UINT_MAX);
    nic_harness_run(h);
    g_assert_cmpuint(h->net->sent, ==, sent + 4);
    nic_harness_free(h);
}

static void test_full(void)
{
    check_full(TX_KIND_WINDOW);
    check_full(TX_KIND_DELAY);
    check_full(TX_KIND_HOLD);
}

/* A context that polls asks for kicks, whatever the policy would. */
static void test_polling(void)
{
    NicHarness *h = nic_harness_new(&(NicOptions) {
        .props = "tx=adaptive", .poll = true });

    policy_of(h)->setting = (TxSetting) { TX_KIND_HOLD, TX_STEPS - 1 };
    nic_harness_transmit(h, 1, 60);
    g_assert_cmpuint(h->net->sent, ==, 1);
    g_assert_false(aio_timer_armed(&tx_of(h)->deadline));
    nic_harness_free(h);
}

/* On a clock that stands nothing is judged, whatever comes. */
static void test_standing_clock(void)
{
    NicHarness *h = nic_harness_new(&(NicOptions) {
        .props = "tx=adaptive" });

    h->net->record = false;
    for (unsigned i = 0; i < 1000; i++) {
        nic_harness_transmit(h, 20, 60);
        nic_harness_tx_used(h);
    }
    g_assert_cmpuint(h->net->sent, ==, 20000);
    g_assert_cmpint(policy_of(h)->turn, ==, TX_TURN_NONE);
    g_assert_cmpint(policy_of(h)->setting.kind, ==, TX_KIND_KICK);
    nic_harness_free(h);
}

/* ---- groups ---------------------------------------------------------- */

/* Queues of one context have one group; it goes with the last of them. */
static void test_group(void)
{
    Clock *clock = clock_virtual_new(0);
    AioContext *ctx[2];
    TxGroup *g[3];

    for (unsigned i = 0; i < 2; i++) {
        ctx[i] = aio_context_new("group", clock, NULL);
    }
    g[0] = tx_group_get(ctx[0]);
    g[1] = tx_group_get(ctx[1]);
    g[2] = tx_group_get(ctx[0]);
    g_assert_true(g[0] == g[2]);
    g_assert_true(g[0] != g[1]);
    for (unsigned i = 0; i < 3; i++) {
        tx_group_put(g[i]);
    }
    for (unsigned i = 0; i < 2; i++) {
        aio_context_free(ctx[i]);
    }
    clock_free(clock);
}

/* Whoever stops lets the others compare, in any order. */
static void test_group_leave(void)
{
    TxGroup g = { 0 };
    TxAdaptive a[3];

    for (unsigned i = 0; i < 3; i++) {
        tx_adaptive_init(&a[i], 300 * NS_PER_US);
        tx_adaptive_start(&a[i], 256, &g);
    }
    g.comparing = &a[1];
    tx_adaptive_stop(&a[0]);
    g_assert_true(g.comparing == &a[1]);
    tx_adaptive_stop(&a[1]);
    tx_adaptive_stop(&a[1]);
    g_assert_null(g.comparing);
    g_assert_true(g.first == &a[2]);
    tx_adaptive_stop(&a[2]);
    g_assert_null(g.first);
}

/* ---- others beside a stream ------------------------------------------- */

typedef struct CompanyCase {
    const char *name;
    unsigned packets, bytes;    /* of the stream, in a window */
    unsigned small;             /* and of the others, in every every-th */
    unsigned every;
    bool expected;
} CompanyCase;

static const CompanyCase company_cases[] = {
    { "ping", 500, 1500, 1, 1, true },
    { "ping-of-large", 64, 65000, 1, 2, true },
    { "acks", 400, 30000, 400, 1, true },
    { "none", 500, 1500, 0, 1, false },
    { "seldom", 500, 1500, 1, 12, false },
    { "all-small", 0, 0, 500, 1, false },
    { "mostly-small", 20, 1500, 480, 1, false },
};

/* A window of 10 ms; returns the longest wait after it. */
static int64_t company_window(TxAdaptive *a, int64_t *now_ns,
                              const CompanyCase *c, bool with_small)
{
    unsigned small = with_small ? c->small : 0;
    const TxPass pass = {
        .packets = c->packets + small, .descs = c->packets + small,
        .lone = small, .bytes = c->packets * c->bytes + small * 100,
    };

    tx_adaptive_note(a, &pass);
    *now_ns += 10 * NS_PER_MS;
    tx_adaptive_judge(a, *now_ns, 0);
    a->setting = (TxSetting) { TX_KIND_HOLD, TX_STEPS - 1 };
    a->turn = TX_TURN_NONE;
    a->credit_ns = -NS_PER_SEC;
    return tx_adaptive_wait_ns(a);
}

/*
 * A wait is short beside packets that are none of the stream's, however few and
 * whatever the rates say; it is not when there are none any more, and not
 * beside one in a while.
 */
static void test_company(gconstpointer opaque)
{
    const CompanyCase *c = opaque;
    TxGroup g = { 0 };
    TxAdaptive a;
    int64_t now_ns = NS_PER_SEC, alone_ns, wait_ns = 0;

    tx_adaptive_init(&a, 300 * NS_PER_US);
    tx_adaptive_start(&a, 256, &g);
    a.is_settling = false;
    a.begin_ns = now_ns;
    alone_ns = company_window(&a, &now_ns, c, false);
    for (unsigned i = 1; i <= 96; i++) {
        wait_ns = company_window(&a, &now_ns, c, i % c->every == 0);
        if (i > 4) {
            g_assert_cmpint(wait_ns, ==, c->expected ? alone_ns / 4
                                                     : alone_ns);
        }
    }
    for (unsigned i = 0; i < 20; i++) {
        wait_ns = company_window(&a, &now_ns, c, false);
    }
    g_assert_cmpint(wait_ns, ==, alone_ns);
    tx_adaptive_stop(&a);
}

/* What the device takes for one: small, and known to be no segment of TCP. */
static void test_company_packets(void)
{
    static const struct {
        uint64_t features;
        unsigned bytes;
        bool is_lone;
    } cases[] = {
        { VH_FEATURE(VIRTIO_NET_F_CSUM), 60, true },
        { VH_FEATURE(VIRTIO_NET_F_CSUM), 200, true },
        { VH_FEATURE(VIRTIO_NET_F_CSUM), 300, false },
        { 0, 60, false },
    };

    for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
        NicHarness *h = new_with(cases[i].features, TX_KIND_KICK, 0);
        uint64_t before = policy_of(h)->lone;

        nic_harness_transmit(h, 3, cases[i].bytes);
        g_assert_cmpuint(policy_of(h)->lone - before, ==,
                         cases[i].is_lone ? 3 : 0);
        nic_harness_free(h);
    }
}

/* With it and without it, another load begins with kicks. */
static void test_company_begins(void)
{
    TxGroup g = { 0 };
    TxAdaptive a;
    int64_t now_ns = NS_PER_SEC;
    unsigned kicks = 0;
    const TxPass with = { .packets = 100, .descs = 100, .lone = 1,
                          .bytes = 150000 };
    const TxPass without = { .packets = 100, .descs = 100, .bytes = 150000 };

    tx_adaptive_init(&a, 300 * NS_PER_US);
    tx_adaptive_start(&a, 256, &g);
    a.is_settling = false;
    a.begin_ns = now_ns;
    for (unsigned i = 0; i < 60; i++) {
        a.setting = (TxSetting) { TX_KIND_DELAY, TX_STEPS - 1 };
        a.turn = TX_TURN_NONE;
        a.is_settling = false;
        a.credit_ns = -NS_PER_SEC;
        tx_adaptive_note(&a, i < 30 ? &with : &without);
        now_ns += 10 * NS_PER_MS;
        tx_adaptive_judge(&a, now_ns, 0);
        kicks += a.setting.kind == TX_KIND_KICK;
    }
    g_assert_cmpuint(kicks, ==, 2);
    tx_adaptive_stop(&a);
}

/*
 * Two queues of one thread, each with a pass of 50 packets a millisecond; the
 * second begins only when the first one's comparison is on.  That is not what
 * the challenger did: equal rates stay equal.
 */
static void test_group_newcomer(void)
{
    TxGroup g = { 0 };
    TxAdaptive a, b;
    const TxPass pass = { .packets = 50, .descs = 50, .bytes = 50 * 100 };
    int64_t now_ns = NS_PER_SEC;
    unsigned changes = 0;

    tx_adaptive_init(&a, 300 * NS_PER_US);
    tx_adaptive_init(&b, 300 * NS_PER_US);
    tx_adaptive_start(&a, 256, &g);
    for (unsigned i = 0; i < 90; i++) {
        now_ns += NS_PER_MS;
        tx_adaptive_note(&a, &pass);
        if (a.turn != TX_TURN_NONE && !b.group) {
            tx_adaptive_start(&b, 256, &g);
        }
        if (b.group) {
            tx_adaptive_note(&b, &pass);
        }
        if (tx_adaptive_is_due(&a, now_ns)) {
            tx_adaptive_judge(&a, now_ns, 0);
            changes += a.setting.kind != TX_KIND_KICK;
        }
    }
    g_assert_nonnull(b.group);
    g_assert_cmpuint(changes, ==, 0);
    tx_adaptive_stop(&a);
    tx_adaptive_stop(&b);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/tx-adaptive/window", test_window);
    g_test_add_func("/tx-adaptive/window/deadline", test_window_deadline);
    g_test_add_func("/tx-adaptive/window/deadline-quiet",
                    test_window_deadline_quiet);
    g_test_add_func("/tx-adaptive/window/deadline-ends",
                    test_window_deadline_ends);
    g_test_add_func("/tx-adaptive/window/empty", test_window_empty);
    g_test_add_func("/tx-adaptive/window/during-pass",
                    test_window_during_pass);
    g_test_add_func("/tx-adaptive/window/descriptors",
                    test_window_descriptors);
    g_test_add_func("/tx-adaptive/window/flags", test_window_flags);
    g_test_add_func("/tx-adaptive/delay", test_delay);
    g_test_add_func("/tx-adaptive/hold", test_hold);
    g_test_add_func("/tx-adaptive/late", test_late);
    g_test_add_func("/tx-adaptive/late-once", test_late_once);
    g_test_add_func("/tx-adaptive/collapse", test_collapse);
    g_test_add_func("/tx-adaptive/late-deadline", test_late_deadline);
    g_test_add_func("/tx-adaptive/stop", test_stop);
    g_test_add_func("/tx-adaptive/full", test_full);
    g_test_add_func("/tx-adaptive/polling", test_polling);
    g_test_add_func("/tx-adaptive/standing-clock", test_standing_clock);
    for (size_t i = 0; i < G_N_ELEMENTS(company_cases); i++) {
        g_autofree char *path = g_strdup_printf("/tx-adaptive/company/%s",
                                                company_cases[i].name);

        g_test_add_data_func(path, &company_cases[i], test_company);
    }
    g_test_add_func("/tx-adaptive/company/packets", test_company_packets);
    g_test_add_func("/tx-adaptive/company/begins", test_company_begins);
    g_test_add_func("/tx-adaptive/group", test_group);
    g_test_add_func("/tx-adaptive/group/leave", test_group_leave);
    g_test_add_func("/tx-adaptive/group/newcomer", test_group_newcomer);
    return g_test_run();
}
