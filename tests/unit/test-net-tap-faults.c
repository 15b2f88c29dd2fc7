/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * tap: what the host may answer to a write or a read, each on a real tap.
 *
 * The system calls are this program's own functions, which fail as told and
 * else do what libc's do.  Rules: design.md 4, "Backends answer per packet";
 * a packet is dropped for any error of its own, kept for EAGAIN and ENOBUFS,
 * and only an interface that is gone is the end.
 */
#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "alloc-count.h"
#include "tap-harness.h"

/* ---- faults ---------------------------------------------------------- */

static struct {
    unsigned after;         /* calls that pass first */
    int err;                /* then this once; 0: none */
    ssize_t result;         /* if err is 0 and this is not: a short read */
} fault;

/* True if the call is to return *@result. */
static bool strike(ssize_t *result)
{
    if (!fault.err && !fault.result) {
        return false;
    }
    if (fault.after) {
        fault.after--;
        return false;
    }
    *result = fault.err ? -1 : fault.result;
    errno = fault.err;
    fault.err = 0;
    fault.result = 0;
    return true;
}

ssize_t write(int fd, const void *buf, size_t bytes)
{
    ssize_t result;

    return strike(&result) ? result : syscall(SYS_write, fd, buf, bytes);
}

ssize_t writev(int fd, const struct iovec *iov, int iovcnt)
{
    ssize_t result;

    return strike(&result) ? result : syscall(SYS_writev, fd, iov, iovcnt);
}

ssize_t readv(int fd, const struct iovec *iov, int iovcnt)
{
    ssize_t result;

    return strike(&result) ? result : syscall(SYS_readv, fd, iov, iovcnt);
}

/* ---- a tap on a virtual clock ---------------------------------------- */

#define PACKETS 8

typedef struct Rig {
    Clock *clock;
    Tap t;
    uint8_t pkt[PACKETS][TEST_HDR + 60];
    struct iovec iov[PACKETS][2];
    NetPacket batch[PACKETS];
} Rig;

/* @pieces: one buffer a packet, or header and frame apart. */
static void rig_up(Rig *r, unsigned pieces)
{
    memset(r, 0, sizeof(*r));
    r->clock = clock_virtual_new(0);
    tap_open_clock(&r->t, TEST_OPTIONS, r->clock);
    net_backend_set_vnet_hdr_len(r->t.nb, TEST_HDR);
    for (unsigned i = 0; i < PACKETS; i++) {
        size_t first = pieces == 1 ? sizeof(r->pkt[i]) : TEST_HDR;

        make_frame(r->pkt[i] + TEST_HDR, 60, i);
        r->iov[i][0] = (struct iovec) { r->pkt[i], first };
        r->iov[i][1] = (struct iovec) { r->pkt[i] + first,
                                        sizeof(r->pkt[i]) - first };
        r->batch[i] = (NetPacket) { .iov = r->iov[i], .iovcnt = pieces,
                                    .bytes = sizeof(r->pkt[i]),
                                    .answer = NET_TX_PENDING };
    }
}

static void rig_down(Rig *r)
{
    tap_close(&r->t);
    clock_free(r->clock);
}

/* The host sees packet @i next. */
static void check_seen(Rig *r, unsigned i)
{
    uint8_t in[256];

    g_assert_cmpint(recv(r->t.host, in, sizeof(in), MSG_DONTWAIT), ==,
                    10 + 60);
    g_assert_cmpmem(in + 10, 60, r->pkt[i] + TEST_HDR, 60);
}

static void check_seen_nothing(Rig *r)
{
    uint8_t in[256];

    g_assert_cmpint(recv(r->t.host, in, sizeof(in), MSG_DONTWAIT), ==, -1);
}

/* ---- transmit -------------------------------------------------------- */

