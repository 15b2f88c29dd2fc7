# SPDX-License-Identifier: GPL-2.0-or-later
"""Servers of the host side, each with its own thread and its own counts.

All are made as Server(net) and listen on net.bind_addr at a port of the
kernel's choice (`port`), inside the network of that host side.  Counts may
be read at any time and are exact once the sender has stopped and idle() has
returned.

The layout of a datagram is nettool.c's: flow, sequence number, count and
size as 32-bit big-endian numbers, then byte i is (sequence + i) & 255.
"""
import collections
import hashlib
import select
import socket
import struct
import time

from . import env
from .hostnet import socket_side
from .process import start_thread

_HEADER = struct.Struct('>IIII')
_REQUEST = 0xffffffff
_FILL = bytes(range(256)) * 258
_SO_RCVBUFFORCE = 33
_BUFFER_BYTES = 64 << 20


def datagram(flow, seq, count, size):
    """One datagram as nettool would send it."""
    start = (seq + _HEADER.size) & 255
    return (_HEADER.pack(flow, seq, count, size)
            + _FILL[start:start + size - _HEADER.size])


class _Server:
    """A socket with a thread that serves it until close()."""
    kind = socket.SOCK_STREAM

    def __init__(self, net):
        with socket_side(net):
            self.sock = socket.socket(socket.AF_INET, self.kind)
        self._prepare()
        self.sock.bind((net.bind_addr, 0))
        self.port = self.sock.getsockname()[1]
        self.error = None
        self.closing = False
        if self.kind == socket.SOCK_STREAM:
            self.sock.listen(16)
        self.thread = start_thread(self._run)

    def _prepare(self):
        self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)

    def _run(self):
        try:
            self._serve()
        except OSError as error:
            if not self.closing:
                self.error = error

    def _serve(self):
        raise NotImplementedError

    def close(self):
        """Ends the server; connections it still has end too."""
        self.closing = True
        try:
            self.sock.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass                        # a listening socket may refuse
        self.sock.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


class _TcpServer(_Server):
    """Each connection is served in a thread of its own.

    connections   how many were accepted
    bytes         moved in all connections so far
    """

    def __init__(self, net):
        self.connections = 0
        self.bytes = 0
        self.open = set()
        super().__init__(net)

    def _serve(self):
        while True:
            peer, _ = self.sock.accept()
            self.connections += 1
            self.open.add(peer)
            start_thread(self._one, peer)

    def _one(self, peer):
        try:
            with peer:
                self._connection(peer)
        except OSError:
            pass                        # the guest went away: its right
        self.open.discard(peer)

    def _connection(self, peer):
        raise NotImplementedError

    def close(self):
        super().close()
        for peer in list(self.open):
            try:
                peer.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass


class TcpSource(_TcpServer):
    """Sends `data` on each connection, then ends it."""

    def __init__(self, net, data):
        self.data = data
        super().__init__(net)

    def _connection(self, peer):
        view = memoryview(self.data)
        for start in range(0, len(view), 256 << 10):
            part = view[start:start + (256 << 10)]
            peer.sendall(part)
            self.bytes += len(part)
        peer.shutdown(socket.SHUT_WR)
        peer.recv(1)


class TcpSink(_TcpServer):
    """Takes all until end of stream; sums is [(bytes, sha256), ...]."""

    def __init__(self, net):
        self.sums = []
        super().__init__(net)

    def _connection(self, peer):
        digest, count = hashlib.sha256(), 0
        while data := peer.recv(256 << 10):
            digest.update(data)
            count += len(data)
            self.bytes += len(data)
        self.sums.append((count, digest.hexdigest()))


class TcpFlood(_TcpServer):
    """Sends and takes without end, both at once: background traffic."""

    def _connection(self, peer):
        start_thread(self._take, peer)
        block = bytes(64 << 10)
        while True:
            peer.sendall(block)
            self.bytes += len(block)

    def _take(self, peer):
        try:
            while data := peer.recv(256 << 10):
                self.bytes += len(data)
        except OSError:
            pass


