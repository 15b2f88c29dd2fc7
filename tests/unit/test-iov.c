/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * iovec helpers, against a flat buffer: the same bytes cut into entries of
 * pseudo-random length (zero included) must copy, trim and split as the flat
 * one does at every offset and length.
 */
#include <glib.h>
#include <string.h>

#include "util/iov.h"

#define FLAT_BYTES  40

typedef struct Cut {
    unsigned char flat[FLAT_BYTES];
    struct iovec iov[FLAT_BYTES];
    unsigned cnt;
} Cut;

static void cut_init(Cut *c, GRand *rnd)
{
    size_t done = 0;

    c->cnt = 0;
    for (unsigned i = 0; i < FLAT_BYTES; i++) {
        c->flat[i] = i + 1;
    }
    while (done < FLAT_BYTES && c->cnt < FLAT_BYTES - 1) {
        size_t len = g_rand_int_range(rnd, 0, 7);

        len = MIN(len, FLAT_BYTES - done);
        /* An entry of length zero need not have an address. */
        c->iov[c->cnt].iov_base = len ? c->flat + done : NULL;
        c->iov[c->cnt++].iov_len = len;
        done += len;
    }
    if (done < FLAT_BYTES) {
        c->iov[c->cnt++] = (struct iovec) { c->flat + done,
                                            FLAT_BYTES - done };
    }
}

/* How many bytes there are at @offset, at most @bytes. */
static size_t avail(size_t offset, size_t bytes)
{
    return offset >= FLAT_BYTES ? 0 : MIN(bytes, FLAT_BYTES - offset);
}

static void check_copy(const Cut *c, size_t offset, size_t bytes)
{
    unsigned char out[2 * FLAT_BYTES + 2] = { 0 };
    size_t want = avail(offset, bytes);

    g_assert_cmpuint(iov_to_buf(c->iov, c->cnt, offset, out, bytes), ==,
                     want);
    g_assert_true(!want || !memcmp(out, c->flat + offset, want));
    g_assert_cmpuint(out[want], ==, 0);
}

static void check_fill(Cut *c, size_t offset, size_t bytes)
{
    unsigned char in[2 * FLAT_BYTES + 2], before[FLAT_BYTES];
    size_t want = avail(offset, bytes);

    memset(in, 0xee, sizeof(in));
    memcpy(before, c->flat, FLAT_BYTES);
    g_assert_cmpuint(iov_from_buf(c->iov, c->cnt, offset, in, bytes), ==,
                     want);
    for (size_t i = 0; i < FLAT_BYTES; i++) {
        g_assert_cmpuint(c->flat[i], ==, i >= offset && i - offset < want
                         ? 0xee : before[i]);
    }
    memcpy(c->flat, before, FLAT_BYTES);
}

static void check_split(const Cut *c, size_t offset, size_t bytes)
{
    struct iovec dst[FLAT_BYTES];
    unsigned char out[FLAT_BYTES];
    size_t want = avail(offset, bytes);
    unsigned n = iov_copy(dst, FLAT_BYTES, c->iov, c->cnt, offset, bytes);

    g_assert_cmpuint(iov_size(dst, n), ==, want);
    g_assert_cmpuint(iov_to_buf(dst, n, 0, out, sizeof(out)), ==, want);
    g_assert_true(!want || !memcmp(out, c->flat + offset, want));
    for (unsigned i = 0; i < n; i++) {
        g_assert_cmpuint(dst[i].iov_len, >, 0);
    }
    if (n > 1) {
        g_assert_cmpuint(iov_copy(dst, n - 1, c->iov, c->cnt, offset, bytes),
                         ==, n - 1);
        g_assert_cmpuint(iov_size(dst, n - 1), <, want);
    }
}

static void check_discard(const Cut *c, size_t bytes)
{
    struct iovec copy[FLAT_BYTES], *iov = copy;
    unsigned char out[FLAT_BYTES];
    unsigned cnt = c->cnt;
    size_t want = avail(0, bytes);

    memcpy(copy, c->iov, sizeof(copy));
    g_assert_cmpuint(iov_discard_front(&iov, &cnt, bytes), ==, want);
    g_assert_cmpuint(iov_size(iov, cnt), ==, FLAT_BYTES - want);
    g_assert_true(iov + cnt == copy + c->cnt);
    iov_to_buf(iov, cnt, 0, out, sizeof(out));
    g_assert_true(!memcmp(out, c->flat + want, FLAT_BYTES - want));
}

static void test_cuts(void)
{
    GRand *rnd = g_rand_new_with_seed(1);

    for (unsigned round = 0; round < 20; round++) {
        Cut c;

        cut_init(&c, rnd);
        g_assert_cmpuint(iov_size(c.iov, c.cnt), ==, FLAT_BYTES);
        for (size_t offset = 0; offset <= FLAT_BYTES + 1; offset++) {
            for (size_t bytes = 0; bytes <= FLAT_BYTES + 1; bytes++) {
                check_copy(&c, offset, bytes);
                check_fill(&c, offset, bytes);
                check_split(&c, offset, bytes);
            }
            check_discard(&c, offset);
        }
    }
    g_rand_free(rnd);
}

static void test_empty(void)
{
    struct iovec dst, *iov = NULL;
    unsigned cnt = 0;
    char byte = 0;

    g_assert_cmpuint(iov_size(NULL, 0), ==, 0);
    g_assert_cmpuint(iov_to_buf(NULL, 0, 0, &byte, 1), ==, 0);
    g_assert_cmpuint(iov_from_buf(NULL, 0, 3, &byte, 1), ==, 0);
    g_assert_cmpuint(iov_discard_front(&iov, &cnt, 1), ==, 0);
    g_assert_cmpuint(iov_copy(&dst, 1, NULL, 0, 0, 1), ==, 0);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/iov/cuts", test_cuts);
    g_test_add_func("/iov/empty", test_empty);
    return g_test_run();
}
