/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Finding the NICs of a command line.
 *
 * Options of others are read as far as they matter here (which netdev they
 * use) and never judged: what cannot be read is left to QEMU, which will say
 * what is wrong with it.
 */
#include "nic.h"

#include <string.h>

#include "nic-rules.h"
#include "util/report.h"

bool nic_is_virtio(const char *driver)
{
    static const char *const names[] = {
        "virtio-net-pci",
        "virtio-net-pci-transitional",
        "virtio-net-pci-non-transitional",
        "virtio-net",
        NULL
    };

    return g_strv_contains(names, driver);
}

static char **split_global_keys(const char *text)
{
    KeyVal *kv = keyval_parse("-global", text, NULL, NULL);
    const char *driver = kv ? keyval_peek(kv, "driver") : NULL;
    const char *property = kv ? keyval_peek(kv, "property") : NULL;
    const char *value = kv ? keyval_peek(kv, "value") : NULL;
    char **words = NULL;

    if (driver && property && value) {
        words = g_new0(char *, 4);
        words[0] = g_strdup(driver);
        words[1] = g_strdup(property);
        words[2] = g_strdup(value);
    }
    keyval_free(kv);
    return words;
}

char **nic_split_global(const char *text)
{
    const char *dot = strchr(text, '.');
    const char *equals = dot ? strchr(dot, '=') : NULL;
    char **words;

    if (!equals || memchr(text, '=', dot - text)) {
        return split_global_keys(text);
    }
    words = g_new0(char *, 4);
    words[0] = g_strndup(text, dot - text);
    words[1] = g_strndup(dot + 1, equals - dot - 1);
    words[2] = g_strdup(equals + 1);
    return words;
}

/* ---- netdevs ----------------------------------------------------------- */

static LaunchNetdev *find_netdev(const LaunchNics *set, const char *id)
{
    for (guint i = 0; i < set->netdevs->len; i++) {
        LaunchNetdev *nd = set->netdevs->pdata[i];

        if (!strcmp(nd->id, id)) {
            return nd;
        }
    }
    return NULL;
}

static bool add_netdev(LaunchNics *set, guint opt, KeyVal *kv, GError **errp)
{
    LaunchNetdev *nd = g_new0(LaunchNetdev, 1);

    nd->opt = opt;
    nd->kv = kv;
    nd->id = keyval_peek(kv, "id");
    nd->type = keyval_peek(kv, "type");
    if (find_netdev(set, nd->id)) {
        vnet_set_error(errp, "%s: another netdev has this id: give each its "
                       "own", keyval_subject(kv));
        g_free(nd);
        return false;
    }
    g_ptr_array_add(set->netdevs, nd);
    return true;
}

static bool find_netdevs(const CmdLine *cmd, LaunchNics *set, GError **errp)
{
    guint i;

    CMDLINE_FOREACH (cmd, "netdev", i) {
        KeyVal *kv = keyval_parse("-netdev", cmdline_at(cmd, i)->value,
                                  "type", errp);

        if (!kv) {
            return false;
        }
        if (!keyval_peek(kv, "id") || !keyval_peek(kv, "type")) {
            keyval_free(kv);
        } else if (!add_netdev(set, i, kv, errp)) {
            keyval_free(kv);
            return false;
        }
    }
    return true;
}

static void netdev_free(gpointer opaque)
{
    LaunchNetdev *nd = opaque;

    keyval_free(nd->kv);
    g_free(nd);
}

/* ---- devices ----------------------------------------------------------- */

static bool uses_netdev(KeyVal *kv)
{
    return keyval_peek(kv, "driver") && keyval_peek(kv, "netdev");
}

static bool is_virtio_nic(KeyVal *kv)
{
    return uses_netdev(kv) && nic_is_virtio(keyval_peek(kv, "driver"));
}

static bool device_error(KeyVal *kv, GError **errp, const char *fmt, ...)
    G_GNUC_PRINTF(3, 4);

static bool device_error(KeyVal *kv, GError **errp, const char *fmt, ...)
{
    g_autofree char *text = NULL;
    va_list ap;

    va_start(ap, fmt);
    text = g_strdup_vprintf(fmt, ap);
    va_end(ap);
    vnet_set_error(errp, "-device %s,netdev=%s: %s",
                   keyval_peek(kv, "driver"), keyval_peek(kv, "netdev"),
                   text);
    return false;
}

/*
 * Note that a device uses its netdev.  A netdev that is not on the command
 * line may be in a file that only QEMU reads.
 */
