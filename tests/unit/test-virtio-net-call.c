/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Transmit completions: published at once, the call held back by frames,
 * bytes and time; and a guest that looks by itself.
 */
#include <unistd.h>

#include "nic-harness.h"

/* What the guest finds used; it asks for a call at the next. */
static unsigned look(NicHarness *h)
{
    unsigned used = nic_harness_tx_used(h);

    vring_driver_enable_call(&h->tx);
    return used;
}

static void test_call_after_frames(void)
{
    NicHarness *h = nic_harness_new(&(NicOptions) { 0 });

    vring_driver_enable_call(&h->tx);
    nic_harness_transmit(h, 63, 60);
    g_assert_cmpuint(nic_harness_calls(h, 1), ==, 0);
    nic_harness_transmit(h, 1, 60);
    g_assert_cmpuint(nic_harness_calls(h, 1), ==, 1);
    nic_harness_free(h);
}

static void test_call_after_time(void)
{
    NicHarness *h = nic_harness_new(&(NicOptions) { 0 });

    vring_driver_enable_call(&h->tx);
    nic_harness_transmit(h, 1, 60);
    g_assert_cmpuint(nic_harness_tx_used(h), ==, 1);    /* published at once */
    nic_harness_step(h, 149 * NS_PER_US);
    g_assert_cmpuint(nic_harness_calls(h, 1), ==, 0);
    nic_harness_step(h, NS_PER_US);
    g_assert_cmpuint(nic_harness_calls(h, 1), ==, 1);
    nic_harness_step(h, NS_PER_SEC);
    g_assert_cmpuint(nic_harness_calls(h, 1), ==, 0);
    nic_harness_free(h);
}

static void test_call_after_bytes(void)
{
    NicHarness *h = nic_harness_new(&(NicOptions) { 0 });

    vring_driver_enable_call(&h->tx);
    nic_harness_transmit(h, 37, 7000);              /* 259000 of 262144 */
    g_assert_cmpuint(nic_harness_calls(h, 1), ==, 0);
    nic_harness_transmit(h, 1, 7000);
    g_assert_cmpuint(nic_harness_calls(h, 1), ==, 1);
    nic_harness_free(h);
}

/* Judged again when due: the driver has looked by itself. */
static void test_call_not_wanted_any_more(void)
{
    NicHarness *h = nic_harness_new(&(NicOptions) { 0 });

    /* the first call after a start is due whatever the index says */
    nic_harness_transmit(h, 1, 60);
    nic_harness_step(h, 150 * NS_PER_US);
    g_assert_cmpuint(nic_harness_calls(h, 1), ==, 1);
    g_assert_cmpuint(look(h), ==, 1);
    nic_harness_transmit(h, 4, 60);
    g_assert_cmpuint(look(h), ==, 4);       /* wants one at the fifth */
    nic_harness_step(h, 150 * NS_PER_US);
    g_assert_cmpuint(nic_harness_calls(h, 1), ==, 0);
    nic_harness_transmit(h, 1, 60);
    nic_harness_step(h, 150 * NS_PER_US);
    g_assert_cmpuint(nic_harness_calls(h, 1), ==, 1);
    nic_harness_free(h);
}

/* Something arrives, and the guest is called for it. */
static void respond(NicHarness *h)
{
    uint32_t id, len;

    nic_harness_post(h, 2048);
    nic_harness_kick(h, 0);
    nic_harness_run(h);
    vring_driver_enable_call(&h->rx);
    fake_net_deliver(h->net, NULL, "0123456789abcdef", 16);
    g_assert_cmpuint(nic_harness_calls(h, 0), ==, 1);
    g_assert_true(vring_driver_get_used(&h->rx, &id, &len));
}

/* One request and its response, which makes the guest look at both rings. */
static void request_and_response(NicHarness *h, unsigned limit_us)
{
    nic_harness_transmit(h, 1, 60);
    nic_harness_step(h, 60 * NS_PER_US);
    respond(h);
    g_assert_cmpuint(look(h), ==, 1);
    nic_harness_step(h, (limit_us + 10) * NS_PER_US);
}

/* A guest that looks by itself before each deadline, 64 times. */
static NicHarness *patient_guest_at(const char *props, unsigned limit_us)
{
    NicHarness *h = nic_harness_new(&(NicOptions) { .props = props });

    nic_harness_transmit(h, 1, 60);
    nic_harness_step(h, limit_us * NS_PER_US);
    g_assert_cmpuint(nic_harness_calls(h, 1), ==, 1);
    g_assert_cmpuint(look(h), ==, 1);
    for (unsigned i = 0; i < 64; i++) {
        request_and_response(h, limit_us);
    }
    g_assert_cmpuint(nic_harness_calls(h, 1), ==, 0);
    return h;
}

