/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A split ring under a driver and a device that do anything in any order.
 *
 * The input is a ring size, feature bits, a start index, and then steps: one
 * byte that chooses a step, and its arguments.  Driver steps write guest
 * memory, mostly in ways that make sense; device steps are the verbs, used as
 * their contract allows.
 *
 * Guest memory is two allocations of exact size, adjacent for the guest, so
 * that an address sanitizer sees any step outside.  Besides what sanitizers
 * find, this asserts after each step: gather lists lie in guest memory and
 * add up; no more chains in flight than the ring has entries; publication in
 * pop order; a broken or stopped ring is not written.
 */
#include <linux/virtio_config.h>
#include <linux/virtio_ring.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "hw/virtio/virtqueue.h"

#define MAX_SIZE 16
#define BASE UINT64_C(0x1000)
#define DESC BASE
#define AVAIL (BASE + 0x100)
#define USED (BASE + 0x140)
#define SPLIT UINT64_C(0x2000)
#define END UINT64_C(0x2800)
/* Enough to run through a ring many times; a bound for one input's time. */
#define MAX_STEPS 4096

typedef struct Fuzz {
    const uint8_t *data;
    size_t left;
    VirtQueue *vq;
    VirtQueueSetup setup;
    GuestMap *map;
    uint8_t *ram[2];
    uint8_t before[END - BASE];     /* guest memory before a verb */
    VirtQueueElem *held[MAX_SIZE];  /* in pop order */
    unsigned count;
    uint16_t used_idx;              /* what the ring should be at, whatever
                                     * the driver wrote there */
    unsigned breaks;                /* since the start */
} Fuzz;

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* ---- input -------------------------------------------------------------- */

static uint8_t u8(Fuzz *f)
{
    if (f->left == 0) {
        return 0;
    }
    f->left--;
    return *f->data++;
}

static uint16_t u16(Fuzz *f)
{
    uint16_t lo = u8(f);

    return lo | u8(f) << 8;
}

/* ---- guest memory ------------------------------------------------------- */

static uint8_t *ptr(Fuzz *f, uint64_t gpa)
{
    return gpa < SPLIT ? f->ram[0] + (gpa - BASE) : f->ram[1] + (gpa - SPLIT);
}

static bool in_memory(Fuzz *f, const struct iovec *iov)
{
    static const uint64_t sizes[2] = { SPLIT - BASE, END - SPLIT };

    for (unsigned i = 0; i < 2; i++) {
        uint64_t offset = (uint8_t *)iov->iov_base - f->ram[i];

        if (offset < sizes[i] && iov->iov_len <= sizes[i] - offset) {
            return true;
        }
    }
    return false;
}

static void write_bytes(Fuzz *f, uint64_t gpa, const void *p, size_t n)
{
    for (size_t i = 0; i < n && gpa + i < END; i++) {
        *ptr(f, gpa + i) = ((const uint8_t *)p)[i];
    }
}

static void write_desc(Fuzz *f, uint64_t at)
{
    uint8_t flags = u8(f);
    struct vring_desc d = {
        .addr = BASE - 16 + u16(f) % (END - BASE + 32),
        .len = u16(f) % 0x900,
        .flags = flags & 7,
        .next = u8(f) % (MAX_SIZE + 1),
    };

    /* Now and then, numbers near the end of their type. */
    if (flags >> 4 == 0xf) {
        d.addr = -d.addr;
        d.len = flags & 8 ? -d.len : d.len;
    }
    write_bytes(f, at, &d, sizeof(d));
}

static struct vring_avail *avail(Fuzz *f)
{
    return (struct vring_avail *)ptr(f, AVAIL);
}

/* ---- the driver's steps ------------------------------------------------- */

static void driver_desc(Fuzz *f)
{
    write_desc(f, DESC + 16 * (u8(f) % MAX_SIZE));
}

static void driver_table(Fuzz *f)
{
    uint64_t table = BASE + u16(f) % (END - BASE);

    write_desc(f, table + 16 * (u8(f) % MAX_SIZE));
}

/* An indirect descriptor whose table is somewhere. */
static void driver_indirect(Fuzz *f)
{
    struct vring_desc d = {
        .addr = BASE + u16(f) % (END - BASE),
        .len = 16 * (u8(f) % (MAX_SIZE + 2)) + (u8(f) == 1),
        .flags = VRING_DESC_F_INDIRECT,
    };

    write_bytes(f, DESC + 16 * (u8(f) % MAX_SIZE), &d, sizeof(d));
}

