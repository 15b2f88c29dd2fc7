/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * hubport: a sink, and a wire between two NICs; also the frame pipe that
 * carries it, in one thread and between two.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#include "alloc-count.h"
#include "net-harness.h"
#include "util/iothread.h"

typedef struct Wire {
    AioContext *ctx;
    NetBackend *nb[2];
    TestNic nic[2];
} Wire;

static void wire_up(Wire *w)
{
    *w = (Wire) { .ctx = aio_context_new("t", clock_monotonic(), NULL) };
    w->nb[0] = test_netdev_ok("hubport,id=a,hubid=7", w->ctx);
    w->nb[1] = test_netdev_ok("hubport,id=b,hubid=7", w->ctx);
    for (unsigned i = 0; i < 2; i++) {
        test_nic_attach(&w->nic[i], w->nb[i], 0, w->ctx);
    }
}

static void wire_down(Wire *w)
{
    for (unsigned i = 0; i < 2; i++) {
        if (w->nic[i].nq) {
            test_nic_detach(&w->nic[i]);
        }
        net_backend_free(w->nb[i]);
    }
    aio_context_free(w->ctx);
}

/* A frame that can be recognised: @seq in front, then bytes that follow. */
static void make_frame(uint8_t *frame, size_t bytes, uint32_t seq)
{
    for (size_t i = 0; i < bytes; i++) {
        frame[i] = seq + i * 7;
    }
    memcpy(frame, &seq, MIN(bytes, sizeof(seq)));
}

static void check_frame(const uint8_t *got, size_t bytes, uint32_t seq)
{
    g_autofree uint8_t *want = g_malloc(bytes);

    make_frame(want, bytes, seq);
    g_assert_cmpmem(got, bytes, want, bytes);
}

/* ---- one port -------------------------------------------------------- */

static void test_sink(void)
{
    AioContext *ctx = aio_context_new("t", clock_monotonic(), NULL);
    NetBackend *nb = test_netdev_ok("hubport,id=a,hubid=0", ctx);
    TestNic nic = { 0 };
    uint8_t frame[1514] = { 0 };
    size_t bytes;

    g_assert_cmpstr(net_backend_type(nb), ==, "hubport");
    g_assert_false(net_backend_caps(nb)->vnet_hdr);
    g_assert_true(net_backend_set_vnet_hdr_len(nb, 0));
    g_assert_false(net_backend_set_vnet_hdr_len(nb, 12));
    test_nic_attach(&nic, nb, 0, ctx);
    net_rx_want(nic.nq, true);
    for (unsigned i = 0; i < 100000; i++) {
        test_nic_send_ok(&nic, frame, sizeof(frame));
    }
    test_settle(ctx);
    g_assert_cmpuint(nic.rx_ready, ==, 0);
    g_assert_cmpint(test_nic_recv(&nic, frame, sizeof(frame), &bytes), ==,
                    NET_RECV_EMPTY);
    test_nic_detach(&nic);
    net_backend_free(nb);
    aio_context_free(ctx);
}

static void test_claim(void)
{
    AioContext *ctx = aio_context_new("t", clock_monotonic(), NULL);
    NetBackend *nb = test_netdev_ok("hubport,id=a,hubid=0", ctx);

    g_assert_true(net_backend_claim(nb));
    g_assert_false(net_backend_claim(nb));
    net_backend_free(nb);
    aio_context_free(ctx);
}

/* A hub is there as long as one of its ports. */
static void test_third_port(void)
{
    Wire w;
    GError *err = NULL;

    wire_up(&w);
    g_assert_null(test_netdev("hubport,id=c,hubid=7", w.ctx, &err));
    g_assert_cmpstr(err->message, ==, "-netdev hubport,id=c: hubid=7 has two "
                    "ports already, a and b; a hub joins two NICs");
    g_clear_error(&err);
    test_nic_detach(&w.nic[0]);
    net_backend_free(w.nb[0]);
    w.nb[0] = test_netdev_ok("hubport,id=c,hubid=7", w.ctx);
    w.nic[0] = (TestNic) { 0 };
    wire_down(&w);
}

/* ---- a wire ---------------------------------------------------------- */

