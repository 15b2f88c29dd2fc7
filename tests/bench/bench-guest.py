#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Our virtio-net against the stock QEMU's own, in the same guest.

Rounds of all set-ups, interleaved in one run, each a fresh boot of the same
Debian kernel on a tap.  In a round all guests are up, and one works at a time:
each figure is taken from all of them in turn and then again the other way
round, so that what is compared was measured within seconds, around the same
moment, and a machine that gets slower favours nobody.  The order rotates from
round to round.  For each figure: the median over the rounds, and the ratio
ours/stock of the same round, as median with a bootstrap interval of 95 %.
Machines are shared and noisy: only the ratios mean anything.

CPU is the busy time of the whole machine (/proc/stat), so that nobody's
thread is forgotten, over the work done in it: per Mpkt for datagrams, per Gb
for streams, per 1000 transactions for latency.

    bench-guest.py [--rounds N] [--seconds S] [--goals] [--setups A,B,...]

--goals also compares the medians with what the project promises and ends
with 1 if one is missed.
"""
import argparse
import contextlib
import json
import os
import pathlib
import random
import re
import statistics
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]
                       / 'functional'))

from lib import env                                     # noqa: E402
from lib.guest import Guest, nic_args                   # noqa: E402
from lib.hostnet import TapNet                          # noqa: E402
from lib.process import Process, wait_for               # noqa: E402
from lib.runner import Skip                             # noqa: E402

# name -> (ours?, properties of the NIC)
SETUPS = {
    'stock-bh': (False, {'tx': 'bh'}),
    'stock-timer': (False, {'tx': 'timer'}),
    'ours-bh': (True, {'tx': 'bh'}),
    'ours-timer': (True, {'tx': 'timer'}),
    'ours-adaptive': (True, {'tx': 'adaptive'}),
}
PAIRS = (('ours-bh', 'stock-bh'), ('ours-timer', 'stock-timer'),
         ('ours-adaptive', 'stock-bh'), ('ours-adaptive', 'stock-timer'))

# qperf counts in powers of ten.
_UNITS = {'bytes/sec': 1, 'KB/sec': 1e3, 'MB/sec': 1e6, 'GB/sec': 1e9,
          'ns': 1e-3, 'us': 1, 'ms': 1e3, 'sec': 1e6}


def qperf_values(text):
    """{'send_bw': bytes/s, 'latency': us, ...}"""
    found = re.findall(r'^\s+(\w+)\s+=\s+([0-9.]+) (\S+)$', text, re.M)
    return {name: float(value) * _UNITS[unit] for name, value, unit in found
            if unit in _UNITS}


def busy_seconds():
    """CPU seconds that anybody has used on this machine."""
    with open('/proc/stat', encoding='ascii') as stat:
        fields = [int(x) for x in stat.readline().split()[1:9]]
    idle = fields[3] + fields[4]
    return (sum(fields) - idle) / os.sysconf('SC_CLK_TCK')


class Bench:
    """One booted guest, with a qperf server in it and one at the other end."""

    def __init__(self, guest, net, seconds):
        self.guest = guest
        self.net = net
        self.seconds = seconds

    def qperf(self, test, *options):
        """(values, busy CPU seconds) of one test from the guest."""
        command = ' '.join(['qperf', self.net.host_addr, '-t',
                            str(self.seconds), *options, test])
        before = busy_seconds()
        text = self.guest.must(command, timeout=self.seconds + 30)
        return qperf_values(text), busy_seconds() - before

    def latency(self):
        """TCP request/response: microseconds one way, as qperf has it."""
        values, cpu = self.qperf('tcp_lat')
        round_trips = self.seconds * 1e6 / (2 * values['latency'])
        return {'tcp_lat us': values['latency'],
                'tcp_lat CPU s/ktrans': cpu / round_trips * 1e3}

    def ping(self):
        """Average of 100 pings, 10 ms apart."""
        text = self.guest.must(f'ping -c 100 -i 0.01 -q {self.net.host_addr}')
        average = re.search(r'= [0-9.]+/([0-9.]+)/', text).group(1)
        return {'ping ms': float(average)}

    def udp(self, size):
        """Datagrams from the guest: sent, and received at the host."""
        values, cpu = self.qperf('udp_bw', '-m', str(size))
        sent = values['send_bw'] / size
        received = values['recv_bw'] / size
        return {f'UDP {size} kpps': received / 1e3,
                f'UDP {size} lost %': max(0, 1 - received / sent) * 100,
                f'UDP {size} CPU s/Mpkt':
                    cpu / (received * self.seconds) * 1e6}

    def _stream(self, name, values, cpu):
        bits = values['bw'] * 8
        return {f'{name} Mb/s': bits / 1e6,
                f'{name} CPU s/Gb': cpu / (bits * self.seconds) * 1e9}

    def tcp(self, name, *options):
        """A stream from the guest."""
        return self._stream(name, *self.qperf('tcp_bw', *options))

    def tcp_receive(self):
        """A stream to the guest, of 64 KiB writes: the roles swapped."""
        before = busy_seconds()
        text = subprocess.run(
            self.net.netns.prefix() +
            ['qperf', self.net.guest_addr, '-ws', '10', '-t',
             str(self.seconds), '-m', '64K', 'tcp_bw'],
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=True,
            text=True, timeout=self.seconds + 30).stdout
        cpu = busy_seconds() - before
        return self._stream('TCP receive', qperf_values(text), cpu)

    def interrupts(self):
        """Interrupts of the NIC so far, as the guest counts them."""
        text = self.guest.must('cat /proc/interrupts')
        return sum(int(line.split()[1]) for line in text.splitlines()
                   if 'virtio' in line)

    def tcp_64k(self):
        """A stream of large writes, and its interrupts."""
        before = self.interrupts()
        figures = self.tcp('TCP 64K', '-m', '64K')
        figures['TCP 64K interrupts/s'] = \
            (self.interrupts() - before) / self.seconds
        return figures


PARTS = {
    'lat': Bench.latency,
    'ping': Bench.ping,
    'udp64': lambda b: b.udp(64),
    'udp1400': lambda b: b.udp(1400),
    'tcp64k': Bench.tcp_64k,
    'tcp1460': lambda b: b.tcp('TCP 1460', '-m', '1460'),
    'tcprx': Bench.tcp_receive,
}


@contextlib.contextmanager
def qperf_server(net):
    """A server at the host's side of `net`."""
    log = env.log_dir('bench-qperf') / 'log'
    server = Process(['qperf'], log, net.netns)
    try:
        # Its port: 19765; it has no other sign of life.
        wait_for(lambda: b':4D35 ' in subprocess.run(
            net.netns.prefix() + ['cat', '/proc/net/tcp', '/proc/net/tcp6'],
            stdout=subprocess.PIPE, check=True).stdout, 10, 'qperf listens')
        yield
    finally:
        server.kill()


