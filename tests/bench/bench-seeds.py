#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""The experiments that this project grew from, by vnet-bench.

Each experiment is a table of cells: a load (x) and a set-up (series), of which
the first one is the base.  In a round every cell is measured once, for a
fraction of a second, in an order that rotates from round to round; a cell's
value is the median over the rounds, and its ratio the median of the ratios to
the base in the same round.  The brackets are the least and the most of the
rounds.  Only ratios mean anything on a machine that is shared.

    bench-seeds.py [--builddir DIR] [--rounds N] [--only NAME,...] [--render]

Raw figures are kept in BUILDDIR/bench-seeds; pages with tables, and plots by
gnuplot, go to docs/benchmarks.  --render makes those anew from figures kept.
"""
import argparse
import json
import math
import pathlib
import statistics
import subprocess
import sys
import textwrap
import time

TOP = pathlib.Path(__file__).resolve().parents[2]
OUT = TOP / 'docs' / 'benchmarks'
MODES = {'bh': ['--props', 'tx=bh'], 'timer': ['--props', 'tx=timer'],
         'adaptive': ['--props', 'tx=adaptive'],
         'bh, tx-thread': ['--props', 'tx=bh,tx-thread=on']}
EACH = ['--event-idx', 'off', '--props', 'tx-coal-usecs=0,x-txhold=0']
COALESCED = ['--event-idx', 'off', '--props',
             'tx-coal-frames=8,tx-coal-usecs=64,x-txhold=0']
NONE = ['--completions', 'orphan', '--event-idx', 'off', '--props',
        'tx-coal-usecs=0,x-txhold=0']
RATES = (5000, 10000, 20000, 50000, 100000)
BUDGETS = (64, 128, 256, 512, 1024, 2048, 4096, 0)


def goodput(load):
    """What a load is about: (figure, scale, unit)."""
    if load.startswith('rr'):
        return 'rounds', 1e-3, 'k/s'
    return 'mbps', 1, 'Mb/s'


def loads(*names):
    """x -> (arguments, figure) for loads that are told by their goodput."""
    return {name: (['--load', name], goodput(name)) for name in names}


def expected_calls(rate):
    """Calls/s for a frame each 1/rate: the first of a call is held for 64 us,
    or until seven more have come."""
    return rate / min(8, 1 + math.floor(rate * 64e-6))


CALLS = ('tx_calls', 1e-3, 'k/s')
EXPERIMENTS = {
    'tx-mode': {
        'title': 'Transmit mitigation over write sizes',
        'xs': loads('udp:64', 'udp:1400', 'tcp:256', 'tcp:1460', 'tcp:16384',
                    'tcp:65536', 'rr', 'rr16'),
        'series': MODES,
        'extra': (('kicks', 1e-3, 'kicks, 1000/s'),
                  ('tx_calls', 1e-3, 'transmit interrupts, 1000/s'),
                  ('cpu_ns_pkt', 1, 'CPU of the device, ns a packet')),
        'args': ['--warm-up', '0.5'],
        'published': [
            'The 2008 series, 1k writes to the host: 0.645 Gb/s with the '
            '150 us timer, 0.790 (1.22 of that) with the bottom half, 0.847 '
            '(1.31) with the lock dropped around the tap write.'],
        'about': 'A NIC on a tap, one guest.  ``tx=bh`` is the base; a guest '
                 'of ``rr`` has one request under way, one of ``rr16`` '
                 'sixteen.'},
    'tx-interrupts': {
        'title': 'Transmit interrupts: each, coalesced, none',
        'xs': loads('udp:64', 'udp:256', 'udp:512', 'rr'),
        'series': {'each': EACH, '8 frames or 64 us': COALESCED,
                   'none': NONE},
        'args': [],
        'published': [
            'Coalesced (tx-frames=8, tx-usecs=64): +24 % at 64 bytes, '
            '+130 % at 256, +155 % at 512; TCP_RR -5 to -24 %.'],
        'about': 'The driver asks for every interrupt (no ``EVENT_IDX``); '
                 '``none`` gives packets up when they are sent and looks at '
                 'the ring when it is nearly full.  ``tx=bh`` without holds.'},
    'interrupt-count': {
        'title': 'Coalesced interrupts against what the rate says',
        'xs': {f'{rate // 1000}k/s':
               (['--load', 'clock', '--rate', str(rate)], CALLS)
               for rate in RATES},
        'series': {'each': EACH, '8 frames or 64 us': COALESCED},
        'args': [],
        'expected': {f'{rate // 1000}k/s': expected_calls(rate) / 1e3
                     for rate in RATES},
        'published': [],
        'about': 'One frame of 64 bytes each 1/rate.  Expected: the first '
                 'frame of a call is held for 64 us, or until seven more have '
                 'come, so rate / min(8, 1 + floor(rate x 64 us)).  A deadline '
                 'is late by the wake-up of the thread, and gathers more: '
                 'fewer interrupts than that.'},
    'receive-gap': {
        'title': 'Receiving during a flood, by the budget of a pass',
        'xs': {str(b) if b else 'unset':
               (['--load', 'flood+ping', '--tick-us', '200', '--packet-ns',
                 '0', '--props', f'x-txhold=0,x-txburst={b}'],
                ('tick_p50_us', 1, 'us')) for b in BUDGETS},
        'series': {'ring 256': ['--ring', '256'],
                   'ring 512': ['--ring', '512']},
        'extra': (('tick_p99_us', 1, 'host to guest, 99 of 100, us'),
                  ('rx_gap_us', 1e-3, 'longest receive gap, ms'),
                  ('rtt_p50_us', 1e-3, 'ping, median, ms'),
                  ('pps', 1e-3, 'flood, kpps')),
        'args': [],
        'base_x': '4096',
        'published': [
            'Weight of 2 x ring size in vhost: average ping during a 1-byte '
            'UDP flood 18.5 -> 2.7 ms (0.15, ring 256), 29.2 -> 4.5 ms '
            '(0.15, ring 512).'],
        'about': 'The guest sends one-byte datagrams as fast as the ring '
                 'takes them, its stack costs nothing; the host sends it a '
                 'frame each 200 us.  A budget above twice the ring is twice '
                 'the ring, and *unset* means 128: there is no pass without '
                 'a limit.'},
    'completions': {
        'title': 'Guests without completions',
        'xs': loads('udp:64', 'udp:1024', 'tcp:1024', 'tcp:16384'),
        'series': {'interrupts': ['--completions', 'napi'],
                   'none': ['--completions', 'orphan']},
        'args': [],
        'published': [
            'UDP 1k 1541 -> 3019 Mb/s (1.96), TCP 1k 2381 -> 5599 Mb/s (2.35) '
            'without transmit interrupts, capacity checked first.'],
        'about': '``interrupts``: a packet belongs to its socket until it is '
                 'done.  ``none``: it is given up when it is sent, so neither '
                 'the socket nor TCP\'s limit of two packets holds the sender '
                 'back, only the ring and the receiver\'s window.'},
    'nics': {
        'title': 'One, four and sixteen NICs',
        'xs': {f'{n} NIC{"s" * (n > 1)}':
               (['--nics', str(n), '--load', 'udp:1400'],
                ('mbps', 1, 'Mb/s')) for n in (1, 4, 16)},
        'series': {'one thread': [], 'iothread each': ['--iothreads'],
                   'tx-thread each': ['--props', 'tx-thread=on']},
        'extra': (('slowest_pps', 1e-3, 'slowest NIC, kpps'),
                  ('fastest_pps', 1e-3, 'fastest NIC, kpps'),
                  ('cpu_ns_pkt', 1, 'CPU of the device, ns a packet')),
        'args': [],
        'published': [],
        'about': 'All NICs of one daemon, a guest on each, all together.  '
                 'The guests are threads that need processors, too.'},
}


# ---- measuring ------------------------------------------------------------

def measure(bench, seconds, arguments):
    """The figures of one cell."""
    command = [bench, '--json', '--seconds', str(seconds)] + arguments
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True,
                          timeout=60, check=False)
    if done.returncode:
        sys.exit(f'bench-seeds: {" ".join(map(str, command))}: '
                 f'exit status {done.returncode}')
    return json.loads(done.stdout)


def run_experiment(exp, bench, rounds, seconds):
    """{x: {series: [figures of each round]}}, interleaved."""
    cells = [(x, s) for x in exp['xs'] for s in exp['series']]
    results = {x: {s: [] for s in exp['series']} for x in exp['xs']}
    for number in range(rounds):
        shift = number * len(cells) // rounds
        for x, s in cells[shift:] + cells[:shift]:
            results[x][s].append(measure(
                bench, seconds, merge(exp['xs'][x][0] + exp['series'][s] +
                                      exp['args'])))
    return results


def merge(arguments):
    """--props of the load and of the set-up in one."""
    rest, props = [], []
    words = iter(arguments)
    for word in words:
        if word == '--props':
            props.append(next(words))
        else:
            rest.append(word)
    return rest + (['--props', ','.join(props)] if props else [])


# ---- tables ---------------------------------------------------------------

def spread(values):
    """(median, least, most)"""
    return statistics.median(values), min(values), max(values)


def show(value):
    """Three digits are all that such a figure has."""
    if value and abs(value) < 100:
        return f'{value:.{2 - max(0, int(math.log10(abs(value))))}f}'
    return f'{value:.0f}'


def cell(values):
    """median [least most], as text"""
    if not values:
        return '-'
    mid, low, high = spread(values)
    return f'{show(mid)} [{show(low)} {show(high)}]'


def taken(runs, figure, scale):
    """A figure of all rounds that have it."""
    return [r[figure] * scale for r in runs if r[figure] is not None]


def ratios(runs, base, figure):
    """Of the same round, to the base."""
    return [a[figure] / b[figure] for a, b in zip(runs, base)
            if a[figure] is not None and b[figure]]


def rst_table(header, rows):
    """A simple table of reStructuredText."""
    widths = [max(len(r[i]) for r in [header] + rows)
              for i in range(len(header))]
    rule = '  '.join('=' * w for w in widths)
    text = [rule, *('  '.join(f'{c:{w}}' for c, w in zip(r, widths)).rstrip()
                    for r in [header])]
    text.append(rule)
    text += ['  '.join(f'{c:{w}}' for c, w in zip(r, widths)).rstrip()
             for r in rows]
    return text + [rule, '']


def value_table(exp, results):
    """The figure each x is about."""
    rows = []
    for x, (_, (figure, scale, unit)) in exp['xs'].items():
        row = [x, unit] + [cell(taken(results[x][s], figure, scale))
                           for s in exp['series']]
        if 'expected' in exp:
            row.append(show(exp['expected'][x]))
        rows.append(row)
    header = ['', 'unit', *exp['series']]
    return rst_table(header + ['expected'] * ('expected' in exp), rows)


def ratio_table(exp, results):
    """To the first set-up; or to one of the rows, if the experiment says."""
    base, *others = exp['series']
    row_base = exp.get('base_x')
    columns = list(exp['series']) if row_base else others
    rows = [[x] + [cell(ratios(results[x][s],
                               results[row_base][s] if row_base
                               else results[x][base], figure))
                   for s in columns]
            for x, (_, (figure, _, _)) in exp['xs'].items() if x != row_base]
    return rst_table([''] + [f'{s}, to {row_base}' if row_base
                             else f'{s} / {base}' for s in columns], rows)


def extra_tables(exp, results):
    """The other figures, one table each."""
    text = []
    for figure, scale, name in exp.get('extra', ()):
        text += [f'{name[0].upper()}{name[1:]}:', '']
        text += rst_table([''] + list(exp['series']),
                          [[x] + [cell(taken(results[x][s], figure, scale))
                                  for s in exp['series']]
                           for x in exp['xs']])
    return text


def page(name, exp, kept):
    """The experiment's page."""
    results = kept['results']
    title = exp['title']
    text = ['.. SPDX-License-Identifier: GPL-2.0-or-later',
            '.. Made by tests/bench/bench-seeds.py.', '', title,
            '=' * len(title), '', *textwrap.wrap(exp['about'], 79), '',
            f'Medians of {kept["rounds"]} interleaved rounds of '
            f'{kept["seconds"]} s [least most].', '',
            f'.. image:: {name}.png', f'   :alt: {title}', '']
    text += value_table(exp, results)
    text += ['Ratios, of the same round:', '']
    text += ratio_table(exp, results)
    text += extra_tables(exp, results)
    if exp['published']:
        text += ['Published by others, on other hosts:', '',
                 *(line for item in exp['published'] for line in
                   textwrap.wrap(item, 79, initial_indent='* ',
                                 subsequent_indent='  ')), '']
    return '\n'.join(text)


