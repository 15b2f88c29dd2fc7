/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The rules by which a NIC is ours.  Pure.
 */
#ifndef LAUNCHER_NIC_RULES_H
#define LAUNCHER_NIC_RULES_H

#include "nic.h"

/*
 * nic_rules_judge: sets .ours of all NICs, and of the netdevs that move with
 * them; adds a line to @notices for each NIC that stays with the stock QEMU
 * for a reason that its user may not know.
 */
void nic_rules_judge(const CmdLine *cmd, LaunchNics *set, GPtrArray *notices);

#endif /* LAUNCHER_NIC_RULES_H */
