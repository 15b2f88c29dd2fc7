# SPDX-License-Identifier: GPL-2.0-or-later
"""The peer of a guest's NIC: what is at the other end of -netdev.

All have the same face, so that a scenario need not know which it has:

  kind         'tap' or 'user'
  netns        where the QEMU (or daemon) has to run, or None
  servers_netns  where the host's servers run, or None
  host_addr    where the guest finds the host's servers
  bind_addr    where those servers listen
  inbound      whether the host can open connections to the guest
  guest_addr   the guest's address
  netdev(id)   the text after -netdev
  configure(guest, iface)   gives the guest's interface its address
  counters()   {'to_guest', 'from_guest', 'dropped'} packets, or None
  close()

Addresses are from 10.0.0.0/8, in namespaces of their own.
"""
import contextlib
import json
import os
import pathlib
import shutil
import socket
import tempfile

from . import env
from .netns import Netns
from .process import wait_for
from .runner import Skip


class TapNet:
    """A persistent tap in a namespace, with an address on it.

    queues > 1 makes it multi-queue.  Several taps can share a namespace
    (netns=) if they differ in `subnet`; then the caller closes that.
    """
    kind = 'tap'
    inbound = True

    def __init__(self, queues=1, subnet=1, netns=None):
        env.need_root()
        self.own_netns = netns is None
        self.netns = self.servers_netns = netns or Netns()
        self.queues = queues
        self.ifname = f'tap{subnet}'
        self.host_addr = self.bind_addr = f'10.86.{subnet}.1'
        self.guest_addr = f'10.86.{subnet}.2'
        self.netns.ip('tuntap', 'add', 'dev', self.ifname, 'mode', 'tap',
                      *(['multi_queue'] if queues > 1 else []))
        self._address(self.netns, self.ifname)

    def _address(self, netns, ifname):
        # Without IPv6 of the host: its multicasts at any time would be in
        # no count, since a guest's filter may take or leave them.
        netns.ip('link', 'set', ifname, 'addrgenmode', 'none')
        netns.ip('addr', 'add', f'{self.host_addr}/24', 'dev', ifname)
        netns.ip('link', 'set', ifname, 'up')

    def netdev(self, ident, **options):
        """tap by name; options as in sndbuf=65536."""
        if self.queues > 1:
            options['queues'] = self.queues
        more = ''.join(f',{key}={value}' for key, value in options.items())
        return (f'tap,id={ident},ifname={self.ifname},script=no,'
                f'downscript=no{more}')

    def configure(self, guest, iface='eth0'):
        """The guest's interface up, with guest_addr."""
        guest.must(f'netup {iface} {self.guest_addr}/24')

    def counters(self):
        """Packets by the tap's own count, seen from the guest."""
        link = json.loads(self.netns.ip('-j', '-s', 'link', 'show',
                                        self.ifname))[0]['stats64']
        return {'to_guest': link['tx']['packets'],
                'from_guest': link['rx']['packets'],
                'dropped': link['tx']['dropped'] + link['rx']['dropped']}

    def close(self):
        """Removes the tap, and the namespace if it was made here."""
        if self.own_netns:
            self.netns.close()
        else:
            self.netns.ip('link', 'del', self.ifname)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


