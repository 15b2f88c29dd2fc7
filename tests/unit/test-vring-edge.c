/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Rings at the edge of the rules, which have to be served: longest chains,
 * tables and buffers wherever memory is, indexes that move as far as they
 * may.  One step further is in test-vring-validation.c.
 */
#include <string.h>

#include "vring-harness.h"

#define N VRING_DESC_F_NEXT
#define W VRING_DESC_F_WRITE
#define I VRING_DESC_F_INDIRECT

#define TABLE (VH_BUFFERS + 0x10000)

/* offer: chain @head, visible. */
static void offer(VringHarness *h, uint16_t head)
{
    vring_driver_offer(&h->drv, head);
    vring_driver_expose(&h->drv);
}

static void desc(VringHarness *h, unsigned i, uint64_t gpa, uint32_t len,
                 uint16_t flags, uint16_t next)
{
    vring_driver_desc(&h->drv, i, gpa, len, flags, next);
}

static void put_table(VringHarness *h, unsigned i, uint64_t gpa, uint32_t len,
                      uint16_t flags, uint16_t next)
{
    vring_harness_table(h, TABLE, i, gpa, len, flags, next);
}

static void one(VringHarness *h, uint64_t gpa, uint32_t len, uint16_t flags)
{
    desc(h, 0, gpa, len, flags, 0);
    offer(h, 0);
}

/* F01: a chain of exactly the ring's size is served, direct or indirect. */
static void check_longest(uint16_t size, VirtQueueElem *e, uint16_t ndescs)
{
    g_assert_nonnull(e);
    g_assert_cmpuint(e->out_num, ==, size);
    g_assert_cmpuint(e->out_bytes, ==, size);
    g_assert_cmpuint(e->in_num, ==, 0);
    g_assert_cmpuint(e->ndescs, ==, ndescs);
}

static void test_longest_indirect(gconstpointer data)
{
    uint16_t size = GPOINTER_TO_UINT(data);
    VringHarness *h = vring_harness_new(size, VH_INDIRECT);
    VirtQueueElem *e;

    vring_harness_chain_table(h, TABLE, size);
    one(h, TABLE, 16 * size, I);
    e = vring_harness_pop(h);
    check_longest(size, e, 1);
    for (unsigned i = 0; i < size; i++) {
        g_assert(e->iov[i].iov_base == vring_harness_ptr(h, VH_BUFFERS + i));
        g_assert_cmpuint(e->iov[i].iov_len, ==, 1);
    }
    vring_harness_complete(h, e, 0);
    vring_harness_free(h);
}

static void test_longest_direct(gconstpointer data)
{
    uint16_t size = GPOINTER_TO_UINT(data);
    VringHarness *h = vring_harness_new(size, 0);
    VirtQueueElem *e;

    for (unsigned i = 0; i < size; i++) {
        desc(h, i, VH_BUFFERS + i, 1, i + 1 < size ? N : 0, i + 1);
    }
    offer(h, 0);
    e = vring_harness_pop(h);
    check_longest(size, e, size);
    vring_harness_complete(h, e, 0);
    vring_harness_free(h);
}

/* virtio 1.3, 2.7.5.3.2: a table may end a chain; its W flag means nothing. */
static void test_indirect_ends_chain(void)
{
    VringHarness *h = vring_harness_new(16, VH_INDIRECT);
    VirtQueueElem *e;

    desc(h, 3, VH_BUFFERS, 12, N, 7);
    desc(h, 7, TABLE, 32, I | W, 9);
    put_table(h, 0, VH_BUFFERS + 0x100, 64, N, 1);
    put_table(h, 1, VH_BUFFERS + 0x200, 128, W, 0);
    offer(h, 3);
    e = vring_harness_pop(h);
    g_assert_nonnull(e);
    g_assert_cmpuint(e->id, ==, 3);
    g_assert_cmpuint(e->ndescs, ==, 2);
    g_assert_cmpuint(e->out_num, ==, 2);
    g_assert_cmpuint(e->in_num, ==, 1);
    g_assert_cmpuint(e->out_bytes, ==, 76);
    g_assert_cmpuint(e->in_bytes, ==, 128);
    g_assert(e->iov[2].iov_base ==
             vring_harness_ptr(h, VH_BUFFERS + 0x200));
    vring_harness_complete(h, e, 128);
    vring_harness_free(h);
}

