/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Guest memory: what a device may touch of its guest.
 *
 * A GuestMap is an immutable, reference-counted snapshot of regions, each a
 * piece of a file descriptor mapped into this process.  A queue holds a
 * reference to the map it works with.  A change builds a new map (sharing the
 * regions that stay), hands it to every holder, and waits until the old one
 * has no holder left, before it is acknowledged to whoever asked for it.
 *
 * Addresses come in two spaces: guest-physical (descriptors) and, with
 * vhost-user, the front-end's own virtual addresses (rings).
 *
 * Translation answers only for bytes inside one region.  A buffer may cross
 * regions that are adjacent in guest space: callers translate piece by piece.
 */
#ifndef SYSTEM_GUEST_MEMORY_H
#define SYSTEM_GUEST_MEMORY_H

#include <glib.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* As many as a vhost-user front-end may announce (QEMU caps itself there). */
#define GUEST_MAP_MAX_REGIONS 512

typedef struct GuestMap GuestMap;
typedef struct GuestMapBuilder GuestMapBuilder;

typedef enum GuestSpace {
    GUEST_SPACE_PHYS,       /* guest-physical address */
    GUEST_SPACE_USER,       /* front-end virtual address */
} GuestSpace;

typedef struct GuestRegionInfo {
    uint64_t gpa;           /* guest-physical start */
    uint64_t size;          /* bytes, > 0 */
    uint64_t uaddr;         /* front-end virtual start */
    uint64_t fd_offset;     /* where it starts in its file; need not be page
                             * or huge-page aligned */
} GuestRegionInfo;

/* ---- building (main context) ----------------------------------------- */

/*
 * guest_map_builder_new: start from the regions of @base, or from nothing if
 * it is NULL.  End with guest_map_builder_finish() or _free().
 */
GuestMapBuilder *guest_map_builder_new(GuestMap *base);
void guest_map_builder_free(GuestMapBuilder *b);

/*
 * guest_map_builder_add: map one more region.
 * @fd: its file; stays the caller's (a mapping needs no descriptor)
 *
 * Adding a region identical to one that is there (same file, same numbers)
 * succeeds and changes nothing.  Fails with @errp set on: size 0, an end that
 * wraps in either space or in the file, an overlap with another region in
 * guest-physical or in user space, more than GUEST_MAP_MAX_REGIONS, a file
 * shorter than the region, or a mmap that the kernel refuses.
 */
bool guest_map_builder_add(GuestMapBuilder *b, const GuestRegionInfo *info,
                           int fd, GError **errp);

/*
 * guest_map_builder_add_ram: a region over memory the caller owns, which
 * must outlive the map (the qtest PC, and test harnesses).
 */
bool guest_map_builder_add_ram(GuestMapBuilder *b,
                               const GuestRegionInfo *info, void *ram,
                               GError **errp);

/*
 * guest_map_builder_remove: drop the region with this gpa, size and uaddr.
 * Returns false if there is none.
 */
bool guest_map_builder_remove(GuestMapBuilder *b,
                              const GuestRegionInfo *info);

/* guest_map_builder_finish: the new map, with one reference; frees @b. */
GuestMap *guest_map_builder_finish(GuestMapBuilder *b);

/* ---- references ------------------------------------------------------ */

/* Any thread. The last guest_map_unref() unmaps what no other map shares. */
GuestMap *guest_map_ref(GuestMap *map);
void guest_map_unref(GuestMap *map);

/*
 * guest_map_release_wait: drop the caller's reference and wait until every
 * other holder has dropped theirs, so that nothing can touch the regions of
 * @map any more.
 *
 * Main context only; the other holders must already have been told (they
 * let go without needing main).
 */
void guest_map_release_wait(GuestMap *map);

unsigned guest_map_region_count(const GuestMap *map);
/* guest_map_region_info: @i < guest_map_region_count(). */
GuestRegionInfo guest_map_region_info(const GuestMap *map, unsigned i);

/* ---- translation (any holder) ---------------------------------------- */

/*
 * GuestMapHint: where the last translation of this caller hit.  Zero it once;
 * never share it between threads.
 */
typedef struct GuestMapHint {
    unsigned region;
} GuestMapHint;

/*
 * guest_map_translate: host address of @addr.
 * @len: in: bytes wanted, > 0; out: bytes usable from there without leaving
 *       the region, <= what was wanted
 *
 * Returns NULL (and *@len = 0) if @addr is in no region.  The caller must
 * treat a shorter *@len as "ask again for the rest".
 */
void *guest_map_translate(const GuestMap *map, GuestSpace space,
                          uint64_t addr, uint64_t *len, GuestMapHint *hint);

/*
 * guest_map_find: the whole region that has @addr, for callers that keep the
 * last one and translate with a compare and an add.
 *
 * Returns false, and leaves @range alone, if @addr is in no region.  What is
 * kept is worth as much as the reference to @map, and no longer.
 */
typedef struct GuestRange {
    uint64_t start;         /* in the space asked for */
    uint64_t size;          /* bytes, > 0 */
    uint8_t *host;          /* of the first byte */
} GuestRange;

bool guest_map_find(const GuestMap *map, GuestSpace space, uint64_t addr,
                    GuestRange *range);

/*
 * guest_map_translate_exact: host address of @len contiguous bytes, or NULL
 * if they are not all inside one region.
 */
void *guest_map_translate_exact(const GuestMap *map, GuestSpace space,
                                uint64_t addr, uint64_t len);

/*
 * guest_map_user_to_phys: guest-physical address of a front-end address.
 * Returns false if it is in no region.
 */
bool guest_map_user_to_phys(const GuestMap *map, uint64_t uaddr,
                            uint64_t *gpa);

/* ---- dirty log ------------------------------------------------------- */

/*
 * DirtyLog: a shared bitmap, one bit per 4096 bytes of guest-physical space,
 * set after each write to guest memory (vhost-user SET_LOG_BASE).  Marking
 * is atomic and may be done from any thread; pages beyond the bitmap are
 * ignored.
 */
typedef struct DirtyLog DirtyLog;

/*
 * dirty_log_new: map a bitmap.
 * @fd: stays the caller's; @size: bytes; @offset: in the file
 *
 * Returns NULL with @errp set if offset + size wraps or leaves the file.
 */
DirtyLog *dirty_log_new(int fd, uint64_t size, uint64_t offset,
                        GError **errp);
DirtyLog *dirty_log_ref(DirtyLog *log);
void dirty_log_unref(DirtyLog *log);

/* dirty_log_mark: bytes [gpa, gpa + len) have just been written. */
void dirty_log_mark(DirtyLog *log, uint64_t gpa, uint64_t len);

#endif /* SYSTEM_GUEST_MEMORY_H */
