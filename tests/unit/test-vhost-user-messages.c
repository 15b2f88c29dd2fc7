/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * vhost-user, one message at a time: what each may look like, what happens
 * when it does not, with and without acknowledgements, and that descriptors
 * and the next connection survive all of it.
 */
#include <fcntl.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "vhost-user-rig.h"

typedef enum Verdict { OK, REFUSED, BROKEN } Verdict;

/* ---- values ------------------------------------------------------------- */

typedef struct Case {
    const char *name;
    uint32_t request;
    uint32_t size;
    union {
        uint64_t u64;
        VuVringState state;
        VuVringAddr addr;
    } payload;
    Verdict verdict;
    const char *part;           /* of the line, unless OK */
} Case;

#define U64(id, v)      VU_##id, 8, { .u64 = (v) }
#define STATE(id, i, n) VU_##id, 8, { .state = { (i), (n) } }
#define ADDR(i)         VU_SET_VRING_ADDR, 40, { .addr = { .index = (i) } }
#define NONE(id)        VU_##id, 0, { 0 }

/* The rig has one pair: rings 0 and 1. */
static const Case cases[] = {
    { "owner", NONE(SET_OWNER), OK },
    { "owner-reset", NONE(RESET_OWNER), OK },
    { "reset", NONE(RESET_DEVICE), OK },

    { "features", U64(SET_FEATURES, (1ULL << 32) | (1ULL << 30)), OK },
    { "features-none", U64(SET_FEATURES, 0), OK },
    { "features-log", U64(SET_FEATURES, 1ULL << 26), BROKEN, "0x4000000" },
    { "features-ring-reset", U64(SET_FEATURES, 1ULL << 40), BROKEN,
      "SET_FEATURES: features 0x10000000000 were not offered" },
    { "protocol-inband", U64(SET_PROTOCOL_FEATURES, 0x4009), BROKEN,
      "SET_PROTOCOL_FEATURES: protocol features 0x4000" },

    { "num", STATE(SET_VRING_NUM, 1, 256), OK },
    { "num-max", STATE(SET_VRING_NUM, 1, 1024), OK },
    { "num-one", STATE(SET_VRING_NUM, 0, 1), OK },
    { "num-zero", STATE(SET_VRING_NUM, 0, 0), BROKEN, "ring size 0" },
    { "num-three", STATE(SET_VRING_NUM, 0, 3), REFUSED, "ring size 3" },
    { "num-ours", STATE(SET_VRING_NUM, 0, 2048), REFUSED, "of at most 1024" },
    { "num-spec", STATE(SET_VRING_NUM, 0, 32768), REFUSED, "32768" },
    { "num-above", STATE(SET_VRING_NUM, 0, 32769), BROKEN, "32769" },
    { "num-index", STATE(SET_VRING_NUM, 2, 256), BROKEN,
      "SET_VRING_NUM: ring index 2, but there are 2 rings" },
    { "num-index-cut", STATE(SET_VRING_NUM, 0x10000, 256), BROKEN, "65536" },
    { "num-index-max", STATE(SET_VRING_NUM, 0xffffffff, 256), BROKEN,
      "4294967295" },

    { "addr", ADDR(1), OK },
    { "addr-index", ADDR(2), BROKEN, "ring index 2" },
    { "addr-index-cut", ADDR(0x10000), BROKEN, "65536" },
    { "addr-index-max", ADDR(0xffffffff), BROKEN, "4294967295" },

    { "base", STATE(SET_VRING_BASE, 0, 65535), OK },
    { "base-above", STATE(SET_VRING_BASE, 0, 65536), BROKEN, "base 65536" },
    { "base-index", STATE(SET_VRING_BASE, 0x10001, 0), BROKEN, "65537" },

    { "enable", STATE(SET_VRING_ENABLE, 0, 1), OK },
    { "disable", STATE(SET_VRING_ENABLE, 1, 0), OK },
    { "enable-two", STATE(SET_VRING_ENABLE, 1, 2), BROKEN, "neither 0 nor" },
    { "enable-index", STATE(SET_VRING_ENABLE, 0x10000, 1), BROKEN, "65536" },

    { "kick-no-fd", U64(SET_VRING_KICK, 0x100), OK },
    { "call-no-fd", U64(SET_VRING_CALL, 0x101), OK },
    { "err-no-fd", U64(SET_VRING_ERR, 0x101), OK },
    { "kick-index", U64(SET_VRING_KICK, 0x102), BROKEN, "ring index 2" },
    { "call-index", U64(SET_VRING_CALL, 0x1ff), BROKEN, "ring index 255" },
    { "err-index", U64(SET_VRING_ERR, 0x110), BROKEN, "ring index 16" },
    { "kick-bits", U64(SET_VRING_KICK, 0x10100), BROKEN, "unknown bits" },
    { "call-bits", U64(SET_VRING_CALL, 1ULL << 63 | 0x100), BROKEN,
      "unknown bits in 0x8000000000000100" },
    { "err-bits", U64(SET_VRING_ERR, 0x300), BROKEN, "unknown bits" },

    { "mtu", U64(NET_SET_MTU, 1500), OK },
    { "mtu-least", U64(NET_SET_MTU, 68), OK },
    { "mtu-small", U64(NET_SET_MTU, 67), REFUSED, "an MTU of 67 bytes" },
    { "mtu-large", U64(NET_SET_MTU, 9001), REFUSED, "9001" },
    { "mtu-cut", U64(NET_SET_MTU, 0x100000000 + 1500), REFUSED, "4294968796" },

    { "rarp", U64(SEND_RARP, 0x665544332211), OK },

    { "unknown-0", 0, 0, { 0 }, REFUSED, "0: unknown message" },
    { "log-base", 6, 8, { 0 }, REFUSED, "6: unknown message" },
    { "log-fd", 7, 0, { 0 }, REFUSED, "7: unknown" },
    { "endian", 23, 8, { 0 }, REFUSED, "23: unknown" },
    { "config", 24, 12, { 0 }, REFUSED, "24: unknown" },
    { "status", 39, 8, { 0 }, REFUSED, "39: unknown" },
    { "unknown-max", 0xffffffff, 8, { 0 }, REFUSED, "4294967295: unknown" },
};

