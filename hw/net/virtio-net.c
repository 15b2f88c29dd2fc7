/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * virtio-net: the device's frame: creation, negotiation, and the start, stop
 * and change of its rings.
 *
 * This file runs in the main context.  What a queue's context owns is changed
 * only by "calls": a function run there while main waits (in_queue()).  A
 * call begins by quiescing the ring if it runs, and ends by waking it.
 *
 * The queues of a NIC may be in several contexts.  A change that concerns
 * more than one of them pauses each in its own, is then made by main, while
 * none of them looks, and resumes each (pause_queues(), resume_queues()).
 */
#include <net/ethernet.h>
#include <string.h>
#include <unistd.h>

#include "hw/net/virtio-net-features.h"
#include "hw/net/virtio-net-internal.h"

/* ---- queues by number ------------------------------------------------ */

static bool is_tx(unsigned idx)
{
    return idx & 1;
}

static VirtIONetQueue *get_queue(const VirtIONet *n, unsigned idx)
{
    VirtIONetPair *pair = n->pairs[idx / 2];

    g_assert(idx < 2 * n->max_pairs);
    return is_tx(idx) ? &pair->tx.q : &pair->rx.q;
}

static VirtIONetTx *tx_of(VirtIONetQueue *q)
{
    return &q->n->pairs[q->idx / 2]->tx;
}

static VirtIONetRx *rx_of(VirtIONetQueue *q)
{
    return &q->n->pairs[q->idx / 2]->rx;
}

static unsigned queue_count(const VirtIONet *n)
{
    return 2 * n->max_pairs;
}

/* ---- in the queue's context ------------------------------------------ */

static void queue_quiesce(VirtIONetQueue *q)
{
    if (is_tx(q->idx)) {
        virtio_net_tx_quiesce(tx_of(q));
    } else {
        virtio_net_rx_quiesce(rx_of(q));
    }
}

static void queue_wake(VirtIONetQueue *q)
{
    if (is_tx(q->idx)) {
        virtio_net_tx_wake(tx_of(q), TX_WAKE_START);
    } else {
        virtio_net_rx_update(rx_of(q));
    }
}

bool virtio_net_queue_usable(VirtIONetQueue *q)
{
    if (__atomic_load_n(&q->n->broken, __ATOMIC_RELAXED)) {
        virtqueue_break(q->vq, "another ring of this device is broken");
        return false;
    }
    return !virtqueue_broken(q->vq);
}

static void queue_broken(void *opaque, const char *why)
{
    VirtIONetQueue *q = opaque;
    VirtIONet *n = q->n;

    if (!__atomic_exchange_n(&n->broken, true, __ATOMIC_RELAXED)) {
        report_guest(&n->report, "NIC %s: %s ring %u is broken: %s; the "
                     "device waits for a reset", n->conf.id,
                     is_tx(q->idx) ? "transmit" : "receive", q->idx, why);
    }
    event_notifier_set(&q->err);
}

static void queue_call(void *opaque)
{
    VirtIONetQueue *q = opaque;

    virtio_net_stats_call(q);
    event_notifier_set(&q->call);
    if (!is_tx(q->idx)) {
        virtio_net_coalesce_guest_looks(&tx_of(q)->q.coalesce);
    }
}

static void queue_call_lapsed(void *opaque)
{
    virtio_net_stats_call_lapsed(opaque);
}

/* ---- calls from main ------------------------------------------------- */

typedef struct QueueCall {
    VirtIONetQueue *q;
    const VirtQueueSetup *setup;
    GuestMap *map;
    int fd;
    bool flag;
    uint16_t base;
    GError **errp;
} QueueCall;

/* A pass of a transmit thread that takes long ends early for us. */
static void wait_in(VirtIONetQueue *q, AioFunc *fn, void *opaque)
{
    __atomic_store_n(&q->n->main_waits, true, __ATOMIC_RELAXED);
    aio_wait_bh_oneshot(q->ctx, fn, opaque);
    __atomic_store_n(&q->n->main_waits, false, __ATOMIC_RELAXED);
}

