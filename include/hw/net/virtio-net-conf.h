/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Properties of -device virtio-net-pci that our device has: one table for
 * parsing, for help, and for the launcher, which has to know what to take
 * from a command line and what to leave to the stock QEMU.
 *
 * Pure; any thread.
 */
#ifndef HW_NET_VIRTIO_NET_CONF_H
#define HW_NET_VIRTIO_NET_CONF_H

#include <glib.h>
#include <sched.h>
#include <stdbool.h>
#include <stdint.h>

#include "util/keyval.h"

typedef enum VirtIONetTxMode {
    VIRTIO_NET_TX_BH,
    VIRTIO_NET_TX_TIMER,
    VIRTIO_NET_TX_ADAPTIVE,
} VirtIONetTxMode;

typedef enum VirtIONetTxThread {
    VIRTIO_NET_TX_THREAD_OFF,   /* transmit queues in the NIC's context */
    VIRTIO_NET_TX_THREAD_ON,    /* in a thread of their own */
    VIRTIO_NET_TX_THREAD_PER_QUEUE,
} VirtIONetTxThread;

typedef struct VirtIONetConf {
    char id[64];                /* "" if not given */
    char netdev[64];
    char iothread[64];          /* "" = main context */
    uint8_t mac[6];             /* zero if not given: the front-end's matter */
    bool mac_set;
    VirtIONetTxMode tx;
    uint32_t tx_timer_ns;       /* x-txtimer, in ns as in QEMU */
    uint32_t tx_latency_us;     /* tx-latency: adaptive may add that much */
    uint32_t tx_hold_ns;        /* x-txhold; 0 = tx=bh never holds */
    uint32_t tx_burst_pkts;     /* x-txburst; 0 = 128 */
    VirtIONetTxThread tx_thread;
    cpu_set_t tx_cpus;          /* of those threads; empty = any */
    uint32_t tx_coal_frames;    /* 0 = that limit does not hold a call back */
    uint32_t tx_coal_usecs;     /* 0 = calls are never held back */
    uint32_t tx_coal_bytes;
    uint32_t rx_coal_frames;
    uint32_t rx_coal_usecs;
    uint16_t rx_queue_size;     /* upper bound of what a driver may use */
    uint16_t tx_queue_size;
    uint16_t host_mtu;          /* 0 = not given */
    bool mq;
    uint64_t features_off;      /* feature bits switched off by property */
} VirtIONetConf;

/* virtio_net_conf_init: the defaults (design: "Properties of the device"). */
void virtio_net_conf_init(VirtIONetConf *conf);

/*
 * virtio_net_conf_parse: take all properties of the table from @kv.
 *
 * Returns false with @errp set: one line that names option, value and what
 * would be accepted.  Unknown keys stay in @kv for keyval_check_empty().
 */
bool virtio_net_conf_parse(VirtIONetConf *conf, KeyVal *kv, GError **errp);

typedef enum VirtIONetPropOwner {
    VIRTIO_NET_PROP_UNKNOWN,    /* not in the table: the stock QEMU's */
    VIRTIO_NET_PROP_DEVICE,     /* ours alone: tx, x-txtimer, tx-coal-... */
    VIRTIO_NET_PROP_SHARED,     /* the stock QEMU needs it as well: mac, mq */
} VirtIONetPropOwner;

VirtIONetPropOwner virtio_net_prop_owner(const char *key);

/*
 * virtio_net_props_help: "  name=<type>  - help (default)" lines, sorted, as
 * `-device virtio-net-pci,help` prints them.
 * @ours_only: only VIRTIO_NET_PROP_DEVICE.  Caller frees.
 */
char *virtio_net_props_help(bool ours_only);

#endif /* HW_NET_VIRTIO_NET_CONF_H */
