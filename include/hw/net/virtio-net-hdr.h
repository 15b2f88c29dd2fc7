/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The virtio_net header in front of each frame (virtio 1.3, 5.1.6).
 *
 * Pure functions on copies: a driver that changes its header while we look
 * changes nothing.
 */
#ifndef HW_NET_VIRTIO_NET_HDR_H
#define HW_NET_VIRTIO_NET_HDR_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/uio.h>

#include "hw/net/virtio-net-features.h"

/* Room for any header we negotiate. */
typedef union VirtIONetHdr {
    struct virtio_net_hdr hdr;
    struct virtio_net_hdr_mrg_rxbuf mrg;
} VirtIONetHdr;

/*
 * virtio_net_hdr_len: header length of negotiated @features: 12 with
 * VERSION_1 or MRG_RXBUF, else 10 (virtio 1.3, 5.1.6.1).
 */
unsigned virtio_net_hdr_len(uint64_t features);

/*
 * virtio_net_hdr_check_tx: may a driver that negotiated @features send this?
 * @hdr: a copy of what it wrote; fields that mean nothing are cleared
 * @frame_bytes: length of the frame behind it
 *
 * False: offsets leave the frame, or it asks for an offload that was not
 * negotiated or does not exist.  The caller drops the packet.
 */
bool virtio_net_hdr_check_tx(VirtIONetHdr *hdr, uint32_t frame_bytes,
                             uint64_t features);

/*
 * virtio_net_hdr_may_be_tcp: does the header allow for a TCP segment?
 * @hdr: one that has been checked
 * @features: the negotiated ones
 *
 * A driver with VIRTIO_NET_F_CSUM leaves the sums of TCP to us, and where they
 * are tells the protocol; without it, nothing does.
 */
bool virtio_net_hdr_may_be_tcp(const VirtIONetHdr *hdr, uint64_t features);

/*
 * virtio_net_fix_dhcp_csum: complete the UDP checksum of a DHCP answer.
 * @hdr: of the received frame; NEEDS_CSUM is cleared if the sum was made
 * @iov, @cnt: the frame, without the header
 * @bytes: its length
 *
 * DHCP clients read raw sockets and see a partial checksum as a wrong one.
 * Touches only complete, unfragmented IPv4 UDP datagrams from port 67 to
 * port 68; reads nothing outside the frame.
 */
void virtio_net_fix_dhcp_csum(struct virtio_net_hdr *hdr,
                              const struct iovec *iov, unsigned cnt,
                              size_t bytes);

#endif /* HW_NET_VIRTIO_NET_HDR_H */
