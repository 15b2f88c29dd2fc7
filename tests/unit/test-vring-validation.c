/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What a split ring does with a driver that breaks the rules.
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

/* ---- malformed rings ---------------------------------------------------- */

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

static void table_4096(VringHarness *h)
{
    vring_harness_chain_table(h, TABLE, 4096);
    one(h, TABLE, 16 * 4096, I);
}

static void table_size_plus_1(VringHarness *h)
{
    vring_harness_chain_table(h, TABLE, h->drv.size + 1);
    one(h, TABLE, 16 * (h->drv.size + 1), I);
}

static void table_after_direct_too_long(VringHarness *h)
{
    vring_harness_chain_table(h, TABLE, h->drv.size);
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
    vring_harness_chain_table(h, TABLE, 2);
    one(h, TABLE, 8, I);
}

static void table_len_24(VringHarness *h)
{
    vring_harness_chain_table(h, TABLE, 2);
    one(h, TABLE, 24, I);
}

static void table_without_feature(VringHarness *h)
{
    vring_harness_chain_table(h, TABLE, 2);
    one(h, TABLE, 32, I);
}

static void table_and_next(VringHarness *h)
{
    vring_harness_chain_table(h, TABLE, 2);
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
    vring_harness_table(h, VH_END - 16, 0, VH_BUFFERS, 64, N, 1);
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

/* ---- chains before a malformed one -------------------------------------- */

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

/* ---- indexes ------------------------------------------------------------ */

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

    g_test_add_func("/vring/validation/good-before-bad",
                    test_good_before_bad);
    g_test_add_func("/vring/validation/broken-by-device",
                    test_broken_by_device);
    g_test_add_func("/vring/validation/break-stopped", test_break_stopped);
    g_test_add_func("/vring/validation/too-many-in-flight",
                    test_too_many_in_flight);
    g_test_add_func("/vring/validation/jump-found-by-arm",
                    test_jump_found_by_arm);
    g_test_add_func("/vring/validation/index-backwards",
                    test_index_backwards);

    return g_test_run();
}
