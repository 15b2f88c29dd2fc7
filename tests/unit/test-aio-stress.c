/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Bottom halves under fire: schedule, cancel and delete from several threads
 * while the owner runs, reschedules and deletes.  Built twice; the second
 * build runs under the thread sanitizer, which checks what assertions cannot:
 * that each hand-over of plain memory is ordered by the calls of the loop.
 *
 * The work is a fixed number of steps of seeded generators.  Nobody sleeps by
 * the clock; a lost wake-up shows as a test that does not end.
 */
#include <glib.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <stdatomic.h>

#include "util/iothread.h"

#define WORKERS     3
#define ROUNDS      30000u
#define WAKEUPS     (4 * ROUNDS)    /* a narrow race to hit */
#define SHARED      4

typedef struct Worker {
    pthread_t thread;
    AioContext *ctx;
    uint32_t seed;
    sem_t acked;
    atomic_bool flag;
    unsigned payload;           /* plain: handed over by schedule and ack */
    uint64_t sum;               /* plain: the owner's */
    AioBH **shared;
} Worker;

static IOThread *iot;
static Worker workers[WORKERS];

static uint32_t worker_random(Worker *w)
{
    w->seed = w->seed * 1664525 + 1013904223;
    return w->seed >> 16;
}

/* Runs @fn in @n workers at once, next to the iothread. */
static void run_workers(unsigned n, void *(*fn)(void *), AioBH **shared)
{
    for (unsigned i = 0; i < n; i++) {
        Worker *w = &workers[i];

        w->ctx = iothread_context(iot);
        w->seed = i + 1;
        w->shared = shared;
        w->sum = 0;
        sem_init(&w->acked, 0, 0);
        g_assert_cmpint(pthread_create(&w->thread, NULL, fn, w), ==, 0);
    }
    for (unsigned i = 0; i < n; i++) {
        pthread_join(workers[i].thread, NULL);
        sem_destroy(&workers[i].acked);
    }
}

static void start(void)
{
    iot = iothread_new("stress", clock_monotonic(), NULL);
    g_assert_true(iothread_start(iot, NULL));
}

static uint64_t sum_to(uint64_t n)
{
    return n * (n + 1) / 2;
}

static void wait_acked(Worker *w)
{
    while (sem_wait(&w->acked) < 0) {
        /* interrupted */
    }
}

/* ---- hand-over and wake-up ------------------------------------------- */

static void take_payload(void *opaque)
{
    Worker *w = opaque;

    w->sum += w->payload;
    sem_post(&w->acked);
}

/*
 * The owner goes to sleep between rounds about as often as it is caught
 * awake: both sides of the handshake.
 */
static void *ping(void *opaque)
{
    Worker *w = opaque;
    AioBH *bh = aio_bh_new(w->ctx, take_payload, w);

    for (unsigned i = 1; i <= ROUNDS; i++) {
        w->payload = i;
        aio_bh_schedule(bh);
        wait_acked(w);
    }
    aio_bh_delete(bh);
    return NULL;
}

static void test_handover(void)
{
    start();
    run_workers(WORKERS, ping, NULL);
    iothread_free(iot);
    for (unsigned i = 0; i < WORKERS; i++) {
        g_assert_cmpuint(workers[i].sum, ==, sum_to(ROUNDS));
    }
}

static void ack_by_flag(void *opaque)
{
    Worker *w = opaque;

    w->sum += w->payload;
    atomic_store(&w->flag, true);
}

/*
 * One worker alone, so that nobody else's wake-up covers for a lost one, and
 * awake, so that its calls fall into the moment when the owner is about to
 * sleep: the pauses sweep over it.
 */
static void *ping_awake(void *opaque)
{
    Worker *w = opaque;
    AioBH *bh = aio_bh_new(w->ctx, ack_by_flag, w);

    for (unsigned i = 1; i <= WAKEUPS; i++) {
        w->payload = i;
        atomic_store(&w->flag, false);
        aio_bh_schedule(bh);
        for (unsigned spins = 1; !atomic_load(&w->flag); spins++) {
            if (spins % 4096 == 0) {
                sched_yield();
            }
        }
        for (uint32_t pause = worker_random(w) % 256; pause; pause--) {
            atomic_load(&w->flag);
        }
    }
    aio_bh_delete(bh);
    return NULL;
}

