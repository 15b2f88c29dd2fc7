/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * tap: packets, on real interfaces.
 *
 * Push-back needs packets that stay in the kernel: two taps on a bridge, the
 * second behind a token bucket that lets nothing through.
 */
#include <errno.h>
#include <linux/if_ether.h>
#include <linux/virtio_net.h>
#include <string.h>
#include <sys/socket.h>

#include "tap-harness.h"

/* ---- frames both ways ------------------------------------------------ */

static void test_frames(gconstpointer data)
{
    static const size_t sizes[] = { 14, 15, 42, 60, 64, 1000, 1513, 1514 };
    unsigned hdr_len = GPOINTER_TO_UINT(data);
    Tap t;

    if (skipped()) {
        return;
    }
    tap_open(&t, hdr_len ? TEST_OPTIONS
             : TEST_OPTIONS ",vnet_hdr=off");
    g_assert_cmpint(net_backend_caps(t.nb)->vnet_hdr, ==, hdr_len != 0);
    g_assert_true(net_backend_set_vnet_hdr_len(t.nb, hdr_len));
    net_backend_set_offload(t.nb, 0);
    for (unsigned i = 0; i < G_N_ELEMENTS(sizes); i++) {
        check_tx(&t, hdr_len, sizes[i]);
        check_rx(&t, hdr_len, sizes[i]);
    }
    net_inject(t.nic.nq, "\2\0\0\0\0\x99\2\0\0\0\0\7\x88\xb5 hello", 20);
    g_assert_cmpint(recv(t.host, (char[64]) { 0 }, 64, 0), ==, 10 + 20);
    tap_close(&t);
}

/* Vectors cut at every place; what fits exactly fits, one less does not. */
static void test_vectors(void)
{
    uint8_t out[TEST_HDR + 100] = { 0 }, in[TEST_HDR + 100];
    const size_t size = sizeof(out);
    size_t n;
    Tap t;

    if (skipped()) {
        return;
    }
    tap_open(&t, TEST_OPTIONS);
    net_backend_set_vnet_hdr_len(t.nb, TEST_HDR);
    for (unsigned cut = 0; cut < size; cut++) {
        struct iovec src[] = { { out, cut }, { out + cut, size - cut } };
        struct iovec dst[] = { { in, cut }, { in + cut, size - cut } };
        NetPacket pkt = { .iov = src, .iovcnt = 2, .bytes = size };
        uint8_t seen[256];

        make_frame(out + TEST_HDR, 100, cut);
        g_assert_cmpuint(net_send_batch(t.nic.nq, &pkt, 1), ==, 1);
        g_assert_cmpint(pkt.answer, ==, NET_TX_DONE);
        g_assert_cmpint(recv(t.host, seen, sizeof(seen), 0), ==, 10 + 100);
        g_assert_cmpmem(seen + 10, 100, out + TEST_HDR, 100);

        host_send(t.host, out + TEST_HDR, 100);
        g_assert_cmpint(net_recv(t.nic.nq, dst, 2, &n), ==, NET_RECV_PACKET);
        g_assert_cmpmem(in + TEST_HDR, n - TEST_HDR, out + TEST_HDR, 100);
        host_send(t.host, out + TEST_HDR, 100);
        dst[1].iov_len--;
        g_assert_cmpint(net_recv(t.nic.nq, dst, 2, &n), ==, NET_RECV_DROPPED);
    }
    g_assert_cmpint(test_nic_recv(&t.nic, in, 0, &n), ==, NET_RECV_EMPTY);
    tap_close(&t);
}

/* More entries than a readv() takes: those in front are used. */
static void test_many_entries(void)
{
    static uint8_t in[1200], out[1000];
    struct iovec iov[1200];
    size_t n;
    Tap t;

    if (skipped()) {
        return;
    }
    tap_open(&t, TEST_OPTIONS);
    net_backend_set_vnet_hdr_len(t.nb, TEST_HDR);
    for (unsigned i = 0; i < G_N_ELEMENTS(iov); i++) {
        iov[i] = (struct iovec) { in + i, 1 };
    }
    make_frame(out, sizeof(out), 3);
    host_send(t.host, out, 1000);
    g_assert_cmpint(net_recv(t.nic.nq, iov, 1200, &n), ==, NET_RECV_PACKET);
    g_assert_cmpmem(in + TEST_HDR, n - TEST_HDR, out, 1000);
    tap_close(&t);
}

