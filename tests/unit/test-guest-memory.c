/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Guest memory maps: what may be added, where addresses lead, and who waits
 * for whom when a map is replaced.
 */
#include <fcntl.h>
#include <linux/memfd.h>
#include <pthread.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "system/guest-memory.h"
#include "util/report.h"

#define PAGE 4096

static int new_file(uint64_t size)
{
    int fd = memfd_create("ram", 0);

    g_assert_cmpint(fd, >=, 0);
    g_assert_cmpint(ftruncate(fd, size), ==, 0);
    return fd;
}

static void add(GuestMapBuilder *b, GuestRegionInfo info, int fd)
{
    GError *err = NULL;

    guest_map_builder_add(b, &info, fd, &err);
    g_assert_no_error(err);
}

static void refuse(GuestMapBuilder *b, GuestRegionInfo info, int fd,
                   const char *pattern)
{
    GError *err = NULL;

    g_assert_false(guest_map_builder_add(b, &info, fd, &err));
    g_assert_error(err, VNET_ERROR, 0);
    if (!g_pattern_match_simple(pattern, err->message)) {
        g_error("\"%s\" is not \"%s\"", err->message, pattern);
    }
    g_error_free(err);
}

/* A map of the regions of a 512 MiB pc with a hole, small. */
static const GuestRegionInfo pc_regions[] = {
    { 0x100000, 0x40000, 0x7f0000100000, 0x100000 },
    { 0x0, 0xc0000, 0x7f0000000000, 0 },
    { 0xe0000, 0x10000, 0x7f00000e0000, 0xe0000 },
};

static GuestMap *pc_map(int *fd)
{
    GuestMapBuilder *b = guest_map_builder_new(NULL);

    *fd = new_file(0x140000);
    for (unsigned i = 0; i < G_N_ELEMENTS(pc_regions); i++) {
        add(b, pc_regions[i], *fd);
    }
    return guest_map_builder_finish(b);
}

/* ---- building ----------------------------------------------------------- */

static void test_refused(void)
{
    GuestMapBuilder *b = guest_map_builder_new(NULL);
    int fd = new_file(0x10000);
    int dir = open("/", O_RDONLY | O_DIRECTORY);
    GuestMap *map;

    add(b, (GuestRegionInfo) { 0x10000, 0x4000, 0x50000, 0 }, fd);
    refuse(b, (GuestRegionInfo) { 0x20000, 0, 0x60000, 0 }, fd, "*size 0");
    /* Ends that wrap, in each space. */
    refuse(b, (GuestRegionInfo) { UINT64_MAX - 0xfff, 0x1000, 0x60000, 0 }, fd,
           "*does not fit its address space");
    refuse(b, (GuestRegionInfo) { 0x20000, 0x1000, UINT64_MAX - 0xff, 0 }, fd,
           "*does not fit its address space");
    refuse(b, (GuestRegionInfo) { 0x20000, 0x1000, 0x60000,
                                  UINT64_MAX - 0xff }, fd,
           "*does not fit its address space");
    refuse(b, (GuestRegionInfo) { 0x20000, UINT64_C(1) << 63, 0x60000, 0 }, fd,
           "*does not fit its address space");
    /* Overlaps by one byte, at either end, in either space. */
    refuse(b, (GuestRegionInfo) { 0x13fff, 0x1000, 0x60000, 0 }, fd,
           "*overlaps*");
    refuse(b, (GuestRegionInfo) { 0xf001, 0x1000, 0x60000, 0 }, fd,
           "*overlaps*");
    refuse(b, (GuestRegionInfo) { 0x20000, 0x1000, 0x53fff, 0 }, fd,
           "*overlaps*");
    refuse(b, (GuestRegionInfo) { 0x11000, 0x1000, 0x60000, 0 }, fd,
           "*overlaps*");
    /* The file. */
    refuse(b, (GuestRegionInfo) { 0x20000, 0x10001, 0x60000, 0 }, fd,
           "*ends at 0x10001 of a file of 0x10000 bytes");
    refuse(b, (GuestRegionInfo) { 0x20000, 0x1000, 0x60000, 0xf001 }, fd,
           "*ends at 0x10001 of a file of 0x10000 bytes");
    refuse(b, (GuestRegionInfo) { 0x20000, 0x1000, 0x60000, 0 }, -1,
           "*Bad file descriptor");
    refuse(b, (GuestRegionInfo) { 0x20000, 0x1000, 0x60000, 0 }, dir,
           "cannot map*");

    /* Neighbours are no overlap, and nothing refused is there. */
    add(b, (GuestRegionInfo) { 0x14000, 0x1000, 0x54000, 0 }, fd);
    add(b, (GuestRegionInfo) { 0xf000, 0x1000, 0x4f000, 0x1000 }, fd);
    map = guest_map_builder_finish(b);
    g_assert_cmpuint(guest_map_region_count(map), ==, 3);
    guest_map_unref(map);
    close(fd);
    close(dir);
}

