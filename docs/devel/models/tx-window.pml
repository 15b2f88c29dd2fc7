/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Transmit queue: arm, deadline and quiesce.
 *
 * Purpose: search every interleaving of a driver that publishes packets and
 * kicks by the event index (or, with -DFLAGS, by the NO_NOTIFY flag), the
 * contexts that can own the queue, a backend that fills up and recovers, and
 * a main context that stops the queue and hands it to another owner.
 *
 * Memory: each side's stores go through a FIFO store buffer and reach memory
 * later, as on x86 (TSO); a full barrier waits until the own buffer is empty.
 * The stores that matter are the available index (driver) and the event word
 * (device).  The used index needs no buffer here: a driver that sees it late
 * is a driver that chose to publish late, and it may.
 *
 * Time: a deadline fires at some moment after it was started, so "waits no
 * longer than its deadline" reads "is covered by a running deadline".
 *
 * States: those of the transmit machine of the device.  ARMED is a window
 * (event index at the W-th packet) with a deadline, HOLDING kicks off
 * altogether until a deadline: after a pass, or (a delay; tx=timer) from the
 * first packet to the pass.  What ends them schedules the bottom half, which
 * runs later; a kick and a deadline may come in between, or both before it.
 * Which of them follows a pass is the policy's choice, and the model lets it
 * choose anything but this: a pass that found nothing asks for the next packet,
 * so an idle queue has no timer.
 *
 * What must hold, by the name that a violation reports:
 *   waits_covered        no published packet waits while the device sleeps
 *                        without a kick, a scheduled bottom half or a deadline
 *   window_respected     a window that the driver filled was kicked for, and
 *                        the kick is acted upon
 *   window_has_deadline  neither a window nor a hold lacks its deadline
 *   deadline_kept        a running deadline is not put off
 *   idle_has_no_timer    no deadline runs in any other state, and none twice
 *                        without a packet in between
 *   hold_is_quiet        a hold is not kicked
 *   handover_awake       after quiesce nobody sleeps on a window or a hold: an
 *                        owner that looked once, and did nothing to the ring,
 *                        is kicked for the next packet
 *   owner_only           nothing is popped or sent by a context that does not
 *                        own the queue, or while it is stopped
 *   once_in_order        every packet is sent once, in ring order
 *   complete_before_rest completions are published before the device rests
 *   parked_is_quiet      a parked queue is not kicked
 *   ltl delivered        a published packet is sent, unless the queue is
 *                        being handed over (weak fairness for each process);
 *                        one kick is enough, no rule relies on a second one
 *
 * Variants that must hold as well:
 *   FLAGS                no event index
 *   LAZY_PARK            an event index that was passed lately is left where
 *                        it is, else it goes one behind; extra kicks may come
 *
 * Taking a rule out (each must make a property fail):
 *   NO_BARRIER NO_RECHECK            in the arm
 *   NO_DRIVER_BARRIER                in the driver
 *   CROSSED_IS_PARTIAL               a full window is left to its deadline
 *   NO_DISARM NO_DISARM_BARRIER NO_DRAIN_BH NO_DRAIN_TIMER NO_CANCEL
 *                                    in quiesce
 *   NO_START_POLL NO_START_LOOK      in start, ours and the other owner's
 *   NO_RESCHEDULE                    after a full budget
 *   NO_RESUME                        after the backend was full
 *   NO_PUBLISH                       before the arm
 *   NO_DEADLINE                      when a window or a hold begins
 *   PUSH_DEADLINE                    a kick restarts the deadline
 *   KEEP_DEADLINE                    a kick's pass does not end the deadline
 *   IDLE_DEADLINE                    a pass that found nothing may hold, too
 *   NO_WINDOW_KICK                   the kick of a full window is ignored
 *   NO_DEADLINE_PASS                 ... or its deadline, or that of a hold
 *   PARK_NEAR                        the event index only one behind
 *   NO_HOLD_PARK                     when a hold begins
 *
 * Limits: split-ring indices, counted modulo M instead of 65536; loads are
 * not reordered (the read barrier between index and entry is outside TSO);
 * one queue; a pass reads the available index once; guest errors and reset
 * are not modelled.
 */

