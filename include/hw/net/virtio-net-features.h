/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Names of virtio 1.3 that older kernel headers lack (Debian 12's have no
 * UDP segmentation), with the numbers of virtio 1.3, 5.1.3 and 5.1.6.
 */
#ifndef HW_NET_VIRTIO_NET_FEATURES_H
#define HW_NET_VIRTIO_NET_FEATURES_H

#include <linux/virtio_config.h>
#include <linux/virtio_net.h>
#include <linux/virtio_ring.h>

#ifndef VIRTIO_NET_F_GUEST_USO4
#define VIRTIO_NET_F_GUEST_USO4 54
#define VIRTIO_NET_F_GUEST_USO6 55
#define VIRTIO_NET_F_HOST_USO   56
#endif

#ifndef VIRTIO_NET_HDR_GSO_UDP_L4
#define VIRTIO_NET_HDR_GSO_UDP_L4 5
#endif

/* virtio 1.3, 5.1.4.1: the smallest MTU a device may advise */
#define VIRTIO_NET_MIN_MTU 68

#endif /* HW_NET_VIRTIO_NET_FEATURES_H */
