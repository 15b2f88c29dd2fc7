/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * tx=bh that holds, in the device: who is kicked, how long a packet waits,
 * what a stop or a full backend finds.  (When it holds is the policy's:
 * test-virtio-net-tx-policy.c.)
 */
#include <unistd.h>

#include "nic-harness.h"

/* @n packets each 20 us, with the driver's kicks; their tags are zero. */
static void stream(NicHarness *h, unsigned n, int64_t ns)
{
    for (; ns > 0; ns -= 20 * NS_PER_US) {
        for (unsigned i = 0; i < n; i++) {
            nic_harness_send(h, 0, 60);
        }
        nic_harness_kick(h, 1);
        nic_harness_run(h);
        nic_harness_tx_used(h);
        nic_harness_step(h, 20 * NS_PER_US);
    }
}

static TxPhase phase_of(NicHarness *h)
{
    return h->nic->pairs[0]->tx.policy.pace.phase;
}

static void stream_while(NicHarness *h, TxPhase phase, unsigned n)
{
    g_assert_cmpint(phase_of(h), ==, phase);
    while (phase_of(h) == phase) {
        stream(h, n, 20 * NS_PER_US);
    }
}

/* A pass has just ended, with a hold: 40 us to go, and an empty ring. */
static void begin_hold(NicHarness *h)
{
    nic_harness_send(h, 0, 60);
    if (nic_harness_kick(h, 1)) {
        nic_harness_run(h);
    } else {
        nic_harness_step(h, 40 * NS_PER_US);
    }
    g_assert_cmpint(phase_of(h), ==, TX_PHASE_HOLD);
    g_assert_cmpint(h->nic->pairs[0]->tx.state, ==, TX_STATE_HOLDING);
    nic_harness_tx_used(h);
}

/* A stream that gets better by holds: the guest's part is played here. */
static NicHarness *new_holding(void)
{
    NicHarness *h = nic_harness_new(&(NicOptions) {
        .props = "x-txhold=40000" });

    h->net->record = false;
    stream_while(h, TX_PHASE_KICK, 3);
    stream_while(h, TX_PHASE_TRIAL, 6);
    stream_while(h, TX_PHASE_CHECK, 3);
    stream(h, 6, NS_PER_MS);
    begin_hold(h);
    return h;
}

/* No kicks, and nobody waits longer than the hold. */
static void test_hold(void)
{
    NicHarness *h = new_holding();
    uint64_t kicks = nic_harness_stat(h, 1, "kicks");
    unsigned sent;

    stream(h, 6, 20 * NS_PER_MS);
    g_assert_cmpuint(nic_harness_stat(h, 1, "kicks"), ==, kicks);
    begin_hold(h);
    sent = h->net->sent;
    nic_harness_send(h, 0, 60);
    g_assert_false(nic_harness_kick(h, 1));
    nic_harness_step(h, 40 * NS_PER_US);
    g_assert_cmpuint(h->net->sent, ==, sent + 1);
    /* a hold in vain: kicks are wanted, no deadline runs */
    nic_harness_step(h, 40 * NS_PER_US);
    nic_harness_tx_used(h);
    g_assert_cmpint(h->nic->pairs[0]->tx.state, ==, TX_STATE_IDLE);
    nic_harness_send(h, 0, 60);
    g_assert_true(nic_harness_kick(h, 1));
    nic_harness_run(h);
    g_assert_cmpuint(h->net->sent, ==, sent + 2);
    nic_harness_free(h);
}

/* Stopped within a hold: un-popped, no deadline left, sent by the next. */
static void test_hold_stop(void)
{
    NicHarness *h = new_holding();
    unsigned sent = h->net->sent;
    uint16_t base;

    for (unsigned i = 0; i < 4; i++) {
        nic_harness_send(h, 0, 60);
        g_assert_false(nic_harness_kick(h, 1));
    }
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
    g_assert_cmpuint(h->net->sent, ==, sent + 5);
    /* and nothing is known of who sends now */
    g_assert_cmpint(h->nic->pairs[0]->tx.state, ==, TX_STATE_IDLE);
    nic_harness_free(h);
}

/* A backend that fills up within a hold's pass: kept, in order, no deadline. */
static void test_hold_full(void)
{
    NicHarness *h = new_holding();
    unsigned sent = h->net->sent;

    h->net->room = 2;
    for (unsigned i = 0; i < 5; i++) {
        nic_harness_send(h, 0, 60);
    }
    nic_harness_step(h, 40 * NS_PER_US);
    g_assert_cmpuint(h->net->sent, ==, sent + 2);
    g_assert_cmpint(h->nic->pairs[0]->tx.state, ==, TX_STATE_BLOCKED);
    fake_net_ready(h->net, UINT_MAX);
    nic_harness_run(h);
    g_assert_cmpuint(h->net->sent, ==, sent + 5);
    nic_harness_free(h);
}

/* Where a context polls, nothing has to be said by a kick. */
static void test_hold_polling(void)
{
    NicHarness *h = nic_harness_new(&(NicOptions) { .poll = true });

    h->net->record = false;
    for (unsigned i = 0; i < 2000; i++) {
        stream(h, 3 + i / 500 % 2 * 3, 20 * NS_PER_US);
        g_assert_cmpint(phase_of(h), ==, TX_PHASE_KICK);
    }
    nic_harness_free(h);
}

/* The same stream with x-txhold=0: kicks. */
static void test_hold_never(void)
{
    NicHarness *h = nic_harness_new(&(NicOptions) { .props = "x-txhold=0" });

    h->net->record = false;
    stream(h, 3, 12 * NS_PER_MS);
    stream(h, 6, 12 * NS_PER_MS);
    g_assert_cmpuint(nic_harness_stat(h, 1, "kicks"), ==, 1200);
    nic_harness_free(h);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/net/tx/hold/deadline", test_hold);
    g_test_add_func("/net/tx/hold/stop", test_hold_stop);
    g_test_add_func("/net/tx/hold/full", test_hold_full);
    g_test_add_func("/net/tx/hold/polling", test_hold_polling);
    g_test_add_func("/net/tx/hold/never", test_hold_never);
    return g_test_run();
}
