/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Transmit: from the ring to the backend.
 *
 * One machine (states and their meaning: virtio-net-internal.h), woken by
 * virtio_net_tx_wake(), whatever the policy.  A pass, in the bottom half:
 *
 *   park; then batch by batch, up to the budget:
 *     pop -> check headers -> send -> fill -> publish -> call or hold it
 *   the pass ends with a reason, the policy turns the reason into what to do
 *   next, and arming the ring re-checks it.
 *
 * Nothing is lost on the way: what a full backend did not take goes back to
 * the ring un-popped, in order; what it holds (PENDING) stays in flight until
 * it completes or is cancelled by a quiesce; a packet that the host or we
 * refuse is completed like any other and counted.
 */
#include <string.h>

#include "hw/net/virtio-net-internal.h"
#include "util/iov.h"

/* The longest packet, with its header, that is_lone() looks at. */
#define LONE_BYTES 256

/* ---- one batch ---------------------------------------------------------- */

static void copy_front(void *dst, const struct iovec *iov, unsigned cnt,
                       size_t bytes)
{
    if (iov[0].iov_len >= bytes) {
        memcpy(dst, iov[0].iov_base, bytes);
    } else {
        iov_to_buf(iov, cnt, 0, dst, bytes);
    }
}

/*
 * Put our copy of the header in front of the frame, in the slot the driver's
 * header took or in the spare one before it.
 */
static void prepend_hdr(struct iovec **iov, unsigned *cnt, void *hdr,
                        unsigned hdr_len)
{
    (*iov)--;
    (*cnt)++;
    (*iov)->iov_base = hdr;
    (*iov)->iov_len = hdr_len;
}

/* More pieces than a writev takes: join them. False: the bounce is taken. */
static bool linearise(VirtIONetTx *tx, VirtQueueElem *elem,
                      struct iovec *iov, unsigned *cnt, size_t bytes)
{
    if (tx->bounced) {
        return false;
    }
    tx->bounced = elem;
    iov_to_buf(iov, *cnt, 0, tx->bounce, bytes);
    *iov = (struct iovec) { tx->bounce, bytes };
    *cnt = 1;
    return true;
}

typedef enum TxPrepared {
    TX_PREPARED,
    TX_REFUSED,             /* complete it unsent */
    TX_NEXT_BATCH,          /* the bounce buffer is taken: not in this one */
} TxPrepared;

/* Check a chain and describe it as a packet. */
static TxPrepared prepare(VirtIONetTx *tx, VirtQueueElem *elem, NetPacket *pkt)
{
    VirtIONet *n = tx->q.n;
    unsigned hdr_len = n->hdr_len;
    unsigned skip = net_backend_caps(n->nb)->vnet_hdr ? 0 : hdr_len;
    TxSlot *slot = &tx->slots[virtqueue_elem_slot(tx->q.vq, elem)];
    struct iovec *iov = elem->iov;
    unsigned cnt = elem->out_num;
    uint32_t frame_bytes = elem->out_bytes - hdr_len;

    if (elem->out_bytes <= hdr_len || frame_bytes > NET_MAX_FRAME_BYTES) {
        return TX_REFUSED;
    }
    copy_front(slot->bytes, iov, cnt, hdr_len);
    if (!virtio_net_hdr_check_tx(&slot->hdr, frame_bytes, n->features)) {
        return TX_REFUSED;
    }
    iov_discard_front(&iov, &cnt, hdr_len);
    if (frame_bytes <= VIRTIO_NET_TX_COPY_BYTES) {
        copy_front(slot->bytes + hdr_len, iov, cnt, frame_bytes);
        *iov = (struct iovec) { slot->bytes + skip,
                                hdr_len + frame_bytes - skip };
        cnt = 1;
    } else if (cnt >= VIRTIO_NET_IOV_MAX &&
               !linearise(tx, elem, iov, &cnt, frame_bytes)) {
        return TX_NEXT_BATCH;
    } else if (!skip) {
        prepend_hdr(&iov, &cnt, slot->bytes, hdr_len);
    }
    *pkt = (NetPacket) {
        .iov = iov,
        .iovcnt = cnt,
        .bytes = frame_bytes + hdr_len - skip,
        .cookie = elem,
    };
    return TX_PREPARED;
}

