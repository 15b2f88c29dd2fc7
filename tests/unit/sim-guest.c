/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The guest's side: see the header.
 */
#include <math.h>

#include "sim-guest.h"

#define STOP_FREE   19          /* 2 + the most fragments of a packet */

/* ---- virtual CPUs ---------------------------------------------------- */

void vcpu_enter(SimGuest *g, unsigned cpu, bool irq)
{
    SimVcpu *v = &g->cpus[cpu % g->n_cpus];
    uint64_t number = irq ? 0 : v->came++;

    v->irqs += irq;
    while (v->busy || (!irq && (v->irqs || v->went != number))) {
        sim_wait(g->sim, &v->free, INT64_MAX);
    }
    v->irqs -= irq;
    v->went += !irq;
    v->busy = true;
    v->began_ns = sim_now_ns(g->sim);
}

/* What a tasklet does in Linux: those whose packets were freed go on. */
static void run_softirq(SimGuest *g)
{
    for (guint i = 0; i < g->flows->len; i++) {
        SimFlow *f = g->flows->pdata[i];

        if (f->was_freed) {
            f->was_freed = false;
            if (f->ops->freed) {
                f->ops->freed(f);
            }
        }
    }
}

void vcpu_leave(SimGuest *g, unsigned cpu)
{
    SimVcpu *v = &g->cpus[cpu % g->n_cpus];

    run_softirq(g);
    v->busy = false;
    v->busy_ns += sim_now_ns(g->sim) - v->began_ns;
    sim_wake(g->sim, &v->free);
}

/* ---- transmit -------------------------------------------------------- */

static unsigned free_slots(const SimGuest *g)
{
    return g->nic->size - g->in_ring;
}

/*
 * Byte queue limits in outline: the limit grows by what was completed when
 * that was all there was and more was waiting, and shrinks slowly when
 * nothing waits.
 */
static void bql_completed(SimGuest *g, uint32_t bytes)
{
    g->bql_bytes -= bytes;
    if (g->bql_starved && !g->bql_bytes) {
        g->bql_limit += bytes;
        g->bql_starved = false;
    } else if (!g->bql_starved) {
        g->bql_limit -= g->bql_limit / 4096;
    }
    g->bql_limit = MAX(g->bql_limit, 188);
}

static void reclaim(SimGuest *g)
{
    const SimFrame *p;
    uint32_t bytes = 0;

    while ((p = sim_nic_reap_tx(g->nic))) {
        SimFlow *f = p->flow;

        f->queued_pkts--;
        f->was_freed = true;
        g->in_ring--;
        bytes += p->bytes;
    }
    if (bytes) {
        bql_completed(g, bytes);
    }
}

static bool bql_allows(const SimGuest *g)
{
    return !g->bql || g->bql_bytes <= g->bql_limit;
}

/* Ask for a call at three quarters of what is outstanding. */
static void enable_call_late(SimGuest *g)
{
    VringDriver *d = &g->nic->tx;
    uint16_t outstanding = d->avail_idx - d->used_idx;

    vring_driver_set_used_event(d, d->used_idx + outstanding * 3 / 4);
}

static void driver_send(SimGuest *g, SimFlow *f, uint32_t bytes, bool more)
{
    reclaim(g);
    sim_nic_publish(g->nic, f, bytes, !f->no_tcp);
    g->in_ring++;
    g->bql_bytes += bytes;
    enable_call_late(g);
    if (free_slots(g) < STOP_FREE) {
        g->stopped = true;
        reclaim(g);
        g->stopped = free_slots(g) < STOP_FREE;
    }
    if (!more || g->stopped || !bql_allows(g)) {
        sim_nic_kick(g->nic, 1);
    }
}

static void qdisc_run(SimGuest *g)
{
    while (!g->stopped && bql_allows(g) && !g_queue_is_empty(g->qdisc)) {
        SimQueued *q = g_queue_pop_head(g->qdisc);

        driver_send(g, q->f, q->bytes, !g_queue_is_empty(g->qdisc));
        g_free(q);
    }
    g->bql_starved |= !g_queue_is_empty(g->qdisc) && !bql_allows(g);
}

void sim_guest_send(SimFlow *f, uint32_t bytes)
{
    SimGuest *g = f->g;
    SimQueued *q = g_new(SimQueued, 1);

    sim_delay_ns(g->sim, g->costs->xmit +
                 (int64_t)lrint(g->costs->xmit_byte * bytes));
    *q = (SimQueued) { f, bytes };
    f->queued_pkts++;
    g_queue_push_tail(g->qdisc, q);
    qdisc_run(g);
}

