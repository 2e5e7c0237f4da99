#!/bin/sh
# SPDX-License-Identifier: MIT
# The block recorder on loop devices, op for op: whole disks, a partition, several at once.
. "$IOTAPE_SRC/tests/testlib.sh"
need_root
need losetup dd blkdiscard fio jq
iotape capture --list | grep -A1 '^block' | grep -q 'can run here' || skip "the block recorder cannot run here"
devices=""
trap 'for d in $devices; do delpart "$d" 2 2>/dev/null; losetup -d "$d" 2>/dev/null; done' EXIT
trap 'exit 130' INT TERM
# attach FILE [OPTIONS]: a loop device over it, in $device
attach() {
    device=$(losetup -f --show --direct-io=off "$@" 2>/dev/null) || skip "no loop devices here"
    devices="$devices $device"
}
# run DEVICES... -- COMMAND: recorded into t.tape, listed in ops
record() {
    args=""
    while [ "$1" != -- ]; do args="$args --device $1"; shift; done
    shift
    rm -f t.tape sorted.tape
    # shellcheck disable=SC2086
    iotape capture --recorder block -o t.tape $args 2>err &
    tool=$!
    attached $tool 7
    sleep 0.2
    "$@" || fail "$*"
    sleep 0.3
    kill -TERM $tool
    wait $tool || { cat err >&2; fail "capture: exit $?"; }
    iotape convert t.tape -o sorted.tape >log 2>&1 || { cat log >&2; fail "convert"; }
    iotape dump sorted.tape | grep -v '^#' >ops
}
# list DEVICE: op, offset, length, result; without the reads of other programs that probe it
list() { awk -v f="\"$1\"" '$3 == f { print $2, $4, $5, $6 }' ops; }

truncate -s 64m one.img
attach one.img
one=$device

workload() {
    dd if=/dev/zero of="$one" bs=4k count=3 seek=10 oflag=direct status=none &&
        dd if="$one" of=/dev/null bs=8k count=2 skip=3 iflag=direct status=none &&
        dd if=/dev/zero of="$one" bs=16k count=1 seek=100 oflag=direct conv=fsync status=none
}
record "$one" -- workload
cat >want <<'END'
write 40960 4096 4096
write 45056 4096 4096
write 49152 4096 4096
read 24576 8192 8192
read 32768 8192 8192
write 1638400 16384 16384
flush - 0 0
END
list "$one" | grep -v '^read .* 4096 4096$' >got
diff want got || fail "the workload is not what was recorded"
iotape info sorted.tape --json >info.json
equal lost 0 "$(json info.json .lost)"
equal flushes 1 "$(json info.json .by_op.flush.count)"

# Discards and zeroes, if the loop driver can on this file system.
discard() { blkdiscard -o 1048576 -l 65536 "$one" && blkdiscard -z -o 2097152 -l 65536 "$one"; }
if blkdiscard -o 0 -l 4096 "$one" 2>/dev/null; then
    record "$one" -- discard
    list "$one" | grep -q '^discard 1048576 65536 65536$' || fail "no discard"
    list "$one" | grep -q '^write_zeroes 2097152 65536 65536$' || fail "no write of zeroes"
fi

# fio's counters, deep queue, direct: no merging of random offsets apart.
random() {
    fio --name=r --filename="$one" --rw=randrw --bs=4k --size=64m --io_size=8m --direct=1 --ioengine=libaio \
        --iodepth=16 --norandommap=0 --randseed=3 --output-format=json --output=fio.json
}
record "$one" -- random
for op in read write; do
    bytes=$(json fio.json ".jobs[0].$op.io_bytes")
    got=$(list "$one" | awk -v op=$op '$1 == op { b += $4 } END { print b + 0 }')
    if [ $op = write ]; then
        equal "bytes of $op" "$bytes" "$got"
    else # fio and the kernel also read the partition table
        [ "$got" -ge "$bytes" ] && [ "$got" -lt $((bytes + 1048576)) ] || fail "read $got of $bytes"
    fi
done

# A partition: offsets are its own, and the rest of the disk is not recorded.
truncate -s 64m two.img
attach two.img
two=$device
if addpart "$two" 2 34816 65536 2>/dev/null; then
    part=${two}p2
    for _ in 1 2 3 4 5; do [ -b "$part" ] && break; sleep 0.2; done
    if [ ! -b "$part" ]; then # no udev
        part=$PWD/part2
        mknod "$part" b "$(tr : ' ' <"/sys/class/block/${two#/dev/}p2/dev" | cut -d' ' -f1)" \
            "$(cut -d: -f2 "/sys/class/block/${two#/dev/}p2/dev")"
    fi
    if [ -b "$part" ]; then
        parts() {
            dd if=/dev/zero of="$part" bs=4k count=2 seek=5 oflag=direct status=none &&
                dd if=/dev/zero of="$two" bs=4k count=2 seek=300 oflag=direct status=none
        }
        record "$part" -- parts
        list "$part" | grep -v ^read >got
        printf 'write 20480 4096 4096\nwrite 24576 4096 4096\n' >want
        diff want got || fail "the partition's ops"
        # Two devices in one tape.
        record "$part" "$one" -- parts
        equal "ops of the other" 0 "$(list "$one" | grep -vc ^read)"
        equal "ops of the partition" 2 "$(list "$part" | grep -vc ^read)"
    fi
fi

runs 1 iotape capture --recorder block -o x.tape --device one.img
says 'not a block device' err
runs 1 iotape capture --recorder block -o x.tape --device /dev/nothing

# A full disk: said, recording stops, the device is not disturbed, the tape holds its whole blocks.
if mkdir small && mount -t tmpfs -o size=384k none small 2>/dev/null; then
    iotape capture --recorder block -o small/full.tape --device "$one" 2>err &
    tool=$!
    attached $tool 7
    sleep 0.2
    fio --name=f --filename="$one" --rw=randwrite --bs=512 --size=64m --io_size=40m --direct=1 --ioengine=libaio --iodepth=32 \
        --randseed=5 --output-format=json --output=fio.json || fail "fio"
    for _ in $(seq 40); do grep -q 'No space left' err && break; sleep 0.1; done
    kill -TERM $tool 2>/dev/null
    wait $tool
    rc=$?
    cp small/full.tape full.tape
    umount small
    equal "status with the disk full" 1 $rc
    says 'No space left' err
    equal "fio's errors" 0 "$(json fio.json '.jobs[0].error')"
    iotape info full.tape --json >info.json 2>/dev/null || fail "the tape of a full disk cannot be read"
    [ "$(json info.json .ops)" -gt 1000 ] || fail "the tape of a full disk has too little: $(json info.json .ops)"
    [ "$(json info.json .ops)" -lt 81920 ] || fail "the disk was not full"
fi
