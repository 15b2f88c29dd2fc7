/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The transmit machine: what leaves, in which order, who is told, and what
 * wakes it.  Numbers come from the virtio rules, the property defaults, or
 * arithmetic on them.
 */
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "alloc-count.h"
#include "nic-harness.h"

static void assert_sent_tags(NicHarness *h, unsigned first, unsigned n)
{
    g_assert_cmpuint(h->net->frames->len, ==, n);
    for (unsigned i = 0; i < n; i++) {
        uint32_t tag;

        memcpy(&tag, fake_net_sent(h->net, i)->data, sizeof(tag));
        g_assert_cmpuint(tag, ==, first + i);
    }
}

/* ---- bh -------------------------------------------------------------- */

/* One kick carries a burst; the used index moves once; one call decision. */
static void test_bh_batch(void)
{
    NicHarness *h = nic_harness_new(&(NicOptions) { 0 });

    for (unsigned i = 0; i < 10; i++) {
        nic_harness_send(h, i, 60);
    }
    g_assert_true(nic_harness_kick(h, 1));
    nic_harness_run(h);
    assert_sent_tags(h, 0, 10);
    g_assert_cmpuint(h->net->batches, ==, 1);
    g_assert_cmpuint(nic_harness_tx_used(h), ==, 10);
    g_assert_cmpuint(nic_harness_stat(h, 1, "batches"), ==, 1);
    g_assert_cmpuint(nic_harness_stat(h, 1, "packets"), ==, 10);
    g_assert_cmpuint(nic_harness_stat(h, 1, "bytes"), ==, 600);
    g_assert_cmpuint(nic_harness_stat(h, 1, "kicks"), ==, 1);
    nic_harness_free(h);
}

/* Idle again, the next packet is announced. */
static void test_bh_idle_kick(void)
{
    NicHarness *h = nic_harness_new(&(NicOptions) { 0 });

    for (unsigned i = 0; i < 300; i++) {
        nic_harness_send(h, i, 60);
        g_assert_true(nic_harness_kick(h, 1));
        nic_harness_run(h);
        g_assert_cmpuint(nic_harness_tx_used(h), ==, 1);
    }
    assert_sent_tags(h, 0, 300);
    nic_harness_free(h);
}

typedef struct AddOnSend {
    NicHarness *h;
    unsigned left;
    unsigned kicks;
    uint32_t tag;
} AddOnSend;

static void add_on_send(void *opaque)
{
    AddOnSend *a = opaque;

    if (a->left) {
        a->left--;
        nic_harness_send(a->h, a->tag++, 60);
        a->kicks += nic_harness_kick(a->h, 1);
    }
}

/* While the host has work, no kick; what comes meanwhile is not lost. */
static void check_no_kick_while_flushing(uint64_t features)
{
    NicHarness *h = nic_harness_new(&(NicOptions) { .features = features });
    AddOnSend a = { .h = h, .left = 50, .tag = 1 };

    h->net->on_send = add_on_send;
    h->net->on_send_opaque = &a;
    nic_harness_send(h, 0, 60);
    g_assert_true(nic_harness_kick(h, 1));
    nic_harness_run(h);
    assert_sent_tags(h, 0, 51);
    g_assert_cmpuint(a.kicks, ==, 0);
    nic_harness_free(h);
}

static void test_no_kick_while_flushing(void)
{
    check_no_kick_while_flushing(NH_MODERN);
    check_no_kick_while_flushing(NH_MODERN & ~VH_EVENT_IDX);
}

/* F22/F23: a full ring leaves whatever the budget, with one kick. */
static void check_burst(const char *props, uint64_t features)
{
    NicHarness *h = nic_harness_new(&(NicOptions) { .props = props,
                                                    .features = features });

    for (unsigned i = 0; i < 256; i++) {
        nic_harness_send(h, i, 60);
    }
    g_assert_true(nic_harness_kick(h, 1));
    for (unsigned i = 0; i < 256 && h->net->sent < 256; i++) {
        nic_harness_step(h, 150 * NS_PER_US);
    }
    assert_sent_tags(h, 0, 256);
    g_assert_cmpuint(nic_harness_tx_used(h), ==, 256);
    g_assert_cmpint(aio_next_deadline_ns(h->ctx), ==, INT64_MAX);
    nic_harness_free(h);
}

