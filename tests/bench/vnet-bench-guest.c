/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A guest in real time: see the header.
 */
#include <poll.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>

#include "util/clock.h"
#include "vnet-bench-guest.h"

#define STOP_FREE   19          /* 2 + the most fragments of a packet */

/* A sleep shorter than this would be a long one: a thread has to wake up. */
#define SPIN_NS     (60 * NS_PER_US)

/*
 * How often a CPU that works looks for interrupts, which is how late they may
 * be.  Looking is two system calls: after each packet they would cost a
 * multiple of the packet, and no guest could fill its ring.
 */
#define IRQ_LOOK_NS (5 * NS_PER_US)

/* How often a guest that halts looks whether to stop; whether it is done. */
#define LOOK_NS     (10 * NS_PER_MS)
#define FINISH_NS   NS_PER_MS

/* ---- time ------------------------------------------------------------ */

static int64_t now_ns(void)
{
    return clock_now_ns(clock_monotonic());
}

void bench_spend(int64_t ns)
{
    for (int64_t end = now_ns() + ns; now_ns() < end;) {
        continue;
    }
}

void bench_spend_write(const BenchFlow *f, uint32_t bytes)
{
    bench_spend(f->g->costs.kib * bytes / 1024);
}

/* ---- transmit -------------------------------------------------------- */

static unsigned free_slots(const BenchGuest *g)
{
    return g->nic->size - bench_nic_in_ring(g->nic);
}

static void kick(BenchGuest *g, unsigned idx)
{
    int64_t began_ns = now_ns();

    if (bench_nic_kick(g->nic, idx)) {
        g->count.kicks += idx == BENCH_TX;
        bench_spend(g->costs.kick - (now_ns() - began_ns));
    }
}

static void flow_freed(BenchFlow *f)
{
    f->queued_pkts--;
    f->was_freed = true;
}

static void reclaim(BenchGuest *g)
{
    VringDriver *d = &g->nic->ring[BENCH_TX];

    for (;;) {
        unsigned slot = d->used_idx % g->nic->size;

        if (!bench_nic_reap(g->nic)) {
            break;
        }
        g->count.done++;
        g->count.done_bytes += g->published_bytes[slot];
        if (g->completions == BENCH_NAPI) {
            flow_freed(g->published[slot]);
        }
    }
}

/* Room is looked for, and if there is none, a call asked for. */
static bool ensure_room(BenchGuest *g)
{
    while (free_slots(g) < STOP_FREE) {
        if (bench_nic_call_late(g->nic)) {
            return false;
        }
        reclaim(g);
    }
    return true;
}

static void ask_for_call(BenchGuest *g)
{
    if (g->completions == BENCH_ORPHAN) {
        bench_nic_call_never(g->nic);
        return;
    }
    while (!bench_nic_call_late(g->nic)) {
        reclaim(g);
    }
}

static void publish(BenchGuest *g, const struct BenchQueued *q)
{
    unsigned slot = g->nic->ring[BENCH_TX].avail_idx % g->nic->size;

    g->published[slot] = q->flow;
    g->published_bytes[slot] = q->bytes;
    bench_nic_publish(g->nic, &q->frame, q->bytes);
    g->count.sent++;
    if (g->completions == BENCH_ORPHAN) {
        flow_freed(q->flow);
    }
}

/* With orphans the ring is looked at when it is nearly full only. */
static void driver_send(BenchGuest *g, const struct BenchQueued *q, bool more)
{
    if (g->completions == BENCH_NAPI) {
        reclaim(g);
    }
    publish(g, q);
    ask_for_call(g);
    if (free_slots(g) < STOP_FREE) {
        reclaim(g);
        g->stopped = !ensure_room(g);
    }
    if (!more || g->stopped) {
        kick(g, BENCH_TX);
    }
}

static void qdisc_run(BenchGuest *g)
{
    while (!g->stopped && g->qdisc_len) {
        const struct BenchQueued *q = &g->qdisc[g->qdisc_head];

        g->qdisc_head = (g->qdisc_head + 1) % BENCH_QDISC;
        g->qdisc_len--;
        driver_send(g, q, g->qdisc_len);
    }
}

static bool admit(BenchGuest *g)
{
    if (!g->budget) {
        return false;
    }
    if (g->qdisc_len == BENCH_QDISC) {
        g->count.refused++;
        return false;
    }
    g->budget -= g->budget != BENCH_NO_LIMIT;
    return true;
}

static bool stack_send(BenchFlow *f, BenchFrame *frame, uint32_t bytes)
{
    BenchGuest *g = f->g;
    struct BenchQueued *q;

    if (!admit(g)) {
        return false;
    }
    bench_spend(g->costs.packet);
    frame->seq = f->seq++;
    q = &g->qdisc[(g->qdisc_head + g->qdisc_len++) % BENCH_QDISC];
    *q = (struct BenchQueued) {
        .flow = f, .frame = *frame, .bytes = MAX(bytes, sizeof(*frame)),
    };
    f->queued_pkts++;
    qdisc_run(g);
    return true;
}

