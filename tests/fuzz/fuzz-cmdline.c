/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Fuzzes the launcher's rewriting.
 *
 * Input: a byte of what the machine is like, then the words of a command
 * line, each ended by a line end.
 *
 * Beyond not crashing: a command line of which nothing is ours comes back
 * word for word; one that is served has, for each of its NICs, a netdev, a
 * device and an export on the daemon's side and a socket on QEMU's; and an
 * error has a message.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "rewrite.h"

static int open_ram(void *opaque)
{
    return *(const uint8_t *)opaque & 4 ? 5 : -1;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static bool fears_msix(void *opaque)
{
    return *(const uint8_t *)opaque & 1;
}

static void expect(bool condition)
{
    if (!condition) {
        abort();
    }
}

static bool same_words(const GPtrArray *words, char **argv)
{
    for (guint i = 1; words->pdata[i] || argv[i]; i++) {
        if (g_strcmp0(words->pdata[i], argv[i])) {
            return false;
        }
    }
    return true;
}

static guint count(const GPtrArray *words, const char *word)
{
    guint n = 0;

    for (guint i = 0; i < words->len && words->pdata[i]; i++) {
        n += !strcmp(words->pdata[i], word);
    }
    return n;
}

static void check_stock(LaunchPlan *plan, char **argv)
{
    GPtrArray *qemu = launch_plan_qemu_argv(plan, argv[0], NULL);

    if (!plan->qmp_path && !plan->notices->len) {
        expect(same_words(qemu, argv));
    }
    g_ptr_array_free(qemu, TRUE);
}

static void check_serve(LaunchPlan *plan)
{
    GPtrArray *daemon = launch_plan_daemon_argv(plan, "daemon", "/d", 3);
    GPtrArray *qemu = launch_plan_qemu_argv(plan, "qemu", "/d");
    GArray *fds = launch_plan_moved_fds(plan);

    expect(plan->nics->ours > 0);
    expect(count(daemon, "--export") >= plan->nics->ours);
    expect(count(daemon, "--device") >= plan->nics->ours);
    expect(count(daemon, "--netdev") >= plan->nics->ours);
    expect(count(qemu, "-chardev") >= plan->nics->ours);
    g_array_free(fds, TRUE);
    g_ptr_array_free(daemon, TRUE);
    g_ptr_array_free(qemu, TRUE);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    g_autofree char *text = NULL;
    g_auto(GStrv) argv = NULL;
    g_autoptr(GError) err = NULL;
    LaunchEnv env = { .stock_fears_msix = fears_msix, .open_ram = open_ram };
    LaunchPlan *plan;

    if (!size) {
        return 0;
    }
    env.kvm_usable = *data & 2;
    env.opaque = (void *)data;
    text = g_strndup((const char *)data + 1, size - 1);
    argv = g_strsplit(text, "\n", -1);
    if (!*argv) {
        return 0;
    }
    plan = launch_plan_new(g_strv_length(argv), argv, &env, &err);
    expect(plan ? !err : err && *err->message);
    if (!plan) {
        return 0;
    }
    if (plan->kind == LAUNCH_SERVE) {
        check_serve(plan);
    } else {
        check_stock(plan, argv);
    }
    launch_plan_free(plan);
    return 0;
}
