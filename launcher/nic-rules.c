/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The rules by which a NIC is ours: a table, asked in order.  The first rule
 * that answers keeps the NIC in the stock QEMU.
 *
 * Hubs come last: the ports of one hub have to be in one process, so one
 * port that stays keeps all of them.
 */
#include "nic-rules.h"

#include <string.h>

/* As long as a property of the device may be. */
#define MAX_ID_BYTES 63

/* Answers of a rule: NULL: no objection.  Empty: it stays, and its user said
 * so.  Else it stays, for this reason. */
typedef char *NicRule(const CmdLine *cmd, const LaunchNic *nic);

static bool is_on(const char *value)
{
    static const char *const on[] = { "on", "yes", "true", "y", NULL };

    return value && g_strv_contains(on, value);
}

static bool is_type(const LaunchNic *nic, const char *type)
{
    return !strcmp(nic->netdev->type, type);
}

/* ---- rules ------------------------------------------------------------- */

/* These have their datapath outside of QEMU already. */
static char *rule_offloaded(const CmdLine *cmd, const LaunchNic *nic)
{
    KeyVal *kv = nic->netdev->kv;
    const char *vhost = keyval_peek(kv, "vhost");
    bool implied = is_on(keyval_peek(kv, "vhostforce")) ||
                   keyval_peek(kv, "vhostfd") || keyval_peek(kv, "vhostfds");

    if (is_type(nic, "vhost-user") || is_type(nic, "vhost-vdpa") ||
        (is_type(nic, "tap") && (vhost ? is_on(vhost) : implied))) {
        return g_strdup("");
    }
    return NULL;
}

static char *rule_type(const CmdLine *cmd, const LaunchNic *nic)
{
    if (is_type(nic, "user") || is_type(nic, "tap") ||
        is_type(nic, "hubport")) {
        return NULL;
    }
    return g_strdup_printf("only user, tap and hubport netdevs are served "
                           "outside of it, not %s", nic->netdev->type);
}

/* What our backends do not have. */
static char *rule_netdev_key(const CmdLine *cmd, const LaunchNic *nic)
{
    static const struct {
        const char *type, *key;
    } keys[] = {
        { "tap", "br" },
        { "tap", "helper" },
        { "tap", "poll-us" },
        { "user", "smb" },
        { "user", "smbserver" },
        { "hubport", "netdev" },
    };

    for (size_t i = 0; i < G_N_ELEMENTS(keys); i++) {
        if (is_type(nic, keys[i].type) &&
            keyval_peek(nic->netdev->kv, keys[i].key)) {
            return g_strdup_printf("%s= of -netdev %s is not served outside "
                                   "of it", keys[i].key, keys[i].type);
        }
    }
    return NULL;
}

/* guestfwd= to a character device of QEMU's. */
static char *rule_guestfwd(const CmdLine *cmd, const LaunchNic *nic)
{
    g_autofree const char **list = keyval_take_list(nic->netdev->kv,
                                                    "guestfwd");

    for (const char **p = list; is_type(nic, "user") && *p; p++) {
        const char *target = strchr(*p, '-');

        /* What has no target at all is for the daemon to refuse. */
        if (target && !g_str_has_prefix(target, "-cmd:") &&
            !g_str_has_prefix(target, "-tcp:")) {
            return g_strdup_printf("guestfwd=%s: only cmd: and tcp: are "
                                   "served outside of it", *p);
        }
    }
    return NULL;
}

/* hostfwd=unix:PATH-... of newer QEMUs. */
static char *rule_hostfwd(const CmdLine *cmd, const LaunchNic *nic)
{
    g_autofree const char **list = keyval_take_list(nic->netdev->kv,
                                                    "hostfwd");

    for (const char **p = list; is_type(nic, "user") && *p; p++) {
        if (g_str_has_prefix(*p, "unix:")) {
            return g_strdup_printf("hostfwd=%s: only tcp: and udp: are served "
                                   "outside of it", *p);
        }
    }
    return NULL;
}

/* What -global says for a type of NIC or one of its parents. */
static bool global_is_on(const CmdLine *cmd, const char *property)
{
    static const char *const parents[] = {
        "virtio-device", "virtio-net-device", "virtio-net-pci-base",
        "virtio-pci", NULL
    };
    bool on = false;
    guint i;

    CMDLINE_FOREACH (cmd, "global", i) {
        g_auto(GStrv) words = nic_split_global(cmdline_at(cmd, i)->value);

        if (words && !strcmp(words[1], property) &&
            (nic_is_virtio(words[0]) || g_strv_contains(
                (const char *const *)parents, words[0]))) {
            on = is_on(words[2]);
        }
    }
    return on;
}

