# SPDX-License-Identifier: GPL-2.0-or-later
"""Test cases printed as TAP, one line each.

A script makes one Suite and calls run() per case, or group() for cases that
share something dear, such as a guest; meson counts the lines.  A case
passes by returning, is skipped by raising Skip and fails by raising anything
else.

The script may be given words: only cases whose name contains one of them
are run (the others are not mentioned).
"""
import signal
import sys
import time
import traceback


class Skip(Exception):
    """This case cannot run here; the text says what is missing."""


def _one_line(text):
    return ' '.join(str(text).split()).replace('#', '')


def _diagnose(error):
    where = traceback.extract_tb(error.__traceback__)[-1]
    print(f'# {where.filename}:{where.lineno} in {where.name}')
    for line in f'{type(error).__name__}: {error}'.splitlines():
        print(f'#   {line}')
    sys.stdout.flush()


def _unwind(number, _frame):
    sys.exit(128 + number)


def _go_on(_number, _frame):
    pass


class Suite:
    """Counts cases and prints them; use as a context manager."""

    def __init__(self):
        self.count = 0
        self.failed = 0
        self.words = sys.argv[1:]

    def __enter__(self):
        # meson ends a test that is out of time by SIGTERM: unwind, so that
        # guests, taps and namespaces go too.
        signal.signal(signal.SIGTERM, _unwind)
        # What is ignored stays so in all programs that are started, what has
        # a handler does not: the cases are the same under nohup.
        for number in (signal.SIGHUP, signal.SIGINT):
            ignored = signal.getsignal(number) == signal.SIG_IGN
            signal.signal(number, _go_on if ignored else _unwind)
        print('TAP version 13', flush=True)
        return self

    def __exit__(self, kind, value, trace):
        print(f'1..{self.count}', flush=True)
        if kind is None:
            sys.exit(1 if self.failed else 0)
        return False

    def _wanted(self, name):
        return not self.words or any(word in name for word in self.words)

    def _print(self, verdict, name, remark=''):
        self.count += 1
        print(f'{verdict} {self.count} - {_one_line(name)}{remark}',
              flush=True)

    def fail(self, name, error):
        """Reports a case as failed with what was raised."""
        self.failed += 1
        self._print('not ok', name)
        _diagnose(error)

    def skip(self, names, reason):
        """Reports cases that cannot run, and why."""
        for name in filter(self._wanted, names):
            self._print('ok', name, f' # SKIP {_one_line(reason)}')

    def run(self, name, function, *args):
        """Runs one case."""
        if not self._wanted(name):
            return
        start = time.monotonic()
        try:
            function(*args)
        except Skip as reason:
            self.skip([name], reason)
        except Exception as error:      # whatever a case may raise
            self.fail(name, error)
        else:
            self._print('ok', name)
            print(f'# {time.monotonic() - start:.1f} s', flush=True)

    def group(self, setup, cases):
        """Runs cases, a list of (name, function), on what they share.

        setup() returns a context manager; each function gets what it
        yields.  Set up only if a case is wanted.  If that fails, so does the
        first case, and the others are skipped.
        """
        cases = [case for case in cases if self._wanted(case[0])]
        if not cases:
            return
        names = [name for name, _ in cases]
        manager = setup()
        try:
            shared = manager.__enter__()
        except Skip as reason:
            self.skip(names, reason)
            return
        except Exception as error:      # whatever a fixture may raise
            self.fail(names[0], error)
            self.skip(names[1:], f'set-up failed, see: {names[0]}')
            return
        try:
            for name, function in cases:
                self.run(name, function, shared)
        finally:
            try:
                manager.__exit__(None, None, None)
            except Exception as error:  # a teardown is a claim, too
                self.fail(f'end of: {names[-1]}', error)