static void far_timer(void *opaque)
{
    AioTimer *t = opaque;

    if (aio_timer_armed(t)) {
        aio_timer_del(t);
    } else {
        aio_timer_mod_ns(t, INT64_MAX - 1);
    }
}

static void test_wakeup(void)
{
    AioTimer t;

    start();
    /* With a timer there is a clock to read in that moment: it is longer. */
    aio_timer_init(&t, iothread_context(iot), far_timer, &t);
    aio_wait_bh_oneshot(iothread_context(iot), far_timer, &t);
    run_workers(1, ping_awake, NULL);
    aio_wait_bh_oneshot(iothread_context(iot), far_timer, &t);
    iothread_free(iot);
    g_assert_cmpuint(workers[0].sum, ==, sum_to(WAKEUPS));
}

/* ---- one-shots ------------------------------------------------------- */

static unsigned oneshots;       /* the owner's */

static void count_oneshot(void *opaque)
{
    oneshots++;
    if (opaque) {
        aio_bh_schedule_oneshot(opaque, count_oneshot, NULL);
    }
}

static void *shoot(void *opaque)
{
    Worker *w = opaque;

    for (unsigned i = 0; i < ROUNDS; i++) {
        aio_bh_schedule_oneshot(w->ctx, count_oneshot, i % 2 ? w->ctx : NULL);
        if (i % 8 == 0) {
            aio_notify(w->ctx);
        }
    }
    return NULL;
}

static void test_oneshots(void)
{
    oneshots = 0;
    start();
    run_workers(WORKERS, shoot, NULL);
    iothread_free(iot);
    g_assert_cmpuint(oneshots, ==, WORKERS * (ROUNDS + ROUNDS / 2));
}

/* ---- schedule, cancel, delete ---------------------------------------- */

static atomic_uint runs, self_deleted;

static void count_run(void *opaque)
{
    atomic_fetch_add(&runs, 1);
}

/* The holder is freed by the callback that runs at most once. */
typedef struct Holder {
    AioBH *bh;
    char name[8];
} Holder;

static void delete_self(void *opaque)
{
    Holder *h = opaque;

    g_assert_cmpstr(h->name, ==, "holder");
    atomic_fetch_add(&self_deleted, 1);
    aio_bh_delete(h->bh);
    g_free(h);
}

static void make_self_deleting(Worker *w)
{
    Holder *h = g_new0(Holder, 1);

    g_strlcpy(h->name, "holder", sizeof(h->name));
    h->bh = aio_bh_new(w->ctx, delete_self, h);
    aio_bh_schedule(h->bh);
}

/* A bottom half of its own for a few steps, deleted in any state. */
static void short_life(Worker *w)
{
    AioBH *bh = aio_bh_new(w->ctx, count_run, NULL);

    for (uint32_t steps = worker_random(w) % 4; steps; steps--) {
        if (worker_random(w) % 3) {
            aio_bh_schedule(bh);
        } else {
            aio_bh_cancel(bh);
        }
    }
    aio_bh_delete(bh);
}

static void *fight(void *opaque)
{
    Worker *w = opaque;

    for (unsigned i = 0; i < ROUNDS; i++) {
        AioBH *bh = w->shared[worker_random(w) % SHARED];

        switch (worker_random(w) % 4) {
        case 0:
            aio_bh_cancel(bh);
            break;
        case 1:
            short_life(w);
            break;
        case 2:
            make_self_deleting(w);
            break;
        default:
            aio_bh_schedule(bh);
            break;
        }
    }
    return NULL;
}

