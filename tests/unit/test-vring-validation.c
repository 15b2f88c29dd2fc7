/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What a split ring does with a driver that breaks the rules, and with one
 * that goes to their edge.
 *
 * A malformed ring is described by a function that writes it; what follows is
 * the same for all: nothing is popped, guest memory is not touched, the
 * queue is broken, said why exactly once, looks empty, and a restart cures
 * it.  The numbers F.. name cases of the field where real devices failed.
 */
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "vring-harness.h"

#define N VRING_DESC_F_NEXT
#define W VRING_DESC_F_WRITE
#define I VRING_DESC_F_INDIRECT

#define TABLE (VH_BUFFERS + 0x10000)

/* ---- malformed rings ------------------------------------------------------- */

typedef struct BadCase {
    const char *name;
    uint16_t size;
    uint64_t features;
    void (*make)(VringHarness *h);
    const char *why;
} BadCase;

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

/* put_table_at: entry @i of an indirect table at @table. */
static void put_table_at(VringHarness *h, uint64_t table, unsigned i,
                         uint64_t gpa, uint32_t len, uint16_t flags,
                         uint16_t next)
{
    struct vring_desc d = {
        .addr = GUINT64_TO_LE(gpa),
        .len = GUINT32_TO_LE(len),
        .flags = GUINT16_TO_LE(flags),
        .next = GUINT16_TO_LE(next),
    };
    const uint8_t *bytes = (const uint8_t *)&d;

    for (unsigned k = 0; k < sizeof(d); k++) {
        *(uint8_t *)vring_harness_ptr(h, table + i * sizeof(d) + k) = bytes[k];
    }
}

static void put_table(VringHarness *h, unsigned i, uint64_t gpa, uint32_t len,
                      uint16_t flags, uint16_t next)
{
    put_table_at(h, TABLE, i, gpa, len, flags, next);
}

/* chain_table: @n one-byte buffers, one after the other. */
static void chain_table(VringHarness *h, uint64_t table, unsigned n)
{
    for (unsigned i = 0; i < n; i++) {
        put_table_at(h, table, i, VH_BUFFERS + i, 1, i + 1 < n ? N : 0, i + 1);
    }
}

static void one(VringHarness *h, uint64_t gpa, uint32_t len, uint16_t flags)
{
    desc(h, 0, gpa, len, flags, 0);
    offer(h, 0);
}

static void table_4096(VringHarness *h)
{
    chain_table(h, TABLE, 4096);
    one(h, TABLE, 16 * 4096, I);
}

static void table_size_plus_1(VringHarness *h)
{
    chain_table(h, TABLE, h->drv.size + 1);
    one(h, TABLE, 16 * (h->drv.size + 1), I);
}

static void table_after_direct_too_long(VringHarness *h)
{
    chain_table(h, TABLE, h->drv.size);
    desc(h, 0, VH_BUFFERS, 1, N, 1);
    desc(h, 1, TABLE, 16 * h->drv.size, I, 0);
    offer(h, 0);
}

static void table_len_0(VringHarness *h)
{
    one(h, TABLE, 0, I);
}

static void table_len_8(VringHarness *h)
{
    chain_table(h, TABLE, 2);
    one(h, TABLE, 8, I);
}

static void table_len_24(VringHarness *h)
{
    chain_table(h, TABLE, 2);
    one(h, TABLE, 24, I);
}

static void table_without_feature(VringHarness *h)
{
    chain_table(h, TABLE, 2);
    one(h, TABLE, 32, I);
}

static void table_and_next(VringHarness *h)
{
    chain_table(h, TABLE, 2);
    desc(h, 0, TABLE, 32, I | N, 1);
    desc(h, 1, VH_BUFFERS, 64, 0, 0);
    offer(h, 0);
}

static void table_nested(VringHarness *h)
{
    put_table(h, 0, VH_BUFFERS, 64, N, 1);
    put_table(h, 1, TABLE, 32, I, 0);
    one(h, TABLE, 32, I);
}