/*
 * Describe up to @n popped chains; @is_packet tells for each whether it
 * became the next packet.  Returns how many chains this batch goes on with.
 */
static unsigned prepare_batch(VirtIONetTx *tx, unsigned n, bool *is_packet,
                              unsigned *packets)
{
    unsigned i;

    *packets = 0;
    for (i = 0; i < n; i++) {
        TxPrepared r = prepare(tx, tx->elems[i], &tx->pkts[*packets]);

        if (r == TX_NEXT_BATCH) {
            break;
        }
        is_packet[i] = r == TX_PREPARED;
        *packets += is_packet[i];
    }
    return i;
}

static void release_bounce(VirtIONetTx *tx, const VirtQueueElem *elem)
{
    if (tx->bounced == elem) {
        tx->bounced = NULL;
    }
}

static void complete_sent(VirtIONetTx *tx, VirtQueueElem *elem,
                          NetTxAnswer answer)
{
    release_bounce(tx, elem);
    if (answer == NET_TX_DROPPED) {
        virtio_net_stats_drop(&tx->q, VIRTIO_NET_DROP_HOST, 1);
    } else {
        virtio_net_stats_packet(tx->q.stats,
                                elem->out_bytes - tx->q.n->hdr_len);
    }
    virtqueue_fill(tx->q.vq, elem, 0);
}

/* Complete what was taken of @n chains; returns how many chains that is. */
static unsigned complete_batch(VirtIONetTx *tx, unsigned n,
                               const bool *is_packet, unsigned taken)
{
    unsigned i, p = 0;

    for (i = 0; i < n; i++) {
        if (!is_packet[i]) {
            virtio_net_stats_drop(&tx->q, VIRTIO_NET_DROP_GUEST, 1);
            virtqueue_fill(tx->q.vq, tx->elems[i], 0);
            continue;
        }
        if (p == taken) {
            break;
        }
        if (tx->pkts[p].answer != NET_TX_PENDING) {
            complete_sent(tx, tx->elems[i], tx->pkts[p].answer);
        }
        p++;
    }
    return i;
}

static unsigned drop_batch(VirtIONetTx *tx, unsigned n)
{
    for (unsigned i = 0; i < n; i++) {
        virtqueue_fill(tx->q.vq, tx->elems[i], 0);
    }
    virtio_net_stats_drop(&tx->q, VIRTIO_NET_DROP_DOWN, n);
    return n;
}

static void give_back(VirtIONetTx *tx, unsigned from, unsigned to)
{
    for (unsigned i = from; i < to; i++) {
        release_bounce(tx, tx->elems[i]);
    }
    virtqueue_unpop(tx->q.vq, to - from);
}

/*
 * Send @n popped chains.  Returns how many are done with; the rest has gone
 * back.  @full: the backend would take no more, or holds the bounce.
 */
static unsigned send_batch(VirtIONetTx *tx, unsigned n, bool *full)
{
    bool is_packet[VIRTIO_NET_BATCH];
    unsigned packets, taken, go, done;

    go = prepare_batch(tx, n, is_packet, &packets);
    taken = packets ? net_send_batch(tx->q.nq, tx->pkts, packets) : 0;
    *full = taken < packets || !go;
    done = complete_batch(tx, go, is_packet, taken);
    give_back(tx, done, n);
    return done;
}

static void publish(VirtIONetTx *tx, size_t bytes)
{
    unsigned published = virtqueue_publish(tx->q.vq);

    if (published) {
        virtio_net_stats_published(&tx->q, virtio_net_coalesce_published(
            &tx->q.coalesce, published, bytes));
    }
}

/* ---- a pass ------------------------------------------------------------- */

