/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Receive: frames of every size into buffers of every shape, what happens
 * without buffers, and that nothing is lost or written at the wrong time.
 */
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "alloc-count.h"
#include "nic-harness.h"

#define NO_MRG (NH_MODERN & ~VH_FEATURE(VIRTIO_NET_F_MRG_RXBUF))

static void make_frame(uint8_t *p, size_t bytes, unsigned seed)
{
    for (size_t i = 0; i < bytes; i++) {
        p[i] = seed + i * 7 + (i >> 8);
    }
}

static void post_many(NicHarness *h, unsigned n, unsigned bytes)
{
    for (unsigned i = 0; i < n; i++) {
        nic_harness_post(h, bytes);
    }
    nic_harness_kick(h, 0);
    nic_harness_run(h);
}

static void deliver(NicHarness *h, size_t bytes, unsigned seed)
{
    g_autofree uint8_t *p = g_malloc(bytes);

    make_frame(p, bytes, seed);
    fake_net_deliver(h->net, NULL, p, bytes);
    nic_harness_run(h);
}

/*
 * Take one frame as a driver does: the first used entry has the header with
 * num_buffers, which says how many more belong to it.  Returns the buffers.
 */
static unsigned take_frame(NicHarness *h, size_t bytes, unsigned seed)
{
    g_autofree uint8_t *want = g_malloc(bytes);
    struct virtio_net_hdr_mrg_rxbuf hdr;
    size_t got = 0;
    unsigned n = 0, num = 1;

    make_frame(want, bytes, seed);
    while (n < num) {
        uint32_t id, len;
        unsigned skip = 0;
        uint8_t *p;

        g_assert_true(vring_driver_get_used(&h->rx, &id, &len));
        g_assert_cmpuint(len, <=, GUINT32_FROM_LE(h->rx.desc[id].len));
        p = nic_harness_ptr(h, GUINT64_FROM_LE(h->rx.desc[id].addr));
        if (n == 0) {
            memcpy(&hdr, p, sizeof(hdr));
            num = GUINT16_FROM_LE(hdr.num_buffers);
            skip = NH_HDR;
        }
        g_assert_cmpmem(p + skip, len - skip, want + got, len - skip);
        got += len - skip;
        n++;
    }
    g_assert_cmpuint(got, ==, bytes);
    return n;
}

static void assert_no_used(NicHarness *h)
{
    uint32_t id, len;

    g_assert_false(vring_driver_get_used(&h->rx, &id, &len));
}

/* ---- sizes ----------------------------------------------------------- */

static void check_sizes(bool vnet)
{
    static const size_t sizes[] = {
        14, 42, 60, 1514, 1515, 1536 - NH_HDR, 1536 - NH_HDR + 1, 3000, 9014,
        60, 65549, 65553, 60, 1514,
    };
    NicHarness *h = nic_harness_new(&(NicOptions) { .vnet = vnet });

    for (unsigned i = 0; i < G_N_ELEMENTS(sizes); i++) {
        size_t total = sizes[i] + NH_HDR;

        post_many(h, 50, 1536);
        deliver(h, sizes[i], i);
        g_assert_cmpuint(take_frame(h, sizes[i], i), ==,
                         (total + 1535) / 1536);
        assert_no_used(h);
        for (unsigned used = 0; used < 50 - (total + 1535) / 1536; used++) {
            deliver(h, 20, used);
            g_assert_cmpuint(take_frame(h, 20, used), ==, 1);
        }
    }
    nic_harness_free(h);
}

static void test_sizes(void)
{
    check_sizes(false);
    check_sizes(true);
}

/* virtio 1.3, 5.1.6.4: num_buffers is 1 without MRG_RXBUF on a modern device;
 * the rest of a header that the backend did not give is zero (F68). */
static void test_header(void)
{
    NicHarness *h = nic_harness_new(&(NicOptions) { .features = NO_MRG });
    static const uint8_t want[NH_HDR] = { [10] = 1 };

    memset(nic_harness_ptr(h, NH_RX_BUF), 0xff, 2048);
    post_many(h, 1, 2048);
    deliver(h, 60, 1);
    g_assert_cmpmem(nic_harness_ptr(h, NH_RX_BUF), NH_HDR, want, NH_HDR);
    g_assert_cmpuint(take_frame(h, 60, 1), ==, 1);
    nic_harness_free(h);
}