static void in_queue(AioFunc *fn, QueueCall *call)
{
    wait_in(call->q, fn, call);
}

static void in_queues(VirtIONet *n, unsigned first, unsigned count,
                      AioFunc *fn, QueueCall call)
{
    for (unsigned i = first; i < first + count; i++) {
        call.q = get_queue(n, i);
        in_queue(fn, &call);
    }
}

static void pause_call(void *opaque)
{
    QueueCall *call = opaque;
    VirtIONetQueue *q = call->q;

    q->paused = true;
    queue_quiesce(q);
}

static void resume_call(void *opaque)
{
    QueueCall *call = opaque;
    VirtIONetQueue *q = call->q;

    q->paused = false;
    queue_wake(q);
}

static void in_started_queues(VirtIONet *n, unsigned first, unsigned count,
                              AioFunc *fn)
{
    for (unsigned i = first; i < first + count; i++) {
        QueueCall call = { .q = get_queue(n, i) };

        if (call.q->started) {
            in_queue(fn, &call);
        }
    }
}

/*
 * Between the two, these queues' contexts leave them and the NIC alone; for a
 * queue that is not started they do so anyway.
 */
static void pause_queues(VirtIONet *n, unsigned first, unsigned count)
{
    in_started_queues(n, first, count, pause_call);
}

static void resume_queues(VirtIONet *n, unsigned first, unsigned count)
{
    in_started_queues(n, first, count, resume_call);
}

static void queue_stop_call(void *opaque)
{
    QueueCall *call = opaque;
    VirtIONetQueue *q = call->q;

    if (q->started) {
        queue_quiesce(q);
        aio_handler_delete(q->kick_handler);
        q->kick_handler = NULL;
        event_notifier_cleanup(&q->kick);
        q->started = false;
        virtio_net_stats_stop(q);
    }
    call->base = virtqueue_stop(q->vq);
}

static bool watch_kick(VirtIONetQueue *q, GError **errp)
{
    const AioHandlerOps *ops = is_tx(q->idx) ? &virtio_net_tx_kick_ops
                                             : &virtio_net_rx_kick_ops;
    void *opaque = is_tx(q->idx) ? (void *)tx_of(q) : (void *)rx_of(q);

    if (q->kick.fd < 0) {
        return true;
    }
    q->kick_handler = aio_handler_new(q->ctx, q->kick.fd, AIO_READ | AIO_EDGE,
                                      ops, opaque, errp);
    return q->kick_handler;
}

/*
 * More than PASS_PKTS makes a pass no cheaper, and others wait for its end.
 * Who asks for more gets what a ring and its refill hold.
 */
static unsigned pass_budget(const VirtIONetQueue *q)
{
    unsigned most = 2 * virtqueue_size(q->vq);
    unsigned burst = is_tx(q->idx) ? q->n->conf.tx_burst_pkts : 0;

    return MIN(burst ? burst : VIRTIO_NET_PASS_PKTS, most);
}

static void set_budget(VirtIONetQueue *q)
{
    if (is_tx(q->idx)) {
        tx_of(q)->budget_pkts = pass_budget(q);
    } else {
        rx_of(q)->budget_pkts = pass_budget(q);
    }
}

static void queue_start_call(void *opaque)
{
    QueueCall *call = opaque;
    VirtIONetQueue *q = call->q;
    VirtQueueSetup setup = *call->setup;

    queue_stop_call(call);
    event_notifier_init_fd(&q->kick, call->fd);
    setup.features = q->n->features;
    call->flag = virtqueue_start(q->vq, &setup, call->map, call->errp) &&
                 watch_kick(q, call->errp);
    if (!call->flag) {
        event_notifier_cleanup(&q->kick);
        virtqueue_stop(q->vq);
        return;
    }
    set_budget(q);
    q->started = true;
    virtio_net_stats_start(q, aio_now_ns(q->ctx));
    queue_wake(q);
}

