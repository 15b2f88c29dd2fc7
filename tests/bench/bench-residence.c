/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * How long a packet stays in the device, unpolled:
 *
 *   transmit: from the write of the kick eventfd to the write on the tap;
 *   receive:  from the send that makes the tap readable to the write of the
 *             call eventfd.
 *
 * The whole device runs in one iothread on a real tap in a network namespace
 * of this program's own; this thread is the driver and the host.  Each sample
 * starts when the device thread sleeps, so the wake-up of a thread on another
 * CPU is in the figure.  The linker's --wrap puts clocks into writev, write
 * and epoll_wait, as the device thread calls them.
 *
 * Usage: bench-residence [SAMPLES] [bh|timer]
 */
#include <errno.h>
#include <linux/if_packet.h>
#include <net/ethernet.h>
#include <net/if.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "hw/net/virtio-net-features.h"
#include "hw/net/virtio-net.h"
#include "util/iothread.h"
#include "util/report.h"
#include "vring-harness.h"

#define BASE    UINT64_C(0x100000)
#define RING(i) (BASE + (i) * 0x20000)
#define BUFFERS (BASE + 0x100000)
#define BYTES   UINT64_C(0x800000)
#define SIZE    256
#define FRAME   60
#define HDR     12

/* ---- what the device thread does, and when --------------------------- */

static int call_fds[2] = { -1, -1 };
static int64_t writev_ns, call_ns;          /* of the first one; 0: none yet */
static uint64_t wakeups;
static int asleep;

static int64_t now_ns(void)
{
    return clock_now_ns(clock_monotonic());
}

static void stamp(int64_t *slot)
{
    if (!__atomic_load_n(slot, __ATOMIC_RELAXED)) {
        __atomic_store_n(slot, now_ns(), __ATOMIC_RELEASE);
    }
}

ssize_t __real_writev(int fd, const struct iovec *iov, int cnt);
ssize_t __wrap_writev(int fd, const struct iovec *iov, int cnt);
ssize_t __wrap_writev(int fd, const struct iovec *iov, int cnt)
{
    stamp(&writev_ns);
    return __real_writev(fd, iov, cnt);
}

ssize_t __real_write(int fd, const void *buf, size_t len);
ssize_t __wrap_write(int fd, const void *buf, size_t len);
ssize_t __wrap_write(int fd, const void *buf, size_t len)
{
    if (fd == call_fds[0]) {
        stamp(&call_ns);
    } else if (len == HDR + FRAME) {
        stamp(&writev_ns);
    }
    return __real_write(fd, buf, len);
}

static void before_wait(bool sleeps)
{
    __atomic_store_n(&asleep, sleeps, __ATOMIC_RELEASE);
}

static void after_wait(void)
{
    __atomic_store_n(&asleep, 0, __ATOMIC_RELAXED);
    __atomic_add_fetch(&wakeups, 1, __ATOMIC_RELAXED);
}

int __real_epoll_wait(int fd, struct epoll_event *ev, int n, int timeout);
int __wrap_epoll_wait(int fd, struct epoll_event *ev, int n, int timeout);
int __wrap_epoll_wait(int fd, struct epoll_event *ev, int n, int timeout)
{
    int ready;

    before_wait(timeout != 0);
    ready = __real_epoll_wait(fd, ev, n, timeout);
    after_wait();
    return ready;
}

/* ---- set-up ---------------------------------------------------------- */

typedef struct Rig {
    IOThread *iot;
    NetBackend *nb;
    VirtIONet *nic;
    uint8_t *ram;
    GuestMap *map;
    VringDriver drv[2];
    int kick[2];
    int host;               /* AF_PACKET on the tap */
} Rig;

static void die(const char *what)
{
    fprintf(stderr, "bench-residence: %s: %s\n", what, strerror(errno));
    exit(1);
}

static void die_error(GError *err)
{
    fprintf(stderr, "bench-residence: %s\n", err->message);
    exit(1);
}

static void *ptr(Rig *r, uint64_t gpa)
{
    return r->ram + (gpa - BASE);
}

