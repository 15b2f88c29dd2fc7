/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The guest's memory, as the front-end describes it.
 *
 * Two ways, one after the other or mixed: SET_MEM_TABLE replaces everything;
 * ADD_MEM_REG and REM_MEM_REG (CONFIGURE_MEM_SLOTS) change one region.  Each
 * builds a new map that shares the regions that stay, moves the rings over,
 * and waits until the old map has no user left.  Only then is the message
 * answered, so the front-end may give the memory to somebody else.
 *
 * The table changes while rings run.  With slots a region that changes its
 * extent comes as REM of the old and ADD of the new one, and in between part
 * of the guest's memory is missing: buffers there would look like a driver's
 * mistake.  So a removal suspends all rings, and they resume when all that was
 * removed is memory again.  What is unplugged for good never is: they resume
 * as well when no memory message has come for VU_SETTLE_NS.  A ring that is
 * not in the map resumes when it is there again.
 *
 * QEMU 7.2 repeats REM and ADD once per queue pair: an identical region again
 * and the removal of one that is gone change nothing and succeed.
 */
#include <inttypes.h>

#include "vhost-user-internal.h"

/*
 * The messages of one change follow each other at the pace of their replies,
 * tens of microseconds apart, but the front-end may lose its CPU in between:
 * for most of a 100 ms period if a control group limits it.  Who resumes too
 * early has a broken ring; too late, a pause at the unplug of memory.
 */
#define VU_SETTLE_NS (200 * NS_PER_MS)

static GuestRegionInfo region_info(const VuRegion *r)
{
    return (GuestRegionInfo) {
        .gpa = r->gpa,
        .size = r->size,
        .uaddr = r->uaddr,
        .fd_offset = r->mmap_offset,
    };
}

/* ends_fit: numbers that no memory layout can have are the front-end's. */
static bool ends_fit(const VuRegion *r, GError **errp)
{
    if (r->size && r->gpa <= UINT64_MAX - r->size &&
        r->uaddr <= UINT64_MAX - r->size &&
        r->mmap_offset <= UINT64_MAX - r->size) {
        return true;
    }
    vnet_set_error(errp, "region at 0x%" PRIx64 " of 0x%" PRIx64 " bytes, "
                   "user address 0x%" PRIx64 ", offset 0x%" PRIx64,
                   r->gpa, r->size, r->uaddr, r->mmap_offset);
    return false;
}

/* map_replace: @map, a reference of ours, is the guest's memory from now. */
static void map_replace(VuConn *c, GuestMap *map)
{
    GuestMap *old = c->map;

    vu_rings_suspend(c, map);
    virtio_net_set_map(c->owner.nic, map);
    c->map = map;
    if (old) {
        guest_map_release_wait(old);
    }
}

static void settled(void *opaque)
{
    VuConn *c = opaque;

    aio_timer_del(&c->settle_timer);
    g_array_set_size(c->removed, 0);
    vu_rings_resume(c);
}

static void settle_later(VuConn *c)
{
    aio_timer_mod_ns(&c->settle_timer,
                     aio_now_ns(c->owner.ctx) + VU_SETTLE_NS);
}

static bool is_memory(const GuestMap *map, const GuestRegionInfo *info)
{
    uint64_t end = info->gpa + info->size;
    GuestRange range;

    for (uint64_t addr = info->gpa; addr < end;
         addr = range.start + range.size) {
        if (!guest_map_find(map, GUEST_SPACE_PHYS, addr, &range)) {
            return false;
        }
    }
    return true;
}

/* What is beyond the limit has not been noted, and counts as missing. */
static bool removed_is_back(const VuConn *c)
{
    for (unsigned i = 0; i < c->removed->len; i++) {
        if (!is_memory(c->map, &g_array_index(c->removed, GuestRegionInfo,
                                              i))) {
            return false;
        }
    }
    return c->removed->len < GUEST_MAP_MAX_REGIONS;
}

static void note_removed(VuConn *c, const GuestRegionInfo *info)
{
    if (c->removed->len < GUEST_MAP_MAX_REGIONS) {
        g_array_append_val(c->removed, *info);
    }
}

