/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Who wakes whom: kicks, calls, and the answers on which a device sleeps.
 *
 * The driver of the harness decides about kicks by the specification's rule
 * (virtio 1.3, 2.7.13), and asks for calls by the same; what the device
 * stores and answers has to make both come out.  F.. are cases of the field.
 * Two-thread races are in test-vring-race.c.
 */
#include <string.h>

#include "vring-harness.h"

static void add(VringHarness *h)
{
    vring_driver_add(&h->drv, VH_BUFFERS, 64, 0);
}

/* scan_to_end: pop and complete all; the ring is empty, and known to be. */
static void scan_to_end(VringHarness *h)
{
    vring_harness_serve(h);
    g_assert_null(vring_harness_pop(h));
}

static void take_used(VringHarness *h)
{
    uint32_t id, len;

    while (vring_driver_get_used(&h->drv, &id, &len)) {
    }
}

/* ---- arm: answers ------------------------------------------------------- */

typedef struct ArmCase {
    uint16_t start;         /* index of the scan */
    uint16_t window;
    uint16_t moved;         /* chains published after the scan */
    VirtQueueArm answer;
    uint16_t event;         /* start + window - 1, modulo 2^16 */
} ArmCase;

static const ArmCase arm_cases[] = {
    { 0, 1, 0, VQ_ARM_EMPTY, 0 },
    { 0, 1, 1, VQ_ARM_CROSSED, 0 },
    { 0, 1, 2, VQ_ARM_CROSSED, 0 },
    { 0, 4, 0, VQ_ARM_EMPTY, 3 },
    { 0, 4, 1, VQ_ARM_PARTIAL, 3 },
    { 0, 4, 3, VQ_ARM_PARTIAL, 3 },
    { 0, 4, 4, VQ_ARM_CROSSED, 3 },
    { 0, 64, 63, VQ_ARM_PARTIAL, 63 },
    { 0, 64, 64, VQ_ARM_CROSSED, 63 },
    { 100, 16, 15, VQ_ARM_PARTIAL, 115 },
    { 65535, 1, 0, VQ_ARM_EMPTY, 65535 },
    { 65535, 1, 1, VQ_ARM_CROSSED, 65535 },
    { 65535, 2, 1, VQ_ARM_PARTIAL, 0 },
    { 65535, 2, 2, VQ_ARM_CROSSED, 0 },
    { 65530, 16, 5, VQ_ARM_PARTIAL, 9 },
    { 65530, 16, 15, VQ_ARM_PARTIAL, 9 },
    { 65530, 16, 16, VQ_ARM_CROSSED, 9 },
    { 32760, 16, 15, VQ_ARM_PARTIAL, 32775 },
};

static void run_arm(const ArmCase *c, uint64_t features)
{
    VringHarness *h = vring_harness_new_at(64, features, c->start);

    scan_to_end(h);
    for (unsigned i = 0; i < c->moved; i++) {
        add(h);
    }
    g_assert_cmpint(virtqueue_arm(h->vq, c->window), ==, c->answer);
    if (features & VH_EVENT_IDX) {
        g_assert_cmpuint(vring_driver_avail_event(&h->drv), ==, c->event);
        g_assert_cmpuint(vring_driver_used_flags(&h->drv), ==, 0);
    } else {
        g_assert_cmpuint(vring_driver_used_flags(&h->drv), ==,
                         c->window > 1 ? VRING_USED_F_NO_NOTIFY : 0);
    }
    g_assert_cmpuint(vring_harness_serve(h), ==, c->moved);
    vring_harness_free(h);
}

static void test_arm_answers(void)
{
    for (unsigned i = 0; i < G_N_ELEMENTS(arm_cases); i++) {
        run_arm(&arm_cases[i], VH_EVENT_IDX);
        run_arm(&arm_cases[i], 0);
    }
}

/* The driver, one chain at a time: silent until the W-th, which kicks. */
static void test_arm_window_kicks(void)
{
    static const uint16_t starts[] = { 0, 7, 32766, 65500, 65535 };
    static const unsigned windows[] = { 1, 2, 16, 64 };

    for (unsigned s = 0; s < G_N_ELEMENTS(starts); s++) {
        for (unsigned w = 0; w < G_N_ELEMENTS(windows); w++) {
            VringHarness *h = vring_harness_new_at(64, VH_EVENT_IDX,
                                                   starts[s]);

            scan_to_end(h);
            g_assert_cmpint(virtqueue_arm(h->vq, windows[w]), ==,
                            VQ_ARM_EMPTY);
            for (unsigned i = 1; i < windows[w]; i++) {
                add(h);
                g_assert_false(vring_driver_wants_kick(&h->drv));
            }
            add(h);
            g_assert_true(vring_driver_wants_kick(&h->drv));
            vring_harness_serve(h);
            vring_harness_free(h);
        }
    }
}