static bool any_started(const VirtIONet *n)
{
    for (unsigned i = 0; i < queue_count(n); i++) {
        if (get_queue(n, i)->started) {
            return true;
        }
    }
    return false;
}

bool virtio_net_queue_start(VirtIONet *n, unsigned idx,
                            const VirtQueueSetup *setup, GuestMap *map,
                            int kick_fd, GError **errp)
{
    QueueCall call = { .q = get_queue(n, idx), .setup = setup, .map = map,
                       .fd = kick_fd, .errp = errp };

    if (!any_started(n)) {
        __atomic_store_n(&n->broken, false, __ATOMIC_RELAXED);
    }
    in_queue(queue_start_call, &call);
    return call.flag;
}

uint16_t virtio_net_queue_stop(VirtIONet *n, unsigned idx)
{
    QueueCall call = { .q = get_queue(n, idx) };

    in_queue(queue_stop_call, &call);
    return call.base;
}

bool virtio_net_queue_started(const VirtIONet *n, unsigned idx)
{
    return get_queue(n, idx)->started;
}

bool virtio_net_queue_broken(const VirtIONet *n, unsigned idx)
{
    return get_queue(n, idx)->started &&
           __atomic_load_n(&n->broken, __ATOMIC_RELAXED);
}

/* The backend has one switch for a pair; it follows the receive ring's. */
void virtio_net_queue_enable(VirtIONet *n, unsigned idx, bool enabled)
{
    VirtIONetQueue *q = get_queue(n, idx);
    unsigned first = idx & ~1u;

    if (q->enabled == enabled) {
        return;
    }
    pause_queues(n, first, 2);
    q->enabled = enabled;
    if (!is_tx(idx)) {
        net_queue_set_enabled(q->nq, enabled);
    }
    resume_queues(n, first, 2);
}

static void set_call_call(void *opaque)
{
    QueueCall *call = opaque;
    VirtIONetQueue *q = call->q;

    event_notifier_cleanup(&q->call);
    event_notifier_init_fd(&q->call, call->fd);
    if (q->started) {
        event_notifier_set(&q->call);
    }
}

void virtio_net_queue_set_call(VirtIONet *n, unsigned idx, int fd)
{
    QueueCall call = { .q = get_queue(n, idx), .fd = fd };

    in_queue(set_call_call, &call);
}

static void set_err_call(void *opaque)
{
    QueueCall *call = opaque;

    event_notifier_cleanup(&call->q->err);
    event_notifier_init_fd(&call->q->err, call->fd);
}

void virtio_net_queue_set_err(VirtIONet *n, unsigned idx, int fd)
{
    QueueCall call = { .q = get_queue(n, idx), .fd = fd };

    in_queue(set_err_call, &call);
}

static void remap_call(void *opaque)
{
    QueueCall *call = opaque;
    VirtIONetQueue *q = call->q;
    g_autoptr(GError) err = NULL;

    if (!q->started) {
        return;
    }
    queue_quiesce(q);
    /* A ring outside of the new map breaks, which reports it */
    virtqueue_remap(q->vq, call->map, &err);
    queue_wake(q);
}

void virtio_net_set_map(VirtIONet *n, GuestMap *map)
{
    in_queues(n, 0, queue_count(n), remap_call, (QueueCall) { .map = map });
}

/* ---- negotiation ----------------------------------------------------- */

/* A frame that waits with a header of another length is of no use. */
static void forget_frame_call(void *opaque)
{
    QueueCall *call = opaque;

    rx_of(call->q)->pending_bytes = 0;
}

static void forget_frames(VirtIONet *n)
{
    for (unsigned i = 0; i < n->max_pairs; i++) {
        QueueCall call = { .q = &n->pairs[i]->rx.q };

        in_queue(forget_frame_call, &call);
    }
}

