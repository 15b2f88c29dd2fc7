#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Checks what configure says: about bad options, and about what is missing.

Data flow: configure is run with options and an environment in which it must
stop before it sets anything up: a bad option, or a world without libraries and
tools.

Output: TAP.
"""

import os
import re
import subprocess
import sys
import tempfile

TOP = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))

# option -> what the one line has to name
BAD_OPTIONS = {
    '--frobnicate': "unknown option '--frobnicate'",
    'word': "unknown option 'word'",
    '--enable-docs=maybe': "unknown option '--enable-docs=maybe'",
    '--enable-probes=all': "unknown option '--enable-probes=all'",
    '--disable-glib': "unknown option '--disable-glib'",
    '--prefix': '--prefix needs a value',
    '--prefix=': '--prefix needs a value',
    '--prefix=relative': '--prefix=relative',
    '--with-stock-qemu=/nonexistent': '--with-stock-qemu=/nonexistent',
    '--enable-sanitizers': '--enable-sanitizers needs a list',
    '--enable-sanitizers=memory': "unknown sanitizer 'memory'",
    '--enable-sanitizers=thread,address': 'thread cannot be combined',
}
LIBRARIES = ('glib-2.0', 'gio-unix-2.0', 'json-glib-1.0', 'slirp',
             'libcap-ng')


def configure(*options, **environment):
    with tempfile.TemporaryDirectory() as tmp:
        return subprocess.run(
            [os.path.join(TOP, 'configure'), f'--builddir={tmp}/build',
             *options], stdin=subprocess.DEVNULL, capture_output=True,
            text=True, check=False, env={**os.environ, **environment})


def bad_option(option, wanted):
    done = configure(option)
    assert done.returncode == 1, f'exit status {done.returncode}'
    assert re.fullmatch(r'configure: [^\n]*\n', done.stderr), done.stderr
    assert wanted in done.stderr, done.stderr


def known_packages():
    return subprocess.run(
        [os.path.join(TOP, 'scripts', 'install-deps.sh'), '--list', 'all'],
        check=True, capture_output=True, text=True).stdout.split()


def missing():
    """Everything at once, each with a package that install-deps.sh knows."""
    done = configure('--cc=no-such-cc', '--enable-probes',
                     PKG_CONFIG_LIBDIR='/nonexistent', PKG_CONFIG_PATH='')
    assert done.returncode == 1, f'exit status {done.returncode}'
    rows = dict(re.findall(r'^  (\S+)(?: >= \S+)? +(\S+)$', done.stderr,
                           re.MULTILINE))
    assert rows.get('no-such-cc') == 'build-essential', done.stderr
    assert rows.get('sys/sdt.h') == 'systemtap-sdt-dev', done.stderr
    assert set(LIBRARIES) <= set(rows), done.stderr
    unknown = set(rows.values()) - set(known_packages())
    assert not unknown, f'not in install-deps.sh: {unknown}'
    remedy = done.stderr.strip().splitlines()[-1]
    assert set(remedy.split('apt-get install ')[1].split()) == \
        set(rows.values()), remedy


def stock_qemu_path():
    """Given from here, it is found from anywhere."""
    with tempfile.TemporaryDirectory() as tmp:
        meson = os.path.join(tmp, 'meson')
        with open(meson, 'w', encoding='ascii') as script:
            script.write('#!/bin/sh\n[ "$1" = --version ] && exec echo 1.0\n'
                         f'printf "%s\\n" "$@" >>{tmp}/args\n')
        os.chmod(meson, 0o755)
        path = os.path.relpath(meson)
        done = configure(f'--with-stock-qemu={path}',
                         PATH=f'{tmp}:{os.environ["PATH"]}')
        assert done.returncode == 0, done.stderr
        with open(os.path.join(tmp, 'args'), encoding='ascii') as file:
            args = file.read().splitlines()
        assert f'-Dstock_qemu={meson}' in args, args


def help_text():
    done = configure('--help')
    assert done.returncode == 0 and not done.stderr, done.stderr
    for option in ('--prefix', '--with-stock-qemu', '--enable-sanitizers',
                   '--enable-docs', '--disable-docs', '--disable-probes'):
        assert option in done.stdout, option


CASES = [(f'refuses {option}', lambda o=option, w=wanted: bad_option(o, w))
         for option, wanted in BAD_OPTIONS.items()]
CASES += [('names the packages of what is missing', missing),
          ('makes --with-stock-qemu absolute', stock_qemu_path),
          ('has a help text', help_text)]


def main():
    print(f'1..{len(CASES)}')
    failed = False
    for number, (title, case) in enumerate(CASES, 1):
        try:
            case()
        except AssertionError as error:
            failed = True
            for line in str(error).splitlines():
                print(f'# {line}')
            print(f'not ok {number} - {title}')
        else:
            print(f'ok {number} - {title}')
    return 1 if failed else 0


if __name__ == '__main__':
    sys.exit(main())
