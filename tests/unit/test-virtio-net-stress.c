/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Four NICs with transmit threads, a guest thread each that drives all their
 * rings, and main, which makes every change there is at random.  Built twice;
 * the second build runs under the thread sanitizer.
 *
 *   0, 1   a wire of two hub ports, receive queues in main's context
 *   2      two pairs, a thread per transmit queue
 *   3      two pairs, one thread for both, receive queues in an iothread
 *
 * The backend of the last two is full, holds packets, drops some, and loses
 * its carrier, at random.  A guest sees its memory at one address, the device
 * at one of two others; the one not in use is inaccessible.
 *
 * The work is a number of changes: STRESS_CHANGES in the environment.  Nobody
 * waits by the clock; what is lost shows as a test that does not end.
 */
#include <linux/virtio_net.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <unistd.h>

#include "../../net/net-internal.h"
#include "hw/net/virtio-net.h"
#include "util/iothread.h"
#include "util/iov.h"
#include "vring-harness.h"

#define NICS        4
#define MAX_RINGS   4
#define RING_SIZE   256
#define RING_BYTES  0x4000          /* each of its three areas */
#define GPA         UINT64_C(0x100000)
#define BUFFERS     0x80000
#define RAM_BYTES   0x100000
#define PACKET      72              /* header of 12 bytes, frame of 60 */
#define HELD        64
#define FEATURES    (VH_FEATURE(VIRTIO_F_VERSION_1) | VH_EVENT_IDX | \
                     VH_INDIRECT)

static uint32_t next_random(uint32_t *seed)
{
    *seed = *seed * 1664525 + 1013904223;
    return *seed >> 16;
}

/* ---- a backend of moods -------------------------------------------------- */

typedef struct MoodyQueue {
    NetQueue nq;

    /* tx context */
    uint32_t seed;
    AioBH *tx_bh;
    bool waiting;
    struct {
        const struct iovec *iov;
        void *cookie;
    } held[HELD];
    unsigned nheld;
    unsigned sum;               /* of what was read, so that it is read */

    /* rx context */
    AioBH *rx_bh, *carrier_bh;
    bool want, carrier;
    unsigned frames;
} MoodyQueue;

typedef struct Moody {
    NetBackend nb;
    MoodyQueue q[2];
} Moody;

static unsigned moody_send(NetQueue *nq, NetPacket *pkts, unsigned n)
{
    MoodyQueue *q = (MoodyQueue *)nq;

    for (unsigned i = 0; i < n; i++) {
        uint32_t mood = next_random(&q->seed) % 32;

        if (mood == 0) {
            q->waiting = true;
            aio_bh_schedule(q->tx_bh);
            return i;
        }
        q->sum += *(uint8_t *)pkts[i].iov->iov_base;
        pkts[i].answer = mood == 1 ? NET_TX_DROPPED : NET_TX_DONE;
        if (mood > 24 && pkts[i].cookie && q->nheld < HELD) {
            pkts[i].answer = NET_TX_PENDING;
            q->held[q->nheld].iov = pkts[i].iov;
            q->held[q->nheld++].cookie = pkts[i].cookie;
            aio_bh_schedule(q->tx_bh);
        }
    }
    return n;
}

static void finish_held(MoodyQueue *q, NetTxAnswer answer)
{
    unsigned n = q->nheld;

    q->nheld = 0;
    for (unsigned i = 0; i < n; i++) {
        q->sum += *(uint8_t *)q->held[i].iov->iov_base;
        q->nq.nic->tx_complete(q->nq.nic_opaque, q->held[i].cookie, answer);
    }
}

static void moody_tx_bh(void *opaque)
{
    MoodyQueue *q = opaque;

    if (next_random(&q->seed) % 2) {
        aio_bh_schedule(q->tx_bh);
        return;
    }
    finish_held(q, NET_TX_DONE);
    if (q->waiting) {
        q->waiting = false;
        q->nq.nic->tx_ready(q->nq.nic_opaque);
    }
}

