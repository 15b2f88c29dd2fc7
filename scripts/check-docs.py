#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Checks that the manual names every option, and no option that is not there.

Purpose: the programs' own tables are the truth; the manual has more words.
Compared are the options of qemu-net-daemon, the properties of virtio-net-pci,
the types of netdev and the counters of a ring, as the programs' help prints
them, with docs/options/*.rst.inc.

Output: TAP.  Usage: check-docs.py BUILDDIR
"""

import os
import re
import subprocess
import sys

TOP = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


def documented(name, pattern):
    """Names at the head of a description: ``name=VALUE``, ``--name ARG``."""
    path = os.path.join(TOP, 'docs', 'options', name)
    with open(path, encoding='utf-8') as file:
        heads = [line for line in file if line.startswith('``')]
    return {found for line in heads for found in re.findall(pattern, line)}


def printed(builddir, arguments, pattern):
    text = subprocess.run(
        [os.path.join(builddir, 'qemu-net-daemon'), *arguments], check=True,
        stdin=subprocess.DEVNULL, capture_output=True, text=True).stdout
    return set(re.findall(pattern, text, re.MULTILINE))


CASES = (
    ('options of qemu-net-daemon', ['--help'], r'^  --([\w-]+)',
     'daemon.rst.inc', r'``--([\w-]+)'),
    ('properties of virtio-net-pci', ['--device', 'virtio-net-pci,help'],
     r'^  ([\w-]+)=', 'nic.rst.inc', r'``([a-z][\w-]*)(?:``|=)'),
    ('types of netdev', ['--netdev', 'help'], r'^(\w+)  ',
     'netdev.rst.inc', r'^``(\w+)``:'),
    ('counters', ['--stats', 'help'], r'^  ([\w-]+) ', 'stats.rst.inc',
     r'``([\w-]+)``'),
)


def main():
    builddir = sys.argv[1]
    print(f'1..{len(CASES)}')
    failed = False
    for number, (title, arguments, help_pattern, name, pattern) in \
            enumerate(CASES, 1):
        there = printed(builddir, arguments, help_pattern)
        told = documented(name, pattern)
        for what, names in (('not in the manual', there - told),
                            ('only in the manual', told - there)):
            if names:
                print(f'# {what}: {", ".join(sorted(names))}')
        good = bool(there) and there == told
        failed = failed or not good
        print(f'{"ok" if good else "not ok"} {number} - {title}')
    return 1 if failed else 0


if __name__ == '__main__':
    sys.exit(main())