/* A batch of the driver that steps over the window kicks as well. */
static void test_arm_window_stepped_over(void)
{
    VringHarness *h = vring_harness_new_at(64, VH_EVENT_IDX, 65530);

    scan_to_end(h);
    g_assert_cmpint(virtqueue_arm(h->vq, 4), ==, VQ_ARM_EMPTY);
    for (unsigned i = 0; i < 10; i++) {
        vring_driver_desc(&h->drv, i, VH_BUFFERS, 64, 0, 0);
        vring_driver_offer(&h->drv, i);
    }
    vring_driver_expose(&h->drv);
    g_assert_true(vring_driver_wants_kick(&h->drv));
    vring_harness_serve(h);
    vring_harness_free(h);
}

/* A head that cannot be served now does not keep the device awake. */
static void run_arm_after_unpop(uint64_t features)
{
    VringHarness *h = vring_harness_new(64, features);
    VirtQueueElem *elems[8];

    for (unsigned i = 0; i < 3; i++) {
        add(h);
    }
    vring_driver_wants_kick(&h->drv);
    g_assert_cmpuint(virtqueue_pop_batch(h->vq, elems, 8, SIZE_MAX), ==, 3);
    virtqueue_unpop(h->vq, 3);
    g_assert_false(virtqueue_avail_moved(h->vq));
    g_assert_cmpint(virtqueue_arm(h->vq, 1), ==, VQ_ARM_EMPTY);
    g_assert_cmpint(virtqueue_arm(h->vq, 1), ==, VQ_ARM_EMPTY);
    /* The next one kicks, although three wait already. */
    add(h);
    g_assert_true(vring_driver_wants_kick(&h->drv));
    g_assert_true(virtqueue_avail_moved(h->vq));
    g_assert_cmpuint(vring_harness_serve(h), ==, 4);
    vring_harness_free(h);
}

static void test_arm_after_unpop(void)
{
    run_arm_after_unpop(0);
    run_arm_after_unpop(VH_EVENT_IDX);
}

/* A pop that stopped early was no scan: what it left counts as moved. */
static void test_arm_after_partial_scan(void)
{
    VringHarness *h = vring_harness_new(64, VH_EVENT_IDX);
    VirtQueueElem *elems[8];

    for (unsigned i = 0; i < 6; i++) {
        add(h);
    }
    g_assert_cmpuint(virtqueue_pop_batch(h->vq, elems, 4, SIZE_MAX), ==, 4);
    g_assert_cmpint(virtqueue_arm(h->vq, 1), ==, VQ_ARM_CROSSED);
    for (unsigned i = 0; i < 4; i++) {
        virtqueue_fill(h->vq, elems[i], 0);
    }
    g_assert_cmpuint(virtqueue_publish(h->vq), ==, 4);
    g_assert_cmpuint(vring_harness_serve(h), ==, 2);
    g_assert_cmpint(virtqueue_arm(h->vq, 1), ==, VQ_ARM_EMPTY);
    vring_harness_free(h);
}

/* ---- park --------------------------------------------------------------- */

static void test_park_flags(void)
{
    VringHarness *h = vring_harness_new(64, 0);

    g_assert_cmpint(virtqueue_arm(h->vq, 1), ==, VQ_ARM_EMPTY);
    add(h);
    g_assert_true(vring_driver_wants_kick(&h->drv));
    virtqueue_park(h->vq);
    g_assert_cmpuint(vring_driver_used_flags(&h->drv), ==,
                     VRING_USED_F_NO_NOTIFY);
    add(h);
    g_assert_false(vring_driver_wants_kick(&h->drv));
    scan_to_end(h);
    g_assert_cmpint(virtqueue_arm(h->vq, 1), ==, VQ_ARM_EMPTY);
    g_assert_cmpuint(vring_driver_used_flags(&h->drv), ==, 0);
    vring_harness_free(h);
}

