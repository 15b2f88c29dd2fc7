/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Rings: what the front-end says about each, and when the device serves it.
 *
 *             KICK, all else set                 GET_VRING_BASE
 *   stopped --------------------------> started ----------------> stopped
 *      |                                 |   ^
 *      | KICK, something missing         |   | all there again
 *      +-----------> waiting <-----------+   |
 *                       |    memory gone     |
 *                       +--------------------+
 *
 * The protocol lets a ring start at its first kick.  QEMU and DPDK hand over
 * an eventfd that is signalled already, and the device polls a ring once when
 * it starts, so starting at SET_VRING_KICK is the same and cannot lose a kick
 * that came early.  Messages may come in another order: the one that
 * completes the setup starts the ring.
 *
 * A ring that runs is not reconfigured under its feet: size, base and
 * addresses may be repeated but not changed before GET_VRING_BASE.
 *
 * A kick message without a descriptor asks the device to poll.  We do that at
 * a fixed pace with an eventfd of our own; it is slow, but works.
 *
 * Descriptors must be eventfds: the device writes to them from its packet
 * path, and anything else could make it block.  They are put into non-blocking
 * mode, so that one whose owner fills the counter to the brim cannot either,
 * unless he takes that mode back.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/virtio_ring.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "vhost-user-internal.h"

/* Pace of polling for a ring without kicks: a timer tick of most guests. */
#define VU_POLL_INTERVAL_NS (1 * NS_PER_MS)

/* ---- small questions ---------------------------------------------------- */

static VuRing *ring_at(VuConn *c, uint32_t index, GError **errp)
{
    if (index < c->nrings) {
        return &c->rings[index];
    }
    vnet_set_error(errp, "ring index %u, but there are %u rings", index,
                   c->nrings);
    return NULL;
}

static unsigned ring_index(const VuConn *c, const VuRing *r)
{
    return r - c->rings;
}

static bool ring_started(const VuConn *c, const VuRing *r)
{
    return virtio_net_queue_started(c->owner.nic, ring_index(c, r));
}

static bool ring_complete(const VuConn *c, const VuRing *r)
{
    return r->kick.fd >= 0 && r->num && r->addr.desc && c->map;
}

static bool area_in(const GuestMap *map, uint64_t uaddr, uint64_t bytes)
{
    return guest_map_translate_exact(map, GUEST_SPACE_USER, uaddr, bytes);
}

/* Sizes of the areas: virtio 1.3, 2.7; the event words with EVENT_IDX only. */
static bool ring_fits(const VuConn *c, const VuRing *r, const GuestMap *map)
{
    bool event_idx = c->features & (1ULL << VIRTIO_RING_F_EVENT_IDX);
    uint64_t words = 4 + (event_idx ? 2 : 0);

    return area_in(map, r->addr.desc, 16ULL * r->num) &&
           area_in(map, r->addr.avail, words + 2ULL * r->num) &&
           area_in(map, r->addr.used, words + 8ULL * r->num);
}

/* ---- starting and stopping ---------------------------------------------- */

static void ring_drop_kick(VuRing *r)
{
    event_notifier_cleanup(&r->kick);
    r->polled = false;
}

static void ring_pause(VuConn *c, VuRing *r)
{
    if (ring_started(c, r)) {
        r->base = virtio_net_queue_stop(c->owner.nic, ring_index(c, r));
    }
}

static void ring_stop(VuConn *c, VuRing *r)
{
    ring_pause(c, r);
    ring_drop_kick(r);
}

static bool ring_serve(VuConn *c, VuRing *r, GError **errp)
{
    VirtQueueSetup setup = {
        .size = r->num,
        .features = c->features,
        .space = GUEST_SPACE_USER,
        .desc = r->addr.desc,
        .avail = r->addr.avail,
        .used = r->addr.used,
        .last_avail = r->base,
    };
    int kick = fcntl(r->kick.fd, F_DUPFD_CLOEXEC, 0);

    if (kick < 0) {
        vnet_set_error(errp, "cannot duplicate a descriptor: %s",
                       g_strerror(errno));
        return false;
    }
    return virtio_net_queue_start(c->owner.nic, ring_index(c, r), &setup,
                                  c->map, kick, errp);
}

/* ring_start: a ring that cannot be served ends up stopped. */
static VuVerdict ring_start(VuConn *c, VuRing *r, GError **errp)
{
    if (ring_serve(c, r, errp)) {
        return VU_OK;
    }
    g_prefix_error(errp, "ring %u: ", ring_index(c, r));
    ring_drop_kick(r);
    return VU_REFUSED;
}

/* ring_try_start: something has been set that may complete a waiting ring. */
static VuVerdict ring_try_start(VuConn *c, VuRing *r, GError **errp)
{
    if (ring_started(c, r) || !ring_complete(c, r) ||
        !ring_fits(c, r, c->map)) {
        return VU_OK;
    }
    return ring_start(c, r, errp);
}

