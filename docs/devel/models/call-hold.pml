/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Transmit completions: publish at once, call later.
 *
 * Purpose: search every interleaving of a driver that sleeps until completions
 * arrive (ring full, socket buffer full) and a device that publishes the used
 * index at once but holds the call until so many frames have gathered or a
 * deadline passes, while main hands the queue to another context or, with
 * -DSWAP, the front-end replaces the call eventfd.
 *
 * The call is judged when it is sent: one comparison of the driver's
 * used_event against all that was published since the last judgement
 * (virtio 1.3, 2.7.7.1).  A context that just got the queue has no last
 * judgement and calls once.
 *
 * A deadline may be put off if the driver asked anew, and so has looked, since
 * the one before: age is not in the model, but what is put off again and again
 * was young each time.  It may be put off once without that, for a driver that
 * was called for its other ring and may be on its way to look.
 *
 * Memory: x86 (TSO); both sides' index stores pass through a FIFO store
 * buffer, a full barrier waits until the own buffer is empty.  The available
 * index is plain here: its races are those of tx-window.pml.
 *
 * What must hold, by the name that a violation reports:
 *   driver_woken     a driver whose window has been completed does not sleep
 *                    while the device rests without a call or a deadline,
 *                    started, stopped or between two owners
 *   hold_bounded     at most FRAMES - 1 completions stay without judgement
 *   owner_only       a context that does not own the queue completes nothing
 *                    and calls nobody
 *   ltl woken        a sleeping driver wakes, unless the queue or its call
 *                    eventfd changes hands (weak fairness for each process)
 *
 * Taking a rule out (each must make a property fail):
 *   NO_BARRIER NO_DRIVER_BARRIER NO_DRIVER_RECHECK
 *   NO_REJUDGE       send what was decided when the hold began
 *   LAST_AT_PUBLISH  judge against the last publication, not the last call
 *   STALE_LAST       a new owner trusts its judgement from an earlier turn
 *   NO_FLUSH         quiesce drops the held call
 *   NO_DEADLINE      only the number of frames ends a hold
 *   ALWAYS_PUT_OFF   a deadline is put off as if the driver had asked anew
 *   ALWAYS_LATE      ... though it has not, again and again
 *   NO_SWAP_WAIT     the front-end does not wait until a new call fd is in use
 *
 * Limits: indices modulo M instead of 65536; the byte limit is one more reason
 * to end a hold early and is covered by the choice to do so at any time.
 */

#ifndef R
#define R 2                     /* ring size */
#endif
#ifndef M
#define M 8                     /* index modulus; more than R + FRAMES */
#endif
#ifndef FRAMES
#define FRAMES 3                /* completions that end a hold */
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
#ifdef NO_DRIVER_RECHECK
#define COMPLETED           0
#else
#define COMPLETED           SUB(used, last)
#endif
#define JUDGE \
    (!judged[me] || NEED_EVENT(used_event, done, old[me]))
#ifdef ALWAYS_PUT_OFF
#define YOUNG               true
#else
#define YOUNG               young
#endif
#ifdef ALWAYS_LATE
#define NOT_YET_LATE        true
#else
#define NOT_YET_LATE        !late
#endif
#ifdef NO_REJUDGE
#define CALL_WANTED         verdict
#else
#define CALL_WANTED         JUDGE
#endif

/* Memory that driver and device share. */
byte avail;                     /* available index */
byte used;                      /* used index as memory has it */
byte used_event;
chan device_sb = [2] of { byte };
chan driver_sb = [1] of { byte };
bool callfd[2];                 /* the call eventfds, readable or not */
bit listens;                    /* the one that raises the interrupt */

/* The driver's own. */
byte last;                      /* completions it has seen */
byte window;                    /* ghost: it sleeps until so many arrived */
bool asleep;

/* The queue's, in the hands of its owner. */
byte done;                      /* used index in program order */
byte frames;                    /* completions held without a judgement */
bool verdict;                   /* NO_REJUDGE: what the hold began with */
byte asked;                     /* used_event when that was last looked at */
bool young;                     /* it had changed, since the last deadline */
bool late;                      /* put off, though it had not */
bool deciding;                  /* ghost: published, not yet held or judged */
bit calls;                      /* the call eventfd in use */
bool started = true;
bit owner;

/* Each context's own memory of the queue. */
bool timer[2];                  /* deadline of the held call */
byte old[2];                    /* used index of the last judgement */
bool judged[2];                 /* old[] means something */

/* Main's. */
bool stop_wanted, swap_wanted;
bool swapping;                  /* ghost: an old eventfd is still looked at */
bool owned = true;              /* ghost: somebody must serve the queue */

/* Names of the properties; never true, so that asserting one reports it. */
bool driver_woken, hold_bounded, owner_only;

#define CHECK(property, condition) \
    if :: (condition) :: else -> assert(property) fi

/* ---- driver ---------------------------------------------------------- */

active proctype driver()
{
end_silent:
    do
#ifdef LIVENESS
    :: break                    /* silent from here on */
#endif
    :: atomic {
            SUB(avail, last) < R ->
            printf("driver: publishes %d\n", avail);
            avail = ADD(avail, 1)
        }
    :: atomic { used != last -> last = used }   /* reclaims as it likes */
    :: atomic { callfd[listens] -> callfd[listens] = false }
    /* Sleep until all, or only the next, of what is out has come back. */
    :: atomic {
            avail != last ->
            if
            :: window = 1
            :: SUB(avail, last) > 1 -> window = SUB(avail, last)
            fi;
            driver_sb!ADD(last, window - 1);
            printf("driver: used_event %d\n", ADD(last, window - 1))
        }
        atomic {
            DRIVER_BARRIER;
            if
            :: COMPLETED < window ->
                asleep = true;
                printf("driver: sleeps, has seen %d\n", last)
            :: else -> window = 0
            fi
        }
        atomic {
            !asleep || callfd[listens] ->
            if
            :: asleep ->
                callfd[listens] = false;
                printf("driver: woken\n")
            :: else
            fi;
            asleep = false;
            window = 0
        }
    od
}