/* Armed ahead, then parked before the window is full: no kick in mid-flush. */
static void test_park_event_ahead(void)
{
    VringHarness *h = vring_harness_new_at(64, VH_EVENT_IDX, 65530);

    scan_to_end(h);
    g_assert_cmpint(virtqueue_arm(h->vq, 32), ==, VQ_ARM_EMPTY);
    add(h);
    g_assert_false(vring_driver_wants_kick(&h->drv));
    virtqueue_park(h->vq);
    for (unsigned i = 0; i < 60; i++) {
        add(h);
        g_assert_false(vring_driver_wants_kick(&h->drv));
    }
    vring_harness_serve(h);
    vring_harness_free(h);
}

/* After the kick the index is behind already: the line stays the driver's. */
static void test_park_event_no_store(void)
{
    VringHarness *h = vring_harness_new(64, VH_EVENT_IDX);

    g_assert_cmpint(virtqueue_arm(h->vq, 1), ==, VQ_ARM_EMPTY);
    add(h);
    g_assert_true(vring_driver_wants_kick(&h->drv));
    vring_harness_snapshot(h);
    virtqueue_park(h->vq);
    vring_harness_assert_untouched(h);
    add(h);
    g_assert_false(vring_driver_wants_kick(&h->drv));
    vring_harness_serve(h);
    vring_harness_free(h);
}

/* Two rounds of 2^16 packets in one long flush, parked once per batch. */
static void test_park_event_stays_behind(void)
{
    VringHarness *h = vring_harness_new(64, VH_EVENT_IDX);
    unsigned kicks = 0;

    for (unsigned i = 0; i < 140000; i++) {
        add(h);
        kicks += vring_driver_wants_kick(&h->drv);
        if (i % 16 == 15) {
            vring_harness_serve(h);
            virtqueue_park(h->vq);
        }
    }
    /* The index was 0 before the first park: the first chain met it. */
    g_assert_cmpuint(kicks, ==, 1);
    vring_harness_serve(h);
    vring_harness_free(h);
}

/* ---- disarm ------------------------------------------------------------- */

static void run_disarm(uint64_t features)
{
    VringHarness *h = vring_harness_new_at(64, features, 65520);

    scan_to_end(h);
    virtqueue_arm(h->vq, 32);
    virtqueue_disarm(h->vq);
    g_assert_cmpuint(vring_driver_used_flags(&h->drv), ==, 0);
    add(h);
    g_assert_true(vring_driver_wants_kick(&h->drv));
    scan_to_end(h);
    virtqueue_park(h->vq);
    virtqueue_disarm(h->vq);
    add(h);
    g_assert_true(vring_driver_wants_kick(&h->drv));
    vring_harness_free(h);
}

static void test_disarm(void)
{
    run_disarm(0);
    run_disarm(VH_EVENT_IDX);
}

static void test_driver_word(void)
{
    VringHarness *h = vring_harness_new_at(64, VH_EVENT_IDX, 65520);

    vring_driver_set_used_event(&h->drv, 65530);
    g_assert_cmpuint(virtqueue_call_event(h->vq), ==, 65530);
    vring_driver_set_used_event(&h->drv, 3);
    g_assert_cmpuint(virtqueue_call_event(h->vq), ==, 3);
    vring_harness_free(h);

    /* Where the word would be is not part of a ring without event index. */
    h = vring_harness_new(64, 0);
    vring_driver_set_used_event(&h->drv, 3);
    g_assert_cmpuint(virtqueue_call_event(h->vq), ==, 0);
    vring_harness_free(h);
}

static void test_avail_moved(void)
{
    VringHarness *h = vring_harness_new(64, 0);
    VirtQueueElem *elem;

    g_assert_false(virtqueue_avail_moved(h->vq));
    add(h);
    add(h);
    g_assert_true(virtqueue_avail_moved(h->vq));
    elem = vring_harness_pop(h);
    g_assert_true(virtqueue_avail_moved(h->vq));
    vring_harness_complete(h, elem, 0);
    scan_to_end(h);
    g_assert_false(virtqueue_avail_moved(h->vq));
    vring_harness_free(h);
}

/* ---- races without a second thread -------------------------------------- */

/*
 * F18: a frame of 7000 bytes needs five buffers of 1536; three are there.
 * Between the scan and the arm the driver adds one (still too few) by its
 * rule, and later one more.  Every step at which the device would sleep is
 * followed by the driver's decision about the kick.
 */
