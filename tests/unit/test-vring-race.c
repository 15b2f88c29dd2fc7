/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The places where a ring can lose a wake-up, run by two threads (F20).
 *
 *   device                          driver
 *   store what it is to be woken by store its index
 *   full barrier                    full barrier
 *   load the driver's index         load what the device wants
 *
 * Without one of the barriers both loads may miss the other's store: the
 * device sleeps and the driver does not kick.  The same when the ring is left
 * to an owner who looks at it once and then sleeps; and with the roles
 * exchanged for calls.
 *
 * The two halves are run at the same time over a row of rings, then the
 * outcomes are compared; a round ends when both threads have met.  The number
 * of rounds is fixed.
 *
 * This file is built twice.  With VRING_TEST_NO_BARRIER the device's barriers
 * are compiler barriers only, and the test asserts that a wake-up is lost:
 * otherwise it would prove nothing.
 */
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <time.h>

#include "meeting.h"
#include "vring-harness.h"

#define RINGS 32
#define SIZE 8

#ifdef VRING_TEST_NO_BARRIER
#define UNTIL_LOST true
#define ROUNDS 1000000
#else
#define UNTIL_LOST false
#define ROUNDS 20000
#endif

/* ---- two threads, side by side ------------------------------------------ */

typedef struct Litmus {
    const struct LitmusCase *c;
    VringHarness *h[RINGS];
    bool device_sleeps[RINGS];
    bool driver_sleeps[RINGS];
    Meeting meeting;
    unsigned round;         /* this and stop: written between two meetings */
    bool stop;
} Litmus;

typedef struct LitmusCase {
    void (*device)(Litmus *l, unsigned i);
    void (*driver)(Litmus *l, unsigned i);
    /* Between rounds, by one thread: was it lost?  And back to the start. */
    bool (*lost)(Litmus *l, unsigned i);
    void (*reset)(VringHarness *h);
} LitmusCase;

static void *driver_thread(void *opaque)
{
    Litmus *l = opaque;

    meeting_pin(1);
    for (;;) {
        meeting_meet(&l->meeting);
        if (l->stop) {
            return NULL;
        }
        meeting_lag(l->round, 1);
        for (unsigned i = 0; i < RINGS; i++) {
            l->c->driver(l, i);
        }
        meeting_meet(&l->meeting);
    }
}

static unsigned device_round(Litmus *l)
{
    unsigned lost = 0;

    meeting_meet(&l->meeting);
    meeting_lag(l->round, 0);
    for (unsigned i = 0; i < RINGS; i++) {
        l->c->device(l, i);
    }
    meeting_meet(&l->meeting);
    for (unsigned i = 0; i < RINGS; i++) {
        lost += l->c->lost(l, i);
        l->c->reset(l->h[i]);
    }
    return lost;
}

static void run_litmus(const LitmusCase *c, uint64_t features)
{
    Litmus l = { .c = c };
    pthread_t driver;
    cpu_set_t cpus;
    unsigned lost = 0;

    for (unsigned i = 0; i < RINGS; i++) {
        l.h[i] = vring_harness_new(SIZE, features);
        c->reset(l.h[i]);
    }
    g_assert(sched_getaffinity(0, sizeof(cpus), &cpus) == 0);
    pthread_create(&driver, NULL, driver_thread, &l);
    meeting_pin(0);
    while (l.round < ROUNDS && (lost == 0 || !UNTIL_LOST)) {
        lost += device_round(&l);
        l.round++;
    }
    l.stop = true;
    meeting_meet(&l.meeting);
    pthread_join(driver, NULL);
    sched_setaffinity(0, sizeof(cpus), &cpus);
    for (unsigned i = 0; i < RINGS; i++) {
        virtqueue_publish(l.h[i]->vq);
        vring_harness_free(l.h[i]);
    }
    g_test_message("%u wake-ups lost in %u rounds", lost, l.round);
    g_assert((lost > 0) == UNTIL_LOST);
}

/* ---- kicks: arm against expose ------------------------------------------ */