/*
 * What the kernel refuses is dropped and the next packet leaves: a header
 * alone, half an Ethernet header, a GSO type that does not exist, a checksum
 * beyond the end, an interface that is down.
 */
static void test_refused(void)
{
    struct {
        struct virtio_net_hdr_mrg_rxbuf hdr;
        uint8_t frame[100];
    } __attribute__((packed)) pkt = { 0 };
    NetTxAnswer answer;
    Tap t;

    if (skipped()) {
        return;
    }
    tap_open(&t, TEST_OPTIONS);
    net_backend_set_vnet_hdr_len(t.nb, TEST_HDR);
    make_frame(pkt.frame, sizeof(pkt.frame), 1);
    for (size_t bytes = 1; bytes < TEST_HDR + ETH_HLEN; bytes++) {
        g_assert_true(test_nic_send(&t.nic, &pkt, bytes, &answer));
        g_assert_cmpint(answer, ==, NET_TX_DROPPED);
    }
    pkt.hdr.hdr.gso_type = 0x7f;
    pkt.hdr.hdr.gso_size = 10;
    g_assert_true(test_nic_send(&t.nic, &pkt, sizeof(pkt), &answer));
    g_assert_cmpint(answer, ==, NET_TX_DROPPED);
    memset(&pkt.hdr, 0, sizeof(pkt.hdr));
    pkt.hdr.hdr.flags = VIRTIO_NET_HDR_F_NEEDS_CSUM;
    pkt.hdr.hdr.csum_start = 0xffff;
    g_assert_true(test_nic_send(&t.nic, &pkt, sizeof(pkt), &answer));
    g_assert_cmpint(answer, ==, NET_TX_DROPPED);
    memset(&pkt.hdr, 0, sizeof(pkt.hdr));
    check_tx(&t, TEST_HDR, 60);

    run("ip link set tap0 down");
    g_assert_true(test_nic_send(&t.nic, &pkt, sizeof(pkt), &answer));
    g_assert_cmpint(answer, ==, NET_TX_DROPPED);
    link_up("tap0");
    /* The socket tells of that once. */
    g_assert_cmpint(recv(t.host, (char[1]) { 0 }, 1, 0), ==, -1);
    g_assert_cmpint(errno, ==, ENETDOWN);
    check_tx(&t, TEST_HDR, 60);
    g_assert_cmpuint(t.nic.link_down, ==, 0);
    tap_close(&t);
}

/* A checksum that the guest left to us is completed by the kernel. */
static void test_checksum(void)
{
    struct {
        struct virtio_net_hdr_mrg_rxbuf hdr;
        uint8_t frame[64];
    } __attribute__((packed)) pkt = { 0 };
    uint8_t in[256];
    uint32_t sum = 0;
    Tap t;

    if (skipped()) {
        return;
    }
    tap_open(&t, TEST_OPTIONS);
    net_backend_set_vnet_hdr_len(t.nb, TEST_HDR);
    make_frame(pkt.frame, sizeof(pkt.frame), 1);
    memset(pkt.frame + 40, 0, 2);
    pkt.hdr.hdr.flags = VIRTIO_NET_HDR_F_NEEDS_CSUM;
    pkt.hdr.hdr.csum_start = 34;
    pkt.hdr.hdr.csum_offset = 6;
    test_nic_send_ok(&t.nic, &pkt, sizeof(pkt));
    g_assert_cmpint(recv(t.host, in, sizeof(in), 0), ==, 10 + 64);
    if (!(((struct virtio_net_hdr *)in)->flags &
          VIRTIO_NET_HDR_F_NEEDS_CSUM)) {
        for (unsigned i = 34; i < 64; i += 2) {
            sum += in[10 + i] << 8 | in[10 + i + 1];
        }
        sum = (sum & 0xffff) + (sum >> 16);
        g_assert_cmphex((sum & 0xffff) + (sum >> 16), ==, 0xffff);
    } else {
        g_assert_cmpuint(((struct virtio_net_hdr *)in)->csum_start, ==, 34);
    }
    tap_close(&t);
}