/* An older QEMU sends each region once per queue pair. */
static void test_add_twice(void)
{
    GuestMapBuilder *b = guest_map_builder_new(NULL);
    GuestRegionInfo info = { 0x10000, 0x1000, 0x50000, 0 };
    int fd = new_file(0x2000);
    int again = dup(fd);
    int other = new_file(0x2000);
    GuestMap *map;

    add(b, info, fd);
    add(b, info, fd);
    add(b, info, again);
    refuse(b, info, other, "*overlaps*");
    info.fd_offset = 0x1000;
    refuse(b, info, fd, "*overlaps*");
    map = guest_map_builder_finish(b);
    g_assert_cmpuint(guest_map_region_count(map), ==, 1);

    /* Also on a map that came from another. */
    b = guest_map_builder_new(map);
    info.fd_offset = 0;
    add(b, info, again);
    guest_map_unref(map);
    map = guest_map_builder_finish(b);
    g_assert_cmpuint(guest_map_region_count(map), ==, 1);
    guest_map_unref(map);
    close(fd);
    close(again);
    close(other);
}

static void test_max_regions(void)
{
    GuestMapBuilder *b = guest_map_builder_new(NULL);
    GuestRegionInfo info = { 0x10000, PAGE, 0x10000, 0 };
    int fd = new_file(PAGE);
    GuestMap *map;

    for (unsigned i = 0; i < GUEST_MAP_MAX_REGIONS; i++) {
        add(b, info, fd);
        info.gpa += 2 * PAGE;
        info.uaddr += 3 * PAGE;
    }
    refuse(b, info, fd, "more than 512 memory regions");
    map = guest_map_builder_finish(b);
    g_assert_cmpuint(guest_map_region_count(map), ==, GUEST_MAP_MAX_REGIONS);
    for (unsigned i = 0; i < GUEST_MAP_MAX_REGIONS; i++) {
        uint64_t gpa = 0x10000 + (uint64_t)i * 2 * PAGE;
        uint64_t back;

        g_assert_nonnull(guest_map_translate_exact(map, GUEST_SPACE_PHYS, gpa,
                                                   PAGE));
        g_assert_null(guest_map_translate_exact(map, GUEST_SPACE_PHYS,
                                                gpa + PAGE, 1));
        g_assert_true(guest_map_user_to_phys(map, 0x10000 +
                                             (uint64_t)i * 3 * PAGE + 5,
                                             &back));
        g_assert_cmpuint(back, ==, gpa + 5);
    }
    guest_map_unref(map);
    close(fd);
}

/* Offsets that no mmap takes: the bytes are the file's all the same. */
static void test_odd_offset(void)
{
    GuestMapBuilder *b = guest_map_builder_new(NULL);
    int fd = new_file(5 * PAGE);
    GuestMap *map;
    char *p;
    char c;

    add(b, (GuestRegionInfo) { 0x10000, 2 * PAGE + 7, 0x50000, PAGE + 100 },
        fd);
    map = guest_map_builder_finish(b);
    g_assert_cmpint(pwrite(fd, "first", 5, PAGE + 100), ==, 5);
    p = guest_map_translate_exact(map, GUEST_SPACE_PHYS, 0x10000,
                                  2 * PAGE + 7);
    g_assert_nonnull(p);
    g_assert_cmpmem(p, 5, "first", 5);
    p[2 * PAGE + 6] = 'x';
    g_assert_cmpint(pread(fd, &c, 1, 3 * PAGE + 106), ==, 1);
    g_assert_cmpint(c, ==, 'x');
    g_assert_null(guest_map_translate_exact(map, GUEST_SPACE_PHYS, 0x10000,
                                            2 * PAGE + 8));
    guest_map_unref(map);
    close(fd);
}