class StuckTap(TapNet):
    """A tap whose far end stops taking packets, until released.

    A tap pushes back (EAGAIN, POLLOUT) when the packets written to it and
    not yet consumed exceed its send buffer, so something has to hold them:

        tap - bridge - veth [tbf, nearly no rate] - veth in the peer
                                                    namespace, with address

    A shaped egress queue keeps each packet charged to the tap.  What takes
    the charge off early: a local receiver (hence a second namespace for the
    servers), a broadcast (the bridge forwards a copy), netfilter on the
    bridge (turned off).  Nothing is lost: release() sends what was held.

    Only useful with a finite send buffer: netdev() sets sndbuf.
    """
    SNDBUF_BYTES = 65536
    _HELD_BYTES = 64 << 20      # far more than the send buffer
    # One packet passes the shaper per 200 s, the burst of 1600 bytes.
    _STUCK = ('rate', '64bit', 'burst', '1600')
    # To nobody, of an experimental type.
    _POKE = bytes.fromhex('02000000fffe' '02000000ffff' '88b5') + bytes(46)
    _OPEN = ('rate', '40gbit', 'burst', '16m')

    def __init__(self, subnet=1):
        super().__init__(subnet=subnet)
        self.servers_netns = Netns()
        switch = self.netns
        switch.ip('addr', 'flush', 'dev', self.ifname)
        switch.ip('link', 'add', 'br0', 'type', 'bridge')
        switch.ip('link', 'add', 'far', 'type', 'veth', 'peer', 'name',
                  'host', 'netns', self.servers_netns.name)
        for port in (self.ifname, 'far'):
            switch.ip('link', 'set', port, 'master', 'br0')
            switch.ip('link', 'set', port, 'up')
        switch.ip('link', 'set', 'br0', 'up')
        switch.sysctl('bridge.bridge-nf-call-iptables', 0)
        self._address(self.servers_netns, 'host')
        self._shape('add', self._OPEN)

    def _shape(self, verb, rate):
        self.netns.tc('qdisc', verb, 'dev', 'far', 'root', 'tbf',
                             *rate, 'limit', self._HELD_BYTES)

    def netdev(self, ident, **options):
        """tap with a finite send buffer."""
        return super().netdev(ident, **{'sndbuf': self.SNDBUF_BYTES,
                                        **options})

    def stick(self):
        """From now on packets of the guest are held."""
        self._shape('change', self._STUCK)

    def release(self):
        """Lets go of what was held, and of all that follows."""
        self._shape('change', self._OPEN)
        # A change alone does not wake the queue; a packet does.
        with self.netns.entered(), \
                socket.socket(socket.AF_PACKET, socket.SOCK_RAW) as poke:
            poke.bind(('far', 0))
            wait_for(lambda: poke.send(self._POKE) and not self.held_packets(),
                     10, 'release of held packets')

    def held_packets(self):
        """How many packets wait at the shaper."""
        stats = json.loads(self.netns.tc('-j', '-s', 'qdisc', 'show',
                                                'dev', 'far'))
        return stats[0]['qlen']

    def close(self):
        super().close()
        self.servers_netns.close()


class UserNet:
    """libslirp's network, its host the loopback of a namespace.

    Without root the namespace is the machine's own.

    It serves FILE by TFTP and the output of a script at COMMAND, both named
    by paths that are relative to the directory it is started in.
    """
    FILE = 'hello'
    COMMAND = '10.0.2.100', 1234
    kind = 'user'
    inbound = False
    host_addr = '10.0.2.2'
    bind_addr = '127.0.0.1'
    guest_addr = '10.0.2.15'

    def __init__(self):
        try:
            env.need_root()
            self.netns = self.servers_netns = Netns()
        except Skip:
            self.netns = self.servers_netns = None
        # Where a path from the root directory does not lead by chance
        self.dir = pathlib.Path(tempfile.mkdtemp(prefix='user-net-',
                                                 dir=env.BUILD_DIR))
        (self.dir / self.FILE).write_text('served\n')
        script = self.dir / 'script'
        script.write_text('#!/bin/sh\ngrep SigBlk /proc/self/status\n')
        script.chmod(0o755)
        # Whoever runs the daemon need not be who runs this
        self.dir.chmod(0o755)

    def netdev(self, ident, **options):
        """user; options as in hostname='x'."""
        here = os.path.relpath(self.dir)
        more = ''.join(f',{key}={value}' for key, value in options.items())
        address, port = self.COMMAND
        return (f'user,id={ident},tftp={here},guestfwd=tcp:{address}:{port}-'
                f'cmd:{here}/script{more}')

    def configure(self, guest, iface='eth0'):
        """The guest's interface up, with the address that DHCP offers."""
        lease = guest.must(f'netup {iface} dhcp', timeout=60)
        assert f'ip={self.guest_addr}/24' in lease, lease

    def counters(self):
        """libslirp has none."""

    def close(self):
        """Removes the namespace and the files."""
        shutil.rmtree(self.dir)
        if self.netns:
            self.netns.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


@contextlib.contextmanager
def socket_side(net):
    """Sockets opened inside belong to the host side of `net`."""
    if net.servers_netns is None:
        yield
    else:
        with net.servers_netns.entered():
            yield