/* ---- all rings ---------------------------------------------------------- */

bool vu_rings_suspend(VuConn *c, const GuestMap *map)
{
    bool any = false;

    for (unsigned i = 0; i < c->nrings; i++) {
        VuRing *r = &c->rings[i];

        if (ring_started(c, r) && (!map || !ring_fits(c, r, map)) &&
            !virtio_net_queue_broken(c->owner.nic, i)) {
            ring_pause(c, r);
            any = true;
        }
    }
    return any;
}

void vu_rings_resume(VuConn *c)
{
    for (unsigned i = 0; i < c->nrings; i++) {
        GError *err = NULL;

        if (ring_try_start(c, &c->rings[i], &err) != VU_OK) {
            report_guest(c->owner.limit, "vhost-user export '%s': %s",
                         c->owner.id, err->message);
            g_error_free(err);
        }
    }
}

void vu_rings_enable_all(VuConn *c)
{
    for (unsigned i = 0; i < c->nrings; i++) {
        virtio_net_queue_enable(c->owner.nic, i, true);
    }
}

void vu_rings_reset(VuConn *c)
{
    for (unsigned i = 0; i < c->nrings; i++) {
        VuRing *r = &c->rings[i];

        ring_stop(c, r);
        memset(r, 0, sizeof(*r));
        event_notifier_init_fd(&r->kick, -1);
    }
}

/* Only rings that run have use for a kick; the others are polled at start. */
static void poll_rings(void *opaque)
{
    VuConn *c = opaque;
    bool any = false;

    for (unsigned i = 0; i < c->nrings; i++) {
        if (c->rings[i].polled) {
            event_notifier_set(&c->rings[i].kick);
            any = true;
        }
    }
    if (any) {
        aio_timer_mod_ns(&c->poll_timer,
                         aio_now_ns(c->owner.ctx) + VU_POLL_INTERVAL_NS);
    }
}

void vu_rings_init(VuConn *c)
{
    c->nrings = MIN(2 * virtio_net_max_pairs(c->owner.nic), VU_MAX_RINGS);
    c->rings = g_new0(VuRing, c->nrings);
    for (unsigned i = 0; i < c->nrings; i++) {
        event_notifier_init_fd(&c->rings[i].kick, -1);
    }
    aio_timer_init(&c->poll_timer, c->owner.ctx, poll_rings, c);
}

void vu_rings_cleanup(VuConn *c)
{
    vu_rings_reset(c);
    for (unsigned i = 0; i < c->nrings; i++) {
        virtio_net_queue_set_call(c->owner.nic, i, -1);
        virtio_net_queue_set_err(c->owner.nic, i, -1);
    }
    aio_timer_del(&c->poll_timer);
    g_free(c->rings);
}

/* ---- size, addresses, base ---------------------------------------------- */

/*
 * The guest may have chosen the size, so a bad one is not the front-end's
 * fault.  It leaves the ring without any: starting with an older size would
 * write past the driver's ring.
 */
VuVerdict vu_set_vring_num(VuConn *c, VuMsg *m, GError **errp)
{
    uint32_t num = m->payload.state.num;
    VuRing *r = ring_at(c, m->payload.state.index, errp);

    if (!r) {
        return VU_BROKEN;
    }
    if (num == 0 || num > VU_VRING_NUM_MAX) {
        vnet_set_error(errp, "ring size %u", num);
        return VU_BROKEN;
    }
    if (ring_started(c, r)) {
        if (num == r->num) {
            return VU_OK;
        }
        vnet_set_error(errp, "ring %u is running", ring_index(c, r));
        return VU_REFUSED;
    }
    r->num = 0;
    if ((num & (num - 1)) || num > VIRTQUEUE_MAX_SIZE) {
        vnet_set_error(errp, "ring size %u is not a power of two of at most "
                       "%d", num, VIRTQUEUE_MAX_SIZE);
        return VU_REFUSED;
    }
    r->num = num;
    return ring_try_start(c, r, errp);
}

static bool same_areas(const VuVringAddr *a, const VuVringAddr *b)
{
    return a->desc == b->desc && a->avail == b->avail && a->used == b->used;
}

/* Addresses are kept raw: the memory behind them may change, or be missing. */
VuVerdict vu_set_vring_addr(VuConn *c, VuMsg *m, GError **errp)
{
    const VuVringAddr *addr = &m->payload.addr;
    VuRing *r = ring_at(c, addr->index, errp);

    if (!r) {
        return VU_BROKEN;
    }
    if (ring_started(c, r) && !same_areas(addr, &r->addr)) {
        vnet_set_error(errp, "ring %u is running", ring_index(c, r));
        return VU_REFUSED;
    }
    r->addr = *addr;
    return ring_try_start(c, r, errp);
}

