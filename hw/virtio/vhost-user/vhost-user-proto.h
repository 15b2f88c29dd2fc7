/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * vhost-user on the wire: message header, payloads, request numbers and bits
 * (the vhost-user protocol text, "Message Specification").
 *
 * Both ends run on one host: integers are in its byte order.  Each struct is
 * what travels, so its size is asserted.  Only what this back-end speaks is
 * here; a front-end does not send the rest unless it was offered.
 */
#ifndef HW_VIRTIO_VHOST_USER_VHOST_USER_PROTO_H
#define HW_VIRTIO_VHOST_USER_VHOST_USER_PROTO_H

#include <glib.h>
#include <stdint.h>

typedef enum VuRequest {
    VU_GET_FEATURES          = 1,
    VU_SET_FEATURES          = 2,
    VU_SET_OWNER             = 3,
    VU_RESET_OWNER           = 4,
    VU_SET_MEM_TABLE         = 5,
    VU_SET_VRING_NUM         = 8,
    VU_SET_VRING_ADDR        = 9,
    VU_SET_VRING_BASE        = 10,
    VU_GET_VRING_BASE        = 11,
    VU_SET_VRING_KICK        = 12,
    VU_SET_VRING_CALL        = 13,
    VU_SET_VRING_ERR         = 14,
    VU_GET_PROTOCOL_FEATURES = 15,
    VU_SET_PROTOCOL_FEATURES = 16,
    VU_GET_QUEUE_NUM         = 17,
    VU_SET_VRING_ENABLE      = 18,
    VU_SEND_RARP             = 19,
    VU_NET_SET_MTU           = 20,
    VU_RESET_DEVICE          = 34,
    VU_GET_MAX_MEM_SLOTS     = 36,
    VU_ADD_MEM_REG           = 37,
    VU_REM_MEM_REG           = 38,
    VU_REQUEST_MAX
} VuRequest;

/* Header flags. */
#define VU_FLAG_VERSION_MASK    0x3u
#define VU_FLAG_VERSION         0x1u
#define VU_FLAG_REPLY           0x4u
#define VU_FLAG_NEED_REPLY      0x8u

/* Bit in the device features that says "protocol features are spoken". */
#define VU_F_PROTOCOL_FEATURES  30

/* Protocol feature bits. */
#define VU_PROTOCOL_F_MQ                    0
#define VU_PROTOCOL_F_RARP                  2
#define VU_PROTOCOL_F_REPLY_ACK             3
#define VU_PROTOCOL_F_NET_MTU               4
#define VU_PROTOCOL_F_RESET_DEVICE          13
#define VU_PROTOCOL_F_CONFIGURE_MEM_SLOTS   15

/* SET_VRING_KICK, _CALL, _ERR: one u64. */
#define VU_VRING_INDEX_MASK     0xffu
#define VU_VRING_NO_FD          0x100u

/* SET_MEM_TABLE carries at most as many regions, and as many descriptors. */
#define VU_MEM_TABLE_MAX        8
#define VU_MAX_FDS              8

/* No message of the protocol is longer; a longer one is not read. */
#define VU_MAX_PAYLOAD          512

/* Largest ring a front-end may name (virtio 1.3, 2.7). */
#define VU_VRING_NUM_MAX        32768

typedef struct VuHeader {
    uint32_t request;
    uint32_t flags;
    uint32_t size;              /* of the payload that follows, bytes */
} VuHeader;
G_STATIC_ASSERT(sizeof(VuHeader) == 12);

typedef struct VuVringState {
    uint32_t index;
    uint32_t num;
} VuVringState;
G_STATIC_ASSERT(sizeof(VuVringState) == 8);

typedef struct VuVringAddr {
    uint32_t index;
    uint32_t flags;             /* bit 0: log writes to the used ring */
    uint64_t desc;              /* front-end addresses */
    uint64_t used;
    uint64_t avail;
    uint64_t log;               /* guest-physical address of the used ring */
} VuVringAddr;
G_STATIC_ASSERT(sizeof(VuVringAddr) == 40);

typedef struct VuRegion {
    uint64_t gpa;
    uint64_t size;
    uint64_t uaddr;
    uint64_t mmap_offset;
} VuRegion;
G_STATIC_ASSERT(sizeof(VuRegion) == 32);

typedef struct VuMemTable {
    uint32_t count;
    uint32_t padding;
    VuRegion regions[VU_MEM_TABLE_MAX];
} VuMemTable;
G_STATIC_ASSERT(sizeof(VuMemTable) == 264);

typedef struct VuMemReg {
    uint64_t padding;
    VuRegion region;
} VuMemReg;
G_STATIC_ASSERT(sizeof(VuMemReg) == 40);

#endif /* HW_VIRTIO_VHOST_USER_VHOST_USER_PROTO_H */
