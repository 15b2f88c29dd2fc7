# SPDX-License-Identifier: GPL-2.0-or-later
"""The cases that every virtio-net has to pass, as tables for Suite.group().

A table maps the name of a case to a function of (guest, net).  Whether the
NIC is the stock QEMU's own or ours is the binary's business: the command
line is the same.
"""
import contextlib
import os

from . import env, scenarios
from .guest import Guest, nic_args
from .hostnet import StuckTap, TapNet, UserNet


def _accounts(guest, net):
    def action():
        scenarios.udp_from_guest(guest, net, 2000, 64)
        scenarios.tcp_both_ways(guest, net, mib=4)
    scenarios.accounts_match(guest, net, action)


def _reboot(how):
    return lambda guest, net: scenarios.reboot(guest, net, how)


BASIC = {
    'ping without loss': scenarios.ping,
    '64 MiB each way': scenarios.tcp_both_ways,
    'UDP both ways': scenarios.udp_both_ways,
    'unbind and bind under traffic': scenarios.unbind_bind,
    'reset under traffic': _reboot('reset'),
}
USER = {
    **BASIC,
    'TFTP from a relative path': scenarios.tftp,
    'command at a relative path': scenarios.guestfwd,
}
TAP = {
    **BASIC,
    'packet counts agree': _accounts,
    'both ways at once': scenarios.tcp_duplex,
    'module unloaded and loaded': scenarios.unload_load,
    'stop and cont under traffic': scenarios.stop_continue,
    'link down and up': scenarios.link_down_up,
    'guest reboots under traffic': _reboot('reboot'),
    'guest shuts down and boots': scenarios.shut_down_and_boot,
}
STUCK = {
    'backend that stops reading and resumes': scenarios.stuck_backend,
    'unbind and bind at a stuck backend': scenarios.stuck_unbind_bind,
    'stop and cont at a stuck backend': scenarios.stuck_stop_continue,
    'reset at a stuck backend': scenarios.stuck_reset,
}
TABLES = {'user': (UserNet, USER), 'tap': (TapNet, TAP),
          'stuck tap': (StuckTap, STUCK)}


def stock_qemus():
    """Name -> function that finds it: the stock QEMUs to run on.

    The distribution's (or QEMU_STOCK=); with QVN_ALL_QEMUS=1 also the one
    that scripts/stock-qemu.sh unpacked.
    """
    found = {'stock': env.stock_qemu}
    if os.environ.get('QVN_ALL_QEMUS'):
        found['stock 11'] = env.stock_qemu_11
    return found


def log_name(label):
    """A label as the name of a log directory."""
    return label.replace(',', '').replace(' ', '-')


@contextlib.contextmanager
def guest_at(label, find_binary, make_nets, stock=None, **properties):
    """A configured guest with a NIC at each net, as (guest, net, ...).

    stock   the stock QEMU behind our launcher, if binary is that
    """
    binary = find_binary()
    extra = {'QEMU_STOCK': str(stock())} if stock else None
    with contextlib.ExitStack() as stack:
        nets = [stack.enter_context(net) for net in make_nets()]
        args = [arg for number, net in enumerate(nets)
                for arg in nic_args(net, number, **properties)]
        guest = stack.enter_context(Guest(log_name(label), binary, args,
                                          nets[0].netns, extra_env=extra))
        for number, net in enumerate(nets):
            net.configure(guest, f'eth{number}')
        yield guest, *nets


def two_taps():
    """Two taps in one namespace, which goes with the first."""
    one = TapNet(subnet=1)
    return one, TapNet(subnet=2, netns=one.netns)


def cases(label, table):
    """A table as Suite.group() takes it, names led by the label.

    What is shared is a tuple: the arguments of the table's functions.
    """
    return [(f'{label}: {name}', lambda shared, run=run: run(*shared))
            for name, run in table.items()]


def group(suite, label, setup, table):
    """Runs a table on what setup() yields."""
    suite.group(setup, cases(label, table))


def run_kind(suite, label, kind, find_binary, first=None, **options):
    """The table of one kind of net, after the cases of `first`, on one
    guest; options as for guest_at()."""
    make_net, table = TABLES[kind]
    label = f'{label}, {kind}'
    group(suite, label,
          lambda: guest_at(label, find_binary, lambda: [make_net()],
                           **options), {**(first or {}), **table})


def run_two(suite, label, find_binary, **options):
    """Two NICs in one guest."""
    group(suite, label,
          lambda: guest_at(f'{label}, two', find_binary, two_taps,
                           **options),
          {'two NICs at once': lambda guest, *nets:
           scenarios.two_nics(guest, nets)})
