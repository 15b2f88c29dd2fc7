/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Clocks: one monotonic clock for the process, virtual ones for tests.
 *
 * A virtual clock is a single atomic counter.  Relaxed order is enough: a
 * reading promises nothing about other memory, and whoever advances the clock
 * for another thread has to wake that thread anyway, which orders the two.
 *
 * Limits: a virtual clock never goes back and wakes nobody.
 */
#include "util/clock.h"

#include <assert.h>
#include <glib.h>
#include <stdatomic.h>
#include <time.h>

struct Clock {
    bool is_virtual;
    _Atomic int64_t now_ns;     /* virtual clocks only */
};

Clock *clock_monotonic(void)
{
    static Clock monotonic;

    return &monotonic;
}

Clock *clock_virtual_new(int64_t start_ns)
{
    Clock *clock = g_new0(Clock, 1);

    clock->is_virtual = true;
    atomic_init(&clock->now_ns, start_ns);
    return clock;
}

void clock_free(Clock *clock)
{
    assert(!clock || clock->is_virtual);
    g_free(clock);
}

int64_t clock_now_ns(const Clock *clock)
{
    struct timespec ts;

    if (clock->is_virtual) {
        return atomic_load_explicit(&clock->now_ns, memory_order_relaxed);
    }
    clock_gettime(CLOCK_MONOTONIC, &ts);
    return ts.tv_sec * NS_PER_SEC + ts.tv_nsec;
}

bool clock_is_virtual(const Clock *clock)
{
    return clock->is_virtual;
}

void clock_virtual_advance(Clock *clock, int64_t ns)
{
    assert(clock->is_virtual && ns >= 0);
    atomic_fetch_add_explicit(&clock->now_ns, ns, memory_order_relaxed);
}
