#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
#
# Instructions per packet of the ring's verbs, by callgrind: bench-vring runs
# twice with different counts, and the difference leaves set-up out.
#
#   tests/bench/ring-instructions.sh [BENCH-VRING [all]]
#
# Needs valgrind.  "all" adds park, should_signal and arm.
set -eu

bench=${1:-build/tests/bench/bench-vring}
all=${2:-}
few=6400
many=70400
out=$(mktemp)
trap 'rm -f "$out"' EXIT

if ! command -v valgrind >/dev/null; then
    echo "ring-instructions.sh: valgrind is not installed" \
         "(apt-get install valgrind)" >&2
    exit 1
fi

# instructions SHAPE BATCH PACKETS: all that the program executed
instructions() {
    valgrind --tool=callgrind --callgrind-out-file=/dev/null \
        "$bench" "$1" "$2" "$3" $all >/dev/null 2>"$out" || {
        cat "$out" >&2
        exit 1
    }
    sed -n 's/.*Collected : \([0-9]*\).*/\1/p' "$out"
}

printf '%-10s %8s %8s %8s   instructions per packet\n' shape '1' '16' '64'
for shape in one two indirect receive; do
    printf '%-10s' "$shape"
    for batch in 1 16 64; do
        a=$(instructions "$shape" "$batch" "$few")
        b=$(instructions "$shape" "$batch" "$many")
        printf ' %8s' "$(awk "BEGIN { printf \"%.1f\", \
            ($b - $a) / ($many - $few) }")"
    done
    echo
done