static void table_next_outside(VringHarness *h)
{
    put_table(h, 0, VH_BUFFERS, 64, N, 2);
    one(h, TABLE, 32, I);
}

static void table_loop(VringHarness *h)
{
    put_table(h, 0, VH_BUFFERS, 64, N, 1);
    put_table(h, 1, VH_BUFFERS, 64, N, 0);
    one(h, TABLE, 32, I);
}

static void table_loop_empty(VringHarness *h)
{
    put_table(h, 0, VH_BUFFERS, 0, N, 0);
    one(h, TABLE, 16, I);
}

static void table_wrong_order(VringHarness *h)
{
    put_table(h, 0, VH_BUFFERS, 64, W | N, 1);
    put_table(h, 1, VH_BUFFERS, 64, 0, 0);
    one(h, TABLE, 32, I);
}

static void table_unmapped(VringHarness *h)
{
    one(h, VH_END, 32, I);
}

static void table_leaves(VringHarness *h)
{
    put_table_at(h, VH_END - 16, 0, VH_BUFFERS, 64, N, 1);
    one(h, VH_END - 16, 32, I);
}

static void table_wraps(VringHarness *h)
{
    one(h, UINT64_MAX - 15, 32, I);
}

static void self_loop_empty(VringHarness *h)
{
    desc(h, 0, VH_BUFFERS, 0, W | N, 0);
    offer(h, 0);
}

static void pair_loop_empty(VringHarness *h)
{
    desc(h, 0, VH_BUFFERS, 0, N, 1);
    desc(h, 1, VH_BUFFERS, 0, N, 0);
    offer(h, 0);
}

static void self_loop(VringHarness *h)
{
    desc(h, 0, VH_BUFFERS, 64, W | N, 0);
    offer(h, 0);
}

static void pair_loop(VringHarness *h)
{
    desc(h, 0, VH_BUFFERS, 64, N, 1);
    desc(h, 1, VH_BUFFERS, 64, N, 0);
    offer(h, 0);
}

static void empty_head(VringHarness *h)
{
    one(h, VH_BUFFERS, 0, 0);
}

static void empty_in_chain(VringHarness *h)
{
    desc(h, 0, VH_BUFFERS, 64, N, 1);
    desc(h, 1, VH_BUFFERS, 0, N, 2);
    desc(h, 2, VH_BUFFERS, 64, 0, 0);
    offer(h, 0);
}

static void wrong_order(VringHarness *h)
{
    desc(h, 0, VH_BUFFERS, 64, W | N, 1);
    desc(h, 1, VH_BUFFERS, 64, 0, 0);
    offer(h, 0);
}

static void head_outside(VringHarness *h)
{
    offer(h, h->drv.size);
}

static void next_outside(VringHarness *h)
{
    desc(h, 0, VH_BUFFERS, 64, N, h->drv.size);
    offer(h, 0);
}

static void buffer_unmapped(VringHarness *h)
{
    one(h, VH_END, 64, 0);
}

static void buffer_below(VringHarness *h)
{
    one(h, VH_BASE - 1, 64, 0);
}

static void buffer_leaves(VringHarness *h)
{
    one(h, VH_END - 100, 1500, 0);
}

static void buffer_huge(VringHarness *h)
{
    one(h, VH_SPLIT - 100, UINT32_MAX, 0);
}

static void buffer_wraps(VringHarness *h)
{
    one(h, UINT64_MAX - 100, 1500, 0);
}

/* Wraps onto memory that is there. */
static void buffer_wraps_to_ram(VringHarness *h)
{
    one(h, UINT64_MAX - 0x1000 + 1, 0x1000 + VH_BUFFERS, 0);
}

static void sum_4g(VringHarness *h, uint16_t flags)
{
    uint32_t len = VH_END - VH_SPLIT;
    unsigned n = (UINT64_C(1) << 32) / len + 1;

    for (unsigned i = 0; i < n; i++) {
        desc(h, i, VH_SPLIT, len, flags | (i + 1 < n ? N : 0), i + 1);
    }
    offer(h, 0);
}

static void sum_readable(VringHarness *h)
{
    sum_4g(h, 0);
}

