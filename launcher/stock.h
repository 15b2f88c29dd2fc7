/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The other programs: the stock QEMU, and our daemon.
 */
#ifndef LAUNCHER_STOCK_H
#define LAUNCHER_STOCK_H

#include <glib.h>
#include <stdbool.h>

/*
 * stock_find: path of the stock QEMU: the one in $QEMU_STOCK; or else the
 * configured one; or else the first of our own name in $PATH that is not
 * this program.
 *
 * Returns NULL with @errp set: one line that says where to put it.
 */
char *stock_find(GError **errp);

/*
 * stock_version_text: the first line that the stock QEMU prints for
 * --version, or NULL if it cannot be asked.  Caller frees.
 */
char *stock_version_text(const char *stock);

/*
 * daemon_find: path of qemu-net-daemon: beside this program, or else where
 * it was to be installed.  NULL with @errp set if there is none.
 */
char *daemon_find(GError **errp);

#endif /* LAUNCHER_STOCK_H */
