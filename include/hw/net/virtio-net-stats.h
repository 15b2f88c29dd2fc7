/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What a queue counts, and the hooks that count it.
 *
 * A counter is one line in a table below: its name, whether receive (RX),
 * transmit (TX) or both have it, and what it means.  The monitor, "--stats
 * help" and the tests go by the table; docs/options/stats.rst.inc is checked
 * against it.
 *
 * Counters have one writer, the queue's context, and never go down; readers
 * of any thread use relaxed loads: each value is right, the set is not a
 * snapshot.  A reset does not touch them: what they were at the reset is
 * subtracted when they are read.
 */
#ifndef HW_NET_VIRTIO_NET_STATS_H
#define HW_NET_VIRTIO_NET_STATS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "hw/net/virtio-net-coalesce.h"
#include "hw/net/virtio-net-tx-policy.h"
#include "hw/virtio/virtqueue.h"

/* ---- the tables ------------------------------------------------------ */

enum {
    VIRTIO_NET_STAT_RX = 1 << 0,
    VIRTIO_NET_STAT_TX = 1 << 1,
    VIRTIO_NET_STAT_BOTH = VIRTIO_NET_STAT_RX | VIRTIO_NET_STAT_TX,
};

/*
 * X(name, ways, meaning).  Those that change with every pass of a busy queue
 * come first: the first eight share a cache line.
 */
#define VIRTIO_NET_QUEUE_STATS(X)                                            \
    X(packets,          BOTH, "packets carried")                            \
    X(bytes,            BOTH, "bytes carried, without vnet headers")        \
    X(kicks,            BOTH, "notifications received from the driver")     \
    X(flushes,          BOTH, "passes over the ring")                       \
    X(batches,          BOTH, "publications of the used index")             \
    X(calls,            BOTH, "interrupts sent to the driver")              \
    X(flush_empty,      BOTH, "passes that took all there was")             \
    X(arm_empty,        BOTH, "notifications asked for: nothing was there") \
    X(calls_held,       BOTH, "interrupts wanted, and held back")           \
    X(calls_lapsed,     BOTH, "interrupts held back until nobody wanted them") \
    X(calls_suppressed, BOTH, "publications the driver wants none for")     \
    X(flush_budget,     BOTH, "passes that ended at their budget")          \
    X(flush_full,       BOTH, "passes that ended at a full backend, or "    \
                              "without buffers")                            \
    X(flush_error,      BOTH, "passes that ended at a guest's mistake")     \
    X(flush_stopped,    TX,   "passes that were due when the ring stopped") \
    X(arm_partial,      TX,   "notifications asked for: some packets were")   \
    X(arm_crossed,      BOTH, "notifications asked for: all had come already") \
    X(windows,          TX,   "notifications asked for a later packet")       \
    X(holds,            TX,   "waits for a deadline, without notifications") \
    X(fires,            TX,   "deadlines that started a pass")              \
    X(fires_found,      TX,   "... which found packets")                    \
    X(fires_empty,      TX,   "... which found none")                       \
    X(fires_blocked,    TX,   "... which the backend took none of")         \
    X(fires_window,     TX,   "... of a window that was not full in time")  \
    X(fires_late,       TX,   "... more than 50 us after their time")       \
    X(polls_won,        TX,   "phases of busy polling that found a packet") \
    X(polls_lost,       TX,   "phases of busy polling that found none here") \
    X(policy_changes,   TX,   "changes of the policy's phase")              \
    X(dropped_host,     BOTH, "packets the backend refused")                \
    X(dropped_guest,    TX,   "packets with a bad header or length")        \
    X(dropped_buffers,  RX,   "packets no buffers of the driver can hold")  \
    X(dropped_down,     TX,   "packets sent to a link or ring that is off")

/*
 * Histograms.  X(name, bins, ways, meaning).  Bin 0 is for the value 0, bin i
 * for values from 2^(i-1) to 2^i - 1; what is larger counts in the last.
 */
#define VIRTIO_NET_QUEUE_HISTS(X)                                            \
    X(batch_size,   13, BOTH, "passes, by the packets they took")           \
    X(window,       12, TX,   "notifications asked for, by the window")     \
    X(residence_us, 20, TX,   "packets, by the longest they may have waited")

/* One ring's counters: words only, see virtio_net_stat_infos(). */
typedef struct VirtIONetQueueStats {
#define X(name, ways, meaning) uint64_t name;
    VIRTIO_NET_QUEUE_STATS(X)
#undef X
#define X(name, bins, ways, meaning) uint64_t name[bins];
    VIRTIO_NET_QUEUE_HISTS(X)
#undef X
} VirtIONetQueueStats;

typedef struct VirtIONetStatInfo {
    const char *name;
    const char *meaning;
    unsigned ways;              /* VIRTIO_NET_STAT_* */
    unsigned bins;              /* 0: a counter; else a histogram */
    size_t offset;              /* of its first word in the struct, in words */
} VirtIONetStatInfo;

/* virtio_net_stat_infos: the tables, in order; *@n is set.  Any thread. */
const VirtIONetStatInfo *virtio_net_stat_infos(size_t *n);

/* virtio_net_stat_values: where the words of @info are in @stats. */
const uint64_t *virtio_net_stat_values(const VirtIONetQueueStats *stats,
                                       const VirtIONetStatInfo *info);

/* virtio_net_stats_bin: which of @bins bins @value belongs to. */
unsigned virtio_net_stats_bin(uint64_t value, unsigned bins);

