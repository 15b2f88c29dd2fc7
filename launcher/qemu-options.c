/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The options of qemu-system-x86_64 that take no argument.
 *
 * Found by asking: a QEMU that is given an option as its last word complains
 * when it wants an argument.  The list is the union over the versions; no
 * option has changed sides between them.
 */
#include "qemu-options.h"

#include <glib.h>
#include <string.h>

/* Sorted, for the reader. */
static const char *const alone[] = {
    "S",
    "async-teardown",
    "audio-help",
    "daemonize",
    "enable-kvm",
    "enable-sync-profile",
    "full-screen",
    "h",
    "help",
    "jitdump",
    "mem-prealloc",
    "no-acpi",
    "no-fd-bootchk",
    "no-hpet",
    "no-reboot",
    "no-shutdown",
    "no-user-config",
    "nodefaults",
    "nographic",
    "old-param",
    "only-migratable",
    "perfmap",
    "portrait",
    "preconfig",
    "s",
    "semihosting",
    "singlestep",
    "snapshot",
    "usb",
    "version",
    "win2k-hack",
    "xen-attach",
    "xen-domid-restrict",
};

bool qemu_option_has_arg(const char *name)
{
    for (size_t i = 0; i < G_N_ELEMENTS(alone); i++) {
        if (!strcmp(name, alone[i])) {
            return false;
        }
    }
    return true;
}