static void sum_writable(VringHarness *h)
{
    sum_4g(h, W);
}

static void jump_size_plus_1(VringHarness *h)
{
    desc(h, 0, VH_BUFFERS, 64, 0, 0);
    vring_driver_set_avail_idx(&h->drv, h->drv.size + 1);
}

static void jump_half(VringHarness *h)
{
    desc(h, 0, VH_BUFFERS, 64, 0, 0);
    vring_driver_set_avail_idx(&h->drv, 0x8000);
}

static void jump_back(VringHarness *h)
{
    vring_driver_set_avail_idx(&h->drv, 0xffff);
}

#define TOO_LONG "descriptor chain is longer than the ring"
#define LENGTH_0 "descriptor of length zero"
#define NOT_16 "indirect table length is not a multiple of 16"
#define TABLE_NOT_THERE "indirect table is not inside guest memory"
#define WRONG_ORDER "readable descriptor after a writable one"
#define NOT_THERE "buffer is not inside guest memory"
#define WRAPS "buffer wraps the address space"
#define SUM "descriptor chain of 4 GiB or more"
#define JUMP "available index moved by more than the ring"

static const BadCase bad_cases[] = {
    /* F01 */
    { "indirect-table-4096", 256, VH_INDIRECT, table_4096, TOO_LONG },
    { "indirect-size-plus-1", 256, VH_INDIRECT, table_size_plus_1, TOO_LONG },
    { "indirect-1025", 1024, VH_INDIRECT, table_size_plus_1, TOO_LONG },
    { "indirect-after-direct-too-long", 256, VH_INDIRECT,
      table_after_direct_too_long, TOO_LONG },
    /* F02 */
    { "indirect-length-zero", 256, VH_INDIRECT, table_len_0,
      "indirect table of length zero" },
    { "indirect-length-8", 256, VH_INDIRECT, table_len_8, NOT_16 },
    { "indirect-length-24", 256, VH_INDIRECT, table_len_24, NOT_16 },
    { "indirect-without-feature", 256, 0, table_without_feature,
      "indirect descriptor without the feature" },
    { "indirect-and-next", 256, VH_INDIRECT, table_and_next,
      "indirect descriptor with a next one" },
    { "indirect-nested", 256, VH_INDIRECT, table_nested,
      "indirect descriptor inside an indirect table" },
    { "indirect-next-outside", 256, VH_INDIRECT, table_next_outside,
      "next descriptor is outside the indirect table" },
    { "indirect-readable-after-writable", 256, VH_INDIRECT,
      table_wrong_order, WRONG_ORDER },
    /* F04 */
    { "self-loop-length-zero", 256, 0, self_loop_empty, LENGTH_0 },
    { "pair-loop-length-zero", 256, 0, pair_loop_empty, LENGTH_0 },
    { "indirect-loop-length-zero", 256, VH_INDIRECT, table_loop_empty,
      LENGTH_0 },
    { "self-loop", 256, 0, self_loop, TOO_LONG },
    { "pair-loop", 256, 0, pair_loop, TOO_LONG },
    { "indirect-loop", 256, VH_INDIRECT, table_loop, TOO_LONG },
    { "length-zero-head", 256, 0, empty_head, LENGTH_0 },
    { "length-zero-in-chain", 256, 0, empty_in_chain, LENGTH_0 },
    /* F05 */
    { "buffer-unmapped", 256, 0, buffer_unmapped, NOT_THERE },
    { "buffer-below-memory", 256, 0, buffer_below, NOT_THERE },
    { "buffer-leaves-memory", 256, 0, buffer_leaves, NOT_THERE },
    { "buffer-4g", 256, 0, buffer_huge, NOT_THERE },
    { "buffer-wraps", 256, 0, buffer_wraps, WRAPS },
    { "buffer-wraps-to-memory", 256, 0, buffer_wraps_to_ram, WRAPS },
    { "indirect-unmapped", 256, VH_INDIRECT, table_unmapped,
      TABLE_NOT_THERE },
    { "indirect-leaves-memory", 256, VH_INDIRECT, table_leaves,
      TABLE_NOT_THERE },
    { "indirect-wraps", 256, VH_INDIRECT, table_wraps,
      "indirect table wraps the address space" },
    { "sum-of-readable-4g", 1024, 0, sum_readable, SUM },
    { "sum-of-writable-4g", 1024, 0, sum_writable, SUM },
    /* F07 */
    { "avail-jump-size-plus-1", 256, 0, jump_size_plus_1, JUMP },
    { "avail-jump-0x8000", 256, 0, jump_half, JUMP },
    { "avail-back", 256, 0, jump_back, JUMP },
    /* F08, F17 */
    { "head-outside", 256, 0, head_outside,
      "available entry is outside the ring" },
    { "next-outside", 64, 0, next_outside,
      "next descriptor is outside the ring" },
    { "readable-after-writable", 64, 0, wrong_order, WRONG_ORDER },
};

