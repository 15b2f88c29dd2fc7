/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The host's end of taps: see the header.
 *
 * A filter in the kernel keeps frames that nobody wants from the sockets, and
 * cuts the others to their start: what a packet costs below the device is then
 * little more than the tap itself.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <linux/filter.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "util/clock.h"
#include "util/report.h"
#include "vnet-bench-frame.h"
#include "vnet-bench-host.h"

#define SOCKET_BYTES    (64 * 1024 * 1024)
#define TICK_BYTES      98
#define AT_ONCE         64              /* frames of one tap */

typedef struct HostTap {
    int fd;
    BenchPeer peer;
    uint32_t ticks;
} HostTap;

struct BenchHost {
    HostTap *taps;
    unsigned n;
    int64_t tick_ns;
    int end;                    /* eventfd: the thread has to */
    GThread *thread;
};

/* ---- namespace and sockets ------------------------------------------- */

/* No multicasts of the host's own in between. */
static void no_ipv6(void)
{
    FILE *f = fopen("/proc/sys/net/ipv6/conf/default/disable_ipv6", "w");

    if (f) {
        fputs("1", f);
        fclose(f);
    }
}

bool bench_host_enter(GError **errp)
{
    if (unshare(CLONE_NEWNET) < 0) {
        vnet_set_error(errp, "--backend tap needs a network namespace of its"
                       " own: %s%s", g_strerror(errno),
                       errno == EPERM ? " (run it as root)" : "");
        return false;
    }
    no_ipv6();
    return true;
}

char *bench_host_tap(unsigned i)
{
    return g_strdup_printf("bench%u", i);
}

static bool fail(GError **errp, const char *what, const char *name)
{
    vnet_set_error(errp, "%s: %s: %s", name, what, g_strerror(errno));
    return false;
}

static bool interface_up(int fd, const char *name, GError **errp)
{
    struct ifreq ifr = { 0 };

    g_strlcpy(ifr.ifr_name, name, sizeof(ifr.ifr_name));
    if (ioctl(fd, SIOCGIFFLAGS, &ifr) < 0) {
        return fail(errp, "SIOCGIFFLAGS", name);
    }
    ifr.ifr_flags |= IFF_UP;
    return ioctl(fd, SIOCSIFFLAGS, &ifr) == 0 ||
           fail(errp, "SIOCSIFFLAGS", name);
}

static bool set_filter(int fd, const char *name, GError **errp)
{
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_B | BPF_ABS, offsetof(BenchFrame, kind)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, BENCH_SINK, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, 0),
        BPF_STMT(BPF_RET | BPF_K, sizeof(BenchFrame)),
    };
    struct sock_fprog prog = { G_N_ELEMENTS(code), code };

    return setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &prog,
                      sizeof(prog)) == 0 ||
           fail(errp, "SO_ATTACH_FILTER", name);
}

static bool set_options(int fd, const char *name, GError **errp)
{
    int bytes = SOCKET_BYTES, on = 1;

    if (setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &bytes,
                   sizeof(bytes)) < 0 ||
        setsockopt(fd, SOL_PACKET, PACKET_QDISC_BYPASS, &on,
                   sizeof(on)) < 0) {
        return fail(errp, "setsockopt", name);
    }
    return true;
}

static bool bind_to(int fd, const char *name, GError **errp)
{
    struct sockaddr_ll addr = {
        .sll_family = AF_PACKET,
        .sll_protocol = htons(BENCH_ETHERTYPE),
        .sll_ifindex = if_nametoindex(name),
    };

    return bind(fd, (struct sockaddr *)&addr, sizeof(addr)) == 0 ||
           fail(errp, "bind", name);
}

/* The filter is there before the first frame can be. */
static bool open_tap(HostTap *t, unsigned i, GError **errp)
{
    g_autofree char *name = bench_host_tap(i);

    t->fd = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (t->fd < 0) {
        return fail(errp, "packet socket", name);
    }
    return set_options(t->fd, name, errp) && set_filter(t->fd, name, errp) &&
           bind_to(t->fd, name, errp) && interface_up(t->fd, name, errp);
}

/* ---- the thread ------------------------------------------------------ */

