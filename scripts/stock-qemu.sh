#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
#
# Unpacks a second, newer stock QEMU: Debian's trixie-backports package, into
# DIR (default: build/stock-qemu).  Prints the path of the program to run,
# DIR/bin/qemu-system-x86_64-11.
#
# Purpose: the tests compare with, and run on, two QEMUs that are years
# apart, and the newer one brings vfio-user-pci.  Nothing is installed on the
# machine, no root is needed, nothing is mounted.
#
# Data flow: the mirror of this machine's own apt sources -> an apt with
# its own directories under DIR/apt, whose package database is empty, so that
# it fetches QEMU and all it depends on -> dpkg-deb -x into DIR/root -> a
# wrapper that starts the unpacked QEMU by the unpacked dynamic loader.  By
# the loader and not in a chroot: sockets, taps, descriptors and every path on
# its command line then mean what they mean on the host.
#
# States: DIR/stamp holds a checksum of this script and the version that was
# unpacked; while the script is the same nothing is done.  --refresh starts
# anew.
#
# Exit status: 0 there (path on stdout); 77 the mirror cannot be reached or
# has no such package (a skip for callers); 1 anything else.  One line on
# stderr says why.
#
# Limits: x86-64; firmware and modules only as far as the packages bring them.
# -device help loads all modules and looks for the missing ones where the
# distribution has its own: QEMU refuses those with a line on stderr.

set -eu

prog=stock-qemu.sh
suite=trixie
package=qemu-system-x86

top=$(cd "$(dirname "$0")/.." && pwd)

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
Usage: scripts/$prog [--refresh] [DIR]

Unpack QEMU of Debian's $suite-backports into DIR (default:
build/stock-qemu) and print the path of the program.
EOF
}

fetch()
{
    echo "$prog: fetching $package of $suite-backports" >&2
    private_apt_begin "$suite" "$suite-backports"
    private_apt apt-get install --download-only -t "$suite-backports" \
        "$package" >>"$apt/log" 2>&1 ||
        die 77 "cannot fetch $package: $(private_apt_reason)"
}

unpack()
{
    rm -rf "$dir/root"
    mkdir -p "$dir/root/usr/bin" "$dir/root/usr/sbin" \
        "$dir/root/usr/lib" "$dir/root/usr/lib64"
    for d in bin sbin lib lib64; do
        ln -s "usr/$d" "$dir/root/$d"
    done
    for deb in "$dir"/apt/cache/archives/*.deb; do
        # Through tar: the links made above must stay links.
        dpkg-deb --fsys-tarfile "$deb" |
            tar -x -C "$dir/root" --keep-directory-symlink \
                --no-same-owner --exclude='./usr/share/doc' \
                --exclude='./usr/share/man' --exclude='./usr/share/locale'
    done
    version=$(dpkg-deb -f "$dir"/apt/cache/archives/"$package"_*.deb Version)
    rm -rf "$dir/apt/cache" "$dir/apt/state"
}

write_wrapper()
{
    mkdir -p "$dir/bin"
    cat >"$wrapper.new" <<'EOF'
#!/bin/sh
# Written by scripts/stock-qemu.sh.
root=$(dirname "$(dirname "$(readlink -f "$0")")")/root
lib=$root/usr/lib/x86_64-linux-gnu
export QEMU_MODULE_DIR="$lib/qemu"
exec "$lib/ld-linux-x86-64.so.2" --argv0 "$0" --inhibit-cache \
    --library-path "$lib" "$root/usr/bin/qemu-system-x86_64" \
    -L "$root/usr/share/qemu" -L "$root/usr/share/seabios" \
    -L "$root/usr/lib/ipxe/qemu" "$@"
EOF
    chmod +x "$wrapper.new"
    "$wrapper.new" -version >"$dir/version" ||
        die 1 "the unpacked QEMU does not start"
    mv "$wrapper.new" "$wrapper"
}

refresh=no
dir=
for arg in "$@"; do
    case $arg in
    --refresh) refresh=yes ;;
    --help|-h) usage; exit 0 ;;
    -*) die 1 "unknown option '$arg', try --help" ;;
    *) dir=$arg ;;
    esac
done
mkdir -p "${dir:-$top/build/stock-qemu}"
dir=$(cd "${dir:-$top/build/stock-qemu}" && pwd)
wrapper=$dir/bin/qemu-system-x86_64-11
apt=$dir/apt

exec 9>"$dir/lock"
flock 9

stamp=$(sha256sum <"$0")
if [ $refresh = no ] && [ -x "$wrapper" ] &&
   [ "$(head -n 1 "$dir/stamp" 2>/dev/null)" = "$stamp" ]; then
    echo "$wrapper"
    exit 0
fi
command -v apt-get >/dev/null || die 77 "no apt-get here"
fetch
unpack
write_wrapper
printf '%s\n%s\n' "$stamp" "$version" >"$dir/stamp"
echo "$wrapper"