# ---- plots ----------------------------------------------------------------

COLOURS = ('#4477aa', '#ee6677', '#228833', '#ccbb44')
HEAD = '''set terminal pngcairo size 820,420 font "DejaVu Sans,10" noenhanced
set output "{out}"
set title "{title}"
set ylabel "{ylabel}"
set grid ytics lc rgb "#dddddd"
set border 3
set tics nomirror out
set key outside right top vertical Left reverse samplen 2
set style fill solid 0.7 border lc rgb "#333333"
'''


def data_block(number, rows):
    """Named inline data: x, median, least, most."""
    return [f'$s{number} << END', *(' '.join(f'{v:.6g}' for v in row)
                                    for row in rows), 'END']


def x_labels(exp):
    return ('set xtics (' + ', '.join(f'"{x}" {i}'
                                      for i, x in enumerate(exp['xs'])) +
            f')\nset xrange [-0.6:{len(exp["xs"]) - 0.4}]')


def bars(exp, results):
    """Ratios to the base, side by side, with their spread."""
    base, *others = exp['series']
    width = 0.8 / len(others)
    script, plots = [x_labels(exp), 'set yrange [0:*]'], []
    for number, s in enumerate(others):
        rows = []
        for i, (x, (_, (figure, _, _))) in enumerate(exp['xs'].items()):
            values = ratios(results[x][s], results[x][base], figure)
            if values:
                at = i + (number - (len(others) - 1) / 2) * width
                rows.append((at, *spread(values)))
        script += data_block(number, rows)
        plots.append(f'$s{number} using 1:2:3:4:({width * 0.9:.3f}) with '
                     f'boxerrorbars lc rgb "{COLOURS[number + 1]}" '
                     f'title "{s}"')
    plots.append(f'1 with lines lw 1.5 lc rgb "{COLOURS[0]}" title "{base}"')
    return script, plots


