#!/bin/sh
# SPDX-License-Identifier: MIT
# iotape capture: exit status, ends of all kinds, limits, filters; nothing is left behind.
. "$IOTAPE_SRC/tests/testlib.sh"
need jq
prog=$IOTAPE_BUILD/tests/prog_truth
export ASAN_OPTIONS=verify_asan_link_order=0:detect_leaks=0
mkdir data
before=$(ls -a /dev/shm /tmp 2>/dev/null | grep -i iotape | grep -v iotape-tests)
capture="iotape capture -q -r preload"

count() { iotape info --json "$1" >info.json 2>info.err || fail "info $1: $(cat info.err)"; json info.json "$2"; }
meta() { iotape info --json "$1" >info.json || fail "info $1"; json info.json ".meta[\"$2\"]"; }

# ---- exit status: the command's own
runs 0 $capture -o a.tape -- true
runs 3 $capture -o b.tape -- sh -c 'exit 3'
runs 143 $capture -o c.tape -- sh -c 'kill -TERM $$'
runs 1 $capture -o d.tape -- /no/such/command
says 'cannot run /no/such/command: No such file' err
[ ! -e d.tape ] || fail "a tape was left of a command that did not run"
runs 1 $capture -o a.tape -- true
says 'a.tape' err
runs 0 $capture -f -o a.tape -- true
runs 2 $capture
runs 2 $capture --pid 1 -- true
runs 2 $capture --filter nonsense -- true
says 'expected path=GLOB' err
runs 2 iotape capture -r nonsense -o e.tape -- true
runs 2 iotape capture -r preload -o e.tape --system
says 'preload' err
[ ! -e e.tape ] || fail "a tape was left of a usage error"
runs 0 iotape capture --list
says '^preload' out
says 'issue +libaio' out

# ---- what the shim cannot enter is named, and refused when it is the command itself
echo 'int main(void) { return 0; }' >static.c
if command -v gcc >/dev/null && gcc -static -o static static.c 2>/dev/null; then
    runs 1 $capture -o static.tape -- ./static
    says 'statically linked; recorder bpf' err
    [ ! -e static.tape ] || fail "a tape was left of a refused command"
    runs 0 iotape capture -r preload -o static.tape -- sh -c './static; env -i ./static'
    equal "static programs named" 2 "$(grep -c 'static is statically linked' err)"
    equal "static programs counted" 2 "$(meta static.tape 'unseen.program statically linked')"
fi
# A program started with an environment of its own is followed all the same.
runs 0 $capture -o env.tape -- env -i "$prog" sync "$PWD/data/f"
equal "fsyncs of a program with a bare environment" 1 "$(count env.tape .by_op.fsync.count)"

# ---- what is written says so
runs 0 $capture -o sync.tape -- "$prog" sync "$PWD/data/f"
equal "fsyncs" 1 "$(count sync.tape .by_op.fsync.count)"
equal "lost" 0 "$(count sync.tape .lost)"

# ---- filters
runs 0 $capture -o filter.tape --filter 'path=*/data/*' --filter 'op=read,write' --filter 'size>=4k' -- \
    "$prog" sync "$PWD/data/f"
iotape dump filter.tape | grep -v '^#' | awk '{print $2, $5}' >seen
printf '%s\n' 'write 5000' 'write 4096' 'read 4096' >want
cmp -s want seen || { diff want seen >&2; fail "filters"; }

# ---- names hidden, their shape kept
runs 0 $capture -o hidden.tape --anonymise -- "$prog" sync "$PWD/data/secretname.db"
grep -aq secretname hidden.tape && fail "--anonymise left a name in the tape"
iotape dump hidden.tape >out || fail "dump"
grep -Eq '"(/[0-9a-f]{12}([.][A-Za-z0-9]+)?)+/[0-9a-f]{12}[.]db"' out || { cat out >&2; fail "--anonymise lost the shape"; }
grep -q 'secretname' out && fail "--anonymise left a name"

