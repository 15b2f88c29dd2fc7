/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * vhost-user, end to end: a front-end, the export, the real device, a driver
 * on its rings, and a backend whose answers the test writes.
 */
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "nic-harness.h"
#include "vhost-user-client.h"

/* ---- the pieces --------------------------------------------------------- */

typedef struct Rig {
    NicHarness *h;
    VhostUserExport *exp;
    VuClient cl;
    int ram_fd;
    struct sockaddr_un addr;    /* of the export, in no file system */
    socklen_t addr_len;
    uint8_t *snapshot;
    unsigned fds_before;
} Rig;

static void rig_listen(Rig *rig)
{
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    GError *err = NULL;

    rig->addr.sun_family = AF_UNIX;
    g_assert_cmpint(bind(fd, (struct sockaddr *)&rig->addr,
                         sizeof(sa_family_t)), ==, 0);
    rig->addr_len = sizeof(rig->addr);
    getsockname(fd, (struct sockaddr *)&rig->addr, &rig->addr_len);
    g_assert_cmpint(listen(fd, 4), ==, 0);
    rig->exp = vhost_user_export_new_fd("e", rig->h->nic, rig->h->ctx, fd,
                                        &err);
    g_assert_no_error(err);
}

static void rig_connect(Rig *rig)
{
    VuClient *cl = &rig->cl;
    uint64_t features;

    cl->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    cl->flags = 0;
    g_assert_cmpint(connect(cl->fd, (struct sockaddr *)&rig->addr,
                            rig->addr_len), ==, 0);
    features = vu_client_get(cl, VU_GET_FEATURES);
    g_assert_cmphex(features & NH_MODERN, ==, NH_MODERN);
    g_assert_cmphex(features & (1ULL << 30), !=, 0);
    g_assert_cmphex(features & (1ULL << 26 | 1ULL << 40), ==, 0);
    vu_client_u64(cl, VU_SET_PROTOCOL_FEATURES,
                  vu_client_get(cl, VU_GET_PROTOCOL_FEATURES));
    cl->flags = VU_FLAG_NEED_REPLY;
    g_assert_cmpint(vu_client_u64(cl, VU_SET_FEATURES,
                                  NH_MODERN | 1ULL << 30), ==, VU_OUT_ACK);
}

/* The harness's memory becomes a file, so that it can be handed over. */
static void rig_share_ram(Rig *rig)
{
    rig->ram_fd = vu_memfd(NH_BYTES);
    g_assert_true(mmap(rig->h->ram, NH_BYTES, PROT_READ | PROT_WRITE,
                       MAP_SHARED | MAP_FIXED, rig->ram_fd, 0) ==
                  rig->h->ram);
}

static void rig_init(Rig *rig)
{
    NicOptions opt = { .vnet = true, .stopped = true };

    *rig = (Rig) { .fds_before = vu_count_fds() };
    rig->h = nic_harness_new(&opt);
    virtio_net_reset(rig->h->nic);
    for (unsigned i = 0; i < 2; i++) {
        rig->h->kick[i] = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
        rig->h->call[i] = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    }
    rig_share_ram(rig);
    rig_listen(rig);
    vu_client_init(&rig->cl, rig->h->ctx, -1);
    rig_connect(rig);
}

static void rig_cleanup(Rig *rig)
{
    vu_client_cleanup(&rig->cl);
    vhost_user_export_free(rig->exp);
    nic_harness_free(rig->h);
    close(rig->ram_fd);
    g_free(rig->snapshot);
    g_assert_cmpuint(vu_count_fds(), ==, rig->fds_before);
}

static VuRegion region(uint64_t offset, uint64_t size)
{
    return (VuRegion) {
        .gpa = NH_BASE + offset,
        .size = size,
        .uaddr = VH_UADDR + offset,
        .mmap_offset = offset,
    };
}

static void rig_memory(Rig *rig)
{
    VuRegion r = region(0, NH_BYTES);

    g_assert_cmpint(vu_client_mem_table(&rig->cl, &r, &rig->ram_fd, 1), ==,
                    VU_OUT_ACK);
}

static void rig_mem_reg(Rig *rig, uint32_t request, uint64_t offset,
                        uint64_t size)
{
    VuRegion r = region(offset, size);
    int fd = request == VU_ADD_MEM_REG ? rig->ram_fd : -1;

    g_assert_cmpint(vu_client_mem_reg(&rig->cl, request, &r, fd), ==,
                    VU_OUT_ACK);
}

