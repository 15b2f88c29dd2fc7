/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * virtio_net headers: what a driver may ask for (virtio 1.3, 5.1.6.2), and
 * the repair of DHCP answers.
 */
#include <string.h>

#include "hw/net/virtio-net-hdr.h"
#include <glib.h>

#define BIT(name) (1ULL << (name))
#define ALL (BIT(VIRTIO_NET_F_CSUM) | BIT(VIRTIO_NET_F_HOST_TSO4) | \
             BIT(VIRTIO_NET_F_HOST_TSO6) | BIT(VIRTIO_NET_F_HOST_ECN) | \
             BIT(VIRTIO_NET_F_HOST_UFO) | BIT(VIRTIO_NET_F_HOST_USO))
#define CSUM VIRTIO_NET_HDR_F_NEEDS_CSUM
#define TCP4 VIRTIO_NET_HDR_GSO_TCPV4
#define TCP6 VIRTIO_NET_HDR_GSO_TCPV6
#define UDP  VIRTIO_NET_HDR_GSO_UDP
#define USO  VIRTIO_NET_HDR_GSO_UDP_L4
#define ECN  VIRTIO_NET_HDR_GSO_ECN

static const struct {
    uint8_t flags, gso;
    uint16_t start, offset, gso_size, hdr_len;
    uint32_t frame;
    uint64_t features;
    bool ok;
} cases[] = {
    { 0, 0, 0, 0, 0, 0, 60, 0, true },
    { CSUM, 0, 34, 16, 0, 0, 60, ALL, true },
    { CSUM, 0, 34, 16, 0, 0, 60, 0, false },            /* not negotiated */
    { CSUM, 0, 60, 0, 0, 0, 60, ALL, false },           /* start = len */
    { CSUM, 0, 59, 0, 0, 0, 60, ALL, false },           /* half a field */
    { CSUM, 0, 58, 0, 0, 0, 60, ALL, true },            /* exactly */
    { CSUM, 0, 0xffff, 0xffff, 0, 0, 60, ALL, false },
    { CSUM, TCP4, 34, 16, 1448, 66, 4000, ALL, true },
    { CSUM, TCP4, 34, 16, 0, 66, 4000, ALL, false },    /* gso_size 0 */
    { CSUM, TCP4, 34, 16, 1448, 4001, 4000, ALL, false },
    { CSUM, TCP4, 34, 16, 1448, 0, 4000, ALL, true },
    { CSUM, TCP4, 34, 16, 1448, 66, 4000, ALL & ~BIT(VIRTIO_NET_F_HOST_TSO4),
      false },
    { CSUM, TCP6, 54, 16, 1428, 86, 4000, ALL, true },
    { CSUM, TCP6, 54, 16, 1428, 86, 4000, ALL & ~BIT(VIRTIO_NET_F_HOST_TSO6),
      false },
    { CSUM, TCP4 | ECN, 34, 16, 1448, 66, 4000, ALL, true },
    { CSUM, TCP4 | ECN, 34, 16, 1448, 66, 4000,
      ALL & ~BIT(VIRTIO_NET_F_HOST_ECN), false },
    { CSUM, UDP, 34, 6, 1480, 42, 4000, ALL, true },
    { CSUM, UDP | ECN, 34, 6, 1480, 42, 4000, ALL, false },
    { CSUM, UDP, 34, 6, 1480, 42, 4000, ALL & ~BIT(VIRTIO_NET_F_HOST_UFO),
      false },
    { CSUM, USO, 34, 6, 1472, 42, 4000, ALL, true },
    { 0, USO, 34, 6, 1472, 42, 4000, ALL, false },      /* needs the sum */
    { CSUM, USO, 34, 6, 1472, 42, 4000, ALL & ~BIT(VIRTIO_NET_F_HOST_USO),
      false },
    { CSUM, 2, 34, 16, 1448, 66, 4000, ALL, false },    /* no such type */
    { CSUM, 0x7f, 34, 16, 1448, 66, 4000, ALL, false },
    { CSUM, ECN, 34, 16, 1448, 66, 4000, ALL, false },
};

static void test_check(void)
{
    for (unsigned i = 0; i < G_N_ELEMENTS(cases); i++) {
        VirtIONetHdr h = { .hdr = {
            .flags = cases[i].flags,
            .gso_type = cases[i].gso,
            .csum_start = GUINT16_TO_LE(cases[i].start),
            .csum_offset = GUINT16_TO_LE(cases[i].offset),
            .gso_size = GUINT16_TO_LE(cases[i].gso_size),
            .hdr_len = GUINT16_TO_LE(cases[i].hdr_len),
        } };

        g_test_message("case %u", i);
        g_assert_cmpint(virtio_net_hdr_check_tx(&h, cases[i].frame,
                                                cases[i].features), ==,
                        cases[i].ok);
    }
}

/* Flags we do not know, and fields without their flag, mean nothing. */
static void test_clears(void)
{
    VirtIONetHdr h = { .hdr = { .flags = 0xfe, .csum_start = 0xffff,
                                .csum_offset = 0xffff, .gso_size = 0xffff,
                                .hdr_len = 0xffff } };
    static const VirtIONetHdr zero;

    g_assert_true(virtio_net_hdr_check_tx(&h, 60, 0));
    g_assert_cmpmem(&h.hdr, sizeof(h.hdr), &zero.hdr, sizeof(zero.hdr));
}