static void run_case(const Case *t, bool ack)
{
    VuRig rig;
    VuOutcome out;

    vu_rig_init(&rig, 1);
    vu_rig_negotiate(&rig, ack);
    out = vu_client_send(&rig.cl, t->request, &t->payload, t->size, NULL, 0);
    if (t->verdict == OK) {
        vu_rig_expect_ok(&rig, out);
    } else if (t->verdict == REFUSED) {
        vu_rig_expect_refused(&rig, out, t->part);
    } else {
        vu_rig_expect_broken(&rig, out, t->part);
        vu_rig_reconnect(&rig);
    }
    /* Whoever is connected now is served. */
    g_assert_cmpuint(vu_client_get(&rig.cl, VU_GET_QUEUE_NUM), ==, 1);
    vu_rig_cleanup(&rig);
}

static void test_case(const void *opaque)
{
    run_case(opaque, false);
    run_case(opaque, true);
}

/* ---- replies ------------------------------------------------------------ */

static void test_own_replies(void)
{
    VuRig rig;

    vu_rig_init(&rig, 3);
    for (int ack = 0; ack < 2; ack++) {
        vu_rig_negotiate(&rig, ack);
        g_assert_cmpuint(vu_client_get(&rig.cl, VU_GET_QUEUE_NUM), ==, 3);
        g_assert_cmpuint(vu_client_get(&rig.cl, VU_GET_MAX_MEM_SLOTS), ==,
                         512);
        g_assert_cmpuint(vu_client_get_base(&rig.cl, 5), ==, 0);
        rig.cl.flags = 0;
    }
    vu_rig_cleanup(&rig);
}

/* A reply of its own is owed or the connection is over: nobody waits. */
static void test_get_base_index(const void *opaque)
{
    VuRig rig;

    vu_rig_init(&rig, 1);
    vu_rig_negotiate(&rig, true);
    g_assert_cmpint(vu_client_state(&rig.cl, VU_GET_VRING_BASE,
                                    GPOINTER_TO_UINT(opaque), 0), ==,
                    VU_OUT_CLOSED);
    vu_client_expect_line(&rig.cl, "GET_VRING_BASE: ring index");
    vu_rig_cleanup(&rig);
}

/* need_reply counts only with REPLY_ACK, which this message negotiates. */
static void test_need_reply_unasked(void)
{
    VuRig rig;

    vu_rig_init(&rig, 1);
    rig.cl.flags = VU_FLAG_NEED_REPLY;
    g_assert_cmpint(vu_client_state(&rig.cl, VU_SET_VRING_ENABLE, 0, 1), ==,
                    VU_OUT_SILENT);
    g_assert_cmpint(vu_client_u64(&rig.cl, VU_SET_PROTOCOL_FEATURES, 8), ==,
                    VU_OUT_ACK);
    g_assert_cmpint(vu_client_state(&rig.cl, VU_SET_VRING_ENABLE, 0, 1), ==,
                    VU_OUT_ACK);
    vu_rig_cleanup(&rig);
}

