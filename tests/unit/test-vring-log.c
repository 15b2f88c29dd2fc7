/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The dirty log of a ring (F54): every page that the device wrote is in the
 * log, and no other; the used ring only if asked for, at the address given
 * for it.
 */
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "vring-harness.h"

#define N VRING_DESC_F_NEXT
#define W VRING_DESC_F_WRITE

static void add_n(VringHarness *h, unsigned n)
{
    for (unsigned i = 0; i < n; i++) {
        vring_driver_add(&h->drv, VH_BUFFERS + 64 * i, 64, 0);
    }
}

#define LOG_BYTES 4096
#define PAGE 4096

typedef struct Logged {
    VringHarness *h;
    DirtyLog *log;
    int fd;
    uint8_t *bitmap;
} Logged;

static Logged logged_new(uint16_t size, uint64_t features)
{
    Logged l = { .h = vring_harness_new(size, features) };
    GError *err = NULL;

    l.fd = memfd_create("log", 0);
    g_assert(ftruncate(l.fd, LOG_BYTES) == 0);
    l.bitmap = mmap(NULL, LOG_BYTES, PROT_READ, MAP_SHARED, l.fd, 0);
    l.log = dirty_log_new(l.fd, LOG_BYTES, 0, &err);
    g_assert_no_error(err);
    return l;
}

static void logged_free(Logged *l)
{
    vring_harness_free(l->h);
    dirty_log_unref(l->log);
    munmap(l->bitmap, LOG_BYTES);
    close(l->fd);
}

/* restart: with the used ring logged at @log_gpa. */
static void logged_restart(Logged *l, uint64_t log_gpa)
{
    VirtQueueSetup setup = l->h->setup;

    setup.last_avail = virtqueue_stop(l->h->vq);
    setup.log_used = true;
    setup.log_gpa = log_gpa;
    g_assert_true(virtqueue_start(l->h->vq, &setup, l->h->map, NULL));
}

static bool is_dirty(const Logged *l, uint64_t gpa)
{
    return l->bitmap[gpa / PAGE / 8] >> (gpa / PAGE % 8) & 1;
}

static unsigned dirty_pages(const Logged *l)
{
    unsigned n = 0;

    for (unsigned i = 0; i < LOG_BYTES; i++) {
        n += __builtin_popcount(l->bitmap[i]);
    }
    return n;
}

/* Exactly what was written, although the device has eaten the iovecs. */
static void test_log_data(void)
{
    Logged l = logged_new(16, 0);
    VringHarness *h = l.h;
    uint64_t a = VH_BUFFERS + PAGE - 8;
    VirtQueueElem *e;

    virtqueue_set_log(h->vq, l.log);
    vring_driver_desc(&h->drv, 0, VH_BUFFERS + 10 * PAGE, 64, N, 1);
    vring_driver_desc(&h->drv, 1, a, 12, W | N, 2);
    vring_driver_desc(&h->drv, 2, VH_SPLIT - PAGE - 100, 2 * PAGE + 200, W, 0);
    vring_driver_offer(&h->drv, 0);
    vring_driver_expose(&h->drv);

    /* Nothing written, then up to the first buffer's first page. */
    vring_harness_complete(h, vring_harness_pop(h), 0);
    g_assert_cmpuint(dirty_pages(&l), ==, 0);
    vring_driver_offer(&h->drv, 0);
    vring_driver_expose(&h->drv);
    vring_harness_complete(h, vring_harness_pop(h), 8);
    g_assert_cmpuint(dirty_pages(&l), ==, 1);
    g_assert_true(is_dirty(&l, a));

    /* 12 + 100 bytes: the second page of a, one before the split's last. */
    vring_driver_offer(&h->drv, 0);
    vring_driver_expose(&h->drv);
    e = vring_harness_pop(h);
    g_assert_cmpuint(e->in_num, ==, 3);
    memset(&e->iov[e->out_num], 0, sizeof(struct iovec) * e->in_num);
    vring_harness_complete(h, e, 112);
    g_assert_cmpuint(dirty_pages(&l), ==, 3);
    g_assert_true(is_dirty(&l, a + 8));
    g_assert_true(is_dirty(&l, VH_SPLIT - PAGE - 1));

    /* All of it, over the regions' boundary. */
    vring_driver_offer(&h->drv, 0);
    vring_driver_expose(&h->drv);
    e = vring_harness_pop(h);
    vring_harness_complete(h, e, e->in_bytes);
    g_assert_cmpuint(dirty_pages(&l), ==, 6);
    g_assert_true(is_dirty(&l, VH_SPLIT - 1));
    g_assert_true(is_dirty(&l, VH_SPLIT));
    g_assert_true(is_dirty(&l, VH_SPLIT + PAGE + 99));

    /* And no more once it is off. */
    virtqueue_set_log(h->vq, NULL);
    vring_driver_add(&h->drv, VH_BUFFERS + 20 * PAGE, 64, W);
    vring_harness_complete(h, vring_harness_pop(h), 64);
    g_assert_cmpuint(dirty_pages(&l), ==, 6);
    logged_free(&l);
}