static void test_bad(gconstpointer data)
{
    const BadCase *c = data;
    VringHarness *h = vring_harness_new(c->size, c->features);

    c->make(h);
    vring_harness_snapshot(h);
    g_assert_null(vring_harness_pop(h));
    vring_harness_assert_untouched(h);
    g_assert_cmpuint(h->breaks, ==, 1);
    vring_harness_assert_broken(h, c->why);
    vring_harness_free(h);
}

/* With a log the writable pieces are counted twice: F97. */
static void test_bad_logged(gconstpointer data)
{
    const BadCase *c = data;
    VringHarness *h = vring_harness_new(c->size, c->features);
    int fd = memfd_create("log", 0);
    DirtyLog *log;
    uint8_t bitmap[4096];

    g_assert(ftruncate(fd, sizeof(bitmap)) == 0);
    log = dirty_log_new(fd, sizeof(bitmap), 0, NULL);
    virtqueue_set_log(h->vq, log);
    c->make(h);
    g_assert_null(vring_harness_pop(h));
    g_assert(pread(fd, bitmap, sizeof(bitmap), 0) == sizeof(bitmap));
    for (unsigned i = 0; i < sizeof(bitmap); i++) {
        g_assert_cmpuint(bitmap[i], ==, 0);
    }
    vring_harness_assert_broken(h, c->why);
    vring_harness_free(h);
    dirty_log_unref(log);
    close(fd);
}

/* ---- chains before a malformed one ---------------------------------------- */

static void test_good_before_bad(void)
{
    VringHarness *h = vring_harness_new(256, 0);
    VirtQueueElem *elems[8];

    for (unsigned i = 0; i < 3; i++) {
        vring_driver_add(&h->drv, VH_BUFFERS + 64 * i, 64, 0);
    }
    vring_driver_add(&h->drv, VH_BUFFERS, 0, 0);
    vring_driver_add(&h->drv, VH_BUFFERS, 64, 0);

    g_assert_cmpuint(virtqueue_pop_batch(h->vq, elems, 8, SIZE_MAX), ==, 3);
    g_assert_false(virtqueue_broken(h->vq));
    /* Sleeping now would hide it: the scan has not reached the end. */
    g_assert_cmpint(virtqueue_arm(h->vq, 1), ==, VQ_ARM_CROSSED);
    g_assert_cmpuint(virtqueue_pop_batch(h->vq, elems + 3, 5, SIZE_MAX), ==,
                     0);
    for (unsigned i = 0; i < 3; i++) {
        virtqueue_fill(h->vq, elems[i], 0);
    }
    g_assert_cmpuint(virtqueue_publish(h->vq), ==, 0);
    g_assert_cmpuint(virtqueue_in_flight(h->vq), ==, 0);
    g_assert_cmpuint(h->breaks, ==, 1);
    vring_harness_assert_broken(h, LENGTH_0);
    vring_harness_free(h);
}

