/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Clocks: the time an event loop lives in.
 *
 * A context takes its time from one Clock, so a test can put a virtual one in
 * place of the monotonic one and drive every deadline of the device by hand.
 * All times are signed 64-bit nanoseconds; only differences mean anything.
 */
#ifndef UTIL_CLOCK_H
#define UTIL_CLOCK_H

#include <stdbool.h>
#include <stdint.h>

#define NS_PER_US   1000LL
#define NS_PER_MS   1000000LL
#define NS_PER_SEC  1000000000LL

typedef struct Clock Clock;

/*
 * clock_monotonic: the process-wide CLOCK_MONOTONIC clock.
 *
 * Any thread.  Never NULL; not to be freed.
 */
Clock *clock_monotonic(void);

/*
 * clock_virtual_new: a clock that stands still until it is moved.
 * @start_ns: its first reading
 *
 * Any thread.  The caller frees it with clock_free() after the last context
 * that uses it.
 */
Clock *clock_virtual_new(int64_t start_ns);

/* clock_free: free a virtual clock (NULL is allowed). */
void clock_free(Clock *clock);

/*
 * clock_now_ns: the current reading.
 *
 * Any thread.
 */
int64_t clock_now_ns(const Clock *clock);

/* clock_is_virtual: true for a clock made by clock_virtual_new(). */
bool clock_is_virtual(const Clock *clock);

/*
 * clock_virtual_advance: move a virtual clock forward.
 * @ns: how far, >= 0
 *
 * Any thread.  Timers that become due run in the next aio_poll() of their
 * context, in deadline order.
 */
void clock_virtual_advance(Clock *clock, int64_t ns);

#endif /* UTIL_CLOCK_H */