def lines(exp, results):
    """Values of each series, with their spread."""
    script, plots = [x_labels(exp), 'set logscale y'], []
    for number, s in enumerate(exp['series']):
        rows = []
        for i, (x, (_, (figure, scale, _))) in enumerate(exp['xs'].items()):
            values = taken(results[x][s], figure, scale)
            if values:
                rows.append((i + 0.06 * number, *spread(values)))
        script += data_block(number, rows)
        plots += [f'$s{number} using 1:2 with lines lw 1.5 lc rgb '
                  f'"{COLOURS[number]}" notitle',
                  f'$s{number} using 1:2:3:4 with yerrorbars pt 7 lw 1.2 '
                  f'lc rgb "{COLOURS[number]}" title "{s}"']
    if 'expected' in exp:
        script += data_block(9, [(i, v) for i, v in
                                 enumerate(exp['expected'].values())])
        plots.append('$s9 using 1:2 with points pt 4 ps 2 lc rgb "#333333" '
                     'title "expected, coalesced"')
    return script, plots


# name -> (how, y axis, more of gnuplot)
PLOTS = {
    'tx-mode': (bars, 'goodput / that of tx=bh', ''),
    'tx-interrupts': (bars, 'goodput / that with each interrupt', ''),
    'interrupt-count': (lines, 'transmit interrupts (1000/s)',
                        'set xlabel "packets sent"'),
    'receive-gap': (lines, 'host to guest, median (us)',
                    'set xlabel "x-txburst (packets)"'),
    'completions': (bars, 'goodput / that with interrupts', ''),
    'nics': (bars, 'goodput / that of one thread', ''),
}


