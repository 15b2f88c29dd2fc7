/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A NIC's driver, rings and memory: see the header.
 */
#include <errno.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <unistd.h>

#include "hw/net/virtio-net-features.h"
#include "util/report.h"
#include "vnet-bench-frontend.h"
#include "vnet-bench-nic.h"

#define GPA         UINT64_C(0x100000)
#define HDR         12
#define AREA        0x8000              /* each of a ring's three */
#define RX_BUF      (2 * 3 * AREA)
#define STRIDE      2048                /* from buffer to buffer */
#define RX_BYTES    1536

/* ---- life ------------------------------------------------------------ */

static uint64_t tx_buf(const BenchNic *n)
{
    return RX_BUF + (uint64_t)n->size * STRIDE;
}

static bool make_memory(BenchNic *n, GError **errp)
{
    n->ram_bytes = tx_buf(n) + (uint64_t)n->size * STRIDE + 0x20000;
    n->ram_fd = memfd_create("guest", MFD_CLOEXEC);
    if (n->ram_fd >= 0 && ftruncate(n->ram_fd, n->ram_bytes) == 0) {
        n->ram = mmap(NULL, n->ram_bytes, PROT_READ | PROT_WRITE,
                      MAP_SHARED | MAP_POPULATE, n->ram_fd, 0);
        if (n->ram != MAP_FAILED) {
            return true;
        }
    }
    n->ram = NULL;
    vnet_set_error(errp, "cannot make guest memory: %s", g_strerror(errno));
    return false;
}

static bool start_ring(BenchNic *n, unsigned idx, uint64_t features,
                       GError **errp)
{
    uint8_t *base = n->ram + idx * 3 * AREA;
    BenchRing ring = {
        .index = idx, .size = n->size,
        .desc = base, .avail = base + AREA, .used = base + 2 * AREA,
    };

    vring_driver_init(&n->ring[idx], n->size, features, base, base + AREA,
                      base + 2 * AREA);
    ring.kick = n->kick[idx] = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    ring.call = n->call[idx] = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (ring.kick < 0 || ring.call < 0) {
        vnet_set_error(errp, "eventfd: %s", g_strerror(errno));
        return false;
    }
    return bench_frontend_start(n->sock, &ring, errp);
}

static bool start(BenchNic *n, bool event_idx, GError **errp)
{
    uint64_t features = VH_FEATURE(VIRTIO_F_VERSION_1) |
                        VH_FEATURE(VIRTIO_NET_F_MRG_RXBUF) |
                        (event_idx ? VH_EVENT_IDX : 0);

    if (!make_memory(n, errp) ||
        !bench_frontend_negotiate(n->sock, features, errp) ||
        !bench_frontend_memory(n->sock, n->ram_fd, n->ram, n->ram_bytes, GPA,
                               errp) ||
        !start_ring(n, BENCH_RX, features, errp) ||
        !start_ring(n, BENCH_TX, features, errp)) {
        return false;
    }
    bench_nic_refill(n);
    bench_nic_kick(n, BENCH_RX);
    return true;
}

BenchNic *bench_nic_new(int sock, uint16_t size, bool event_idx,
                        GError **errp)
{
    BenchNic *n = g_new0(BenchNic, 1);

    n->sock = sock;
    n->size = size;
    n->ram_fd = -1;
    memset(n->kick, -1, sizeof(n->kick));
    memset(n->call, -1, sizeof(n->call));
    if (!start(n, event_idx, errp)) {
        bench_nic_free(n);
        return NULL;
    }
    return n;
}

static void close_fd(int fd)
{
    if (fd >= 0) {
        close(fd);
    }
}

void bench_nic_free(BenchNic *n)
{
    if (!n) {
        return;
    }
    for (unsigned i = 0; i < BENCH_RINGS; i++) {
        /* One that has gone, or never came, uses nothing of ours. */
        bench_frontend_stop(n->sock, i, NULL);
        close_fd(n->kick[i]);
        close_fd(n->call[i]);
    }
    close(n->sock);
    if (n->ram) {
        munmap(n->ram, n->ram_bytes);
    }
    close_fd(n->ram_fd);
    g_free(n);
}