static char *rule_iommu(const CmdLine *cmd, const LaunchNic *nic)
{
    const char *own = keyval_peek(nic->kv, "iommu_platform");

    return (own ? is_on(own) : global_is_on(cmd, "iommu_platform"))
        ? g_strdup("vhost-user does not carry iommu_platform=on") : NULL;
}

/* A back-end without a dirty log blocks migration, which QEMU then refuses
 * at its start: 7.2 crashes, later ones try again for ever. */
static char *rule_migratable(const CmdLine *cmd, const LaunchNic *nic)
{
    return cmdline_has(cmd, "only-migratable")
        ? g_strdup("-only-migratable: a NIC served outside of it cannot be "
                   "migrated yet") : NULL;
}

/* "on,obsolete=deny,...,spawn=deny" */
static bool may_not_spawn(const CmdLine *cmd)
{
    bool denied = false;
    guint i;

    CMDLINE_FOREACH (cmd, "sandbox", i) {
        KeyVal *kv = keyval_parse("-sandbox", cmdline_at(cmd, i)->value,
                                  "enable", NULL);

        denied |= kv && !g_strcmp0(keyval_peek(kv, "spawn"), "deny");
        keyval_free(kv);
    }
    return denied;
}

static bool has_command(const LaunchNic *nic)
{
    g_autofree const char **list = keyval_take_list(nic->netdev->kv,
                                                    "guestfwd");

    for (const char **p = list; *p; p++) {
        if (strstr(*p, "-cmd:")) {
            return true;
        }
    }
    return false;
}

static bool runs_as_another(const CmdLine *cmd)
{
    bool found = cmdline_has(cmd, "runas") || cmdline_has(cmd, "chroot");
    guint i;

    CMDLINE_FOREACH (cmd, "run-with", i) {
        KeyVal *kv = keyval_parse("-run-with", cmdline_at(cmd, i)->value,
                                  NULL, NULL);

        found |= kv && (keyval_peek(kv, "user") || keyval_peek(kv, "chroot"));
        keyval_free(kv);
    }
    return found;
}

/* What confines QEMU has to confine what it would have run as well. */
static char *rule_confined(const CmdLine *cmd, const LaunchNic *nic)
{
    if (runs_as_another(cmd)) {
        return g_strdup("another user or root directory (-runas, -chroot, "
                        "-run-with) is not carried over to a NIC outside of "
                        "it yet");
    }
    if (is_type(nic, "user") && has_command(nic) && may_not_spawn(cmd)) {
        return g_strdup("-sandbox spawn=deny: guestfwd=...-cmd: would start "
                        "processes");
    }
    return NULL;
}

/* JSON and QEMU allow more than can be named on our command line. */
static char *rule_id(const CmdLine *cmd, const LaunchNic *nic)
{
    const char *ids[] = { nic->netdev->id, keyval_peek(nic->kv, "id") };

    for (size_t i = 0; i < G_N_ELEMENTS(ids); i++) {
        const char *p = ids[i];

        if (!p) {
            continue;
        }
        while (g_ascii_isalnum(*p) || (*p && strchr("-._", *p))) {
            p++;
        }
        if (*p || !g_ascii_isalpha(*ids[i]) || p - ids[i] > MAX_ID_BYTES) {
            return g_strdup_printf("id '%s' is not a letter followed by up to "
                                   "%d letters, digits or '-', '.', '_'",
                                   ids[i], MAX_ID_BYTES - 1);
        }
    }
    return NULL;
}

static char *rule_replay(const CmdLine *cmd, const LaunchNic *nic)
{
    guint i;

    CMDLINE_FOREACH (cmd, "icount", i) {
        const char *value = cmdline_at(cmd, i)->value;

        if (strstr(value, "rr=record") || strstr(value, "rr=replay")) {
            return g_strdup("record/replay needs all devices in one process");
        }
    }
    return NULL;
}

