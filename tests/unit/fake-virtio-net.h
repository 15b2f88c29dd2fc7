/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A virtio-net device that only remembers what it was told, in place of the
 * real one: link fake-virtio-net.c and the export's tests can look inside.
 *
 * Refuses what the real one refuses: rings that are misaligned or not inside
 * the map, features that were not offered, MTUs out of range.
 */
#ifndef TESTS_UNIT_FAKE_VIRTIO_NET_H
#define TESTS_UNIT_FAKE_VIRTIO_NET_H

#include "hw/net/virtio-net.h"

typedef struct FakeRing {
    bool started;
    bool enabled;
    bool broken;
    VirtQueueSetup setup;       /* of the last start */
    GuestMap *map;              /* while started; a reference */
    int kick_fd;                /* while started */
    int call_fd;
    int err_fd;
    unsigned starts;
    unsigned stops;             /* of a started ring */
    unsigned remaps;
    uint16_t position;          /* what a stop returns; set it to pretend
                                 * that the ring was served */
} FakeRing;

struct VirtIONet {
    unsigned max_pairs;
    uint64_t offered;
    uint64_t features;
    unsigned feature_changes;
    unsigned mtu_max;
    unsigned mtu;
    unsigned resets;
    unsigned rarps;
    uint8_t rarp_mac[6];
    FakeRing *rings;
};

VirtIONet *fake_net_new(unsigned max_pairs, uint64_t offered);

/* fake_net_free: asserts that nothing was left running or open. */
void fake_net_free(VirtIONet *n);

#endif /* TESTS_UNIT_FAKE_VIRTIO_NET_H */
