/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * udpburst: datagrams in bursts, and how long each burst took to arrive.
 *
 *   udpburst send HOST PORT COUNT SIZE PERIOD_US SECONDS
 *                             COUNT datagrams at once, each PERIOD_US
 *   udpburst serve PORT       the other end, for any number of senders
 *
 * The server answers the last datagram of a burst, with its header only.  The
 * time of a burst is from just before its first send() to that answer in the
 * sender's hands, by the sender's clock alone: COUNT 1 makes it a round trip.
 * At the end the sender asks how many datagrams there were, and prints one
 * line of key=value:
 *
 *   bursts, late     bursts sent; of these, begun after their time because the
 *                    one before had not been sent yet
 *   sent, delivered  datagrams
 *   answered         bursts with a time
 *   p50_us, p99_us   of the times
 *   us               from the first burst to the end of the last period
 *
 * A period that is over before its burst could begin is left out: the load
 * stays one of bursts with pauses, and a slow device gets fewer of them.
 *
 * Exit status: 0 done, 1 some call failed, 2 usage, 3 no answer at all.
 *
 * Limits: IPv4; a server tells apart FLOWS senders.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum {
    FLOWS = 256,
    UDP_MAX_BYTES = 65507,
    SERVER_BUFFER_BYTES = 16 * 1024 * 1024,
    ANSWER_WAIT_NS = 200 * 1000 * 1000,
    ASK_TRIES = 10,
};

typedef enum Kind { KIND_DATA, KIND_LAST, KIND_ASK } Kind;

/* What a datagram begins with; numbers are big-endian. */
typedef struct Header {
    uint32_t kind;
    uint32_t flow;
    uint32_t value;     /* number of the burst; in an answer to ASK: count */
} Header;

typedef struct Sender {
    int fd;
    uint32_t flow, count, size;
    uint64_t period_ns;
    uint32_t bursts, late, max_bursts, answered;
    uint64_t sent;
    uint64_t *start_ns;         /* by number of the burst */
    uint64_t *took_ns;          /* in the order of the answers */
} Sender;

static uint8_t buffer[UDP_MAX_BYTES];

static void die(const char *what)
{
    perror(what);
    exit(1);
}

static uint64_t now_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000000000ull + t.tv_nsec;
}

static struct sockaddr_in address(const char *host, const char *port)
{
    struct sockaddr_in to = { .sin_family = AF_INET,
                              .sin_port = htons(atoi(port)) };

    if (inet_pton(AF_INET, host, &to.sin_addr) != 1) {
        fprintf(stderr, "udpburst: not an address: %s\n", host);
        exit(2);
    }
    return to;
}

/* Returns how many of the flow there were, this one included if it counts. */
static uint32_t count_datagram(uint32_t kind, uint32_t flow)
{
    static struct { uint32_t flow, count; } flows[FLOWS];
    uint32_t slot = flow % FLOWS;

    if (flows[slot].flow != flow) {
        flows[slot].flow = flow;
        flows[slot].count = 0;
    }
    flows[slot].count += kind != KIND_ASK;
    return flows[slot].count;
}

static _Noreturn void serve(char **argv)
{
    struct sockaddr_in at = address("0.0.0.0", argv[0]), from;
    int fd = socket(AF_INET, SOCK_DGRAM, 0);
    int size = SERVER_BUFFER_BYTES;
    Header h;

    /* Without the privilege, what the system allows. */
    if (setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &size, sizeof(size)) < 0) {
        setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &size, sizeof(size));
    }
    if (bind(fd, (struct sockaddr *)&at, sizeof(at)) < 0) {
        die("bind");
    }
    for (;;) {
        socklen_t len = sizeof(from);
        ssize_t n = recvfrom(fd, buffer, sizeof(buffer), 0,
                             (struct sockaddr *)&from, &len);
        uint32_t count;

        if (n < (ssize_t)sizeof(h)) {
            continue;
        }
        memcpy(&h, buffer, sizeof(h));
        count = count_datagram(ntohl(h.kind), ntohl(h.flow));
        if (ntohl(h.kind) == KIND_DATA) {
            continue;
        }
        if (ntohl(h.kind) == KIND_ASK) {
            h.value = htonl(count);
        }
        sendto(fd, &h, sizeof(h), 0, (struct sockaddr *)&from, len);
    }
}

static void send_one(Sender *s, Kind kind)
{
    Header h = { htonl(kind), htonl(s->flow), htonl(s->bursts) };

    memcpy(buffer, &h, sizeof(h));
    while (send(s->fd, buffer, s->size, 0) < 0) {
        if (errno != EINTR && errno != ENOBUFS) {
            die("send");
        }
    }
}

static void send_burst(Sender *s)
{
    s->start_ns[s->bursts] = now_ns();
    for (uint32_t i = 0; i < s->count; i++) {
        send_one(s, i == s->count - 1 ? KIND_LAST : KIND_DATA);
    }
    s->sent += s->count;
    s->bursts++;
}

