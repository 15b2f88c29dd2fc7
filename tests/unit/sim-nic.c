/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The host's side: see the header.
 *
 * A thread is a process that iterates its context until nothing is left, then
 * sleeps until an event or the context's first timer, and pays for its
 * wake-up.  While it pays for a packet inside the backend, other processes
 * run: the guest publishes into a ring that is being flushed.
 */
#include <math.h>
#include <net/ethernet.h>
#include <netinet/ip.h>
#include <netinet/tcp.h>
#include <stddef.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <unistd.h>

#include "hw/net/virtio-net-internal.h"
#include "sim-nic.h"
#include "util/aio.h"
#include "util/iov.h"

#define BASE        UINT64_C(0x100000)
#define RX_RING     BASE
#define TX_RING     (BASE + 0x20000)
#define RX_BUF      (BASE + 0x40000)
#define TX_BUF      (BASE + 0x80000)
#define RAM_BYTES   UINT64_C(0x100000)
#define HDR         12
#define RX_BYTES    1536

/*
 * Only the first bytes of a buffer mean something, so that buffers may lie
 * across each other.
 */
#define STRIDE      64

const SimCosts sim_costs_tcg = {
    .name = "tcg",
    .wakeup_min = 15000, .wakeup_max = 30000,
    .call = 1500, .send = 2500, .send_byte = 0.12,
    .recv = 1500, .recv_byte = 0.08,
    .kick = 2500, .kick_wake = 3500,
    .irq_min = 20000, .irq_max = 40000, .irq = 4000,
    .xmit = 6000, .xmit_byte = 0.2, .rx = 5000, .rx_byte = 0.6,
    .syscall = 3000, .copy_byte = 0.8, .tcp = 12000,
    .ack = 2000, .answer_min = 15000, .answer_max = 30000,
};

const SimCosts sim_costs_kvm = {
    .name = "kvm",
    .wakeup_min = 3000, .wakeup_max = 6000,
    .call = 700, .send = 450, .send_byte = 0.06,
    .recv = 500, .recv_byte = 0.05,
    .kick = 1500, .kick_wake = 1000,
    .irq_min = 2000, .irq_max = 4000, .irq = 1500,
    .xmit = 400, .xmit_byte = 0.02, .rx = 500, .rx_byte = 0.03,
    .syscall = 300, .copy_byte = 0.08, .tcp = 700,
    .ack = 1000, .answer_min = 4000, .answer_max = 8000,
};

/* ---- threads --------------------------------------------------------- */

/* The device's own count spares a system call for those that are not there. */
static uint64_t calls_sent(const SimNic *n, unsigned idx)
{
    const VirtIONetPair *pair = n->nic->pairs[0];

    return idx ? pair->tx.q.stats->count.calls
               : pair->rx.q.stats->count.calls;
}

/* Returns true if that took time. */
static bool collect_calls(SimNic *n)
{
    bool any = false;

    for (unsigned i = 0; i < 2; i++) {
        uint64_t sent = calls_sent(n, i);
        eventfd_t count;

        if (sent != n->calls[i]) {
            n->calls[i] = sent;
            g_assert_cmpint(eventfd_read(n->call[i], &count), ==, 0);
            sim_delay_ns(n->thread->sim, n->thread->costs->call);
            n->called(n->guest, i);
            any = true;
        }
    }
    return any;
}

static bool offer_frames(SimNic *n)
{
    if (!n->want || g_queue_is_empty(n->incoming)) {
        return false;
    }
    n->queue.nic->rx_ready(n->queue.nic_opaque);
    return true;
}

static bool thread_step(SimThread *t)
{
    bool progress = aio_poll(t->ctx, false);

    for (guint i = 0; i < t->nics->len; i++) {
        SimNic *n = t->nics->pdata[i];

        progress |= collect_calls(n);
        progress |= offer_frames(n);
    }
    return progress;
}

