/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The property table of virtio-net-pci.
 *
 * One row per property: its key, how its value is read, where it goes, who
 * else needs it, and a line of help.  Names, units and defaults are QEMU's
 * where QEMU has the property; feature switches name the bits they take away.
 */
#include <limits.h>
#include <linux/virtio_config.h>
#include <linux/virtio_net.h>
#include <linux/virtio_ring.h>
#include <stddef.h>
#include <string.h>

#include "hw/net/virtio-net-conf.h"
#include "hw/net/virtio-net-features.h"
#include "hw/virtio/virtqueue.h"
#include "util/cpu-affinity.h"
#include "util/report.h"

typedef enum PropKind {
    PROP_STR,           /* char[64] */
    PROP_MAC,
    PROP_TX,
    PROP_TX_THREAD,
    PROP_CPUS,          /* cpu_set_t; may be repeated */
    PROP_U32,
    PROP_U16,
    PROP_RING_SIZE,     /* u16, a power of two */
    PROP_BOOL,
    PROP_FEATURE,       /* on/off of .bits in features_off */
} PropKind;

typedef struct Prop {
    const char *key;
    PropKind kind;
    VirtIONetPropOwner owner;
    size_t offset;
    uint64_t min, max;
    uint64_t bits;
    const char *fallback;   /* the default, as text */
    const char *help;
} Prop;

#define FIELD(f) .offset = offsetof(VirtIONetConf, f)
#define OURS .owner = VIRTIO_NET_PROP_DEVICE
#define SHARED .owner = VIRTIO_NET_PROP_SHARED
#define BIT(name) (1ULL << (name))

#define FEATURE(k, b, h) \
    { k, PROP_FEATURE, SHARED, .bits = (b), .fallback = "on", .help = (h) }

