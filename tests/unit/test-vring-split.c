/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What a split ring does for a driver that keeps the rules: batches, order,
 * giving back, index wrap, gather lists that stay apart, and a packet path
 * without allocations.
 */
#include <pthread.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "alloc-count.h"
#include "vring-harness.h"

#define N VRING_DESC_F_NEXT
#define W VRING_DESC_F_WRITE
#define I VRING_DESC_F_INDIRECT

#define TABLES (VH_BUFFERS + 0x20000)

static void add_n(VringHarness *h, unsigned n)
{
    for (unsigned i = 0; i < n; i++) {
        vring_driver_add(&h->drv, VH_BUFFERS + 64 * i, 64, 0);
    }
}

static void assert_used(VringHarness *h, uint32_t want_id, uint32_t want_len)
{
    uint32_t id, len;

    g_assert_true(vring_driver_get_used(&h->drv, &id, &len));
    g_assert_cmpuint(id, ==, want_id);
    g_assert_cmpuint(len, ==, want_len);
}

static void assert_no_used(VringHarness *h)
{
    uint32_t id, len;

    g_assert_false(vring_driver_get_used(&h->drv, &id, &len));
}

/* ---- batches ------------------------------------------------------------ */

static void test_batch_limits(void)
{
    VringHarness *h = vring_harness_new(64, 0);
    VirtQueueElem *elems[64];

    add_n(h, 20);
    g_assert_cmpuint(virtqueue_pop_batch(h->vq, elems, 0, SIZE_MAX), ==, 0);
    g_assert_cmpuint(virtqueue_pop_batch(h->vq, elems, 5, SIZE_MAX), ==, 5);
    /* The limit is met or passed by the last one taken. */
    g_assert_cmpuint(virtqueue_pop_batch(h->vq, elems + 5, 64, 128), ==, 2);
    g_assert_cmpuint(virtqueue_pop_batch(h->vq, elems + 7, 64, 129), ==, 3);
    g_assert_cmpuint(virtqueue_pop_batch(h->vq, elems + 10, 64, 0), ==, 1);
    g_assert_cmpuint(virtqueue_pop_batch(h->vq, elems + 11, 64, SIZE_MAX), ==,
                     9);
    g_assert_cmpuint(virtqueue_in_flight(h->vq), ==, 20);
    for (unsigned i = 0; i < 20; i++) {
        g_assert_cmpuint(elems[i]->id, ==, i);
        g_assert_cmpuint(elems[i]->out_bytes, ==, 64);
        g_assert(elems[i]->iov[0].iov_base ==
                 vring_harness_ptr(h, VH_BUFFERS + 64 * i));
        virtqueue_fill(h->vq, elems[i], 0);
    }
    g_assert_cmpuint(virtqueue_publish(h->vq), ==, 20);
    g_assert_cmpuint(virtqueue_publish(h->vq), ==, 0);
    vring_harness_free(h);
}

/* F86: what is not asked for is not looked at, be it malformed. */
static void test_no_look_ahead(void)
{
    VringHarness *h = vring_harness_new(64, 0);
    VirtQueueElem *elem;

    add_n(h, 1);
    vring_driver_add(&h->drv, VH_BUFFERS, 0, 0);
    for (unsigned i = 0; i < 100; i++) {
        elem = vring_harness_pop(h);
        g_assert_nonnull(elem);
        virtqueue_unpop(h->vq, 1);
    }
    g_assert_false(virtqueue_broken(h->vq));
    vring_harness_free(h);
}