static void test_both_ways(void)
{
    static const size_t sizes[] = { 1, 14, 42, 60, 1514, 9000, 65535,
                                    NET_MAX_FRAME_BYTES };
    g_autofree uint8_t *out = g_malloc(NET_MAX_FRAME_BYTES + 1);
    g_autofree uint8_t *in = g_malloc(NET_MAX_FRAME_BYTES + 1);
    size_t bytes;
    Wire w;

    wire_up(&w);
    for (unsigned i = 0; i < 2 * G_N_ELEMENTS(sizes); i++) {
        size_t size = sizes[i / 2];

        make_frame(out, size, i);
        test_nic_send_ok(&w.nic[i % 2], out, size);
        g_assert_cmpint(test_nic_recv(&w.nic[!(i % 2)], in, size, &bytes), ==,
                        NET_RECV_PACKET);
        g_assert_cmpuint(bytes, ==, size);
        check_frame(in, size, i);
        g_assert_cmpint(test_nic_recv(&w.nic[i % 2], in, size, &bytes), ==,
                        NET_RECV_EMPTY);
    }
    wire_down(&w);
}

static void test_too_long(void)
{
    g_autofree uint8_t *frame = g_malloc0(NET_MAX_FRAME_BYTES + 1);
    NetTxAnswer answer;
    size_t bytes;
    Wire w;

    wire_up(&w);
    g_assert_true(test_nic_send(&w.nic[0], frame, NET_MAX_FRAME_BYTES + 1,
                                &answer));
    g_assert_cmpint(answer, ==, NET_TX_DROPPED);
    make_frame(frame, 100, 1);
    test_nic_send_ok(&w.nic[0], frame, 100);
    test_nic_send_ok(&w.nic[0], frame, 100);
    /* One byte of room is missing: that frame is gone, the next is whole. */
    g_assert_cmpint(test_nic_recv(&w.nic[1], frame, 99, &bytes), ==,
                    NET_RECV_DROPPED);
    g_assert_cmpint(test_nic_recv(&w.nic[1], frame, 100, &bytes), ==,
                    NET_RECV_PACKET);
    check_frame(frame, 100, 1);
    wire_down(&w);
}

/* Vectors cut at every place, on both sides. */
static void test_vectors(void)
{
    uint8_t out[64], in[64];
    size_t bytes;
    Wire w;

    wire_up(&w);
    for (unsigned cut = 0; cut <= 64; cut++) {
        struct iovec src[] = {
            { out, cut }, { NULL, 0 }, { out + cut, 64 - cut },
        };
        struct iovec dst[] = {
            { in, 64 - cut }, { in + 64 - cut, cut }, { NULL, 0 },
        };
        NetPacket pkt = { .iov = src, .iovcnt = 3, .bytes = 64 };

        make_frame(out, 64, cut);
        g_assert_cmpuint(net_send_batch(w.nic[0].nq, &pkt, 1), ==, 1);
        g_assert_cmpint(net_recv(w.nic[1].nq, dst, 3, &bytes), ==,
                        NET_RECV_PACKET);
        check_frame(in, 64, cut);
    }
    wire_down(&w);
}

/* Sizes that are co-prime to the ring, for many times its length. */
static void test_wrap(void)
{
    g_autofree uint8_t *buf = g_malloc(NET_MAX_FRAME_BYTES);
    uint32_t sent = 0, got = 0;
    NetTxAnswer answer;
    size_t bytes;
    Wire w;

    wire_up(&w);
    while (got < 3000) {
        size_t size = 4 + (sent * 4001u) % 60000;

        make_frame(buf, size, sent);
        if (sent < 3000 && test_nic_send(&w.nic[0], buf, size, &answer)) {
            sent++;
            continue;
        }
        for (unsigned i = 0; i < 3 && got < sent; i++) {
            g_assert_cmpint(test_nic_recv(&w.nic[1], buf, NET_MAX_FRAME_BYTES,
                                          &bytes), ==, NET_RECV_PACKET);
            g_assert_cmpuint(bytes, ==, 4 + (got * 4001u) % 60000);
            check_frame(buf, bytes, got++);
        }
    }
    wire_down(&w);
}

/* ---- notifications --------------------------------------------------- */

