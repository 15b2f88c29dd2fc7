# SPDX-License-Identifier: GPL-2.0-or-later
"""What leaving QEMU's main loop buys: round trips while a monitor command
after the other keeps that loop busy; and what the guest sends meanwhile.

The guest has four NICs, each at a tap of its own, and a display to dump.  A
round trip is a datagram of 64 bytes and its answer, 200 a second on one NIC
or on all four at once.

What it can show is bounded.  Without KVM the interrupts of a vhost-user NIC
are injected by QEMU's main loop (there is no irqfd), and the guest's kick
takes QEMU's big lock like any other access to a device.  So of a NIC that our
daemon serves only the work on its packets leaves the loop; a monitor command
delays its interrupts as it delays those of QEMU's own.  A stream of datagrams
waits for no answer, and needs the loop only for the interrupts of its
completions.  savevm is not among the commands: QEMU refuses it for a guest with
a vhost-user NIC.
"""
import contextlib
import threading

from lib.process import start_thread

from . import parts
from .figures import better, key_values
from .machine import Cpu

NICS = 4
ARGS = ('-device', 'VGA')
PERIOD_US = 5000
SIZE = 64


def _qtree(guest):
    guest.execute('human-monitor-command', timeout=30,
                  command_line='info qtree')


def _screendump(guest):
    guest.execute('screendump', timeout=30, filename=f'{guest.dir}/screen')


LOADS = {'idle': None, 'qtree': _qtree, 'screendump': _screendump}


class _Busy:
    """Has the monitor run a command again and again, until left.

    count   how often it has ended
    """

    def __init__(self, guest, command):
        self.guest = guest
        self.command = command
        self.count = 0
        self.error = None
        self.ended = threading.Event()
        self.thread = None

    def _run(self):
        try:
            while not self.ended.is_set():
                self.command(self.guest)
                self.count += 1
        except Exception as error:      # to be raised where it is seen
            self.error = error

    def __enter__(self):
        if self.command:
            self.thread = start_thread(self._run)
        return self

    def __exit__(self, *_):
        self.ended.set()
        if self.thread:
            self.thread.join()
        if self.error:
            raise self.error


def _round_trips(load, nics):
    """Mean of the NICs' p50 and p99, and what it took."""
    name = f'{load}, {nics} NIC'

    def measure(bench):
        nets = bench.nets[:nics]
        with _Busy(bench.guest, LOADS[load]) as busy, Cpu() as cpu:
            jobs = [bench.guest.spawn(
                parts.burst_command(net, 1, SIZE, PERIOD_US, bench.seconds))
                for net in nets]
            outputs = [bench.guest.wait(job, bench.seconds + 30)
                       for job in jobs]
        found = [key_values(text) for _, text in outputs]
        answered = sum(f['answered'] for f in found)
        commands = {f'{name} commands/s': busy.count / cpu.elapsed} \
            if LOADS[load] else {}
        return {f'{name} p50 us': sum(f['p50_us'] for f in found) / nics,
                f'{name} p99 us': sum(f['p99_us'] for f in found) / nics,
                f'{name} lost %':
                    (1 - answered / sum(f['sent'] for f in found)) * 100,
                f'{name} cores': cpu.cores, **commands}
    return measure


def _stream(load, part):
    """How much `part` carries; CPU would be the monitor's as well."""
    def measure(bench):
        with _Busy(bench.guest, LOADS[load]):
            found = parts.PARTS[part](bench)
        return {f'{load}, {name}': value for name, value in found.items()
                if better(name) == 'more'}
    return measure


PARTS = {**{f'{load}-{nics}': _round_trips(load, nics)
            for nics in (1, NICS) for load in LOADS},
         **{f'{load}-{part}': _stream(load, part)
            for part in ('udp64', 'tcp64k') for load in LOADS}}