static void change_features(VirtIONet *n, uint64_t features)
{
    unsigned hdr_len = virtio_net_hdr_len(features);
    bool vnet = net_backend_caps(n->nb)->vnet_hdr;

    pause_queues(n, 0, queue_count(n));
    if (hdr_len != n->hdr_len) {
        forget_frames(n);
    }
    n->features = features;
    n->hdr_len = hdr_len;
    net_backend_set_vnet_hdr_len(n->nb, vnet ? hdr_len : 0);
    if (vnet) {
        net_backend_set_offload(n->nb, virtio_net_guest_offloads(features));
    }
    resume_queues(n, 0, queue_count(n));
}

bool virtio_net_set_features(VirtIONet *n, uint64_t features, GError **errp)
{
    if (features & ~n->offered) {
        vnet_set_error(errp, "NIC %s: features 0x%" G_GINT64_MODIFIER "x were "
                       "not offered", n->conf.id, features & ~n->offered);
        return false;
    }
    if (features != n->features) {
        change_features(n, features);
    }
    return true;
}

uint64_t virtio_net_offered_features(const VirtIONet *n)
{
    return n->offered;
}

bool virtio_net_set_mtu(VirtIONet *n, unsigned mtu)
{
    return mtu >= VIRTIO_NET_MIN_MTU && mtu <= UINT16_MAX;
}

void virtio_net_reset(VirtIONet *n)
{
    for (unsigned i = 0; i < queue_count(n); i++) {
        virtio_net_queue_stop(n, i);
    }
    for (unsigned i = 0; i < queue_count(n); i++) {
        virtio_net_queue_enable(n, i, false);
    }
    forget_frames(n);
    change_features(n, 0);
}

/* ---- network --------------------------------------------------------- */

void virtio_net_set_link(VirtIONet *n, bool up)
{
    if (n->link_up == up) {
        return;
    }
    pause_queues(n, 0, queue_count(n));
    n->link_up = up;
    resume_queues(n, 0, queue_count(n));
}

bool virtio_net_link_up(const VirtIONet *n)
{
    return n->link_up &&
           __atomic_load_n(&n->pairs[0]->rx.q.carrier, __ATOMIC_RELAXED);
}

typedef struct RarpFrame {
    struct ether_header eth;
    uint16_t hw_type, proto_type;
    uint8_t hw_len, proto_len;
    uint16_t op;
    uint8_t src_mac[6], src_ip[4], dst_mac[6], dst_ip[4];
    uint8_t pad[18];            /* to the 60 bytes of a shortest frame */
} __attribute__((packed)) RarpFrame;

G_STATIC_ASSERT(sizeof(RarpFrame) == ETH_ZLEN);

typedef struct AnnounceCall {
    NetQueue *nq;
    RarpFrame frame;
} AnnounceCall;

static void announce_call(void *opaque)
{
    AnnounceCall *call = opaque;

    net_inject(call->nq, &call->frame, sizeof(call->frame));
}

void virtio_net_announce(VirtIONet *n, const uint8_t mac[6])
{
    VirtIONetQueue *q = get_queue(n, 1);
    /* RFC 903: a reverse request; switches learn the source address */
    AnnounceCall call = {
        .nq = q->nq,
        .frame = {
            .eth.ether_type = GUINT16_TO_BE(ETHERTYPE_REVARP),
            .hw_type = GUINT16_TO_BE(1),
            .proto_type = GUINT16_TO_BE(ETHERTYPE_IP),
            .hw_len = ETH_ALEN,
            .proto_len = 4,
            .op = GUINT16_TO_BE(3),
        },
    };

    memset(call.frame.eth.ether_dhost, 0xff, ETH_ALEN);
    memcpy(call.frame.eth.ether_shost, mac, ETH_ALEN);
    memcpy(call.frame.src_mac, mac, ETH_ALEN);
    memcpy(call.frame.dst_mac, mac, ETH_ALEN);
    if (n->link_up) {
        wait_in(q, announce_call, &call);
    }
}

