/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * One context, and a ring that never ends: how long do the others wait (F87)?
 *
 * The flood is transmit, from a driver that fills its ring again as soon as a
 * packet is out, or receive, from a backend without an end into a ring that is
 * always full of buffers.  Beside it the other direction, or another NIC, has
 * one packet at a time, which comes at any moment of the flood's passes: a
 * kick, or a frame that makes a descriptor readable.  From there to its service
 * is the gap.
 *
 * Time passes in the backends only, some of it with each packet, so that a gap
 * is a number of the flood's packets.
 */
#include <sys/eventfd.h>
#include <unistd.h>

#include "nic-harness.h"

#define PACKET_NS   1000
#define PROBES      300
#define PROBE_BYTES 60

typedef struct FairCase {
    const char *name;
    const char *props;
    bool flood_rx, probe_rx;
    bool two_nics;
    uint16_t ring;
    uint16_t bytes;             /* of a packet of the flood */
    unsigned limit_pkts;        /* the longest gap */
} FairCase;

/* A NIC, and the descriptor that its backend's frames make readable. */
typedef struct FairNic {
    NicHarness *h;
    int fd;
    AioHandler *handler;
} FairNic;

typedef struct Fair {
    const FairCase *c;
    FairNic nics[2];
    NicHarness *flood, *probe;
    int probe_fd;

    int64_t next_ns;            /* when the next probe comes */
    int64_t since_ns;           /* this one waits since */
    bool is_waiting;
    unsigned sent;              /* by the probe's NIC, when it came */
    unsigned done;
    int64_t longest_ns;
} Fair;

/* ---- the flood ----------------------------------------------------------- */

static void refill_tx(Fair *f)
{
    NicHarness *h = f->flood;

    nic_harness_tx_used(h);
    while ((uint16_t)(h->tx.avail_idx - h->tx.used_idx) < f->c->ring) {
        nic_harness_send(h, 0, f->c->bytes);
    }
    nic_harness_kick(h, 1);
}

/* Nobody looks at the frames: one buffer for all. */
static void refill_rx(NicHarness *h)
{
    uint32_t id, len;

    while (vring_driver_get_used(&h->rx, &id, &len)) {
    }
    while ((uint16_t)(h->rx.avail_idx - h->rx.used_idx) < h->size) {
        vring_driver_add(&h->rx, NH_RX_BUF, 2048, VRING_DESC_F_WRITE);
    }
    nic_harness_kick(h, 0);
}

/* ---- the probe ----------------------------------------------------------- */

static void send_probe(Fair *f)
{
    NicHarness *h = f->probe;

    nic_harness_tx_used(h);
    nic_harness_send(h, 0, PROBE_BYTES);
    nic_harness_kick(h, 1);
}

/* The device is told of it by the descriptor. */
static void deliver_probe(Fair *f)
{
    static const uint8_t frame[PROBE_BYTES];
    FakeNet *net = f->probe->net;
    bool want = net->want;

    net->want = false;
    fake_net_deliver(net, NULL, frame, sizeof(frame));
    net->want = want;
    eventfd_write(f->probe_fd, 1);
}

static bool is_served(const Fair *f)
{
    return f->c->probe_rx ? g_queue_is_empty(f->probe->net->incoming)
                          : f->probe->net->sent != f->sent;
}

/* The next one at another moment of a pass. */
static void note_service(Fair *f, int64_t now_ns)
{
    int64_t gap_ns = now_ns - PACKET_NS - f->since_ns;

    f->longest_ns = MAX(f->longest_ns, gap_ns);
    f->is_waiting = false;
    f->done++;
    f->next_ns = now_ns + f->done * 97 % (3 * f->c->ring) * PACKET_NS;
}

static void begin_probe(Fair *f, int64_t now_ns)
{
    f->is_waiting = true;
    f->since_ns = now_ns;
    f->sent = f->probe->net->sent;
    if (f->c->probe_rx) {
        deliver_probe(f);
    } else {
        send_probe(f);
    }
}

/* The others, while the device's thread spends its time on a packet. */
static void go_on(void *opaque)
{
    Fair *f = opaque;
    int64_t now_ns = clock_now_ns(f->flood->clock);

    if (!f->c->flood_rx) {
        refill_tx(f);
    }
    refill_rx(f->flood);
    refill_rx(f->probe);
    if (f->is_waiting && is_served(f)) {
        note_service(f, now_ns);
    } else if (!f->is_waiting && now_ns >= f->next_ns) {
        begin_probe(f, now_ns);
    }
}

/* ---- the tests ----------------------------------------------------------- */

