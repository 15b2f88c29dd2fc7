# SPDX-License-Identifier: GPL-2.0-or-later
"""A place for the processes of one case of a command line, and what such
cases share.

Each case runs in a directory of its own, which is also the one for sockets
($XDG_RUNTIME_DIR).  Its processes are found by a variable in their
environment, wherever they have been re-parented to.
"""
import contextlib
import ctypes
import itertools
import json
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import tempfile
import time

from . import env
from .runner import Skip

LIMIT = env.scaled(20)
MARK = 'QVN_CLI_CASE'
NETDEV = ['-netdev', 'user,id=n0']
NIC = ['-device', 'virtio-net-pci,netdev=n0']
MACHINE = ['-M', 'pc', '-m', '64', '-display', 'none', '-nodefaults']
D_NETDEV = ['--netdev', 'user,id=n0']
D_NIC = ['--device', 'virtio-net-pci,id=v0,netdev=n0']
D_EXPORT = ['--export', 'vhost-user-net,id=e0,device=v0,path=sock']
DAEMON = D_NETDEV + D_NIC + D_EXPORT
CLONE_NEWNET = 0x40000000


class Place:
    """A directory, and the processes that are started in it."""
    numbers = itertools.count(1)

    def __init__(self):
        self.dir = pathlib.Path(tempfile.mkdtemp(prefix='qvn-cli-'))
        self.mark = f'{os.getpid()}-{next(self.numbers)}'
        self.env = {**os.environ, MARK: self.mark,
                    'XDG_RUNTIME_DIR': str(self.dir)}
        self.before = []

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for pid in self.processes():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        shutil.rmtree(self.dir)

    def files(self):
        """All there is, relative to the directory."""
        return sorted(str(path.relative_to(self.dir))
                      for path in self.dir.rglob('*'))

    def processes(self, program=None):
        """Process ids of what was started here and lives."""
        wanted = program and str(env.our_program(program))
        found = []
        for path in pathlib.Path('/proc').iterdir():
            if not path.name.isdigit() or int(path.name) == os.getpid():
                continue
            with contextlib.suppress(OSError):
                # Empty for a zombie, which nobody may be there to reap.
                if f'{MARK}={self.mark}'.encode() in \
                        (path / 'environ').read_bytes().split(b'\0') and \
                        wanted in (None, os.readlink(path / 'exe')):
                    found.append(int(path.name))
        return found

    def command(self, program, args):
        """The words of a command line; {dir} is this directory."""
        return [str(env.our_program(program))] + \
            [arg.replace('{dir}', str(self.dir)) for arg in args]

    def start(self, program, args, **more):
        """A process; stdin is a pipe."""
        return subprocess.Popen(self.command(program, args), cwd=self.dir,
                                stdin=subprocess.PIPE,
                                stdout=subprocess.PIPE,
                                stderr=subprocess.PIPE, text=True,
                                **{'env': self.env, **more})

    def run(self, program, args, **more):
        """(exit status, stdout, stderr) of a process that ends by itself."""
        self.before = self.files()
        process = self.start(program, args, **more)
        out, err = process.communicate(timeout=LIMIT)
        return process.returncode, out, err

    def expect_nothing_left(self, wait=0.0):
        """No process, no new file; @wait: seconds they may take to go."""
        deadline = time.monotonic() + wait
        while (self.processes() or self.files() != self.before) and \
                time.monotonic() < deadline:
            time.sleep(0.01)
        equal(self.processes(), [])
        equal(self.files(), self.before)


def ignore_signals():
    """For a process to be started: as nohup and a shell's "&" have it."""
    for number in (signal.SIGHUP, signal.SIGINT):
        signal.signal(number, signal.SIG_IGN)


def equal(got, want):
    """Fails with both values."""
    if got != want:
        raise AssertionError(f'got {got!r}\nwant {want!r}')


def wait_until(condition, what):
    """Polls until condition() is true."""
    deadline = time.monotonic() + LIMIT
    while not condition():
        if time.monotonic() > deadline:
            raise AssertionError(f'no sign of: {what}')
        time.sleep(0.01)


def own_netns():
    """Taps are made where nobody sees them."""
    env.need_root()
    if ctypes.CDLL(None, use_errno=True).unshare(CLONE_NEWNET):
        raise Skip('no network namespaces')


def expect_words(err, words):
    """One line with all these in it."""
    equal(err.count('\n'), 1)
    for word in words:
        if word not in err:
            raise AssertionError(f'{word!r} is not in {err!r}')


def qmp(path, *commands):
    """Replies to commands, each (name, arguments)."""
    with socket.socket(socket.AF_UNIX) as client:
        client.settimeout(LIMIT)
        client.connect(str(path))
        stream = client.makefile('rw', encoding='utf-8', newline='')
        replies = [json.loads(stream.readline())]
        for name, arguments in (('qmp_capabilities', {}),) + commands:
            stream.write(json.dumps({'execute': name,
                                     'arguments': arguments}))
            stream.flush()
            line = stream.readline()
            equal(line[-2:], '\r\n')
            replies.append(json.loads(line))
        return replies