static NicHarness *patient_guest(void)
{
    return patient_guest_at(NULL, 150);
}

static void assert_called_after_us(NicHarness *h, unsigned us)
{
    nic_harness_step(h, (us - 1) * NS_PER_US);
    g_assert_cmpuint(nic_harness_calls(h, 1), ==, 0);
    nic_harness_step(h, NS_PER_US);
    g_assert_cmpuint(nic_harness_calls(h, 1), ==, 1);
}

/* It is called late once, and in time from then on. */
static void test_call_late_once(void)
{
    NicHarness *h = patient_guest();

    nic_harness_transmit(h, 1, 60);
    assert_called_after_us(h, 1200);
    for (unsigned i = 0; i < 70; i++) {
        look(h);
        nic_harness_transmit(h, 1, 60);
        assert_called_after_us(h, 150);
    }
    nic_harness_free(h);
}

/* As long as it keeps looking there is a deadline now and then, no call; then
 * the last completion waits no longer than any. */
static void test_call_spared(void)
{
    NicHarness *h = patient_guest();
    uint64_t held = nic_harness_stat(h, 1, "calls_held");

    for (unsigned i = 0; i < 100; i++) {
        request_and_response(h, 150);
        g_assert_cmpuint(nic_harness_calls(h, 1), ==, 0);
    }
    /* 22 ms; a hold, and so a wake-up, per 1.2 ms. */
    g_assert_cmpuint(nic_harness_stat(h, 1, "calls_held"), <=, held + 19);
    nic_harness_transmit(h, 1, 60);
    nic_harness_step(h, 1200 * NS_PER_US);
    g_assert_cmpuint(nic_harness_calls(h, 1), ==, 1);
    nic_harness_free(h);
}

/* At a deadline that finds something young, the next is counted from that. */
static void test_call_put_off(void)
{
    NicHarness *h = patient_guest();

    nic_harness_transmit(h, 1, 60);
    nic_harness_step(h, 1100 * NS_PER_US);
    respond(h);
    g_assert_cmpuint(look(h), ==, 1);
    nic_harness_transmit(h, 1, 60);
    nic_harness_step(h, 100 * NS_PER_US);
    assert_called_after_us(h, 1100);
    nic_harness_free(h);
}

/* The guest has looked, and published anew; so the rest is as old as that. */
static void look_and_transmit(NicHarness *h)
{
    g_assert_cmpuint(look(h), ==, 1);
    nic_harness_transmit(h, 1, 60);
}

/* Called for receive just now, it is given time to look; once. */
static void test_call_slow_once(void)
{
    NicHarness *h = patient_guest();

    nic_harness_transmit(h, 1, 60);
    nic_harness_step(h, 1000 * NS_PER_US);
    look_and_transmit(h);
    nic_harness_step(h, 100 * NS_PER_US);
    respond(h);
    nic_harness_step(h, 100 * NS_PER_US);       /* the deadline */
    nic_harness_step(h, 950 * NS_PER_US);
    g_assert_cmpuint(nic_harness_calls(h, 1), ==, 0);
    respond(h);
    assert_called_after_us(h, 50);
    nic_harness_free(h);
}

/* Not if that was too long ago, or what it waits for too old. */
static void test_call_too_slow(void)
{
    static const struct {
        unsigned look_us, response_us;
    } cases[] = { { 1000, 40 }, { 850, 300 } };

    for (unsigned i = 0; i < G_N_ELEMENTS(cases); i++) {
        NicHarness *h = patient_guest();
        unsigned response_us = cases[i].look_us + cases[i].response_us;

        nic_harness_transmit(h, 1, 60);
        nic_harness_step(h, cases[i].look_us * NS_PER_US);
        look_and_transmit(h);
        nic_harness_step(h, cases[i].response_us * NS_PER_US);
        respond(h);
        assert_called_after_us(h, 1200 - response_us);
        nic_harness_free(h);
    }
}

/* One exchange whose guest looks after the deadline, and is called for it. */
static void slow_exchange(NicHarness *h)
{
    nic_harness_transmit(h, 1, 60);
    nic_harness_step(h, 60 * NS_PER_US);
    respond(h);
    assert_called_after_us(h, 90);
    g_assert_cmpuint(look(h), ==, 1);
}