#ifndef R
#define R 2                     /* ring size; divides M */
#endif
#ifndef M
#define M 12                    /* index modulus; > 2 * R + 3 * BUDGET + 1 */
#endif
#ifndef START
#define START 0                 /* first index; near M to cross the wrap */
#endif
#ifndef BATCH
#define BATCH 2                 /* most packets published under one kick */
#endif
#ifndef BUDGET
#define BUDGET 2                /* packets a pass; 1 would never wait */
#endif
#ifndef WIN
#define WIN 2                   /* window of the holding policy, packets */
#endif
#ifndef ROOM
#define ROOM 2                  /* packets the backend takes before "full" */
#endif
#ifdef PACKETS
#define MORE (pub != ADD(START, PACKETS))
#else
#define MORE true               /* the driver goes on for ever */
#endif

#define ADD(a, b)   (((a) + (b)) % M)
#define SUB(a, b)   (((a) + M - (b)) % M)
/* virtio 1.3, 2.7.10: was the event index passed going from old to new? */
#define NEED_EVENT(event, new, old) \
    (SUB(new, ADD(event, 1)) < SUB(new, old))

#ifdef FLAGS
#define EV_NEXT             0   /* flags: kick for every packet */
#define EV_WINDOW(w)        ((w) > 1)   /* parked until the deadline */
#define PARKS(w)            ((w) > 1)
#define EV_PARKED           1   /* flags: NO_NOTIFY */
#define WANTS_KICK(old)     (event == 0)
#else
#define EV_NEXT             seen
#define EV_WINDOW(w)        ADD(seen, (w) - 1)
#define PARKS(w)            false
#ifdef PARK_NEAR
#define EV_PARKED           SUB(seen, 1)
#else
#define EV_PARKED           SUB(seen, R + 1)
#endif
#define WANTS_KICK(old)     NEED_EVENT(event, pub, old)
#endif

#ifdef NO_BARRIER
#define ARM_BARRIER         skip
#else
#define ARM_BARRIER         empty(device_sb)
#endif
#ifdef NO_DISARM_BARRIER
#define DISARM_BARRIER      skip
#else
#define DISARM_BARRIER      empty(device_sb)
#endif
#ifdef NO_DRIVER_BARRIER
#define DRIVER_BARRIER      skip
#else
#define DRIVER_BARRIER      empty(driver_sb)
#endif
#ifdef NO_DEADLINE_PASS
#define DEADLINE_COUNTS     false
#else
#define DEADLINE_COUNTS     (state == ARMED || state == HOLDING)
#endif
#ifdef KEEP_DEADLINE
#define END_DEADLINE        skip
#else
#define END_DEADLINE        timer[me] = false
#endif
#ifdef IDLE_DEADLINE
#define MAY_WAIT            true
#else
#define MAY_WAIT            (popped > 0)
#endif
#ifdef NO_HOLD_PARK
#define HOLD_PARK           skip
#else
#define HOLD_PARK           park()
#endif
#ifdef CROSSED_IS_PARTIAL
#define FULL                (window == 1)
#else
#define FULL                true
#endif
#ifdef NO_RESUME
#define RESUMES             false
#else
#define RESUMES             (room > 0)
#endif
#ifdef NO_PUBLISH
#define PUBLISH_USED \
    if \
    :: popped == BUDGET || state == BLOCKED -> publish_used() \
    :: else \
    fi
#else
#define PUBLISH_USED        publish_used()
#endif
#ifdef NO_RECHECK
#define ARRIVED             0
#else
#define ARRIVED             SUB(avail, seen)
#endif
#ifdef NO_START_LOOK
#define WORK_FOUND          false
#else
#define WORK_FOUND          (avail != seen)
#endif