static const Prop props[] = {
    FEATURE("any_layout", BIT(VIRTIO_F_ANY_LAYOUT),
            "accept any descriptor layout (legacy)"),
    FEATURE("csum", BIT(VIRTIO_NET_F_CSUM),
            "complete checksums of packets from the guest"),
    FEATURE("event_idx", BIT(VIRTIO_RING_F_EVENT_IDX),
            "notification suppression by index"),
    FEATURE("guest_announce", BIT(VIRTIO_NET_F_GUEST_ANNOUNCE),
            "let the guest announce itself after a migration"),
    FEATURE("guest_csum", BIT(VIRTIO_NET_F_GUEST_CSUM),
            "give the guest packets with partial checksums"),
    FEATURE("guest_ecn", BIT(VIRTIO_NET_F_GUEST_ECN),
            "give the guest TSO packets with ECN"),
    FEATURE("guest_tso4", BIT(VIRTIO_NET_F_GUEST_TSO4),
            "give the guest TCPv4 segments merged"),
    FEATURE("guest_tso6", BIT(VIRTIO_NET_F_GUEST_TSO6),
            "give the guest TCPv6 segments merged"),
    FEATURE("guest_ufo", BIT(VIRTIO_NET_F_GUEST_UFO),
            "give the guest UDP datagrams unfragmented"),
    FEATURE("guest_uso4", BIT(VIRTIO_NET_F_GUEST_USO4),
            "give the guest UDPv4 segments merged"),
    FEATURE("guest_uso6", BIT(VIRTIO_NET_F_GUEST_USO6),
            "give the guest UDPv6 segments merged"),
    FEATURE("host_ecn", BIT(VIRTIO_NET_F_HOST_ECN),
            "segment TCP packets with ECN for the guest"),
    { "host_mtu", PROP_U16, SHARED, FIELD(host_mtu), .min = 0, .max = 65535,
      .fallback = "0",
      .help = "MTU to advise to the guest, 0 = none (vhost-user: the "
              "front-end's property)" },
    FEATURE("host_tso4", BIT(VIRTIO_NET_F_HOST_TSO4),
            "segment TCPv4 for the guest"),
    FEATURE("host_tso6", BIT(VIRTIO_NET_F_HOST_TSO6),
            "segment TCPv6 for the guest"),
    FEATURE("host_ufo", BIT(VIRTIO_NET_F_HOST_UFO),
            "fragment UDP for the guest"),
    FEATURE("host_uso", BIT(VIRTIO_NET_F_HOST_USO),
            "segment UDP for the guest"),
    { "id", PROP_STR, SHARED, FIELD(id), .fallback = "",
      .help = "name of the device" },
    FEATURE("indirect_desc", BIT(VIRTIO_RING_F_INDIRECT_DESC),
            "indirect descriptors"),
    { "iothread", PROP_STR, OURS, FIELD(iothread), .fallback = "",
      .help = "id of the iothread that runs the queues" },
    { "mac", PROP_MAC, SHARED, FIELD(mac), .fallback = "",
      .help = "Ethernet address, 52:54:00:12:34:56 (vhost-user: the "
              "front-end's property)" },
    { "mq", PROP_BOOL, SHARED, FIELD(mq), .fallback = "off",
      .help = "several queue pairs" },
    FEATURE("mrg_rxbuf", BIT(VIRTIO_NET_F_MRG_RXBUF),
            "receive into several merged buffers"),
    { "netdev", PROP_STR, SHARED, FIELD(netdev), .fallback = "",
      .help = "id of the netdev to use" },
    { "rx-coal-frames", PROP_U32, OURS, FIELD(rx_coal_frames),
      .max = UINT32_MAX, .fallback = "0",
      .help = "receive interrupt after this many frames, 0 = no such limit" },
    { "rx-coal-usecs", PROP_U32, OURS, FIELD(rx_coal_usecs), .max = 1000000,
      .fallback = "0",
      .help = "hold a receive interrupt back at most this long, 0 = never" },
    { "rx_queue_size", PROP_RING_SIZE, SHARED, FIELD(rx_queue_size),
      .min = 256, .max = VIRTQUEUE_MAX_SIZE, .fallback = "256",
      .help = "receive ring entries" },
    { "tx", PROP_TX, OURS, FIELD(tx), .fallback = "bh",
      .help = "mitigation of transmit notifications" },
    { "tx-coal-bytes", PROP_U32, OURS, FIELD(tx_coal_bytes),
      .max = UINT32_MAX, .fallback = "262144",
      .help = "transmit interrupt after this many bytes, 0 = no such limit" },
    { "tx-coal-frames", PROP_U32, OURS, FIELD(tx_coal_frames),
      .max = UINT32_MAX, .fallback = "64",
      .help = "transmit interrupt after this many frames, 0 = no such limit" },
    { "tx-coal-usecs", PROP_U32, OURS, FIELD(tx_coal_usecs), .max = 1000000,
      .fallback = "150",
      .help = "hold a transmit interrupt back this long, 0 = never" },
    { "tx-cpus", PROP_CPUS, OURS, FIELD(tx_cpus), .fallback = "",
      .help = "CPU or FIRST-LAST for the threads of tx-thread=, may be "
              "repeated" },
    { "tx-latency", PROP_U32, OURS, FIELD(tx_latency_us), .min = 20,
      .max = 100000, .fallback = "300",
      .help = "tx=adaptive: microseconds that it may add to a packet, wake-up "
              "included" },
    { "tx-thread", PROP_TX_THREAD, OURS, FIELD(tx_thread), .fallback = "off",
      .help = "threads for the transmit queues: one, or one per queue" },
    { "tx_queue_size", PROP_RING_SIZE, SHARED, FIELD(tx_queue_size),
      .min = 256, .max = VIRTQUEUE_MAX_SIZE, .fallback = "256",
      .help = "transmit ring entries" },
    { "x-txburst", PROP_U32, OURS, FIELD(tx_burst_pkts), .max = INT_MAX,
      .fallback = "0",
      .help = "packets sent in one pass, at most twice the ring; 0 = 128" },
    { "x-txhold", PROP_U32, OURS, FIELD(tx_hold_ns), .max = 1000000,
      .fallback = "50000",
      .help = "tx=bh: nanoseconds from a pass to the next while that carries "
              "more than kicks do, 0 = always kicks" },
    { "x-txtimer", PROP_U32, OURS, FIELD(tx_timer_ns), .min = 1,
      .max = 1000000000, .fallback = "150000",
      .help = "tx=timer: nanoseconds from the kick to the pass" },
};

