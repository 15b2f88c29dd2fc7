#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""`make demo`: a stock Linux guest's traffic through our virtio-net.

Purpose: the short proof.  Our qemu-system-x86_64 is started with an ordinary
command line; the guest (a stock Debian kernel) pings the host and exchanges
TCP and UDP with it; the counters of qemu-net-daemon tell what the device did
meanwhile.

Data flow: servers on this machine's loopback, which the guest reaches as
10.0.2.2 through libslirp; the guest is told what to do over a serial port,
and the daemon is asked for its counters over QMP.

States: each step prints a line when it begins and its result when it is
done.  A step that fails ends the demo with status 1 and the reason; nothing
is left running.

Limits: rates are what this guest on this machine gave, once.  KVM is used
only if it really runs a guest: that /dev/kvm can be opened is not enough.
"""

import argparse
import contextlib
import hashlib
import os
import pathlib
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import time

TOP = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(TOP / 'tests' / 'functional'))

from lib import env                                     # noqa: E402
from lib.guest import Guest                             # noqa: E402
from lib.process import wait_for                        # noqa: E402
from lib.qmp import Qmp                                 # noqa: E402
from lib.runner import Skip                             # noqa: E402
from lib.servers import (TcpSink, TcpSource, UdpSink,   # noqa: E402
                         UdpSource)

KVM_PROBE_SECONDS = 6
TCP_MIB = 32
UDP_BYTES = 1400
UDP_OUT = 20000
UDP_IN = 4000
UDP_IN_GAP_US = 250         # libslirp's socket has a small buffer
UDP_IN_TIMEOUT_MS = 2000
PINGS = 20


class DemoError(Exception):
    """A step failed; the text is the reason."""


class Loopback:
    """The host side of -netdev user, as the servers' classes see it."""
    netns = servers_netns = None
    kind = 'user'
    bind_addr = '127.0.0.1'
    host_addr = '10.0.2.2'
    guest_addr = '10.0.2.15'


@contextlib.contextmanager
def step(title):
    """Shows that something is under way; yields a list for its result."""
    print(f'  {title:<38}', end=' ', flush=True)
    start = time.monotonic()
    result = []
    try:
        yield result
    except BaseException:
        print('failed', flush=True)
        raise
    result.append(f'{time.monotonic() - start:.1f} s')
    print(', '.join(result), flush=True)


# ---- before the guest --------------------------------------------------------


def kvm_runs(qemu, image):
    """Whether a guest's kernel gets as far as its first message."""
    if not os.access('/dev/kvm', os.R_OK | os.W_OK):
        return False
    kernel, initrd = image
    command = [qemu, '-accel', 'kvm', '-nodefaults', '-no-user-config',
               '-display', 'none', '-m', '256M', '-kernel', kernel,
               '-initrd', initrd, '-serial', 'stdio',
               '-append', 'console=ttyS0 earlyprintk=ttyS0']
    with subprocess.Popen(command, stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE,
                          stderr=subprocess.DEVNULL) as probe:
        os.set_blocking(probe.stdout.fileno(), False)
        end = time.monotonic() + KVM_PROBE_SECONDS
        seen = b''
        while b'Linux version' not in seen and probe.poll() is None and \
                time.monotonic() < end:
            seen += probe.stdout.read() or b''
            time.sleep(0.05)
        probe.kill()
    return b'Linux version' in seen


def show_command(guest):
    """The command line, without what only serves to watch the guest."""
    hidden = {'-serial', '-chardev', '-mon', '-x-vnet-qmp'}
    program, *words = guest.process.argv
    print(f'\n    {program}', end='')
    option = ''
    for word in words:
        option = word if word.startswith('-') else option
        if option in hidden:
            continue
        shown = f"'{word}'" if ' ' in word else word
        print(f' \\\n        {shown}' if word == option else f' {shown}',
              end='')
    print('\n')


# ---- counters ----------------------------------------------------------------


