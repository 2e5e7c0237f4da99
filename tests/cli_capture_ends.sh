#!/bin/sh
# SPDX-License-Identifier: MIT
# iotape capture: the ends it can come to, its limits, and --ring. The tape is good after each.
. "$IOTAPE_SRC/tests/testlib.sh"
need jq
export ASAN_OPTIONS=verify_asan_link_order=0:detect_leaks=0
mkdir data
before=$(ls -a /dev/shm /tmp 2>/dev/null | grep -i iotape | grep -v iotape-tests)
capture="iotape capture -q -r preload"

count() { iotape info --json "$1" >info.json 2>info.err || fail "info $1: $(cat info.err)"; json info.json "$2"; }
meta() { iotape info --json "$1" >info.json || fail "info $1"; json info.json ".meta[\"$2\"]"; }

# lines FILE N: waits until it has them
lines() {
    for _ in $(seq 400); do
        [ "$(wc -l <"$1" 2>/dev/null || echo 0)" -ge "$2" ] && return
        sleep 0.05
    done
    fail "$1 does not grow"
}

# ---- --duration ends the recording, not the command
cat >slow.sh <<'END'
i=0
while [ $i -lt 20 ]; do echo $i >>data/slow; sleep 0.1; i=$((i + 1)); done
echo done >data/finished
END
rm -f data/finished
runs 0 $capture -o duration.tape --duration 700ms -- sh slow.sh
[ ! -e data/finished ] || fail "--duration waited for the command"
iotape info duration.tape >/dev/null || fail "--duration: the tape is not good"
for _ in $(seq 100); do [ -e data/finished ] && break; sleep 0.1; done
[ -e data/finished ] || fail "--duration ended the command"

# ---- kill -9 of the command: the tape is whole
sh -c 'exec iotape capture -q -r preload -o killed.tape -- sh -c "echo \$\$ >pid; while :; do echo x >>data/k; sleep 0.05; done"' &
lines data/k 10
kill -9 "$(cat pid)"
wait $!
equal "status of a killed command" 137 $?
[ "$(count killed.tape .ops)" -gt 5 ] || fail "the killed command's ops are not in the tape"

# ---- kill -9 of the recorder: the command runs on, the tape has all but the last second
rm -f data/finished data/slow
$capture -o orphan.tape -- sh slow.sh &
recorder=$!
lines data/slow 8
sleep 1
kill -9 $recorder
wait $recorder 2>/dev/null
for _ in $(seq 100); do [ -e data/finished ] && break; sleep 0.1; done
[ -e data/finished ] || fail "the command ended with its recorder"
[ "$(count orphan.tape .ops)" -ge 6 ] || fail "a killed recorder's tape has $(count orphan.tape .ops) ops"

# ---- kill -9 of both at once: the tape has all but the last second, and says it was cut short
sh -c 'exec iotape capture -q -r preload -o both.tape -- sh -c "echo \$\$ >pid2; while :; do echo x >>data/b; sleep 0.05; done"' &
recorder=$!
lines data/b 8
sleep 1
kill -9 $recorder "$(cat pid2)"
wait $recorder 2>/dev/null
[ "$(count both.tape .ops)" -ge 6 ] || fail "a tape of which both ends were killed has $(count both.tape .ops) ops"
equal "the tape of two killed says so" true "$(json info.json .truncated)"
equal "and has no end" null "$(meta both.tape end)"

# ---- SIGTERM to the recorder: a clean end
rm -f data/slow
$capture -o term.tape -- sh slow.sh &
recorder=$!
lines data/slow 5
kill -TERM $recorder
wait $recorder
equal "status after SIGTERM" 0 $?
[ "$(count term.tape .ops)" -gt 2 ] || fail "the tape of a terminated recorder"

