/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Every change that main can make, at every step of a transmit pass that
 * another thread runs.
 *
 * The transmit thread is stopped on its way, by a hook in the backend or in
 * place of a ring's verb (the linker's --wrap), until main has asked it for
 * something: at that moment the change begins.  In the states between passes
 * it needs no stopping.  After the change nothing may be lost, sent twice or
 * out of order, and memory that was taken away may not be touched: the device
 * sees it through a mapping of its own, which is made inaccessible.
 *
 * Nobody waits by the clock, which stands still until the change is made.
 */
#include <sched.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "nic-harness.h"
#include "vhost-user-client.h"

#define EARLY   5       /* packets published before the step */
#define LATE    3       /* and while the thread stands there, without a kick */
#define ALL     (EARLY + LATE)
#define NIC     "net0"

typedef enum Step {
    STEP_POPPED,
    STEP_SENDING,
    STEP_FILLED,
    STEP_PUBLISHED,
    STEP_ARMING,
    STEP_SCHEDULED,
    STEP_POLLING,
    STEP_HOLDING,       /* from here on: between passes */
    STEP_BLOCKED,
    STEP_PENDING,
} Step;

/* ---- the stage: where the transmit thread is stopped ------------------- */

static struct {
    AioContext *ctx;
    VirtIONetTx *tx;
    Step step;
    unsigned pos;
    atomic_bool armed;
    sem_t arrived;      /* the thread stands at the step */
    sem_t asked;        /* main has asked the thread for something */
} stage;

static void wait_for(sem_t *sem)
{
    while (sem_wait(sem) < 0) {
        /* interrupted */
    }
}

/* Transmit thread. */
static void reach(Step step, unsigned pos)
{
    if (!atomic_load(&stage.armed) || step != stage.step ||
        pos != stage.pos) {
        return;
    }
    atomic_store(&stage.armed, false);
    sem_post(&stage.arrived);
    wait_for(&stage.asked);
}

static void reach_on(const VirtQueue *vq, Step step)
{
    if (atomic_load(&stage.armed) && vq == stage.tx->q.vq) {
        reach(step, 0);
    }
}

static void reach_packet(unsigned i)
{
    reach(STEP_SENDING, i);
}

unsigned __real_virtqueue_pop_batch(VirtQueue *vq, VirtQueueElem **elems,
                                    unsigned max, size_t max_bytes);
unsigned __wrap_virtqueue_pop_batch(VirtQueue *vq, VirtQueueElem **elems,
                                    unsigned max, size_t max_bytes);
unsigned __wrap_virtqueue_pop_batch(VirtQueue *vq, VirtQueueElem **elems,
                                    unsigned max, size_t max_bytes)
{
    unsigned n = __real_virtqueue_pop_batch(vq, elems, max, max_bytes);

    if (n) {
        reach_on(vq, STEP_POPPED);
    }
    return n;
}

unsigned __real_virtqueue_publish(VirtQueue *vq);
unsigned __wrap_virtqueue_publish(VirtQueue *vq);
unsigned __wrap_virtqueue_publish(VirtQueue *vq)
{
    unsigned n;

    reach_on(vq, STEP_FILLED);
    n = __real_virtqueue_publish(vq);
    reach_on(vq, STEP_PUBLISHED);
    return n;
}

VirtQueueArm __real_virtqueue_arm(VirtQueue *vq, unsigned window);
VirtQueueArm __wrap_virtqueue_arm(VirtQueue *vq, unsigned window);
VirtQueueArm __wrap_virtqueue_arm(VirtQueue *vq, unsigned window)
{
    reach_on(vq, STEP_ARMING);
    return __real_virtqueue_arm(vq, window);
}

bool __real_virtqueue_avail_moved(const VirtQueue *vq);
bool __wrap_virtqueue_avail_moved(const VirtQueue *vq);
bool __wrap_virtqueue_avail_moved(const VirtQueue *vq)
{
    reach_on(vq, STEP_POLLING);
    return __real_virtqueue_avail_moved(vq);
}

void __real_aio_bh_schedule(AioBH *bh);
void __wrap_aio_bh_schedule(AioBH *bh);
void __wrap_aio_bh_schedule(AioBH *bh)
{
    __real_aio_bh_schedule(bh);
    if (atomic_load(&stage.armed) && bh == stage.tx->bh) {
        reach(STEP_SCHEDULED, 0);
    }
}

/* What main has scheduled is there by now. */
void __real_aio_notify(AioContext *ctx);
void __wrap_aio_notify(AioContext *ctx);
void __wrap_aio_notify(AioContext *ctx)
{
    __real_aio_notify(ctx);
    if (ctx == stage.ctx) {
        sem_post(&stage.asked);
    }
}

