/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * --qmp: where the monitor is.  The monitor itself is monitor/.
 */
#ifndef DAEMON_QMP_OPTION_H
#define DAEMON_QMP_OPTION_H

#include <glib.h>

/*
 * daemon_qmp_path: the absolute path of the socket.  Returns NULL with @errp
 * set: one line that says what would be accepted.  Caller frees.
 */
char *daemon_qmp_path(const char *text, GError **errp);

#endif /* DAEMON_QMP_OPTION_H */
