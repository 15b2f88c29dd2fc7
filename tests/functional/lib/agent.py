# SPDX-License-Identifier: GPL-2.0-or-later
"""The host's end of guest-agent.c, which describes the protocol.

A thread reads; each job collects its output and can be waited for.  When the
guest reboots the agent greets again, and jobs of the former boot end with
GuestRebooted.
"""
import re
import threading
import time

from . import env
from .process import start_thread

_ESCAPES = {b'n': b'\n', b'r': b'\r', b'0': b'\0', b'\\': b'\\'}
_LETTERS = {value: b'\\' + key for key, value in _ESCAPES.items()}


class GuestRebooted(Exception):
    """The guest started anew (or the agent did) while a job ran."""


class GuestGone(Exception):
    """The serial port closed: the QEMU has ended."""


def escape(data):
    """Bytes as they may stand in a line."""
    return re.sub(rb'[\n\r\0\\]', lambda m: _LETTERS[m[0]], data)


def unescape(data):
    """The bytes that escape() was given."""
    return re.sub(rb'\\(.)', lambda m: _ESCAPES.get(m[1], m[1]), data,
                  flags=re.DOTALL)


class Job:
    """One command in the guest.

    status is None while it runs; then the exit status, or 128 + signal.
    """

    def __init__(self, agent, seq, command):
        self.agent = agent
        self.seq = seq
        self.command = command
        self.data = b''
        self.status = None
        self.error = None

    @property
    def output(self):
        """What it wrote so far, stdout and stderr together."""
        return self.data.decode(errors='replace')

    def wait(self, timeout=30):
        """(status, output) at its end; TimeoutError, GuestRebooted or
        GuestGone otherwise."""
        with self.agent.changed:
            done = self.agent.changed.wait_for(
                lambda: self.status is not None or self.error,
                env.scaled(timeout))
        if self.error:
            raise self.error
        if not done:
            raise TimeoutError(f'in the guest: "{self.command}" did not end '
                               f'in {timeout} s; so far: {self.output!r}')
        return self.status, self.output

    def kill(self):
        """Kills its processes; wait() tells when it has ended."""
        self.agent.send(b'K %d' % self.seq)


class Agent:
    """The connection to one guest's agent.

    boots     how many times the agent has greeted
    boot_id   the kernel's name for this boot
    """

    def __init__(self, sock):
        self.sock = sock
        self.changed = threading.Condition()
        self.jobs = {}
        self.next_seq = 1
        self.boots = 0
        self.boot_id = None
        self.gone = False
        start_thread(self._read)

    def _read(self):
        with self.sock.makefile('rb') as lines:
            try:
                for line in lines:
                    with self.changed:
                        self._line(line.rstrip(b'\n'))
                        self.changed.notify_all()
            except OSError:
                pass                    # closed: said below
        with self.changed:
            self.gone = True
            self._abandon(GuestGone('the QEMU has ended'))
            self.changed.notify_all()

    def _abandon(self, error):
        for job in self.jobs.values():
            job.error = error
        self.jobs = {}

    def _line(self, line):
        found = re.fullmatch(rb'([HOX]) (\S+)(?: (.*))?', line, re.DOTALL)
        if not found:
            return
        kind, name, text = found.groups()
        if kind == b'H':
            self.boots += 1
            self.boot_id = name.decode()
            self._abandon(GuestRebooted(f'boot {self.boots}'))
            return
        job = self.jobs.get(int(name)) if name.isdigit() else None
        if job and kind == b'O':
            job.data += unescape(text or b'')
        elif job and text:
            job.status = int(text)
            del self.jobs[job.seq]

    def send(self, line):
        """One line to the guest."""
        try:
            self.sock.sendall(line + b'\n')
        except OSError:
            raise GuestGone('the QEMU has ended') from None

    def spawn(self, command):
        """Starts a shell command; returns its Job."""
        with self.changed:
            if self.gone:
                raise GuestGone('the QEMU has ended')
            job = Job(self, self.next_seq, command)
            self.jobs[job.seq] = job
            self.next_seq += 1
        self.send(b'R %d %s' % (job.seq, escape(command.encode())))
        return job

    def wait_boot(self, boots, timeout, alive):
        """Returns when the agent has greeted `boots` times in all.

        alive() false ends the wait early, with GuestGone.
        """
        deadline = time.monotonic() + env.scaled(timeout)
        with self.changed:
            while self.boots < boots:
                if self.gone or not alive():
                    raise GuestGone('the QEMU has ended')
                if time.monotonic() > deadline:
                    raise TimeoutError(f'no agent within {timeout} s')
                self.changed.wait(0.1)
