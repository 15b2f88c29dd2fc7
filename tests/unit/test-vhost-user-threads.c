/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * vhost-user, with the queues in a thread of their own, or the transmit queue
 * in another one yet: messages are handled in main while packets flow.
 *
 * Each round pushes packets into the transmit ring and, while the device may
 * be at them, sends the messages of a busy front-end; it ends with
 * GET_VRING_BASE, whose answer has to agree with the used index, after which
 * nothing may move any more.  Time is the machine's, and nothing waits for it.
 */
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "util/iothread.h"
#include "vhost-user-client.h"
#include "vring-harness.h"

#define GPA         UINT64_C(0x100000)
#define UADDR       UINT64_C(0x7f0000000000)
#define RAM_BYTES   0x100000
#define TX_RING     0x10000
#define TX_BUF      0x80000
#define RING_SIZE   256
#define PACKET      72          /* header of 12 bytes, frame of 60 */
#define FEATURES    (VH_FEATURE(VIRTIO_F_VERSION_1) | VH_EVENT_IDX)
#define ROUNDS      300

typedef struct Rig {
    AioContext *ctx;
    IOThread *thread;
    NetBackend *nb;
    VirtIONet *nic;
    VhostUserExport *exp;
    VuClient cl;
    VringDriver tx;
    int ram_fd;
    uint8_t *ram;
    int kick;
    unsigned fds_before;
} Rig;

static void rig_nic(Rig *rig, VirtIONetTxThread tx_thread)
{
    KeyVal *kv = keyval_parse("-netdev", "hubport,id=n0,hubid=0", "type",
                              NULL);
    VirtIONetConf conf;

    rig->thread = iothread_new("io", clock_monotonic(), NULL);
    rig->nb = net_backend_new(kv, iothread_context(rig->thread), NULL);
    keyval_free(kv);
    g_assert_nonnull(rig->nb);
    virtio_net_conf_init(&conf);
    conf.tx_thread = tx_thread;
    rig->nic = virtio_net_new(&conf, rig->nb, iothread_context(rig->thread),
                              NULL);
    g_assert_nonnull(rig->nic);
    g_assert_true(iothread_start(rig->thread, NULL));
    g_assert_true(virtio_net_start(rig->nic, NULL));
}

static void rig_init(Rig *rig, VirtIONetTxThread tx_thread)
{
    int pair[2];

    *rig = (Rig) { .fds_before = vu_count_fds() };
    rig->ctx = aio_context_new("main", clock_monotonic(), NULL);
    rig_nic(rig, tx_thread);
    rig->ram_fd = vu_memfd(RAM_BYTES);
    rig->ram = mmap(NULL, RAM_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED,
                    rig->ram_fd, 0);
    g_assert(rig->ram != MAP_FAILED);
    vring_driver_init(&rig->tx, RING_SIZE, FEATURES, rig->ram + TX_RING,
                      rig->ram + TX_RING + 0x4000,
                      rig->ram + TX_RING + 0x8000);
    rig->kick = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair);
    rig->exp = vhost_user_export_new_fd("e", rig->nic, rig->ctx, pair[0],
                                        NULL);
    vu_client_init(&rig->cl, rig->ctx, pair[1]);
}

static void rig_cleanup(Rig *rig)
{
    vu_client_cleanup(&rig->cl);
    vhost_user_export_free(rig->exp);
    virtio_net_free(rig->nic);
    net_backend_free(rig->nb);
    iothread_free(rig->thread);
    aio_context_free(rig->ctx);
    munmap(rig->ram, RAM_BYTES);
    close(rig->ram_fd);
    close(rig->kick);
    g_assert_cmpuint(vu_count_fds(), ==, rig->fds_before);
}

static void expect_ack(VuOutcome out)
{
    g_assert_cmpint(out, ==, VU_OUT_ACK);
}

/* One region, or two that make the same memory. */
static void send_memory(Rig *rig, unsigned n)
{
    uint64_t size = RAM_BYTES / n;
    VuRegion regions[2] = {
        { GPA, size, UADDR, 0 },
        { GPA + size, size, UADDR + size, size },
    };
    int fds[2] = { rig->ram_fd, rig->ram_fd };

    expect_ack(vu_client_mem_table(&rig->cl, regions, fds, n));
}

static void negotiate(Rig *rig)
{
    vu_client_u64(&rig->cl, VU_SET_PROTOCOL_FEATURES,
                  vu_client_get(&rig->cl, VU_GET_PROTOCOL_FEATURES));
    rig->cl.flags = VU_FLAG_NEED_REPLY;
    expect_ack(vu_client_u64(&rig->cl, VU_SET_FEATURES,
                             FEATURES | 1ULL << 30));
    expect_ack(vu_client_state(&rig->cl, VU_SET_VRING_ENABLE, 1, 1));
    send_memory(rig, 1);
}