static void thread_main(void *opaque)
{
    SimThread *t = opaque;

    for (;;) {
        while (!t->ending && thread_step(t)) {
            continue;
        }
        if (t->ending) {
            t->ended = true;
            return;
        }
        t->asleep = true;
        sim_wait(t->sim, &t->event, aio_next_deadline_ns(t->ctx));
        t->asleep = false;
        t->wakeups++;
        sim_delay_ns(t->sim, sim_random_ns(t->sim, t->costs->wakeup_min,
                                           t->costs->wakeup_max));
    }
}

SimThread *sim_thread_new(Sim *sim, const SimCosts *costs)
{
    SimThread *t = g_new0(SimThread, 1);
    GError *err = NULL;

    t->sim = sim;
    t->costs = costs;
    t->nics = g_ptr_array_new();
    t->ctx = aio_context_new("sim", sim_clock(sim), &err);
    g_assert_no_error(err);
    sim_spawn(sim, thread_main, t);
    return t;
}

void sim_thread_end(SimThread *t)
{
    t->ending = true;
    sim_wake(t->sim, &t->event);
    while (!t->ended) {
        sim_run(t->sim, NS_PER_US);
    }
}

void sim_thread_free(SimThread *t)
{
    g_assert_cmpuint(t->nics->len, ==, 0);
    g_ptr_array_free(t->nics, TRUE);
    aio_context_free(t->ctx);
    g_free(t);
}

/* ---- measurement ----------------------------------------------------- */

static int64_t idle_now_ns(const SimNic *n)
{
    return n->idle_ns +
           (n->working ? 0 : sim_now_ns(n->thread->sim) - n->change_ns);
}

static void set_working(SimNic *n, bool working)
{
    n->idle_ns = idle_now_ns(n);
    n->change_ns = sim_now_ns(n->thread->sim);
    n->working = working;
}

static void note_taken(SimNic *n, unsigned slot)
{
    uint32_t wait_ns = n->idle_ns - n->published_idle_ns[slot];

    if (n->measuring) {
        g_array_append_val(n->waits_ns, wait_ns);
        n->packets++;
        n->bytes += n->published[slot].bytes;
    }
}

void sim_nic_measure(SimNic *n)
{
    n->measuring = true;
    n->packets = 0;
    n->bytes = 0;
    n->kicks = 0;
    n->delivered = 0;
    g_array_set_size(n->waits_ns, 0);
}

/* ---- the backend ----------------------------------------------------- */

static SimNic *nic_of(NetQueue *nq)
{
    return (SimNic *)nq->nb;
}

static int64_t packet_ns(int64_t fixed, double per_byte, uint32_t bytes)
{
    return fixed + (int64_t)lrint(per_byte * bytes);
}

/* Where it was published; it begins with that. */
static uint32_t slot_of(const SimNic *n, const NetPacket *pkt)
{
    uint32_t slot;

    iov_to_buf(pkt->iov, pkt->iovcnt, HDR, &slot, sizeof(slot));
    g_assert_cmpuint(slot, <, n->size);
    return slot;
}

static unsigned sim_send(NetQueue *nq, NetPacket *pkts, unsigned count)
{
    SimNic *n = nic_of(nq);
    const SimCosts *c = n->thread->costs;

    set_working(n, true);
    for (unsigned i = 0; i < count; i++) {
        note_taken(n, slot_of(n, &pkts[i]));
    }
    for (unsigned i = 0; i < count; i++) {
        const SimFrame *f = &n->published[slot_of(n, &pkts[i])];

        sim_delay_ns(n->thread->sim,
                     packet_ns(c->send, c->send_byte, f->bytes));
        pkts[i].answer = NET_TX_DONE;
        n->sent(n->guest, f->flow, f->bytes);
    }
    collect_calls(n);
    set_working(n, false);
    return count;
}

static NetRecvStatus sim_recv(NetQueue *nq, const struct iovec *iov,
                              unsigned cnt, size_t *bytes)
{
    SimNic *n = nic_of(nq);
    const SimCosts *c = n->thread->costs;
    SimFrame *f = g_queue_pop_head(n->incoming);
    static const uint8_t hdr[HDR];

    if (!f) {
        return NET_RECV_EMPTY;
    }
    sim_delay_ns(n->thread->sim, packet_ns(c->recv, c->recv_byte, f->bytes));
    collect_calls(n);
    iov_from_buf(iov, cnt, 0, hdr, HDR);
    *bytes = HDR + f->bytes;
    g_queue_push_tail(n->arrived, f);
    return NET_RECV_PACKET;
}

