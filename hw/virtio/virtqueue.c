/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Virtqueues: what all ring formats share.
 *
 * States of a queue:
 *
 *   stopped  no map, no chain in flight; only start, set_log, last_avail
 *   live     holds a map; all verbs
 *   broken   holds the map still, since chains may be in flight; looks empty,
 *            takes back its chains without a trace, touches no guest memory
 *
 *   stopped --start--> live --break--> broken --stop--> stopped
 *                        +------------stop--------------^
 *
 * Limits: a chain has at most as many buffers as the ring has entries, and at
 * most that many more gather entries because buffers cross memory regions.
 */
#include <string.h>

#include "virtqueue-internal.h"
#include "util/report.h"

static uint32_t round_up_pow2(uint32_t n)
{
    uint32_t p = 1;

    while (p < n) {
        p *= 2;
    }
    return p;
}

VirtQueue *virtqueue_new(const char *name, uint16_t max_size,
                         VirtQueueBrokenFunc *broken, void *opaque)
{
    VirtQueue *vq;

    g_assert(max_size > 0 && max_size <= VIRTQUEUE_MAX_SIZE);
    vq = g_new0(VirtQueue, 1);
    vq->ops = &vring_split_ops;
    vq->name = g_strdup(name);
    vq->max_size = max_size;
    vq->broken_func = broken;
    vq->broken_opaque = opaque;
    vq->elem_mask = round_up_pow2(max_size) - 1;
    vq->elems = g_new0(VirtQueueElem, vq->elem_mask + 1);
    vq->pool_size = VRING_POOL_FACTOR * max_size;
    vq->pool = g_new0(struct iovec, vq->pool_size);
    vq->piece = g_new0(VringPiece, vq->pool_size);
    return vq;
}

void virtqueue_free(VirtQueue *vq)
{
    if (!vq) {
        return;
    }
    virtqueue_stop(vq);
    virtqueue_set_log(vq, NULL);
    g_free(vq->elems);
    g_free(vq->pool);
    g_free(vq->piece);
    g_free(vq->name);
    g_free(vq);
}

/* ---- start and stop ----------------------------------------------------- */

static bool virtqueue_check_setup(VirtQueue *vq, const VirtQueueSetup *setup,
                                  GError **errp)
{
    if (setup->features & (UINT64_C(1) << VIRTIO_F_RING_PACKED)) {
        vnet_set_error(errp, "%s: packed rings are not supported", vq->name);
        return false;
    }
    if (setup->size == 0 || setup->size > vq->max_size) {
        vnet_set_error(errp, "%s: ring size %u is not between 1 and %u",
                       vq->name, setup->size, vq->max_size);
        return false;
    }
    if (setup->size & (setup->size - 1)) {
        vnet_set_error(errp, "%s: ring size %u is not a power of two",
                       vq->name, setup->size);
        return false;
    }
    return true;
}

static bool has_feature(const VirtQueueSetup *setup, unsigned bit)
{
    return setup->features >> bit & 1;
}

static void virtqueue_use_map(VirtQueue *vq, GuestMap *map)
{
    GuestMap *old = vq->map;

    vq->map = map ? guest_map_ref(map) : NULL;
    vq->buffer_range = (GuestRange) { 0 };
    vq->table_range = (GuestRange) { 0 };
    if (old) {
        guest_map_unref(old);
    }
}

static void virtqueue_reset_window(VirtQueue *vq)
{
    vq->head = 0;
    vq->tail = 0;
    vq->pool_next = vq->pool;
    vq->pool_last = vq->pool + vq->pool_size - vq->pool_need;
}

