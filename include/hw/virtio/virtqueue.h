/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Virtqueue: the device's side of one ring (virtio 1.3, 2.6 - 2.8).
 *
 * The verbs, in the order in which a device uses them:
 *
 *   park       "I am looking, do not kick"
 *   pop_batch  take descriptor chains
 *   fill       one chain is finished, any order
 *   publish    show the driver the finished ones, in ring order, in one store
 *   should_signal / signalled
 *              does the driver want a call for what was published?
 *   unpop      give back the newest chains as if never taken
 *   arm(W)     "kick me at the W-th chain from here", with the answer whether
 *              the ring moved meanwhile
 *
 * Order: chains are published in the order in which they were popped,
 * whatever order they were filled in; a lost vhost-user connection rewinds to
 * the used index, so a gap would lose or repeat packets.
 *
 * Hostile drivers: everything read from the ring is read once and checked.
 * A ring that breaks a rule is *broken*: it reports itself once, looks empty
 * from then on, and is never written again until it is started anew.
 *
 * Threads: setup (new, free, start, stop, remap, set_*) from main while the
 * queue's context does not run it, or from that context; verbs only from the
 * queue's context.  No verb allocates, locks or makes a system call.
 *
 * Layout: virtqueue.c has what all ring formats share (elements, in-flight
 * order, gather lists); vring-split.c implements VringOps for split rings.
 * A packed ring is one more file with the same table.
 */
#ifndef HW_VIRTIO_VIRTQUEUE_H
#define HW_VIRTIO_VIRTQUEUE_H

#include <glib.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/uio.h>

#include "system/guest-memory.h"

/* Largest ring this device offers, and longest chain it accepts: virtio 1.3,
 * 2.7.5.3.1 forbids chains longer than the queue size. */
#define VIRTQUEUE_MAX_SIZE 1024

typedef struct VirtQueue VirtQueue;

/*
 * VirtQueueElem: one popped chain.  Valid until it has been published or
 * un-popped.
 *
 * iov[0 .. out_num) are device-readable, iov[out_num .. out_num + in_num)
 * device-writable.  iov[-1] is a spare slot the device may use to put a
 * header of its own in front.  The device may modify the iovecs, not the
 * other fields.
 */
typedef struct VirtQueueElem {
    struct iovec *iov;
    uint16_t out_num;
    uint16_t in_num;
    uint32_t out_bytes;     /* of the readable part; with in_bytes < 2^32 */
    uint32_t in_bytes;      /* of the writable part */
    uint16_t id;            /* head index, what the used ring names */
    uint16_t ndescs;        /* ring slots it occupies (1 if indirect) */
    uint32_t used_len;      /* set by virtqueue_fill() (private) */
    bool filled;            /* (private) */
} VirtQueueElem;

/* ---- setup ----------------------------------------------------------- */

/*
 * VirtQueueBrokenFunc: called once when the ring breaks, in the context that
 * found it and from inside a verb: it takes note and schedules, it does not
 * stop or free the queue.  @why is a constant string.
 */
typedef void VirtQueueBrokenFunc(void *opaque, const char *why);

/*
 * virtqueue_new: allocate for rings of up to @max_size entries.
 * @name: for messages, copied
 */
VirtQueue *virtqueue_new(const char *name, uint16_t max_size,
                         VirtQueueBrokenFunc *broken, void *opaque);
void virtqueue_free(VirtQueue *vq);

typedef struct VirtQueueSetup {
    uint16_t size;          /* entries; split: power of two, <= max_size */
    uint64_t features;      /* negotiated: format, EVENT_IDX, INDIRECT */
    GuestSpace space;       /* of the three addresses */
    uint64_t desc;
    uint64_t avail;         /* driver area */
    uint64_t used;          /* device area */
    uint16_t last_avail;    /* next available index to serve */
    bool log_used;          /* dirty-log used ring writes at log_gpa */
    uint64_t log_gpa;
} VirtQueueSetup;

/*
 * virtqueue_start: begin to serve a ring.
 * @map: a reference is taken
 *
 * The used index is taken from the ring.  The first call decision after a
 * start always says yes if the driver has not suppressed calls altogether,
 * since it is not known what an earlier owner signalled.  Notifications are
 * left as they are: the caller polls once, unconditionally, and then arms.
 *
 * Returns false with @errp set, and the queue stopped, if the size is not
 * allowed, an address is misaligned (virtio 1.3, 2.7: 16, 2, 4), an area is
 * not completely inside one region, the format is not supported, or
 * last_avail - used is more than the size.
 */
bool virtqueue_start(VirtQueue *vq, const VirtQueueSetup *setup,
                     GuestMap *map, GError **errp);

/*
 * virtqueue_stop: serve no more; drops the map.
 *
 * All chains must have been published or un-popped (on a broken ring, too:
 * both then only forget them).  Returns the next
 * available index.  Idempotent: a stopped queue returns the same again.
 */
uint16_t virtqueue_stop(VirtQueue *vq);

/* virtqueue_last_avail: what virtqueue_stop() would return. */
uint16_t virtqueue_last_avail(const VirtQueue *vq);

bool virtqueue_started(const VirtQueue *vq);
bool virtqueue_broken(const VirtQueue *vq);
uint16_t virtqueue_size(const VirtQueue *vq);

/*
 * virtqueue_remap: work with another map from now on.
 *
 * No chain may be in flight.  Ring addresses are translated anew.  Returns
 * false with @errp set, and breaks the queue, if they are not inside the new
 * map.
 */