# ---- what the written data is like; a recording that costs too much
runs 0 $capture -o zeros.tape --content -- dd if=/dev/zero of=data/zeros bs=4k count=2000
runs 0 $capture -o random.tape --content -- dd if=/dev/urandom of=data/random bs=4k count=2000
[ "$(meta zeros.tape content_compress_pct)" -ge 95 ] || fail "--content: zeros compress by $(meta zeros.tape content_compress_pct)%"
[ "$(meta random.tape content_compress_pct)" -le 5 ] || fail "--content: noise compresses by $(meta random.tape content_compress_pct)%"
runs 0 iotape capture -r preload -o costly.tape --max-overhead 0.001 -- sh -c 'for i in 1 2 3 4 5; do echo x >>data/c; sleep 0.4; done'
says 'recording has stopped: it took' err
iotape info costly.tape >/dev/null || fail "--max-overhead: the tape is not good"

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
for _ in $(seq 100); do [ -s pid ] && break; sleep 0.05; done
sleep 0.5
kill -9 "$(cat pid)"
wait $!
equal "status of a killed command" 137 $?
[ "$(count killed.tape .ops)" -gt 5 ] || fail "the killed command's ops are not in the tape"

# ---- kill -9 of the recorder: the command runs on, the tape has all but the last second
rm -f data/finished
$capture -o orphan.tape -- sh slow.sh &
recorder=$!
sleep 1.6
kill -9 $recorder
wait $recorder 2>/dev/null
for _ in $(seq 100); do [ -e data/finished ] && break; sleep 0.1; done
[ -e data/finished ] || fail "the command ended with its recorder"
[ "$(count orphan.tape .ops)" -ge 6 ] || fail "a killed recorder's tape has $(count orphan.tape .ops) ops"

# ---- SIGTERM to the recorder: a clean end
$capture -o term.tape -- sh slow.sh &
recorder=$!
sleep 0.6
kill -TERM $recorder
wait $recorder
equal "status after SIGTERM" 0 $?
[ "$(count term.tape .ops)" -gt 2 ] || fail "the tape of a terminated recorder"

# ---- --max-size and --rotate
cat >busy.sh <<'END'
i=0
while [ $i -lt 60 ]; do dd if=/dev/zero of=data/busy bs=512 count=2000 conv=notrunc 2>/dev/null; i=$((i + 1)); done
END
runs 0 $capture -o max.tape --max-size 64k -- sh busy.sh
[ "$(stat -c %s max.tape)" -lt 4000000 ] || fail "--max-size"
runs 0 $capture -o rotate.tape --rotate 600ms -- sh slow.sh
[ -e rotate.2.tape ] || fail "--rotate wrote too few tapes: $(ls rotate*)"
total=0
for t in rotate.tape rotate.*.tape; do total=$((total + $(count $t .by_op.write.count))); done
equal "writes in the rotated tapes" 21 $total

# ---- --ring: only the last moments, when told
runs 0 $capture -o ring.tape --ring 500ms -- sh slow.sh
writes=$(count ring.tape .by_op.write.count)
[ "$writes" -ge 1 ] && [ "$writes" -le 12 ] || fail "--ring 500ms kept $writes writes of 21"
$capture -o usr.tape --ring 10s -- sh slow.sh &
recorder=$!
sleep 1
kill -USR1 $recorder
sleep 0.5
[ -e usr.tape ] || fail "SIGUSR1 did not write the ring"
wait $recorder
[ -e usr.1.tape ] || fail "the end did not write the ring"
runs 0 $capture -o trigger.tape --ring 10s --trigger "test -e data/slow" -- sh -c 'sleep 1; echo x >>data/slow'
[ -e trigger.tape ] || fail "the trigger did not write the ring"

# ---- disk full
if [ "$(id -u)" = 0 ] && mkdir small && mount -t tmpfs -o size=64k tmpfs small 2>/dev/null; then
    iotape capture -r preload -o small/full.tape -- sh busy.sh >out 2>err
    rc=$?
    cp small/full.tape full.tape
    umount small
    equal "status with the disk full" 1 $rc
    says 'No space left' err
    iotape info full.tape >/dev/null 2>&1 || fail "the tape of a full disk cannot be read"
    [ "$(count full.tape .ops)" -gt 1000 ] || fail "the tape of a full disk has too little"
fi

after=$(ls -a /dev/shm /tmp 2>/dev/null | grep -i iotape | grep -v iotape-tests)
equal "left behind" "$before" "$after"
exit 0
