/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Guest memory: regions, maps and translation.
 *
 * A GuestRegion is one mapping and is shared by all maps that contain it; a
 * GuestMap is an immutable index over regions, once by guest-physical and
 * once by front-end address.  Both are counted under one lock: references are
 * taken per queue start and per map change, never per packet.
 *
 *   builder  --finish-->  map (1 ref)  --ref/unref-->  0: regions let go
 *
 * Translation takes no lock: a holder's reference keeps the index and the
 * mappings alive.  Releasing with a wait is the other end of that bargain.
 *
 * Limits: a peer that truncates its file under a mapping makes the kernel
 * raise SIGBUS at the next access; QEMU seals its memfds against that.
 */
#include <errno.h>
#include <inttypes.h>
#include <linux/magic.h>
#include <pthread.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "system/guest-memory.h"
#include "util/report.h"

typedef struct GuestRegion {
    GuestRegionInfo info;
    uint8_t *host;          /* its first byte in this process */
    void *mapping;          /* NULL if the memory is the caller's */
    size_t mapping_len;
    dev_t dev;              /* which file; 0 if the caller's */
    ino_t ino;
    unsigned refs;          /* under map_lock */
} GuestRegion;

typedef struct GuestMapEntry {
    GuestRange range;
    GuestRegion *region;
} GuestMapEntry;

struct GuestMap {
    unsigned refs;          /* under map_lock */
    unsigned count;
    GuestMapEntry *index[2];    /* by GuestSpace, sorted by range.start */
};

struct GuestMapBuilder {
    GPtrArray *regions;     /* one reference each */
};

/* pthread's own, so that a thread sanitizer sees them. */
static pthread_mutex_t map_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t map_released = PTHREAD_COND_INITIALIZER;

/* ---- regions ------------------------------------------------------------ */

static GuestRegion *region_ref(GuestRegion *r)
{
    pthread_mutex_lock(&map_lock);
    r->refs++;
    pthread_mutex_unlock(&map_lock);
    return r;
}

static void region_unref(GuestRegion *r)
{
    bool last;

    pthread_mutex_lock(&map_lock);
    last = --r->refs == 0;
    pthread_mutex_unlock(&map_lock);
    if (!last) {
        return;
    }
    if (r->mapping) {
        munmap(r->mapping, r->mapping_len);
    }
    g_free(r);
}

static void region_unref_void(gpointer r)
{
    region_unref(r);
}

static bool info_equal(const GuestRegionInfo *a, const GuestRegionInfo *b)
{
    return a->gpa == b->gpa && a->size == b->size && a->uaddr == b->uaddr &&
           a->fd_offset == b->fd_offset;
}

static bool same_region(const GuestRegion *a, const GuestRegion *b)
{
    if (!info_equal(&a->info, &b->info)) {
        return false;
    }
    if (!a->mapping || !b->mapping) {
        return a->host == b->host;
    }
    return a->dev == b->dev && a->ino == b->ino;
}

static bool ranges_overlap(uint64_t a, uint64_t a_size,
                           uint64_t b, uint64_t b_size)
{
    return a < b + b_size && b < a + a_size;
}

static bool regions_overlap(const GuestRegionInfo *a, const GuestRegionInfo *b)
{
    return ranges_overlap(a->gpa, a->size, b->gpa, b->size) ||
           ranges_overlap(a->uaddr, a->size, b->uaddr, b->size);
}

/* ---- building ----------------------------------------------------------- */

GuestMapBuilder *guest_map_builder_new(GuestMap *base)
{
    GuestMapBuilder *b = g_new0(GuestMapBuilder, 1);

    b->regions = g_ptr_array_new_with_free_func(region_unref_void);
    for (unsigned i = 0; base && i < base->count; i++) {
        g_ptr_array_add(b->regions,
                        region_ref(base->index[GUEST_SPACE_PHYS][i].region));
    }
    return b;
}