/* Packet k is refused: it is dropped, the others leave, in order. */
static void test_tx_refused(void)
{
    static const int errors[] = {
        EINVAL, EIO, EMSGSIZE, ENOMEM, ENETDOWN, EFAULT, EPERM, EHOSTUNREACH,
    };
    Rig r;

    if (skipped()) {
        return;
    }
    for (unsigned pieces = 1; pieces <= 2; pieces++) {
        rig_up(&r, pieces);
        for (unsigned e = 0; e < G_N_ELEMENTS(errors); e++) {
            unsigned k = e % PACKETS;

            fault.after = k;
            fault.err = errors[e];
            g_assert_cmpuint(net_send_batch(r.t.nic.nq, r.batch, PACKETS), ==,
                             PACKETS);
            for (unsigned i = 0; i < PACKETS; i++) {
                g_assert_cmpint(r.batch[i].answer, ==,
                                i == k ? NET_TX_DROPPED : NET_TX_DONE);
                if (i != k) {
                    check_seen(&r, i);
                }
            }
            check_seen_nothing(&r);
        }
        g_assert_cmpuint(r.t.nic.link_down + r.t.nic.tx_ready, ==, 0);
        rig_down(&r);
    }
}

static void test_tx_interrupted(void)
{
    Rig r;

    if (skipped()) {
        return;
    }
    rig_up(&r, 1);
    fault.err = EINTR;
    g_assert_cmpuint(net_send_batch(r.t.nic.nq, r.batch, 1), ==, 1);
    g_assert_cmpint(r.batch[0].answer, ==, NET_TX_DONE);
    check_seen(&r, 0);
    rig_down(&r);
}

/* Full at packet 3: three are taken, no later one overtakes. */
static void test_tx_again(void)
{
    Rig r;

    if (skipped()) {
        return;
    }
    rig_up(&r, 2);
    fault.after = 3;
    fault.err = EAGAIN;
    g_assert_cmpuint(net_send_batch(r.t.nic.nq, r.batch, PACKETS), ==, 3);
    for (unsigned i = 0; i < 3; i++) {
        check_seen(&r, i);
    }
    check_seen_nothing(&r);
    /* The descriptor is writable: one call, in the next turn. */
    g_assert_cmpuint(r.t.nic.tx_ready, ==, 0);
    aio_poll(r.t.ctx, false);
    g_assert_cmpuint(r.t.nic.tx_ready, ==, 1);
    test_settle(r.t.ctx);
    g_assert_cmpuint(r.t.nic.tx_ready, ==, 1);
    rig_down(&r);
}

/* No memory: the descriptor says writable, so time decides. */
static void test_tx_no_buffers(void)
{
    Rig r;

    if (skipped()) {
        return;
    }
    rig_up(&r, 1);
    fault.err = ENOBUFS;
    g_assert_cmpuint(net_send_batch(r.t.nic.nq, r.batch, 1), ==, 0);
    test_settle(r.t.ctx);
    clock_virtual_advance(r.clock, 49 * NS_PER_US);
    test_settle(r.t.ctx);
    g_assert_cmpuint(r.t.nic.tx_ready, ==, 0);
    clock_virtual_advance(r.clock, NS_PER_US);
    test_settle(r.t.ctx);
    g_assert_cmpuint(r.t.nic.tx_ready, ==, 1);
    /* Cancelled: not at all. */
    fault.err = ENOBUFS;
    g_assert_cmpuint(net_send_batch(r.t.nic.nq, r.batch, 1), ==, 0);
    net_cancel_tx(r.t.nic.nq);
    clock_virtual_advance(r.clock, NS_PER_SEC);
    test_settle(r.t.ctx);
    g_assert_cmpuint(r.t.nic.tx_ready, ==, 1);
    rig_down(&r);
}

static void test_tx_gone(void)
{
    static const int errors[] = { EBADFD, EBADF, ENODEV, ENXIO };
    Rig r;

    if (skipped()) {
        return;
    }
    for (unsigned e = 0; e < G_N_ELEMENTS(errors); e++) {
        rig_up(&r, 1);
        fault.after = 2;
        fault.err = errors[e];
        g_assert_cmpuint(net_send_batch(r.t.nic.nq, r.batch, PACKETS), ==,
                         PACKETS);
        for (unsigned i = 0; i < PACKETS; i++) {
            g_assert_cmpint(r.batch[i].answer, ==,
                            i < 2 ? NET_TX_DONE : NET_TX_DROPPED);
        }
        /* Told in the rx context, not from inside the call. */
        g_assert_cmpuint(r.t.nic.link_down, ==, 0);
        test_settle(r.t.ctx);
        g_assert_cmpuint(r.t.nic.link_down, ==, 1);
        rig_down(&r);
    }
}