static void run_receive_stall(uint64_t features)
{
    enum { NEED = 5 };
    VringHarness *h = vring_harness_new(256, features);
    VirtQueueElem *elems[NEED];
    unsigned scans = 0;
    unsigned n;

    for (unsigned i = 0; i < 3; i++) {
        vring_driver_add(&h->drv, VH_BUFFERS + 1536 * i, 1536,
                         VRING_DESC_F_WRITE);
    }
    vring_driver_wants_kick(&h->drv);
    do {
        n = virtqueue_pop_batch(h->vq, elems, NEED, SIZE_MAX);
        g_assert_cmpuint(n, <, NEED);
        virtqueue_unpop(h->vq, n);
        if (scans++ == 0) {
            vring_driver_add(&h->drv, VH_BUFFERS, 1536, VRING_DESC_F_WRITE);
            vring_driver_wants_kick(&h->drv);
        }
    } while (virtqueue_arm(h->vq, 1) != VQ_ARM_EMPTY);

    /* It moved once, so it was scanned twice; now the device sleeps. */
    g_assert_cmpuint(scans, ==, 2);
    vring_driver_add(&h->drv, VH_BUFFERS, 1536, VRING_DESC_F_WRITE);
    g_assert_true(vring_driver_wants_kick(&h->drv));
    g_assert_cmpuint(virtqueue_pop_batch(h->vq, elems, NEED, SIZE_MAX), ==,
                     NEED);
    virtqueue_unpop(h->vq, NEED);
    vring_harness_free(h);
}

static void test_receive_stall(void)
{
    run_receive_stall(0);
    run_receive_stall(VH_EVENT_IDX);
}

/*
 * F21: an index learned by arm, pop or avail_moved; the entry behind it
 * is read after it.  (The order itself is what the race test's stream shows
 * under a thread sanitizer; here: the entry is the new one.)
 */
static void test_entry_after_index(void)
{
    VringHarness *h = vring_harness_new(4, VH_EVENT_IDX);

    for (unsigned i = 0; i < 40; i++) {
        uint16_t head = (i * 3) % 4;
        VirtQueueElem *elem;

        g_assert_cmpint(virtqueue_arm(h->vq, 1), ==, VQ_ARM_EMPTY);
        vring_driver_desc(&h->drv, head, VH_BUFFERS + 64 * i, 64, 0, 0);
        vring_driver_offer(&h->drv, head);
        vring_driver_expose(&h->drv);
        if (i % 3 == 0) {
            g_assert_cmpint(virtqueue_arm(h->vq, 1), ==, VQ_ARM_CROSSED);
        } else if (i % 3 == 1) {
            /* Learned by the pop itself. */
            virtqueue_disarm(h->vq);
        } else {
            g_assert_true(virtqueue_avail_moved(h->vq));
        }
        elem = vring_harness_pop(h);
        g_assert_nonnull(elem);
        g_assert_cmpuint(elem->id, ==, head);
        g_assert(elem->iov[0].iov_base ==
                 vring_harness_ptr(h, VH_BUFFERS + 64 * i));
        vring_harness_complete(h, elem, 0);
        take_used(h);
    }
    vring_harness_free(h);
}

/*
 * F22: descriptors added while notifications are off are found by the arm;
 * a driver that filled the ring and waits for a call gets one.
 */
static void run_full_ring(uint64_t features)
{
    VringHarness *h = vring_harness_new(16, features);

    virtqueue_park(h->vq);
    for (unsigned round = 0; round < 10000; round++) {
        unsigned completed;

        for (unsigned i = 0; i < 16; i++) {
            add(h);
        }
        g_assert_true(vring_driver_enable_call(&h->drv));
        g_assert_cmpint(virtqueue_arm(h->vq, 1), ==, VQ_ARM_CROSSED);
        virtqueue_park(h->vq);
        completed = vring_harness_serve(h);
        g_assert_cmpuint(completed, ==, 16);
        g_assert_true(virtqueue_should_signal(h->vq));
        virtqueue_signalled(h->vq);
        take_used(h);
    }
    vring_harness_free(h);
}

static void test_full_ring(void)
{
    run_full_ring(0);
    run_full_ring(VH_EVENT_IDX);
}

/*
 * F31: a batch of 64 with ten completions not yet published, a driver that
 * waits on a full ring: publishing them calls, before the device may sleep;
 * kicks that come although it is parked change nothing.
 */