/* ---- the backend's callbacks ----------------------------------------- */

static void nic_rx_ready(void *opaque)
{
    VirtIONetPair *pair = opaque;

    virtio_net_rx_ready(&pair->rx);
}

static void nic_tx_ready(void *opaque)
{
    VirtIONetPair *pair = opaque;

    virtio_net_tx_wake(&pair->tx, TX_WAKE_RESUME);
}

static void nic_tx_complete(void *opaque, void *cookie, NetTxAnswer answer)
{
    VirtIONetPair *pair = opaque;

    virtio_net_tx_complete(&pair->tx, cookie, answer);
}

static void set_carrier(VirtIONetQueue *q, bool up)
{
    __atomic_store_n(&q->carrier, up, __ATOMIC_RELAXED);
    if (q->started && !q->paused) {
        queue_wake(q);
    }
}

/* Tx context.  A backend that has gone does not finish what it holds. */
static void tx_carrier_bh(void *opaque)
{
    VirtIONetPair *pair = opaque;
    VirtIONetQueue *q = &pair->tx.q;

    if (q->started && !q->paused) {
        queue_quiesce(q);
    }
    set_carrier(q, __atomic_load_n(&pair->rx.q.carrier, __ATOMIC_RELAXED));
}

/* Rx context. */
static void nic_link_changed(void *opaque, bool up)
{
    VirtIONetPair *pair = opaque;

    set_carrier(&pair->rx.q, up);
    aio_bh_schedule(pair->tx_carrier_bh);
}

static const NetNicOps nic_ops = {
    .rx_ready = nic_rx_ready,
    .tx_ready = nic_tx_ready,
    .tx_complete = nic_tx_complete,
    .link_changed = nic_link_changed,
};

/* ---- life ------------------------------------------------------------ */

static void queue_init(VirtIONet *n, VirtIONetQueue *q, unsigned idx,
                       AioContext *ctx, unsigned size)
{
    g_autofree char *name = g_strdup_printf("%s.%u", n->conf.id, idx);

    q->n = n;
    q->idx = idx;
    q->ctx = ctx;
    q->carrier = true;
    q->nq = net_backend_queue(n->nb, idx / 2);
    q->vq = virtqueue_new(name, size, queue_broken, q);
    event_notifier_init_fd(&q->kick, -1);
    event_notifier_init_fd(&q->call, -1);
    event_notifier_init_fd(&q->err, -1);
    q->stats = virtio_net_stats_new();
    virtio_net_coalesce_init(&q->coalesce, ctx, q->vq, queue_call,
                             queue_call_lapsed, q);
}

static VirtIONetPair *pair_new(VirtIONet *n, unsigned i)
{
    VirtIONetPair *pair = g_new0(VirtIONetPair, 1);
    const VirtIONetConf *conf = &n->conf;
    AioContext *tx_ctx = virtio_net_tx_context(n, i);

    queue_init(n, &pair->rx.q, 2 * i, n->ctx, conf->rx_queue_size);
    pair->rx.q.coalesce.limit_frames = conf->rx_coal_frames;
    pair->rx.q.coalesce.limit_ns = conf->rx_coal_usecs * NS_PER_US;
    virtio_net_rx_init(&pair->rx);

    queue_init(n, &pair->tx.q, 2 * i + 1, tx_ctx, conf->tx_queue_size);
    pair->tx.q.coalesce.may_be_patient = true;
    pair->tx.q.coalesce.limit_frames = conf->tx_coal_frames;
    pair->tx.q.coalesce.limit_bytes = conf->tx_coal_bytes;
    pair->tx.q.coalesce.limit_ns = conf->tx_coal_usecs * NS_PER_US;
    virtio_net_tx_init(&pair->tx);

    pair->tx_carrier_bh = aio_bh_new(tx_ctx, tx_carrier_bh, pair);
    net_queue_attach(pair->tx.q.nq, tx_ctx, n->ctx, &nic_ops, pair);
    return pair;
}