/* Huge pages round neither offset nor length for anybody.  Only mapped, not
 * touched: there need be none. */
static void test_huge_pages(void)
{
    uint64_t huge = 2 << 20;
    GuestRegionInfo info = { 0x100000, huge, 0x500000, 0xe0000 };
    int fd = memfd_create("huge", MFD_HUGETLB | MFD_HUGE_2MB);
    GuestMapBuilder *b;
    GuestMap *map;

    if (fd < 0 || ftruncate(fd, 2 * huge) < 0) {
        g_test_skip("this kernel has no 2 MiB pages");
        return;
    }
    b = guest_map_builder_new(NULL);
    add(b, info, fd);
    map = guest_map_builder_finish(b);
    g_assert_cmpuint((uintptr_t)guest_map_translate_exact(map,
                         GUEST_SPACE_PHYS, info.gpa, huge) % huge, ==,
                     info.fd_offset);
    guest_map_release_wait(map);
    close(fd);
}

/* A mapping needs no descriptor. */
static void test_fd_closed(void)
{
    int fd;
    GuestMap *map = pc_map(&fd);
    uint8_t *p;

    close(fd);
    p = guest_map_translate_exact(map, GUEST_SPACE_PHYS, 0x100000, 8);
    *p = 1;
    guest_map_unref(map);
}

/* Replacing a part: the old map keeps its own, what stays is the same. */
static void test_change(void)
{
    int fd;
    GuestMap *old = pc_map(&fd);
    GuestMapBuilder *b = guest_map_builder_new(old);
    GuestRegionInfo shadow = { 0xc0000, 0x20000, 0x7f00000c0000, 0xc0000 };
    GuestRegionInfo absent = pc_regions[2];
    GuestMap *map;

    absent.uaddr++;
    g_assert_false(guest_map_builder_remove(b, &absent));
    g_assert_true(guest_map_builder_remove(b, &pc_regions[2]));
    g_assert_false(guest_map_builder_remove(b, &pc_regions[2]));
    shadow.size = 0x40000;
    add(b, shadow, fd);
    map = guest_map_builder_finish(b);

    g_assert_null(guest_map_translate_exact(old, GUEST_SPACE_PHYS, 0xc0000,
                                            1));
    g_assert_nonnull(guest_map_translate_exact(map, GUEST_SPACE_PHYS, 0xc0000,
                                               0x40000));
    g_assert(guest_map_translate_exact(old, GUEST_SPACE_PHYS, 0x100000, 8) ==
             guest_map_translate_exact(map, GUEST_SPACE_PHYS, 0x100000, 8));
    guest_map_unref(old);
    *(char *)guest_map_translate_exact(map, GUEST_SPACE_PHYS, 0x100000, 8) = 1;
    guest_map_unref(map);

    /* A builder that is given up. */
    b = guest_map_builder_new(NULL);
    add(b, shadow, fd);
    guest_map_builder_free(b);
    close(fd);
}

static void test_info(void)
{
    int fd;
    GuestMap *map = pc_map(&fd);
    GuestRegionInfo info;

    g_assert_cmpuint(guest_map_region_count(map), ==, 3);
    info = guest_map_region_info(map, 1);
    g_assert_cmpuint(info.gpa, ==, 0xe0000);
    g_assert_cmpuint(info.size, ==, 0x10000);
    g_assert_cmpuint(info.uaddr, ==, 0x7f00000e0000);
    g_assert_cmpuint(info.fd_offset, ==, 0xe0000);
    guest_map_unref(map);
    close(fd);
}

