/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A virtqueue without a device: some guest memory, the queue, and a driver
 * that can be told to keep the rules or to break them.
 *
 * VringDriver is the driver's side of one split ring and knows nothing but
 * pointers to its three areas, so it serves wherever guest memory can be
 * reached.  VringHarness adds guest memory and a VirtQueue on the same ring.
 *
 * Guest memory: two regions, adjacent for the guest at VH_SPLIT and apart in
 * this process, each between inaccessible pages:
 *
 *   VH_BASE    rings, then buffers from VH_BUFFERS on
 *   VH_SPLIT   more buffers, up to VH_END
 */
#ifndef TESTS_UNIT_VRING_HARNESS_H
#define TESTS_UNIT_VRING_HARNESS_H

#include <linux/virtio_config.h>
#include <linux/virtio_ring.h>

#include "hw/virtio/virtqueue.h"

#define VH_BASE     UINT64_C(0x100000)
#define VH_DESC     VH_BASE
#define VH_AVAIL    (VH_BASE + 0x4000)
#define VH_USED     (VH_BASE + 0x8000)
#define VH_BUFFERS  (VH_BASE + 0x10000)
#define VH_SPLIT    (VH_BASE + 0x100000)
#define VH_END      (VH_SPLIT + 0x500000)
/* Front-end virtual address of guest-physical 0. */
#define VH_UADDR    UINT64_C(0x7f5500000000)

#define VH_FEATURE(bit) (UINT64_C(1) << (bit))
#define VH_INDIRECT     VH_FEATURE(VIRTIO_RING_F_INDIRECT_DESC)
#define VH_EVENT_IDX    VH_FEATURE(VIRTIO_RING_F_EVENT_IDX)

/* ---- the driver --------------------------------------------------------- */

typedef struct VringDriver {
    struct vring_desc *desc;
    struct vring_avail *avail;
    struct vring_used *used;
    uint16_t size;
    bool event_idx;
    uint16_t avail_idx;     /* next available entry to write */
    uint16_t exposed;       /* available index as the device sees it */
    uint16_t judged;        /* exposed, when a kick was last judged */
    uint16_t used_idx;      /* next used entry to take */
} VringDriver;

/* vring_driver_init: zero the areas and all state. */
void vring_driver_init(VringDriver *d, uint16_t size, uint64_t features,
                       void *desc, void *avail, void *used);

/* vring_driver_desc: write descriptor @i. */
void vring_driver_desc(VringDriver *d, unsigned i, uint64_t gpa, uint32_t len,
                       uint16_t flags, uint16_t next);

/* vring_driver_offer: write the next available entry; nobody sees it yet. */
void vring_driver_offer(VringDriver *d, uint16_t head);

/* vring_driver_expose: move the available index to what was offered. */
void vring_driver_expose(VringDriver *d);

/* vring_driver_set_avail_idx: any index, rules or not. */
void vring_driver_set_avail_idx(VringDriver *d, uint16_t idx);

/*
 * vring_driver_add: one chain of one buffer in the descriptor with the number
 * of its available entry, offered and exposed.  Returns the head.
 */
uint16_t vring_driver_add(VringDriver *d, uint64_t gpa, uint32_t len,
                          uint16_t flags);

/*
 * vring_driver_wants_kick: must the device be kicked for what was exposed
 * since the last time this was asked?  Full barrier, then the device's flags
 * or event index (virtio 1.3, 2.7.13).
 */
bool vring_driver_wants_kick(VringDriver *d);

/* vring_driver_get_used: take one used entry; false if there is none. */
bool vring_driver_get_used(VringDriver *d, uint32_t *id, uint32_t *len);

/*
 * vring_driver_enable_call: ask for a call at the next used entry, full
 * barrier.  Returns true if there is no used entry, so that it may sleep.
 */
bool vring_driver_enable_call(VringDriver *d);

/* vring_driver_disable_call: flags only; with EVENT_IDX, the index stays and
 * is behind after the next entry. */
void vring_driver_disable_call(VringDriver *d);

/* The words in which the two sides tell each other when to wake them. */
void vring_driver_set_used_event(VringDriver *d, uint16_t event);
uint16_t vring_driver_avail_event(const VringDriver *d);
uint16_t vring_driver_used_flags(const VringDriver *d);

/* ---- the harness -------------------------------------------------------- */

typedef struct VringHarness {
    VirtQueue *vq;
    VringDriver drv;
    GuestMap *map;
    VirtQueueSetup setup;   /* as of the last start */
    uint8_t *ram[2];        /* of the two regions */
    uint8_t *snapshot;
    unsigned breaks;        /* calls of the broken function */
    const char *why;        /* of the last one */
} VringHarness;

/* vring_harness_new: with a started queue of @size entries. */
VringHarness *vring_harness_new(uint16_t size, uint64_t features);

/* vring_harness_new_at: likewise, with all indexes at @idx. */
VringHarness *vring_harness_new_at(uint16_t size, uint64_t features,
                                   uint16_t idx);
void vring_harness_free(VringHarness *h);

/* vring_harness_restart: the driver resets the device and begins anew. */
void vring_harness_restart(VringHarness *h);

/* vring_harness_ptr: guest memory in this process; does not cross VH_SPLIT. */
void *vring_harness_ptr(VringHarness *h, uint64_t gpa);

/* vring_harness_table: entry @i of an indirect table at @table, anywhere. */
void vring_harness_table(VringHarness *h, uint64_t table, unsigned i,
                         uint64_t gpa, uint32_t len, uint16_t flags,
                         uint16_t next);

/* vring_harness_chain_table: @n readable buffers of one byte, one after the
 * other from VH_BUFFERS on. */
void vring_harness_chain_table(VringHarness *h, uint64_t table, unsigned n);

/* vring_harness_pop: one chain, or NULL. */
VirtQueueElem *vring_harness_pop(VringHarness *h);

/* vring_harness_complete: fill and publish @elem, which is the oldest. */
void vring_harness_complete(VringHarness *h, VirtQueueElem *elem,
                            uint32_t len);

/* vring_harness_serve: pop all, complete all with length 0; how many. */
unsigned vring_harness_serve(VringHarness *h);

/* vring_harness_snapshot: remember guest memory. */
void vring_harness_snapshot(VringHarness *h);
/* vring_harness_assert_untouched: it is as it was then. */
void vring_harness_assert_untouched(VringHarness *h);

/*
 * vring_harness_assert_broken: the ring is broken for @why, said so once, is
 * empty to every verb, writes nothing, and works again after a restart.
 */
void vring_harness_assert_broken(VringHarness *h, const char *why);

#endif /* TESTS_UNIT_VRING_HARNESS_H */
