#!/bin/sh
# SPDX-License-Identifier: MIT
# The faults that timed replayers have had: drift, lost ends, dropped gaps, runs that one failed
# I/O ends, signals that are ignored. One check for each that concerns a replay.
. "$IOTAPE_SRC/tests/testlib.sh"
need jq

csv() { runs 0 iotape convert -q --from csv --columns "${3:-time:us,op,path,offset,length}" "$1" -o "$2"; }
count() { json out "$1"; }
invariants() { equal "$1" "true true" "$(count '"\(.ops_issued == .ops_completed + .errors) \(.ops == .ops_issued + .ops_skipped)"')"; }
engines="sync io_uring libaio"

mkdir root
head -c 1048576 /dev/zero >root/f

# No drift: on an exact clock the last of 100,000 operations is issued when it is due, to the ns,
# and what a late one does to the others is nothing.
runs 0 iotape convert -q --from synth 'rw=randread,bs=4k,size=1m,ops=100k,rate=5000,arrival=poisson,seed=1' -o drift.tape
runs 0 iotape replay drift.tape --engine model:service=10us,channels=64 --clock simulated --pace recorded --json -
invariants drift
equal "lag on an exact clock" "100000 0" "$(count '"\(.lag_ns.count) \(.lag_ns.max)"')"

# Every engine ends, with the last operations reaped and counted, asap and timed.
runs 0 iotape convert -q --from synth 'rw=randread,bs=4k,size=1m,ops=300,rate=10000,seed=1' -o short.tape
for engine in $engines; do
    engine_available $engine || continue
    for pace in asap recorded; do
        runs 0 timeout 60 iotape replay short.tape --engine $engine --depth 16 --pace $pace --map /synth=root/f --json -
        equal "$engine $pace" "300 300 0" "$(count '"\(.ops_issued) \(.ops_completed) \(.errors)"')"
    done
done

# The gap before an operation stays when the one before it is skipped; one after time 0 stays too.
printf '0,read,/f,0,512\n100,write,/f,0,512\n400000,read,/f,512,512\n' >in.csv
csv in.csv gap.tape
runs 0 iotape replay gap.tape --engine model:service=1us --clock simulated --pace recorded --json -
equal "issued without a target" 3 "$(count .ops_issued)"
runs 0 iotape replay gap.tape --engine sync --root root --pace recorded --result gap.result --json -
equal "skipped" "2 1" "$(count '"\(.ops_issued) \(.ops_skipped_by.read_only)"')"
runs 0 iotape dump gap.result
equal "due time after the skipped one" 2 "$(grep -c read out)"
runs 0 iotape replay gap.tape --engine sync --root root --pace recorded --json -
equal "the gap is waited for" true "$(count '.duration_ns >= 390000000')"

# A long gap does not burn a CPU, and the runtime ends it.
printf '0,read,/f,0,512\n3600000000,read,/f,512,512\n' >in.csv
csv in.csv hour.tape
runs 0 timeout 30 iotape replay hour.tape --engine sync --root root --pace recorded --runtime 300ms --json -
equal "runtime" "runtime 1 1" "$(count '"\(.end) \(.ops_issued) \(.ops_skipped_by.not_reached)"')"
equal "asleep, not spinning" true "$(count '.wait.spun_ns < 100000000')"
runs 0 timeout 30 iotape replay hour.tape --engine sync --root root --pace recorded --max-gap 10ms --json -
equal "--max-gap" "2" "$(count .ops_issued)"

# A failed or short I/O is counted and the run goes on; --on-error stop stops it.
for engine in $engines; do
    engine_available $engine || continue
    for fault in EIO ENOSPC EAGAIN EINTR ENODEV; do
        IOTAPE_FAULT="submit:7:$fault" runs 0 iotape replay short.tape --engine $engine --depth 4 --map /synth=root/f --json -
        invariants "$engine $fault"
        equal "$engine $fault" "299 1 $fault" "$(count '"\(.ops_completed) \(.errors) \(.errors_by[0].errno)"')"
    done
    IOTAPE_FAULT="short:5" runs 0 iotape replay short.tape --engine $engine --depth 4 --map /synth=root/f --json -
    equal "$engine short" "300 1 0" "$(count '"\(.ops_completed) \(.short_transfers) \(.errors)"')"
    IOTAPE_FAULT="submit:7:EIO" runs 1 iotape replay short.tape --engine $engine --depth 1 --map /synth=root/f --on-error stop --json -
    invariants "$engine stop"
    equal "$engine stops" "error true" "$(count '"\(.end) \(.ops_issued < 20 and .ops_skipped_by.not_reached > 280)"')"
    IOTAPE_FAULT="reap:3:EINTR" runs 0 iotape replay short.tape --engine $engine --depth 4 --map /synth=root/f --json -
    equal "$engine reap" 300 "$(count .ops_completed)"
    IOTAPE_FAULT="open:1:ENOMEM" runs 1 iotape replay short.tape --engine $engine --map /synth=root/f