static void moody_cancel(NetQueue *nq)
{
    MoodyQueue *q = (MoodyQueue *)nq;

    aio_bh_cancel(q->tx_bh);
    q->waiting = false;
    finish_held(q, NET_TX_DROPPED);
}

static NetRecvStatus moody_recv(NetQueue *nq, const struct iovec *iov,
                                unsigned cnt, size_t *bytes)
{
    static const uint8_t frame[60];
    MoodyQueue *q = (MoodyQueue *)nq;

    if (!q->frames) {
        return NET_RECV_EMPTY;
    }
    q->frames--;
    *bytes = iov_from_buf(iov, cnt, 0, frame, sizeof(frame));
    return *bytes == sizeof(frame) ? NET_RECV_PACKET : NET_RECV_DROPPED;
}

static void moody_rx_bh(void *opaque)
{
    MoodyQueue *q = opaque;

    if (q->want) {
        q->frames += 16;
        q->nq.nic->rx_ready(q->nq.nic_opaque);
    }
}

static void moody_rx_want(NetQueue *nq, bool want)
{
    ((MoodyQueue *)nq)->want = want;
}

static void moody_carrier_bh(void *opaque)
{
    MoodyQueue *q = opaque;

    q->carrier = !q->carrier;
    q->nq.nic->link_changed(q->nq.nic_opaque, q->carrier);
}

static void moody_attach(NetQueue *nq)
{
    MoodyQueue *q = (MoodyQueue *)nq;

    q->tx_bh = aio_bh_new(nq->tx_ctx, moody_tx_bh, q);
    q->rx_bh = aio_bh_new(nq->rx_ctx, moody_rx_bh, q);
    q->carrier_bh = aio_bh_new(nq->rx_ctx, moody_carrier_bh, q);
    q->carrier = true;
}

static void delete_tx(void *opaque)
{
    aio_bh_delete(((MoodyQueue *)opaque)->tx_bh);
}

static void delete_rx(void *opaque)
{
    aio_bh_delete(((MoodyQueue *)opaque)->rx_bh);
    aio_bh_delete(((MoodyQueue *)opaque)->carrier_bh);
}

static void moody_detach(NetQueue *nq)
{
    aio_wait_bh_oneshot(nq->tx_ctx, delete_tx, nq);
    aio_wait_bh_oneshot(nq->rx_ctx, delete_rx, nq);
}

static void moody_free(NetBackend *nb)
{
    net_backend_fini(nb);
    g_free(nb);
}

static const NetBackendType moody_type = {
    .name = "moody",
    .free = moody_free,
    .attach = moody_attach,
    .detach = moody_detach,
    .send_batch = moody_send,
    .cancel_tx = moody_cancel,
    .recv = moody_recv,
    .rx_want = moody_rx_want,
};

static NetBackend *moody_new(void)
{
    Moody *m = g_new0(Moody, 1);

    net_backend_init(&m->nb, &moody_type, "n", 2);
    for (unsigned i = 0; i < 2; i++) {
        net_queue_init(&m->q[i].nq, &m->nb, i);
        m->q[i].seed = g_test_rand_int();
    }
    return &m->nb;
}

static MoodyQueue *moody_queue(NetBackend *nb)
{
    return &((Moody *)nb)->q[g_test_rand_int_range(0, 2)];
}

/* ---- a NIC and its guest ------------------------------------------------- */

typedef struct Nic {
    unsigned number;
    AioContext *ctx;
    NetBackend *nb;
    VirtIONet *nic;
    unsigned nrings;
    int ram_fd;
    uint8_t *ram[2];            /* the device's views */
    GuestMap *map[2];
    unsigned view;              /* the one in use */
    bool link;

    /* the guest thread; main's when that has ended */
    pthread_t thread;
    uint8_t *guest_ram;
    VringDriver ring[MAX_RINGS];
    int kick[MAX_RINGS];
    int call[MAX_RINGS];
} Nic;

static AioContext *main_ctx;
static IOThread *io;
static Nic nics[NICS];
static atomic_bool guests_end;