/* Nothing was popped: is the ring empty, or can no more be in flight? */
static TxStop stop_reason(VirtIONetTx *tx)
{
    if (virtqueue_broken(tx->q.vq)) {
        return TX_STOP_GUEST_ERROR;
    }
    if (virtqueue_in_flight(tx->q.vq) && virtqueue_avail_moved(tx->q.vq)) {
        return TX_STOP_BACKEND_FULL;
    }
    return TX_STOP_RING_EMPTY;
}

/*
 * May this packet, done with, be all its sender has?  A request, an answer, a
 * ping; of TCP we cannot tell, for streams have short segments, too.
 */
static bool is_lone(const VirtIONetTx *tx, const VirtQueueElem *elem)
{
    return elem->out_bytes <= LONE_BYTES &&
        !virtio_net_hdr_may_be_tcp(
            &tx->slots[virtqueue_elem_slot(tx->q.vq, elem)].hdr,
            tx->q.n->features);
}

/* Returns their bytes. */
static size_t count_batch(const VirtIONetTx *tx, TxPass *pass, unsigned n)
{
    VirtQueueElem *const *elems = tx->elems;
    size_t bytes = 0;

    for (unsigned i = 0; i < n; i++) {
        bytes += elems[i]->out_bytes;
        pass->descs += elems[i]->ndescs;
        pass->lone += is_lone(tx, elems[i]);
    }
    pass->packets += n;
    pass->bytes += bytes;
    return bytes;
}

static TxStop run_batches(VirtIONetTx *tx, TxPass *pass)
{
    bool live = virtio_net_queue_live(&tx->q);

    while (pass->packets < tx->budget_pkts &&
           pass->bytes < VIRTIO_NET_PASS_BYTES) {
        unsigned max = MIN(VIRTIO_NET_BATCH, tx->budget_pkts - pass->packets);
        unsigned n = virtqueue_pop_batch(tx->q.vq, tx->elems, max,
                                         VIRTIO_NET_PASS_BYTES - pass->bytes);
        unsigned done;
        bool full = false;

        if (!n) {
            return stop_reason(tx);
        }
        done = live ? send_batch(tx, n, &full) : drop_batch(tx, n);
        publish(tx, count_batch(tx, pass, done));
        if (full) {
            return TX_STOP_BACKEND_FULL;
        }
        if (virtio_net_main_waits(tx->q.n)) {
            break;
        }
    }
    return TX_STOP_BUDGET;
}

static TxPass run_pass(VirtIONetTx *tx)
{
    TxPass pass = { 0 };

    pass.reason = run_batches(tx, &pass);
    return pass;
}

/* ---- the machine ----------------------------------------------------- */

/* Pass upon pass: whoever shares the context has his turn in between. */
static void schedule(VirtIONetTx *tx)
{
    aio_timer_del(&tx->deadline);
    if (tx->state == TX_STATE_FLUSHING) {
        aio_bh_schedule_behind(tx->bh);
    } else {
        aio_bh_schedule(tx->bh);
    }
    tx->state = TX_STATE_SCHEDULED;
}

static void hold(VirtIONetTx *tx, int64_t deadline_ns)
{
    virtio_net_stats_hold(&tx->q, deadline_ns);
    virtqueue_park(tx->q.vq);
    tx->state = TX_STATE_HOLDING;
    aio_timer_mod_ns(&tx->deadline, deadline_ns);
}

static void apply_work(VirtIONetTx *tx)
{
    int64_t now_ns = aio_now_ns(tx->q.ctx);
    TxDecision d = tx_policy_work(&tx->policy, now_ns);

    virtio_net_stats_work(&tx->q, now_ns);
    if (d.action == TX_HOLD) {
        hold(tx, d.deadline_ns);
    } else {
        schedule(tx);
    }
}

/*
 * Ask for a kick at the window's last packet.  What came while we were not
 * looking counts: a full window is as good as a kick, part of one is what the
 * deadline is for.
 */