/* ---- receive notifications ------------------------------------------- */

static void test_rx_want(void)
{
    uint8_t frame[60];
    Tap t;

    if (skipped()) {
        return;
    }
    tap_open(&t, TEST_OPTIONS);
    net_backend_set_vnet_hdr_len(t.nb, TEST_HDR);
    make_frame(frame, sizeof(frame), 0);
    host_send(t.host, frame, sizeof(frame));
    test_settle(t.ctx);
    g_assert_cmpuint(t.nic.rx_ready, ==, 0);
    net_rx_want(t.nic.nq, true);
    g_assert_cmpuint(t.nic.rx_ready, ==, 0);
    aio_poll(t.ctx, true);
    g_assert_cmpuint(t.nic.rx_ready, ==, 1);
    aio_poll(t.ctx, true);
    g_assert_cmpuint(t.nic.rx_ready, ==, 2);
    /* Traffic that nobody wants is one event, then none. */
    net_rx_want(t.nic.nq, false);
    test_settle(t.ctx);
    g_assert_false(aio_poll(t.ctx, false));
    g_assert_cmpuint(t.nic.rx_ready, ==, 2);
    net_rx_want(t.nic.nq, true);
    aio_poll(t.ctx, true);
    g_assert_cmpuint(t.nic.rx_ready, ==, 3);
    tap_close(&t);
}

/* ---- push-back ------------------------------------------------------- */

#define PLUG    "root tbf rate 64bit burst 1600 limit 10m"
#define PACKETS 64

typedef struct Dam {
    Tap t;
    NetBackend *other;
    TestNic sink;
    NetPacket batch[PACKETS];
    struct iovec iov;
    uint8_t pkt[TEST_HDR + 1000];
} Dam;

/* Two taps on a bridge; false, and skipped, if the kernel has not got it. */
static bool dam_up(Dam *d)
{
    if (!try_run("tc qdisc add dev lo " PLUG) ||
        !try_run("ip link add br0 type bridge forward_delay 0")) {
        g_test_skip("the kernel lacks a bridge or a token bucket");
        return false;
    }
    run("tc qdisc del dev lo root");
    *d = (Dam) { .iov = { d->pkt, sizeof(d->pkt) } };
    tap_open(&d->t, TEST_OPTIONS ",sndbuf=20000");
    net_backend_set_vnet_hdr_len(d->t.nb, TEST_HDR);
    d->other = test_netdev_ok("tap,id=o,ifname=tap1,script=no,downscript=no",
                              d->t.ctx);
    test_nic_attach(&d->sink, d->other, 0, d->t.ctx);
    run("ip link set tap0 master br0");
    run("ip link set tap1 master br0");
    link_up("br0");
    link_up("tap1");
    run("bridge link set dev tap0 state 3");
    run("bridge link set dev tap1 state 3");
    make_frame(d->pkt + TEST_HDR, 1000, 0);
    for (unsigned i = 0; i < PACKETS; i++) {
        d->batch[i] = (NetPacket) { .iov = &d->iov, .iovcnt = 1,
                                    .bytes = sizeof(d->pkt) };
    }
    return true;
}

static void dam_down(Dam *d)
{
    test_nic_detach(&d->sink);
    net_backend_free(d->other);
    tap_close(&d->t);
    run("ip link del br0");
}

