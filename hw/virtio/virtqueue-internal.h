/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What virtqueue.c and the ring formats share, and nobody else sees.
 *
 * virtqueue.c owns the window of chains in flight, in pop order:
 *
 *      tail                         head
 *        |  filled, filled, taken ...|  next pop
 *        +--- publish takes here     +--- unpop gives back here
 *
 * Each chain in flight has one slot of elems[] (by sequence number) and a
 * contiguous stretch of the pool: one spare entry, then its gather list.
 * The pool is a ring that is begun anew whenever nothing is in flight, so
 * that a synchronous device stays within a few cache lines.
 *
 * A format (vring-split.c) owns its indexes and all access to the ring.  It
 * is called only for a live ring (started, not broken), except for unpop and
 * last_avail, which touch no guest memory.
 */
#ifndef HW_VIRTIO_VIRTQUEUE_INTERNAL_H
#define HW_VIRTIO_VIRTQUEUE_INTERNAL_H

#include <linux/virtio_config.h>
#include <linux/virtio_ring.h>

#include "hw/virtio/virtqueue.h"

/* For what is one function per chain and must not pass it by address. */
#define VRING_INLINE static inline __attribute__((always_inline))

/*
 * vring_full_barrier: what was stored before is visible before anything is
 * loaded after.  Each use names its partner in the driver.
 *
 * On x86 a locked read-modify-write of the stack is the cheapest that does
 * it.  VRING_TEST_NO_BARRIER is for the one test that shows that the race
 * test notices a missing barrier.
 */
static inline void vring_full_barrier(void)
{
#if defined(VRING_TEST_NO_BARRIER)
    __asm__ __volatile__("" : : : "memory");
#elif defined(__x86_64__)
    __asm__ __volatile__("lock; addl $0, -4(%%rsp)" : : : "memory", "cc");
#else
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
#endif
}

/* vring_crossed_event: did an index move past @event within its last @count
 * steps, the last of which led to @now?  (virtio 1.3, 2.7.7.1) */
static inline bool vring_crossed_event(uint16_t event, uint16_t now,
                                       uint32_t count)
{
    return (uint16_t)(now - event - 1) < count;
}

/*
 * Pool entries per ring entry.  A legal chain may take 2 x size + 1, and one
 * such must always fit; this leaves room for a full ring of ordinary chains.
 */
#define VRING_POOL_FACTOR 8

/* From here on all published entries count as new (16-bit indexes). */
#define VRING_UNSETTLED_MAX 0x10000

/* Guest address of a gather entry, for the dirty log.  Kept apart from the
 * iovec because the device may modify that one. */
typedef struct VringPiece {
    uint64_t gpa;
    uint64_t len;
} VringPiece;

typedef struct VringOps {
    /* map: translate the ring's areas by vq->map, or set @errp. */
    bool (*map)(VirtQueue *vq, GError **errp);
    /* start: areas are mapped; take over the indexes, or set @errp. */
    bool (*start)(VirtQueue *vq, GError **errp);
    /* pop_batch and those without a comment: as the public verb. */
    unsigned (*pop_batch)(VirtQueue *vq, VirtQueueElem **elems, unsigned max,
                          size_t max_bytes);
    /* unpop: @n chains, head has been moved back already. */
    void (*unpop)(VirtQueue *vq, unsigned n);
    /* publish: show what is filled from tail on; tail moves afterwards. */
    unsigned (*publish)(VirtQueue *vq);
    bool (*should_signal)(VirtQueue *vq);
    uint16_t (*call_event)(const VirtQueue *vq);
    void (*signalled)(VirtQueue *vq);
    void (*park)(VirtQueue *vq);
    VirtQueueArm (*arm)(VirtQueue *vq, unsigned window);
    void (*disarm)(VirtQueue *vq);
    bool (*avail_moved)(const VirtQueue *vq);
    uint16_t (*last_avail)(const VirtQueue *vq);
} VringOps;

extern const VringOps vring_split_ops;

typedef struct VringSplit {
    struct vring_desc *desc;
    struct vring_avail *avail;
    struct vring_used *used;
    uint16_t last_avail;    /* next available index to pop */
    uint16_t avail_seen;    /* newest available index that was checked */
    uint16_t scan;          /* avail_seen when a pop last reached it */
    uint16_t used_idx;      /* as published */
    uint16_t avail_event;   /* as it stands in the ring */
    uint16_t used_flags;    /* as they stand in the ring */
    uint32_t unsettled;     /* published since the last call decision, at most
                             * VRING_UNSETTLED_MAX */
} VringSplit;

struct VirtQueue {
    /* Read by every verb. */
    const VringOps *ops;
    bool live;              /* started and not broken */
    bool started;
    bool event_idx;
    bool indirect;
    bool notify_on_empty;
    uint16_t size;
    VringSplit split;

    /* The window of chains in flight. */
    uint32_t head;          /* sequence number of the next pop */
    uint32_t tail;          /* of the next publish */
    VirtQueueElem *elems;   /* slot: sequence number & elem_mask */
    uint32_t elem_mask;

