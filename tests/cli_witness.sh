#!/bin/sh
# SPDX-License-Identifier: MIT
# A replay's own issue times beside those of an outside witness: all ops paired, an injected stall
# in both, and a replayer that claims to have been on time is found out. The figure of DESIGN
# (p99 within 20 us) belongs to tests/bench; here limits are loose enough for a busy machine.
. "$IOTAPE_SRC/tests/testlib.sh"
need jq
PATH=$IOTAPE_BUILD/tests/bench:$PATH
iotape convert --from synth 'rw=randread,bs=4k,size=16m,ops=3000,rate=5000,seed=1' -o s.tape >/dev/null ||
    fail "synth"
mkdir root
iotape replay s.tape --engine sync --root root --prepare >log 2>&1 || { cat log; fail "prepare"; }

# replay NAME PROGRAM OPTIONS: NAME.csv and NAME.tape
replay() {
    name=$1 program=$2
    shift 2
    witness -o "$name.csv" -- "$program" s.tape --pace recorded --root root --result "$name.tape" "$@" >log 2>&1
    rc=$?
    [ $rc = 77 ] && skip "$(tail -n 1 log)"
    [ $rc = 0 ] || { cat log; fail "replay $name: exit $rc"; }
}

for engine in io_uring libaio sync; do
    iotape replay --list-engines 2>/dev/null | grep -q "^ *$engine .*\(without\|unavailable\)" && continue
    replay "$engine" iotape-replay --engine "$engine"
    runs 0 witness_check "$engine.csv" "$engine.tape" --json "$engine.json" --p99 5ms
    equal "$engine pairs" 3000 "$(json "$engine.json" .pairs)"
    # An issue is stamped before the call that carries it, never after the kernel has it. The two
    # clocks are laid beside each other within a microsecond or so.
    early=$(json "$engine.json" '.error_ns.p50 <= 20000')
    equal "$engine stamps before the call" true "$early"
done

# The 20th submission is held up for 60 ms: those due meanwhile are late, and both say so.
IOTAPE_FAULT=stall:20:60ms
export IOTAPE_FAULT
replay stall iotape-replay --engine io_uring
runs 0 witness_check stall.csv stall.tape --late 20ms --json stall.json --p99 5ms
for side in tape witness; do
    [ "$(json stall.json ".${side}_lag_ns.max")" -ge 50000000 ] || fail "the stall is not in the $side"
    [ "$(json stall.json ".${side}_late")" -ge 100 ] || fail "few late ops in the $side"
done

# The same from a build that writes the due time for the issue time. Its check must fail.
need "${CC:-cc}" pkg-config
sed 's/^\(    out->issue_ns = \).*;/\1op->due_ns - account->start_ns;/' "$IOTAPE_SRC/replay/account.c" >account.c
cmp -s account.c "$IOTAPE_SRC/replay/account.c" && fail "account.c no longer writes issue times where this test expects"
libs="-lz -ljansson -larchive -lm -ldl"
for lib in uring aio; do
    ldd "$IOTAPE_BUILD/iotape-replay" | grep -q "lib$lib\." && libs="$libs -l$lib"
done
sanitize=""
nm "$IOTAPE_BUILD/iotape-replay" 2>/dev/null | grep -q __asan_init && sanitize="-fsanitize=address,undefined"
nm "$IOTAPE_BUILD/iotape-replay" 2>/dev/null | grep -q __tsan_init && sanitize="-fsanitize=thread"
# shellcheck disable=SC2086
"${CC:-cc}" -std=gnu11 -D_GNU_SOURCE -D_FILE_OFFSET_BITS=64 -DIOTAPE_VERSION='"dishonest"' -O1 $sanitize \
    -I"$IOTAPE_SRC" -I"$IOTAPE_BUILD/gen" -pthread -o dishonest account.c "$IOTAPE_BUILD/replay/main.o" \
    "$IOTAPE_BUILD/libreplay.a" "$IOTAPE_BUILD/libengine.a" "$IOTAPE_BUILD/libtrace.a" $libs 2>log ||
    { cat log; fail "the dishonest build"; }
replay lie ./dishonest --engine io_uring
runs 1 witness_check lie.csv lie.tape --late 20ms --json lie.json --p99 5ms
equal "lies found" false "$(json lie.json .within)"
equal "late by its own word" 0 "$(json lie.json .tape_late)"
[ "$(json lie.json .witness_late)" -ge 100 ] || fail "the witness saw no stall"