static void *prop_field(VirtIONetConf *conf, const Prop *p)
{
    return (char *)conf + p->offset;
}

static bool bad_value(const KeyVal *kv, const Prop *p, const char *value,
                      const char *accepted, GError **errp)
{
    keyval_bad_value(kv, p->key, value, accepted, errp);
    return false;
}

static bool take_str(VirtIONetConf *conf, const Prop *p, KeyVal *kv,
                     GError **errp)
{
    const char *value = keyval_take(kv, p->key);

    if (value && g_strlcpy(prop_field(conf, p), value, 64) >= 64) {
        return bad_value(kv, p, value, "at most 63 characters", errp);
    }
    return true;
}

static bool parse_mac(const char *text, uint8_t mac[6])
{
    for (int i = 0; i < 6; i++) {
        int hi = g_ascii_xdigit_value(text[0]);
        int lo = hi < 0 ? -1 : g_ascii_xdigit_value(text[1]);

        if (lo < 0 || (i < 5 ? text[2] != ':' && text[2] != '-' : text[2])) {
            return false;
        }
        mac[i] = hi << 4 | lo;
        text += 3;
    }
    return true;
}

static bool take_mac(VirtIONetConf *conf, const Prop *p, KeyVal *kv,
                     GError **errp)
{
    const char *value = keyval_take(kv, p->key);

    if (!value) {
        return true;
    }
    if (!parse_mac(value, conf->mac) || conf->mac[0] & 1) {
        return bad_value(kv, p, value,
                         "a unicast address such as 52:54:00:12:34:56", errp);
    }
    conf->mac_set = true;
    return true;
}

static const char *const tx_modes[] = {
    [VIRTIO_NET_TX_BH] = "bh",
    [VIRTIO_NET_TX_TIMER] = "timer",
    [VIRTIO_NET_TX_ADAPTIVE] = "adaptive",
};

static bool take_tx(VirtIONetConf *conf, const Prop *p, KeyVal *kv,
                    GError **errp)
{
    const char *value = keyval_take(kv, p->key);

    if (!value) {
        return true;
    }
    for (unsigned i = 0; i < G_N_ELEMENTS(tx_modes); i++) {
        if (!strcmp(value, tx_modes[i])) {
            conf->tx = i;
            return true;
        }
    }
    return bad_value(kv, p, value, "'bh', 'timer' or 'adaptive'", errp);
}

static bool take_tx_thread(VirtIONetConf *conf, const Prop *p, KeyVal *kv,
                           GError **errp)
{
    static const char *const names[] = {
        [VIRTIO_NET_TX_THREAD_OFF] = "off",
        [VIRTIO_NET_TX_THREAD_ON] = "on",
        [VIRTIO_NET_TX_THREAD_PER_QUEUE] = "per-queue",
        NULL
    };
    unsigned value = conf->tx_thread;
    bool good = keyval_take_enum(kv, p->key, names, &value, errp);

    conf->tx_thread = value;
    return good;
}

static bool take_cpus(VirtIONetConf *conf, const Prop *p, KeyVal *kv,
                      GError **errp)
{
    return cpu_affinity_take(kv, p->key, prop_field(conf, p), errp);
}

static bool take_uint(VirtIONetConf *conf, const Prop *p, KeyVal *kv,
                      GError **errp)
{
    uint64_t v;

    if (!keyval_take(kv, p->key)) {
        return true;
    }
    if (!keyval_take_uint(kv, p->key, p->min, p->max, &v, errp)) {
        return false;
    }
    if (p->kind == PROP_U32) {
        *(uint32_t *)prop_field(conf, p) = v;
        return true;
    }
    if (p->kind == PROP_RING_SIZE && (v & (v - 1))) {
        g_autofree char *text = g_strdup_printf("%" G_GUINT64_FORMAT, v);

        return bad_value(kv, p, text, "256, 512 or 1024", errp);
    }
    *(uint16_t *)prop_field(conf, p) = v;
    return true;
}