/* A used entry is visible once it is published, and not before. */
static void test_publish_once(void)
{
    VringHarness *h = vring_harness_new(64, 0);
    VirtQueueElem *elems[4];

    add_n(h, 4);
    virtqueue_pop_batch(h->vq, elems, 4, SIZE_MAX);
    virtqueue_fill(h->vq, elems[0], 10);
    virtqueue_fill(h->vq, elems[1], 11);
    assert_no_used(h);
    g_assert_cmpuint(virtqueue_publish(h->vq), ==, 2);
    assert_used(h, 0, 10);
    assert_used(h, 1, 11);
    assert_no_used(h);
    virtqueue_fill(h->vq, elems[3], 13);
    g_assert_cmpuint(virtqueue_publish(h->vq), ==, 0);
    virtqueue_fill(h->vq, elems[2], 12);
    g_assert_cmpuint(virtqueue_publish(h->vq), ==, 2);
    assert_used(h, 2, 12);
    assert_used(h, 3, 13);
    vring_harness_free(h);
}

/* F11: chains of 1, 3, 2 and 5 descriptors, completed 3rd, 1st, 4th, 2nd, at
 * a position that wraps. */
static void test_order(void)
{
    static const unsigned lengths[] = { 1, 3, 2, 5 };
    static const unsigned order[] = { 2, 0, 3, 1 };
    static const unsigned visible[] = { 0, 1, 1, 4 };
    VringHarness *h = vring_harness_new_at(16, 0, 65536 - 2);
    VirtQueueElem *elems[4];
    uint16_t heads[4];
    unsigned d = 0;
    unsigned seen = 0;

    for (unsigned c = 0; c < 4; c++) {
        heads[c] = d;
        for (unsigned k = 0; k < lengths[c]; k++, d++) {
            vring_driver_desc(&h->drv, d, VH_BUFFERS + 64 * d, 64,
                              k + 1 < lengths[c] ? N : 0, d + 1);
        }
        vring_driver_offer(&h->drv, heads[c]);
    }
    vring_driver_expose(&h->drv);
    g_assert_cmpuint(virtqueue_pop_batch(h->vq, elems, 4, SIZE_MAX), ==, 4);
    for (unsigned k = 0; k < 4; k++) {
        g_assert_cmpuint(elems[k]->ndescs, ==, lengths[k]);
        g_assert_cmpuint(elems[k]->out_num, ==, lengths[k]);
    }
    for (unsigned k = 0; k < 4; k++) {
        virtqueue_fill(h->vq, elems[order[k]], 0);
        virtqueue_publish(h->vq);
        while (seen < visible[k]) {
            assert_used(h, heads[seen++], 0);
        }
        assert_no_used(h);
    }
    g_assert_cmpuint(virtqueue_last_avail(h->vq), ==, 2);
    vring_harness_free(h);
}

/* ---- indexes ------------------------------------------------------------ */

/* F17: 70000 answers on a ring of 64: the indexes wrap. */
static void test_70000(void)
{
    VringHarness *h = vring_harness_new(64, VH_EVENT_IDX);

    for (unsigned i = 0; i < 70000; i++) {
        VirtQueueElem *elem;
        uint16_t head = vring_driver_add(&h->drv, VH_BUFFERS, 64 + i % 7, W);

        elem = vring_harness_pop(h);
        g_assert_nonnull(elem);
        g_assert_cmpuint(elem->in_bytes, ==, 64 + i % 7);
        vring_harness_complete(h, elem, i % 64);
        assert_used(h, head, i % 64);
        assert_no_used(h);
    }
    g_assert_cmpuint(virtqueue_last_avail(h->vq), ==, 70000 - 65536);
    vring_harness_free(h);
}

static void run_size(uint16_t size)
{
    VringHarness *h = vring_harness_new(size, VH_EVENT_IDX);
    VirtQueueElem *elems[VIRTQUEUE_MAX_SIZE];

    for (unsigned round = 0; round < 70000u / size; round++) {
        for (unsigned i = 0; i < size; i++) {
            vring_driver_desc(&h->drv, i, VH_BUFFERS + i, 1 + i, W, 0);
            vring_driver_offer(&h->drv, i);
        }
        vring_driver_expose(&h->drv);
        g_assert_cmpuint(virtqueue_pop_batch(h->vq, elems, size, SIZE_MAX),
                         ==, size);
        for (unsigned i = size; i-- > 0;) {
            virtqueue_fill(h->vq, elems[i], i);
        }
        g_assert_cmpuint(virtqueue_publish(h->vq), ==, size);
        for (unsigned i = 0; i < size; i++) {
            assert_used(h, i, i);
        }
    }
    vring_harness_free(h);
}