static void frames_ready(void *opaque)
{
    FairNic *nic = opaque;
    FakeNet *net = nic->h->net;
    eventfd_t count;

    if (net->want) {
        net->queue.nic->rx_ready(net->queue.nic_opaque);
    }
    if (!net->endless && g_queue_is_empty(net->incoming)) {
        eventfd_read(nic->fd, &count);
    }
}

static const AioHandlerOps frames_ops = { .readable = frames_ready };

static NicHarness *nic_begin(Fair *f, FairNic *nic, NicHarness *beside)
{
    GError *err = NULL;

    nic->h = nic_harness_new(&(NicOptions) {
        .props = f->c->props, .size = f->c->ring, .beside = beside });
    nic->h->net->record = false;
    nic->h->net->packet_ns = PACKET_NS;
    nic->h->net->meanwhile = go_on;
    nic->h->net->meanwhile_opaque = f;
    nic->fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    nic->handler = aio_handler_new(nic->h->ctx, nic->fd, AIO_READ,
                                   &frames_ops, nic, &err);
    g_assert_no_error(err);
    return nic->h;
}

static void nic_end(FairNic *nic)
{
    nic->h->net->endless = 0;
    aio_handler_delete(nic->handler);
    close(nic->fd);
    nic_harness_free(nic->h);
}

static void begin_flood(Fair *f)
{
    refill_rx(f->flood);
    refill_rx(f->probe);
    nic_harness_run(f->flood);
    if (f->c->flood_rx) {
        f->flood->net->endless = f->c->bytes;
        eventfd_write(f->nics[0].fd, 1);
    } else {
        refill_tx(f);
    }
}

static void test_gap(gconstpointer opaque)
{
    Fair f = { .c = opaque };
    bool two = f.c->two_nics;

    f.flood = nic_begin(&f, &f.nics[0], NULL);
    f.probe = two ? nic_begin(&f, &f.nics[1], f.flood) : f.flood;
    f.probe_fd = f.nics[two].fd;
    begin_flood(&f);
    while (f.done < PROBES) {
        aio_poll(f.flood->ctx, false);
    }
    g_test_message("longest gap: %u packets, limit %u",
                   (unsigned)(f.longest_ns / PACKET_NS), f.c->limit_pkts);
    g_assert_cmpint(f.longest_ns, <=, f.c->limit_pkts * PACKET_NS);
    if (two) {
        nic_end(&f.nics[1]);
    }
    nic_end(&f.nics[0]);
}

/* Packets to pass, at least, until the budget in bytes is spent. */
#define PACKETS_OF(bytes) (512 * 1024 / (bytes) + 1)

#define RINGS(name, flood_rx, probe_rx, two_nics)                            \
    { name "/128", NULL, flood_rx, probe_rx, two_nics, 128, 60, 128 },       \
    { name "/256", NULL, flood_rx, probe_rx, two_nics, 256, 60, 128 },       \
    { name "/1024", NULL, flood_rx, probe_rx, two_nics, 1024, 60, 128 }

static const FairCase cases[] = {
    RINGS("tx-flood/rx", false, true, false),
    RINGS("rx-flood/tx", true, false, false),
    RINGS("tx-flood/other-rx", false, true, true),
    RINGS("tx-flood/other-tx", false, false, true),
    RINGS("rx-flood/other-rx", true, true, true),
    RINGS("rx-flood/other-tx", true, false, true),
    { "tx-flood/burst/rx", "x-txburst=32", false, true, false, 256, 60, 32 },
    { "tx-flood/burst/other-tx", "x-txburst=32", false, false, true, 256, 60,
      32 },
    { "tx-flood/burst/batches", "x-txburst=100", false, true, false, 256, 60,
      100 },
    { "tx-flood/burst/above", "x-txburst=4096", false, true, false, 256, 60,
      2 * 256 },
    { "tx-flood/bytes/rx", NULL, false, true, false, 256, 8000,
      PACKETS_OF(8000) },
    { "tx-flood/bytes/other-tx", NULL, false, false, true, 256, 8000,
      PACKETS_OF(8000) },
    { "rx-flood/bytes/tx", NULL, true, false, false, 256, 8000,
      PACKETS_OF(8000) },
    { "rx-flood/bytes/other-rx", NULL, true, true, true, 256, 8000,
      PACKETS_OF(8000) },
};

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    for (unsigned i = 0; i < G_N_ELEMENTS(cases); i++) {
        g_autofree char *path = g_strconcat("/net/fair/", cases[i].name,
                                            NULL);

        g_test_add_data_func(path, &cases[i], test_gap);
    }
    return g_test_run();
}
