/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The NIC harness: see the header.
 */
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <unistd.h>

#include "nic-harness.h"
#include "util/iov.h"

/* ---- backend --------------------------------------------------------- */

static FakeNet *fake_of(NetQueue *nq)
{
    return (FakeNet *)nq->nb;
}

static void record_frame(FakeNet *f, const NetPacket *p)
{
    FakeFrame *frame;

    if (!f->record) {
        return;
    }
    frame = g_new0(FakeFrame, 1);
    frame->bytes = p->bytes;
    frame->data = g_malloc(p->bytes);
    g_assert_cmpuint(iov_to_buf(p->iov, p->iovcnt, 0, frame->data, p->bytes),
                     ==, p->bytes);
    g_assert_cmpuint(iov_size(p->iov, p->iovcnt), ==, p->bytes);
    g_ptr_array_add(f->frames, frame);
}

/* A packet takes its time, and the others go on. */
static void spend_time(FakeNet *f)
{
    clock_virtual_advance(f->clock, f->packet_ns);
    if (f->meanwhile) {
        f->meanwhile(f->meanwhile_opaque);
    }
}

static unsigned fake_send(NetQueue *nq, NetPacket *pkts, unsigned n)
{
    FakeNet *f = fake_of(nq);
    unsigned i;

    f->batches++;
    if (f->on_send) {
        f->on_send(f->on_send_opaque);
    }
    for (i = 0; i < n; i++) {
        if (f->on_packet) {
            f->on_packet(i);
        }
        if (f->room == 0) {
            f->waiting = true;
            break;
        }
        f->room -= f->room != UINT_MAX;
        f->sent++;
        spend_time(f);
        if (f->drop_nth && --f->drop_nth == 0) {
            pkts[i].answer = NET_TX_DROPPED;
            continue;
        }
        record_frame(f, &pkts[i]);
        pkts[i].answer = f->pending ? NET_TX_PENDING : NET_TX_DONE;
        if (f->pending) {
            g_queue_push_tail(f->cookies, pkts[i].cookie);
        }
    }
    return i;
}

void fake_net_complete(FakeNet *f, NetTxAnswer answer)
{
    f->queue.nic->tx_complete(f->queue.nic_opaque,
                              g_queue_pop_head(f->cookies), answer);
}

static void fake_cancel(NetQueue *nq)
{
    FakeNet *f = fake_of(nq);

    f->waiting = false;
    while (!g_queue_is_empty(f->cookies)) {
        fake_net_complete(f, NET_TX_DROPPED);
    }
}

void fake_net_ready(FakeNet *f, unsigned room)
{
    f->room = room;
    if (f->waiting) {
        f->waiting = false;
        f->queue.nic->tx_ready(f->queue.nic_opaque);
    }
}

const FakeFrame *fake_net_sent(FakeNet *f, unsigned i)
{
    g_assert_cmpuint(i, <, f->frames->len);
    return g_ptr_array_index(f->frames, i);
}

static void frame_free(void *opaque)
{
    FakeFrame *frame = opaque;

    g_free(frame->data);
    g_free(frame);
}

void fake_net_deliver(FakeNet *f, const void *hdr, const void *frame,
                      size_t bytes)
{
    FakeFrame *in = g_new0(FakeFrame, 1);
    unsigned skip = f->nb.caps.vnet_hdr ? f->nb.vnet_hdr_len : 0;

    in->bytes = skip + bytes;
    in->data = g_malloc0(in->bytes);
    if (skip && hdr) {
        memcpy(in->data, hdr, MIN(skip, sizeof(struct virtio_net_hdr)));
    }
    memcpy(in->data + skip, frame, bytes);
    g_queue_push_tail(f->incoming, in);
    if (f->want) {
        f->queue.nic->rx_ready(f->queue.nic_opaque);
    }
}

static NetRecvStatus recv_endless(FakeNet *f, const struct iovec *iov,
                                  unsigned cnt, size_t *bytes)
{
    static const uint8_t zeros[8192];

    g_assert_cmpuint(f->endless, <=, sizeof(zeros));
    *bytes = iov_from_buf(iov, cnt, 0, zeros, f->endless);
    spend_time(f);
    return *bytes == f->endless ? NET_RECV_PACKET : NET_RECV_DROPPED;
}

static NetRecvStatus fake_recv(NetQueue *nq, const struct iovec *iov,
                               unsigned cnt, size_t *bytes)
{
    FakeNet *f = fake_of(nq);
    FakeFrame *in;
    NetRecvStatus status;

    g_assert_cmpuint(cnt, <=, NET_MAX_RECV_IOV);
    if (f->endless) {
        return recv_endless(f, iov, cnt, bytes);
    }
    in = g_queue_pop_head(f->incoming);
    if (!in) {
        return NET_RECV_EMPTY;
    }
    *bytes = iov_from_buf(iov, cnt, 0, in->data, in->bytes);
    status = *bytes == in->bytes ? NET_RECV_PACKET : NET_RECV_DROPPED;
    frame_free(in);
    spend_time(f);
    return status;
}

