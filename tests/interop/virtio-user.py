#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""A foreign driver on our device: DPDK's virtio-user, with exact counts.

Purpose: a driver that polls, never sleeps, sends in bursts and was written by
others.  What one side counts as sent, every other side counts as received:
testpmd's port counters, the daemon's ring counters, the tap's and our own.

Echo: frames with a sequence number go from a packet socket to a tap, through
the device to testpmd, which swaps the addresses and sends them back the same
way.  Each must come back once and unharmed.

    packet socket -> tap -> daemon -> receive ring  -> testpmd
    packet socket <- tap <- daemon <- transmit ring <- (macswap)

Wire: two NICs of one daemon joined by a hub, both in one testpmd.  One side
sends as fast as it can while the other does not read: the device must hold
it back, not drop.

Limits: the echo needs root, for a tap in a network namespace of its own.
testpmd polls, so nothing else should run beside this.

Arguments: words; only cases whose name contains one of them are run.
"""

import contextlib
import json
import pathlib
import socket
import struct
import sys

import testpmd

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]
                       / 'functional'))

from lib import env                                     # noqa: E402
from lib.daemon import Daemon                           # noqa: E402
from lib.guest import settle                            # noqa: E402
from lib.netns import Netns                             # noqa: E402
from lib.process import wait_for                        # noqa: E402
from lib.qmp import Qmp                                 # noqa: E402
from lib.runner import Suite                            # noqa: E402

TAP = 'tap0'
TAP_QUEUE = 30000           # frames; more than any test sends
ECHO_FRAMES = 20000
JUMBO_FRAMES = 2000
JUMBO_MTU = 9000
ETH_P_IP = 0x0800
SO_RCVBUFFORCE = 33
RECEIVE_BUFFER = 256 * 1024 * 1024
PORT_A = bytes.fromhex('020000000001')
PORT_B = bytes.fromhex('020000000002')
FLOWS = 64
SECONDS = 30                # limit of every wait


def expect_equal(what, found, wanted):
    assert found == wanted, f'{what}: {found}, expected {wanted}'


# ---- the daemon -----------------------------------------------------------


class NetDaemon(Daemon):
    """qemu-net-daemon; nic(i) are options of the i-th NIC at socket(i)."""

    def __init__(self, name, nics, netns=None):
        args = ['--qmp', 'unix:{socket}.qmp,server=on,wait=off']
        for i, (netdev, properties) in enumerate(nics):
            args += ['--netdev', netdev,
                     '--device', f'virtio-net-pci,id=nic{i},{properties}',
                     '--export', f'vhost-user-net,id=e{i},device=nic{i},'
                                 f'path={self.suffix(i)}']
        super().__init__(f'virtio-user-{name}', args, netns)

    @staticmethod
    def suffix(i):
        return '{socket}' + (f'.{i}' if i else '')

    def path(self, i):
        return self.suffix(i).replace('{socket}', self.socket)

    def stats(self):
        """{nic id: {'rx': [ring, ...], 'tx': [ring, ...]}}"""
        with socket.socket(socket.AF_UNIX) as sock:
            sock.connect(f'{self.socket}.qmp')
            nics = Qmp(sock).execute('query-virtio-net-stats')
        return {nic['id']: {way: [ring for ring in nic['queues']
                                  if ring['direction'] == way]
                            for way in ('rx', 'tx')}
                for nic in nics}


def expect_rings(what, rings, packets):
    """All of @packets, in @rings together, and nothing dropped."""
    expect_equal(f'{what}: packets counted by the daemon',
                 sum(ring['packets'] for ring in rings), packets)
    for ring in rings:
        for name, value in ring.items():
            if name.startswith('dropped'):
                expect_equal(f'{what}: {name} of ring {ring["index"]}',
                             value, 0)


# ---- frames ------------------------------------------------------------------


def make_frame(number, size):
    """An Ethernet frame with IPv4 and UDP; flow and content by @number."""
    payload = struct.pack('!I', number) + bytes(
        (number + i) & 255 for i in range(size - 14 - 20 - 8 - 4))
    udp = struct.pack('!HHHH', 1024 + number % FLOWS, 9, 8 + len(payload), 0)
    ip = struct.pack('!BBHHHBBH4s4s', 0x45, 0, 20 + 8 + len(payload), 0, 0,
                     64, 17, 0, bytes([192, 0, 2, 1]), bytes([192, 0, 2, 2]))
    words = struct.unpack('!10H', ip)
    total = sum(words)
    total = (total & 0xffff) + (total >> 16)
    total = (total & 0xffff) + (total >> 16)
    ip = ip[:10] + struct.pack('!H', total ^ 0xffff) + ip[12:]
    return PORT_B + PORT_A + struct.pack('!H', ETH_P_IP) + ip + udp + payload


def swapped(frame):
    return frame[6:12] + frame[:6] + frame[12:]


class Tap:
    """A tap in a namespace: frames in and out at the host's end."""

    def __init__(self, pairs, mtu):
        env.need_root()
        with contextlib.ExitStack() as undo:
            self.netns = Netns()
            undo.callback(self.netns.close)
            self.netns.ip('tuntap', 'add', 'dev', TAP, 'mode', 'tap',
                          *(['multi_queue'] if pairs > 1 else []))
            # Frames that nobody sent would spoil the counts: no IPv6.
            self.netns.ip('link', 'set', TAP, 'addrgenmode', 'none')
            self.netns.ip('link', 'set', TAP, 'mtu', mtu, 'txqueuelen',
                          TAP_QUEUE, 'up')
            with self.netns.entered():
                self._socket = socket.socket(
                    socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ETH_P_IP))
            self._undo = undo.pop_all()
        self._socket.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE,
                                RECEIVE_BUFFER)
        self._socket.bind((TAP, ETH_P_IP))
        self._socket.settimeout(env.scaled(SECONDS))

    def send(self, frame):
        self._socket.send(frame)

    def receive(self):
        return self._socket.recv(65536)

    def expect_nothing(self):
        self._socket.setblocking(False)
        with contextlib.suppress(BlockingIOError):
            frame = self._socket.recv(65536)
            raise AssertionError(f'one frame too many: {frame[:64].hex()}')

    def counters(self):
        """(packets the tap took from the device, gave to it)"""
        stats = json.loads(self.netns.ip('-j', '-s', 'link', 'show',
                                         TAP))[0]['stats64']
        return stats['rx']['packets'], stats['tx']['packets']

    def close(self):
        self._socket.close()
        self._undo.close()


