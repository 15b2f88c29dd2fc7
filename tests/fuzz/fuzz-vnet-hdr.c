/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Headers from the driver and frames from the backend, as bytes: 8 bytes of
 * features, 12 of header, then a frame in pieces of the size that the first
 * frame byte says.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "hw/net/virtio-net-hdr.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define HEAD (sizeof(uint64_t) + sizeof(VirtIONetHdr))

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct iovec iov[8];
    VirtIONetHdr hdr;
    uint64_t features;
    unsigned cnt = 0;
    size_t bytes, piece, off;
    uint8_t *frame;

    if (size < HEAD + 1) {
        return 0;
    }
    memcpy(&features, data, sizeof(features));
    memcpy(&hdr, data + sizeof(features), sizeof(hdr));
    bytes = size - HEAD;
    frame = malloc(bytes);
    memcpy(frame, data + HEAD, bytes);
    if (virtio_net_hdr_check_tx(&hdr, bytes, features) && hdr.hdr.flags) {
        /* what passed may be followed */
        frame[hdr.hdr.csum_start + hdr.hdr.csum_offset + 1] ^= 1;
    }
    piece = frame[0] + 1;
    for (off = 0; off < bytes && cnt < 8; off += iov[cnt - 1].iov_len) {
        size_t left = bytes - off;

        iov[cnt].iov_base = frame + off;
        iov[cnt].iov_len = cnt == 7 || left < piece ? left : piece;
        cnt++;
    }
    hdr.hdr.flags = VIRTIO_NET_HDR_F_NEEDS_CSUM;
    virtio_net_fix_dhcp_csum(&hdr.hdr, iov, cnt, bytes);
    free(frame);
    return 0;
}
