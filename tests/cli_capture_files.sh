#!/bin/sh
# SPDX-License-Identifier: MIT
# 100,000 files in a few seconds: each in the tape, once, whatever the tables had to grow to.
. "$IOTAPE_SRC/tests/testlib.sh"
need jq
prog=$IOTAPE_BUILD/tests/prog_capture
export ASAN_OPTIONS=verify_asan_link_order=0:detect_leaks=0
recorders=$(app_recorders)
# In memory: a disk's file system would take most of the time.
[ -w /dev/shm ] || skip "no /dev/shm"
many=$(mktemp -d /dev/shm/many.XXXXXX) || skip "no room in /dev/shm"
trap 'rm -rf "$many"' EXIT
trap 'exit 130' INT TERM
for recorder in $recorders; do
    runs 0 iotape capture -r $recorder --ring-size 64m -o t.tape -- "$prog" files "$many" 100000
    iotape info t.tape --json >info.json || fail info
    lost=$(json info.json .lost)
    equal "$recorder: lost" 0 "$lost"
    equal "$recorder: made" 100000 "$(json info.json .by_op.create.count)"
    iotape dump t.tape --op read --file '*/many.*' | awk '!/^#/ { print $3 }' >reads
    equal "$recorder: reads" 100000 "$(wc -l <reads)"
    equal "$recorder: names" 100000 "$(sort -u reads | grep -c '/many.[^/]*/[0-9]*/file[0-9]*"$')"
    rm -rf "$many"/* t.tape
done
