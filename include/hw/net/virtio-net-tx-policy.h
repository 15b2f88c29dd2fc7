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

/* Why a pass over the ring ended. */
typedef enum TxStop {
    TX_STOP_RING_EMPTY,     /* everything published was taken */
    TX_STOP_BUDGET,         /* more is there; others get their turn first */
    TX_STOP_BACKEND_FULL,   /* the backend, or completions, will wake us */
    TX_STOP_GUEST_ERROR,    /* the ring is broken */
} TxStop;

typedef enum TxAction {
    TX_FLUSH,               /* run a pass soon, kicks stay off */
    TX_HOLD,                /* kicks stay off until the deadline's pass */
    TX_ARM,                 /* ask for a kick at the next packet */
} TxAction;

typedef struct TxDecision {
    TxAction action;
    int64_t deadline_ns;    /* TX_HOLD */
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
} TxPolicy;

/*
 * tx_policy_restart: whoever sends through the ring from now on, nothing is
 * known of them.
 */
void tx_policy_restart(TxPolicy *p);

/*
 * tx_policy_note: a pass of @packets and @bytes has ended, for whatever
 * @reason.  To be called once per pass, before tx_policy_flushed().
 */
void tx_policy_note(TxPolicy *p, int64_t now_ns, unsigned packets,
                    size_t bytes, TxStop reason);

/*
 * tx_policy_work: a packet is there: the driver kicked, or published while
 * we armed.
 *
 * Returns TX_FLUSH or TX_HOLD.
 */
TxDecision tx_policy_work(const TxPolicy *p, int64_t now_ns);

/*
 * tx_policy_flushed: a pass of @packets ended with RING_EMPTY or BUDGET; the
 * other reasons leave nothing to decide.
 *
 * Returns TX_FLUSH for BUDGET only, and TX_ARM for every pass that found
 * nothing: an idle queue has no deadline.
 */
TxDecision tx_policy_flushed(const TxPolicy *p, int64_t now_ns,
                             unsigned packets, TxStop reason);

#endif /* HW_NET_VIRTIO_NET_TX_POLICY_H */
