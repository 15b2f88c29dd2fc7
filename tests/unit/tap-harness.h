/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Real taps for tests, in a network namespace of the test's own.
 *
 * The other end of a tap is a packet socket on its interface: it sees each
 * frame that the backend writes, and sends those that the backend reads.
 */
#ifndef TESTS_UNIT_TAP_HARNESS_H
#define TESTS_UNIT_TAP_HARNESS_H

#include "net-harness.h"

#define TEST_ETHERTYPE  0x88b5      /* IEEE 802: local experiments */
#define TEST_HDR        12          /* vnet header of a modern device */
#define TEST_OPTIONS    "tap,id=n,ifname=tap0,script=no,downscript=no"

typedef struct Tap {
    AioContext *ctx;
    NetBackend *nb;
    TestNic nic;
    int host;           /* packet socket */
} Tap;

/* Enter a namespace; if that, or taps, cannot be had, tests are skipped. */
void tap_harness_init(void);

/* True if the running test has been marked as skipped. */
bool skipped(void);

/* Run a command; run() needs it to succeed. */
bool try_run(const char *command);
void run(const char *command);

void link_up(const char *ifname);

/* A netdev for "tap0" of these options, with a NIC on its queue 0. */
void tap_open(Tap *t, const char *options);
void tap_open_clock(Tap *t, const char *options, Clock *clock);
void tap_close(Tap *t);

/* An Ethernet frame to a station that no bridge knows. */
void make_frame(uint8_t *frame, size_t bytes, unsigned seq);

/* Send a frame into the interface from the host. */
void host_send(int s, const uint8_t *frame, size_t bytes);

/* One frame of @bytes out to the host, or in from it, and compared. */
void check_tx(Tap *t, unsigned hdr_len, size_t bytes);
void check_rx(Tap *t, unsigned hdr_len, size_t bytes);

/* Read what there is. */
void drain(TestNic *nic);

#endif /* TESTS_UNIT_TAP_HARNESS_H */