/* Waits for an answer of this kind until a time; whether there was one. */
static bool receive(Sender *s, Kind kind, uint64_t until_ns, Header *h)
{
    for (;;) {
        uint64_t now = now_ns(), left = now < until_ns ? until_ns - now : 0;
        struct timespec wait = { left / 1000000000, left % 1000000000 };
        struct pollfd pfd = { .fd = s->fd, .events = POLLIN };

        if (ppoll(&pfd, 1, &wait, NULL) <= 0) {
            return false;
        }
        if (recv(s->fd, h, sizeof(*h), MSG_DONTWAIT) == sizeof(*h) &&
            ntohl(h->kind) == kind && ntohl(h->flow) == s->flow) {
            return true;
        }
    }
}

/* Whether there was an answer to a burst before that time; notes it. */
static bool take_answer(Sender *s, uint64_t until_ns)
{
    Header h;
    uint32_t burst;

    if (!receive(s, KIND_LAST, until_ns, &h)) {
        return false;
    }
    burst = ntohl(h.value);
    if (burst < s->bursts && s->answered < s->bursts) {
        s->took_ns[s->answered++] = now_ns() - s->start_ns[burst];
    }
    return true;
}

static uint32_t ask_delivered(Sender *s)
{
    Header h;

    for (int i = 0; i < ASK_TRIES; i++) {
        send_one(s, KIND_ASK);
        if (receive(s, KIND_ASK, now_ns() + ANSWER_WAIT_NS, &h)) {
            return ntohl(h.value);
        }
    }
    return 0;
}

static int compare(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

    return (x > y) - (x < y);
}

static double percentile_us(const Sender *s, double p)
{
    return s->answered ? s->took_ns[(uint32_t)(p * (s->answered - 1))] / 1e3
                       : 0;
}

/* All bursts; returns how long that took. */
static uint64_t send_all(Sender *s)
{
    uint64_t begin = now_ns(), due = begin;

    while (s->bursts < s->max_bursts &&
           due < begin + s->max_bursts * s->period_ns) {
        uint64_t now;

        send_burst(s);
        due += s->period_ns;
        now = now_ns();
        if (now > due) {
            s->late++;
            due += (now - due) / s->period_ns * s->period_ns;
        }
        while (take_answer(s, due)) {
        }
    }
    return now_ns() - begin;
}

static int send_bursts(char **argv)
{
    struct sockaddr_in to = address(argv[0], argv[1]);
    Sender s = { .fd = socket(AF_INET, SOCK_DGRAM, 0),
                 .flow = now_ns() ^ (uint32_t)getpid() << 16,
                 .count = atoi(argv[2]), .size = atoi(argv[3]),
                 .period_ns = atoi(argv[4]) * 1000ull };
    double seconds = atof(argv[5]);
    uint64_t took_ns, until_ns;
    uint32_t delivered;

    if (s.count < 1 || s.size < sizeof(Header) || s.size > UDP_MAX_BYTES ||
        s.period_ns == 0 || seconds * 1e9 < s.period_ns) {
        fprintf(stderr, "udpburst: SIZE from %zu to %d, one period at least\n",
                sizeof(Header), UDP_MAX_BYTES);
        return 2;
    }
    /* Periods are short against the 50 us that timers are late by default. */
    prctl(PR_SET_TIMERSLACK, 1);
    if (connect(s.fd, (struct sockaddr *)&to, sizeof(to)) < 0) {
        die("connect");
    }
    s.max_bursts = seconds * 1e9 / s.period_ns;
    s.start_ns = calloc(s.max_bursts, sizeof(*s.start_ns));
    s.took_ns = calloc(s.max_bursts, sizeof(*s.took_ns));
    if (!s.start_ns || !s.took_ns) {
        die("calloc");
    }
    took_ns = send_all(&s);
    until_ns = now_ns() + ANSWER_WAIT_NS;
    while (s.answered < s.bursts && take_answer(&s, until_ns)) {
    }
    delivered = ask_delivered(&s);
    qsort(s.took_ns, s.answered, sizeof(*s.took_ns), compare);
    printf("bursts=%u late=%u sent=%llu delivered=%u answered=%u p50_us=%.1f "
           "p99_us=%.1f us=%llu\n", s.bursts, s.late,
           (unsigned long long)s.sent, delivered, s.answered,
           percentile_us(&s, 0.5), percentile_us(&s, 0.99),
           (unsigned long long)took_ns / 1000);
    return s.answered ? 0 : 3;
}

int main(int argc, char **argv)
{
    if (argc == 3 && !strcmp(argv[1], "serve")) {
        serve(argv + 2);
    }
    if (argc == 8 && !strcmp(argv[1], "send")) {
        return send_bursts(argv + 2);
    }
    fprintf(stderr, "usage: udpburst send HOST PORT COUNT SIZE PERIOD_US "
            "SECONDS\n       udpburst serve PORT\n");
    return 2;
}