static void test_empty(void)
{
    GuestMap *map = guest_map_builder_finish(guest_map_builder_new(NULL));
    GuestMapHint hint = { 0 };
    uint64_t len = 1;
    uint64_t gpa;
    GuestRange range;

    g_assert_cmpuint(guest_map_region_count(map), ==, 0);
    g_assert_null(guest_map_translate(map, GUEST_SPACE_PHYS, 0, &len, &hint));
    g_assert_cmpuint(len, ==, 0);
    g_assert_null(guest_map_translate_exact(map, GUEST_SPACE_USER, 0, 1));
    g_assert_false(guest_map_user_to_phys(map, 0, &gpa));
    g_assert_false(guest_map_find(map, GUEST_SPACE_PHYS, 0, &range));
    guest_map_unref(map);
}

/* ---- translation -------------------------------------------------------- */

typedef struct TranslateCase {
    uint64_t addr;
    uint64_t len;
    int64_t file_offset;    /* -1: nowhere */
    uint64_t usable;
} TranslateCase;

static const TranslateCase phys_cases[] = {
    { 0, 1, 0, 1 },
    { 0, 0xc0000, 0, 0xc0000 },
    { 0, 0xc0001, 0, 0xc0000 },
    { 0xbffff, 2, 0xbffff, 1 },
    { 0xc0000, 1, -1, 0 },
    { 0xdffff, 2, -1, 0 },
    { 0xe0000, 0x10000, 0xe0000, 0x10000 },
    { 0xf0000, 1, -1, 0 },
    { 0x100000, UINT64_MAX, 0x100000, 0x40000 },
    { 0x13ffff, 1, 0x13ffff, 1 },
    { 0x140000, 1, -1, 0 },
    { UINT64_MAX, 1, -1, 0 },
    { UINT64_C(0x7f0000000000), 1, -1, 0 },
};

static void check_translate(const GuestMap *map, GuestSpace space,
                            uint64_t base, const TranslateCase *c,
                            GuestMapHint *hint)
{
    uint8_t *ram0 = guest_map_translate_exact(map, GUEST_SPACE_PHYS, 0, 1);
    uint64_t len = c->len;
    uint64_t addr = c->addr + base;
    uint8_t *p = guest_map_translate(map, space, addr, &len, hint);
    uint8_t *exact = guest_map_translate_exact(map, space, addr, c->len);
    GuestRange range = { 0 };

    g_assert_cmpuint(len, ==, c->usable);
    g_assert((p != NULL) == (c->file_offset >= 0));
    g_assert(exact == (c->usable == c->len ? p : NULL));
    g_assert(guest_map_find(map, space, addr, &range) == (p != NULL));
    if (p) {
        /* The three regions are one file, but three mappings. */
        g_assert(range.host + (addr - range.start) == p);
        g_assert_cmpuint(range.size - (addr - range.start), >=, c->usable);
        if (c->addr < 0xc0000) {
            g_assert(p == ram0 + c->file_offset);
        }
    }
}

static void test_translate(void)
{
    int fd;
    GuestMap *map = pc_map(&fd);
    GuestMapHint hint = { 0 };

    /* In any order, so that the hint is right, wrong, and for the other
     * space; and one from a larger map. */
    for (unsigned i = 0; i < G_N_ELEMENTS(phys_cases); i++) {
        for (unsigned k = 0; k < G_N_ELEMENTS(phys_cases); k++) {
            GuestMapHint stale = { 400 };

            check_translate(map, GUEST_SPACE_PHYS, 0, &phys_cases[i], &hint);
            check_translate(map, GUEST_SPACE_PHYS, 0, &phys_cases[k], &hint);
            check_translate(map, GUEST_SPACE_USER, 0x7f0000000000,
                            &phys_cases[k], &hint);
            check_translate(map, GUEST_SPACE_PHYS, 0, &phys_cases[k], &stale);
        }
    }
    guest_map_unref(map);
    close(fd);
}

