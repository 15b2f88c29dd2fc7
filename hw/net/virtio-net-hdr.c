/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Checks on virtio_net headers from the driver, and the one repair on the way
 * to it.
 *
 * On transmit the header goes on to a tap, whose kernel checks it again; what
 * we refuse here is what the negotiation forbids, and offsets that a backend
 * which computes sums itself would follow out of the frame.
 */
#include <arpa/inet.h>
#include <endian.h>
#include <net/ethernet.h>
#include <netinet/ip.h>
#include <netinet/tcp.h>
#include <netinet/udp.h>
#include <stddef.h>
#include <string.h>

#include "hw/net/virtio-net-hdr.h"
#include "util/iov.h"

#define BIT(name) (1ULL << (name))

unsigned virtio_net_hdr_len(uint64_t features)
{
    if (features & (BIT(VIRTIO_F_VERSION_1) | BIT(VIRTIO_NET_F_MRG_RXBUF))) {
        return sizeof(struct virtio_net_hdr_mrg_rxbuf);
    }
    return sizeof(struct virtio_net_hdr);
}

/* The feature that allows each gso_type; no entry: there is no such type. */
static const uint64_t gso_feature[] = {
    [VIRTIO_NET_HDR_GSO_TCPV4] = BIT(VIRTIO_NET_F_HOST_TSO4),
    [VIRTIO_NET_HDR_GSO_UDP] = BIT(VIRTIO_NET_F_HOST_UFO),
    [VIRTIO_NET_HDR_GSO_TCPV6] = BIT(VIRTIO_NET_F_HOST_TSO6),
    [VIRTIO_NET_HDR_GSO_UDP_L4] = BIT(VIRTIO_NET_F_HOST_USO),
};

static bool check_csum(const struct virtio_net_hdr *h, uint32_t frame_bytes,
                       uint64_t features)
{
    uint32_t end = (uint32_t)le16toh(h->csum_start) +
                   le16toh(h->csum_offset) + sizeof(uint16_t);

    return (features & BIT(VIRTIO_NET_F_CSUM)) && end <= frame_bytes;
}

static bool check_gso(const struct virtio_net_hdr *h, uint32_t frame_bytes,
                      uint64_t features)
{
    uint8_t type = h->gso_type & ~VIRTIO_NET_HDR_GSO_ECN;
    bool tcp = type == VIRTIO_NET_HDR_GSO_TCPV4 ||
               type == VIRTIO_NET_HDR_GSO_TCPV6;

    if (type >= sizeof(gso_feature) / sizeof(gso_feature[0]) ||
        !(features & gso_feature[type])) {
        return false;
    }
    if ((h->gso_type & VIRTIO_NET_HDR_GSO_ECN) &&
        !(tcp && (features & BIT(VIRTIO_NET_F_HOST_ECN)))) {
        return false;
    }
    /* virtio 1.3, 5.1.6.2.1: USO comes with a partial checksum */
    if (type == VIRTIO_NET_HDR_GSO_UDP_L4 &&
        !(h->flags & VIRTIO_NET_HDR_F_NEEDS_CSUM)) {
        return false;
    }
    return h->gso_size && le16toh(h->hdr_len) <= frame_bytes;
}

bool virtio_net_hdr_check_tx(VirtIONetHdr *hdr, uint32_t frame_bytes,
                             uint64_t features)
{
    struct virtio_net_hdr *h = &hdr->hdr;

    /* virtio 1.3, 5.1.6.2.2: flags we do not know are ignored */
    h->flags &= VIRTIO_NET_HDR_F_NEEDS_CSUM;
    if (h->flags) {
        if (!check_csum(h, frame_bytes, features)) {
            return false;
        }
    } else {
        h->csum_start = 0;
        h->csum_offset = 0;
    }
    if (h->gso_type == VIRTIO_NET_HDR_GSO_NONE) {
        h->gso_size = 0;
        h->hdr_len = 0;
        return true;
    }
    return check_gso(h, frame_bytes, features);
}

bool virtio_net_hdr_may_be_tcp(const VirtIONetHdr *hdr, uint64_t features)
{
    return !(features & BIT(VIRTIO_NET_F_CSUM)) ||
           ((hdr->hdr.flags & VIRTIO_NET_HDR_F_NEEDS_CSUM) &&
            le16toh(hdr->hdr.csum_offset) == offsetof(struct tcphdr, th_sum));
}