/* ---- transmit -------------------------------------------------------- */

unsigned bench_nic_in_ring(const BenchNic *n)
{
    const VringDriver *d = &n->ring[BENCH_TX];

    return (uint16_t)(d->avail_idx - d->used_idx);
}

void bench_nic_publish(BenchNic *n, const BenchFrame *frame, uint32_t bytes)
{
    VringDriver *d = &n->ring[BENCH_TX];
    uint64_t at = tx_buf(n) + d->avail_idx % n->size * STRIDE;

    memset(n->ram + at, 0, HDR);
    memcpy(n->ram + at + HDR, frame, sizeof(*frame));
    vring_driver_add(d, GPA + at, HDR + bytes, 0);
}

bool bench_nic_reap(BenchNic *n)
{
    uint32_t id, len;

    return vring_driver_get_used(&n->ring[BENCH_TX], &id, &len);
}

/* ---- receive --------------------------------------------------------- */

/* The buffers after the first one of a frame are there, if it is. */
static void take_rest(BenchNic *n, unsigned buffers, uint32_t *bytes)
{
    uint32_t id, len;

    while (buffers-- && vring_driver_get_used(&n->ring[BENCH_RX], &id, &len)) {
        *bytes += len;
    }
}

bool bench_nic_take(BenchNic *n, BenchFrame *frame, uint32_t *bytes)
{
    struct virtio_net_hdr_mrg_rxbuf hdr;
    uint32_t id, len;
    uint8_t *p;

    if (!vring_driver_get_used(&n->ring[BENCH_RX], &id, &len)) {
        return false;
    }
    p = n->ram + RX_BUF + id % n->size * STRIDE;
    memcpy(&hdr, p, HDR);
    memcpy(frame, p + HDR, sizeof(*frame));
    *bytes = len - HDR;
    take_rest(n, GUINT16_FROM_LE(hdr.num_buffers) - 1, bytes);
    return true;
}

void bench_nic_refill(BenchNic *n)
{
    VringDriver *d = &n->ring[BENCH_RX];

    while ((uint16_t)(d->avail_idx - d->used_idx) < n->size) {
        vring_driver_add(d, GPA + RX_BUF + d->avail_idx % n->size * STRIDE,
                         RX_BYTES, VRING_DESC_F_WRITE);
    }
}

/* ---- notifications --------------------------------------------------- */

bool bench_nic_kick(BenchNic *n, unsigned idx)
{
    return vring_driver_wants_kick(&n->ring[idx]) &&
           eventfd_write(n->kick[idx], 1) == 0;
}

unsigned bench_nic_called(BenchNic *n, unsigned idx)
{
    eventfd_t count;

    return eventfd_read(n->call[idx], &count) == 0 ? count : 0;
}

bool bench_nic_call_late(BenchNic *n)
{
    VringDriver *d = &n->ring[BENCH_TX];
    uint16_t later = bench_nic_in_ring(n) * 3 / 4;
    uint16_t used;

    vring_driver_enable_call(d);
    if (d->event_idx) {
        vring_driver_set_used_event(d, d->used_idx + later);
        /* With virtqueue_publish(): the event before the index is read. */
        __atomic_thread_fence(__ATOMIC_SEQ_CST);
    }
    used = __atomic_load_n(&d->used->idx, __ATOMIC_RELAXED);
    return (uint16_t)(GUINT16_FROM_LE(used) - d->used_idx) <= later;
}

void bench_nic_call_never(BenchNic *n)
{
    VringDriver *d = &n->ring[BENCH_TX];

    vring_driver_disable_call(d);
    if (d->event_idx) {
        vring_driver_set_used_event(d, d->used_idx - 1);
    }
}