done

# A stall makes operations late, with a cause, and shifts none after it has been made up for.
engine_available io_uring && {
    IOTAPE_FAULT="stall:50:30ms" runs 0 iotape replay short.tape --engine io_uring --map /synth=root/f --pace recorded --json -
    equal "late because of the stall" true "$(count '.late_ops > 100 and ([.late_by[]] | add) == .late_ops and .lag_ns.max > 25000000')"
}

# A recorded failure that does not come back is an unexpected result.
printf '0,read,/f,0,512,512\n1,read,/f,512,512,-5\n' >in.csv
csv in.csv failed.tape time:us,op,path,offset,length,result
runs 0 iotape replay failed.tape --engine sync --root root --json -
equal "unexpected results" 1 "$(count .unexpected_results)"

# Ctrl-C and SIGTERM give the partial report, a result tape that is whole, and 128 + the signal.
for engine in $engines; do
    engine_available $engine || continue
    for signal in INT TERM; do
        rm -f partial.json partial.tape
        setsid sh -c 'trap - INT; exec iotape-replay drift.tape --engine '$engine' --map /synth=root/f --pace recorded --json partial.json --result partial.tape -q' &
        pid=$!
        tries=0
        while [ $tries -lt 100 ] && ! { [ -s partial.tape ] && sleep 0.2; }; do sleep 0.05; tries=$((tries + 1)); done
        kill -$signal $pid
        wait $pid
        rc=$?
        [ $signal = INT ] && want=130 || want=143
        # A shell without job control starts what it puts in the background with SIGINT ignored.
        equal "$engine $signal exit" $want $rc
        cp partial.json out
        invariants "$engine $signal"
        equal "$engine $signal" "signal true" "$(count '"\(.end) \(.ops_skipped_by.not_reached > 0)"')"
        issued=$(count .ops_issued)
        runs 0 iotape info partial.tape --json
        equal "$engine $signal: ops of the result tape" "$issued" "$(count .ops)"
    done
done

# Killed: what the result tape has is readable.
rm -f partial.tape
iotape-replay drift.tape --engine model:service=1us --pace recorded --result partial.tape -q &
pid=$!
sleep 2.5
kill -9 $pid
wait $pid 2>/dev/null
runs 0 iotape dump partial.tape
[ "$(grep -c read out)" -gt 100 ] || fail "a killed replay left too little"

# A cut tape is replayed as far as it goes, and that is said; a damaged one too.
size=$(stat -c %s drift.tape)
head -c $((size * 6 / 10)) drift.tape >cut.tape
runs 0 iotape replay cut.tape --engine null --json -
says 'no end' err
equal "cut" true "$(count '.ops > 0 and .ops < 100000 and .ops_issued == .ops and .tape_damage.truncated')"
# From a pipe, normalised first, which is said.
iotape replay - --engine null --json - <drift.tape >out 2>err || fail "a tape from a pipe"
equal "piped" 100000 "$(count .ops_issued)"
cat drift.tape | iotape replay - --engine null --json - --result piped.tape >out 2>err || fail "a tape from a pipe"
says 'normalised to a temporary' err
# Whose result it is, by the name that was given and not the temporary's.
equal "result of" - "$(iotape info piped.tape --json | jq -r .meta.result_of)"
equal "piped" 100000 "$(count .ops_issued)"
# What waits for a stalled operation sleeps: 60 threads that looked again and again took both CPUs of a
# machine from it.
{ echo '0,write,/synth,0,4096,4096,'; seq 1 60 | sed 's|.*|&,read,/synth,0,4096,4096,|'; } >held.csv
runs 0 iotape convert -q --from csv --columns time:us,op,path,offset,length,result,file2 held.csv -o held.tape
for pace in asap recorded; do
    IOTAPE_FAULT="stall:1:800ms" runs 0 iotape replay held.tape --engine sync --depth 64 --map /synth=root/f --writes \
        --order overlap --pace $pace --priority normal --json -
    equal "held: all, in order" "61 0 0" "$(json out '"\(.ops_issued) \(.errors) \(.unexpected_results)"')"
    equal "held: it stalled" true "$(json out '.duration_ns > 700000000')"
    equal "held: CPU time" true "$(json out '(.cpu_user_ns_per_op + .cpu_sys_ns_per_op) * 61 < 200000000')"
done
exit 0
