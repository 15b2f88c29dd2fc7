/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A NIC for tests of backends.  See net-harness.h.
 */
#include "net-harness.h"

/* libslirp 4.7 forgets to free tftp-server-name. */
const char *__lsan_default_suppressions(void);
const char *__lsan_default_suppressions(void)
{
    return "leak:libslirp\n";
}

const char *__asan_default_options(void);
const char *__asan_default_options(void)
{
    return "fast_unwind_on_malloc=0";       /* else it is not named */
}

static void test_nic_rx_ready(void *opaque)
{
    TestNic *nic = opaque;

    nic->rx_ready++;
    if (nic->on_rx_ready) {
        nic->on_rx_ready(nic);
    }
}

static void test_nic_tx_ready(void *opaque)
{
    TestNic *nic = opaque;

    nic->tx_ready++;
    if (nic->on_tx_ready) {
        nic->on_tx_ready(nic);
    }
}

static void test_nic_link_changed(void *opaque, bool up)
{
    TestNic *nic = opaque;

    g_assert_false(up);
    nic->link_down++;
}

static const NetNicOps test_nic_ops = {
    .rx_ready = test_nic_rx_ready,
    .tx_ready = test_nic_tx_ready,
    .link_changed = test_nic_link_changed,
};

NetBackend *test_netdev(const char *options, AioContext *ctx, GError **errp)
{
    KeyVal *kv = keyval_parse("-netdev", options, "type", errp);
    NetBackend *nb = kv ? net_backend_new(kv, ctx, errp) : NULL;

    keyval_free(kv);
    return nb;
}

NetBackend *test_netdev_ok(const char *options, AioContext *ctx)
{
    g_autoptr(GError) err = NULL;
    NetBackend *nb = test_netdev(options, ctx, &err);

    g_assert_no_error(err);
    g_assert_nonnull(nb);
    return nb;
}

void test_nic_attach(TestNic *nic, NetBackend *nb, unsigned i,
                     AioContext *ctx)
{
    nic->nb = nb;
    nic->nq = net_backend_queue(nb, i);
    nic->ctx = ctx;
    net_queue_attach(nic->nq, ctx, ctx, &test_nic_ops, nic);
}

void test_nic_detach(TestNic *nic)
{
    net_cancel_tx(nic->nq);
    net_rx_want(nic->nq, false);
    net_queue_detach(nic->nq);
}

bool test_nic_send(TestNic *nic, const void *frame, size_t bytes,
                   NetTxAnswer *answer)
{
    struct iovec iov = { (void *)frame, bytes };
    NetPacket pkt = { .iov = &iov, .iovcnt = 1, .bytes = bytes };

    if (!net_send_batch(nic->nq, &pkt, 1)) {
        return false;
    }
    *answer = pkt.answer;
    return true;
}

void test_nic_send_ok(TestNic *nic, const void *frame, size_t bytes)
{
    NetTxAnswer answer = NET_TX_PENDING;

    g_assert_true(test_nic_send(nic, frame, bytes, &answer));
    g_assert_cmpint(answer, ==, NET_TX_DONE);
}

NetRecvStatus test_nic_recv(TestNic *nic, void *buf, size_t room,
                            size_t *bytes)
{
    struct iovec iov = { buf, room };

    return net_recv(nic->nq, &iov, 1, bytes);
}

void test_settle(AioContext *ctx)
{
    while (aio_poll(ctx, false)) {
    }
}

void test_turns(AioContext *ctx, unsigned turns)
{
    while (turns-- && aio_poll(ctx, false)) {
    }
}
