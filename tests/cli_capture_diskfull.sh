#!/bin/sh
# SPDX-License-Identifier: MIT
# A disk that is full in the middle of a capture, by each recorder: the target is not disturbed, the tape has
# its whole blocks, and with what is counted as lost they are all that was issued until then, to the op.
. "$IOTAPE_SRC/tests/testlib.sh"
need_root
need jq dd
prog=$IOTAPE_BUILD/tests/prog_capture
export ASAN_OPTIONS=verify_asan_link_order=0:detect_leaks=0
can() { iotape capture --list | grep -A1 "^$1" | grep -q 'can run here'; }
mkdir small && mount -t tmpfs -o size=192k none small 2>/dev/null || skip "cannot mount a small file system"
device="" tool="" target=""
trap 'kill -9 $tool $target 2>/dev/null; wait; umount small; [ -z "$device" ] || losetup -d "$device"' EXIT
trap 'exit 130' INT TERM

# stopped PID: waits until the program has stopped itself
stopped() {
    for _ in $(seq 300); do
        grep -q '^State:.*T' "/proc/$1/status" 2>/dev/null && return
        sleep 0.05
    done
    fail "process $1 has not stopped"
}
# told: waits until the recorder says that it has stopped
told() {
    for _ in $(seq 200); do
        grep -q 'the tape cannot be written; recording has stopped' err && return
        sleep 0.05
    done
    cat err >&2
    fail "$1: the disk was not full"
}
# adds_up RECORDER ISSUED: the tape and the losses the terminal tells
adds_up() {
    cp small/full.tape full.tape
    rm small/full.tape
    says 'full.tape: cannot write: No space left' err
    iotape info full.tape --json >info.json 2>/dev/null || fail "$1: the tape of a full disk cannot be read"
    kept=$(json info.json .ops)
    lost=$(sed -n 's/^iotape capture: .* \([0-9]*\) lost; .*/\1/p' err)
    says '[0-9] lost: tape-write$' err
    equal "$1: recorded and lost" "$2" $((kept + lost))
}

head -c 8192 /dev/zero >file
for recorder in preload bpf; do
    can $recorder || continue
    case $recorder in preload) ring=16m ;; bpf) ring=$((32768 / $(nproc)))k ;; esac
    rm -f pid
    # In the rings there is room for about half of what comes while the recorder is stopped.
    iotape-capture -r $recorder --ring-size $ring --filter 'path=*/file' -o small/full.tape -- \
        sh -c "echo \$\$ >pid; exec '$prog' bursts file 400000 5000" 2>err &
    tool=$!
    for _ in $(seq 300); do [ -s pid ] && break; sleep 0.05; done
    target=$(cat pid)
    stopped "$target"
    kill -STOP $tool
    stopped $tool
    kill -CONT "$target"
    sleep 0.05
    stopped "$target"
    kill -CONT $tool
    told $recorder
    kill -CONT "$target" # what it does now is not recorded any more
    wait $tool
    equal "$recorder: status" 1 $?
    adds_up $recorder 400002
    [ "$kept" -gt 10000 ] || fail "$recorder: only $kept recorded"
done

can block || exit 0
truncate -s 64m image
device=$(losetup -f --show --direct-io=off image 2>/dev/null) || exit 0
mount -o remount,size=32k small
write() { dd if=/dev/zero of="$device" bs=512 count="$1" oflag=direct status=none || fail "the device's user was disturbed"; }
iotape-capture -r block --ring-size 16m --filter op=write -o small/full.tape --device "$device" 2>err &
tool=$!
attached $tool 7
sleep 0.2
write 1000
for _ in $(seq 100); do [ "$(iotape info --json small/full.tape 2>/dev/null | jq .ops)" = 1000 ] && break; sleep 0.05; done
kill -STOP $tool
stopped $tool
write 12000
kill -CONT $tool
told block
write 500
kill -TERM $tool
wait $tool
equal "block: status" 1 $?
adds_up block 13000
[ "$kept" -ge 1000 ] || fail "block: $kept recorded"
exit 0