/* Partial sums at a TCP header's place, or nothing to go by. */
static void test_may_be_tcp(void)
{
    const uint64_t csum = BIT(VIRTIO_NET_F_CSUM);
    const struct {
        uint8_t flags;
        uint16_t offset;
        uint64_t features;
        bool expected;
    } tcp[] = {
        { VIRTIO_NET_HDR_F_NEEDS_CSUM, 16, csum, true },
        { VIRTIO_NET_HDR_F_NEEDS_CSUM, 6, csum, false },
        { 0, 0, csum, false },
        { 0, 16, csum, false },
        { 0, 0, 0, true },
        { VIRTIO_NET_HDR_F_NEEDS_CSUM, 6, 0, true },
    };

    for (unsigned i = 0; i < G_N_ELEMENTS(tcp); i++) {
        VirtIONetHdr h = { .hdr = {
            .flags = tcp[i].flags,
            .csum_offset = GUINT16_TO_LE(tcp[i].offset),
        } };

        g_assert_cmpint(virtio_net_hdr_may_be_tcp(&h, tcp[i].features), ==,
                        tcp[i].expected);
    }
}

static void test_len(void)
{
    g_assert_cmpuint(virtio_net_hdr_len(0), ==, 10);
    g_assert_cmpuint(virtio_net_hdr_len(BIT(VIRTIO_NET_F_MRG_RXBUF)), ==, 12);
    g_assert_cmpuint(virtio_net_hdr_len(BIT(VIRTIO_F_VERSION_1)), ==, 12);
}

/* ---- DHCP ------------------------------------------------------------ */

#define IP  14

static size_t make_dhcp(uint8_t *f, unsigned ihl, unsigned payload)
{
    unsigned udp = IP + ihl * 4, total = ihl * 4 + 8 + payload;

    memset(f, 0, IP + total);
    f[12] = 0x08;
    f[IP] = 0x40 | ihl;
    f[IP + 2] = total >> 8;
    f[IP + 3] = total;
    f[IP + 9] = 17;
    memcpy(f + IP + 12, "\x0a\x00\x02\x02\xff\xff\xff\xff", 8);
    f[udp + 1] = 67;
    f[udp + 3] = 68;
    f[udp + 4] = (8 + payload) >> 8;
    f[udp + 5] = 8 + payload;
    for (unsigned i = 0; i < payload; i++) {
        f[udp + 8 + i] = i * 31 + 5;
    }
    return IP + total;
}

/* The receiver's check: pseudo header and datagram sum to 0xffff. */
static uint16_t receiver_sum(const uint8_t *f)
{
    unsigned udp = IP + (f[IP] & 15) * 4;
    unsigned len = f[udp + 4] << 8 | f[udp + 5];
    uint32_t sum = 17 + len;

    for (unsigned i = 0; i < 8; i++) {
        sum += f[IP + 12 + i] << (i & 1 ? 0 : 8);
    }
    for (unsigned i = 0; i < len; i++) {
        sum += f[udp + i] << (i & 1 ? 0 : 8);
    }
    while (sum >> 16) {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    return sum;
}

static bool repair(uint8_t *f, size_t bytes)
{
    struct virtio_net_hdr hdr = { .flags = CSUM };
    struct iovec iov[2] = { { f, bytes / 3 },
                            { f + bytes / 3, bytes - bytes / 3 } };

    virtio_net_fix_dhcp_csum(&hdr, iov, 2, bytes);
    return !hdr.flags;
}

static void test_dhcp_repaired(void)
{
    static const unsigned payloads[] = { 0, 1, 240, 299, 300, 548, 1400 };
    uint8_t f[1600];

    for (unsigned ihl = 5; ihl <= 15; ihl++) {
        for (unsigned i = 0; i < G_N_ELEMENTS(payloads); i++) {
            size_t bytes = make_dhcp(f, ihl, payloads[i]);

            f[IP + ihl * 4 + 6] = 0xde;     /* the partial sum */
            g_assert_true(repair(f, bytes));
            g_assert_cmphex(receiver_sum(f), ==, 0xffff);
        }
    }
}

static void test_dhcp_left_alone(void)
{
    uint8_t good[1600], f[1600];
    size_t bytes = make_dhcp(good, 5, 300);
    static const struct { unsigned at; uint8_t value; } changes[] = {
        { 12, 0x86 },               /* not IPv4 */
        { 12, 0x81 },               /* VLAN */
        { IP, 0x65 }, { IP, 0x44 }, /* version 6; header too short */
        { IP + 6, 0x20 },           /* more fragments */
        { IP + 7, 1 },              /* a later fragment */
        { IP + 9, 6 },              /* TCP */
        { IP + 2, 0x10 },           /* longer than the frame */
        { IP + 20 + 1, 68 },        /* from a client */
        { IP + 20 + 3, 67 },        /* to a server */
        { IP + 20 + 4, 0x10 },      /* datagram longer than the packet */
    };

    for (unsigned i = 0; i < G_N_ELEMENTS(changes); i++) {
        uint8_t before[1600];

        memcpy(f, good, bytes);
        f[changes[i].at] = changes[i].value;
        memcpy(before, f, bytes);
        g_assert_false(repair(f, bytes));
        g_assert_cmpmem(f, bytes, before, bytes);
    }
    /* every cut-off length, in an exact allocation */
    for (size_t cut = 0; cut < bytes; cut++) {
        g_autofree uint8_t *p = g_memdup2(good, cut ? cut : 1);

        g_assert_false(repair(p, cut));
    }
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/net/hdr/check", test_check);
    g_test_add_func("/net/hdr/clears", test_clears);
    g_test_add_func("/net/hdr/len", test_len);
    g_test_add_func("/net/hdr/may-be-tcp", test_may_be_tcp);
    g_test_add_func("/net/hdr/dhcp/repaired", test_dhcp_repaired);
    g_test_add_func("/net/hdr/dhcp/left-alone", test_dhcp_left_alone);
    return g_test_run();
}
