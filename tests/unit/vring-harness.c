/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The bare harness for rings: see the header.
 *
 * The driver writes descriptors and entries with plain stores and moves its
 * index with a release store, as a driver would; a thread sanitizer then
 * notices a device that reads an entry without having acquired the index.
 */
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "vring-harness.h"

/* The driver's full barrier.  An atomic exchange, since thread sanitizers do
 * not know fences. */
static void driver_barrier(void)
{
    static __thread int word;

    __atomic_exchange_n(&word, 1, __ATOMIC_SEQ_CST);
}

static uint16_t load16(const __virtio16 *p)
{
    return GUINT16_FROM_LE(__atomic_load_n(p, __ATOMIC_RELAXED));
}

static void store16(__virtio16 *p, uint16_t v)
{
    __atomic_store_n(p, GUINT16_TO_LE(v), __ATOMIC_RELAXED);
}

static __virtio16 *used_event(const VringDriver *d)
{
    return &d->avail->ring[d->size];
}

void vring_driver_init(VringDriver *d, uint16_t size, uint64_t features,
                       void *desc, void *avail, void *used)
{
    *d = (VringDriver) {
        .desc = desc,
        .avail = avail,
        .used = used,
        .size = size,
        .event_idx = features & VH_EVENT_IDX,
    };
    memset(desc, 0, sizeof(struct vring_desc) * size);
    memset(avail, 0, offsetof(struct vring_avail, ring[size + 1]));
    memset(used, 0, offsetof(struct vring_used, ring[size]) + 2);
}

void vring_driver_desc(VringDriver *d, unsigned i, uint64_t gpa, uint32_t len,
                       uint16_t flags, uint16_t next)
{
    d->desc[i] = (struct vring_desc) {
        .addr = GUINT64_TO_LE(gpa),
        .len = GUINT32_TO_LE(len),
        .flags = GUINT16_TO_LE(flags),
        .next = GUINT16_TO_LE(next),
    };
}

void vring_driver_offer(VringDriver *d, uint16_t head)
{
    d->avail->ring[d->avail_idx % d->size] = GUINT16_TO_LE(head);
    d->avail_idx++;
}

void vring_driver_set_avail_idx(VringDriver *d, uint16_t idx)
{
    d->avail_idx = idx;
    d->exposed = idx;
    __atomic_store_n(&d->avail->idx, GUINT16_TO_LE(idx), __ATOMIC_RELEASE);
}

void vring_driver_expose(VringDriver *d)
{
    vring_driver_set_avail_idx(d, d->avail_idx);
}

uint16_t vring_driver_add(VringDriver *d, uint64_t gpa, uint32_t len,
                          uint16_t flags)
{
    uint16_t head = d->avail_idx % d->size;

    vring_driver_desc(d, head, gpa, len, flags, 0);
    vring_driver_offer(d, head);
    vring_driver_expose(d);
    return head;
}

bool vring_driver_wants_kick(VringDriver *d)
{
    uint16_t old = d->judged;

    d->judged = d->exposed;
    driver_barrier();
    if (!d->event_idx) {
        return !(vring_driver_used_flags(d) & VRING_USED_F_NO_NOTIFY);
    }
    return vring_need_event(vring_driver_avail_event(d), d->exposed, old);
}

bool vring_driver_get_used(VringDriver *d, uint32_t *id, uint32_t *len)
{
    uint16_t idx = GUINT16_FROM_LE(__atomic_load_n(&d->used->idx,
                                                   __ATOMIC_ACQUIRE));
    vring_used_elem_t *e = &d->used->ring[d->used_idx % d->size];

    if (idx == d->used_idx) {
        return false;
    }
    d->used_idx++;
    *id = GUINT32_FROM_LE(e->id);
    *len = GUINT32_FROM_LE(e->len);
    return true;
}

bool vring_driver_enable_call(VringDriver *d)
{
    if (d->event_idx) {
        store16(used_event(d), d->used_idx);
    } else {
        store16(&d->avail->flags, 0);
    }
    driver_barrier();
    return load16(&d->used->idx) == d->used_idx;
}

