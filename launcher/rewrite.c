/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * One command line in, two command lines out.
 *
 *     -netdev tap,id=n0,...       daemon: --netdev tap,id=n0,...
 *                                 QEMU:   -chardev socket,id=vnet-n0,path=...
 *                                         -netdev vhost-user,id=n0,...
 *     -device virtio-net-pci,     daemon: --device virtio-net-pci, with the
 *             netdev=n0,...               properties our device has
 *                                 QEMU:   the same at the same place, less
 *                                         the properties only we have
 *
 * and memory (memory.c).  Everything else is QEMU's, byte for byte.
 */
#include "rewrite.h"

#include <string.h>

#include "accel.h"
#include "memory.h"
#include "qemu-options.h"
#include "util/report.h"

#define OPTION_QMP "x-vnet-qmp"

/* ---- what to do at all ------------------------------------------------- */

static bool is_help(const char *value)
{
    return !strcmp(value, "help") || !strcmp(value, "?");
}

/* "virtio-net-pci,help" */
static bool is_nic_help(const char *value)
{
    g_auto(GStrv) words = g_strsplit(value, ",", -1);
    guint n = g_strv_length(words);

    return n > 1 && is_help(words[n - 1]) && nic_is_virtio(words[0]);
}

/* Whether this option makes QEMU print something and exit. */
static bool asks_for_text(const CmdOpt *opt, LaunchKind *kind)
{
    static const char *const alone[] = { "h", "help", "version", NULL };
    static const char *const lists[] = {
        "M", "accel", "audio", "audiodev", "chardev", "cpu", "d", "device",
        "display", "machine", "net", "netdev", "nic", "object", "trace",
        "vga", NULL
    };

    *kind = LAUNCH_STOCK;
    if (!opt->name || !opt->value) {
        return opt->name && g_strv_contains(alone, opt->name);
    }
    if (!g_strv_contains(lists, opt->name)) {
        return false;
    }
    if (!strcmp(opt->name, "device") && is_nic_help(opt->value)) {
        *kind = LAUNCH_HELP_DEVICE;
        return true;
    }
    if (!strcmp(opt->name, "netdev") && is_help(opt->value)) {
        *kind = LAUNCH_HELP_NETDEV;
    }
    return is_help(opt->value) || g_str_has_suffix(opt->value, ",help");
}

/* The last word lacks its argument: QEMU says so, and not of one of ours. */
static bool lacks_argument(const CmdOpt *opt)
{
    return opt->name && !opt->value && qemu_option_has_arg(opt->name);
}

/* Returns true if there is nothing to look at any closer. */
static bool is_for_stock(LaunchPlan *plan)
{
    g_autofree char *machine = machine_option(plan->cmd, "type");

    for (guint i = 0; i < plan->cmd->opts->len; i++) {
        if (lacks_argument(cmdline_at(plan->cmd, i))) {
            plan->kind = LAUNCH_STOCK;
            return true;
        }
        if (asks_for_text(cmdline_at(plan->cmd, i), &plan->kind)) {
            return true;
        }
    }
    plan->kind = LAUNCH_STOCK;
    return accel_is_qtest(plan->cmd) || !g_strcmp0(machine, "none");
}

static bool take_own_options(LaunchPlan *plan, GError **errp)
{
    guint i;

    for (i = cmdline_next(plan->cmd, OPTION_QMP, 0);
         i < plan->cmd->opts->len;
         i = cmdline_next(plan->cmd, OPTION_QMP, i + 1)) {
        plan->qmp_path = cmdline_at(plan->cmd, i)->value;
        if (!plan->qmp_path) {
            vnet_set_error(errp, "-" OPTION_QMP ": the path of a socket is "
                           "missing");
            return false;
        }
        cmdline_drop(plan->cmd, i);
    }
    return true;
}

/* ---- iothreads --------------------------------------------------------- */

static void append_iothread_key(const char *key, const char *value,
                                void *opaque)
{
    static const char *const keys[] = {
        "id", "poll-max-ns", "cpu-affinity", NULL
    };

    if (g_strv_contains(keys, key)) {
        cmdline_add_key(opaque, key, value);
    }
}

/* QEMU keeps the object, since others may use it, but not our key. */
static bool move_iothread(LaunchPlan *plan, guint i, const char *id)
{
    KeyVal *kv = keyval_parse("-object", cmdline_at(plan->cmd, i)->value,
                              "qom-type", NULL);
    bool hit = kv && !g_strcmp0(keyval_peek(kv, "qom-type"), "iothread") &&
               !g_strcmp0(keyval_peek(kv, "id"), id);

    if (hit) {
        GString *object = g_string_new("iothread");

        keyval_foreach(kv, append_iothread_key, object);
        g_ptr_array_add(plan->objects, g_string_free(object, FALSE));
        if (keyval_remove(kv, "cpu-affinity")) {
            cmdline_edit(plan->cmd, i, keyval_format(kv));
        }
    }
    keyval_free(kv);
    return hit;
}

static bool is_earlier_iothread(const LaunchPlan *plan, guint nic)
{
    const LaunchNic *last = plan->nics->nics->pdata[nic];

    for (guint i = 0; i < nic; i++) {
        const LaunchNic *n = plan->nics->nics->pdata[i];

        if (n->ours && !strcmp(n->conf.iothread, last->conf.iothread)) {
            return true;
        }
    }
    return false;
}

static bool take_iothread(LaunchPlan *plan, guint nic, GError **errp)
{
    const LaunchNic *n = plan->nics->nics->pdata[nic];
    const char *id = n->conf.iothread;
    guint i;

    if (!*id || is_earlier_iothread(plan, nic)) {
        return true;
    }
    CMDLINE_FOREACH (plan->cmd, "object", i) {
        if (move_iothread(plan, i, id)) {
            return true;
        }
    }
    vnet_set_error(errp, "%s: no iothread '%s': add -object iothread,id=%s",
                   keyval_subject(n->kv), id, id);
    return false;
}

