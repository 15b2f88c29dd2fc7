# SPDX-License-Identifier: GPL-2.0-or-later
"""What a network device has to get right, for a started guest at a net.

Each function takes a Guest and the net (hostnet) its interface is at, and
returns or raises AssertionError.  They leave the guest as they found it: with
its interface configured and no traffic.  None depends on how fast anything
is; limits are only there to end a test that hangs.
"""
import contextlib
import hashlib
import random
import re
import signal
import time

from . import env
from .agent import GuestGone, GuestRebooted
from .guest import settle
from .process import wait_for
from .servers import (TcpFlood, TcpSink, TcpSource, UdpBroadcast, UdpEcho,
                      UdpSink, UdpSource)

MIB = 1 << 20
DRIVER = '/sys/bus/virtio/drivers/virtio_net'
# The shell's own ping has fewer options than this one.
PING = '/usr/bin/ping'


def _values(text):
    """The key=value words that nettool prints."""
    return {key: int(value)
            for key, value in re.findall(r'(\w+)=(\d+)', text)}


def _content(mib, seed):
    return random.Random(seed).randbytes(mib * MIB)


def ping(guest, net, count=100, sizes=(56, 1472), interval=0.01):
    """No echo request goes unanswered; the times are returned (ms)."""
    average = None
    for size in sizes:
        status, output = guest.run(
            f'{PING} -n -q -i {interval} -c {count} -s {size} -W 5 '
            f'{net.host_addr}', timeout=60 + count * (interval + 0.1))
        found = re.search(r'(\d+) packets transmitted, (\d+) received',
                          output)
        assert found and status == 0 and found[1] == found[2] == str(count), \
            f'ping of {size} bytes: {output}'
        times = re.search(r'= [\d.]+/([\d.]+)/', output)
        average = average or (times and float(times[1]))
    return average


def tftp(guest, net):
    """A file of the directory that tftp= names."""
    text = guest.must(f'tftp -g -r {net.FILE} -l /tmp/got {net.host_addr} && '
                      'cat /tmp/got; rm -f /tmp/got')
    assert text == 'served\n', text


def guestfwd(guest, net):
    """The script that guestfwd= names runs, and what would end it does."""
    address, port = net.COMMAND
    text = guest.must(f'nc {address} {port} </dev/null')
    found = re.fullmatch(r'SigBlk:\s*([0-9a-f]+)\n', text)
    assert found, text
    for number in (signal.SIGHUP, signal.SIGINT, signal.SIGTERM):
        assert not int(found[1], 16) >> (number - 1) & 1, \
            f'{number.name} is blocked: {text}'


def reachable(guest, net, timeout=60):
    """Waits until one ping is answered: after a restart of something."""
    wait_for(lambda: guest.run(f'{PING} -n -c 1 -W 1 {net.host_addr}')[0]
             == 0, timeout, f'{guest.name}: an answer from {net.host_addr}')


def tcp_to_guest(guest, net, mib=64, seed=1):
    """A stream arrives in the guest with the sum it was sent with."""
    data = _content(mib, seed)
    with TcpSource(net, data) as source:
        guest.must(f'nettool tcp-get {net.host_addr} {source.port} '
                   '/tmp/data', timeout=300)
    _expect_sum(guest, '/tmp/data', data)


def _expect_sum(guest, path, data):
    got = guest.must(f'sha256sum {path}', timeout=120).split()[0]
    want = hashlib.sha256(data).hexdigest()
    assert got == want, f'sha256 of {path} in the guest: {got}, not {want}'


def tcp_from_guest(guest, net, mib=64):
    """A stream from the guest arrives with the sum the guest had.

    Sends what tcp_to_guest() left if there is enough, else random bytes.
    """
    guest.must(f'size=$(stat -c %s /tmp/data 2>/dev/null || echo 0); '
               f'[ $size -eq {mib * MIB} ] || '
               f'head -c {mib * MIB} /dev/urandom >/tmp/data', timeout=120)
    want = guest.must('sha256sum /tmp/data', timeout=120).split()[0]
    with TcpSink(net) as sink:
        guest.must(f'nettool tcp-put {net.host_addr} {sink.port} /tmp/data',
                   timeout=300)
        assert sink.sums == [(mib * MIB, want)], \
            f'the host got {sink.sums}, the guest sent {mib} MiB of {want}'


def tcp_both_ways(guest, net, mib=64):
    """64 MiB to the guest, then the same 64 MiB back; sums match."""
    try:
        tcp_to_guest(guest, net, mib)
        tcp_from_guest(guest, net, mib)
    finally:
        guest.run('rm -f /tmp/data')