/* A table longer than the ring is fine as long as the chain is not. */
static void test_indirect_long_table(void)
{
    VringHarness *h = vring_harness_new(4, VH_INDIRECT);
    VirtQueueElem *e;

    put_table(h, 0, VH_BUFFERS, 10, N, 99);
    put_table(h, 99, VH_BUFFERS + 64, 20, 0, 0);
    one(h, TABLE, 16 * 100, I);
    e = vring_harness_pop(h);
    g_assert_nonnull(e);
    g_assert_cmpuint(e->out_num, ==, 2);
    g_assert_cmpuint(e->out_bytes, ==, 30);
    vring_harness_complete(h, e, 0);
    vring_harness_free(h);
}

/* Any address, and any part of it in either region. */
static void test_indirect_anywhere(void)
{
    static const int shifts[] = { -47, -40, -33, -32, -31, -24, -16, -15, -8,
                                  -4, -1, 0, 1, 3, 8 };

    for (unsigned s = 0; s < G_N_ELEMENTS(shifts); s++) {
        VringHarness *h = vring_harness_new(16, VH_INDIRECT);
        uint64_t table = VH_SPLIT + shifts[s];
        VirtQueueElem *e;

        for (unsigned i = 0; i < 3; i++) {
            vring_harness_table(h, table, i, VH_BUFFERS + 100 * i, 50 + i,
                         i < 2 ? N : 0, i + 1);
        }
        one(h, table, 48, I);
        e = vring_harness_pop(h);
        g_assert_nonnull(e);
        g_assert_cmpuint(e->out_num, ==, 3);
        for (unsigned i = 0; i < 3; i++) {
            g_assert(e->iov[i].iov_base ==
                     vring_harness_ptr(h, VH_BUFFERS + 100 * i));
            g_assert_cmpuint(e->iov[i].iov_len, ==, 50 + i);
        }
        vring_harness_complete(h, e, 0);
        vring_harness_free(h);
    }
}

/* F05: a buffer over two adjacent regions comes in two pieces. */
static void test_straddle(void)
{
    VringHarness *h = vring_harness_new(16, 0);
    VirtQueueElem *e;

    desc(h, 0, VH_SPLIT - 100, 1500, N, 1);
    desc(h, 1, VH_BUFFERS, 8, N | W, 2);
    desc(h, 2, VH_SPLIT - 1, 2, W, 0);
    offer(h, 0);
    e = vring_harness_pop(h);
    g_assert_nonnull(e);
    g_assert_cmpuint(e->out_num, ==, 2);
    g_assert_cmpuint(e->out_bytes, ==, 1500);
    g_assert(e->iov[0].iov_base == vring_harness_ptr(h, VH_SPLIT - 100));
    g_assert_cmpuint(e->iov[0].iov_len, ==, 100);
    g_assert(e->iov[1].iov_base == vring_harness_ptr(h, VH_SPLIT));
    g_assert_cmpuint(e->iov[1].iov_len, ==, 1400);
    g_assert_cmpuint(e->in_num, ==, 3);
    g_assert_cmpuint(e->in_bytes, ==, 10);
    g_assert(e->iov[3].iov_base == vring_harness_ptr(h, VH_SPLIT - 1));
    g_assert_cmpuint(e->iov[3].iov_len, ==, 1);
    vring_harness_complete(h, e, 10);
    vring_harness_free(h);
}

/* The first and the last byte of memory are memory. */
static void test_memory_edges(void)
{
    VringHarness *h = vring_harness_new(16, 0);

    vring_driver_add(&h->drv, VH_BASE, 1, 0);
    vring_driver_add(&h->drv, VH_END - 1, 1, 0);
    g_assert_cmpuint(vring_harness_serve(h), ==, 2);
    vring_harness_free(h);
}