static void interface_up(const char *name)
{
    int s = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    struct ifreq ifr = { 0 };

    g_strlcpy(ifr.ifr_name, name, sizeof(ifr.ifr_name));
    if (s < 0 || ioctl(s, SIOCGIFFLAGS, &ifr) < 0) {
        die("SIOCGIFFLAGS");
    }
    ifr.ifr_flags |= IFF_UP;
    if (ioctl(s, SIOCSIFFLAGS, &ifr) < 0) {
        die("SIOCSIFFLAGS");
    }
    close(s);
}

/* No multicasts of the host's own in between, which would take the calls. */
static void no_ipv6(void)
{
    FILE *f = fopen("/proc/sys/net/ipv6/conf/default/disable_ipv6", "w");

    if (f) {
        fputs("1", f);
        fclose(f);
    }
}

static int packet_socket(const char *ifname)
{
    struct sockaddr_ll addr = { .sll_family = AF_PACKET,
                                .sll_ifindex = if_nametoindex(ifname) };
    int s = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0);

    if (s < 0 || bind(s, (struct sockaddr *)&addr, sizeof(addr)) < 0) {
        die("packet socket");
    }
    return s;
}

static void make_nic(Rig *r, const char *mode)
{
    g_autofree char *netdev = g_strdup("tap,id=n0,ifname=bench0,script=no,"
                                       "downscript=no");
    GError *err = NULL;
    KeyVal *kv = keyval_parse("-netdev", netdev, "type", &err);
    VirtIONetConf conf;

    virtio_net_conf_init(&conf);
    g_strlcpy(conf.id, "nic0", sizeof(conf.id));
    conf.tx = !strcmp(mode, "timer") ? VIRTIO_NET_TX_TIMER : VIRTIO_NET_TX_BH;
    r->iot = iothread_new("io0", clock_monotonic(), &err);
    if (r->iot) {
        r->nb = net_backend_new(kv, iothread_context(r->iot), &err);
    }
    if (r->nb) {
        r->nic = virtio_net_new(&conf, r->nb, iothread_context(r->iot), &err);
    }
    if (!r->nic || !virtio_net_set_features(
            r->nic, 1ULL << VIRTIO_F_VERSION_1 | VH_EVENT_IDX |
            1ULL << VIRTIO_NET_F_MRG_RXBUF, &err)) {
        die_error(err);
    }
    keyval_free(kv);
}

