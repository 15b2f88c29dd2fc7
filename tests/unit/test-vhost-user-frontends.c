/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * vhost-user, whole conversations: the message sequences of QEMU 7.2, QEMU
 * 10.2 and DPDK 22.11, as recorded from them against a back-end that offers
 * what ours offers, delivered in one piece, byte by byte, all at once, and
 * broken off after each message.
 */
#include <errno.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "vhost-user-rig.h"

/* ---- scripts ------------------------------------------------------------ */

typedef struct Step {
    uint32_t request;
    uint32_t index;             /* ring */
    uint64_t value;             /* u64 payload, or num of a ring state */
    bool need_reply;
} Step;

#define VIRTIO_BITS (RIG_FEATURES & ~(1ULL << 40))
#define WITH_30     (VIRTIO_BITS | 1ULL << 30)

#define RING(i, base, nr)                                                    \
    { VU_SET_VRING_NUM, i, 256 },                                            \
    { VU_SET_VRING_BASE, i, base },                                          \
    { VU_SET_VRING_ADDR, i },                                                \
    { VU_SET_VRING_KICK, i, 0, nr },                                         \
    { VU_SET_VRING_CALL, i, 0, nr }

static const Step qemu72_connect[] = {
    { VU_GET_FEATURES }, { VU_GET_PROTOCOL_FEATURES },
    { VU_SET_PROTOCOL_FEATURES, 0, 0xa01d },
    { VU_GET_QUEUE_NUM }, { VU_GET_MAX_MEM_SLOTS },
    { VU_SET_OWNER }, { VU_GET_FEATURES },
    { VU_SET_VRING_CALL, 0 }, { VU_SET_VRING_ERR, 0 },
    { VU_SET_VRING_CALL, 1 }, { VU_SET_VRING_ERR, 1 },
    { VU_SET_VRING_ENABLE, 0, 1 }, { VU_SET_VRING_ENABLE, 1, 1 },
    { 0 }
};

static const Step qemu72_start[] = {
    { VU_NET_SET_MTU, 0, 1500, true },
    { VU_SET_VRING_ENABLE, 0, 1 }, { VU_SET_VRING_ENABLE, 1, 1 },
    { VU_SET_FEATURES, 0, WITH_30 },
    { VU_ADD_MEM_REG, 0, 0, true },
    RING(0, 0, false), RING(1, 0, false),
    { 0 }
};

static const Step qemu_stop[] = {
    { VU_GET_VRING_BASE, 0 }, { VU_GET_VRING_BASE, 1 },
    { 0 }
};

/* With memory slots the regions are not sent again. */
static const Step qemu72_restart[] = {
    { VU_SET_VRING_ENABLE, 0, 1 }, { VU_SET_VRING_ENABLE, 1, 1 },
    { VU_SET_FEATURES, 0, WITH_30 },
    RING(0, 10, false), RING(1, 20, false),
    { 0 }
};

static const Step qemu102_connect[] = {
    { VU_GET_FEATURES }, { VU_GET_PROTOCOL_FEATURES },
    { VU_SET_PROTOCOL_FEATURES, 0, 0xa01d },
    { VU_GET_QUEUE_NUM }, { VU_GET_MAX_MEM_SLOTS },
    { VU_SET_OWNER }, { VU_GET_FEATURES },
    { VU_SET_VRING_CALL, 0, 0, true }, { VU_SET_VRING_ERR, 0, 0, true },
    { VU_SET_VRING_CALL, 1, 0, true }, { VU_SET_VRING_ERR, 1, 0, true },
    { VU_RESET_DEVICE },
    { VU_SET_VRING_ENABLE, 0, 1, true }, { VU_SET_VRING_ENABLE, 1, 1, true },
    { 0 }
};

static const Step qemu102_start[] = {
    { VU_NET_SET_MTU, 0, 1500, true },
    { VU_SET_VRING_ENABLE, 0, 1, true }, { VU_SET_VRING_ENABLE, 1, 1, true },
    { VU_SET_FEATURES, 0, WITH_30 },
    { VU_ADD_MEM_REG, 0, 0, true },
    RING(0, 0, true), RING(1, 0, true),
    { 0 }
};

static const Step qemu102_restart[] = {
    { VU_RESET_DEVICE },
    { VU_SET_VRING_ENABLE, 0, 1, true }, { VU_SET_VRING_ENABLE, 1, 1, true },
    { VU_SET_VRING_ENABLE, 0, 1, true }, { VU_SET_VRING_ENABLE, 1, 1, true },
    { VU_SET_FEATURES, 0, WITH_30 },
    RING(0, 10, true), RING(1, 20, true),
    { 0 }
};

