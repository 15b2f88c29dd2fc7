# SPDX-License-Identifier: GPL-2.0-or-later
"""qemu-net-daemon as a process.

    with Daemon('name', net, ['--netdev', ..., '--device', ...]) as daemon:
        Guest(..., vhost_user_args(daemon), netns=...)

The export's socket is made by the caller's arguments ("{socket}" in them is
replaced by its path); ready when that can be connected to.
"""
import contextlib
import os
import shutil
import stat
import tempfile

from . import env
from .guest import mac_of
from .process import Process, tail, wait_for


class Daemon:
    """Runs until stop(); restart() is stop() and start()."""

    def __init__(self, name, args, netns=None, binary=None):
        self.dir = tempfile.mkdtemp(prefix='qvn-')
        self.socket = f'{self.dir}/vu.sock'
        self.log = env.log_dir(name) / 'daemon.log'
        self.netns = netns
        self.argv = [binary or env.our_program('qemu-net-daemon')] + [
            arg.replace('{socket}', self.socket) for arg in args]
        self.process = None
        try:
            self.start()
        except BaseException:
            self._forget()
            raise

    def start(self):
        """Starts it; returns when its socket is there."""
        self.process = Process(self.argv, self.log, self.netns)
        wait_for(self._ready, 10, f'{self.argv[0]}: socket {self.socket}')

    def _ready(self):
        if not self.process.running():
            raise AssertionError(f'{self.argv[0]} ended with '
                                 f'{self.process.wait(1)}:\n{tail(self.log)}')
        try:
            return stat.S_ISSOCK(os.stat(self.socket).st_mode)
        except FileNotFoundError:
            return False

    def stderr(self):
        """All it has said, over all its starts."""
        return self.log.read_text(errors='replace')

    def stop(self):
        """Ends it by SIGTERM; fails unless it ends with 0, leaving nothing.

        Nothing: no process, no socket file.
        """
        status = self.process.stop()
        if status:
            raise AssertionError(f'{self.argv[0]} ended with {status}:\n'
                                 f'{tail(self.log)}')
        self.process.expect_no_leftovers()
        if os.path.exists(self.socket):
            raise AssertionError(f'{self.argv[0]} left {self.socket} behind')

    def kill(self):
        """Ends it by SIGKILL, as a crash would."""
        self.process.kill()
        with contextlib.suppress(FileNotFoundError):
            os.unlink(self.socket)

    def restart(self):
        """Ends it orderly and starts it again."""
        self.stop()
        self.start()

    def _forget(self):
        if self.process:
            self.process.kill()
        shutil.rmtree(self.dir, ignore_errors=True)

    def __enter__(self):
        return self

    def __exit__(self, kind, value, trace):
        try:
            if kind is None and self.process.running():
                self.stop()
        finally:
            self._forget()


def vhost_user_args(daemon, version, number=0, memory='256M', queues=1,
                    **properties):
    """QEMU options that attach a NIC to the daemon's socket.

    version   the QEMU's, as (major, minor): the word for "reconnect" and
              the need for vectors=0 (7.2 without KVM) differ
    memory    the guest's -m, which has to be shared
    """
    reconnect = 'reconnect=1' if version < (9, 2) else 'reconnect-ms=500'
    if version < (8, 0) and env.ACCEL == 'tcg':
        properties.setdefault('vectors', 0)
    queue_option = f',queues={queues}' if queues > 1 else ''
    more = ''.join(f',{key.replace("__", "-")}={value}'
                   for key, value in properties.items())
    shared = [] if number else [
        '-object', f'memory-backend-memfd,id=pc.ram,size={memory},share=on',
        '-machine', 'memory-backend=pc.ram']
    return shared + [
        '-chardev', f'socket,id=c{number},path={daemon.socket},{reconnect}',
        '-netdev', f'vhost-user,id=n{number},chardev=c{number}{queue_option}',
        '-device', f'virtio-net-pci,netdev=n{number},id=nic{number},'
                   f'mac={mac_of(number)}{more}']