void guest_map_builder_free(GuestMapBuilder *b)
{
    g_ptr_array_unref(b->regions);
    g_free(b);
}

/* check_info: that all ends fit, so that later arithmetic cannot wrap. */
static bool check_info(const GuestRegionInfo *info, GError **errp)
{
    if (info->size == 0) {
        vnet_set_error(errp, "memory region at guest address 0x%" PRIx64
                       " has size 0", info->gpa);
        return false;
    }
    if (info->gpa > UINT64_MAX - info->size ||
        info->uaddr > UINT64_MAX - info->size ||
        info->size > INT64_MAX || info->fd_offset > INT64_MAX - info->size) {
        vnet_set_error(errp, "memory region at guest address 0x%" PRIx64
                       ", size 0x%" PRIx64 ", does not fit its address space",
                       info->gpa, info->size);
        return false;
    }
    return true;
}

typedef enum RegionFit { REGION_NEW, REGION_KNOWN, REGION_REFUSED } RegionFit;

/* check_fit: does @r go with the regions that are there? */
static RegionFit check_fit(GuestMapBuilder *b, const GuestRegion *r,
                           GError **errp)
{
    for (unsigned i = 0; i < b->regions->len; i++) {
        const GuestRegion *other = g_ptr_array_index(b->regions, i);

        if (same_region(r, other)) {
            return REGION_KNOWN;
        }
        if (regions_overlap(&r->info, &other->info)) {
            vnet_set_error(errp, "memory region at guest address 0x%" PRIx64
                           ", size 0x%" PRIx64 ", overlaps the one at 0x%"
                           PRIx64 ", size 0x%" PRIx64, r->info.gpa,
                           r->info.size, other->info.gpa, other->info.size);
            return REGION_REFUSED;
        }
    }
    if (b->regions->len >= GUEST_MAP_MAX_REGIONS) {
        vnet_set_error(errp, "more than %d memory regions",
                       GUEST_MAP_MAX_REGIONS);
        return REGION_REFUSED;
    }
    return REGION_NEW;
}

/*
 * mapping_granule: what offset and length of a mapping of @fd have to be
 * multiples of.  The kernel rounds for ordinary files but not for hugetlbfs.
 */
static uint64_t mapping_granule(int fd)
{
    struct statfs fs;
    long page = sysconf(_SC_PAGESIZE);

    if (fstatfs(fd, &fs) == 0 && fs.f_type == HUGETLBFS_MAGIC &&
        fs.f_bsize > page) {
        return fs.f_bsize;
    }
    return page;
}

static bool region_map(GuestRegion *r, int fd, GError **errp)
{
    uint64_t granule = mapping_granule(fd);
    uint64_t start = r->info.fd_offset / granule * granule;
    uint64_t lead = r->info.fd_offset - start;
    uint64_t len = (lead + r->info.size + granule - 1) / granule * granule;
    void *p = mmap(NULL, len, PROT_READ | PROT_WRITE,
                   MAP_SHARED | MAP_NORESERVE, fd, start);

    if (p == MAP_FAILED) {
        vnet_set_error(errp, "cannot map memory region at guest address 0x%"
                       PRIx64 ", size 0x%" PRIx64 ": %s", r->info.gpa,
                       r->info.size, g_strerror(errno));
        return false;
    }
    /* A core of ours is not the place for the guest's memory. */
    madvise(p, len, MADV_DONTDUMP);
    /* Who touches a page first decides how large it is: as QEMU does. */
    madvise(p, len, MADV_HUGEPAGE);
    r->mapping = p;
    r->mapping_len = len;
    r->host = (uint8_t *)p + lead;
    return true;
}

