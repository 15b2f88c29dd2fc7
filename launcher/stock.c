/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Finding the other programs.
 *
 * This program has the name of the one it looks for, so each candidate is
 * compared with /proc/self/exe by device and inode, behind links.  Another
 * copy of this program is known by the daemon beside it: two that took each
 * other for the stock QEMU would run each other for ever.  A script that runs
 * this program again is not seen through.
 */
#include "stock.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "util/report.h"

#define STOCK_NAME      "qemu-system-x86_64"
#define DAEMON_NAME     "qemu-net-daemon"

static bool is_program(const char *path)
{
    struct stat st;

    return !stat(path, &st) && S_ISREG(st.st_mode) && !access(path, X_OK);
}

static bool is_self(const char *path)
{
    struct stat self, other;

    return !stat("/proc/self/exe", &self) && !stat(path, &other) &&
           self.st_dev == other.st_dev && self.st_ino == other.st_ino;
}

static bool is_copy(const char *path)
{
    char real[PATH_MAX];
    g_autofree char *dir = NULL, *daemon = NULL;

    if (!realpath(path, real)) {
        return false;
    }
    dir = g_path_get_dirname(real);
    daemon = g_build_filename(dir, DAEMON_NAME, NULL);
    return is_program(daemon);
}

static char *check_named(const char *where, const char *path, GError **errp)
{
    if (!is_program(path)) {
        vnet_set_error(errp, "%s '%s' is not a program: set QEMU_STOCK to the "
                       "path of a stock " STOCK_NAME, where, path);
        return NULL;
    }
    if (is_self(path)) {
        vnet_set_error(errp, "%s '%s' is this program itself: set QEMU_STOCK "
                       "to the path of a stock " STOCK_NAME, where, path);
        return NULL;
    }
    return g_strdup(path);
}

char *stock_find(GError **errp)
{
    const char *named = g_getenv("QEMU_STOCK");
    const char *path = g_getenv("PATH");
    g_auto(GStrv) dirs = g_strsplit(path ? path : "", ":", -1);

    if (named && *named) {
        return check_named("QEMU_STOCK", named, errp);
    }
    if (*CONFIG_STOCK_QEMU) {
        return check_named("the configured stock QEMU", CONFIG_STOCK_QEMU,
                           errp);
    }
    for (char **dir = dirs; *dir; dir++) {
        g_autofree char *candidate = g_build_filename(**dir ? *dir : ".",
                                                      STOCK_NAME, NULL);

        if (is_program(candidate) && !is_self(candidate) &&
            !is_copy(candidate)) {
            return g_steal_pointer(&candidate);
        }
    }
    vnet_set_error(errp, "no stock QEMU found: install qemu-system-x86, set "
                   "QEMU_STOCK to the path of its " STOCK_NAME ", or "
                   "configure --with-stock-qemu=PATH");
    return NULL;
}

char *stock_version_text(const char *stock)
{
    char *argv[] = { (char *)stock, (char *)"--version", NULL };
    g_autofree char *out = NULL;
    int status;

    if (!g_spawn_sync(NULL, argv, NULL, G_SPAWN_STDERR_TO_DEV_NULL, NULL,
                      NULL, &out, NULL, &status, NULL) ||
        !g_spawn_check_wait_status(status, NULL)) {
        return NULL;
    }
    return g_strndup(out, strcspn(out, "\n"));
}

char *daemon_find(GError **errp)
{
    g_autofree char *self = g_file_read_link("/proc/self/exe", NULL);
    g_autofree char *dir = g_path_get_dirname(self ? self : "");
    g_autofree char *beside = g_build_filename(dir, DAEMON_NAME, NULL);
    g_autofree char *installed = g_build_filename(CONFIG_BINDIR, DAEMON_NAME,
                                                  NULL);

    if (is_program(beside)) {
        return g_steal_pointer(&beside);
    }
    if (is_program(installed)) {
        return g_steal_pointer(&installed);
    }
    vnet_set_error(errp, "no " DAEMON_NAME ": neither '%s' nor '%s' is a "
                   "program: install it beside this one", beside, installed);
    return NULL;
}
