#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""The cases on our virtio-net, by our qemu-system-x86_64.

The launcher gets an ordinary QEMU command line; the machine behind it is a
stock QEMU.  Each policy of transmit, and a transmit thread, at each kind of
net, one guest for each.
"""
import mmap
import os
import pathlib
import re

from lib import cases, env
from lib.runner import Skip, Suite

HUGE_BYTES = 2 << 20
FIRST_CPU = min(os.sched_getaffinity(0))
THP = pathlib.Path('/sys/kernel/mm/transparent_hugepage')


def launcher():
    """Path of our qemu-system-x86_64."""
    return env.our_program('qemu-system-x86_64')


def served_by_us(guest, _):
    """The NIC is in our daemon, not left to the stock QEMU."""
    names = [pathlib.Path(f'/proc/{pid}/comm').read_text('ascii').strip()
             for pid in guest.process.leftovers()]
    assert names == ['qemu-net-daemon'], names


def _mapped_huge(pid, what):
    """KiB of huge pages by kind, in all mappings of a process."""
    text = pathlib.Path(f'/proc/{pid}/smaps').read_text('ascii')
    return sum(int(kib) for kib in re.findall(rf'^{what}: +(\d+) kB', text,
                                              re.M))


def _host_has_huge_pages():
    """Whether private memory gets them here: then the guest's should."""
    if not (THP / 'enabled').exists() or '[never]' in (
            THP / 'enabled').read_text('ascii'):
        return False
    with mmap.mmap(-1, 4 * HUGE_BYTES,
                   mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS) as memory:
        memory.madvise(mmap.MADV_HUGEPAGE)
        for page in range(0, len(memory), mmap.PAGESIZE):
            memory[page] = 1
        return _mapped_huge('self', 'AnonHugePages') > 0


def huge_memory(guest, _):
    """Guest memory has huge pages, in QEMU and in our daemon, though it is
    shared."""
    if not _host_has_huge_pages():
        raise Skip('this host has no transparent huge pages')
    shared = (THP / 'shmem_enabled').read_text('ascii')
    args = pathlib.Path(f'/proc/{guest.process.pid}/cmdline').read_bytes()
    if '[deny]' in shared or ('[never]' in shared
                              and b'memory-backend-memfd' in args):
        raise Skip('this host does not let shared memory have huge pages')
    daemon, = guest.process.leftovers()
    for pid in (guest.process.pid, daemon):
        assert _mapped_huge(pid, 'ShmemPmdMapped') > 0, \
            pathlib.Path(f'/proc/{pid}/comm').read_text('ascii')


def transmit_thread(guest, _):
    """The NIC has one, which tools can tell from others, on its CPU; it was
    made after the daemon's privileges were gone."""
    daemon, = guest.process.leftovers()
    tasks = pathlib.Path(f'/proc/{daemon}/task')
    names = {(task / 'comm').read_text('ascii').strip(): int(task.name)
             for task in tasks.iterdir()}
    assert set(names) == {'qemu-net-daemon', 'tx:nic0'}, names
    thread = names['tx:nic0']
    assert os.sched_getaffinity(thread) == {FIRST_CPU}
    assert 'CapEff:\t0000000000000000' in (
        tasks / str(thread) / 'status').read_text('ascii')


# What differs: mitigation of transmit, and who transmits.
MODES = {
    'bh': {'tx': 'bh'},
    'timer': {'tx': 'timer'},
    'adaptive': {'tx': 'adaptive'},
    'tx-thread': {'tx__thread': 'on', 'tx__cpus': FIRST_CPU},
}


def kinds_of(mode):
    """Kinds of net to try it on: all; in `make check` (one stock QEMU), for the
    modes whose backends are served alike, one."""
    every = list(cases.TABLES)
    if mode in ('bh', 'timer') or len(cases.stock_qemus()) > 1:
        return every
    return ['tap']


def main():
    """All kinds of net with each policy, and with a transmit thread."""
    with Suite() as suite:
        for name, qemu in cases.stock_qemus().items():
            for mode, properties in MODES.items():
                first = {'served by our daemon': served_by_us,
                         'memory has huge pages': huge_memory}
                if mode == 'tx-thread':
                    first = {'has a transmit thread': transmit_thread}
                for kind in kinds_of(mode):
                    cases.run_kind(suite, f'on {name}, {mode}', kind, launcher,
                                   first=first, stock=qemu, **properties)
            cases.run_two(suite, f'on {name}', launcher, stock=qemu)
            cases.run_two(suite, f'on {name}, tx-thread', launcher,
                          stock=qemu, tx__thread='on')


if __name__ == '__main__':
    main()