/* Without MRG_RXBUF a frame that does not fit is dropped, the buffer stays. */
static void test_not_mergeable_too_long(void)
{
    NicHarness *h = nic_harness_new(&(NicOptions) { .features = NO_MRG });

    post_many(h, 2, 1526);
    deliver(h, 1515, 1);
    g_assert_cmpuint(nic_harness_stat(h, 0, "dropped_buffers"), ==, 1);
    assert_no_used(h);
    deliver(h, 1514, 2);
    g_assert_cmpuint(take_frame(h, 1514, 2), ==, 1);
    nic_harness_free(h);
}

/* F108: buffers of many pieces, header alone in the first. */
static void test_scattered_buffer(void)
{
    NicHarness *h = nic_harness_new(&(NicOptions) { .features = NO_MRG });
    uint32_t id, len;
    uint8_t want[100];

    for (unsigned i = 0; i < 112; i++) {
        vring_driver_desc(&h->rx, i, NH_RX_BUF + 3 * i, 1,
                          VRING_DESC_F_WRITE | (i < 111 ? VRING_DESC_F_NEXT
                                                        : 0), i + 1);
    }
    vring_driver_offer(&h->rx, 0);
    vring_driver_expose(&h->rx);
    nic_harness_kick(h, 0);
    nic_harness_run(h);
    deliver(h, 100, 3);
    g_assert_true(vring_driver_get_used(&h->rx, &id, &len));
    g_assert_cmpuint(len, ==, 112);
    make_frame(want, sizeof(want), 3);
    for (unsigned i = 0; i < 100; i++) {
        uint8_t *p = nic_harness_ptr(h, NH_RX_BUF + 3 * (NH_HDR + i));

        g_assert_cmpuint(*p, ==, want[i]);
    }
    g_assert_cmpuint(*(uint8_t *)nic_harness_ptr(h, NH_RX_BUF + 30), ==, 1);
    nic_harness_free(h);
}

/* ---- no buffers (F18, F80) ------------------------------------------- */

static void test_starved(void)
{
    NicHarness *h = nic_harness_new(&(NicOptions) { 0 });

    g_assert_false(h->net->want);
    deliver(h, 60, 1);
    g_assert_false(aio_poll(h->ctx, false));
    nic_harness_post(h, 1536);
    g_assert_true(nic_harness_kick(h, 0));
    nic_harness_run(h);
    g_assert_cmpuint(take_frame(h, 60, 1), ==, 1);
    g_assert_false(h->net->want);           /* that was the only one */
    post_many(h, 5, 1536);
    g_assert_true(h->net->want);
    /* not starved: no kick is asked for */
    deliver(h, 60, 2);
    nic_harness_post(h, 1536);
    g_assert_false(nic_harness_kick(h, 0));
    nic_harness_free(h);
}

/*
 * A frame of 7000 bytes, three buffers of 1536: it waits, whole, and leaves
 * when the driver's own rule has kicked for the fourth and fifth.
 */
static void test_too_few_buffers(void)
{
    NicHarness *h = nic_harness_new(&(NicOptions) { 0 });
    unsigned kicks = 0;

    post_many(h, 3, 1536);
    deliver(h, 7000, 9);
    deliver(h, 60, 10);
    assert_no_used(h);
    g_assert_false(h->net->want);
    for (unsigned i = 0; i < 3; i++) {
        nic_harness_post(h, 1536);
        kicks += nic_harness_kick(h, 0);
        nic_harness_run(h);
    }
    g_assert_cmpuint(kicks, >=, 2);
    g_assert_cmpuint(take_frame(h, 7000, 9), ==, 5);
    g_assert_cmpuint(take_frame(h, 60, 10), ==, 1);
    nic_harness_free(h);
}

/* Chains of @pieces descriptors that use up the ring, of 1536 bytes each. */
static void post_whole_ring(NicHarness *h, unsigned pieces)
{
    for (unsigned i = 0; i < h->size; i++) {
        bool last = (i + 1) % pieces == 0;

        vring_driver_desc(&h->rx, i, NH_RX_BUF + i * 0x1000, 1536 / pieces,
                          VRING_DESC_F_WRITE | (last ? 0 : VRING_DESC_F_NEXT),
                          i + 1);
        if (last) {
            vring_driver_offer(&h->rx, i + 1 - pieces);
        }
    }
    vring_driver_expose(&h->rx);
    nic_harness_kick(h, 0);
    nic_harness_run(h);
}

/*
 * A frame larger than all buffers that the ring can hold would wait for ever,
 * and all others behind it.
 */