/* ---- a scene ------------------------------------------------------------ */

typedef struct Scene {
    NicHarness *h;
    int ram_fd;
    uint8_t *device_ram;        /* where the device sees it */
    uint8_t *other_ram;         /* after a change of the map */
    GuestMap *other_map;
    VhostUserExport *exp;
    VuClient cl;
    unsigned used;
} Scene;

typedef struct Change {
    const char *name;
    void (*make)(Scene *s);
    enum { STOPPED, RUNS, GONE } leaves;        /* the ring */
    bool by_export;
} Change;

/* Threads with a NIC's name, as tools show it. */
static unsigned count_threads(void)
{
    g_autoptr(GDir) dir = g_dir_open("/proc/self/task", 0, NULL);
    const char *tid;
    unsigned n = 0;

    g_assert_nonnull(dir);
    while ((tid = g_dir_read_name(dir))) {
        g_autofree char *path = g_strdup_printf("/proc/self/task/%s/comm",
                                                tid);
        g_autofree char *name = NULL;

        n += g_file_get_contents(path, &name, NULL, NULL) &&
             g_str_equal(name, "tx:" NIC "\n");
    }
    return n;
}

/* A thread that has been joined leaves that list a moment later. */
static void assert_no_thread(void)
{
    while (count_threads()) {
        sched_yield();
    }
}

static uint8_t *map_again(const Scene *s)
{
    uint8_t *ram = mmap(NULL, NH_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED,
                        s->ram_fd, 0);

    g_assert(ram != MAP_FAILED);
    return ram;
}

static GuestMap *guest_map_at(uint8_t *ram)
{
    GuestMapBuilder *b = guest_map_builder_new(NULL);
    GuestRegionInfo info = { .gpa = NH_BASE, .size = NH_BYTES,
                             .uaddr = VH_UADDR + NH_BASE };

    g_assert_true(guest_map_builder_add_ram(b, &info, ram, NULL));
    return guest_map_builder_finish(b);
}

/* The driver keeps its view; the device gets one of its own, and a spare. */
static void split_views(Scene *s)
{
    NicHarness *h = s->h;

    s->ram_fd = vu_memfd(NH_BYTES);
    g_assert_true(mmap(h->ram, NH_BYTES, PROT_READ | PROT_WRITE,
                       MAP_SHARED | MAP_FIXED, s->ram_fd, 0) == h->ram);
    s->device_ram = map_again(s);
    s->other_ram = map_again(s);
    guest_map_release_wait(h->map);
    h->map = guest_map_at(s->device_ram);
    s->other_map = guest_map_at(s->other_ram);
}

static void start_rings(Scene *s, unsigned base)
{
    NicHarness *h = s->h;

    for (unsigned i = 0; i < 2; i++) {
        if (h->kick[i] >= 0) {
            close(h->kick[i]);
            close(h->call[i]);
        }
        nic_harness_start(h, i, i ? base : 0);
    }
}

static void export_ring(Scene *s, unsigned idx)
{
    uint64_t at = VH_UADDR + (idx ? NH_TX_RING : NH_RX_RING);
    VuVringAddr addr = { .index = idx, .desc = at, .avail = at + 0x8000,
                         .used = at + 0x10000 };
    VuClient *cl = &s->cl;

    vu_client_state(cl, VU_SET_VRING_NUM, idx, s->h->size);
    vu_client_state(cl, VU_SET_VRING_BASE, idx, 0);
    vu_client_send(cl, VU_SET_VRING_ADDR, &addr, sizeof(addr), NULL, 0);
    vu_client_fd(cl, VU_SET_VRING_CALL, idx, s->h->call[idx]);
    g_assert_cmpint(vu_client_fd(cl, VU_SET_VRING_KICK, idx, s->h->kick[idx]),
                    ==, VU_OUT_ACK);
    g_assert_cmpint(vu_client_state(cl, VU_SET_VRING_ENABLE, idx, 1), ==,
                    VU_OUT_ACK);
}