/* A whole chain by a table, up to the longest; sometimes one entry short. */
static void driver_long(Fuzz *f)
{
    uint16_t slot = avail(f)->idx % f->setup.size;
    uint64_t table = SPLIT - 0x300 + u16(f) % 0x400;
    unsigned n = 1 + u8(f) % f->setup.size;
    unsigned writable = u8(f) % (n + 1);
    struct vring_desc d = {
        .addr = table,
        .len = 16 * (n - (u8(f) == 0)),
        .flags = VRING_DESC_F_INDIRECT,
    };

    write_bytes(f, DESC + 16 * slot, &d, sizeof(d));
    for (unsigned i = 0; i < n; i++) {
        d = (struct vring_desc) {
            .addr = SPLIT + 0x400 + i,
            .len = 1,
            .flags = (i + 1 < n ? VRING_DESC_F_NEXT : 0) |
                     (i >= writable ? VRING_DESC_F_WRITE : 0),
            .next = i + 1,
        };
        write_bytes(f, table + 16 * i, &d, sizeof(d));
    }
    avail(f)->ring[slot] = slot;
    avail(f)->idx++;
}

static void driver_raw(Fuzz *f)
{
    uint64_t gpa = BASE + u16(f) % (END - BASE);

    *ptr(f, gpa) = u8(f);
}

static void driver_entry(Fuzz *f)
{
    uint8_t slot = u8(f) % MAX_SIZE;

    avail(f)->ring[slot] = u8(f) % (MAX_SIZE + 1);
}

static void driver_index(Fuzz *f)
{
    avail(f)->idx += (int8_t)u8(f);
}

/* A whole chain of one buffer, as a good driver does it. */
static void driver_add(Fuzz *f)
{
    uint16_t slot = avail(f)->idx % f->setup.size;

    write_desc(f, DESC + 16 * slot);
    avail(f)->ring[slot] = slot;
    avail(f)->idx++;
}

static void driver_event(Fuzz *f)
{
    avail(f)->ring[f->setup.size] = u16(f);
    avail(f)->flags = u8(f);
}

/* ---- the device's steps ------------------------------------------------- */

static void check_elem(Fuzz *f, VirtQueueElem *e)
{
    uint64_t bytes[2] = { 0 };
    unsigned n = e->out_num + e->in_num;

    g_assert(n >= 1 && n <= 2u * f->setup.size);
    g_assert(e->ndescs >= 1 && e->ndescs <= f->setup.size);
    g_assert(e->id < f->setup.size);
    e->iov[-1] = (struct iovec) { f, 1 };
    for (unsigned i = 0; i < n; i++) {
        g_assert(e->iov[i].iov_len > 0 && in_memory(f, &e->iov[i]));
        bytes[i >= e->out_num] += e->iov[i].iov_len;
    }
    g_assert(bytes[0] == e->out_bytes && bytes[1] == e->in_bytes);
}

static void device_pop(Fuzz *f)
{
    unsigned room = MAX_SIZE - f->count;
    unsigned max = u8(f) % (MAX_SIZE + 1);
    size_t bytes = u16(f);
    unsigned n = virtqueue_pop_batch(f->vq, f->held + f->count,
                                     MIN(max, room), bytes);

    g_assert(n <= MIN(max, room));
    for (unsigned i = 0; i < n; i++) {
        check_elem(f, f->held[f->count + i]);
    }
    f->count += n;
    g_assert(virtqueue_in_flight(f->vq) == f->count);
    g_assert(f->count <= f->setup.size);
}

static void device_unpop(Fuzz *f)
{
    unsigned n = u8(f) % (MAX_SIZE + 1);

    for (unsigned i = 0; i < n; i++) {
        if (i == f->count || f->held[f->count - 1 - i]->filled) {
            n = i;
        }
    }
    virtqueue_unpop(f->vq, n);
    f->count -= n;
}