static bool check_file(GuestRegion *r, int fd, GError **errp)
{
    struct stat st;

    if (fstat(fd, &st) < 0) {
        vnet_set_error(errp, "memory region at guest address 0x%" PRIx64
                       ": %s", r->info.gpa, g_strerror(errno));
        return false;
    }
    if (S_ISREG(st.st_mode) &&
        (uint64_t)st.st_size < r->info.fd_offset + r->info.size) {
        vnet_set_error(errp, "memory region at guest address 0x%" PRIx64
                       " ends at 0x%" PRIx64 " of a file of 0x%" PRIx64
                       " bytes", r->info.gpa,
                       r->info.fd_offset + r->info.size,
                       (uint64_t)st.st_size);
        return false;
    }
    r->dev = st.st_dev;
    r->ino = st.st_ino;
    return true;
}

static void builder_append(GuestMapBuilder *b, const GuestRegion *r)
{
    GuestRegion *copy = g_new(GuestRegion, 1);

    *copy = *r;
    copy->refs = 1;
    g_ptr_array_add(b->regions, copy);
}

bool guest_map_builder_add(GuestMapBuilder *b, const GuestRegionInfo *info,
                           int fd, GError **errp)
{
    /* Not a pointer yet, but "has a mapping of its own" for same_region(). */
    GuestRegion r = { .info = *info, .mapping = MAP_FAILED };
    RegionFit fit;

    if (!check_info(info, errp) || !check_file(&r, fd, errp)) {
        return false;
    }
    fit = check_fit(b, &r, errp);
    if (fit != REGION_NEW) {
        return fit == REGION_KNOWN;
    }
    if (!region_map(&r, fd, errp)) {
        return false;
    }
    builder_append(b, &r);
    return true;
}

bool guest_map_builder_add_ram(GuestMapBuilder *b,
                               const GuestRegionInfo *info, void *ram,
                               GError **errp)
{
    GuestRegion r = { .info = *info, .host = ram };
    RegionFit fit;

    if (!check_info(info, errp)) {
        return false;
    }
    fit = check_fit(b, &r, errp);
    if (fit == REGION_NEW) {
        builder_append(b, &r);
    }
    return fit != REGION_REFUSED;
}

bool guest_map_builder_remove(GuestMapBuilder *b, const GuestRegionInfo *info)
{
    for (unsigned i = 0; i < b->regions->len; i++) {
        const GuestRegion *r = g_ptr_array_index(b->regions, i);

        if (r->info.gpa == info->gpa && r->info.size == info->size &&
            r->info.uaddr == info->uaddr) {
            g_ptr_array_remove_index(b->regions, i);
            return true;
        }
    }
    return false;
}

static int entry_compare(const void *a, const void *b)
{
    uint64_t x = ((const GuestMapEntry *)a)->range.start;
    uint64_t y = ((const GuestMapEntry *)b)->range.start;

    return (x > y) - (x < y);
}

static GuestMapEntry *build_index(GuestMapBuilder *b, GuestSpace space)
{
    GuestMapEntry *index = g_new(GuestMapEntry, b->regions->len);

    for (unsigned i = 0; i < b->regions->len; i++) {
        GuestRegion *r = g_ptr_array_index(b->regions, i);

        index[i].region = r;
        index[i].range.size = r->info.size;
        index[i].range.host = r->host;
        index[i].range.start = space == GUEST_SPACE_PHYS ? r->info.gpa
                                                         : r->info.uaddr;
    }
    if (b->regions->len) {
        qsort(index, b->regions->len, sizeof(*index), entry_compare);
    }
    return index;
}

GuestMap *guest_map_builder_finish(GuestMapBuilder *b)
{
    GuestMap *map = g_new0(GuestMap, 1);

    map->refs = 1;
    map->count = b->regions->len;
    map->index[GUEST_SPACE_PHYS] = build_index(b, GUEST_SPACE_PHYS);
    map->index[GUEST_SPACE_USER] = build_index(b, GUEST_SPACE_USER);
    for (unsigned i = 0; i < b->regions->len; i++) {
        region_ref(g_ptr_array_index(b->regions, i));
    }
    guest_map_builder_free(b);
    return map;
}

