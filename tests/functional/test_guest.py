#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""The cases on our virtio-net, by our qemu-system-x86_64.

The launcher gets an ordinary QEMU command line; the machine behind it is a
stock QEMU.  Each policy of transmit at each kind of net, one guest for each.
"""
import pathlib

from lib import cases, env
from lib.runner import Suite


def launcher():
    """Path of our qemu-system-x86_64."""
    return env.our_program('qemu-system-x86_64')


def served_by_us(guest, _):
    """The NIC is in our daemon, not left to the stock QEMU."""
    names = [pathlib.Path(f'/proc/{pid}/comm').read_text('ascii').strip()
             for pid in guest.process.leftovers()]
    assert names == ['qemu-net-daemon'], names


def main():
    """All kinds of net with both policies."""
    with Suite() as suite:
        for name, qemu in cases.stock_qemus().items():
            for tx in ('bh', 'timer'):
                for kind in cases.TABLES:
                    cases.run_kind(
                        suite, f'on {name}, {tx}', kind, launcher,
                        first={'served by our daemon': served_by_us},
                        stock=qemu, tx=tx)
            cases.run_two(suite, f'on {name}', launcher, stock=qemu)


if __name__ == '__main__':
    main()