static void test_burst(void)
{
    static const char *const props[] = {
        "tx=bh", "tx=bh,x-txburst=1", "tx=bh,x-txburst=2",
        "tx=timer", "tx=timer,x-txburst=1", "tx=timer,x-txburst=256",
    };

    for (unsigned i = 0; i < G_N_ELEMENTS(props); i++) {
        check_burst(props[i], NH_MODERN);
        check_burst(props[i], NH_MODERN & ~VH_EVENT_IDX);
    }
}


/* A pass ends at its budget and goes behind the other work (F87). */
static void test_budget_is_fair(void)
{
    NicHarness *h = nic_harness_new(&(NicOptions) {
        .props = "x-txburst=64" });
    uint32_t id, len;

    nic_harness_post(h, 2048);
    nic_harness_kick(h, 0);
    nic_harness_run(h);
    for (unsigned i = 0; i < 256; i++) {
        nic_harness_send(h, i, 60);
    }
    nic_harness_kick(h, 1);
    aio_poll(h->ctx, false);
    g_assert_cmpuint(h->net->sent, ==, 64);
    fake_net_deliver(h->net, NULL, "0123456789abcdef", 16);
    g_assert_true(vring_driver_get_used(&h->rx, &id, &len));
    g_assert_cmpuint(nic_harness_stat(h, 1, "flush_budget"), ==, 1);
    nic_harness_run(h);
    assert_sent_tags(h, 0, 256);
    nic_harness_free(h);
}

/* ---- polling ---------------------------------------------------------- */

/* Between begin and end nobody kicks; what came while it ended is found. */
static void test_polling(void)
{
    const AioHandlerOps *ops = &virtio_net_tx_kick_ops;
    NicHarness *h = nic_harness_new(&(NicOptions) { 0 });
    VirtIONetTx *tx = &h->nic->pairs[0]->tx;

    ops->poll_begin(tx);
    g_assert_false(ops->poll(tx));
    g_assert_false(ops->poll_end(tx));
    nic_harness_send(h, 0, 60);
    g_assert_true(nic_harness_kick(h, 1));
    nic_harness_run(h);
    assert_sent_tags(h, 0, 1);

    ops->poll_begin(tx);
    nic_harness_send(h, 1, 60);
    g_assert_false(nic_harness_kick(h, 1));
    g_assert_true(ops->poll(tx));
    nic_harness_run(h);
    assert_sent_tags(h, 0, 2);

    ops->poll_begin(tx);
    nic_harness_send(h, 2, 60);
    g_assert_false(nic_harness_kick(h, 1));
    g_assert_true(ops->poll_end(tx));
    nic_harness_run(h);
    assert_sent_tags(h, 0, 3);
    nic_harness_free(h);
}

/* ---- timer ----------------------------------------------------------- */

static void test_timer_waits_its_period(void)
{
    NicHarness *h = nic_harness_new(&(NicOptions) { .props = "tx=timer" });

    nic_harness_send(h, 0, 60);
    g_assert_true(nic_harness_kick(h, 1));
    nic_harness_run(h);
    g_assert_cmpuint(h->net->sent, ==, 0);
    nic_harness_step(h, 100 * NS_PER_US);
    nic_harness_send(h, 1, 60);
    g_assert_false(nic_harness_kick(h, 1));
    nic_harness_step(h, 50 * NS_PER_US - 1);
    g_assert_cmpuint(h->net->sent, ==, 0);
    nic_harness_step(h, 1);
    assert_sent_tags(h, 0, 2);
    /* idle: kicks are wanted, no transmit deadline runs */
    nic_harness_send(h, 2, 60);
    g_assert_true(nic_harness_kick(h, 1));
    nic_harness_run(h);
    nic_harness_step(h, 150 * NS_PER_US);
    assert_sent_tags(h, 0, 3);
    nic_harness_free(h);
}

/* A kick nobody asked for does not cut the period short (F24). */
static void test_timer_spurious_kick(void)
{
    NicHarness *h = nic_harness_new(&(NicOptions) { .props = "tx=timer" });

    nic_harness_send(h, 0, 60);
    nic_harness_kick(h, 1);
    nic_harness_run(h);
    nic_harness_step(h, 10 * NS_PER_US);
    virtio_net_tx_wake(&h->nic->pairs[0]->tx, TX_WAKE_KICK);
    nic_harness_run(h);
    g_assert_cmpuint(h->net->sent, ==, 0);
    nic_harness_step(h, 140 * NS_PER_US);
    g_assert_cmpuint(h->net->sent, ==, 1);
    nic_harness_free(h);
}

