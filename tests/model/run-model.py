#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Check the Promela models of docs/devel/models with spin; answer in TAP.

Each row of CASES is one test.  A row that expects nothing must be searched
to the end without an error, with the search depth never the limit and with
every statement of the model reached: a property that holds because half of
the model never ran proves nothing.  A row that names a property has one rule
of the protocol taken out, and that very property must fail: this is what
shows that the property can fail at all.

Limits: spin's bounded types, one protocol variant a row, exhaustive search
only (no bitstate hashing).
"""

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple, Optional

MODELS = Path(__file__).resolve().parents[2] / 'docs' / 'devel' / 'models'
STEP_TIMEOUT_S = 120            # a stuck search; normal ones take seconds
DEPTH_STEPS = 1000000
MEMORY_MIB = 1024
HASH_BITS = 22
TRAIL_LINES = 80


class Case(NamedTuple):
    """One search: a model, what is defined, and the property to fail."""
    model: str
    defines: str = ''
    fails: Optional[str] = None     # None: everything holds
    liveness: bool = False

    @property
    def name(self):
        what = 'ltl' if self.liveness else 'safety'
        variant = self.defines or 'defaults'
        verdict = f'{self.fails} fails' if self.fails else 'holds'
        return f'{self.model} {what} [{variant}]: {verdict}'


def holds(model, defines='', liveness=False):
    return Case(model, defines, None, liveness)


def broken(model, property_name, *variants, liveness=False):
    return [Case(model, v, property_name, liveness) for v in variants]


# A ring of 4 across the index wrap, a window of 3, a batch of 2 a pass.
WIDE = 'R=4 M=16 START=13 PACKETS=5 WIN=3 BUDGET=2 ROOM=2'
# One at a time: progress is told by the parity of what was sent.
FEW = 'PACKETS=4 START=10 ROOM=1'

CASES = [
    holds('tx-window', 'PACKETS=6 START=8'),
    holds('tx-window', WIDE),
    holds('tx-window', 'FLAGS'),
    holds('tx-window', f'LAZY_PARK {WIDE}'),
    holds('tx-window', 'LAZY_PARK PACKETS=7 START=8'),
    holds('tx-window', FEW, liveness=True),
    holds('tx-window', f'FLAGS {FEW}', liveness=True),
    *broken('tx-window', 'waits_covered',
            'NO_BARRIER', 'NO_RECHECK', 'NO_DRIVER_BARRIER',
            'NO_RESCHEDULE', 'NO_START_POLL',
            'FLAGS NO_BARRIER', 'FLAGS NO_RECHECK'),
    *broken('tx-window', 'handover_awake',
            'NO_DISARM', 'NO_DISARM_BARRIER', 'NO_START_LOOK',
            'FLAGS NO_DISARM'),
    *broken('tx-window', 'owner_only', 'NO_DRAIN_BH', 'NO_DRAIN_TIMER'),
    *broken('tx-window', 'window_has_deadline',
            'NO_DEADLINE', 'NO_DEADLINE_PASS'),
    *broken('tx-window', 'window_respected',
            'NO_WINDOW_KICK', f'CROSSED_IS_PARTIAL {WIDE}'),
    *broken('tx-window', 'deadline_kept', 'PUSH_DEADLINE'),
    *broken('tx-window', 'idle_has_no_timer',
            'KEEP_DEADLINE', 'IDLE_DEADLINE'),
    *broken('tx-window', 'complete_before_rest', 'NO_PUBLISH', 'NO_CANCEL'),
    *broken('tx-window', 'parked_is_quiet', 'PARK_NEAR'),
    *broken('tx-window', 'hold_is_quiet', 'NO_HOLD_PARK'),
    *broken('tx-window', 'delivered',
            f'NO_RESUME {FEW}', f'NO_RECHECK {FEW}', liveness=True),

    holds('call-hold'),
    holds('call-hold', 'R=4'),
    holds('call-hold', 'SWAP'),
    holds('call-hold', liveness=True),
    holds('call-hold', 'SWAP', liveness=True),
    *broken('call-hold', 'driver_woken',
            'NO_BARRIER', 'NO_DRIVER_BARRIER', 'NO_DRIVER_RECHECK',
            'NO_REJUDGE', 'LAST_AT_PUBLISH', 'STALE_LAST R=1 FRAMES=2 M=4',
            'NO_FLUSH', 'NO_DEADLINE', 'SWAP NO_SWAP_WAIT'),
    *broken('call-hold', 'woken', 'NO_FLUSH', 'ALWAYS_PUT_OFF',
            'ALWAYS_LATE', liveness=True),

    holds('rx-refill'),
    holds('rx-refill', liveness=True),
    *broken('rx-refill', 'refill_noticed',
            'NO_BARRIER', 'NO_DRIVER_BARRIER', 'NO_RECHECK', 'ONE_LOOK'),
    *broken('rx-refill', 'rests', 'ASK_NONEMPTY', liveness=True),
]


class Outcome(NamedTuple):
    passed: bool
    diagnostics: list


def flags(case):
    extra = ' LIVENESS' if case.liveness else ''
    return [f'-D{d}' for d in (case.defines + extra).split()]


def run(command, directory):
    done = subprocess.run(command, cwd=directory, timeout=STEP_TIMEOUT_S,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          text=True, errors='replace', check=False)
    if done.returncode != 0:
        raise RuntimeError(f'{" ".join(command)}: exit {done.returncode}\n'
                           f'{done.stdout}')
    return done.stdout


def search(case, directory, first_failure):
    """Generate, compile and run the verifier; return what it printed.

    @first_failure: look for the shortest way to a failure, not for all states.
    """
    shutil.copy(MODELS / f'{case.model}.pml', directory)
    run(['spin', '-a', *flags(case), f'{case.model}.pml'], directory)
    compiler = os.environ.get('CC', 'gcc').split()
    # -w: the generated program is spin's, not ours.  A failure is found after
    # few states, so there the compiler's time counts, not the search's.
    build = [*compiler, '-O0' if first_failure else '-O2', '-w',
             f'-DMEMLIM={MEMORY_MIB}']
    options = [f'-m{DEPTH_STEPS}', f'-w{HASH_BITS}']
    if case.liveness:
        build += ['-DNFAIR=3']  # fairness counters for up to 28 processes
        options += ['-a', '-f']
    elif first_failure:
        build += ['-DSAFETY', '-DBFS']  # breadth first
        options = [f'-w{HASH_BITS}']
    else:
        build += ['-DSAFETY']
    run([*build, '-o', 'pan', 'pan.c'], directory)
    return run(['./pan', *options], directory)


def unreached(report, case):
    """Statements that never ran, other than failing asserts and ends.

    Inlined statements count once for each place they are inlined into; a
    source line says so if it is not expected to run in all of them.
    """
    source = (MODELS / f'{case.model}.pml').read_text().splitlines()
    found = re.findall(r'^\t\S+\.pml:(\d+), state \d+, "(.*)"$', report, re.M)
    return [f'line {number}: {text}' for number, text in found
            if text != '-end-' and not text.startswith('assert(')
            and 'may be unreached' not in source[int(number) - 1]]


def complaints(report):
    """Why this report is not a complete search without an error."""
    found = re.findall(r'^pan:\d+: .*$', report, re.M)
    if not re.search(r'errors: 0$', report, re.M):
        found.append('the verifier does not report "errors: 0"')
    for limit in ('max search depth too small', 'Search not completed',
                  'out of memory', 'MEMLIM'):
        if limit in report:
            found.append(f'the search was cut: {limit}')
    return found


def failed_property(report, case):
    """The property whose violation ended the search, if any."""
    match = re.search(r'assertion violated !?\(*(\w+)', report)
    if match:
        return match.group(1)
    if 'acceptance cycle' in report:
        return re.search(r'^ltl (\w+)', (MODELS / f'{case.model}.pml')
                         .read_text(), re.M).group(1)
    return None


def summary(report, elapsed_s):
    states = re.search(r'^ *([\d.e+]+) states, stored', report, re.M)
    depth = re.search(r'depth reached (\d+)', report)
    return (f'{states.group(1) if states else "?"} states stored, '
            f'depth {depth.group(1) if depth else "?"}, {elapsed_s:.1f} s')


COLUMNS = {'driver': 0, 'memory': 26, 'front-end': 26, 'main': 26, 'device': 48}
TITLES = 'driver'.ljust(26) + 'memory'.ljust(22) + 'device (context)'


def trail(case, directory):
    """The events that lead to the failure: driver left, device right."""
    text = run(['spin', '-T', '-t', *flags(case), f'{case.model}.pml'],
               directory)
    lines = []
    for line in text.splitlines():
        line = line.strip()
        who, _, what = line.partition(': ')
        side, _, number = who.partition(' ')
        if what and side in COLUMNS:
            name = '' if side in TITLES else f'{side}: '
            context = f' ({number})' if number else ''
            lines.append(' ' * COLUMNS[side] + name + what + context)
        elif 'START OF CYCLE' in line:
            lines.append('--- from here on for ever ---')
        elif line.startswith('spin: trail ends'):
            break
    if len(lines) > TRAIL_LINES:
        cut = len(lines) - TRAIL_LINES
        lines = [f'({cut} events before)', *lines[-TRAIL_LINES:]]
    return [TITLES, *lines]


def judge(case, directory, want_trail):
    start = time.monotonic()
    report = search(case, directory, bool(case.fails))
    elapsed_s = time.monotonic() - start
    failed = failed_property(report, case)
    if case.fails:
        wrong = [] if failed == case.fails else [
            f'expected {case.fails} to fail, got {failed}']
    else:
        wrong = complaints(report)
        if not case.liveness:
            wrong += [f'never reached: {s}' for s in unreached(report, case)]
    notes = [summary(report, elapsed_s), *wrong]
    if failed and (wrong or want_trail):
        if not case.fails and not case.liveness:
            search(case, directory, True)
        notes += trail(case, directory)
    return Outcome(not wrong, notes)


def check(case, want_trail=False):
    with tempfile.TemporaryDirectory(prefix='model-') as directory:
        try:
            return judge(case, directory, want_trail)
        except (RuntimeError, subprocess.TimeoutExpired) as error:
            return Outcome(False, str(error).splitlines())


def missing_tool():
    compiler = os.environ.get('CC', 'gcc').split()[0]
    for tool, package in (('spin', 'spin'), (compiler, 'gcc')):
        if shutil.which(tool) is None:
            return f'{tool} not found (Debian package: {package})'
    return None


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('model', nargs='?',
                        help='only this model: tx-window, call-hold, rx-refill')
    parser.add_argument('variant', nargs='*',
                        help='only the rows with these defines: NO_BARRIER')
    parser.add_argument('--trail', action='store_true',
                        help='print the events that lead to each failure')
    parser.add_argument('-j', '--jobs', type=int, default=1,
                        help='searches at a time (each up to 1 GiB)')
    args = parser.parse_args()

    cases = [c for c in CASES if args.model in (None, c.model)
             and set(args.variant) <= set(c.defines.split())]
    reason = missing_tool()
    if reason:
        print(f'1..0 # SKIP {reason}')
        return 0
    if not cases:
        parser.error('no such case; see CASES in this file')

    print(f'1..{len(cases)}', flush=True)
    passed = True
    with ThreadPoolExecutor(max_workers=args.jobs) as pool:
        outcomes = pool.map(lambda c: check(c, args.trail), cases)
        for number, (case, outcome) in enumerate(zip(cases, outcomes), 1):
            passed &= outcome.passed
            print(f'{"ok" if outcome.passed else "not ok"} {number} - '
                  f'{case.name}')
            for line in outcome.diagnostics:
                print(f'# {line}')
            sys.stdout.flush()
    return 0 if passed else 1


if __name__ == '__main__':
    sys.exit(main())