# ---- cases ---------------------------------------------------------------


class Bench:
    """What a case uses, closed at its end."""

    def __init__(self, stack, daemon, ports, **options):
        self.daemon = stack.enter_context(daemon)
        self.pmd = testpmd.Testpmd([daemon.path(i) for i in range(ports)],
                                   **options)
        stack.callback(self.pmd.close)


def lost(got, frames, tap, bench):
    """Who has seen how many, when frames are missing."""
    lines = [f'{got} of {frames} frames came back',
             'the tap took %d and gave %d' % tap.counters(),
             f'testpmd: {bench.pmd.stats(0)}']
    for rings in bench.daemon.stats()['nic0'].values():
        lines += [f'daemon: {ring}' for ring in rings]
    return '\n'.join(lines)


def expect_echoes(tap, bench, frames, sizes):
    """Sends, and takes back each frame once, addresses swapped."""
    for number in range(frames):
        tap.send(make_frame(number, sizes[number % len(sizes)]))
    seen = bytearray(frames)
    for got in range(frames):
        try:
            frame = tap.receive()
        except TimeoutError:
            raise AssertionError(lost(got, frames, tap, bench)) from None
        number, = struct.unpack_from('!I', frame, 42)
        wanted = make_frame(number, sizes[number % len(sizes)])
        assert frame == swapped(wanted), f'frame {number} came back changed'
        seen[number] += 1
    expect_equal('frames that came back once', seen.count(1), frames)
    tap.expect_nothing()


def expect_queues(bench, pairs):
    """Each queue had its share, and all agree on how large it was."""
    queues = bench.pmd.queue_stats(0)
    rings = bench.daemon.stats()['nic0']
    for i in range(pairs):
        received = queues[f'rx_q{i}_good_packets']
        assert received, f'no packets on receive queue {i}'
        expect_equal(f'queue {i}: sent by testpmd',
                     queues[f'tx_q{i}_good_packets'], received)
        for way in ('rx', 'tx'):
            expect_equal(f'queue {i}: {way} packets of the daemon',
                         rings[way][i]['packets'], received)