class Counters:
    """What the daemon counted, as sums over the NIC's rings."""

    def __init__(self, path):
        wait_for(lambda: os.path.exists(path), 10, f'QMP socket {path}')
        sock = socket.socket(socket.AF_UNIX)
        sock.connect(path)
        self._qmp = Qmp(sock)
        self._last = self._read()

    def _read(self):
        nic = self._qmp.execute('query-virtio-net-stats')[0]
        sums = {}
        for ring in nic['queues']:
            for name, value in ring.items():
                if isinstance(value, int):
                    key = (ring['direction'], name)
                    sums[key] = sums.get(key, 0) + value
        return sums

    def since_last(self):
        """{(direction, name): difference} since the last call."""
        now, last = self._read(), self._last
        self._last = now
        return {key: now[key] - last[key] for key in now}


class Table:
    """A row per kind of traffic."""
    HEADS = ('', 'result', 'packets out', 'packets in', 'kicks',
             'interrupts', 'packets per flush')

    def __init__(self, counters):
        self._counters = counters
        self._rows = [self.HEADS]

    def add(self, title, result, busy):
        """What happened since the last row; @busy is the direction whose
        batches are shown."""
        d = self._counters.since_last()
        flushes = d[(busy, 'flushes')]
        batch = d[(busy, 'packets')] / flushes if flushes else 0
        self._rows.append((
            title, result, str(d[('tx', 'packets')]),
            str(d[('rx', 'packets')]),
            str(d[('tx', 'kicks')] + d[('rx', 'kicks')]),
            str(d[('tx', 'calls')] + d[('rx', 'calls')]), f'{batch:.1f}'))

    def show(self):
        widths = [max(map(len, column)) for column in zip(*self._rows)]
        print()
        for row in self._rows:
            cells = [row[0].ljust(widths[0]), row[1].rjust(widths[1])]
            cells += [cell.rjust(width)
                      for cell, width in zip(row[2:], widths[2:])]
            print('  ' + '  '.join(cells))
        print()


# ---- traffic -------------------------------------------------------------


def values(text):
    return {key: int(value)
            for key, value in re.findall(r'(\w+)=(\d+)', text)}


def ping(guest, net, table):
    with step(f'ping {net.host_addr}') as result:
        _, output = guest.run(f'/usr/bin/ping -n -q -i 0.05 -c {PINGS} '
                              f'{net.host_addr}', timeout=60)
        counts = re.search(r'(\d+) packets transmitted, (\d+) received',
                           output)
        times = re.search(r'= ([\d.]+)/([\d.]+)/([\d.]+)', output)
        if not counts or not times or counts[1] != counts[2]:
            raise DemoError(f'ping: {output.strip()}')
        result.append(f'{counts[2]} of {counts[1]} answered')
    table.add('ping', f'{times[2]} ms', 'tx')


def mbit_per_s(data):
    return 8 * data['bytes'] / data['us']


def tcp_out(guest, net, table):
    with step(f'TCP guest to host, {TCP_MIB} MiB') as result:
        guest.must(f'head -c {TCP_MIB << 20} /dev/urandom >/tmp/data',
                   timeout=60)
        want = guest.must('sha256sum /tmp/data', timeout=60).split()[0]
        with TcpSink(net) as sink:
            data = values(guest.must(
                f'nettool tcp-put {net.host_addr} {sink.port} /tmp/data',
                timeout=120))
            if sink.sums != [(TCP_MIB << 20, want)]:
                raise DemoError(f'TCP to the host: got {sink.sums}, the '
                                f'guest sent {want}')
        result.append('checksums match')
    table.add('TCP out', f'{mbit_per_s(data):.0f} Mb/s', 'tx')
    return want


def tcp_in(guest, net, table):
    with step(f'TCP host to guest, {TCP_MIB} MiB') as result:
        content = os.urandom(TCP_MIB << 20)
        with TcpSource(net, content) as source:
            data = values(guest.must(
                f'nettool tcp-get {net.host_addr} {source.port} /tmp/data',
                timeout=120))
        got = guest.must('sha256sum /tmp/data', timeout=60).split()[0]
        if got != hashlib.sha256(content).hexdigest():
            raise DemoError(f'TCP to the guest: the sum is {got}')
        guest.run('rm /tmp/data')
        result.append('checksums match')
    table.add('TCP in', f'{mbit_per_s(data):.0f} Mb/s', 'rx')