VuVerdict vu_set_vring_base(VuConn *c, VuMsg *m, GError **errp)
{
    uint32_t base = m->payload.state.num;
    VuRing *r = ring_at(c, m->payload.state.index, errp);

    if (!r) {
        return VU_BROKEN;
    }
    if (base > UINT16_MAX) {
        vnet_set_error(errp, "base %u is not a 16-bit index", base);
        return VU_BROKEN;
    }
    if (ring_started(c, r)) {
        vnet_set_error(errp, "ring %u is running", ring_index(c, r));
        return VU_REFUSED;
    }
    r->base = base;
    return VU_OK;
}

/*
 * The reply promises that the ring's memory is not touched any more.  The
 * request's num field is garbage from DPDK.
 */
VuVerdict vu_get_vring_base(VuConn *c, VuMsg *m, GError **errp)
{
    VuRing *r = ring_at(c, m->payload.state.index, errp);

    if (!r) {
        return VU_BROKEN;
    }
    ring_stop(c, r);
    m->reply.state.index = ring_index(c, r);
    m->reply.state.num = r->base;
    return VU_OK;
}

/* ---- descriptors -------------------------------------------------------- */

/* Eventfds live on an inode without a type; pipes, sockets, files have one. */
static bool is_eventfd(int fd)
{
    struct stat st;

    return fstat(fd, &st) == 0 && (st.st_mode & S_IFMT) == 0;
}

/*
 * ring_of_fd_message: the ring that SET_VRING_KICK, _CALL or _ERR is about.
 * @fd: out: its descriptor, now the caller's; -1 if it has none
 */
static VuRing *ring_of_fd_message(VuConn *c, VuMsg *m, int *fd, GError **errp)
{
    uint64_t v = m->payload.u64;
    VuRing *r;

    if (v & ~(uint64_t)(VU_VRING_INDEX_MASK | VU_VRING_NO_FD)) {
        vnet_set_error(errp, "unknown bits in 0x%" PRIx64, v);
        return NULL;
    }
    r = ring_at(c, v & VU_VRING_INDEX_MASK, errp);
    if (!r) {
        return NULL;
    }
    if (m->nfds && !is_eventfd(m->fds[0])) {
        vnet_set_error(errp, "the descriptor is not an eventfd");
        return NULL;
    }
    *fd = vu_msg_take_fd(m);
    return r;
}

/* ring_set_kick: with @fd -1, kicks of our own. */
static bool ring_set_kick(VuConn *c, VuRing *r, int fd, GError **errp)
{
    ring_stop(c, r);
    if (fd >= 0) {
        event_notifier_init_fd(&r->kick, fd);
        return true;
    }
    if (!event_notifier_init(&r->kick, false, errp)) {
        return false;
    }
    r->polled = true;
    aio_timer_mod_ns(&c->poll_timer,
                     aio_now_ns(c->owner.ctx) + VU_POLL_INTERVAL_NS);
    return true;
}

VuVerdict vu_set_vring_kick(VuConn *c, VuMsg *m, GError **errp)
{
    int fd;
    VuRing *r = ring_of_fd_message(c, m, &fd, errp);

    if (!r) {
        return VU_BROKEN;
    }
    if (!ring_set_kick(c, r, fd, errp)) {
        return VU_REFUSED;
    }
    if (!ring_complete(c, r)) {
        return VU_OK;
    }
    if (!ring_fits(c, r, c->map)) {
        vnet_set_error(errp, "ring %u is not in the guest's memory",
                       ring_index(c, r));
        ring_drop_kick(r);
        return VU_REFUSED;
    }
    return ring_start(c, r, errp);
}

/* The device uses the new one when this returns, so the reply may say so. */
VuVerdict vu_set_vring_call(VuConn *c, VuMsg *m, GError **errp)
{
    int fd;
    VuRing *r = ring_of_fd_message(c, m, &fd, errp);

    if (!r) {
        return VU_BROKEN;
    }
    virtio_net_queue_set_call(c->owner.nic, ring_index(c, r), fd);
    return VU_OK;
}

VuVerdict vu_set_vring_err(VuConn *c, VuMsg *m, GError **errp)
{
    int fd;
    VuRing *r = ring_of_fd_message(c, m, &fd, errp);

    if (!r) {
        return VU_BROKEN;
    }
    virtio_net_queue_set_err(c->owner.nic, ring_index(c, r), fd);
    return VU_OK;
}

/* Any time: QEMU enables before it has set up anything. */
VuVerdict vu_set_vring_enable(VuConn *c, VuMsg *m, GError **errp)
{
    uint32_t on = m->payload.state.num;
    VuRing *r = ring_at(c, m->payload.state.index, errp);

    if (!r) {
        return VU_BROKEN;
    }
    if (on > 1) {
        vnet_set_error(errp, "%u is neither 0 nor 1", on);
        return VU_BROKEN;
    }
    virtio_net_queue_enable(c->owner.nic, ring_index(c, r), on);
    return VU_OK;
}
