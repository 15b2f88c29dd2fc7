#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""The pair of QEMU and daemon, as our qemu-system-x86_64 starts it: what QEMU
makes of its half of the command line, and that neither is left alone.
"""
import contextlib
import os
import pathlib
import shlex
import shutil
import signal
import socket
import subprocess

from lib import env
from lib.place import (LIMIT, MACHINE, NETDEV, NIC, Place, equal,
                       ignore_signals, own_netns, qmp, wait_until)
from lib.runner import Suite

# For a script: kills the launcher, a parent of this or of its parents; with
# $EVERYBODY all in between too.  What GLib starts, such as a tap's script, does
# not inherit that a signal is ignored.
_KILL = '''
[ -z "$IGNORED" ] || trap '' $SIGNAL
pids= pid=$$
while [ "$(cat /proc/$pid/comm)" != qemu-system-x86 ]; do
    pids="$pid $pids"
    pid=$(sed -n 's/^PPid:.//p' /proc/$pid/status)
done
kill -$SIGNAL $pid ${EVERYBODY:+$pids}
'''


def same_as_stock(args):
    """Nothing to own: output and status are the stock QEMU's."""
    stock = env.stock_qemu()
    with Place() as place:
        want = subprocess.run([stock] + args, env=place.env, cwd=place.dir,
                              capture_output=True, text=True, timeout=LIMIT,
                              stdin=subprocess.DEVNULL, check=False)
        equal(place.run('qemu-system-x86_64', args),
              (want.returncode, want.stdout, want.stderr))
        place.expect_nothing_left()


def completed_help(args, words):
    """The stock QEMU's list, and then ours."""
    stock = env.stock_qemu()
    with Place() as place:
        want = subprocess.run([stock] + args, env=place.env,
                              capture_output=True, text=True, timeout=LIMIT,
                              check=True).stdout
        status, out, _ = place.run('qemu-system-x86_64', args)
        equal(status, 0)
        equal(out[:len(want)], want)
        for word in words:
            if word not in out[len(want):]:
                raise AssertionError(f'{args}: no {word!r} in {out!r}')


def wait_for_stock(process):
    """Until the launcher has become the stock QEMU: the daemon serves."""
    ours = str(env.our_program('qemu-system-x86_64'))
    wait_until(lambda: os.readlink(f'/proc/{process.pid}/exe') != ours,
               'the stock QEMU')


@contextlib.contextmanager
def pair(args):
    """(place, QEMU's process) with the daemon connected."""
    env.stock_qemu()
    with Place() as place:
        process = place.start('qemu-system-x86_64',
                              MACHINE + ['-monitor', 'stdio'] + NETDEV + NIC +
                              args)
        wait_for_stock(process)
        yield place, process


def descriptors(pid):
    """What the descriptors of a process refer to."""
    found = {}
    for path in pathlib.Path(f'/proc/{pid}/fd').iterdir():
        with contextlib.suppress(OSError):
            found[int(path.name)] = os.readlink(path)
    return found


def quit_pair():
    """QEMU is this very process; when it quits, all is gone."""
    with pair([]) as (place, process):
        if process.pid not in place.processes():
            raise AssertionError('QEMU is not the process that was started')
        private, = [name for name in place.files() if '/' not in name]
        equal(place.files(), [private, f'{private}/nic0.sock'])
        equal((place.dir / private).stat().st_mode & 0o777, 0o700)
        process.communicate('quit\n', timeout=LIMIT)
        equal(process.returncode, 0)
        place.expect_nothing_left(LIMIT)


def qemu_killed(number):
    """However QEMU ends, the daemon follows."""
    with pair([]) as (place, process):
        process.send_signal(number)
        process.communicate(timeout=LIMIT)
        place.expect_nothing_left(LIMIT)


def qemu_refuses(args, message):
    """QEMU's own error, status and all; the daemon follows."""
    env.stock_qemu()
    with Place() as place:
        status, _, err = place.run('qemu-system-x86_64',
                                   MACHINE + NETDEV + args)
        equal(status, 1)
        if message not in err:
            raise AssertionError(err)
        place.expect_nothing_left(LIMIT)