static const Step dpdk_connect[] = {
    { VU_SET_OWNER }, { VU_GET_FEATURES }, { VU_GET_PROTOCOL_FEATURES },
    { VU_SET_PROTOCOL_FEATURES, 0, 0x9 },
    { VU_SET_VRING_CALL, 0 }, { VU_SET_VRING_CALL, 1 },
    { 0 }
};

static const Step dpdk_start[] = {
    { VU_SET_FEATURES, 0, WITH_30 },
    { VU_SET_MEM_TABLE, 0, 0, true },
    { VU_SET_VRING_NUM, 0, 256 }, { VU_SET_VRING_BASE, 0, 0 },
    { VU_SET_VRING_ADDR, 0 }, { VU_SET_VRING_KICK, 0 },
    { VU_SET_VRING_NUM, 1, 256 }, { VU_SET_VRING_BASE, 1, 0 },
    { VU_SET_VRING_ADDR, 1 }, { VU_SET_VRING_KICK, 1 },
    { VU_SET_VRING_ENABLE, 0, 1 }, { VU_SET_VRING_ENABLE, 1, 1 },
    { 0 }
};

static const Step dpdk_stop[] = {
    { VU_SET_VRING_ENABLE, 0, 0 }, { VU_SET_VRING_ENABLE, 1, 0 },
    { VU_GET_VRING_BASE, 0 }, { VU_GET_VRING_BASE, 1 },
    { 0 }
};

static const Step dpdk_restart[] = {
    { VU_SET_FEATURES, 0, WITH_30 },
    { VU_SET_MEM_TABLE, 0, 0, true },
    { VU_SET_VRING_NUM, 0, 256 }, { VU_SET_VRING_BASE, 0, 10 },
    { VU_SET_VRING_ADDR, 0 }, { VU_SET_VRING_KICK, 0 },
    { VU_SET_VRING_NUM, 1, 256 }, { VU_SET_VRING_BASE, 1, 20 },
    { VU_SET_VRING_ADDR, 1 }, { VU_SET_VRING_KICK, 1 },
    { VU_SET_VRING_ENABLE, 0, 1 }, { VU_SET_VRING_ENABLE, 1, 1 },
    { 0 }
};

typedef struct FrontEnd {
    const char *name;
    const Step *connect, *start, *stop, *restart;
} FrontEnd;

static const FrontEnd frontends[] = {
    { "qemu-7.2", qemu72_connect, qemu72_start, qemu_stop, qemu72_restart },
    { "qemu-10.2", qemu102_connect, qemu102_start, qemu_stop,
      qemu102_restart },
    { "dpdk", dpdk_connect, dpdk_start, dpdk_stop, dpdk_restart },
};

/* ---- playing ------------------------------------------------------------ */

typedef enum Delivery { WHOLE, BYTES, BURST } Delivery;

typedef struct Frame {
    VuHeader hdr;
    union {
        uint64_t u64;
        VuVringState state;
        VuVringAddr addr;
        VuMemTable table;
        VuMemReg reg;
    } payload;
} __attribute__((packed)) Frame;

static uint32_t fill_payload(const Step *s, Frame *f)
{
    VuRegion ram = vu_rig_region(0, RIG_RAM_BYTES);

    switch (s->request) {
    case VU_SET_FEATURES:
    case VU_SET_PROTOCOL_FEATURES:
    case VU_NET_SET_MTU:
        f->payload.u64 = s->value;
        return sizeof(f->payload.u64);
    case VU_SET_VRING_KICK:
    case VU_SET_VRING_CALL:
    case VU_SET_VRING_ERR:
        f->payload.u64 = s->index;
        return sizeof(f->payload.u64);
    case VU_SET_VRING_NUM:
    case VU_SET_VRING_BASE:
    case VU_GET_VRING_BASE:
    case VU_SET_VRING_ENABLE:
        f->payload.state = (VuVringState) { s->index, s->value };
        return sizeof(f->payload.state);
    case VU_SET_VRING_ADDR:
        f->payload.addr = vu_rig_addr(s->index);
        return sizeof(f->payload.addr);
    case VU_ADD_MEM_REG:
        f->payload.reg = (VuMemReg) { .region = ram };
        return sizeof(f->payload.reg);
    case VU_SET_MEM_TABLE:
        f->payload.table = (VuMemTable) { .count = 1, .regions = { ram } };
        return offsetof(VuMemTable, regions) + sizeof(ram);
    default:
        return 0;
    }
}