def tcp_duplex(guest, net, mib=16):
    """Both ways at the same time; sums match."""
    data = _content(mib, 2)
    guest.must(f'head -c {mib * MIB} /dev/urandom >/tmp/out', timeout=60)
    want = guest.must('sha256sum /tmp/out', timeout=60).split()[0]
    with TcpSource(net, data) as source, TcpSink(net) as sink:
        jobs = [guest.spawn(f'nettool tcp-get {net.host_addr} {source.port} '
                            '/tmp/in'),
                guest.spawn(f'nettool tcp-put {net.host_addr} {sink.port} '
                            '/tmp/out')]
        for job in jobs:
            status, output = guest.wait(job, 300)
            assert status == 0, output
        assert sink.sums == [(mib * MIB, want)], sink.sums
    _expect_sum(guest, '/tmp/in', data)
    guest.must('rm -f /tmp/in /tmp/out')


def udp_echo(guest, net, count=100, sizes=(16, 18, 64, 512, 1400, 1472, 8000)):
    """In lock step: each datagram comes back as it was sent.

    The largest does not fit a frame and goes as fragments.
    """
    with UdpEcho(net) as echo:
        for size in sizes:
            status, output = guest.run(
                f'nettool udp-echo {net.host_addr} {echo.port} {count} '
                f'{size} 5000', timeout=120)
            assert status == 0 and _values(output).get('good') == count, \
                f'{size} bytes: {output}'


def udp_from_guest(guest, net, count=20000, size=64, gap_us=0):
    """What the guest sends is what arrives, in order.

    At a tap nothing may be missing: it pushes back, it does not drop, and
    the server's buffer takes the whole flow.  libslirp may drop at its
    socket; then only what arrived is judged.
    """
    with UdpSink(net) as sink:
        status, output = guest.run(
            f'nettool udp-send {net.host_addr} {sink.port} {count} {size} '
            f'{gap_us}', timeout=120)
        assert status == 0 and _values(output)['sent'] == count, output
        sink.idle()
        flow = sink.flows[1]
        assert not flow.bad and not flow.reordered and not flow.duplicate, \
            str(flow)
        if net.kind == 'tap':
            assert flow.good == count, f'{flow} of {count} sent'
        else:
            assert flow.good > 0, str(flow)


def udp_to_guest(guest, net, count=5000, size=1400, gap_us=100):
    """What the host sends arrives in order; lost only where it is counted.

    The tap's own queue is finite, so on a machine that stalls it may
    overflow: what it counts as dropped may be missing, nothing else.
    """
    before = net.counters()
    with UdpSource(net, gap_us) as source:
        status, output = guest.run(
            f'nettool udp-get {net.host_addr} {source.port} {count} {size} '
            '3000', timeout=120)
        sent = source.sent
    got = _values(output)
    assert status in (0, 3) and got, output
    assert got['bad'] == 0 and got['reordered'] == 0, output
    if before:
        dropped = net.counters()['dropped'] - before['dropped']
        assert got['good'] + dropped >= sent, \
            f'{output.strip()}, {sent} sent, the tap dropped {dropped}'
    else:
        assert got['good'] > 0, output


def udp_both_ways(guest, net):
    """Datagrams of many sizes in lock step, then streams of them."""
    udp_echo(guest, net)
    for size in (64, 1400):
        udp_from_guest(guest, net, 10000, size)
        udp_to_guest(guest, net, 5000, size)


def _guest_counters(guest, iface):
    path = f'/sys/class/net/{iface}/statistics'
    text = guest.must(f'cat {path}/rx_packets {path}/tx_packets')
    received, sent = (int(word) for word in text.split())
    return {'to_guest': received, 'from_guest': sent}


def accounts_match(guest, net, action, iface='eth0'):
    """Runs action(); what one side counts as sent the other received.

    Packets of any protocol, by the driver's and the tap's own counters.
    """
    def difference():
        host, ours = net.counters(), _guest_counters(guest, iface)
        return {key: host[key] - ours[key] for key in ours}

    before = _settled(difference)
    action()
    after = _settled(difference)
    assert before == after, f'host minus guest: {before}, then {after}'


def _settled(read, tries=20):
    """A value that was the same twice, a moment apart."""
    last = read()
    for _ in range(tries):
        time.sleep(0.2)
        value = read()
        if value == last:
            return value
        last = value
    return last


