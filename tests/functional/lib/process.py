# SPDX-License-Identifier: GPL-2.0-or-later
"""A program under test: started, watched, ended by its pid.

Each process carries a mark in its environment, QVN_MARK.  What it starts
inherits the mark, so that leftovers() finds a daemon which outlived the
command that started it.
"""
import itertools
import os
import pathlib
import signal
import subprocess
import threading
import time

from . import env

_numbers = itertools.count(1)


class Process:
    """One running program.

    argv      command line
    log       file for stdout and stderr together, as pathlib.Path
    netns     Netns to run in, or None
    pass_fds  file descriptors the program keeps
    """

    def __init__(self, argv, log, netns=None, pass_fds=(), extra_env=None):
        self.argv = [str(arg) for arg in argv]
        self.log = log
        self.mark = f'{os.getpid()}-{next(_numbers)}'
        prefix = netns.prefix() if netns else []
        with open(log, 'ab') as out:
            self.popen = subprocess.Popen(
                prefix + self.argv, stdin=subprocess.DEVNULL, stdout=out,
                stderr=subprocess.STDOUT, pass_fds=pass_fds,
                env={**os.environ, 'QVN_MARK': self.mark,
                     **(extra_env or {})})
        self.pid = self.popen.pid

    def running(self):
        """Whether it has not ended yet."""
        return self.popen.poll() is None

    def output(self):
        """All it has written so far."""
        return self.log.read_text(errors='replace')

    def wait(self, timeout):
        """Exit status, or 128 + signal as a shell has it."""
        try:
            status = self.popen.wait(env.scaled(timeout))
        except subprocess.TimeoutExpired:
            raise TimeoutError(f'{self.argv[0]} did not end in {timeout} s:\n'
                               f'{tail(self.log)}') from None
        return 128 - status if status < 0 else status

    def stop(self, timeout=10):
        """Ends it: SIGTERM, then SIGKILL when the time is over.

        Returns the exit status.  A program that needs SIGKILL is a failure.
        """
        if self.running():
            self.popen.send_signal(signal.SIGTERM)
        try:
            return self.wait(timeout)
        except TimeoutError:
            self.kill()
            raise

    def kill(self):
        """Ends it at once."""
        if self.running():
            self.popen.kill()
        self.popen.wait()

    def leftovers(self):
        """pids of processes with this one's mark, itself not counted."""
        mark = f'QVN_MARK={self.mark}'.encode()
        found = []
        for entry in pathlib.Path('/proc').iterdir():
            if not entry.name.isdigit() or int(entry.name) == self.pid:
                continue
            try:
                if mark in (entry / 'environ').read_bytes().split(b'\0'):
                    found.append(int(entry.name))
            except OSError:
                continue                # gone, or not ours to see
        return found

    def expect_no_leftovers(self, timeout=5):
        """Fails if something it started is still there after `timeout`.

        Whatever it was is ended.
        """
        deadline = time.monotonic() + env.scaled(timeout)
        while (pids := self.leftovers()) and time.monotonic() < deadline:
            time.sleep(0.02)
        if pids:
            names = [_name(pid) for pid in pids]
            for pid in pids:
                os.kill(pid, signal.SIGKILL)
            raise AssertionError(f'{self.argv[0]} left processes behind: '
                                 + ', '.join(names))


def _name(pid):
    try:
        line = pathlib.Path(f'/proc/{pid}/cmdline').read_bytes()
    except OSError:
        return str(pid)
    return f'{pid} ({line.replace(bytes(1), b" ").decode().strip()[:80]})'


def tail(path, lines=20):
    """The last lines of a log, each led by a bar."""
    try:
        text = path.read_text(errors='replace')
    except OSError:
        return '| (no log)'
    text = text.replace('\r', '').splitlines()[-lines:]
    return '\n'.join('| ' + line for line in text) or '| (empty)'


def wait_for(condition, timeout, what):
    """Polls until condition() is true; returns its value.

    For states that have nothing to wait on, such as a file's existence.
    """
    deadline = time.monotonic() + env.scaled(timeout)
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > deadline:
            raise TimeoutError(f'{what}: not within {timeout} s')
        time.sleep(0.02)


def start_thread(function, *args):
    """A daemon thread: never keeps the test from ending."""
    thread = threading.Thread(target=function, args=args, daemon=True)
    thread.start()
    return thread