/* resume_rings: at once, unless this may be half of a change. */
static void resume_rings(VuConn *c)
{
    if (aio_timer_armed(&c->settle_timer) && !removed_is_back(c)) {
        settle_later(c);
    } else {
        settled(c);
    }
}

/* ---- messages ----------------------------------------------------------- */

static bool table_build(VuMsg *m, GuestMapBuilder *b, GError **errp)
{
    const VuMemTable *t = &m->payload.table;

    for (uint32_t i = 0; i < t->count; i++) {
        GuestRegionInfo info = region_info(&t->regions[i]);

        if (!guest_map_builder_add(b, &info, m->fds[i], errp)) {
            return false;
        }
    }
    return true;
}

static bool table_check(const VuMsg *m, GError **errp)
{
    const VuMemTable *t = &m->payload.table;

    /* At most VU_MEM_TABLE_MAX: each has brought its descriptor. */
    if (m->hdr.size !=
        offsetof(VuMemTable, regions) + t->count * sizeof(VuRegion)) {
        vnet_set_error(errp, "payload of %u bytes with %u regions",
                       m->hdr.size, t->count);
        return false;
    }
    for (uint32_t i = 0; i < t->count; i++) {
        if (!ends_fit(&t->regions[i], errp)) {
            return false;
        }
    }
    return true;
}

VuVerdict vu_set_mem_table(VuConn *c, VuMsg *m, GError **errp)
{
    GuestMapBuilder *b;

    if (!table_check(m, errp)) {
        return VU_BROKEN;
    }
    b = guest_map_builder_new(NULL);
    if (!table_build(m, b, errp)) {
        guest_map_builder_free(b);
        return VU_REFUSED;
    }
    /* Complete by nature: there is nothing to wait for. */
    aio_timer_del(&c->settle_timer);
    map_replace(c, guest_map_builder_finish(b));
    resume_rings(c);
    return VU_OK;
}

VuVerdict vu_add_mem_reg(VuConn *c, VuMsg *m, GError **errp)
{
    GuestRegionInfo info = region_info(&m->payload.reg.region);
    unsigned before = c->map ? guest_map_region_count(c->map) : 0;
    GuestMapBuilder *b;
    GuestMap *map;

    if (!ends_fit(&m->payload.reg.region, errp)) {
        return VU_BROKEN;
    }
    b = guest_map_builder_new(c->map);
    if (!guest_map_builder_add(b, &info, m->fds[0], errp)) {
        guest_map_builder_free(b);
        return VU_REFUSED;
    }
    map = guest_map_builder_finish(b);
    if (guest_map_region_count(map) == before) {
        guest_map_unref(map);
        return VU_OK;
    }
    map_replace(c, map);
    resume_rings(c);
    return VU_OK;
}

VuVerdict vu_rem_mem_reg(VuConn *c, VuMsg *m, GError **errp)
{
    GuestRegionInfo info = region_info(&m->payload.reg.region);
    GuestMapBuilder *b = guest_map_builder_new(c->map);

    if (!guest_map_builder_remove(b, &info)) {
        guest_map_builder_free(b);
        return VU_OK;
    }
    if (vu_rings_suspend(c, NULL) || aio_timer_armed(&c->settle_timer)) {
        note_removed(c, &info);
        settle_later(c);
    }
    map_replace(c, guest_map_builder_finish(b));
    return VU_OK;
}

VuVerdict vu_get_max_mem_slots(VuConn *c, VuMsg *m, GError **errp)
{
    m->reply.u64 = GUEST_MAP_MAX_REGIONS;
    return VU_OK;
}

/* ---- life --------------------------------------------------------------- */

void vu_memory_init(VuConn *c)
{
    aio_timer_init(&c->settle_timer, c->owner.ctx, settled, c);
    c->removed = g_array_new(FALSE, FALSE, sizeof(GuestRegionInfo));
}

void vu_memory_cleanup(VuConn *c)
{
    aio_timer_del(&c->settle_timer);
    g_array_free(c->removed, TRUE);
    if (c->map) {
        guest_map_release_wait(c->map);
        c->map = NULL;
    }
}
