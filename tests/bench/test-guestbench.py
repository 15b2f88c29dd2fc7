#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""The arithmetic of bench-guest.py: what it reads out of the tools' outputs,
and what it makes of many rounds.  Nothing is measured.
"""
import math
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]
                       / 'functional'))

from guestbench import figures, setups                  # noqa: E402
from lib.place import equal                             # noqa: E402
from lib.runner import Suite                            # noqa: E402

QPERF = '''udp_bw:
    send_bw  =  61.4 MB/sec
    recv_bw  =  950 KB/sec
tcp_lat:
    latency  =  1.5 ms
'''
IPERF = '''[ ID] Interval           Transfer     Bitrate         Retr
[  5]   0.00-1.00   sec  62.4 MBytes  523000 Kbits/sec    0    sender
[  5]   0.00-1.00   sec  62.3 MBytes  522000 Kbits/sec         receiver
[SUM]   0.00-1.00   sec   250 MBytes  2097000 Kbits/sec    0    sender
[SUM]   0.00-1.01   sec   249 MBytes  2088000 Kbits/sec         receiver

iperf Done.
'''
PING = '''64 bytes from 10.86.1.1: icmp_seq=1 ttl=64 time=0.534 ms
64 bytes from 10.86.1.1: icmp_seq=2 ttl=64 time=112 ms
64 bytes from 10.86.1.1: seq=3 ttl=64 time=2.5 ms
3 packets transmitted, 3 received, 0% packet loss, time 20ms
'''
BURST = 'bursts=980 late=22 sent=29400 delivered=29399 p50_us=251.5 us=1000041'


def near(got, want):
    """Numbers, the same but for the last digits."""
    if not all(math.isclose(g, w, abs_tol=1e-9) for g, w in zip(got, want)):
        raise AssertionError(f'got {got!r}\nwant {want!r}')


def outputs():
    """Of each tool, in units of one kind."""
    near(sorted(figures.qperf_values(QPERF).values()), [1500, 950e3, 61.4e6])
    equal(figures.iperf_bits(IPERF), 2088e6)
    equal(figures.ping_times(PING), [0.534, 112, 2.5])
    equal(figures.key_values(BURST), {
        'bursts': 980, 'late': 22, 'sent': 29400, 'delivered': 29399,
        'p50_us': 251.5, 'us': 1000041})


def percentiles():
    """Of 101 values in any order."""
    values = [100 - i for i in range(101)]
    equal([figures.percentile(values, share) for share in (0, 0.5, 0.99, 1)],
          [0, 50, 99, 100])
    equal(figures.percentile([7], 0.99), 7)


def ways():
    """Each unit says which way is better."""
    for name, way in (('UDP 64 kpps', 'more'), ('TCP 64K Mb/s', 'more'),
                      ('tcp_lat us', 'less'), ('mixed ping p99 ms', 'less'),
                      ('TCP x4 CPU s/Gb', 'less'),
                      ('UDP 64 CPU s/Mpkt', 'less'),
                      ('tcp_lat CPU s/ktrans', 'less'),
                      ('UDP 64 lost %', None), ('ping cores', None),
                      ('TCP 64K interrupts/s', None)):
        equal((name, figures.better(name)), (name, way))


def intervals():
    """The median, with an interval that is inside the values."""
    equal(figures.interval([3]), (3, 3, 3))
    equal(figures.interval([2, 2, 2, 2]), (2, 2, 2))
    mid, low, high = figures.interval([1, 9, 5, 4, 6, 5, 5])
    equal(mid, 5)
    equal(1 <= low <= 5 <= high <= 9, True)
    # The same values give the same interval
    equal(figures.interval([1, 9, 5, 4, 6, 5, 5]), (mid, low, high))


def ratio():
    """One by the other of the same round, not of medians."""
    one = [{'a us': 10, 'b lost %': 1, 'c kpps': 1},
           {'a us': 30, 'b lost %': 1, 'c kpps': 3},
           {'a us': 20, 'b lost %': 1, 'c kpps': 8}]
    other = [{'a us': 5, 'b lost %': 1, 'c kpps': 0},
             {'a us': 60, 'b lost %': 1, 'c kpps': 2},
             {'a us': 20, 'b lost %': 1, 'c kpps': 2}]
    found = figures.ratios({'x': one, 'y': other, 'z': []},
                           [('x', 'y'), ('x', 'z'), ('w', 'x')])
    equal(list(found), [('x', 'y', 'a us'), ('x', 'y', 'c kpps')])
    equal(found['x', 'y', 'a us'], (1, 0.5, 2))     # 2, 0.5, 1
    equal(found['x', 'y', 'c kpps'][0], 2.75)       # -, 1.5, 4


def regret():
    """How much worse than the best of the others, in percent."""
    near([figures.regret(90, [100, 50], 'more'),
          figures.regret(110, [50, 100], 'more'),
          figures.regret(110, [100, 400], 'less'),
          figures.regret(100, [200, 125], 'less')], [10, -10, 10, -20])


def regrets():
    """The best of the others is chosen in each round."""
    results = {'bh': [{'a us': 100, 'n cores': 1}, {'a us': 200, 'n cores': 1},
                      {'a us': 100, 'n cores': 1}],
               'timer': [{'a us': 200, 'n cores': 1},
                         {'a us': 100, 'n cores': 1},
                         {'a us': 200, 'n cores': 1}],
               'ours': [{'a us': 110, 'n cores': 1},
                        {'a us': 120, 'n cores': 1},
                        {'a us': 130, 'n cores': 1}]}
    found = figures.regrets(results, ['ours', 'absent'], ['bh', 'timer'])
    equal(list(found), [('ours', 'a us')])
    near(found['ours', 'a us'], (20, 10, 30))
    equal(figures.regrets(results, ['ours'], ['bh', 'absent']), {})


def verdicts():
    """A goal is met or MISSED; an aim is said but does not count."""
    pair = 'ours-adaptive', 'stock-timer'
    for name, value, word in (
            ('UDP 64 kpps', 1.0, 'goal >= 1.0: met'),
            ('UDP 64 kpps', 0.99, 'goal >= 1.0: MISSED'),
            ('TCP 64K CPU s/Gb', 1.01, 'goal <= 1.0: MISSED'),
            ('TCP 1460 Mb/s', 0.91, 'aim >= 0.9: met'),
            ('TCP 1460 Mb/s', 0.5, 'aim >= 0.9: not'),
            ('tcp_lat us', 9.0, '')):
        equal(setups.verdict(pair, name, value), word)
    for setup, name, value, word in (
            ('ours-adaptive', 'mixed ping ms', 5.0, 'goal <= 5.0: met'),
            ('ours-adaptive', 'mixed ping ms', 5.1, 'goal <= 5.0: MISSED'),
            ('ours-adaptive', 'TCP 64K Mb/s', 50.0, ''),
            ('ours-adaptive-pin', 'mixed ping ms', 50.0, '')):
        equal(setups.regret_verdict(setup, name, value), word)


def twins():
    """Only what has two processes can be pinned to two CPUs."""
    found = setups.twins(['stock-bh', 'ours-bh'])
    equal({name: setup.pinned for name, setup in found.items()},
          {'stock-bh': False, 'ours-bh': False, 'ours-bh-pin': True})


def main():
    """All cases."""
    with Suite() as suite:
        for case in (outputs, percentiles, ways, intervals, ratio, regret,
                     regrets, verdicts, twins):
            suite.run(f'bench: {case.__name__}', case)


main()
