# SPDX-License-Identifier: GPL-2.0-or-later
"""A guest: one QEMU process (or what stands for it), agent and monitor.

    with Guest('name', binary, nic_args(net)) as guest:
        net.configure(guest)
        status, output = guest.run('ping -c 3 10.86.1.1')

The binary may be a stock QEMU or our launcher: both get the same command
line.  Stopping asks the monitor to quit, and then nothing that the command
started may be left.  Errors that come from the guest carry the end of its
console and of QEMU's own output.
"""
import contextlib
import shutil
import socket
import tempfile
import time

from . import env
from .agent import Agent, GuestGone, GuestRebooted
from .process import Process, tail, wait_for
from .qmp import Qmp

BOOT_TIMEOUT = 90
_APPEND = ('console=ttyS0 loglevel=5 mitigations=off cryptomgr.notests '
           'no_timer_check reboot=k panic=0')


class GuestError(AssertionError):
    """Something about the guest failed; the text has its console."""


def mac_of(number):
    """The number-th NIC's address, of QEMU's own range."""
    return f'52:54:00:12:34:{number:02x}'


def nic_args(net, number=0, netdev_options=None, **properties):
    """-netdev and -device of one virtio-net-pci at `net`.

    Properties as on the command line, with _ for -: tx='bh', mq='on'.
    """
    more = ''.join(f',{key.replace("__", "-")}={value}'
                   for key, value in properties.items())
    return ['-netdev', net.netdev(f'n{number}', **(netdev_options or {})),
            '-device', f'virtio-net-pci,netdev=n{number},id=nic{number},'
                       f'mac={mac_of(number)}{more}']


def _file_chardev(path):
    return f'file,id=console,path={str(path).replace(",", ",,")}'