static void test_sizes(void)
{
    run_size(1);
    run_size(2);
    run_size(64);
    run_size(1024);
}

static void test_unpop(void)
{
    VringHarness *h = vring_harness_new(16, 0);
    VirtQueueElem *elems[8];

    add_n(h, 8);
    virtqueue_unpop(h->vq, 0);
    g_assert_cmpuint(virtqueue_pop_batch(h->vq, elems, 8, SIZE_MAX), ==, 8);
    virtqueue_fill(h->vq, elems[1], 0);
    virtqueue_unpop(h->vq, 5);
    g_assert_cmpuint(virtqueue_in_flight(h->vq), ==, 3);
    g_assert_cmpuint(virtqueue_last_avail(h->vq), ==, 3);
    g_assert_cmpuint(virtqueue_pop_batch(h->vq, elems + 3, 8, SIZE_MAX), ==,
                     5);
    for (unsigned i = 0; i < 8; i++) {
        g_assert_cmpuint(elems[i]->id, ==, i);
        if (i != 1) {
            virtqueue_fill(h->vq, elems[i], 0);
        }
    }
    g_assert_cmpuint(virtqueue_publish(h->vq), ==, 8);
    for (unsigned i = 0; i < 8; i++) {
        assert_used(h, i, 0);
    }
    /* Given back and stopped: the next owner finds them. */
    add_n(h, 3);
    g_assert_cmpuint(virtqueue_pop_batch(h->vq, elems, 8, SIZE_MAX), ==, 3);
    virtqueue_unpop(h->vq, 3);
    g_assert_cmpuint(virtqueue_stop(h->vq), ==, 8);
    vring_harness_free(h);
}

/* A start in the middle: an owner that lost three chains in flight. */
static void test_start_with_chains_lost(void)
{
    VringHarness *h = vring_harness_new(8, 0);
    VirtQueueSetup setup = h->setup;
    VirtQueueElem *elems[8];

    add_n(h, 8);
    virtqueue_stop(h->vq);
    setup.last_avail = 3;
    g_assert_true(virtqueue_start(h->vq, &setup, h->map, NULL));
    g_assert_cmpuint(virtqueue_pop_batch(h->vq, elems, 8, SIZE_MAX), ==, 5);
    for (unsigned i = 0; i < 5; i++) {
        g_assert_cmpuint(elems[i]->id, ==, 3 + i);
        virtqueue_fill(h->vq, elems[i], 0);
    }
    g_assert_cmpuint(virtqueue_publish(h->vq), ==, 5);
    assert_used(h, 3, 0);
    vring_harness_free(h);
}

static void test_remap(void)
{
    VringHarness *h = vring_harness_new(16, 0);
    GuestMapBuilder *b = guest_map_builder_new(h->map);
    GuestMap *map = guest_map_builder_finish(b);
    GuestMap *old = h->map;

    add_n(h, 2);
    g_assert_cmpuint(vring_harness_serve(h), ==, 2);
    g_assert_true(virtqueue_remap(h->vq, map, NULL));
    /* Nobody holds the old one any more. */
    guest_map_release_wait(old);
    h->map = map;
    add_n(h, 2);
    g_assert_cmpuint(vring_harness_serve(h), ==, 2);
    g_assert_cmpuint(h->drv.used->idx, ==, 4);
    vring_harness_free(h);
}

/* ---- gather lists ------------------------------------------------------- */