static void test_effects(void)
{
    static const uint8_t mac[6] = { 0x11, 0x22, 0x33, 0x44, 0x55, 0x66 };
    VuRig rig;

    vu_rig_init(&rig, 1);
    vu_rig_negotiate(&rig, true);
    g_assert_cmphex(rig.nic->features, ==, RIG_FEATURES & ~(1ULL << 40));
    vu_client_u64(&rig.cl, VU_SEND_RARP, 0x665544332211);
    g_assert_cmpuint(rig.nic->rarps, ==, 1);
    g_assert_cmpmem(rig.nic->rarp_mac, 6, mac, 6);
    vu_client_u64(&rig.cl, VU_NET_SET_MTU, 1400);
    g_assert_cmpuint(rig.nic->mtu, ==, 1400);
    vu_rig_cleanup(&rig);
}

/* ---- shapes ------------------------------------------------------------- */

typedef struct Shape {
    uint32_t request;
    uint32_t size;              /* of its payload, all zero */
    unsigned fds;               /* that then come along */
    unsigned fds_max;
} Shape;

static const Shape shapes[] = {
    { VU_GET_FEATURES, 0, 0, 0 },
    { VU_SET_FEATURES, 8, 0, 0 },
    { VU_SET_OWNER, 0, 0, 0 },
    { VU_RESET_OWNER, 0, 0, 0 },
    { VU_SET_MEM_TABLE, 8, 0, 0 },
    { VU_SET_VRING_NUM, 8, 0, 0 },
    { VU_SET_VRING_ADDR, 40, 0, 0 },
    { VU_SET_VRING_BASE, 8, 0, 0 },
    { VU_GET_VRING_BASE, 8, 0, 0 },
    { VU_SET_VRING_KICK, 8, 1, 1 },
    { VU_SET_VRING_CALL, 8, 1, 1 },
    { VU_SET_VRING_ERR, 8, 1, 1 },
    { VU_GET_PROTOCOL_FEATURES, 0, 0, 0 },
    { VU_SET_PROTOCOL_FEATURES, 8, 0, 0 },
    { VU_GET_QUEUE_NUM, 0, 0, 0 },
    { VU_SET_VRING_ENABLE, 8, 0, 0 },
    { VU_SEND_RARP, 8, 0, 0 },
    { VU_NET_SET_MTU, 8, 0, 0 },
    { VU_RESET_DEVICE, 0, 0, 0 },
    { VU_GET_MAX_MEM_SLOTS, 0, 0, 0 },
    { VU_ADD_MEM_REG, 40, 1, 1 },
    { VU_REM_MEM_REG, 40, 0, 1 },
};

/* Lines are limited per export, so their number is not the question here. */
static void expect_closed(VuRig *rig, VuOutcome out)
{
    g_assert_cmpint(out, ==, VU_OUT_CLOSED);
    g_free(vu_client_take_lines(&rig->cl));
    vu_rig_reconnect(rig);
}

static void test_sizes(void)
{
    static const uint8_t zero[VU_MAX_PAYLOAD];
    int fd = eventfd(0, EFD_CLOEXEC);
    VuRig rig;

    vu_rig_init(&rig, 1);
    for (unsigned i = 0; i < G_N_ELEMENTS(shapes); i++) {
        const Shape *s = &shapes[i];

        for (uint32_t size = 0; size <= sizeof(zero); size++) {
            if (size != s->size) {
                expect_closed(&rig, vu_client_send(&rig.cl, s->request, zero,
                                                   size, &fd, s->fds));
            }
        }
    }
    vu_rig_cleanup(&rig);
    close(fd);
}

static void test_fds(void)
{
    static const unsigned counts[] = { 0, 1, 2, 3, 7, 8, 9, 10, 253 };
    static const uint8_t zero[VU_MAX_PAYLOAD];
    int fds[253];
    VuRig rig;

    vu_rig_init(&rig, 1);
    fds[0] = eventfd(0, EFD_CLOEXEC);
    for (unsigned i = 1; i < G_N_ELEMENTS(fds); i++) {
        fds[i] = fds[0];
    }
    for (unsigned i = 0; i < G_N_ELEMENTS(shapes); i++) {
        const Shape *s = &shapes[i];

        for (unsigned k = 0; k < G_N_ELEMENTS(counts); k++) {
            if (counts[k] < s->fds || counts[k] > s->fds_max) {
                expect_closed(&rig, vu_client_send(&rig.cl, s->request, zero,
                                                   s->size, fds, counts[k]));
            }
        }
    }
    close(fds[0]);
    vu_rig_cleanup(&rig);
}

