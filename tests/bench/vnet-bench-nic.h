/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * One NIC as its driver sees it: guest memory, two rings, kicks and calls.
 *
 * Guest memory is a memfd of its own: the rings, receive buffers, and transmit
 * buffers that lie across each other, since only the start of a frame means
 * something.  So a frame of 64 KiB finds its memory in the cache more often
 * than that of a real guest would.
 *
 * After bench_nic_new() it belongs to one thread.
 */
#ifndef TESTS_BENCH_VNET_BENCH_NIC_H
#define TESTS_BENCH_VNET_BENCH_NIC_H

#include "vnet-bench-frame.h"
#include "vring-harness.h"

enum { BENCH_RX, BENCH_TX, BENCH_RINGS };

typedef struct BenchNic {
    VringDriver ring[BENCH_RINGS];
    int kick[BENCH_RINGS], call[BENCH_RINGS];
    uint16_t size;

    int sock;
    int ram_fd;
    uint8_t *ram;
    uint64_t ram_bytes;
} BenchNic;

/*
 * bench_nic_new: start the device behind @sock, which is taken over, with
 * rings of @size; receive buffers are in.  NULL with @errp set: not served.
 */
BenchNic *bench_nic_new(int sock, uint16_t size, bool event_idx,
                        GError **errp);

/* bench_nic_free: stop the rings and let go.  NULL is allowed. */
void bench_nic_free(BenchNic *n);

/* bench_nic_in_ring: packets sent and not taken back. */
unsigned bench_nic_in_ring(const BenchNic *n);

/*
 * bench_nic_publish: @bytes that start with @frame.  There must be room.  No
 * kick.
 */
void bench_nic_publish(BenchNic *n, const BenchFrame *frame, uint32_t bytes);

/* bench_nic_reap: take one packet back; false: none is done. */
bool bench_nic_reap(BenchNic *n);

/* bench_nic_take: the next frame that arrived; false: there is none. */
bool bench_nic_take(BenchNic *n, BenchFrame *frame, uint32_t *bytes);

/* bench_nic_refill: all free receive buffers; no kick. */
void bench_nic_refill(BenchNic *n);

/* bench_nic_kick: the ring's rule decides; returns whether it did. */
bool bench_nic_kick(BenchNic *n, unsigned idx);

/* bench_nic_called: how many calls there were since the last time. */
unsigned bench_nic_called(BenchNic *n, unsigned idx);

/*
 * bench_nic_call_late: ask for a call when three quarters of what is out are
 * done.  False: they are done already, and the call may never come.
 */
bool bench_nic_call_late(BenchNic *n);

/* bench_nic_call_never: no call for what is sent; to be repeated as it is
 * taken back. */
void bench_nic_call_never(BenchNic *n);

#endif /* TESTS_BENCH_VNET_BENCH_NIC_H */