static void test_timer_property(void)
{
    NicHarness *h = nic_harness_new(&(NicOptions) {
        .props = "tx=timer,x-txtimer=1000000" });

    nic_harness_send(h, 0, 60);
    nic_harness_kick(h, 1);
    nic_harness_run(h);
    nic_harness_step(h, 999999);
    g_assert_cmpuint(h->net->sent, ==, 0);
    nic_harness_step(h, 1);
    g_assert_cmpuint(h->net->sent, ==, 1);
    nic_harness_free(h);
}

/* ---- backpressure (F77, F78, F89) ------------------------------------ */

static void test_full_and_resume(void)
{
    NicHarness *h = nic_harness_new(&(NicOptions) { 0 });

    h->net->room = 3;
    for (unsigned i = 0; i < 100; i++) {
        nic_harness_send(h, i, 60);
    }
    nic_harness_kick(h, 1);
    nic_harness_run(h);
    assert_sent_tags(h, 0, 3);
    g_assert_cmpuint(nic_harness_tx_used(h), ==, 3);
    /* nothing moves, nothing spins, nobody kicks */
    g_assert_false(aio_poll(h->ctx, false));
    nic_harness_send(h, 100, 60);
    g_assert_false(nic_harness_kick(h, 1));
    fake_net_ready(h->net, 10);
    nic_harness_run(h);
    assert_sent_tags(h, 0, 13);
    fake_net_ready(h->net, UINT_MAX);
    nic_harness_run(h);
    assert_sent_tags(h, 0, 101);
    g_assert_cmpuint(nic_harness_tx_used(h), ==, 98);
    nic_harness_free(h);
}

/* Refused by the host: completed, counted, and the others go on (F71). */
static void test_host_drop(void)
{
    NicHarness *h = nic_harness_new(&(NicOptions) { 0 });

    h->net->drop_nth = 3;
    for (unsigned i = 0; i < 5; i++) {
        nic_harness_send(h, i, 60);
    }
    nic_harness_kick(h, 1);
    nic_harness_run(h);
    g_assert_cmpuint(h->net->frames->len, ==, 4);
    g_assert_cmpuint(nic_harness_tx_used(h), ==, 5);
    g_assert_cmpuint(nic_harness_stat(h, 1, "dropped_host"), ==, 1);
    g_assert_cmpuint(nic_harness_stat(h, 1, "packets"), ==, 4);
    nic_harness_free(h);
}

/* Held by the backend: published only when done, in order. */
static void test_pending(void)
{
    NicHarness *h = nic_harness_new(&(NicOptions) { 0 });

    h->net->pending = true;
    for (unsigned i = 0; i < 4; i++) {
        nic_harness_send(h, i, 60);
    }
    nic_harness_kick(h, 1);
    nic_harness_run(h);
    g_assert_cmpuint(nic_harness_tx_used(h), ==, 0);
    fake_net_complete(h->net, NET_TX_DONE);
    fake_net_complete(h->net, NET_TX_DONE);
    g_assert_cmpuint(nic_harness_tx_used(h), ==, 2);
    /* F32: stop gives up the rest, each exactly once */
    g_assert_cmpuint(virtio_net_queue_stop(h->nic, 1), ==, 4);
    g_assert_cmpuint(nic_harness_tx_used(h), ==, 2);
    g_assert_cmpuint(nic_harness_stat(h, 1, "dropped_host"), ==, 2);
    nic_harness_free(h);
}

/* Stop with a backend that is full: un-popped, sent after the restart. */
/* A stop between two passes: nothing of the queue is left in the context. */
static void test_stop_while_scheduled(void)
{
    NicHarness *h = nic_harness_new(&(NicOptions) { .props = "x-txburst=1" });

    nic_harness_send(h, 0, 60);
    nic_harness_send(h, 1, 60);
    nic_harness_kick(h, 1);
    aio_poll(h->ctx, false);
    g_assert_cmpuint(h->net->sent, ==, 1);
    g_assert_cmpuint(virtio_net_queue_stop(h->nic, 1), ==, 1);
    g_assert_false(aio_poll(h->ctx, false));
    g_assert_cmpuint(h->net->sent, ==, 1);
    nic_harness_free(h);
}

