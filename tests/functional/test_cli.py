#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Command lines, without a guest: the bad ones and what is said about them,
and the life of the daemon.

A bad command line ends with 1 and one line on stderr, which is compared word
by word; nothing is left running, and no file is left behind.  Messages about
taps are compared by what they have to name, since the kernel's reasons are in
them.
"""
import contextlib
import fcntl
import json
import os
import pathlib
import shutil
import signal
import socket
import struct
import subprocess

from lib import env
from lib.place import (DAEMON, D_EXPORT, D_NETDEV, D_NIC, LIMIT, MACHINE,
                       NETDEV, NIC, Place, equal, expect_words,
                       ignore_signals, own_netns, qmp, wait_until)
from lib.runner import Skip, Suite

TUNSETIFF = 0x400454ca
IFF_TAP_NO_PI = 0x1002


# ---- bad command lines ------------------------------------------------------

# (name, arguments, the message after the program's name)
BAD_LAUNCHER = [
    ('bad value of tx', NETDEV + ['-device', 'virtio-net-pci,id=a,netdev=n0,'
                                  'tx=fast'],
     "-device virtio-net-pci,id=a: parameter 'tx' expects 'bh', "
     "'timer' or 'adaptive', not 'fast'"),
    ('bad value in JSON', NETDEV + ['-device', json.dumps(
        {'driver': 'virtio-net-pci', 'netdev': 'n0', 'host_mtu': 1})],
     "-device virtio-net-pci: parameter 'host_mtu' expects 68 to 65535, not "
     "'1'"),
    ('missing netdev', NETDEV + ['-device', 'virtio-net-pci,netdev=n1'],
     "-device virtio-net-pci,netdev=n1: no netdev 'n1': add -netdev "
     "TYPE,id=n1, or name one that is there"),
    ('two NICs on one netdev', NETDEV + NIC + NIC,
     "-device virtio-net-pci,netdev=n0: another device uses netdev 'n0': "
     "give each NIC a -netdev of its own"),
    ('NIC of another model on the netdev',
     NETDEV + NIC + ['-device', 'e1000,netdev=n0'],
     "-device e1000,netdev=n0: another device uses netdev 'n0': give each "
     "NIC a -netdev of its own"),
    ('two netdevs of one id', NETDEV + NETDEV + NIC,
     "-netdev user,id=n0: another netdev has this id: give each its own"),
    ('bad netdev syntax', ['-netdev', 'user,id=n0,=3'] + NIC,
     "-netdev: invalid parameter name '' in 'user,id=n0,=3', expected "
     "key=value,key=value"),
    ('bad value of tx-thread',
     NETDEV + ['-device', 'virtio-net-pci,netdev=n0,tx-thread=two'],
     "-device virtio-net-pci: parameter 'tx-thread' expects 'off', 'on' or "
     "'per-queue', not 'two'"),
    ('CPUs for no thread',
     NETDEV + ['-device', 'virtio-net-pci,netdev=n0,tx-cpus=0'],
     "-device virtio-net-pci: parameter 'tx-cpus' (value '0') needs a thread "
     "to place: add tx-thread=on or tx-thread=per-queue"),
    ('no such iothread',
     NETDEV + ['-device', 'virtio-net-pci,netdev=n0,iothread=io0'],
     "-device virtio-net-pci: no iothread 'io0': add -object "
     "iothread,id=io0"),
    ('private file memory',
     NETDEV + NIC + ['-object', 'memory-backend-file,id=m,size=64M,'
                     'mem-path={dir}', '-machine', 'memory-backend=m'],
     "-object memory-backend-file,id=m: this memory is private to QEMU "
     "(share=off), and a NIC of ours has to share it: add share=on"),
    ('-mem-path', NETDEV + NIC + ['-mem-path', '/x'],
     "-mem-path /x: this memory is private to QEMU, and a NIC of ours has to "
     "share it: instead give -object memory-backend-file,id=pc.ram,"
     "size=67108864,mem-path=/x,share=on -machine memory-backend=pc.ram"),
    ('bad -m', NETDEV + NIC + ['-m', 'much'],
     "-m much: parameter 'size' expects a number of MiB, or a size such as "
     "512M or 2G, not 'much'"),
    ('monitor without a path', NETDEV + NIC + ['-x-vnet-qmp'],
     "-x-vnet-qmp: the path of a socket is missing"),
]

# The daemon says it, on behalf of the launcher.
BAD_LAUNCHER_DAEMON = [
    ('tap descriptor that is not open',
     ['-netdev', 'tap,id=n0,fd=99'] + NIC,
     "--netdev tap,id=n0: fd=99: no such descriptor is open; the parent has "
     "to pass it on"),
    ('absent CPU for a transmit thread',
     NETDEV + ['-device', 'virtio-net-pci,id=v0,netdev=n0,tx-thread=on,'
               'tx-cpus=0,tx-cpus=1022-1023'],
     "--device virtio-net-pci,id=v0: parameter 'tx-cpus' expects CPUs among "
     "{cpus}, not '1022-1023'"),
    ('monitor in no directory', NETDEV + NIC + ['-x-vnet-qmp', 'no/qmp'],
     "--qmp: cannot create the socket '{dir}/no/qmp': No such file or "
     "directory: check that its directory exists and is writable"),
    ('daemonized QEMU',
     ['-netdev', 'tap,id=n0,fd=99'] + NIC + ['-daemonize', '-pidfile', 'p'],
     "--netdev tap,id=n0: fd=99: no such descriptor is open; the parent has "
     "to pass it on"),
]

BAD_DAEMON = [
    ('nothing', [],
     "nothing to serve: add --netdev, --device and --export, see --help"),
    ('unknown option', ['--foo'], "unknown option '--foo': see --help"),
    ('stray word', ['foo'], "unknown option 'foo': see --help"),
    ('argument too much', ['--daemonize=1'],
     "option '--daemonize' takes no argument: '--daemonize=1'"),
    ('argument missing', ['--pidfile'],
     "option '--pidfile' needs an argument: PATH"),
    ('unknown object', DAEMON + ['--object', 'foo,id=i'],
     "--object foo,id=i: unknown object type 'foo', known is 'iothread'"),
    ('object twice', DAEMON + 2 * ['--object', 'iothread,id=i'],
     "--object iothread,id=i: another object has this id: give each its own"),
    ('bad object value',
     DAEMON + ['--object', 'iothread,id=i,poll-max-ns=-1'],
     "--object iothread,id=i: parameter 'poll-max-ns' expects a number "
     "between 0 and 1000000000, not '-1'"),
    ('bad CPU list', DAEMON + ['--object', 'iothread,id=i,cpu-affinity=3-2'],
     "--object iothread,id=i: parameter 'cpu-affinity' expects a CPU number "
     "or FIRST-LAST, not '3-2'"),
    ('absent CPU', DAEMON + ['--object', 'iothread,id=i,cpu-affinity=1023'],
     "--object iothread,id=i: parameter 'cpu-affinity' expects CPUs among "
     "{cpus}, not '1023'"),
    ('unknown netdev type', ['--netdev', 'foo,id=n0'] + D_NIC + D_EXPORT,
     "--netdev foo,id=n0: type 'foo' is not known; known are hubport, tap, "
     "user"),
    ('netdev twice', D_NETDEV + DAEMON,
     "--netdev user,id=n0: another netdev has this id: give each its own"),
    ('missing netdev', D_NIC + D_EXPORT,
     "--device virtio-net-pci,id=v0: no netdev 'n0': add --netdev "
     "TYPE,id=n0"),
    ('two NICs on one netdev',
     DAEMON + ['--device', 'virtio-net-pci,id=v1,netdev=n0'],
     "--device virtio-net-pci,id=v1: netdev 'n0' belongs to device 'v0' "
     "already: give each NIC a --netdev of its own"),
    ('unknown device', D_NETDEV + ['--device', 'e1000,id=v0,netdev=n0'] +
     D_EXPORT,
     "--device e1000,id=v0: parameter 'driver' expects 'virtio-net-pci' or "
     "'virtio-net', not 'e1000'"),
    ('device twice', DAEMON + D_NIC,
     "--device virtio-net-pci,id=v0: another device has this id: give each "
     "its own"),
    ('device without id',
     D_NETDEV + ['--device', 'virtio-net,netdev=n0'] + D_EXPORT,
     "--device virtio-net: parameter 'id' is missing"),
    ('device without netdev',
     D_NETDEV + ['--device', 'virtio-net,id=v0'] + D_EXPORT,
     "--device virtio-net,id=v0: parameter 'netdev' is missing"),
    ('bad device value',
     D_NETDEV + [D_NIC[0], D_NIC[1] + ',tx=fast'] + D_EXPORT,
     "--device virtio-net-pci,id=v0: parameter 'tx' expects 'bh', "
     "'timer' or 'adaptive', not 'fast'"),
    ('no such iothread',
     D_NETDEV + [D_NIC[0], D_NIC[1] + ',iothread=i'] + D_EXPORT,
     "--device virtio-net-pci,id=v0: no iothread 'i': add --object "
     "iothread,id=i"),
    ('CPUs for no thread',
     D_NETDEV + [D_NIC[0], D_NIC[1] + ',tx-cpus=0-1'] + D_EXPORT,
     "--device virtio-net-pci,id=v0: parameter 'tx-cpus' (value '0-1') needs "
     "a thread to place: add tx-thread=on or tx-thread=per-queue"),
    ('absent CPU for a transmit thread',
     D_NETDEV + [D_NIC[0], D_NIC[1] + ',tx-thread=per-queue,tx-cpus=1023'] +
     D_EXPORT,
     "--device virtio-net-pci,id=v0: parameter 'tx-cpus' expects CPUs among "
     "{cpus}, not '1023'"),
    ('absent CPU, found after --daemonize',
     D_NETDEV + [D_NIC[0], D_NIC[1] + ',tx-thread=on,tx-cpus=1023'] +
     D_EXPORT + ['--daemonize', '--pidfile', 'pid'],
     "--device virtio-net-pci,id=v0: parameter 'tx-cpus' expects CPUs among "
     "{cpus}, not '1023'"),
    ('unknown export type',
     D_NETDEV + D_NIC + ['--export', 'x,id=e0,device=v0,path=s'],
     "--export x,id=e0: parameter 'type' expects 'vhost-user-net', not 'x'"),
    ('unknown export option', D_NETDEV + D_NIC +
     [D_EXPORT[0], D_EXPORT[1] + ',foo=1'],
     "--export vhost-user-net,id=e0: unknown parameter 'foo' (value '1'), "
     "accepted are: type, id, device, path"),
    ('export without address', D_NETDEV + D_NIC +
     ['--export', 'vhost-user-net,id=e0,device=v0'],
     "--export vhost-user-net,id=e0: no address: add path=PATH, or "
     "addr.type=fd,addr.str=N"),
    ('export with an empty path', D_NETDEV + D_NIC +
     ['--export', 'vhost-user-net,id=e0,device=v0,path='],
     "--export vhost-user-net,id=e0: the path of the socket is empty: give "
     "path=PATH"),
    ('export of nothing', D_NETDEV + D_NIC +
     ['--export', 'vhost-user-net,id=e0,device=x,path=s'],
     "--export vhost-user-net,id=e0: no device 'x': add --device "
     "virtio-net-pci,id=x,netdev=ID"),
    ('export twice', DAEMON +
     ['--export', 'vhost-user-net,id=e1,device=v0,path=s'],
     "--export vhost-user-net,id=e1: device 'v0' has an export already: one "
     "NIC has one front-end"),
    ('export id twice', DAEMON + D_EXPORT,
     "--export vhost-user-net,id=e0: another export has this id: give each "
     "its own"),
    ('export in no directory', D_NETDEV + D_NIC +
     ['--export', 'vhost-user-net,id=e0,device=v0,path=no/s'],
     "--export vhost-user-net,id=e0: cannot create the socket '{dir}/no/s': "
     "No such file or directory: check that its directory exists and is "
     "writable"),
    ('export on no socket', D_NETDEV + D_NIC +
     ['--export', 'vhost-user-net,id=e0,device=v0,addr.type=fd,'
      'addr.str=99'],
     "--export vhost-user-net,id=e0: descriptor 99 is not a Unix stream "
     "socket; pass one that listens or is connected"),
    ('monitor without socket', DAEMON + ['--qmp', 'stdio'],
     "--qmp 'stdio': expected unix:PATH,server=on,wait=off"),
    ('monitor that connects', DAEMON + ['--qmp', 'unix:q'],
     "--qmp: only listening sockets that nobody waits for: add "
     "server=on,wait=off"),
    ('no lifeline', DAEMON + ['--lifeline-fd', '99'],
     "--lifeline-fd '99': expected the number of an inherited pipe or "
     "socket"),
    ('pidfile in no directory', DAEMON + ['--pidfile', 'no/pid'],
     "--pidfile '{dir}/no/pid': No such file or directory: check that its "
     "directory exists and is writable"),
    ('error after --daemonize',
     DAEMON + ['--daemonize', '--pidfile', 'no/pid'],
     "--pidfile '{dir}/no/pid': No such file or directory: check that its "
     "directory exists and is writable"),
]


def usable_cpus():
    """The CPUs a thread of ours may have, as "0-3,8"."""
    mine = os.sched_getaffinity(0)
    os.sched_setaffinity(0, range(1024))
    usable = sorted(os.sched_getaffinity(0))
    os.sched_setaffinity(0, mine)
    firsts = [cpu for cpu in usable if cpu - 1 not in usable]
    lasts = [cpu for cpu in usable if cpu + 1 not in usable]
    return ','.join(str(first) if first == last else f'{first}-{last}'
                    for first, last in zip(firsts, lasts))


def bad(program, args, speaker, message):
    """One command line that has to be refused."""
    if program == 'qemu-system-x86_64':
        env.stock_qemu()
    with Place() as place:
        status, out, err = place.run(program, args)
        want = message.replace('{dir}', str(place.dir))
        equal(err, f'{speaker}: {want}\n'.replace('{cpus}', usable_cpus()))
        equal((status, out), (1, ''))
        place.expect_nothing_left()


# ---- what is taken ----------------------------------------------------------

def socket_taken(kind):
    """The path of the socket belongs to somebody else, who keeps it."""
    with Place() as place:
        path = place.dir / 'sock'
        with socket.socket(socket.AF_UNIX) as other:
            if kind == 'socket':
                other.bind(str(path))
                other.listen()
                message = (f"socket '{path}' is in use by another process: "
                           'end that one or choose another path')
            else:
                path.write_text('x')
                message = (f"'{path}' exists and is not a socket: remove it "
                           'or choose another path')
            status, _, err = place.run('qemu-net-daemon', DAEMON)
            equal(err, 'qemu-net-daemon: --export vhost-user-net,id=e0: '
                       f'{message}\n')
            equal(status, 1)
            place.expect_nothing_left()


def socket_stale():
    """A socket that nobody listens on is replaced."""
    with Place() as place:
        with socket.socket(socket.AF_UNIX) as other:
            other.bind(str(place.dir / 'sock'))
        status, _, _ = place.run('qemu-net-daemon', DAEMON + ['--daemonize'])
        equal(status, 0)
        with socket.socket(socket.AF_UNIX) as client:
            client.connect(str(place.dir / 'sock'))


def tap_busy(program, netdev, rest):
    """Another process has the tap."""
    own_netns()
    with Place() as place, open('/dev/net/tun', 'r+b', buffering=0) as tun:
        fcntl.ioctl(tun, TUNSETIFF,
                    struct.pack('16sH22x', b'busy0', IFF_TAP_NO_PI))
        status, _, err = place.run(
            program, [netdev, 'tap,id=n0,ifname=busy0,script=no,'
                              'downscript=no'] + rest)
        equal(status, 1)
        expect_words(err, ['id=n0', 'busy0', 'busy'])
        place.expect_nothing_left()


def tap_scripts():
    """Named by relative paths they run, the second from elsewhere; they do
    not inherit that signals are blocked."""
    own_netns()
    with Place() as place:
        for name in ('up', 'down'):
            script = place.dir / name
            script.write_text(f'#!/bin/sh\necho "$@" >{place.dir}/{name}.txt\n'
                              'grep SigBlk /proc/self/status '
                              f'>>{place.dir}/{name}.txt\n')
            script.chmod(0o755)
        status, _, err = place.run(
            'qemu-net-daemon', ['--netdev', 'tap,id=n0,ifname=scr0,script=./up,'
                                'downscript=down', '--daemonize'] + D_NIC +
            D_EXPORT)
        equal((status, err), (0, ''))
        daemon, = place.processes()
        os.kill(daemon, signal.SIGTERM)
        wait_until(lambda: not place.processes(), 'the end of the daemon')
        for name in ('up', 'down'):
            equal((place.dir / f'{name}.txt').read_text(),
                  'scr0\nSigBlk:\t0000000000000000\n')


def tap_not_permitted():
    """An ordinary user may not make taps."""
    own_netns()
    with Place() as place:
        # A copy, since the build directory may be nobody's business.
        shutil.copy(env.our_program('qemu-net-daemon'), place.dir / 'd')
        os.chmod(place.dir, 0o777)
        before = place.files()
        done = subprocess.run(
            [place.dir / 'd', '--netdev', 'tap,id=n0,ifname=mine0,script=no,'
             'downscript=no'] + D_NIC + D_EXPORT, cwd=place.dir,
            env=place.env, user=65534, group=65534, extra_groups=[],
            capture_output=True, text=True, timeout=LIMIT, check=False)
        equal(done.returncode, 1)
        expect_words(done.stderr, ['id=n0', 'permitted'])
        equal(place.files(), before)
        equal(place.processes(), [])


def no_stock():
    """No stock QEMU anywhere, and what is named is none."""
    ours = str(env.our_program('qemu-system-x86_64'))
    text = 'path of a stock qemu-system-x86_64'
    cases = [
        ({'QEMU_STOCK': '/none'}, "QEMU_STOCK '/none' is not a program: set "
                                  f'QEMU_STOCK to the {text}'),
        ({'QEMU_STOCK': ours}, f"QEMU_STOCK '{ours}' is this program itself: "
                               f'set QEMU_STOCK to the {text}'),
        ({'QEMU_STOCK': '', 'PATH': os.path.dirname(ours)},
         'no stock QEMU found: install qemu-system-x86, set QEMU_STOCK to '
         'the path of its qemu-system-x86_64, or configure '
         '--with-stock-qemu=PATH'),
    ]
    for variables, message in cases:
        with Place() as place:
            status, _, err = place.run('qemu-system-x86_64',
                                       MACHINE + NETDEV + NIC,
                                       env={**place.env, **variables})
            if 'the configured stock QEMU' in err:
                raise Skip('a stock QEMU is configured')
            equal((status, err), (1, f'qemu-system-x86_64: {message}\n'))
            place.expect_nothing_left()


def other_copy():
    """A second installation of ours is not taken for the stock QEMU."""
    stock = shutil.which('qemu-system-x86_64')
    if not stock or os.environ.get('QVN_STOCK_QEMU'):
        raise Skip('the stock QEMU is not found in PATH')
    with Place() as place:
        copy = place.dir / 'copy'
        links = place.dir / 'links'
        copy.mkdir()
        links.mkdir()
        for name in ('qemu-system-x86_64', 'qemu-net-daemon'):
            ours = env.our_program(name)
            shutil.copy(ours, copy / name)
            (links / name).symlink_to(ours)
        want = subprocess.run([stock, '-version'], capture_output=True,
                              text=True, timeout=LIMIT, check=True).stdout
        path = f'{links}:{copy}:{os.path.dirname(stock)}'
        variables = {**place.env, 'QEMU_STOCK': '', 'PATH': path}
        for program in (links, copy):
            done = subprocess.run([program / 'qemu-system-x86_64', '-version'],
                                  env=variables, capture_output=True,
                                  text=True, timeout=LIMIT, check=True)
            equal(done.stdout, want)


# ---- the daemon's life ------------------------------------------------------

@contextlib.contextmanager
def background(args):
    """(place, pid) of a daemon that has gone into the background."""
    with Place() as place:
        status, out, err = place.run(
            'qemu-net-daemon',
            DAEMON + ['--daemonize', '--pidfile', 'pid', '--qmp',
                      'unix:qmp,server=on,wait=off'] + args)
        equal((status, out, err), (0, '', ''))
        equal(place.files(), ['pid', 'qmp', 'sock'])
        yield place, int((place.dir / 'pid').read_text())


def ends_by(number):
    """A signal ends it; no socket, no pidfile."""
    with background([]) as (place, pid):
        equal(place.processes(), [pid])
        os.kill(pid, number)
        place.expect_nothing_left(LIMIT)


def foreground_status():
    """Ended by a signal, its exit status is 0."""
    with Place() as place:
        process = place.start('qemu-net-daemon', DAEMON)
        wait_until((place.dir / 'sock').exists, 'the socket')
        process.terminate()
        out, err = process.communicate(timeout=LIMIT)
        equal((process.returncode, out, err), (0, '', ''))
        place.expect_nothing_left()


def ignored_signals():
    """What whoever starts it ignores does not end it; SIGTERM does."""
    with Place() as place:
        process = place.start('qemu-net-daemon', DAEMON +
                              ['--qmp', 'unix:qmp,server=on,wait=off'],
                              preexec_fn=ignore_signals)
        wait_until((place.dir / 'sock').exists, 'the socket')
        process.send_signal(signal.SIGHUP)
        process.send_signal(signal.SIGINT)
        qmp(place.dir / 'qmp', ('query-version', {}))
        process.terminate()
        out, err = process.communicate(timeout=LIMIT)
        equal((process.returncode, out, err), (0, '', ''))
        place.expect_nothing_left()


def unprivileged():
    """In the background: own session, no capability, in any thread."""
    with background(['--object', 'iothread,id=io0',
                     '--netdev', 'hubport,id=n1,hubid=0', '--device',
                     'virtio-net-pci,id=v1,netdev=n1,iothread=io0']) \
            as (_, pid):
        equal(os.getsid(pid), pid)
        equal(os.readlink(f'/proc/{pid}/cwd'), '/')
        for number in range(3):
            equal(os.readlink(f'/proc/{pid}/fd/{number}'), '/dev/null')
        tasks = list(pathlib.Path(f'/proc/{pid}/task').iterdir())
        equal(len(tasks), 2)
        for task in tasks:
            status = dict(line.split(':\t', 1) for line in
                          (task / 'status').read_text().splitlines()
                          if ':\t' in line)
            for name in ('CapInh', 'CapPrm', 'CapEff', 'CapAmb'):
                equal((name, int(status[name], 16)), (name, 0))
            if os.geteuid() == 0:
                equal(int(status['CapBnd'], 16), 0)
            equal(status['NoNewPrivs'], '1')


def second_daemon():
    """The pidfile is locked; the first daemon keeps it."""
    with background([]) as (place, pid):
        status, _, err = place.run(
            'qemu-net-daemon', D_NETDEV + D_NIC +
            ['--export', 'vhost-user-net,id=e0,device=v0,path=other',
             '--pidfile', 'pid'])
        equal(err, f"qemu-net-daemon: --pidfile '{place.dir}/pid': in use by "
                   f'process {pid}: end that one or choose another path\n')
        equal(status, 1)
        equal(place.files(), ['pid', 'qmp', 'sock'])
        equal(int((place.dir / 'pid').read_text()), pid)


def lifeline():
    """It ends when the other side of its lifeline is closed."""
    with Place() as place:
        ours, theirs = os.pipe()
        os.set_inheritable(ours, True)
        status, _, err = place.run(
            'qemu-net-daemon', DAEMON + ['--daemonize', '--lifeline-fd',
                                         str(ours)], pass_fds=[ours])
        os.close(ours)
        equal((status, err), (0, ''))
        equal(len(place.processes()), 1)
        os.close(theirs)
        place.expect_nothing_left(LIMIT)


def monitor():
    """QMP: counters of all queues, the link, and the end."""
    with background([]) as (place, _):
        greeting, hello, stats, down, changed, unknown, end = qmp(
            place.dir / 'qmp', ('query-virtio-net-stats', {}),
            ('set_link', {'name': 'n0', 'up': False}),
            ('query-virtio-net-stats', {}),
            ('set_link', {'name': 'x', 'up': False}), ('quit', {}))
        equal(list(greeting), ['QMP'])
        equal((hello, down, end), ({'return': {}},) * 3)
        nic, = stats['return']
        equal((nic['id'], nic['netdev'], nic['link']), ('v0', 'n0', True))
        equal([(q['index'], q['direction'], q['packets'])
               for q in nic['queues']], [(0, 'rx', 0), (1, 'tx', 0)])
        equal(changed['return'][0]['link'], False)
        equal(unknown, {'error': {'class': 'DeviceNotFound',
                                  'desc': "Device 'x' not found"}})
        place.expect_nothing_left(LIMIT)


def daemon_help():
    """Each help exits with 0 and tells of what it was asked for."""
    for args, words in [
            (['--help'], ['--netdev', '--export', '--lifeline-fd']),
            (['--version'], ['qemu-net-daemon version']),
            (['--netdev', 'help'], ['user', 'tap', 'hubport']),
            (['--device', 'virtio-net-pci,help'], ['tx=<', 'mac=<']),
            (['--object', 'help'], ['poll-max-ns=<']),
            (['--export', 'help'], ['addr.path=<'])]:
        with Place() as place:
            status, out, err = place.run('qemu-net-daemon', args)
            equal((status, err), (0, ''))
            for word in words:
                if word not in out:
                    raise AssertionError(f'{args}: no {word!r} in {out!r}')
            place.expect_nothing_left()


def main():
    """All cases."""
    with Suite() as suite:
        for table, program, speaker, first in (
                (BAD_LAUNCHER, 'qemu-system-x86_64', 'qemu-system-x86_64',
                 MACHINE),
                (BAD_LAUNCHER_DAEMON, 'qemu-system-x86_64',
                 'qemu-net-daemon', MACHINE),
                (BAD_DAEMON, 'qemu-net-daemon', 'qemu-net-daemon', [])):
            for name, args, message in table:
                suite.run(f'bad {program}: {name}', bad, program,
                          first + args, speaker, message)
        suite.run('bad qemu-system-x86_64: no stock QEMU', no_stock)
        suite.run('stock QEMU behind another copy of ours', other_copy)
        for kind in ('socket', 'file'):
            suite.run(f'socket path taken by a {kind}', socket_taken, kind)
        suite.run('stale socket is replaced', socket_stale)

        suite.run('daemon: help', daemon_help)
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            suite.run(f'daemon: {number.name}', ends_by, number)
        suite.run('daemon: status after a signal', foreground_status)
        suite.run('daemon: ignored signals', ignored_signals)
        suite.run('daemon: no privileges left', unprivileged)
        suite.run('daemon: second one with the pidfile', second_daemon)
        suite.run('daemon: lifeline', lifeline)
        suite.run('daemon: monitor', monitor)

        # Last: they move this process into another network namespace.
        suite.run('daemon: tap busy', tap_busy, 'qemu-net-daemon',
                  '--netdev', D_NIC + D_EXPORT)
        suite.run('pair: tap busy', tap_busy, 'qemu-system-x86_64',
                  '-netdev', MACHINE + NIC)
        suite.run('daemon: tap not permitted', tap_not_permitted)
        suite.run('daemon: scripts of a tap', tap_scripts)


main()
