/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * How Linux taps are opened and set up.
 *
 * Facts used here: header length, byte order, offloads and send buffer belong
 * to the whole interface on tun devices and to the queue on macvtap, so all
 * are set on every descriptor, attached or not.  USO4 and USO6 are taken
 * together or not at all (Linux 6.2).
 */
#include "tap-linux.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/if_tun.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "net/net.h"

#define TAP_CLONE_DEVICE    "/dev/net/tun"

/* Of Linux 6.2; older headers lack them. */
#ifndef TUN_F_USO4
#define TUN_F_USO4  0x20
#define TUN_F_USO6  0x40
#endif

/* ---- opening --------------------------------------------------------- */

static char *tap_reason_open(int err)
{
    if (err == ENOENT || err == ENODEV || err == ENXIO) {
        return g_strdup("no " TAP_CLONE_DEVICE " (load the tun module, or give "
                        "the container that device), or pass an open tap "
                        "with fd=");
    }
    return g_strdup_printf("cannot open " TAP_CLONE_DEVICE ": %s; run as a "
                           "user who may, or pass an open tap with fd=",
                           g_strerror(err));
}

static char *tap_reason_attach(int err, const char *ifname, unsigned queues)
{
    switch (err) {
    case EBUSY:
        return g_strdup_printf("ifname=%s is already in use; end the process "
                               "that has it, or choose another", ifname);
    case EPERM:
    case EACCES:
        return g_strdup_printf("ifname=%s: not permitted; run as root, or have "
                               "it made with `ip tuntap add dev %s mode tap "
                               "user NAME`, or pass an open tap with fd=",
                               ifname, ifname);
    case EINVAL:
        return g_strdup_printf("ifname=%s cannot be opened as a tap with "
                               "queues=%u: it is something else, or was made "
                               "with%s multi_queue", ifname, queues,
                               queues > 1 ? "out" : "");
    case E2BIG:
        return g_strdup_printf("ifname=%s has no free queue", ifname);
    default:
        return g_strdup_printf("ifname=%s: %s", ifname, g_strerror(err));
    }
}

/* Returns 0 or an errno. */
static int tap_fd_attach(int fd, struct ifreq *ifr, unsigned queues,
                         short flags)
{
    ifr->ifr_flags = flags | (queues > 1 ? IFF_MULTI_QUEUE : 0);
    if (ioctl(fd, TUNSETIFF, ifr) == 0) {
        return 0;
    }
    if (errno != EINVAL || queues > 1) {
        return errno;
    }
    /* A persistent tap that was made with multi_queue wants the flag. */
    ifr->ifr_flags = flags | IFF_MULTI_QUEUE;
    return ioctl(fd, TUNSETIFF, ifr) < 0 ? errno : 0;
}

int tap_fd_open(char ifname[IFNAMSIZ], unsigned queues, bool *vnet_hdr,
                char **reason)
{
    int fd = open(TAP_CLONE_DEVICE, O_RDWR | O_NONBLOCK | O_CLOEXEC);
    short flags = IFF_TAP | IFF_NO_PI;
    unsigned features = 0;
    struct ifreq ifr = { 0 };
    int err;

    if (fd < 0) {
        *reason = tap_reason_open(errno);
        return -1;
    }
    if (ioctl(fd, TUNGETFEATURES, &features) < 0) {
        features = 0;
    }
    *vnet_hdr = *vnet_hdr && (features & IFF_VNET_HDR);
    flags |= *vnet_hdr ? IFF_VNET_HDR : 0;
    g_strlcpy(ifr.ifr_name, *ifname ? ifname : "tap%d", IFNAMSIZ);
    err = tap_fd_attach(fd, &ifr, queues, flags);
    if (err) {
        *reason = tap_reason_attach(err, ifr.ifr_name, queues);
        close(fd);
        return -1;
    }
    g_strlcpy(ifname, ifr.ifr_name, IFNAMSIZ);
    return fd;
}

bool tap_fd_identify(int fd, TapFdInfo *info)
{
    struct ifreq ifr = { 0 };

    if (ioctl(fd, TUNGETIFF, &ifr) < 0) {
        return false;
    }
    g_strlcpy(info->ifname, ifr.ifr_name, IFNAMSIZ);
    info->is_tap = ifr.ifr_flags & IFF_TAP;
    info->vnet_hdr = ifr.ifr_flags & IFF_VNET_HDR;
    info->multi_queue = ifr.ifr_flags & IFF_MULTI_QUEUE;
    return true;
}

/* ---- set-up ---------------------------------------------------------- */

void tap_fd_probe_offloads(int fd, TapOffloads *offloads)
{
    offloads->ufo = ioctl(fd, TUNSETOFFLOAD, TUN_F_CSUM | TUN_F_UFO) == 0;
    offloads->uso = ioctl(fd, TUNSETOFFLOAD,
                          TUN_F_CSUM | TUN_F_USO4 | TUN_F_USO6) == 0;
    ioctl(fd, TUNSETOFFLOAD, 0);
}

bool tap_fd_set_vnet_hdr_len(int fd, unsigned len)
{
    int bytes = len, on = 1;

    if (ioctl(fd, TUNSETVNETHDRSZ, &bytes) < 0) {
        return false;
    }
    /* Only big-endian hosts need it, and only kernels before 4.0 lack it. */
    ioctl(fd, TUNSETVNETLE, &on);
    return true;
}

bool tap_fd_set_offload(int fd, unsigned offload)
{
    const unsigned tso = NET_OFFLOAD_TSO4 | NET_OFFLOAD_TSO6;
    const unsigned uso = NET_OFFLOAD_USO4 | NET_OFFLOAD_USO6;
    unsigned flags = 0;

    if (offload & NET_OFFLOAD_CSUM) {
        flags |= TUN_F_CSUM;
        flags |= offload & NET_OFFLOAD_TSO4 ? TUN_F_TSO4 : 0;
        flags |= offload & NET_OFFLOAD_TSO6 ? TUN_F_TSO6 : 0;
        flags |= (offload & NET_OFFLOAD_ECN) && (offload & tso)
                 ? TUN_F_TSO_ECN : 0;
        flags |= offload & NET_OFFLOAD_UFO ? TUN_F_UFO : 0;
        flags |= (offload & uso) == uso ? TUN_F_USO4 | TUN_F_USO6 : 0;
    }
    return ioctl(fd, TUNSETOFFLOAD, flags) == 0;
}

bool tap_fd_set_sndbuf(int fd, int bytes)
{
    return ioctl(fd, TUNSETSNDBUF, &bytes) == 0;
}

bool tap_fd_set_queue(int fd, bool attached)
{
    struct ifreq ifr = {
        .ifr_flags = attached ? IFF_ATTACH_QUEUE : IFF_DETACH_QUEUE,
    };

    return ioctl(fd, TUNSETQUEUE, &ifr) == 0;
}