static void fake_rx_want(NetQueue *nq, bool want)
{
    fake_of(nq)->want = want;
}

static void fake_attach(NetQueue *nq)
{
}

static void fake_detach(NetQueue *nq)
{
}

static bool fake_set_hdr_len(NetBackend *nb, unsigned len)
{
    return true;
}

static void fake_set_offload(NetBackend *nb, unsigned offload)
{
    ((FakeNet *)nb)->offload = offload;
}

static const NetBackendType fake_type = {
    .name = "fake",
    .set_vnet_hdr_len = fake_set_hdr_len,
    .set_offload = fake_set_offload,
    .attach = fake_attach,
    .detach = fake_detach,
    .send_batch = fake_send,
    .cancel_tx = fake_cancel,
    .recv = fake_recv,
    .rx_want = fake_rx_want,
};

static FakeNet *fake_net_new(bool vnet)
{
    FakeNet *f = g_new0(FakeNet, 1);

    f->queue.nb = &f->nb;
    f->queue_list[0] = &f->queue;
    f->nb.type = &fake_type;
    f->nb.id = (char *)"n0";
    f->nb.caps = (NetCaps) { .vnet_hdr = vnet, .uso = vnet, .ufo = vnet,
                             .queues = 1 };
    f->nb.queues = f->queue_list;
    f->room = UINT_MAX;
    f->record = true;
    f->frames = g_ptr_array_new_with_free_func(frame_free);
    f->cookies = g_queue_new();
    f->incoming = g_queue_new();
    return f;
}

static void fake_net_free(FakeNet *f)
{
    g_assert_true(g_queue_is_empty(f->cookies));
    g_ptr_array_free(f->frames, TRUE);
    g_queue_free(f->cookies);
    g_queue_free_full(f->incoming, frame_free);
    g_free(f);
}

/* ---- harness --------------------------------------------------------- */

void *nic_harness_ptr(NicHarness *h, uint64_t gpa)
{
    g_assert(gpa >= NH_BASE && gpa < NH_BASE + NH_BYTES);
    return h->ram + (gpa - NH_BASE);
}