static VuVringAddr ring_addr(unsigned idx)
{
    uint64_t at = VH_UADDR + (idx ? NH_TX_RING : NH_RX_RING) - NH_BASE;

    return (VuVringAddr) { .index = idx, .desc = at, .avail = at + 0x8000,
                           .used = at + 0x10000 };
}

static VuOutcome rig_start(Rig *rig, unsigned idx, unsigned base)
{
    VuVringAddr addr = ring_addr(idx);
    VuClient *cl = &rig->cl;

    vu_client_state(cl, VU_SET_VRING_NUM, idx, rig->h->size);
    vu_client_state(cl, VU_SET_VRING_BASE, idx, base);
    vu_client_send(cl, VU_SET_VRING_ADDR, &addr, sizeof(addr), NULL, 0);
    vu_client_fd(cl, VU_SET_VRING_CALL, idx, rig->h->call[idx]);
    return vu_client_fd(cl, VU_SET_VRING_KICK, idx, rig->h->kick[idx]);
}

static void rig_enable(Rig *rig, unsigned idx, bool on)
{
    g_assert_cmpint(vu_client_state(&rig->cl, VU_SET_VRING_ENABLE, idx, on),
                    ==, VU_OUT_ACK);
}

/* All of it, and no calls outstanding. */
static void rig_go(Rig *rig)
{
    rig_memory(rig);
    for (unsigned i = 0; i < 2; i++) {
        g_assert_cmpint(rig_start(rig, i, 0), ==, VU_OUT_ACK);
        rig_enable(rig, i, true);
        nic_harness_calls(rig->h, i);
    }
}

static uint16_t used_idx(const VringDriver *d)
{
    return GUINT16_FROM_LE(d->used->idx);
}

static void expect_sent(Rig *rig, unsigned i, uint32_t tag)
{
    const FakeFrame *f = fake_net_sent(rig->h->net, i);

    g_assert_cmpmem(f->data + NH_HDR, 4, &tag, 4);
}

static void rig_snapshot(Rig *rig)
{
    g_free(rig->snapshot);
    rig->snapshot = g_memdup2(rig->h->ram, NH_BYTES);
    nic_harness_calls(rig->h, 0);
    nic_harness_calls(rig->h, 1);
}

/* Whatever happens outside, neither memory nor call is touched. */
static void rig_expect_untouched(Rig *rig)
{
    uint8_t frame[64] = { 0 };

    fake_net_deliver(rig->h->net, NULL, frame, sizeof(frame));
    fake_net_ready(rig->h->net, UINT_MAX);
    eventfd_write(rig->h->kick[0], 1);
    eventfd_write(rig->h->kick[1], 1);
    nic_harness_step(rig->h, NS_PER_SEC);
    g_assert_true(!memcmp(rig->snapshot, rig->h->ram, NH_BYTES));
    g_assert_cmpuint(nic_harness_calls(rig->h, 0), ==, 0);
    g_assert_cmpuint(nic_harness_calls(rig->h, 1), ==, 0);
}

/* ---- traffic ------------------------------------------------------------ */

static void test_transmit(void)
{
    Rig rig;

    rig_init(&rig);
    rig_go(&rig);
    for (unsigned i = 0; i < 10; i++) {
        nic_harness_send(rig.h, 1000 + i, 60);
        nic_harness_kick(rig.h, 1);
        nic_harness_step(rig.h, NS_PER_MS);
    }
    g_assert_cmpuint(rig.h->net->frames->len, ==, 10);
    for (unsigned i = 0; i < 10; i++) {
        expect_sent(&rig, i, 1000 + i);
    }
    g_assert_cmpuint(nic_harness_tx_used(rig.h), ==, 10);
    g_assert_cmpuint(nic_harness_calls(rig.h, 1), >, 0);
    rig_cleanup(&rig);
}

static void test_receive(void)
{
    static const char frame[64] = "sixty-four bytes of something";
    uint32_t id, len;
    Rig rig;

    rig_init(&rig);
    rig_go(&rig);
    nic_harness_post(rig.h, 2048);
    nic_harness_kick(rig.h, 0);
    nic_harness_run(rig.h);
    fake_net_deliver(rig.h->net, NULL, frame, sizeof(frame));
    nic_harness_run(rig.h);
    g_assert_true(vring_driver_get_used(&rig.h->rx, &id, &len));
    g_assert_cmpuint(len, ==, NH_HDR + sizeof(frame));
    g_assert_cmpmem((char *)nic_harness_ptr(rig.h, NH_RX_BUF) + NH_HDR,
                    sizeof(frame), frame, sizeof(frame));
    g_assert_cmpuint(nic_harness_calls(rig.h, 0), ==, 1);
    rig_cleanup(&rig);
}

