/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What guests do: see the header.
 */
#include <math.h>

#include "sim-loads.h"

#define GSO_BYTES       65160           /* 45 segments of 1448 */
#define ACK_BYTES       66
#define PING_BYTES      98
#define TSQ_PKTS        2
#define TCP_BUFFER      (1024 * 1024)
#define DELAYED_ACK     (2 * 1448)
#define COPY_BYTES      8192            /* between two chances to interrupt */

static void wait_for(SimFlow *f, SimCond *cond)
{
    sim_wait(f->g->sim, cond, INT64_MAX);
}

static void enter(SimFlow *f)
{
    vcpu_enter(f->g, f->cpu, false);
}

static void leave(SimFlow *f)
{
    vcpu_leave(f->g, f->cpu);
}

static void system_call(SimFlow *f)
{
    sim_delay_ns(f->g->sim, f->g->costs->syscall);
}

static void copy(SimFlow *f, uint32_t bytes)
{
    sim_delay_ns(f->g->sim, (int64_t)lrint(f->g->costs->copy_byte * bytes));
}

static void send_segment(SimFlow *f, uint32_t bytes)
{
    sim_delay_ns(f->g->sim, f->g->costs->tcp);
    sim_guest_send(f, bytes);
}

static void count_packet(SimFlow *f, uint32_t bytes)
{
    f->done++;
}

static void count_bytes(SimFlow *f, uint32_t bytes)
{
    f->done += bytes;
}

/* ---- datagrams ------------------------------------------------------- */

static void udp_main(void *opaque)
{
    SimFlow *f = opaque;

    for (;;) {
        enter(f);
        system_call(f);
        if (f->queued_pkts < f->limit) {
            sim_guest_send(f, f->packet_bytes);
        }
        leave(f);
        if (f->queued_pkts >= f->limit) {
            wait_for(f, &f->room);
        }
    }
}

static void udp_start(SimFlow *f)
{
    sim_spawn(f->g->sim, udp_main, f);
}

static void udp_freed(SimFlow *f)
{
    if (2 * f->queued_pkts <= f->limit) {
        sim_wake(f->g->sim, &f->room);
    }
}

SimFlow *sim_udp(SimGuest *g, uint32_t bytes, unsigned socket_pkts)
{
    static const SimFlowOps ops = {
        .start = udp_start, .sent = count_packet, .freed = udp_freed,
    };
    SimFlow *f = sim_guest_add(g, &ops);

    f->packet_bytes = bytes;
    f->limit = socket_pkts;
    f->no_tcp = true;
    return f;
}

/* ---- TCP, out -------------------------------------------------------- */

static void tcp_push(SimFlow *f)
{
    while (f->backlog && f->queued_pkts < TSQ_PKTS) {
        uint32_t bytes = MIN(f->backlog, GSO_BYTES);

        f->backlog -= bytes;
        send_segment(f, bytes);
    }
}

/* Less than a full packet waits while one is still on its way. */
static bool is_corked(const SimFlow *f)
{
    return f->queued_pkts && f->backlog < GSO_BYTES;
}

/* An interrupt within the write sends what has been copied. */
static void tcp_write(SimFlow *f, uint32_t bytes)
{
    while (bytes) {
        uint32_t n = MIN(bytes, COPY_BYTES);

        copy(f, n);
        f->backlog += n;
        bytes -= n;
        if (!is_corked(f)) {
            tcp_push(f);
        }
        leave(f);
        enter(f);
    }
}

static void tcp_main(void *opaque)
{
    SimFlow *f = opaque;

    for (;;) {
        enter(f);
        system_call(f);
        tcp_write(f, f->packet_bytes);
        leave(f);
        while (f->backlog >= TCP_BUFFER) {
            wait_for(f, &f->room);
        }
    }
}

static void tcp_freed(SimFlow *f)
{
    tcp_push(f);
    if (f->backlog < TCP_BUFFER * 2 / 3) {
        sim_wake(f->g->sim, &f->room);
    }
}

static void tcp_peer_main(void *opaque)
{
    SimFlow *f = opaque;

    for (;;) {
        while (f->peer_bytes < DELAYED_ACK) {
            wait_for(f, &f->peer);
        }
        sim_delay_ns(f->g->sim, f->g->costs->ack);
        f->peer_bytes = 0;
        sim_nic_deliver(f->g->nic, f, ACK_BYTES);
    }
}

static void tcp_sent(SimFlow *f, uint32_t bytes)
{
    count_bytes(f, bytes);
    f->peer_bytes += bytes;
    sim_wake(f->g->sim, &f->peer);
}

static void tcp_acked(SimFlow *f, uint32_t bytes)
{
    sim_delay_ns(f->g->sim, f->g->costs->tcp);
}

static void tcp_start(SimFlow *f)
{
    sim_spawn(f->g->sim, tcp_main, f);
    sim_spawn(f->g->sim, tcp_peer_main, f);
}

SimFlow *sim_tcp(SimGuest *g, uint32_t write_bytes)
{
    static const SimFlowOps ops = {
        .start = tcp_start, .sent = tcp_sent, .freed = tcp_freed,
        .received = tcp_acked,
    };
    SimFlow *f = sim_guest_add(g, &ops);

    f->packet_bytes = write_bytes;
    return f;
}

/* ---- request and response -------------------------------------------- */

static void note_round(SimFlow *f)
{
    int64_t ns = sim_now_ns(f->g->sim) - f->began_ns;

    g_array_append_val(f->round_ns, ns);
}