bool sim_guest_room(SimGuest *g)
{
    if (g->stopped) {
        reclaim(g);
        g->stopped = free_slots(g) < STOP_FREE;
    }
    return !g->stopped;
}

/* ---- interrupts ------------------------------------------------------ */

static void clean_tx(SimGuest *g)
{
    VringDriver *d = &g->nic->tx;

    do {
        reclaim(g);
    } while (!vring_driver_enable_call(d));
    if (free_slots(g) >= STOP_FREE) {
        g->stopped = false;
    }
    qdisc_run(g);
}

static void receive_one(SimGuest *g, const SimFrame *frame)
{
    SimFlow *f = frame->flow;

    sim_delay_ns(g->sim, g->costs->rx +
                 (int64_t)lrint(g->costs->rx_byte * frame->bytes));
    f->was_received = true;
    f->ops->received(f, frame->bytes);
}

static void refill(SimGuest *g)
{
    VringDriver *d = &g->nic->rx;

    while ((uint16_t)(d->avail_idx - d->used_idx) < g->nic->size) {
        sim_nic_post(g->nic);
    }
    sim_nic_kick(g->nic, 0);
}

static void poll_rx(SimGuest *g)
{
    SimFrame frame;

    do {
        while (sim_nic_reap_rx(g->nic, &frame)) {
            receive_one(g, &frame);
        }
        refill(g);
    } while (!vring_driver_enable_call(&g->nic->rx));
    for (guint i = 0; i < g->flows->len; i++) {
        SimFlow *f = g->flows->pdata[i];

        if (f->was_received) {
            f->was_received = false;
            if (f->ops->polled) {
                f->ops->polled(f);
            }
        }
    }
}

static void interrupts(SimGuest *g, unsigned ring)
{
    for (;;) {
        while (!g->called[ring]) {
            sim_wait(g->sim, &g->call[ring], INT64_MAX);
        }
        g->called[ring] = false;
        sim_delay_ns(g->sim, sim_random_ns(g->sim, g->costs->irq_min,
                                           g->costs->irq_max));
        vcpu_enter(g, 0, true);
        sim_delay_ns(g->sim, g->costs->irq);
        clean_tx(g);
        if (ring == 0) {
            poll_rx(g);
        }
        vcpu_leave(g, 0);
    }
}

static void rx_interrupts(void *opaque)
{
    interrupts(opaque, 0);
}

static void tx_interrupts(void *opaque)
{
    interrupts(opaque, 1);
}

static void guest_called(void *opaque, unsigned ring)
{
    SimGuest *g = opaque;

    g->called[ring] = true;
    sim_wake(g->sim, &g->call[ring]);
}

static void guest_sent(void *opaque, void *flow, uint32_t bytes)
{
    SimFlow *f = flow;

    if (f->ops->sent) {
        f->ops->sent(f, bytes);
    }
}

/* ---- life ------------------------------------------------------------ */

static void flow_free(void *opaque)
{
    SimFlow *f = opaque;

    g_array_free(f->round_ns, TRUE);
    g_free(f);
}

SimFlow *sim_guest_add(SimGuest *g, const SimFlowOps *ops)
{
    SimFlow *f = g_new0(SimFlow, 1);

    f->ops = ops;
    f->g = g;
    f->round_ns = g_array_new(FALSE, FALSE, sizeof(int64_t));
    g_ptr_array_add(g->flows, f);
    return f;
}

void sim_guest_start(SimGuest *g)
{
    for (guint i = 0; i < g->flows->len; i++) {
        SimFlow *f = g->flows->pdata[i];

        f->ops->start(f);
    }
}

SimGuest *sim_guest_new(SimNic *nic, const SimCosts *costs, unsigned cpus,
                        bool bql)
{
    SimGuest *g = g_new0(SimGuest, 1);

    g_assert_cmpuint(cpus, <=, SIM_VCPUS);
    g->sim = nic->thread->sim;
    g->costs = costs;
    g->nic = nic;
    g->n_cpus = cpus;
    g->bql = bql;
    g->flows = g_ptr_array_new_with_free_func(flow_free);
    g->qdisc = g_queue_new();
    nic->guest = g;
    nic->called = guest_called;
    nic->sent = guest_sent;
    for (unsigned i = 0; i < nic->size; i++) {
        sim_nic_post(nic);
    }
    vring_driver_enable_call(&nic->rx);
    sim_spawn(g->sim, rx_interrupts, g);
    sim_spawn(g->sim, tx_interrupts, g);
    return g;
}

void sim_guest_free(SimGuest *g)
{
    g_ptr_array_free(g->flows, TRUE);
    g_queue_free_full(g->qdisc, g_free);
    g_free(g);
}