static void test_larger_than_ring(void)
{
    static const struct {
        unsigned size, pieces;
    } cases[] = { { 32, 1 }, { 32, 2 }, { 32, 4 }, { 1, 1 } };

    for (unsigned i = 0; i < G_N_ELEMENTS(cases); i++) {
        NicHarness *h = nic_harness_new(&(NicOptions) {
            .size = cases[i].size });

        post_whole_ring(h, cases[i].pieces);
        deliver(h, 65000, 1);
        assert_no_used(h);
        g_assert_cmpuint(nic_harness_stat(h, 0, "dropped_buffers"), ==, 1);
        deliver(h, 60, 2);
        g_assert_cmpuint(nic_harness_stat(h, 0, "packets"), ==, 1);
        nic_harness_free(h);
    }
}

/* One that needs just the whole ring is no such frame. */
static void test_as_large_as_ring(void)
{
    NicHarness *h = nic_harness_new(&(NicOptions) { .size = 32 });

    post_whole_ring(h, 1);
    deliver(h, 32 * 1536 - NH_HDR, 1);
    g_assert_cmpuint(take_frame(h, 32 * 1536 - NH_HDR, 1), ==, 32);
    nic_harness_free(h);
}

/*
 * Chains of a full ring's length each, by indirect tables: fewer of them can
 * be in flight than a frame needs, whatever the driver adds.  The frame is
 * dropped; waiting for more buffers would be waiting for ever, or spinning.
 */
static void test_too_scattered(void)
{
    NicHarness *h = nic_harness_new(&(NicOptions) { 0 });
    static const uint8_t frame[3000];

    for (unsigned i = 0; i < 16; i++) {
        struct vring_desc *table = nic_harness_ptr(h, NH_RX_BUF + i * 0x1000);

        for (unsigned j = 0; j < h->size; j++) {
            table[j] = (struct vring_desc) {
                .addr = GUINT64_TO_LE(NH_RX_BUF + 0x100000 + i * 0x1000 + j),
                .len = GUINT32_TO_LE(1),
                .flags = GUINT16_TO_LE(VRING_DESC_F_WRITE |
                                       (j + 1 < h->size ? VRING_DESC_F_NEXT
                                                        : 0)),
                .next = GUINT16_TO_LE(j + 1),
            };
        }
        vring_driver_desc(&h->rx, i, NH_RX_BUF + i * 0x1000,
                          h->size * sizeof(*table), VRING_DESC_F_INDIRECT, 0);
        vring_driver_offer(&h->rx, i);
    }
    vring_driver_expose(&h->rx);
    nic_harness_kick(h, 0);
    nic_harness_run(h);
    fake_net_deliver(h->net, NULL, frame, sizeof(frame));
    for (unsigned i = 0; aio_poll(h->ctx, false); i++) {
        g_assert_cmpuint(i, <, 10);
    }
    g_assert_cmpuint(nic_harness_stat(h, 0, "dropped_buffers"), ==, 1);
    assert_no_used(h);
    fake_net_deliver(h->net, NULL, frame, 60);
    nic_harness_run(h);
    g_assert_cmpuint(nic_harness_stat(h, 0, "packets"), ==, 1);
    nic_harness_free(h);
}

/* The frame that waits survives a stop and a start; order stays (F51). */
static void test_stop_with_frame_waiting(void)
{
    NicHarness *h = nic_harness_new(&(NicOptions) { 0 });
    uint16_t base;

    post_many(h, 3, 1536);
    deliver(h, 7000, 9);
    deliver(h, 60, 10);
    base = virtio_net_queue_stop(h->nic, 0);
    g_assert_cmpuint(base, ==, 0);
    close(h->kick[0]);
    close(h->call[0]);
    for (unsigned i = 0; i < 3; i++) {
        nic_harness_post(h, 1536);
    }
    nic_harness_start(h, 0, base);
    nic_harness_run(h);
    g_assert_cmpuint(take_frame(h, 7000, 9), ==, 5);
    g_assert_cmpuint(take_frame(h, 60, 10), ==, 1);
    nic_harness_free(h);
}

/* F37: not a byte of guest memory changes while stopped. */
static void test_silent_while_stopped(void)
{
    NicHarness *h = nic_harness_new(&(NicOptions) { 0 });
    g_autofree uint8_t *before = NULL;

    post_many(h, 20, 1536);
    deliver(h, 60, 1);
    virtio_net_queue_stop(h->nic, 0);
    virtio_net_queue_stop(h->nic, 1);
    before = g_memdup2(h->ram, NH_BYTES);
    nic_harness_calls(h, 0);
    for (unsigned i = 0; i < 20; i++) {
        deliver(h, 60, i);
    }
    eventfd_write(h->kick[0], 1);
    eventfd_write(h->kick[1], 1);
    nic_harness_step(h, NS_PER_SEC);
    g_assert_cmpint(memcmp(before, h->ram, NH_BYTES), ==, 0);
    g_assert_cmpuint(nic_harness_calls(h, 0), ==, 0);
    nic_harness_free(h);
}

