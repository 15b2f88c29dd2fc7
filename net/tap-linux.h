/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The ioctls of a tap (linux/if_tun.h).
 *
 * None keeps state or sleeps.  Opening and closing need privileges or an
 * interface that belongs to the caller; everything else works on an open
 * descriptor without any.
 */
#ifndef NET_TAP_LINUX_H
#define NET_TAP_LINUX_H

#include <glib.h>
#include <net/if.h>
#include <stdbool.h>

/* Queues the kernel allows for one tap (MAX_TAP_QUEUES). */
#define TAP_MAX_QUEUES  256

/*
 * What a descriptor turned out to be.  Whether its frames start with a struct
 * tun_pi cannot be asked (IFF_NO_PI and IFF_NOFILTER share a bit in the
 * answer); as in QEMU, they must not.
 */
typedef struct TapFdInfo {
    char ifname[IFNAMSIZ];
    bool is_tap;            /* Ethernet frames, not IP packets */
    bool vnet_hdr;
    bool multi_queue;
} TapFdInfo;

/* What the kernel can do with vnet headers. */
typedef struct TapOffloads {
    bool ufo;
    bool uso;
} TapOffloads;

/*
 * tap_fd_open: open one queue of a tap, creating the interface if need be.
 * @ifname: in: a name, a pattern with %d, or "" for "tap%d"; out: the name
 * @queues: how many the caller will open
 * @vnet_hdr: in: wanted; out: had
 *
 * Returns a non-blocking, close-on-exec descriptor, or -1 with @reason set
 * to what is wrong and how to mend it.  Caller frees @reason.
 */
int tap_fd_open(char ifname[IFNAMSIZ], unsigned queues, bool *vnet_hdr,
                char **reason);

/* tap_fd_identify: false if @fd is not a tap or tun descriptor. */
bool tap_fd_identify(int fd, TapFdInfo *info);

/*
 * tap_fd_probe_offloads: find out what the kernel takes, and leave all
 * offloads off, whatever an earlier user of the interface had set.
 */
void tap_fd_probe_offloads(int fd, TapOffloads *offloads);

/*
 * tap_fd_set_vnet_hdr_len: also makes the headers little-endian, as virtio
 * 1.x wants them.
 */
bool tap_fd_set_vnet_hdr_len(int fd, unsigned len);

/*
 * tap_fd_set_offload: @offload is a set of NET_OFFLOAD_*.  False if the
 * kernel refuses.
 */
bool tap_fd_set_offload(int fd, unsigned offload);

/* tap_fd_set_sndbuf: bytes in flight before a write says EAGAIN. */
bool tap_fd_set_sndbuf(int fd, int bytes);

/* tap_fd_set_queue: attach or detach a queue of a multi-queue tap. */
bool tap_fd_set_queue(int fd, bool attached);

#endif /* NET_TAP_LINUX_H */