static void kick_device(Litmus *l, unsigned i)
{
    l->device_sleeps[i] = virtqueue_arm(l->h[i]->vq, 1) == VQ_ARM_EMPTY;
}

static void kick_driver(Litmus *l, unsigned i)
{
    VringDriver *d = &l->h[i]->drv;

    vring_driver_add(d, VH_BUFFERS, 64, 0);
    l->driver_sleeps[i] = !vring_driver_wants_kick(d);
}

/* The device sleeps with work in the ring and nobody kicks. */
static bool kick_lost(Litmus *l, unsigned i)
{
    return l->device_sleeps[i] && l->driver_sleeps[i];
}

static void kick_reset(VringHarness *h)
{
    uint32_t id, len;

    virtqueue_park(h->vq);
    vring_harness_serve(h);
    while (vring_driver_get_used(&h->drv, &id, &len)) {
    }
}

static const LitmusCase kick_case = {
    .device = kick_device,
    .driver = kick_driver,
    .lost = kick_lost,
    .reset = kick_reset,
};

/* ---- hand-over: disarm against expose ------------------------------------ */

static void disarm_device(Litmus *l, unsigned i)
{
    virtqueue_disarm(l->h[i]->vq);
    l->device_sleeps[i] = !virtqueue_avail_moved(l->h[i]->vq);
}

static const LitmusCase disarm_case = {
    .device = disarm_device,
    .driver = kick_driver,
    .lost = kick_lost,
    .reset = kick_reset,
};

/* ---- calls: publish against enable -------------------------------------- */

static void call_device(Litmus *l, unsigned i)
{
    virtqueue_publish(l->h[i]->vq);
    l->device_sleeps[i] = !virtqueue_should_signal(l->h[i]->vq);
}

static void call_driver(Litmus *l, unsigned i)
{
    l->driver_sleeps[i] = vring_driver_enable_call(&l->h[i]->drv);
}

/* The driver sleeps with a used entry and nobody calls. */
static bool call_lost(Litmus *l, unsigned i)
{
    return l->device_sleeps[i] && l->driver_sleeps[i];
}

/* One chain filled, not published; no call wanted. */
static void call_reset(VringHarness *h)
{
    VirtQueueElem *elem;
    uint32_t id, len;

    virtqueue_signalled(h->vq);
    while (vring_driver_get_used(&h->drv, &id, &len)) {
    }
    vring_driver_disable_call(&h->drv);
    if (h->drv.event_idx) {
        vring_driver_set_used_event(&h->drv, h->drv.used_idx - 1);
    }
    vring_driver_add(&h->drv, VH_BUFFERS, 64, 0);
    elem = vring_harness_pop(h);
    g_assert_nonnull(elem);
    virtqueue_fill(h->vq, elem, 0);
}

static const LitmusCase call_case = {
    .device = call_device,
    .driver = call_driver,
    .lost = call_lost,
    .reset = call_reset,
};

static void test_kick(gconstpointer features)
{
    run_litmus(&kick_case, *(const uint64_t *)features);
}

static void test_disarm(gconstpointer features)
{
    run_litmus(&disarm_case, *(const uint64_t *)features);
}

static void test_call(gconstpointer features)
{
    run_litmus(&call_case, *(const uint64_t *)features);
}

/* ---- a stream between two threads that sleep ---------------------------- */

#ifndef VRING_TEST_NO_BARRIER

#define STREAM_SIZE 16
#define STREAM_PACKETS 100000
/* Only a lost wake-up takes this long. */
#define STREAM_WATCHDOG_S 60

typedef struct Stream {
    VringHarness *h;
    sem_t kick;
    sem_t call;
    unsigned sleeps;        /* of the device */
} Stream;

static void sleep_on(sem_t *sem)
{
    struct timespec until;

    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += STREAM_WATCHDOG_S;
    g_assert_cmpint(sem_timedwait(sem, &until), ==, 0);
}