/* offer_indirect: @n buffers of one byte, by a table of slot @slot's own. */
static void offer_indirect(VringHarness *h, unsigned slot, unsigned n,
                           unsigned writable)
{
    uint64_t gpa = TABLES + slot * 16 * 32;
    struct vring_desc *table = vring_harness_ptr(h, gpa);

    g_assert(n <= 32);
    for (unsigned i = 0; i < n; i++) {
        bool write = i >= n - writable;

        table[i] = (struct vring_desc) {
            .addr = VH_BUFFERS + slot * 64 + i,
            .len = 1,
            .flags = (i + 1 < n ? N : 0) | (write ? W : 0),
            .next = i + 1,
        };
    }
    vring_driver_desc(&h->drv, slot, gpa, 16 * n, I, 0);
    vring_driver_offer(&h->drv, slot);
    vring_driver_expose(&h->drv);
}

static void check_gather(VringHarness *h, const VirtQueueElem *e)
{
    for (unsigned i = 0; i < (unsigned)e->out_num + e->in_num; i++) {
        g_assert(e->iov[i].iov_base ==
                 vring_harness_ptr(h, VH_BUFFERS + e->id * 64 + i));
        g_assert_cmpuint(e->iov[i].iov_len, ==, 1);
    }
    g_assert_cmpuint(e->out_bytes, ==, e->out_num);
    g_assert_cmpuint(e->in_bytes, ==, e->in_num);
}

/* The spare slot belongs to its element alone. */
static void test_spare_slot(void)
{
    VringHarness *h = vring_harness_new(64, VH_INDIRECT);
    VirtQueueElem *elems[64];

    for (unsigned i = 0; i < 64; i++) {
        offer_indirect(h, i, 1 + i % 5, i % 2);
    }
    g_assert_cmpuint(virtqueue_pop_batch(h->vq, elems, 64, SIZE_MAX), ==, 64);
    for (unsigned i = 0; i < 64; i++) {
        elems[i]->iov[-1] = (struct iovec) { elems, 12 };
    }
    for (unsigned i = 0; i < 64; i++) {
        check_gather(h, elems[i]);
        g_assert(elems[i]->iov[-1].iov_base == elems);
        virtqueue_fill(h->vq, elems[i], 0);
    }
    g_assert_cmpuint(virtqueue_publish(h->vq), ==, 64);
    vring_harness_free(h);
}

/*
 * Any mix of chain lengths, with chains held, given back and completed out
 * of order: gather lists never overlap, and all is published in pop order.
 */
typedef struct Held {
    VirtQueueElem *elem;
    bool filled;
} Held;

typedef struct Mix {
    VringHarness *h;
    uint16_t size;
    unsigned max_len;
    Held held[64];          /* in pop order */
    unsigned count;
    unsigned free_slots[64];
    unsigned n_free;
    unsigned order[64];     /* offered, not yet used: slots in order */
    unsigned n_order;
} Mix;

static void mix_offer(Mix *m)
{
    unsigned n;

    if (m->n_free == 0) {
        return;
    }
    n = g_test_rand_int_range(1, m->max_len + 1);
    m->order[m->n_order++] = m->free_slots[--m->n_free];
    offer_indirect(m->h, m->free_slots[m->n_free], n,
                   g_test_rand_int_range(0, n + 1));
}

static void mix_pop(Mix *m)
{
    VirtQueueElem *elems[64];
    unsigned max = g_test_rand_int_range(1, m->size + 1);
    unsigned n = virtqueue_pop_batch(m->h->vq, elems, max, SIZE_MAX);

    for (unsigned i = 0; i < n; i++) {
        g_assert_cmpuint(elems[i]->id, ==, m->order[m->count]);
        elems[i]->iov[-1] = (struct iovec) { m, m->count };
        m->held[m->count++] = (Held) { .elem = elems[i] };
    }
}

static void mix_fill(Mix *m)
{
    unsigned i;

    if (m->count == 0) {
        return;
    }
    i = g_test_rand_int_range(0, m->count);
    if (!m->held[i].filled) {
        m->held[i].filled = true;
        virtqueue_fill(m->h->vq, m->held[i].elem, m->held[i].elem->in_bytes);
    }
}

