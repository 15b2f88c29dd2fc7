/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * tx=adaptive: a notification window that follows the load.
 *
 * What a queue's driver is asked for is a *setting*, one at a time:
 *
 *   KICK     a kick at the next packet.  Lowest latency, and for a driver that
 *            sends one packet at a time the only sensible one.
 *   WINDOW   a kick at the W-th packet, or a deadline, whichever is first.  W
 *            is what arrives well within the deadline.
 *   DELAY    a kick at the next packet, and from there some time until the
 *            pass, for more to come or for this one to grow.
 *   HOLD     no kick, a pass some time after the last one.
 *
 * DELAY and HOLD come in several lengths, up to all that tx-latency allows.
 * Which one is best for this driver is not guessed but compared: see
 * virtio-net-tx-adaptive.c.
 *
 * Queues of one thread form a group: one compares at a time, and what it does
 * to the others counts.
 *
 * Pure decisions; no call reads a clock or touches a ring.  Owner of the
 * queue.
 */
#ifndef HW_NET_VIRTIO_NET_TX_ADAPTIVE_H
#define HW_NET_VIRTIO_NET_TX_ADAPTIVE_H

#include <stddef.h>

#include "hw/net/virtio-net-tx-compare.h"

typedef struct TxPass TxPass;       /* virtio-net-tx-policy.h */

typedef enum TxKind {
    TX_KIND_KICK,
    TX_KIND_WINDOW,
    TX_KIND_DELAY,
    TX_KIND_HOLD,
} TxKind;

/* Lengths of DELAY and HOLD. */
#define TX_STEPS 8

typedef struct TxSetting {
    TxKind kind;
    uint8_t step;           /* DELAY, HOLD: 0, the shortest, .. TX_STEPS - 1 */
} TxSetting;

/* Settings, as indices. */
#define TX_SETTINGS (4 * TX_STEPS)

/* What a comparison is at. */
typedef enum TxTurn {
    TX_TURN_NONE,           /* there is none */
    TX_TURN_FIRST,          /* the setting, before any challenger */
    TX_TURN_CHALLENGER,
    TX_TURN_SETTING,
} TxTurn;

typedef struct TxAdaptive TxAdaptive;

/* The queues of one thread; zero-initialised. */
typedef struct TxGroup {
    TxAdaptive *first;
    TxAdaptive *comparing;  /* or NULL */
} TxGroup;

struct TxAdaptive {
    /* set at creation */
    int64_t latency_ns;     /* the most that may be added to a packet */

    /* while started */
    TxGroup *group;
    TxAdaptive *next;
    unsigned ring_size;

    /* what is in force */
    TxSetting setting;      /* the best known */
    unsigned candidate;     /* the next challenger, as an index */
    bool is_open_loop;      /* kicks: a long delay carried as much */

    /* the comparison */
    TxTurn turn;
    TxSetting challenger;
    TxComparison cmp;
    TxComparison open[TX_SETTINGS];     /* those that told nothing so far */
    uint64_t before_rate;   /* of the setting, before the challenger */
    uint64_t rate;          /* of the challenger */
    int64_t trial_ns;       /* ... and how long it was in force */

    /* as somebody else's neighbour */
    uint64_t total;         /* all work */
    uint64_t mark;          /* ... at the begin of his window */
    uint64_t was_rate, is_rate;

    /* how much the rate changes by itself */
    uint64_t last_rate[2];  /* of the windows before, 0: they do not count */
    int64_t variance;

    /* what a wake-up by a deadline takes beyond it */
    int64_t late_ns;
    bool was_fired;         /* in this window */

    /* this window of measurement */
    int64_t begin_ns;       /* after the settling time of a switch */
    uint64_t packets, descs, lone, work;
    uint64_t peer_work;     /* the peer's counter at begin_ns */
    bool is_settling;
    uint32_t dither;        /* a random number for its length */

    /* the last complete window */
    int64_t gap_ns;         /* between packets */
    unsigned descs_16;      /* descriptors per packet, in 1/16 */
    unsigned window;        /* WINDOW: what came of it */

    /* others beside a stream */
    unsigned company;       /* how many windows of late had some */
    bool has_company;

    /* WINDOW: how many deadlines there were */
    unsigned arms, fires;
    unsigned spare_4;       /* room for scatter, in 1/4 of its root */

    /* the load that the setting was chosen for */
    uint64_t known_rate;
    unsigned strange;       /* windows in a row unlike it */
    unsigned slow;          /* windows in a row that are no load */
    int64_t retry_ns;       /* no comparison before */
    int64_t backoff_ns;
    int64_t credit_ns;      /* what comparisons may still cost */
};

/* tx_adaptive_init: @latency_ns is tx-latency. */
void tx_adaptive_init(TxAdaptive *a, int64_t latency_ns);

/*
 * tx_adaptive_start: a driver sends through a ring of @ring_size entries from
 * now on, and nothing is known of it.  @group: that of the queue's thread.
 */
void tx_adaptive_start(TxAdaptive *a, unsigned ring_size, TxGroup *group);

/* tx_adaptive_stop: leave the group.  Idempotent. */
void tx_adaptive_stop(TxAdaptive *a);

/* tx_adaptive_note: a pass has ended. */
void tx_adaptive_note(TxAdaptive *a, const TxPass *pass);

/*
 * tx_adaptive_is_due: a window of measurement is over.  The caller then calls
 * tx_adaptive_judge(), with @peer_work: all bytes the pair has received so
 * far; what the queue's driver does may show there.
 *
 * tx_adaptive_judge() may put another setting in force.
 */
bool tx_adaptive_is_due(const TxAdaptive *a, int64_t now_ns);
void tx_adaptive_judge(TxAdaptive *a, int64_t now_ns, uint64_t peer_work);

/*
 * tx_adaptive_fit: how many packets are there before the deadline, nearly
 * always, at the rate of the last window of measurement.  Divides: for the end
 * of a window, not for each pass.
 */
unsigned tx_adaptive_fit(const TxAdaptive *a);

/* tx_adaptive_armed: the driver was asked for a window of more than 1. */
void tx_adaptive_armed(TxAdaptive *a);

/*
 * tx_adaptive_fired: a deadline was served @late_ns after its time.
 * @armed: that of a window, before it was full
 */
void tx_adaptive_fired(TxAdaptive *a, int64_t late_ns, bool armed);

/* tx_adaptive_in_force: possibly a challenger. */
TxSetting tx_adaptive_in_force(const TxAdaptive *a);

/*
 * What that comes to now: its kind, its length if it has a deadline, its window
 * in packets if that is its kind (else 1).
 */
TxKind tx_adaptive_kind(const TxAdaptive *a);
int64_t tx_adaptive_wait_ns(const TxAdaptive *a);
unsigned tx_adaptive_window(const TxAdaptive *a);

#endif /* HW_NET_VIRTIO_NET_TX_ADAPTIVE_H */