/* Chains that were taken before the log was set are logged, too. */
static void test_log_set_in_flight(void)
{
    Logged l = logged_new(16, 0);
    VirtQueueElem *e;

    vring_driver_add(&l.h->drv, VH_BUFFERS, 64, W);
    e = vring_harness_pop(l.h);
    virtqueue_set_log(l.h->vq, l.log);
    vring_harness_complete(l.h, e, 64);
    g_assert_cmpuint(dirty_pages(&l), ==, 1);
    g_assert_true(is_dirty(&l, VH_BUFFERS));
    logged_free(&l);
}

/*
 * The used ring, at an address of its own choice at an odd offset in its
 * page: index and flags in one page, entries and event word in others.
 */
static void test_log_used(void)
{
    /* Offsets: flags 0, idx 2, entries 4.., event 4 + 8 x 1024. */
    uint64_t log_gpa = VH_SPLIT + PAGE - 4;
    Logged l = logged_new(1024, VH_EVENT_IDX);

    virtqueue_set_log(l.h->vq, l.log);
    /* Without the ring's own flag it is not logged. */
    add_n(l.h, 1);
    vring_harness_serve(l.h);
    g_assert_cmpuint(dirty_pages(&l), ==, 0);

    logged_restart(&l, log_gpa);
    add_n(l.h, 1);
    vring_harness_serve(l.h);
    g_assert_cmpuint(dirty_pages(&l), ==, 2);
    g_assert_true(is_dirty(&l, log_gpa));           /* index */
    g_assert_true(is_dirty(&l, log_gpa + 4 + 8));   /* entry 1 */
    virtqueue_arm(l.h->vq, 512);
    g_assert_cmpuint(dirty_pages(&l), ==, 3);
    g_assert_true(is_dirty(&l, log_gpa + 4 + 8 * 1024));
    for (unsigned i = 2; i < 512; i++) {
        add_n(l.h, 1);
        vring_harness_serve(l.h);
    }
    /* Entry 512 lies in the next page. */
    g_assert_cmpuint(dirty_pages(&l), ==, 3);
    add_n(l.h, 1);
    vring_harness_serve(l.h);
    g_assert_cmpuint(dirty_pages(&l), ==, 4);
    g_assert_true(is_dirty(&l, log_gpa + 4 + 8 * 512));
    logged_free(&l);
}

static void test_log_used_flags(void)
{
    Logged l = logged_new(16, 0);

    virtqueue_set_log(l.h->vq, l.log);
    logged_restart(&l, VH_SPLIT);
    virtqueue_park(l.h->vq);
    g_assert_cmpuint(dirty_pages(&l), ==, 1);
    g_assert_true(is_dirty(&l, VH_SPLIT));
    logged_free(&l);
}

/* A batch whose entries go round the end of the ring. */
static void test_log_used_wrap(void)
{
    Logged l = logged_new(1024, 0);
    uint64_t log_gpa = VH_SPLIT;
    VirtQueueElem *elems[8];

    add_n(l.h, 1020);
    vring_harness_serve(l.h);
    virtqueue_set_log(l.h->vq, l.log);
    logged_restart(&l, log_gpa);
    add_n(l.h, 8);
    virtqueue_pop_batch(l.h->vq, elems, 8, SIZE_MAX);
    for (unsigned i = 0; i < 8; i++) {
        virtqueue_fill(l.h->vq, elems[i], 0);
    }
    g_assert_cmpuint(virtqueue_publish(l.h->vq), ==, 8);
    g_assert_cmpuint(dirty_pages(&l), ==, 3);
    g_assert_true(is_dirty(&l, log_gpa));
    g_assert_true(is_dirty(&l, log_gpa + 4 + 8 * 1020));
    g_assert_true(is_dirty(&l, log_gpa + 4 + 8 * 1024 - 1));
    logged_free(&l);
}

/* Pages whose bytes changed against pages in the log, all verbs. */
static void test_log_complete(void)
{
    Logged l = logged_new(64, VH_EVENT_IDX | VH_INDIRECT);
    VringHarness *h = l.h;

    virtqueue_set_log(h->vq, l.log);
    logged_restart(&l, VH_USED);
    for (unsigned i = 0; i < 64; i++) {
        vring_driver_desc(&h->drv, i, VH_BUFFERS + 3000 * i, 1500, W, 0);
        vring_driver_offer(&h->drv, i);
    }
    vring_driver_expose(&h->drv);
    vring_harness_snapshot(h);
    for (unsigned i = 0; i < 60; i++) {
        VirtQueueElem *e = vring_harness_pop(h);

        memset(e->iov[0].iov_base, 0xa5, 25 * i);
        vring_harness_complete(h, e, 25 * i);
        virtqueue_park(h->vq);
        virtqueue_arm(h->vq, 1 + i % 3);
    }
    virtqueue_disarm(h->vq);
    for (uint64_t gpa = VH_BASE; gpa < VH_SPLIT; gpa += PAGE) {
        bool changed = memcmp(h->snapshot + (gpa - VH_BASE),
                              vring_harness_ptr(h, gpa), PAGE) != 0;

        g_assert(is_dirty(&l, gpa) == changed);
    }
    logged_free(&l);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/vring/log/data", test_log_data);
    g_test_add_func("/vring/log/set-in-flight", test_log_set_in_flight);
    g_test_add_func("/vring/log/used", test_log_used);
    g_test_add_func("/vring/log/used-flags", test_log_used_flags);
    g_test_add_func("/vring/log/used-wrap", test_log_used_wrap);
    g_test_add_func("/vring/log/complete", test_log_complete);
    return g_test_run();
}
