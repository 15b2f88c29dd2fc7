/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Counting allocations: a test program that links alloc-count.c has its
 * malloc, calloc, realloc, free and the aligned ones counted, those of
 * libraries included.
 *
 * A sanitizer brings an allocator of its own, which this must not replace:
 * alloc_count_supported() is false then, and the test is skipped.
 */
#ifndef TESTS_UNIT_ALLOC_COUNT_H
#define TESTS_UNIT_ALLOC_COUNT_H

#include <stdbool.h>
#include <stdint.h>

bool alloc_count_supported(void);

/* alloc_count: calls of any of them so far, by any thread. */
uint64_t alloc_count(void);

#endif /* TESTS_UNIT_ALLOC_COUNT_H */
