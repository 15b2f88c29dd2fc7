/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * iovec helpers.  All are pure and may be called anywhere.
 */
#ifndef UTIL_IOV_H
#define UTIL_IOV_H

#include <stddef.h>
#include <sys/uio.h>

/* iov_size: the bytes in @cnt entries, as size_t (entries are checked not
 * to overflow where they are made). */
size_t iov_size(const struct iovec *iov, unsigned cnt);

/*
 * iov_to_buf / iov_from_buf: copy up to @bytes, starting @offset bytes into
 * the vector.  Return how much was copied: less when the vector ends.
 */
size_t iov_to_buf(const struct iovec *iov, unsigned cnt, size_t offset,
                  void *buf, size_t bytes);
size_t iov_from_buf(const struct iovec *iov, unsigned cnt, size_t offset,
                    const void *buf, size_t bytes);

/*
 * iov_discard_front: drop the first @bytes of the vector in place.
 * @iov, @cnt: advanced past entries that are used up; the entry that is cut
 * is modified
 *
 * Returns how much was dropped: less than @bytes when the vector was shorter.
 */
size_t iov_discard_front(struct iovec **iov, unsigned *cnt, size_t bytes);

/*
 * iov_copy: describe @bytes of @src from @offset on in @dst, without moving
 * data.  Returns the entries written; stops at @dst_max entries.
 */
unsigned iov_copy(struct iovec *dst, unsigned dst_max,
                  const struct iovec *src, unsigned src_cnt,
                  size_t offset, size_t bytes);

#endif /* UTIL_IOV_H */
