/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Transmit policy: when to look at the ring, as pure decisions.
 *
 * The transmit machine (virtio-net-tx.c) tells a policy what happened and
 * does what it decides.  A policy reads no clock, touches no ring and keeps
 * its history in its own struct, so it can be run against a simulated guest.
 */
#ifndef HW_NET_VIRTIO_NET_TX_POLICY_H
#define HW_NET_VIRTIO_NET_TX_POLICY_H

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

typedef struct TxPolicy {
    VirtIONetTxMode mode;
    int64_t timer_ns;       /* tx=timer: from the first packet to the pass */
} TxPolicy;

/* A packet is there: the driver kicked, or published while we armed. */
TxDecision tx_policy_work(const TxPolicy *p, int64_t now_ns);

/*
 * A pass ended with RING_EMPTY or BUDGET.  The other reasons leave nothing to
 * decide.
 */
TxDecision tx_policy_flushed(const TxPolicy *p, int64_t now_ns,
                             unsigned packets, TxStop reason);

#endif /* HW_NET_VIRTIO_NET_TX_POLICY_H */
