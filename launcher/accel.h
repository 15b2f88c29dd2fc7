/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Which accelerator a command line asks for.
 *
 * Pure.
 */
#ifndef LAUNCHER_ACCEL_H
#define LAUNCHER_ACCEL_H

#include "cmdline.h"

/*
 * accel_is_tcg: will the guest's code be translated?
 * @kvm_usable: whether this user can open /dev/kvm, which decides what
 *              "kvm:tcg" comes to
 */
bool accel_is_tcg(const CmdLine *cmd, bool kvm_usable);

/* accel_is_qtest: is there no guest code at all, but a test program? */
bool accel_is_qtest(const CmdLine *cmd);

/* machine_option: the last value of a key of -machine (-M), or NULL. */
char *machine_option(const CmdLine *cmd, const char *key);

#endif /* LAUNCHER_ACCEL_H */