/* What a thread may still come by for is deleted in that thread. */
static void cleanup_call(void *opaque)
{
    QueueCall *call = opaque;
    VirtIONetQueue *q = call->q;

    if (is_tx(q->idx)) {
        virtio_net_tx_cleanup(tx_of(q));
        aio_bh_delete(q->n->pairs[q->idx / 2]->tx_carrier_bh);
    } else {
        virtio_net_rx_cleanup(rx_of(q));
    }
}

static void queue_cleanup(VirtIONetQueue *q)
{
    event_notifier_cleanup(&q->call);
    event_notifier_cleanup(&q->err);
    virtqueue_free(q->vq);
    virtio_net_stats_free(q->stats);
}

static void pair_free(VirtIONetPair *pair)
{
    queue_cleanup(&pair->tx.q);
    queue_cleanup(&pair->rx.q);
    g_free(pair);
}

static void free_pairs(VirtIONet *n)
{
    for (unsigned i = 0; i < n->max_pairs; i++) {
        net_queue_detach(n->pairs[i]->tx.q.nq);
    }
    in_queues(n, 0, queue_count(n), cleanup_call, (QueueCall) { 0 });
    virtio_net_threads_free(n);
    for (unsigned i = 0; i < n->max_pairs; i++) {
        pair_free(n->pairs[i]);
    }
    g_free(n->pairs);
}

VirtIONet *virtio_net_new(const VirtIONetConf *conf, NetBackend *nb,
                          AioContext *ctx, GError **errp)
{
    const NetCaps *caps = net_backend_caps(nb);
    VirtIONet *n;

    if (!net_backend_claim(nb)) {
        vnet_set_error(errp, "-device virtio-net-pci: netdev '%s' is used by "
                       "another NIC; give each NIC a -netdev of its own",
                       net_backend_id(nb));
        return NULL;
    }
    n = g_new0(VirtIONet, 1);
    n->conf = *conf;
    n->nb = nb;
    n->ctx = ctx;
    n->max_pairs = caps->queues;
    n->offered = virtio_net_compute_features(conf, caps, n->max_pairs);
    n->hdr_len = virtio_net_hdr_len(0);
    n->link_up = true;
    if (!virtio_net_threads_new(n, errp)) {
        g_free(n);
        return NULL;
    }
    n->pairs = g_new0(VirtIONetPair *, n->max_pairs);
    for (unsigned i = 0; i < n->max_pairs; i++) {
        n->pairs[i] = pair_new(n, i);
    }
    virtio_net_reset(n);
    return n;
}

void virtio_net_free(VirtIONet *n)
{
    virtio_net_reset(n);
    free_pairs(n);
    g_free(n);
}

const char *virtio_net_id(const VirtIONet *n)
{
    return n->conf.id;
}

NetBackend *virtio_net_backend(const VirtIONet *n)
{
    return n->nb;
}

unsigned virtio_net_max_pairs(const VirtIONet *n)
{
    return n->max_pairs;
}

/* ---- counters -------------------------------------------------------- */

void virtio_net_queue_stats(const VirtIONet *n, unsigned idx,
                            VirtIONetQueueStats *out)
{
    virtio_net_stats_read(get_queue(n, idx)->stats, out);
}

void virtio_net_queue_stats_base(const VirtIONet *n, unsigned idx,
                                 VirtIONetQueueStats *out)
{
    virtio_net_stats_read_base(get_queue(n, idx)->stats, out);
}

void virtio_net_reset_stats(VirtIONet *n)
{
    for (unsigned i = 0; i < queue_count(n); i++) {
        virtio_net_stats_reset(get_queue(n, i)->stats);
    }
}
