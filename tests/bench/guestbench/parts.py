# SPDX-License-Identifier: GPL-2.0-or-later
"""What is measured on one NIC: functions of a Bench, each returns its figures
as {name: value}, CPU among them."""
import subprocess

from .figures import (iperf_bits, key_values, percentile, ping_times,
                      qperf_values)
from .machine import BURST_PORT, IPERF_PORT, Cpu

PING_GAP_S = 0.01
# Of 1400 bytes each.  Once a ms leaves a fast NIC short pauses and a slow one
# none; after 4 ms any NIC has been idle.
BURST_PKTS, BURST_BYTES = 30, 1400


def _qperf(bench, test, *options):
    """(values, Cpu) of one test from the guest."""
    command = ' '.join(['qperf', bench.net.host_addr, '-t',
                        str(bench.seconds), *options, test])
    with Cpu() as cpu:
        text = bench.guest.must(command, timeout=bench.seconds + 30)
    return qperf_values(text), cpu


def _latency(name, *options):
    """TCP request/response: microseconds one way, as qperf has it."""
    def measure(bench):
        values, cpu = _qperf(bench, 'tcp_lat', *options)
        round_trips = bench.seconds * 1e6 / (2 * values['latency'])
        return {f'{name} us': values['latency'],
                f'{name} CPU s/ktrans': cpu.seconds / round_trips * 1e3}
    return measure


def _ping(bench):
    """Average of 100 pings, 10 ms apart."""
    with Cpu() as cpu:
        text = bench.guest.must(f'ping -c 100 -i {PING_GAP_S} '
                                f'{bench.net.host_addr} >/tmp/ping; '
                                'cat /tmp/ping')
    times = ping_times(text)
    return {'ping ms': sum(times) / len(times), 'ping cores': cpu.cores}


def _udp(size):
    """Datagrams from the guest: sent, and received at the host."""
    def measure(bench):
        values, cpu = _qperf(bench, 'udp_bw', '-m', str(size))
        sent = values['send_bw'] / size
        received = values['recv_bw'] / size
        return {f'UDP {size} kpps': received / 1e3,
                f'UDP {size} lost %': max(0, 1 - received / sent) * 100,
                f'UDP {size} CPU s/Mpkt':
                    cpu.seconds / (received * bench.seconds) * 1e6}
    return measure


def _stream(name, bits, seconds, cpu):
    return {f'{name} Mb/s': bits / 1e6,
            f'{name} CPU s/Gb': cpu.seconds / (bits * seconds) * 1e9}


def _tcp(name, size):
    """A stream from the guest."""
    def measure(bench):
        values, cpu = _qperf(bench, 'tcp_bw', '-m', size)
        return _stream(name, values['bw'] * 8, bench.seconds, cpu)
    return measure


def _tcp_receive(bench):
    """A stream to the guest, of 64 KiB writes: the roles swapped."""
    with Cpu() as cpu:
        text = subprocess.run(
            bench.net.netns.prefix() +
            ['qperf', bench.net.guest_addr, '-ws', '10', '-t',
             str(bench.seconds), '-m', '64K', 'tcp_bw'],
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=True,
            text=True, timeout=bench.seconds + 30).stdout
    return _stream('TCP receive', qperf_values(text)['bw'] * 8,
                   bench.seconds, cpu)


def _interrupts(guest):
    """Interrupts of the NIC so far, as the guest counts them."""
    cpus, *lines = guest.must('cat /proc/interrupts').splitlines()
    return sum(int(count) for line in lines if 'virtio' in line
               for count in line.split()[1:1 + len(cpus.split())])


def _tcp_64k(bench):
    """A stream of large writes, and its interrupts."""
    before = _interrupts(bench.guest)
    found = _tcp('TCP 64K', '64K')(bench)
    found['TCP 64K interrupts/s'] = \
        (_interrupts(bench.guest) - before) / bench.seconds
    return found


def _mixed(bench):
    """A stream of large writes while a ping runs."""
    count = int(bench.seconds / PING_GAP_S)
    ping = bench.guest.spawn(f'/usr/bin/ping -c {count} -i {PING_GAP_S} '
                             f'{bench.net.host_addr} >/tmp/ping')
    values, cpu = _qperf(bench, 'tcp_bw', '-m', '64K')
    bench.guest.wait(ping)
    times = ping_times(bench.guest.must('cat /tmp/ping'))
    stream = _stream('mixed TCP', values['bw'] * 8, bench.seconds, cpu)
    return {**stream, 'mixed ping ms': sum(times) / len(times),
            'mixed ping p99 ms': percentile(times, 0.99)}


def _tcp_4(bench):
    """Four streams of large writes at once, in one process."""
    with Cpu() as cpu:
        text = bench.guest.must(
            f'iperf3 -c {bench.net.host_addr} -p {IPERF_PORT} -P 4 -l 64K '
            f'-t {bench.seconds} -i 0 -f k', timeout=bench.seconds + 30)
    return _stream('TCP x4', iperf_bits(text), bench.seconds, cpu)


def burst_command(net, count, size, period_us, seconds):
    """For the guest: see udpburst.c, which also describes its output."""
    return (f'udpburst send {net.host_addr} {BURST_PORT} {count} {size} '
            f'{period_us} {seconds}')


def _bursts(period_ms):
    """On and off: all datagrams at once, then nothing until the next period.
    """
    name = f'burst {period_ms}ms'

    def measure(bench):
        with Cpu() as cpu:
            found = key_values(bench.guest.must(
                burst_command(bench.net, BURST_PKTS, BURST_BYTES,
                              period_ms * 1000, bench.seconds),
                timeout=bench.seconds + 30))
        delivered, sent = found['delivered'], found['sent']
        return {f'{name} kpps': delivered / found['us'] * 1e3,
                f'{name} lost %': (1 - delivered / sent) * 100,
                f'{name} done us': found['p50_us'],
                f'{name} done p99 us': found['p99_us'],
                f'{name} CPU s/Mpkt': cpu.seconds / delivered * 1e6}
    return measure


PARTS = {
    'lat': _latency('tcp_lat'),
    'ping': _ping,
    'udp64': _udp(64),
    'udp1400': _udp(1400),
    'tcp64k': _tcp_64k,
    'tcp1460': _tcp('TCP 1460', '1460'),
    'tcprx': _tcp_receive,
    # Nobody has tuned anything on these.
    'mixed': _mixed,
    'lat16k': _latency('tcp_lat 16K', '-m', '16384'),
    'burst1ms': _bursts(1),
    'burst4ms': _bursts(4),
    'tcp4': _tcp_4,
}