/* Messages nobody knows bring descriptors, and a flag that says they do not. */
static void test_fds_unknown(void)
{
    int fd = eventfd(0, EFD_CLOEXEC);
    int fds[8] = { fd, fd, fd, fd, fd, fd, fd, fd };
    unsigned before;
    VuRig rig;

    vu_rig_init(&rig, 1);
    before = vu_count_fds();
    for (unsigned i = 0; i < 10000; i++) {
        g_assert_cmpint(vu_client_send(&rig.cl, 1000 + i, NULL, 0, fds,
                                       i % 9), ==, VU_OUT_SILENT);
    }
    g_assert_cmpuint(vu_count_fds(), ==, before);
    g_free(vu_client_take_lines(&rig.cl));
    vu_rig_cleanup(&rig);
    close(fd);
}

/* The device writes to these; nothing that could block may get there. */
static void check_not_an_eventfd(uint32_t request, int fd)
{
    VuRig rig;

    vu_rig_init(&rig, 1);
    vu_rig_negotiate(&rig, true);
    vu_rig_expect_broken(&rig, vu_client_fd(&rig.cl, request, 0, fd),
                         "not an eventfd");
    vu_rig_cleanup(&rig);
}

static void test_fd_kinds(void)
{
    int memfd = vu_memfd(4096);
    int pipes[2];

    g_assert_cmpint(pipe(pipes), ==, 0);
    for (uint32_t request = VU_SET_VRING_KICK; request <= VU_SET_VRING_ERR;
         request++) {
        check_not_an_eventfd(request, memfd);
        check_not_an_eventfd(request, pipes[1]);
    }
    close(pipes[0]);
    close(pipes[1]);
    close(memfd);
}

/* ---- framing ------------------------------------------------------------ */

typedef struct HeaderCase {
    const char *name;
    VuHeader hdr;
    const char *part;
} HeaderCase;

static const HeaderCase header_cases[] = {
    { "version-0", { VU_GET_FEATURES, 0, 0 }, "protocol version 0" },
    { "version-2", { VU_GET_FEATURES, 2, 0 }, "protocol version 2" },
    { "version-3", { VU_GET_FEATURES, 11, 0 }, "protocol version 3" },
    { "reply", { VU_GET_FEATURES, 5, 8 }, "reply to nothing" },
    { "long", { VU_SET_MEM_TABLE, 1, 513 }, "payload of 513 bytes" },
    { "endless", { 77, 1, 0xffffffff }, "payload of 4294967295 bytes" },
};

static void test_header(const void *opaque)
{
    const HeaderCase *t = opaque;
    VuRig rig;

    vu_rig_init(&rig, 1);
    vu_client_write(&rig.cl, &t->hdr, sizeof(t->hdr), NULL, 0);
    vu_rig_expect_broken(&rig, vu_client_outcome(&rig.cl, t->hdr.request),
                         t->part);
    vu_rig_reconnect(&rig);
    vu_rig_negotiate(&rig, true);
    vu_rig_cleanup(&rig);
}

/* Descriptors after the first byte, when some, or all, have come in time. */
static void check_late_fds(const int *fds, unsigned in_time, unsigned late)
{
    VuHeader hdr = { VU_SET_VRING_CALL, VU_FLAG_VERSION, 8 };

    for (size_t at = 1; at < sizeof(hdr); at++) {
        VuRig rig;

        vu_rig_init(&rig, 1);
        vu_client_write(&rig.cl, &hdr, at, fds, in_time);
        vu_client_turn(&rig.cl);
        vu_client_write(&rig.cl, (char *)&hdr + at, sizeof(hdr) - at, fds,
                        late);
        vu_rig_expect_broken(&rig, vu_client_outcome(&rig.cl, hdr.request),
                             "in the middle of a message");
        vu_rig_cleanup(&rig);
    }
}

static void test_late_fds(void)
{
    int fd = eventfd(0, EFD_CLOEXEC);
    int fds[8] = { fd, fd, fd, fd, fd, fd, fd, fd };

    check_late_fds(fds, 0, 1);
    check_late_fds(fds, 1, 1);
    check_late_fds(fds, 8, 8);
    close(fd);
}