/* ---- DHCP ------------------------------------------------------------- */

#define DHCP_SERVER_PORT 67
#define DHCP_CLIENT_PORT 68
/* A DHCP answer fits an Ethernet frame; larger ones are somebody else's. */
#define DHCP_MAX_FRAME   (ETH_HLEN + ETH_DATA_LEN)

typedef struct UdpFrame {
    uint8_t data[DHCP_MAX_FRAME];
    size_t udp;             /* offset of the UDP header */
    size_t udp_bytes;       /* its length field, checked */
} UdpFrame;

static uint16_t get16(const uint8_t *p)
{
    return p[0] << 8 | p[1];
}

/* Is this an unfragmented IPv4 UDP datagram from the server to a client,
 * with all of its bytes here? */
static bool parse_dhcp_answer(UdpFrame *f, size_t bytes)
{
    const uint8_t *ip = f->data + ETH_HLEN;
    size_t ihl, total, frame_ip = bytes - ETH_HLEN;

    if (get16(f->data + 12) != ETHERTYPE_IP || ip[0] >> 4 != 4) {
        return false;
    }
    ihl = (ip[0] & 0xf) * 4;
    total = get16(ip + 2);
    if (ihl < sizeof(struct iphdr) || total > frame_ip ||
        total < ihl + sizeof(struct udphdr) || ip[9] != IPPROTO_UDP ||
        (get16(ip + 6) & (IP_MF | IP_OFFMASK))) {
        return false;
    }
    f->udp = ETH_HLEN + ihl;
    f->udp_bytes = get16(f->data + f->udp + 4);
    return get16(f->data + f->udp) == DHCP_SERVER_PORT &&
           get16(f->data + f->udp + 2) == DHCP_CLIENT_PORT &&
           f->udp_bytes >= sizeof(struct udphdr) &&
           f->udp_bytes <= total - ihl;
}

static uint32_t csum_add(uint32_t sum, const uint8_t *p, size_t bytes)
{
    for (; bytes > 1; p += 2, bytes -= 2) {
        sum += get16(p);
    }
    return bytes ? sum + (p[0] << 8) : sum;
}

/* RFC 768: pseudo header of addresses, protocol and length, then all of it */
static uint16_t udp_csum(const UdpFrame *f)
{
    uint32_t sum = IPPROTO_UDP + f->udp_bytes;

    sum = csum_add(sum, f->data + ETH_HLEN + 12, 8);
    sum = csum_add(sum, f->data + f->udp, f->udp_bytes);
    sum = (sum & 0xffff) + (sum >> 16);
    sum = (sum & 0xffff) + (sum >> 16);
    return (uint16_t)~sum ? (uint16_t)~sum : 0xffff;
}

void virtio_net_fix_dhcp_csum(struct virtio_net_hdr *hdr,
                              const struct iovec *iov, unsigned cnt,
                              size_t bytes)
{
    UdpFrame f;
    uint8_t sum[2] = { 0, 0 };
    uint16_t csum;

    if (!(hdr->flags & VIRTIO_NET_HDR_F_NEEDS_CSUM) ||
        bytes < ETH_HLEN + sizeof(struct iphdr) + sizeof(struct udphdr) ||
        bytes > DHCP_MAX_FRAME) {
        return;
    }
    /* Addressing first: most frames stop here, without a copy of the rest */
    if (iov_to_buf(iov, cnt, 0, f.data, ETH_HLEN + sizeof(struct iphdr)) !=
            ETH_HLEN + sizeof(struct iphdr) ||
        get16(f.data + 12) != ETHERTYPE_IP ||
        f.data[ETH_HLEN + 9] != IPPROTO_UDP) {
        return;
    }
    if (iov_to_buf(iov, cnt, 0, f.data, bytes) != bytes ||
        !parse_dhcp_answer(&f, bytes)) {
        return;
    }
    memcpy(f.data + f.udp + 6, sum, sizeof(sum));
    csum = udp_csum(&f);
    sum[0] = csum >> 8;
    sum[1] = csum & 0xff;
    iov_from_buf(iov, cnt, f.udp + 6, sum, sizeof(sum));
    hdr->flags &= ~VIRTIO_NET_HDR_F_NEEDS_CSUM;
}