@contextlib.contextmanager
def booted(setup, seconds):
    """The Bench of a fresh guest."""
    ours, properties = SETUPS[setup]
    stock = env.stock_qemu_11()
    binary = env.our_program('qemu-system-x86_64') if ours else stock
    with TapNet() as net, qperf_server(net), \
            Guest(f'bench-{setup}', binary, nic_args(net, **properties),
                  netns=net.netns, extra_env={'QEMU_STOCK': str(stock)}) \
            as guest:
        net.configure(guest)
        guest.must(f'ping -c 3 -i 0.2 {net.host_addr}')
        guest.spawn('qperf')
        yield Bench(guest, net, seconds)


def measure(setups, parts, seconds, progress):
    """{set-up: figures} of one round."""
    figures = {setup: {} for setup in setups}
    with contextlib.ExitStack() as stack:
        progress('boot')
        benches = {setup: stack.enter_context(booted(setup, seconds))
                   for setup in setups}
        for part in parts:
            progress(part)
            there = {s: PARTS[part](benches[s]) for s in setups}
            back = {s: PARTS[part](benches[s]) for s in reversed(setups)}
            for setup in setups:
                figures[setup].update(
                    (name, (value + back[setup][name]) / 2)
                    for name, value in there[setup].items())
    return figures


def interval(values, resamples=2000):
    """Median with its 95 % bootstrap interval."""
    rng = random.Random(1)
    medians = sorted(statistics.median(rng.choices(values, k=len(values)))
                     for _ in range(resamples))
    return (statistics.median(values), medians[int(resamples * 0.025)],
            medians[int(resamples * 0.975) - 1])


def show(value):
    """Three digits are all that such a figure has."""
    return f'{value:.3g}' if abs(value) < 1000 else f'{value:.0f}'


def table(results):
    """Medians, one row a figure."""
    setups = [s for s in SETUPS if results[s]]
    names = list(results[setups[0]][0])
    width = max(len(n) for n in names)
    lines = [' ' * width + ''.join(f'{s:>26}' for s in setups)]
    for name in names:
        cells = []
        for setup in setups:
            mid, low, high = interval([r[name] for r in results[setup]])
            cells.append(f'{show(mid)} [{show(low)} {show(high)}]')
        lines.append(f'{name:{width}}' + ''.join(f'{c:>26}' for c in cells))
    return lines


