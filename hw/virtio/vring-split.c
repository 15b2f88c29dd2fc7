/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Split rings (virtio 1.3, 2.7), device side.
 *
 * Three areas in guest memory: the descriptor table and the available ring,
 * which the driver writes, and the used ring, which only this file writes.
 * Each index runs freely over 16 bits.
 *
 *   used_idx <= last_avail <= avail_seen <= the driver's index
 *   scan <= avail_seen
 *
 * holds modulo 2^16; split_look() enforces the right-hand side and the size.
 *
 * What is read from the ring is loaded once into a variable, by a load the
 * compiler may neither repeat nor split.
 *
 * Rules where the specification leaves a choice:
 * - a descriptor of length zero breaks the ring (QEMU refuses it as well);
 * - an indirect table may be longer than the ring, a chain may not; entries
 *   that the chain does not reach are not looked at;
 * - an indirect table that is not aligned to 8 bytes, or not inside one
 *   region, is read entry by entry, each piecewise into a copy;
 * - a descriptor that names an indirect table may end a chain (2.7.5.3.2).
 *
 * Byte order: little-endian, as virtio 1.x has it and as legacy drivers on
 * the guests served here have it, too.
 */
#include <string.h>

#include "virtqueue-internal.h"
#include "util/report.h"

/* ---- access to the ring ------------------------------------------------- */

static inline uint16_t load16(const __virtio16 *p)
{
    return GUINT16_FROM_LE(__atomic_load_n(p, __ATOMIC_RELAXED));
}

static inline void store16(__virtio16 *p, uint16_t value)
{
    __atomic_store_n(p, GUINT16_TO_LE(value), __ATOMIC_RELAXED);
}

/*
 * Acquire: pairs with the driver's barrier between writing an available
 * entry with its descriptors and moving the index.  Every path that learns
 * a new index learns it here.
 */
static inline uint16_t load_avail_idx(const VringSplit *r)
{
    return GUINT16_FROM_LE(__atomic_load_n(&r->avail->idx, __ATOMIC_ACQUIRE));
}

/* The event words lie behind the last ring entry. */
static inline __virtio16 *avail_event(const VirtQueue *vq)
{
    return (__virtio16 *)&vq->split.used->ring[vq->size];
}

static inline __virtio16 *used_event(const VirtQueue *vq)
{
    return &vq->split.avail->ring[vq->size];
}

/* log_used: @len bytes at @offset of the used ring have been written. */
static inline void log_used(VirtQueue *vq, uint64_t offset, uint64_t len)
{
    if (G_UNLIKELY(vq->log && vq->setup.log_used)) {
        dirty_log_mark(vq->log, vq->setup.log_gpa + offset, len);
    }
}

static void set_avail_event(VirtQueue *vq, uint16_t event)
{
    if (vq->split.avail_event == event) {
        return;
    }
    vq->split.avail_event = event;
    store16(avail_event(vq), event);
    log_used(vq, offsetof(struct vring_used, ring[vq->size]), sizeof(event));
}

static void set_used_flags(VirtQueue *vq, uint16_t flags)
{
    if (vq->split.used_flags == flags) {
        return;
    }
    vq->split.used_flags = flags;
    store16(&vq->split.used->flags, flags);
    log_used(vq, offsetof(struct vring_used, flags), sizeof(flags));
}

/* ---- start -------------------------------------------------------------- */

static void *map_area(VirtQueue *vq, const char *what, uint64_t addr,
                      uint64_t len, unsigned align, GError **errp)
{
    void *p;

    if (addr % align) {
        vnet_set_error(errp, "%s: %s at 0x%" G_GINT64_MODIFIER "x is not "
                       "aligned to %u bytes", vq->name, what, addr, align);
        return NULL;
    }
    p = guest_map_translate_exact(vq->map, vq->setup.space, addr, len);
    if (!p) {
        vnet_set_error(errp, "%s: %s at 0x%" G_GINT64_MODIFIER "x, %u bytes, "
                       "is not inside one memory region", vq->name, what,
                       addr, (unsigned)len);
        return NULL;
    }
    /* A region may start at an odd place of its file. */
    if ((uintptr_t)p % align) {
        vnet_set_error(errp, "%s: %s at 0x%" G_GINT64_MODIFIER "x is in a "
                       "memory region that is not aligned", vq->name, what,
                       addr);
        return NULL;
    }
    return p;
}