/* ---- references --------------------------------------------------------- */

static void map_free(GuestMap *map)
{
    for (unsigned i = 0; i < map->count; i++) {
        region_unref(map->index[GUEST_SPACE_PHYS][i].region);
    }
    g_free(map->index[GUEST_SPACE_PHYS]);
    g_free(map->index[GUEST_SPACE_USER]);
    g_free(map);
}

GuestMap *guest_map_ref(GuestMap *map)
{
    pthread_mutex_lock(&map_lock);
    map->refs++;
    pthread_mutex_unlock(&map_lock);
    return map;
}

void guest_map_unref(GuestMap *map)
{
    bool last;

    pthread_mutex_lock(&map_lock);
    last = --map->refs == 0;
    if (map->refs == 1) {
        pthread_cond_broadcast(&map_released);
    }
    pthread_mutex_unlock(&map_lock);
    if (last) {
        map_free(map);
    }
}

void guest_map_release_wait(GuestMap *map)
{
    pthread_mutex_lock(&map_lock);
    while (map->refs > 1) {
        pthread_cond_wait(&map_released, &map_lock);
    }
    pthread_mutex_unlock(&map_lock);
    map_free(map);
}

unsigned guest_map_region_count(const GuestMap *map)
{
    return map->count;
}

GuestRegionInfo guest_map_region_info(const GuestMap *map, unsigned i)
{
    g_assert(i < map->count);
    return map->index[GUEST_SPACE_PHYS][i].region->info;
}

/* ---- translation -------------------------------------------------------- */

static bool entry_has(const GuestMapEntry *e, uint64_t addr)
{
    return addr - e->range.start < e->range.size;
}

/* find_entry: the entry that has @addr, or NULL. */
static const GuestMapEntry *find_entry(const GuestMap *map, GuestSpace space,
                                       uint64_t addr)
{
    const GuestMapEntry *index = map->index[space];
    unsigned lo = 0;
    unsigned hi = map->count;

    while (lo < hi) {
        unsigned mid = (lo + hi) / 2;

        if (entry_has(&index[mid], addr)) {
            return &index[mid];
        }
        if (index[mid].range.start > addr) {
            hi = mid;
        } else {
            lo = mid + 1;
        }
    }
    return NULL;
}

bool guest_map_find(const GuestMap *map, GuestSpace space, uint64_t addr,
                    GuestRange *range)
{
    const GuestMapEntry *e = find_entry(map, space, addr);

    if (!e) {
        return false;
    }
    *range = e->range;
    return true;
}

void *guest_map_translate(const GuestMap *map, GuestSpace space,
                          uint64_t addr, uint64_t *len, GuestMapHint *hint)
{
    const GuestMapEntry *e = map->index[space];
    uint64_t offset;

    if (hint->region < map->count && entry_has(e + hint->region, addr)) {
        e += hint->region;
    } else {
        e = find_entry(map, space, addr);
        if (!e) {
            *len = 0;
            return NULL;
        }
        hint->region = e - map->index[space];
    }
    offset = addr - e->range.start;
    *len = MIN(*len, e->range.size - offset);
    return e->range.host + offset;
}

void *guest_map_translate_exact(const GuestMap *map, GuestSpace space,
                                uint64_t addr, uint64_t len)
{
    const GuestMapEntry *e = find_entry(map, space, addr);
    uint64_t offset;

    if (!e) {
        return NULL;
    }
    offset = addr - e->range.start;
    return len <= e->range.size - offset ? e->range.host + offset : NULL;
}

bool guest_map_user_to_phys(const GuestMap *map, uint64_t uaddr,
                            uint64_t *gpa)
{
    const GuestMapEntry *e = find_entry(map, GUEST_SPACE_USER, uaddr);

    if (!e) {
        return false;
    }
    *gpa = e->region->info.gpa + (uaddr - e->range.start);
    return true;
}