static void run_batched_completions(uint64_t features)
{
    VringHarness *h = vring_harness_new(64, features);
    VirtQueueElem *elems[64];

    for (unsigned i = 0; i < 64; i++) {
        add(h);
    }
    vring_driver_disable_call(&h->drv);
    g_assert_cmpuint(virtqueue_pop_batch(h->vq, elems, 64, SIZE_MAX), ==, 64);
    for (unsigned i = 0; i < 54; i++) {
        virtqueue_fill(h->vq, elems[i], 0);
    }
    g_assert_cmpuint(virtqueue_publish(h->vq), ==, 54);
    virtqueue_should_signal(h->vq);
    virtqueue_signalled(h->vq);
    take_used(h);
    for (unsigned i = 54; i < 64; i++) {
        virtqueue_fill(h->vq, elems[i], 0);
    }
    g_assert_true(vring_driver_enable_call(&h->drv));
    /* Nothing of them is visible, so nothing is to be said. */
    g_assert_false(virtqueue_should_signal(h->vq));
    g_assert_cmpuint(virtqueue_publish(h->vq), ==, 10);
    g_assert_true(virtqueue_should_signal(h->vq));
    virtqueue_signalled(h->vq);
    virtqueue_park(h->vq);
    virtqueue_park(h->vq);
    g_assert_cmpint(virtqueue_arm(h->vq, 1), ==, VQ_ARM_EMPTY);
    take_used(h);
    g_assert_cmpuint(h->drv.used_idx, ==, 64);
    add(h);
    g_assert_true(vring_driver_wants_kick(&h->drv));
    vring_harness_serve(h);
    vring_harness_free(h);
}

static void test_batched_completions(void)
{
    run_batched_completions(0);
    run_batched_completions(VH_EVENT_IDX);
}

/* ---- calls -------------------------------------------------------------- */

static void complete_n(VringHarness *h, unsigned n)
{
    for (unsigned i = 0; i < n; i++) {
        add(h);
        g_assert_cmpuint(vring_harness_serve(h), ==, 1);
    }
}

/* settle: as if the device had been calling all along. */
static void settle(VringHarness *h)
{
    virtqueue_signalled(h->vq);
}

static void test_call_flags(void)
{
    VringHarness *h = vring_harness_new(64, 0);

    complete_n(h, 1);
    g_assert_true(virtqueue_should_signal(h->vq));
    virtqueue_signalled(h->vq);
    g_assert_false(virtqueue_should_signal(h->vq));
    vring_driver_disable_call(&h->drv);
    complete_n(h, 5);
    g_assert_false(virtqueue_should_signal(h->vq));
    vring_driver_enable_call(&h->drv);
    /* The driver looked when it enabled; what it saw needs no call. */
    g_assert_false(virtqueue_should_signal(h->vq));
    complete_n(h, 1);
    g_assert_true(virtqueue_should_signal(h->vq));
    vring_harness_free(h);
}

typedef struct CallCase {
    uint16_t start;         /* used index at the last call */
    uint16_t count;         /* published since */
    uint16_t event;         /* used_event */
    bool call;
} CallCase;

/* virtio 1.3, 2.7.7.2: call if the entry at used_event was written. */
static const CallCase call_cases[] = {
    { 0, 1, 0, true },
    { 0, 1, 1, false },
    { 0, 2, 1, true },
    { 0, 5, 4, true },
    { 0, 5, 5, false },
    { 0, 5, 65535, false },
    { 100, 3, 99, false },
    { 100, 3, 102, true },
    { 100, 3, 103, false },
    { 65535, 1, 65535, true },
    { 65535, 1, 0, false },
    { 65535, 2, 0, true },
    { 65530, 10, 3, true },
    { 65530, 10, 4, false },
    { 65530, 10, 65529, false },
    { 32767, 2, 32768, true },
    { 32767, 1, 0, false },
};

static void test_call_event(void)
{
    for (unsigned i = 0; i < G_N_ELEMENTS(call_cases); i++) {
        const CallCase *c = &call_cases[i];
        VringHarness *h = vring_harness_new_at(64, VH_EVENT_IDX, c->start);

        settle(h);
        vring_driver_set_used_event(&h->drv, c->event);
        complete_n(h, c->count);
        g_assert(virtqueue_should_signal(h->vq) == c->call);
        vring_harness_free(h);
    }
}