static bool split_map(VirtQueue *vq, GError **errp)
{
    VringSplit *r = &vq->split;
    size_t event = vq->event_idx ? sizeof(__virtio16) : 0;

    r->desc = map_area(vq, "descriptor table", vq->setup.desc,
                       sizeof(r->desc[0]) * vq->size, VRING_DESC_ALIGN_SIZE,
                       errp);
    if (!r->desc) {
        return false;
    }
    r->avail = map_area(vq, "available ring", vq->setup.avail,
                        offsetof(struct vring_avail, ring[vq->size]) + event,
                        VRING_AVAIL_ALIGN_SIZE, errp);
    if (!r->avail) {
        return false;
    }
    r->used = map_area(vq, "used ring", vq->setup.used,
                       offsetof(struct vring_used, ring[vq->size]) + event,
                       VRING_USED_ALIGN_SIZE, errp);
    if (!r->used) {
        return false;
    }
    r->used_flags = load16(&r->used->flags);
    r->avail_event = vq->event_idx ? load16(avail_event(vq)) : 0;
    return true;
}

static bool split_start(VirtQueue *vq, GError **errp)
{
    VringSplit *r = &vq->split;
    uint16_t used_idx = load16(&r->used->idx);

    if ((uint16_t)(vq->setup.last_avail - used_idx) > vq->size) {
        vnet_set_error(errp, "%s: available index %u is more than a ring of "
                       "%u ahead of the used index %u", vq->name,
                       vq->setup.last_avail, vq->size, used_idx);
        return false;
    }
    r->used_idx = used_idx;
    r->last_avail = vq->setup.last_avail;
    r->avail_seen = r->last_avail;
    r->scan = r->last_avail;
    /* What an earlier owner signalled is not known: all of it is new. */
    r->unsettled = VRING_UNSETTLED_MAX;
    return true;
}

static uint16_t split_last_avail(const VirtQueue *vq)
{
    return vq->split.last_avail;
}

/* ---- pop ---------------------------------------------------------------- */

/*
 * split_look: learn the driver's index.  Returns false if that broke the
 * ring.  Chains taken and not yet published occupy entries as well.
 */
static bool split_look(VirtQueue *vq)
{
    VringSplit *r = &vq->split;
    uint16_t idx = load_avail_idx(r);
    uint16_t waiting = idx - r->last_avail;
    uint16_t taken = r->last_avail - r->used_idx;

    if (G_UNLIKELY(waiting > vq->size)) {
        virtqueue_break(vq, "available index moved by more than the ring");
        return false;
    }
    if (G_UNLIKELY(waiting + taken > vq->size)) {
        virtqueue_break(vq, "more chains in flight than the ring has entries");
        return false;
    }
    if (G_UNLIKELY(waiting < (uint16_t)(r->avail_seen - r->last_avail))) {
        virtqueue_break(vq, "available index moved backwards");
        return false;
    }
    r->avail_seen = idx;
    return true;
}

/* A descriptor as it was at one moment. */
typedef struct SplitDesc {
    uint64_t addr;
    uint32_t len;
    uint16_t flags;
    uint16_t next;
} SplitDesc;

static inline SplitDesc desc_from_words(uint64_t addr, uint64_t rest)
{
    addr = GUINT64_FROM_LE(addr);
    rest = GUINT64_FROM_LE(rest);
    return (SplitDesc) {
        .addr = addr,
        .len = rest,
        .flags = rest >> 32,
        .next = rest >> 48,
    };
}

static inline SplitDesc desc_load(const struct vring_desc *desc)
{
    const uint64_t *words = (const uint64_t *)desc;

    return desc_from_words(__atomic_load_n(&words[0], __ATOMIC_RELAXED),
                           __atomic_load_n(&words[1], __ATOMIC_RELAXED));
}