/* The same by messages: the export maps the memory for itself. */
static void export_rings(Scene *s)
{
    VuRegion r = { NH_BASE, NH_BYTES, VH_UADDR + NH_BASE, 0 };
    VuClient *cl = &s->cl;
    int pair[2];

    g_assert_cmpint(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair),
                    ==, 0);
    virtio_net_reset(s->h->nic);
    s->exp = vhost_user_export_new_fd("e", s->h->nic, s->h->ctx, pair[0],
                                      NULL);
    vu_client_init(cl, s->h->ctx, pair[1]);
    vu_client_u64(cl, VU_SET_PROTOCOL_FEATURES,
                  vu_client_get(cl, VU_GET_PROTOCOL_FEATURES));
    cl->flags = VU_FLAG_NEED_REPLY;
    g_assert_cmpint(vu_client_u64(cl, VU_SET_FEATURES,
                                  NH_MODERN | 1ULL << 30), ==, VU_OUT_ACK);
    g_assert_cmpint(vu_client_mem_table(cl, &r, &s->ram_fd, 1), ==,
                    VU_OUT_ACK);
    for (unsigned i = 0; i < 2; i++) {
        s->h->kick[i] = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
        s->h->call[i] = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
        export_ring(s, i);
    }
}

static void get_state(void *opaque)
{
    *(TxState *)opaque = stage.tx->state;
}

static void wait_state(Scene *s, TxState want)
{
    TxState state;

    do {
        nic_harness_in_tx(s->h, get_state, &state);
    } while (state != want);
}

static void get_pending(void *opaque)
{
    const FakeNet *f = (const FakeNet *)stage.tx->q.nq->nb;

    *(unsigned *)opaque = f->cookies->length;
}

static void wait_pending(Scene *s)
{
    unsigned n;

    do {
        nic_harness_in_tx(s->h, get_pending, &n);
    } while (n < EARLY);
    wait_state(s, TX_STATE_IDLE);
}

static void scene_begin(Scene *s, Step step, bool by_export)
{
    NicOptions opt = {
        .props = step == STEP_HOLDING ? "id=" NIC ",tx-thread=on,tx=timer"
                                      : "id=" NIC ",tx-thread=on",
        .stopped = true,
    };

    *s = (Scene) { .h = nic_harness_new(&opt) };
    g_assert_cmpuint(count_threads(), ==, 1);
    stage.tx = &s->h->nic->pairs[0]->tx;
    stage.ctx = stage.tx->q.ctx;
    s->h->net->on_packet = reach_packet;
    split_views(s);
    if (by_export) {
        export_rings(s);
    } else {
        start_rings(s, 0);
    }
    wait_state(s, TX_STATE_IDLE);
}

static void scene_end(Scene *s)
{
    if (s->exp) {
        vu_client_cleanup(&s->cl);
        vhost_user_export_free(s->exp);
    }
    if (s->h->nic) {
        virtio_net_free(s->h->nic);
        s->h->nic = NULL;
    }
    guest_map_release_wait(s->other_map);
    nic_harness_free(s->h);
    stage.ctx = NULL;
    munmap(s->device_ram, NH_BYTES);
    munmap(s->other_ram, NH_BYTES);
    close(s->ram_fd);
    assert_no_thread();
}

/* ---- to the step -------------------------------------------------------- */

static void publish(Scene *s, unsigned from, unsigned count)
{
    for (unsigned i = 0; i < count; i++) {
        nic_harness_send(s->h, from + i, 60);
    }
}

static void set_polling(void *opaque)
{
    /* the longest: what wakes the thread soon after makes it poll */
    aio_context_set_poll_max_ns(stage.ctx, NS_PER_SEC);
}

static void make_full(void *opaque)
{
    ((FakeNet *)opaque)->room = 2;
}

static void make_pending(void *opaque)
{
    ((FakeNet *)opaque)->pending = true;
}

/* What comes is taken again; who waits for room is not told. */
static void make_ready(void *opaque)
{
    FakeNet *f = opaque;

    f->room = UINT_MAX;
    f->pending = false;
}

static void stop_at(Step step, unsigned pos)
{
    stage.step = step;
    stage.pos = pos;
    while (sem_trywait(&stage.asked) == 0) {
        /* what was asked so far has been done */
    }
    atomic_store(&stage.armed, true);
}

static void kick(Scene *s)
{
    publish(s, 0, EARLY);
    g_assert_true(nic_harness_kick(s->h, 1));
}

static void poll_until_arrived(void)
{
    while (sem_trywait(&stage.arrived) < 0) {
        __real_aio_notify(stage.ctx);
        sched_yield();
    }
}