bool virtqueue_start(VirtQueue *vq, const VirtQueueSetup *setup,
                     GuestMap *map, GError **errp)
{
    g_assert(!vq->started);
    if (!virtqueue_check_setup(vq, setup, errp)) {
        return false;
    }
    vq->setup = *setup;
    vq->size = setup->size;
    vq->event_idx = has_feature(setup, VIRTIO_RING_F_EVENT_IDX);
    vq->indirect = has_feature(setup, VIRTIO_RING_F_INDIRECT_DESC);
    vq->notify_on_empty = has_feature(setup, VIRTIO_F_NOTIFY_ON_EMPTY);
    /* A spare entry, one for each buffer, and as many for crossings. */
    vq->pool_need = 1 + 2 * setup->size;
    virtqueue_reset_window(vq);
    virtqueue_use_map(vq, map);
    if (!vq->ops->map(vq, errp) || !vq->ops->start(vq, errp)) {
        virtqueue_use_map(vq, NULL);
        return false;
    }
    vq->broken = NULL;
    vq->started = true;
    vq->live = true;
    return true;
}

uint16_t virtqueue_stop(VirtQueue *vq)
{
    if (vq->started) {
        g_assert(virtqueue_in_flight(vq) == 0);
        vq->started = false;
        vq->live = false;
        virtqueue_use_map(vq, NULL);
    }
    return virtqueue_last_avail(vq);
}

uint16_t virtqueue_last_avail(const VirtQueue *vq)
{
    return vq->ops->last_avail(vq);
}

bool virtqueue_started(const VirtQueue *vq)
{
    return vq->started;
}

bool virtqueue_broken(const VirtQueue *vq)
{
    return vq->broken != NULL;
}

uint16_t virtqueue_size(const VirtQueue *vq)
{
    return vq->size;
}

bool virtqueue_remap(VirtQueue *vq, GuestMap *map, GError **errp)
{
    if (!vq->started) {
        return true;
    }
    g_assert(virtqueue_in_flight(vq) == 0);
    virtqueue_use_map(vq, map);
    if (!vq->ops->map(vq, errp)) {
        virtqueue_break(vq, "ring is not inside guest memory any more");
        return false;
    }
    return true;
}

void virtqueue_set_log(VirtQueue *vq, DirtyLog *log)
{
    DirtyLog *old = vq->log;

    vq->log = log ? dirty_log_ref(log) : NULL;
    if (old) {
        dirty_log_unref(old);
    }
}

void virtqueue_break(VirtQueue *vq, const char *why)
{
    if (!vq->live) {
        return;
    }
    vq->live = false;
    vq->broken = why;
    if (vq->broken_func) {
        vq->broken_func(vq->broken_opaque, why);
    }
}

/* ---- making a chain ----------------------------------------------------- */

/* The spare entry in front of a gather list is its start in the pool. */
static struct iovec *elem_start(const VirtQueueElem *e)
{
    return e->iov - 1;
}

bool vring_pool_make_room(VirtQueue *vq)
{
    struct iovec *oldest = elem_start(vring_elem(vq, vq->tail));
    struct iovec *end = vq->pool + vq->pool_size;
    ptrdiff_t need = vq->pool_need;

    if (oldest < vq->pool_next) {
        /* In use: from the oldest to the next.  Behind it, or in front? */
        if (end - vq->pool_next >= need) {
            vq->pool_last = end - need;
            return true;
        }
        if (oldest - vq->pool <= need) {
            return false;
        }
        vq->pool_next = vq->pool;
    }
    /* Free: from the next to the oldest, but for one entry, so that a pool
     * that is full does not look like an empty one. */
    if (oldest - vq->pool_next <= need) {
        return false;
    }
    vq->pool_last = oldest - 1 - need;
    return true;
}

const char *vring_chain_add_slow(VirtQueue *vq, VringChain *c, uint64_t addr,
                                 uint64_t len, bool write)
{
    if (len - 1 > UINT64_MAX - addr) {
        return "buffer wraps the address space";
    }
    for (;;) {
        uint64_t offset, piece;
        const char *why;

        if (!guest_map_find(vq->map, GUEST_SPACE_PHYS, addr,
                            &vq->buffer_range)) {
            return "buffer is not inside guest memory";
        }
        offset = addr - vq->buffer_range.start;
        piece = MIN(len, vq->buffer_range.size - offset);
        why = vring_chain_append(vq, c, addr, piece, write,
                                 vq->buffer_range.host + offset);
        addr += piece;
        len -= piece;
        if (why || len == 0) {
            return why;
        }
        /* Each buffer to come takes one entry at least. */
        if (c->iov - c->first + c->buffers_left >= 2 * vq->size) {
            return "buffers cross too many memory regions";
        }
    }
}

