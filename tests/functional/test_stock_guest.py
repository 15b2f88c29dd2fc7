#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Scenarios on the stock QEMUs' own virtio-net.

Proves the library and the scenarios before they judge our device: what
fails here is the test's fault, or a fault of the stock device that has to be
known.  One guest per QEMU and kind of net.
"""
import contextlib

from lib import env, scenarios
from lib.guest import Guest, nic_args
from lib.hostnet import StuckTap, TapNet, UserNet
from lib.runner import Suite

QEMUS = {'stock': env.stock_qemu, 'stock 11': env.stock_qemu_11}


@contextlib.contextmanager
def guest_at(name, qemu, make_net, **properties):
    """A configured guest at a new net, as (guest, net)."""
    binary = qemu()
    with make_net() as net, Guest(name, binary, nic_args(net, **properties),
                                  net.netns) as guest:
        net.configure(guest)
        yield guest, net


@contextlib.contextmanager
def guest_at_two(name, qemu):
    """A guest with two NICs at two taps, as (guest, nets)."""
    binary = qemu()
    with TapNet(subnet=1) as one, TapNet(subnet=2, netns=one.netns) as two:
        args = nic_args(one, 0) + nic_args(two, 1)
        with Guest(name, binary, args, one.netns) as guest:
            one.configure(guest, 'eth0')
            two.configure(guest, 'eth1')
            yield guest, (one, two)


def accounts(guest, net):
    """Counters of both sides agree over streams and datagrams."""
    def action():
        scenarios.udp_from_guest(guest, net, 2000, 64)
        scenarios.tcp_both_ways(guest, net, mib=4)
    scenarios.accounts_match(guest, net, action)


BASIC = {
    'ping without loss': scenarios.ping,
    '64 MiB each way': scenarios.tcp_both_ways,
    'UDP both ways': scenarios.udp_both_ways,
    'unbind and bind under traffic': scenarios.unbind_bind,
    'reboot from outside under traffic':
        lambda *pair: scenarios.reboot(*pair, 'reset'),
}
TAP = {
    **BASIC,
    'packet counts agree': accounts,
    'both ways at once': scenarios.tcp_duplex,
    'module unloaded and loaded': scenarios.unload_load,
    'stop and cont under traffic': scenarios.stop_continue,
    'link down and up': scenarios.link_down_up,
    'reboot from inside under traffic':
        lambda *pair: scenarios.reboot(*pair, 'reboot'),
}
STUCK = {
    'backend that stops reading and resumes': scenarios.stuck_backend,
    'unbind and bind at a stuck backend': scenarios.stuck_unbind_bind,
    'reset at a stuck backend': scenarios.stuck_reset,
}


def cases(prefix, table):
    """The table as Suite.group() wants it."""
    return [(f'{prefix}: {name}', lambda pair, run=run: run(*pair))
            for name, run in table.items()]


def main():
    """All groups for each QEMU that is there."""
    with Suite() as suite:
        for name, qemu in QEMUS.items():
            log = name.replace(' ', '-')
            for kind, make_net, table in (('user', UserNet, BASIC),
                                          ('tap', TapNet, TAP),
                                          ('stuck tap', StuckTap, STUCK)):
                suite.group(
                    lambda log=log, kind=kind, qemu=qemu, make_net=make_net:
                    guest_at(f'{log}-{kind}'.replace(' ', '-'), qemu,
                             make_net),
                    cases(f'{name}, {kind}', table))
            suite.group(lambda log=log, qemu=qemu:
                        guest_at_two(f'{log}-two', qemu),
                        [(f'{name}: two NICs at once',
                          lambda pair: scenarios.two_nics(*pair))])


if __name__ == '__main__':
    main()
