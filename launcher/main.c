/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * qemu-system-x86_64: the stock QEMU with our NICs.
 *
 * Data flow: argv becomes a plan (rewrite.c), which is checked as a whole
 * before anything is started; the daemon is started and has opened taps and
 * sockets before it says it is ready; then this process becomes QEMU.  On
 * any failure before that the daemon is ended and its directory removed.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/kvm.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "hw/net/virtio-net-conf.h"
#include "huge-ram.h"
#include "rewrite.h"
#include "spawn.h"
#include "stock.h"
#include "util/report.h"

/* ---- the machine ------------------------------------------------------- */

/* A device that opens is not enough: nested hosts have some that make no
 * machine, and "accel=kvm:tcg" falls to TCG there. */
static bool kvm_usable(void)
{
    int fd = open("/dev/kvm", O_RDWR | O_CLOEXEC);
    int vm = fd < 0 ? -1 : ioctl(fd, KVM_CREATE_VM, 0);

    if (vm >= 0) {
        close(vm);
    }
    if (fd >= 0) {
        close(fd);
    }
    return vm >= 0;
}

/* LaunchEnv.stock_fears_msix */
static bool is_7_2(void *opaque)
{
    g_autofree char *text = stock_version_text(opaque);

    return text && g_str_has_prefix(text, "QEMU emulator version 7.2.");
}

/* LaunchEnv.open_ram */
static int open_ram(G_GNUC_UNUSED void *opaque)
{
    return huge_ram_open();
}

/* ---- kinds of plans ---------------------------------------------------- */

/* After all that may fail: an error is the only line on stderr. */
static void say_notices(const LaunchPlan *plan)
{
    for (guint i = 0; i < plan->notices->len; i++) {
        report_info("%s", (char *)plan->notices->pdata[i]);
    }
}

/* Returns only if it fails. */
static void become_stock(LaunchPlan *plan, const char *stock, const char *dir,
                         GError **errp)
{
    GPtrArray *argv = launch_plan_qemu_argv(plan, stock, dir);

    say_notices(plan);
    execv(stock, (char **)argv->pdata);
    vnet_set_error(errp, "cannot run '%s': %s", stock, g_strerror(errno));
    g_ptr_array_free(argv, TRUE);
}

static void print_our_help(LaunchKind kind)
{
    g_autofree char *props = NULL;

    if (kind == LAUNCH_HELP_NETDEV) {
        puts("user, tap and hubport are served by qemu-net-daemon when a "
             "virtio-net-pci uses them");
        return;
    }
    props = virtio_net_props_help(true);
    printf("virtio-net-pci options of qemu-net-daemon:\n%s", props);
}

static int run_help(LaunchPlan *plan, const char *stock, GError **errp)
{
    GPtrArray *argv = launch_plan_qemu_argv(plan, stock, NULL);
    int status = EXIT_FAILURE;
    SpawnResult result = spawn_wait((char **)argv->pdata, NULL, &status,
                                    errp);

    g_ptr_array_free(argv, TRUE);
    if (result == SPAWN_DONE) {
        print_our_help(plan->kind);
    }
    return status;
}

/* Returns SPAWN_DONE once the daemon serves. */
static SpawnResult start_daemon(const LaunchPlan *plan, const char *dir,
                                const Lifeline *lifeline, GError **errp)
{
    g_autofree char *daemon = daemon_find(errp);
    GPtrArray *argv;
    GArray *fds;
    int status;
    SpawnResult result;

    if (!daemon) {
        return SPAWN_ERROR;
    }
    argv = launch_plan_daemon_argv(plan, daemon, dir, lifeline->daemon);
    fds = launch_plan_moved_fds(plan);
    g_array_append_val(fds, lifeline->daemon);
    result = spawn_wait((char **)argv->pdata, fds, &status, errp);
    spawn_close_on_exec(fds);
    g_array_free(fds, TRUE);
    g_ptr_array_free(argv, TRUE);
    return result;
}

/*
 * Returns only if it fails; then @errp is unset if the daemon said why.  A
 * signal has to wait until there is a daemon that removes the directory, and
 * ends this process when serve() has.
 */
static void serve_in(const char *dir, LaunchPlan *plan, const char *stock,
                     const HeldSignals *held, GError **errp)
{
    Lifeline lifeline;

    if (!lifeline_new(&lifeline, errp)) {
        return;
    }
    if (start_daemon(plan, dir, &lifeline, errp) == SPAWN_DONE &&
        !signals_came(held)) {
        signals_release(held);
        become_stock(plan, stock, dir, errp);
    }
    lifeline_cut(&lifeline);
}

static void serve(LaunchPlan *plan, const char *stock, GError **errp)
{
    g_autofree char *dir = NULL;
    HeldSignals held;

    signals_hold(&held);
    dir = private_dir_new(errp);
    if (dir) {
        serve_in(dir, plan, stock, &held, errp);
        private_dir_remove(dir);
    }
    signals_release(&held);
}

/* The exit status, if this process has not become another. */
static int carry_out(LaunchPlan *plan, const char *stock, GError **errp)
{
    switch (plan->kind) {
    case LAUNCH_STOCK:
        become_stock(plan, stock, NULL, errp);
        return EXIT_FAILURE;
    case LAUNCH_HELP_DEVICE:
    case LAUNCH_HELP_NETDEV:
        return run_help(plan, stock, errp);
    case LAUNCH_SERVE:
        break;
    }
    serve(plan, stock, errp);
    return EXIT_FAILURE;
}

static int run(int argc, char **argv, GError **errp)
{
    g_autofree char *stock = stock_find(errp);
    LaunchEnv env = {
        .kvm_usable = kvm_usable(),
        .stock_fears_msix = is_7_2,
        .open_ram = open_ram,
        .opaque = stock,
    };
    LaunchPlan *plan;
    int status;

    if (!stock) {
        return EXIT_FAILURE;
    }
    plan = launch_plan_new(argc, argv, &env, errp);
    if (!plan) {
        return EXIT_FAILURE;
    }
    status = carry_out(plan, stock, errp);
    launch_plan_free(plan);
    return status;
}

int main(int argc, char **argv)
{
    GError *err = NULL;
    int status;

    report_init(argv[0]);
    status = run(argc, argv, &err);
    if (err) {
        report_gerror(err);
    }
    return status;
}
