/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * One command line in, two command lines out.
 *
 * A LaunchPlan is what a QEMU command line comes to: nothing to do but to
 * run the stock QEMU, or a daemon with these NICs and a QEMU with those.
 * What depends on the machine comes in through LaunchEnv; nothing else is
 * started or touched here.
 */
#ifndef LAUNCHER_REWRITE_H
#define LAUNCHER_REWRITE_H

#include <glib.h>
#include <stdbool.h>

#include "cmdline.h"
#include "nic.h"

typedef struct LaunchEnv {
    bool kvm_usable;            /* this user can open /dev/kvm */
    /*
     * Is the stock QEMU one that crashes when a vhost-user NIC has MSI-X
     * under TCG?  Asked only if it matters.
     */
    bool (*stock_fears_msix)(void *opaque);
    /*
     * Descriptor of an empty file that is to be guest memory, for QEMU to
     * inherit; -1: a memfd is as good.  Asked once for each memory.
     */
    int (*open_ram)(void *opaque);
    void *opaque;
} LaunchEnv;

typedef enum LaunchKind {
    LAUNCH_STOCK,               /* exec the stock QEMU */
    LAUNCH_HELP_DEVICE,         /* run it, then print our properties */
    LAUNCH_HELP_NETDEV,         /* run it, then print our netdev types */
    LAUNCH_SERVE,               /* start the daemon, exec the stock QEMU */
} LaunchKind;

typedef struct LaunchPlan {
    LaunchKind kind;
    GPtrArray *notices;         /* lines for the user */
    /* The rest is for the functions below. */
    CmdLine *cmd;
    LaunchNics *nics;           /* NULL unless they were looked for */
    GPtrArray *objects;         /* arguments of the daemon's --object */
    const char *qmp_path;       /* of -x-vnet-qmp, or NULL */
} LaunchPlan;

/*
 * launch_plan_new: read, check and rewrite a command line.
 * @argv: must outlive the plan
 *
 * Returns NULL with @errp set: one line that names option, value and remedy.
 */
LaunchPlan *launch_plan_new(int argc, char **argv, const LaunchEnv *env,
                            GError **errp);
void launch_plan_free(LaunchPlan *plan);

/*
 * launch_plan_daemon_argv: the daemon's command line; LAUNCH_SERVE only.
 * @dir: private directory, in which its sockets are to be
 * @lifeline_fd: number that its end of the lifeline will have
 *
 * NULL-terminated; free with g_ptr_array_free(, TRUE), which frees the words.
 */
GPtrArray *launch_plan_daemon_argv(const LaunchPlan *plan,
                                   const char *daemon, const char *dir,
                                   int lifeline_fd);

/*
 * launch_plan_qemu_argv: the stock QEMU's command line, for all kinds.
 * @dir: as above; NULL unless LAUNCH_SERVE
 *
 * Once per plan.  Words as above.
 */
GPtrArray *launch_plan_qemu_argv(LaunchPlan *plan, const char *stock,
                                 const char *dir);

/*
 * launch_plan_moved_fds: numbers of the inherited descriptors that go to the
 * daemon, and are not for QEMU.  GArray of int; caller frees.
 */
GArray *launch_plan_moved_fds(const LaunchPlan *plan);

#endif /* LAUNCHER_REWRITE_H */