def ratios(results):
    """{(ours, stock, figure): (median, low, high)} of the rounds' ratios."""
    found = {}
    for ours, stock in PAIRS:
        if not results[ours] or not results[stock]:
            continue
        for name in results[ours][0]:
            if name.endswith('lost %'):
                continue                    # mostly none: no ratio
            pairs = [(a[name], b[name]) for a, b in
                     zip(results[ours], results[stock]) if b[name]]
            if pairs:
                found[ours, stock, name] = interval([a / b for a, b in pairs])
    return found


# (ours, stock) -> figure -> (at least, at most)
GOALS = {
    ('ours-bh', 'stock-bh'): {
        'UDP 64 kpps': (1.2, None), 'UDP 1400 kpps': (1.2, None),
        'TCP 64K Mb/s': (1.1, None), 'TCP receive Mb/s': (1.1, None),
        'tcp_lat us': (None, 1.1),
        'UDP 64 CPU s/Mpkt': (None, 1.0),
        'UDP 1400 CPU s/Mpkt': (None, 1.0),
        'TCP 64K CPU s/Gb': (None, 1.0),
        'TCP receive CPU s/Gb': (None, 1.0),
        'tcp_lat CPU s/ktrans': (None, 1.0)},
    ('ours-timer', 'stock-timer'): {
        'UDP 64 kpps': (0.95, None),
        'UDP 1400 kpps': (0.95, None),
        'TCP 64K Mb/s': (0.95, None),
        'TCP receive Mb/s': (0.95, None),
        'tcp_lat us': (None, 1.1)},
    ('ours-adaptive', 'stock-bh'): {'tcp_lat us': (None, 1.15)},
    ('ours-adaptive', 'stock-timer'): {
        'UDP 64 kpps': (1.0, None), 'UDP 1400 kpps': (1.0, None),
        'TCP receive Mb/s': (1.0, None),
        'TCP 64K Mb/s': (0.95, None),
        'UDP 64 CPU s/Mpkt': (None, 0.95),
        'UDP 1400 CPU s/Mpkt': (None, 0.95),
        'TCP 64K CPU s/Gb': (None, 1.0),
        'TCP receive CPU s/Gb': (None, 1.0)},
}


def verdict(pair, name, value):
    """'' without a goal, else what became of it."""
    least, most = GOALS.get(pair, {}).get(name, (None, None))
    if least is not None:
        return f'goal >= {least}: ' + ('met' if value >= least else 'MISSED')
    if most is not None:
        return f'goal <= {most}: ' + ('met' if value <= most else 'MISSED')
    return ''


def report(results):
    """Prints all; returns how many goals were missed."""
    print('\n'.join(table(results)))
    missed = 0
    print('\nours / stock, median of the rounds\' ratios [95 %]')
    for (ours, stock, name), (mid, low, high) in ratios(results).items():
        word = verdict((ours, stock), name, mid)
        missed += 'MISSED' in word
        print(f'{ours:13} {stock:11} {name:24} {mid:6.2f} '
              f'[{low:.2f} {high:.2f}]  '
              f'{word}'.rstrip())
    return missed


def main():
    """See the top of the file."""
    parser = argparse.ArgumentParser(description='Compare with stock QEMU.')
    parser.add_argument('--rounds', type=int, default=3)
    parser.add_argument('--seconds', type=int, default=2,
                        help='of each measurement, two a figure and round')
    parser.add_argument('--setups', default=','.join(SETUPS))
    parser.add_argument('--only', default='', help=','.join(PARTS))
    parser.add_argument('--builddir')
    parser.add_argument('--goals', action='store_true')
    parser.add_argument('--json', help='keep all figures in this file')
    options = parser.parse_args()
    if options.builddir:
        env.BUILD_DIR = pathlib.Path(options.builddir).resolve()
    setups = options.setups.split(',')
    parts = options.only.split(',') if options.only else list(PARTS)
    results = {setup: [] for setup in SETUPS}
    start = time.monotonic()

    def progress(what):
        print(f'[{time.monotonic() - start:5.0f} s] round {number + 1} of '
              f'{options.rounds}: {what}', file=sys.stderr, flush=True)

    try:
        for number in range(options.rounds):
            shift = number % len(setups)
            figures = measure(setups[shift:] + setups[:shift], parts,
                              options.seconds, progress)
            for setup in setups:
                results[setup].append(figures[setup])
    except Skip as reason:
        sys.exit(f'bench-guest: {reason}')
    if options.json:
        pathlib.Path(options.json).write_text(json.dumps(results, indent=1),
                                              encoding='ascii')
    missed = report(results)
    sys.exit(1 if options.goals and missed else 0)


if __name__ == '__main__':
    main()
