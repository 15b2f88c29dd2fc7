/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A NIC without a transport: guest memory, a driver on both rings of pair 0,
 * the device, a virtual clock, and a backend whose answers a test writes.
 *
 * With tx-thread=on its transmit thread runs.  What the backend knows of
 * transmit belongs to that thread then, and nic_harness_in_tx() is the way to
 * it; the virtual clock wakes nobody, so deadlines there do not come.
 */
#ifndef TESTS_UNIT_NIC_HARNESS_H
#define TESTS_UNIT_NIC_HARNESS_H

#include <linux/virtio_net.h>

#include "hw/net/virtio-net-internal.h"
#include "../../net/net-internal.h"
#include "vring-harness.h"

#define NH_BASE     UINT64_C(0x100000)
#define NH_RX_RING  NH_BASE
#define NH_TX_RING  (NH_BASE + 0x20000)
#define NH_RX_BUF   (NH_BASE + 0x100000)
#define NH_TX_BUF   (NH_BASE + 0x800000)
#define NH_BYTES    UINT64_C(0x1000000)

#define NH_HDR      12      /* header length with VERSION_1 */

#define NH_MODERN   (VH_FEATURE(VIRTIO_F_VERSION_1) | VH_EVENT_IDX | \
                     VH_INDIRECT | VH_FEATURE(VIRTIO_NET_F_MRG_RXBUF))

/* ---- the backend ----------------------------------------------------- */

typedef struct FakeFrame {
    uint8_t *data;
    size_t bytes;
} FakeFrame;

typedef struct FakeNet {
    NetBackend nb;
    NetQueue queue;
    NetQueue *queue_list[1];

    unsigned room;          /* packets it takes before it is full */
    bool pending;           /* answer PENDING and keep the cookies */
    int drop_nth;           /* answer DROPPED to the n-th packet, 0 = none */
    bool record;            /* keep what was sent */
    void (*on_send)(void *opaque);  /* called inside each send_batch */
    void *on_send_opaque;
    void (*on_packet)(unsigned i);  /* ... before its packet @i is looked at */

    Clock *clock;           /* the harness's */
    int64_t packet_ns;      /* what a packet takes there, either way */
    void (*meanwhile)(void *opaque);    /* the others, after each */
    void *meanwhile_opaque;

    unsigned sent, batches;
    bool waiting;           /* owes a tx_ready() */
    GPtrArray *frames;      /* FakeFrame, as sent */
    GQueue *cookies;        /* PENDING ones */
    GQueue *incoming;       /* FakeFrame, header included if vnet */
    bool want;
    unsigned offload;
    unsigned endless;       /* > 0: an endless supply of frames this long */
    GPtrArray *injected;
} FakeNet;

/* fake_net_deliver: a frame arrives; @hdr if the backend has vnet headers. */
void fake_net_deliver(FakeNet *f, const void *hdr, const void *frame,
                      size_t bytes);
/* fake_net_complete: finish the oldest PENDING packet. */
void fake_net_complete(FakeNet *f, NetTxAnswer answer);
/* fake_net_ready: room for @room more packets; says so if it was full. */
void fake_net_ready(FakeNet *f, unsigned room);
const FakeFrame *fake_net_sent(FakeNet *f, unsigned i);

/* ---- the harness ----------------------------------------------------- */

typedef struct NicHarness NicHarness;

struct NicHarness {
    Clock *clock;
    AioContext *ctx;
    bool borrowed;          /* both are another harness's */
    FakeNet *net;
    VirtIONet *nic;
    VirtIONetConf conf;
    uint64_t features;
    uint16_t size;
    uint8_t *ram;
    GuestMap *map;
    VringDriver rx, tx;
    int kick[2], call[2];
};

typedef struct NicOptions {
    uint64_t features;      /* 0: NH_MODERN */
    uint16_t size;          /* 0: 256 */
    bool vnet;              /* the backend carries vnet headers */
    const char *props;      /* "tx=timer,...", NULL: defaults */
    bool stopped;           /* do not start the rings */
    bool poll;              /* a context with busy polling */
    NicHarness *beside;     /* share context and clock with this one */
} NicOptions;

NicHarness *nic_harness_new(const NicOptions *opt);

/* nic_harness_free: also if the test has freed the NIC, and set it to NULL. */
void nic_harness_free(NicHarness *h);

/* nic_harness_in_tx: run @fn in the transmit queue's context, and wait. */
void nic_harness_in_tx(NicHarness *h, AioFunc *fn, void *opaque);

void nic_harness_start(NicHarness *h, unsigned idx, uint16_t last_avail);

/* nic_harness_run: iterate the loop until nothing is left to do. */
void nic_harness_run(NicHarness *h);
/* nic_harness_step: advance the clock, then run. */
void nic_harness_step(NicHarness *h, int64_t ns);

void *nic_harness_ptr(NicHarness *h, uint64_t gpa);

/* nic_harness_kick: the driver's rule decides whether a kick is sent; returns
 * whether it was. */
bool nic_harness_kick(NicHarness *h, unsigned idx);

/* nic_harness_calls: calls seen on a ring since last asked. */
unsigned nic_harness_calls(NicHarness *h, unsigned idx);

/*
 * nic_harness_send: publish one packet of @bytes payload (its first four
 * bytes are @tag), header zero, in one descriptor.  No kick.
 */
void nic_harness_send(NicHarness *h, uint32_t tag, unsigned bytes);

/* nic_harness_transmit: @n packets, tags from 0, with one kick; then run. */
void nic_harness_transmit(NicHarness *h, unsigned n, unsigned bytes);

/* nic_harness_post: publish one receive buffer of @bytes.  No kick. */
void nic_harness_post(NicHarness *h, unsigned bytes);

/* nic_harness_tx_used: used entries the driver can take; takes them. */
unsigned nic_harness_tx_used(NicHarness *h);

/* nic_harness_stat: a counter of a ring; nic_harness_bin: a histogram's. */
uint64_t nic_harness_stat(NicHarness *h, unsigned idx, const char *name);
uint64_t nic_harness_bin(NicHarness *h, unsigned idx, const char *name,
                         unsigned bin);

#endif /* TESTS_UNIT_NIC_HARNESS_H */
