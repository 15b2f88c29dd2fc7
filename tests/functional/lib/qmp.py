# SPDX-License-Identifier: GPL-2.0-or-later
"""A client for QEMU's monitor protocol.

The test listens and QEMU connects, so there is no moment at which an event
could be missed.  A thread reads; execute() waits for its answer.
"""
import json
import queue
import threading
import time

from . import env
from .process import start_thread


class QmpError(Exception):
    """The monitor refused a command; `error` is its answer."""

    def __init__(self, command, error):
        super().__init__(f'{command}: {error.get("desc")}')
        self.error = error


class Qmp:
    """One monitor connection.

    events    queue.Queue of event dictionaries, in order of arrival
    """

    def __init__(self, sock):
        self.sock = sock
        self.events = queue.Queue()
        self.answers = queue.Queue()
        self.lock = threading.Lock()
        start_thread(self._read)
        greeting = self._answer('greeting', 30)
        self.version = greeting['QMP']['version']['qemu']
        self.execute('qmp_capabilities')

    def _read(self):
        with self.sock.makefile('rb') as lines:
            try:
                for line in lines:
                    message = json.loads(line)
                    is_event = 'event' in message
                    (self.events if is_event else self.answers).put(message)
            except (OSError, ValueError):
                pass                    # QEMU ended; so do the answers
        self.answers.put(None)

    def _answer(self, command, timeout):
        try:
            answer = self.answers.get(timeout=env.scaled(timeout))
        except queue.Empty:
            raise TimeoutError(f'monitor: no answer to {command} in '
                               f'{timeout} s') from None
        if answer is None:
            self.answers.put(None)
            raise ConnectionError(f'monitor: closed at {command}')
        return answer

    def execute(self, command, timeout=10, **arguments):
        """Runs a command and returns its result; raises QmpError."""
        message = {'execute': command}
        if arguments:
            message['arguments'] = {key.replace('_', '-'): value
                                    for key, value in arguments.items()}
        with self.lock:
            self.sock.sendall(json.dumps(message).encode() + b'\n')
            answer = self._answer(command, timeout)
        if 'error' in answer:
            raise QmpError(command, answer['error'])
        return answer['return']

    def delay(self):
        """Seconds that the monitor takes for an answer now."""
        start = time.monotonic()
        self.execute('query-status', timeout=30)
        return time.monotonic() - start

    def wait_event(self, name, timeout=10):
        """The next event of that name; earlier ones are dropped."""
        deadline = time.monotonic() + env.scaled(timeout)
        while True:
            try:
                event = self.events.get(
                    timeout=max(0, deadline - time.monotonic()))
            except queue.Empty:
                raise TimeoutError(f'no event {name} in {timeout} s') from None
            if event['event'] == name:
                return event
