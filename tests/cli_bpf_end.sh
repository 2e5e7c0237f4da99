#!/bin/sh
# SPDX-License-Identifier: MIT
# However a bpf capture ends, the tape is good and the kernel keeps nothing of it.
. "$IOTAPE_SRC/tests/testlib.sh"
iotape capture --list | grep -A1 '^bpf' | grep -q 'can run here' || skip "the bpf recorder cannot run here"
count=$IOTAPE_BUILD/tests/prog_bpf_list
before=$($count) || skip "may not list BPF programs"
# settled: freed programs go a moment after their last user
settled() {
    for _ in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do
        [ "$($count)" -le "$before" ] && return
        sleep 0.1
    done
    fail "$1: $($count) BPF programs, $before before"
}

runs 0 iotape capture --recorder bpf -o a.tape -- sh -c 'echo hello >x; cat x >y'
settled "plain end"
iotape dump a.tape >ops || fail "dump"
grep -q '^[^ ]* write "[^"]*/x" 0 6 6 ' ops || fail "the write of x is not there"

# The command's exit status is its own.
runs 3 iotape capture --recorder bpf -o b.tape -- sh -c 'exit 3'

# SIGTERM during --pid (a shell makes its background jobs deaf to SIGINT): the target goes on, the tape ends well.
sh -c 'while :; do echo x >>z; sleep 0.01; done' &
target=$!
trap 'kill -9 $target 2>/dev/null' EXIT
iotape capture --recorder bpf -o c.tape --pid $target 2>err &
tool=$!
attached $tool 5
sleep 1
kill -TERM $tool
wait $tool || { cat err >&2; fail "SIGTERM: exit $?"; }
kill -0 $target || fail "the target is gone"
iotape dump c.tape | grep -q ' write ".*/z" ' || fail "no writes of z"
settled "SIGTERM"

# kill -9 of the collector: the target goes on, what was written is a tape.
iotape capture --recorder bpf -o d.tape --pid $target 2>err &
tool=$!
for _ in $(seq 300); do [ "$(wc -c <d.tape 2>/dev/null)" -gt 1000 ] 2>/dev/null && break; sleep 0.1; done
kill -9 $tool
wait $tool
kill -0 $target || fail "the target is gone"
settled "kill -9"
iotape dump d.tape >ops 2>err
grep -q ' write ".*/z" ' ops || { cat err >&2; fail "nothing in the killed tape"; }

# kill -9 of the target
iotape capture --recorder bpf -o e.tape --pid $target 2>err &
tool=$!
attached $tool 5
sleep 1
kill -9 $target
wait $target
wait $tool || { cat err >&2; fail "after the target's death: exit $?"; }
iotape info e.tape --json >info.json || fail "info"
[ "$(json info.json .ops)" -gt 10 ] || fail "few ops: $(json info.json .ops)"
settled "target killed"

# kill -9 of both: the tape has all but the last second, nothing stays in the kernel.
sh -c 'while :; do echo x >>both; sleep 0.01; done' &
target=$!
iotape capture --recorder bpf -o g.tape --pid $target 2>err &
tool=$!
attached $tool 5
sleep 1.5
before_kill=$(wc -l <both)
kill -9 $tool $target
wait $tool
wait $target
iotape dump g.tape >ops 2>err
[ "$(grep -c ' write ".*/both" ' ops)" -ge $((before_kill / 5)) ] || fail "both killed: $(grep -c both ops) ops of $before_kill"
iotape info g.tape --json >info.json || fail "info"
equal "the tape of two killed says so" true "$(json info.json .truncated)"
settled "both killed"

# A process that is not there, a scope it cannot do.
runs 1 iotape capture --recorder bpf -o f.tape --pid 4194303
[ ! -s f.tape ] || fail "a tape of nothing"
runs 1 iotape capture --recorder bpf -o f.tape --cgroup /nothing/here
settled "errors"

# A full disk: said, the program runs on to its end, the tape holds its whole blocks.
if [ "$(id -u)" = 0 ] && mkdir small && mount -t tmpfs -o size=128k tmpfs small 2>/dev/null; then
    iotape capture --recorder bpf -o small/full.tape -- \
        sh -c 'dd if=/dev/zero of=data bs=512 count=100000 conv=notrunc 2>/dev/null; sleep 0.3; echo done >end' 2>err
    rc=$?
    cp small/full.tape full.tape
    umount small
    equal "status with the disk full" 1 $rc
    equal "the program ended" done "$(cat end)"
    says 'No space left' err
    iotape info full.tape --json >info.json 2>/dev/null || fail "the tape of a full disk cannot be read"
    [ "$(json info.json .ops)" -gt 1000 ] || fail "the tape of a full disk has too little: $(json info.json .ops)"
    settled "disk full"
fi