mtype = { IDLE, ARMED, HOLDING, POLLING, SCHEDULED, FLUSHING, BLOCKED, STOPPED };

/* Memory that driver and device share. */
byte ring[R];                   /* the packet at a position is the position */
byte avail = START;             /* available index as memory has it */
byte event = START;             /* event index, or the flags word */
bool parked;                    /* ghost: that event word came from a park */
byte used = START;              /* used index */
chan driver_sb = [R] of { byte };
chan device_sb = [2] of { byte, bool };
bool kick;                      /* the kick eventfd is readable */

/* The driver's own. */
byte pub = START;               /* published, in program order */
bool at_rest = true;            /* no kick decision is outstanding */

/* The queue: its owner's, or main's while it is stopped. */
mtype state = SCHEDULED;
byte seen = START;              /* next position to pop */
byte window = 1;
byte asked = START;             /* event word in program order */
bool pending;                   /* the backend holds the last popped packet */
bool started = true;
bit owner;
bool bh[2];                     /* flush bottom half scheduled, per context */
bool timer[2];                  /* deadline running, per context */
bool in_vain;                   /* ghost: the last pass was a deadline's, and
                                 * found nothing */

/* The backend. */
byte room = ROOM;
byte sent = START;              /* ghost: next position to go out */

/* Main's. */
bool stop_wanted;
bool owned = true;              /* ghost: somebody must serve the queue */
bool foreign_waits;             /* ghost: an owner that waits for a kick */

/* Names of the properties; never true, so that asserting one reports it. */
bool waits_covered, window_respected, window_has_deadline;
bool deadline_kept, handover_awake, complete_before_rest;
bool owner_only, once_in_order, parked_is_quiet;
bool idle_has_no_timer, hold_is_quiet;

#define CHECK(property, condition) \
    if :: (condition) :: else -> assert(property) fi

/* ---- driver ---------------------------------------------------------- */

inline publish()
{
    ring[pub % R] = pub;
    printf("driver: publishes %d\n", pub);
    pub = ADD(pub, 1);
    driver_sb!pub
}

