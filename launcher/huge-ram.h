/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Shared guest memory with huge pages.
 */
#ifndef LAUNCHER_HUGE_RAM_H
#define LAUNCHER_HUGE_RAM_H

/*
 * huge_ram_open: an empty file in memory whose pages may be huge wherever a
 * mapping asks for them (MADV_HUGEPAGE, which QEMU gives for all guest
 * memory).  It has no name and goes with its last descriptor and mapping.
 *
 * Returns a descriptor that is inherited by exec; or -1, where a memfd does as
 * well or where this host does not let us: that is no error.
 */
int huge_ram_open(void);

#endif /* LAUNCHER_HUGE_RAM_H */