/* Buffers popped ahead go back: base and used agree at the stop (F53). */
static void test_stop_gives_window_back(void)
{
    NicHarness *h = nic_harness_new(&(NicOptions) { 0 });

    post_many(h, 100, 1536);
    deliver(h, 60, 1);
    deliver(h, 40000, 2);
    g_assert_cmpuint(virtio_net_queue_stop(h->nic, 0), ==, 1 + 27);
    nic_harness_free(h);
}

/* ---- calls and budget ------------------------------------------------ */

static void test_one_call_per_batch(void)
{
    NicHarness *h = nic_harness_new(&(NicOptions) { 0 });

    post_many(h, 64, 1536);
    vring_driver_enable_call(&h->rx);
    h->net->want = false;
    for (unsigned i = 0; i < 20; i++) {
        deliver(h, 60, i);
    }
    g_assert_cmpuint(nic_harness_calls(h, 0), ==, 0);
    h->net->want = true;
    virtio_net_rx_ready(&h->nic->pairs[0]->rx);
    g_assert_cmpuint(nic_harness_calls(h, 0), ==, 1);
    g_assert_cmpuint(nic_harness_stat(h, 0, "batches"), ==, 1);
    for (unsigned i = 0; i < 20; i++) {
        take_frame(h, 60, i);
    }
    nic_harness_free(h);
}

static void test_rx_coalescing(void)
{
    NicHarness *h = nic_harness_new(&(NicOptions) {
        .props = "rx-coal-frames=4,rx-coal-usecs=30" });

    post_many(h, 64, 1536);
    vring_driver_enable_call(&h->rx);
    deliver(h, 60, 0);
    g_assert_cmpuint(nic_harness_calls(h, 0), ==, 0);
    nic_harness_step(h, 30 * NS_PER_US);
    g_assert_cmpuint(nic_harness_calls(h, 0), ==, 1);
    take_frame(h, 60, 0);
    vring_driver_enable_call(&h->rx);
    for (unsigned i = 0; i < 4; i++) {
        deliver(h, 60, i);
    }
    g_assert_cmpuint(nic_harness_calls(h, 0), ==, 1);
    nic_harness_free(h);
}

/* A flood ends its passes, and gets all buffers nevertheless. */
static void test_budget(void)
{
    NicHarness *h = nic_harness_new(&(NicOptions) { .size = 256 });

    h->net->endless = 60;
    post_many(h, 256, 1536);
    g_assert_cmpuint(nic_harness_stat(h, 0, "packets"), ==, 256);
    h->net->endless = 0;
    nic_harness_free(h);
}

/* ---- hostile buffers ------------------------------------------------- */

static void check_bad_buffer(uint32_t len, uint16_t flags)
{
    NicHarness *h = nic_harness_new(&(NicOptions) { 0 });

    vring_driver_add(&h->rx, NH_RX_BUF, len, flags);
    nic_harness_kick(h, 0);
    nic_harness_run(h);
    deliver(h, 60, 1);
    g_assert_true(virtio_net_queue_broken(h->nic, 0));
    assert_no_used(h);
    g_assert_false(h->net->want);
    g_assert_false(aio_poll(h->ctx, false));
    nic_harness_free(h);
}

static void test_bad_buffers(void)
{
    check_bad_buffer(2048, 0);                      /* not writable */
    check_bad_buffer(11, VRING_DESC_F_WRITE);       /* less than a header */
}

/* ---- link, enable, offloads ------------------------------------------ */

static void test_link_and_enable(void)
{
    NicHarness *h = nic_harness_new(&(NicOptions) { 0 });

    post_many(h, 10, 1536);
    virtio_net_set_link(h->nic, false);
    nic_harness_run(h);
    g_assert_false(h->net->want);
    deliver(h, 60, 1);
    assert_no_used(h);
    virtio_net_set_link(h->nic, true);
    nic_harness_run(h);
    take_frame(h, 60, 1);
    virtio_net_queue_enable(h->nic, 0, false);
    deliver(h, 60, 2);
    assert_no_used(h);
    virtio_net_queue_enable(h->nic, 0, true);
    nic_harness_run(h);
    take_frame(h, 60, 2);
    nic_harness_free(h);
}