bool bench_send(BenchFlow *f, BenchKind kind, uint32_t bytes, uint64_t value)
{
    BenchFrame frame;

    bench_frame_init(&frame, kind, f->id, f->g->is_peer);
    frame.answer_bytes = f->answer_bytes;
    frame.value = value;
    return stack_send(f, &frame, bytes);
}

/* ---- receive --------------------------------------------------------- */

static void note(GArray *latency_ns, int64_t since_ns)
{
    uint32_t ns = CLAMP(now_ns() - since_ns, 0, UINT32_MAX);

    g_array_append_val(latency_ns, ns);
}

void bench_note_round(BenchFlow *f, int64_t since_ns)
{
    f->g->count.rounds++;
    note(f->g->round_ns, since_ns);
}

/* A peer's answers go through its own stack, as those of its first flow. */
static void answer(BenchGuest *g, const BenchFrame *in, uint32_t bytes)
{
    BenchFrame out;
    uint32_t len = bench_peer_receive(&g->peer, in, bytes, &out);

    if (len) {
        stack_send(g->flows->pdata[0], &out, len);
    }
}

static void deliver(BenchGuest *g, const BenchFrame *in)
{
    BenchFlow *f;

    g->peer.frames++;
    if (in->kind == BENCH_TICK) {
        note(g->delay_ns, in->value);
    } else if (in->flow < g->flows->len) {
        f = g->flows->pdata[in->flow];
        if (f->ops->received) {
            f->ops->received(f, in);
        }
    }
}

static void note_delivery(BenchGuest *g)
{
    int64_t now = now_ns();

    if (g->count.delivered_ns) {
        g->count.gap_ns = MAX(g->count.gap_ns, now - g->count.delivered_ns);
    }
    g->count.delivered_ns = now;
}

static void receive_one(BenchGuest *g, const BenchFrame *in, uint32_t bytes)
{
    note_delivery(g);
    bench_spend(g->costs.packet);
    g->count.received++;
    g->count.received_bytes += bytes;
    if (!bench_frame_is_ours(in, bytes)) {
        return;
    }
    if (g->is_peer) {
        answer(g, in, bytes);
    } else {
        deliver(g, in);
    }
}

static void poll_rx(BenchGuest *g)
{
    BenchFrame in;
    uint32_t bytes;

    do {
        while (bench_nic_take(g->nic, &in, &bytes)) {
            receive_one(g, &in, bytes);
        }
        bench_nic_refill(g->nic);
        kick(g, BENCH_RX);
    } while (!vring_driver_enable_call(&g->nic->ring[BENCH_RX]));
}

/* ---- interrupts ------------------------------------------------------ */

static void clean_tx(BenchGuest *g)
{
    reclaim(g);
    while (g->completions == BENCH_NAPI &&
           !vring_driver_enable_call(&g->nic->ring[BENCH_TX])) {
        reclaim(g);
    }
    if (g->stopped && ensure_room(g)) {
        g->stopped = false;
    }
    qdisc_run(g);
}

static void interrupt(BenchGuest *g, unsigned idx)
{
    int64_t began_ns = now_ns();
    unsigned calls = bench_nic_called(g->nic, idx);

    if (!calls) {
        return;
    }
    g->count.calls[idx] += calls;
    bench_spend(g->costs.irq - (now_ns() - began_ns));
    if (idx == BENCH_TX || g->completions == BENCH_NAPI) {
        clean_tx(g);
    }
    if (idx == BENCH_RX) {
        poll_rx(g);
    }
}

static void take_interrupts(BenchGuest *g)
{
    int64_t now = now_ns();

    if (now >= g->look_ns) {
        g->look_ns = now + IRQ_LOOK_NS;
        interrupt(g, BENCH_RX);
        interrupt(g, BENCH_TX);
    }
}

/* What a tasklet does in Linux: those whose packets were freed go on. */
static void run_softirq(BenchGuest *g)
{
    for (guint i = 0; i < g->flows->len; i++) {
        BenchFlow *f = g->flows->pdata[i];

        if (f->was_freed) {
            f->was_freed = false;
            if (f->ops->freed) {
                f->ops->freed(f);
            }
        }
    }
}

/* ---- the CPU --------------------------------------------------------- */

/* Who is due first; those who are due by now take turns. */
static BenchFlow *next_flow(BenchGuest *g, int64_t now_ns)
{
    BenchFlow *best = NULL;
    int64_t first_ns = BENCH_NEVER;

    for (guint i = 0; g->budget && i < g->flows->len; i++) {
        BenchFlow *f = g->flows->pdata[(g->turn + i) % g->flows->len];
        int64_t due_ns = MAX(f->due_ns, now_ns);

        if (due_ns < first_ns) {
            first_ns = due_ns;
            best = f;
        }
    }
    return best;
}