static void sim_rx_want(NetQueue *nq, bool want)
{
    nic_of(nq)->want = want;
}

static void sim_nothing(NetQueue *nq)
{
}

static bool sim_set_hdr_len(NetBackend *nb, unsigned len)
{
    return true;
}

static const NetBackendType sim_type = {
    .name = "sim",
    .set_vnet_hdr_len = sim_set_hdr_len,
    .attach = sim_nothing,
    .detach = sim_nothing,
    .send_batch = sim_send,
    .cancel_tx = sim_nothing,
    .recv = sim_recv,
    .rx_want = sim_rx_want,
};

/* ---- rings ----------------------------------------------------------- */

static void *ram_ptr(SimNic *n, uint64_t gpa)
{
    return n->ram + (gpa - BASE);
}

void sim_nic_publish(SimNic *n, void *flow, uint32_t bytes, bool is_tcp)
{
    const struct virtio_net_hdr_mrg_rxbuf tcp = { .hdr = {
        .flags = VIRTIO_NET_HDR_F_NEEDS_CSUM,
        .csum_start = GUINT16_TO_LE(ETH_HLEN + sizeof(struct iphdr)),
        .csum_offset = GUINT16_TO_LE(offsetof(struct tcphdr, th_sum)),
    } };
    const struct virtio_net_hdr_mrg_rxbuf other = { 0 };
    uint32_t slot = n->tx.avail_idx % n->size;
    uint64_t gpa = TX_BUF + slot * STRIDE;

    n->published_idle_ns[slot] = idle_now_ns(n);
    n->published[slot] = (SimFrame) { bytes, flow };
    memcpy(ram_ptr(n, gpa), is_tcp ? &tcp : &other, HDR);
    memcpy(ram_ptr(n, gpa + HDR), &slot, sizeof(slot));
    vring_driver_add(&n->tx, gpa, HDR + bytes, 0);
}

bool sim_nic_kick(SimNic *n, unsigned idx)
{
    SimThread *t = n->thread;
    bool asleep = t->asleep;

    if (!vring_driver_wants_kick(idx ? &n->tx : &n->rx)) {
        return false;
    }
    sim_delay_ns(t->sim, t->costs->kick);
    g_assert_cmpint(eventfd_write(n->kick[idx], 1), ==, 0);
    sim_wake(t->sim, &t->event);
    sim_delay_ns(t->sim, asleep ? t->costs->kick_wake : 0);
    n->kicks += idx == 1;
    return true;
}

void sim_nic_post(SimNic *n)
{
    unsigned slot = n->rx.avail_idx % n->size;

    vring_driver_add(&n->rx, RX_BUF + slot * STRIDE, RX_BYTES,
                     VRING_DESC_F_WRITE);
}

void sim_nic_deliver(SimNic *n, void *flow, uint32_t bytes)
{
    SimFrame *f = g_new(SimFrame, 1);

    *f = (SimFrame) { bytes, flow };
    g_queue_push_tail(n->incoming, f);
    if (n->want) {
        sim_wake(n->thread->sim, &n->thread->event);
    }
}

const SimFrame *sim_nic_reap_tx(SimNic *n)
{
    uint32_t id, len;

    return vring_driver_get_used(&n->tx, &id, &len) ? &n->published[id] : NULL;
}

static uint16_t num_buffers(SimNic *n, uint32_t slot)
{
    struct virtio_net_hdr_mrg_rxbuf hdr;

    memcpy(&hdr, ram_ptr(n, RX_BUF + slot * STRIDE), sizeof(hdr));
    return GUINT16_FROM_LE(hdr.num_buffers);
}

bool sim_nic_reap_rx(SimNic *n, SimFrame *frame)
{
    uint32_t id, len;
    SimFrame *f;

    if (!vring_driver_get_used(&n->rx, &id, &len)) {
        return false;
    }
    for (unsigned more = num_buffers(n, id) - 1; more; more--) {
        g_assert_true(vring_driver_get_used(&n->rx, &id, &len));
    }
    f = g_queue_pop_head(n->arrived);
    *frame = *f;
    g_free(f);
    return true;
}

