/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Counting allocations: the C library's functions under their public names,
 * each counting and then calling the library's own by its internal name,
 * which glibc exports for this.
 */
#include <errno.h>
#include <stddef.h>
#include <stdlib.h>

#include "alloc-count.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define HAS_SANITIZER 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) || \
    __has_feature(memory_sanitizer)
#define HAS_SANITIZER 1
#endif
#endif

static uint64_t calls;

uint64_t alloc_count(void)
{
    return __atomic_load_n(&calls, __ATOMIC_RELAXED);
}

#ifdef HAS_SANITIZER

bool alloc_count_supported(void)
{
    return false;
}

#else

void *__libc_malloc(size_t size);
void *__libc_calloc(size_t n, size_t size);
void *__libc_realloc(void *p, size_t size);
void *__libc_memalign(size_t align, size_t size);
void __libc_free(void *p);

bool alloc_count_supported(void)
{
    return true;
}

static void count(void)
{
    __atomic_fetch_add(&calls, 1, __ATOMIC_RELAXED);
}

void *malloc(size_t size)
{
    count();
    return __libc_malloc(size);
}

void *calloc(size_t n, size_t size)
{
    count();
    return __libc_calloc(n, size);
}

void *realloc(void *p, size_t size)
{
    count();
    return __libc_realloc(p, size);
}

void *aligned_alloc(size_t align, size_t size)
{
    count();
    return __libc_memalign(align, size);
}

int posix_memalign(void **p, size_t align, size_t size)
{
    count();
    *p = __libc_memalign(align, size);
    return *p ? 0 : ENOMEM;
}

void free(void *p)
{
    count();
    __libc_free(p);
}

#endif
