/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The messages: one row each, and the rules that hold for all of them.
 *
 * A row says how long the payload is, which descriptors come along, and
 * whether the message has a reply of its own.  vu_dispatch() checks all that
 * before the handler runs, so handlers see well-formed messages only and look
 * at values.  It is also the only place that replies:
 *
 *   own reply, done       that reply, never a second one
 *   otherwise             an acknowledgement, 0 or 1, if the front-end asked
 *                         for it and REPLY_ACK was negotiated
 *
 * A front-end that breaks the protocol is told (if it asked) and loses the
 * connection.  An unknown message is refused and otherwise ignored: its
 * features were not offered, so a front-end that sends it is only trying.
 *
 * Not offered, on purpose: LOG_SHMFD and bit 26 (no dirty log, so migration
 * is blocked by the front-end), CONFIG (QEMU's virtio-net never uses it),
 * INBAND_NOTIFICATIONS and XEN_MMAP (QEMU acknowledges them blindly and does
 * not mean it), STATUS (7.2 sends status 0 before GET_VRING_BASE), RING_RESET
 * (QEMU shows it to the guest and then tells nobody).
 */
#include <inttypes.h>
#include <linux/virtio_config.h>

#include "vhost-user-internal.h"

#define BIT_ULL(n) (1ULL << (n))

static const uint64_t vu_protocol_features =
    BIT_ULL(VU_PROTOCOL_F_MQ) |
    BIT_ULL(VU_PROTOCOL_F_RARP) |
    BIT_ULL(VU_PROTOCOL_F_REPLY_ACK) |
    BIT_ULL(VU_PROTOCOL_F_NET_MTU) |
    BIT_ULL(VU_PROTOCOL_F_RESET_DEVICE) |
    BIT_ULL(VU_PROTOCOL_F_CONFIGURE_MEM_SLOTS);

/* ---- negotiation -------------------------------------------------------- */

/* What the device has, less what this transport cannot carry. */
static uint64_t conn_device_features(const VuConn *c)
{
    return virtio_net_offered_features(c->owner.nic) &
           ~BIT_ULL(VIRTIO_F_RING_RESET) & ~BIT_ULL(VU_F_PROTOCOL_FEATURES);
}

static VuVerdict vu_get_features(VuConn *c, VuMsg *m, GError **errp)
{
    m->reply.u64 = conn_device_features(c) | BIT_ULL(VU_F_PROTOCOL_FEATURES);
    return VU_OK;
}

/*
 * Without bit 30 a front-end does not know SET_VRING_ENABLE, so all rings are
 * enabled; with it, nothing is ever disabled here.
 */
static VuVerdict vu_set_features(VuConn *c, VuMsg *m, GError **errp)
{
    uint64_t features = m->payload.u64 & ~BIT_ULL(VU_F_PROTOCOL_FEATURES);
    uint64_t excess = features & ~conn_device_features(c);

    if (excess) {
        vnet_set_error(errp, "features 0x%" PRIx64 " were not offered",
                       excess);
        return VU_BROKEN;
    }
    if (!virtio_net_set_features(c->owner.nic, features, errp)) {
        return VU_REFUSED;
    }
    c->features = features;
    if (!(m->payload.u64 & BIT_ULL(VU_F_PROTOCOL_FEATURES))) {
        vu_rings_enable_all(c);
    }
    return VU_OK;
}

static VuVerdict vu_get_protocol_features(VuConn *c, VuMsg *m, GError **errp)
{
    m->reply.u64 = vu_protocol_features;
    return VU_OK;
}

static VuVerdict vu_set_protocol_features(VuConn *c, VuMsg *m, GError **errp)
{
    uint64_t excess = m->payload.u64 & ~vu_protocol_features;

    if (excess) {
        vnet_set_error(errp, "protocol features 0x%" PRIx64
                       " were not offered", excess);
        return VU_BROKEN;
    }
    c->protocol_features = m->payload.u64;
    return VU_OK;
}

/* Queue pairs, for a network device. */
static VuVerdict vu_get_queue_num(VuConn *c, VuMsg *m, GError **errp)
{
    m->reply.u64 = c->nrings / 2;
    return VU_OK;
}

/*
 * SET_OWNER starts a session, which the connection has done already.
 * RESET_OWNER is obsolete, and ignoring it is what the protocol recommends.
 */
static VuVerdict vu_owner(VuConn *c, VuMsg *m, GError **errp)
{
    return VU_OK;
}

/*
 * Memory and protocol features survive: with CONFIGURE_MEM_SLOTS the regions
 * are sent once per connection.
 */
static VuVerdict vu_reset_device(VuConn *c, VuMsg *m, GError **errp)
{
    vu_rings_reset(c);
    virtio_net_reset(c->owner.nic);
    c->features = 0;
    return VU_OK;
}

/* ---- network ------------------------------------------------------------ */

/* QEMU sends the first one before any ring is set up. */
static VuVerdict vu_send_rarp(VuConn *c, VuMsg *m, GError **errp)
{
    virtio_net_announce(c->owner.nic, m->payload.bytes);
    return VU_OK;
}

static VuVerdict vu_net_set_mtu(VuConn *c, VuMsg *m, GError **errp)
{
    uint64_t mtu = m->payload.u64;

    if (mtu > UINT16_MAX || !virtio_net_set_mtu(c->owner.nic, mtu)) {
        vnet_set_error(errp, "an MTU of %" PRIu64 " bytes is not possible "
                       "here", mtu);
        return VU_REFUSED;
    }
    return VU_OK;
}

/* ---- the table ---------------------------------------------------------- */

typedef enum VuFds {
    VU_FDS_NONE,
    VU_FDS_ONE,
    VU_FDS_OPTIONAL,        /* none, or one that is of no use */
    VU_FDS_VRING,           /* one, or none if the payload says so */
    VU_FDS_TABLE,           /* as many as the payload says regions */
} VuFds;

typedef struct VuRow {
    const char *name;       /* NULL: unknown */
    uint16_t min_bytes;     /* of the payload */
    uint16_t max_bytes;
    VuFds fds;
    bool own_reply;
    VuHandler *handler;
} VuRow;

/* ROW: payload of exactly @bytes; ROW_VAR: the handler knows how long. */
#define ROW(id, bytes, fds, own_reply, fn)                                   \
    [VU_##id] = { #id, bytes, bytes, fds, own_reply, fn }
#define ROW_VAR(id, min, max, fds, own_reply, fn)                            \
    [VU_##id] = { #id, min, max, fds, own_reply, fn }

#define U64     sizeof(uint64_t)
#define STATE   sizeof(VuVringState)
#define ADDR    sizeof(VuVringAddr)
#define REG     sizeof(VuMemReg)
#define TABLE0  offsetof(VuMemTable, regions)
#define TABLE8  sizeof(VuMemTable)

static const VuRow vu_rows[VU_REQUEST_MAX] = {
    ROW(GET_FEATURES,      0,     VU_FDS_NONE,  true,  vu_get_features),
    ROW(SET_FEATURES,      U64,   VU_FDS_NONE,  false, vu_set_features),
    ROW(SET_OWNER,         0,     VU_FDS_NONE,  false, vu_owner),
    ROW(RESET_OWNER,       0,     VU_FDS_NONE,  false, vu_owner),
    ROW_VAR(SET_MEM_TABLE, TABLE0, TABLE8,
                                  VU_FDS_TABLE, false, vu_set_mem_table),
    ROW(SET_VRING_NUM,     STATE, VU_FDS_NONE,  false, vu_set_vring_num),
    ROW(SET_VRING_ADDR,    ADDR,  VU_FDS_NONE,  false, vu_set_vring_addr),
    ROW(SET_VRING_BASE,    STATE, VU_FDS_NONE,  false, vu_set_vring_base),
    ROW(GET_VRING_BASE,    STATE, VU_FDS_NONE,  true,  vu_get_vring_base),
    ROW(SET_VRING_KICK,    U64,   VU_FDS_VRING, false, vu_set_vring_kick),
    ROW(SET_VRING_CALL,    U64,   VU_FDS_VRING, false, vu_set_vring_call),
    ROW(SET_VRING_ERR,     U64,   VU_FDS_VRING, false, vu_set_vring_err),
    ROW(GET_PROTOCOL_FEATURES, 0, VU_FDS_NONE,  true,
                                                vu_get_protocol_features),
    ROW(SET_PROTOCOL_FEATURES, U64, VU_FDS_NONE, false,
                                                vu_set_protocol_features),
    ROW(GET_QUEUE_NUM,     0,     VU_FDS_NONE,  true,  vu_get_queue_num),
    ROW(SET_VRING_ENABLE,  STATE, VU_FDS_NONE,  false, vu_set_vring_enable),
    ROW(SEND_RARP,         U64,   VU_FDS_NONE,  false, vu_send_rarp),
    ROW(NET_SET_MTU,       U64,   VU_FDS_NONE,  false, vu_net_set_mtu),
    ROW(RESET_DEVICE,      0,     VU_FDS_NONE,  false, vu_reset_device),
    ROW(GET_MAX_MEM_SLOTS, 0,     VU_FDS_NONE,  true,  vu_get_max_mem_slots),
    ROW(ADD_MEM_REG,       REG,   VU_FDS_ONE,   false, vu_add_mem_reg),
    ROW(REM_MEM_REG,       REG,   VU_FDS_OPTIONAL, false, vu_rem_mem_reg),
};

/* The longest row is readable, and what rules look at is always there. */
G_STATIC_ASSERT(sizeof(VuMemTable) <= VU_MAX_PAYLOAD);
G_STATIC_ASSERT(sizeof(((VuMsg *)0)->payload) == VU_MAX_PAYLOAD);
G_STATIC_ASSERT(TABLE0 >= sizeof(((VuMemTable *)0)->count));
G_STATIC_ASSERT(VU_MEM_TABLE_MAX <= VU_MAX_FDS);
G_STATIC_ASSERT(VU_MAX_RINGS == VU_VRING_INDEX_MASK + 1);
G_STATIC_ASSERT(VU_VRING_NO_FD == VU_VRING_INDEX_MASK + 1);

/* ---- the rules for all -------------------------------------------------- */

static bool check_size(const VuRow *row, const VuMsg *m, GError **errp)
{
    uint32_t size = m->hdr.size;

    if (size >= row->min_bytes && size <= row->max_bytes) {
        return true;
    }
    if (row->min_bytes == row->max_bytes) {
        vnet_set_error(errp, "payload of %u bytes instead of %u", size,
                       row->min_bytes);
    } else {
        vnet_set_error(errp, "payload of %u bytes, not %u to %u", size,
                       row->min_bytes, row->max_bytes);
    }
    return false;
}

static bool check_fds(const VuRow *row, const VuMsg *m, GError **errp)
{
    unsigned min = 0;
    unsigned max = 0;

    switch (row->fds) {
    case VU_FDS_NONE:
        break;
    case VU_FDS_ONE:
        min = max = 1;
        break;
    case VU_FDS_OPTIONAL:
        max = 1;
        break;
    case VU_FDS_VRING:
        min = max = m->payload.u64 & VU_VRING_NO_FD ? 0 : 1;
        break;
    case VU_FDS_TABLE:
        min = max = MIN(m->payload.table.count, VU_MEM_TABLE_MAX + 1);
        break;
    }
    if (m->nfds >= min && m->nfds <= max) {
        return true;
    }
    vnet_set_error(errp, "%u descriptors instead of %u", m->nfds, max);
    return false;
}

static const VuRow *find_row(uint32_t request)
{
    if (request >= VU_REQUEST_MAX || !vu_rows[request].name) {
        return NULL;
    }
    return &vu_rows[request];
}

static VuVerdict run_row(VuConn *c, const VuRow *row, GError **errp)
{
    VuMsg *m = &c->msg;

    if (!row) {
        vnet_set_error(errp, "unknown message");
        return VU_REFUSED;
    }
    if (!check_size(row, m, errp) || !check_fds(row, m, errp)) {
        return VU_BROKEN;
    }
    return row->handler(c, m, errp);
}

static void complain(VuConn *c, const VuRow *row, VuVerdict verdict,
                     const GError *err)
{
    char number[16];

    g_snprintf(number, sizeof(number), "%u", c->msg.hdr.request);
    report_guest(c->owner.limit, "vhost-user export '%s': %s: %s; %s",
                 c->owner.id, row ? row->name : number, err->message,
                 verdict == VU_BROKEN ? "connection closed" : "refused");
}

/*
 * wants_ack: judged after the message, so that the one that negotiates
 * REPLY_ACK may itself ask for it.
 */
static bool wants_ack(const VuConn *c)
{
    return (c->msg.hdr.flags & VU_FLAG_NEED_REPLY) &&
           (c->protocol_features & BIT_ULL(VU_PROTOCOL_F_REPLY_ACK));
}

bool vu_dispatch(VuConn *c)
{
    const VuRow *row = find_row(c->msg.hdr.request);
    GError *err = NULL;
    VuVerdict verdict = run_row(c, row, &err);
    bool own = row && row->own_reply;
    bool sent = true;

    if (verdict != VU_OK) {
        complain(c, row, verdict, err);
        g_error_free(err);
    }
    if (own ? verdict == VU_OK : wants_ack(c)) {
        if (!own) {
            c->msg.reply.u64 = verdict != VU_OK;
        }
        sent = vu_conn_reply(c, &c->msg);
    }
    return sent && verdict != VU_BROKEN;
}