/* Gone after each possible number of bytes, with a descriptor on its way. */
static void test_gone_inside(void)
{
    struct {
        VuHeader hdr;
        uint64_t value;
    } __attribute__((packed)) m = { { VU_SET_VRING_CALL, 1, 8 }, 0 };
    int fd = eventfd(0, EFD_CLOEXEC);
    VuRig rig;

    for (size_t len = 1; len < sizeof(m); len++) {
        vu_rig_init(&rig, 1);
        vu_client_write(&rig.cl, &m, len, &fd, 1);
        vu_client_turn(&rig.cl);
        vu_client_close(&rig.cl);
        vu_client_expect_line(&rig.cl, "went away inside a message");
        vu_rig_cleanup(&rig);
    }
    close(fd);
}

/*
 * The front-end's own end, handed to us in half a message: if we held on to
 * it, we would never see that the front-end is gone.
 */
static void test_own_end(void)
{
    VuHeader hdr = { VU_SET_VRING_CALL, VU_FLAG_VERSION, 8 };
    VuRig rig;

    vu_rig_init(&rig, 1);
    vu_client_write(&rig.cl, &hdr, sizeof(hdr) - 1, &rig.cl.fd, 1);
    vu_client_close(&rig.cl);
    vu_client_expect_line(&rig.cl, "a socket among the descriptors");
    g_assert_false(vhost_user_export_connected(rig.exp));
    vu_rig_cleanup(&rig);
}

/* Full socket buffer: the export gives up on the peer instead of waiting. */
static void test_replies_not_taken(void)
{
    unsigned sent = 0;
    VuRig rig;

    vu_rig_init(&rig, 1);
    while (vhost_user_export_connected(rig.exp)) {
        g_assert_cmpuint(sent++, <, 1000000);
        vu_client_put(&rig.cl, VU_GET_FEATURES, NULL, 0, NULL, 0);
        vu_client_turn(&rig.cl);
    }
    vu_client_expect_line(&rig.cl, "does not take its replies");
    vu_rig_cleanup(&rig);
}

/* One turn of the loop does not serve a flood to its end. */
static void test_flood_is_fair(void)
{
    VuHeader flood[1000];
    VuRig rig;

    vu_rig_init(&rig, 1);
    for (unsigned i = 0; i < G_N_ELEMENTS(flood); i++) {
        flood[i] = (VuHeader) { VU_SET_OWNER, VU_FLAG_VERSION, 0 };
    }
    flood[999].request = VU_RESET_DEVICE;
    vu_client_write(&rig.cl, flood, sizeof(flood), NULL, 0);
    g_assert_true(aio_poll(rig.ctx, false));
    g_assert_cmpuint(rig.nic->resets, ==, 0);
    vu_client_turn(&rig.cl);
    g_assert_cmpuint(rig.nic->resets, ==, 1);
    vu_rig_cleanup(&rig);
}

static void add_cases(void)
{
    for (unsigned i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autofree char *path = g_strdup_printf("/vhost-user/message/%s",
                                                cases[i].name);

        g_test_add_data_func(path, &cases[i], test_case);
    }
    for (unsigned i = 0; i < G_N_ELEMENTS(header_cases); i++) {
        g_autofree char *path = g_strdup_printf("/vhost-user/header/%s",
                                                header_cases[i].name);

        g_test_add_data_func(path, &header_cases[i], test_header);
    }
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    add_cases();
    g_test_add_func("/vhost-user/reply/own", test_own_replies);
    g_test_add_func("/vhost-user/reply/unasked", test_need_reply_unasked);
    g_test_add_data_func("/vhost-user/reply/base-2", GUINT_TO_POINTER(2),
                         test_get_base_index);
    g_test_add_data_func("/vhost-user/reply/base-cut",
                         GUINT_TO_POINTER(0x10000), test_get_base_index);
    g_test_add_func("/vhost-user/effects", test_effects);
    g_test_add_func("/vhost-user/sizes", test_sizes);
    g_test_add_func("/vhost-user/fds/number", test_fds);
    g_test_add_func("/vhost-user/fds/unknown", test_fds_unknown);
    g_test_add_func("/vhost-user/fds/kinds", test_fd_kinds);
    g_test_add_func("/vhost-user/fds/late", test_late_fds);
    g_test_add_func("/vhost-user/fds/own-end", test_own_end);
    g_test_add_func("/vhost-user/framing/gone-inside", test_gone_inside);
    g_test_add_func("/vhost-user/framing/replies-not-taken",
                    test_replies_not_taken);
    g_test_add_func("/vhost-user/framing/flood", test_flood_is_fair);
    return g_test_run();
}