static void bring_to(Scene *s, Step step, unsigned pos)
{
    FakeNet *f = s->h->net;

    switch (step) {
    case STEP_POLLING:
        nic_harness_in_tx(s->h, set_polling, NULL);
        stop_at(step, pos);
        poll_until_arrived();
        publish(s, 0, EARLY);
        break;
    case STEP_HOLDING:
        kick(s);
        wait_state(s, TX_STATE_HOLDING);
        break;
    case STEP_BLOCKED:
        nic_harness_in_tx(s->h, make_full, f);
        kick(s);
        wait_state(s, TX_STATE_BLOCKED);
        nic_harness_in_tx(s->h, make_ready, f);
        break;
    case STEP_PENDING:
        nic_harness_in_tx(s->h, make_pending, f);
        kick(s);
        wait_pending(s);
        nic_harness_in_tx(s->h, make_ready, f);
        break;
    default:
        stop_at(step, pos);
        kick(s);
        wait_for(&stage.arrived);
    }
    publish(s, EARLY, LATE);
}

/* ---- what is true after it ---------------------------------------------- */

static void nothing(void *opaque)
{
}

/* Everybody who could still do something has had his turn. */
static void settle(Scene *s)
{
    eventfd_write(s->h->kick[1], 1);
    for (unsigned i = 0; i < 3 && s->h->nic; i++) {
        nic_harness_in_tx(s->h, nothing, NULL);
    }
    nic_harness_run(s->h);
}

static uint16_t used_idx(const Scene *s)
{
    return GUINT16_FROM_LE(__atomic_load_n(&s->h->tx.used->idx,
                                           __ATOMIC_ACQUIRE));
}

/* In order: each chain has the number of its packet. */
static void take_used(Scene *s)
{
    uint32_t id, len;

    while (vring_driver_get_used(&s->h->tx, &id, &len)) {
        g_assert_cmpuint(id, ==, s->used % s->h->size);
        s->used++;
    }
}

static void wait_used(Scene *s, unsigned n)
{
    while (s->used < n) {
        clock_virtual_advance(s->h->clock, NS_PER_MS);
        nic_harness_in_tx(s->h, nothing, NULL);
        take_used(s);
    }
    g_assert_cmpuint(s->used, ==, n);
    /* the end of the pass that published it */
    nic_harness_in_tx(s->h, nothing, NULL);
}

/* Once each, in order, from the first on. */
static void check_sent(Scene *s, unsigned n)
{
    g_assert_cmpuint(s->h->net->frames->len, ==, n);
    for (uint32_t tag = 0; tag < n; tag++) {
        g_assert_cmpmem(fake_net_sent(s->h->net, tag)->data, 4, &tag, 4);
    }
}

static void protect(uint8_t *ram, int prot)
{
    g_assert_cmpint(mprotect(ram, NH_BYTES, prot), ==, 0);
}

/* The ring is the driver's again: what was taken is finished, the rest not. */
static void check_stopped(Scene *s)
{
    unsigned used = used_idx(s);

    settle(s);
    g_assert_cmpuint(used_idx(s), ==, used);
    g_assert_cmpuint(used, <=, ALL);
    take_used(s);
    check_sent(s, used);
    g_assert_true(g_queue_is_empty(s->h->net->cookies));
    g_assert_false(s->h->net->waiting);
}

static void go_on_after_stop(Scene *s)
{
    protect(s->device_ram, PROT_READ | PROT_WRITE);
    g_assert_true(virtio_net_set_features(s->h->nic, NH_MODERN, NULL));
    /* first: what a ring finds while it is off is dropped */
    virtio_net_queue_enable(s->h->nic, 1, true);
    start_rings(s, s->used);
    wait_used(s, ALL);
    check_sent(s, ALL);
}

/* It is served: the next packet is sent as any. */
static void check_runs(Scene *s)
{
    unsigned before = s->h->net->frames->len;

    wait_used(s, ALL);
    if (before == ALL) {
        check_sent(s, ALL);
    }
    virtio_net_queue_stop(s->h->nic, 1);
    before = s->h->net->frames->len;
    start_rings(s, ALL);
    publish(s, ALL, 1);
    nic_harness_kick(s->h, 1);
    wait_used(s, ALL + 1);
    g_assert_cmpuint(s->h->net->frames->len, ==, before + 1);
}

/* ---- the changes -------------------------------------------------------- */

static void change_stop(Scene *s)
{
    uint16_t base = virtio_net_queue_stop(s->h->nic, 1);

    virtio_net_queue_stop(s->h->nic, 0);
    protect(s->device_ram, PROT_NONE);
    g_assert_cmpuint(base, ==, used_idx(s));
}

static void change_reset(Scene *s)
{
    virtio_net_reset(s->h->nic);
    protect(s->device_ram, PROT_NONE);
}

/* While it is off, packets are finished and not sent. */
static void check_off(Scene *s)
{
    unsigned sent = s->h->net->frames->len;

    wait_used(s, ALL);
    g_assert_cmpuint(s->h->net->frames->len, ==, sent);
    check_sent(s, sent);
}

