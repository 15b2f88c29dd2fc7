/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Packets through one queue of a tap: one write or read each, straight from and
 * into the vectors that the NIC gives.
 *
 * States of the tx half: open; full (the descriptor is watched for room, or
 * after ENOBUFS a timer runs; ends with tx_ready() or cancel); dead.
 * States of the rx half: unwanted, wanted, dead.
 *
 * A descriptor whose interface was deleted is dead for good.  Either half may
 * find out first; the NIC hears it once, in the rx context.  From then on
 * packets out are DROPPED and recv says DEAD.  Every other error is that of
 * one packet.
 *
 * In steady state nothing here calls epoll_ctl(): interest in reading is
 * dropped only when an event comes that nobody wants.
 */
#include <errno.h>
#include <net/ethernet.h>
#include <string.h>
#include <unistd.h>

#include "tap-internal.h"
#include "util/iov.h"
#include "util/report.h"

/*
 * ENOBUFS is want of memory in the kernel, not of room in the queue: the
 * descriptor says it is writable all the while.
 */
#define TAP_RETRY_NS    (50 * NS_PER_US)

static TapQueue *tap_queue_from_nq(NetQueue *nq)
{
    return (TapQueue *)nq;
}

static bool tap_queue_is_dead(const TapQueue *q)
{
    return atomic_load_explicit(&q->dead, memory_order_relaxed);
}

static bool tap_errno_is_fatal(int err)
{
    return err == EBADFD || err == EBADF || err == ENODEV || err == ENXIO;
}

/* Either half. */
static void tap_queue_set_dead(TapQueue *q)
{
    if (!atomic_exchange(&q->dead, true)) {
        aio_bh_schedule(q->dead_bh);
    }
}

static void tap_queue_dead_bh(void *opaque)
{
    TapQueue *q = opaque;

    report_warning("netdev %s: the tap interface is gone, link down",
                   q->nq.nb->id);
    q->nq.nic->link_changed(q->nq.nic_opaque, false);
}

/* ---- tx half --------------------------------------------------------- */

static void tap_queue_tx_ready(void *opaque)
{
    TapQueue *q = opaque;

    tap_queue_cancel_tx(&q->nq);
    q->nq.nic->tx_ready(q->nq.nic_opaque);
}

static const AioHandlerOps tap_tx_ops = {
    .writable = tap_queue_tx_ready,
};

/* Returns true if the packet is worth keeping: tx_ready() will come. */
static bool tap_queue_tx_full(TapQueue *q, int err)
{
    if (err == EAGAIN && q->tx_handler) {
        aio_handler_want(q->tx_handler, AIO_WRITE);
        return true;
    }
    if (err == ENOBUFS) {
        aio_timer_mod_ns(&q->tx_retry,
                         aio_now_ns(q->nq.tx_ctx) + TAP_RETRY_NS);
        return true;
    }
    if (tap_errno_is_fatal(err)) {
        tap_queue_set_dead(q);
    }
    return false;
}

/*
 * One entry is usual (Linux puts the header before the data of a linear
 * packet) and write() saves some 85 ns of 1045 over writev() then.
 */
static ssize_t tap_writev(int fd, const struct iovec *iov, unsigned iovcnt)
{
    ssize_t n;

    do {
        n = iovcnt == 1 ? write(fd, iov->iov_base, iov->iov_len)
                        : writev(fd, iov, iovcnt);
    } while (n < 0 && errno == EINTR);
    return n;
}

unsigned tap_queue_send_batch(NetQueue *nq, NetPacket *pkts, unsigned n)
{
    TapQueue *q = tap_queue_from_nq(nq);

    for (unsigned i = 0; i < n; i++) {
        NetPacket *pkt = &pkts[i];

        if (tap_queue_is_dead(q)) {
            pkt->answer = NET_TX_DROPPED;
        } else if (tap_writev(q->fd, pkt->iov, pkt->iovcnt) >= 0) {
            pkt->answer = NET_TX_DONE;
        } else if (tap_queue_tx_full(q, errno)) {
            return i;
        } else {
            pkt->answer = NET_TX_DROPPED;
        }
    }
    return n;
}

void tap_queue_cancel_tx(NetQueue *nq)
{
    TapQueue *q = tap_queue_from_nq(nq);

    aio_timer_del(&q->tx_retry);
    if (q->tx_handler) {
        aio_handler_want(q->tx_handler, 0);
    }
}

/* ---- rx half --------------------------------------------------------- */

static void tap_queue_rx_readable(void *opaque)
{
    TapQueue *q = opaque;

    if (q->rx_wanted) {
        q->nq.nic->rx_ready(q->nq.nic_opaque);
    } else {
        aio_handler_want(q->rx_handler, 0);
    }
}

static void tap_queue_rx_hangup(void *opaque)
{
    tap_queue_set_dead(opaque);
}

static const AioHandlerOps tap_rx_ops = {
    .readable = tap_queue_rx_readable,
    .hangup = tap_queue_rx_hangup,
};