/* F28: the kick came early, and there will be no other. */
static void test_enabled_late(void)
{
    static const char frame[64];
    uint32_t id, len;
    Rig rig;

    rig_init(&rig);
    rig_memory(&rig);
    for (unsigned i = 0; i < 256; i++) {
        nic_harness_post(rig.h, 2048);
    }
    eventfd_write(rig.h->kick[0], 1);
    g_assert_cmpint(rig_start(&rig, 0, 0), ==, VU_OUT_ACK);
    fake_net_deliver(rig.h->net, NULL, frame, sizeof(frame));
    nic_harness_step(rig.h, 200 * NS_PER_MS);
    g_assert_false(vring_driver_get_used(&rig.h->rx, &id, &len));
    rig_enable(&rig, 0, true);
    fake_net_deliver(rig.h->net, NULL, frame, sizeof(frame));
    nic_harness_run(rig.h);
    g_assert_true(vring_driver_get_used(&rig.h->rx, &id, &len));
    rig_cleanup(&rig);
}

static void test_disabled_drops(void)
{
    Rig rig;

    rig_init(&rig);
    rig_go(&rig);
    rig_enable(&rig, 1, false);
    nic_harness_send(rig.h, 1, 60);
    nic_harness_kick(rig.h, 1);
    nic_harness_step(rig.h, NS_PER_MS);
    g_assert_cmpuint(nic_harness_tx_used(rig.h), ==, 1);
    g_assert_cmpuint(rig.h->net->frames->len, ==, 0);
    rig_enable(&rig, 1, true);
    nic_harness_send(rig.h, 2, 60);
    nic_harness_kick(rig.h, 1);
    nic_harness_step(rig.h, NS_PER_MS);
    g_assert_cmpuint(nic_harness_tx_used(rig.h), ==, 1);
    expect_sent(&rig, 0, 2);
    rig_cleanup(&rig);
}

/* ---- stopping ----------------------------------------------------------- */

/* The backend holds ten packets and has not answered for any. */
static void test_stop_in_flight(void)
{
    Rig rig;

    rig_init(&rig);
    rig_go(&rig);
    rig.h->net->pending = true;
    for (unsigned i = 0; i < 10; i++) {
        nic_harness_send(rig.h, i, 60);
    }
    nic_harness_kick(rig.h, 1);
    nic_harness_run(rig.h);
    g_assert_cmpuint(g_queue_get_length(rig.h->net->cookies), ==, 10);
    g_assert_cmpuint(vu_client_get_base(&rig.cl, 1), ==, 10);
    g_assert_cmpuint(used_idx(&rig.h->tx), ==, 10);
    g_assert_cmpuint(vu_client_get_base(&rig.cl, 0), ==, 0);
    rig_snapshot(&rig);
    rig_expect_untouched(&rig);
    rig_cleanup(&rig);
}

/* The backend takes nothing: the packets stay in the ring, and go later. */
static void test_stop_backend_full(void)
{
    unsigned base;
    Rig rig;

    rig_init(&rig);
    rig_go(&rig);
    rig.h->net->room = 0;
    for (unsigned i = 0; i < 10; i++) {
        nic_harness_send(rig.h, i, 60);
    }
    nic_harness_kick(rig.h, 1);
    nic_harness_run(rig.h);
    base = vu_client_get_base(&rig.cl, 1);
    g_assert_cmpuint(base, ==, used_idx(&rig.h->tx));
    vu_client_get_base(&rig.cl, 0);
    rig_snapshot(&rig);
    rig_expect_untouched(&rig);

    g_assert_cmpint(rig_start(&rig, 1, base), ==, VU_OUT_ACK);
    nic_harness_step(rig.h, NS_PER_MS);
    g_assert_cmpuint(used_idx(&rig.h->tx), ==, 10);
    g_assert_cmpuint(rig.h->net->frames->len, ==, 10 - base);
    for (unsigned i = base; i < 10; i++) {
        expect_sent(&rig, i - base, i);
    }
    rig_cleanup(&rig);
}

