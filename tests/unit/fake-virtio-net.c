/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The recording device: see fake-virtio-net.h.
 */
#include <string.h>
#include <unistd.h>

#include "fake-virtio-net.h"
#include "util/report.h"

VirtIONet *fake_net_new(unsigned max_pairs, uint64_t offered)
{
    VirtIONet *n = g_new0(VirtIONet, 1);

    n->max_pairs = max_pairs;
    n->offered = offered;
    n->mtu_max = 9000;
    n->rings = g_new0(FakeRing, 2UL * max_pairs);
    for (unsigned i = 0; i < 2 * max_pairs; i++) {
        n->rings[i].kick_fd = n->rings[i].call_fd = n->rings[i].err_fd = -1;
    }
    return n;
}

void fake_net_free(VirtIONet *n)
{
    for (unsigned i = 0; i < 2 * n->max_pairs; i++) {
        const FakeRing *r = &n->rings[i];

        g_assert_false(r->started);
        g_assert_null(r->map);
        g_assert_cmpint(r->kick_fd, ==, -1);
        g_assert_cmpint(r->call_fd, ==, -1);
        g_assert_cmpint(r->err_fd, ==, -1);
    }
    g_free(n->rings);
    g_free(n);
}

static FakeRing *ring(const VirtIONet *n, unsigned idx)
{
    g_assert_cmpuint(idx, <, 2 * n->max_pairs);
    return &n->rings[idx];
}

static void replace_fd(int *slot, int fd)
{
    if (*slot >= 0) {
        close(*slot);
    }
    *slot = fd;
}

unsigned virtio_net_max_pairs(const VirtIONet *n)
{
    return n->max_pairs;
}

uint64_t virtio_net_offered_features(const VirtIONet *n)
{
    return n->offered;
}

bool virtio_net_set_features(VirtIONet *n, uint64_t features, GError **errp)
{
    if (features & ~n->offered) {
        vnet_set_error(errp, "not offered");
        return false;
    }
    n->feature_changes += features != n->features;
    n->features = features;
    return true;
}

bool virtio_net_set_mtu(VirtIONet *n, unsigned mtu)
{
    if (mtu < 68 || mtu > n->mtu_max) {
        return false;
    }
    n->mtu = mtu;
    return true;
}

static bool setup_ok(const VirtQueueSetup *s, const GuestMap *map)
{
    uint64_t size = s->size;

    return !(s->desc & 15) && !(s->avail & 1) && !(s->used & 3) &&
           guest_map_translate_exact(map, s->space, s->desc, 16 * size) &&
           guest_map_translate_exact(map, s->space, s->avail, 4 + 2 * size) &&
           guest_map_translate_exact(map, s->space, s->used, 4 + 8 * size);
}

bool virtio_net_queue_start(VirtIONet *n, unsigned idx,
                            const VirtQueueSetup *setup, GuestMap *map,
                            int kick_fd, GError **errp)
{
    FakeRing *r = ring(n, idx);

    virtio_net_queue_stop(n, idx);
    if (!setup_ok(setup, map)) {
        close(kick_fd);
        vnet_set_error(errp, "fake: bad ring");
        return false;
    }
    r->setup = *setup;
    r->position = setup->last_avail;
    r->map = guest_map_ref(map);
    r->kick_fd = kick_fd;
    r->started = true;
    r->broken = false;
    r->starts++;
    return true;
}

uint16_t virtio_net_queue_stop(VirtIONet *n, unsigned idx)
{
    FakeRing *r = ring(n, idx);

    if (r->started) {
        replace_fd(&r->kick_fd, -1);
        guest_map_unref(r->map);
        r->map = NULL;
        r->started = false;
        r->stops++;
    }
    return r->position;
}

bool virtio_net_queue_started(const VirtIONet *n, unsigned idx)
{
    return ring(n, idx)->started;
}

bool virtio_net_queue_broken(const VirtIONet *n, unsigned idx)
{
    return ring(n, idx)->started && ring(n, idx)->broken;
}

void virtio_net_queue_enable(VirtIONet *n, unsigned idx, bool enabled)
{
    ring(n, idx)->enabled = enabled;
}

void virtio_net_queue_set_call(VirtIONet *n, unsigned idx, int fd)
{
    replace_fd(&ring(n, idx)->call_fd, fd);
}

void virtio_net_queue_set_err(VirtIONet *n, unsigned idx, int fd)
{
    replace_fd(&ring(n, idx)->err_fd, fd);
}

void virtio_net_set_map(VirtIONet *n, GuestMap *map)
{
    for (unsigned i = 0; i < 2 * n->max_pairs; i++) {
        FakeRing *r = &n->rings[i];

        if (r->started) {
            guest_map_unref(r->map);
            r->map = guest_map_ref(map);
            r->remaps++;
            r->broken |= !setup_ok(&r->setup, map);
        }
    }
}

void virtio_net_reset(VirtIONet *n)
{
    for (unsigned i = 0; i < 2 * n->max_pairs; i++) {
        virtio_net_queue_stop(n, i);
        virtio_net_queue_enable(n, i, false);
    }
    n->features = 0;
    n->mtu = 0;
    n->resets++;
}

void virtio_net_announce(VirtIONet *n, const uint8_t mac[6])
{
    memcpy(n->rarp_mac, mac, 6);
    n->rarps++;
}