/* A slow response now and then does not tell of another kind of guest. */
static void test_call_slow_sometimes(void)
{
    NicHarness *h = nic_harness_new(&(NicOptions) { 0 });

    nic_harness_transmit(h, 1, 60);
    assert_called_after_us(h, 150);
    g_assert_cmpuint(look(h), ==, 1);
    for (unsigned i = 0; i < 64; i++) {
        slow_exchange(h);
        request_and_response(h, 150);
    }
    nic_harness_transmit(h, 1, 60);
    nic_harness_step(h, 1000 * NS_PER_US);
    respond(h);
    assert_called_after_us(h, 200);     /* too slow: 16 more are asked for */
    g_assert_cmpuint(look(h), ==, 1);
    for (unsigned i = 0; i < 16; i++) {
        slow_exchange(h);
        request_and_response(h, 150);
    }
    nic_harness_transmit(h, 1, 60);
    assert_called_after_us(h, 1200);
    nic_harness_free(h);
}

/* One that is blocked does not wait for a second deadline. */
static void test_call_not_put_off(void)
{
    NicHarness *h = patient_guest();

    nic_harness_transmit(h, 1, 60);
    nic_harness_step(h, 1000 * NS_PER_US);
    look_and_transmit(h);
    assert_called_after_us(h, 200);
    nic_harness_free(h);
}

/* Without responses nothing is known: each one is called in time.  What arrives
 * while nothing is held is no response. */
static void test_call_no_response(void)
{
    NicHarness *h = nic_harness_new(&(NicOptions) { 0 });

    nic_harness_transmit(h, 1, 60);
    assert_called_after_us(h, 150);
    for (unsigned i = 0; i < 100; i++) {
        look(h);
        respond(h);
        nic_harness_transmit(h, 1, 60);
        look(h);
        nic_harness_step(h, 150 * NS_PER_US);
        g_assert_cmpuint(nic_harness_calls(h, 1), ==, 0);
    }
    nic_harness_transmit(h, 1, 60);
    assert_called_after_us(h, 150);
    nic_harness_free(h);
}

/* Nor where a response comes after many publications, or many bytes. */
static void test_call_no_request(void)
{
    static const struct {
        unsigned publications, frames, bytes;
    } cases[] = { { 5, 2, 60 }, { 3, 1, 7000 } };

    for (unsigned c = 0; c < G_N_ELEMENTS(cases); c++) {
        NicHarness *h = nic_harness_new(&(NicOptions) { 0 });

        nic_harness_transmit(h, 1, 60);
        assert_called_after_us(h, 150);
        for (unsigned i = 0; i < 100; i++) {
            look(h);
            for (unsigned j = 0; j < cases[c].publications; j++) {
                nic_harness_transmit(h, cases[c].frames, cases[c].bytes);
            }
            nic_harness_step(h, 60 * NS_PER_US);
            respond(h);
            look(h);
            nic_harness_step(h, 90 * NS_PER_US);
            g_assert_cmpuint(nic_harness_calls(h, 1), ==, 0);
        }
        nic_harness_transmit(h, 1, 60);
        assert_called_after_us(h, 150);
        nic_harness_free(h);
    }
}

/* A long limit is not made much longer. */
static void test_call_patience_ends(void)
{
    NicHarness *h = patient_guest_at("tx-coal-usecs=10000", 10000);

    nic_harness_transmit(h, 1, 60);
    assert_called_after_us(h, 12000);
    nic_harness_free(h);
}

/* Flags do not tell that the guest has looked, but that it does not wait. */
static void test_call_late_once_by_flags(void)
{
    NicHarness *h = nic_harness_new(&(NicOptions) {
        .features = NH_MODERN & ~VH_FEATURE(VIRTIO_RING_F_EVENT_IDX) });

    for (unsigned i = 0; i < 64; i++) {
        vring_driver_enable_call(&h->tx);
        nic_harness_transmit(h, 1, 60);
        vring_driver_disable_call(&h->tx);
        respond(h);
        nic_harness_step(h, 150 * NS_PER_US);
        g_assert_cmpuint(nic_harness_tx_used(h), ==, 1);
    }
    g_assert_cmpuint(nic_harness_calls(h, 1), ==, 0);
    vring_driver_enable_call(&h->tx);
    nic_harness_transmit(h, 1, 60);
    assert_called_after_us(h, 1200);
    nic_harness_transmit(h, 1, 60);
    assert_called_after_us(h, 150);
    nic_harness_free(h);
}