static void test_offloads_follow_features(void)
{
    NicHarness *h = nic_harness_new(&(NicOptions) { .vnet = true });
    uint64_t csum = VH_FEATURE(VIRTIO_NET_F_GUEST_CSUM);
    uint64_t tso = VH_FEATURE(VIRTIO_NET_F_GUEST_TSO4);
    GError *err = NULL;

    g_assert_cmpuint(h->net->offload, ==, 0);
    virtio_net_set_features(h->nic, h->features | csum | tso, &err);
    g_assert_no_error(err);
    g_assert_cmpuint(h->net->offload, ==,
                     NET_OFFLOAD_CSUM | NET_OFFLOAD_TSO4);
    virtio_net_reset(h->nic);
    g_assert_cmpuint(h->net->offload, ==, 0);
    nic_harness_free(h);
}

/* Offered is what the backend can, less what the user switched off. */
static void test_offered(void)
{
    uint64_t csum = VH_FEATURE(VIRTIO_NET_F_CSUM);
    uint64_t tso = VH_FEATURE(VIRTIO_NET_F_HOST_TSO4);
    uint64_t mrg = VH_FEATURE(VIRTIO_NET_F_MRG_RXBUF);
    uint64_t never = VH_FEATURE(VIRTIO_F_RING_RESET) |
                     VH_FEATURE(VIRTIO_F_RING_PACKED);
    NicHarness *plain = nic_harness_new(&(NicOptions) { 0 });
    NicHarness *vnet = nic_harness_new(&(NicOptions) {
        .vnet = true, .props = "host_tso4=off" });
    uint64_t f;

    f = virtio_net_offered_features(plain->nic);
    g_assert_cmphex(f & (csum | tso | mrg | never), ==, mrg);
    f = virtio_net_offered_features(vnet->nic);
    g_assert_cmphex(f & (csum | tso | mrg | never), ==, mrg | csum);
    nic_harness_free(plain);
    nic_harness_free(vnet);
}

/* ---- the packet path allocates nothing ------------------------------- */

static void test_no_allocation(void)
{
    NicHarness *h;
    uint64_t allocs;
    uint32_t id, len;

    if (!alloc_count_supported()) {
        g_test_skip("a sanitizer has the allocator");
        return;
    }
    h = nic_harness_new(&(NicOptions) { .vnet = true });
    h->net->endless = 1514 + NH_HDR;
    post_many(h, 256, 1536);
    allocs = alloc_count();
    for (unsigned i = 0; i < 100; i++) {
        while (vring_driver_get_used(&h->rx, &id, &len)) {
            continue;
        }
        post_many(h, 256, 1536);
    }
    g_assert_cmpuint(alloc_count(), ==, allocs);
    g_assert_cmpuint(nic_harness_stat(h, 0, "packets"), ==, 101 * 256);
    h->net->endless = 0;
    nic_harness_free(h);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/net/rx/sizes", test_sizes);
    g_test_add_func("/net/rx/header", test_header);
    g_test_add_func("/net/rx/not-mergeable/too-long",
                    test_not_mergeable_too_long);
    g_test_add_func("/net/rx/scattered-buffer", test_scattered_buffer);
    g_test_add_func("/net/rx/starved", test_starved);
    g_test_add_func("/net/rx/too-few-buffers", test_too_few_buffers);
    g_test_add_func("/net/rx/larger-than-ring", test_larger_than_ring);
    g_test_add_func("/net/rx/as-large-as-ring", test_as_large_as_ring);
    g_test_add_func("/net/rx/too-scattered", test_too_scattered);
    g_test_add_func("/net/rx/stop/frame-waiting",
                    test_stop_with_frame_waiting);
    g_test_add_func("/net/rx/stop/silent", test_silent_while_stopped);
    g_test_add_func("/net/rx/stop/window", test_stop_gives_window_back);
    g_test_add_func("/net/rx/call/one-per-batch", test_one_call_per_batch);
    g_test_add_func("/net/rx/call/coalescing", test_rx_coalescing);
    g_test_add_func("/net/rx/budget", test_budget);
    g_test_add_func("/net/rx/bad-buffers", test_bad_buffers);
    g_test_add_func("/net/rx/link-and-enable", test_link_and_enable);
    g_test_add_func("/net/rx/offloads", test_offloads_follow_features);
    g_test_add_func("/net/rx/offered", test_offered);
    g_test_add_func("/net/rx/no-allocation", test_no_allocation);
    return g_test_run();
}