/* ---- receive --------------------------------------------------------- */

static NetRecvStatus receive(Rig *r)
{
    uint8_t in[2048];
    size_t n;

    return test_nic_recv(&r->t.nic, in, sizeof(in), &n);
}

/* Reads that end within the headers are no frames. */
static void test_rx_short(void)
{
    Rig r;

    if (skipped()) {
        return;
    }
    rig_up(&r, 1);
    for (ssize_t n = 1; n < TEST_HDR + 14; n++) {
        fault.result = n;
        g_assert_cmpint(receive(&r), ==, NET_RECV_DROPPED);
    }
    fault.result = TEST_HDR + 14;
    g_assert_cmpint(receive(&r), ==, NET_RECV_PACKET);
    g_assert_cmpint(receive(&r), ==, NET_RECV_EMPTY);
    rig_down(&r);
}

static void test_rx_errors(void)
{
    static const struct {
        int err;
        NetRecvStatus status;
    } cases[] = {
        { EAGAIN, NET_RECV_EMPTY },
        { EINTR, NET_RECV_EMPTY },      /* tried again, nothing there */
        { EIO, NET_RECV_DROPPED },
        { EFAULT, NET_RECV_DROPPED },
        { ENOMEM, NET_RECV_DROPPED },
        { EBADFD, NET_RECV_DEAD },
    };
    Rig r;

    if (skipped()) {
        return;
    }
    rig_up(&r, 1);
    for (unsigned i = 0; i < G_N_ELEMENTS(cases); i++) {
        fault.err = cases[i].err;
        g_assert_cmpint(receive(&r), ==, cases[i].status);
        test_settle(r.t.ctx);
        g_assert_cmpuint(r.t.nic.link_down, ==,
                         cases[i].status == NET_RECV_DEAD);
    }
    rig_down(&r);
}

/* ---- memory ---------------------------------------------------------- */

static void test_no_allocation(void)
{
    uint64_t before;
    Rig r;

    if (skipped()) {
        return;
    }
    if (!alloc_count_supported()) {
        g_test_skip("the sanitizer's allocator cannot be counted");
        return;
    }
    rig_up(&r, 2);
    net_rx_want(r.t.nic.nq, true);
    before = alloc_count();
    for (unsigned i = 0; i < 100; i++) {
        net_send_batch(r.t.nic.nq, r.batch, PACKETS);
        host_send(r.t.host, r.pkt[0] + TEST_HDR, 60);
        aio_poll(r.t.ctx, true);
        g_assert_cmpint(receive(&r), ==, NET_RECV_PACKET);
        fault.err = i % 2 ? EAGAIN : ENOBUFS;
        net_send_batch(r.t.nic.nq, r.batch, 1);
        net_cancel_tx(r.t.nic.nq);
        net_rx_want(r.t.nic.nq, false);
        net_rx_want(r.t.nic.nq, true);
        recv(r.t.host, (char[128]) { 0 }, 128, MSG_DONTWAIT);
    }
    g_assert_cmpuint(alloc_count() - before, ==, 0);
    rig_down(&r);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    tap_harness_init();
    g_test_add_func("/net/tap/tx-refused", test_tx_refused);
    g_test_add_func("/net/tap/tx-interrupted", test_tx_interrupted);
    g_test_add_func("/net/tap/tx-again", test_tx_again);
    g_test_add_func("/net/tap/tx-no-buffers", test_tx_no_buffers);
    g_test_add_func("/net/tap/tx-gone", test_tx_gone);
    g_test_add_func("/net/tap/rx-short", test_rx_short);
    g_test_add_func("/net/tap/rx-errors", test_rx_errors);
    g_test_add_func("/net/tap/no-allocation", test_no_allocation);
    return g_test_run();
}
