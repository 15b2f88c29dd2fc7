#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
#
# Makes the guest of the functional tests, the demo and the benchmarks:
# DIR/vmlinuz and DIR/initrd.gz (default DIR: build/guest).
#
# Purpose: a stock Debian kernel (the cloud flavour, downloaded and unpacked,
# never installed) with a user space that is at its agent a second or two
# after the kernel starts, also without KVM.
#
# Data flow: linux-image-*-cloud-amd64.deb, of the machine's own Debian or of
# the suite asked for -> DIR/kernel (kept, so that later runs need no network)
# -> vmlinuz and the modules listed below with what they depend on; busybox,
# the tools below with their shared libraries, and tests/functional/guest ->
# initrd.gz.
#
# States: DIR/stamp holds a checksum of all inputs; when it still matches
# nothing is done.  The outputs are renamed into place, the stamp comes last.
#
# Exit status: 0 made or up to date; 77 the kernel package is not at hand and
# cannot be fetched (a skip for callers); 1 anything else.  One line says why.
#
# Limits: x86-64.  DIR must not be used by two runs at once: a lock is taken.

set -eu

prog=guest-image.sh
modules='virtio_pci virtio_net'
# Not loaded by init, there for tests that want them.
spare_modules='pktgen'
tools='qperf iperf3 ping ethtool'

top=$(cd "$(dirname "$0")/.." && pwd)
src=$top/tests/functional/guest

die()
{
    status=$1
    shift
    echo "$prog: $*" >&2
    exit "$status"
}

. "$top/scripts/private-apt.sh"

usage()
{
    cat <<EOF
Usage: scripts/$prog [--refresh] [--suite SUITE] [DIR]

Make DIR/vmlinuz and DIR/initrd.gz, the guest of the functional tests
(default: build/guest).  --refresh takes the kernel that Debian has now,
--suite that of another Debian than this machine's: use another DIR.
EOF
}

# A program of apt's, on the machine's sources or on those of the suite.
on_suite()
{
    if [ -n "$suite" ]; then
        private_apt "$@"
    else
        "$@"
    fi
}

update_index()
{
    if [ -n "$suite" ]; then
        private_apt_begin "$suite"
    elif ! apt-cache show "$meta" >/dev/null 2>&1 && [ "$(id -u)" -eq 0 ]; then
        apt-get -q update >/dev/null 2>&1 || true
    fi
}

fetch_kernel()
{
    meta=linux-image-cloud-amd64
    update_index
    package=$(on_suite apt-cache depends --important "$meta" 2>/dev/null |
              sed -n 's/.*Depends: \(linux-image-.*-cloud-amd64\)$/\1/p' |
              head -n 1)
    [ -n "$package" ] ||
        die 77 "apt knows no $meta: run apt-get update with a Debian mirror"
    echo "$prog: fetching $package"
    rm -rf "$dir/kernel.new"
    mkdir -p "$dir/kernel.new"
    (cd "$dir/kernel.new" &&
     on_suite apt-get -q -o APT::Sandbox::User="$(id -un)" \
         -o Acquire::Retries=2 -o Acquire::http::Timeout=30 \
         download "$package" >fetch.log 2>&1) ||
        die 77 "cannot fetch $package:" \
            "$(sed -n 's/^E: //p' "$dir/kernel.new/fetch.log" | head -n 1)"
    dpkg-deb -x "$dir/kernel.new/"*.deb "$dir/kernel.new"
    rm -f "$dir/kernel.new/"*.deb "$dir/kernel.new/fetch.log"
    # Where kmod looks for modules, wherever the package has them.
    [ -e "$dir/kernel.new/lib" ] || ln -s usr/lib "$dir/kernel.new/lib"
    rm -rf "$dir/kernel" "$apt"
    mv "$dir/kernel.new" "$dir/kernel"
}

