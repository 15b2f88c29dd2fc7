/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A world on a virtual clock: processes that are written as straight-line
 * code, of which exactly one runs at a time, the one that is due next.
 *
 * Time passes only in sim_delay_ns() and sim_wait().  So code that was written
 * for threads runs in it unchanged, a run is the same each time, and an hour
 * costs what happens in it.  Processes due at the same time run in the order
 * in which they asked.
 *
 * Limits: one thread; a process must not return to its caller by longjmp; what
 * a process has on its stack when the world ends is not unwound.
 */
#ifndef TESTS_UNIT_SIM_H
#define TESTS_UNIT_SIM_H

#include <glib.h>
#include <stdbool.h>
#include <stdint.h>

#include "util/clock.h"

typedef struct Sim Sim;

/* What processes wait for.  Zero-initialised. */
typedef struct SimCond {
    unsigned waiters;
} SimCond;

/* sim_new: @seed decides every sim_random_*(). */
Sim *sim_new(uint32_t seed);

/* sim_free: also with processes that have not ended. */
void sim_free(Sim *sim);

/* sim_clock: for contexts of the code under test.  Belongs to the world. */
Clock *sim_clock(Sim *sim);
int64_t sim_now_ns(const Sim *sim);

/*
 * sim_spawn: a new process, due now.  Its end is the return of @fn.
 * From outside or from a process.
 */
void sim_spawn(Sim *sim, void (*fn)(void *opaque), void *opaque);

/* sim_run: let @ns pass.  From outside. */
void sim_run(Sim *sim, int64_t ns);

/*
 * sim_delay_ns: let time pass for the calling process, @ns of work at the
 * world's pace; 0 or less: none.
 */
void sim_delay_ns(Sim *sim, int64_t ns);

/*
 * sim_set_pace: from now on work takes @pace times what it takes on a host
 * with nothing else to do (1, as at first).  Deadlines are not work.
 */
void sim_set_pace(Sim *sim, double pace);

/*
 * sim_wait: until sim_wake() of @cond, or until @deadline_ns (INT64_MAX:
 * never).  Returns false for the deadline.
 */
bool sim_wait(Sim *sim, SimCond *cond, int64_t deadline_ns);

/* sim_wake: all who wait now are due.  From outside or from a process. */
void sim_wake(Sim *sim, SimCond *cond);

/* sim_random_ns: evenly from [min, max].  sim_random_exp_ns: exponential. */
int64_t sim_random_ns(Sim *sim, int64_t min, int64_t max);
int64_t sim_random_exp_ns(Sim *sim, int64_t mean);

#endif /* TESTS_UNIT_SIM_H */
