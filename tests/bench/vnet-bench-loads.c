/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What guests do: see the header.
 */
#include <math.h>
#include <string.h>

#include "util/clock.h"
#include "util/report.h"
#include "vnet-bench-loads.h"

#define PING_BYTES      98
#define FLOOD_BYTES     43              /* UDP with one byte */
#define TSQ_PKTS        2
#define TCP_BUFFER      (1024 * 1024)
#define TCP_WINDOW      (512 * 1024)    /* sent and not acknowledged */
#define COPY_BYTES      8192            /* between two chances to interrupt */
#define RR_MANY         16

/* Refused for lack of room: the next try. */
#define RETRY_NS        (20 * NS_PER_US)

/* ---- datagrams ------------------------------------------------------- */

/* The socket holds f->limit packets, and wakes when half of them are gone. */
static void udp_run(BenchFlow *f, int64_t now_ns)
{
    bench_spend_write(f, f->bytes);
    if (!bench_send(f, BENCH_SINK, f->bytes, 0)) {
        f->due_ns = now_ns + RETRY_NS;
    } else if (f->queued_pkts >= f->limit) {
        f->due_ns = BENCH_NEVER;
    }
}

static void udp_freed(BenchFlow *f)
{
    if (f->due_ns == BENCH_NEVER && 2 * f->queued_pkts <= f->limit) {
        f->due_ns = 0;
    }
}

static const BenchFlowOps udp_ops = { .run = udp_run, .freed = udp_freed };

static void add_udp(BenchGuest *g, const BenchLoadConf *conf, uint32_t bytes)
{
    BenchFlow *f = bench_guest_add(g, &udp_ops);

    f->bytes = bytes;
    f->limit = conf->socket_pkts;
}

/* As many sockets as fill the ring, and no queue before it. */
static void add_flood(BenchGuest *g, const BenchLoadConf *conf, uint32_t bytes)
{
    BenchFlow *f = bench_guest_add(g, &udp_ops);

    f->bytes = bytes;
    f->limit = g->nic->size;
}

/* ---- TCP ------------------------------------------------------------- */

static bool tcp_may_send(const BenchFlow *f)
{
    /* Less than a full packet waits while one is still on its way. */
    bool corked = f->queued_pkts && f->backlog < BENCH_FRAME_MAX;

    return f->backlog && f->queued_pkts < TSQ_PKTS && !corked &&
           f->sent - f->acked + MIN(f->backlog, BENCH_FRAME_MAX) <= TCP_WINDOW;
}

static void tcp_push(BenchFlow *f)
{
    while (tcp_may_send(f)) {
        uint32_t bytes = MIN(f->backlog, BENCH_FRAME_MAX);

        if (!bench_send(f, BENCH_STREAM, bytes, f->sent + bytes)) {
            break;
        }
        f->backlog -= bytes;
        f->sent += bytes;
    }
}

/* An interrupt within a write sends what has been copied. */
static void tcp_run(BenchFlow *f, int64_t now_ns)
{
    uint32_t bytes;

    if (!f->unwritten) {
        f->unwritten = f->bytes;
    }
    bytes = MIN(f->unwritten, COPY_BYTES);
    bench_spend_write(f, bytes);
    f->unwritten -= bytes;
    f->backlog += bytes;
    tcp_push(f);
    f->due_ns = f->backlog < TCP_BUFFER ? 0 : BENCH_NEVER;
}

static void tcp_go_on(BenchFlow *f)
{
    tcp_push(f);
    if (f->backlog < TCP_BUFFER * 2 / 3) {
        f->due_ns = 0;
    }
}

static void tcp_received(BenchFlow *f, const BenchFrame *in)
{
    f->acked = in->value;
    tcp_go_on(f);
}

static void add_tcp(BenchGuest *g, const BenchLoadConf *conf, uint32_t bytes)
{
    static const BenchFlowOps ops = {
        .run = tcp_run, .freed = tcp_go_on, .received = tcp_received,
    };

    bench_guest_add(g, &ops)->bytes = bytes;
}

/* ---- request and response -------------------------------------------- */