/* F53: 70000 packets, and the index that comes back is 16 bits wide. */
static void test_base_wraps(void)
{
    unsigned sent = 0;
    Rig rig;

    rig_init(&rig);
    rig_go(&rig);
    rig.h->net->record = false;
    while (sent < 70000) {
        for (unsigned i = 0; i < 200; i++) {
            nic_harness_send(rig.h, sent++, 60);
        }
        nic_harness_kick(rig.h, 1);
        nic_harness_step(rig.h, NS_PER_MS);
        g_assert_cmpuint(nic_harness_tx_used(rig.h), ==, 200);
    }
    g_assert_cmpuint(vu_client_get_base(&rig.cl, 1), ==, 70000 - 65536);
    g_assert_cmpuint(vu_client_get_base(&rig.cl, 1), ==, 70000 - 65536);
    rig_enable(&rig, 1, true);
    g_assert_cmpuint(vu_client_get_base(&rig.cl, 1), ==, 70000 - 65536);
    g_assert_cmpint(rig_start(&rig, 1, 70000 - 65536), ==, VU_OUT_ACK);
    nic_harness_send(rig.h, sent, 60);
    nic_harness_kick(rig.h, 1);
    nic_harness_step(rig.h, NS_PER_MS);
    g_assert_cmpuint(nic_harness_tx_used(rig.h), ==, 1);
    rig_cleanup(&rig);
}

/* ---- losing the front-end ----------------------------------------------- */

/*
 * What was taken and not returned is cancelled or comes again; QEMU starts
 * the next connection from the used index.
 */
static void check_reconnect(bool pending, unsigned room)
{
    uint16_t base;
    Rig rig;

    rig_init(&rig);
    rig_go(&rig);
    rig.h->net->pending = pending;
    rig.h->net->room = room;
    for (unsigned i = 0; i < 20; i++) {
        nic_harness_send(rig.h, i, 60);
        nic_harness_post(rig.h, 2048);
    }
    nic_harness_kick(rig.h, 1);
    nic_harness_kick(rig.h, 0);
    nic_harness_run(rig.h);
    vu_client_close(&rig.cl);
    rig_snapshot(&rig);
    rig_expect_untouched(&rig);

    rig.h->net->pending = false;
    fake_net_ready(rig.h->net, UINT_MAX);
    rig_connect(&rig);
    rig_memory(&rig);
    base = used_idx(&rig.h->tx);
    /* First, as QEMU does: a disabled ring drops what it finds. */
    rig_enable(&rig, 1, true);
    g_assert_cmpint(rig_start(&rig, 1, base), ==, VU_OUT_ACK);
    nic_harness_step(rig.h, NS_PER_MS);
    g_assert_cmpuint(used_idx(&rig.h->tx), ==, 20);
    /* Each packet went out once, in order. */
    g_assert_cmpuint(rig.h->net->frames->len, ==, 20);
    for (unsigned i = 0; i < 20; i++) {
        expect_sent(&rig, i, i);
    }
    rig_cleanup(&rig);
}

static void test_reconnect(void)
{
    check_reconnect(false, UINT_MAX);
    check_reconnect(true, UINT_MAX);
    check_reconnect(false, 7);
    check_reconnect(true, 7);
}

/* ---- memory that changes ------------------------------------------------ */

static void expect_one_packet(Rig *rig, uint32_t tag)
{
    unsigned before = rig->h->net->frames->len;

    nic_harness_send(rig->h, tag, 60);
    nic_harness_kick(rig->h, 1);
    nic_harness_step(rig->h, NS_PER_MS);
    g_assert_cmpuint(nic_harness_tx_used(rig->h), ==, 1);
    expect_sent(rig, before, tag);
}

static void test_table_while_running(void)
{
    VuRegion r[2] = { region(0, 0x200000),
                      region(0x200000, NH_BYTES - 0x200000) };
    int fds[2];
    Rig rig;

    rig_init(&rig);
    rig_go(&rig);
    fds[0] = fds[1] = rig.ram_fd;
    for (unsigned i = 0; i < 20; i++) {
        expect_one_packet(&rig, i);
        g_assert_cmpint(vu_client_mem_table(&rig.cl, r, fds, 2), ==,
                        VU_OUT_ACK);
        expect_one_packet(&rig, 100 + i);
        rig_memory(&rig);
    }
    g_assert_false(virtio_net_queue_broken(rig.h->nic, 1));
    rig_cleanup(&rig);
}

/* Between REM and ADD neither the ring nor the buffers are there, and the
 * front-end loses its CPU for a while. */