/* The device finds what only it can see, with chains in flight. */
static void test_broken_by_device(void)
{
    VringHarness *h = vring_harness_new(256, 0);
    VirtQueueElem *elems[4];

    for (unsigned i = 0; i < 4; i++) {
        vring_driver_add(&h->drv, VH_BUFFERS + 64 * i, 64, W);
    }
    g_assert_cmpuint(virtqueue_pop_batch(h->vq, elems, 4, SIZE_MAX), ==, 4);
    virtqueue_fill(h->vq, elems[0], 0);
    virtqueue_break(h->vq, "no header");
    vring_harness_snapshot(h);
    g_assert_cmpuint(virtqueue_publish(h->vq), ==, 0);
    virtqueue_unpop(h->vq, 3);
    g_assert_cmpuint(virtqueue_in_flight(h->vq), ==, 0);
    vring_harness_assert_untouched(h);
    vring_harness_assert_broken(h, "no header");
    vring_harness_free(h);
}

/* A stopped queue has nothing to break. */
static void test_break_stopped(void)
{
    VringHarness *h = vring_harness_new(256, 0);

    virtqueue_stop(h->vq);
    virtqueue_break(h->vq, "not running");
    g_assert_false(virtqueue_broken(h->vq));
    g_assert_cmpuint(h->breaks, ==, 0);
    vring_harness_free(h);
}