static bool use_netdev(const CmdLine *cmd, const LaunchNics *set, KeyVal *kv,
                       LaunchNetdev **out, GError **errp)
{
    const char *id = keyval_peek(kv, "netdev");
    LaunchNetdev *nd = find_netdev(set, id);

    *out = nd;
    if (!nd && is_virtio_nic(kv) && !cmdline_has(cmd, "readconfig")) {
        return device_error(kv, errp, "no netdev '%s': add -netdev "
                            "TYPE,id=%s, or name one that is there", id, id);
    }
    if (nd && nd->used) {
        return device_error(kv, errp, "another device uses netdev '%s': give "
                            "each NIC a -netdev of its own", id);
    }
    if (nd) {
        nd->used = true;
    }
    return true;
}

static void nic_free(gpointer opaque)
{
    LaunchNic *nic = opaque;

    keyval_free(nic->kv);
    g_free(nic->id);
    g_free(nic);
}

static unsigned count_queues(const LaunchNic *nic)
{
    const char *fds = keyval_peek(nic->netdev->kv, "fds");
    const char *queues = keyval_peek(nic->netdev->kv, "queues");
    unsigned n = 1;

    /* Without mq=on the device has one pair, whatever its backend has. */
    if (!nic->conf.mq || strcmp(nic->netdev->type, "tap") != 0) {
        return 1;
    }
    if (queues) {
        return MAX(g_ascii_strtoull(queues, NULL, 0), 1);
    }
    for (; fds && *fds; fds++) {
        n += *fds == ':';
    }
    return n;
}

/* Takes @kv. */
static void add_nic(LaunchNics *set, guint opt, KeyVal *kv, LaunchNetdev *nd)
{
    LaunchNic *nic = g_new0(LaunchNic, 1);
    const char *id = keyval_peek(kv, "id");

    nic->opt = opt;
    nic->kv = kv;
    nic->netdev = nd;
    /* No user can give an id that starts with '#'. */
    nic->id = id ? g_strdup(id) : g_strconcat("#", nd->id, NULL);
    nd->nic = nic;
    g_ptr_array_add(set->nics, nic);
}

static bool find_nic(const CmdLine *cmd, LaunchNics *set, guint i,
                     GError **errp)
{
    KeyVal *kv = keyval_parse("-device", cmdline_at(cmd, i)->value, "driver",
                              NULL);
    LaunchNetdev *nd = NULL;
    bool good = true;

    if (kv && uses_netdev(kv)) {
        good = use_netdev(cmd, set, kv, &nd, errp);
    }
    if (good && nd && is_virtio_nic(kv)) {
        add_nic(set, i, kv, nd);
    } else {
        keyval_free(kv);
    }
    return good;
}

static bool parse_conf(LaunchNic *nic, GError **errp)
{
    virtio_net_conf_init(&nic->conf);
    if (!virtio_net_conf_parse(&nic->conf, nic->kv, errp)) {
        return false;
    }
    nic->queues = count_queues(nic);
    return true;
}

static bool has_virtio_nic(const CmdLine *cmd)
{
    bool found = false;
    guint i;

    CMDLINE_FOREACH (cmd, "device", i) {
        KeyVal *kv = keyval_parse("-device", cmdline_at(cmd, i)->value,
                                  "driver", NULL);

        found |= kv && is_virtio_nic(kv);
        keyval_free(kv);
    }
    return found;
}

static bool find_all(const CmdLine *cmd, LaunchNics *set, GPtrArray *notices,
                     GError **errp)
{
    guint i;

    if (!has_virtio_nic(cmd)) {
        return true;
    }
    if (!find_netdevs(cmd, set, errp)) {
        return false;
    }
    CMDLINE_FOREACH (cmd, "device", i) {
        if (!find_nic(cmd, set, i, errp)) {
            return false;
        }
    }
    nic_rules_judge(cmd, set, notices);
    for (i = 0; i < set->nics->len; i++) {
        LaunchNic *nic = set->nics->pdata[i];

        if (nic->ours && !parse_conf(nic, errp)) {
            return false;
        }
    }
    return true;
}

LaunchNics *nics_find(const CmdLine *cmd, GPtrArray *notices, GError **errp)
{
    LaunchNics *set = g_new0(LaunchNics, 1);

    set->netdevs = g_ptr_array_new_with_free_func(netdev_free);
    set->nics = g_ptr_array_new_with_free_func(nic_free);
    if (!find_all(cmd, set, notices, errp)) {
        nics_free(set);
        return NULL;
    }
    return set;
}

void nics_free(LaunchNics *set)
{
    g_ptr_array_free(set->nics, TRUE);
    g_ptr_array_free(set->netdevs, TRUE);
    g_free(set);
}