static const char *const props[NICS] = {
    "id=nic0,tx-thread=on", "id=nic1,tx-thread=on,tx=timer,x-txtimer=20000",
    "id=nic2,tx-thread=per-queue,mq=on", "id=nic3,tx-thread=on,mq=on",
};

static bool is_wire(const Nic *n)
{
    return n->number < 2;
}

static NetBackend *new_backend(const Nic *n)
{
    g_autofree char *text = g_strdup_printf("hubport,id=n%u,hubid=0",
                                            n->number);
    NetBackend *nb;
    KeyVal *kv;

    if (!is_wire(n)) {
        return moody_new();
    }
    kv = keyval_parse("-netdev", text, "type", NULL);
    nb = net_backend_new(kv, n->ctx, NULL);
    keyval_free(kv);
    return nb;
}

static void nic_plug(Nic *n)
{
    KeyVal *kv = keyval_parse("-device", props[n->number], NULL, NULL);
    VirtIONetConf conf;

    virtio_net_conf_init(&conf);
    g_assert_true(virtio_net_conf_parse(&conf, kv, NULL));
    keyval_free(kv);
    n->nb = new_backend(n);
    n->nic = virtio_net_new(&conf, n->nb, n->ctx, NULL);
    g_assert_nonnull(n->nic);
    g_assert_true(virtio_net_start(n->nic, NULL));
    n->link = true;
}

static void nic_unplug(Nic *n)
{
    virtio_net_free(n->nic);
    net_backend_free(n->nb);
}

static uint64_t ring_offset(unsigned i)
{
    return i * 3 * RING_BYTES;
}

static uint16_t used_idx(const Nic *n, unsigned i)
{
    return GUINT16_FROM_LE(__atomic_load_n(&n->ring[i].used->idx,
                                           __ATOMIC_ACQUIRE));
}

static void ring_start(Nic *n, unsigned i)
{
    uint64_t at = GPA + ring_offset(i);
    VirtQueueSetup setup = {
        .size = RING_SIZE, .space = GUEST_SPACE_PHYS, .desc = at,
        .avail = at + RING_BYTES, .used = at + 2 * RING_BYTES,
        .last_avail = used_idx(n, i),
    };
    GError *err = NULL;

    if (virtio_net_queue_started(n->nic, i)) {
        return;
    }
    virtio_net_queue_set_call(n->nic, i, dup(n->call[i]));
    virtio_net_queue_start(n->nic, i, &setup, n->map[n->view],
                           dup(n->kick[i]), &err);
    g_assert_no_error(err);
}

static void nic_go(Nic *n)
{
    g_assert_true(virtio_net_set_features(n->nic, FEATURES, NULL));
    for (unsigned i = 0; i < n->nrings; i++) {
        virtio_net_queue_enable(n->nic, i, true);
        ring_start(n, i);
    }
}

static uint8_t *map_view(const Nic *n)
{
    uint8_t *ram = mmap(NULL, RAM_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED,
                        n->ram_fd, 0);

    g_assert(ram != MAP_FAILED);
    return ram;
}

static GuestMap *guest_map_at(uint8_t *ram)
{
    GuestMapBuilder *b = guest_map_builder_new(NULL);
    GuestRegionInfo info = { .gpa = GPA, .size = RAM_BYTES,
                             .uaddr = VH_UADDR };

    g_assert_true(guest_map_builder_add_ram(b, &info, ram, NULL));
    return guest_map_builder_finish(b);
}

static void protect(uint8_t *ram, int prot)
{
    g_assert_cmpint(mprotect(ram, RAM_BYTES, prot), ==, 0);
}

static void guest_init(Nic *n)
{
    n->ram_fd = memfd_create("ram", MFD_CLOEXEC);
    g_assert_cmpint(ftruncate(n->ram_fd, RAM_BYTES), ==, 0);
    n->guest_ram = map_view(n);
    for (unsigned i = 0; i < 2; i++) {
        n->ram[i] = map_view(n);
        n->map[i] = guest_map_at(n->ram[i]);
    }
    protect(n->ram[1], PROT_NONE);
    for (unsigned i = 0; i < n->nrings; i++) {
        uint8_t *at = n->guest_ram + ring_offset(i);

        vring_driver_init(&n->ring[i], RING_SIZE, FEATURES, at,
                          at + RING_BYTES, at + 2 * RING_BYTES);
        n->kick[i] = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
        n->call[i] = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    }
}