static void change_pair(Scene *s)
{
    virtio_net_queue_enable(s->h->nic, 0, false);
    virtio_net_queue_enable(s->h->nic, 1, false);
    check_off(s);
    virtio_net_queue_enable(s->h->nic, 0, true);
    virtio_net_queue_enable(s->h->nic, 1, true);
}

static void change_pair_half(Scene *s)
{
    virtio_net_queue_enable(s->h->nic, 1, false);
    check_off(s);
    virtio_net_queue_enable(s->h->nic, 1, true);
}

static void change_link(Scene *s)
{
    virtio_net_set_link(s->h->nic, false);
    check_off(s);
    virtio_net_set_link(s->h->nic, true);
}

/* Found by the backend's receive half. */
static void change_carrier(Scene *s)
{
    NetQueue *nq = &s->h->net->queue;

    nq->nic->link_changed(nq->nic_opaque, false);
    wait_used(s, ALL);
    nq->nic->link_changed(nq->nic_opaque, true);
}

static void change_map(Scene *s)
{
    virtio_net_set_map(s->h->nic, s->other_map);
    protect(s->device_ram, PROT_NONE);
    wait_used(s, ALL);
    check_sent(s, ALL);
    protect(s->device_ram, PROT_READ | PROT_WRITE);
}

static void change_features(Scene *s)
{
    uint64_t less = NH_MODERN & ~VH_FEATURE(VIRTIO_NET_F_MRG_RXBUF);

    g_assert_true(virtio_net_set_features(s->h->nic, less, NULL));
    wait_used(s, ALL);
    check_sent(s, ALL);
}

static void change_free(Scene *s)
{
    virtio_net_free(s->h->nic);
    s->h->nic = NULL;
    protect(s->device_ram, PROT_NONE);
    assert_no_thread();
}

/* The export has unmapped the memory when it has noticed. */
static void change_disconnect(Scene *s)
{
    vu_client_close(&s->cl);
    g_assert_false(virtio_net_queue_started(s->h->nic, 1));
}

static const Change changes[] = {
    { "queue-stop", change_stop, STOPPED },
    { "reset", change_reset, STOPPED },
    { "pair-off-on", change_pair, RUNS },
    { "ring-off-on", change_pair_half, RUNS },
    { "link-down-up", change_link, RUNS },
    { "carrier-down-up", change_carrier, RUNS },
    { "set-map", change_map, RUNS },
    { "set-features", change_features, RUNS },
    { "free", change_free, GONE },
    { "disconnect", change_disconnect, STOPPED, .by_export = true },
};

/* ---- the play ----------------------------------------------------------- */

static const struct {
    const char *name;
    Step step;
    unsigned pos;
} steps[] = {
    { "popped", STEP_POPPED },
    { "sending-0", STEP_SENDING, 0 },
    { "sending-1", STEP_SENDING, 1 },
    { "sending-2", STEP_SENDING, 2 },
    { "sending-3", STEP_SENDING, 3 },
    { "sending-4", STEP_SENDING, 4 },
    { "filled", STEP_FILLED },
    { "published", STEP_PUBLISHED },
    { "arming", STEP_ARMING },
    { "scheduled", STEP_SCHEDULED },
    { "polling", STEP_POLLING },
    { "holding", STEP_HOLDING },
    { "blocked", STEP_BLOCKED },
    { "pending", STEP_PENDING },
};

typedef struct Play {
    unsigned step, change;
} Play;

static void test_play(gconstpointer opaque)
{
    const Play *p = opaque;
    const Change *change = &changes[p->change];
    Scene s;

    scene_begin(&s, steps[p->step].step, change->by_export);
    bring_to(&s, steps[p->step].step, steps[p->step].pos);
    change->make(&s);
    if (change->leaves == RUNS) {
        check_runs(&s);
    } else {
        check_stopped(&s);
    }
    if (change->leaves == STOPPED) {
        go_on_after_stop(&s);
    }
    scene_end(&s);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    sem_init(&stage.arrived, 0, 0);
    sem_init(&stage.asked, 0, 0);
    for (unsigned c = 0; c < G_N_ELEMENTS(changes); c++) {
        for (unsigned i = 0; i < G_N_ELEMENTS(steps); i++) {
            g_autofree char *path = g_strdup_printf("/net/tx/stop/%s/%s",
                                                    changes[c].name,
                                                    steps[i].name);
            Play *p = g_new(Play, 1);

            *p = (Play) { i, c };
            g_test_add_data_func_full(path, p, test_play, g_free);
        }
    }
    return g_test_run();
}
