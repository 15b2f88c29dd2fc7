/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Receive queue: wait for more buffers than are there.
 *
 * Purpose: a packet that needs several mergeable buffers meets a ring that
 * has some, but too few.  The arm asks whether the available index *moved*
 * since the scan.  Asking "is the ring non-empty" spins, because the head
 * cannot be served; asking once "are there enough now" sleeps on an event
 * index that the driver has already passed.
 *
 * Memory: x86 (TSO); index and event stores pass through FIFO store buffers.
 *
 * What must hold, by the name that a violation reports:
 *   refill_noticed  the device does not sleep while buffers that it has not
 *                   counted are published and no kick is on its way
 *   ltl rests       the device neither spins nor starves: again and again it
 *                   sleeps or delivers a packet (weak fairness)
 *
 * Taking a rule out (each must make a property fail):
 *   NO_BARRIER NO_DRIVER_BARRIER NO_RECHECK
 *   ONE_LOOK        re-check "enough?" once, and sleep on the old event index
 *   ASK_NONEMPTY    re-check "non-empty?" (spins: ltl rests)
 *
 * Limits: the event index only (the flag form cannot go stale: once it asks,
 * every later buffer kicks); indices modulo M instead of 65536.
 */

#ifndef R
#define R 4                     /* ring size, buffers */
#endif
#ifndef M
#define M 16                    /* index modulus */
#endif
#ifndef NEED
#define NEED 3                  /* buffers of the largest packet, at most R */
#endif

#define ADD(a, b)   (((a) + (b)) % M)
#define SUB(a, b)   (((a) + M - (b)) % M)
/* virtio 1.3, 2.7.10: was the event index passed going from old to new? */
#define NEED_EVENT(event, new, old) \
    (SUB(new, ADD(event, 1)) < SUB(new, old))

#ifdef NO_BARRIER
#define BARRIER             skip
#else
#define BARRIER             empty(device_sb)
#endif
#ifdef NO_DRIVER_BARRIER
#define DRIVER_BARRIER      skip
#else
#define DRIVER_BARRIER      empty(driver_sb)
#endif

#ifdef NO_RECHECK
#define LOOK_AGAIN          false
#else
#ifdef ONE_LOOK
#define LOOK_AGAIN          (SUB(avail, seen) >= need)
#else
#ifdef ASK_NONEMPTY
#define LOOK_AGAIN          (avail != seen)
#else
#define LOOK_AGAIN          (avail != scanned)
#endif
#endif
#endif

byte avail;                     /* available index as memory has it */
byte event;                     /* event index as memory has it */
byte used;                      /* used index */
chan driver_sb = [R] of { byte };
chan device_sb = [1] of { byte };
bool kick;                      /* the kick eventfd is readable */

byte pub;                       /* published, in program order */
bool at_rest = true;            /* no kick decision is outstanding */

byte seen;                      /* next position to pop */
byte scanned;                   /* available index that the scan counted to */
byte need = 1;                  /* buffers of the packet in hand */
bool asleep;
bool delivered;                 /* ghost: the last step served a packet */

/* Name of the property; never true, so that asserting it reports it. */
bool refill_noticed;

active proctype driver()
{
    byte old;

end_silent:
    do
#ifdef LIVENESS
    :: break                    /* silent from here on */
#endif
    :: atomic { SUB(pub, used) < R -> at_rest = false; old = pub }
        do
        :: atomic {
                SUB(pub, used) < R && SUB(pub, old) < R ->
                printf("driver: publishes %d\n", pub);
                pub = ADD(pub, 1);
                driver_sb!pub
            }
        :: pub != old -> break
        od;
        atomic {
            DRIVER_BARRIER;
            printf("driver: reads event index %d\n", event);
            if
            :: NEED_EVENT(event, pub, old) ->
                /* the register write or system call drains the buffer */
                empty(driver_sb);
                kick = true;
                printf("driver: kicks\n")
            :: else
            fi;
            old = 0;
            at_rest = true
        }
    od
}

active proctype driver_stores()
{
end:
    do
    :: atomic { driver_sb?avail; printf("memory: avail index %d\n", avail) }
    od
}

active proctype device_stores()
{
end:
    do
    :: atomic { device_sb?event; printf("memory: event index %d\n", event) }
    od
}

active proctype device()
{
scan:
    atomic {
        asleep = false;
        scanned = avail;
        delivered = (SUB(scanned, seen) >= need);
        if
        :: delivered ->
            printf("device: fills %d from %d\n", need, seen);
            seen = ADD(seen, need);
            used = seen;
            select (need : 1 .. NEED);
            goto scan
        :: else ->
            printf("device: needs %d, counted to %d\n", need, scanned);
            device_sb!scanned
        fi
    }
    atomic {
        BARRIER;
        if
        :: LOOK_AGAIN -> goto scan
        :: else -> asleep = true; printf("device: sleeps\n")
        fi
    }
end_sleep:
    atomic { kick -> kick = false; asleep = false; goto scan }
}

#ifndef LIVENESS
active proctype monitor()
{
end:
    do
    :: asleep && at_rest && pub != scanned && !kick -> assert(refill_noticed)
    od
}
#endif

#ifdef LIVENESS
ltl rests { []<> (asleep || delivered) }
#endif
