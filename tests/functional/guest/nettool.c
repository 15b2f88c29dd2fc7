/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * nettool: TCP and UDP traffic of the test guest that checks itself.
 *
 *   nettool tcp-get HOST PORT FILE        receive until end of stream
 *   nettool tcp-put HOST PORT FILE        send the file, then end of stream
 *   nettool udp-send HOST PORT COUNT SIZE GAP_US [FLOW]
 *                                         COUNT 0: until killed
 *   nettool udp-echo HOST PORT COUNT SIZE TIMEOUT_MS [FLOW]
 *                                         lock step, each answer compared
 *   nettool udp-get HOST PORT COUNT SIZE TIMEOUT_MS [FLOW]
 *                                         asks the host to send, counts
 *
 * Each prints one line of key=value at its end: what the caller compares
 * with the counters of the other side (tests/functional/lib/hostservers.py,
 * which also knows the layout of a datagram).  Exit status: 0 done, 1 some
 * call failed, 2 usage, 3 data was lost or differs.
 *
 * A datagram is at least 16 bytes: flow, sequence number, count, size, each
 * a 32-bit big-endian number; then byte i is (sequence number + i) & 255.
 *
 * Limits: IPv4; one stream a process.
 */
#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

enum {
    HEADER_BYTES = 16,
    UDP_MAX_BYTES = 65507,
    BLOCK_BYTES = 256 * 1024,
    SOCKET_BUFFER_BYTES = 4 * 1024 * 1024,
};

static uint8_t buffer[BLOCK_BYTES], answer[UDP_MAX_BYTES];

static void die(const char *what)
{
    perror(what);
    exit(1);
}

static uint64_t now_us(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000000ull + t.tv_nsec / 1000;
}

static int net_connect(const char *host, const char *port, int type)
{
    struct sockaddr_in to = { .sin_family = AF_INET,
                              .sin_port = htons(atoi(port)) };
    int size = SOCKET_BUFFER_BYTES;
    int fd = socket(AF_INET, type, 0);

    if (fd < 0 || inet_pton(AF_INET, host, &to.sin_addr) != 1) {
        die(host);
    }
    if (type == SOCK_DGRAM) {
        setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &size, sizeof(size));
    }
    if (connect(fd, (struct sockaddr *)&to, sizeof(to)) < 0) {
        die("connect");
    }
    return fd;
}

static void write_all(int fd, const uint8_t *data, size_t len)
{
    while (len > 0) {
        ssize_t n = write(fd, data, len);

        if (n < 0) {
            die("write");
        }
        data += n;
        len -= n;
    }
}

static void copy(int from, int to)
{
    uint64_t start = now_us(), bytes = 0;
    ssize_t n;

    while ((n = read(from, buffer, sizeof(buffer))) > 0) {
        write_all(to, buffer, n);
        bytes += n;
    }
    if (n < 0) {
        die("read");
    }
    printf("bytes=%llu us=%llu\n", (unsigned long long)bytes,
           (unsigned long long)(now_us() - start));
}

static int tcp_get(char **argv)
{
    int fd = net_connect(argv[0], argv[1], SOCK_STREAM);
    int out = open(argv[2], O_WRONLY | O_CREAT | O_TRUNC, 0644);

    if (out < 0) {
        die(argv[2]);
    }
    copy(fd, out);
    return 0;
}

/* Done when the host has closed its side too: it then had everything. */
static int tcp_put(char **argv)
{
    int fd = net_connect(argv[0], argv[1], SOCK_STREAM);
    int in = open(argv[2], O_RDONLY);

    if (in < 0) {
        die(argv[2]);
    }
    copy(in, fd);
    shutdown(fd, SHUT_WR);
    if (read(fd, buffer, 1) != 0) {
        die("end of stream");
    }
    return 0;
}

typedef struct Flow {
    int fd;
    uint32_t count, size, id;
    uint64_t option;            /* microseconds or milliseconds, see usage */
} Flow;

static Flow flow_open(char **argv)
{
    Flow f = { .fd = net_connect(argv[0], argv[1], SOCK_DGRAM),
               .count = strtoul(argv[2], NULL, 0),
               .size = strtoul(argv[3], NULL, 0),
               .option = strtoull(argv[4], NULL, 0),
               .id = argv[5] ? strtoul(argv[5], NULL, 0) : 1 };

    if (f.size < HEADER_BYTES || f.size > UDP_MAX_BYTES) {
        fprintf(stderr, "nettool: datagram of %u bytes: 16 to 65507\n",
                f.size);
        exit(2);
    }
    return f;
}

