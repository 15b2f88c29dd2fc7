/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * iovec helpers: size, copy in and out, trim, sub-vector.
 *
 * All walk the vector once.  A byte offset is first turned into an entry and
 * an offset within it; entries of length zero are legal everywhere.
 */
#include "util/iov.h"

#include <glib.h>
#include <string.h>

size_t iov_size(const struct iovec *iov, unsigned cnt)
{
    size_t size = 0;

    for (unsigned i = 0; i < cnt; i++) {
        size += iov[i].iov_len;
    }
    return size;
}

/* The entry that holds byte *offset, which becomes relative to it. */
static unsigned iov_seek(const struct iovec *iov, unsigned cnt, size_t *offset)
{
    unsigned i = 0;

    while (i < cnt && *offset >= iov[i].iov_len) {
        *offset -= iov[i++].iov_len;
    }
    return i;
}

size_t iov_to_buf(const struct iovec *iov, unsigned cnt, size_t offset,
                  void *buf, size_t bytes)
{
    size_t done = 0;

    for (unsigned i = iov_seek(iov, cnt, &offset); i < cnt && done < bytes;
         i++, offset = 0) {
        size_t len = MIN(iov[i].iov_len - offset, bytes - done);

        if (len) {
            memcpy((char *)buf + done, (char *)iov[i].iov_base + offset, len);
            done += len;
        }
    }
    return done;
}

size_t iov_from_buf(const struct iovec *iov, unsigned cnt, size_t offset,
                    const void *buf, size_t bytes)
{
    size_t done = 0;

    for (unsigned i = iov_seek(iov, cnt, &offset); i < cnt && done < bytes;
         i++, offset = 0) {
        size_t len = MIN(iov[i].iov_len - offset, bytes - done);

        if (len) {
            memcpy((char *)iov[i].iov_base + offset, (char *)buf + done, len);
            done += len;
        }
    }
    return done;
}

size_t iov_discard_front(struct iovec **iov, unsigned *cnt, size_t bytes)
{
    size_t left = bytes;

    while (*cnt && left >= (*iov)->iov_len) {
        left -= (*iov)->iov_len;
        (*iov)++;
        (*cnt)--;
    }
    if (*cnt && left) {
        (*iov)->iov_base = (char *)(*iov)->iov_base + left;
        (*iov)->iov_len -= left;
        left = 0;
    }
    return bytes - left;
}

unsigned iov_copy(struct iovec *dst, unsigned dst_max,
                  const struct iovec *src, unsigned src_cnt,
                  size_t offset, size_t bytes)
{
    unsigned n = 0;

    for (unsigned i = iov_seek(src, src_cnt, &offset);
         i < src_cnt && bytes && n < dst_max; i++, offset = 0) {
        size_t len = MIN(src[i].iov_len - offset, bytes);

        if (len) {
            dst[n].iov_base = (char *)src[i].iov_base + offset;
            dst[n++].iov_len = len;
            bytes -= len;
        }
    }
    return n;
}
