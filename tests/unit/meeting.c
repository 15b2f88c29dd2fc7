/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Two threads that meet: see the header.
 */
#include "meeting.h"

#include <glib.h>
#include <pthread.h>
#include <sched.h>

void meeting_meet(Meeting *m)
{
    unsigned round = __atomic_load_n(&m->round, __ATOMIC_ACQUIRE);
    unsigned spins = 0;

    if (__atomic_add_fetch(&m->arrived, 1, __ATOMIC_ACQ_REL) == 2) {
        __atomic_store_n(&m->arrived, 0, __ATOMIC_RELAXED);
        __atomic_store_n(&m->round, round + 1, __ATOMIC_RELEASE);
        return;
    }
    while (__atomic_load_n(&m->round, __ATOMIC_ACQUIRE) == round) {
        if (++spins > 1000) {
            sched_yield();
        }
    }
}

void meeting_pin(unsigned n)
{
    cpu_set_t all, one;

    g_assert(sched_getaffinity(0, sizeof(all), &all) == 0);
    for (unsigned cpu = 0; cpu < CPU_SETSIZE; cpu++) {
        if (CPU_ISSET(cpu, &all) && n-- == 0) {
            CPU_ZERO(&one);
            CPU_SET(cpu, &one);
            pthread_setaffinity_np(pthread_self(), sizeof(one), &one);
            return;
        }
    }
}

void meeting_lag(unsigned round, unsigned side)
{
    if (round % 2 == side) {
        for (volatile unsigned i = round / 2 % 64; i > 0; i--) {
        }
    }
}

bool meeting_two_cpus(void)
{
    cpu_set_t set;

    return sched_getaffinity(0, sizeof(set), &set) == 0 &&
           CPU_COUNT(&set) >= 2;
}
