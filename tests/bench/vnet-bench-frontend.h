/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The vhost-user messages that a driver's start and stop come down to.
 *
 * Every function sends over the connected socket and waits for the answer, at
 * most BENCH_FRONTEND_TIMEOUT_S.  The descriptors it sends stay the caller's.
 * Returns false with @errp set if the back-end refuses, is silent or has gone.
 */
#ifndef TESTS_BENCH_VNET_BENCH_FRONTEND_H
#define TESTS_BENCH_VNET_BENCH_FRONTEND_H

#include <glib.h>
#include <stdbool.h>
#include <stdint.h>

#define BENCH_FRONTEND_TIMEOUT_S    10

/*
 * bench_frontend_negotiate: all of @features (virtio's bits) and no other; the
 * protocol features that this file uses.
 */
bool bench_frontend_negotiate(int sock, uint64_t features, GError **errp);

/* bench_frontend_memory: @bytes of @fd, mapped here at @ram, from @gpa on. */
bool bench_frontend_memory(int sock, int fd, const void *ram, uint64_t bytes,
                           uint64_t gpa, GError **errp);

/* One ring: addresses are those of this process. */
typedef struct BenchRing {
    uint32_t index;
    uint16_t size;
    const void *desc, *avail, *used;
    int kick, call;
} BenchRing;

/* bench_frontend_start: serve @ring from index 0 on. */
bool bench_frontend_start(int sock, const BenchRing *ring, GError **errp);

/* bench_frontend_stop: no access to the ring any more. */
bool bench_frontend_stop(int sock, uint32_t index, GError **errp);

#endif /* TESTS_BENCH_VNET_BENCH_FRONTEND_H */