/* A descriptor to send along, the caller's; -1 if none. */
static int step_fd(const VuRig *rig, const Step *s)
{
    switch (s->request) {
    case VU_SET_VRING_KICK:
    case VU_SET_VRING_CALL:
    case VU_SET_VRING_ERR:
        return eventfd(1, EFD_CLOEXEC | EFD_NONBLOCK);
    case VU_ADD_MEM_REG:
    case VU_SET_MEM_TABLE:
        return dup(rig->ram_fd);
    default:
        return -1;
    }
}

static void put_step(VuRig *rig, const Step *s, Delivery how)
{
    Frame f = { .hdr = { s->request, VU_FLAG_VERSION, 0 } };
    int fd = step_fd(rig, s);
    size_t len;

    f.hdr.flags |= s->need_reply ? VU_FLAG_NEED_REPLY : 0;
    f.hdr.size = fill_payload(s, &f);
    len = sizeof(f.hdr) + f.hdr.size;
    if (how == BYTES) {
        vu_client_write(&rig->cl, &f, 1, &fd, fd >= 0);
        for (size_t i = 1; i < len; i++) {
            vu_client_turn(&rig->cl);
            vu_client_write(&rig->cl, (char *)&f + i, 1, NULL, 0);
        }
    } else {
        vu_client_write(&rig->cl, &f, len, &fd, fd >= 0);
    }
    if (fd >= 0) {
        close(fd);
    }
    if (how != BURST) {
        vu_client_turn(&rig->cl);
    }
}

static bool has_reply(const Step *s)
{
    switch (s->request) {
    case VU_GET_FEATURES:
    case VU_GET_PROTOCOL_FEATURES:
    case VU_GET_QUEUE_NUM:
    case VU_GET_MAX_MEM_SLOTS:
    case VU_GET_VRING_BASE:
        return true;
    default:
        return s->need_reply;
    }
}

/* Replies come in order, and acknowledge. */
static void take_reply(VuRig *rig, const Step *s)
{
    struct {
        VuHeader hdr;
        uint64_t value;
    } __attribute__((packed)) r;

    g_assert_cmpint(recv(rig->cl.fd, &r, sizeof(r), MSG_DONTWAIT), ==,
                    sizeof(r));
    g_assert_cmpuint(r.hdr.request, ==, s->request);
    g_assert_cmphex(r.hdr.flags, ==, 5);
    g_assert_cmpuint(r.hdr.size, ==, 8);
    if (s->need_reply) {
        g_assert_cmpuint(r.value, ==, 0);
    }
}

static void expect_quiet(VuRig *rig)
{
    char byte;

    g_assert_cmpint(recv(rig->cl.fd, &byte, 1, MSG_DONTWAIT), ==, -1);
    g_assert_cmpint(errno, ==, EAGAIN);
}

static void play(VuRig *rig, const Step *script, Delivery how)
{
    for (const Step *s = script; s->request; s++) {
        put_step(rig, s, how);
    }
    vu_client_turn(&rig->cl);
    for (const Step *s = script; s->request; s++) {
        if (has_reply(s)) {
            take_reply(rig, s);
        }
    }
    expect_quiet(rig);
}

static void expect_running(VuRig *rig, bool running, unsigned base0,
                           unsigned base1)
{
    const FakeRing *r = rig->nic->rings;

    g_assert_cmpint(r[0].started, ==, running);
    g_assert_cmpint(r[1].started, ==, running);
    if (running) {
        g_assert_true(r[0].enabled);
        g_assert_true(r[1].enabled);
        g_assert_cmpint(r[0].call_fd, >=, 0);
        g_assert_cmpint(r[1].call_fd, >=, 0);
        g_assert_cmpuint(r[0].setup.last_avail, ==, base0);
        g_assert_cmpuint(r[1].setup.last_avail, ==, base1);
        g_assert_cmphex(rig->nic->features, ==, VIRTIO_BITS);
    }
}

static void play_life(VuRig *rig, const FrontEnd *fe, Delivery how)
{
    play(rig, fe->connect, how);
    expect_running(rig, false, 0, 0);
    play(rig, fe->start, how);
    expect_running(rig, true, 0, 0);
    play(rig, fe->stop, how);
    expect_running(rig, false, 0, 0);
    play(rig, fe->restart, how);
    expect_running(rig, true, 10, 20);
}

static void test_deliveries(const void *opaque)
{
    for (Delivery how = WHOLE; how <= BURST; how++) {
        VuRig rig;

        vu_rig_init(&rig, 1);
        play_life(&rig, opaque, how);
        /* And once more on a new connection, without a word of goodbye. */
        vu_rig_reconnect(&rig);
        play_life(&rig, opaque, how);
        vu_rig_cleanup(&rig);
    }
}

