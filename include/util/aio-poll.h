/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Adaptive busy polling: how long to look before going to sleep.
 *
 * Pure decisions, used by the event loop and its unit test; no call here
 * reads a clock.  All are for the context's owner.
 *
 * The window is what has paid off so far: it grows when an event came after
 * we had gone to sleep, yet within max_ns of the start of the wait (a longer
 * look would have caught it), and it is halved when nothing came for max_ns.
 *
 * Waste is bounded by a credit, whatever the arrival pattern: time polled in
 * vain is paid from it, so that in total
 *
 *     polled in vain <= 4 * max_ns + hits * max_ns + slept / 16
 *
 * plus one pass over the handlers.
 *
 * Hits do not tell what polling takes from others.  A thread that the kernel
 * takes off its CPU while it polls keeps somebody else waiting for that CPU,
 * such as the vCPU whose packets it looks for; so each time costs credit,
 * twice as much as the time before, and polling rests until sleep has paid
 * for it.
 */
#ifndef UTIL_AIO_POLL_H
#define UTIL_AIO_POLL_H

#include <stdint.h>

/* The first window, and the shortest one worth its clock readings. */
#define AIO_POLL_MIN_NS         4000

/* A context that only sleeps may still poll in vain 1/16 of that time. */
#define AIO_POLL_SLEEP_SHARE    16

/* Credit at the start, and the most that can be saved up, in max_ns. */
#define AIO_POLL_CREDIT_START   4
#define AIO_POLL_CREDIT_MAX     16

/* The most that one preemption costs, in max_ns; hits until it costs 1/e. */
#define AIO_POLL_PENALTY_MAX    256
#define AIO_POLL_PENALTY_HITS   64

typedef struct AioPollState {
    int64_t max_ns;         /* 0: polling is off */
    int64_t window_ns;      /* 0 .. max_ns */
    int64_t credit_ns;      /* below zero by an overshoot or a penalty */
    int64_t penalty_ns;     /* what the last preemption cost, or less */
} AioPollState;

/* What ended a wait. */
typedef enum AioPollEnd {
    AIO_POLL_HIT,           /* polling found work */
    AIO_POLL_EVENT,         /* something came after we had gone to sleep */
    AIO_POLL_TIMER,         /* a deadline: says nothing about events */
} AioPollEnd;

/* aio_poll_state_init: start anew with @max_ns (0: off). */
void aio_poll_state_init(AioPollState *s, int64_t max_ns);

/* aio_poll_window_ns: how long to poll now; 0: go to sleep at once. */
int64_t aio_poll_window_ns(const AioPollState *s);

/*
 * aio_poll_account: learn from a wait.
 * @polled_ns: spent polling
 * @waited_ns: from the start of the wait to its end, polling included
 */
void aio_poll_account(AioPollState *s, AioPollEnd end, int64_t polled_ns,
                      int64_t waited_ns);

/*
 * aio_poll_preempted: the thread was switched involuntarily while it polled.
 * After aio_poll_account() for the same wait.
 */
void aio_poll_preempted(AioPollState *s);

#endif /* UTIL_AIO_POLL_H */
