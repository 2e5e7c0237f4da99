#!/bin/sh
# SPDX-License-Identifier: MIT
# What the preload recorder derives of stdio against what strace sees: each read and write, in order.
. "$IOTAPE_SRC/tests/testlib.sh"
need strace
strace -o probe true 2>/dev/null || skip "strace cannot trace here"
export ASAN_OPTIONS=verify_asan_link_order=0:detect_leaks=0
mkdir data
iotape capture -q -r preload -o t.tape -- strace -y -o strace.txt -e trace=read,write \
    "$IOTAPE_BUILD/tests/prog_stdio" "$PWD/data" || fail "capture: exit $?"
grep '/data/' strace.txt | sed -E 's/^([a-z]+)\([0-9]+<([^>]*)>.*, ([0-9]+)\) += ([-0-9]+).*/\1 \2 \3 \4/' >from_strace
iotape dump t.tape --stream prog_stdio >dump.raw || fail "dump"
grep '/data/' dump.raw | tr -d '"' | awk '$2 == "read" || $2 == "write" {print $2, $3, $5, $6}' >from_tape
[ "$(wc -l <from_strace)" -gt 100 ] || fail "strace saw only $(wc -l <from_strace) calls"
cmp -s from_strace from_tape || { diff from_strace from_tape | head -20 >&2; fail "strace (<) and the tape (>) differ"; }
awk '$2 == "read" || $2 == "write"' dump.raw | grep '/data/' | grep -qv derived && fail "a derived op is not marked"
exit 0