bool virtqueue_remap(VirtQueue *vq, GuestMap *map, GError **errp);

/* virtqueue_set_log: mark writes from now on; NULL ends it.  Takes a ref. */
void virtqueue_set_log(VirtQueue *vq, DirtyLog *log);

/*
 * virtqueue_break: the driver broke a rule that only the device can see (a
 * transmit chain with writable buffers, say).  Same effect as when the ring
 * finds it; none on a stopped or broken one.  @why is a constant string.
 */
void virtqueue_break(VirtQueue *vq, const char *why);

/* ---- verbs ----------------------------------------------------------- */

/*
 * virtqueue_pop_batch: take chains.
 * @elems: room for @max pointers
 * @max_bytes: stop once the readable and writable bytes taken reach this
 *             (at least one chain is taken if there is one)
 *
 * Returns how many were taken: 0 if the ring is empty, broken or stopped, or
 * if chains in flight leave no room for another gather list.  Chains that
 * precede a malformed one are returned; the next call then breaks the ring.
 * More than the queue size in flight breaks it, too.
 */
unsigned virtqueue_pop_batch(VirtQueue *vq, VirtQueueElem **elems,
                             unsigned max, size_t max_bytes);

/*
 * virtqueue_unpop: give back the newest @n chains.  They must not have been
 * filled; the next pop finds them again.
 */
void virtqueue_unpop(VirtQueue *vq, unsigned n);

/*
 * virtqueue_fill: a chain is finished.
 * @len: bytes written into its writable part from its start (virtio 1.3,
 *       2.7.8.2), 0 for transmit
 */
void virtqueue_fill(VirtQueue *vq, VirtQueueElem *elem, uint32_t len);

/*
 * virtqueue_publish: store used entries for all filled chains that no
 * unfilled one precedes, then the used index once.
 *
 * Returns how many were published; the caller then asks should_signal().  A
 * broken ring takes the chains back, writes nothing and returns 0.
 */
unsigned virtqueue_publish(VirtQueue *vq);

/*
 * virtqueue_should_signal: does the driver want a call, judged now?
 *
 * Full barrier, then flags or need_event(used_event, used index, index of the
 * last decision); NOTIFY_ON_EMPTY overrides both when nothing is available or
 * in flight.  If nothing was published since the last decision: no.
 *
 * "No" settles everything published so far: the driver looks itself.  "Yes"
 * must be followed by virtqueue_signalled() when the call is sent; until then
 * it may be asked again, and may turn into a no.
 */
bool virtqueue_should_signal(VirtQueue *vq);

/*
 * virtqueue_call_event: what the driver asks to be called for, as it put it
 * (used_event).  A driver writes it anew when it has looked at the ring.
 * Without EVENT_IDX: always 0.
 */
uint16_t virtqueue_call_event(const VirtQueue *vq);

/* virtqueue_signalled: the call is being sent for all published so far. */
void virtqueue_signalled(VirtQueue *vq);

/*
 * virtqueue_park: no kicks, please.  Advisory: kicks may still come.  With
 * EVENT_IDX the index is put behind the driver's position.
 */
void virtqueue_park(VirtQueue *vq);

typedef enum VirtQueueArm {
    VQ_ARM_EMPTY,           /* nothing new: sleeping is safe */
    VQ_ARM_PARTIAL,         /* some, but fewer than the window: safe if a
                             * deadline is running */
    VQ_ARM_CROSSED,         /* the window is full already and the kick may
                             * never come: scan again */
} VirtQueueArm;

/*
 * virtqueue_arm: ask for a kick at the @window-th chain from the position of
 * the last scan, then a full barrier, then look how far the driver is.
 * @window: 1 .. size.  Without EVENT_IDX: 1 asks for a kick at each chain;
 *          more leaves kicks off, and the caller's deadline is all there is
 *
 * The question is whether the driver's index moved since the last scan (the
 * last pop_batch that reached the end of what was available), not whether
 * the ring is empty: a head that cannot be served now must not livelock.
 * The driver's index jumping by more than the size breaks the ring here too
 * (and answers EMPTY).
 */
VirtQueueArm virtqueue_arm(VirtQueue *vq, unsigned window);

/*
 * virtqueue_disarm: leave the ring to an owner that knows nothing of our
 * window: event index at the next chain, flags 0, barrier.
 *
 * Chains may wait by then that nobody will be kicked for: the next owner has
 * to look at the ring once, after this.
 */
void virtqueue_disarm(VirtQueue *vq);

/*
 * virtqueue_avail_moved: has the driver published since the last scan?  One
 * load; for busy polling.
 */
bool virtqueue_avail_moved(const VirtQueue *vq);

/*
 * virtqueue_elem_slot: a number below VIRTQUEUE_MAX_SIZE that no other chain
 * in flight has; for what a device keeps beside a chain.
 */
unsigned virtqueue_elem_slot(const VirtQueue *vq, const VirtQueueElem *elem);

/* virtqueue_in_flight: chains popped and not yet published. */
unsigned virtqueue_in_flight(const VirtQueue *vq);

/*
 * virtqueue_is_full: the chains in flight leave no room for another gather
 * list.  Whatever the driver adds, no pop succeeds before some of them are
 * published or un-popped.
 */
bool virtqueue_is_full(VirtQueue *vq);

#endif /* HW_VIRTIO_VIRTQUEUE_H */