    /* The pool.  The longest legal chain takes pool_need entries. */
    struct iovec *pool;
    VringPiece *piece;      /* parallel to it; set for writable entries */
    struct iovec *pool_next;    /* first free entry */
    struct iovec *pool_last;    /* last one that is known to be followed by
                                 * pool_need free ones, itself included */
    unsigned pool_size;
    unsigned pool_need;

    /* Where buffers and indirect tables were found last. */
    GuestRange buffer_range;
    GuestRange table_range;
    GuestMap *map;
    DirtyLog *log;

    /* Set-up. */
    VirtQueueSetup setup;
    const char *broken;     /* why; NULL if it is not */
    VirtQueueBrokenFunc *broken_func;
    void *broken_opaque;
    uint16_t max_size;
    char *name;
};

static inline VirtQueueElem *vring_elem(const VirtQueue *vq, uint32_t seq)
{
    return &vq->elems[seq & vq->elem_mask];
}

/* ---- making a chain ----------------------------------------------------- */

/*
 * A chain that is being read.  It lives in registers: no function that is
 * called gets its address, only a copy's (which is why slow paths copy).
 */
typedef struct VringChain {
    struct iovec *first;    /* where its gather list starts */
    struct iovec *iov;      /* next entry */
    unsigned buffers_left;  /* until it is too long */
    unsigned in_num;        /* gather entries that are writable */
    uint64_t in_bytes;
    uint64_t bytes;         /* readable and writable */
} VringChain;

/* Finds room for one more chain behind those in flight, of which there is at
 * least one; false if they leave none. */
bool vring_pool_make_room(VirtQueue *vq);

/*
 * vring_chain_room: is there room for the longest legal chain?  To be asked
 * before a chain is begun, so that nothing below has to look.
 */
static inline bool vring_chain_room(VirtQueue *vq)
{
    return G_LIKELY(vq->pool_next <= vq->pool_last) ||
           vring_pool_make_room(vq);
}

static inline VringChain vring_chain_begin(VirtQueue *vq)
{
    return (VringChain) {
        .first = vq->pool_next + 1,
        .iov = vq->pool_next + 1,
        .buffers_left = vq->size,
    };
}

/* A piece of a buffer that is in one region. */
VRING_INLINE const char *
vring_chain_append(VirtQueue *vq, VringChain *c, uint64_t addr, uint64_t len,
                   bool write, void *host)
{
    if (write) {
        vq->piece[c->iov - vq->pool] = (VringPiece) { addr, len };
        c->in_num++;
        c->in_bytes += len;
    } else if (G_UNLIKELY(c->in_num)) {
        return "readable descriptor after a writable one";
    }
    c->bytes += len;
    c->iov->iov_base = host;
    c->iov->iov_len = len;
    c->iov++;
    return NULL;
}

/* A buffer that is not inside the region of the last one. */
const char *vring_chain_add_slow(VirtQueue *vq, VringChain *c, uint64_t addr,
                                 uint64_t len, bool write);

/*
 * vring_chain_add: one more buffer.  Returns NULL, or the rule it breaks.
 * The count of buffers is what ends chains that loop.
 */
VRING_INLINE const char *
vring_chain_add(VirtQueue *vq, VringChain *c, uint64_t addr, uint32_t len,
                bool write)
{
    uint64_t offset = addr - vq->buffer_range.start;

    if (G_UNLIKELY(len == 0)) {
        return "descriptor of length zero";
    }
    if (G_UNLIKELY(c->buffers_left-- == 0)) {
        return "descriptor chain is longer than the ring";
    }
    if (G_LIKELY(offset < vq->buffer_range.size &&
                 offset + len <= vq->buffer_range.size)) {
        return vring_chain_append(vq, c, addr, len, write,
                                  vq->buffer_range.host + offset);
    } else {
        VringChain copy = *c;
        const char *why = vring_chain_add_slow(vq, &copy, addr, len, write);

        *c = copy;
        return why;
    }
}

/*
 * vring_chain_commit: the chain is complete and goes in flight as @id, having
 * taken @slots ring slots.  Returns NULL with *@elem set, or the rule that
 * it breaks.
 */
VRING_INLINE const char *
vring_chain_commit(VirtQueue *vq, const VringChain *c, uint16_t id,
                   uint16_t slots, VirtQueueElem **elem)
{
    VirtQueueElem *e = vring_elem(vq, vq->head);

    if (G_UNLIKELY(c->bytes > UINT32_MAX)) {
        return "descriptor chain of 4 GiB or more";
    }
    e->iov = c->first;
    e->out_num = c->iov - c->first - c->in_num;
    e->in_num = c->in_num;
    e->out_bytes = c->bytes - c->in_bytes;
    e->in_bytes = c->in_bytes;
    e->id = id;
    e->ndescs = slots;
    e->filled = false;
    vq->head++;
    vq->pool_next = c->iov;
    *elem = e;
    return NULL;
}

#endif /* HW_VIRTIO_VIRTQUEUE_INTERNAL_H */
