# SPDX-License-Identifier: GPL-2.0-or-later
"""All figures of one machine as text."""
from .figures import interval, ratios, regrets
from .setups import (ADAPTIVE, APART, PAIRS, STOCK, regret_verdict,
                     verdict)


def show(value):
    """Three digits are all that such a figure has."""
    return f'{value:.3g}' if abs(value) < 1000 else f'{value:.0f}'


def table(results):
    """Medians, one row a figure."""
    names = list(next(iter(results.values()))[0])
    width = max(len(n) for n in names)
    lines = [' ' * width + ''.join(f'{s:>26}' for s in results)]
    for name in names:
        cells = []
        for rounds in results.values():
            mid, low, high = interval([r[name] for r in rounds])
            cells.append(f'{show(mid)} [{show(low)} {show(high)}]')
        lines.append(f'{name:{width}}' + ''.join(f'{c:>26}' for c in cells))
    return lines


def _ratio_lines(found):
    return [f'{one:17} {other:13} {name:30} {mid:6.2f} [{low:.2f} {high:.2f}]'
            f'  {verdict((one, other), name, mid)}'.rstrip()
            for (one, other, name), (mid, low, high) in found.items()]


def _regret_lines(found):
    return [f'{setup:31} {name:30} {mid:6.1f} [{low:.1f} {high:.1f}]'
            f'  {regret_verdict(setup, name, mid)}'.rstrip()
            for (setup, name), (mid, low, high) in found.items()]


def report(machine, results):
    """Prints all; returns how many goals were missed."""
    found = ratios(results, PAIRS)
    apart = {key: value for key, value in found.items()
             if key[2].startswith(APART)}
    for key in apart:
        del found[key]
    sections = [
        (f'{machine}; medians [95 %]', table(results)),
        ('first / second, median of the rounds\' ratios [95 %]',
         _ratio_lines(found)),
        ('the same, apart: a figure with two modes', _ratio_lines(apart)),
        ('regret against the better stock mode of each round, %, median '
         '[95 %]', _regret_lines(regrets(results, ADAPTIVE, STOCK)))]
    missed = 0
    for head, lines in sections:
        if lines:
            print(f'{head}\n' + '\n'.join(lines) + '\n')
            missed += sum('MISSED' in line for line in lines)
    return missed