/* How often the generators above choose case 2. */
static unsigned expected_self_deleted(void)
{
    unsigned n = 0;

    for (unsigned i = 0; i < WORKERS; i++) {
        Worker w = { .seed = i + 1 };

        for (unsigned j = 0; j < ROUNDS; j++) {
            uint32_t choice, steps;

            worker_random(&w);
            choice = worker_random(&w) % 4;
            n += choice == 2;
            steps = choice == 1 ? worker_random(&w) % 4 : 0;
            while (steps--) {
                worker_random(&w);
            }
        }
    }
    return n;
}

/* The owner takes part: one shared bottom half plays with the others. */
static void meddle(void *opaque)
{
    AioBH **shared = opaque;
    static unsigned turn;

    atomic_fetch_add(&runs, 1);
    turn++;
    aio_bh_schedule(shared[1 + turn % (SHARED - 1)]);
    aio_bh_cancel(shared[1 + (turn + 1) % (SHARED - 1)]);
    if (turn % 4) {
        aio_bh_schedule(shared[0]);
    }
}

static void nothing(void *opaque)
{
}

static void test_fight(void)
{
    AioBH *shared[SHARED];
    unsigned before;

    atomic_store(&runs, 0);
    atomic_store(&self_deleted, 0);
    start();
    shared[0] = aio_bh_new(iothread_context(iot), meddle, shared);
    for (unsigned i = 1; i < SHARED; i++) {
        shared[i] = aio_bh_new(iothread_context(iot), count_run, NULL);
    }
    run_workers(WORKERS, fight, shared);

    /* Delete the meddler, then wait until it cannot be running. */
    aio_bh_delete(shared[0]);
    aio_wait_bh_oneshot(iothread_context(iot), nothing, NULL);
    for (unsigned i = 1; i < SHARED; i++) {
        aio_bh_cancel(shared[i]);
    }
    aio_wait_bh_oneshot(iothread_context(iot), nothing, NULL);
    before = atomic_load(&runs);
    aio_wait_bh_oneshot(iothread_context(iot), nothing, NULL);
    g_assert_cmpuint(atomic_load(&runs), ==, before);

    /* None has been lost in a list: each still runs when asked to. */
    for (unsigned i = 1; i < SHARED; i++) {
        aio_bh_schedule(shared[i]);
    }
    aio_wait_bh_oneshot(iothread_context(iot), nothing, NULL);
    g_assert_cmpuint(atomic_load(&runs), ==, before + SHARED - 1);
    for (unsigned i = 1; i < SHARED; i++) {
        aio_bh_delete(shared[i]);
    }
    iothread_free(iot);
    g_assert_cmpuint(atomic_load(&self_deleted), ==, expected_self_deleted());
}

/* ---- hand-over of a context ------------------------------------------ */

static unsigned owners_sum;     /* of whoever owns the context */

static void add_one(void *opaque)
{
    owners_sum++;
}

static void *own_for_a_while(void *opaque)
{
    AioContext *ctx = opaque;

    aio_context_bind(ctx);
    aio_bh_schedule_oneshot(ctx, add_one, NULL);
    aio_poll(ctx, true);
    aio_bh_schedule_oneshot(ctx, add_one, NULL);
    aio_context_unbind(ctx);
    return NULL;
}

static void test_change_of_owner(void)
{
    AioContext *ctx = aio_context_new("moved", clock_monotonic(), NULL);

    owners_sum = 0;
    for (unsigned i = 0; i < 20; i++) {
        pthread_t thread;

        g_assert_cmpint(pthread_create(&thread, NULL, own_for_a_while, ctx),
                        ==, 0);
        pthread_join(thread, NULL);
        own_for_a_while(ctx);
    }
    aio_context_free(ctx);
    g_assert_cmpuint(owners_sum, ==, 80);
}

int main(int argc, char **argv)
{
    g_test_init(&argc, &argv, NULL);
    g_test_add_func("/aio-stress/handover", test_handover);
    g_test_add_func("/aio-stress/wakeup", test_wakeup);
    g_test_add_func("/aio-stress/oneshots", test_oneshots);
    g_test_add_func("/aio-stress/fight", test_fight);
    g_test_add_func("/aio-stress/change-of-owner", test_change_of_owner);
    return g_test_run();
}