static void arm(VirtIONetTx *tx, unsigned window, int64_t deadline_ns)
{
    VirtQueueArm outcome = virtqueue_arm(tx->q.vq, window);

    virtio_net_stats_arm(&tx->q, window, outcome);
    if (outcome == VQ_ARM_CROSSED) {
        apply_work(tx);
    } else if (window > 1) {
        tx->state = TX_STATE_ARMED;
        aio_timer_mod_ns(&tx->deadline, deadline_ns);
        tx_policy_armed(&tx->policy);
    } else {
        tx->state = TX_STATE_IDLE;
    }
}

static void apply_flushed(VirtIONetTx *tx, int64_t now_ns, const TxPass *pass)
{
    TxDecision d = tx_policy_flushed(&tx->policy, now_ns, pass);

    switch (d.action) {
    case TX_FLUSH:
        schedule(tx);
        return;
    case TX_HOLD:
        hold(tx, d.deadline_ns);
        return;
    case TX_ARM:
        arm(tx, d.window, d.deadline_ns);
    }
}

/* The policy learns from the pass; now and then it looks at receive, too. */
static void teach_policy(VirtIONetTx *tx, int64_t now_ns, const TxPass *pass)
{
    if (tx_policy_note(&tx->policy, now_ns, pass)) {
        const VirtIONetQueue *rx = &tx->q.n->pairs[tx->q.idx / 2]->rx.q;
        uint64_t received = __atomic_load_n(&rx->stats->count.bytes,
                                            __ATOMIC_RELAXED);

        tx_policy_judge(&tx->policy, now_ns, received);
    }
}

static void note_pass(VirtIONetTx *tx, int64_t now_ns, const TxPass *pass)
{
    teach_policy(tx, now_ns, pass);
    virtio_net_stats_flush_end(&tx->q, pass->packets, pass->bytes,
                               pass->reason);
    virtio_net_stats_waited(&tx->q, now_ns, pass->packets, pass->reason);
    virtio_net_stats_phase(&tx->q, tx_policy_phase(&tx->policy));
}

static void virtio_net_tx_flush_bh(void *opaque)
{
    VirtIONetTx *tx = opaque;
    int64_t now_ns;
    TxPass pass;

    if (tx->state != TX_STATE_SCHEDULED) {
        return;
    }
    if (!virtio_net_queue_usable(&tx->q)) {
        virtio_net_stats_flush_stopped(&tx->q);
        tx->state = TX_STATE_STOPPED;
        return;
    }
    tx->state = TX_STATE_FLUSHING;
    virtio_net_stats_flush_begin(&tx->q);
    virtqueue_park(tx->q.vq);
    pass = run_pass(tx);
    now_ns = aio_now_ns(tx->q.ctx);
    note_pass(tx, now_ns, &pass);
    switch (pass.reason) {
    case TX_STOP_BACKEND_FULL:
        tx->state = TX_STATE_BLOCKED;
        return;
    case TX_STOP_GUEST_ERROR:
        tx->state = TX_STATE_STOPPED;
        return;
    case TX_STOP_RING_EMPTY:
    case TX_STOP_BUDGET:
        apply_flushed(tx, now_ns, &pass);
    }
}

/* HOLDING or ARMED, and the time has come. */
static void deadline(VirtIONetTx *tx)
{
    int64_t late_ns = aio_timer_late_ns(&tx->deadline);
    bool armed = tx->state == TX_STATE_ARMED;

    virtio_net_stats_fire(&tx->q, armed, late_ns);
    tx_policy_fired(&tx->policy, late_ns, armed);
    schedule(tx);
}

static void start(VirtIONetTx *tx)
{
    if (!tx->q.started || tx->state == TX_STATE_FLUSHING) {
        return;
    }
    if (tx->state == TX_STATE_STOPPED) {
        tx_policy_start(&tx->policy, virtqueue_size(tx->q.vq), tx->group);
    }
    schedule(tx);
}

