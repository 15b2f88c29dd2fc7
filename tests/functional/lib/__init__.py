# SPDX-License-Identifier: GPL-2.0-or-later
"""What the functional tests are made of: real guests, real networks.

Modules, lower ones first:

  env         where things are (build directory, QEMUs, guest image), limits
  process     programs under test: started, watched, ended by pid
  netns       network namespaces of the host side
  hostnet     a guest's peer: TapNet, UserNet, StuckTap
  servers     TCP and UDP servers of the host side, with counts and sums
  qmp, agent  the two ways to talk to a guest: its monitor, its shell
  guest       a guest: one QEMU process, its agent and its monitor
  daemon      qemu-net-daemon as a process
  scenarios   what a network device has to get right, as functions
  place       a directory and the processes of a case without a guest
  runner      test cases printed as TAP

Nothing outside the standard library.  Every wait has a limit and every
failure carries the end of the guest's console.
"""
