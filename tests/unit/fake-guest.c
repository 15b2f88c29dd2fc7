/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A guest that speaks just enough.  See fake-guest.h.
 */
#include "fake-guest.h"

#include <net/ethernet.h>
#include <netinet/in.h>
#include <string.h>

#define TCP_FIN 0x01
#define TCP_SYN 0x02
#define TCP_PSH 0x08
#define TCP_ACK 0x10

/* ---- bytes ----------------------------------------------------------- */

uint16_t get16(const uint8_t *p)
{
    return p[0] << 8 | p[1];
}

uint32_t get32(const uint8_t *p)
{
    return (uint32_t)get16(p) << 16 | get16(p + 2);
}

void put16(uint8_t *p, uint16_t v)
{
    p[0] = v >> 8;
    p[1] = v;
}

void put32(uint8_t *p, uint32_t v)
{
    put16(p, v >> 16);
    put16(p + 2, v);
}

static uint32_t sum16(const uint8_t *p, size_t bytes, uint32_t sum)
{
    for (size_t i = 0; i < bytes; i++) {
        sum += i % 2 ? p[i] : p[i] << 8;
    }
    return sum;
}

static uint16_t fold(uint32_t sum)
{
    while (sum >> 16) {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    return ~sum;
}

const uint8_t *guest_l3(const Guest *g)
{
    return g->frame + ETH_HLEN;
}

const uint8_t *guest_l4(const Guest *g)
{
    return guest_l3(g) + (guest_l3(g)[0] & 15) * 4;
}

size_t guest_l4_bytes(const Guest *g)
{
    return get16(guest_l3(g) + 2) - (guest_l3(g)[0] & 15) * 4;
}

/* ---- frames ---------------------------------------------------------- */

void guest_init(Guest *g, NetBackend *nb, AioContext *ctx, uint32_t ip)
{
    static const uint8_t mac[] = { 0x52, 0x54, 0, 0x12, 0x34, 0x56 };

    *g = (Guest) { .ctx = ctx, .ip = ip };
    memcpy(g->mac, mac, sizeof(mac));
    memset(g->gateway_mac, 0xff, sizeof(g->gateway_mac));
    test_nic_attach(&g->nic, nb, 0, ctx);
    net_rx_want(g->nic.nq, true);
}

bool guest_poll(Guest *g)
{
    return test_nic_recv(&g->nic, g->frame, sizeof(g->frame), &g->bytes) ==
           NET_RECV_PACKET;
}

void guest_wait(Guest *g, uint16_t ethertype, int protocol)
{
    do {
        while (!guest_poll(g)) {
            aio_poll(g->ctx, true);
        }
    } while (get16(g->frame + 12) != ethertype ||
             (protocol >= 0 && guest_l3(g)[9] != protocol));
}

static void guest_send(Guest *g, const uint8_t *dst, uint16_t ethertype,
                       const void *payload, size_t bytes)
{
    uint8_t frame[ETH_HLEN + GUEST_MTU];

    g_assert_cmpuint(bytes, <=, GUEST_MTU);
    memcpy(frame, dst, 6);
    memcpy(frame + 6, g->mac, 6);
    put16(frame + 12, ethertype);
    memcpy(frame + ETH_HLEN, payload, bytes);
    test_nic_send_ok(&g->nic, frame, ETH_HLEN + bytes);
}

void guest_arp(Guest *g, uint32_t gateway)
{
    static const uint8_t all[] = { 255, 255, 255, 255, 255, 255 };
    uint8_t arp[28] = { 0, 1, 8, 0, 6, 4, 0, 1 };

    memcpy(arp + 8, g->mac, 6);
    put32(arp + 14, g->ip);
    put32(arp + 24, gateway);
    guest_send(g, all, ETHERTYPE_ARP, arp, sizeof(arp));
    guest_wait(g, ETHERTYPE_ARP, -1);
    g_assert_cmpuint(get16(guest_l3(g) + 6), ==, 2);
    g_assert_cmphex(get32(guest_l3(g) + 14), ==, gateway);
    memcpy(g->gateway_mac, guest_l3(g) + 8, 6);
}

void guest_send_ip(Guest *g, uint32_t dst, uint8_t protocol,
                   const void *payload, size_t bytes)
{
    uint8_t ip[GUEST_MTU] = { 0x45 };

    g_assert_cmpuint(20 + bytes, <=, sizeof(ip));
    put16(ip + 2, 20 + bytes);
    ip[8] = 64;
    ip[9] = protocol;
    put32(ip + 12, g->ip);
    put32(ip + 16, dst);
    put16(ip + 10, fold(sum16(ip, 20, 0)));
    memcpy(ip + 20, payload, bytes);
    guest_send(g, g->gateway_mac, ETHERTYPE_IP, ip, 20 + bytes);
}

void guest_send_ping(Guest *g, uint32_t dst, uint16_t seq, size_t bytes)
{
    uint8_t icmp[GUEST_MTU - 20] = { 8 };

    put16(icmp + 4, 0x1234);
    put16(icmp + 6, seq);
    for (size_t i = 8; i < 8 + bytes; i++) {
        icmp[i] = seq + i;
    }
    put16(icmp + 2, fold(sum16(icmp, 8 + bytes, 0)));
    guest_send_ip(g, dst, IPPROTO_ICMP, icmp, 8 + bytes);
}

void guest_send_udp(Guest *g, uint16_t sport, uint32_t dst, uint16_t dport,
                    const void *payload, size_t bytes)
{
    uint8_t udp[GUEST_MTU - 20] = { 0 };

    put16(udp, sport);
    put16(udp + 2, dport);
    put16(udp + 4, 8 + bytes);
    memcpy(udp + 8, payload, bytes);
    guest_send_ip(g, dst, IPPROTO_UDP, udp, 8 + bytes);
}

/* ---- DHCP ------------------------------------------------------------ */

#define DHCP_COOKIE     236
#define DHCP_OPTIONS    240

void guest_dhcp(Guest *g)
{
    uint8_t dhcp[300] = { 1, 1, 6 };
    uint32_t ip = g->ip;

    put32(dhcp + 4, 0xabadcafe);
    memcpy(dhcp + 28, g->mac, 6);
    put32(dhcp + DHCP_COOKIE, 0x63825363);
    memcpy(dhcp + DHCP_OPTIONS, "\x35\1\1\xff", 4);     /* DISCOVER */
    g->ip = 0;
    guest_send_udp(g, 68, IP4(255, 255, 255, 255), 67, dhcp, sizeof(dhcp));
    g->ip = ip;
    guest_wait(g, ETHERTYPE_IP, IPPROTO_UDP);
    g_assert_cmpuint(get16(guest_l4(g)), ==, 67);
    g_assert_cmphex(get32(guest_l4(g) + 8 + 4), ==, 0xabadcafe);
}

const uint8_t *guest_dhcp_option(const Guest *g, uint8_t option,
                                 uint8_t *bytes)
{
    const uint8_t *p = guest_l4(g) + 8 + DHCP_OPTIONS;
    const uint8_t *end = guest_l4(g) + guest_l4_bytes(g);

    while (p + 2 <= end && *p != 0xff) {
        if (*p == option) {
            *bytes = p[1];
            return p + 2;
        }
        p += *p ? 2 + p[1] : 1;
    }
    return NULL;
}

/* ---- TCP ------------------------------------------------------------- */

static void guest_tcp_segment(GuestTcp *t, uint8_t flags, const void *data,
                              size_t bytes)
{
    uint8_t tcp[GUEST_MTU - 20] = { 0 };
    uint8_t pseudo[12] = { 0 };

    put16(tcp, t->sport);
    put16(tcp + 2, t->dport);
    put32(tcp + 4, t->seq);
    put32(tcp + 8, t->ack);
    tcp[12] = 5 << 4;
    tcp[13] = flags;
    put16(tcp + 14, 0xffff);
    if (bytes) {
        memcpy(tcp + 20, data, bytes);
    }
    put32(pseudo, t->g->ip);
    put32(pseudo + 4, t->dst);
    pseudo[9] = IPPROTO_TCP;
    put16(pseudo + 10, 20 + bytes);
    put16(tcp + 16, fold(sum16(tcp, 20 + bytes, sum16(pseudo, 12, 0))));
    guest_send_ip(t->g, t->dst, IPPROTO_TCP, tcp, 20 + bytes);
    t->seq += bytes + !!(flags & (TCP_SYN | TCP_FIN));
}

/* Wait for a segment of this connection; returns its flags. */
static uint8_t guest_tcp_wait(GuestTcp *t)
{
    do {
        guest_wait(t->g, ETHERTYPE_IP, IPPROTO_TCP);
    } while (get16(guest_l4(t->g) + 2) != t->sport);
    return guest_l4(t->g)[13];
}

void guest_tcp_connect(GuestTcp *t, Guest *g, uint16_t sport, uint32_t dst,
                       uint16_t dport)
{
    *t = (GuestTcp) { .g = g, .sport = sport, .dst = dst, .dport = dport,
                      .seq = 1000 };
    guest_tcp_segment(t, TCP_SYN, NULL, 0);
    g_assert_cmphex(guest_tcp_wait(t), ==, TCP_SYN | TCP_ACK);
    g_assert_cmpuint(get32(guest_l4(g) + 8), ==, t->seq);
    t->ack = get32(guest_l4(g) + 4) + 1;
    guest_tcp_segment(t, TCP_ACK, NULL, 0);
}

void guest_tcp_send(GuestTcp *t, const void *data, size_t bytes)
{
    guest_tcp_segment(t, TCP_ACK | TCP_PSH, data, bytes);
}

/* One segment in; returns its data, and acknowledges it. */
static size_t guest_tcp_take(GuestTcp *t, const uint8_t **data)
{
    uint8_t flags = guest_tcp_wait(t);
    const uint8_t *tcp = guest_l4(t->g);
    size_t header = (tcp[12] >> 4) * 4;
    size_t bytes = guest_l4_bytes(t->g) - header;

    g_assert_false(flags & 0x04);       /* RST */
    if (get32(tcp + 4) != t->ack) {
        return 0;                       /* sent again; known already */
    }
    *data = tcp + header;
    t->fin |= flags & TCP_FIN;
    t->ack += bytes + !!(flags & TCP_FIN);
    return bytes;
}

void guest_tcp_recv(GuestTcp *t, void *data, size_t bytes)
{
    const uint8_t *from = NULL;
    size_t got = 0;

    while (got < bytes) {
        size_t n = guest_tcp_take(t, &from);

        g_assert_cmpuint(n, <=, bytes - got);
        memcpy((uint8_t *)data + got, from, n);
        got += n;
        if (n) {
            guest_tcp_segment(t, TCP_ACK, NULL, 0);
        }
    }
}

void guest_tcp_close(GuestTcp *t)
{
    const uint8_t *data;

    guest_tcp_segment(t, TCP_ACK | TCP_FIN, NULL, 0);
    while (!t->fin) {
        g_assert_cmpuint(guest_tcp_take(t, &data), ==, 0);
    }
    guest_tcp_segment(t, TCP_ACK, NULL, 0);
}