static void test_stop_while_full(void)
{
    NicHarness *h = nic_harness_new(&(NicOptions) { 0 });
    eventfd_t kicks;
    uint16_t base;

    h->net->room = 2;
    for (unsigned i = 0; i < 10; i++) {
        nic_harness_send(h, i, 60);
    }
    nic_harness_kick(h, 1);
    nic_harness_run(h);
    g_assert_cmpint(eventfd_read(h->kick[1], &kicks), ==, 0);
    base = virtio_net_queue_stop(h->nic, 1);
    g_assert_cmpuint(base, ==, 2);
    /* the eventfd is the driver's and the front-end's: never written here */
    g_assert_cmpint(eventfd_read(h->kick[1], &kicks), <, 0);
    g_assert_cmpuint(virtio_net_queue_stop(h->nic, 1), ==, 2);
    g_assert_cmpuint(nic_harness_tx_used(h), ==, 2);
    fake_net_ready(h->net, UINT_MAX);
    nic_harness_run(h);
    g_assert_cmpuint(h->net->sent, ==, 2);
    close(h->kick[1]);
    close(h->call[1]);
    nic_harness_start(h, 1, base);
    nic_harness_run(h);                     /* polled once, no kick */
    assert_sent_tags(h, 0, 10);
    nic_harness_free(h);
}

/* ---- link and enable (F39) ------------------------------------------- */

static void test_link_down(void)
{
    NicHarness *h = nic_harness_new(&(NicOptions) { 0 });

    h->net->room = 1;
    for (unsigned i = 0; i < 10; i++) {
        nic_harness_send(h, i, 60);
    }
    nic_harness_kick(h, 1);
    nic_harness_run(h);
    virtio_net_set_link(h->nic, false);
    nic_harness_run(h);
    g_assert_cmpuint(nic_harness_tx_used(h), ==, 10);
    g_assert_cmpuint(nic_harness_stat(h, 1, "dropped_down"), ==, 9);
    g_assert_cmpuint(h->net->sent, ==, 1);
    h->net->room = UINT_MAX;
    virtio_net_set_link(h->nic, true);
    nic_harness_run(h);
    nic_harness_send(h, 10, 60);
    g_assert_true(nic_harness_kick(h, 1));
    nic_harness_run(h);
    g_assert_cmpuint(h->net->sent, ==, 2);
    nic_harness_free(h);
}

static void test_disabled_ring_is_drained(void)
{
    NicHarness *h = nic_harness_new(&(NicOptions) { 0 });

    virtio_net_queue_enable(h->nic, 1, false);
    for (unsigned i = 0; i < 10; i++) {
        nic_harness_send(h, i, 60);
    }
    nic_harness_kick(h, 1);
    nic_harness_run(h);
    g_assert_cmpuint(h->net->sent, ==, 0);
    g_assert_cmpuint(nic_harness_tx_used(h), ==, 10);
    virtio_net_queue_enable(h->nic, 1, true);
    nic_harness_send(h, 10, 60);
    nic_harness_kick(h, 1);
    nic_harness_run(h);
    g_assert_cmpuint(h->net->sent, ==, 1);
    nic_harness_free(h);
}

/* F28: kicked before it is enabled, and never again. */
static void test_start_polls_once(void)
{
    NicHarness *h = nic_harness_new(&(NicOptions) { .stopped = true });

    nic_harness_send(h, 7, 60);
    nic_harness_start(h, 1, 0);
    nic_harness_run(h);
    assert_sent_tags(h, 7, 1);
    nic_harness_free(h);
}

/* ---- headers (F66, F74) ---------------------------------------------- */

static void send_raw(NicHarness *h, unsigned total, unsigned piece)
{
    unsigned slot = h->tx.avail_idx % h->size;
    uint64_t gpa = NH_TX_BUF + slot * 0x2000;
    unsigned n = (total + piece - 1) / piece;
    /* chains use descriptors from the table's end, away from heads */
    unsigned first = h->size - n;

    memset(nic_harness_ptr(h, gpa), 0, NH_HDR);
    memset((uint8_t *)nic_harness_ptr(h, gpa) + NH_HDR, 0xa5, 0x2000 - NH_HDR);
    for (unsigned i = 0; i < n; i++) {
        vring_driver_desc(&h->tx, first + i, gpa + i * piece,
                          MIN(piece, total - i * piece),
                          i + 1 < n ? VRING_DESC_F_NEXT : 0, first + i + 1);
    }
    vring_driver_offer(&h->tx, first);
    vring_driver_expose(&h->tx);
    nic_harness_kick(h, 1);
    nic_harness_run(h);
    g_assert_cmpuint(nic_harness_tx_used(h), ==, 1);
}