void virtio_net_tx_wake(VirtIONetTx *tx, TxWake why)
{
    switch (why) {
    case TX_WAKE_START:
        start(tx);
        return;
    case TX_WAKE_KICK:
    case TX_WAKE_POLL:
        if (tx->state == TX_STATE_IDLE || tx->state == TX_STATE_ARMED ||
            tx->state == TX_STATE_POLLING) {
            apply_work(tx);
        }
        return;
    case TX_WAKE_DEADLINE:
        if (tx->state == TX_STATE_HOLDING || tx->state == TX_STATE_ARMED) {
            deadline(tx);
        }
        return;
    case TX_WAKE_RESUME:
        if (tx->state == TX_STATE_BLOCKED) {
            virtio_net_stats_resume(&tx->q);
            schedule(tx);
        }
    }
}

void virtio_net_tx_complete(VirtIONetTx *tx, VirtQueueElem *elem,
                            NetTxAnswer answer)
{
    size_t bytes = elem->out_bytes;

    complete_sent(tx, elem, answer);
    publish(tx, bytes);
    virtio_net_tx_wake(tx, TX_WAKE_RESUME);
}

void virtio_net_tx_quiesce(VirtIONetTx *tx)
{
    if (tx->state == TX_STATE_SCHEDULED) {
        virtio_net_stats_flush_stopped(&tx->q);
    }
    tx->state = TX_STATE_STOPPED;
    aio_bh_cancel(tx->bh);
    aio_timer_del(&tx->deadline);
    net_cancel_tx(tx->q.nq);
    virtio_net_coalesce_flush(&tx->q.coalesce);
    tx_policy_stop(&tx->policy);
    /*
     * Chains may wait now that the driver owes no kick for.  Whoever serves
     * the ring next polls it at its start; a kick from us would not reach
     * it, but the front-end's own handler of the eventfd.
     */
    virtqueue_disarm(tx->q.vq);
}

/* ---- wake-up sources ------------------------------------------------- */

static void tx_kick(void *opaque)
{
    VirtIONetTx *tx = opaque;

    virtio_net_stats_kick(&tx->q);
    virtio_net_tx_wake(tx, TX_WAKE_KICK);
}

static void tx_deadline(void *opaque)
{
    virtio_net_tx_wake(opaque, TX_WAKE_DEADLINE);
}

static void tx_poll_begin(void *opaque)
{
    VirtIONetTx *tx = opaque;

    if (tx->state == TX_STATE_IDLE) {
        virtqueue_park(tx->q.vq);
        tx->state = TX_STATE_POLLING;
    }
}

static bool tx_poll(void *opaque)
{
    VirtIONetTx *tx = opaque;

    if (tx->state != TX_STATE_POLLING || !virtqueue_avail_moved(tx->q.vq)) {
        return false;
    }
    virtio_net_stats_poll(&tx->q, true);
    virtio_net_tx_wake(tx, TX_WAKE_POLL);
    return true;
}

static bool tx_poll_end(void *opaque)
{
    VirtIONetTx *tx = opaque;

    if (tx->state != TX_STATE_POLLING) {
        return false;
    }
    virtio_net_stats_poll(&tx->q, false);
    arm(tx, 1, INT64_MAX);
    return tx->state != TX_STATE_IDLE;
}

/* The eventfd is edge-triggered and never read: its count means nothing. */
const AioHandlerOps virtio_net_tx_kick_ops = {
    .readable = tx_kick,
    .poll = tx_poll,
    .poll_begin = tx_poll_begin,
    .poll_end = tx_poll_end,
};

void virtio_net_tx_init(VirtIONetTx *tx)
{
    const VirtIONetConf *conf = &tx->q.n->conf;

    tx->state = TX_STATE_STOPPED;
    tx_policy_init(&tx->policy, conf, aio_context_polls(tx->q.ctx));
    tx->slots = g_new0(TxSlot, VIRTQUEUE_MAX_SIZE);
    tx->group = tx_group_get(tx->q.ctx);
    tx->bh = aio_bh_new(tx->q.ctx, virtio_net_tx_flush_bh, tx);
    aio_timer_init(&tx->deadline, tx->q.ctx, tx_deadline, tx);
}

void virtio_net_tx_cleanup(VirtIONetTx *tx)
{
    aio_bh_delete(tx->bh);
    tx_group_put(tx->group);
    g_free(tx->slots);
}