static bool take_bool(VirtIONetConf *conf, const Prop *p, KeyVal *kv,
                      GError **errp)
{
    bool on = !(p->kind == PROP_FEATURE) && *(bool *)prop_field(conf, p);

    if (!keyval_take(kv, p->key)) {
        return true;
    }
    if (!keyval_take_bool(kv, p->key, &on, errp)) {
        return false;
    }
    if (p->kind == PROP_BOOL) {
        *(bool *)prop_field(conf, p) = on;
    } else if (on) {
        conf->features_off &= ~p->bits;
    } else {
        conf->features_off |= p->bits;
    }
    return true;
}

typedef bool PropTake(VirtIONetConf *conf, const Prop *p, KeyVal *kv,
                      GError **errp);

static const struct {
    PropTake *take;
    const char *type;
} kinds[] = {
    [PROP_STR] = { take_str, "str" },
    [PROP_MAC] = { take_mac, "str" },
    [PROP_TX] = { take_tx, "bh|timer|adaptive" },
    [PROP_TX_THREAD] = { take_tx_thread, "on|off|per-queue" },
    [PROP_CPUS] = { take_cpus, "cpus" },
    [PROP_U32] = { take_uint, "uint32" },
    [PROP_U16] = { take_uint, "uint16" },
    [PROP_RING_SIZE] = { take_uint, "uint16" },
    [PROP_BOOL] = { take_bool, "bool" },
    [PROP_FEATURE] = { take_bool, "bool" },
};

void virtio_net_conf_init(VirtIONetConf *conf)
{
    *conf = (VirtIONetConf) {
        .tx = VIRTIO_NET_TX_BH,
        .tx_timer_ns = 150000,
        .tx_hold_ns = 50000,
        .tx_latency_us = 300,
        .tx_coal_frames = 64,
        .tx_coal_usecs = 150,
        .tx_coal_bytes = 262144,
        .rx_queue_size = 256,
        .tx_queue_size = 256,
    };
}

/* Values that are good each, and not together. */
static bool check_together(const VirtIONetConf *conf, const KeyVal *kv,
                           GError **errp)
{
    if (conf->host_mtu && conf->host_mtu < VIRTIO_NET_MIN_MTU) {
        keyval_bad_value(kv, "host_mtu", keyval_peek(kv, "host_mtu"),
                         "68 to 65535", errp);
        return false;
    }
    if (CPU_COUNT(&conf->tx_cpus) &&
        conf->tx_thread == VIRTIO_NET_TX_THREAD_OFF) {
        vnet_set_error(errp, "%s: parameter 'tx-cpus' (value '%s') needs a "
                       "thread to place: add tx-thread=on or "
                       "tx-thread=per-queue", keyval_subject(kv),
                       keyval_peek(kv, "tx-cpus"));
        return false;
    }
    return true;
}

bool virtio_net_conf_parse(VirtIONetConf *conf, KeyVal *kv, GError **errp)
{
    for (unsigned i = 0; i < G_N_ELEMENTS(props); i++) {
        if (!kinds[props[i].kind].take(conf, &props[i], kv, errp)) {
            return false;
        }
    }
    return check_together(conf, kv, errp);
}

VirtIONetPropOwner virtio_net_prop_owner(const char *key)
{
    for (unsigned i = 0; i < G_N_ELEMENTS(props); i++) {
        if (!strcmp(key, props[i].key)) {
            return props[i].owner;
        }
    }
    return VIRTIO_NET_PROP_UNKNOWN;
}

char *virtio_net_props_help(bool ours_only)
{
    GString *out = g_string_new(NULL);

    for (unsigned i = 0; i < G_N_ELEMENTS(props); i++) {
        const Prop *p = &props[i];
        g_autofree char *name = g_strdup_printf("%s=<%s>", p->key,
                                                kinds[p->kind].type);

        if (ours_only && p->owner != VIRTIO_NET_PROP_DEVICE) {
            continue;
        }
        g_string_append_printf(out, "  %-24s - %s", name, p->help);
        if (*p->fallback) {
            g_string_append_printf(out, " (default: %s)", p->fallback);
        }
        g_string_append_c(out, '\n');
    }
    return g_string_free(out, FALSE);
}