/* A stream ends it at its first limit; so does another start of the ring. */
static void test_call_in_time_again(void)
{
    NicHarness *h = patient_guest();

    nic_harness_transmit(h, 64, 60);
    g_assert_cmpuint(nic_harness_calls(h, 1), ==, 1);
    look(h);
    nic_harness_transmit(h, 1, 60);
    assert_called_after_us(h, 150);
    nic_harness_free(h);

    h = patient_guest();
    nic_harness_start(h, 1, virtio_net_queue_stop(h->nic, 1));
    nic_harness_transmit(h, 1, 60);
    assert_called_after_us(h, 150);
    nic_harness_free(h);
}

/* A stop owes nothing: the call goes out before it returns. */
static void test_call_flushed_on_stop(void)
{
    NicHarness *h = nic_harness_new(&(NicOptions) { 0 });

    vring_driver_enable_call(&h->tx);
    nic_harness_transmit(h, 1, 60);
    virtio_net_queue_stop(h->nic, 1);
    g_assert_cmpuint(nic_harness_calls(h, 1), ==, 1);
    nic_harness_free(h);
}

/* A call for receive makes the guest look at transmit, too: bytes count from
 * there, the deadline does not move. */
static void test_call_for_the_other_ring(void)
{
    NicHarness *h = nic_harness_new(&(NicOptions) { 0 });

    for (unsigned i = 0; i < 4; i++) {
        nic_harness_post(h, 2048);
    }
    nic_harness_kick(h, 0);
    nic_harness_run(h);
    vring_driver_enable_call(&h->tx);
    vring_driver_enable_call(&h->rx);
    nic_harness_transmit(h, 30, 7000);
    g_assert_cmpuint(nic_harness_calls(h, 1), ==, 0);
    nic_harness_step(h, 100 * NS_PER_US);
    fake_net_deliver(h->net, NULL, "0123456789abcdef", 16);
    g_assert_cmpuint(nic_harness_calls(h, 0), ==, 1);
    nic_harness_transmit(h, 33, 7000);              /* 441000 bytes in all */
    g_assert_cmpuint(nic_harness_calls(h, 1), ==, 0);
    nic_harness_step(h, 50 * NS_PER_US);
    g_assert_cmpuint(nic_harness_calls(h, 1), ==, 1);
    nic_harness_free(h);
}

static void test_call_at_once(void)
{
    NicHarness *h = nic_harness_new(&(NicOptions) {
        .props = "tx-coal-usecs=0" });

    vring_driver_enable_call(&h->tx);
    nic_harness_transmit(h, 1, 60);
    g_assert_cmpuint(nic_harness_calls(h, 1), ==, 1);
    nic_harness_free(h);
}

/* F30: after a swap nobody can tell what was seen: one call too many. */
static void test_call_swapped(void)
{
    NicHarness *h = nic_harness_new(&(NicOptions) { 0 });

    virtio_net_queue_set_call(h->nic, 1, dup(h->call[1]));
    g_assert_cmpuint(nic_harness_calls(h, 1), ==, 1);
    nic_harness_free(h);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/net/call/frames", test_call_after_frames);
    g_test_add_func("/net/call/time", test_call_after_time);
    g_test_add_func("/net/call/bytes", test_call_after_bytes);
    g_test_add_func("/net/call/rejudged", test_call_not_wanted_any_more);
    g_test_add_func("/net/call/late-once", test_call_late_once);
    g_test_add_func("/net/call/spared", test_call_spared);
    g_test_add_func("/net/call/put-off", test_call_put_off);
    g_test_add_func("/net/call/slow-once", test_call_slow_once);
    g_test_add_func("/net/call/too-slow", test_call_too_slow);
    g_test_add_func("/net/call/slow-sometimes", test_call_slow_sometimes);
    g_test_add_func("/net/call/not-put-off", test_call_not_put_off);
    g_test_add_func("/net/call/no-response", test_call_no_response);
    g_test_add_func("/net/call/no-request", test_call_no_request);
    g_test_add_func("/net/call/patience-ends", test_call_patience_ends);
    g_test_add_func("/net/call/late-once-by-flags",
                    test_call_late_once_by_flags);
    g_test_add_func("/net/call/in-time-again", test_call_in_time_again);
    g_test_add_func("/net/call/stop", test_call_flushed_on_stop);
    g_test_add_func("/net/call/other-ring", test_call_for_the_other_ring);
    g_test_add_func("/net/call/at-once", test_call_at_once);
    g_test_add_func("/net/call/swapped", test_call_swapped);
    return g_test_run();
}