/* ---- verbs -------------------------------------------------------------- */

unsigned virtqueue_pop_batch(VirtQueue *vq, VirtQueueElem **elems,
                             unsigned max, size_t max_bytes)
{
    if (!vq->live) {
        return 0;
    }
    if (vq->head == vq->tail) {
        virtqueue_reset_window(vq);
    }
    return vq->ops->pop_batch(vq, elems, max, max_bytes);
}

void virtqueue_unpop(VirtQueue *vq, unsigned n)
{
    g_assert(n <= virtqueue_in_flight(vq));
    if (n == 0) {
        return;
    }
    for (unsigned i = 0; i < n; i++) {
        VirtQueueElem *e = vring_elem(vq, --vq->head);

        g_assert(!e->filled);
        vq->pool_next = elem_start(e);
    }
    /* It may have gone back over the pool's end; the next pop looks anew. */
    vq->pool_last = NULL;
    vq->ops->unpop(vq, n);
}

/* The writable part of a chain is contiguous in the pool. */
static void virtqueue_log_written(VirtQueue *vq, const VirtQueueElem *elem,
                                  uint64_t len)
{
    unsigned first = elem->iov - vq->pool + elem->out_num;

    for (unsigned i = first; len && i < first + elem->in_num; i++) {
        uint64_t n = MIN(len, vq->piece[i].len);

        dirty_log_mark(vq->log, vq->piece[i].gpa, n);
        len -= n;
    }
}

void virtqueue_fill(VirtQueue *vq, VirtQueueElem *elem, uint32_t len)
{
    elem->used_len = len;
    elem->filled = true;
    if (G_UNLIKELY(vq->log != NULL)) {
        virtqueue_log_written(vq, elem, len);
    }
}

/* forget_filled: of a broken ring, what would be published. */
static void forget_filled(VirtQueue *vq)
{
    while (vq->tail != vq->head && vring_elem(vq, vq->tail)->filled) {
        vq->tail++;
    }
}

unsigned virtqueue_publish(VirtQueue *vq)
{
    unsigned n;

    if (!vq->live) {
        forget_filled(vq);
        return 0;
    }
    n = vq->ops->publish(vq);
    vq->tail += n;
    return n;
}

bool virtqueue_should_signal(VirtQueue *vq)
{
    return vq->live && vq->ops->should_signal(vq);
}

uint16_t virtqueue_call_event(const VirtQueue *vq)
{
    return vq->live ? vq->ops->call_event(vq) : 0;
}

void virtqueue_signalled(VirtQueue *vq)
{
    vq->ops->signalled(vq);
}

void virtqueue_park(VirtQueue *vq)
{
    if (vq->live) {
        vq->ops->park(vq);
    }
}

VirtQueueArm virtqueue_arm(VirtQueue *vq, unsigned window)
{
    return vq->live ? vq->ops->arm(vq, window) : VQ_ARM_EMPTY;
}

void virtqueue_disarm(VirtQueue *vq)
{
    if (vq->live) {
        vq->ops->disarm(vq);
    }
}

bool virtqueue_avail_moved(const VirtQueue *vq)
{
    return vq->live && vq->ops->avail_moved(vq);
}

unsigned virtqueue_elem_slot(const VirtQueue *vq, const VirtQueueElem *elem)
{
    return elem - vq->elems;
}

unsigned virtqueue_in_flight(const VirtQueue *vq)
{
    return vq->head - vq->tail;
}

bool virtqueue_is_full(VirtQueue *vq)
{
    return virtqueue_in_flight(vq) && !vring_chain_room(vq);
}