/* ---- the edge of the rules ------------------------------------------------- */

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

    chain_table(h, TABLE, size);
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
            put_table_at(h, table, i, VH_BUFFERS + 100 * i, 50 + i,
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

/* ---- indexes --------------------------------------------------------------- */

/* F06: the same head again and again, none completed. */
static void test_too_many_in_flight(void)
{
    enum { SIZE = 8 };
    VringHarness *h = vring_harness_new(SIZE, 0);
    VirtQueueElem *elems[SIZE];

    desc(h, 0, VH_BUFFERS, 64, 0, 0);
    for (unsigned i = 0; i < SIZE; i++) {
        offer(h, 0);
        g_assert_cmpuint(virtqueue_pop_batch(h->vq, &elems[i], 1, SIZE_MAX),
                         ==, 1);
    }
    g_assert_cmpuint(virtqueue_in_flight(h->vq), ==, SIZE);
    g_assert_false(virtqueue_broken(h->vq));
    offer(h, 0);
    g_assert_null(vring_harness_pop(h));
    g_assert_cmpuint(h->breaks, ==, 1);
    g_assert_cmpuint(virtqueue_in_flight(h->vq), ==, SIZE);
    virtqueue_unpop(h->vq, SIZE);
    vring_harness_assert_broken(h,
        "more chains in flight than the ring has entries");
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

/* F07: the enable-and-look-again path finds it, too, and does not say that
 * there is more. */
static void test_jump_found_by_arm(void)
{
    VringHarness *h = vring_harness_new(256, VH_EVENT_IDX);

    g_assert_cmpint(virtqueue_arm(h->vq, 1), ==, VQ_ARM_EMPTY);
    vring_driver_set_avail_idx(&h->drv, 257);
    g_assert_cmpint(virtqueue_arm(h->vq, 1), ==, VQ_ARM_EMPTY);
    g_assert_cmpuint(h->breaks, ==, 1);
    vring_harness_assert_broken(h, JUMP);
    vring_harness_free(h);
}

static void test_jump_found_by_disarm(void)
{
    VringHarness *h = vring_harness_new(256, VH_EVENT_IDX);

    vring_driver_set_avail_idx(&h->drv, 257);
    g_assert_false(virtqueue_disarm(h->vq));
    vring_harness_assert_broken(h, JUMP);
    vring_harness_free(h);
}

/* An index that was seen and is taken back. */
static void test_index_backwards(void)
{
    VringHarness *h = vring_harness_new(256, 0);
    VirtQueueElem *elems[8];

    for (unsigned i = 0; i < 4; i++) {
        vring_driver_add(&h->drv, VH_BUFFERS, 64, 0);
    }
    g_assert_cmpuint(virtqueue_pop_batch(h->vq, elems, 2, SIZE_MAX), ==, 2);
    vring_driver_set_avail_idx(&h->drv, 3);
    g_assert_cmpuint(virtqueue_pop_batch(h->vq, elems, 8, SIZE_MAX), ==, 0);
    virtqueue_unpop(h->vq, 2);
    vring_harness_assert_broken(h, "available index moved backwards");
    vring_harness_free(h);
}

/* ---- setup ------------------------------------------------------------------ */

/* F09: verbs of a queue that was never started, or was stopped. */
static void check_stopped(VirtQueue *vq)
{
    VirtQueueElem *e;

    g_assert_false(virtqueue_started(vq));
    g_assert_false(virtqueue_broken(vq));
    g_assert_cmpuint(virtqueue_pop_batch(vq, &e, 1, SIZE_MAX), ==, 0);
    g_assert_cmpuint(virtqueue_publish(vq), ==, 0);
    g_assert_false(virtqueue_should_signal(vq));
    virtqueue_park(vq);
    g_assert_cmpint(virtqueue_arm(vq, 1), ==, VQ_ARM_EMPTY);
    g_assert_false(virtqueue_disarm(vq));
    g_assert_false(virtqueue_avail_moved(vq));
    g_assert_cmpuint(virtqueue_in_flight(vq), ==, 0);
}

static void test_never_started(void)
{
    VirtQueue *vq = virtqueue_new("idle", 256, NULL, NULL);

    check_stopped(vq);
    g_assert_cmpuint(virtqueue_stop(vq), ==, 0);
    virtqueue_free(vq);
    virtqueue_free(NULL);
}

static void test_stopped(void)
{
    VringHarness *h = vring_harness_new(256, 0);

    for (unsigned i = 0; i < 7; i++) {
        vring_driver_add(&h->drv, VH_BUFFERS, 64, 0);
    }
    g_assert_cmpuint(vring_harness_serve(h), ==, 7);
    vring_driver_add(&h->drv, VH_BUFFERS, 64, 0);
    g_assert_cmpuint(virtqueue_stop(h->vq), ==, 7);
    vring_harness_snapshot(h);
    check_stopped(h->vq);
    g_assert_cmpuint(virtqueue_stop(h->vq), ==, 7);
    g_assert_cmpuint(virtqueue_last_avail(h->vq), ==, 7);
    vring_harness_assert_untouched(h);
    vring_harness_free(h);
}

/* F10: the live size rules, whatever it was before. */
static void test_size_changes(void)
{
    static const uint16_t sizes[] = { 256, 1024, 1, 1024, 2 };
    VringHarness *h = vring_harness_new(256, 0);

    for (unsigned s = 0; s < G_N_ELEMENTS(sizes); s++) {
        h->setup.size = sizes[s];
        vring_harness_restart(h);
        g_assert_cmpuint(virtqueue_size(h->vq), ==, sizes[s]);
        for (unsigned i = 0; i < sizes[s]; i++) {
            vring_driver_desc(&h->drv, i, VH_BUFFERS, 64, W, 0);
            vring_driver_offer(&h->drv, i);
        }
        vring_driver_expose(&h->drv);
        g_assert_cmpuint(vring_harness_serve(h), ==, sizes[s]);
    }
    vring_harness_free(h);
}

typedef struct SetupCase {
    const char *name;
    void (*spoil)(VirtQueueSetup *s);
    const char *message;    /* glob */
} SetupCase;

static void size_zero(VirtQueueSetup *s)
{
    s->size = 0;
}

static void size_odd(VirtQueueSetup *s)
{
    s->size = 100;
}

static void size_too_large(VirtQueueSetup *s)
{
    s->size = 2048;
}

static void packed(VirtQueueSetup *s)
{
    s->features |= VH_FEATURE(VIRTIO_F_RING_PACKED);
}

static void desc_misaligned(VirtQueueSetup *s)
{
    s->desc += 8;
}

static void avail_misaligned(VirtQueueSetup *s)
{
    s->avail += 1;
}

static void used_misaligned(VirtQueueSetup *s)
{
    s->used += 2;
}

static void desc_unmapped(VirtQueueSetup *s)
{
    s->desc = VH_END;
}

static void desc_straddles(VirtQueueSetup *s)
{
    s->desc = VH_SPLIT - 16;
}

static void avail_straddles(VirtQueueSetup *s)
{
    s->avail = VH_SPLIT - 2;
}

static void used_leaves(VirtQueueSetup *s)
{
    s->used = VH_END - 4;
}

/* F16: all but the event word is there. */
static void avail_without_event(VirtQueueSetup *s)
{
    s->features |= VH_EVENT_IDX;
    s->avail = VH_END - (4 + 2 * s->size);
}

static void used_without_event(VirtQueueSetup *s)
{
    s->features |= VH_EVENT_IDX;
    s->used = VH_END - (4 + 8 * s->size);
}

static void index_ahead(VirtQueueSetup *s)
{
    s->last_avail = s->size + 1;
}

static void wrong_space(VirtQueueSetup *s)
{
    s->space = GUEST_SPACE_USER;
}

static const SetupCase setup_cases[] = {
    { "size-zero", size_zero, "*ring size 0 is not between 1 and 1024" },
    { "size-not-a-power-of-two", size_odd,
      "*ring size 100 is not a power of two" },
    { "size-too-large", size_too_large,
      "*ring size 2048 is not between 1 and 1024" },
    { "packed", packed, "*packed rings are not supported" },
    { "desc-misaligned", desc_misaligned, "*not aligned to 16 bytes" },
    { "avail-misaligned", avail_misaligned, "*not aligned to 2 bytes" },
    { "used-misaligned", used_misaligned, "*not aligned to 4 bytes" },
    { "desc-unmapped", desc_unmapped, "*not inside one memory region" },
    { "desc-straddles", desc_straddles, "*not inside one memory region" },
    { "avail-straddles", avail_straddles, "*not inside one memory region" },
    { "used-leaves-memory", used_leaves, "*not inside one memory region" },
    { "avail-without-event-word", avail_without_event,
      "*available ring*not inside one memory region" },
    { "used-without-event-word", used_without_event,
      "*used ring*not inside one memory region" },
    { "index-too-far-ahead", index_ahead, "*available index 257 is more*" },
    { "wrong-address-space", wrong_space, "*not inside one memory region" },
};

static void test_setup(gconstpointer data)
{
    const SetupCase *c = data;
    VringHarness *h = vring_harness_new(256, 0);
    VirtQueueSetup setup = h->setup;
    GError *err = NULL;

    virtqueue_stop(h->vq);
    c->spoil(&setup);
    vring_harness_snapshot(h);
    g_assert_false(virtqueue_start(h->vq, &setup, h->map, &err));
    g_assert_nonnull(err);
    g_assert_true(g_pattern_match_simple(c->message, err->message));
    g_assert_true(g_str_has_prefix(err->message, "harness: "));
    g_error_free(err);
    vring_harness_assert_untouched(h);
    check_stopped(h->vq);
    /* And nobody holds the map: freeing waits for that. */
    vring_harness_restart(h);
    vring_harness_free(h);
}

/* F16: without EVENT_IDX those bytes are nobody's. */
static void test_no_event_word(void)
{
    VringHarness *h = vring_harness_new(256, 0);
    VirtQueueSetup setup = h->setup;
    GError *err = NULL;

    virtqueue_stop(h->vq);
    setup.avail = VH_END - (4 + 2 * setup.size);
    virtqueue_start(h->vq, &setup, h->map, &err);
    g_assert_no_error(err);
    virtqueue_stop(h->vq);
    setup = h->setup;
    setup.used = VH_END - (4 + 8 * setup.size);
    virtqueue_start(h->vq, &setup, h->map, &err);
    g_assert_no_error(err);
    vring_harness_free(h);
}

/* The ring's addresses as a front-end's own. */
static void test_user_space(void)
{
    VringHarness *h = vring_harness_new(256, 0);
    GError *err = NULL;

    virtqueue_stop(h->vq);
    h->setup.space = GUEST_SPACE_USER;
    h->setup.desc += VH_UADDR;
    h->setup.avail += VH_UADDR;
    h->setup.used += VH_UADDR;
    virtqueue_start(h->vq, &h->setup, h->map, &err);
    g_assert_no_error(err);
    vring_driver_add(&h->drv, VH_BUFFERS, 64, 0);
    g_assert_cmpuint(vring_harness_serve(h), ==, 1);
    vring_harness_free(h);
}

/* A region that starts at an odd place of this process. */
static void test_misaligned_region(void)
{
    VirtQueue *vq = virtqueue_new("odd", 256, NULL, NULL);
    GuestMapBuilder *b = guest_map_builder_new(NULL);
    g_autofree uint8_t *ram = g_malloc(0x4001);
    GuestRegionInfo info = { .gpa = 0x1000, .size = 0x4000, .uaddr = 0x1000 };
    VirtQueueSetup setup = { .size = 4, .desc = 0x1000, .avail = 0x2000,
                             .used = 0x3000 };
    GError *err = NULL;
    GuestMap *map;

    g_assert_true(guest_map_builder_add_ram(b, &info, ram + 1, NULL));
    map = guest_map_builder_finish(b);
    g_assert_false(virtqueue_start(vq, &setup, map, &err));
    g_assert_true(g_str_has_suffix(err->message, "that is not aligned"));
    g_error_free(err);
    virtqueue_free(vq);
    guest_map_release_wait(map);
}

/* A new map that does not have the ring. */
static void test_remap_loses_ring(void)
{
    VringHarness *h = vring_harness_new(256, 0);
    GuestMapBuilder *b = guest_map_builder_new(h->map);
    GuestRegionInfo info = guest_map_region_info(h->map, 0);
    GError *err = NULL;
    GuestMap *map;

    g_assert_cmpuint(info.gpa, ==, VH_BASE);
    g_assert_true(guest_map_builder_remove(b, &info));
    map = guest_map_builder_finish(b);
    g_assert_false(virtqueue_remap(h->vq, map, &err));
    g_assert_nonnull(err);
    g_error_free(err);
    guest_map_unref(map);
    g_assert_cmpuint(h->breaks, ==, 1);
    vring_harness_assert_broken(h,
        "ring is not inside guest memory any more");
    vring_harness_free(h);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    for (unsigned i = 0; i < G_N_ELEMENTS(bad_cases); i++) {
        g_autofree char *plain = g_strconcat("/vring/validation/",
                                             bad_cases[i].name, NULL);
        g_autofree char *logged = g_strconcat("/vring/validation-logged/",
                                              bad_cases[i].name, NULL);

        g_test_add_data_func(plain, &bad_cases[i], test_bad);
        g_test_add_data_func(logged, &bad_cases[i], test_bad_logged);
    }
    for (unsigned i = 0; i < G_N_ELEMENTS(setup_cases); i++) {
        g_autofree char *name = g_strconcat("/vring/setup/",
                                            setup_cases[i].name, NULL);

        g_test_add_data_func(name, &setup_cases[i], test_setup);
    }
    g_test_add_func("/vring/setup/no-event-word", test_no_event_word);
    g_test_add_func("/vring/setup/user-space", test_user_space);
    g_test_add_func("/vring/setup/misaligned-region", test_misaligned_region);
    g_test_add_func("/vring/setup/never-started", test_never_started);
    g_test_add_func("/vring/setup/stopped", test_stopped);
    g_test_add_func("/vring/setup/size-changes", test_size_changes);
    g_test_add_func("/vring/setup/remap-loses-ring", test_remap_loses_ring);

    g_test_add_func("/vring/validation/good-before-bad",
                    test_good_before_bad);
    g_test_add_func("/vring/validation/broken-by-device",
                    test_broken_by_device);
    g_test_add_func("/vring/validation/break-stopped", test_break_stopped);
    g_test_add_func("/vring/validation/too-many-in-flight",
                    test_too_many_in_flight);
    g_test_add_func("/vring/validation/jump-found-by-arm",
                    test_jump_found_by_arm);
    g_test_add_func("/vring/validation/jump-found-by-disarm",
                    test_jump_found_by_disarm);
    g_test_add_func("/vring/validation/index-backwards",
                    test_index_backwards);

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
