/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Is a kick ever lost?  The device, tx=adaptive with each of its settings in
 * turn, against a driver on another CPU that publishes while the device arms,
 * re-checks, holds, or hands the ring on (F18, F20, F22, F29).
 *
 * A round: the driver publishes packets by its rules, and again some when they
 * have been completed, which is about when the device arms; some such bursts
 * later the threads meet, the device does what it was kicked for, and sleeps.
 * It must not sleep while packets wait that it asked a kick for.
 *
 * Deadlines do not help: the clock stands, but for holds, which only their
 * deadline ends.  Nor does any time limit: when both threads have met and the
 * device has nothing left to do, a lost kick stays lost.
 *
 * In some rounds the ring is stopped instead, for an owner who looks at it once
 * and then waits for a kick (handover_awake in docs/devel/models).
 *
 * This file is built four times: as it is; and without the barriers
 * (VRING_TEST_NO_BARRIER), the re-check of the arm (LOST_KICK_NO_RECHECK), or
 * the disarm at the hand-over (LOST_KICK_NO_DISARM), where the test asserts
 * that a kick is lost: otherwise it would prove nothing.
 */
#include <pthread.h>
#include <sched.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "meeting.h"
#include "nic-harness.h"

#define RING        256
#define WINDOW_MAX  64
#define BURSTS_MAX  32
#define FRAME_BYTES 60

#if defined(VRING_TEST_NO_BARRIER) || defined(LOST_KICK_NO_RECHECK) || \
    defined(LOST_KICK_NO_DISARM)
#define UNTIL_LOST true
#else
#define UNTIL_LOST false
#endif

#if defined(__SANITIZE_THREAD__)
#define BURSTS 50000
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define BURSTS 50000
#endif
#endif
#ifndef BURSTS
#define BURSTS 1000000
#endif

/* A loss takes 100000 on average; more where the host seldom runs both threads
 * at once. */
#define BURSTS_LOST 50000000

/* ---- what is left out ---------------------------------------------------- */

#ifdef LOST_KICK_NO_RECHECK
VirtQueueArm __real_virtqueue_arm(VirtQueue *vq, unsigned window);
VirtQueueArm __wrap_virtqueue_arm(VirtQueue *vq, unsigned window);

VirtQueueArm __wrap_virtqueue_arm(VirtQueue *vq, unsigned window)
{
    __real_virtqueue_arm(vq, window);
    return VQ_ARM_EMPTY;
}
#endif

#ifdef LOST_KICK_NO_DISARM
void __wrap_virtqueue_disarm(VirtQueue *vq);

void __wrap_virtqueue_disarm(VirtQueue *vq)
{
}
#endif

/* ---- a race -------------------------------------------------------------- */

typedef struct Race {
    NicHarness *h;
    Meeting meeting;

    /* device thread; the driver's between the two meetings of a round is
     * what it only reads */
    uint32_t device_seed;
    unsigned window;            /* of the setting in force */
    bool hand_over;             /* this round stops the ring */
    uint16_t base;              /* ... what the next owner is told */
    bool other_sleeps;          /* ... who has looked, and found nothing */
    bool stop;

    /* driver thread; the device's outside of that */
    uint32_t driver_seed;
    bool is_kicked;             /* by the last burst */
    bool was_kicked;            /* in this round */
    uint64_t published;
    uint64_t bursts;
    bool driver_done;           /* with this round; the device looks */
} Race;

static unsigned any_below(uint32_t *seed, unsigned n)
{
    *seed = *seed * 1664525 + 1013904223;
    return (*seed >> 16) % n;
}

/* Often 1, seldom WINDOW_MAX. */
static unsigned any_count(uint32_t *seed, unsigned most)
{
    unsigned n = 1 + any_below(seed, 1u << any_below(seed, 7));

    return MIN(n, most);
}

static VirtIONetTx *tx_of(const Race *r)
{
    return &r->h->nic->pairs[0]->tx;
}

static uint16_t waiting(const Race *r)
{
    return r->h->tx.avail_idx - virtqueue_last_avail(tx_of(r)->q.vq);
}

/* ---- driver ------------------------------------------------------------ */

static void publish(Race *r, unsigned n)
{
    for (unsigned i = 0; i < n; i++) {
        nic_harness_send(r->h, 0, FRAME_BYTES);
    }
    r->published += n;
    r->is_kicked |= nic_harness_kick(r->h, 1);
}

/*
 * The device is about to arm when it has published; then, or a bit later.  A
 * pass need not come: nobody may have been kicked, or the ring stops.
 */