static void guest_cleanup(Nic *n)
{
    for (unsigned i = 0; i < n->nrings; i++) {
        close(n->kick[i]);
        close(n->call[i]);
    }
    for (unsigned i = 0; i < 2; i++) {
        guest_map_release_wait(n->map[i]);
        munmap(n->ram[i], RAM_BYTES);
    }
    munmap(n->guest_ram, RAM_BYTES);
    close(n->ram_fd);
}

/* Completions come in order: each chain has the number of its entry. */
static void take_used(VringDriver *d)
{
    uint32_t id, len;
    uint16_t want = d->used_idx % RING_SIZE;

    while (vring_driver_get_used(d, &id, &len)) {
        g_assert_cmpuint(id, ==, want);
        want = d->used_idx % RING_SIZE;
    }
    vring_driver_enable_call(d);
}

static void add_some(Nic *n, unsigned i, unsigned some)
{
    VringDriver *d = &n->ring[i];
    bool is_tx = i % 2;

    while (some-- && (uint16_t)(d->avail_idx - d->used_idx) < RING_SIZE) {
        vring_driver_add(d, GPA + BUFFERS + i * 2048, is_tx ? PACKET : 2048,
                         is_tx ? 0 : VRING_DESC_F_WRITE);
    }
    if (vring_driver_wants_kick(d)) {
        eventfd_write(n->kick[i], 1);
    }
}

static void *guest_run(void *opaque)
{
    Nic *n = opaque;
    uint32_t seed = n->number;

    while (!atomic_load(&guests_end)) {
        unsigned i = next_random(&seed) % n->nrings;

        add_some(n, i, next_random(&seed) % 80);
        take_used(&n->ring[i]);
        sched_yield();
    }
    return NULL;
}

/* ---- changes ------------------------------------------------------------- */

static unsigned any_ring(const Nic *n)
{
    return g_test_rand_int_range(0, n->nrings);
}

static void change_start(Nic *n)
{
    nic_go(n);
}

static void change_stop(Nic *n)
{
    unsigned i = any_ring(n);
    bool ran = virtio_net_queue_started(n->nic, i);
    uint16_t base = virtio_net_queue_stop(n->nic, i);

    if (ran) {
        g_assert_cmpuint(base, ==, used_idx(n, i));
    }
}

static void change_reset(Nic *n)
{
    virtio_net_reset(n->nic);
    protect(n->ram[n->view], PROT_NONE);
    aio_poll(main_ctx, false);
    protect(n->ram[n->view], PROT_READ | PROT_WRITE);
    if (g_test_rand_bit()) {
        nic_go(n);
    }
}

static void change_pair(Nic *n)
{
    unsigned i = any_ring(n) & ~1u;
    bool on = g_test_rand_bit();

    virtio_net_queue_enable(n->nic, i, on);
    aio_poll(main_ctx, false);
    virtio_net_queue_enable(n->nic, i + 1, on);
}

static void change_link(Nic *n)
{
    n->link = !n->link;
    virtio_net_set_link(n->nic, n->link);
}

static void change_map(Nic *n)
{
    unsigned other = !n->view;

    protect(n->ram[other], PROT_READ | PROT_WRITE);
    virtio_net_set_map(n->nic, n->map[other]);
    protect(n->ram[n->view], PROT_NONE);
    n->view = other;
}

static void change_features(Nic *n)
{
    uint64_t bit = VH_FEATURE(VIRTIO_NET_F_GUEST_ANNOUNCE);

    g_assert_true(virtio_net_set_features(n->nic, FEATURES | bit, NULL));
    g_assert_true(virtio_net_set_features(n->nic, FEATURES, NULL));
}

