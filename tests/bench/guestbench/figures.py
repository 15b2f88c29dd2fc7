# SPDX-License-Identifier: GPL-2.0-or-later
"""Numbers: out of the tools' outputs, and out of many rounds into one line.

Nothing here measures anything.  A figure has a name that ends with its unit,
and the unit says which way is better (better()).  The results of one machine
are {set-up: [{figure: value} of each round]}; what is compared is always of
the same round.
"""
import random
import re
import statistics

# qperf counts in powers of ten.
_UNITS = {'bytes/sec': 1, 'KB/sec': 1e3, 'MB/sec': 1e6, 'GB/sec': 1e9,
          'ns': 1e-3, 'us': 1, 'ms': 1e3, 'sec': 1e6}
_MORE = ('kpps', 'Mb/s')
_LESS = ('us', 'ms', 'CPU s/Mpkt', 'CPU s/Gb', 'CPU s/ktrans')


def qperf_values(text):
    """{'send_bw': bytes/s, 'latency': us, ...}"""
    found = re.findall(r'^\s+(\w+)\s+=\s+([0-9.]+) (\S+)$', text, re.M)
    return {name: float(value) * _UNITS[unit] for name, value, unit in found
            if unit in _UNITS}


def iperf_bits(text):
    """Bits per second that the receiver had, of all streams of iperf3 -f k
    -P N together."""
    found = re.search(r'^\[SUM\].* ([0-9.]+) Kbits/sec +receiver$', text,
                      re.M)
    return float(found.group(1)) * 1e3


def ping_times(text):
    """Milliseconds of each answer."""
    return [float(x) for x in re.findall(r'time=([0-9.]+) ms', text)]


def key_values(text):
    """The numbers of a line of key=value."""
    return {key: float(value)
            for key, value in re.findall(r'(\w+)=([0-9.]+)', text)}


def percentile(values, share):
    """The value below which `share` of the others are."""
    return sorted(values)[int(share * (len(values) - 1))]


def better(name):
    """'more' or 'less'; None for a figure that is neither good nor bad."""
    if name.endswith(_MORE):
        return 'more'
    return 'less' if name.endswith(_LESS) else None


def interval(values, resamples=2000):
    """(median, low, high): with its 95 % bootstrap interval."""
    rng = random.Random(1)
    medians = sorted(statistics.median(rng.choices(values, k=len(values)))
                     for _ in range(resamples))
    return (statistics.median(values), medians[int(resamples * 0.025)],
            medians[int(resamples * 0.975) - 1])


def ratios(results, pairs):
    """{(one, other, figure): interval} of the rounds' ratios one / other.

    Not of losses, which are none in most rounds; a round without a figure of
    the other's is left out.
    """
    found = {}
    for one, other in pairs:
        if not results.get(one) or not results.get(other):
            continue
        for name in results[one][0]:
            values = [a[name] / b[name] for a, b in
                      zip(results[one], results[other]) if b[name]]
            if values and not name.endswith('lost %'):
                found[one, other, name] = interval(values)
    return found


def regret(value, others, way):
    """By how many percent `value` is worse than the best of `others`; less
    than 0 if it is better than all.  `way` as better() has it."""
    if way == 'more':
        return (1 - value / max(others)) * 100
    return (value / min(others) - 1) * 100


def regrets(results, setups, others):
    """{(set-up, figure): interval} of the rounds' regrets, in percent.

    The best of `others` is chosen in each round anew.
    """
    found = {}
    if not all(results.get(other) for other in others):
        return found
    for setup in setups:
        rounds = list(zip(results.get(setup) or [],
                          *(results[other] for other in others)))
        for name in rounds[0][0] if rounds else ():
            way = better(name)
            values = [regret(mine[name], [r[name] for r in theirs], way)
                      for mine, *theirs in rounds
                      if way and all(r[name] for r in theirs)]
            if values:
                found[setup, name] = interval(values)
    return found
