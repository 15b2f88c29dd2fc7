#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""qemu-net-daemon --stats: the live view, as lines and on a terminal.

The daemon has one NIC that nobody uses: what is shown is known.  What numbers
become of which counters is the unit tests' subject.
"""
import contextlib
import fcntl
import os
import pty
import re
import select
import signal
import socket
import struct
import termios
import threading

from lib.place import (DAEMON, LIMIT, Place, equal, expect_words, qmp,
                       wait_until)
from lib.runner import Suite

QMP = ['--qmp', 'unix:qmp,server=on,wait=off']
HEADS = 'NIC RING PKT/S MBIT/S KICK/S PKT/FL CALL/S WAIT/US P99/US FIRE/S ' \
        'DROP/S'.split()
FAST = ['--stats', 'qmp', '--interval', '0.1']
OTHER_SCREEN = '\x1b[?1049h'
OWN_SCREEN = '\x1b[?25h\x1b[?1049l'
ESCAPES = re.compile(r'\x1b\[[?0-9]*[a-zA-Z]')


@contextlib.contextmanager
def daemon():
    """A place with a daemon that has a monitor, and the daemon."""
    with Place() as place:
        process = place.start('qemu-net-daemon', DAEMON + QMP)
        wait_until((place.dir / 'qmp').exists, 'the monitor')
        yield place, process


class Terminal:
    """A viewer that has a terminal of its own."""

    def __init__(self, place, args, columns=100, rows=20, term='xterm'):
        command = place.command('qemu-net-daemon', args)
        self.seen = ''
        self.status = None
        master, self.slave = pty.openpty()
        self.resize(columns, rows, master)
        self.before = termios.tcgetattr(self.slave)
        self.pid = os.fork()
        if self.pid == 0:
            os.chdir(place.dir)
            self._take_terminal()
            os.execve(command[0], command, {**place.env, 'TERM': term})
        self.master = master

    def _take_terminal(self):
        os.setsid()
        fcntl.ioctl(self.slave, termios.TIOCSCTTY, 0)
        for fd in range(3):
            os.dup2(self.slave, fd)

    def resize(self, columns, rows, master=None):
        """As the user does it: the viewer gets SIGWINCH."""
        fcntl.ioctl(self.master if master is None else master,
                    termios.TIOCSWINSZ,
                    struct.pack('HHHH', rows, columns, 0, 0))

    def type(self, keys):
        """Keys that are pressed."""
        os.write(self.master, keys.encode())

    def _read(self, timeout):
        if select.select([self.master], [], [], timeout)[0]:
            # The terminal makes a line end of its own of "\n".
            self.seen += os.read(self.master, 65536).decode().replace(
                '\r\r\n', '\r\n')
            return True
        return False

    def wait_for(self, found, what):
        """Reads until found(all that was shown)."""
        def look():
            self._read(0)
            return found(self.seen)
        wait_until(look, what)

    def wait_for_text(self, text):
        """Reads until the text is there."""
        self.wait_for(lambda seen: text in seen, repr(text))

    def screen(self):
        """Lines of the last complete screen, without attributes."""
        start = [m.start() for m in re.finditer(re.escape('\x1b[H'),
                                                self.seen)][-2]
        text = self.seen[start:self.seen.rindex('\x1b[H')]
        return [ESCAPES.sub('', line) for line in text.split('\r\n')]

    def end(self):
        """Exit status; what it left on the terminal is in .seen."""
        def ended():
            self._read(0)
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                self.status = os.waitstatus_to_exitcode(status)
            return pid
        wait_until(ended, 'the end of the viewer')
        while self._read(0):
            pass
        return self.status

    def expect_restored(self):
        """The terminal is as it was before."""
        equal(termios.tcgetattr(self.slave), self.before)
        equal(self.seen.count(OTHER_SCREEN), 1)
        equal(self.seen.count(OWN_SCREEN), 1)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.status is None:
            os.kill(self.pid, signal.SIGKILL)
            os.waitpid(self.pid, 0)
        os.close(self.master)
        os.close(self.slave)


# ---- lines -----------------------------------------------------------------


def lines():
    """In a pipe: heads once, then a line per ring and interval."""
    with daemon() as (place, _):
        viewer = place.start('qemu-net-daemon', FAST)
        equal(viewer.stdout.readline().split(), ['SECONDS'] + HEADS)
        last = 0.0
        for _ in range(3):
            for ring in ('rx0', 'tx0'):
                seconds, nic, name, *values = viewer.stdout.readline().split()
                equal((nic, name, len(values)), ('v0', ring, 9))
                equal(values[0], '0')
            equal(float(seconds) > last, True)
            last = float(seconds)
        viewer.send_signal(signal.SIGINT)
        _, err = viewer.communicate(timeout=LIMIT)
        equal((viewer.returncode, err), (0, ''))


def reader_gone():
    """The other end of the pipe closes: it ends as programs do then."""
    with daemon() as (place, _):
        viewer = place.start('qemu-net-daemon', FAST)
        viewer.stdout.readline()
        viewer.stdout.close()
        equal(viewer.wait(LIMIT), -signal.SIGPIPE)
        equal(viewer.stderr.read(), '')


def two_viewers():
    """Neither takes anything from the other, nor does a reset."""
    with daemon() as (place, _):
        viewers = [place.start('qemu-net-daemon', FAST) for _ in range(2)]
        for viewer in viewers:
            equal(viewer.stdout.readline().split(), ['SECONDS'] + HEADS)
        *_, reset = qmp(place.dir / 'qmp', ('virtio-net-stats-reset', {}))
        equal(reset, {'return': {}})
        for viewer in viewers:
            for _ in range(4):
                equal('v0' in viewer.stdout.readline(), True)
            viewer.terminate()
            viewer.communicate(timeout=LIMIT)
            equal(viewer.returncode, 0)


def dumb_terminal():
    """A terminal without a screen gets lines."""
    with daemon() as (place, _), \
            Terminal(place, FAST, term='dumb') as terminal:
        terminal.wait_for_text('tx0')
        terminal.type('\x03')
        equal(terminal.end(), 0)
        equal('\x1b' in terminal.seen, False)


# ---- the screen ------------------------------------------------------------


def screen(key):
    """Heads and rings; a key ends it, and the terminal is as before."""
    with daemon() as (place, _), Terminal(place, FAST) as terminal:
        terminal.wait_for(lambda seen: seen.count('\x1b[H') > 2, 'screens')
        title, empty, heads, rx, tx, rest = terminal.screen()
        equal(title, 'qemu-net-daemon qmp: 1 NIC, 2 rings (q: quit)')
        equal((empty, rest), ('', ''))
        equal(heads.split(), HEADS)
        equal((rx.split()[:2], tx.split()[:2]), (['v0', 'rx0'], ['v0', 'tx0']))
        terminal.type(key)
        equal(terminal.end(), 0)
        terminal.expect_restored()
        equal(terminal.seen.endswith(OWN_SCREEN), True)


def resize():
    """A new size is used at once, not at the next interval."""
    with daemon() as (place, _), \
            Terminal(place, ['--stats', 'qmp', '--interval', '3600']) \
            as terminal:
        terminal.wait_for_text('tx0')
        terminal.seen = ''
        terminal.resize(12, 4)
        terminal.wait_for_text('... and 2 mo')
        shown = [ESCAPES.sub('', line)
                 for line in terminal.seen.split('\r\n')]
        equal(shown, ['qemu-net-dae', '', 'NIC RING    '[:12],
                      '... and 2 mo'])
        terminal.type('q')
        equal(terminal.end(), 0)


def daemon_gone():
    """One line, on the screen that was there before; exit status 1."""
    with daemon() as (place, process), Terminal(place, FAST) as terminal:
        terminal.wait_for_text('tx0')
        process.terminate()
        equal(terminal.end(), 1)
        terminal.expect_restored()
        said = terminal.seen[terminal.seen.rindex(OWN_SCREEN) +
                             len(OWN_SCREEN):]
        expect_words(said, ["qemu-net-daemon: --stats 'qmp': the daemon has "
                            'gone'])


# ---- who is not a daemon ---------------------------------------------------


def expect_refusal(place, args, *words):
    status, out, err = place.run('qemu-net-daemon', args)
    equal((status, out), (1, ''))
    expect_words(err, words)


def nobody():
    """No socket, and one that nobody listens at."""
    with Place() as place:
        expect_refusal(place, ['--stats', 'none'], "'none'", 'No such file')
        with socket.socket(socket.AF_UNIX) as stale:
            stale.bind(str(place.dir / 'stale'))
        expect_refusal(place, ['--stats', 'stale'], "'stale'", 'refused')


def impostor(text, *words):
    """Somebody listens who says something else."""
    with Place() as place, socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(place.dir / 'sock'))
        listener.listen()

        def serve():
            peer, _ = listener.accept()
            with peer, contextlib.suppress(OSError):
                peer.sendall(text)
                while peer.recv(1000):
                    peer.sendall(b'{"error": {"class": "CommandNotFound", '
                                 b'"desc": "never heard of it"}}\r\n')
        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        expect_refusal(place, ['--stats', 'sock'], "--stats 'sock': not the "
                       'monitor of a qemu-net-daemon', '--qmp', *words)
        thread.join(LIMIT)


def silent():
    """The socket of an export: it waits for a front-end to speak."""
    with Place() as place:
        place.start('qemu-net-daemon', DAEMON)
        wait_until((place.dir / 'sock').exists, 'the export')
        expect_refusal(place, ['--stats', 'sock'], 'no QMP greeting comes')


def options():
    """Options that make no sense together, or at all."""
    with Place() as place:
        for args, words in [
                (['--stats'], ["'--stats' needs an argument"]),
                (['--interval', '2'], ['only with --stats']),
                (['--stats', 'x', '--interval', '0'], ["'0'", '0.1 to 3600']),
                (['--stats', 'x', '--interval', '1s'], ["'1s'"]),
                (['--stats', 'x', '--interval', 'nan'], ["'nan'"]),
                (['--stats', 'x', '--interval', ''], ["''"]),
                (['--stats', 'x'] + DAEMON, ['leave out all options'])]:
            expect_refusal(place, args, *words)


def main():
    """All cases."""
    with Suite() as suite:
        suite.run('lines: in a pipe', lines)
        suite.run('lines: the reader goes', reader_gone)
        suite.run('lines: two viewers and a reset', two_viewers)
        suite.run('lines: on a dumb terminal', dumb_terminal)
        suite.run('screen: q', screen, 'q')
        suite.run('screen: Ctrl-C', screen, '\x03')
        suite.run('screen: another size', resize)
        suite.run('screen: the daemon ends', daemon_gone)
        suite.run('refused: nobody listens', nobody)
        suite.run('refused: no QMP', impostor, b'SSH-2.0-OpenSSH_9.2\r\n',
                  'not QMP')
        suite.run('refused: another QMP', impostor,
                  b'{"QMP": {"version": {}, "capabilities": []}}\r\n',
                  'never heard of it')
        suite.run('refused: an export', silent)
        suite.run('refused: options', options)


if __name__ == '__main__':
    main()
