/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Real taps for tests.  See tap-harness.h.
 */
#include "tap-harness.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <linux/virtio_net.h>
#include <net/if.h>
#include <sched.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

static char *skip_reason;

bool skipped(void)
{
    if (skip_reason) {
        g_test_skip(skip_reason);
    }
    return skip_reason;
}

/* ---- the host's side ------------------------------------------------- */

bool try_run(const char *command)
{
    g_autofree char *output = NULL;
    int status = -1;

    g_spawn_command_line_sync(command, NULL, &output, &status, NULL);
    return status == 0;
}

void run(const char *command)
{
    if (!try_run(command)) {
        g_error("%s failed", command);
    }
}

void link_up(const char *ifname)
{
    struct ifreq ifr = { .ifr_flags = IFF_UP | IFF_RUNNING };
    int s = socket(AF_UNIX, SOCK_DGRAM, 0);

    g_strlcpy(ifr.ifr_name, ifname, IFNAMSIZ);
    g_assert_cmpint(ioctl(s, SIOCSIFFLAGS, &ifr), ==, 0);
    close(s);
}

/* A packet socket for frames of TEST_ETHERTYPE, with vnet headers. */
static int packet_socket(const char *ifname)
{
    struct sockaddr_ll sll = {
        .sll_family = AF_PACKET,
        .sll_protocol = htons(TEST_ETHERTYPE),
        .sll_ifindex = if_nametoindex(ifname),
    };
    int s = socket(AF_PACKET, SOCK_RAW, 0), on = 1;

    g_assert_cmpint(s, >=, 0);
    g_assert_cmpint(setsockopt(s, SOL_PACKET, PACKET_VNET_HDR, &on,
                               sizeof(on)), ==, 0);
    g_assert_cmpint(bind(s, (struct sockaddr *)&sll, sizeof(sll)), ==, 0);
    return s;
}

void make_frame(uint8_t *frame, size_t bytes, unsigned seq)
{
    static const uint8_t macs[] = {
        0x02, 0, 0, 0, 0, 0x99, 0x02, 0, 0, 0, 0, 0x07,
    };

    memcpy(frame, macs, sizeof(macs));
    frame[12] = TEST_ETHERTYPE >> 8;
    frame[13] = TEST_ETHERTYPE & 0xff;
    for (size_t i = ETH_HLEN; i < bytes; i++) {
        frame[i] = seq + i * 13;
    }
}

void host_send(int s, const uint8_t *frame, size_t bytes)
{
    struct virtio_net_hdr hdr = { 0 };
    struct iovec iov[] = {
        { &hdr, sizeof(hdr) }, { (void *)frame, bytes },
    };

    g_assert_cmpint(writev(s, iov, 2), ==, sizeof(hdr) + bytes);
}

/* ---- a tap and its NIC ----------------------------------------------- */

void tap_open(Tap *t, const char *options)
{
    tap_open_clock(t, options, clock_monotonic());
}

void tap_open_clock(Tap *t, const char *options, Clock *clock)
{
    *t = (Tap) { .ctx = aio_context_new("t", clock, NULL) };
    t->nb = test_netdev_ok(options, t->ctx);
    test_nic_attach(&t->nic, t->nb, 0, t->ctx);
    link_up("tap0");
    t->host = packet_socket("tap0");
}

void tap_close(Tap *t)
{
    test_nic_detach(&t->nic);
    net_backend_free(t->nb);
    aio_context_free(t->ctx);
    close(t->host);
}

void check_tx(Tap *t, unsigned hdr_len, size_t bytes)
{
    uint8_t out[32 + 1514] = { 0 }, in[2048];
    uint8_t *frame = out + hdr_len;
    ssize_t n;

    make_frame(frame, bytes, bytes);
    test_nic_send_ok(&t->nic, out, hdr_len + bytes);
    n = recv(t->host, in, sizeof(in), 0);
    g_assert_cmpmem(in + sizeof(struct virtio_net_hdr),
                    n - sizeof(struct virtio_net_hdr), frame, bytes);
}

void check_rx(Tap *t, unsigned hdr_len, size_t bytes)
{
    static const uint8_t no_offload[20];
    uint8_t out[1514], in[2048];
    size_t n;

    make_frame(out, bytes, bytes + 1);
    host_send(t->host, out, bytes);
    g_assert_cmpint(test_nic_recv(&t->nic, in, sizeof(in), &n), ==,
                    NET_RECV_PACKET);
    g_assert_cmpuint(n, ==, hdr_len + bytes);
    /* gso_type and flags; the rest means nothing then. */
    g_assert_cmpmem(in, MIN(hdr_len, 2), no_offload, MIN(hdr_len, 2));
    g_assert_cmpmem(in + hdr_len, n - hdr_len, out, bytes);
    g_assert_cmpint(test_nic_recv(&t->nic, in, sizeof(in), &n), ==,
                    NET_RECV_EMPTY);
}

void drain(TestNic *nic)
{
    uint8_t buf[2048];
    size_t n;

    while (test_nic_recv(nic, buf, sizeof(buf), &n) == NET_RECV_PACKET) {
    }
}

/* Else the host speaks first on each new interface. */
static void silence_ipv6(void)
{
    int fd = open("/proc/sys/net/ipv6/conf/default/disable_ipv6", O_WRONLY);

    if (fd >= 0) {
        g_assert_cmpint(write(fd, "1", 1), ==, 1);
        close(fd);
    }
}

void tap_harness_init(void)
{
    static const char *const programs[] = { "ip", "tc", "bridge" };
    int fd;

    if (unshare(CLONE_NEWNET) < 0) {
        skip_reason = g_strdup_printf("no network namespace: %s",
                                      g_strerror(errno));
        return;
    }
    silence_ipv6();
    fd = open("/dev/net/tun", O_RDWR);
    if (fd < 0) {
        skip_reason = g_strdup_printf("no /dev/net/tun: %s",
                                      g_strerror(errno));
        return;
    }
    close(fd);
    for (unsigned i = 0; i < G_N_ELEMENTS(programs); i++) {
        g_autofree char *path = g_find_program_in_path(programs[i]);

        if (!path) {
            skip_reason = g_strdup_printf("no %s", programs[i]);
        }
    }
}