static void test_rx_want(void)
{
    uint8_t frame[64] = { 0 };
    size_t bytes;
    Wire w;

    wire_up(&w);
    /* Reception starts switched off. */
    test_nic_send_ok(&w.nic[0], frame, 64);
    test_settle(w.ctx);
    g_assert_cmpuint(w.nic[1].rx_ready, ==, 0);
    /* Switched on with traffic waiting: from the loop, not from the call. */
    net_rx_want(w.nic[1].nq, true);
    g_assert_cmpuint(w.nic[1].rx_ready, ==, 0);
    aio_poll(w.ctx, false);
    g_assert_cmpuint(w.nic[1].rx_ready, ==, 1);
    /* Level: it stays ready until it is empty or unwanted. */
    aio_poll(w.ctx, false);
    g_assert_cmpuint(w.nic[1].rx_ready, ==, 2);
    net_rx_want(w.nic[1].nq, false);
    test_settle(w.ctx);
    g_assert_cmpuint(w.nic[1].rx_ready, ==, 2);
    net_rx_want(w.nic[1].nq, true);
    test_nic_recv(&w.nic[1], frame, 64, &bytes);
    test_settle(w.ctx);
    g_assert_cmpuint(w.nic[1].rx_ready, ==, 2);
    /* A frame is announced, but not from inside the peer's send. */
    test_nic_send_ok(&w.nic[0], frame, 64);
    g_assert_cmpuint(w.nic[1].rx_ready, ==, 2);
    aio_poll(w.ctx, false);
    g_assert_cmpuint(w.nic[1].rx_ready, ==, 3);
    wire_down(&w);
}

/* Fill the wire with frames of 1000 bytes; returns how many it took. */
static unsigned fill(TestNic *nic)
{
    uint8_t frame[1000];
    NetTxAnswer answer;
    unsigned n = 0;

    do {
        make_frame(frame, sizeof(frame), n);
    } while (test_nic_send(nic, frame, sizeof(frame), &answer) && ++n);
    return n;
}

static void test_full(void)
{
    uint8_t frame[1000];
    unsigned n, i = 0;
    size_t bytes;
    Wire w;

    wire_up(&w);
    n = fill(&w.nic[0]);
    g_assert_cmpuint(n, >, 100);
    test_settle(w.ctx);
    g_assert_cmpuint(w.nic[0].tx_ready, ==, 0);
    while (w.nic[0].tx_ready == 0) {
        g_assert_cmpint(test_nic_recv(&w.nic[1], frame, 1000, &bytes), ==,
                        NET_RECV_PACKET);
        check_frame(frame, 1000, i++);
        test_settle(w.ctx);
    }
    /* Once, with three quarters of it free. */
    g_assert_cmpuint(i, >=, n * 3 / 4 - 1);
    g_assert_cmpuint(i, <=, n * 3 / 4 + 1);
    for (; i < n; i++) {
        g_assert_cmpint(test_nic_recv(&w.nic[1], frame, 1000, &bytes), ==,
                        NET_RECV_PACKET);
        check_frame(frame, 1000, i);
    }
    g_assert_cmpint(test_nic_recv(&w.nic[1], frame, 1000, &bytes), ==,
                    NET_RECV_EMPTY);
    test_settle(w.ctx);
    g_assert_cmpuint(w.nic[0].tx_ready, ==, 1);
    wire_down(&w);
}

static void test_cancel(void)
{
    uint8_t frame[1000];
    size_t bytes;
    Wire w;

    wire_up(&w);
    fill(&w.nic[0]);
    net_cancel_tx(w.nic[0].nq);
    while (test_nic_recv(&w.nic[1], frame, 1000, &bytes) == NET_RECV_PACKET) {
    }
    test_settle(w.ctx);
    g_assert_cmpuint(w.nic[0].tx_ready, ==, 0);
    wire_down(&w);
}

/* A peer that leaves turns the wire into a sink, and wakes its sender. */
static void test_peer_leaves(void)
{
    uint8_t frame[1000] = { 0 };
    size_t bytes;
    Wire w;

    wire_up(&w);
    fill(&w.nic[0]);
    test_nic_detach(&w.nic[1]);
    test_settle(w.ctx);
    g_assert_cmpuint(w.nic[0].tx_ready, ==, 1);
    for (unsigned i = 0; i < 10000; i++) {
        test_nic_send_ok(&w.nic[0], frame, sizeof(frame));
    }
    /* One that comes gets nothing from before. */
    test_nic_attach(&w.nic[1], w.nb[1], 0, w.ctx);
    net_rx_want(w.nic[1].nq, true);
    test_settle(w.ctx);
    g_assert_cmpuint(w.nic[1].rx_ready, ==, 0);
    g_assert_cmpint(test_nic_recv(&w.nic[1], frame, 1000, &bytes), ==,
                    NET_RECV_EMPTY);
    test_nic_send_ok(&w.nic[0], frame, 10);
    g_assert_cmpint(test_nic_recv(&w.nic[1], frame, 1000, &bytes), ==,
                    NET_RECV_PACKET);
    wire_down(&w);
}

