# SPDX-License-Identifier: GPL-2.0-or-later
"""Runs `meson test` and counts what the test programs reported.

Purpose: meson counts programs; people want to know about cases.  Each
program's output is kept by meson in a JSON log; here its TAP lines are
counted one by one.

Rules of counting:
  - a TAP case is passed, failed or skipped as its line says;
  - a program that meson calls failed although none of its cases failed
    (crash, time-out, fewer cases than planned) counts as one failed case;
  - a program skipped as a whole is one skipped case;
  - a program without TAP is one case.

Limits: nested TAP (indented) is left to the outer case.
"""

import json
import os
import re
import subprocess
import sys

CASE = re.compile(r'(not )?ok\b\s*(\d+)?\s*(?:- )?([^#]*)'
                  r'(?:#\s*(?:(skip|todo)\S*)?\s*(.*))?$', re.IGNORECASE)
PLAN_SKIP = re.compile(r'1\.\.0\s*#\s*skip\S*\s*(.*)', re.IGNORECASE)
OUTPUT_LINES = 60


class Tally:
    """Counts of cases, with the reasons of those that did not pass."""

    def __init__(self):
        self.passed = 0
        self.failures = []
        self.skips = []

    def ok(self):
        self.passed += 1

    def fail(self, name, why=''):
        self.failures.append((name, why))

    def skip(self, name, why=''):
        self.skips.append((name, why))

    def _grouped_skips(self):
        """{(program, reason): [case, ...]}: one reason is said once."""
        groups = {}
        for name, why in self.skips:
            program, _, case = name.partition(': ')
            groups.setdefault((program, why), []).append(case)
        return groups

    def summary(self):
        """All skips and failures, then the plain line that is read by
        machines: always the same two numbers, and the last line."""
        for (name, why), cases in self._grouped_skips().items():
            what = cases[0] if len(cases) == 1 else f'{len(cases)} cases'
            print(f'skipped: {name}: {what + ": " if what else ""}'
                  f'{why or "no reason given"}')
        for name, why in self.failures:
            print(f'FAILED: {name}' + (f': {why}' if why else ''))
        if self.skips:
            print(f'{len(self.skips)} skipped, for the reasons above')
        print(f'{self.passed} passed, {len(self.failures)} failed', flush=True)

    def exit_status(self):
        """No test at all is a failure, too."""
        return 0 if self.passed and not self.failures else 1


def count_tap(tally, name, text):
    """Adds the cases in @text; returns (cases, failed cases)."""
    cases = failed = 0
    for line in text.splitlines():
        plan = PLAN_SKIP.match(line)
        if plan:
            tally.skip(name, plan.group(1).strip())
            cases += 1
        match = CASE.match(line)
        if not match:
            continue
        not_ok, _, title, directive, why = match.groups()
        directive = (directive or '').lower()
        full = f'{name}: {title.strip()}'
        cases += 1
        if directive == 'skip' and not not_ok:
            tally.skip(full, (why or '').strip())
        elif not_ok and directive != 'todo':
            tally.fail(full)
            failed += 1
        else:
            tally.ok()
    return cases, failed


def show_output(name, record):
    """The end of what a failed program wrote."""
    text = record.get('stdout', '') or ''
    errors = record.get('stderr', '') or ''
    for title, part in (('output', text), ('error output', errors)):
        lines = part.splitlines()
        if lines:
            print(f'--- {name}: {title}'
                  f'{" (end of)" if len(lines) > OUTPUT_LINES else ""}')
            print('\n'.join(lines[-OUTPUT_LINES:]))


def count_program(tally, label, record):
    """Adds one program of meson's JSON log."""
    # "project / name" or "suite - project:name": the last word is the name.
    name = record['name'].split(' / ')[-1].split(':')[-1].strip()
    if label:
        name = f'{name} ({label})'
    cases, failed = count_tap(tally, name, record.get('stdout') or '')
    result = record['result']
    if result in ('OK', 'EXPECTEDFAIL'):
        if not cases:
            tally.ok()
    elif result == 'SKIP':
        if not cases:
            why = (record.get('stdout') or '').strip().splitlines()
            tally.skip(name, why[-1] if why else '')
    else:
        if not failed:
            tally.fail(name, f'{result.lower()}, exit status '
                             f'{record["returncode"]}')
        show_output(name, record)


def run_suites(tally, builddir, suites, label='', env=None, multiplier=1,
               jobs=0):
    """Runs the suites one after the other into @tally.

    A suite without tests is a skip: what it needs was not there when the
    build was configured.
    """
    for suite in suites:
        logbase = f'check-{suite}'
        log = os.path.join(builddir, 'meson-logs', logbase + '.json')
        if os.path.exists(log):
            os.unlink(log)
        command = ['meson', 'test', '-C', builddir, '--no-rebuild',
                   '--suite', suite, '--logbase', logbase,
                   '--timeout-multiplier', str(multiplier),
                   '--num-processes', str(jobs or os.cpu_count() or 1)]
        print(f'=== {suite}{f" ({label})" if label else ""}', flush=True)
        status = subprocess.run(command, stdin=subprocess.DEVNULL,
                                env={**os.environ, **(env or {})}).returncode
        sys.stdout.flush()
        before = len(tally.failures)
        records = []
        if os.path.exists(log):
            with open(log, encoding='utf-8') as lines:
                records = [json.loads(line) for line in lines]
        for record in records:
            count_program(tally, label, record)
        if not records and not status:
            tally.skip(suite, 'no tests are configured, see configure')
        if status and len(tally.failures) == before:
            tally.fail(f'meson test --suite {suite}',
                       f'exit status {status}')
