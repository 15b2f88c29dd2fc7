# SPDX-License-Identifier: GPL-2.0-or-later
"""Drives DPDK's testpmd as a virtio-user front-end.

Purpose: an interactive testpmd on a pseudo-terminal, its ports on vhost-user
sockets; commands in, text and counters out.

Set-up: no huge pages (one memfd is shared with the device), no PCI, two
logical cores that float over whatever processors there are: one reads
commands, one forwards.

States: constructed = started and at its prompt; every command returns at the
next prompt; close() ends it, by force if it does not listen.

Limits: one forwarding core, so run it for short times only: it polls.
"""

import os
import pty
import re
import select
import shutil
import subprocess
import termios
import time

PROGRAM = 'dpdk-testpmd'
PROMPT = 'testpmd> '
MEMORY_MIB = 192
MBUFS = 16384
START_SECONDS = 60
COMMAND_SECONDS = 30
RETRIES = 100000           # of 10 us


class TestpmdError(Exception):
    """testpmd did not answer; the text is what it last said."""


def available():
    return shutil.which(PROGRAM) is not None


def processors():
    return ','.join(str(cpu) for cpu in sorted(os.sched_getaffinity(0)))


class Testpmd:
    """One testpmd with a port per socket in @sockets."""

    def __init__(self, sockets, pairs=1, mergeable=True, max_frame=None,
                 log=None):
        cpus = f'({processors()})'
        vdevs = []
        for i, path in enumerate(sockets):
            vdevs += ['--vdev', f'net_virtio_user{i},path={path},'
                                f'queues={pairs},queue_size=256,'
                                f'mrg_rxbuf={int(mergeable)}']
        command = [PROGRAM, '--no-huge', '-m', str(MEMORY_MIB), '--no-pci',
                   '--no-shconf', '--no-telemetry', '--log-level=5',
                   '--lcores', f'0@{cpus},1@{cpus}', *vdevs,
                   '--', '--interactive', '--nb-cores=1',
                   f'--rxq={pairs}', f'--txq={pairs}',
                   '--rxd=256', '--txd=256', '--burst=32',
                   f'--total-num-mbufs={MBUFS}', '--no-flush-rx']
        if max_frame:
            command += [f'--max-pkt-len={max_frame}', '--enable-scatter',
                        '--tx-offloads=0x8000']
        self._log = log
        self._tty, slave = pty.openpty()
        mode = termios.tcgetattr(slave)
        mode[3] &= ~termios.ECHO
        termios.tcsetattr(slave, termios.TCSANOW, mode)
        self._process = subprocess.Popen(command, stdin=slave, stdout=slave,
                                         stderr=slave, start_new_session=True)
        os.close(slave)
        try:
            text = self._until_prompt(START_SECONDS)
            if 'Start ports failed' in text:
                raise TestpmdError(text)
        except TestpmdError:
            self.close()
            raise

    def _until_prompt(self, seconds):
        text = ''
        end = time.monotonic() + seconds
        while not text.endswith(PROMPT):
            ready, _, _ = select.select([self._tty], [], [],
                                        max(0, end - time.monotonic()))
            try:
                data = os.read(self._tty, 65536) if ready else b''
            except OSError:
                data = b''          # the terminal's other end is closed
            if not data:
                why = 'ended' if ready else f'silent for {seconds} s'
                raise TestpmdError(f'testpmd {why}: {text[-2000:]}')
            text += data.decode(errors='replace').replace('\r', '')
            if self._log:
                self._log.write(data)
        return text

    def command(self, line):
        """Runs one command; returns what it printed."""
        os.write(self._tty, line.encode() + b'\n')
        return self._until_prompt(COMMAND_SECONDS)

    def forward(self, mode, ports=None):
        """Starts forwarding in @mode on @ports (default: all).

        "MODE retry" tries again when a transmit ring is full, instead of
        dropping.
        """
        if ports is not None:
            self.command('set portlist ' + ','.join(map(str, ports)))
        self.command(f'set fwd {mode}')
        if mode.endswith(' retry'):
            self.command(f'set burst tx delay 10 retry {RETRIES}')
        self.command('start')

    def stop(self):
        """Ends forwarding when the burst in hand has been dealt with."""
        return self.command('stop')

    def stats(self, port):
        """Counters of a port since start: rx, tx, and its errors."""
        text = self.command(f'show port stats {port}')
        return {key: int(re.search(name + r': *(\d+)', text).group(1))
                for key, name in (('rx', 'RX-packets'), ('tx', 'TX-packets'),
                                  ('rx_bytes', 'RX-bytes'),
                                  ('tx_bytes', 'TX-bytes'),
                                  ('rx_errors', 'RX-errors'),
                                  ('rx_missed', 'RX-missed'),
                                  ('rx_nombuf', 'RX-nombuf'),
                                  ('tx_errors', 'TX-errors'))}

    def queue_stats(self, port):
        """Extended counters: {name: value}."""
        text = self.command(f'show port xstats {port}')
        return {name: int(value) for name, value in
                re.findall(r'^(\w+): (\d+)$', text, re.MULTILINE)}

    def close(self):
        """Ends testpmd; returns its exit status."""
        if self._process.poll() is None:
            try:
                os.write(self._tty, b'quit\n')
                self._drain()
                self._process.wait(COMMAND_SECONDS)
            except (OSError, subprocess.TimeoutExpired):
                self._process.kill()
                self._process.wait()
        os.close(self._tty)
        return self._process.returncode

    def _drain(self):
        """Reads until testpmd closes the terminal: it must not block."""
        end = time.monotonic() + COMMAND_SECONDS
        while time.monotonic() < end:
            ready, _, _ = select.select([self._tty], [], [], 1)
            try:
                if ready and not os.read(self._tty, 65536):
                    return
            except OSError:
                return