static void mix_unpop(Mix *m)
{
    unsigned n = g_test_rand_int_range(0, 4);

    for (unsigned i = 0; i < n; i++) {
        if (m->count == 0 || m->held[m->count - 1].filled) {
            n = i;
            break;
        }
        m->count--;
    }
    virtqueue_unpop(m->h->vq, n);
}

static void mix_publish(Mix *m)
{
    unsigned want = 0;
    unsigned n;

    while (want < m->count && m->held[want].filled) {
        want++;
    }
    for (unsigned i = 0; i < m->count; i++) {
        check_gather(m->h, m->held[i].elem);
    }
    n = virtqueue_publish(m->h->vq);
    g_assert_cmpuint(n, ==, want);
    for (unsigned i = 0; i < n; i++) {
        uint32_t id, len;

        g_assert_true(vring_driver_get_used(&m->h->drv, &id, &len));
        g_assert_cmpuint(id, ==, m->order[i]);
        m->free_slots[m->n_free++] = id;
    }
    m->count -= n;
    m->n_order -= n;
    memmove(m->held, m->held + n, m->count * sizeof(m->held[0]));
    memmove(m->order, m->order + n, m->n_order * sizeof(m->order[0]));
}

static void run_mix(uint16_t size, unsigned max_len)
{
    static void (*const steps[])(Mix *m) = {
        mix_offer, mix_offer, mix_offer, mix_pop, mix_fill, mix_fill,
        mix_unpop, mix_publish,
    };
    Mix m = { .size = size, .max_len = max_len };

    m.h = vring_harness_new(size, VH_INDIRECT);
    for (unsigned i = 0; i < size; i++) {
        m.free_slots[m.n_free++] = i;
    }
    for (unsigned i = 0; i < 100000; i++) {
        steps[g_test_rand_int_range(0, G_N_ELEMENTS(steps))](&m);
        g_assert_false(virtqueue_broken(m.h->vq));
        g_assert_cmpuint(virtqueue_in_flight(m.h->vq), ==, m.count);
    }
    for (unsigned i = 0; i < m.count; i++) {
        if (!m.held[i].filled) {
            virtqueue_fill(m.h->vq, m.held[i].elem, 0);
            m.held[i].filled = true;
        }
    }
    mix_publish(&m);
    vring_harness_free(m.h);
}

static void test_mix(void)
{
    run_mix(64, 32);
    run_mix(32, 32);
    run_mix(4, 4);
    run_mix(1, 1);
}

/*
 * Chains in flight that leave no room for another gather list: pop waits, the
 * ring stays whole, and completing the oldest lets it go on.
 */
static void test_pool_full(void)
{
    VringHarness *h = vring_harness_new(1024, VH_INDIRECT);
    VirtQueueElem *elems[1024];
    struct vring_desc *table = vring_harness_ptr(h, TABLES);
    unsigned left = 1024;
    unsigned popped, first;

    for (unsigned i = 0; i < 1024; i++) {
        table[i] = (struct vring_desc) { VH_BUFFERS + i, 1,
                                         i < 1023 ? N : 0, i + 1 };
        vring_driver_desc(&h->drv, i, TABLES, 16 * 1024, I, 0);
        vring_driver_offer(&h->drv, i);
    }
    vring_driver_expose(&h->drv);
    first = virtqueue_pop_batch(h->vq, elems, 1024, SIZE_MAX);
    popped = first;
    g_assert_cmpuint(first, >, 1);
    g_assert_cmpuint(first, <, 1024);
    g_assert_null(vring_harness_pop(h));
    g_assert_false(virtqueue_broken(h->vq));
    do {
        g_assert_cmpuint(popped, ==, MIN(first, left));
        left -= popped;
        for (unsigned i = 0; i < popped; i++) {
            g_assert_cmpuint(elems[i]->out_num, ==, 1024);
            virtqueue_fill(h->vq, elems[i], 0);
        }
        g_assert_cmpuint(virtqueue_publish(h->vq), ==, popped);
        popped = virtqueue_pop_batch(h->vq, elems, 1024, SIZE_MAX);
    } while (left);
    g_assert_cmpuint(popped, ==, 0);
    g_assert_cmpuint(virtqueue_last_avail(h->vq), ==, 1024);
    vring_harness_free(h);
}

