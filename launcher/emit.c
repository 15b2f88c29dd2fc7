/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A plan's two command lines, and the descriptors that change sides.
 */
#include <string.h>

#include "rewrite.h"

/* ---- the daemon's command line ----------------------------------------- */

static char *socket_path(const char *dir, guint nic)
{
    return g_strdup_printf("%s/nic%u.sock", dir, nic);
}

/* Take @value over. */
static void add_option(GPtrArray *argv, const char *name, char *value)
{
    g_ptr_array_add(argv, g_strdup(name));
    g_ptr_array_add(argv, value);
}

static void append_device_key(const char *key, const char *value,
                              void *opaque)
{
    if (virtio_net_prop_owner(key) != VIRTIO_NET_PROP_UNKNOWN &&
        strcmp(key, "id") != 0 && strcmp(key, "netdev") != 0) {
        cmdline_add_key(opaque, key, value);
    }
}

static char *daemon_device(const LaunchNic *nic)
{
    GString *out = g_string_new("virtio-net-pci");

    cmdline_add_key(out, "id", nic->id);
    cmdline_add_key(out, "netdev", nic->netdev->id);
    keyval_foreach(nic->kv, append_device_key, out);
    return g_string_free(out, FALSE);
}

static char *daemon_export(const LaunchNic *nic, const char *dir, guint i)
{
    g_autofree char *path = socket_path(dir, i);
    g_autofree char *id = g_strdup_printf("nic%u", i);
    GString *out = g_string_new("vhost-user-net");

    cmdline_add_key(out, "id", id);
    cmdline_add_key(out, "device", nic->id);
    cmdline_add_key(out, "path", path);
    return g_string_free(out, FALSE);
}

static char *daemon_qmp(const char *path)
{
    g_auto(GStrv) parts = g_strsplit(path, ",", -1);
    g_autofree char *escaped = g_strjoinv(",,", parts);

    return g_strdup_printf("unix:%s,server=on,wait=off", escaped);
}

static void add_daemon_nics(const LaunchPlan *plan, GPtrArray *argv,
                            const char *dir)
{
    const GPtrArray *netdevs = plan->nics->netdevs;
    const GPtrArray *nics = plan->nics->nics;

    for (guint i = 0; i < netdevs->len; i++) {
        const LaunchNetdev *nd = netdevs->pdata[i];

        if (nd->ours) {
            add_option(argv, "--netdev",
                       g_strdup(cmdline_at(plan->cmd, nd->opt)->value));
        }
    }
    for (guint i = 0; i < nics->len; i++) {
        const LaunchNic *nic = nics->pdata[i];

        if (nic->ours) {
            add_option(argv, "--device", daemon_device(nic));
            add_option(argv, "--export", daemon_export(nic, dir, i));
        }
    }
}

GPtrArray *launch_plan_daemon_argv(const LaunchPlan *plan,
                                   const char *daemon, const char *dir,
                                   int lifeline_fd)
{
    GPtrArray *argv = g_ptr_array_new_with_free_func(g_free);

    g_ptr_array_add(argv, g_strdup(daemon));
    g_ptr_array_add(argv, g_strdup("--daemonize"));
    if (!cmdline_has(plan->cmd, "daemonize")) {
        g_ptr_array_add(argv, g_strdup("--keep-stderr"));
    }
    add_option(argv, "--lifeline-fd", g_strdup_printf("%d", lifeline_fd));
    add_option(argv, "--private-dir", g_strdup(dir));
    if (plan->qmp_path) {
        add_option(argv, "--qmp", daemon_qmp(plan->qmp_path));
    }
    for (guint i = 0; i < plan->objects->len; i++) {
        add_option(argv, "--object", g_strdup(plan->objects->pdata[i]));
    }
    add_daemon_nics(plan, argv, dir);
    g_ptr_array_add(argv, NULL);
    return argv;
}

/* ---- QEMU's command line ----------------------------------------------- */

static bool has_chardev(const CmdLine *cmd, const char *id)
{
    bool found = false;
    guint i;

    CMDLINE_FOREACH (cmd, "chardev", i) {
        KeyVal *kv = keyval_parse("-chardev", cmdline_at(cmd, i)->value,
                                  "backend", NULL);

        found |= kv && !g_strcmp0(keyval_peek(kv, "id"), id);
        keyval_free(kv);
    }
    return found;
}

/* One that the user has not given to something else. */
static char *chardev_id(const CmdLine *cmd, const LaunchNetdev *nd)
{
    char *id = g_strdup_printf("vnet-%s", nd->id);

    while (has_chardev(cmd, id)) {
        char *longer = g_strconcat(id, "-", NULL);

        g_free(id);
        id = longer;
    }
    return id;
}

static void place_nic(LaunchPlan *plan, guint i, const char *dir)
{
    const LaunchNic *nic = plan->nics->nics->pdata[i];
    const LaunchNetdev *nd = nic->netdev;
    g_autofree char *path = socket_path(dir, i);
    g_autofree char *id = chardev_id(plan->cmd, nd);
    GString *chardev = g_string_new("socket");
    GString *netdev = g_string_new("vhost-user");

    cmdline_add_key(chardev, "id", id);
    cmdline_add_key(chardev, "path", path);
    cmdline_add_key(netdev, "id", nd->id);
    cmdline_add_key(netdev, "chardev", id);
    if (nic->queues > 1) {
        g_string_append_printf(netdev, ",queues=%u", nic->queues);
    }
    cmdline_insert(plan->cmd, nd->opt, "-chardev",
                   g_string_free(chardev, FALSE));
    cmdline_edit(plan->cmd, nd->opt, g_string_free(netdev, FALSE));
}

static void place(LaunchPlan *plan, const char *dir)
{
    for (guint i = 0; i < plan->nics->nics->len; i++) {
        const LaunchNic *nic = plan->nics->nics->pdata[i];

        if (nic->ours) {
            place_nic(plan, i, dir);
        }
    }
    for (guint i = 0; i < plan->nics->netdevs->len; i++) {
        const LaunchNetdev *nd = plan->nics->netdevs->pdata[i];

        if (nd->ours && !(nd->nic && nd->nic->ours)) {
            cmdline_drop(plan->cmd, nd->opt);
        }
    }
}

GPtrArray *launch_plan_qemu_argv(LaunchPlan *plan, const char *stock,
                                 const char *dir)
{
    if (plan->kind == LAUNCH_SERVE) {
        place(plan, dir);
    }
    return cmdline_format(plan->cmd, stock);
}

/* ---- descriptors ------------------------------------------------------- */

static void list_fds(GArray *fds, const char *text)
{
    g_auto(GStrv) words = g_strsplit(text ? text : "", ":", -1);

    for (char **word = words; *word; word++) {
        guint64 fd;

        if (g_ascii_string_to_unsigned(*word, 10, 3, G_MAXINT, &fd, NULL)) {
            int number = fd;

            g_array_append_val(fds, number);
        }
    }
}

GArray *launch_plan_moved_fds(const LaunchPlan *plan)
{
    GArray *fds = g_array_new(FALSE, FALSE, sizeof(int));

    for (guint i = 0; plan->nics && i < plan->nics->netdevs->len; i++) {
        const LaunchNetdev *nd = plan->nics->netdevs->pdata[i];

        if (nd->ours) {
            list_fds(fds, keyval_peek(nd->kv, "fd"));
            list_fds(fds, keyval_peek(nd->kv, "fds"));
        }
    }
    return fds;
}