/* ---- breaking off ------------------------------------------------------- */

/* After a lost connection nothing is left, and the next one is served. */
static void check_nothing_left(VuRig *rig)
{
    for (unsigned i = 0; i < 2; i++) {
        const FakeRing *r = &rig->nic->rings[i];

        g_assert_false(r->started);
        g_assert_false(r->enabled);
        g_assert_cmpint(r->call_fd, ==, -1);
        g_assert_cmpint(r->err_fd, ==, -1);
    }
    g_assert_cmphex(rig->nic->features, ==, 0);
}

static unsigned script_len(const Step *script)
{
    unsigned n = 0;

    while (script[n].request) {
        n++;
    }
    return n;
}

static void break_off_after(const FrontEnd *fe, unsigned n)
{
    const Step *parts[] = { fe->connect, fe->start, fe->stop, fe->restart };
    unsigned fds;
    VuRig rig;

    vu_rig_init(&rig, 1);
    fds = vu_count_fds();
    for (unsigned p = 0; p < G_N_ELEMENTS(parts); p++) {
        for (const Step *s = parts[p]; s->request && n; s++, n--) {
            put_step(&rig, s, WHOLE);
        }
    }
    vu_client_close(&rig.cl);
    check_nothing_left(&rig);
    /* Both ends of the connection are gone. */
    g_assert_cmpuint(vu_count_fds(), ==, fds - 2);
    rig.cl.fd = vu_rig_dial(&rig);
    play_life(&rig, fe, WHOLE);
    vu_rig_cleanup(&rig);
}

static void test_peer_loss(const void *opaque)
{
    const FrontEnd *fe = opaque;
    unsigned total = script_len(fe->connect) + script_len(fe->start) +
                     script_len(fe->stop) + script_len(fe->restart);

    for (unsigned n = 0; n <= total; n++) {
        break_off_after(fe, n);
    }
}

/* ---- many pairs --------------------------------------------------------- */

/* QEMU starts all pairs and enables those the guest uses. */
static void test_multiqueue(void)
{
    static const Step per_pair[] = {
        { VU_GET_FEATURES }, { VU_GET_PROTOCOL_FEATURES },
        { VU_SET_PROTOCOL_FEATURES, 0, 0xa01d }, { VU_GET_FEATURES },
        { VU_GET_MAX_MEM_SLOTS }, { VU_SET_FEATURES, 0, WITH_30 }, { 0 }
    };
    static const Step memory[] = { { VU_ADD_MEM_REG, 0, 0, true }, { 0 } };
    VuRig rig;

    vu_rig_init(&rig, 4);
    for (unsigned pair = 0; pair < 4; pair++) {
        play(&rig, per_pair, WHOLE);
        play(&rig, memory, WHOLE);
    }
    for (unsigned i = 0; i < 8; i++) {
        const Step ring[] = { RING(i, 0, true),
                              { VU_SET_VRING_ENABLE, i, i < 2, true }, { 0 } };

        play(&rig, ring, WHOLE);
    }
    for (unsigned i = 0; i < 8; i++) {
        g_assert_true(rig.nic->rings[i].started);
        g_assert_cmpint(rig.nic->rings[i].enabled, ==, i < 2);
    }
    g_assert_cmpuint(rig.nic->feature_changes, ==, 1);
    vu_rig_cleanup(&rig);
}

/* Neither bit 30 nor SET_VRING_ENABLE (QEMU before 7.2, F105). */
static void test_without_bit_30(void)
{
    static const Step script[] = {
        { VU_SET_OWNER }, { VU_GET_FEATURES },
        { VU_SET_FEATURES, 0, VIRTIO_BITS },
        { VU_SET_MEM_TABLE },
        RING(0, 0, false), RING(1, 0, false),
        { 0 }
    };
    VuRig rig;

    vu_rig_init(&rig, 1);
    play(&rig, script, WHOLE);
    expect_running(&rig, true, 0, 0);
    vu_rig_cleanup(&rig);
}

static void add_frontends(const char *what, GTestDataFunc fn)
{
    for (unsigned i = 0; i < G_N_ELEMENTS(frontends); i++) {
        g_autofree char *path = g_strdup_printf("/vhost-user/%s/%s", what,
                                                frontends[i].name);

        g_test_add_data_func(path, &frontends[i], fn);
    }
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    add_frontends("front-end", test_deliveries);
    add_frontends("peer-loss", test_peer_loss);
    g_test_add_func("/vhost-user/front-end/multiqueue", test_multiqueue);
    g_test_add_func("/vhost-user/front-end/without-bit-30",
                    test_without_bit_30);
    return g_test_run();
}