static void test_short_chains(void)
{
    static const unsigned shorts[] = { 1, 9, 10, 11, 12 };
    NicHarness *h = nic_harness_new(&(NicOptions) { 0 });

    for (unsigned i = 0; i < G_N_ELEMENTS(shorts); i++) {
        send_raw(h, shorts[i], 4096);
        g_assert_cmpuint(nic_harness_stat(h, 1, "dropped_guest"), ==, i + 1);
    }
    send_raw(h, 13, 4096);
    send_raw(h, 26, 4096);
    g_assert_cmpuint(h->net->sent, ==, 2);
    g_assert_cmpuint(fake_net_sent(h->net, 0)->bytes, ==, 1);
    g_assert_cmpuint(fake_net_sent(h->net, 1)->bytes, ==, 14);
    nic_harness_free(h);
}

static void check_split_header(bool vnet)
{
    NicHarness *h = nic_harness_new(&(NicOptions) { .vnet = vnet });
    unsigned hdr = vnet ? NH_HDR : 0;

    for (unsigned piece = 1; piece <= 13; piece++) {
        const FakeFrame *f;

        send_raw(h, NH_HDR + 60, piece);
        f = fake_net_sent(h->net, piece - 1);
        g_assert_cmpuint(f->bytes, ==, hdr + 60);
        for (unsigned i = hdr; i < hdr + 60; i++) {
            g_assert_cmpuint(f->data[i], ==, 0xa5);
        }
    }
    nic_harness_free(h);
}

static void test_split_header(void)
{
    check_split_header(false);
    check_split_header(true);
}

/* One ceiling: a 64 KiB GSO packet with its Ethernet and VLAN headers. */
static void test_too_long(void)
{
    static const struct { uint32_t frame; unsigned sent; } cases[] = {
        { NET_MAX_FRAME_BYTES, 1 }, { NET_MAX_FRAME_BYTES + 1, 0 },
        { 70000, 0 }, { 0x7fffffff, 0 },
    };

    for (unsigned i = 0; i < G_N_ELEMENTS(cases); i++) {
        NicHarness *h = nic_harness_new(&(NicOptions) { 0 });
        uint64_t room = NH_BASE + NH_BYTES - NH_TX_BUF;
        uint32_t total = MIN(NH_HDR + (uint64_t)cases[i].frame, room);

        memset(nic_harness_ptr(h, NH_TX_BUF), 0, NH_HDR);
        vring_driver_add(&h->tx, NH_TX_BUF, total, 0);
        nic_harness_kick(h, 1);
        nic_harness_run(h);
        g_assert_cmpuint(h->net->sent, ==, cases[i].sent);
        g_assert_cmpuint(nic_harness_tx_used(h), ==, 1);
        nic_harness_free(h);
    }
}

/* As many pieces as the ring has entries, more than one writev takes. */
static void test_most_pieces(void)
{
    NicHarness *h = nic_harness_new(&(NicOptions) { .size = 1024,
                                                    .vnet = true });
    const FakeFrame *f;

    memset(nic_harness_ptr(h, NH_TX_BUF), 0, NH_HDR);
    for (unsigned i = 0; i < 1024; i++) {
        uint64_t gpa = NH_TX_BUF + (i ? NH_HDR + 3 + i : 0);

        if (i) {
            *(uint8_t *)nic_harness_ptr(h, gpa) = i;
        }
        vring_driver_desc(&h->tx, i, gpa, i ? 1 : NH_HDR + 1,
                          i < 1023 ? VRING_DESC_F_NEXT : 0, i + 1);
    }
    vring_driver_offer(&h->tx, 0);
    vring_driver_expose(&h->tx);
    nic_harness_kick(h, 1);
    nic_harness_run(h);
    g_assert_cmpuint(h->net->sent, ==, 1);
    f = fake_net_sent(h->net, 0);
    g_assert_cmpuint(f->bytes, ==, NH_HDR + 1024);
    for (unsigned i = 1; i < 1024; i++) {
        g_assert_cmpuint(f->data[NH_HDR + i], ==, (uint8_t)i);
    }
    nic_harness_free(h);
}

