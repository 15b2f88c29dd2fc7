/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Two threads that do something at the same time, round by round: for races
 * between the two sides of a ring.
 *
 * What one thread wrote before a meeting the other one sees behind it.
 */
#ifndef TESTS_UNIT_MEETING_H
#define TESTS_UNIT_MEETING_H

#include <stdbool.h>

/* Zero-initialised. */
typedef struct Meeting {
    unsigned arrived;
    unsigned round;
} Meeting;

/* meeting_meet: returns when the other thread has called it, too. */
void meeting_meet(Meeting *m);

/* meeting_pin: this thread to the @n-th CPU it may use. */
void meeting_pin(unsigned n);

/*
 * meeting_lag: one @side (0 or 1) starts later by a time that differs from
 * @round to round, so that whatever the distance of the two CPUs is, some
 * rounds meet.
 */
void meeting_lag(unsigned round, unsigned side);

/* meeting_two_cpus: may this process use two CPUs?  A race needs them. */
bool meeting_two_cpus(void);

#endif /* TESTS_UNIT_MEETING_H */