/* Each byte of the three regions is the byte of the file it should be. */
static void test_bytes(void)
{
    int fd;
    GuestMap *map = pc_map(&fd);

    for (unsigned i = 0; i < G_N_ELEMENTS(pc_regions); i++) {
        const GuestRegionInfo *r = &pc_regions[i];
        uint64_t offsets[] = { 0, 1, r->size / 2, r->size - 1 };

        for (unsigned k = 0; k < G_N_ELEMENTS(offsets); k++) {
            uint8_t mark = 16 * i + k + 1;
            uint8_t got;
            uint64_t gpa;
            uint8_t *p = guest_map_translate_exact(map, GUEST_SPACE_USER,
                                                   r->uaddr + offsets[k], 1);

            *p = mark;
            g_assert_cmpint(pread(fd, &got, 1, r->fd_offset + offsets[k]), ==,
                            1);
            g_assert_cmpuint(got, ==, mark);
            g_assert_true(guest_map_user_to_phys(map, r->uaddr + offsets[k],
                                                 &gpa));
            g_assert_cmpuint(gpa, ==, r->gpa + offsets[k]);
        }
    }
    guest_map_unref(map);
    close(fd);
}

/* ---- references --------------------------------------------------------- */

typedef struct Holder {
    GuestMap *map;
    unsigned let_go;
} Holder;

/* Uses the map for a while, says so, and lets go. */
static void *holder_thread(void *opaque)
{
    Holder *h = opaque;
    uint8_t *p = guest_map_translate_exact(h->map, GUEST_SPACE_PHYS, 0, 1);

    for (unsigned i = 0; i < 100000; i++) {
        __atomic_store_n(p, i, __ATOMIC_RELAXED);
    }
    __atomic_store_n(&h->let_go, 1, __ATOMIC_RELAXED);
    guest_map_unref(h->map);
    return NULL;
}

/* All holders have let go before the wait is over. */
static void test_release_wait(void)
{
    for (unsigned round = 0; round < 50; round++) {
        int fd;
        GuestMap *map = pc_map(&fd);
        Holder holders[3];
        pthread_t threads[3];

        for (unsigned i = 0; i < 3; i++) {
            holders[i] = (Holder) { .map = guest_map_ref(map) };
            pthread_create(&threads[i], NULL, holder_thread, &holders[i]);
        }
        guest_map_release_wait(map);
        for (unsigned i = 0; i < 3; i++) {
            g_assert_cmpuint(__atomic_load_n(&holders[i].let_go,
                                             __ATOMIC_RELAXED), ==, 1);
        }
        for (unsigned i = 0; i < 3; i++) {
            pthread_join(threads[i], NULL);
        }
        close(fd);
    }
}

/* The mapping goes with the last map that has it. */
static bool is_mapped(void *p)
{
    unsigned char resident;

    return mincore((void *)((uintptr_t)p & ~(uintptr_t)(PAGE - 1)), PAGE,
                   &resident) == 0;
}

static void test_unmap(void)
{
    int fd;
    GuestMap *map = pc_map(&fd);
    GuestMap *copy = guest_map_builder_finish(guest_map_builder_new(map));
    void *p = guest_map_translate_exact(map, GUEST_SPACE_PHYS, 0, 1);

    guest_map_ref(map);
    guest_map_unref(map);
    g_assert_true(is_mapped(p));
    guest_map_release_wait(map);
    g_assert_true(is_mapped(p));
    g_assert(guest_map_translate_exact(copy, GUEST_SPACE_PHYS, 0, 1) == p);
    guest_map_release_wait(copy);
    g_assert_false(is_mapped(p));
    close(fd);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/guest-memory/build/refused", test_refused);
    g_test_add_func("/guest-memory/build/add-twice", test_add_twice);
    g_test_add_func("/guest-memory/build/max-regions", test_max_regions);
    g_test_add_func("/guest-memory/build/odd-offset", test_odd_offset);
    g_test_add_func("/guest-memory/build/huge-pages", test_huge_pages);
    g_test_add_func("/guest-memory/build/fd-closed", test_fd_closed);
    g_test_add_func("/guest-memory/build/change", test_change);
    g_test_add_func("/guest-memory/build/info", test_info);
    g_test_add_func("/guest-memory/build/empty", test_empty);
    g_test_add_func("/guest-memory/translate/table", test_translate);
    g_test_add_func("/guest-memory/translate/bytes", test_bytes);
    g_test_add_func("/guest-memory/release/wait", test_release_wait);
    g_test_add_func("/guest-memory/release/unmap", test_unmap);
    return g_test_run();
}