static void test_push_back(void)
{
    NetTxAnswer answer;
    unsigned taken;
    Dam d;

    if (skipped() || !dam_up(&d)) {
        return;
    }
    run("tc qdisc add dev tap1 " PLUG);
    taken = net_send_batch(d.t.nic.nq, d.batch, PACKETS);
    /* 20000 bytes, of 1000 and the kernel's own per packet. */
    g_assert_cmpuint(taken, >=, 4);
    g_assert_cmpuint(taken, <=, 20);
    for (unsigned i = 0; i < taken; i++) {
        g_assert_cmpint(d.batch[i].answer, ==, NET_TX_DONE);
    }
    /* Full is quiet: nothing to do for the loop, and it stays full. */
    test_settle(d.t.ctx);
    g_assert_false(aio_poll(d.t.ctx, false));
    g_assert_cmpuint(d.t.nic.tx_ready, ==, 0);
    g_assert_false(test_nic_send(&d.t.nic, d.pkt, sizeof(d.pkt), &answer));
    /* Room: one call, and none after it. */
    run("tc qdisc del dev tap1 root");
    aio_poll(d.t.ctx, true);
    g_assert_cmpuint(d.t.nic.tx_ready, ==, 1);
    test_settle(d.t.ctx);
    g_assert_cmpuint(d.t.nic.tx_ready, ==, 1);
    test_nic_send_ok(&d.t.nic, d.pkt, sizeof(d.pkt));

    /* Cancelled: the call that was owed is forgotten. */
    run("tc qdisc add dev tap1 " PLUG);
    g_assert_cmpuint(net_send_batch(d.t.nic.nq, d.batch, PACKETS), <, PACKETS);
    net_cancel_tx(d.t.nic.nq);
    run("tc qdisc del dev tap1 root");
    test_settle(d.t.ctx);
    g_assert_cmpuint(d.t.nic.tx_ready, ==, 1);
    dam_down(&d);
}

/* ---- several queues -------------------------------------------------- */

static void test_queues(void)
{
    uint8_t frame[60], pkt[TEST_HDR + 60] = { 0 };
    TestNic second = { 0 };
    size_t n;
    Tap t;

    if (skipped()) {
        return;
    }
    tap_open(&t, TEST_OPTIONS ",queues=2");
    g_assert_cmpuint(net_backend_caps(t.nb)->queues, ==, 2);
    g_assert_true(net_backend_set_vnet_hdr_len(t.nb, TEST_HDR));
    test_nic_attach(&second, t.nb, 1, t.ctx);
    net_rx_want(t.nic.nq, true);
    net_rx_want(second.nq, true);
    /* Disabled: no flow comes here, and it does not look dead. */
    test_settle(t.ctx);
    g_assert_cmpuint(second.link_down, ==, 0);
    make_frame(frame, sizeof(frame), 0);
    drain(&t.nic);
    for (unsigned i = 0; i < 32; i++) {
        frame[11] = i;
        host_send(t.host, frame, sizeof(frame));
    }
    g_assert_cmpint(test_nic_recv(&second, pkt, sizeof(pkt), &n), ==,
                    NET_RECV_EMPTY);
    drain(&t.nic);

    /* Enabled: what leaves here comes back here. */
    net_queue_set_enabled(second.nq, true);
    make_frame(pkt + TEST_HDR, 60, 1);
    test_nic_send_ok(&second, pkt, sizeof(pkt));
    g_assert_cmpint(recv(t.host, (char[128]) { 0 }, 128, 0), ==, 10 + 60);
    second.rx_ready = 0;
    for (unsigned i = 0; i < 1000; i++) {
        frame[11] = i;
        frame[20] = i >> 8;
        host_send(t.host, frame, sizeof(frame));
        drain(&t.nic);
    }
    while (second.rx_ready == 0) {
        aio_poll(t.ctx, true);
        drain(&t.nic);
    }
    /* And disabled again, with frames waiting. */
    net_queue_set_enabled(second.nq, false);
    g_assert_cmpint(test_nic_recv(&second, pkt, sizeof(pkt), &n), ==,
                    NET_RECV_EMPTY);
    drain(&t.nic);
    test_settle(t.ctx);
    g_assert_cmpuint(second.link_down + t.nic.link_down, ==, 0);
    test_nic_detach(&second);
    tap_close(&t);
}