/* Slot @i carries numbers i, i + size, ...; used in order. */
static uint64_t *payload(Stream *s, uint32_t n)
{
    return vring_harness_ptr(s->h, VH_BUFFERS + 64 * (n % STREAM_SIZE));
}

static void *stream_driver(void *opaque)
{
    Stream *s = opaque;
    VringDriver *d = &s->h->drv;
    uint32_t sent = 0;
    uint32_t done = 0;
    uint32_t id, len;

    while (done < STREAM_PACKETS) {
        while (vring_driver_get_used(d, &id, &len)) {
            g_assert_cmpuint(id, ==, done % STREAM_SIZE);
            done++;
        }
        if (sent == STREAM_PACKETS || sent - done == STREAM_SIZE) {
            if (done < STREAM_PACKETS && vring_driver_enable_call(d)) {
                sleep_on(&s->call);
            }
            vring_driver_disable_call(d);
            continue;
        }
        *payload(s, sent) = sent;
        vring_driver_add(d, VH_BUFFERS + 64 * (sent % STREAM_SIZE), 64, 0);
        sent++;
        if (vring_driver_wants_kick(d)) {
            sem_post(&s->kick);
        }
    }
    return NULL;
}

static unsigned stream_flush(Stream *s, uint32_t seen)
{
    VirtQueueElem *elems[5];
    unsigned n = virtqueue_pop_batch(s->h->vq, elems, 5, SIZE_MAX);

    for (unsigned i = 0; i < n; i++) {
        g_assert_cmpuint(*(uint64_t *)elems[i]->iov[0].iov_base, ==,
                         seen + i);
        virtqueue_fill(s->h->vq, elems[i], 0);
    }
    if (virtqueue_publish(s->h->vq) && virtqueue_should_signal(s->h->vq)) {
        virtqueue_signalled(s->h->vq);
        sem_post(&s->call);
    }
    return n;
}

static void stream_device(Stream *s)
{
    uint32_t seen = 0;

    while (seen < STREAM_PACKETS) {
        unsigned n = stream_flush(s, seen);

        seen += n;
        if (n == 0 && virtqueue_arm(s->h->vq, 1) == VQ_ARM_EMPTY) {
            s->sleeps++;
            sleep_on(&s->kick);
            virtqueue_park(s->h->vq);
        }
    }
}

static void test_stream(gconstpointer features)
{
    Stream s = {
        .h = vring_harness_new(STREAM_SIZE, *(const uint64_t *)features),
    };
    pthread_t driver;

    sem_init(&s.kick, 0, 0);
    sem_init(&s.call, 0, 0);
    vring_driver_disable_call(&s.h->drv);
    pthread_create(&driver, NULL, stream_driver, &s);
    stream_device(&s);
    pthread_join(driver, NULL);
    g_test_message("the device slept %u times", s.sleeps);
    g_assert_false(virtqueue_broken(s.h->vq));
    vring_harness_free(s.h);
    sem_destroy(&s.kick);
    sem_destroy(&s.call);
}

#endif

/* ---- the tests ---------------------------------------------------------- */

static const uint64_t flags_only;
static const uint64_t event_idx = VH_EVENT_IDX;

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    if (!meeting_two_cpus()) {
        g_print("1..0 # SKIP a race needs two CPUs\n");
        return 0;
    }
    g_test_add_data_func("/vring/race/kick-flags", &flags_only, test_kick);
    g_test_add_data_func("/vring/race/kick-event", &event_idx, test_kick);
    g_test_add_data_func("/vring/race/disarm-flags", &flags_only, test_disarm);
    g_test_add_data_func("/vring/race/disarm-event", &event_idx, test_disarm);
    g_test_add_data_func("/vring/race/call-flags", &flags_only, test_call);
    g_test_add_data_func("/vring/race/call-event", &event_idx, test_call);
#ifndef VRING_TEST_NO_BARRIER
    g_test_add_data_func("/vring/race/stream-flags", &flags_only,
                         test_stream);
    g_test_add_data_func("/vring/race/stream-event", &event_idx, test_stream);
#endif
    return g_test_run();
}
