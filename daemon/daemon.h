/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Daemon: the objects of qemu-net-daemon and what connects them.
 *
 * Main context.
 */
#ifndef DAEMON_DAEMON_H
#define DAEMON_DAEMON_H

#include "options.h"

typedef struct Daemon Daemon;

/*
 * daemon_new: create everything that the options say, in the order objects,
 * netdevs, devices, exports, monitors, whatever their order on the command
 * line.  Sockets listen when this returns; no thread runs yet.
 *
 * Returns NULL with @errp set: one line that names option, value and remedy;
 * nothing is left behind then.
 */
Daemon *daemon_new(const DaemonOptions *opt, GError **errp);

/*
 * daemon_start: start the threads, of iothreads and of NICs, and move them to
 * their CPUs.  Returns false with @errp set: one line as above.
 */
bool daemon_start(Daemon *d, GError **errp);

/* daemon_run: serve until a signal, QMP quit, or the end of the lifeline. */
void daemon_run(Daemon *d);

/*
 * daemon_free: disconnect, quiesce, free all, and remove sockets and private
 * directory.
 */
void daemon_free(Daemon *d);

#endif /* DAEMON_DAEMON_H */
