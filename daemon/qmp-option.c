/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * --qmp unix:PATH,server=on,wait=off: what it says.
 *
 * QEMU's spelling of a monitor at a socket, of which one kind makes sense
 * here: a daemon does not connect to its administrator, and does not hold up
 * a guest until he comes.
 */
#include "qmp-option.h"

#include <stdbool.h>
#include <string.h>

#include "util/keyval.h"
#include "util/report.h"

static bool take_listening(KeyVal *kv, GError **errp)
{
    bool server = false, wait = false;

    if (!keyval_take_bool(kv, "server", &server, errp) ||
        !keyval_take_bool(kv, "wait", &wait, errp)) {
        return false;
    }
    if (!server || wait) {
        vnet_set_error(errp, "--qmp: only listening sockets that nobody waits "
                       "for: add server=on,wait=off");
        return false;
    }
    return keyval_check_empty(kv, errp);
}

char *daemon_qmp_path(const char *text, GError **errp)
{
    g_autofree char *as_keyval = NULL;
    char *path = NULL;
    KeyVal *kv;

    if (!g_str_has_prefix(text, "unix:")) {
        vnet_set_error(errp, "--qmp '%s': expected "
                       "unix:PATH,server=on,wait=off", text);
        return NULL;
    }
    as_keyval = g_strconcat("path=", text + strlen("unix:"), NULL);
    kv = keyval_parse("--qmp", as_keyval, NULL, errp);
    if (!kv) {
        return NULL;
    }
    path = g_canonicalize_filename(keyval_take(kv, "path"), NULL);
    if (!take_listening(kv, errp)) {
        g_clear_pointer(&path, g_free);
    }
    keyval_free(kv);
    return path;
}
