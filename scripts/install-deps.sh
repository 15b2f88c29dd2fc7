#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
#
# The one list of Debian packages this project needs, and their installer.
#
# Purpose: GNUmakefile, .ci/run and `make demo` call this before they build or
# test; configure names packages from it.  Each row of the table below is a
# package, the group that needs it, and why; a use (build, demo, check, ...)
# is a set of groups.  docs/devel/dependencies.rst tells more of the reasons.
#
# States: all present (silent, a few milliseconds, no network); something
# missing and root (apt-get installs exactly that, without recommended
# packages); something missing and not root (one line with the command, 1).
#
# Limits: Debian and its derivatives.  A row may name alternatives a|b, for
# a package whose name differs between releases: the first one that the
# system has or apt knows is meant.  Needs nothing that a minimal Debian
# lacks; in particular neither Python nor curl.  The Debian kernel of the
# test guests is not in this list: it is unpacked by guest-image.sh, never
# installed; nor is the second stock QEMU, see stock-qemu.sh.

set -u

prog=install-deps.sh

packages()
{
    cat <<'TABLE'
build-essential                 build   compiler, libc headers, make
pkg-config                      build   finds the libraries below
meson                           build   build system
ninja-build                     build   build system
python3                         build   meson, test and benchmark programs
libglib2.0-dev                  build   containers, errors, options, tests
libslirp-dev                    build   -netdev user
libcap-ng-dev                   build   dropping capabilities
libjson-glib-dev                build   JSON forms of -device and -netdev
systemtap-sdt-dev               build   static probes, for perf and bpftrace
qemu-system-x86                 run     the stock QEMU that runs the guest
busybox-static                  guest   user space of the test guest
cpio                            guest   packs the guest's initrd
kmod                            guest   module dependencies of the guest
xz-utils                        guest   compressed kernel modules
zstd                            guest   compressed kernel modules
qperf                           guest   latency and rates, both ends
iperf3                          guest   rates, both ends
iputils-ping                    guest   flood ping with loss count
ethtool                         guest   offloads and rings of the guest
iproute2                        guest   taps and namespaces
clang                           check   second compiler, libFuzzer
libclang-rt-dev|libclang-rt-14-dev check fuzzer and sanitizer run-time
llvm                            check   symbolizer, coverage of the fuzzers
spin                            check   checks the Promela models
dpdk-dev                        check   testpmd: a foreign vhost-user driver
valgrind                        bench   callgrind: instructions per packet
gnuplot-nox                     plots   the plots of docs/benchmarks
python3-sphinx                  docs    manual and man pages
TABLE
}

# use -> groups
groups_of()
{
    case $1 in
    build) echo build ;;
    demo) echo build run guest ;;
    check|check-slow) echo build run guest check bench docs ;;
    bench) echo build run guest bench ;;
    bench-seeds) echo build plots ;;
    docs) echo build docs ;;
    all) echo build run guest check bench plots docs ;;
    *) return 1 ;;
    esac
}

usage()
{
    cat <<EOF
Usage: scripts/$prog [--list|--check|--help] [USE]

Install the Debian packages that USE needs and that are missing.
USE is one of build, demo, check (default), check-slow, bench, bench-seeds,
docs, all.

  --list    print the packages of USE, one a line
  --check   print the missing ones, one a line; exit 1 if there are any
  --help    this text
EOF
}

die()
{
    echo "$prog: $*" >&2
    exit 1
}

# Rows of the wanted groups, first column only.
wanted()
{
    packages | while read -r name group _; do
        for g in $1; do
            if [ "$g" = "$group" ]; then
                echo "$name"
            fi
        done
    done
}

is_known()
{
    apt-cache show --no-all-versions "$1" >/dev/null 2>&1
}

# a|b -> the name to ask apt for.
resolve()
{
    case $1 in
    *\|*)
        for alt in $(echo "$1" | tr '|' ' '); do
            if is_known "$alt"; then
                echo "$alt"
                return
            fi
        done
        echo "${1%%|*}"
        ;;
    *)
        echo "$1"
        ;;
    esac
}

# Of the names on stdin, those of which no alternative is installed.
missing()
{
    names=$(cat)
    installed=$(dpkg-query -W -f='${Package} ${db:Status-Status}\n' \
                $(echo "$names" | tr '|' ' ') 2>/dev/null |
                sed -n 's/ installed$//p' | sort -u | tr '\n' ' ')
    for name in $names; do
        found=no
        for alt in $(echo "$name" | tr '|' ' '); do
            case " $installed" in
            *" $alt "*) found=yes ;;
            esac
        done
        if [ $found = no ]; then
            echo "$name"
        fi
    done
}

# Run apt-get with its output in the log, one progress line for every tenth
# package, and again while another process holds one of its locks.
apt()
{
    tries=0
    while :; do
        : >"$log"
        {
            apt-get -q -y -o DPkg::Lock::Timeout=300 -o Acquire::Retries=2 \
                -o Acquire::http::Timeout=30 "$@" 2>&1 </dev/null
            echo "rc=$?"
        } | tee -a "$log" |
            awk '/^Unpacking /  && ++u % 10 == 0 { print "  unpacked " u }
                 /^Setting up / && ++s % 10 == 0 { print "  set up " s }
                                                 { fflush() }'
        if grep -qx 'rc=0' "$log"; then
            return 0
        fi
        tries=$((tries + 1))
        if [ $tries -ge 60 ] ||
           ! grep -q -e 'Could not get lock' \
                     -e 'Unable to acquire the dpkg' "$log"; then
            return 1
        fi
        echo "  waiting for another apt-get to finish"
        sleep 5
    done
}

reason()
{
    sed -n 's/^E: //p' "$log" | grep -v '^Unable to fetch some archives' |
        head -n 1
}

install_missing()
{
    log=$(mktemp "${TMPDIR:-/tmp}/install-deps.XXXXXX") || exit 1
    trap 'rm -f "$log"' EXIT
    export DEBIAN_FRONTEND=noninteractive

    # The mirror's index may be stale or absent.  An error here is not
    # final: a source that is not needed may be the one that fails.
    echo "$prog: $(echo "$1" | wc -w) packages missing: reading the index"
    apt update || true

    list=
    for name in $1; do
        list="$list $(resolve "$name")"
    done
    echo "$prog: installing$list"
    if ! apt install --no-install-recommends $list; then
        why=$(reason)
        die "apt-get could not install the missing packages" \
            "(${why:-no reason given}): check the network and the" \
            "mirror in /etc/apt, then run: apt-get install$list"
    fi
}

action=install
use=check
for arg in "$@"; do
    case $arg in
    --list) action=list ;;
    --check) action=check ;;
    --help|-h) usage; exit 0 ;;
    -*) die "unknown option '$arg', try --help" ;;
    *) use=$arg ;;
    esac
done
groups=$(groups_of "$use") ||
    die "unknown use '$use': build, demo, check, check-slow, bench," \
        "bench-seeds, docs or all"

if [ $action = list ]; then
    for name in $(wanted "$groups"); do
        echo "${name%%|*}"
    done
    exit 0
fi

if ! command -v dpkg-query >/dev/null || ! command -v apt-get >/dev/null; then
    die "no apt-get here; install the equivalents of:" \
        $(wanted "$groups" | sed 's/|.*//')
fi

absent=$(wanted "$groups" | missing)
if [ -z "$absent" ]; then
    exit 0
fi
if [ $action = check ]; then
    echo "$absent" | sed 's/|.*//'
    exit 1
fi
if [ "$(id -u)" -ne 0 ]; then
    die "packages are missing, run: sudo scripts/$prog $use"
fi
install_missing "$absent"