/* -object filter-*,netdev=ID sees a backend's packets inside of QEMU. */
static char *rule_filter(const CmdLine *cmd, const LaunchNic *nic)
{
    guint i;

    CMDLINE_FOREACH (cmd, "object", i) {
        KeyVal *kv = keyval_parse("-object", cmdline_at(cmd, i)->value,
                                  "qom-type", NULL);
        const char *type = kv ? keyval_peek(kv, "qom-type") : NULL;
        bool hit = type && g_str_has_prefix(type, "filter-") &&
                   !g_strcmp0(keyval_peek(kv, "netdev"), nic->netdev->id);
        char *reason = hit ? g_strdup_printf("%s works inside of it only",
                                             type) : NULL;

        keyval_free(kv);
        if (reason) {
            return reason;
        }
    }
    return NULL;
}

static NicRule *const rules[] = {
    rule_offloaded,
    rule_type,
    rule_id,
    rule_netdev_key,
    rule_guestfwd,
    rule_hostfwd,
    rule_iommu,
    rule_migratable,
    rule_confined,
    rule_replay,
    rule_filter,
};

/* ---- hubs -------------------------------------------------------------- */

static bool same_hub(const LaunchNetdev *a, const LaunchNetdev *b)
{
    return !strcmp(a->type, "hubport") && !strcmp(b->type, "hubport") &&
           !g_strcmp0(keyval_peek(a->kv, "hubid"),
                      keyval_peek(b->kv, "hubid"));
}

/* Does this port of a hub tie the hub to the stock QEMU? */
static bool port_stays(const LaunchNetdev *port)
{
    return (port->used && !(port->nic && port->nic->ours)) ||
           keyval_peek(port->kv, "netdev");
}

static const LaunchNetdev *find_port_that_stays(const LaunchNics *set,
                                                const LaunchNetdev *of)
{
    for (guint i = 0; i < set->netdevs->len; i++) {
        const LaunchNetdev *port = set->netdevs->pdata[i];

        if (same_hub(port, of) && port_stays(port)) {
            return port;
        }
    }
    return NULL;
}

/* Our hubs are wires. */
static bool is_wire(const LaunchNics *set, const LaunchNetdev *of)
{
    unsigned ports = 0;

    for (guint i = 0; i < set->netdevs->len; i++) {
        ports += same_hub(set->netdevs->pdata[i], of);
    }
    return ports <= 2;
}

/* A port without a NIC moves along: nothing else can be on it. */
static void move_ports(const LaunchNics *set, const LaunchNetdev *of)
{
    for (guint i = 0; i < set->netdevs->len; i++) {
        LaunchNetdev *port = set->netdevs->pdata[i];

        if (same_hub(port, of)) {
            port->ours = true;
        }
    }
}

/* ---- judgement --------------------------------------------------------- */

/* Takes @reason. */
static void stay(LaunchNic *nic, char *reason, GPtrArray *notices)
{
    nic->ours = false;
    if (*reason) {
        g_ptr_array_add(notices, g_strdup_printf(
            "netdev '%s': its NIC stays with the stock QEMU: %s",
            nic->netdev->id, reason));
    }
    g_free(reason);
}

static void judge_nic(const CmdLine *cmd, LaunchNic *nic, GPtrArray *notices)
{
    nic->ours = true;
    for (size_t i = 0; i < G_N_ELEMENTS(rules); i++) {
        char *reason = rules[i](cmd, nic);

        if (reason) {
            stay(nic, reason, notices);
            return;
        }
    }
}

/* Returns true if the NIC was ours and is not any more. */
static bool judge_hub(LaunchNics *set, LaunchNic *nic, GPtrArray *notices)
{
    const LaunchNetdev *port;

    if (!nic->ours || !is_type(nic, "hubport")) {
        return false;
    }
    if (!is_wire(set, nic->netdev)) {
        stay(nic, g_strdup("its hub has more than two ports"), notices);
        return true;
    }
    port = find_port_that_stays(set, nic->netdev);
    if (!port) {
        return false;
    }
    stay(nic, g_strdup_printf("so does port '%s' of its hub", port->id),
         notices);
    return true;
}

void nic_rules_judge(const CmdLine *cmd, LaunchNics *set, GPtrArray *notices)
{
    bool changed;

    for (guint i = 0; i < set->nics->len; i++) {
        judge_nic(cmd, set->nics->pdata[i], notices);
    }
    do {
        changed = false;
        for (guint i = 0; i < set->nics->len; i++) {
            changed |= judge_hub(set, set->nics->pdata[i], notices);
        }
    } while (changed);

    for (guint i = 0; i < set->nics->len; i++) {
        LaunchNic *nic = set->nics->pdata[i];

        if (nic->ours) {
            set->ours++;
            nic->netdev->ours = true;
            move_ports(set, nic->netdev);
        }
    }
}
