/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A guest that speaks just enough: Ethernet, ARP, IPv4, ICMP, UDP, DHCP and a
 * TCP that neither loses nor reorders.  For tests of -netdev user.
 */
#ifndef TESTS_UNIT_FAKE_GUEST_H
#define TESTS_UNIT_FAKE_GUEST_H

#include "net-harness.h"

#define GUEST_MTU   1500

/* Addresses are in host byte order: IP4(10, 0, 2, 15). */
#define IP4(a, b, c, d) \
    ((uint32_t)(a) << 24 | (uint32_t)(b) << 16 | (c) << 8 | (d))

typedef struct Guest {
    TestNic nic;
    AioContext *ctx;            /* run while waiting for an answer */
    uint32_t ip;
    uint8_t mac[6], gateway_mac[6];
    uint8_t frame[14 + GUEST_MTU];      /* the last one received */
    size_t bytes;
} Guest;

/* Each header as a pointer into g->frame, where the last frame has one. */
const uint8_t *guest_l3(const Guest *g);
const uint8_t *guest_l4(const Guest *g);
size_t guest_l4_bytes(const Guest *g);

uint16_t get16(const uint8_t *p);
uint32_t get32(const uint8_t *p);
void put16(uint8_t *p, uint16_t v);
void put32(uint8_t *p, uint32_t v);

void guest_init(Guest *g, NetBackend *nb, AioContext *ctx, uint32_t ip);

/* Take a frame if there is one. */
bool guest_poll(Guest *g);

/* Run the loop until a frame with this ethertype (and IP protocol, or -1). */
void guest_wait(Guest *g, uint16_t ethertype, int protocol);

/* Ask for the gateway's address, and learn it. */
void guest_arp(Guest *g, uint32_t gateway);

void guest_send_ip(Guest *g, uint32_t dst, uint8_t protocol,
                   const void *payload, size_t bytes);
void guest_send_ping(Guest *g, uint32_t dst, uint16_t seq, size_t bytes);
void guest_send_udp(Guest *g, uint16_t sport, uint32_t dst, uint16_t dport,
                    const void *payload, size_t bytes);

/* A DHCPDISCOVER; the answer is awaited. */
void guest_dhcp(Guest *g);

/* An option of the DHCP answer in g->frame, NULL if absent. */
const uint8_t *guest_dhcp_option(const Guest *g, uint8_t option,
                                 uint8_t *bytes);

/* ---- TCP ------------------------------------------------------------- */

typedef struct GuestTcp {
    Guest *g;
    uint32_t dst;
    uint16_t sport, dport;
    uint32_t seq, ack;
    bool fin;                   /* the peer has said it */
} GuestTcp;

/* Connect; the answer is awaited. */
void guest_tcp_connect(GuestTcp *t, Guest *g, uint16_t sport, uint32_t dst,
                       uint16_t dport);

/* Send at most one segment; does not wait. */
void guest_tcp_send(GuestTcp *t, const void *data, size_t bytes);

/* Wait for exactly @bytes and acknowledge them. */
void guest_tcp_recv(GuestTcp *t, void *data, size_t bytes);

/* Send FIN, and wait for that of the peer. */
void guest_tcp_close(GuestTcp *t);

#endif /* TESTS_UNIT_FAKE_GUEST_H */
