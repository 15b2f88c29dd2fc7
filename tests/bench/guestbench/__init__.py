# SPDX-License-Identifier: GPL-2.0-or-later
"""What bench-guest.py is made of.

Modules, lower ones first:

  figures   outputs of tools into numbers; medians, ratios, regret: pure
  setups    what is compared with what, and what is asked of it
  machine   a booted guest with the far end of its network; pinning; CPU time
  parts     what is measured on one NIC
  mainloop  what is measured while the monitor keeps QEMU's main loop busy
  report    all figures as text

The directory tests/functional has to be on the module search path.
"""
