/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * QMP commands about NICs: quit, set_link, query-virtio-net-stats,
 * virtio-net-stats-reset.
 *
 * Counters are read with relaxed loads from the main context while the
 * queues run: each value is right, the set is not a snapshot.  A reset is
 * main's as well (what is subtracted), so requests of several monitors come
 * one after the other: all see the same zero.
 */
#include "monitor/qmp-cmds-net.h"

#include <string.h>

static VirtIONet *find_nic(QmpNetTarget *target, const char *name)
{
    for (guint i = 0; i < target->nics->len; i++) {
        VirtIONet *nic = target->nics->pdata[i];

        if (!strcmp(virtio_net_id(nic), name) ||
            !strcmp(net_backend_id(virtio_net_backend(nic)), name)) {
            return nic;
        }
    }
    return NULL;
}

static JsonNode *cmd_quit(void *opaque, JsonObject *args, GError **errp)
{
    QmpNetTarget *target = opaque;

    target->quit(target->opaque);
    return qmp_empty();
}

/* The NIC, or the one on the netdev, that argument @arg names. */
static VirtIONet *find_nic_arg(QmpNetTarget *target, JsonObject *args,
                               const char *arg, GError **errp)
{
    const char *name = json_object_get_string_member(args, arg);
    VirtIONet *nic = find_nic(target, name);

    if (!nic) {
        g_set_error(errp, QMP_ERROR, QMP_ERROR_DEVICE_NOT_FOUND,
                    "Device '%s' not found", name);
    }
    return nic;
}

static JsonNode *cmd_set_link(void *opaque, JsonObject *args, GError **errp)
{
    VirtIONet *nic = find_nic_arg(opaque, args, "name", errp);

    if (!nic) {
        return NULL;
    }
    virtio_net_set_link(nic, json_object_get_boolean_member(args, "up"));
    return qmp_empty();
}

/* QEMU's BlockLatencyHistogramInfo: bins and the boundaries between them. */
static JsonObject *histogram(const uint64_t *bins, unsigned n)
{
    JsonObject *obj = json_object_new();
    JsonArray *boundaries = json_array_new();
    JsonArray *values = json_array_new();

    for (unsigned i = 0; i < n; i++) {
        json_array_add_int_element(values, bins[i]);
        if (i + 1 < n) {
            json_array_add_int_element(boundaries, INT64_C(1) << i);
        }
    }
    json_object_set_array_member(obj, "boundaries", boundaries);
    json_object_set_array_member(obj, "bins", values);
    return obj;
}

static void add_stat(JsonObject *obj, const VirtIONetStatInfo *info,
                     const uint64_t *values)
{
    /* Words in names of QMP are joined by dashes */
    g_autofree char *name = g_strdelimit(g_strdup(info->name), "_", '-');

    if (info->bins) {
        json_object_set_object_member(obj, name,
                                      histogram(values, info->bins));
    } else {
        json_object_set_int_member(obj, name, *values);
    }
}

static JsonObject *queue_stats(VirtIONet *nic, unsigned idx)
{
    bool tx = idx % 2;
    VirtIONetQueueStats stats;
    JsonObject *obj = json_object_new();
    size_t n;
    const VirtIONetStatInfo *infos = virtio_net_stat_infos(&n);

    virtio_net_queue_stats_base(nic, idx, &stats);
    json_object_set_int_member(obj, "index", idx);
    json_object_set_string_member(obj, "direction", tx ? "tx" : "rx");
    for (size_t i = 0; i < n; i++) {
        if (infos[i].ways & (tx ? VIRTIO_NET_STAT_TX : VIRTIO_NET_STAT_RX)) {
            add_stat(obj, &infos[i],
                     virtio_net_stat_values(&stats, &infos[i]));
        }
    }
    return obj;
}

static JsonObject *nic_stats(VirtIONet *nic)
{
    JsonObject *obj = json_object_new();
    JsonArray *queues = json_array_new();

    for (unsigned i = 0; i < 2 * virtio_net_max_pairs(nic); i++) {
        json_array_add_object_element(queues, queue_stats(nic, i));
    }
    json_object_set_string_member(obj, "id", virtio_net_id(nic));
    json_object_set_string_member(obj, "netdev",
                                  net_backend_id(virtio_net_backend(nic)));
    json_object_set_boolean_member(obj, "link", virtio_net_link_up(nic));
    json_object_set_array_member(obj, "queues", queues);
    return obj;
}

/* Call @fn for the NIC that "id" names, or for each. */
static bool for_nics(QmpNetTarget *target, JsonObject *args,
                     void (*fn)(VirtIONet *nic, JsonArray *list),
                     JsonArray *list, GError **errp)
{
    if (json_object_has_member(args, "id")) {
        VirtIONet *nic = find_nic_arg(target, args, "id", errp);

        if (!nic) {
            return false;
        }
        fn(nic, list);
        return true;
    }
    for (guint i = 0; i < target->nics->len; i++) {
        fn(target->nics->pdata[i], list);
    }
    return true;
}

static void list_stats(VirtIONet *nic, JsonArray *list)
{
    json_array_add_object_element(list, nic_stats(nic));
}

static JsonNode *cmd_query_stats(void *opaque, JsonObject *args,
                                 GError **errp)
{
    g_autoptr(JsonArray) list = json_array_new();
    JsonNode *node;

    if (!for_nics(opaque, args, list_stats, list, errp)) {
        return NULL;
    }
    node = json_node_new(JSON_NODE_ARRAY);
    json_node_set_array(node, list);
    return node;
}

static void reset_stats(VirtIONet *nic, JsonArray *list)
{
    virtio_net_reset_stats(nic);
}

static JsonNode *cmd_reset_stats(void *opaque, JsonObject *args,
                                 GError **errp)
{
    return for_nics(opaque, args, reset_stats, NULL, errp) ? qmp_empty()
                                                           : NULL;
}

static const QmpArg set_link_args[] = {
    { "name", QMP_STRING },
    { "up", QMP_BOOL },
    { NULL }
};

static const QmpArg stats_args[] = {
    { "id", QMP_STRING, .optional = true },
    { NULL }
};

const QmpCommand qmp_net_commands[] = {
    { "quit", NULL, cmd_quit },
    { "set_link", set_link_args, cmd_set_link },
    { "query-virtio-net-stats", stats_args, cmd_query_stats },
    { "virtio-net-stats-reset", stats_args, cmd_reset_stats },
    { NULL }
};
