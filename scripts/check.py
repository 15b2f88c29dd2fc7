#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""`make check` and `make check-slow`: configure, build, run the tests.

Purpose: the order of the steps, and one count at the end.  The packages are
there already (scripts/install-deps.sh).

check:       static checks, unit tests, the model, each fuzzer for 15 s, real
             guests on the distribution's QEMU, foreign drivers.
check-slow:  the same with 60 s a fuzzer, longer stresses and on the newer QEMU
             as well, then the unit tests built with gcc, clang,
             address+undefined and thread sanitizers, then seeded faults that
             they have to notice.

States: a step that cannot be prepared because a package mirror is out of
reach (exit status 77 of its script) is a skip that names the reason.  A
failing configure or build ends the run at once, with status 1.

Limits: two fuzzers, or as many programs as there are processors, at once.
"""

import argparse
import os
import subprocess
import sys
import time

import testlog

TOP = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
SKIP = 77
SUITES = ('static', 'unit', 'model', 'fuzz', 'functional', 'interop')

# Environment of the unit tests that stress: twenty times the usual.
LONG_STRESS = {'STRESS_CHANGES': '30000'}

# label, configure options, environment, time-out multiplier
VARIANTS = (
    ('gcc', ['--cc=gcc'], {}, 1),
    ('clang', ['--cc=clang'], {}, 1),
    ('address+undefined',
     ['--cc=clang', '--enable-sanitizers=address,undefined'],
     {'ASAN_OPTIONS': 'detect_leaks=1:abort_on_error=0',
      'UBSAN_OPTIONS': 'halt_on_error=1:print_stacktrace=1'}, 5),
    ('thread', ['--cc=clang', '--enable-sanitizers=thread'],
     {'TSAN_OPTIONS': 'halt_on_error=1:second_deadlock_stack=1'}, 10),
)


def run(*command, **kwargs):
    return subprocess.run(command, cwd=TOP, stdin=subprocess.DEVNULL,
                          **kwargs).returncode


def fatal(tally, name, why):
    tally.fail(name, why)
    tally.summary()
    sys.exit(1)


def build(tally, builddir):
    """Configures what is not configured yet.  Otherwise meson looks again:
    a tool that was missing may be there now."""
    if not os.path.exists(os.path.join(builddir, 'build.ninja')):
        status = run('./configure', f'--builddir={builddir}')
    else:
        status = run('meson', 'setup', '--reconfigure', builddir,
                     stdout=subprocess.DEVNULL)
    if status:
        fatal(tally, 'configure', f'exit status {status}')
    if run('ninja', '-C', builddir):
        fatal(tally, 'build', 'see above')


def prepare(tally, name, *command):
    """Runs a script that makes something for the tests.  False: not there."""
    status = run(*command)
    if status == SKIP:
        tally.skip(name, 'what it needs cannot be fetched, see above')
    elif status:
        tally.fail(name, f'{command[0]}: exit status {status}')
    return status == 0


def check(tally, builddir, fuzz_seconds=15, all_qemus=False):
    build(tally, builddir)
    prepare(tally, 'test guest', 'scripts/guest-image.sh', f'{builddir}/guest')
    env = {'FUZZ_SECONDS': str(fuzz_seconds)}
    if all_qemus:
        env['FUZZ_SEED'] = '0'          # inputs that no run had before
        env.update(LONG_STRESS)
    if all_qemus and prepare(tally, 'guests on a newer QEMU',
                             'scripts/stock-qemu.sh',
                             f'{builddir}/stock-qemu'):
        env['QVN_ALL_QEMUS'] = '1'
    run('scripts/fuzz.py', '--builddir', builddir, '--build-only')
    # The same tests on two QEMUs take twice the time.
    testlog.run_suites(tally, builddir, SUITES, env=env,
                       multiplier=2 if 'QVN_ALL_QEMUS' in env else 1)


def check_variant(tally, builddir, label, options, env, multiplier):
    print(f'=== build: {label}', flush=True)
    name = f'build ({label})'
    if run('./configure', f'--builddir={builddir}', '--disable-docs',
           '--disable-fuzzing', *options) or run('ninja', '-C', builddir):
        tally.fail(name, 'see above')
        return
    tally.ok()
    testlog.run_suites(tally, builddir, ['unit'], label=label,
                       env={**LONG_STRESS, **env}, multiplier=multiplier)


def check_mutations(tally):
    print('=== mutation', flush=True)
    lines = []
    with subprocess.Popen(['tests/mutation/run-mutations.py'], cwd=TOP,
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          text=True) as process:
        for line in process.stdout:
            print(line, end='', flush=True)
            lines.append(line)
    _, failed = testlog.count_tap(tally, 'mutation', ''.join(lines))
    if process.returncode and not failed:
        tally.fail('mutation', f'exit status {process.returncode}')


def check_slow(tally, builddir):
    check(tally, builddir, fuzz_seconds=60, all_qemus=True)
    for label, options, env, multiplier in VARIANTS:
        check_variant(tally, os.path.join(builddir, 'slow-' + label), label,
                      options, env, multiplier)
    check_mutations(tally)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('--builddir', default='build', metavar='DIR')
    parser.add_argument('--slow', action='store_true',
                        help='the wide one: make check-slow')
    args = parser.parse_args()
    builddir = os.path.join(TOP, args.builddir)

    start = time.monotonic()
    tally = testlog.Tally()
    if args.slow:
        check_slow(tally, builddir)
    else:
        check(tally, builddir)
    print(f'=== done in {time.monotonic() - start:.0f} s')
    tally.summary()
    return tally.exit_status()


if __name__ == '__main__':
    sys.exit(main())