/* A yes may be asked again, and may turn into a no; a no settles. */
static void test_call_asked_again(void)
{
    VringHarness *h = vring_harness_new(64, VH_EVENT_IDX);

    settle(h);
    vring_driver_set_used_event(&h->drv, 2);
    complete_n(h, 2);
    g_assert_false(virtqueue_should_signal(h->vq));
    complete_n(h, 2);
    g_assert_true(virtqueue_should_signal(h->vq));
    complete_n(h, 2);
    g_assert_true(virtqueue_should_signal(h->vq));
    /* It has been polling in the meantime. */
    vring_driver_set_used_event(&h->drv, 6);
    g_assert_false(virtqueue_should_signal(h->vq));
    /* Settled: going back behind what it has seen asks for nothing. */
    vring_driver_set_used_event(&h->drv, 3);
    complete_n(h, 1);
    g_assert_false(virtqueue_should_signal(h->vq));
    vring_harness_free(h);
}

/*
 * F26: more entries than the index can count since the last decision.  The
 * event index is met somewhere on the way, whatever it is.
 */
static void test_call_after_a_round(void)
{
    static const unsigned counts[] = { 65535, 65536, 65537, 140000 };

    for (unsigned c = 0; c < G_N_ELEMENTS(counts); c++) {
        VringHarness *h = vring_harness_new(64, VH_EVENT_IDX);

        settle(h);
        /* 40000 was written on the way; only the used index hides it. */
        vring_driver_set_used_event(&h->drv, 40000);
        complete_n(h, counts[c]);
        g_assert_true(virtqueue_should_signal(h->vq));
        virtqueue_signalled(h->vq);
        g_assert_false(virtqueue_should_signal(h->vq));
        vring_harness_free(h);
    }
}

/* F26: the first decision of every owner says yes. */
static void test_call_after_handover(void)
{
    VringHarness *h = vring_harness_new(64, VH_EVENT_IDX);
    VirtQueue *other = virtqueue_new("other", 64, NULL, NULL);
    VirtQueueSetup setup = h->setup;
    VirtQueueElem *elem;

    vring_driver_set_used_event(&h->drv, 0);
    complete_n(h, 100);
    g_assert_true(virtqueue_should_signal(h->vq));
    virtqueue_signalled(h->vq);
    setup.last_avail = virtqueue_stop(h->vq);

    /* Owner B serves 50; A's idea of the last call is worthless now. */
    g_assert_true(virtqueue_start(other, &setup, h->map, NULL));
    for (unsigned i = 0; i < 50; i++) {
        add(h);
        g_assert_cmpuint(virtqueue_pop_batch(other, &elem, 1, SIZE_MAX), ==,
                         1);
        virtqueue_fill(other, elem, 0);
        g_assert_cmpuint(virtqueue_publish(other), ==, 1);
    }
    g_assert_true(virtqueue_should_signal(other));
    setup.last_avail = virtqueue_stop(other);
    g_assert_cmpuint(setup.last_avail, ==, 150);

    vring_driver_set_used_event(&h->drv, 150);
    g_assert_true(virtqueue_start(h->vq, &setup, h->map, NULL));
    complete_n(h, 1);
    g_assert_true(virtqueue_should_signal(h->vq));
    virtqueue_free(other);
    vring_harness_free(h);
}

static void test_call_after_reset(void)
{
    VringHarness *h = vring_harness_new(64, VH_EVENT_IDX);

    complete_n(h, 100);
    virtqueue_should_signal(h->vq);
    virtqueue_signalled(h->vq);
    vring_harness_restart(h);
    /* Even if the driver's word is stale. */
    vring_driver_set_used_event(&h->drv, 1000);
    complete_n(h, 1);
    g_assert_true(virtqueue_should_signal(h->vq));
    vring_harness_free(h);
}

static void test_call_after_base(void)
{
    VringHarness *h = vring_harness_new_at(64, VH_EVENT_IDX, 40000);

    vring_driver_set_used_event(&h->drv, 39999);
    complete_n(h, 1);
    g_assert_true(virtqueue_should_signal(h->vq));
    vring_harness_free(h);
}

/* Altogether suppressed is suppressed, on the first decision as well. */
static void test_call_first_suppressed(void)
{
    VringHarness *h = vring_harness_new(64, 0);

    vring_driver_disable_call(&h->drv);
    complete_n(h, 1);
    g_assert_false(virtqueue_should_signal(h->vq));
    vring_harness_free(h);
}

