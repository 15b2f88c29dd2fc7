/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The dirty log: which bits stand for which bytes, and what may be mapped.
 */
#include <pthread.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "system/guest-memory.h"
#include "util/report.h"

#define PAGE UINT64_C(4096)

typedef struct Fixture {
    int fd;
    DirtyLog *log;
    uint8_t bitmap[1024];
} Fixture;

#define LOG_BYTES 512
#define LOG_OFFSET 100      /* what lies in front must stay as it is */

static void setup(Fixture *f, gconstpointer data)
{
    GError *err = NULL;

    f->fd = memfd_create("log", 0);
    g_assert_cmpint(ftruncate(f->fd, LOG_OFFSET + LOG_BYTES), ==, 0);
    f->log = dirty_log_new(f->fd, LOG_BYTES, LOG_OFFSET, &err);
    g_assert_no_error(err);
}

static void teardown(Fixture *f, gconstpointer data)
{
    dirty_log_unref(f->log);
    close(f->fd);
}

/* take: the bits of the log, which are then clear. */
static unsigned take(Fixture *f)
{
    static const uint8_t zero[LOG_BYTES];
    uint8_t front[LOG_OFFSET];
    unsigned n = 0;

    g_assert_cmpint(pread(f->fd, f->bitmap, LOG_BYTES, LOG_OFFSET), ==,
                    LOG_BYTES);
    for (unsigned i = 0; i < LOG_BYTES; i++) {
        n += __builtin_popcount(f->bitmap[i]);
    }
    g_assert_cmpint(pwrite(f->fd, zero, LOG_BYTES, LOG_OFFSET), ==, LOG_BYTES);
    g_assert_cmpint(pread(f->fd, front, LOG_OFFSET, 0), ==, LOG_OFFSET);
    for (unsigned i = 0; i < LOG_OFFSET; i++) {
        g_assert_cmpuint(front[i], ==, 0);
    }
    return n;
}

/* The numbers of the reference: log[gpa / 4096 / 8], bit gpa / 4096 % 8. */
static bool has(const Fixture *f, uint64_t page)
{
    return f->bitmap[page / 8] & (1 << (page % 8));
}

typedef struct MarkCase {
    uint64_t gpa;
    uint64_t len;
    uint64_t first;         /* page */
    unsigned count;
} MarkCase;

static const MarkCase mark_cases[] = {
    { 0, 0, 0, 0 },
    { 0, 1, 0, 1 },
    { 4095, 1, 0, 1 },
    { 4095, 2, 0, 2 },
    { 4096, 4096, 1, 1 },
    { 4096, 4097, 1, 2 },
    { 7 * PAGE + 1, 4096, 7, 2 },       /* two bytes of the log */
    { 3 * PAGE, 30 * PAGE, 3, 30 },     /* five bytes of it */
    { 8 * PAGE, 8 * PAGE, 8, 8 },       /* one, all of it */
    /* The last page, what leaves the log, and what is beyond. */
    { (LOG_BYTES * 8 - 1) * PAGE, 1, LOG_BYTES * 8 - 1, 1 },
    { (LOG_BYTES * 8 - 1) * PAGE, 3 * PAGE, LOG_BYTES * 8 - 1, 1 },
    { LOG_BYTES * 8 * PAGE, PAGE, 0, 0 },
    { UINT64_MAX, 1, 0, 0 },
    { UINT64_MAX - 10, UINT64_MAX, 0, 0 },
    { 0, UINT64_MAX, 0, LOG_BYTES * 8 },
    { 1, UINT64_MAX, 0, LOG_BYTES * 8 },
};

static void test_mark(Fixture *f, gconstpointer data)
{
    for (unsigned i = 0; i < G_N_ELEMENTS(mark_cases); i++) {
        const MarkCase *c = &mark_cases[i];

        dirty_log_mark(f->log, c->gpa, c->len);
        g_assert_cmpuint(take(f), ==, c->count);
        for (unsigned k = 0; k < c->count; k++) {
            g_assert_true(has(f, c->first + k));
        }
    }
}

