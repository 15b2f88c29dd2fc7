# SPDX-License-Identifier: GPL-2.0-or-later
"""A booted guest with the far end of its network, ready to be measured."""
import contextlib
import dataclasses
import os
import pathlib
import subprocess
import time

from lib import env
from lib.guest import Guest, nic_args
from lib.hostnet import TapNet
from lib.process import Process, wait_for
from lib.runner import Skip

# The servers of the host's side, by the ports at which they listen.
QPERF_PORT, IPERF_PORT, BURST_PORT = 19765, 5201, 5300
DAEMON = 'qemu-net-daemon'


@dataclasses.dataclass(frozen=True)
class Machine:
    """What all guests of a comparison have in common.

    kernel  one of env.KERNELS
    nics    each with a tap of its own, in one namespace
    args    more of QEMU's
    """
    kernel: str = '6.1'
    vcpus: int = 1
    nics: int = 1
    args: tuple = ()

    def __str__(self):
        return (f'Linux {self.kernel}, {self.vcpus} vCPU'
                + ('s' if self.vcpus > 1 else ''))


def busy_seconds():
    """CPU seconds that anybody has used on this machine."""
    with open('/proc/stat', encoding='ascii') as stat:
        fields = [int(x) for x in stat.readline().split()[1:9]]
    idle = fields[3] + fields[4]
    return (sum(fields) - idle) / os.sysconf('SC_CLK_TCK')


class Cpu:
    """with Cpu() as cpu: ...; then how much of it was used, by anybody.

    seconds   of CPU
    elapsed   of time
    """

    def __init__(self):
        self.seconds = self.elapsed = 0

    def __enter__(self):
        self.seconds -= busy_seconds()
        self.elapsed -= time.monotonic()
        return self

    def __exit__(self, *_):
        self.seconds += busy_seconds()
        self.elapsed += time.monotonic()

    @property
    def cores(self):
        """How many CPUs were busy, in the mean."""
        return self.seconds / self.elapsed


@dataclasses.dataclass
class Bench:
    """One booted guest, and the servers at the other end of its NICs."""
    guest: Guest
    nets: list
    seconds: int

    @property
    def net(self):
        """The first NIC's."""
        return self.nets[0]


def _listens(net, port):
    found = subprocess.run(
        net.netns.prefix() + ['cat'] +
        [f'/proc/net/{name}' for name in ('tcp', 'tcp6', 'udp', 'udp6')],
        stdout=subprocess.PIPE, check=False).stdout
    return b':%04X ' % port in found


@contextlib.contextmanager
def _server(net, argv, port):
    """A server at the host's side of `net`."""
    log = env.log_dir(f'bench-{port}') / 'log'
    server = Process(argv, log, net.netns)
    try:
        wait_for(lambda: _listens(net, port), 10, f'{argv[0]} listens')
        yield
    finally:
        server.kill()


def _name(pid):
    path = pathlib.Path(f'/proc/{pid}/comm')
    return path.read_text(encoding='ascii').strip()


def _pin(pid, cpus):
    for task in pathlib.Path(f'/proc/{pid}/task').iterdir():
        os.sched_setaffinity(int(task.name), cpus)


def pin(guest):
    """The daemon to the last CPU, QEMU to all others (to one, of two)."""
    cpus = sorted(os.sched_getaffinity(0))
    if len(cpus) < 2:
        raise Skip('two CPUs are needed to pin to')
    daemon, = [pid for pid in guest.process.leftovers()
               if _name(pid) == DAEMON]
    _pin(guest.process.pid, cpus[:-1])
    _pin(daemon, cpus[-1:])


def _nets(stack, count):
    """Taps in one namespace, which goes with the first."""
    nets = [stack.enter_context(TapNet())]
    for subnet in range(2, count + 1):
        nets.append(stack.enter_context(
            TapNet(subnet=subnet, netns=nets[0].netns)))
    return nets


def _servers(stack, net):
    burst = env.our_program('tests/bench/udpburst')
    for argv, port in ((['qperf'], QPERF_PORT),
                       (['iperf3', '-s', '-p', IPERF_PORT], IPERF_PORT),
                       ([burst, 'serve', BURST_PORT], BURST_PORT)):
        stack.enter_context(_server(net, argv, port))


@contextlib.contextmanager
def booted(name, setup, machine, seconds):
    """The Bench of a fresh guest."""
    stock = env.stock_qemu_11()
    binary = env.our_program('qemu-system-x86_64') if setup.ours else stock
    with contextlib.ExitStack() as stack:
        nets = _nets(stack, machine.nics)
        _servers(stack, nets[0])
        args = [arg for number, net in enumerate(nets)
                for arg in nic_args(net, number, **setup.properties)]
        guest = stack.enter_context(
            Guest(f'bench-{name}', binary, args + list(machine.args),
                  netns=nets[0].netns, smp=machine.vcpus,
                  kernel=machine.kernel,
                  extra_env={'QEMU_STOCK': str(stock)}))
        release = guest.must('uname -r').strip()
        if not release.startswith(f'{machine.kernel}.'):
            raise Skip(f'this guest has Linux {release}, '
                       f'not {machine.kernel}')
        for number, net in enumerate(nets):
            net.configure(guest, f'eth{number}')
            guest.must(f'ping -c 3 -i 0.2 {net.host_addr}')
        guest.spawn('qperf')
        if setup.pinned:
            pin(guest)
        yield Bench(guest, nets, seconds)