static void change_carrier(Nic *n)
{
    if (!is_wire(n)) {
        aio_bh_schedule(moody_queue(n->nb)->carrier_bh);
    }
}

static void change_traffic(Nic *n)
{
    if (!is_wire(n)) {
        aio_bh_schedule(moody_queue(n->nb)->rx_bh);
    }
}

static void change_announce(Nic *n)
{
    virtio_net_announce(n->nic, (uint8_t[6]) { 2, 0, 0, 0, 0, n->number });
}

static void change_call(Nic *n)
{
    unsigned i = any_ring(n);

    virtio_net_queue_set_call(n->nic, i, dup(n->call[i]));
}

static void change_plug(Nic *n)
{
    nic_unplug(n);
    protect(n->ram[n->view], PROT_NONE);
    nic_plug(n);
    protect(n->ram[n->view], PROT_READ | PROT_WRITE);
    nic_go(n);
}

static void look(Nic *n)
{
    VirtIONetQueueStats stats;

    virtio_net_queue_stats(n->nic, any_ring(n), &stats);
    virtio_net_link_up(n->nic);
}

static void (*const changes[])(Nic *n) = {
    change_start, change_start, change_stop, change_reset, change_pair,
    change_link, change_map, change_features, change_carrier,
    change_traffic, change_traffic, change_announce, change_call,
    change_plug, look,
};

/* ---- the test ------------------------------------------------------------ */

static void all_begin(void)
{
    main_ctx = aio_context_new("main", clock_monotonic(), NULL);
    io = iothread_new("io", clock_monotonic(), NULL);
    g_assert_true(iothread_start(io, NULL));
    atomic_store(&guests_end, false);
    for (unsigned i = 0; i < NICS; i++) {
        Nic *n = &nics[i];

        *n = (Nic) { .number = i };
        n->ctx = i == 3 ? iothread_context(io) : main_ctx;
        n->nrings = is_wire(n) ? 2 : MAX_RINGS;
        guest_init(n);
        nic_plug(n);
        nic_go(n);
        g_assert_cmpint(pthread_create(&n->thread, NULL, guest_run, n), ==,
                        0);
    }
}

static bool tx_is_done(const Nic *n)
{
    for (unsigned i = 1; i < n->nrings; i += 2) {
        if (n->ring[i].used_idx != n->ring[i].avail_idx) {
            return false;
        }
    }
    return true;
}

/* The guest goes on, but sends nothing new. */
static void finish_guest(Nic *n)
{
    for (unsigned i = 0; i < n->nrings; i++) {
        add_some(n, i, i % 2 ? 0 : RING_SIZE);
        take_used(&n->ring[i]);
    }
}

/* Everything is on: then everything that was published is completed. */
static void all_settle(void)
{
    bool done;

    atomic_store(&guests_end, true);
    for (unsigned i = 0; i < NICS; i++) {
        pthread_join(nics[i].thread, NULL);
        virtio_net_set_link(nics[i].nic, true);
        nic_go(&nics[i]);
    }
    do {
        aio_poll(main_ctx, false);
        sched_yield();
        done = true;
        for (unsigned i = 0; i < NICS; i++) {
            finish_guest(&nics[i]);
            done &= tx_is_done(&nics[i]);
        }
    } while (!done);
}

static void all_end(void)
{
    for (unsigned i = 0; i < NICS; i++) {
        nic_unplug(&nics[i]);
        guest_cleanup(&nics[i]);
    }
    iothread_free(io);
    aio_context_free(main_ctx);
}

static void test_changes(void)
{
    const char *text = getenv("STRESS_CHANGES");
    unsigned count = text ? strtoul(text, NULL, 10) : 1500;

    all_begin();
    for (unsigned i = 0; i < count; i++) {
        unsigned change = g_test_rand_int_range(0, G_N_ELEMENTS(changes));

        changes[change](&nics[g_test_rand_int_range(0, NICS)]);
        aio_poll(main_ctx, false);
    }
    all_settle();
    all_end();
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/net/stress/changes", test_changes);
    return g_test_run();
}