def udp_out(guest, net, table):
    with step(f'UDP guest to host, {UDP_OUT} x {UDP_BYTES} B') as result:
        with UdpSink(net) as sink:
            data = values(guest.must(
                f'nettool udp-send {net.host_addr} {sink.port} {UDP_OUT} '
                f'{UDP_BYTES} 0', timeout=120))
            sink.idle()
            flow = sink.flows[1]
        if flow.bad or not flow.good:
            raise DemoError(f'UDP to the host: {flow}')
        result.append(f'{flow.good} arrived')
    table.add('UDP out', f'{1000 * data["sent"] / data["us"]:.1f} kpps', 'tx')


def udp_in(guest, net, table):
    with step(f'UDP host to guest, {UDP_IN} x {UDP_BYTES} B') as result:
        with UdpSource(net, UDP_IN_GAP_US) as source:
            _, output = guest.run(
                f'nettool udp-get {net.host_addr} {source.port} {UDP_IN} '
                f'{UDP_BYTES} {UDP_IN_TIMEOUT_MS}', timeout=120)
        data = values(output)
        if not data.get('good') or data.get('bad'):
            raise DemoError(f'UDP to the guest: {output.strip()}')
        result.append(f'{data["good"]} arrived')
    # A datagram that is missing at the end is waited for.
    waited = 0 if data['good'] == UDP_IN else 1000 * UDP_IN_TIMEOUT_MS
    table.add('UDP in', f'{1000 * data["good"] / (data["us"] - waited):.1f} '
              'kpps', 'rx')


# ---- the demo ------------------------------------------------------------


def prepare(args):
    """(accelerator, launcher) once everything needed is there."""
    launcher = env.our_program('qemu-system-x86_64')
    env.our_program('qemu-net-daemon')
    with step('guest image'):
        image = env.guest_image()
    if args.accel:
        return args.accel, launcher
    with step('does KVM run a guest here?') as result:
        accel = 'kvm' if kvm_runs(env.stock_qemu(), image) else 'tcg'
        result.append('yes' if accel == 'kvm' else 'no: TCG')
    return accel, launcher


def run(args):
    print('A stock Linux guest on our virtio-net\n')
    env.ACCEL, launcher = prepare(args)
    net = Loopback()
    tmp = tempfile.mkdtemp(prefix='vnet-demo-')
    try:
        nic = ['-netdev', 'user,id=n0', '-device',
               f'virtio-net-pci,netdev=n0,tx={args.tx}']
        with step('boot the guest'):
            guest = Guest('demo', launcher,
                          nic + ['-x-vnet-qmp', f'{tmp}/qmp.sock'])
        with guest:
            show_command(guest)
            with step('DHCP') as result:
                lease = guest.must('netup eth0 dhcp', timeout=60)
                result.append(re.search(r'ip=(\S+)', lease)[1])
            table = Table(Counters(f'{tmp}/qmp.sock'))
            ping(guest, net, table)
            tcp_out(guest, net, table)
            tcp_in(guest, net, table)
            udp_out(guest, net, table)
            udp_in(guest, net, table)
            table.show()
    finally:
        shutil.rmtree(tmp, ignore_errors=True)
    other = 'timer' if args.tx == 'bh' else 'bh'
    print('Next:')
    for command, what in (
            (f'scripts/demo.py --tx {other}', 'the other way to send'),
            ('make bench-guest', 'against the stock NIC, on a tap'),
            (f'{os.path.relpath(launcher)} ...',
             'in a command line of yours')):
        print(f'  {command:<36}  {what}')


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('--builddir', default='build', metavar='DIR')
    parser.add_argument('--tx', choices=('bh', 'timer'), default='bh')
    parser.add_argument('--accel', choices=('kvm', 'tcg'),
                        help='default: KVM if it runs a guest')
    args = parser.parse_args()
    env.BUILD_DIR = pathlib.Path(args.builddir).resolve()
    try:
        run(args)
    except (DemoError, Skip, AssertionError, TimeoutError, OSError,
            RuntimeError) as error:
        print(f'demo: {error}', file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
    return 0


if __name__ == '__main__':
    sys.exit(main())