def echo(mergeable, pairs, frames, sizes, mtu=1500):
    """Frames of @sizes there and back, @frames of them."""
    with contextlib.ExitStack() as stack:
        tap = Tap(pairs, mtu)
        stack.callback(tap.close)
        netdev = (f'tap,id=n0,ifname={TAP},script=no,downscript=no,'
                  f'queues={pairs}')
        mq = 'on' if pairs > 1 else 'off'
        bench = Bench(stack, NetDaemon('echo', [(netdev, f'netdev=n0,mq={mq}')],
                                       tap.netns), 1, pairs=pairs,
                      mergeable=mergeable,
                      max_frame=mtu + 14 if mtu > 1500 else None)
        bench.pmd.forward('macswap retry')
        expect_echoes(tap, bench, frames, sizes)
        bench.pmd.stop()
        port = bench.pmd.stats(0)
        expect_equal('received by testpmd', port['rx'], frames)
        expect_equal('sent by testpmd', port['tx'], frames)
        expect_equal('receive errors of testpmd', port['rx_errors'], 0)
        rings = bench.daemon.stats()['nic0']
        expect_rings('receive', rings['rx'], frames)
        expect_rings('transmit', rings['tx'], frames)
        expect_equal('packets the tap took and gave', tap.counters(),
                     (frames, frames))
        expect_queues(bench, pairs)


def wire(stack, mergeable):
    """Two NICs of one daemon joined by a hub, in one testpmd."""
    daemon = NetDaemon('wire', [(f'hubport,id=n{i},hubid=0', f'netdev=n{i}')
                                for i in range(2)])
    return Bench(stack, daemon, 2, mergeable=mergeable)


def expect_delivered(bench, sent):
    """All of sent[i] packets of port i have arrived at the other port."""
    for i, count in enumerate(sent):
        wait_for(lambda i=i, count=count:
                 bench.pmd.stats(1 - i)['rx'] >= count, SECONDS,
                 f'packet {count} at port {1 - i}')
    bench.pmd.stop()
    rings = bench.daemon.stats()
    for i, count in enumerate(sent):
        expect_equal(f'received on port {1 - i}',
                     bench.pmd.stats(1 - i)['rx'], count)
        expect_rings(f'port {i} transmit', rings[f'nic{i}']['tx'], count)
        expect_rings(f'port {1 - i} receive', rings[f'nic{1 - i}']['rx'],
                     count)
    print(f'# {sent} packets')


def wire_held_back(mergeable):
    """One side sends for a second into a wire that nobody reads."""
    with contextlib.ExitStack() as stack:
        bench = wire(stack, mergeable)
        bench.pmd.forward('txonly', ports=[0])
        settle(1)
        bench.pmd.stop()
        bench.pmd.forward('rxonly', ports=[1])
        sent = bench.pmd.stats(0)['tx']
        assert sent > 0, 'nothing was sent'
        expect_delivered(bench, [sent, 0])


def wire_both_ways(mergeable):
    """Packets that circulate through both NICs in both directions."""
    with contextlib.ExitStack() as stack:
        bench = wire(stack, mergeable)
        bench.pmd.command('set fwd io')
        bench.pmd.command('start tx_first 4')
        settle(1)
        bench.pmd.stop()
        bench.pmd.forward('rxonly')
        sent = [bench.pmd.stats(i)['tx'] for i in range(2)]
        assert min(sent) > 4 * 32, f'nothing circulated: {sent}'
        expect_delivered(bench, sent)


SMALL = [60, 64, 100, 333, 590, 1024, 1499, 1514]
JUMBO = [1514, 2034, 2035, 4000, 6000, 9014]


def on_off(value):
    return 'on' if value else 'off'


def main():
    reason = None
    if not testpmd.available():
        reason = f'no {testpmd.PROGRAM} (Debian package dpdk-dev)'
    with Suite() as suite:
        def case(name, function, **kwargs):
            if reason:
                suite.skip([name], reason)
            else:
                suite.run(name, lambda: function(**kwargs))

        for mergeable in (False, True):
            for pairs in (1, 2):
                case(f'echo, mergeable {on_off(mergeable)}, {pairs} queue '
                     f'{"pairs" if pairs > 1 else "pair"}', echo,
                     mergeable=mergeable, pairs=pairs, frames=ECHO_FRAMES,
                     sizes=SMALL)
        case('echo, frames longer than a buffer are merged', echo,
             mergeable=True, pairs=1, frames=JUMBO_FRAMES, sizes=JUMBO,
             mtu=JUMBO_MTU)
        for mergeable in (False, True):
            case(f'wire, a sender that is held back, mergeable '
                 f'{on_off(mergeable)}', wire_held_back, mergeable=mergeable)
            case(f'wire, both ways, mergeable {on_off(mergeable)}',
                 wire_both_ways, mergeable=mergeable)


if __name__ == '__main__':
    main()