void tap_queue_rx_want(NetQueue *nq, bool want)
{
    TapQueue *q = tap_queue_from_nq(nq);

    q->rx_wanted = want;
    if (want && q->rx_handler && !tap_queue_is_dead(q)) {
        aio_handler_want(q->rx_handler, AIO_READ);
    }
}

static ssize_t tap_readv(int fd, const struct iovec *iov, unsigned iovcnt)
{
    ssize_t n;

    do {
        n = readv(fd, iov, iovcnt);
    } while (n < 0 && errno == EINTR);
    return n;
}

/* With one more byte of room, a frame that is too long shows. */
static ssize_t tap_readv_spill(TapQueue *q, const struct iovec *iov,
                               unsigned iovcnt)
{
    struct iovec with_spill[NET_MAX_RECV_IOV + 1];

    memcpy(with_spill, iov, iovcnt * sizeof(*iov));
    with_spill[iovcnt] = (struct iovec) { &q->spill, sizeof(q->spill) };
    return tap_readv(q->fd, with_spill, iovcnt + 1);
}

NetRecvStatus tap_queue_recv(NetQueue *nq, const struct iovec *iov,
                             unsigned iovcnt, size_t *bytes)
{
    TapQueue *q = tap_queue_from_nq(nq);
    size_t hdr_len = nq->nb->vnet_hdr_len;
    size_t room = iov_size(iov, iovcnt);
    ssize_t n;

    if (tap_queue_is_dead(q)) {
        return NET_RECV_DEAD;
    }
    n = room >= hdr_len + NET_MAX_FRAME_BYTES
        ? tap_readv(q->fd, iov, iovcnt) : tap_readv_spill(q, iov, iovcnt);
    if (n < 0 && errno == EAGAIN) {
        return NET_RECV_EMPTY;
    }
    if (n < 0 && tap_errno_is_fatal(errno)) {
        tap_queue_set_dead(q);
        return NET_RECV_DEAD;
    }
    if (n < (ssize_t)(hdr_len + ETH_HLEN) || n > (ssize_t)room) {
        return NET_RECV_DROPPED;
    }
    *bytes = n;
    return NET_RECV_PACKET;
}

/* ---- attach, detach, enable ------------------------------------------ */

static AioHandler *tap_queue_watch(TapQueue *q, AioContext *ctx,
                                   const AioHandlerOps *ops)
{
    g_autoptr(GError) err = NULL;
    AioHandler *h = aio_handler_new(ctx, q->fd, 0, ops, q, &err);

    if (!h) {
        report_error("netdev %s: %s", q->nq.nb->id, err->message);
    }
    return h;
}

/* Rx context. */
static void tap_queue_attach_rx_bh(void *opaque)
{
    TapQueue *q = opaque;

    q->rx_wanted = false;
    q->dead_bh = aio_bh_new(q->nq.rx_ctx, tap_queue_dead_bh, q);
    q->rx_handler = tap_queue_watch(q, q->nq.rx_ctx, &tap_rx_ops);
}

static void tap_queue_detach_rx_bh(void *opaque)
{
    TapQueue *q = opaque;

    aio_handler_delete(q->rx_handler);
    q->rx_handler = NULL;
    aio_bh_delete(q->dead_bh);
    q->dead_bh = NULL;
}

/* Tx context. */
static void tap_queue_attach_tx_bh(void *opaque)
{
    TapQueue *q = opaque;

    aio_timer_init(&q->tx_retry, q->nq.tx_ctx, tap_queue_tx_ready, q);
    q->tx_handler = tap_queue_watch(q, q->nq.tx_ctx, &tap_tx_ops);
}

static void tap_queue_detach_tx_bh(void *opaque)
{
    TapQueue *q = opaque;

    aio_timer_del(&q->tx_retry);
    aio_handler_delete(q->tx_handler);
    q->tx_handler = NULL;
}

void tap_queue_attach(NetQueue *nq)
{
    TapQueue *q = tap_queue_from_nq(nq);

    /* A queue that died under an earlier NIC tells the new one again. */
    atomic_store_explicit(&q->dead, false, memory_order_relaxed);
    aio_wait_bh_oneshot(nq->rx_ctx, tap_queue_attach_rx_bh, q);
    aio_wait_bh_oneshot(nq->tx_ctx, tap_queue_attach_tx_bh, q);
}

void tap_queue_detach(NetQueue *nq)
{
    TapQueue *q = tap_queue_from_nq(nq);

    aio_wait_bh_oneshot(nq->tx_ctx, tap_queue_detach_tx_bh, q);
    aio_wait_bh_oneshot(nq->rx_ctx, tap_queue_detach_rx_bh, q);
}

/* In the kernel a detached queue is quiet, but alive: the watches may stay. */
void tap_queue_set_enabled(NetQueue *nq, bool enabled)
{
    TapQueue *q = tap_queue_from_nq(nq);

    if (enabled == q->enabled) {
        return;
    }
    if (nq->nb->caps.queues > 1 && !tap_fd_set_queue(q->fd, enabled)) {
        report_warning("netdev %s: cannot %s queue %u: %s", nq->nb->id,
                       enabled ? "enable" : "disable", nq->index,
                       g_strerror(errno));
    }
    q->enabled = enabled;
}
