#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""The cases on the stock QEMU's own virtio-net.

Proves the library and the scenarios before they judge our device: what
fails here is the test's fault, or a fault of the stock device that has to be
known.
"""
# The tables are for test_net.py, too.
from lib.cases import (BASIC, STUCK, TABLES, TAP, cases,    # noqa: F401
                       run_kind, run_two, stock_qemus)
from lib.runner import Suite


def main():
    """One guest for each kind of net."""
    with Suite() as suite:
        for name, qemu in stock_qemus().items():
            for kind in TABLES:
                run_kind(suite, name, kind, qemu)
            run_two(suite, name, qemu)


if __name__ == '__main__':
    main()
