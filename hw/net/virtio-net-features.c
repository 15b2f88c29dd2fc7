/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Feature bits: which of them this device and its backend can serve, and what
 * the ones the driver accepts mean to the backend.
 *
 * A bit is offered only if the whole way behind it exists: a backend without
 * vnet headers takes checksum and segmentation offloads away.
 */
#include "hw/net/virtio-net-internal.h"
#include "hw/net/virtio-net-features.h"

#define BIT(name) (1ULL << (name))

typedef bool CapsNeed(const NetCaps *caps);

static bool need_nothing(const NetCaps *caps)
{
    return true;
}

static bool need_vnet_hdr(const NetCaps *caps)
{
    return caps->vnet_hdr;
}

static bool need_ufo(const NetCaps *caps)
{
    return caps->vnet_hdr && caps->ufo;
}

static bool need_uso(const NetCaps *caps)
{
    return caps->vnet_hdr && caps->uso;
}

static const struct {
    uint64_t bits;
    CapsNeed *need;
} feature_needs[] = {
    { BIT(VIRTIO_F_VERSION_1) | BIT(VIRTIO_F_NOTIFY_ON_EMPTY) |
      BIT(VIRTIO_F_ANY_LAYOUT) | BIT(VIRTIO_RING_F_INDIRECT_DESC) |
      BIT(VIRTIO_RING_F_EVENT_IDX) | BIT(VIRTIO_NET_F_MRG_RXBUF) |
      BIT(VIRTIO_NET_F_MTU) | BIT(VIRTIO_NET_F_GUEST_ANNOUNCE),
      need_nothing },
    { BIT(VIRTIO_NET_F_CSUM) | BIT(VIRTIO_NET_F_GUEST_CSUM) |
      BIT(VIRTIO_NET_F_GSO) |
      BIT(VIRTIO_NET_F_HOST_TSO4) | BIT(VIRTIO_NET_F_HOST_TSO6) |
      BIT(VIRTIO_NET_F_HOST_ECN) |
      BIT(VIRTIO_NET_F_GUEST_TSO4) | BIT(VIRTIO_NET_F_GUEST_TSO6) |
      BIT(VIRTIO_NET_F_GUEST_ECN),
      need_vnet_hdr },
    { BIT(VIRTIO_NET_F_HOST_UFO) | BIT(VIRTIO_NET_F_GUEST_UFO), need_ufo },
    { BIT(VIRTIO_NET_F_HOST_USO) | BIT(VIRTIO_NET_F_GUEST_USO4) |
      BIT(VIRTIO_NET_F_GUEST_USO6), need_uso },
};

uint64_t virtio_net_compute_features(const VirtIONetConf *conf,
                                     const NetCaps *caps, unsigned pairs)
{
    uint64_t features = conf->mq && pairs > 1 ? BIT(VIRTIO_NET_F_MQ) : 0;

    for (unsigned i = 0; i < G_N_ELEMENTS(feature_needs); i++) {
        if (feature_needs[i].need(caps)) {
            features |= feature_needs[i].bits;
        }
    }
    return features & ~conf->features_off;
}

static const struct {
    unsigned bit;
    unsigned offload;
} guest_offloads[] = {
    { VIRTIO_NET_F_GUEST_CSUM, NET_OFFLOAD_CSUM },
    { VIRTIO_NET_F_GUEST_TSO4, NET_OFFLOAD_TSO4 },
    { VIRTIO_NET_F_GUEST_TSO6, NET_OFFLOAD_TSO6 },
    { VIRTIO_NET_F_GUEST_ECN, NET_OFFLOAD_ECN },
    { VIRTIO_NET_F_GUEST_UFO, NET_OFFLOAD_UFO },
    { VIRTIO_NET_F_GUEST_USO4, NET_OFFLOAD_USO4 },
    { VIRTIO_NET_F_GUEST_USO6, NET_OFFLOAD_USO6 },
};

unsigned virtio_net_guest_offloads(uint64_t features)
{
    unsigned offload = 0;

    for (unsigned i = 0; i < G_N_ELEMENTS(guest_offloads); i++) {
        if (features & BIT(guest_offloads[i].bit)) {
            offload |= guest_offloads[i].offload;
        }
    }
    return offload;
}