/* Writes what it says it wrote, and eats the iovecs. */
static void device_fill(Fuzz *f)
{
    unsigned k = u8(f) % MAX_SIZE;
    uint32_t len = u16(f);
    VirtQueueElem *e;

    if (k >= f->count || f->held[k]->filled) {
        return;
    }
    e = f->held[k];
    len = MIN(len, e->in_bytes);
    for (uint32_t done = 0, i = e->out_num; done < len; i++) {
        uint32_t n = MIN(len - done, e->iov[i].iov_len);

        if (!virtqueue_broken(f->vq)) {
            memset(e->iov[i].iov_base, k, n);
        }
        e->iov[i] = (struct iovec) { 0 };
        done += n;
    }
    virtqueue_fill(f->vq, e, len);
}

static void device_publish(Fuzz *f)
{
    struct vring_used *used = (struct vring_used *)ptr(f, f->setup.used);
    unsigned ready = 0;
    unsigned n;

    while (ready < f->count && f->held[ready]->filled) {
        ready++;
    }
    n = virtqueue_publish(f->vq);
    g_assert(n == (virtqueue_broken(f->vq) ? 0 : ready));
    for (unsigned i = 0; i < n; i++) {
        vring_used_elem_t *u =
            &used->ring[f->used_idx++ % f->setup.size];

        g_assert(u->id == f->held[i]->id);
        g_assert(u->len == f->held[i]->used_len);
    }
    g_assert(n == 0 || used->idx == f->used_idx);
    f->count -= ready;
    memmove(f->held, f->held + ready, f->count * sizeof(f->held[0]));
    g_assert(virtqueue_in_flight(f->vq) == f->count);
}

static void device_signal(Fuzz *f)
{
    if (virtqueue_should_signal(f->vq) && u8(f) % 2) {
        virtqueue_signalled(f->vq);
        g_assert(!virtqueue_should_signal(f->vq));
    }
}

static void device_park(Fuzz *f)
{
    virtqueue_park(f->vq);
}

static void device_arm(Fuzz *f)
{
    virtqueue_arm(f->vq, 1 + u8(f) % f->setup.size);
}

static void device_disarm(Fuzz *f)
{
    virtqueue_disarm(f->vq);
}

static void device_moved(Fuzz *f)
{
    virtqueue_avail_moved(f->vq);
}

static void device_break(Fuzz *f)
{
    virtqueue_break(f->vq, "the device's own reason");
}

/* ---- setup steps -------------------------------------------------------- */

static void drain(Fuzz *f)
{
    for (unsigned i = 0; i < f->count; i++) {
        if (!f->held[i]->filled) {
            virtqueue_fill(f->vq, f->held[i], 0);
        }
    }
    device_publish(f);
    g_assert(f->count == 0);
}

static void choose_setup(Fuzz *f)
{
    uint8_t bits = u8(f);

    f->setup = (VirtQueueSetup) {
        .size = 1 << (bits & 7) % 5,
        .desc = DESC,
        .avail = AVAIL,
        .used = USED,
        .log_used = bits & 8,
        .log_gpa = USED,
    };
    if (bits & 16) {
        f->setup.features |= UINT64_C(1) << VIRTIO_RING_F_EVENT_IDX;
    }
    if (bits & 32) {
        f->setup.features |= UINT64_C(1) << VIRTIO_RING_F_INDIRECT_DESC;
    }
    if (bits & 64) {
        f->setup.features |= UINT64_C(1) << VIRTIO_F_NOTIFY_ON_EMPTY;
    }
}

/* start_at: with the used index that is there, and an available index near. */
static bool start_at(Fuzz *f, unsigned ahead)
{
    uint16_t idx = 0;

    if (f->setup.used >= BASE && f->setup.used < END - 4) {
        /* Its two bytes may be in two regions. */
        for (unsigned i = 0; i < sizeof(idx); i++) {
            ((uint8_t *)&idx)[i] = *ptr(f, f->setup.used + 2 + i);
        }
    }
    f->used_idx = idx;
    f->setup.last_avail = idx + ahead;
    return virtqueue_start(f->vq, &f->setup, f->map, NULL);
}

/* Areas anywhere, most of them impossible. */
static bool start_anywhere(Fuzz *f)
{
    VirtQueueSetup good = f->setup;

    f->setup.size = u8(f);
    f->setup.desc = BASE - 16 + u16(f) % (END - BASE + 32);
    f->setup.avail = BASE - 16 + u16(f) % (END - BASE + 32);
    f->setup.used = BASE - 16 + u16(f) % (END - BASE + 32);
    if (start_at(f, u8(f))) {
        return true;
    }
    f->setup = good;
    return false;
}