static void map_ram(NicHarness *h)
{
    GuestMapBuilder *b = guest_map_builder_new(NULL);
    GuestRegionInfo info = { .gpa = NH_BASE, .size = NH_BYTES,
                             .uaddr = VH_UADDR + NH_BASE };
    GError *err = NULL;

    h->ram = mmap(NULL, NH_BYTES, PROT_READ | PROT_WRITE,
                  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    g_assert(h->ram != MAP_FAILED);
    guest_map_builder_add_ram(b, &info, h->ram, &err);
    g_assert_no_error(err);
    h->map = guest_map_builder_finish(b);
}

static void driver_init(NicHarness *h, VringDriver *d, uint64_t ring)
{
    vring_driver_init(d, h->size, h->features, nic_harness_ptr(h, ring),
                      nic_harness_ptr(h, ring + 0x8000),
                      nic_harness_ptr(h, ring + 0x10000));
}

void nic_harness_start(NicHarness *h, unsigned idx, uint16_t last_avail)
{
    uint64_t ring = idx ? NH_TX_RING : NH_RX_RING;
    VirtQueueSetup setup = {
        .size = h->size,
        .space = GUEST_SPACE_PHYS,
        .desc = ring,
        .avail = ring + 0x8000,
        .used = ring + 0x10000,
        .last_avail = last_avail,
    };
    GError *err = NULL;

    h->kick[idx] = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    h->call[idx] = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    virtio_net_queue_set_call(h->nic, idx, dup(h->call[idx]));
    virtio_net_queue_start(h->nic, idx, &setup, h->map, dup(h->kick[idx]),
                           &err);
    g_assert_no_error(err);
    virtio_net_queue_enable(h->nic, idx, true);
}

static void parse_props(NicHarness *h, const char *props)
{
    GError *err = NULL;
    KeyVal *kv;

    virtio_net_conf_init(&h->conf);
    if (!props) {
        return;
    }
    kv = keyval_parse("-device", props, NULL, &err);
    g_assert_no_error(err);
    virtio_net_conf_parse(&h->conf, kv, &err);
    g_assert_no_error(err);
    keyval_free(kv);
}

static void make_context(NicHarness *h, const NicHarness *beside)
{
    GError *err = NULL;

    h->borrowed = beside;
    h->clock = beside ? beside->clock : clock_virtual_new(NS_PER_SEC);
    h->ctx = beside ? beside->ctx : aio_context_new("test", h->clock, &err);
    g_assert_no_error(err);
}

NicHarness *nic_harness_new(const NicOptions *opt)
{
    NicHarness *h = g_new0(NicHarness, 1);
    GError *err = NULL;

    h->features = opt->features ? opt->features : NH_MODERN;
    h->size = opt->size ? opt->size : 256;
    make_context(h, opt->beside);
    if (opt->poll) {
        aio_context_set_poll_max_ns(h->ctx, 50 * NS_PER_US);
    }
    parse_props(h, opt->props);
    h->conf.rx_queue_size = MAX(h->conf.rx_queue_size, h->size);
    h->conf.tx_queue_size = MAX(h->conf.tx_queue_size, h->size);
    h->net = fake_net_new(opt->vnet);
    h->net->clock = h->clock;
    h->nic = virtio_net_new(&h->conf, &h->net->nb, h->ctx, &err);
    g_assert_no_error(err);
    virtio_net_start(h->nic, &err);
    g_assert_no_error(err);
    virtio_net_set_features(h->nic, h->features, &err);
    g_assert_no_error(err);
    map_ram(h);
    driver_init(h, &h->rx, NH_RX_RING);
    driver_init(h, &h->tx, NH_TX_RING);
    for (unsigned i = 0; i < 2; i++) {
        h->kick[i] = -1;
        h->call[i] = -1;
        if (!opt->stopped) {
            nic_harness_start(h, i, 0);
        }
    }
    if (!opt->stopped) {
        nic_harness_run(h);
        nic_harness_calls(h, 0);
        nic_harness_calls(h, 1);
    }
    return h;
}

void nic_harness_free(NicHarness *h)
{
    if (h->nic) {
        virtio_net_free(h->nic);
    }
    for (unsigned i = 0; i < 2; i++) {
        if (h->kick[i] >= 0) {
            close(h->kick[i]);
            close(h->call[i]);
        }
    }
    guest_map_release_wait(h->map);
    if (!h->borrowed) {
        aio_context_free(h->ctx);
        clock_free(h->clock);
    }
    fake_net_free(h->net);
    munmap(h->ram, NH_BYTES);
    g_free(h);
}

void nic_harness_in_tx(NicHarness *h, AioFunc *fn, void *opaque)
{
    aio_wait_bh_oneshot(h->nic->pairs[0]->tx.q.ctx, fn, opaque);
}

void nic_harness_run(NicHarness *h)
{
    while (aio_poll(h->ctx, false)) {
        continue;
    }
}

void nic_harness_step(NicHarness *h, int64_t ns)
{
    clock_virtual_advance(h->clock, ns);
    nic_harness_run(h);
}

bool nic_harness_kick(NicHarness *h, unsigned idx)
{
    VringDriver *d = idx ? &h->tx : &h->rx;

    if (!vring_driver_wants_kick(d)) {
        return false;
    }
    g_assert_cmpint(eventfd_write(h->kick[idx], 1), ==, 0);
    return true;
}

unsigned nic_harness_calls(NicHarness *h, unsigned idx)
{
    eventfd_t count = 0;

    return eventfd_read(h->call[idx], &count) == 0 ? count : 0;
}

void nic_harness_send(NicHarness *h, uint32_t tag, unsigned bytes)
{
    unsigned slot = h->tx.avail_idx % h->size;
    uint64_t gpa = NH_TX_BUF + slot * 0x2000;
    uint8_t *p = nic_harness_ptr(h, gpa);

    g_assert_cmpuint(NH_HDR + bytes, <=, 0x2000);
    memset(p, 0, NH_HDR + bytes);
    memcpy(p + NH_HDR, &tag, MIN(bytes, sizeof(tag)));
    vring_driver_add(&h->tx, gpa, NH_HDR + bytes, 0);
}

void nic_harness_post(NicHarness *h, unsigned bytes)
{
    unsigned slot = h->rx.avail_idx % h->size;

    vring_driver_add(&h->rx, NH_RX_BUF + slot * 0x4000, bytes,
                     VRING_DESC_F_WRITE);
}

unsigned nic_harness_tx_used(NicHarness *h)
{
    uint32_t id, len;
    unsigned n = 0;

    while (vring_driver_get_used(&h->tx, &id, &len)) {
        g_assert_cmpuint(len, ==, 0);
        n++;
    }
    return n;
}

uint64_t nic_harness_bin(NicHarness *h, unsigned idx, const char *name,
                         unsigned bin)
{
    VirtIONetQueueStats stats;
    const VirtIONetStatInfo *infos;
    size_t n;

    virtio_net_queue_stats(h->nic, idx, &stats);
    infos = virtio_net_stat_infos(&n);
    for (size_t i = 0; i < n; i++) {
        if (!strcmp(infos[i].name, name)) {
            g_assert_cmpuint(bin, <, MAX(infos[i].bins, 1));
            return virtio_net_stat_values(&stats, &infos[i])[bin];
        }
    }
    g_error("no counter '%s'", name);
}

uint64_t nic_harness_stat(NicHarness *h, unsigned idx, const char *name)
{
    return nic_harness_bin(h, idx, name, 0);
}

void nic_harness_transmit(NicHarness *h, unsigned n, unsigned bytes)
{
    for (unsigned i = 0; i < n; i++) {
        nic_harness_send(h, i, bytes);
    }
    nic_harness_kick(h, 1);
    nic_harness_run(h);
}
