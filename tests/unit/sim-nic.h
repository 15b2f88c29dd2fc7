/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The host's side of a simulated machine: threads that run the real device,
 * and NICs with a backend that takes its time.
 *
 * The device is virtio-net as it is, on real rings and a real AioContext; what
 * the simulation decides is how long things take: a sleeping thread's wake-up,
 * a packet's way into the kernel, the system call of an interrupt.
 *
 * What is measured here is the added latency of a packet: the time it waits in
 * the ring while its queue's thread does not work on that queue.
 */
#ifndef TESTS_UNIT_SIM_NIC_H
#define TESTS_UNIT_SIM_NIC_H

#include <linux/virtio_net.h>

#include "../../net/net-internal.h"
#include "hw/net/virtio-net.h"
#include "sim.h"
#include "vring-harness.h"

/* What things cost.  Nanoseconds. */
typedef struct SimCosts {
    const char *name;

    /* the device's thread */
    int64_t wakeup_min, wakeup_max; /* from the event to its first step */
    int64_t call;                   /* sending an interrupt */
    int64_t send;                   /* one packet into the backend */
    double send_byte;
    int64_t recv;                   /* one frame out of the backend */
    double recv_byte;

    /* the guest's vCPU */
    int64_t kick;                   /* exit and system call */
    int64_t kick_wake;              /* ... more, if the thread sleeps */
    int64_t irq_min, irq_max;       /* from the call to the handler */
    int64_t irq;                    /* the handler, up to its first packet */
    int64_t xmit;                   /* one packet through the stack */
    double xmit_byte;
    int64_t rx;                     /* one frame received */
    double rx_byte;
    int64_t syscall;                /* the application's part */
    double copy_byte;
    int64_t tcp;                    /* more, if it is a segment of TCP */

    /* the peer */
    int64_t ack;                    /* its kernel answers */
    int64_t answer_min, answer_max; /* its process answers */
} SimCosts;

/* A guest under TCG on two cores; one under KVM, with irqfd and ioeventfd. */
extern const SimCosts sim_costs_tcg, sim_costs_kvm;

/* ---- threads --------------------------------------------------------- */

typedef struct SimThread {
    Sim *sim;
    const SimCosts *costs;
    AioContext *ctx;
    SimCond event;              /* something for the context to do */
    bool asleep;
    bool ending, ended;
    uint64_t wakeups;
    GPtrArray *nics;
} SimThread;

SimThread *sim_thread_new(Sim *sim, const SimCosts *costs);

/* sim_thread_end: let it finish what it does, and stop.  From outside. */
void sim_thread_end(SimThread *t);

/* sim_thread_free: after its NICs, before the world. */
void sim_thread_free(SimThread *t);

/* ---- NICs ------------------------------------------------------------ */

#define SIM_RING_MAX    1024

typedef struct SimFrame {
    uint32_t bytes;
    void *flow;                 /* whose it is; for the guest's side */
} SimFrame;

typedef struct SimNic {
    NetBackend nb;
    NetQueue queue;
    NetQueue *queue_list[1];

    SimThread *thread;
    VirtIONet *nic;
    VringDriver rx, tx;
    int kick[2], call[2];
    uint64_t calls[2];          /* collected */
    uint16_t size;
    uint8_t *ram;
    GuestMap *map;

    /* the guest's side */
    void (*called)(void *guest, unsigned idx);          /* an interrupt */
    /* A packet left the host; @flow as published. */
    void (*sent)(void *guest, void *flow, uint32_t bytes);
    void *guest;

    /* receive */
    GQueue *incoming;           /* SimFrame, on their way to the ring */
    GQueue *arrived;            /* ... in the ring */
    bool want;

    /* what is published, by descriptor */
    int64_t published_idle_ns[SIM_RING_MAX];
    SimFrame published[SIM_RING_MAX];

    /* measurement */
    bool working;
    int64_t idle_ns;            /* not working, up to the last change */
    int64_t change_ns;
    bool measuring;
    uint64_t packets, bytes, kicks, delivered;
    GArray *waits_ns;           /* added latency of each packet, uint32_t */
} SimNic;

/* sim_nic_new: @props as behind -device virtio-net-pci. */
SimNic *sim_nic_new(SimThread *t, const char *props, uint16_t ring_size,
                    uint64_t features);
void sim_nic_free(SimNic *n);

/* sim_nic_measure: forget what was measured and begin anew. */
void sim_nic_measure(SimNic *n);

/*
 * sim_nic_publish: the guest offers a packet; no kick.
 * @is_tcp: its sum is left to the device
 */
void sim_nic_publish(SimNic *n, void *flow, uint32_t bytes, bool is_tcp);

/*
 * sim_nic_kick: the driver's rule decides; returns whether it kicked.  The
 * calling process pays.
 */
bool sim_nic_kick(SimNic *n, unsigned idx);

/* sim_nic_post: one receive buffer of 1.5 KiB; no kick. */
void sim_nic_post(SimNic *n);

/* sim_nic_deliver: a frame arrives at the host. */
void sim_nic_deliver(SimNic *n, void *flow, uint32_t bytes);

/* sim_nic_reap_tx: the guest takes back one packet; NULL: there is none. */
const SimFrame *sim_nic_reap_tx(SimNic *n);

/* sim_nic_reap_rx: ... takes one frame; false: there is none. */
bool sim_nic_reap_rx(SimNic *n, SimFrame *frame);

#endif /* TESTS_UNIT_SIM_NIC_H */
