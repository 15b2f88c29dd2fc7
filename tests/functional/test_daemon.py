#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""The life of daemon and QEMU beside each other.

An administrator's daemon outlives its peers, and they outlive it; a
launcher's daemon does not outlive its QEMU, however that ended.
"""
import contextlib
import signal

from lib import cases, env, scenarios
from lib.daemon import Daemon, vhost_user_args
from lib.guest import Guest, mac_of, nic_args
from lib.hostnet import TapNet, UserNet
from lib.runner import Skip, Suite


@contextlib.contextmanager
def daemon_at(label, make_net, *properties):
    """A daemon with one NIC, as (net, daemon)."""
    with make_net() as net:
        device = ','.join(['virtio-net-pci,id=nic0,netdev=n0',
                           f'mac={mac_of(0)}', *properties])
        args = ['--netdev', net.netdev('n0'), '--device', device,
                '--export', 'vhost-user-net,id=e0,device=nic0,path={socket}']
        with Daemon(f'{cases.log_name(label)}-daemon', args,
                    net.netns) as daemon:
            yield net, daemon


@contextlib.contextmanager
def peer(label, qemu, net, daemon, **options):
    """A configured guest of a stock QEMU, connected to the daemon."""
    args = vhost_user_args(daemon, env.version_of(qemu), **options)
    with Guest(cases.log_name(label), qemu, args, net.netns) as guest:
        net.configure(guest)
        yield guest


@contextlib.contextmanager
def pair(label, qemu, make_net, tx):
    """(guest, net, daemon)."""
    binary = qemu()
    with daemon_at(label, make_net, f'tx={tx}') as (net, daemon), \
            peer(label, binary, net, daemon) as guest:
        yield guest, net, daemon


def stream(guest, net, daemon):
    """A TCP stream outlives the daemon."""
    scenarios.restart_under_stream(guest, net, daemon.restart)


def restart(guest, net, daemon):
    """The daemon ends by SIGTERM and is started again."""
    scenarios.restart_under_traffic(guest, net, daemon.restart)


def crash(guest, net, daemon):
    """The daemon is killed and started again."""
    def kill_start():
        daemon.kill()
        daemon.start()
    scenarios.restart_under_traffic(guest, net, kill_start)


USER = {
    'restarted under traffic': restart,
    'killed under traffic': crash,
}
# The streams through libslirp end with it; those at a tap do not.
TAP = {
    'restarted under one TCP stream': stream,
    **USER,
}


class Killed(Exception):
    """The way out of what belonged to a guest that was killed."""


def serves_again(qemu):
    """One daemon, two guests one after the other, the first one killed."""
    binary = qemu()
    with daemon_at('again', TapNet) as (net, daemon):
        with contextlib.suppress(Killed), \
                peer('again-first', binary, net, daemon) as guest, \
                scenarios.traffic(guest, net):
            guest.process.kill()
            raise Killed
        with peer('again-second', binary, net, daemon) as guest:
            scenarios.ping(guest, net)
            scenarios.tcp_both_ways(guest, net, mib=8)


def two_queue_pairs(qemu):
    """Both pairs, one, and both again under traffic; then streams."""
    binary = qemu()
    if env.version_of(binary) < (8, 0):
        raise Skip('more pairs need MSI-X, and QEMU 7.2 crashes with it')
    with daemon_at('pairs', lambda: TapNet(queues=2), 'mq=on') as \
            (net, daemon), peer('pairs', binary, net, daemon, queues=2,
                                mq='on', vectors=6) as guest:
        with scenarios.traffic(guest, net) as flood:
            for pairs in (2, 1, 2):
                guest.must(f'ethtool -L eth0 combined {pairs}')
                scenarios.moving(flood)
        scenarios.ping(guest, net)
        scenarios.tcp_both_ways(guest, net, mib=16)


def launched(name, end):
    """The launcher's daemon ends with its QEMU."""
    with contextlib.suppress(Killed), UserNet() as net, \
            Guest(name, env.our_program('qemu-system-x86_64'), nic_args(net),
                  net.netns) as guest:
        assert guest.process.leftovers(), 'no daemon was started'
        end(guest.process)
        guest.process.wait(10)
        guest.process.expect_no_leftovers()
        raise Killed


ENDS = {
    'SIGTERM': lambda process: process.popen.send_signal(signal.SIGTERM),
    'SIGKILL': lambda process: process.popen.kill(),
}


def main():
    """Both kinds of daemon."""
    with Suite() as suite:
        for name, qemu in cases.stock_qemus().items():
            cases.group(suite, f'daemon of {name}, tap',
                        lambda name=name, qemu=qemu:
                        pair(f'{name} tap', qemu, TapNet, 'bh'), TAP)
            cases.group(suite, f'daemon of {name}, user',
                        lambda name=name, qemu=qemu:
                        pair(f'{name} user', qemu, UserNet, 'timer'), USER)
            suite.run(f'daemon of {name}: serves the next when one is killed',
                      serves_again, qemu)
            suite.run(f'daemon of {name}: two queue pairs', two_queue_pairs,
                      qemu)
        for name, end in ENDS.items():
            suite.run(f'launcher: no daemon is left after {name}',
                      launched, f'launched-{name}', end)


if __name__ == '__main__':
    main()
