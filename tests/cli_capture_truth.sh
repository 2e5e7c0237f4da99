#!/bin/sh
# SPDX-License-Identifier: MIT
# Known sequences of I/O, captured by the preload recorder op for op.
. "$IOTAPE_SRC/tests/testlib.sh"
prog=$IOTAPE_BUILD/tests/prog_truth
export ASAN_OPTIONS=verify_asan_link_order=0:detect_leaks=0
dir=$PWD/data
mkdir "$dir"

# captured MODE: the truth in truth, what the tape says of the file in seen
captured() {
    rm -f "$dir"/*
    iotape capture -q -r preload -f -o "$1.tape" -- "$prog" "$1" "$dir/file" >truth.raw 2>err ||
        { cat err >&2; fail "$1: exit $?"; }
    iotape dump "$1.tape" --file "$dir/file" >dump.raw || fail "$1: dump"
    grep -v '^#' dump.raw | awk '{print $2, $4, $5, $6}' >seen.raw
    grep . truth.raw >truth
}
in_order() {
    captured "$1"
    cp seen.raw seen
    cmp -s truth seen || { diff truth seen | head -20 >&2; fail "$1: not what was done"; }
}
any_order() {
    captured "$1"
    sort truth >truth.sorted
    sort seen.raw >seen.sorted
    cmp -s truth.sorted seen.sorted ||
        { diff truth.sorted seen.sorted | head -20 >&2; fail "$1: not what was done"; }
}

for mode in sync vectored libaio handreap posixaio stdio copy closeall; do in_order $mode; done
for mode in threads forks append signals; do any_order $mode; done

# Batches: each io_submit is one, of the size it had.
captured libaio
awk '$9 == "libaio" {print $10}' dump.raw | grep -v '^-$' | uniq -c | awk '{print $1}' >batches
printf '%s\n' 2 3 4 5 6 7 8 16 24 32 40 48 56 64 >want
cmp -s want batches || { diff want batches >&2; fail "libaio: batch sizes"; }
# io_uring where the kernel lets us: the same, with flags.
if "$prog" uring "$dir/probe" >/dev/null 2>&1; then
    in_order uring
    awk '$9 == "io_uring" {print $10}' dump.raw | grep -v '^-$' | uniq -c | awk '{print $1}' >batches
    printf '%s\n' 2 4 8 16 32 2 >want
    cmp -s want batches || { diff want batches >&2; fail "io_uring: batch sizes"; }
    says ' write .* 8192 512 512 .*fixed_file' dump.raw
    says ' write .* 8192 512 512 .*link' dump.raw
fi

# A libaio completion is an upper bound, as --list says; a sync one is exact.
[ "$(grep -c ' libaio .*upper' dump.raw)" = "$(grep -c ' libaio ' dump.raw)" ] ||
    fail "libaio: a completion is not marked as a bound"
captured sync
grep -q ' sync .*upper' dump.raw && fail "sync: a completion is marked as a bound"

# 32 threads are 32 streams.
captured threads
equal "streams that read" 32 "$(awk '$2 == "read" {print $8}' dump.raw | sort -u | wc -l)"
captured forks
equal "processes that read" 40 "$(awk '$2 == "read" {print $8}' dump.raw | sort -u | wc -l)"
exit 0