static void datagram_fill(const Flow *f, uint32_t seq, uint8_t *data)
{
    uint32_t header[] = { htonl(f->id), htonl(seq), htonl(f->count),
                          htonl(f->size) };

    memcpy(data, header, HEADER_BYTES);
    for (uint32_t i = HEADER_BYTES; i < f->size; i++) {
        data[i] = seq + i;
    }
}

static void flow_timeout(const Flow *f)
{
    struct timeval t = { .tv_sec = f->option / 1000,
                         .tv_usec = f->option % 1000 * 1000 };

    setsockopt(f->fd, SOL_SOCKET, SO_RCVTIMEO, &t, sizeof(t));
}

static void wait_until(uint64_t us)
{
    uint64_t now = now_us();

    if (now < us) {
        usleep(us - now);
    }
}

/* A full socket or a link that is down is not the end: count it, go on. */
static int udp_send(char **argv)
{
    Flow f = flow_open(argv);
    uint64_t start = now_us(), sent = 0, failed = 0;

    for (uint32_t seq = 0; f.count == 0 || seq < f.count; seq++) {
        datagram_fill(&f, seq, buffer);
        if (send(f.fd, buffer, f.size, 0) < 0) {
            failed++;
            usleep(1000);
        } else {
            sent++;
        }
        if (f.option) {
            wait_until(start + (seq + 1ull) * f.option);
        }
    }
    printf("sent=%llu failed=%llu us=%llu\n", (unsigned long long)sent,
           (unsigned long long)failed,
           (unsigned long long)(now_us() - start));
    return failed ? 3 : 0;
}

static int udp_echo(char **argv)
{
    Flow f = flow_open(argv);
    uint64_t start = now_us();
    uint32_t good = 0, lost = 0, bad = 0;

    flow_timeout(&f);
    for (uint32_t seq = 0; seq < f.count; seq++) {
        ssize_t n;

        datagram_fill(&f, seq, buffer);
        if (send(f.fd, buffer, f.size, 0) < 0) {
            die("send");
        }
        n = recv(f.fd, answer, sizeof(answer), 0);
        if (n < 0) {
            lost++;
        } else if (n != f.size || memcmp(buffer, answer, n)) {
            bad++;
        } else {
            good++;
        }
    }
    printf("good=%u lost=%u bad=%u us=%llu\n", good, lost, bad,
           (unsigned long long)(now_us() - start));
    return lost || bad ? 3 : 0;
}

/*
 * The request is a datagram with the highest sequence number; the host
 * answers with COUNT datagrams of the same flow, 0 and up.
 */
static int udp_get(char **argv)
{
    Flow f = flow_open(argv);
    uint64_t start = now_us();
    uint32_t good = 0, bad = 0, late = 0, next = 0;

    flow_timeout(&f);
    datagram_fill(&f, UINT32_MAX, buffer);
    if (send(f.fd, buffer, f.size, 0) < 0) {
        die("send");
    }
    while (good + bad < f.count) {
        ssize_t n = recv(f.fd, answer, sizeof(answer), 0);
        uint32_t seq;

        if (n < 0) {
            break;
        }
        memcpy(&seq, answer + 4, sizeof(seq));
        seq = ntohl(seq);
        datagram_fill(&f, seq, buffer);
        if (n != f.size || memcmp(buffer, answer, n)) {
            bad++;
            continue;
        }
        good++;
        late += seq < next;
        next = seq + 1;
    }
    printf("good=%u bad=%u reordered=%u us=%llu\n", good, bad, late,
           (unsigned long long)(now_us() - start));
    return good == f.count && !bad && !late ? 0 : 3;
}

static const struct {
    const char *name;
    int args, optional;
    int (*run)(char **argv);
} verbs[] = {
    { "tcp-get", 3, 0, tcp_get },
    { "tcp-put", 3, 0, tcp_put },
    { "udp-send", 5, 1, udp_send },
    { "udp-echo", 5, 1, udp_echo },
    { "udp-get", 5, 1, udp_get },
};

int main(int argc, char **argv)
{
    for (size_t i = 0; argc > 1 && i < sizeof(verbs) / sizeof(*verbs); i++) {
        int extra = argc - 2 - verbs[i].args;

        if (!strcmp(argv[1], verbs[i].name) && extra >= 0 &&
            extra <= verbs[i].optional) {
            return verbs[i].run(argv + 2);
        }
    }
    fprintf(stderr, "usage: nettool {tcp-get|tcp-put} HOST PORT FILE\n"
            "       nettool {udp-send|udp-echo|udp-get} HOST PORT COUNT SIZE "
            "TIME [FLOW]\n");
    return 2;
}
