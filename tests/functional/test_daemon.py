#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""The life of daemon and QEMU beside each other.

An administrator's daemon outlives its peers; a launcher's daemon does not
outlive its QEMU, however that ended.
"""
import contextlib
import pathlib
import signal

from lib import env, scenarios
from lib.daemon import Daemon, vhost_user_args
from lib.guest import Guest, mac_of, nic_args
from lib.hostnet import TapNet, UserNet
from lib.runner import Suite


@contextlib.contextmanager
def daemon_at(name, make_net):
    """A daemon with one NIC, as (net, daemon)."""
    with make_net() as net:
        args = ['--netdev', net.netdev('n0'), '--device',
                f'virtio-net-pci,id=nic0,netdev=n0,mac={mac_of(0)}',
                '--export', 'vhost-user-net,id=e0,device=nic0,path={socket}']
        with Daemon(name, args, net.netns) as daemon:
            yield net, daemon


@contextlib.contextmanager
def peer(name, net, daemon):
    """A configured guest of the stock QEMU, connected to the daemon."""
    qemu = env.stock_qemu()
    args = vhost_user_args(daemon, env.version_of(qemu))
    with Guest(name, qemu, args, net.netns) as guest:
        net.configure(guest)
        yield guest


def serves_again():
    """One daemon, two guests one after the other, the first one killed."""
    with daemon_at('again-daemon', TapNet) as (net, daemon):
        with contextlib.suppress(Killed), \
                peer('again-first', net, daemon) as guest, \
                scenarios.traffic(guest, net):
            guest.process.kill()
            raise Killed
        with peer('again-second', net, daemon) as guest:
            scenarios.ping(guest, net)
            scenarios.tcp_both_ways(guest, net, mib=8)


class Killed(Exception):
    """The way out of what belonged to a guest that was killed."""


def restarts_at_user():
    """libslirp's state goes with the daemon; the guest goes on."""
    with daemon_at('user-daemon', UserNet) as (net, daemon), \
            peer('user-peer', net, daemon) as guest:
        scenarios.restart_under_traffic(guest, net, daemon.restart)


def comm(pid):
    """A process's name as the kernel has it, cut at 15 bytes."""
    return pathlib.Path(f'/proc/{pid}/comm').read_text('ascii').strip()


def launched(name, end):
    """The launcher's NIC is in a daemon, and that ends with its QEMU."""
    with contextlib.suppress(Killed), UserNet() as net, \
            Guest(name, env.our_program('qemu-system-x86_64'), nic_args(net),
                  net.netns) as guest:
        pids = guest.process.leftovers()
        assert [comm(pid) for pid in pids] == ['qemu-net-daemon'], pids
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
        suite.run('daemon serves the next QEMU when one was killed',
                  serves_again)
        suite.run('daemon with user net restarts under traffic',
                  restarts_at_user)
        for name, end in ENDS.items():
            suite.run(f'launcher: no daemon is left after {name}',
                      launched, f'launched-{name}', end)


if __name__ == '__main__':
    main()