/* ---- life ------------------------------------------------------------ */

static void map_ram(SimNic *n)
{
    GuestMapBuilder *b = guest_map_builder_new(NULL);
    GuestRegionInfo info = { .gpa = BASE, .size = RAM_BYTES,
                             .uaddr = VH_UADDR + BASE };
    GError *err = NULL;

    n->ram = mmap(NULL, RAM_BYTES, PROT_READ | PROT_WRITE,
                  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    g_assert(n->ram != MAP_FAILED);
    guest_map_builder_add_ram(b, &info, n->ram, &err);
    g_assert_no_error(err);
    n->map = guest_map_builder_finish(b);
}

static void start_ring(SimNic *n, unsigned idx, uint64_t features)
{
    uint64_t ring = idx ? TX_RING : RX_RING;
    VirtQueueSetup setup = {
        .size = n->size,
        .space = GUEST_SPACE_PHYS,
        .desc = ring,
        .avail = ring + 0x8000,
        .used = ring + 0x10000,
    };
    GError *err = NULL;

    vring_driver_init(idx ? &n->tx : &n->rx, n->size, features,
                      ram_ptr(n, setup.desc), ram_ptr(n, setup.avail),
                      ram_ptr(n, setup.used));
    n->kick[idx] = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    n->call[idx] = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    virtio_net_queue_set_call(n->nic, idx, dup(n->call[idx]));
    virtio_net_queue_start(n->nic, idx, &setup, n->map, dup(n->kick[idx]),
                           &err);
    g_assert_no_error(err);
    virtio_net_queue_enable(n->nic, idx, true);
}

static void backend_init(SimNic *n)
{
    n->queue.nb = &n->nb;
    n->queue_list[0] = &n->queue;
    n->nb = (NetBackend) {
        .type = &sim_type,
        .id = (char *)"n0",
        .caps = { .queues = 1, .vnet_hdr = true },
        .queues = n->queue_list,
    };
    n->incoming = g_queue_new();
    n->arrived = g_queue_new();
}

static void new_device(SimNic *n, const char *props, uint64_t features)
{
    VirtIONetConf conf;
    GError *err = NULL;
    KeyVal *kv = keyval_parse("-device", props, NULL, &err);

    virtio_net_conf_init(&conf);
    g_assert_no_error(err);
    virtio_net_conf_parse(&conf, kv, &err);
    g_assert_no_error(err);
    keyval_free(kv);
    conf.rx_queue_size = MAX(conf.rx_queue_size, n->size);
    conf.tx_queue_size = MAX(conf.tx_queue_size, n->size);
    n->nic = virtio_net_new(&conf, &n->nb, n->thread->ctx, &err);
    g_assert_no_error(err);
    virtio_net_set_features(n->nic, features, &err);
    g_assert_no_error(err);
}

SimNic *sim_nic_new(SimThread *t, const char *props, uint16_t ring_size,
                    uint64_t features)
{
    SimNic *n = g_new0(SimNic, 1);

    n->thread = t;
    n->size = ring_size;
    n->waits_ns = g_array_new(FALSE, FALSE, sizeof(uint32_t));
    backend_init(n);
    map_ram(n);
    new_device(n, props, features);
    start_ring(n, 0, features);
    start_ring(n, 1, features);
    g_ptr_array_add(t->nics, n);
    return n;
}

void sim_nic_free(SimNic *n)
{
    g_ptr_array_remove(n->thread->nics, n);
    virtio_net_free(n->nic);
    for (unsigned i = 0; i < 2; i++) {
        close(n->kick[i]);
        close(n->call[i]);
    }
    guest_map_release_wait(n->map);
    munmap(n->ram, RAM_BYTES);
    g_queue_free_full(n->incoming, g_free);
    g_queue_free_full(n->arrived, g_free);
    g_array_free(n->waits_ns, TRUE);
    g_free(n);
}