static void halt(BenchGuest *g, int64_t until_ns)
{
    struct pollfd fds[BENCH_RINGS] = {
        { .fd = g->nic->call[BENCH_RX], .events = POLLIN },
        { .fd = g->nic->call[BENCH_TX], .events = POLLIN },
    };
    int64_t ns = MIN(until_ns - now_ns(), LOOK_NS);
    struct timespec ts = { 0, MAX(ns, 0) };

    g->look_ns = 0;
    if (ns > 0 && (ns > SPIN_NS || until_ns == BENCH_NEVER)) {
        ppoll(fds, BENCH_RINGS, &ts, NULL);
    }
}

/* All is sent, and all that should come is here. */
static bool is_finishing(const BenchGuest *g)
{
    return (!g->budget || g->is_peer) && g->peer.frames >= g->expected;
}

static void finish(BenchGuest *g)
{
    clean_tx(g);
    __atomic_store_n(&g->is_finished,
                     !bench_nic_in_ring(g->nic) && !g->qdisc_len,
                     __ATOMIC_RELEASE);
    halt(g, now_ns() + FINISH_NS);
}

static void run_or_halt(BenchGuest *g)
{
    int64_t now = now_ns();
    BenchFlow *f = next_flow(g, now);

    if (f && f->due_ns <= now) {
        g->turn = f->id + 1;
        f->ops->run(f, now);
    } else if (is_finishing(g)) {
        finish(g);
    } else {
        halt(g, f ? f->due_ns : BENCH_NEVER);
    }
}

static void change_phase(BenchGuest *g, BenchPhase phase)
{
    if (phase == BENCH_MEASURE) {
        g->count = (BenchCounts) { .began_ns = now_ns() };
        g_array_set_size(g->round_ns, 0);
        g_array_set_size(g->delay_ns, 0);
    }
    g->count.ended_ns = now_ns();
    g->seen = phase;
}

static gpointer cpu_main(gpointer opaque)
{
    BenchGuest *g = opaque;

    prctl(PR_SET_TIMERSLACK, 1);
    poll_rx(g);
    while (g->seen != BENCH_STOP) {
        BenchPhase phase = __atomic_load_n(&g->phase, __ATOMIC_ACQUIRE);

        if (phase != g->seen) {
            change_phase(g, phase);
        }
        take_interrupts(g);
        run_softirq(g);
        run_or_halt(g);
    }
    return NULL;
}

/* ---- life ------------------------------------------------------------ */

BenchGuest *bench_guest_new(BenchNic *nic, const BenchCosts *costs,
                            BenchCompletions completions, uint32_t seed)
{
    BenchGuest *g = g_new0(BenchGuest, 1);

    g->nic = nic;
    g->costs = *costs;
    g->completions = completions;
    g->budget = BENCH_NO_LIMIT;
    g->flows = g_ptr_array_new_with_free_func(g_free);
    g->rand = g_rand_new_with_seed(seed);
    g->expected = BENCH_NO_LIMIT;
    g->round_ns = g_array_new(FALSE, FALSE, sizeof(uint32_t));
    g->delay_ns = g_array_new(FALSE, FALSE, sizeof(uint32_t));
    return g;
}

void bench_guest_free(BenchGuest *g)
{
    bench_nic_free(g->nic);
    g_ptr_array_free(g->flows, TRUE);
    g_array_free(g->round_ns, TRUE);
    g_array_free(g->delay_ns, TRUE);
    g_rand_free(g->rand);
    g_free(g);
}

BenchFlow *bench_guest_add(BenchGuest *g, const BenchFlowOps *ops)
{
    BenchFlow *f = g_new0(BenchFlow, 1);

    f->ops = ops;
    f->g = g;
    f->id = g->flows->len;
    g_ptr_array_add(g->flows, f);
    return f;
}

static void set_phase(BenchGuest *g, BenchPhase phase)
{
    __atomic_store_n(&g->phase, phase, __ATOMIC_RELEASE);
}

void bench_guest_start(BenchGuest *g)
{
    g->thread = g_thread_new("guest", cpu_main, g);
}

void bench_guest_stop(BenchGuest *g)
{
    if (g->thread) {
        set_phase(g, BENCH_STOP);
        g_thread_join(g->thread);
        g->thread = NULL;
    }
}

void bench_guest_measure(BenchGuest *g)
{
    set_phase(g, BENCH_MEASURE);
}

bool bench_guest_finished(const BenchGuest *g)
{
    return __atomic_load_n(&g->is_finished, __ATOMIC_ACQUIRE);
}