/* ---- an interface that goes ------------------------------------------ */

static void check_dead(TestNic *nic)
{
    uint8_t pkt[TEST_HDR + 60] = { 0 };
    NetTxAnswer answer;
    size_t n;

    g_assert_cmpuint(nic->link_down, ==, 1);
    g_assert_true(test_nic_send(nic, pkt, sizeof(pkt), &answer));
    g_assert_cmpint(answer, ==, NET_TX_DROPPED);
    g_assert_cmpint(test_nic_recv(nic, pkt, sizeof(pkt), &n), ==,
                    NET_RECV_DEAD);
    net_rx_want(nic->nq, true);
    /* No event keeps coming: the loop has nothing to do. */
    test_settle(nic->ctx);
    g_assert_false(aio_poll(nic->ctx, false));
    g_assert_cmpuint(nic->link_down, ==, 1);
}

static void wait_dead(Tap *t)
{
    while (!t->nic.link_down) {
        aio_poll(t->ctx, true);
    }
    check_dead(&t->nic);
}

static void test_deleted(void)
{
    Tap t;

    if (skipped()) {
        return;
    }
    tap_open(&t, TEST_OPTIONS);
    net_rx_want(t.nic.nq, true);
    test_settle(t.ctx);
    run("ip link del tap0");
    wait_dead(&t);
    /* The next NIC on it hears it as well. */
    test_nic_detach(&t.nic);
    t.nic = (TestNic) { 0 };
    test_nic_attach(&t.nic, t.nb, 0, t.ctx);
    net_rx_want(t.nic.nq, true);
    wait_dead(&t);
    tap_close(&t);
}

/* Of no interest at the time: known at the latest when it is. */
static void test_deleted_unwanted(void)
{
    Tap t;

    if (skipped()) {
        return;
    }
    tap_open(&t, TEST_OPTIONS);
    run("ip link del tap0");
    test_settle(t.ctx);
    g_assert_false(aio_poll(t.ctx, false));
    net_rx_want(t.nic.nq, true);
    wait_dead(&t);
    tap_close(&t);
}

/* The transmit side may find out first. */
static void test_deleted_tx(void)
{
    uint8_t pkt[TEST_HDR + 60] = { 0 };
    NetTxAnswer answer;
    Tap t;

    if (skipped()) {
        return;
    }
    tap_open(&t, TEST_OPTIONS);
    run("ip link del tap0");
    g_assert_true(test_nic_send(&t.nic, pkt, sizeof(pkt), &answer));
    g_assert_cmpint(answer, ==, NET_TX_DROPPED);
    test_settle(t.ctx);
    check_dead(&t.nic);
    tap_close(&t);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    tap_harness_init();
    g_test_add_data_func("/net/tap/frames/0", GUINT_TO_POINTER(0),
                         test_frames);
    g_test_add_data_func("/net/tap/frames/10", GUINT_TO_POINTER(10),
                         test_frames);
    g_test_add_data_func("/net/tap/frames/12", GUINT_TO_POINTER(12),
                         test_frames);
    g_test_add_data_func("/net/tap/frames/20", GUINT_TO_POINTER(20),
                         test_frames);
    g_test_add_func("/net/tap/vectors", test_vectors);
    g_test_add_func("/net/tap/many-entries", test_many_entries);
    g_test_add_func("/net/tap/refused", test_refused);
    g_test_add_func("/net/tap/checksum", test_checksum);
    g_test_add_func("/net/tap/rx-want", test_rx_want);
    g_test_add_func("/net/tap/push-back", test_push_back);
    g_test_add_func("/net/tap/queues", test_queues);
    g_test_add_func("/net/tap/deleted", test_deleted);
    g_test_add_func("/net/tap/deleted-unwanted", test_deleted_unwanted);
    g_test_add_func("/net/tap/deleted-tx", test_deleted_tx);
    return g_test_run();
}