# All that the outputs are made of, as one checksum.
inputs()
{
    {
        cat "$0" "$src"/*
        ls "$dir/kernel/boot"
        for tool in busybox $tools; do
            ls -lL "$(path_of "$tool")"
        done
    } | sha256sum
}

path_of()
{
    PATH=$PATH:/usr/sbin:/sbin command -v "$1" ||
        die 1 "no $1 here, run: scripts/install-deps.sh check"
}

# A dynamic program with the libraries it names, at their own paths.
copy_program()
{
    install -D "$1" "$root/usr/bin/$(basename "$1")"
    ldd "$1" | sed -n 's|.*[ 	]\(/[^ ]*\) (0x.*|\1|p' | while read -r lib; do
        [ -e "$root$lib" ] || install -D "$lib" "$root$lib"
    done
}

# One module, not compressed: busybox need not know how.
copy_module()
{
    case $1 in
    *.xz) xz -dc "$1" >"$2" ;;
    *) install -m 644 "$1" "$2" ;;
    esac
}

# The modules in the order in which they have to be loaded.
copy_modules()
{
    depmod -b "$dir/kernel" "$version"
    for module in $modules $spare_modules; do
        modprobe -d "$dir/kernel" -S "$version" --show-depends "$module" |
            sed -n 's/^insmod \([^ ]*\).*/\1/p' | while read -r path; do
                name=$(basename "$path" .xz)
                copy_module "$path" "$root/lib/modules/$name"
                case " $spare_modules " in
                *" $module "*) ;;
                *) echo "$name" ;;
                esac
            done
    done | awk '!seen[$0]++' >"$root/etc/modules"
}

build_tool()
{
    ${CC:-cc} -std=gnu11 -O2 -static -Wall -Wextra -s \
        -o "$root/usr/local/bin/$1" "$src/$1.c" ||
        die 1 "cannot build $1"
}

make_initrd()
{
    root=$dir/root
    rm -rf "$root"
    mkdir -p "$root/bin" "$root/sbin" "$root/dev" "$root/proc" "$root/sys" \
        "$root/tmp" "$root/etc" "$root/usr/local/bin" "$root/lib/modules"
    install "$(path_of busybox)" "$root/bin/busybox"
    ln -s busybox "$root/bin/sh"
    for tool in $tools; do
        copy_program "$(path_of "$tool")"
    done
    copy_modules
    build_tool guest-agent
    build_tool nettool
    build_tool udpburst
    install "$src/init" "$root/init"
    install "$src/netup" "$src/netlease" "$root/usr/local/bin"
    (cd "$root" && find . -print0 | sort -z |
     cpio --quiet --null -o -H newc -R 0:0) | gzip -n -6 >"$dir/initrd.new"
    rm -rf "$root"
}

refresh=no
suite=
dir=
while [ $# -gt 0 ]; do
    case $1 in
    --refresh) refresh=yes ;;
    --suite)
        [ $# -gt 1 ] || die 1 "--suite needs a name, try --help"
        suite=$2
        shift
        ;;
    --help|-h) usage; exit 0 ;;
    -*) die 1 "unknown option '$1', try --help" ;;
    *) dir=$1 ;;
    esac
    shift
done
mkdir -p "${dir:-$top/build/guest}"
dir=$(cd "${dir:-$top/build/guest}" && pwd)
apt=$dir/apt

exec 9>"$dir/lock"
flock 9

PATH=$PATH:/usr/sbin:/sbin
for tool in cpio depmod modprobe ldd gzip xz busybox $tools; do
    path_of "$tool" >/dev/null
done

if [ $refresh = yes ] || ! ls "$dir"/kernel/boot/vmlinuz-* >/dev/null 2>&1
then
    fetch_kernel
fi
if [ -e "$dir/vmlinuz" ] && [ -e "$dir/initrd.gz" ] &&
   [ "$(inputs)" = "$(cat "$dir/stamp" 2>/dev/null)" ]; then
    exit 0
fi

version=$(basename "$dir"/kernel/boot/vmlinuz-*)
version=${version#vmlinuz-}
echo "$prog: making the guest: Linux $version"
make_initrd
cp "$dir/kernel/boot/vmlinuz-$version" "$dir/vmlinuz.new"
mv "$dir/vmlinuz.new" "$dir/vmlinuz"
mv "$dir/initrd.new" "$dir/initrd.gz"
inputs >"$dir/stamp"
