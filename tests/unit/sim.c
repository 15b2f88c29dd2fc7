/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The simulated world: see the header.
 *
 * A process is a ucontext with a stack of its own.  The world's own context
 * is the scheduler: it picks the process that is due first, moves the clock
 * there, and switches to it.  A delay that ends before anybody else is due
 * moves the clock without a switch.
 *
 * A process is entered by setcontext().  After that, switches are jumps: the
 * swapcontext() that sanitizers know asks the kernel for the signal mask each
 * time, which is half of the time that a world takes.
 */
/* Its longjmp() goes up one stack only. */
#undef _FORTIFY_SOURCE

#include "sim.h"

#include <math.h>
#include <setjmp.h>
#include <ucontext.h>

#if defined(__SANITIZE_THREAD__)
#define SIM_TSAN 1
#elif defined(__SANITIZE_ADDRESS__)
#define SIM_ASAN 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define SIM_TSAN 1
#elif __has_feature(address_sanitizer)
#define SIM_ASAN 1
#endif
#endif

#if !defined(SIM_TSAN) && !defined(SIM_ASAN)
#define SIM_JUMPS 1
#endif

#ifdef SIM_TSAN
#include <sanitizer/tsan_interface.h>
#endif

#define STACK_BYTES (256 * 1024)

typedef struct SimProc {
    Sim *sim;
    void (*fn)(void *opaque);
    void *opaque;
    ucontext_t uc;
    jmp_buf at;
    bool entered;
    void *stack;
    void *fiber;                /* the thread sanitizer's name for it */
    int64_t due_ns;             /* INT64_MAX: only by a wake */
    uint64_t order;             /* among those due at the same time */
    SimCond *cond;              /* waited for, or NULL */
    bool woken;
    bool ended;
} SimProc;

struct Sim {
    Clock *clock;
    GRand *rand;
    GPtrArray *procs;
    SimProc *running;           /* NULL: the scheduler */
    ucontext_t uc;
    jmp_buf at;
    void *fiber;
    int64_t end_ns;             /* of this sim_run() */
    uint64_t orders;
    double pace;
};

/* ---- switching ------------------------------------------------------- */

static void switch_fiber(void *fiber)
{
#ifdef SIM_TSAN
    __tsan_switch_to_fiber(fiber, 0);
#endif
}

static void *new_fiber(bool current)
{
#ifdef SIM_TSAN
    return current ? __tsan_get_current_fiber() : __tsan_create_fiber(0);
#else
    return NULL;
#endif
}

static void free_fiber(void *fiber)
{
#ifdef SIM_TSAN
    __tsan_destroy_fiber(fiber);
#endif
}

static void to_scheduler(SimProc *p)
{
    Sim *sim = p->sim;

    sim->running = NULL;
    switch_fiber(sim->fiber);
#ifdef SIM_JUMPS
    if (!_setjmp(p->at)) {
        _longjmp(sim->at, 1);
    }
#else
    g_assert(swapcontext(&p->uc, &sim->uc) == 0);
#endif
}

static void to_proc(Sim *sim, SimProc *p)
{
    sim->running = p;
    switch_fiber(p->fiber);
#ifdef SIM_JUMPS
    if (_setjmp(sim->at)) {
        return;
    }
    if (p->entered) {
        _longjmp(p->at, 1);
    }
    p->entered = true;
    setcontext(&p->uc);
    g_assert_not_reached();
#else
    g_assert(swapcontext(&sim->uc, &p->uc) == 0);
#endif
}

/* makecontext() passes ints: two make a pointer. */
static void proc_main(unsigned hi, unsigned lo)
{
    SimProc *p = (SimProc *)((uintptr_t)hi << 32 | lo);

    p->fn(p->opaque);
    p->ended = true;
    to_scheduler(p);
    g_assert_not_reached();
}

void sim_spawn(Sim *sim, void (*fn)(void *opaque), void *opaque)
{
    SimProc *p = g_new0(SimProc, 1);

    p->sim = sim;
    p->fn = fn;
    p->opaque = opaque;
    p->stack = g_malloc(STACK_BYTES);
    p->fiber = new_fiber(false);
    p->due_ns = sim_now_ns(sim);
    p->order = sim->orders++;
    g_assert(getcontext(&p->uc) == 0);
    p->uc.uc_stack.ss_sp = p->stack;
    p->uc.uc_stack.ss_size = STACK_BYTES;
    makecontext(&p->uc, (void (*)(void))proc_main, 2,
                (unsigned)((uintptr_t)p >> 32), (unsigned)(uintptr_t)p);
    g_ptr_array_add(sim->procs, p);
}