/* ---- F15: a driver that writes while it is read ------------------------- */

typedef struct Flip {
    uint32_t *word;
    uint32_t values[2];
    unsigned stop;
} Flip;

static void *flip_thread(void *opaque)
{
    Flip *f = opaque;

    for (unsigned i = 0; !__atomic_load_n(&f->stop, __ATOMIC_RELAXED); i++) {
        __atomic_store_n(f->word, f->values[i % 2], __ATOMIC_RELAXED);
    }
    return NULL;
}

#define FLIP_ROUNDS 200000

/* The length that was checked is the length that is used. */
static void test_flip_length(void)
{
    VringHarness *h = vring_harness_new(4, 0);
    Flip f = {
        .word = &h->drv.desc[0].len,
        .values = { 60, 65535 },
    };
    unsigned seen[2] = { 0 };
    pthread_t thread;

    vring_driver_desc(&h->drv, 0, VH_SPLIT - 60, 60, 0, 0);
    pthread_create(&thread, NULL, flip_thread, &f);
    for (unsigned i = 0; i < FLIP_ROUNDS; i++) {
        VirtQueueElem *e;
        uint32_t id, len;

        vring_driver_offer(&h->drv, 0);
        vring_driver_expose(&h->drv);
        e = vring_harness_pop(h);
        g_assert_nonnull(e);
        g_assert_cmpuint(e->iov[0].iov_len, ==, 60);
        if (e->out_num == 1) {
            g_assert_cmpuint(e->out_bytes, ==, 60);
        } else {
            g_assert_cmpuint(e->out_num, ==, 2);
            g_assert_cmpuint(e->out_bytes, ==, 65535);
            g_assert_cmpuint(e->iov[1].iov_len, ==, 65535 - 60);
        }
        seen[e->out_num - 1]++;
        vring_harness_complete(h, e, 0);
        g_assert_true(vring_driver_get_used(&h->drv, &id, &len));
    }
    __atomic_store_n(&f.stop, 1, __ATOMIC_RELAXED);
    pthread_join(thread, NULL);
    g_test_message("%u times 60, %u times 65535", seen[0], seen[1]);
    vring_harness_free(h);
}

/* A new start from the used index, the driver's memory left as it is. */
static void restart_in_place(VringHarness *h)
{
    VirtQueueSetup setup = h->setup;

    virtqueue_stop(h->vq);
    setup.last_avail = h->drv.used->idx;
    vring_driver_set_avail_idx(&h->drv, setup.last_avail);
    g_assert_true(virtqueue_start(h->vq, &setup, h->map, NULL));
}

/* An indirect table that has one entry, or 256, whenever one looks. */
static void test_flip_table_length(void)
{
    VringHarness *h = vring_harness_new(256, VH_INDIRECT);
    struct vring_desc *table = vring_harness_ptr(h, TABLES);
    Flip f = { .values = { 16, 4096 } };
    unsigned breaks = 0;
    pthread_t thread;

    for (unsigned i = 0; i < 256; i++) {
        table[i] = (struct vring_desc) { VH_BUFFERS + i, 1,
                                         i < 255 ? N : 0, i + 1 };
    }
    vring_driver_desc(&h->drv, 7, TABLES, 16, I, 0);
    f.word = &h->drv.desc[7].len;
    pthread_create(&thread, NULL, flip_thread, &f);
    for (unsigned i = 0; i < FLIP_ROUNDS / 20; i++) {
        VirtQueueElem *e;

        vring_driver_offer(&h->drv, 7);
        vring_driver_expose(&h->drv);
        e = vring_harness_pop(h);
        if (e) {
            g_assert_cmpuint(e->out_num, ==, 256);
            g_assert_cmpuint(e->out_bytes, ==, 256);
            vring_harness_complete(h, e, 0);
            continue;
        }
        breaks++;
        g_assert_cmpstr(h->why, ==,
                        "next descriptor is outside the indirect table");
        restart_in_place(h);
    }
    __atomic_store_n(&f.stop, 1, __ATOMIC_RELAXED);
    pthread_join(thread, NULL);
    g_test_message("%u times too short", breaks);
    g_assert_cmpuint(h->breaks, ==, breaks);
    vring_harness_free(h);
}