/* ---- the device on QEMU's side ----------------------------------------- */

/* Of our properties, those the stock QEMU has as well. */
static bool stock_has(const char *key)
{
    static const char *const keys[] = {
        "tx", "x-txtimer", "x-txburst", NULL
    };

    return g_strv_contains(keys, key);
}

static void list_own_key(const char *key, const char *value, void *opaque)
{
    if (virtio_net_prop_owner(key) == VIRTIO_NET_PROP_DEVICE) {
        g_ptr_array_add(opaque, g_strdup(key));
    }
}

/*
 * Take our properties out of what QEMU gets.  A NIC that stays with QEMU
 * keeps those QEMU has, and its user is told of the others.
 */
static void strip_device(LaunchPlan *plan, const LaunchNic *nic, KeyVal *kv)
{
    g_autoptr(GPtrArray) keys = g_ptr_array_new_with_free_func(g_free);

    keyval_foreach(kv, list_own_key, keys);
    for (guint i = 0; i < keys->len; i++) {
        const char *key = keys->pdata[i];

        if ((nic->ours || !stock_has(key)) && keyval_remove(kv, key) &&
            !nic->ours) {
            g_ptr_array_add(plan->notices, g_strdup_printf(
                "netdev '%s': %s= has no effect on a NIC of the stock QEMU",
                nic->netdev->id, key));
        }
    }
}

static void rewrite_device(LaunchPlan *plan, const LaunchNic *nic,
                           bool no_msix)
{
    const char *text = cmdline_at(plan->cmd, nic->opt)->value;
    KeyVal *kv = keyval_parse("-device", text, "driver", NULL);
    g_autofree char *before = keyval_format(kv);
    g_autofree char *after = NULL;

    strip_device(plan, nic, kv);
    if (no_msix && nic->ours && !keyval_peek(kv, "vectors")) {
        keyval_set_uint(kv, "vectors", 0);
    }
    after = keyval_format(kv);
    if (strcmp(before, after) != 0) {
        cmdline_edit(plan->cmd, nic->opt, g_steal_pointer(&after));
    }
    keyval_free(kv);
}

static bool must_avoid_msix(LaunchPlan *plan, const LaunchEnv *env)
{
    if (!accel_is_tcg(plan->cmd, env->kvm_usable) ||
        !env->stock_fears_msix(env->opaque)) {
        return false;
    }
    g_ptr_array_add(plan->notices, g_strdup(
        "this stock QEMU (7.2) crashes when a vhost-user NIC has MSI-X under "
        "TCG: NICs get vectors=0 unless the command line sets it"));
    return true;
}

static bool rewrite_nics(LaunchPlan *plan, const LaunchEnv *env,
                         GError **errp)
{
    bool no_msix = plan->nics->ours && must_avoid_msix(plan, env);

    for (guint i = 0; i < plan->nics->nics->len; i++) {
        LaunchNic *nic = plan->nics->nics->pdata[i];

        if (nic->ours && !take_iothread(plan, i, errp)) {
            return false;
        }
        rewrite_device(plan, nic, no_msix);
    }
    return true;
}

/* ---- defaults for all devices of a type -------------------------------- */

/* They stay, since a NIC of QEMU's may want them, but miss ours. */
static void note_globals(LaunchPlan *plan)
{
    guint i;

    CMDLINE_FOREACH (plan->cmd, "global", i) {
        const char *text = cmdline_at(plan->cmd, i)->value;
        g_auto(GStrv) words = nic_split_global(text);

        if (words && nic_is_virtio(words[0]) &&
            virtio_net_prop_owner(words[1]) != VIRTIO_NET_PROP_UNKNOWN) {
            g_ptr_array_add(plan->notices, g_strdup_printf(
                "-global %s: reaches the stock QEMU only: give %s= with each "
                "-device", text, words[1]));
        }
    }
}

/* ---- plan -------------------------------------------------------------- */

static bool make_plan(LaunchPlan *plan, const LaunchEnv *env, GError **errp)
{
    if (!take_own_options(plan, errp)) {
        return false;
    }
    if (is_for_stock(plan)) {
        return true;
    }
    plan->nics = nics_find(plan->cmd, plan->notices, errp);
    if (!plan->nics || !rewrite_nics(plan, env, errp)) {
        return false;
    }
    if (!plan->nics->ours) {
        if (plan->qmp_path) {
            g_ptr_array_add(plan->notices, g_strdup(
                "-" OPTION_QMP ": no NIC of this command line is served "
                "outside of the stock QEMU, so there is no such monitor"));
        }
        return true;
    }
    plan->kind = LAUNCH_SERVE;
    note_globals(plan);
    return memory_rewrite(plan->cmd, env, errp);
}

LaunchPlan *launch_plan_new(int argc, char **argv, const LaunchEnv *env,
                            GError **errp)
{
    LaunchPlan *plan = g_new0(LaunchPlan, 1);

    plan->cmd = cmdline_parse(argc, argv);
    plan->notices = g_ptr_array_new_with_free_func(g_free);
    plan->objects = g_ptr_array_new_with_free_func(g_free);
    if (!make_plan(plan, env, errp)) {
        launch_plan_free(plan);
        return NULL;
    }
    return plan;
}

void launch_plan_free(LaunchPlan *plan)
{
    g_clear_pointer(&plan->nics, nics_free);
    g_ptr_array_free(plan->objects, TRUE);
    g_ptr_array_free(plan->notices, TRUE);
    cmdline_free(plan->cmd);
    g_free(plan);
}