active proctype driver_stores()
{
end:
    do
    :: atomic {
            driver_sb?used_event;
            printf("memory: used_event %d\n", used_event)
        }
    od
}

/* ---- device ---------------------------------------------------------- */

active proctype device_stores()
{
end:
    do
    :: atomic { device_sb?used; printf("memory: used index %d\n", used) }
    od
}

/* Any number of packets went out: publish at once. */
inline complete()
{
    CHECK(owner_only, started && owner == me);
    deciding = true;
    if
    :: first = (frames == 0); done = ADD(done, 1); frames++
    :: SUB(avail, done) > 1 && frames + 2 <= FRAMES ->
        first = (frames == 0);
        done = ADD(done, 2);
        frames = frames + 2
    fi;
    device_sb!done;
    printf("device %d: publishes used %d\n", me, done)
}

inline hold()
{
#ifdef LAST_AT_PUBLISH
    old[me] = done;
#endif
    if
    :: used_event != asked ->
        asked = used_event;
        young = true;
        late = false
    :: else
    fi;
#ifndef NO_DEADLINE
    timer[me] = true;
#endif
    printf("device %d: holds the call\n", me);
    deciding = false
}

/* The last word on everything published so far; drops a hold. */
inline judge()
{
    if
    :: CALL_WANTED ->
        callfd[calls] = true;
        printf("device %d: calls\n", me)
    :: else -> printf("device %d: need not call\n", me)
    fi;
    old[me] = done;
    judged[me] = true;
    frames = 0;
    verdict = false;
    young = false;
    late = false;
    asked = 0;
    timer[me] = false;
    deciding = false
}

proctype queue_context(bit me)
{
    bool first;                 /* these completions begin a hold */

end_sleep:
    do
    :: atomic { started && owner == me && avail != done -> complete() }
        atomic {
            BARRIER;
            if
            :: first -> verdict = JUDGE; first = false
            :: else
            fi;
            if
            :: judge()                  /* a limit, or nobody asked */
            :: frames < FRAMES -> hold()
            fi
        }
    :: atomic {
            timer[me] ->
            CHECK(owner_only, started && owner == me);
            deciding = true;
            timer[me] = false;
            printf("device %d: deadline of the call\n", me)
        }
        atomic {
            BARRIER;
            if
            :: CALL_WANTED && YOUNG ->
                young = false;
                timer[me] = true;
                printf("device %d: puts the deadline off\n", me);
                deciding = false
            :: CALL_WANTED && NOT_YET_LATE ->
                late = true;
                timer[me] = true;
                printf("device %d: gives the driver time\n", me);
                deciding = false
            :: true -> judge()
            fi
        }
#ifdef SWAP
    :: atomic {
            swap_wanted && owner == me ->
            calls = 1 - calls;
            swap_wanted = false;
            printf("device %d: call eventfd %d\n", me, calls)
        }
#else
    :: atomic {
            stop_wanted && owner == me ->
            started = false;
            deciding = true;
            printf("device %d: quiesces, used %d\n", me, done)
        }
        atomic {
            BARRIER;
#ifdef NO_FLUSH
            frames = 0;
            timer[me] = false;
            deciding = false;
#else
            if
            :: frames > 0 -> judge()    /* only what is held */
            :: else -> deciding = false
            fi;
#endif
#ifndef STALE_LAST
            judged[me] = false;
            old[me] = 0;
#endif
            stop_wanted = false
        }
#endif
    od
}

/* ---- main context and front-end -------------------------------------- */

init
{
    atomic {
        run queue_context(0);
        run queue_context(1)
    }
    do
#ifdef LIVENESS
    :: break                    /* keep this owner for good */
#endif
#ifndef SWAP
    :: atomic { owned = false; stop_wanted = true }
        !stop_wanted;
        atomic {
            if
            :: owner = 1 - owner
            :: skip
            fi;
            started = true;
            owned = true;
            printf("main: starts context %d\n", owner)
        }
#else
    :: atomic { swap_wanted = true; swapping = true }
#ifndef NO_SWAP_WAIT
        !swap_wanted;
#endif
        atomic {
            listens = 1 - listens;
            printf("front-end: listens to %d\n", listens)
        }
        /* What the old one still holds is delivered once more. */
        atomic {
            if
            :: callfd[1 - listens] ->
                callfd[1 - listens] = false;
                callfd[listens] = true
            :: else
            fi;
            swapping = false
        }
        !swap_wanted
#endif
    od
}

/* ---- properties ------------------------------------------------------ */

#define CALL_ON_ITS_WAY \
    (callfd[listens] || (swapping && callfd[1 - listens]))

#ifndef LIVENESS
active proctype monitor()
{
end:
    do
    :: asleep && SUB(done, last) >= window && !CALL_ON_ITS_WAY &&
       !deciding && !timer[0] && !timer[1] -> assert(driver_woken)
    :: frames >= FRAMES && !deciding -> assert(hold_bounded)
    od
}
#endif

#ifdef LIVENESS
ltl woken { [] (asleep -> <> (!asleep || !owned || swapping)) }
#endif