/* ---- scheduling ------------------------------------------------------ */

static SimProc *first_due(Sim *sim)
{
    SimProc *first = NULL;

    for (guint i = 0; i < sim->procs->len; i++) {
        SimProc *p = sim->procs->pdata[i];

        if (p != sim->running && !p->ended &&
            (!first || p->due_ns < first->due_ns ||
             (p->due_ns == first->due_ns && p->order < first->order))) {
            first = p;
        }
    }
    return first;
}

static void move_clock(Sim *sim, int64_t to_ns)
{
    clock_virtual_advance(sim->clock, to_ns - sim_now_ns(sim));
}

void sim_run(Sim *sim, int64_t ns)
{
    SimProc *p;

    sim->end_ns = sim_now_ns(sim) + ns;
    while ((p = first_due(sim)) && p->due_ns <= sim->end_ns) {
        move_clock(sim, p->due_ns);
        to_proc(sim, p);
    }
    move_clock(sim, sim->end_ns);
}

void sim_set_pace(Sim *sim, double pace)
{
    sim->pace = pace;
}

void sim_delay_ns(Sim *sim, int64_t ns)
{
    SimProc *p = sim->running, *other;
    int64_t due_ns = sim_now_ns(sim) + (int64_t)((double)ns * sim->pace);

    if (ns <= 0) {
        return;
    }
    other = first_due(sim);
    if (due_ns <= sim->end_ns && (!other || other->due_ns > due_ns)) {
        move_clock(sim, due_ns);
        return;
    }
    p->due_ns = due_ns;
    p->order = sim->orders++;
    to_scheduler(p);
}

bool sim_wait(Sim *sim, SimCond *cond, int64_t deadline_ns)
{
    SimProc *p = sim->running;

    p->due_ns = MAX(deadline_ns, sim_now_ns(sim));
    p->order = sim->orders++;
    p->cond = cond;
    p->woken = false;
    cond->waiters++;
    to_scheduler(p);
    if (p->cond) {
        p->cond = NULL;
        cond->waiters--;
    }
    return p->woken;
}

void sim_wake(Sim *sim, SimCond *cond)
{
    for (guint i = 0; cond->waiters && i < sim->procs->len; i++) {
        SimProc *p = sim->procs->pdata[i];

        if (p->cond == cond) {
            p->cond = NULL;
            p->woken = true;
            p->due_ns = sim_now_ns(sim);
            p->order = sim->orders++;
            cond->waiters--;
        }
    }
}

/* ---- life and chance ------------------------------------------------- */

static void proc_free(void *opaque)
{
    SimProc *p = opaque;

    free_fiber(p->fiber);
    g_free(p->stack);
    g_free(p);
}

Sim *sim_new(uint32_t seed)
{
    Sim *sim = g_new0(Sim, 1);

    sim->clock = clock_virtual_new(NS_PER_SEC);
    sim->pace = 1;
    sim->rand = g_rand_new_with_seed(seed);
    sim->procs = g_ptr_array_new_with_free_func(proc_free);
    sim->fiber = new_fiber(true);
    return sim;
}

void sim_free(Sim *sim)
{
    g_ptr_array_free(sim->procs, TRUE);
    g_rand_free(sim->rand);
    clock_free(sim->clock);
    g_free(sim);
}

Clock *sim_clock(Sim *sim)
{
    return sim->clock;
}

int64_t sim_now_ns(const Sim *sim)
{
    return clock_now_ns(sim->clock);
}

int64_t sim_random_ns(Sim *sim, int64_t min, int64_t max)
{
    return min >= max ? min
                      : min + (int64_t)(g_rand_double(sim->rand) *
                                        (double)(max - min + 1));
}

int64_t sim_random_exp_ns(Sim *sim, int64_t mean)
{
    return (int64_t)(-log(1 - g_rand_double(sim->rand)) * (double)mean);
}