static inline bool desc_writable(const SplitDesc *d)
{
    return d->flags & VRING_DESC_F_WRITE;
}

/* desc_read: one that may lie anywhere, even in two regions. */
static bool desc_read(VirtQueue *vq, uint64_t addr, SplitDesc *d)
{
    uint64_t words[2];
    size_t done = 0;

    while (done < sizeof(words)) {
        uint64_t offset, n;

        if (!guest_map_find(vq->map, GUEST_SPACE_PHYS, addr + done,
                            &vq->table_range)) {
            return false;
        }
        offset = addr + done - vq->table_range.start;
        n = MIN(sizeof(words) - done, vq->table_range.size - offset);
        memcpy((uint8_t *)words + done, vq->table_range.host + offset, n);
        done += n;
    }
    /* From here on the copy is all there is: no load moves up or repeats. */
    __asm__ __volatile__("" : "+m" (words));
    *d = desc_from_words(words[0], words[1]);
    return true;
}

/*
 * find_table: the whole table in this process, or NULL if it must be read
 * entry by entry.
 */
static const struct vring_desc *find_table(VirtQueue *vq, uint64_t addr,
                                           uint32_t len)
{
    uint64_t offset = addr - vq->table_range.start;

    if (G_UNLIKELY(offset >= vq->table_range.size)) {
        if (!guest_map_find(vq->map, GUEST_SPACE_PHYS, addr,
                            &vq->table_range)) {
            return NULL;
        }
        offset = addr - vq->table_range.start;
    }
    if (G_UNLIKELY(len > vq->table_range.size - offset ||
                   (uintptr_t)(vq->table_range.host + offset) % 8)) {
        return NULL;
    }
    return (const struct vring_desc *)(vq->table_range.host + offset);
}

static const char *check_indirect(VirtQueue *vq, const SplitDesc *d)
{
    if (!vq->indirect) {
        return "indirect descriptor without the feature";
    }
    if (d->flags & VRING_DESC_F_NEXT) {
        return "indirect descriptor with a next one";
    }
    if (d->len == 0) {
        return "indirect table of length zero";
    }
    if (d->len % sizeof(struct vring_desc)) {
        return "indirect table length is not a multiple of 16";
    }
    if (d->len - 1 > UINT64_MAX - d->addr) {
        return "indirect table wraps the address space";
    }
    return NULL;
}

/* walk_indirect: the buffers that the table @t describes. */
VRING_INLINE const char *walk_indirect(VirtQueue *vq, VringChain *c,
                                       const SplitDesc *t)
{
    uint32_t entries = t->len / sizeof(struct vring_desc);
    const struct vring_desc *table;
    const char *why = check_indirect(vq, t);
    uint32_t i = 0;
    SplitDesc d;

    if (G_UNLIKELY(why)) {
        return why;
    }
    table = find_table(vq, t->addr, t->len);
    for (;;) {
        if (G_LIKELY(table)) {
            d = desc_load(&table[i]);
        } else if (!desc_read(vq, t->addr + i * sizeof(*table), &d)) {
            return "indirect table is not inside guest memory";
        }
        if (G_UNLIKELY(d.flags & VRING_DESC_F_INDIRECT)) {
            return "indirect descriptor inside an indirect table";
        }
        why = vring_chain_add(vq, c, d.addr, d.len, desc_writable(&d));
        if (G_UNLIKELY(why)) {
            return why;
        }
        if (!(d.flags & VRING_DESC_F_NEXT)) {
            return NULL;
        }
        i = d.next;
        if (G_UNLIKELY(i >= entries)) {
            return "next descriptor is outside the indirect table";
        }
    }
}

/*
 * pop_chain: the chain that starts with the descriptor @d at @head, by the
 * whole book.
 */