static void wait_for_used(Race *r)
{
    const VringDriver *d = &r->h->tx;
    unsigned spins = r->is_kicked ? 5000 : any_below(&r->driver_seed, 500);

    while (spins-- && __atomic_load_n(&d->used->idx, __ATOMIC_ACQUIRE) ==
           GUINT16_TO_LE(d->used_idx)) {
    }
    for (volatile unsigned i = any_below(&r->driver_seed, 300); i > 0; i--) {
    }
}

/* Some packets, with one or several decisions about a kick. */
static void burst(Race *r)
{
    const VringDriver *d = &r->h->tx;
    uint32_t *seed = &r->driver_seed;
    unsigned room, left;

    wait_for_used(r);
    nic_harness_tx_used(r->h);
    room = RING - (uint16_t)(d->avail_idx - d->used_idx);
    left = any_count(seed, MIN(room, WINDOW_MAX));
    r->is_kicked = false;
    while (left) {
        unsigned n = any_count(seed, left);

        publish(r, n);
        left -= n;
    }
    r->was_kicked |= r->is_kicked;
    r->bursts++;
}

static void driver_round(Race *r)
{
    unsigned bursts = r->hand_over ? 1 : any_count(&r->driver_seed,
                                                   BURSTS_MAX);

    for (unsigned i = 0; i < bursts; i++) {
        burst(r);
    }
    __atomic_store_n(&r->driver_done, true, __ATOMIC_RELEASE);
}

static void *driver_thread(void *opaque)
{
    Race *r = opaque;

    meeting_pin(1);
    for (;;) {
        meeting_meet(&r->meeting);
        if (r->stop) {
            return NULL;
        }
        driver_round(r);
        meeting_meet(&r->meeting);
    }
}

/* ---- device ------------------------------------------------------------ */

static void to_next_deadline(Race *r)
{
    int64_t at_ns = aio_next_deadline_ns(r->h->ctx);

    g_assert_cmpint(at_ns, !=, INT64_MAX);
    nic_harness_step(r->h, MAX(at_ns - clock_now_ns(r->h->clock), 0));
}

/* Until it sleeps, or there is nothing left but a window's deadline. */
static void serve(Race *r)
{
    nic_harness_run(r->h);
    while (tx_of(r)->state == TX_STATE_HOLDING) {
        to_next_deadline(r);
    }
}

/* Deadlines come until there are none. */
static void settle(Race *r)
{
    serve(r);
    while (tx_of(r)->state == TX_STATE_ARMED) {
        to_next_deadline(r);
    }
    g_assert_cmpint(tx_of(r)->state, ==, TX_STATE_IDLE);
    g_assert_cmpuint(waiting(r), ==, 0);
}

/* Nothing is judged before the next one is put in force. */
static void put_in_force(Race *r, TxSetting setting, unsigned window)
{
    TxAdaptive *a = &tx_of(r)->policy.adaptive;

    settle(r);
    a->setting = setting;
    a->turn = TX_TURN_NONE;
    a->begin_ns = clock_now_ns(r->h->clock);
    a->window = window;
    r->window = setting.kind == TX_KIND_WINDOW ? window : 1;
    g_assert_cmpuint(tx_adaptive_window(a), ==, r->window);
}

static void choose_setting(Race *r)
{
    static const TxKind kinds[] = {
        TX_KIND_KICK, TX_KIND_WINDOW, TX_KIND_WINDOW, TX_KIND_WINDOW,
        TX_KIND_DELAY, TX_KIND_HOLD,
    };
    uint32_t *seed = &r->device_seed;
    TxSetting setting = { kinds[any_below(seed, G_N_ELEMENTS(kinds))] };

    if (setting.kind >= TX_KIND_DELAY) {
        setting.step = any_below(seed, TX_STEPS);
    }
    put_in_force(r, setting, any_count(seed, WINDOW_MAX));
}

/* Packets for a pass to begin with; mostly so many that a window is full. */
static void prepare_round(Race *r)
{
    uint32_t *seed = &r->device_seed;
    unsigned n;

    if (any_below(seed, 8) == 0) {
        choose_setting(r);
    } else if (waiting(r) >= WINDOW_MAX) {
        settle(r);
    }
    nic_harness_tx_used(r->h);
    n = any_below(seed, 4) ? r->window - MIN(waiting(r), r->window - 1)
                           : any_count(seed, WINDOW_MAX);
    publish(r, n);
    r->was_kicked = false;
    r->driver_done = false;
    r->hand_over = any_below(seed, 8) == 0;
}

/* Stop wherever the device is, for an owner who looks at the ring once. */
static void hand_over(Race *r)
{
    for (unsigned i = any_below(&r->device_seed, 4); i > 0; i--) {
        aio_poll(r->h->ctx, false);
    }
    r->base = virtio_net_queue_stop(r->h->nic, 1);
    r->other_sleeps = __atomic_load_n(&r->h->tx.avail->idx,
                                      __ATOMIC_ACQUIRE) ==
                      GUINT16_TO_LE(r->base);
}