/* A packet of so many pieces in a table at @table; its bytes are @fill. */
static void send_pieces(NicHarness *h, uint64_t table, unsigned pieces,
                        uint8_t fill)
{
    struct vring_desc *desc = nic_harness_ptr(h, table);
    uint64_t buf = table + 0x8000;

    memset(nic_harness_ptr(h, buf), fill, 0x1000);
    memset(nic_harness_ptr(h, buf), 0, NH_HDR);
    for (unsigned i = 0; i < pieces; i++) {
        desc[i] = (struct vring_desc) {
            .addr = GUINT64_TO_LE(buf + (i ? NH_HDR + i : 0)),
            .len = GUINT32_TO_LE(i ? 1 : NH_HDR + 1),
            .flags = GUINT16_TO_LE(i < pieces - 1 ? VRING_DESC_F_NEXT : 0),
            .next = GUINT16_TO_LE(i + 1),
        };
    }
    vring_driver_add(&h->tx, table, pieces * sizeof(*desc),
                     VRING_DESC_F_INDIRECT);
}

/* The backend holds the one packet that had to be joined: the next one of
 * that kind waits for it, unharmed, and nothing spins. */
static void test_pieces_pending(void)
{
    NicHarness *h = nic_harness_new(&(NicOptions) { .size = 1024,
                                                    .vnet = true });

    h->net->pending = true;
    for (unsigned i = 0; i < 3; i++) {
        send_pieces(h, NH_TX_BUF + i * 0x10000, 1024, 1 + i);
    }
    nic_harness_kick(h, 1);
    for (unsigned i = 0; i < 3; i++) {
        nic_harness_run(h);
        g_assert_cmpuint(h->net->sent, ==, i + 1);
        g_assert_cmpuint(fake_net_sent(h->net, i)->data[NH_HDR], ==, 1 + i);
        g_assert_cmpuint(fake_net_sent(h->net, i)->data[NH_HDR + 1023], ==,
                         1 + i);
        g_assert_false(aio_poll(h->ctx, false));
        fake_net_complete(h->net, NET_TX_DONE);
    }
    nic_harness_run(h);
    g_assert_cmpuint(nic_harness_tx_used(h), ==, 3);
    nic_harness_free(h);
}

/*
 * Chains in flight that leave no room for the next one: it waits for them to
 * complete, and nobody spins meanwhile.
 */
static void test_pieces_fill_pool(void)
{
    NicHarness *h = nic_harness_new(&(NicOptions) { .size = 1024,
                                                    .vnet = true });

    h->net->pending = true;
    for (unsigned i = 0; i < 12; i++) {
        send_pieces(h, NH_TX_BUF + i * 0x10000, 1000, 1 + i);
    }
    nic_harness_kick(h, 1);
    aio_poll(h->ctx, false);
    g_assert_cmpuint(h->net->sent, <, 12);
    g_assert_false(aio_poll(h->ctx, false));
    while (!g_queue_is_empty(h->net->cookies)) {
        fake_net_complete(h->net, NET_TX_DONE);
        nic_harness_run(h);
    }
    g_assert_cmpuint(h->net->sent, ==, 12);
    g_assert_cmpuint(nic_harness_tx_used(h), ==, 12);
    nic_harness_free(h);
}

/* ---- a broken ring (F96) --------------------------------------------- */

static void test_broken(void)
{
    NicHarness *h = nic_harness_new(&(NicOptions) { 0 });

    nic_harness_send(h, 0, 60);
    vring_driver_set_avail_idx(&h->tx, 1000);
    eventfd_write(h->kick[1], 1);
    nic_harness_run(h);
    g_assert_true(virtio_net_queue_broken(h->nic, 1));
    g_assert_cmpuint(h->net->sent, ==, 0);
    /* the other ring of the device rests as well */
    nic_harness_post(h, 2048);
    nic_harness_kick(h, 0);
    nic_harness_run(h);
    fake_net_deliver(h->net, NULL, "0123456789abcdef", 16);
    nic_harness_run(h);
    g_assert_cmpuint(nic_harness_stat(h, 0, "packets"), ==, 0);
    /* and a driver that begins anew has a device again */
    virtio_net_queue_stop(h->nic, 0);
    virtio_net_queue_stop(h->nic, 1);
    vring_driver_init(&h->tx, h->size, h->features,
                      h->tx.desc, h->tx.avail, h->tx.used);
    close(h->kick[1]);
    close(h->call[1]);
    nic_harness_start(h, 1, 0);
    nic_harness_send(h, 5, 60);
    nic_harness_kick(h, 1);
    nic_harness_run(h);
    assert_sent_tags(h, 5, 1);
    nic_harness_free(h);
}