/* ---- allocations -------------------------------------------------------- */

static void run_packets(VringHarness *h, unsigned packets, unsigned batch)
{
    VirtQueueElem *elems[64];
    unsigned done = 0;

    while (done < packets) {
        unsigned n;

        for (unsigned i = 0; i < batch; i++) {
            vring_driver_add(&h->drv, VH_BUFFERS + 2048 * i, 1500, W);
        }
        virtqueue_park(h->vq);
        n = virtqueue_pop_batch(h->vq, elems, 64, SIZE_MAX);
        virtqueue_unpop(h->vq, n / 2);
        n = n - n / 2;
        for (unsigned i = 0; i < n; i++) {
            virtqueue_fill(h->vq, elems[i], 1500);
        }
        done += virtqueue_publish(h->vq);
        if (virtqueue_should_signal(h->vq)) {
            virtqueue_signalled(h->vq);
        }
        done += vring_harness_serve(h);
        virtqueue_avail_moved(h->vq);
        virtqueue_arm(h->vq, 1);
        virtqueue_disarm(h->vq);
    }
}

static DirtyLog *new_log(void)
{
    int fd = memfd_create("log", 0);
    DirtyLog *log;

    g_assert(ftruncate(fd, 4096) == 0);
    log = dirty_log_new(fd, 4096, 0, NULL);
    g_assert_nonnull(log);
    close(fd);
    return log;
}

static void test_no_allocation(void)
{
    VringHarness *h;
    DirtyLog *log;
    uint64_t before;

    if (!alloc_count_supported()) {
        g_test_skip("a sanitizer has the allocator");
        return;
    }
    before = alloc_count();
    g_free(g_malloc(1));
    g_assert_cmpuint(alloc_count(), ==, before + 2);

    h = vring_harness_new(256, VH_EVENT_IDX);
    log = new_log();
    before = alloc_count();
    run_packets(h, 100000, 1);
    run_packets(h, 100000, 64);
    virtqueue_set_log(h->vq, log);
    run_packets(h, 100000, 16);
    g_assert_cmpuint(alloc_count(), ==, before);
    vring_harness_free(h);
    dirty_log_unref(log);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/vring/split/batch-limits", test_batch_limits);
    g_test_add_func("/vring/split/no-look-ahead", test_no_look_ahead);
    g_test_add_func("/vring/split/publish-once", test_publish_once);
    g_test_add_func("/vring/split/order", test_order);
    g_test_add_func("/vring/split/70000-packets", test_70000);
    g_test_add_func("/vring/split/sizes", test_sizes);
    g_test_add_func("/vring/split/unpop", test_unpop);
    g_test_add_func("/vring/split/start-with-chains-lost",
                    test_start_with_chains_lost);
    g_test_add_func("/vring/split/remap", test_remap);
    g_test_add_func("/vring/gather/spare-slot", test_spare_slot);
    g_test_add_func("/vring/gather/mix", test_mix);
    g_test_add_func("/vring/gather/pool-full", test_pool_full);
    g_test_add_func("/vring/read-once/length", test_flip_length);
    g_test_add_func("/vring/read-once/table-length", test_flip_table_length);
    g_test_add_func("/vring/no-allocation", test_no_allocation);
    return g_test_run();
}