static void rr_run(BenchFlow *f, int64_t now_ns)
{
    bench_spend_write(f, f->bytes);
    if (bench_send(f, BENCH_ECHO, f->bytes, now_ns)) {
        f->due_ns = BENCH_NEVER;
    } else {
        f->due_ns = now_ns + RETRY_NS;
    }
}

static void rr_received(BenchFlow *f, const BenchFrame *in)
{
    bench_note_round(f, in->value);
    f->due_ns = 0;
}

static void add_rr(BenchGuest *g, const BenchLoadConf *conf, uint32_t bytes)
{
    static const BenchFlowOps ops = {
        .run = rr_run, .received = rr_received,
    };
    BenchFlow *f = bench_guest_add(g, &ops);

    f->bytes = bytes;
    f->answer_bytes = bytes;
}

static void add_rr_many(BenchGuest *g, const BenchLoadConf *conf,
                        uint32_t bytes)
{
    for (unsigned i = 0; i < RR_MANY; i++) {
        add_rr(g, conf, bytes);
    }
}

/* ---- open loops ------------------------------------------------------ */

static int64_t next_gap(BenchFlow *f)
{
    double x = g_rand_double(f->g->rand);

    return f->random ? (int64_t)lrint(-log1p(-x) * f->gap_ns) : f->gap_ns;
}

/* What finds no room is lost, and counted as refused. */
static void open_run(BenchFlow *f, int64_t now_ns)
{
    if (!f->due_ns) {
        f->due_ns = now_ns;
    }
    f->due_ns += next_gap(f);
    for (unsigned i = 0; i < f->burst; i++) {
        bench_send(f, BENCH_SINK, f->bytes, 0);
    }
}

static void add_paced(BenchGuest *g, uint32_t bytes, double rate_pps,
                      unsigned burst, bool random)
{
    static const BenchFlowOps ops = { .run = open_run };
    BenchFlow *f = bench_guest_add(g, &ops);

    f->bytes = bytes;
    f->burst = burst;
    f->random = random;
    f->gap_ns = lrint(NS_PER_SEC * burst / rate_pps);
}

static void add_open(BenchGuest *g, const BenchLoadConf *conf, uint32_t bytes)
{
    add_paced(g, bytes, conf->rate_pps, 1, true);
}

static void add_clock(BenchGuest *g, const BenchLoadConf *conf, uint32_t bytes)
{
    add_paced(g, bytes, conf->rate_pps, 1, false);
}

static void add_on_off(BenchGuest *g, const BenchLoadConf *conf,
                       uint32_t bytes)
{
    add_paced(g, bytes, conf->rate_pps, conf->burst, false);
}

static void ping_run(BenchFlow *f, int64_t now_ns)
{
    bench_send(f, BENCH_ECHO, f->bytes, now_ns);
    f->due_ns = now_ns + f->gap_ns / 2 +
                (int64_t)lrint(g_rand_double(f->g->rand) * f->gap_ns);
}

static void ping_received(BenchFlow *f, const BenchFrame *in)
{
    bench_note_round(f, in->value);
}

static void add_ping(BenchGuest *g, const BenchLoadConf *conf, uint32_t bytes)
{
    static const BenchFlowOps ops = {
        .run = ping_run, .received = ping_received,
    };
    BenchFlow *f = bench_guest_add(g, &ops);

    f->bytes = bytes;
    f->answer_bytes = bytes;
    f->gap_ns = conf->ping_ns;
}

/* ---- the other end of a wire ----------------------------------------- */

static void tick_run(BenchFlow *f, int64_t now_ns)
{
    bench_send(f, BENCH_TICK, f->bytes, now_ns);
    f->due_ns = now_ns + f->gap_ns;
}

void bench_loads_add_peer(BenchGuest *g, int64_t tick_ns)
{
    static const BenchFlowOps ops = { .run = tick_run };
    BenchFlow *f = bench_guest_add(g, &ops);

    g->is_peer = true;
    f->bytes = PING_BYTES;
    f->gap_ns = tick_ns;
    f->due_ns = tick_ns ? 0 : BENCH_NEVER;
}

