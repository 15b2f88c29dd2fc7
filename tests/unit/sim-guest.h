/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The guest's side of a simulated machine: virtual CPUs, a network stack in
 * outline, and a driver for one NIC with the habits of Linux's: transmit
 * NAPI, calls asked for at three quarters of what is outstanding, a queue that
 * stops at fewer than 19 free descriptors and wakes at the same mark, byte
 * queue limits if wanted, completions taken back by whoever comes by (a
 * transmit, either interrupt).
 *
 * What uses the stack is a flow (sim-loads.c).  A flow's process does its work
 * between vcpu_enter() and vcpu_leave(), and pays there for what it does;
 * interrupts go first.
 */
#ifndef TESTS_UNIT_SIM_GUEST_H
#define TESTS_UNIT_SIM_GUEST_H

#include "sim-nic.h"

#define SIM_VCPUS   2

typedef struct SimGuest SimGuest;
typedef struct SimFlow SimFlow;

typedef struct SimFlowOps {
    /* Its part in the world: spawn processes. */
    void (*start)(SimFlow *f);
    /* A packet of it left the host.  Must not let time pass.  Or NULL. */
    void (*sent)(SimFlow *f, uint32_t bytes);
    /* Packets of it were freed.  On a vCPU.  Or NULL. */
    void (*freed)(SimFlow *f);
    /* A frame arrived.  On a vCPU, within receive NAPI.  Or NULL. */
    void (*received)(SimFlow *f, uint32_t bytes);
    /* The end of a receive NAPI poll in which something arrived.  Or NULL. */
    void (*polled)(SimFlow *f);
} SimFlowOps;

struct SimFlow {
    const SimFlowOps *ops;
    SimGuest *g;
    unsigned cpu;

    /* the stack's view */
    unsigned queued_pkts;       /* sent and not freed, qdisc included */
    SimCond room;               /* of the flow's process: what it waits for */
    bool was_freed, was_received;

    /* parameters; what they mean is the flow's */
    uint32_t packet_bytes;
    uint32_t limit;
    uint32_t burst;
    int64_t gap_ns;
    int64_t think_ns;
    bool random;
    bool by_kernel;             /* answered without a process */
    bool no_tcp;                /* datagrams, pings */

    /* its state */
    uint64_t backlog;           /* bytes written and not sent */
    bool is_owed, is_answered;
    uint64_t seen;
    SimCond peer;
    uint32_t peer_owes, peer_bytes;
    int64_t began_ns;

    /* measurement */
    uint64_t done;              /* what it is about: packets, bytes, ... */
    uint64_t refused;           /* the ring had no room */
    GArray *round_ns;           /* round trips, int64_t */
};

typedef struct SimVcpu {
    bool busy;
    unsigned irqs;              /* interrupts that wait for it */
    uint64_t came, went;        /* processes: they get it in their order */
    SimCond free;
    int64_t began_ns, busy_ns;
} SimVcpu;

typedef struct SimQueued {
    SimFlow *f;
    uint32_t bytes;
} SimQueued;

struct SimGuest {
    Sim *sim;
    const SimCosts *costs;
    SimNic *nic;
    SimVcpu cpus[SIM_VCPUS];
    unsigned n_cpus;
    GPtrArray *flows;           /* owned */

    /* transmit */
    GQueue *qdisc;              /* SimQueued */
    bool stopped;
    unsigned in_ring;
    bool bql;
    uint32_t bql_limit, bql_bytes;
    bool bql_starved;

    /* interrupts, by ring */
    bool called[2];
    SimCond call[2];
};

/* sim_guest_new: @cpus virtual CPUs; the driver is up, receive buffers in. */
SimGuest *sim_guest_new(SimNic *nic, const SimCosts *costs, unsigned cpus,
                        bool bql);
void sim_guest_free(SimGuest *g);

/* sim_guest_add: a flow of @ops; its parameters are set before it starts. */
SimFlow *sim_guest_add(SimGuest *g, const SimFlowOps *ops);
void sim_guest_start(SimGuest *g);

/* For flows, from their processes. */
void vcpu_enter(SimGuest *g, unsigned cpu, bool irq);
void vcpu_leave(SimGuest *g, unsigned cpu);

/* sim_guest_send: a packet through the stack; on a vCPU. */
void sim_guest_send(SimFlow *f, uint32_t bytes);

/* sim_guest_room: the ring and nothing before it has room.  On a vCPU. */
bool sim_guest_room(SimGuest *g);

#endif /* TESTS_UNIT_SIM_GUEST_H */
