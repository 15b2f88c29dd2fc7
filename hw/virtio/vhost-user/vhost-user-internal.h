/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The vhost-user export, inside: one connection and its parts.
 *
 *   server.c    the socket; one VuConn at a time
 *   conn.c      bytes and descriptors to messages, and replies back
 *   messages.c  the table of messages; negotiation
 *   memory.c    the guest's memory map
 *   rings.c     the state of each ring
 *
 * Everything runs in the main context.  Calls into the device (virtio_net_*)
 * wait for the queues' context, which never waits for main.  Nothing here
 * waits for the peer: a message arrives in as many pieces as it likes, and a
 * peer that does not take its replies loses the connection.
 */
#ifndef HW_VIRTIO_VHOST_USER_VHOST_USER_INTERNAL_H
#define HW_VIRTIO_VHOST_USER_VHOST_USER_INTERNAL_H

#include "hw/net/virtio-net.h"
#include "util/aio.h"
#include "util/event-notifier.h"
#include "util/report.h"
#include "vhost-user-proto.h"

/* ---- a message ---------------------------------------------------------- */

typedef struct VuMsg {
    VuHeader hdr;
    union {
        uint8_t bytes[VU_MAX_PAYLOAD];
        uint64_t u64;
        VuVringState state;
        VuVringAddr addr;
        VuMemTable table;
        VuMemReg reg;
    } payload;
    int fds[VU_MAX_FDS];        /* -1 once somebody took it over */
    unsigned nfds;
    union {                     /* of a message that has a reply of its own */
        uint64_t u64;
        VuVringState state;
    } reply;
} VuMsg;

/* Every reply of a message's own is 8 bytes long; so is the acknowledgement. */
#define VU_REPLY_BYTES 8
G_STATIC_ASSERT(sizeof(((VuMsg *)0)->reply) == VU_REPLY_BYTES);

/*
 * What came of a message.  With anything but VU_OK the handler has set its
 * GError, which becomes the one line on stderr.
 */
typedef enum VuVerdict {
    VU_OK,
    VU_REFUSED,     /* not done, for a reason that the guest or the host may
                     * cause: a failure is reported if asked for, and the
                     * connection goes on */
    VU_BROKEN,      /* the front-end broke the protocol: as above, and the
                     * connection ends */
} VuVerdict;

/* ---- rings -------------------------------------------------------------- */

/*
 * A ring is, by its fields:
 *   stopped   kick.fd < 0: GET_VRING_BASE, or never kicked
 *   waiting   kick.fd >= 0 and the device does not serve it: size, addresses
 *             or memory are missing; starts by itself when they are there
 *   started   virtio_net_queue_started(): served.  Size, addresses and base
 *             are fixed until it is stopped
 * Whether it is enabled is the device's to remember.
 */
typedef struct VuRing {
    uint32_t num;               /* 0: not set */
    uint32_t base;              /* next available index; while not started */
    VuVringAddr addr;           /* raw, as sent; .desc 0: not set */
    EventNotifier kick;         /* the device works with a duplicate */
    bool polled;                /* no kick descriptor: kick is our own and
                                 * set by VuConn.poll_timer */
} VuRing;

/* The index in SET_VRING_KICK has eight bits. */
#define VU_MAX_RINGS 256

/* ---- a connection ------------------------------------------------------- */

typedef struct VuConn VuConn;
typedef void VuConnGoneFunc(void *opaque);

typedef struct VuConnOwner {
    const char *id;             /* of the export, for messages */
    VirtIONet *nic;
    AioContext *ctx;            /* main */
    ReportLimit *limit;
    /* The connection is of no use any more: call vu_conn_free().  Called
     * from the loop, never from vu_conn_new(). */
    VuConnGoneFunc *gone;
    void *opaque;
} VuConnOwner;

struct VuConn {
    VuConnOwner owner;

    /* conn.c */
    int fd;
    AioHandler *handler;
    VuMsg msg;
    size_t got;                 /* bytes of msg, header included */

    /* messages.c */
    uint64_t features;          /* acknowledged device features */
    uint64_t protocol_features;

    /* memory.c */
    GuestMap *map;              /* NULL: none yet */
    AioTimer settle_timer;      /* armed: the rings are suspended */
    GArray *removed;            /* GuestRegionInfo, since they are */

    /* rings.c */
    unsigned nrings;
    VuRing *rings;
    AioTimer poll_timer;
};

/*
 * vu_conn_new: begin to serve a connected socket.
 * @fd: non-blocking, taken over in any case
 * @owner: copied; what it points to must outlive the connection
 *
 * Returns NULL with @errp set if the socket cannot be watched.
 */
VuConn *vu_conn_new(int fd, const VuConnOwner *owner, GError **errp);

/*
 * vu_conn_free: quiesce all rings, reset the device, let go of the guest's
 * memory and of all descriptors.
 */
void vu_conn_free(VuConn *c);

/* vu_msg_take_fd: the first descriptor, now the caller's; -1 if none. */
int vu_msg_take_fd(VuMsg *m);

/*
 * vu_conn_reply: send @m->reply (if @bytes is VU_REPLY_BYTES) under the
 * request's number.  Returns false if it did not go out at once: the
 * connection is then to be given up.
 */
bool vu_conn_reply(VuConn *c, const VuMsg *m);

/* ---- messages.c --------------------------------------------------------- */

/*
 * vu_dispatch: check and carry out the message in c->msg, and reply.
 * Descriptors it does not keep stay in the message.  Returns false if the
 * connection has to end; what there is to say about that has been said.
 */
bool vu_dispatch(VuConn *c);

/* ---- memory.c and rings.c: handlers of the table ------------------------ */

typedef VuVerdict VuHandler(VuConn *c, VuMsg *m, GError **errp);

VuHandler vu_set_mem_table;
VuHandler vu_add_mem_reg;
VuHandler vu_rem_mem_reg;
VuHandler vu_get_max_mem_slots;

VuHandler vu_set_vring_num;
VuHandler vu_set_vring_addr;
VuHandler vu_set_vring_base;
VuHandler vu_get_vring_base;
VuHandler vu_set_vring_kick;
VuHandler vu_set_vring_call;
VuHandler vu_set_vring_err;
VuHandler vu_set_vring_enable;

void vu_memory_init(VuConn *c);

/* vu_memory_cleanup: the rings must be stopped for good. */
void vu_memory_cleanup(VuConn *c);

void vu_rings_init(VuConn *c);

/*
 * vu_rings_reset: stop all rings and forget what was set up, but not the
 * call and error descriptors.  The device is not told to forget: that is
 * virtio_net_reset(), which the caller calls after this.
 */
void vu_rings_reset(VuConn *c);

/* vu_rings_cleanup: the same, with call and error descriptors. */
void vu_rings_cleanup(VuConn *c);

/* vu_rings_enable_all: front-ends that do not speak SET_VRING_ENABLE. */
void vu_rings_enable_all(VuConn *c);

/*
 * vu_rings_suspend: started rings that have no place in @map become waiting;
 * all started rings if @map is NULL.  Broken ones stay as they are.
 * Returns true if a ring was suspended.
 */
bool vu_rings_suspend(VuConn *c, const GuestMap *map);

/*
 * vu_rings_resume: start the waiting rings that are complete.  Failures are
 * reported; there is no message to refuse.
 */
void vu_rings_resume(VuConn *c);

#endif /* HW_VIRTIO_VHOST_USER_VHOST_USER_INTERNAL_H */
