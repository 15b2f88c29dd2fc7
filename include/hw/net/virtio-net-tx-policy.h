/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Transmit policy: when to look at the ring, as pure decisions over a history.
 *
 * The transmit machine (virtio-net-tx.c) tells a policy what happened and
 * does what it decides.  A policy reads no clock, touches no ring and keeps
 * its history in its own struct, so it can be run against a simulated guest.
 * Called by the owner of the queue.
 */
#ifndef HW_NET_VIRTIO_NET_TX_POLICY_H
#define HW_NET_VIRTIO_NET_TX_POLICY_H

#include <stddef.h>
#include <stdint.h>

#include "hw/net/virtio-net-conf.h"
#include "hw/net/virtio-net-tx-adaptive.h"

/* Why a pass over the ring ended. */
typedef enum TxStop {
    TX_STOP_RING_EMPTY,     /* everything published was taken */
    TX_STOP_BUDGET,         /* more is there; others get their turn first */
    TX_STOP_BACKEND_FULL,   /* the backend, or completions, will wake us */
    TX_STOP_GUEST_ERROR,    /* the ring is broken */
} TxStop;

/* What a pass has found. */
struct TxPass {
    unsigned packets;
    unsigned descs;         /* that they occupied in the ring */
    unsigned lone;          /* packets that may be all their sender has */
    size_t bytes;
    TxStop reason;
};

typedef enum TxAction {
    TX_FLUSH,               /* run a pass soon, kicks stay off */
    TX_HOLD,                /* kicks stay off until the deadline's pass */
    TX_ARM,                 /* ask for a kick at the window-th packet */
} TxAction;

typedef struct TxDecision {
    TxAction action;
    unsigned window;        /* TX_ARM; above 1 only with a deadline */
    int64_t deadline_ns;    /* TX_HOLD; TX_ARM: INT64_MAX = none */
} TxDecision;

/* tx=bh: how the next packet is learned of, window by window. */
typedef enum TxPhase {
    TX_PHASE_KICK,          /* by a kick */
    TX_PHASE_TRIAL,         /* by holds: does more come? */
    TX_PHASE_CHECK,         /* by a kick: was that why? */
    TX_PHASE_HOLD,          /* by holds, since it was */
} TxPhase;

typedef struct TxPace {
    TxPhase phase;
    uint64_t packets;       /* of this window */
    uint64_t passes;        /* ... that emptied the ring */
    uint64_t work;          /* ... bytes, and a constant per packet */
    int64_t window_ns;      /* its begin */
    uint64_t kick_rate;     /* work per second of the last one with kicks */
    uint64_t hold_rate;     /* ... with holds, when these were judged */
    int64_t hold_end_ns;    /* TX_PHASE_HOLD: kicks are tried again then */
    int64_t retry_ns;       /* no trial before */
    int64_t backoff_ns;     /* what a trial in vain adds to that */
} TxPace;

typedef struct TxPolicy {
    VirtIONetTxMode mode;
    int64_t timer_ns;       /* tx=timer: from the first packet to the pass */
    int64_t hold_ns;        /* tx=bh: one hold; 0: never */
    TxPace pace;            /* tx=bh */
    TxAdaptive adaptive;    /* tx=adaptive */
    bool kicks_only;        /* the context polls: neither holds nor windows */
} TxPolicy;

/*
 * tx_policy_init: a policy of mode conf->tx.
 * @polls: the queue's context polls, so that it needs no kicks, and a hold
 *         would keep it from looking
 */
void tx_policy_init(TxPolicy *p, const VirtIONetConf *conf, bool polls);

/*
 * tx_policy_start: whoever sends through the ring, of @ring_size entries, from
 * now on, nothing is known of them.  @group: that of the queue's context.
 * tx_policy_stop: the ring is served no more.  Idempotent.
 */
void tx_policy_start(TxPolicy *p, unsigned ring_size, TxGroup *group);
void tx_policy_stop(TxPolicy *p);

/*
 * tx_policy_note: a pass has ended, for whatever reason.  To be called once
 * per pass, before tx_policy_flushed().
 *
 * Returns true if tx_policy_judge() is to be called now, with the bytes that
 * the queue's pair has received so far.
 */
bool tx_policy_note(TxPolicy *p, int64_t now_ns, const TxPass *pass);

void tx_policy_judge(TxPolicy *p, int64_t now_ns, uint64_t received_bytes);

/*
 * tx_policy_phase: what is in force, as a number for traces.  tx=bh: a
 * TxPhase.  tx=adaptive: TX_STEPS * kind + step.
 */
unsigned tx_policy_phase(const TxPolicy *p);

/* tx_policy_armed: the driver was asked for a window of more than 1. */
void tx_policy_armed(TxPolicy *p);

/*
 * tx_policy_fired: a deadline was served @late_ns after its time.
 * @armed: that of a window, before it was full
 */
void tx_policy_fired(TxPolicy *p, int64_t late_ns, bool armed);

/*
 * tx_policy_work: a packet is there: the driver kicked, or published while
 * we armed.
 *
 * Returns TX_FLUSH or TX_HOLD.
 */
TxDecision tx_policy_work(const TxPolicy *p, int64_t now_ns);

/*
 * tx_policy_flushed: @pass ended with RING_EMPTY or BUDGET; the other reasons
 * leave nothing to decide.
 *
 * Returns TX_FLUSH for BUDGET only, and TX_ARM with a window of 1 and no
 * deadline for every pass that found nothing: an idle queue has no timer.
 */
TxDecision tx_policy_flushed(const TxPolicy *p, int64_t now_ns,
                             const TxPass *pass);

#endif /* HW_NET_VIRTIO_NET_TX_POLICY_H */