/* ---- the table ------------------------------------------------------- */

typedef struct Load {
    const char *name;
    uint32_t bytes;             /* if none are given */
    bool wants_answers;
    unsigned flows;
    void (*add)(BenchGuest *g, const BenchLoadConf *conf, uint32_t bytes);
    const char *meaning;
} Load;

static const Load loads_table[] = {
    { "udp", 1400, false, 1, add_udp,
      "datagrams; the socket holds --socket, wakes at half of it" },
    { "tcp", 65536, true, 1, add_tcp,
      "a stream of writes; two packets on their way, which grow" },
    { "rr", 67, true, 1, add_rr, "request and response" },
    { "rr16", 67, true, RR_MANY, add_rr_many, "16 of them at a time" },
    { "ping", PING_BYTES, true, 1, add_ping, "an echo request each --ping-us" },
    { "flood", FLOOD_BYTES, false, 1, add_flood,
      "datagrams of one byte that only the ring limits" },
    { "open", 64, false, 1, add_open, "packets at --rate, at random" },
    { "clock", 64, false, 1, add_clock, "packets at --rate, evenly" },
    { "on-off", 64, false, 1, add_on_off, "--burst at a time, at --rate" },
};

static const Load *find_load(const char *word, size_t len)
{
    for (size_t i = 0; i < G_N_ELEMENTS(loads_table); i++) {
        const Load *l = &loads_table[i];

        if (strlen(l->name) == len && !strncmp(l->name, word, len)) {
            return l;
        }
    }
    return NULL;
}

/* NAME[:BYTES] */
static const Load *parse_load(const char *word, uint32_t *bytes, GError **errp)
{
    size_t len = strcspn(word, ":");
    const Load *l = find_load(word, len);
    unsigned max;
    guint64 n;

    if (!l) {
        vnet_set_error(errp, "--load: no load is called '%.*s', see --help",
                       (int)len, word);
        return NULL;
    }
    *bytes = l->bytes;
    if (!word[len]) {
        return l;
    }
    max = l->add == add_tcp ? TCP_BUFFER : BENCH_FRAME_MAX;
    if (!g_ascii_string_to_unsigned(word + len + 1, 10, sizeof(BenchFrame),
                                    max, &n, NULL)) {
        vnet_set_error(errp, "--load: '%s': want %zu to %u bytes", word,
                       sizeof(BenchFrame), max);
        return NULL;
    }
    *bytes = n;
    return l;
}

bool bench_loads_check(const char *loads, bool has_peer, GError **errp)
{
    g_auto(GStrv) words = g_strsplit(loads, "+", -1);
    unsigned flows = 0;

    for (char **w = words; *w; w++) {
        uint32_t bytes;
        const Load *l = parse_load(*w, &bytes, errp);

        if (!l) {
            return false;
        }
        if (l->wants_answers && !has_peer) {
            vnet_set_error(errp, "--load: '%s' needs somebody who answers:"
                           " --backend tap or pair", *w);
            return false;
        }
        flows += l->flows;
    }
    if (!flows || flows > BENCH_FLOWS_MAX) {
        vnet_set_error(errp, "--load: %u flows, want 1 to %u", flows,
                       BENCH_FLOWS_MAX);
        return false;
    }
    return true;
}

void bench_loads_add(BenchGuest *g, const char *loads,
                     const BenchLoadConf *conf)
{
    g_auto(GStrv) words = g_strsplit(loads, "+", -1);

    for (char **w = words; *w; w++) {
        uint32_t bytes;

        parse_load(*w, &bytes, NULL)->add(g, conf, bytes);
    }
}

char *bench_loads_help(void)
{
    GString *s = g_string_new("Loads, NAME[:BYTES], several with '+':\n");

    for (size_t i = 0; i < G_N_ELEMENTS(loads_table); i++) {
        const Load *l = &loads_table[i];

        g_string_append_printf(s, "  %-7s %5u  %s\n", l->name, l->bytes,
                               l->meaning);
    }
    return g_string_free(s, FALSE);
}