@contextlib.contextmanager
def traffic(guest, net):
    """Background traffic both ways, TCP and UDP, while inside.

    It survives the interface or the link going away: each part starts again
    when it ended.  It ends with the guest, or when the guest reboots.
    Yields the TcpFlood, whose `bytes` tell whether anything moves.
    """
    with TcpFlood(net) as flood, UdpSink(net) as sink:
        jobs = [guest.spawn(f'while :; do {command} >/dev/null 2>&1; '
                            'sleep 0.1; done') for command in (
            f'nettool tcp-get {net.host_addr} {flood.port} /dev/null',
            f'nettool tcp-put {net.host_addr} {flood.port} /dev/zero',
            f'nettool udp-send {net.host_addr} {sink.port} 0 512 500 9')]
        moving(flood)
        try:
            yield flood
        finally:
            # If the guest is gone or new, so are its jobs.
            with contextlib.suppress(GuestGone, GuestRebooted):
                for job in jobs:
                    job.kill()
                    job.wait()


def moving(flood, timeout=60, bytes_=MIB):
    """Waits until the background traffic has moved some more."""
    start = flood.bytes
    wait_for(lambda: flood.bytes > start + bytes_, timeout,
             'background traffic')


def _device(guest, iface):
    return guest.must(
        f'basename $(readlink -f /sys/class/net/{iface}/device)').strip()


def _interface_of(guest, device):
    """The name of a device's interface; it may change when bound again."""
    return guest.must(f'ls /sys/bus/virtio/devices/{device}/net').strip()


def unbind_bind(guest, net, iface='eth0', rounds=3):
    """The driver lets go of the device under traffic and takes it again."""
    device = _device(guest, iface)
    with traffic(guest, net) as flood:
        for _ in range(rounds):
            guest.must(f'echo {device} >{DRIVER}/unbind', timeout=30)
            guest.must(f'echo {device} >{DRIVER}/bind', timeout=30)
            iface = _interface_of(guest, device)
            net.configure(guest, iface)
            reachable(guest, net)
            moving(flood)
    ping(guest, net)


def unload_load(guest, net, iface='eth0'):
    """The driver's module goes and comes back."""
    guest.must('rmmod virtio_net && insmod /lib/modules/virtio_net.ko')
    net.configure(guest, iface)
    ping(guest, net)


def reboot(guest, net, how='reset'):
    """The machine restarts under traffic: 'reset' from outside, 'reboot'
    from inside.  Afterwards all works as before.

    From inside the guest's drivers are not told.  Where they are, Linux 6.1
    (and others with virtio_dev_shutdown()) may hang on any device: it marks
    the queues broken while transmit goes on, and start_xmit() does not
    return if the used index moved and a broken queue gives no buffer back.
    """
    with traffic(guest, net):
        if how == 'reset':
            guest.reset()
        else:
            guest.reboot()
    _as_before(guest, net)


def _as_before(guest, net):
    net.configure(guest)
    ping(guest, net)
    tcp_both_ways(guest, net, mib=8)


def shut_down_and_boot(guest, net, iface='eth0'):
    """The guest's kernel shuts down and boots again, receive under load.

    As in an orderly shutdown the guest's interface goes down right before:
    it sends no more (see reboot()), while frames for it keep coming.
    """
    with traffic(guest, net), UdpBroadcast(net) as flood:
        before = flood.sent
        guest.shut_down_and_boot(iface)
        assert flood.sent > before, 'nothing was sent meanwhile'
    _as_before(guest, net)


def stop_continue(guest, net):
    """The machine is stopped and continued under traffic."""
    with traffic(guest, net) as flood:
        for _ in range(3):
            guest.execute('stop')
            settle(0.3)
            guest.execute('cont')
            moving(flood)
    ping(guest, net)


def link_down_up(guest, net, iface='eth0', ident='n0'):
    """set_link is seen by the guest, and traffic flows again after it."""
    for up in (False, True):
        guest.execute('set_link', name=ident, up=up)
        want = '1' if up else '0'
        wait_for(lambda want=want: guest.must(
            f'cat /sys/class/net/{iface}/carrier').strip() == want, 30,
            f'carrier {want} in the guest')
    reachable(guest, net)
    ping(guest, net, count=50)


def two_nics(guest, nets, mib=16):
    """Both interfaces carry a stream each way at the same time."""
    data = [_content(mib, seed) for seed in range(len(nets))]
    with contextlib.ExitStack() as stack:
        jobs, sinks = [], []
        guest.must(f'head -c {mib * MIB} /dev/urandom >/tmp/out', timeout=60)
        want = guest.must('sha256sum /tmp/out', timeout=60).split()[0]
        for number, net in enumerate(nets):
            source = stack.enter_context(TcpSource(net, data[number]))
            sinks.append(stack.enter_context(TcpSink(net)))
            jobs.append(guest.spawn(
                f'nettool tcp-get {net.host_addr} {source.port} '
                f'/tmp/in{number}'))
            jobs.append(guest.spawn(
                f'nettool tcp-put {net.host_addr} {sinks[-1].port} /tmp/out'))
        for job in jobs:
            status, output = guest.wait(job, 300)
            assert status == 0, output
        for number, sink in enumerate(sinks):
            assert sink.sums == [(mib * MIB, want)], (number, sink.sums)
            _expect_sum(guest, f'/tmp/in{number}', data[number])
    guest.must('rm -f /tmp/out /tmp/in*')


