/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The objects of qemu-net-daemon.
 *
 *     export --> NIC --> netdev
 *                 |
 *                 +----> iothread (its context; main's if it names none)
 *                 +----> transmit threads of its own (tx-thread=)
 *
 * Creation goes from right to left, the end from left to right.  A netdev
 * lives in the context of the NIC that uses it, so NICs are parsed first and
 * created after their netdevs.
 */
#include "daemon.h"

#include <limits.h>
#include <string.h>
#include <unistd.h>

#include "export.h"
#include "hw/net/virtio-net.h"
#include "hw/virtio/vhost-user.h"
#include "monitor/qmp-cmds-net.h"
#include "net/net.h"
#include "objects.h"
#include "process.h"
#include "qmp-option.h"
#include "util/clock.h"
#include "util/keyval.h"
#include "util/report.h"

typedef struct DaemonNic {
    char *what;                 /* for messages */
    VirtIONetConf conf;
    AioContext *ctx;
    VirtIONet *nic;             /* NULL until it is created */
    bool exported;
} DaemonNic;

struct Daemon {
    AioContext *ctx;
    GPtrArray *objects;         /* of DaemonObject */
    GPtrArray *nics;            /* of DaemonNic */
    GPtrArray *netdevs;         /* of NetBackend */
    GPtrArray *exports;         /* of VhostUserExport */
    QmpNetTarget qmp_target;
    QmpServer *qmp;
    int signal_fd;
    AioHandler *signals;
    int lifeline_fd;
    AioHandler *lifeline;
    char *private_dir;
    bool quit;
};

/* ---- the end ----------------------------------------------------------- */

static void daemon_quit(void *opaque)
{
    Daemon *d = opaque;

    d->quit = true;
}

static const AioHandlerOps signal_ops = {
    .readable = daemon_quit,
};

static bool watch_signals(Daemon *d, GError **errp)
{
    d->signal_fd = process_signal_fd(errp);
    if (d->signal_fd < 0) {
        return false;
    }
    d->signals = aio_handler_new(d->ctx, d->signal_fd, AIO_READ, &signal_ops,
                                 d, errp);
    return d->signals;
}

/* Nothing is ever sent, but what is does not end us. */
static void lifeline_readable(void *opaque)
{
    Daemon *d = opaque;
    char bytes[64];

    if (read(d->lifeline_fd, bytes, sizeof(bytes)) <= 0) {
        d->quit = true;
    }
}

static const AioHandlerOps lifeline_ops = {
    .readable = lifeline_readable,
};

static bool watch_lifeline(Daemon *d, const char *text, GError **errp)
{
    guint64 fd;
    g_autoptr(GError) err = NULL;

    if (!text) {
        return true;
    }
    if (g_ascii_string_to_unsigned(text, 10, 3, INT_MAX, &fd, NULL)) {
        d->lifeline_fd = fd;
        d->lifeline = aio_handler_new(d->ctx, fd, AIO_READ, &lifeline_ops, d,
                                      &err);
    }
    if (!d->lifeline) {
        vnet_set_error(errp, "--lifeline-fd '%s': expected the number of an "
                       "inherited pipe or socket", text);
        return false;
    }
    return true;
}

/* ---- objects ----------------------------------------------------------- */

static DaemonObject *find_object(Daemon *d, const char *id)
{
    for (guint i = 0; i < d->objects->len; i++) {
        if (!strcmp(daemon_object_id(d->objects->pdata[i]), id)) {
            return d->objects->pdata[i];
        }
    }
    return NULL;
}

static bool add_object(Daemon *d, const char *text, GError **errp)
{
    DaemonObject *obj = daemon_object_new(text, errp);

    if (!obj) {
        return false;
    }
    if (find_object(d, daemon_object_id(obj))) {
        vnet_set_error(errp, "--object %s: another object has this id: give "
                       "each its own", text);
        daemon_object_free(obj);
        return false;
    }
    g_ptr_array_add(d->objects, obj);
    return true;
}

/* ---- NICs -------------------------------------------------------------- */

static DaemonNic *find_nic(Daemon *d, const char *id)
{
    for (guint i = 0; i < d->nics->len; i++) {
        DaemonNic *n = d->nics->pdata[i];

        if (!strcmp(n->conf.id, id)) {
            return n;
        }
    }
    return NULL;
}

static DaemonNic *find_nic_on(Daemon *d, const char *netdev)
{
    for (guint i = 0; i < d->nics->len; i++) {
        DaemonNic *n = d->nics->pdata[i];

        if (!strcmp(n->conf.netdev, netdev)) {
            return n;
        }
    }
    return NULL;
}

static bool take_driver(KeyVal *kv, GError **errp)
{
    static const char *const drivers[] = {
        "virtio-net-pci", "virtio-net", NULL
    };
    unsigned driver;

    return keyval_take_required(kv, "driver", errp) &&
           keyval_take_enum(kv, "driver", drivers, &driver, errp);
}

/* @n has been parsed: does it fit in? */
static bool check_nic(Daemon *d, DaemonNic *n, GError **errp)
{
    const DaemonNic *other = find_nic_on(d, n->conf.netdev);

    if (find_nic(d, n->conf.id)) {
        vnet_set_error(errp, "%s: another device has this id: give each its "
                       "own", n->what);
        return false;
    }
    if (other) {
        vnet_set_error(errp, "%s: netdev '%s' belongs to device '%s' already: "
                       "give each NIC a --netdev of its own", n->what,
                       n->conf.netdev, other->conf.id);
        return false;
    }
    if (*n->conf.iothread) {
        DaemonObject *obj = find_object(d, n->conf.iothread);

        if (!obj) {
            vnet_set_error(errp, "%s: no iothread '%s': add --object "
                           "iothread,id=%s", n->what, n->conf.iothread,
                           n->conf.iothread);
            return false;
        }
        n->ctx = daemon_object_context(obj);
    }
    return true;
}

static void nic_free(gpointer opaque)
{
    DaemonNic *n = opaque;

    g_free(n->what);
    g_free(n);
}

static bool parse_nic_keys(DaemonNic *n, KeyVal *kv, GError **errp)
{
    return take_driver(kv, errp) &&
           keyval_take_required(kv, "id", errp) &&
           keyval_take_required(kv, "netdev", errp) &&
           virtio_net_conf_parse(&n->conf, kv, errp) &&
           keyval_check_empty(kv, errp);
}

static bool parse_nic(Daemon *d, const char *text, GError **errp)
{
    KeyVal *kv = keyval_parse("--device", text, "driver", errp);
    DaemonNic *n;
    bool good;

    if (!kv) {
        return false;
    }
    n = g_new0(DaemonNic, 1);
    n->what = g_strdup(keyval_subject(kv));
    n->ctx = d->ctx;
    virtio_net_conf_init(&n->conf);
    good = parse_nic_keys(n, kv, errp) && check_nic(d, n, errp);
    keyval_free(kv);
    if (!good) {
        nic_free(n);
        return false;
    }
    g_ptr_array_add(d->nics, n);
    return true;
}

/* ---- netdevs ----------------------------------------------------------- */

static NetBackend *find_netdev(Daemon *d, const char *id)
{
    for (guint i = 0; i < d->netdevs->len; i++) {
        if (!strcmp(net_backend_id(d->netdevs->pdata[i]), id)) {
            return d->netdevs->pdata[i];
        }
    }
    return NULL;
}

static bool add_netdev_keyval(Daemon *d, KeyVal *kv, GError **errp)
{
    const char *id = keyval_peek(kv, "id");
    const DaemonNic *n = id ? find_nic_on(d, id) : NULL;
    NetBackend *nb;

    if (id && find_netdev(d, id)) {
        vnet_set_error(errp, "%s: another netdev has this id: give each its "
                       "own", keyval_subject(kv));
        return false;
    }
    nb = net_backend_new(kv, n ? n->ctx : d->ctx, errp);
    if (!nb) {
        return false;
    }
    g_ptr_array_add(d->netdevs, nb);
    return true;
}

static bool add_netdev(Daemon *d, const char *text, GError **errp)
{
    KeyVal *kv = keyval_parse("--netdev", text, "type", errp);
    bool good = kv && add_netdev_keyval(d, kv, errp);

    keyval_free(kv);
    return good;
}

static bool create_nics(Daemon *d, GError **errp)
{
    for (guint i = 0; i < d->nics->len; i++) {
        DaemonNic *n = d->nics->pdata[i];
        NetBackend *nb = find_netdev(d, n->conf.netdev);

        if (!nb) {
            vnet_set_error(errp, "%s: no netdev '%s': add --netdev "
                           "TYPE,id=%s", n->what, n->conf.netdev,
                           n->conf.netdev);
            return false;
        }
        n->nic = virtio_net_new(&n->conf, nb, n->ctx, errp);
        if (!n->nic) {
            return false;
        }
        g_ptr_array_add(d->qmp_target.nics, n->nic);
    }
    return true;
}

/* ---- exports ----------------------------------------------------------- */

static VhostUserExport *find_export(Daemon *d, const char *id)
{
    for (guint i = 0; i < d->exports->len; i++) {
        if (!strcmp(vhost_user_export_id(d->exports->pdata[i]), id)) {
            return d->exports->pdata[i];
        }
    }
    return NULL;
}

static bool create_export(Daemon *d, const DaemonExportConf *conf,
                          GError **errp)
{
    DaemonNic *n = find_nic(d, conf->device);
    VhostUserExport *exp;

    if (find_export(d, conf->id)) {
        vnet_set_error(errp, "%s: another export has this id: give each its "
                       "own", conf->what);
        return false;
    }
    if (!n) {
        vnet_set_error(errp, "%s: no device '%s': add --device "
                       "virtio-net-pci,id=%s,netdev=ID", conf->what,
                       conf->device, conf->device);
        return false;
    }
    if (n->exported) {
        vnet_set_error(errp, "%s: device '%s' has an export already: one NIC "
                       "has one front-end", conf->what, conf->device);
        return false;
    }
    if (conf->path) {
        /* It is unlinked at the end, from another working directory. */
        g_autofree char *path = g_canonicalize_filename(conf->path, NULL);

        exp = vhost_user_export_new_path(conf->id, n->nic, d->ctx, path,
                                         errp);
    } else {
        exp = vhost_user_export_new_fd(conf->id, n->nic, d->ctx, conf->fd,
                                       errp);
    }
    if (!exp) {
        g_prefix_error(errp, "%s: ", conf->what);
        return false;
    }
    n->exported = true;
    g_ptr_array_add(d->exports, exp);
    return true;
}

static bool add_export(Daemon *d, const char *text, GError **errp)
{
    DaemonExportConf conf;
    bool good = daemon_export_parse(&conf, text, errp) &&
                create_export(d, &conf, errp);

    daemon_export_clear(&conf);
    return good;
}

/* ---- monitors ---------------------------------------------------------- */

static bool add_qmp(Daemon *d, const char *text, GError **errp)
{
    g_autofree char *path = daemon_qmp_path(text, errp);

    if (!path) {
        return false;
    }
    if (!qmp_server_listen(d->qmp, path, errp)) {
        g_prefix_error(errp, "--qmp: ");
        return false;
    }
    return true;
}

/* ---- life -------------------------------------------------------------- */

typedef bool AddFunc(Daemon *d, const char *text, GError **errp);

static bool add_all(Daemon *d, GPtrArray *texts, AddFunc *add, GError **errp)
{
    for (guint i = 0; i < texts->len; i++) {
        if (!add(d, texts->pdata[i], errp)) {
            return false;
        }
    }
    return true;
}

static bool daemon_populate(Daemon *d, const DaemonOptions *opt,
                            GError **errp)
{
    return watch_signals(d, errp) &&
           watch_lifeline(d, opt->lifeline_fd, errp) &&
           add_all(d, opt->objects, add_object, errp) &&
           add_all(d, opt->devices, parse_nic, errp) &&
           add_all(d, opt->netdevs, add_netdev, errp) &&
           create_nics(d, errp) &&
           add_all(d, opt->exports, add_export, errp) &&
           add_all(d, opt->qmps, add_qmp, errp);
}

Daemon *daemon_new(const DaemonOptions *opt, GError **errp)
{
    AioContext *ctx = aio_context_new("main", clock_monotonic(), errp);
    Daemon *d;

    if (!ctx) {
        return NULL;
    }
    d = g_new0(Daemon, 1);
    d->ctx = ctx;
    d->objects = g_ptr_array_new();
    d->nics = g_ptr_array_new_with_free_func(nic_free);
    d->netdevs = g_ptr_array_new();
    d->exports = g_ptr_array_new();
    d->qmp_target = (QmpNetTarget) { g_ptr_array_new(), daemon_quit, d };
    d->qmp = qmp_server_new(ctx, qmp_net_commands, &d->qmp_target);
    d->signal_fd = d->lifeline_fd = -1;
    d->private_dir = opt->private_dir
        ? g_canonicalize_filename(opt->private_dir, NULL) : NULL;
    aio_context_bind(ctx);
    if (!daemon_populate(d, opt, errp)) {
        daemon_free(d);
        return NULL;
    }
    return d;
}

static bool start_nics(Daemon *d, GError **errp)
{
    for (guint i = 0; i < d->nics->len; i++) {
        DaemonNic *n = d->nics->pdata[i];

        if (!virtio_net_start(n->nic, errp)) {
            g_prefix_error(errp, "%s: ", n->what);
            return false;
        }
    }
    return true;
}

bool daemon_start(Daemon *d, GError **errp)
{
    for (guint i = 0; i < d->objects->len; i++) {
        if (!daemon_object_start(d->objects->pdata[i], errp)) {
            return false;
        }
    }
    return start_nics(d, errp);
}

void daemon_run(Daemon *d)
{
    while (!d->quit) {
        aio_poll(d->ctx, true);
    }
}

static void free_all(GPtrArray *list, GDestroyNotify func)
{
    while (list->len) {
        func(g_ptr_array_steal_index(list, list->len - 1));
    }
    g_ptr_array_free(list, TRUE);
}

static void free_watch(AioHandler *handler, int fd)
{
    aio_handler_delete(handler);
    if (fd >= 0) {
        close(fd);
    }
}

void daemon_free(Daemon *d)
{
    qmp_server_free(d->qmp);
    free_all(d->exports, (GDestroyNotify)vhost_user_export_free);
    free_all(d->qmp_target.nics, (GDestroyNotify)virtio_net_free);
    g_ptr_array_free(d->nics, TRUE);
    free_all(d->netdevs, (GDestroyNotify)net_backend_free);
    free_all(d->objects, (GDestroyNotify)daemon_object_free);
    free_watch(d->signals, d->signal_fd);
    if (d->private_dir) {
        rmdir(d->private_dir);
        g_free(d->private_dir);
    }
    /* Last: somebody may be waiting for this end of it to be closed. */
    free_watch(d->lifeline, d->lifeline_fd);
    aio_context_unbind(d->ctx);
    aio_context_free(d->ctx);
    g_free(d);
}