class _UdpServer(_Server):
    kind = socket.SOCK_DGRAM

    def _prepare(self):
        try:
            self.sock.setsockopt(socket.SOL_SOCKET, _SO_RCVBUFFORCE,
                                 _BUFFER_BYTES)
        except PermissionError:
            self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF,
                                 _BUFFER_BYTES)

    def _serve(self):
        while True:
            data, peer = self.sock.recvfrom(65536)
            if self.closing:            # an empty answer, from nobody
                return
            self.received += 1
            self._take(data, peer)

    def _take(self, data, peer):
        raise NotImplementedError

    def idle(self, quiet=0.5, timeout=20):
        """Returns when nothing has arrived for `quiet` seconds."""
        deadline = time.monotonic() + env.scaled(timeout)
        seen = -1
        while self.received != seen and time.monotonic() < deadline:
            seen = self.received
            time.sleep(env.scaled(quiet))

    received = 0


class UdpEcho(_UdpServer):
    """Sends each datagram back."""

    def _take(self, data, peer):
        self.sock.sendto(data, peer)


class FlowCount:
    """What arrived of one flow.

    good        as sent, each sequence number once
    duplicate   seen before
    reordered   of the good ones: behind a higher sequence number
    bad         wrong length or bytes
    """

    def __init__(self):
        self.good = self.duplicate = self.reordered = self.bad = 0
        self.highest = -1
        self.seen = set()

    def __str__(self):
        return (f'{self.good} good, {self.duplicate} twice, '
                f'{self.reordered} reordered, {self.bad} bad')


class UdpSink(_UdpServer):
    """Counts and checks; flows[id] is a FlowCount."""

    def __init__(self, net):
        self.flows = collections.defaultdict(FlowCount)
        super().__init__(net)

    def _take(self, data, peer):
        if len(data) < _HEADER.size:
            self.flows[0].bad += 1
            return
        ident, seq, count, size = _HEADER.unpack_from(data)
        flow = self.flows[ident]
        if len(data) != size or data != datagram(ident, seq, count, size):
            flow.bad += 1
        elif seq in flow.seen:
            flow.duplicate += 1
        else:
            flow.seen.add(seq)
            flow.good += 1
            flow.reordered += seq < flow.highest
            flow.highest = max(seq, flow.highest)


class UdpSource(_UdpServer):
    """Answers nettool's udp-get with the datagrams it asks for.

    gap_us    pause between two: the guest's pace is not the host's
    sent      datagrams so far
    """

    def __init__(self, net, gap_us=100):
        self.gap_us = gap_us
        self.sent = 0
        super().__init__(net)

    def _take(self, data, peer):
        ident, seq, count, size = _HEADER.unpack_from(data)
        if seq == _REQUEST:
            self._answer(peer, ident, count, size)

    def _answer(self, peer, ident, count, size):
        due = time.monotonic()
        for seq in range(count):
            self.sock.sendto(datagram(ident, seq, count, size), peer)
            self.sent += 1
            due += self.gap_us / 1e6
            select.select([], [], [], max(0, due - time.monotonic()))


class UdpBroadcast(_UdpServer):
    """Sends datagrams to all on the net without end, wanted or not.

    No neighbour has to be known, so they go on while the guest is away.
    """
    _GAP_S = 200e-6

    def __init__(self, net):
        self.everyone = net.host_addr.rpartition('.')[0] + '.255'
        self.sent = 0
        super().__init__(net)

    def _prepare(self):
        self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_BROADCAST, 1)

    def _serve(self):
        while not self.closing:
            self.sock.sendto(datagram(1, self.sent, 0, 512),
                             (self.everyone, 9))
            self.sent += 1
            select.select([], [], [], self._GAP_S)
