/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A NIC for tests of backends: counts what it is told, and moves frames that
 * it holds in buffers of its own.
 */
#ifndef TESTS_UNIT_NET_HARNESS_H
#define TESTS_UNIT_NET_HARNESS_H

#include "net/net.h"

typedef struct TestNic {
    NetBackend *nb;
    NetQueue *nq;
    AioContext *ctx;
    unsigned rx_ready, tx_ready, link_down;     /* calls so far */
    void (*on_rx_ready)(struct TestNic *nic);   /* may be NULL */
    void (*on_tx_ready)(struct TestNic *nic);
    void *opaque;
} TestNic;

/* Options as after "-netdev ".  NULL with @errp set. */
NetBackend *test_netdev(const char *options, AioContext *ctx, GError **errp);

/* The same, which must succeed. */
NetBackend *test_netdev_ok(const char *options, AioContext *ctx);

/* Attach @nic to queue @i of @nb, in both directions in @ctx. */
void test_nic_attach(TestNic *nic, NetBackend *nb, unsigned i,
                     AioContext *ctx);
void test_nic_detach(TestNic *nic);

/* One packet in one buffer.  False if the backend is full. */
bool test_nic_send(TestNic *nic, const void *frame, size_t bytes,
                   NetTxAnswer *answer);

/* One packet, which must be taken. */
void test_nic_send_ok(TestNic *nic, const void *frame, size_t bytes);

/* One frame into one buffer of @room bytes. */
NetRecvStatus test_nic_recv(TestNic *nic, void *buf, size_t room,
                            size_t *bytes);

/*
 * Run the loop until it has nothing to do; never sleeps.  A NIC that wants
 * frames and does not read them keeps it busy: then it is so many turns.
 */
void test_settle(AioContext *ctx);
void test_turns(AioContext *ctx, unsigned turns);

#endif /* TESTS_UNIT_NET_HARNESS_H */