def plot(name, exp, results):
    """Draws OUT/NAME.png."""
    how, ylabel, more = PLOTS[name]
    script, plots = how(exp, results)
    text = HEAD.format(out=OUT / f'{name}.png', title=exp['title'],
                       ylabel=ylabel)
    text += '\n'.join([more, *script, 'plot ' + ', \\\n  '.join(plots), ''])
    subprocess.run(['gnuplot'], input=text, text=True, check=True)


# ---- all ------------------------------------------------------------------

def main():
    """See the top of the file."""
    parser = argparse.ArgumentParser(description='The five experiments.')
    parser.add_argument('--builddir', default=TOP / 'build',
                        type=pathlib.Path)
    parser.add_argument('--rounds', type=int, default=5)
    parser.add_argument('--seconds', type=float, default=0.3,
                        help='of each measurement')
    parser.add_argument('--only', default='', help=','.join(EXPERIMENTS))
    parser.add_argument('--render', action='store_true',
                        help='measure nothing')
    options = parser.parse_args()
    names = options.only.split(',') if options.only else list(EXPERIMENTS)
    if not set(names) <= set(EXPERIMENTS):
        sys.exit(f'bench-seeds: --only: want {",".join(EXPERIMENTS)}')
    keep = options.builddir / 'bench-seeds'
    keep.mkdir(exist_ok=True)
    OUT.mkdir(exist_ok=True)
    start = time.monotonic()
    for name in names:
        exp, file = EXPERIMENTS[name], keep / f'{name}.json'
        if not options.render:
            print(f'[{time.monotonic() - start:4.0f} s] {exp["title"]}',
                  file=sys.stderr, flush=True)
            results = run_experiment(
                exp, options.builddir / 'tests/bench/vnet-bench',
                options.rounds, options.seconds)
            file.write_text(json.dumps(
                {'rounds': options.rounds, 'seconds': options.seconds,
                 'results': results}), encoding='ascii')
        kept = json.loads(file.read_text(encoding='ascii'))
        (OUT / f'{name}.rst').write_text(page(name, exp, kept),
                                         encoding='ascii')
        plot(name, exp, kept['results'])
    print(f'[{time.monotonic() - start:4.0f} s] done: {OUT}', file=sys.stderr)


if __name__ == '__main__':
    main()
