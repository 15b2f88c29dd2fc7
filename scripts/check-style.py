#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Checks the rules of the sources that a compiler does not.

Purpose: what a reviewer should not have to say twice.  One TAP case a rule;
each place that breaks it is a diagnostic with file and line.

Data flow: the files that git knows (all files when this is not a git tree),
each read once, each rule a generator of (line number, message).

Limits: no parsing of C; the layout of the coding style (a function's brace
in column 1) is what finds functions.  Layout itself is .clang-format's, bugs
are .clang-tidy's.
"""

import os
import re
import subprocess
import sys

TOP = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
MAX_COLUMNS = 80
MAX_FILE_LINES = 800
MAX_FUNCTION_LINES = 80

# Which header directories each source directory may use: a layer knows
# those below it only (docs/devel/architecture.rst).
_UTIL = ('util',)
_SYSTEM = _UTIL + ('system',)
_VIRTIO = _SYSTEM + ('hw/virtio',)
_NET = _UTIL + ('net',)
_DEVICE = _VIRTIO + _NET + ('hw/net',)
LAYERS = {
    'util': _UTIL,
    'system': _SYSTEM,
    'hw/virtio/vhost-user': _DEVICE,
    'hw/virtio': _VIRTIO,
    'net': _NET,
    'hw/net': _DEVICE,
}
# Headers of a directory that belong to a higher layer than the directory.
EXCEPTIONS = {
    'hw/virtio/vhost-user.h': 'hw/virtio/vhost-user',
}


def files():
    """Paths of all text sources, relative to the top."""
    listed = subprocess.run(['git', '-C', TOP, 'ls-files', '-z'],
                            capture_output=True, check=False)
    if listed.returncode == 0:
        names = listed.stdout.decode().split('\0')
    else:
        names = [os.path.relpath(os.path.join(where, name), TOP)
                 for where, dirs, leaves in os.walk(TOP)
                 for name in leaves if not where.startswith(
                     os.path.join(TOP, 'build'))]
    return sorted(name for name in names
                  if os.path.isfile(os.path.join(TOP, name)))


def is_c(name):
    return name.endswith(('.c', '.h'))


def is_script(name, lines):
    return (name.endswith(('.py', '.sh', 'meson.build')) or
            bool(lines) and lines[0].startswith('#!'))


def spdx(name, lines):
    """the first line (after #!) names the licence"""
    if not is_c(name) and not is_script(name, lines):
        return
    first = 1 if lines and lines[0].startswith('#!') else 0
    start = '/*' if is_c(name) else '#'
    want = f'{start} SPDX-License-Identifier: GPL-2.0-or-later'
    if len(lines) <= first or not lines[first].startswith(want):
        yield first + 1, f'expected "{want}"'


def whitespace(name, lines):
    """no tabs, no blanks at the end of a line"""
    if not is_c(name) and not name.endswith(('.py', '.rst', '.build')):
        return
    for number, line in enumerate(lines, 1):
        if '\t' in line:
            yield number, 'tab'
        if line != line.rstrip():
            yield number, 'blank at the end of the line'


def columns(name, lines):
    """lines have at most 80 columns"""
    if not is_c(name) and not name.endswith('.py'):
        return
    for number, line in enumerate(lines, 1):
        if len(line) > MAX_COLUMNS:
            yield number, f'{len(line)} columns'


def file_length(name, lines):
    """files have at most 800 lines"""
    if is_c(name) and len(lines) > MAX_FILE_LINES:
        yield len(lines), f'{len(lines)} lines'


def function_length(name, lines):
    """functions have at most 80 lines"""
    if not name.endswith('.c'):
        return
    start = None
    for number, line in enumerate(lines, 1):
        if line == '{':
            start = number
        elif line == '}' and start is not None:
            if number - start > MAX_FUNCTION_LINES:
                yield start, f'function of {number - start} lines'
            start = None


def header_guard(name, lines):
    """a header is guarded by a macro named after its path"""
    if not name.endswith('.h'):
        return
    path = name[len('include/'):] if name.startswith('include/') else name
    guard = re.sub(r'[^A-Z0-9]', '_', path.upper())
    text = '\n'.join(lines)
    if f'#ifndef {guard}\n#define {guard}\n' not in text:
        yield 1, f'expected the guard {guard}'


def no_sleep(name, lines):
    """unit tests and fuzzers do not sleep: the clock is theirs to step"""
    if not is_c(name) or not name.startswith(('tests/unit/', 'tests/fuzz/')):
        return
    for number, line in enumerate(lines, 1):
        if re.search(r'\b(g_)?(u|nano)?sleep\(', line):
            yield number, line.strip()


def no_leftovers(name, lines):
    """no marks of unfinished work"""
    if not is_c(name) and not is_script(name, lines):
        return
    for number, line in enumerate(lines, 1):
        if re.search(r'\b(TO' r'DO|FIX' r'ME|XX' r'X)\b', line):
            yield number, line.strip()


def layers(name, lines):
    """a layer includes its own headers and those below it only"""
    where = EXCEPTIONS.get(name.replace('include/', '', 1)) or \
        os.path.dirname(name.replace('include/', '', 1))
    allowed = LAYERS.get(where)
    if allowed is None or not is_c(name):
        return
    for number, line in enumerate(lines, 1):
        match = re.match(r'#include "(.*)/(.*)"', line)
        if not match:
            continue
        path = '/'.join(match.groups())
        target = EXCEPTIONS.get(path, match.group(1))
        if target != where and target not in allowed:
            yield number, f'{where} must not use {path}'


RULES = (spdx, whitespace, columns, file_length, function_length,
         header_guard, no_sleep, no_leftovers, layers)


def read(name):
    with open(os.path.join(TOP, name), encoding='utf-8',
              errors='replace') as source:
        return source.read().split('\n')


def main():
    contents = {name: read(name) for name in files()}
    print(f'1..{len(RULES)}')
    failed = False
    for number, rule in enumerate(RULES, 1):
        found = [(name, line, message)
                 for name, lines in contents.items()
                 for line, message in rule(name, lines)]
        for name, line, message in found:
            print(f'# {name}:{line}: {message}')
        print(f'{"not ok" if found else "ok"} {number} - {rule.__doc__}')
        failed = failed or bool(found)
    return 1 if failed else 0


if __name__ == '__main__':
    sys.exit(main())
