# SPDX-License-Identifier: GPL-2.0-or-later
"""Network namespaces: each host side of a test is its own.

Nothing of a test is visible in the machine's own network, and addresses
never clash.  Names are qvn-PID-N, so that those of a killed run can be
recognised and removed by the next one.
"""
import contextlib
import ctypes
import itertools
import os
import pathlib
import re
import subprocess

_numbers = itertools.count(1)
_libc = ctypes.CDLL(None, use_errno=True)
_CLONE_NEWNET = 0x40000000
_RUN = pathlib.Path('/run/netns')


def command(*argv):
    """Runs a host command; its output, or an error with its message."""
    done = subprocess.run([str(arg) for arg in argv], capture_output=True,
                          text=True, timeout=30, check=False)
    if done.returncode:
        raise RuntimeError(f'{" ".join(map(str, argv))}: '
                           f'{done.stderr.strip()}')
    return done.stdout


def sweep():
    """Removes namespaces of test runs that were killed."""
    if not _RUN.is_dir():
        return
    for path in _RUN.iterdir():
        found = re.fullmatch(r'qvn-(\d+)-\d+', path.name)
        if found and not os.path.exists(f'/proc/{found[1]}'):
            with contextlib.suppress(RuntimeError):
                command('ip', 'netns', 'del', path.name)


class Netns:
    """A new network namespace with its loopback up."""

    def __init__(self):
        sweep()
        self.name = f'qvn-{os.getpid()}-{next(_numbers)}'
        command('ip', 'netns', 'add', self.name)
        self.ip('link', 'set', 'lo', 'up')

    def ip(self, *args):
        """Runs ip(8) in it."""
        return command('ip', '-n', self.name, *args)

    def tc(self, *args):
        """Runs tc(8) in it."""
        return command('tc', '-n', self.name, *args)

    def prefix(self):
        """What to put before a command line so that it runs here.

        Only the network differs: paths, sockets and the pid stay the same.
        """
        return ['nsenter', f'--net={_RUN / self.name}', '--']

    @contextlib.contextmanager
    def entered(self):
        """The calling thread is in the namespace, for opening sockets."""
        with open('/proc/thread-self/ns/net', 'rb') as home, \
                open(_RUN / self.name, 'rb') as there:
            _setns(there)
            try:
                yield
            finally:
                _setns(home)

    def sysctl(self, name, value):
        """Sets net.NAME here, if this kernel has it; returns whether."""
        path = pathlib.Path('/proc/sys/net', *name.split('.'))
        with self.entered():
            if path.exists():
                path.write_text(str(value), encoding='ascii')
                return True
        return False

    def close(self):
        """Removes it, and with it its interfaces."""
        command('ip', 'netns', 'del', self.name)


def _setns(file):
    if _libc.setns(file.fileno(), _CLONE_NEWNET):
        error = ctypes.get_errno()
        raise OSError(error, f'setns: {os.strerror(error)}')