VRING_INLINE const char *pop_chain(VirtQueue *vq, uint16_t head, SplitDesc d,
                                   VirtQueueElem **elem)
{
    VringChain c = vring_chain_begin(vq);
    unsigned slots = 1;
    const char *why;

    while (!(d.flags & VRING_DESC_F_INDIRECT)) {
        why = vring_chain_add(vq, &c, d.addr, d.len, desc_writable(&d));
        if (G_UNLIKELY(why)) {
            return why;
        }
        if (!(d.flags & VRING_DESC_F_NEXT)) {
            return vring_chain_commit(vq, &c, head, slots, elem);
        }
        if (G_UNLIKELY(d.next >= vq->size)) {
            return "next descriptor is outside the ring";
        }
        d = desc_load(&vq->split.desc[d.next]);
        slots++;
    }
    why = walk_indirect(vq, &c, &d);
    return why ? why : vring_chain_commit(vq, &c, head, slots, elem);
}

/* What pop_one() says if there is no room for a chain; nobody's fault. */
static const char no_room[] = "";

/*
 * pop_one: the chain at available index @idx.
 *
 * One buffer in one descriptor is what drivers send for a small packet and
 * post for receive: the same steps, with nothing to remember between them.
 */
VRING_INLINE const char *pop_one(VirtQueue *vq, uint16_t idx,
                                 VirtQueueElem **elem)
{
    const char *why;
    uint16_t head;
    SplitDesc d;
    VringChain c;

    if (!vring_chain_room(vq)) {
        return no_room;
    }
    head = load16(&vq->split.avail->ring[idx & (vq->size - 1)]);
    if (G_UNLIKELY(head >= vq->size)) {
        return "available entry is outside the ring";
    }
    d = desc_load(&vq->split.desc[head]);
    if (d.flags & (VRING_DESC_F_NEXT | VRING_DESC_F_INDIRECT)) {
        return pop_chain(vq, head, d, elem);
    }
    c = vring_chain_begin(vq);
    why = vring_chain_add(vq, &c, d.addr, d.len, desc_writable(&d));
    return why ? why : vring_chain_commit(vq, &c, head, 1, elem);
}

static unsigned split_pop_batch(VirtQueue *vq, VirtQueueElem **elems,
                                unsigned max, size_t max_bytes)
{
    VringSplit *r = &vq->split;
    uint16_t idx = r->last_avail;
    VirtQueueElem **elem = elems;
    VirtQueueElem **end;
    size_t bytes = 0;

    if ((uint16_t)(r->avail_seen - idx) < max && !split_look(vq)) {
        return 0;
    }
    end = elems + MIN(max, (uint16_t)(r->avail_seen - idx));
    while (elem < end) {
        const char *why = pop_one(vq, idx, elem);

        if (G_UNLIKELY(why)) {
            if (elem == elems && why != no_room) {
                virtqueue_break(vq, why);
            }
            break;
        }
        bytes += (size_t)(*elem)->out_bytes + (*elem)->in_bytes;
        elem++;
        idx++;
        if (bytes >= max_bytes) {
            break;
        }
    }
    r->last_avail = idx;
    if (idx == r->avail_seen) {
        r->scan = idx;
    }
    return elem - elems;
}

static void split_unpop(VirtQueue *vq, unsigned n)
{
    vq->split.last_avail -= n;
}

/* ---- publish and signal ------------------------------------------------- */

static void split_log_published(VirtQueue *vq, uint16_t first, unsigned n)
{
    unsigned slot = first & (vq->size - 1);
    unsigned straight = MIN(n, vq->size - slot);
    size_t entry = sizeof(struct vring_used_elem);

    log_used(vq, offsetof(struct vring_used, ring[slot]), straight * entry);
    log_used(vq, offsetof(struct vring_used, ring[0]),
             (n - straight) * entry);
    log_used(vq, offsetof(struct vring_used, idx), sizeof(uint16_t));
}

static unsigned split_publish(VirtQueue *vq)
{
    VringSplit *r = &vq->split;
    uint16_t first = r->used_idx;
    unsigned n;

    for (n = 0; vq->tail + n != vq->head; n++) {
        const VirtQueueElem *e = vring_elem(vq, vq->tail + n);
        vring_used_elem_t *slot =
            &r->used->ring[(uint16_t)(first + n) & (vq->size - 1)];

        if (!e->filled) {
            break;
        }
        slot->id = GUINT32_TO_LE(e->id);
        slot->len = GUINT32_TO_LE(e->used_len);
    }
    if (n == 0) {
        return 0;
    }
    r->used_idx = first + n;
    /* Release: pairs with the driver's read barrier between loading the used
     * index and reading the entries. */
    __atomic_store_n(&r->used->idx, GUINT16_TO_LE(r->used_idx),
                     __ATOMIC_RELEASE);
    r->unsettled = MIN(r->unsettled + n, VRING_UNSETTLED_MAX);
    if (G_UNLIKELY(vq->log)) {
        split_log_published(vq, first, n);
    }
    return n;
}

