/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The daemon as a process: background, privileges, files, signals.
 *
 * Order of calls: process_setup(), process_daemonize() if wanted,
 * process_block_signals(); then sockets and taps are opened; then
 * process_drop_privileges(), threads, and process_ready().
 */
#ifndef DAEMON_PROCESS_H
#define DAEMON_PROCESS_H

#include <glib.h>
#include <stdbool.h>

/*
 * process_setup: descriptors 0 to 2 exist, SIGPIPE is ignored, as many
 * descriptors as the administrator allows.
 */
void process_setup(void);

/*
 * process_daemonize: go into the background.
 *
 * Returns in the child only, in a session of its own, standard descriptors
 * untouched.  The parent waits: it exits with 0 after process_ready(), and
 * with 1 if the child ends before that (having said why).
 *
 * Returns false with @errp set if there is no second process.
 */
bool process_daemonize(GError **errp);

/*
 * process_ready: the daemon serves.  After process_daemonize() only: tells
 * the parent, leaves the directory for "/", and gives up the standard
 * descriptors.
 * @attached: somebody stays in the foreground and shares the directory and
 * standard error: these two are kept
 *
 * Returns false with @errp set if there is nobody left who waits for it.
 */
bool process_ready(bool attached, GError **errp);

/*
 * process_block_signals: SIGTERM, SIGINT and SIGHUP no longer end the
 * process; process_signal_fd() reads them.  The latter two stay ignored if
 * they are: nohup, and a shell's "&", mean that the daemon outlives them.
 */
void process_block_signals(void);

/* process_signal_fd: a signalfd of those, or -1 with @errp set. */
int process_signal_fd(GError **errp);

/*
 * process_drop_privileges: no_new_privs, and no capability in any set
 * (the bounding set as far as the process may).  This thread, and those it
 * creates later.
 *
 * Limit: from then on a file in a directory of somebody else cannot be
 * removed, root or not.
 */
bool process_drop_privileges(GError **errp);

typedef struct PidFile PidFile;

/*
 * pidfile_new: write the process id into @path and keep it locked.  A file
 * that a living process has locked is an error.
 */
PidFile *pidfile_new(const char *path, GError **errp);

/* pidfile_free: remove the file (NULL is allowed). */
void pidfile_free(PidFile *p);

#endif /* DAEMON_PROCESS_H */
