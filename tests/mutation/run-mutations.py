#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Put seeded faults into a copy of the tree; a test has to fail for each.

Purpose: a test that cannot fail proves nothing.  Each row of mutants.py is one
TAP case, and says which program caught it.

Data flow: what git knows is copied and built once, and the tests have to pass
there.  For each mutant one file is changed, the programs that its row names
are built and run, then the others, until one fails; the file is put back.

A program that does not end in many times its usual time has failed, too.  A
fault that no longer fits its file, that the compiler refuses, or that nobody
notices fails its case.

Limits: one fault at a time; two CPUs, or the mutants whose first test is a
race are skipped.
"""

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from mutants import MUTANTS

TOP = Path(__file__).resolve().parents[2]
UNIT = 'tests/unit/test-'
TIMEOUT_FACTOR = 20
TIMEOUT_MIN_S = 20
RACES = ('vring-race', 'virtio-net-lost-kick')

# The quick ones first: they are tried in this order.
PROGRAMS = ('vring-notify', 'virtio-net-tx-compare', 'virtio-net-tx-policy',
            'virtio-net-call', 'virtio-net-tx', 'virtio-net-tx-hold',
            'virtio-net-tx-adaptive', 'virtio-net-tx-stop',
            'virtio-net-stats', 'virtio-net-fair', 'tx-sim',
            'vring-race', 'virtio-net-lost-kick')

# Only the part that takes a second.
ARGUMENTS = {'tx-sim': ['-p', '/tx-sim/told']}


class Tree:
    """A copy of the sources with a build directory of its own."""

    def __init__(self, top):
        self.top = top
        self.build = top / 'build'
        self.usual_s = {}

    def populate(self):
        names = subprocess.run(['git', '-C', TOP, 'ls-files', '-z'],
                               stdout=subprocess.PIPE, check=True).stdout
        for name in names.decode().split('\0'):
            source = TOP / name
            if name and source.is_file():
                target = self.top / name
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(source, target)

    def configure(self):
        return run(['./configure', f'--builddir={self.build.name}',
                    '--disable-docs', '--disable-fuzzing',
                    '--disable-werror'], self.top)

    def compile(self, programs):
        return run(['ninja', '-C', self.build, *[UNIT + p for p in programs]],
                   self.top)

    def passes(self, program):
        """Does it pass?  The first time says how long it takes."""
        limit_s = max(TIMEOUT_MIN_S,
                      TIMEOUT_FACTOR * self.usual_s.get(program, 60))
        start = time.monotonic()
        try:
            ok = run([self.build / (UNIT + program),
                      *ARGUMENTS.get(program, [])], self.top, limit_s)
        except subprocess.TimeoutExpired:
            ok = False
        self.usual_s.setdefault(program, time.monotonic() - start)
        return ok


def run(command, directory, timeout=None):
    """True: exit status 0.  What it wrote matters in no other way."""
    return subprocess.run(command, cwd=directory, timeout=timeout,
                          stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                          stderr=subprocess.DEVNULL, check=False
                          ).returncode == 0


def catch(tree, mutant):
    """(program that failed or None, what went wrong or None)"""
    others = [p for p in PROGRAMS if p not in mutant.tests]
    for programs in (mutant.tests, others):
        if not tree.compile(programs):
            return None, 'it does not compile'
        for program in programs:
            if not tree.passes(program):
                return program, None
    return None, 'no test noticed'


def judge(tree, mutant):
    path = tree.top / mutant.file
    text = path.read_text()
    if text.count(mutant.old) != 1:
        return None, f'its text is in {mutant.file} ' \
                     f'{text.count(mutant.old)} times'
    path.write_text(text.replace(mutant.old, mutant.new))
    try:
        return catch(tree, mutant)
    finally:
        path.write_text(text)


def prepare(tree):
    """What is wrong with the tree as it is, or None."""
    tree.populate()
    if not tree.configure():
        return 'configure failed'
    if not tree.compile(PROGRAMS):
        return 'the build failed'
    failed = [p for p in PROGRAMS if not tree.passes(p)]
    return f'without any fault: {", ".join(failed)} failed' if failed else None


def missing_tool():
    for tool in ('git', 'meson', 'ninja'):
        if shutil.which(tool) is None:
            return f'{tool} not found'
    if not (TOP / '.git').exists():
        return 'not a git tree: what to copy is not known'
    return None


def selected(names):
    wanted = re.compile('|'.join(names) or '.')
    return [m for m in MUTANTS if wanted.search(m.name)]


def report(tree, mutants):
    """Returns whether all were caught."""
    races = len(os.sched_getaffinity(0)) > 1
    all_caught = True
    print(f'1..{len(mutants)}', flush=True)
    for number, mutant in enumerate(mutants, 1):
        name = f'{number} - {Path(mutant.file).name}: {mutant.name}'
        if not races and mutant.tests[0] in RACES:
            print(f'ok {name} # SKIP a race needs two CPUs', flush=True)
            continue
        start = time.monotonic()
        caught, why = judge(tree, mutant)
        all_caught &= caught is not None
        print(f'{"ok" if caught else "not ok"} {name}')
        print(f'# {f"caught by {caught}" if caught else why}, '
              f'{time.monotonic() - start:.1f} s', flush=True)
    return all_caught


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('name', nargs='*',
                        help='only mutants whose name has this (a regular '
                             'expression)')
    parser.add_argument('--list', action='store_true',
                        help='print the names and end')
    args = parser.parse_args()
    mutants = selected(args.name)

    if args.list:
        print('\n'.join(f'{m.file}: {m.name}' for m in mutants))
        return 0
    reason = missing_tool()
    if reason:
        print(f'1..0 # SKIP {reason}')
        return 0
    with tempfile.TemporaryDirectory(prefix='mutation-') as directory:
        tree = Tree(Path(directory))
        wrong = prepare(tree)
        if wrong:
            print(f'1..1\nnot ok 1 - the tests pass without a fault\n'
                  f'# {wrong}')
            return 1
        return 0 if report(tree, mutants) else 1


if __name__ == '__main__':
    sys.exit(main())
