# SPDX-License-Identifier: GPL-2.0-or-later
"""Where the tests find things, and how long they wait.

Read from the environment, which meson sets:

  QVN_BUILD_DIR      build directory (default: build under the source tree)
  QEMU_STOCK         the stock QEMU, for us as for our launcher
  QVN_STOCK_QEMU     what configure was told (default: the one in PATH)
  QVN_STOCK_QEMU_11  the newer one (default: what stock-qemu.sh unpacked)
  QVN_TIMEOUT_SCALE  factor on every time limit, for sanitizer builds
  QVN_ACCEL          tcg or kvm (default: tcg, which behaves the same
                     everywhere)

Logs are kept in BUILD/functional-logs/NAME.
"""
import os
import pathlib
import re
import shutil
import subprocess

from .runner import Skip

SOURCE_DIR = pathlib.Path(__file__).resolve().parents[3]
BUILD_DIR = pathlib.Path(os.environ.get('QVN_BUILD_DIR')
                         or SOURCE_DIR / 'build').resolve()
ACCEL = os.environ.get('QVN_ACCEL', 'tcg')
# Kernels of guests: directory below the build's, options of guest-image.sh.
KERNELS = {'6.1': ('guest', []), '6.12': ('guest-6.12', ['--suite', 'trixie'])}
TIMEOUT_SCALE = float(os.environ.get('QVN_TIMEOUT_SCALE', '1'))


def scaled(seconds):
    """A time limit, stretched for slow builds of the programs under test."""
    return seconds * TIMEOUT_SCALE


def log_dir(name):
    """A directory for one guest's logs, emptied of an earlier run's."""
    path = BUILD_DIR / 'functional-logs' / name
    shutil.rmtree(path, ignore_errors=True)
    path.mkdir(parents=True)
    return path


def our_program(name):
    """Path of one of our own programs; skips the case if it is not built."""
    path = BUILD_DIR / name
    if not path.exists():
        raise Skip(f'{name} is not built in {BUILD_DIR}')
    return path


def stock_qemu():
    """Path of the stock QEMU, the distribution's in general."""
    path = (os.environ.get('QEMU_STOCK') or os.environ.get('QVN_STOCK_QEMU')
            or shutil.which('qemu-system-x86_64'))
    if not path or not os.path.exists(path):
        raise Skip(f'no stock QEMU: {path or "qemu-system-x86"} is missing')
    return path


def stock_qemu_11():
    """Path of the QEMU that scripts/stock-qemu.sh unpacked."""
    path = os.environ.get('QVN_STOCK_QEMU_11') or \
        BUILD_DIR / 'stock-qemu' / 'bin' / 'qemu-system-x86_64-11'
    if not os.path.exists(path):
        raise Skip('no second stock QEMU: run scripts/stock-qemu.sh')
    return path


def version_of(qemu):
    """(major, minor) of a QEMU."""
    text = subprocess.run([qemu, '-version'], capture_output=True,
                          text=True, timeout=scaled(30), check=True).stdout
    return tuple(map(int, re.search(r'version (\d+)\.(\d+)', text).groups()))


def guest_image(name='6.1'):
    """(kernel, initrd); made now if they are missing or out of date.

    name   of KERNELS; the first is whatever this machine's own Debian has
    """
    directory, options = KERNELS[name]
    out = BUILD_DIR / directory
    done = subprocess.run([SOURCE_DIR / 'scripts' / 'guest-image.sh',
                           *options, out],
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          text=True, timeout=scaled(300), check=False)
    if done.returncode == 77:
        raise Skip(done.stdout.strip().splitlines()[-1])
    if done.returncode:
        raise RuntimeError(f'guest-image.sh failed: {done.stdout}')
    return out / 'vmlinuz', out / 'initrd.gz'


def need_root():
    """Skips the case for anyone who may not make taps and namespaces."""
    if os.geteuid() != 0:
        raise Skip('taps and network namespaces need root')
    if not os.path.exists('/dev/net/tun'):
        raise Skip('no /dev/net/tun')