def qemu_takes(args):
    """QEMU agrees with its half of the command line and runs."""
    env.stock_qemu()
    with Place() as place:
        place.before = place.files()
        process = place.start('qemu-system-x86_64', args + NETDEV + NIC +
                              ['-display', 'none', '-nodefaults', '-S',
                               '-monitor', 'stdio'])
        out, err = process.communicate('quit\n', timeout=LIMIT)
        if process.returncode or 'QEMU' not in out:
            raise AssertionError(f'{process.returncode}\n{out}\n{err}')
        place.expect_nothing_left(LIMIT)


def standard_closed(numbers):
    """Without some of the standard descriptors it starts as QEMU does."""
    env.stock_qemu()
    with Place() as place:
        place.before = place.files()
        words = [shlex.quote(word) for word in place.command(
            'qemu-system-x86_64', MACHINE + NETDEV + NIC +
            ['-monitor', 'unix:mon,server=on,wait=off'])]
        closed = ' '.join(f'{number}>&-' for number in numbers)
        process = subprocess.Popen(
            ['sh', '-c', f'exec {" ".join(words)} {closed}'], cwd=place.dir,
            env=place.env, stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        wait_until(lambda: (place.dir / 'mon').exists() or
                   process.poll() is not None, 'the monitor')
        with socket.socket(socket.AF_UNIX) as monitor:
            monitor.connect(str(place.dir / 'mon'))
            monitor.sendall(b'quit\n')
            equal(process.wait(LIMIT), 0)
        (place.dir / 'mon').unlink(missing_ok=True)
        place.expect_nothing_left(LIMIT)


def socket_directory():
    """It is in $TMPDIR without a run-time directory, whatever the umask."""
    env.stock_qemu()
    with Place() as place:
        place.before = place.files()
        variables = {**place.env, 'TMPDIR': str(place.dir)}
        del variables['XDG_RUNTIME_DIR']
        process = place.start('qemu-system-x86_64', MACHINE + NETDEV + NIC +
                              ['-monitor', 'stdio'], env=variables,
                              umask=0o777)
        wait_for_stock(process)
        private, = place.dir.iterdir()
        equal(private.stat().st_mode & 0o777, 0o700)
        process.communicate('quit\n', timeout=LIMIT)
        equal(process.returncode, 0)
        place.expect_nothing_left(LIMIT)


@contextlib.contextmanager
def signalled(number, when, everybody, ignored=False):
    """The launcher, with a signal before the daemon has begun, or while
    it opens its tap; to the launcher alone, or to all processes that there
    are."""
    stock = env.stock_qemu()
    own_netns()
    with Place() as place:
        for name in ('qemu-system-x86_64', 'qemu-net-daemon'):
            shutil.copy(env.our_program(name), place.dir / name)
        (place.dir / 'qemu-net-daemon').rename(place.dir / 'daemon')
        (place.dir / 'qemu-net-daemon').write_text(
            f'#!/bin/sh\n{_KILL if when == "first" else ""}\n'
            f'exec {place.dir}/daemon "$@"\n')
        (place.dir / 'up').write_text(
            f'#!/bin/sh\n{_KILL if when == "tap" else ""}\n')
        for name in ('qemu-net-daemon', 'up'):
            (place.dir / name).chmod(0o755)
        place.before = place.files()
        yield subprocess.Popen(
            [place.dir / 'qemu-system-x86_64'] + MACHINE + NIC +
            ['-netdev', 'tap,id=n0,ifname=sig0,script=./up,downscript=no',
             '-monitor', 'stdio'],
            cwd=place.dir, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            preexec_fn=ignore_signals if ignored else None, env={
                **place.env, 'QEMU_STOCK': str(stock),
                'SIGNAL': str(number.value),
                'EVERYBODY': '1' if everybody else '',
                'IGNORED': '1' if ignored else ''})
        place.expect_nothing_left(LIMIT)
        equal(subprocess.run(['ip', 'link', 'show', 'sig0'], check=False,
                             capture_output=True).returncode, 1)


def signal_at_start(*args):
    """It ends the launcher, and nothing is left."""
    with signalled(*args) as launcher:
        launcher.communicate(timeout=LIMIT)
        equal(launcher.returncode, -args[0])


def ignored_at_start(number, when):
    """It is nothing to a launcher that was told to ignore it."""
    with signalled(number, when, True, True) as launcher:
        out, _ = launcher.communicate(b'quit\n', timeout=LIMIT)
        equal((launcher.returncode, b'QEMU' in out), (0, True))


def no_stray_descriptors():
    """Of what is inherited, each side has what it needs and no more."""
    env.stock_qemu()
    with Place() as place:
        stray, other = socket.socketpair()
        with stray, other:
            process = place.start('qemu-system-x86_64',
                                  MACHINE + NETDEV + NIC,
                                  pass_fds=[stray.fileno()])
            wait_for_stock(process)
            daemon, = place.processes('qemu-net-daemon')
            name = os.readlink(f'/proc/self/fd/{stray.fileno()}')
            equal(name in descriptors(process.pid).values(), True)
            equal(name in descriptors(daemon).values(), False)
            process.terminate()
            process.communicate(timeout=LIMIT)
            place.expect_nothing_left(LIMIT)


def daemonized_pair():
    """-daemonize: both in the background, and nobody holds our stderr."""
    env.stock_qemu()
    with Place() as place:
        status, _, _ = place.run(
            'qemu-system-x86_64',
            MACHINE + NETDEV + NIC + ['-daemonize', '-pidfile',
                                      str(place.dir / 'pid')])
        equal(status, 0)
        equal(len(place.processes()), 2)
        os.kill(int((place.dir / 'pid').read_text()), signal.SIGTERM)
        place.expect_nothing_left(LIMIT)


def own_monitor():
    """-x-vnet-qmp: the daemon's monitor."""
    with pair(['-x-vnet-qmp', 'qmp']) as (place, process):
        *_, stats = qmp(place.dir / 'qmp', ('query-virtio-net-stats', {}))
        equal([nic['netdev'] for nic in stats['return']], ['n0'])
        process.communicate('quit\n', timeout=LIMIT)
        place.expect_nothing_left(LIMIT)


def main():
    """All cases."""
    with Suite() as suite:
        for args in (['-version'], ['--help'], ['-machine', 'help'],
                     ['-device', 'e1000,help'], ['-nosuch'], ['-m'],
                     ['-M', 'none', '-device', 'nosuch']):
            suite.run(f'as the stock QEMU: {" ".join(args)}', same_as_stock,
                      args)
        suite.run('completed: -device virtio-net-pci,help', completed_help,
                  ['-device', 'virtio-net-pci,help'],
                  ['tx=<bh|timer|adaptive>', 'tx-coal-usecs=<'])
        suite.run('completed: -netdev help', completed_help,
                  ['-netdev', 'help'], ['user', 'tap', 'hubport'])
        suite.run('pair: quit', quit_pair)
        suite.run('pair: SIGTERM', qemu_killed, signal.SIGTERM)
        suite.run('pair: SIGKILL', qemu_killed, signal.SIGKILL)
        suite.run('pair: QEMU refuses the rest', qemu_refuses,
                  NIC + ['-cpu', 'foo'], "unable to find CPU model 'foo'")
        suite.run('pair: QEMU refuses a property', qemu_refuses,
                  ['-device', 'virtio-net-pci,netdev=n0,foo=1'],
                  "'virtio-net-pci.foo' not found")
        for args in (['-M', 'pc'], ['-M', 'q35,memory.size=64M'],
                     ['-m', '64', '-M', 'pc,memory.size=1G'],
                     ['-m', '64', '-only-migratable'],
                     ['-m', '64', '-M', 'q35', '-global',
                      'virtio-net-pci.iommu_platform=on', '-global',
                      'virtio-net-pci.disable-legacy=on']):
            suite.run(f'pair: QEMU takes {" ".join(args)}', qemu_takes, args)
        for numbers in ((0,), (1,), (2,), (0, 1, 2)):
            suite.run(f'pair: closed are {numbers}', standard_closed, numbers)
        suite.run('pair: directory of sockets', socket_directory)
        suite.run('pair: descriptors', no_stray_descriptors)
        suite.run('pair: -daemonize', daemonized_pair)
        suite.run('pair: -x-vnet-qmp', own_monitor)

        # Last: they move this process into another network namespace.
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            for when in ('first', 'tap'):
                for everybody in (False, True):
                    suite.run(f'pair: {number.name}, {when}, to '
                              f'{"all" if everybody else "the launcher"}',
                              signal_at_start, number, when, everybody)
        for number in (signal.SIGINT, signal.SIGHUP):
            for when in ('first', 'tap'):
                suite.run(f'pair: {number.name}, {when}, ignored',
                          ignored_at_start, number, when)


main()