static void send_frame(HostTap *t, const BenchFrame *frame, uint32_t bytes)
{
    static const uint8_t zeroes[BENCH_FRAME_MAX];
    struct iovec iov[2] = {
        { (void *)frame, sizeof(*frame) },
        { (void *)zeroes, MAX(bytes, sizeof(*frame)) - sizeof(*frame) },
    };
    struct msghdr mh = { .msg_iov = iov, .msg_iovlen = 2 };

    /* A tap that is full drops: so do networks. */
    while (sendmsg(t->fd, &mh, 0) < 0 && errno == EINTR) {
        continue;
    }
}

static void serve(HostTap *t)
{
    BenchFrame in, out;

    for (unsigned i = 0; i < AT_ONCE; i++) {
        ssize_t bytes = recv(t->fd, &in, sizeof(in), MSG_TRUNC);
        uint32_t len;

        if (bytes < 0) {
            break;
        }
        if (bench_frame_is_ours(&in, bytes)) {
            len = bench_peer_receive(&t->peer, &in, bytes, &out);
            if (len) {
                send_frame(t, &out, len);
            }
        }
    }
}

static void tick(BenchHost *h, int64_t now_ns)
{
    BenchFrame frame;

    for (unsigned i = 0; i < h->n; i++) {
        bench_frame_init(&frame, BENCH_TICK, 0, true);
        frame.seq = h->taps[i].ticks++;
        frame.value = now_ns;
        send_frame(&h->taps[i], &frame, TICK_BYTES);
    }
}

/* What is due, if anything ticks; then until something comes or is due. */
static void wait_for_work(BenchHost *h, struct pollfd *fds, int64_t *due_ns)
{
    int64_t now = clock_now_ns(clock_monotonic());
    struct timespec ts;

    if (h->tick_ns && now >= *due_ns) {
        tick(h, now);
        *due_ns = MAX(*due_ns + h->tick_ns, now);
    }
    ts = (struct timespec) {
        .tv_sec = (*due_ns - now) / NS_PER_SEC,
        .tv_nsec = (*due_ns - now) % NS_PER_SEC,
    };
    ppoll(fds, h->n + 1, h->tick_ns ? &ts : NULL, NULL);
}

static gpointer host_main(gpointer opaque)
{
    BenchHost *h = opaque;
    g_autofree struct pollfd *fds = g_new(struct pollfd, h->n + 1);
    int64_t due_ns = clock_now_ns(clock_monotonic());

    prctl(PR_SET_TIMERSLACK, 1);
    for (unsigned i = 0; i <= h->n; i++) {
        fds[i] = (struct pollfd) {
            .fd = i < h->n ? h->taps[i].fd : h->end, .events = POLLIN,
        };
    }
    while (!fds[h->n].revents) {
        wait_for_work(h, fds, &due_ns);
        for (unsigned i = 0; i < h->n; i++) {
            if (fds[i].revents) {
                serve(&h->taps[i]);
            }
        }
    }
    return NULL;
}

/* ---- life ------------------------------------------------------------ */

static bool open_taps(BenchHost *h, GError **errp)
{
    for (unsigned i = 0; i < h->n; i++) {
        h->taps[i].fd = -1;
    }
    for (unsigned i = 0; i < h->n; i++) {
        if (!open_tap(&h->taps[i], i, errp)) {
            return false;
        }
    }
    return true;
}

BenchHost *bench_host_new(unsigned taps, int64_t tick_ns, GError **errp)
{
    BenchHost *h = g_new0(BenchHost, 1);

    h->n = taps;
    h->taps = g_new0(HostTap, taps);
    h->tick_ns = tick_ns;
    h->end = eventfd(0, EFD_CLOEXEC);
    if (!open_taps(h, errp)) {
        bench_host_free(h);
        return NULL;
    }
    h->thread = g_thread_new("host", host_main, h);
    return h;
}

void bench_host_free(BenchHost *h)
{
    if (!h) {
        return;
    }
    if (h->thread) {
        eventfd_write(h->end, 1);
        g_thread_join(h->thread);
    }
    for (unsigned i = 0; i < h->n; i++) {
        if (h->taps[i].fd >= 0) {
            close(h->taps[i].fd);
        }
    }
    close(h->end);
    g_free(h->taps);
    g_free(h);
}