static void check_resize(uint64_t cut)
{
    Rig rig;

    rig_init(&rig);
    rig_mem_reg(&rig, VU_ADD_MEM_REG, 0, cut);
    rig_mem_reg(&rig, VU_ADD_MEM_REG, cut, NH_BYTES - cut);
    g_assert_cmpint(rig_start(&rig, 1, 0), ==, VU_OUT_ACK);
    rig_enable(&rig, 1, true);
    expect_one_packet(&rig, 1);

    rig_mem_reg(&rig, VU_REM_MEM_REG, 0, cut);
    rig_mem_reg(&rig, VU_REM_MEM_REG, cut, NH_BYTES - cut);
    nic_harness_send(rig.h, 2, 60);
    nic_harness_kick(rig.h, 1);
    nic_harness_step(rig.h, 100 * NS_PER_MS);
    g_assert_cmpuint(nic_harness_tx_used(rig.h), ==, 0);
    rig_mem_reg(&rig, VU_ADD_MEM_REG, 0, NH_BYTES);
    nic_harness_step(rig.h, NS_PER_MS);
    g_assert_cmpuint(nic_harness_tx_used(rig.h), ==, 1);
    expect_sent(&rig, 1, 2);
    expect_one_packet(&rig, 3);
    rig_cleanup(&rig);
}

/* The ring has its place all the while, the buffers have not. */
static void test_buffers_replaced(void)
{
    uint64_t cut = 0x100000;
    Rig rig;

    rig_init(&rig);
    rig_mem_reg(&rig, VU_ADD_MEM_REG, 0, cut);
    rig_mem_reg(&rig, VU_ADD_MEM_REG, cut, NH_BYTES - cut);
    g_assert_cmpint(rig_start(&rig, 1, 0), ==, VU_OUT_ACK);
    rig_enable(&rig, 1, true);

    rig_mem_reg(&rig, VU_REM_MEM_REG, cut, NH_BYTES - cut);
    nic_harness_send(rig.h, 1, 60);
    nic_harness_kick(rig.h, 1);
    nic_harness_step(rig.h, 100 * NS_PER_MS);
    g_assert_false(virtio_net_queue_broken(rig.h->nic, 1));
    rig_mem_reg(&rig, VU_ADD_MEM_REG, cut, NH_BYTES - cut - 0x1000);
    rig_mem_reg(&rig, VU_ADD_MEM_REG, NH_BYTES - 0x1000, 0x1000);
    nic_harness_step(rig.h, NS_PER_MS);
    g_assert_cmpuint(nic_harness_tx_used(rig.h), ==, 1);
    expect_one_packet(&rig, 2);
    rig_cleanup(&rig);
}

static void test_resize(void)
{
    check_resize(NH_TX_BUF - NH_BASE);      /* rings | buffers */
    check_resize(0x100000);                 /* rings | everything else */
}

/* ---- guest mistakes ----------------------------------------------------- */

/* The guest's index jumps: its ring breaks, the connection does not. */
static void test_broken_ring(void)
{
    int err = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    eventfd_t count;
    Rig rig;

    rig_init(&rig);
    rig_go(&rig);
    vu_client_fd(&rig.cl, VU_SET_VRING_ERR, 1, err);
    vring_driver_set_avail_idx(&rig.h->tx, 0x8000);
    eventfd_write(rig.h->kick[1], 1);
    vu_client_turn(&rig.cl);
    vu_client_expect_line(&rig.cl, "ring 1 is broken");
    g_assert_cmpint(eventfd_read(err, &count), ==, 0);
    g_assert_true(vhost_user_export_connected(rig.exp));

    /* A reset of the driver revives it. */
    vu_client_get_base(&rig.cl, 0);
    vu_client_get_base(&rig.cl, 1);
    vring_driver_init(&rig.h->tx, rig.h->size, rig.h->features,
                      rig.h->tx.desc, rig.h->tx.avail, rig.h->tx.used);
    g_assert_cmpint(rig_start(&rig, 1, 0), ==, VU_OUT_ACK);
    expect_one_packet(&rig, 5);
    rig_cleanup(&rig);
    close(err);
}

/*
 * A broken transmit ring stops reception, too, and tells the backend: frames
 * that nobody will ever take would wake the NIC without end.
 */