static void start(Rig *rig, unsigned base)
{
    VuVringAddr addr = {
        .index = 1,
        .desc = UADDR + TX_RING,
        .avail = UADDR + TX_RING + 0x4000,
        .used = UADDR + TX_RING + 0x8000,
    };
    VuClient *cl = &rig->cl;

    expect_ack(vu_client_state(cl, VU_SET_VRING_NUM, 1, RING_SIZE));
    expect_ack(vu_client_state(cl, VU_SET_VRING_BASE, 1, base));
    expect_ack(vu_client_send(cl, VU_SET_VRING_ADDR, &addr, sizeof(addr),
                              NULL, 0));
    expect_ack(vu_client_fd(cl, VU_SET_VRING_KICK, 1, rig->kick));
    expect_ack(vu_client_eventfd(cl, VU_SET_VRING_CALL, 1));
}

static unsigned take_used(Rig *rig)
{
    uint32_t id, len;
    unsigned n = 0;

    while (vring_driver_get_used(&rig->tx, &id, &len)) {
        g_assert_cmpuint(len, ==, 0);
        n++;
    }
    return n;
}

/* As many as the ring has room for. */
static unsigned push(Rig *rig, unsigned in_flight)
{
    unsigned n = 0;

    for (; in_flight + n < RING_SIZE && n < 64; n++) {
        vring_driver_add(&rig->tx, GPA + TX_BUF, PACKET, 0);
    }
    if (vring_driver_wants_kick(&rig->tx)) {
        eventfd_write(rig->kick, 1);
    }
    return n;
}

static uint16_t used_idx(const Rig *rig)
{
    return GUINT16_FROM_LE(__atomic_load_n(&rig->tx.used->idx,
                                           __ATOMIC_ACQUIRE));
}

static void one_round(Rig *rig, unsigned round, unsigned *in_flight)
{
    VuClient *cl = &rig->cl;
    uint16_t base;

    *in_flight += push(rig, *in_flight);
    expect_ack(vu_client_eventfd(cl, VU_SET_VRING_CALL, 1));
    *in_flight += push(rig, *in_flight);
    send_memory(rig, 1 + round % 2);
    *in_flight += push(rig, *in_flight);
    expect_ack(vu_client_u64(cl, VU_SET_FEATURES, FEATURES | 1ULL << 30));
    expect_ack(vu_client_u64(cl, VU_SEND_RARP, round));
    base = vu_client_get_base(cl, 1);
    g_assert_cmpuint(used_idx(rig), ==, base);
    /* The device has let go: the guest may do with its ring what it likes. */
    *in_flight -= take_used(rig);
    *in_flight += push(rig, *in_flight);
    g_assert_cmpuint(used_idx(rig), ==, base);
    start(rig, base);
}

/* A monitor reads and resets while the queue counts. */
static void read_and_reset(Rig *rig)
{
    VirtIONetQueueStats before, after, zero;

    virtio_net_queue_stats_base(rig->nic, 1, &before);
    virtio_net_queue_stats(rig->nic, 1, &after);
    g_assert_cmpuint(before.packets, <=, after.packets);
    virtio_net_reset_stats(rig->nic);
    virtio_net_queue_stats_base(rig->nic, 1, &zero);
    g_assert_cmpuint(zero.packets, <=, RING_SIZE);
}

static void test_messages_under_traffic(gconstpointer tx_thread)
{
    unsigned in_flight = 0;
    VirtIONetQueueStats stats;
    Rig rig;

    rig_init(&rig, GPOINTER_TO_UINT(tx_thread));
    negotiate(&rig);
    start(&rig, 0);
    for (unsigned round = 0; round < ROUNDS; round++) {
        one_round(&rig, round, &in_flight);
        read_and_reset(&rig);
    }
    vu_client_get_base(&rig.cl, 1);
    virtio_net_queue_stats(rig.nic, 1, &stats);
    g_assert_cmpuint((uint16_t)stats.packets, ==, used_idx(&rig));
    g_assert_cmpuint(stats.packets, >=, ROUNDS);
    g_assert_cmpuint(stats.dropped_guest, ==, 0);
    rig_cleanup(&rig);
}

/* The front-end goes while packets flow; nothing of it is touched after. */
static void test_gone_under_traffic(gconstpointer tx_thread)
{
    for (unsigned i = 0; i < 50; i++) {
        uint16_t idx;
        Rig rig;

        rig_init(&rig, GPOINTER_TO_UINT(tx_thread));
        negotiate(&rig);
        start(&rig, 0);
        push(&rig, 0);
        vu_client_close(&rig.cl);
        idx = used_idx(&rig);
        push(&rig, 64);
        g_assert_cmpuint(used_idx(&rig), ==, idx);
        rig_cleanup(&rig);
    }
}

static void add(const char *name, VirtIONetTxThread tx_thread)
{
    static const struct {
        const char *name;
        GTestDataFunc test;
    } tests[] = {
        { "messages-under-traffic", test_messages_under_traffic },
        { "gone-under-traffic", test_gone_under_traffic },
    };

    for (unsigned i = 0; i < G_N_ELEMENTS(tests); i++) {
        g_autofree char *path = g_strdup_printf("/vhost-user/threads/%s/%s",
                                                name, tests[i].name);

        g_test_add_data_func(path, GUINT_TO_POINTER(tx_thread),
                             tests[i].test);
    }
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    add("iothread", VIRTIO_NET_TX_THREAD_OFF);
    add("tx-thread", VIRTIO_NET_TX_THREAD_ON);
    return g_test_run();
}
