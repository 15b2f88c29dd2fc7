#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Scenarios on our device: {user, tap} x {bh, timer} behind the launcher,
several queue pairs, two NICs, a stuck backend, and a daemon of its own that
is restarted under traffic.

    test_net.py [WORD]...    only cases that contain one of the words

By default on the distribution's QEMU; QVN_ALL_QEMUS=1 adds the second one.
"""
import contextlib
import os
import re
import subprocess

from lib import env, scenarios
from lib.daemon import Daemon, vhost_user_args
from lib.guest import Guest, nic_args
from lib.hostnet import StuckTap, TapNet, UserNet
from lib.runner import Suite
from test_stock_guest import BASIC, STUCK, TAP, cases

QEMUS = {'7': env.stock_qemu, '11': env.stock_qemu_11}


def qemus():
    """The stock QEMUs to run on."""
    names = QEMUS if os.environ.get('QVN_ALL_QEMUS') else ['7']
    return {name: QEMUS[name] for name in names}


@contextlib.contextmanager
def launched(name, qemu, nets, **properties):
    """A guest started by our command, configured at all `nets`."""
    stock = str(qemu())
    launcher = env.our_program('qemu-system-x86_64')
    with contextlib.ExitStack() as stack:
        nets = [stack.enter_context(net) for net in nets()]
        args = [arg for number, net in enumerate(nets)
                for arg in nic_args(net, number, **properties)]
        guest = stack.enter_context(
            Guest(name, launcher, args, nets[0].netns,
                  extra_env={'QEMU_STOCK': stock}))
        for number, net in enumerate(nets):
            net.configure(guest, f'eth{number}')
        yield guest, nets if len(nets) > 1 else nets[0]


@contextlib.contextmanager
def served(name, qemu, make_net, queues=1, **properties):
    """A guest in the stock QEMU, its NIC in a daemon of its own.

    Yields (guest, net, daemon).
    """
    stock = str(qemu())
    with make_net() as net:
        device = ','.join(['virtio-net-pci,id=nic0,netdev=n0'] +
                          [f'{k}={v}' for k, v in properties.items()])
        with Daemon(f'{name}-daemon', ['--netdev', net.netdev('n0'), '--device', device,
                           '--export', 'vhost-user-net,id=e0,device=nic0,'
                           'path={socket}'], net.netns) as daemon:
            more = {'mq': 'on', 'vectors': 2 * queues + 2} \
                if queues > 1 else {}
            args = vhost_user_args(daemon, version(stock), queues=queues,
                                   **more)
            with Guest(name, stock, args, net.netns) as guest:
                net.configure(guest)
                yield guest, net, daemon


def version(qemu):
    """(major, minor) of a QEMU."""
    text = subprocess.run([qemu, '--version'], stdout=subprocess.PIPE,
                          check=True, text=True).stdout
    return tuple(int(x) for x in
                 re.search(r'version (\d+)\.(\d+)', text).groups())


def two_taps():
    """Two taps in one namespace."""
    one = TapNet(subnet=1)
    return [one, TapNet(subnet=2, netns=one.netns)]


def multiqueue(guest, net):
    """Two pairs, then one, then two, under traffic; streams both ways."""
    with scenarios.traffic(guest, net) as flood:
        for pairs in (2, 1, 2):
            guest.must(f'ethtool -L eth0 combined {pairs}')
            scenarios.moving(flood)
    scenarios.ping(guest, net)
    scenarios.tcp_both_ways(guest, net, mib=16)


def launcher_groups(suite, name, qemu):
    """What the command line that users know gives."""
    for kind, net, table in (('user', UserNet, BASIC), ('tap', TapNet, TAP)):
        for mode in ('bh', 'timer'):
            suite.group(
                lambda net=net, kind=kind, mode=mode:
                launched(f'net-{name}-{kind}-{mode}', qemu,
                         lambda: [net()], tx=mode),
                cases(f'{name}, {kind}, {mode}', table))
    for mode in ('bh', 'timer'):
        suite.group(lambda mode=mode: launched(
            f'net-{name}-stuck-{mode}', qemu, lambda: [StuckTap()], tx=mode),
            cases(f'{name}, stuck tap, {mode}', STUCK))
    suite.group(lambda: launched(f'net-{name}-two', qemu, two_taps),
                [(f'{name}: two NICs at once',
                  lambda pair: scenarios.two_nics(*pair))])


def daemon_groups(suite, name, qemu):
    """What an administrator's daemon gives."""
    for mode in ('bh', 'timer'):
        suite.group(
            lambda mode=mode: served(f'net-{name}-daemon-{mode}', qemu,
                                     TapNet, tx=mode),
            [(f'{name}, {mode}: daemon restarted under a stream',
              lambda all_: scenarios.restart_under_stream(
                  *all_[:2], all_[2].restart)),
             (f'{name}, {mode}: daemon restarted under traffic',
              lambda all_: scenarios.restart_under_traffic(
                  *all_[:2], all_[2].restart)),
             (f'{name}, {mode}: daemon killed under traffic',
              lambda all_: scenarios.restart_under_traffic(
                  *all_[:2], lambda: (all_[2].kill(), all_[2].start())))])


def queue_groups(suite, name, qemu):
    """Two queue pairs on a multi-queue tap; needs MSI-X, so not 7.2."""
    suite.group(lambda: served(f'net-{name}-mq', qemu,
                               lambda: TapNet(queues=2), queues=2, mq='on'),
                [(f'{name}: two queue pairs',
                  lambda all_: multiqueue(*all_[:2]))])


def main():
    """All groups for each QEMU that is asked for."""
    with Suite() as suite:
        for name, qemu in qemus().items():
            launcher_groups(suite, name, qemu)
            daemon_groups(suite, name, qemu)
        queue_groups(suite, '11', QEMUS['11'])


if __name__ == '__main__':
    main()