static void test_broken_ring_and_traffic(void)
{
    static const char frame[64];
    Rig rig;

    rig_init(&rig);
    rig_go(&rig);
    nic_harness_post(rig.h, 2048);
    nic_harness_kick(rig.h, 0);
    nic_harness_run(rig.h);
    g_assert_true(rig.h->net->want);
    vring_driver_set_avail_idx(&rig.h->tx, 0x8000);
    eventfd_write(rig.h->kick[1], 1);
    vu_client_turn(&rig.cl);
    vu_client_expect_line(&rig.cl, "ring 1 is broken");
    fake_net_deliver(rig.h->net, NULL, frame, sizeof(frame));
    nic_harness_run(rig.h);
    g_assert_false(rig.h->net->want);
    rig_cleanup(&rig);
}

/* The used index says more is in flight than the ring holds. */
static void test_start_refused(void)
{
    Rig rig;

    rig_init(&rig);
    rig_memory(&rig);
    g_assert_cmpint(rig_start(&rig, 1, 40000), ==, VU_OUT_NACK);
    vu_client_expect_line(&rig.cl, "SET_VRING_KICK: ring 1: ");
    g_assert_cmpint(rig_start(&rig, 1, 0), ==, VU_OUT_ACK);
    rig_enable(&rig, 1, true);
    expect_one_packet(&rig, 1);
    rig_cleanup(&rig);
}

/* ---- calls -------------------------------------------------------------- */

/*
 * F30: whatever the old descriptor got, the new one is signalled once, so a
 * completion is never announced to nobody.
 */
static void test_call_swap(void)
{
    Rig rig;

    rig_init(&rig);
    rig_go(&rig);
    for (unsigned i = 0; i < 1000; i++) {
        nic_harness_send(rig.h, i, 60);
        nic_harness_kick(rig.h, 1);
        nic_harness_run(rig.h);
        close(rig.h->call[1]);
        rig.h->call[1] = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
        g_assert_cmpint(vu_client_fd(&rig.cl, VU_SET_VRING_CALL, 1,
                                     rig.h->call[1]), ==, VU_OUT_ACK);
        g_assert_cmpuint(nic_harness_calls(rig.h, 1), >, 0);
        nic_harness_step(rig.h, NS_PER_MS);
        g_assert_cmpuint(nic_harness_tx_used(rig.h), ==, 1);
    }
    rig_cleanup(&rig);
}

static void test_announce(void)
{
    static const uint8_t mac[8] = { 0x52, 0x54, 0, 1, 2, 3 };
    const FakeFrame *f;
    uint64_t value;
    Rig rig;

    rig_init(&rig);
    memcpy(&value, mac, 8);
    g_assert_cmpint(vu_client_u64(&rig.cl, VU_SEND_RARP, value), ==,
                    VU_OUT_ACK);
    g_assert_cmpuint(rig.h->net->frames->len, ==, 1);
    f = fake_net_sent(rig.h->net, 0);
    g_assert_cmpuint(f->bytes, ==, NH_HDR + 60);
    g_assert_cmpmem(f->data + NH_HDR + 6, 6, mac, 6);
    virtio_net_set_link(rig.h->nic, false);
    g_assert_cmpint(vu_client_u64(&rig.cl, VU_SEND_RARP, value), ==,
                    VU_OUT_ACK);
    g_assert_cmpuint(rig.h->net->frames->len, ==, 1);
    rig_cleanup(&rig);
}

static const struct {
    const char *path;
    GTestFunc fn;
} tests[] = {
    { "/vhost-user/device/transmit", test_transmit },
    { "/vhost-user/device/receive", test_receive },
    { "/vhost-user/device/enabled-late", test_enabled_late },
    { "/vhost-user/device/disabled-drops", test_disabled_drops },
    { "/vhost-user/device/stop-in-flight", test_stop_in_flight },
    { "/vhost-user/device/stop-backend-full", test_stop_backend_full },
    { "/vhost-user/device/base-wraps", test_base_wraps },
    { "/vhost-user/device/reconnect", test_reconnect },
    { "/vhost-user/device/table-while-running", test_table_while_running },
    { "/vhost-user/device/resize", test_resize },
    { "/vhost-user/device/buffers-replaced", test_buffers_replaced },
    { "/vhost-user/device/broken-ring", test_broken_ring },
    { "/vhost-user/device/broken-ring-and-traffic",
      test_broken_ring_and_traffic },
    { "/vhost-user/device/start-refused", test_start_refused },
    { "/vhost-user/device/call-swap", test_call_swap },
    { "/vhost-user/device/announce", test_announce },
};

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    for (unsigned i = 0; i < G_N_ELEMENTS(tests); i++) {
        g_test_add_func(tests[i].path, tests[i].fn);
    }
    return g_test_run();
}
