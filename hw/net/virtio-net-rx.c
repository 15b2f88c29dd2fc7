/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Receive: from the backend into the driver's buffers.
 *
 * A pass, when the backend has traffic or the driver has added buffers:
 * frame by frame, top up the window of popped buffers, let the backend write
 * straight into it, fill what the frame used; publish every batch; then stop
 * at the budget (and go on behind the context's other work), at an empty
 * backend, or without buffers (STARVED: the backend is told to hold its
 * traffic, the ring is armed).
 *
 * How much room a frame is offered follows the largest frames of late, so
 * that a small frame does not carry a gather list for 64 KiB around.  The
 * gather list always ends in the spill, big enough for any frame: one that
 * outgrew its room continues from there.  A frame for which there are too few
 * buffers waits in the spill, whole, and keeps its place in the order; a
 * quiesce takes nothing from it.
 *
 * Without MRG_RXBUF a frame has to fit one chain; one that does not is
 * dropped and counted.  So is one for which more chains would have to be in
 * flight than the ring has descriptors for, or their gather lists room.
 */
#include <string.h>

#include "hw/net/virtio-net-internal.h"
#include "util/iov.h"

/*
 * Frames between two looks at the largest: long enough for a window to hold
 * through a mix of data and acknowledgements, short enough to shrink within
 * a few ms of a bulk transfer's end.
 */
#define RX_ROUND_PKTS 64

/* First guess of a frame's size: an Ethernet frame with its headers. */
#define RX_MIN_ROOM 2048

/*
 * Published at least this often within a pass, so that the guest works on
 * the first frames while we read the next: packets, and one full-size GSO
 * frame in bytes.
 */
#define RX_PUBLISH_PKTS  32
#define RX_PUBLISH_BYTES 65536

typedef enum RxStep {
    RX_FRAME,               /* one frame is in the ring */
    RX_NOTHING,             /* one frame was consumed without result */
    RX_EMPTY,               /* the backend has no more */
    RX_NO_BUFFERS,
    RX_BROKEN,
} RxStep;

static bool mergeable(const VirtIONetRx *rx)
{
    return rx->q.n->features & (1ULL << VIRTIO_NET_F_MRG_RXBUF);
}

static bool has_vnet(const VirtIONetRx *rx)
{
    return net_backend_caps(rx->q.n->nb)->vnet_hdr;
}

/* ---- the window ------------------------------------------------------ */

static unsigned win_count(const VirtIONetRx *rx)
{
    return rx->win_tail - rx->win_head;
}

static void win_reset(VirtIONetRx *rx)
{
    rx->win_head = 0;
    rx->win_tail = 0;
    rx->win_bytes = 0;
}

static void win_unpop(VirtIONetRx *rx)
{
    virtqueue_unpop(rx->q.vq, win_count(rx));
    win_reset(rx);
}

static void win_compact(VirtIONetRx *rx)
{
    unsigned count = win_count(rx);

    memmove(rx->win, rx->win + rx->win_head, count * sizeof(rx->win[0]));
    rx->win_head = 0;
    rx->win_tail = count;
}

static const char *check_buffer(const VirtIONetRx *rx,
                                const VirtQueueElem *elem)
{
    if (elem->in_num == 0) {
        return "receive buffer that is not writable";
    }
    /* virtio 1.3, 5.1.6.3.1: each buffer takes at least the header */
    if (elem->in_bytes < rx->q.n->hdr_len) {
        return "receive buffer shorter than a header";
    }
    return NULL;
}

/* The buffers just popped behind the tail are in the window, good or bad. */
static bool win_accept(VirtIONetRx *rx, unsigned popped)
{
    const char *why = NULL;

    for (unsigned i = 0; i < popped; i++) {
        VirtQueueElem *elem = rx->win[rx->win_tail++];

        rx->win_bytes += elem->in_bytes;
        why = why ? why : check_buffer(rx, elem);
    }
    if (why) {
        virtqueue_break(rx->q.vq, why);
    }
    return !why;
}

/*
 * Pop until the window has room for @bytes, or one chain without mergeable
 * buffers, as far as there are buffers.
 */
static void win_top_up(VirtIONetRx *rx, size_t bytes)
{
    size_t want = mergeable(rx) ? bytes : 1;

    if (rx->win_bytes >= want) {
        return;
    }
    if (rx->win_head) {
        win_compact(rx);
    }
    while (rx->win_bytes < want) {
        unsigned room = G_N_ELEMENTS(rx->win) - rx->win_tail;
        unsigned max = mergeable(rx) ? MIN(VIRTIO_NET_BATCH, room) : 1;
        unsigned n = virtqueue_pop_batch(rx->q.vq, rx->win + rx->win_tail,
                                         max, want - rx->win_bytes);

        if (!n || !win_accept(rx, n)) {
            return;
        }
    }
}

/* ---- one frame ------------------------------------------------------- */

/* The driver's header when the backend has none: no offload. */
static void write_plain_hdr(VirtIONetRx *rx, const VirtQueueElem *first)
{
    static const VirtIONetHdr zero;

    iov_from_buf(first->iov + first->out_num, first->in_num, 0, &zero,
                 rx->q.n->hdr_len);
}

/* virtio 1.3, 5.1.6.4: always there with a 12-byte header, 1 if not merged */
static void write_num_buffers(VirtIONetRx *rx, const VirtQueueElem *first,
                              uint16_t num)
{
    const struct iovec *iov = first->iov + first->out_num;
    size_t offset = offsetof(struct virtio_net_hdr_mrg_rxbuf, num_buffers);
    uint16_t le = GUINT16_TO_LE(num);

    if (rx->q.n->hdr_len < sizeof(struct virtio_net_hdr_mrg_rxbuf)) {
        return;
    }
    if (iov->iov_len >= sizeof(struct virtio_net_hdr_mrg_rxbuf)) {
        memcpy((char *)iov->iov_base + offset, &le, sizeof(le));
    } else {
        iov_from_buf(iov, first->in_num, offset, &le, sizeof(le));
    }
}

/* The backend's header asks for a checksum: see virtio_net_fix_dhcp_csum() */
static void repair_dhcp(VirtIONetRx *rx, const VirtQueueElem *first,
                        size_t total)
{
    const struct iovec *src = first->iov + first->out_num;
    unsigned hdr_len = rx->q.n->hdr_len, cnt;
    struct virtio_net_hdr hdr;
    struct iovec frame[4];

    if (total > first->in_bytes ||
        iov_to_buf(src, first->in_num, 0, &hdr, sizeof(hdr)) != sizeof(hdr) ||
        !(hdr.flags & VIRTIO_NET_HDR_F_NEEDS_CSUM) || hdr.gso_type) {
        return;
    }
    cnt = iov_copy(frame, G_N_ELEMENTS(frame), src, first->in_num, hdr_len,
                   total - hdr_len);
    if (iov_size(frame, cnt) < total - hdr_len) {
        return;
    }
    virtio_net_fix_dhcp_csum(&hdr, frame, cnt, total - hdr_len);
    iov_from_buf(src, first->in_num, 0, &hdr, sizeof(hdr));
}

/* A frame of @total bytes, header included, lies in the window: fill. */
static void win_commit(VirtIONetRx *rx, size_t total)
{
    VirtQueueElem *first = rx->win[rx->win_head];
    size_t left = total;
    unsigned used = 0;

    if (has_vnet(rx)) {
        repair_dhcp(rx, first, total);
    } else {
        write_plain_hdr(rx, first);
    }
    while (left) {
        VirtQueueElem *elem = rx->win[rx->win_head++];
        size_t len = MIN(left, elem->in_bytes);

        virtqueue_fill(rx->q.vq, elem, len);
        rx->win_bytes -= elem->in_bytes;
        left -= len;
        used++;
    }
    write_num_buffers(rx, first, used);
    virtio_net_stats_packet(rx->q.stats, total - rx->q.n->hdr_len);
}

static void note_size(VirtIONetRx *rx, size_t total)
{
    rx->largest = MAX(rx->largest, total);
    rx->room = MAX(rx->room, total);
    if (++rx->round_pkts == RX_ROUND_PKTS) {
        rx->room = MAX(rx->largest, RX_MIN_ROOM);
        rx->largest = 0;
        rx->round_pkts = 0;
    }
}

/*
 * Describe the window, up to the room a frame is offered, and the spill
 * behind it.  Returns the entries; @direct is set to the window's bytes.
 */
static unsigned describe_window(VirtIONetRx *rx, size_t *direct)
{
    unsigned cnt = 0;

    *direct = 0;
    for (unsigned i = rx->win_head; i < rx->win_tail; i++) {
        const VirtQueueElem *elem = rx->win[i];
        const struct iovec *iov = elem->iov + elem->out_num;
        unsigned left = NET_MAX_RECV_IOV - 1 - cnt;
        unsigned n = MIN(elem->in_num, left);

        memcpy(rx->iov + cnt, iov, n * sizeof(*iov));
        cnt += n;
        *direct += n == elem->in_num ? elem->in_bytes : iov_size(iov, n);
        if (n < elem->in_num || *direct >= rx->room || !mergeable(rx)) {
            break;
        }
    }
    if (*direct < sizeof(rx->spill)) {
        rx->iov[cnt++] = (struct iovec) { rx->spill + *direct,
                                          sizeof(rx->spill) - *direct };
    }
    return cnt;
}

/* The driver has no descriptor left for another buffer. */
static bool win_is_ring(VirtIONetRx *rx)
{
    unsigned ndescs = 0;

    for (unsigned i = rx->win_head; i < rx->win_tail; i++) {
        ndescs += rx->win[i]->ndescs;
    }
    return ndescs >= virtqueue_size(rx->q.vq);
}

/*
 * No buffer that the driver may add helps: the popped ones are all it can
 * have, or too scattered for more to be taken.  (What is filled and not yet
 * published makes room.)
 */
static bool win_is_full(VirtIONetRx *rx)
{
    return win_is_ring(rx) ||
           (win_count(rx) == virtqueue_in_flight(rx->q.vq) &&
            virtqueue_is_full(rx->q.vq));
}

static void drop_too_long(VirtIONetRx *rx)
{
    rx->pending_bytes = 0;
    virtio_net_stats_drop(&rx->q, VIRTIO_NET_DROP_BUFFERS, 1);
}

/* Copy the frame in the spill into buffers, if there are enough. */
static RxStep deliver_pending(VirtIONetRx *rx)
{
    size_t total = rx->pending_bytes, done = 0;

    win_top_up(rx, total);
    if (virtqueue_broken(rx->q.vq)) {
        return RX_BROKEN;
    }
    if (!win_count(rx)) {
        return RX_NO_BUFFERS;
    }
    if (rx->win_bytes < total) {
        if (mergeable(rx) && !win_is_full(rx)) {
            return RX_NO_BUFFERS;
        }
        drop_too_long(rx);
        return RX_NOTHING;
    }
    for (unsigned i = rx->win_head; done < total; i++) {
        const VirtQueueElem *elem = rx->win[i];

        done += iov_from_buf(elem->iov + elem->out_num, elem->in_num, 0,
                             rx->spill + done, total - done);
    }
    rx->pending_bytes = 0;
    win_commit(rx, total);
    return RX_FRAME;
}

/* The frame ran over: collect its front before its tail in the spill. */
static void collect_in_spill(VirtIONetRx *rx, size_t direct, size_t total)
{
    size_t done = 0;

    for (unsigned i = rx->win_head; done < direct; i++) {
        const VirtQueueElem *elem = rx->win[i];

        done += iov_to_buf(elem->iov + elem->out_num, elem->in_num, 0,
                           rx->spill + done, direct - done);
    }
    rx->pending_bytes = total;
}

static RxStep receive_frame(VirtIONetRx *rx)
{
    size_t skip = has_vnet(rx) ? 0 : rx->q.n->hdr_len;
    size_t direct, bytes, total;
    struct iovec *iov = rx->iov;
    unsigned cnt;

    win_top_up(rx, rx->room);
    if (virtqueue_broken(rx->q.vq)) {
        return RX_BROKEN;
    }
    if (!win_count(rx)) {
        return RX_NO_BUFFERS;
    }
    cnt = describe_window(rx, &direct);
    iov_discard_front(&iov, &cnt, skip);
    switch (net_recv(rx->q.nq, iov, cnt, &bytes)) {
    case NET_RECV_PACKET:
        break;
    case NET_RECV_DROPPED:
        virtio_net_stats_drop(&rx->q, VIRTIO_NET_DROP_HOST, 1);
        return RX_NOTHING;
    case NET_RECV_EMPTY:
    case NET_RECV_DEAD:
    default:
        return RX_EMPTY;
    }
    total = bytes + skip;
    note_size(rx, total);
    if (total <= direct) {
        win_commit(rx, total);
        return RX_FRAME;
    }
    collect_in_spill(rx, direct, total);
    return deliver_pending(rx);
}

/* ---- a pass ---------------------------------------------------------- */

static void publish(VirtIONetRx *rx, size_t bytes)
{
    unsigned published = virtqueue_publish(rx->q.vq);

    if (published) {
        virtio_net_stats_published(&rx->q, virtio_net_coalesce_published(
            &rx->q.coalesce, published, bytes));
    }
}

/*
 * Frames until the step that ends the pass, or the budget (RX_FRAME).
 * Frames that come to nothing count as well: they are work.
 */
static RxStep run_pass(VirtIONetRx *rx)
{
    const uint64_t *bytes = &rx->q.stats->count.bytes;
    uint64_t start = *bytes, published = start;
    RxStep step = RX_FRAME;

    for (unsigned i = 1; i <= rx->budget_pkts &&
         *bytes - start < VIRTIO_NET_PASS_BYTES; i++) {
        step = rx->pending_bytes ? deliver_pending(rx) : receive_frame(rx);
        if (step >= RX_EMPTY) {
            break;
        }
        if (i % RX_PUBLISH_PKTS == 0 ||
            *bytes - published >= RX_PUBLISH_BYTES) {
            publish(rx, *bytes - published);
            published = *bytes;
        }
    }
    publish(rx, *bytes - published);
    return step;
}

/* A pass, counted. */
static RxStep run_counted_pass(VirtIONetRx *rx)
{
    static const TxStop stops[] = {
        [RX_FRAME] = TX_STOP_BUDGET,
        [RX_NOTHING] = TX_STOP_BUDGET,
        [RX_EMPTY] = TX_STOP_RING_EMPTY,
        [RX_NO_BUFFERS] = TX_STOP_BACKEND_FULL,
        [RX_BROKEN] = TX_STOP_GUEST_ERROR,
    };
    const VirtIONetQueueStats *count = &rx->q.stats->count;
    uint64_t packets = count->packets, bytes = count->bytes;
    RxStep step;

    virtio_net_stats_flush_begin(&rx->q);
    step = run_pass(rx);
    virtio_net_stats_flush_end(&rx->q, count->packets - packets,
                               count->bytes - bytes, stops[step]);
    return step;
}

/*
 * More is there, but it is the others' turn.  The backend may say so as often
 * as it likes before.
 */
static void yield(VirtIONetRx *rx)
{
    rx->yields = true;
    aio_bh_schedule_behind(rx->bh);
}

/*
 * No buffers: everything popped goes back, and the ring is armed.  The
 * question it answers is whether the driver's index moved since we scanned,
 * so a frame that needs five buffers and finds three does not spin, and does
 * not miss the two that come while we arm.
 */
static void starve(VirtIONetRx *rx)
{
    VirtQueueArm outcome;

    win_unpop(rx);
    outcome = virtqueue_arm(rx->q.vq, 1);
    virtio_net_stats_arm(&rx->q, 1, outcome);
    if (outcome == VQ_ARM_CROSSED) {
        virtqueue_park(rx->q.vq);
        yield(rx);
        return;
    }
    rx->state = RX_STATE_STARVED;
    net_rx_want(rx->q.nq, false);
}

static void receive_stop(VirtIONetRx *rx)
{
    rx->state = RX_STATE_STOPPED;
    net_rx_want(rx->q.nq, false);
}

static void receive_pass(VirtIONetRx *rx)
{
    if (rx->state != RX_STATE_RUNNING) {
        return;
    }
    if (!virtio_net_queue_usable(&rx->q)) {
        /* Frames that nobody will take would wake us for ever */
        receive_stop(rx);
        return;
    }
    switch (run_counted_pass(rx)) {
    case RX_NO_BUFFERS:
        starve(rx);
        return;
    case RX_FRAME:
    case RX_NOTHING:
        yield(rx);
        return;
    case RX_BROKEN:
        receive_stop(rx);
        return;
    case RX_EMPTY:
        return;
    }
}

static void receive_bh(void *opaque)
{
    VirtIONetRx *rx = opaque;

    rx->yields = false;
    receive_pass(rx);
}

void virtio_net_rx_ready(VirtIONetRx *rx)
{
    if (!rx->yields) {
        receive_pass(rx);
    }
}

static void rx_kick(void *opaque)
{
    VirtIONetRx *rx = opaque;

    virtio_net_stats_kick(&rx->q);
    if (rx->state != RX_STATE_STARVED) {
        return;
    }
    rx->state = RX_STATE_RUNNING;
    virtqueue_park(rx->q.vq);
    receive_pass(rx);
    if (rx->state == RX_STATE_RUNNING) {
        net_rx_want(rx->q.nq, true);
    }
}

const AioHandlerOps virtio_net_rx_kick_ops = {
    .readable = rx_kick,
};

/* ---- life ------------------------------------------------------------ */

void virtio_net_rx_update(VirtIONetRx *rx)
{
    bool live = virtio_net_queue_live(&rx->q) &&
                virtio_net_queue_usable(&rx->q);

    if (!live) {
        receive_stop(rx);
        return;
    }
    rx->state = RX_STATE_RUNNING;
    virtqueue_park(rx->q.vq);
    net_rx_want(rx->q.nq, true);
    aio_bh_schedule(rx->bh);
}

void virtio_net_rx_quiesce(VirtIONetRx *rx)
{
    receive_stop(rx);
    aio_bh_cancel(rx->bh);
    rx->yields = false;
    win_unpop(rx);
    publish(rx, 0);
    virtio_net_coalesce_flush(&rx->q.coalesce);
    virtqueue_disarm(rx->q.vq);
}

void virtio_net_rx_init(VirtIONetRx *rx)
{
    rx->state = RX_STATE_STOPPED;
    rx->room = RX_MIN_ROOM;
    rx->bh = aio_bh_new(rx->q.ctx, receive_bh, rx);
}

void virtio_net_rx_cleanup(VirtIONetRx *rx)
{
    aio_bh_delete(rx->bh);
}