# ---- --max-size and --rotate
cat >busy.sh <<'END'
i=0
while [ $i -lt 60 ]; do dd if=/dev/zero of=data/busy bs=512 count=2000 conv=notrunc 2>/dev/null; i=$((i + 1)); done
END
# 120,000 writes would take 300 kB: the block in which the limit is reached is the last.
runs 0 iotape capture -r preload -o max.tape --max-size 64k -- sh busy.sh
size=$(stat -c %s max.tape)
[ "$size" -ge 65536 ] && [ "$size" -lt $((65536 + 131072)) ] || fail "--max-size 64k: $size bytes"
says 'recording has stopped: the tape has reached --max-size 64.0 KiB' err
says "^iotape capture: $(count max.tape .ops) ops" err
iotape dump max.tape --op write --file '*/busy' | awk '!/^#/ { if ($4 / 512 != n++ % 2000) bad++ } END { exit bad > 0 || n < 10000 }' ||
    fail "--max-size: the tape is not the beginning"
runs 0 $capture -o rotate.tape --rotate 600ms -- sh slow.sh
[ -e rotate.2.tape ] || fail "--rotate wrote too few tapes: $(ls rotate*)"
total=0
for t in rotate.tape rotate.*.tape; do total=$((total + $(count $t .by_op.write.count))); done
equal "writes in the rotated tapes" 21 $total

# ---- --ring: only the last moments, when told
runs 0 $capture -o ring.tape --ring 500ms -- sh slow.sh
writes=$(count ring.tape .by_op.write.count)
[ "$writes" -ge 1 ] && [ "$writes" -le 12 ] || fail "--ring 500ms kept $writes writes of 21"
rm -f data/slow
$capture -o usr.tape --ring 10s -- sh slow.sh &
recorder=$!
lines data/slow 8
kill -USR1 $recorder
lines data/slow 14
[ -e usr.tape ] || fail "SIGUSR1 did not write the ring"
equal "what SIGUSR1 wrote" SIGUSR1 "$(meta usr.tape trigger)"
[ "$(count usr.tape .by_op.write.count)" -ge 8 ] || fail "SIGUSR1: $(json info.json .by_op.write.count) writes of 8"
wait $recorder
[ -e usr.1.tape ] || fail "the end did not write the ring"
rm -f data/slow
runs 0 $capture -o trigger.tape --ring 10s --trigger "test -e data/slow" -- sh -c "sleep 1; echo x >>data/slow; sleep 2; echo y >>data/slow"
[ -e trigger.tape ] || fail "the trigger did not write the ring"
equal "what the trigger wrote" trigger "$(meta trigger.tape trigger)"
equal "the last moments before it" 1 "$(count trigger.tape .by_op.write.count)"

# ---- disk full: room for the first blocks, not for all
if [ "$(id -u)" = 0 ] && mkdir small && mount -t tmpfs -o size=192k tmpfs small 2>/dev/null; then
    rm -f data/finished
    iotape capture -r preload -o small/full.tape -- sh -c 'sh busy.sh; echo done >data/finished' >out 2>err
    rc=$?
    cp small/full.tape full.tape
    umount small
    equal "status with the disk full" 1 $rc
    says 'No space left' err
    equal "the command with the disk full" done "$(cat data/finished)"
    equal "the last write of it" 1024000 "$(stat -c %s data/busy)"
    iotape info full.tape >/dev/null 2>&1 || fail "the tape of a full disk cannot be read"
    kept=$(count full.tape .ops)
    [ "$kept" -gt 1000 ] || fail "the tape of a full disk has too little"
    # What the disk had no room for is counted.
    equal "seen, with the disk full" "$(sed -n 's/^iotape capture: \([0-9]*\) ops, .*/\1/p' err)" \
        $((kept + $(sed -n 's/^iotape capture: .* \([0-9]*\) lost; .*/\1/p' err)))
fi

after=$(ls -a /dev/shm /tmp 2>/dev/null | grep -i iotape | grep -v iotape-tests)
equal "left behind" "$before" "$after"
exit 0
