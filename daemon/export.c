/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * --export vhost-user-net,id=ID,device=ID,ADDRESS
 *
 * ADDRESS is that of qemu-storage-daemon's exports: addr.type=unix with
 * addr.path=PATH, or addr.type=fd with addr.str=N; and path=PATH for short.
 */
#include "export.h"

#include <limits.h>
#include <string.h>

#include "util/keyval.h"
#include "util/report.h"

char *daemon_export_help(void)
{
    return g_strdup(
        "vhost-user-net options:\n"
        "  id=<str>               - name of the export\n"
        "  device=<str>           - id of the NIC to serve\n"
        "  path=<str>             - Unix socket to create and listen on\n"
        "  addr.type=<unix|fd>    - kind of address\n"
        "  addr.path=<str>        - addr.type=unix: as path\n"
        "  addr.str=<number>      - addr.type=fd: inherited socket, listening "
        "or connected\n");
}

static bool take_string(KeyVal *kv, const char *key, char **out,
                        GError **errp)
{
    *out = g_strdup(keyval_take_required(kv, key, errp));
    return *out;
}

static bool take_addr(DaemonExportConf *conf, KeyVal *kv, GError **errp)
{
    static const char *const types[] = { "unix", "fd", NULL };
    unsigned type = 0;
    uint64_t fd = 0;

    if (!keyval_take_enum(kv, "addr.type", types, &type, errp)) {
        return false;
    }
    if (!strcmp(types[type], "unix")) {
        return take_string(kv, "addr.path", &conf->path, errp);
    }
    if (!keyval_take_required(kv, "addr.str", errp) ||
        !keyval_take_uint(kv, "addr.str", 3, INT_MAX, &fd, errp)) {
        return false;
    }
    conf->fd = fd;
    return true;
}

static bool take_all(DaemonExportConf *conf, KeyVal *kv, GError **errp)
{
    static const char *const types[] = { "vhost-user-net", NULL };
    unsigned type;

    if (!keyval_take_required(kv, "type", errp) ||
        !keyval_take_enum(kv, "type", types, &type, errp) ||
        !take_string(kv, "id", &conf->id, errp) ||
        !take_string(kv, "device", &conf->device, errp)) {
        return false;
    }
    conf->path = g_strdup(keyval_take(kv, "path"));
    if (!conf->path && !keyval_has_prefix(kv, "addr")) {
        vnet_set_error(errp, "%s: no address: add path=PATH, or "
                       "addr.type=fd,addr.str=N", keyval_subject(kv));
        return false;
    }
    if (!conf->path && !take_addr(conf, kv, errp)) {
        return false;
    }
    if (conf->path && !*conf->path) {
        vnet_set_error(errp, "%s: the path of the socket is empty: give "
                       "path=PATH", keyval_subject(kv));
        return false;
    }
    return keyval_check_empty(kv, errp);
}

bool daemon_export_parse(DaemonExportConf *conf, const char *text,
                         GError **errp)
{
    KeyVal *kv = keyval_parse("--export", text, "type", errp);
    bool good;

    *conf = (DaemonExportConf) { .fd = -1 };
    if (!kv) {
        return false;
    }
    conf->what = g_strdup(keyval_subject(kv));
    good = take_all(conf, kv, errp);
    keyval_free(kv);
    return good;
}

void daemon_export_clear(DaemonExportConf *conf)
{
    g_free(conf->what);
    g_free(conf->id);
    g_free(conf->device);
    g_free(conf->path);
}
