#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Our virtio-net against the stock QEMU's own, in the same guest.

Rounds of all set-ups, interleaved in one run, each a fresh boot of the same
Debian kernel on a tap.  In a round all guests are up, and one works at a time:
each figure is taken from all of them in turn and then again the other way
round, so that what is compared was measured within seconds, around the same
moment, and a machine that gets slower favours nobody.  The order rotates from
round to round.  For each figure: the median over the rounds, the ratio
ours/stock of the same round, and for tx=adaptive the regret against the
better of the stock device's modes in that round, as medians with a bootstrap
interval of 95 %.  Machines are shared and noisy: only what compares means
anything.

CPU is the busy time of the whole machine (/proc/stat), so that nobody's
thread is forgotten, over the work done in it: per Mpkt for datagrams, per Gb
for streams, per 1000 transactions for latency.  Where the work is not the
point: cores, the mean number of busy CPUs.  No set-up polls.

    bench-guest.py [--rounds N] [--seconds S] [--setups A,B,...]
                   [--kernel 6.1,6.12] [--vcpus 1,2] [--only PART,...]
                   [--pin] [--goals]

--goals also compares the medians with what the project promises and ends
with 1 if one is missed.
"""
import argparse
import contextlib
import dataclasses
import json
import pathlib
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]
                       / 'functional'))

from guestbench import mainloop, parts                  # noqa: E402
from guestbench.machine import Machine, booted          # noqa: E402
from guestbench.report import report                    # noqa: E402
from guestbench.setups import SETUPS, twins             # noqa: E402
from lib import env                                     # noqa: E402
from lib.runner import Skip                             # noqa: E402

PARTS = {**parts.PARTS, **mainloop.PARTS}
# Words for several parts; what a run without --only has is the first.
GROUPS = {'all': list(parts.PARTS), 'mainloop': list(mainloop.PARTS)}


def measure(setups, machine, names, seconds, progress):
    """{set-up: figures} of one round."""
    figures = {name: {} for name in setups}
    order = list(setups)
    with contextlib.ExitStack() as stack:
        progress('boot')
        benches = {name: stack.enter_context(
            booted(name, setup, machine, seconds))
            for name, setup in setups.items()}
        for part in names:
            progress(part)
            there = {s: PARTS[part](benches[s]) for s in order}
            back = {s: PARTS[part](benches[s]) for s in reversed(order)}
            for name in order:
                figures[name].update(
                    (figure, (value + back[name][figure]) / 2)
                    for figure, value in there[name].items())
    return figures


def one_round(setups, machine, names, seconds, progress):
    """{set-up: figures} of all parts: those of the main loop have guests of
    their own."""
    loop = dataclasses.replace(machine, nics=mainloop.NICS,
                               args=mainloop.ARGS)
    figures = {name: {} for name in setups}
    for where, which in ((machine, parts.PARTS), (loop, mainloop.PARTS)):
        wanted = [name for name in names if name in which]
        if wanted:
            found = measure(setups, where, wanted, seconds, progress)
            for name in setups:
                figures[name].update(found[name])
    return figures


def rotated(setups, shift):
    """Another order of the same."""
    names = list(setups)
    shift %= len(names)
    return {name: setups[name] for name in names[shift:] + names[:shift]}


def words(known):
    """For argparse: a list of these, separated by commas."""
    def convert(text):
        found = text.split(',')
        for word in found:
            if word not in known:
                raise argparse.ArgumentTypeError(
                    f'"{word}": one of {", ".join(known)}')
        return found
    return convert


def counts(text):
    """For argparse: numbers, separated by commas."""
    return [int(word) for word in text.split(',')]


def parse():
    """The command line."""
    parser = argparse.ArgumentParser(description='Compare with stock QEMU.')
    parser.add_argument('--rounds', type=int, default=3)
    parser.add_argument('--seconds', type=int, default=2,
                        help='of each measurement, two a figure and round')
    parser.add_argument('--setups', type=words(SETUPS), default=list(SETUPS),
                        help=','.join(SETUPS))
    parser.add_argument('--kernel', type=words(env.KERNELS), default=['6.1'],
                        help=','.join(env.KERNELS))
    parser.add_argument('--vcpus', type=counts, default=[1],
                        help='numbers, separated by commas')
    parser.add_argument('--only', type=words({**GROUPS, **PARTS}),
                        default=['all'],
                        help=','.join([*parts.PARTS, *GROUPS,
                                       *mainloop.PARTS]))
    parser.add_argument('--pin', action='store_true',
                        help='each set-up of ours twice: also with QEMU and '
                             'daemon on CPUs of their own')
    parser.add_argument('--builddir')
    parser.add_argument('--goals', action='store_true')
    parser.add_argument('--json', help='keep all figures in this file')
    return parser.parse_args()


def run(options, setups):
    """{machine: {set-up: [figures of each round]}}"""
    names = [name for word in options.only
             for name in GROUPS.get(word, [word])]
    machines = [Machine(kernel, vcpus) for kernel in options.kernel
                for vcpus in options.vcpus]
    results = {machine: {name: [] for name in setups} for machine in machines}
    start = time.monotonic()

    for number in range(options.rounds):
        for machine in machines:
            def progress(what, label=f'round {number + 1} of '
                                     f'{options.rounds}, {machine}'):
                print(f'[{time.monotonic() - start:5.0f} s] {label}: {what}',
                      file=sys.stderr, flush=True)

            figures = one_round(rotated(setups, number), machine, names,
                                options.seconds, progress)
            for name in setups:
                results[machine][name].append(figures[name])
    return results


def main():
    """See the top of the file."""
    options = parse()
    if options.builddir:
        env.BUILD_DIR = pathlib.Path(options.builddir).resolve()
    setups = twins(options.setups) if options.pin else \
        {name: SETUPS[name] for name in options.setups}
    try:
        results = run(options, setups)
    except Skip as reason:
        sys.exit(f'bench-guest: {reason}')
    if options.json:
        pathlib.Path(options.json).write_text(
            json.dumps({str(machine): found
                        for machine, found in results.items()}, indent=1),
            encoding='ascii')
    missed = sum(report(machine, found)
                 for machine, found in results.items())
    sys.exit(1 if options.goals and missed else 0)


if __name__ == '__main__':
    main()