def restart_under_stream(guest, net, restart, mib=64):
    """One TCP stream lives through restart() of what serves the NIC.

    restart() is called when a part of the stream has passed; it may take
    the link down for a while.
    """
    data = _content(mib, 3)
    with TcpSource(net, data) as source:
        job = guest.spawn(f'nettool tcp-get {net.host_addr} {source.port} '
                          '/tmp/data')
        wait_for(lambda: source.bytes > 2 * MIB, 60, 'the stream to start')
        assert source.bytes < len(data), 'the stream was over too soon'
        restart()
        status, output = guest.wait(job, 300)
        assert status == 0, output
        assert source.connections == 1, source.connections
    _expect_sum(guest, '/tmp/data', data)
    guest.must('rm -f /tmp/data')
    ping(guest, net)


def restart_under_traffic(guest, net, restart, rounds=3):
    """Traffic both ways comes back after each restart()."""
    with traffic(guest, net) as flood:
        for _ in range(rounds):
            restart()
            reachable(guest, net)
            moving(flood)
    ping(guest, net)


# How long a monitor command may take beside a stuck backend.  The device
# answers in 10 ms; the rest is for a busy machine.
MONITOR_LIMIT_S = 1.0


@contextlib.contextmanager
def _stuck(guest, net, sink, count):
    """A flow that the far end has stopped taking, in mid-stream."""
    net.stick()
    try:
        job = guest.spawn(f'nettool udp-send {net.host_addr} {sink.port} '
                          f'{count} 1400 0')
        held = [-1] * 10

        def full():
            held.append(net.held_packets())
            return held[-1] > 10 and held[-1] == held[-10]
        wait_for(full, 30, 'the backend to be full')
        yield job
    finally:
        net.release()


def stuck_backend(guest, net, count=3000):
    """Transmit backs up into the guest and resumes; no datagram is lost.

    Meanwhile the monitor answers and the guest runs.
    """
    reachable(guest, net)
    with UdpSink(net) as sink:
        with _stuck(guest, net, sink, count) as job:
            assert job.status is None, \
                f'nothing backed up into the guest: {job.output}'
            for _ in range(20):
                delay = guest.qmp.delay()
                assert delay < env.scaled(MONITOR_LIMIT_S), delay
            guest.must('true')
        status, output = guest.wait(job, 60)
        assert status == 0 and _values(output)['sent'] == count, output
        sink.idle()
        flow = sink.flows[1]
        assert flow.good == count and not flow.bad and not flow.reordered, \
            f'{flow} of {count} sent'
    ping(guest, net)


def stuck_then(guest, net, action):
    """action(guest) while the backend is stuck: it must not wait for it.

    The guest's NIC may be gone or new afterwards: it is configured again.
    """
    with UdpSink(net) as sink:
        with _stuck(guest, net, sink, 3000):
            action(guest)
            delay = guest.qmp.delay()
            assert delay < env.scaled(MONITOR_LIMIT_S), delay
    net.configure(guest)
    reachable(guest, net)
    ping(guest, net)


def stuck_unbind_bind(guest, net, iface='eth0'):
    """The driver lets go while packets of it wait at a stuck backend."""
    device = _device(guest, iface)

    def action(guest):
        guest.must(f'echo {device} >{DRIVER}/unbind', timeout=30)
        guest.must(f'echo {device} >{DRIVER}/bind', timeout=30)
    stuck_then(guest, net, action)


def stuck_stop_continue(guest, net):
    """The machine stops and goes on while packets wait at a stuck backend.

    Each stop takes every ring back from the device, which may not wait for
    the backend: QEMU holds its lock meanwhile.
    """
    def action(guest):
        took = []
        for command in ('stop', 'cont') * 20:
            start = time.monotonic()
            guest.execute(command)
            took.append(time.monotonic() - start)
        took.sort()
        print(f'# stop and cont beside a stuck backend: median '
              f'{took[20] * 1e3:.1f} ms, longest {took[-1] * 1e3:.1f} ms',
              flush=True)
        assert took[-1] < env.scaled(MONITOR_LIMIT_S), took
    stuck_then(guest, net, action)


def stuck_reset(guest, net):
    """The machine is reset while packets wait at a stuck backend."""
    stuck_then(guest, net, lambda guest: guest.reset())