static void step_restart(Fuzz *f)
{
    uint16_t last;
    uint8_t kind;

    drain(f);
    last = virtqueue_stop(f->vq);
    g_assert(virtqueue_stop(f->vq) == last);
    choose_setup(f);
    f->breaks = 0;
    kind = u8(f);
    if (kind % 8 != 7 || !start_anywhere(f)) {
        g_assert(start_at(f, kind % 2) || start_at(f, 0));
    }
    g_assert(!virtqueue_broken(f->vq));
}

static GuestMap *new_map(Fuzz *f, bool whole)
{
    GuestMapBuilder *b = guest_map_builder_new(NULL);
    GuestRegionInfo low = { BASE, SPLIT - BASE, BASE, 0 };
    GuestRegionInfo high = { SPLIT, END - SPLIT, SPLIT, 0 };

    guest_map_builder_add_ram(b, &low, f->ram[0], NULL);
    if (whole) {
        guest_map_builder_add_ram(b, &high, f->ram[1], NULL);
    }
    return guest_map_builder_finish(b);
}

static void step_remap(Fuzz *f)
{
    GuestMap *old = f->map;

    drain(f);
    f->map = new_map(f, u8(f) % 4);
    /* A ring in the part that went is broken; it holds the new map, too. */
    g_assert(virtqueue_remap(f->vq, f->map, NULL) ||
             virtqueue_broken(f->vq));
    guest_map_release_wait(old);
}

static DirtyLog *the_log(void)
{
    static DirtyLog *log;

    if (!log) {
        int fd = memfd_create("log", 0);

        g_assert(ftruncate(fd, 1) == 0);
        log = dirty_log_new(fd, 1, 0, NULL);
        close(fd);
    }
    return log;
}

static void step_log(Fuzz *f)
{
    virtqueue_set_log(f->vq, u8(f) % 2 ? the_log() : NULL);
}

/* ---- steps -------------------------------------------------------------- */

typedef struct Step {
    void (*run)(Fuzz *f);
    bool silent;            /* must not write once the ring is broken */
} Step;

static const Step steps[] = {
    { driver_desc }, { driver_table }, { driver_indirect }, { driver_raw },
    { driver_long }, { driver_entry }, { driver_index }, { driver_add },
    { driver_event },
    { device_pop, true }, { device_unpop, true }, { device_fill, true },
    { device_publish, true }, { device_signal, true }, { device_park, true },
    { device_arm, true }, { device_disarm, true }, { device_moved, true },
    { device_break, true },
    { step_restart }, { step_remap }, { step_log },
};

static void copy_memory(Fuzz *f, uint8_t *to)
{
    memcpy(to, f->ram[0], SPLIT - BASE);
    memcpy(to + (SPLIT - BASE), f->ram[1], END - SPLIT);
}

static void run_step(Fuzz *f)
{
    const Step *s = &steps[u8(f) % G_N_ELEMENTS(steps)];
    bool watch = s->silent && virtqueue_broken(f->vq);

    if (watch) {
        copy_memory(f, f->before);
    }
    s->run(f);
    g_assert(f->breaks == virtqueue_broken(f->vq));
    if (watch) {
        uint8_t after[sizeof(f->before)];

        copy_memory(f, after);
        g_assert(memcmp(f->before, after, sizeof(after)) == 0);
    }
}

static void broken(void *opaque, const char *why)
{
    Fuzz *f = opaque;

    g_assert(why && *why);
    f->breaks++;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    Fuzz f = { .data = data, .left = size };

    f.ram[0] = g_malloc0(SPLIT - BASE);
    f.ram[1] = g_malloc0(END - SPLIT);
    f.map = new_map(&f, true);
    f.vq = virtqueue_new("fuzz", MAX_SIZE, broken, &f);
    choose_setup(&f);
    f.setup.last_avail = u16(&f);
    avail(&f)->idx = f.setup.last_avail;
    f.used_idx = f.setup.last_avail;
    ((struct vring_used *)ptr(&f, USED))->idx = f.used_idx;
    g_assert(virtqueue_start(f.vq, &f.setup, f.map, NULL));
    for (unsigned i = 0; i < MAX_STEPS && f.left; i++) {
        run_step(&f);
    }
    drain(&f);
    virtqueue_free(f.vq);
    guest_map_release_wait(f.map);
    g_free(f.ram[0]);
    g_free(f.ram[1]);
    return 0;
}
