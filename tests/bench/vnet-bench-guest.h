/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A guest in real time: one virtual CPU, which is a thread, a network stack in
 * outline, and a driver for one NIC with the habits of Linux's: transmit NAPI,
 * calls asked for at three quarters of what is out, a queue that stops at fewer
 * than 19 free descriptors, completions taken back by whoever comes by.
 *
 * What uses the stack is a flow (vnet-bench-loads.c): a state machine, run when
 * it is due.  The CPU runs one of the flows that are due, in turn, takes
 * interrupts in between, within some microseconds, and halts if there is
 * nothing to do.  What things cost is spent by spinning.  It is what a thing
 * costs at the least: a kick's system call is part of the kick.
 *
 * A guest may also be the peer at the other end of a wire: it then answers.
 */
#ifndef TESTS_BENCH_VNET_BENCH_GUEST_H
#define TESTS_BENCH_VNET_BENCH_GUEST_H

#include "vnet-bench-nic.h"

#define BENCH_NEVER     INT64_MAX
#define BENCH_NO_LIMIT  UINT64_MAX
#define BENCH_QDISC     1024            /* packets */

typedef struct BenchGuest BenchGuest;
typedef struct BenchFlow BenchFlow;

/* Nanoseconds of the guest's CPU. */
typedef struct BenchCosts {
    int64_t kick;
    int64_t irq;
    int64_t packet;             /* through the stack, either way */
    int64_t kib;                /* 1024 bytes written by an application */
} BenchCosts;

/* When the stack gets back what was sent. */
typedef enum BenchCompletions {
    BENCH_NAPI,                 /* when it is done, told by interrupts */
    BENCH_ORPHAN,               /* at once; no interrupt unless it is full */
} BenchCompletions;

/* Callbacks run on the guest's CPU. */
typedef struct BenchFlowOps {
    /* It is due: do one thing, and set due_ns. */
    void (*run)(BenchFlow *f, int64_t now_ns);
    /* Packets of it were freed.  Or NULL. */
    void (*freed)(BenchFlow *f);
    /* A frame for it arrived.  Or NULL. */
    void (*received)(BenchFlow *f, const BenchFrame *in);
} BenchFlowOps;

struct BenchFlow {
    const BenchFlowOps *ops;
    BenchGuest *g;
    unsigned id;
    int64_t due_ns;             /* BENCH_NEVER: it waits for something else */

    /* the stack's view */
    unsigned queued_pkts;       /* sent and not freed, qdisc included */
    bool was_freed;
    uint32_t seq;

    /* parameters; what they mean is the flow's */
    uint32_t bytes, answer_bytes;
    unsigned limit;
    unsigned burst;
    int64_t gap_ns;
    bool random;

    /* its state */
    uint32_t unwritten;         /* of the write that goes on */
    uint64_t backlog;           /* bytes written and not sent */
    uint64_t sent, acked;       /* bytes of the stream */
};

/* What happened since a measurement began. */
typedef struct BenchCounts {
    int64_t began_ns, ended_ns;
    uint64_t sent;              /* given to the ring */
    uint64_t done, done_bytes;  /* taken back */
    uint64_t refused;           /* the stack had no room */
    uint64_t received, received_bytes;
    uint64_t kicks;             /* of the transmit ring */
    uint64_t calls[BENCH_RINGS];        /* sent by the device */
    uint64_t rounds;
    int64_t delivered_ns, gap_ns;       /* last delivery; the longest gap */
} BenchCounts;

typedef enum BenchPhase {
    BENCH_WARM_UP, BENCH_MEASURE, BENCH_STOP,
} BenchPhase;

struct BenchGuest {
    /* set before it starts */
    BenchNic *nic;
    BenchCosts costs;
    BenchCompletions completions;
    GPtrArray *flows;           /* owned */
    uint64_t budget;            /* packets to send; or BENCH_NO_LIMIT */
    uint64_t expected;          /* frames to come; or BENCH_NO_LIMIT */
    bool is_peer;

    /* main writes, atomic */
    BenchPhase phase;

    /* the CPU writes, atomic: all that was to be sent and to come is done */
    bool is_finished;

    /* the CPU's; others when it has stopped */
    BenchPhase seen;
    int64_t look_ns;            /* interrupts are looked for from then on */
    bool stopped;               /* the queue */
    struct BenchQueued {
        BenchFlow *flow;
        BenchFrame frame;
        uint32_t bytes;
    } qdisc[BENCH_QDISC];
    unsigned qdisc_head, qdisc_len;
    BenchFlow *published[VIRTQUEUE_MAX_SIZE];
    uint32_t published_bytes[VIRTQUEUE_MAX_SIZE];
    unsigned turn;
    GRand *rand;
    BenchPeer peer;             /* what has come in */
    BenchCounts count;
    GArray *round_ns;           /* each round trip, uint32_t */
    GArray *delay_ns;           /* each tick's way in, uint32_t */

    GThread *thread;
};

/* bench_guest_new: @nic is taken over.  @seed decides its random choices. */
BenchGuest *bench_guest_new(BenchNic *nic, const BenchCosts *costs,
                            BenchCompletions completions, uint32_t seed);
void bench_guest_free(BenchGuest *g);

/* bench_guest_add: a flow of @ops, due at once. */
BenchFlow *bench_guest_add(BenchGuest *g, const BenchFlowOps *ops);

/* bench_guest_start, _stop: its thread.  Main; stopping waits for it. */
void bench_guest_start(BenchGuest *g);
void bench_guest_stop(BenchGuest *g);

/* bench_guest_measure: count from now on.  Main. */
void bench_guest_measure(BenchGuest *g);

/* bench_guest_finished: what it had to send and to receive is done.  Main. */
bool bench_guest_finished(const BenchGuest *g);

/* ---- for flows, on the guest's CPU ----------------------------------- */

/* bench_spend: let @ns pass. */
void bench_spend(int64_t ns);

/* bench_spend_write: an application writes @bytes. */
void bench_spend_write(const BenchFlow *f, uint32_t bytes);

/*
 * bench_send: a packet through the stack, which pays for it.  Returns false
 * if it was refused: no room, or nothing more is to be sent.
 */
bool bench_send(BenchFlow *f, BenchKind kind, uint32_t bytes, uint64_t value);

/* bench_note_round: a round trip that began at @since_ns has ended. */
void bench_note_round(BenchFlow *f, int64_t since_ns);

#endif /* TESTS_BENCH_VNET_BENCH_GUEST_H */