/* Marks add up, and a mark of a set bit leaves it. */
static void test_adds_up(Fixture *f, gconstpointer data)
{
    dirty_log_mark(f->log, 0, 1);
    dirty_log_mark(f->log, 2 * PAGE, 1);
    dirty_log_mark(f->log, 0, 1);
    g_assert_cmpuint(take(f), ==, 2);
    g_assert_true(has(f, 0));
    g_assert_true(has(f, 2));
}

/* Marks of several devices in the same bytes: none is lost. */
typedef struct Marker {
    DirtyLog *log;
    unsigned first;
} Marker;

static void *marker_thread(void *opaque)
{
    Marker *m = opaque;

    for (unsigned page = m->first; page < LOG_BYTES * 8; page += 4) {
        dirty_log_mark(m->log, page * PAGE, 1);
    }
    dirty_log_unref(m->log);
    return NULL;
}

static void test_threads(Fixture *f, gconstpointer data)
{
    for (unsigned round = 0; round < 100; round++) {
        Marker markers[4];
        pthread_t threads[4];

        for (unsigned i = 0; i < 4; i++) {
            markers[i] = (Marker) { dirty_log_ref(f->log), i };
            pthread_create(&threads[i], NULL, marker_thread, &markers[i]);
        }
        for (unsigned i = 0; i < 4; i++) {
            pthread_join(threads[i], NULL);
        }
        g_assert_cmpuint(take(f), ==, LOG_BYTES * 8);
    }
}

/* The descriptor may go; a later log on the same file is another one. */
static void test_fd_closed(void)
{
    int fd = memfd_create("log", 0);
    int keep = dup(fd);
    DirtyLog *log;
    uint8_t byte;

    g_assert_cmpint(ftruncate(fd, 3 * PAGE), ==, 0);
    log = dirty_log_new(fd, PAGE, 2 * PAGE, NULL);
    g_assert_nonnull(log);
    close(fd);
    dirty_log_mark(log, 0, 1);
    dirty_log_unref(log);
    g_assert_cmpint(pread(keep, &byte, 1, 2 * PAGE), ==, 1);
    g_assert_cmpuint(byte, ==, 1);
    close(keep);
}

typedef struct RefuseCase {
    uint64_t size;
    uint64_t offset;
    const char *message;    /* glob */
} RefuseCase;

static const RefuseCase refuse_cases[] = {
    { 0, 0, "*is not possible" },
    { UINT64_MAX, 0, "*is not possible" },
    { 4096, UINT64_MAX - 100, "*is not possible" },
    { UINT64_MAX / 2 + 1, UINT64_MAX / 2 + 1, "*is not possible" },
    { 4097, 0, "*leaves its file of 0x1000 bytes" },
    { 4096, 1, "*leaves its file of 0x1000 bytes" },
    { 1, 4096, "*leaves its file of 0x1000 bytes" },
};

static void test_refused(void)
{
    int fd = memfd_create("log", 0);
    GError *err = NULL;
    int pipe_fds[2];

    g_assert_cmpint(ftruncate(fd, 4096), ==, 0);
    for (unsigned i = 0; i < G_N_ELEMENTS(refuse_cases); i++) {
        const RefuseCase *c = &refuse_cases[i];

        g_assert_null(dirty_log_new(fd, c->size, c->offset, &err));
        g_assert_error(err, VNET_ERROR, 0);
        g_assert_true(g_pattern_match_simple(c->message, err->message));
        g_clear_error(&err);
    }
    g_assert_null(dirty_log_new(-1, 4096, 0, &err));
    g_assert_error(err, VNET_ERROR, 0);
    g_clear_error(&err);
    g_assert_cmpint(pipe(pipe_fds), ==, 0);
    g_assert_null(dirty_log_new(pipe_fds[0], 4096, 0, &err));
    g_assert_error(err, VNET_ERROR, 0);
    g_clear_error(&err);
    close(pipe_fds[0]);
    close(pipe_fds[1]);
    close(fd);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add("/dirty-log/mark", Fixture, NULL, setup, test_mark, teardown);
    g_test_add("/dirty-log/adds-up", Fixture, NULL, setup, test_adds_up,
               teardown);
    g_test_add("/dirty-log/threads", Fixture, NULL, setup, test_threads,
               teardown);
    g_test_add_func("/dirty-log/fd-closed", test_fd_closed);
    g_test_add_func("/dirty-log/refused", test_refused);
    return g_test_run();
}
