/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Processes, and what lies between them: the private directory and the
 * lifeline.
 */
#ifndef LAUNCHER_SPAWN_H
#define LAUNCHER_SPAWN_H

#include <glib.h>
#include <signal.h>
#include <stdbool.h>

/*
 * Lifeline: a pair of connected sockets.  The daemon has .daemon and ends
 * when .qemu is closed everywhere, that is, when QEMU is gone.  The other
 * way round, its end can be waited for.
 */
typedef struct Lifeline {
    int daemon;
    int qemu;
} Lifeline;

bool lifeline_new(Lifeline *l, GError **errp);

/* lifeline_cut: end the daemon, and wait until it has ended. */
void lifeline_cut(Lifeline *l);

/* What ends a process, held back for a while. */
typedef struct HeldSignals {
    sigset_t set;
    sigset_t before;    /* the mask that signals_release() restores */
} HeldSignals;

/*
 * signals_hold: from here on SIGHUP, SIGINT and SIGTERM wait, here and in
 * programs that are started, until signals_release(); signals_came() tells if
 * one waits that will end this process.  What whoever started us has ignored
 * (nohup) stays ignored, and what he has blocked stays blocked.
 */
void signals_hold(HeldSignals *held);
bool signals_came(const HeldSignals *held);
void signals_release(const HeldSignals *held);

/*
 * private_dir_new: a new directory of mode 0700 with a path that is short
 * enough for sockets, in $XDG_RUNTIME_DIR, $TMPDIR or /tmp.  Caller frees the
 * string.
 */
char *private_dir_new(GError **errp);

/* private_dir_remove: with the sockets that a killed daemon left in it. */
void private_dir_remove(const char *dir);

typedef enum SpawnResult {
    SPAWN_DONE,                 /* the program exited with 0 */
    SPAWN_FAILED,               /* it exited with another status */
    SPAWN_ERROR,                /* it did not run, or was killed: @errp */
} SpawnResult;

/*
 * spawn_wait: run a program and wait for it.
 * @keep: descriptors it inherits, of int, besides 0 to 2; NULL: all that are
 *        not close-on-exec
 * @status: its exit status, unless SPAWN_ERROR
 */
SpawnResult spawn_wait(char **argv, const GArray *keep, int *status,
                       GError **errp);

/* spawn_close_on_exec: for descriptors that the next program must not see. */
void spawn_close_on_exec(const GArray *fds);

#endif /* LAUNCHER_SPAWN_H */