static void test_inject(void)
{
    uint8_t frame[64];
    size_t bytes;
    Wire w;

    wire_up(&w);
    make_frame(frame, 42, 5);
    net_inject(w.nic[0].nq, frame, 42);
    g_assert_cmpint(test_nic_recv(&w.nic[1], frame, 64, &bytes), ==,
                    NET_RECV_PACKET);
    g_assert_cmpuint(bytes, ==, 42);
    check_frame(frame, 42, 5);
    wire_down(&w);
}

static void test_no_allocation(void)
{
    uint8_t frame[1514] = { 0 };
    uint64_t before;
    size_t bytes;
    Wire w;

    if (!alloc_count_supported()) {
        g_test_skip("the sanitizer's allocator cannot be counted");
        return;
    }
    wire_up(&w);
    net_rx_want(w.nic[1].nq, true);
    before = alloc_count();
    for (unsigned i = 0; i < 3; i++) {
        fill(&w.nic[0]);
        while (test_nic_recv(&w.nic[1], frame, sizeof(frame), &bytes) ==
               NET_RECV_PACKET) {
        }
        test_settle(w.ctx);
    }
    g_assert_cmpuint(alloc_count() - before, ==, 0);
    wire_down(&w);
}

/* ---- two threads ----------------------------------------------------- */

#define STRESS_FRAMES   100000

typedef struct Racer {
    TestNic nic;
    IOThread *thread;
    uint32_t sent, got;
    atomic_bool done;
    uint8_t buf[2048];
} Racer;

static size_t stress_size(uint32_t seq)
{
    return 4 + (seq * 31u) % 1500;
}

static void racer_check_done(Racer *r)
{
    if (r->sent == STRESS_FRAMES && r->got == STRESS_FRAMES) {
        atomic_store(&r->done, true);
    }
}

static void racer_send_bh(void *nic);

static void racer_send(TestNic *nic)
{
    Racer *r = nic->opaque;
    NetTxAnswer answer;

    for (unsigned i = 0; i < 64 && r->sent < STRESS_FRAMES; i++) {
        size_t size = stress_size(r->sent);

        make_frame(r->buf, size, r->sent);
        if (!test_nic_send(nic, r->buf, size, &answer)) {
            return;         /* tx_ready() comes */
        }
        r->sent++;
    }
    racer_check_done(r);
    if (r->sent < STRESS_FRAMES) {
        aio_bh_schedule_oneshot(nic->ctx, racer_send_bh, nic);
    }
}

static void racer_send_bh(void *nic)
{
    racer_send(nic);
}

static void racer_recv(TestNic *nic)
{
    Racer *r = nic->opaque;
    size_t bytes;

    while (test_nic_recv(nic, r->buf, sizeof(r->buf), &bytes) ==
           NET_RECV_PACKET) {
        uint32_t seq;

        memcpy(&seq, r->buf, sizeof(seq));
        g_assert_cmpuint(seq, ==, r->got);
        g_assert_cmpuint(bytes, ==, stress_size(seq));
        g_assert_cmpuint(r->buf[bytes - 1], ==,
                         bytes > 4 ? (uint8_t)(seq + (bytes - 1) * 7)
                                   : (uint8_t)(seq >> 24));
        r->got++;
    }
    racer_check_done(r);
}

static void racer_begin(void *opaque)
{
    Racer *r = opaque;

    net_rx_want(r->nic.nq, true);
    racer_send(&r->nic);
}

static void racer_end(void *opaque)
{
    Racer *r = opaque;

    test_nic_detach(&r->nic);
}

