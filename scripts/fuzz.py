#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Builds and runs the libFuzzer targets.

Purpose: each target runs for a fixed time over its committed corpus
(tests/fuzz/corpus/NAME) with address and undefined-behaviour sanitizers.

Data flow: the targets and the libraries they link are built by clang in
BUILDDIR/fuzz.  What the fuzzer finds goes to a temporary corpus, the
committed one is only read; --keep copies what adds coverage back into it,
minimised.  An input that fails is kept in BUILDDIR/fuzz/failures.

Output: TAP, one case a target, with executions and coverage as diagnostics.

The environment variables FUZZ_SECONDS and FUZZ_SEED set the defaults of
--seconds (15) and --seed (1, so that a test run is repeatable; 0 = another
one each time).
"""

import argparse
import fcntl
import os
import re
import subprocess
import sys
import tempfile

TOP = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
SOURCES = os.path.join(TOP, 'tests', 'fuzz')
SINGLE_INPUT_SECONDS = 10
MEMORY_MIB = 1024
BUILD_OPTIONS = ['-Dfuzz_targets=true', '-Ddocs=disabled',
                 '-Db_sanitize=address,undefined', '-Db_lundef=false',
                 '-Dbuildtype=debugoptimized']


def all_targets():
    return sorted(re.sub(r'^fuzz-(.*)\.c$', r'\1', name)
                  for name in os.listdir(SOURCES)
                  if re.match(r'fuzz-.*\.c$', name))


def build(fuzzdir):
    """Sets up and updates BUILDDIR/fuzz; one process at a time."""
    os.makedirs(fuzzdir, exist_ok=True)
    log = os.path.join(fuzzdir, 'build.log')
    with open(os.path.join(fuzzdir, 'lock'), 'w', encoding='utf-8') as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        with open(log, 'w', encoding='utf-8') as output:
            def run(*command):
                return subprocess.run(command, stdout=output, stderr=output,
                                      stdin=subprocess.DEVNULL,
                                      env={**os.environ, 'CC': 'clang'},
                                      cwd=TOP).returncode == 0
            good = (os.path.exists(os.path.join(fuzzdir, 'build.ninja')) or
                    run('meson', 'setup', *BUILD_OPTIONS, fuzzdir)) and \
                run('ninja', '-C', fuzzdir, 'fuzz-targets')
    if not good:
        with open(log, encoding='utf-8') as output:
            for line in output.read().splitlines()[-30:]:
                print(f'# {line}')
        print(f'Bail out! the fuzz targets do not build, see {log}')
    return good


def libfuzzer(program, *args):
    return subprocess.run(
        [program, *args], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT, encoding='utf-8', errors='replace',
        env={**os.environ,
             'ASAN_OPTIONS': 'detect_leaks=1:allocator_may_return_null=1',
             'UBSAN_OPTIONS': 'print_stacktrace=1'})


def last_number(pattern, text):
    found = re.findall(pattern, text)
    return int(found[-1]) if found else 0


def run_target(name, number, fuzzdir, args):
    """One TAP case; True if nothing was found."""
    program = os.path.join(fuzzdir, 'tests', 'fuzz', 'fuzz-' + name)
    failures = os.path.join(fuzzdir, 'failures')
    corpus = os.path.join(SOURCES, 'corpus', name)
    dictionary = os.path.join(SOURCES, name + '.dict')
    os.makedirs(failures, exist_ok=True)
    if not os.path.isdir(corpus):
        print(f'# {name}: no corpus in {corpus}')
        print(f'not ok {number} - {name}')
        return False
    with tempfile.TemporaryDirectory(prefix=f'fuzz-{name}-') as found:
        options = [f'-max_total_time={args.seconds}', f'-seed={args.seed}',
                   f'-timeout={SINGLE_INPUT_SECONDS}',
                   f'-rss_limit_mb={MEMORY_MIB}', '-print_final_stats=1',
                   f'-artifact_prefix={failures}/{name}-']
        if os.path.exists(dictionary):
            options.append(f'-dict={dictionary}')
        result = libfuzzer(program, *options, found, corpus)
        if args.keep and result.returncode == 0:
            libfuzzer(program, '-merge=1', corpus, found)
    out = result.stdout
    print(f'# {name}: {len(os.listdir(corpus))} seeds, '
          f'{last_number(r"number_of_executed_units: *([0-9]+)", out)} '
          f'executions in {args.seconds} s, coverage '
          f'{last_number(r"cov: ([0-9]+)", out)} edges, '
          f'{last_number(r"ft: ([0-9]+)", out)} features')
    if result.returncode == 0:
        print(f'ok {number} - {name}', flush=True)
        return True
    for line in out.splitlines()[-60:]:
        print(f'# {line}')
    kept = re.findall(r'Test unit written to (\S+)', out)
    if kept:
        print(f'# reproduce with: {program} {kept[-1]}')
    print(f'not ok {number} - {name}', flush=True)
    return False


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument('--builddir', default='build', metavar='DIR')
    parser.add_argument('--seconds', type=int, metavar='N',
                        default=int(os.environ.get('FUZZ_SECONDS', '15')))
    parser.add_argument('--seed', type=int, metavar='N',
                        default=int(os.environ.get('FUZZ_SEED', '1')))
    parser.add_argument('--keep', action='store_true',
                        help='add what was found to the committed corpus')
    parser.add_argument('--build-only', action='store_true')
    parser.add_argument('target', nargs='*', help='default: all')
    args = parser.parse_args()

    targets = args.target or all_targets()
    unknown = set(targets) - set(all_targets())
    if unknown:
        parser.error(f'no target {", ".join(sorted(unknown))}; there are '
                     f'{", ".join(all_targets())}')
    fuzzdir = os.path.join(os.path.abspath(args.builddir), 'fuzz')
    if not targets:
        print('1..0 # SKIP no fuzz targets')
        return 0
    if not build(fuzzdir):
        return 1
    if args.build_only:
        return 0
    print(f'1..{len(targets)}')
    good = [run_target(name, i, fuzzdir, args)
            for i, name in enumerate(targets, 1)]
    return 0 if all(good) else 1


if __name__ == '__main__':
    sys.exit(main())