/* One buffer over @crossings + 1 regions of a page each. */
static void run_many_regions(unsigned crossings, const char *why)
{
    VringHarness *h = vring_harness_new(4, 0);
    GuestMapBuilder *b = guest_map_builder_new(h->map);
    uint64_t gpa = VH_END + 0x100000;
    uint8_t *ram = g_malloc((crossings + 1) * 0x2000);
    VirtQueueElem *e;
    GuestMap *map;

    for (unsigned i = 0; i <= crossings; i++) {
        GuestRegionInfo info = { .gpa = gpa + 0x1000 * i, .size = 0x1000,
                                 .uaddr = 0x1000 * (i + 1) };
        g_assert_true(guest_map_builder_add_ram(b, &info, ram + 0x2000 * i,
                                                NULL));
    }
    map = guest_map_builder_finish(b);
    g_assert_true(virtqueue_remap(h->vq, map, NULL));
    guest_map_unref(map);

    one(h, gpa, (crossings + 1) * 0x1000, 0);
    e = vring_harness_pop(h);
    if (why) {
        g_assert_null(e);
        vring_harness_assert_broken(h, why);
    } else {
        g_assert_nonnull(e);
        g_assert_cmpuint(e->out_num, ==, crossings + 1);
        vring_harness_complete(h, e, 0);
    }
    vring_harness_free(h);
    g_free(ram);
}

/* As many crossings as ring entries, and one more. */
static void test_many_regions(void)
{
    run_many_regions(4, NULL);
    run_many_regions(5, "buffers cross too many memory regions");
}

/* One byte less than 4 GiB is a length. */
static void test_sum_below_4g(void)
{
    VringHarness *h = vring_harness_new(1024, 0);
    uint32_t len = VH_END - VH_SPLIT;
    unsigned n = UINT32_MAX / len;
    VirtQueueElem *e;

    for (unsigned i = 0; i < n; i++) {
        desc(h, i, VH_SPLIT, len, N, i + 1);
    }
    desc(h, n, VH_SPLIT, UINT32_MAX % len, 0, 0);
    offer(h, 0);
    e = vring_harness_pop(h);
    g_assert_nonnull(e);
    g_assert_cmpuint(e->out_bytes, ==, UINT32_MAX);
    vring_harness_complete(h, e, 0);
    vring_harness_free(h);
}

/* F07: exactly the ring's size is legal, at every position. */
static void test_jump_exactly_size(void)
{
    static const uint16_t starts[] = { 0, 5, 0x7fff, 0xfff0, 0xffff };

    for (unsigned s = 0; s < G_N_ELEMENTS(starts); s++) {
        VringHarness *h = vring_harness_new_at(256, 0, starts[s]);

        for (unsigned i = 0; i < 256; i++) {
            vring_driver_desc(&h->drv, i, VH_BUFFERS, 64, 0, 0);
            vring_driver_offer(&h->drv, i);
        }
        vring_driver_expose(&h->drv);
        g_assert_cmpuint(vring_harness_serve(h), ==, 256);
        g_assert_cmpuint(h->breaks, ==, 0);
        vring_harness_free(h);
    }
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_data_func("/vring/edge/longest-indirect-256",
                         GUINT_TO_POINTER(256), test_longest_indirect);
    g_test_add_data_func("/vring/edge/longest-indirect-1024",
                         GUINT_TO_POINTER(1024), test_longest_indirect);
    g_test_add_data_func("/vring/edge/longest-direct-256",
                         GUINT_TO_POINTER(256), test_longest_direct);
    g_test_add_data_func("/vring/edge/longest-direct-1024",
                         GUINT_TO_POINTER(1024), test_longest_direct);
    g_test_add_func("/vring/edge/indirect-ends-chain",
                    test_indirect_ends_chain);
    g_test_add_func("/vring/edge/indirect-long-table",
                    test_indirect_long_table);
    g_test_add_func("/vring/edge/indirect-anywhere", test_indirect_anywhere);
    g_test_add_func("/vring/edge/buffer-straddles", test_straddle);
    g_test_add_func("/vring/edge/memory-edges", test_memory_edges);
    g_test_add_func("/vring/edge/many-regions", test_many_regions);
    g_test_add_func("/vring/edge/sum-below-4g", test_sum_below_4g);
    g_test_add_func("/vring/edge/jump-exactly-size", test_jump_exactly_size);
    return g_test_run();
}
