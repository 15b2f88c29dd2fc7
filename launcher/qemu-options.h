/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What a QEMU command line looks like: which options stand alone.
 *
 * Pure.
 */
#ifndef LAUNCHER_QEMU_OPTIONS_H
#define LAUNCHER_QEMU_OPTIONS_H

#include <stdbool.h>

/*
 * qemu_option_has_arg: does the option take the next word?
 * @name: without its dashes
 *
 * An option that is not known to stand alone is taken to have an argument,
 * as most have.
 */
bool qemu_option_has_arg(const char *name);

#endif /* LAUNCHER_QEMU_OPTIONS_H */