void vring_driver_disable_call(VringDriver *d)
{
    if (!d->event_idx) {
        store16(&d->avail->flags, VRING_AVAIL_F_NO_INTERRUPT);
    }
}

void vring_driver_set_used_event(VringDriver *d, uint16_t event)
{
    store16(used_event(d), event);
}

uint16_t vring_driver_avail_event(const VringDriver *d)
{
    return load16((__virtio16 *)&d->used->ring[d->size]);
}

uint16_t vring_driver_used_flags(const VringDriver *d)
{
    return load16(&d->used->flags);
}

/* ---- the harness -------------------------------------------------------- */

static const struct { uint64_t gpa, size; } regions[2] = {
    { VH_BASE, VH_SPLIT - VH_BASE },
    { VH_SPLIT, VH_END - VH_SPLIT },
};

static uint8_t *ram_new(uint64_t size)
{
    size_t guard = sysconf(_SC_PAGESIZE);
    uint8_t *p = mmap(NULL, size + 2 * guard, PROT_NONE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

    g_assert(p != MAP_FAILED);
    g_assert(mprotect(p + guard, size, PROT_READ | PROT_WRITE) == 0);
    return p + guard;
}

static void ram_free(uint8_t *ram, uint64_t size)
{
    size_t guard = sysconf(_SC_PAGESIZE);

    munmap(ram - guard, size + 2 * guard);
}

static void harness_broken(void *opaque, const char *why)
{
    VringHarness *h = opaque;

    h->breaks++;
    h->why = why;
}

static void harness_start(VringHarness *h, uint16_t idx)
{
    GError *err = NULL;

    vring_driver_init(&h->drv, h->setup.size, h->setup.features,
                      vring_harness_ptr(h, VH_DESC),
                      vring_harness_ptr(h, VH_AVAIL),
                      vring_harness_ptr(h, VH_USED));
    vring_driver_set_avail_idx(&h->drv, idx);
    h->drv.judged = idx;
    h->drv.used_idx = idx;
    store16(&h->drv.used->idx, idx);
    h->setup.last_avail = idx;
    virtqueue_start(h->vq, &h->setup, h->map, &err);
    g_assert_no_error(err);
}

VringHarness *vring_harness_new_at(uint16_t size, uint64_t features,
                                   uint16_t idx)
{
    VringHarness *h = g_new0(VringHarness, 1);
    GuestMapBuilder *b = guest_map_builder_new(NULL);
    GError *err = NULL;

    for (int i = 1; i >= 0; i--) {
        GuestRegionInfo info = {
            .gpa = regions[i].gpa,
            .size = regions[i].size,
            .uaddr = VH_UADDR + regions[i].gpa,
        };

        h->ram[i] = ram_new(info.size);
        guest_map_builder_add_ram(b, &info, h->ram[i], &err);
        g_assert_no_error(err);
    }
    g_assert(h->ram[0] + regions[0].size != h->ram[1]);
    h->map = guest_map_builder_finish(b);
    h->vq = virtqueue_new("harness", VIRTQUEUE_MAX_SIZE, harness_broken, h);
    h->setup = (VirtQueueSetup) {
        .size = size,
        .features = features,
        .space = GUEST_SPACE_PHYS,
        .desc = VH_DESC,
        .avail = VH_AVAIL,
        .used = VH_USED,
    };
    harness_start(h, idx);
    return h;
}

VringHarness *vring_harness_new(uint16_t size, uint64_t features)
{
    return vring_harness_new_at(size, features, 0);
}

void vring_harness_free(VringHarness *h)
{
    virtqueue_free(h->vq);
    guest_map_release_wait(h->map);
    ram_free(h->ram[0], regions[0].size);
    ram_free(h->ram[1], regions[1].size);
    g_free(h->snapshot);
    g_free(h);
}

void vring_harness_restart(VringHarness *h)
{
    virtqueue_stop(h->vq);
    harness_start(h, 0);
}

void *vring_harness_ptr(VringHarness *h, uint64_t gpa)
{
    int i = gpa >= VH_SPLIT;

    g_assert(gpa >= VH_BASE && gpa < VH_END);
    return h->ram[i] + (gpa - regions[i].gpa);
}

void vring_harness_table(VringHarness *h, uint64_t table, unsigned i,
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

void vring_harness_chain_table(VringHarness *h, uint64_t table, unsigned n)
{
    for (unsigned i = 0; i < n; i++) {
        vring_harness_table(h, table, i, VH_BUFFERS + i, 1,
                            i + 1 < n ? VRING_DESC_F_NEXT : 0, i + 1);
    }
}

VirtQueueElem *vring_harness_pop(VringHarness *h)
{
    VirtQueueElem *elem;

    return virtqueue_pop_batch(h->vq, &elem, 1, SIZE_MAX) ? elem : NULL;
}

void vring_harness_complete(VringHarness *h, VirtQueueElem *elem,
                            uint32_t len)
{
    virtqueue_fill(h->vq, elem, len);
    g_assert_cmpuint(virtqueue_publish(h->vq), ==, 1);
}

unsigned vring_harness_serve(VringHarness *h)
{
    VirtQueueElem *elems[64];
    unsigned total = 0;
    unsigned n;

    while ((n = virtqueue_pop_batch(h->vq, elems, G_N_ELEMENTS(elems),
                                    SIZE_MAX))) {
        for (unsigned i = 0; i < n; i++) {
            virtqueue_fill(h->vq, elems[i], 0);
        }
        g_assert_cmpuint(virtqueue_publish(h->vq), ==, n);
        total += n;
    }
    return total;
}

/* Buffers in the second region beyond this are for lengths only. */
#define SNAPSHOT_SECOND 0x10000

void vring_harness_snapshot(VringHarness *h)
{
    if (!h->snapshot) {
        h->snapshot = g_malloc(regions[0].size + SNAPSHOT_SECOND);
    }
    memcpy(h->snapshot, h->ram[0], regions[0].size);
    memcpy(h->snapshot + regions[0].size, h->ram[1], SNAPSHOT_SECOND);
}

void vring_harness_assert_untouched(VringHarness *h)
{
    g_assert(memcmp(h->snapshot, h->ram[0], regions[0].size) == 0);
    g_assert(memcmp(h->snapshot + regions[0].size, h->ram[1],
                    SNAPSHOT_SECOND) == 0);
}

static void assert_looks_empty(VringHarness *h)
{
    VirtQueueElem *elem;

    g_assert_cmpuint(virtqueue_pop_batch(h->vq, &elem, 1, SIZE_MAX), ==, 0);
    g_assert_cmpuint(virtqueue_publish(h->vq), ==, 0);
    g_assert_false(virtqueue_should_signal(h->vq));
    virtqueue_park(h->vq);
    g_assert_cmpint(virtqueue_arm(h->vq, 1), ==, VQ_ARM_EMPTY);
    virtqueue_disarm(h->vq);
    g_assert_cmpuint(virtqueue_call_event(h->vq), ==, 0);
    g_assert_false(virtqueue_avail_moved(h->vq));
}

void vring_harness_assert_broken(VringHarness *h, const char *why)
{
    unsigned breaks = h->breaks;

    g_assert_true(virtqueue_broken(h->vq));
    g_assert_true(virtqueue_started(h->vq));
    g_assert_cmpstr(h->why, ==, why);

    vring_driver_add(&h->drv, VH_BUFFERS, 64, 0);
    vring_harness_snapshot(h);
    assert_looks_empty(h);
    virtqueue_break(h->vq, "once more");
    vring_harness_assert_untouched(h);
    g_assert_cmpuint(h->breaks, ==, breaks);

    vring_harness_restart(h);
    g_assert_false(virtqueue_broken(h->vq));
    g_assert_cmpuint(virtqueue_in_flight(h->vq), ==, 0);
    vring_driver_add(&h->drv, VH_BUFFERS, 64, 0);
    g_assert_cmpuint(vring_harness_serve(h), ==, 1);
    g_assert_cmpuint(h->breaks, ==, breaks);
}