/* The legacy feature: a call when nothing is left, whatever is suppressed. */
static void run_on_empty(uint64_t features)
{
    VringHarness *h = vring_harness_new(64, features |
                          VH_FEATURE(VIRTIO_F_NOTIFY_ON_EMPTY));
    VirtQueueElem *elems[2];

    settle(h);
    vring_driver_disable_call(&h->drv);
    vring_driver_set_used_event(&h->drv, 0x7000);
    add(h);
    add(h);
    g_assert_cmpuint(virtqueue_pop_batch(h->vq, elems, 1, SIZE_MAX), ==, 1);
    vring_harness_complete(h, elems[0], 0);
    g_assert_false(virtqueue_should_signal(h->vq));     /* one available */

    add(h);
    g_assert_cmpuint(virtqueue_pop_batch(h->vq, elems, 2, SIZE_MAX), ==, 2);
    vring_harness_complete(h, elems[0], 0);
    g_assert_false(virtqueue_should_signal(h->vq));     /* one in flight */
    vring_harness_complete(h, elems[1], 0);
    g_assert_true(virtqueue_should_signal(h->vq));
    virtqueue_signalled(h->vq);
    g_assert_false(virtqueue_should_signal(h->vq));     /* said once */
    vring_harness_free(h);
}

static void test_on_empty(void)
{
    run_on_empty(0);
    run_on_empty(VH_EVENT_IDX);
}

/* F92: a driver that wants no calls gets none over a whole round of indexes. */
static void test_no_unwanted_calls(void)
{
    VringHarness *h = vring_harness_new(64, 0);
    unsigned calls = 0;

    vring_driver_disable_call(&h->drv);
    for (unsigned i = 0; i < 70000; i++) {
        complete_n(h, 1);
        calls += virtqueue_should_signal(h->vq);
    }
    g_assert_cmpuint(calls, ==, 0);
    vring_harness_free(h);

    h = vring_harness_new(64, VH_EVENT_IDX);
    settle(h);
    for (unsigned i = 0; i < 70000; i++) {
        /* Always half a round ahead, as Linux sets it to have none. */
        vring_driver_set_used_event(&h->drv, i + 0x8000);
        complete_n(h, 1);
        calls += virtqueue_should_signal(h->vq);
    }
    g_assert_cmpuint(calls, ==, 0);
    vring_harness_free(h);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/vring/arm/answers", test_arm_answers);
    g_test_add_func("/vring/arm/window-kicks", test_arm_window_kicks);
    g_test_add_func("/vring/arm/window-stepped-over",
                    test_arm_window_stepped_over);
    g_test_add_func("/vring/arm/after-unpop", test_arm_after_unpop);
    g_test_add_func("/vring/arm/after-partial-scan",
                    test_arm_after_partial_scan);
    g_test_add_func("/vring/park/flags", test_park_flags);
    g_test_add_func("/vring/park/event-ahead", test_park_event_ahead);
    g_test_add_func("/vring/park/event-no-store", test_park_event_no_store);
    g_test_add_func("/vring/park/event-stays-behind",
                    test_park_event_stays_behind);
    g_test_add_func("/vring/disarm", test_disarm);
    g_test_add_func("/vring/driver-word", test_driver_word);
    g_test_add_func("/vring/avail-moved", test_avail_moved);
    g_test_add_func("/vring/race/receive-stall", test_receive_stall);
    g_test_add_func("/vring/race/entry-after-index", test_entry_after_index);
    g_test_add_func("/vring/race/full-ring", test_full_ring);
    g_test_add_func("/vring/race/batched-completions",
                    test_batched_completions);
    g_test_add_func("/vring/call/flags", test_call_flags);
    g_test_add_func("/vring/call/event", test_call_event);
    g_test_add_func("/vring/call/asked-again", test_call_asked_again);
    g_test_add_func("/vring/call/after-a-round", test_call_after_a_round);
    g_test_add_func("/vring/call/after-handover", test_call_after_handover);
    g_test_add_func("/vring/call/after-reset", test_call_after_reset);
    g_test_add_func("/vring/call/after-base", test_call_after_base);
    g_test_add_func("/vring/call/first-suppressed",
                    test_call_first_suppressed);
    g_test_add_func("/vring/call/on-empty", test_on_empty);
    g_test_add_func("/vring/call/no-unwanted-calls", test_no_unwanted_calls);
    return g_test_run();
}