active proctype driver()
{
    byte old;

end_silent:
    do
#ifdef LIVENESS
    :: break                    /* silent from here on */
#endif
    :: atomic {
            SUB(pub, used) < R && MORE ->
            old = pub;
            at_rest = false;
            publish()
        }
        do
        :: atomic {
                SUB(pub, old) < BATCH && SUB(pub, used) < R && MORE ->
                publish()
            }
        :: break
        od;
        atomic {
            DRIVER_BARRIER;
            printf("driver: reads event word %d\n", event);
#ifndef LAZY_PARK
            CHECK(parked_is_quiet, !(parked && WANTS_KICK(old)));
            CHECK(hold_is_quiet, !(state == HOLDING && started &&
                                   len(device_sb) == 0 && WANTS_KICK(old)));
#endif
            if
            :: WANTS_KICK(old) ->
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

/* ---- device ---------------------------------------------------------- */

active proctype device_stores()
{
end:
    do
    :: atomic {
            device_sb?event, parked;
            printf("memory: event word %d\n", event)
        }
    od
}

/* One packet to a backend that has room. */
inline net_send(position)
{
    CHECK(owner_only, started && owner == me);
    CHECK(once_in_order, ring[(position) % R] == sent);
    printf("device %d: sends %d\n", me, position);
    sent = ADD(sent, 1);
    room--
}

/*
 * One read of the available index, as many packets as it and the budget
 * allow.  A full backend refuses a packet, or takes it and holds it.
 */
inline pop_and_send()
{
    CHECK(owner_only, started && owner == me);
    left = SUB(avail, seen);
    do
    :: left == 0 || popped == BUDGET -> break
    :: left > 0 && popped < BUDGET && room > 0 ->
        net_send(seen);
        seen = ADD(seen, 1);
        left--;
        popped++
    :: left > 0 && popped < BUDGET && room == 0 ->
        state = BLOCKED;
        if
        :: skip
        :: seen = ADD(seen, 1); pending = true
        fi;
        break
    od;
    left = 0
}

/* In order: the held packet is always the last one popped. */
inline publish_used()
{
    used = SUB(seen, pending)
}

/*
 * Stored only if it changes: the driver reads that cache line.  Not every
 * caller can meet both cases, in every variant.
 */
inline set_event(value, from_park)
{
    if
    :: asked == value           /* may be unreached */
    :: else ->                  /* may be unreached */
        asked = value;          /* may be unreached */
        device_sb!asked, from_park      /* may be unreached */
    fi
}

inline park()
{
#ifdef LAZY_PARK
    if
    :: SUB(avail, ADD(asked, 1)) < M / 2    /* passed: silent for long */
    :: else -> set_event(SUB(avail, 1), true)
    fi;
#else
    set_event(EV_PARKED, true);
#endif
    printf("device %d: parks\n", me)
}

inline begin_flush()
{
    state = FLUSHING;
    window = 1;
    park()
}

inline schedule()
{
    END_DEADLINE;
    state = SCHEDULED;
    bh[me] = true
}

inline start_deadline()
{
    CHECK(deadline_kept, !timer[me]);
    CHECK(idle_has_no_timer, !in_vain);
#ifndef NO_DEADLINE
    timer[me] = true
#endif
}

inline hold()
{
    HOLD_PARK;
    state = HOLDING;
    start_deadline()
}

/* A packet is there: look soon, or wait for more to come (a delay). */
inline work()
{
    in_vain = false;
    window = 1;
    if
    :: true -> schedule()
    :: true -> hold()           /* or its first "else" would be this "if"s */
    fi
}

inline stop()
{
    started = false;
    window = 1;
#ifndef NO_DRAIN_BH
    bh[me] = false;
#endif
#ifndef NO_DRAIN_TIMER
    timer[me] = false;
#endif
#ifndef NO_CANCEL
    seen = SUB(seen, pending);
    pending = false;
#endif
    publish_used();
#ifndef NO_DISARM
    set_event(EV_NEXT, false);
#endif
    printf("device %d: quiesces, seen %d\n", me, seen)
}

inline rest()
{
    popped = 0;
    goto end_sleep
}

inline arm(w)
{
    window = w;
    set_event(EV_WINDOW(w), PARKS(w));
    printf("device %d: arms for %d, seen %d\n", me, w, seen)
}

proctype queue_context(bit me)
{
    byte popped;                /* packets of this pass */
    byte left;

end_sleep:
    do
    :: atomic { stop_wanted && owner == me -> stop(); goto quiesce }
    :: atomic {
            kick && started && owner == me ->
            kick = false;
            printf("device %d: takes the kick\n", me);
            if
            :: state == IDLE || state == POLLING -> work()
#ifndef NO_WINDOW_KICK
            :: state == ARMED -> in_vain = false; schedule()
#endif
#ifdef PUSH_DEADLINE
            :: state == HOLDING -> hold()
#endif
            :: else
            fi
        }
    :: atomic {
            timer[me] ->
            timer[me] = false;
            printf("device %d: deadline\n", me);
            CHECK(owner_only, started && owner == me);
            if
            :: DEADLINE_COUNTS -> in_vain = true; schedule()
            :: else             /* may be unreached */
            fi
        }
    :: atomic {
            bh[me] ->
            bh[me] = false;
            CHECK(owner_only, started && owner == me);
            begin_flush();
            break
        }
    :: atomic {
            state == BLOCKED && owner == me && RESUMES ->
            printf("device %d: backend is ready\n", me);
            if
            :: pending -> net_send(SUB(seen, 1)); pending = false
            :: else
            fi;
            schedule()
        }
    :: atomic { state == IDLE && owner == me -> park(); state = POLLING }
    :: atomic {
            state == POLLING && owner == me ->
            if
            :: avail != seen -> work()
            :: state = FLUSHING; arm(1); goto armed
            fi
        }
    od;

    /* Whatever woke it: one flush, and the stop reason decides. */
#define RING_EMPTY  (state != BLOCKED && popped < BUDGET)
    atomic {
        pop_and_send();
        PUBLISH_USED;
        in_vain = in_vain && popped == 0;
        if
        :: state == BLOCKED -> rest()
        :: state != BLOCKED && popped == BUDGET ->
#ifdef NO_RESCHEDULE
            set_event(EV_NEXT, false);
            state = IDLE;
#else
            schedule();
#endif
            rest()
        /* Any policy, but an idle queue drops its window. */
        :: RING_EMPTY -> arm(1)
        :: RING_EMPTY && MAY_WAIT -> arm(WIN)
        :: RING_EMPTY && MAY_WAIT -> hold(); rest()
        fi
    }

armed:
    atomic {
        ARM_BARRIER;
        if
        :: ARRIVED >= window && FULL -> work()          /* CROSSED */
        :: ARRIVED == 0 && window == 1 -> state = IDLE  /* EMPTY */
        :: window > 1 && (ARRIVED < window || !FULL) -> /* EMPTY, PARTIAL */
            state = ARMED;
            start_deadline()
        fi;
        rest()
    }

quiesce:
    atomic {
        DISARM_BARRIER;
        state = STOPPED;
        stop_wanted = false;
        rest()
    }
}

/* The environment's one promise: the backend drains again. */
active proctype peer()
{
end:
    do
    :: room < ROOM -> room++
    od
}

/* ---- main context ---------------------------------------------------- */

init
{
    atomic {
        bh[0] = true;
        run queue_context(0);
        run queue_context(1)
    }
    do
#ifdef LIVENESS
    :: break                    /* keep this owner for good */
#endif
    :: atomic { owned = false; stop_wanted = true }
        !stop_wanted;
        /* Stopped: the driver may publish, and kick nobody, as it likes. */
        atomic {
            if
            :: owner = 1 - owner
            :: skip
            fi;
            seen = used;        /* an owner is told one index, not two */
            owned = true;
            if
            :: kick = false     /* gone with the old eventfd */
            :: foreign_waits = !WORK_FOUND
            fi
        }
end_foreign:
        /* vhost-user: a ring may be started by a look and its first kick */
        atomic {
            !foreign_waits || kick ->
            foreign_waits = false;
            started = true;
#ifdef NO_START_POLL
            state = IDLE;
#else
            state = SCHEDULED;
            bh[owner] = true;
#endif
            printf("main: starts context %d\n", owner)
        }
    od
}

/* ---- properties ------------------------------------------------------ */

/* Published, the kick decided against or used up, and not popped. */
#define UNANNOUNCED (at_rest && pub != seen && !kick)

#ifndef LIVENESS
active proctype monitor()
{
end:
    do
    :: started && state == IDLE && UNANNOUNCED -> assert(waits_covered)
#ifndef FLAGS
    :: started && state == ARMED && UNANNOUNCED &&
       SUB(pub, seen) >= window -> assert(window_respected)
#endif
    :: started && (state == ARMED || state == HOLDING) && !timer[owner] ->
        assert(window_has_deadline)
    :: started && state != ARMED && state != HOLDING && timer[owner] ->
        assert(idle_has_no_timer)
    :: foreign_waits && UNANNOUNCED -> assert(handover_awake)
    :: (state == IDLE || state == ARMED || state == HOLDING ||
        state == STOPPED) && used != sent -> assert(complete_before_rest)
    od
}
#endif

#ifdef LIVENESS
#define odd     (sent % 2 == 1)
#define due     (pub != sent)
ltl delivered {
    [] ((due && odd) -> <> (!odd || !owned)) &&
    [] ((due && !odd) -> <> (odd || !owned))
}
#endif
