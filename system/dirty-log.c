/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The dirty log: a bitmap shared with the front-end and, through it, with
 * other devices.
 *
 * Each bit is set by an atomic OR, always, even if it is set already.  The
 * front-end takes bits with an exchange and then copies the page.  The OR
 * comes after the data in the order of that byte's changes: before the
 * exchange, and the copy has the data; after it, and the page is copied
 * again.  To skip the OR of a bit that looks set would need a full barrier
 * in front of the look, which costs what the OR costs.
 */
#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "system/guest-memory.h"
#include "util/report.h"

#define DIRTY_LOG_PAGE 4096

struct DirtyLog {
    uint8_t *bitmap;
    uint64_t pages;         /* bits in it */
    void *mapping;
    size_t mapping_len;
    unsigned refs;          /* atomic */
};

static bool check_file(int fd, uint64_t size, uint64_t offset, GError **errp)
{
    struct stat st;

    if (size == 0 || size > INT64_MAX / 8 || offset > INT64_MAX - size) {
        vnet_set_error(errp, "dirty log of 0x%" PRIx64 " bytes at offset 0x%"
                       PRIx64 " is not possible", size, offset);
        return false;
    }
    if (fstat(fd, &st) < 0) {
        vnet_set_error(errp, "dirty log: %s", g_strerror(errno));
        return false;
    }
    if (S_ISREG(st.st_mode) && (uint64_t)st.st_size < offset + size) {
        vnet_set_error(errp, "dirty log of 0x%" PRIx64 " bytes at offset 0x%"
                       PRIx64 " leaves its file of 0x%" PRIx64 " bytes",
                       size, offset, (uint64_t)st.st_size);
        return false;
    }
    return true;
}

DirtyLog *dirty_log_new(int fd, uint64_t size, uint64_t offset, GError **errp)
{
    uint64_t lead = offset % sysconf(_SC_PAGESIZE);
    DirtyLog *log;
    void *p;

    if (!check_file(fd, size, offset, errp)) {
        return NULL;
    }
    p = mmap(NULL, lead + size, PROT_READ | PROT_WRITE, MAP_SHARED, fd,
             offset - lead);
    if (p == MAP_FAILED) {
        vnet_set_error(errp, "cannot map the dirty log: %s",
                       g_strerror(errno));
        return NULL;
    }
    log = g_new0(DirtyLog, 1);
    log->mapping = p;
    log->mapping_len = lead + size;
    log->bitmap = (uint8_t *)p + lead;
    log->pages = size * 8;
    log->refs = 1;
    return log;
}

DirtyLog *dirty_log_ref(DirtyLog *log)
{
    __atomic_fetch_add(&log->refs, 1, __ATOMIC_RELAXED);
    return log;
}

void dirty_log_unref(DirtyLog *log)
{
    if (__atomic_fetch_sub(&log->refs, 1, __ATOMIC_ACQ_REL) != 1) {
        return;
    }
    munmap(log->mapping, log->mapping_len);
    g_free(log);
}

void dirty_log_mark(DirtyLog *log, uint64_t gpa, uint64_t len)
{
    uint64_t page = gpa / DIRTY_LOG_PAGE;
    uint64_t end;           /* first page that is not marked */

    if (len == 0) {
        return;
    }
    end = (len - 1 > UINT64_MAX - gpa ? UINT64_MAX : gpa + (len - 1)) /
          DIRTY_LOG_PAGE + 1;
    end = MIN(end, log->pages);
    while (page < end) {
        uint64_t stop = MIN(end, (page / 8 + 1) * 8);
        unsigned bits = (1u << (stop - page)) - 1;

        /* Release: see the top; the exchange in the front-end is its pair. */
        __atomic_fetch_or(&log->bitmap[page / 8], bits << (page % 8),
                          __ATOMIC_RELEASE);
        page = stop;
    }
}