static void take_back(Race *r)
{
    close(r->h->kick[1]);
    close(r->h->call[1]);
    nic_harness_start(r->h, 1, r->base);
    choose_setting(r);
}

static bool is_lost(const Race *r)
{
    if (r->hand_over) {
        return r->other_sleeps && r->h->tx.avail_idx != r->base &&
               !r->was_kicked;
    }
    switch (tx_of(r)->state) {
    case TX_STATE_IDLE:
        return waiting(r) > 0;
    case TX_STATE_ARMED:
        /* without EVENT_IDX a window is its deadline alone */
        return r->h->tx.event_idx && waiting(r) >= r->window;
    default:
        g_assert_not_reached();
    }
}

static void tell_loss(const Race *r)
{
    g_test_message("lost: state %d, kind %d, window %u, %u packets wait, "
                   "available index %u, event index %u, flags %u%s",
                   tx_of(r)->state, tx_of(r)->policy.adaptive.setting.kind,
                   r->window, waiting(r), r->h->tx.avail_idx,
                   vring_driver_avail_event(&r->h->tx),
                   vring_driver_used_flags(&r->h->tx),
                   r->hand_over ? ", hand-over" : "");
}

/* Behind the meeting: what was kicked for is served.  Was a kick lost? */
static bool end_round(Race *r)
{
    bool lost;

    if (!r->hand_over) {
        serve(r);
    }
    lost = is_lost(r);
    if (lost) {
        tell_loss(r);
    }
    if (r->hand_over) {
        take_back(r);
    }
    return lost;
}

static bool device_round(Race *r)
{
    prepare_round(r);
    meeting_meet(&r->meeting);
    if (r->hand_over) {
        hand_over(r);
    }
    while (!r->hand_over &&
           !__atomic_load_n(&r->driver_done, __ATOMIC_ACQUIRE)) {
        serve(r);
    }
    meeting_meet(&r->meeting);
    return end_round(r);
}

/* ---- the test ------------------------------------------------------------ */

static Race *race_new(uint64_t features)
{
    Race *r = g_new0(Race, 1);

    r->device_seed = g_test_rand_int();
    r->driver_seed = g_test_rand_int();
    r->h = nic_harness_new(&(NicOptions) {
        .props = "tx=adaptive", .size = RING,
        .features = features });
    r->h->net->record = false;
    choose_setting(r);
    return r;
}

static unsigned run_rounds(Race *r, unsigned bursts)
{
    unsigned lost = 0;

    while (r->bursts < bursts && (!lost || !UNTIL_LOST)) {
        lost += device_round(r);
    }
    r->stop = true;
    meeting_meet(&r->meeting);
    g_test_message("%u kicks lost in %" G_GUINT64_FORMAT " bursts", lost,
                   r->bursts);
    return lost;
}

/* Everything published was sent, once; and there were races. */
static void check_end(Race *r)
{
    uint64_t partial = nic_harness_stat(r->h, 1, "arm_partial");
    uint64_t crossed = nic_harness_stat(r->h, 1, "arm_crossed");

    settle(r);
    g_assert_cmpuint(nic_harness_stat(r->h, 1, "packets"), ==, r->published);
    g_test_message("while the device armed, the driver published part of a "
                   "window %" G_GUINT64_FORMAT " times, all of it %"
                   G_GUINT64_FORMAT " times", partial, crossed);
    g_assert_cmpuint(crossed, >, 0);
}

static void run_race(uint64_t features, unsigned bursts)
{
    Race *r = race_new(features);
    pthread_t driver;
    cpu_set_t cpus;
    unsigned lost;

    g_assert(sched_getaffinity(0, sizeof(cpus), &cpus) == 0);
    pthread_create(&driver, NULL, driver_thread, r);
    meeting_pin(0);
    lost = run_rounds(r, bursts);
    pthread_join(driver, NULL);
    sched_setaffinity(0, sizeof(cpus), &cpus);
    g_assert((lost > 0) == UNTIL_LOST);
    if (!lost) {
        check_end(r);
    }
    nic_harness_free(r->h);
    g_free(r);
}

static void test_event_index(void)
{
    run_race(NH_MODERN, UNTIL_LOST ? BURSTS_LOST : BURSTS);
}

static void test_flags(void)
{
    run_race(NH_MODERN & ~VH_EVENT_IDX, UNTIL_LOST ? BURSTS_LOST : BURSTS / 5);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    if (!meeting_two_cpus()) {
        g_print("1..0 # SKIP a race needs two CPUs\n");
        return 0;
    }
    g_test_add_func("/net/lost-kick/event-index", test_event_index);
    g_test_add_func("/net/lost-kick/flags", test_flags);
    return g_test_run();
}