static void test_threads(void)
{
    static Racer racers[2];
    NetBackend *nb[2];

    for (unsigned i = 0; i < 2; i++) {
        Racer *r = &racers[i];
        g_autofree char *options = g_strdup_printf("hubport,id=p%u,hubid=1",
                                                   i);

        r->thread = iothread_new(i ? "one" : "zero", clock_monotonic(), NULL);
        nb[i] = test_netdev_ok(options, iothread_context(r->thread));
        r->nic = (TestNic) {
            .on_rx_ready = racer_recv,
            .on_tx_ready = racer_send,
            .opaque = r,
        };
        test_nic_attach(&r->nic, nb[i], 0, iothread_context(r->thread));
        g_assert_true(iothread_start(r->thread, NULL));
    }
    for (unsigned i = 0; i < 2; i++) {
        aio_bh_schedule_oneshot(iothread_context(racers[i].thread),
                                racer_begin, &racers[i]);
    }
    while (!atomic_load(&racers[0].done) || !atomic_load(&racers[1].done)) {
        sched_yield();
    }
    for (unsigned i = 0; i < 2; i++) {
        aio_wait_bh_oneshot(iothread_context(racers[i].thread), racer_end,
                            &racers[i]);
        iothread_free(racers[i].thread);
        net_backend_free(nb[i]);
    }
}

/* ---- one end comes and goes while the other sends without pause ------ */

static void flooder_send_bh(void *nic);

static void flooder_send(TestNic *nic)
{
    Racer *r = nic->opaque;
    NetTxAnswer answer;

    for (unsigned i = 0; i < 64; i++) {
        make_frame(r->buf, 1500, r->sent);
        if (!test_nic_send(nic, r->buf, 1500, &answer)) {
            return;
        }
        r->sent++;
    }
    if (!atomic_load(&r->done)) {
        aio_bh_schedule_oneshot(nic->ctx, flooder_send_bh, nic);
    }
}

static void flooder_send_bh(void *nic)
{
    flooder_send(nic);
}

static void flooder_begin(void *opaque)
{
    Racer *r = opaque;

    flooder_send(&r->nic);
}

static void test_come_and_go(void)
{
    static Racer flooder;
    AioContext *ctx = aio_context_new("t", clock_monotonic(), NULL);
    IOThread *thread = iothread_new("flood", clock_monotonic(), NULL);
    NetBackend *nb[2];
    uint8_t buf[1500];
    TestNic nic = { 0 };
    size_t bytes;

    flooder.nic = (TestNic) { .on_tx_ready = flooder_send,
                              .opaque = &flooder };
    nb[0] = test_netdev_ok("hubport,id=p0,hubid=1", iothread_context(thread));
    nb[1] = test_netdev_ok("hubport,id=p1,hubid=1", ctx);
    test_nic_attach(&flooder.nic, nb[0], 0, iothread_context(thread));
    g_assert_true(iothread_start(thread, NULL));
    aio_bh_schedule_oneshot(iothread_context(thread), flooder_begin, &flooder);
    for (unsigned i = 0; i < 200; i++) {
        uint32_t last = 0, seq;

        test_nic_attach(&nic, nb[1], 0, ctx);
        net_rx_want(nic.nq, true);
        for (unsigned k = 0; k < i; k++) {
            while (test_nic_recv(&nic, buf, sizeof(buf), &bytes) !=
                   NET_RECV_PACKET) {
                aio_poll(ctx, true);
            }
            memcpy(&seq, buf, sizeof(seq));
            /* Nothing twice; what was sent meanwhile may be missing. */
            g_assert_true(k == 0 || seq > last);
            last = seq;
        }
        test_nic_detach(&nic);
    }
    atomic_store(&flooder.done, true);
    aio_wait_bh_oneshot(iothread_context(thread), racer_end, &flooder);
    iothread_free(thread);
    net_backend_free(nb[0]);
    net_backend_free(nb[1]);
    aio_context_free(ctx);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/net/hubport/sink", test_sink);
    g_test_add_func("/net/hubport/claim", test_claim);
    g_test_add_func("/net/hubport/third-port", test_third_port);
    g_test_add_func("/net/hubport/both-ways", test_both_ways);
    g_test_add_func("/net/hubport/too-long", test_too_long);
    g_test_add_func("/net/hubport/vectors", test_vectors);
    g_test_add_func("/net/hubport/wrap", test_wrap);
    g_test_add_func("/net/hubport/rx-want", test_rx_want);
    g_test_add_func("/net/hubport/full", test_full);
    g_test_add_func("/net/hubport/cancel", test_cancel);
    g_test_add_func("/net/hubport/peer-leaves", test_peer_leaves);
    g_test_add_func("/net/hubport/inject", test_inject);
    g_test_add_func("/net/hubport/no-allocation", test_no_allocation);
    g_test_add_func("/net/hubport/threads", test_threads);
    g_test_add_func("/net/hubport/come-and-go", test_come_and_go);
    return g_test_run();
}
