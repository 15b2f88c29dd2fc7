/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Which NICs of a command line are ours.
 *
 * Ours is a "-device virtio-net-pci,netdev=ID" whose "-netdev" is of a type
 * that qemu-net-daemon has, and which asks for nothing that vhost-user
 * cannot carry.  The others stay with the stock QEMU, and the user is told
 * why, unless the command line itself says so (vhost=on, vhost-user).
 *
 * Pure.
 */
#ifndef LAUNCHER_NIC_H
#define LAUNCHER_NIC_H

#include "cmdline.h"
#include "hw/net/virtio-net-conf.h"
#include "util/keyval.h"

typedef struct LaunchNetdev {
    guint opt;                  /* index in the command line */
    KeyVal *kv;
    const char *id;             /* of kv */
    const char *type;
    struct LaunchNic *nic;      /* the virtio NIC on it, or NULL */
    bool used;                  /* by any device */
    bool ours;                  /* moves to the daemon */
} LaunchNetdev;

typedef struct LaunchNic {
    guint opt;                  /* index in the command line */
    KeyVal *kv;                 /* of -device, as the user gave it */
    char *id;                   /* in the daemon */
    LaunchNetdev *netdev;
    VirtIONetConf conf;
    unsigned queues;            /* queue pairs */
    bool ours;
} LaunchNic;

typedef struct LaunchNics {
    GPtrArray *netdevs;         /* of LaunchNetdev: all that can be read */
    GPtrArray *nics;            /* of LaunchNic: virtio ones with a netdev */
    unsigned ours;              /* how many of nics */
} LaunchNics;

/* nic_is_virtio: is @driver one of virtio-net's PCI names? */
bool nic_is_virtio(const char *driver);

/*
 * nic_split_global: DRIVER, PROPERTY and VALUE of -global, in either form
 * ("DRIVER.PROPERTY=VALUE" or with three keys).  NULL if it is neither; else
 * free with g_strfreev().
 */
char **nic_split_global(const char *text);

/*
 * nics_find: find and judge all NICs of @cmd.
 * @notices: lines for the user are added, of g_malloc'ed strings
 *
 * Returns NULL with @errp set, one line that names option, value and remedy,
 * for what must not be started: a virtio NIC without its netdev, two devices
 * on one netdev, ids that occur twice, bad values of our properties.  A
 * command line without virtio NICs is never an error.
 */
LaunchNics *nics_find(const CmdLine *cmd, GPtrArray *notices, GError **errp);
void nics_free(LaunchNics *set);

#endif /* LAUNCHER_NIC_H */
