#!/bin/sh
# SPDX-License-Identifier: MIT
# The bpf recorder against fio's own counters: psync, libaio and io_uring.
. "$IOTAPE_SRC/tests/testlib.sh"
need fio jq
iotape capture --list >list
sed -n '/^bpf/,/^[a-z]*  *[a-z].*process/p' list | grep -A1 '^bpf' | grep -q 'can run here' || skip "the bpf recorder cannot run here"

# check ENGINE [FIO OPTIONS]: fio's ops and bytes, exactly
check() {
    engine=$1; shift
    rm -f data t.tape
    fio --name=lay --filename=data --size=8m --rw=write --bs=64k --output=/dev/null
    runs 0 iotape capture --recorder bpf -o t.tape -- fio --name=job --filename=data --size=8m --rw=randrw \
        --bs=4k --io_size=8m --randseed=7 --ioengine="$engine" --output-format=json --output=fio.json "$@"
    iotape dump t.tape >ops || fail "dump"
    for op in read write; do
        want=$(json fio.json ".jobs[0].$op.total_ios")
        bytes=$(json fio.json ".jobs[0].$op.io_bytes")
        [ "$want" -gt 100 ] || fail "fio did only $want ${op}s"
        awk -v op=$op -v file="\"$PWD/data\"" '$2 == op && $3 == file { n++; b += $6 } END { print n + 0, b + 0 }' \
            ops >got
        equal "$engine $op" "$want $bytes" "$(cat got)"
    done
    iotape info t.tape --json >info.json || fail "info"
    equal "$engine lost" 0 "$(json info.json .lost)"
}
# apis NAME: what the ops on the file were issued through
apis() { awk -v file="\"$PWD/data\"" '($2 == "read" || $2 == "write") && $3 == file { print $9 }' ops | sort -u | tr '\n' ' '; }

check psync
equal "api" "sync " "$(apis)"
# glibc's aio threads make the calls.
check posixaio --iodepth=4
equal "api" "sync " "$(apis)"
check libaio --iodepth=16 --direct=1
equal "api" "libaio " "$(apis)"
check libaio --iodepth=32 --iodepth_batch_submit=8 --iodepth_batch_complete_min=4 --direct=1 --userspace_reap
equal "api" "libaio " "$(apis)"
# Kernels before 5.19 do not show io_uring; the tape says so.
if grep -q 'io_uring is not seen' err; then
    grep -A1 '^bpf' list | grep -q 'sees neither io_uring\|does not see io_uring' || fail "--list does not tell"
    exit 0
fi
check io_uring --iodepth=16
equal "api" "io_uring " "$(apis)"
check io_uring --iodepth=16 --fixedbufs --registerfiles
grep -q fixed_file ops || fail "registered files are not marked"
grep -q fixed_buf ops || fail "registered buffers are not marked"
check io_uring --iodepth=16 --sqthread_poll=1
grep -q sqpoll ops || fail "SQPOLL is not marked"