static void rr_main(void *opaque)
{
    SimFlow *f = opaque;

    for (;;) {
        f->began_ns = sim_now_ns(f->g->sim);
        f->is_answered = false;
        enter(f);
        system_call(f);
        copy(f, f->packet_bytes);
        send_segment(f, f->packet_bytes);
        leave(f);
        while (!f->is_answered) {
            wait_for(f, &f->room);
        }
        enter(f);
        system_call(f);
        copy(f, f->limit);
        leave(f);
        f->done++;
        note_round(f);
        sim_delay_ns(f->g->sim, f->think_ns);
    }
}

static void rr_peer_main(void *opaque)
{
    SimFlow *f = opaque;
    const SimCosts *c = f->g->costs;

    for (;;) {
        while (!f->is_owed) {
            wait_for(f, &f->peer);
        }
        f->is_owed = false;
        sim_delay_ns(f->g->sim, f->by_kernel ? c->ack :
                     sim_random_ns(f->g->sim, c->answer_min, c->answer_max));
        sim_nic_deliver(f->g->nic, f, f->limit);
    }
}

static void rr_sent(SimFlow *f, uint32_t bytes)
{
    f->is_owed = true;
    sim_wake(f->g->sim, &f->peer);
}

static void rr_received(SimFlow *f, uint32_t bytes)
{
    f->is_answered = true;
    sim_wake(f->g->sim, &f->room);
}

static void rr_start(SimFlow *f)
{
    sim_spawn(f->g->sim, rr_main, f);
    sim_spawn(f->g->sim, rr_peer_main, f);
}

SimFlow *sim_rr(SimGuest *g, uint32_t request_bytes, uint32_t response_bytes,
                int64_t think_ns)
{
    static const SimFlowOps ops = {
        .start = rr_start, .sent = rr_sent, .received = rr_received,
    };
    SimFlow *f = sim_guest_add(g, &ops);

    f->packet_bytes = request_bytes;
    f->limit = response_bytes;
    f->think_ns = think_ns;
    return f;
}

/* ---- TCP, in --------------------------------------------------------- */

static void receive_peer_main(void *opaque)
{
    SimFlow *f = opaque;

    for (;;) {
        while (f->peer_bytes + GSO_BYTES > f->limit) {
            wait_for(f, &f->peer);
        }
        f->peer_bytes += GSO_BYTES;
        sim_delay_ns(f->g->sim, f->g->costs->ack * 5);
        sim_nic_deliver(f->g->nic, f, GSO_BYTES);
    }
}

static void receive_received(SimFlow *f, uint32_t bytes)
{
    sim_delay_ns(f->g->sim, f->g->costs->tcp);
    copy(f, bytes);
    f->done += bytes;
    f->seen += bytes;
}

static void receive_polled(SimFlow *f)
{
    send_segment(f, ACK_BYTES);
}

/* An acknowledgement is for all that was seen when it left. */
static void receive_sent(SimFlow *f, uint32_t bytes)
{
    f->peer_bytes -= f->seen;
    f->seen = 0;
    sim_wake(f->g->sim, &f->peer);
}

static void receive_start(SimFlow *f)
{
    sim_spawn(f->g->sim, receive_peer_main, f);
}

SimFlow *sim_receive(SimGuest *g, uint32_t window)
{
    static const SimFlowOps ops = {
        .start = receive_start, .sent = receive_sent,
        .received = receive_received, .polled = receive_polled,
    };
    SimFlow *f = sim_guest_add(g, &ops);

    f->limit = window;
    return f;
}

/* ---- open loops ------------------------------------------------------ */

static void send_if_room(SimFlow *f)
{
    enter(f);
    if (sim_guest_room(f->g)) {
        sim_guest_send(f, f->packet_bytes);
    } else {
        f->refused++;
    }
    leave(f);
}

static void open_main(void *opaque)
{
    SimFlow *f = opaque;
    Sim *sim = f->g->sim;
    int64_t due_ns = sim_now_ns(sim);

    for (;;) {
        due_ns += f->random ? sim_random_exp_ns(sim, f->gap_ns) : f->gap_ns;
        sim_delay_ns(sim, due_ns - sim_now_ns(sim));
        for (unsigned i = 0; i < f->burst; i++) {
            send_if_room(f);
        }
    }
}

static void open_start(SimFlow *f)
{
    sim_spawn(f->g->sim, open_main, f);
}

SimFlow *sim_open_loop(SimGuest *g, uint32_t bytes, unsigned burst,
                       int64_t gap_ns, bool random)
{
    static const SimFlowOps ops = {
        .start = open_start, .sent = count_packet,
    };
    SimFlow *f = sim_guest_add(g, &ops);

    f->packet_bytes = bytes;
    f->no_tcp = true;
    f->burst = burst;
    f->gap_ns = gap_ns;
    f->random = random;
    return f;
}

static void ping_main(void *opaque)
{
    SimFlow *f = opaque;
    Sim *sim = f->g->sim;

    for (;;) {
        sim_delay_ns(sim, sim_random_ns(sim, f->gap_ns / 2,
                                        f->gap_ns * 3 / 2));
        f->began_ns = sim_now_ns(sim);
        f->is_answered = false;
        enter(f);
        sim_guest_send(f, f->packet_bytes);
        leave(f);
        while (!f->is_answered) {
            wait_for(f, &f->room);
        }
        note_round(f);
    }
}

static void ping_start(SimFlow *f)
{
    sim_spawn(f->g->sim, ping_main, f);
    sim_spawn(f->g->sim, rr_peer_main, f);
}

SimFlow *sim_ping(SimGuest *g, int64_t gap_ns)
{
    static const SimFlowOps ops = {
        .start = ping_start, .sent = rr_sent, .received = rr_received,
    };
    SimFlow *f = sim_guest_add(g, &ops);

    f->packet_bytes = PING_BYTES;
    f->limit = PING_BYTES;
    f->by_kernel = true;
    f->no_tcp = true;
    f->gap_ns = gap_ns;
    return f;
}
