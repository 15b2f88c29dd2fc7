/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * QMP commands about NICs, for any program that owns some.
 */
#ifndef MONITOR_QMP_CMDS_NET_H
#define MONITOR_QMP_CMDS_NET_H

#include "hw/net/virtio-net.h"
#include "monitor/qmp.h"

/*
 * QmpNetTarget: what the commands act on; the server's opaque.  Embedded in
 * or pointed to by the program's own state.
 */
typedef struct QmpNetTarget {
    GPtrArray *nics;            /* of VirtIONet, in order of creation */
    void (*quit)(void *opaque); /* ends the program's main loop, soon */
    void *opaque;
} QmpNetTarget;

/*
 * quit, set_link, query-virtio-net-stats, virtio-net-stats-reset (described in
 * docs/options/daemon.rst.inc).  The opaque of the server is a QmpNetTarget.
 */
extern const QmpCommand qmp_net_commands[];

#endif /* MONITOR_QMP_CMDS_NET_H */
