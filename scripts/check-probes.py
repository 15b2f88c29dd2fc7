#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Checks that the probes in the program are those in the manual.

Data flow: the notes section of qemu-net-daemon, as readelf prints it, against
the table in docs/devel/tracing.rst: names both ways, and the number of
arguments of each place a probe is at.

Output: TAP.  Usage: check-probes.py BUILDDIR built|absent
"""

import os
import re
import subprocess
import sys

TOP = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
PROVIDER = 'qemu_virtio_net'
COMMON_ARGUMENTS = 2                    # the NIC and the ring
ROW = re.compile(r'^   \* - ``(\w+)``\n     -(.*)\n', re.MULTILINE)
NOTE = re.compile(r'Provider: (\S+)\s+Name: (\S+)\s+Location: [^\n]*\n'
                  r'\s+Arguments:([^\n]*)')


def documented():
    """{name: number of arguments}"""
    path = os.path.join(TOP, 'docs', 'devel', 'tracing.rst')
    with open(path, encoding='utf-8') as file:
        rows = ROW.findall(file.read())
    return {name: COMMON_ARGUMENTS + (more.count(',') + 1 if more else 0)
            for name, more in rows}


def built(program):
    """{name: set of numbers of arguments}"""
    notes = subprocess.run(['readelf', '--wide', '-n', program], check=True,
                           stdin=subprocess.DEVNULL, capture_output=True,
                           text=True, env={**os.environ, 'LC_ALL': 'C'})
    found = {}
    for provider, name, arguments in NOTE.findall(notes.stdout):
        if provider == PROVIDER:
            # An operand has blanks neither in nor around its "N@".
            found.setdefault(name, set()).add(len(arguments.split()))
    return found


def main():
    builddir, expected = sys.argv[1:]
    if expected != 'built':
        print('1..0 # SKIP built without sys/sdt.h (systemtap-sdt-dev)')
        return 0
    told = documented()
    there = built(os.path.join(builddir, 'qemu-net-daemon'))
    names = sorted(told.keys() | there.keys())
    print(f'1..{len(names)}')
    failed = False
    for number, name in enumerate(names, 1):
        good = there.get(name) == {told.get(name)}
        if not good:
            print(f'# documented: {told.get(name, "no")} arguments; in the '
                  f'program: {there.get(name, "no")}')
        failed = failed or not good
        print(f'{"ok" if good else "not ok"} {number} - {name}')
    return 1 if failed else 0


if __name__ == '__main__':
    sys.exit(main())