static bool wants_call(VirtQueue *vq)
{
    VringSplit *r = &vq->split;

    if (vq->notify_on_empty && virtqueue_in_flight(vq) == 0 &&
        load_avail_idx(r) == r->last_avail) {
        return true;
    }
    if (vq->event_idx) {
        return vring_crossed_event(load16(used_event(vq)), r->used_idx,
                                   r->unsettled);
    }
    return !(load16(&r->avail->flags) & VRING_AVAIL_F_NO_INTERRUPT);
}

static bool split_should_signal(VirtQueue *vq)
{
    if (vq->split.unsettled == 0) {
        return false;
    }
    /* Pairs with the driver's barrier between asking for a call (used_event
     * or flags) and looking at the used index again: one of the two sees the
     * other's store. */
    vring_full_barrier();
    if (wants_call(vq)) {
        return true;
    }
    vq->split.unsettled = 0;
    return false;
}

static uint16_t split_call_event(const VirtQueue *vq)
{
    return vq->event_idx ? load16(used_event(vq)) : 0;
}

static void split_signalled(VirtQueue *vq)
{
    vq->split.unsettled = 0;
}

/* ---- notifications ------------------------------------------------------ */

static void split_park(VirtQueue *vq)
{
    VringSplit *r = &vq->split;
    uint16_t idx;

    if (!vq->event_idx) {
        set_used_flags(vq, VRING_USED_F_NO_NOTIFY);
        return;
    }
    /*
     * An event index that the driver has passed stays silent until its index
     * comes round to it; as long as that is half a round away, the store and
     * the cache line it takes from the driver are saved.
     */
    idx = load_avail_idx(r);
    if (vring_crossed_event(r->avail_event, idx, 0x8000)) {
        return;
    }
    set_avail_event(vq, idx - 1);
}

static VirtQueueArm split_arm(VirtQueue *vq, unsigned window)
{
    VringSplit *r = &vq->split;
    uint16_t moved;

    g_assert(window >= 1 && window <= vq->size);
    if (vq->event_idx) {
        set_avail_event(vq, r->scan + window - 1);
    } else {
        set_used_flags(vq, window > 1 ? VRING_USED_F_NO_NOTIFY : 0);
    }
    /* Pairs with the driver's barrier between moving the available index and
     * reading avail_event or flags: either it sees what was asked for here,
     * or its index is seen below. */
    vring_full_barrier();
    if (!split_look(vq)) {
        return VQ_ARM_EMPTY;
    }
    moved = r->avail_seen - r->scan;
    if (moved == 0) {
        return VQ_ARM_EMPTY;
    }
    return moved < window ? VQ_ARM_PARTIAL : VQ_ARM_CROSSED;
}

static void split_disarm(VirtQueue *vq)
{
    VringSplit *r = &vq->split;

    if (vq->event_idx) {
        set_avail_event(vq, r->last_avail);
    }
    set_used_flags(vq, 0);
    /* As in split_arm(), where the look is the next owner's. */
    vring_full_barrier();
}

static bool split_avail_moved(const VirtQueue *vq)
{
    return load_avail_idx(&vq->split) != vq->split.scan;
}

const VringOps vring_split_ops = {
    .map = split_map,
    .start = split_start,
    .pop_batch = split_pop_batch,
    .unpop = split_unpop,
    .publish = split_publish,
    .should_signal = split_should_signal,
    .call_event = split_call_event,
    .signalled = split_signalled,
    .park = split_park,
    .arm = split_arm,
    .disarm = split_disarm,
    .avail_moved = split_avail_moved,
    .last_avail = split_last_avail,
};