/* ---- memory and features under way ----------------------------------- */

static void test_new_map(void)
{
    NicHarness *h = nic_harness_new(&(NicOptions) { 0 });
    GuestMap *old = h->map;
    GuestMapBuilder *b = guest_map_builder_new(old);

    h->net->room = 1;
    nic_harness_transmit(h, 10, 60);
    h->map = guest_map_builder_finish(b);
    virtio_net_set_map(h->nic, h->map);
    guest_map_release_wait(old);            /* would not return otherwise */
    fake_net_ready(h->net, UINT_MAX);
    nic_harness_run(h);
    assert_sent_tags(h, 0, 10);
    nic_harness_free(h);
}

static void test_features(void)
{
    NicHarness *h = nic_harness_new(&(NicOptions) { 0 });
    GError *err = NULL;

    nic_harness_transmit(h, 1, 60);
    g_assert_true(virtio_net_set_features(h->nic, h->features, &err));
    g_assert_false(virtio_net_set_features(
        h->nic, h->features | VH_FEATURE(VIRTIO_NET_F_CSUM), &err));
    g_assert_nonnull(err);
    g_error_free(err);
    nic_harness_transmit(h, 1, 60);
    g_assert_cmpuint(h->net->sent, ==, 2);
    nic_harness_free(h);
}

/* ---- the packet path allocates nothing ------------------------------- */

static void test_no_allocation(void)
{
    NicHarness *h;
    uint64_t allocs;

    if (!alloc_count_supported()) {
        g_test_skip("a sanitizer has the allocator");
        return;
    }
    h = nic_harness_new(&(NicOptions) { .vnet = true });
    h->net->record = false;
    nic_harness_transmit(h, 64, 60);
    nic_harness_tx_used(h);
    allocs = alloc_count();
    for (unsigned i = 0; i < 1000; i++) {
        vring_driver_enable_call(&h->tx);
        nic_harness_transmit(h, 64, 60);
        nic_harness_step(h, 150 * NS_PER_US);
        g_assert_cmpuint(nic_harness_tx_used(h), ==, 64);
    }
    g_assert_cmpuint(alloc_count(), ==, allocs);
    nic_harness_free(h);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/net/tx/bh/batch", test_bh_batch);
    g_test_add_func("/net/tx/bh/idle-kick", test_bh_idle_kick);
    g_test_add_func("/net/tx/no-kick-while-flushing",
                    test_no_kick_while_flushing);
    g_test_add_func("/net/tx/burst", test_burst);
    g_test_add_func("/net/tx/budget-is-fair", test_budget_is_fair);
    g_test_add_func("/net/tx/polling", test_polling);
    g_test_add_func("/net/tx/timer/period", test_timer_waits_its_period);
    g_test_add_func("/net/tx/timer/spurious-kick", test_timer_spurious_kick);
    g_test_add_func("/net/tx/timer/property", test_timer_property);
    g_test_add_func("/net/tx/full/resume", test_full_and_resume);
    g_test_add_func("/net/tx/full/stop", test_stop_while_full);
    g_test_add_func("/net/tx/scheduled/stop", test_stop_while_scheduled);
    g_test_add_func("/net/tx/host-drop", test_host_drop);
    g_test_add_func("/net/tx/pending", test_pending);
    g_test_add_func("/net/tx/link-down", test_link_down);
    g_test_add_func("/net/tx/disabled", test_disabled_ring_is_drained);
    g_test_add_func("/net/tx/start-polls-once", test_start_polls_once);
    g_test_add_func("/net/tx/header/short", test_short_chains);
    g_test_add_func("/net/tx/header/split", test_split_header);
    g_test_add_func("/net/tx/too-long", test_too_long);
    g_test_add_func("/net/tx/most-pieces", test_most_pieces);
    g_test_add_func("/net/tx/pieces-pending", test_pieces_pending);
    g_test_add_func("/net/tx/pieces-fill-pool", test_pieces_fill_pool);
    g_test_add_func("/net/tx/broken", test_broken);
    g_test_add_func("/net/tx/new-map", test_new_map);
    g_test_add_func("/net/tx/features", test_features);
    g_test_add_func("/net/tx/no-allocation", test_no_allocation);
    return g_test_run();
}