/* virtio_net_stats_help: one line per counter.  Caller frees. */
char *virtio_net_stats_help(void);

/* ---- one queue's, for hw/net only ------------------------------------ */

/*
 * The live counters.  Aligned and padded to cache lines, so that a reader
 * takes no line from the owner but those it reads.
 */
typedef struct VirtIONetStats {
    /* queue context; others read, relaxed */
    VirtIONetQueueStats count __attribute__((aligned(64)));

    /* queue context */
    int64_t since_ns __attribute__((aligned(64)));
                                /* no packet in the ring is older, as far as */
                                /* the device can know */
    bool idle;                  /* armed for the next packet: none is there */
    bool fired;                 /* the next pass is a deadline's */
    unsigned phase;             /* the policy's, at the last pass */

    /* main: what is subtracted */
    VirtIONetQueueStats base __attribute__((aligned(64)));
} VirtIONetStats;

VirtIONetStats *virtio_net_stats_new(void);
void virtio_net_stats_free(VirtIONetStats *s);

/* virtio_net_stats_read: relaxed copy, since creation.  Any thread. */
void virtio_net_stats_read(const VirtIONetStats *s, VirtIONetQueueStats *out);

/* virtio_net_stats_read_base: the same since the last reset.  Main. */
void virtio_net_stats_read_base(const VirtIONetStats *s,
                                VirtIONetQueueStats *out);

/* virtio_net_stats_reset: count from here.  Main; the queue may run. */
void virtio_net_stats_reset(VirtIONetStats *s);

/* ---- hooks, for hw/net only: the queue's context --------------------- */

/*
 * A hook is called where something happens: it counts it, and has a probe for
 * whoever traces it (docs/devel/tracing.rst).
 */

/* One writer: no read-modify-write; readers see whole values. */
static inline void virtio_net_stats_add(uint64_t *counter, uint64_t n)
{
    __atomic_store_n(counter, *counter + n, __ATOMIC_RELAXED);
}

typedef struct VirtIONetQueue VirtIONetQueue;

/* The ring has been started; @now_ns: nothing is known to be older. */
void virtio_net_stats_start(VirtIONetQueue *q, int64_t now_ns);
void virtio_net_stats_stop(VirtIONetQueue *q);

/* The driver has kicked. */
void virtio_net_stats_kick(VirtIONetQueue *q);

/*
 * A wake-up while the ring is armed, at @now_ns: kick, poll hit, or an arm
 * that crossed.  If nothing was there when it was armed for the next packet,
 * that packet's wait is measured from here: what the notification itself took
 * is not known.
 */
void virtio_net_stats_work(VirtIONetQueue *q, int64_t now_ns);

/* A pass begins. */
void virtio_net_stats_flush_begin(VirtIONetQueue *q);

/*
 * A pass ends.  @packets: taken, those included that were dropped.  @reason
 * of a receive ring: RING_EMPTY: the backend has no more; BACKEND_FULL: no
 * buffers.
 */
void virtio_net_stats_flush_end(VirtIONetQueue *q, unsigned packets,
                                size_t bytes, TxStop reason);

/*
 * After flush_end of a transmit ring: how long its packets may have waited by
 * @now_ns, and what the deadline, if it was one's, has found.
 */
void virtio_net_stats_waited(VirtIONetQueue *q, int64_t now_ns,
                             unsigned packets, TxStop reason);

/* The backend, which was full, has room: a pass is due. */
void virtio_net_stats_resume(VirtIONetQueue *q);

/* A pass that was due will not run: the ring stops, or is broken. */
void virtio_net_stats_flush_stopped(VirtIONetQueue *q);

/* virtqueue_arm(@window) has answered. */
void virtio_net_stats_arm(VirtIONetQueue *q, unsigned window,
                          VirtQueueArm outcome);

/* Notifications stay off until @deadline_ns. */
void virtio_net_stats_hold(VirtIONetQueue *q, int64_t deadline_ns);

/*
 * A deadline starts a pass, @late_ns after its time.  @armed: that of a window,
 * before its last packet.
 */
void virtio_net_stats_fire(VirtIONetQueue *q, bool armed, int64_t late_ns);

/* A phase of busy polling is over. */
void virtio_net_stats_poll(VirtIONetQueue *q, bool won);

/* The policy's phase after a pass, by its own numbers. */
void virtio_net_stats_phase(VirtIONetQueue *q, unsigned phase);

/* The used index was published, and this became of the call. */
void virtio_net_stats_published(VirtIONetQueue *q, VirtIONetCallFate fate);

/* An interrupt is sent; one that was held back is not wanted any more. */
void virtio_net_stats_call(VirtIONetQueue *q);
void virtio_net_stats_call_lapsed(VirtIONetQueue *q);

/* One packet is carried.  Inline: it is all that is done per packet. */
static inline void virtio_net_stats_packet(VirtIONetStats *s, size_t bytes)
{
    virtio_net_stats_add(&s->count.packets, 1);
    virtio_net_stats_add(&s->count.bytes, bytes);
}

typedef enum VirtIONetDrop {
    VIRTIO_NET_DROP_HOST,
    VIRTIO_NET_DROP_GUEST,
    VIRTIO_NET_DROP_BUFFERS,
    VIRTIO_NET_DROP_DOWN,
} VirtIONetDrop;

/* Cold: callers that have packets to carry save no register for it. */
__attribute__((cold))
void virtio_net_stats_drop(VirtIONetQueue *q, VirtIONetDrop cause,
                           unsigned packets);

#endif /* HW_NET_VIRTIO_NET_STATS_H */