static void make_memory(Rig *r)
{
    GuestRegionInfo info = { .gpa = BASE, .size = BYTES, .uaddr = BASE };
    GuestMapBuilder *b = guest_map_builder_new(NULL);
    GError *err = NULL;

    r->ram = mmap(NULL, BYTES, PROT_READ | PROT_WRITE,
                  MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
    if (r->ram == MAP_FAILED) {
        die("mmap");
    }
    if (!guest_map_builder_add_ram(b, &info, r->ram, &err)) {
        die_error(err);
    }
    r->map = guest_map_builder_finish(b);
}

static void start_ring(Rig *r, unsigned i)
{
    VirtQueueSetup setup = { .size = SIZE, .space = GUEST_SPACE_PHYS,
                             .desc = RING(i), .avail = RING(i) + 0x8000,
                             .used = RING(i) + 0x10000 };
    GError *err = NULL;

    vring_driver_init(&r->drv[i], SIZE, VH_EVENT_IDX, ptr(r, RING(i)),
                      ptr(r, RING(i) + 0x8000), ptr(r, RING(i) + 0x10000));
    r->kick[i] = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    call_fds[i] = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    virtio_net_queue_set_call(r->nic, i, call_fds[i]);
    if (!virtio_net_queue_start(r->nic, i, &setup, r->map, dup(r->kick[i]),
                                &err)) {
        die_error(err);
    }
    virtio_net_queue_enable(r->nic, i, true);
}

/* ---- samples --------------------------------------------------------- */

static void wait_asleep(void)
{
    while (!__atomic_load_n(&asleep, __ATOMIC_ACQUIRE)) {
        sched_yield();
    }
    /* it announced its sleep just before it: let it get there */
    for (int64_t end = now_ns() + 20 * NS_PER_US; now_ns() < end;) {
        continue;
    }
}

static int64_t wait_stamp(int64_t *slot, int64_t start)
{
    int64_t at;

    while (!(at = __atomic_load_n(slot, __ATOMIC_ACQUIRE))) {
        if (now_ns() - start > NS_PER_SEC) {
            fprintf(stderr, "bench-residence: a packet got stuck\n");
            exit(1);
        }
    }
    return at - start;
}

static void drain(VringDriver *d)
{
    uint32_t id, len;

    while (vring_driver_get_used(d, &id, &len)) {
        continue;
    }
}

static int64_t sample_tx(Rig *r)
{
    VringDriver *d = &r->drv[1];
    int64_t start, took;

    drain(d);
    wait_asleep();
    vring_driver_add(d, BUFFERS, HDR + FRAME, 0);
    if (!vring_driver_wants_kick(d)) {
        fprintf(stderr, "bench-residence: an idle ring wants no kick\n");
        exit(1);
    }
    __atomic_store_n(&writev_ns, 0, __ATOMIC_RELEASE);
    start = now_ns();
    if (eventfd_write(r->kick[1], 1) < 0) {
        die("kick");
    }
    took = wait_stamp(&writev_ns, start);
    return took;
}

static int64_t sample_rx(Rig *r)
{
    static const uint8_t frame[FRAME] = { 2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2,
                                          0x88, 0xb5 };
    VringDriver *d = &r->drv[0];
    int64_t start;

    drain(d);
    vring_driver_enable_call(d);
    vring_driver_add(d, BUFFERS + 0x1000 + (d->avail_idx % SIZE) * 2048, 2048,
                     VRING_DESC_F_WRITE);
    if (vring_driver_wants_kick(d)) {
        eventfd_write(r->kick[0], 1);
    }
    wait_asleep();
    __atomic_store_n(&call_ns, 0, __ATOMIC_RELEASE);
    start = now_ns();
    if (send(r->host, frame, sizeof(frame), 0) < 0) {
        die("send");
    }
    return wait_stamp(&call_ns, start);
}

static int compare(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

    return (x > y) - (x < y);
}

static void measure(Rig *r, const char *what, int64_t (*sample)(Rig *r),
                    unsigned samples)
{
    g_autofree int64_t *ns = g_new(int64_t, samples);
    uint64_t before;

    for (unsigned i = 0; i < samples / 10; i++) {
        sample(r);
    }
    before = __atomic_load_n(&wakeups, __ATOMIC_RELAXED);
    for (unsigned i = 0; i < samples; i++) {
        ns[i] = sample(r);
    }
    wait_asleep();
    qsort(ns, samples, sizeof(ns[0]), compare);
    printf("%-34s p50 %6.1f us   p99 %6.1f us   wake-ups %.2f\n", what,
           ns[samples / 2] / 1e3, ns[samples * 99 / 100] / 1e3,
           (double)(__atomic_load_n(&wakeups, __ATOMIC_RELAXED) - before) /
           samples);
}

int main(int argc, char **argv)
{
    unsigned samples = argc > 1 ? atoi(argv[1]) : 20000;
    Rig r = { 0 };
    GError *err = NULL;

    report_init(argv[0]);
    if (samples < 100) {
        fprintf(stderr, "usage: bench-residence [SAMPLES>=100] [bh|timer]\n");
        return 1;
    }
    if (unshare(CLONE_NEWNET) < 0) {
        die("a network namespace of our own (root only)");
    }
    no_ipv6();
    make_nic(&r, argc > 2 ? argv[2] : "bh");
    interface_up("bench0");
    r.host = packet_socket("bench0");
    make_memory(&r);
    if (!iothread_start(r.iot, &err)) {
        die_error(err);
    }
    start_ring(&r, 0);
    start_ring(&r, 1);
    for (unsigned i = 0; i < 64; i++) {
        vring_driver_add(&r.drv[0], BUFFERS + 0x1000 + i * 2048, 2048,
                         VRING_DESC_F_WRITE);
    }
    eventfd_write(r.kick[0], 1);
    measure(&r, "kick to write", sample_tx, samples);
    measure(&r, "tap readable to call", sample_rx, samples);
    virtio_net_free(r.nic);
    net_backend_free(r.nb);
    iothread_free(r.iot);
    guest_map_release_wait(r.map);
    return 0;
}