class Guest:
    """Starts at once; returns when the agent has greeted.

    name      of its log directory
    binary    the QEMU
    args      what to add to the command line, NICs above all
    netns     where to run it: the net's, in general
    memory    as in -m
    kernel    one of env.KERNELS
    """

    def __init__(self, name, binary, args=(), netns=None, memory='256M',
                 smp=1, append='', extra_env=None, kernel='6.1'):
        kernel, initrd = env.guest_image(kernel)
        self.name = name
        self.logs = env.log_dir(name)
        self.console = self.logs / 'console.log'
        self.dir = tempfile.mkdtemp(prefix='qvn-')
        self.process = None
        with contextlib.ExitStack() as undo:
            undo.callback(self._forget)
            agent, monitor = (self._listen(x) for x in ('agent', 'qmp'))
            argv = [binary, '-accel', env.ACCEL, '-nodefaults',
                    '-no-user-config', '-display', 'none', '-m', memory,
                    '-smp', str(smp), '-kernel', kernel, '-initrd', initrd,
                    '-append', f'{_APPEND} {append}'.strip(),
                    '-chardev', _file_chardev(self.console),
                    '-serial', 'chardev:console',
                    '-chardev', f'socket,id=agent,path={self.dir}/agent',
                    '-serial', 'chardev:agent',
                    '-chardev', f'socket,id=qmp,path={self.dir}/qmp',
                    '-mon', 'chardev=qmp,mode=control', *args]
            self.log = self.logs / 'qemu.log'
            self.process = Process(argv, self.log, netns, extra_env=extra_env)
            self.agent = Agent(self._accept(agent))
            self.qmp = Qmp(self._accept(monitor))
            self._wait_agent(1)
            undo.pop_all()

    def _listen(self, name):
        sock = socket.socket(socket.AF_UNIX)
        sock.bind(f'{self.dir}/{name}')
        sock.listen(1)
        return sock

    def _accept(self, listener):
        listener.settimeout(0.1)
        with listener:
            def peer():
                try:
                    return listener.accept()[0]
                except TimeoutError:
                    if not self.process.running():
                        raise self.error('QEMU ended at once') from None
                    return None
            sock = wait_for(peer, 30, f'{self.name}: QEMU connects')
        sock.settimeout(None)
        return sock

    def error(self, text):
        """A GuestError with all there is to see."""
        return GuestError(f'{self.name}: {text}\nconsole:\n'
                          f'{tail(self.console)}\nQEMU:\n{tail(self.log)}')

    @contextlib.contextmanager
    def _explained(self):
        try:
            yield
        except (TimeoutError, GuestGone, GuestRebooted,
                ConnectionError) as error:
            raise self.error(f'{type(error).__name__}: {error}') from error

    def _wait_agent(self, boots, timeout=BOOT_TIMEOUT):
        with self._explained():
            self.agent.wait_boot(boots, timeout, self.process.running)

    def spawn(self, command):
        """Starts a shell command; see agent.Job."""
        with self._explained():
            return self.agent.spawn(command)

    def wait(self, job, timeout=30):
        """(status, output) of a spawned command at its end."""
        with self._explained():
            return job.wait(timeout)

    def run(self, command, timeout=30):
        """(exit status, output) of a shell command."""
        return self.wait(self.spawn(command), timeout)

    def must(self, command, timeout=30):
        """The output of a shell command that has to succeed."""
        status, output = self.run(command, timeout)
        if status:
            raise self.error(f'"{command}" ended with {status}: {output}')
        return output

    def execute(self, command, timeout=10, **arguments):
        """A monitor command."""
        with self._explained():
            return self.qmp.execute(command, timeout, **arguments)

    def reset(self):
        """Resets the machine as the monitor does; waits for the agent."""
        boots = self.agent.boots
        self.execute('system_reset')
        self._wait_agent(boots + 1)

    def reboot(self):
        """Has the guest reboot itself, its drivers unasked; waits for the
        agent.

        By SysRq, since "reboot -f" under transmit can hang Linux, see
        scenarios.reboot().
        """
        self._reboot('echo b >/proc/sysrq-trigger')

    def shut_down_and_boot(self, iface):
        """Has the guest take its interface down, its kernel shut the
        devices down and reboot; waits for the agent."""
        self._reboot(f'ip link set {iface} down; reboot -f')

    def _reboot(self, command):
        boots = self.agent.boots
        self.spawn(command)
        self._wait_agent(boots + 1)

    def kernel_complaints(self):
        """Lines of the console that no test should cause."""
        bad = ('BUG:', 'Oops', 'WARNING:', 'Call Trace', 'Kernel panic',
               'NETDEV WATCHDOG', 'is not a head!')
        text = self.console.read_text(errors='replace')
        return [line for line in text.splitlines()
                if any(word in line for word in bad)]

    def quit(self, timeout=15):
        """Ends QEMU through its monitor; returns the exit status."""
        with self._explained():
            with contextlib.suppress(ConnectionError):
                self.qmp.execute('quit')
            return self.process.wait(timeout)

    def _forget(self):
        """The way out after a failure: nothing is claimed, all is ended."""
        if self.process:
            self.process.kill()
            with contextlib.suppress(AssertionError):
                self.process.expect_no_leftovers(timeout=2)
        shutil.rmtree(self.dir, ignore_errors=True)

    def stop(self):
        """Ends the guest; fails unless that went well.

        Well: exit status 0, in time, no process left, nothing on the
        guest's console that it would log for a broken device.
        """
        try:
            if not self.process.running():
                raise self.error(f'ended by itself with '
                                 f'{self.process.wait(1)}')
            status = self.quit()
            if status:
                raise self.error(f'exit status {status}')
            self.process.expect_no_leftovers()
            complaints = self.kernel_complaints()
            if complaints:
                raise self.error(f'the kernel complained: {complaints[0]}')
        finally:
            self._forget()

    def __enter__(self):
        return self

    def __exit__(self, kind, value, trace):
        if kind is None:
            self.stop()
        else:
            self._forget()


def uptime(guest):
    """Seconds since the guest's kernel started."""
    return float(guest.must('cat /proc/uptime').split()[0])


def settle(seconds):
    """Lets traffic run for a while; not a wait for anything."""
    time.sleep(env.scaled(seconds))
