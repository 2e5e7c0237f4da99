#!/bin/sh
# SPDX-License-Identifier: MIT
# Real straces, fio's log and btrecord's bunches give exactly their independently computed counts.
. "$IOTAPE_SRC/tests/testlib.sh"
shared
need jq
truth=$SHARED/traces/truth.json
[ -r "$truth" ] || skip "no truth.json"

# check KEY FILE FIELDS [FLAG...]
check() {
    key=$1 fields=$2
    shift 2
    runs 0 iotape-convert "$SHARED/traces/$key" -o t.tape "$@"
    runs 0 iotape-convert info t.tape --json
    for pair in read:R write:W discard:trim write:write; do
        for what in ops:count bytes:bytes; do
            want=$(jq -r --arg k "$key" --arg o "${pair#*:}" --arg w "${what%:*}" '.[$k][$w][$o] // empty' "$truth")
            [ -z "$want" ] || equal "$key ${pair%:*} ${what#*:}" "$want" "$(json out ".by_op.${pair%:*}.${what#*:}")"
        done
    done
    for name in $fields; do
        equal "$key $name" "$(jq -r --arg k "$key" ".[\$k].$name" "$truth")" "$(json out ".$name")"
    done
    rm t.tape
}
# the truth counts the calls of every descriptor
check strace/multithread_strace1.log "" --all-fds
check strace/sh.txt "" --all-fds
check fio-iolog/t0038.iolog "duration_ns min_offset max_end"
# the format says ns; whoever wrote this one stored microseconds
check btrecord-replay/sdi.replay.0 "duration_ns min_offset max_end" --time-unit us

# what a descriptor may be is decided by default: files only
runs 0 iotape-convert "$SHARED/traces/strace/sh.txt" -o t.tape
runs 0 iotape-convert dump t.tape
equal "transfers of devices" 0 "$(grep -c '"/dev/' out)"
rm t.tape
# iocbs whose descriptor's opening was not seen
runs 0 iotape-convert "$SHARED/traces/published-extracts/strace-aio-2lines.txt" -o t.tape
runs 0 iotape-convert dump t.tape
says 'read "fd:3@0" 0 4096 1892 .* libaio' out
