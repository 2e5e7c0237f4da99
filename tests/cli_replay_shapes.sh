#!/bin/sh
# SPDX-License-Identifier: MIT
# Depth, batches, workers, processes, clones; orders and think time, checked on what the result tape
# says was done.
. "$IOTAPE_SRC/tests/testlib.sh"
need jq awk

report() { runs 0 timeout 120 iotape replay "$@" --json -; }
is() { equal "$1" true "$(json out "$1")"; }
whole() { is ".ops_issued == $1 and .ops_completed == $1 and .errors == 0"; }

mkdir root
runs 0 iotape convert -q --from synth 'rw=randread,bs=4k,size=1m,ops=2000,streams=4,batch=4,seed=1' -o read.tape
runs 0 iotape replay read.tape --engine sync --root root --prepare -q

for engine in io_uring libaio sync; do
    iotape replay --list-engines | sed -n "/^$engine /{n;p;}" | grep -q 'not here' && continue
    report read.tape --engine $engine --root root --depth 8 --batch 4
    whole 2000
    is '.depth.max <= 8 and .batch.max <= 4'
    for shape in '--workers 3' '--processes 3' '--batch 8 --batch-wait' '--depth-low 4' \
        '--recorded-batches' '--batch-complete-min 4' '--batch-complete-max 2' '--loops 2'; do
        report read.tape --engine $engine --root root --depth 8 $shape
        case $shape in *loops*) whole 4000 ;; *) whole 2000 ;; esac
    done
    rm -rf clones && mkdir clones
    report read.tape --engine $engine --root clones --prepare --clones 3 --depth 2
    whole 6000
    equal "clones" "clone.0 clone.1 clone.2" "$(ls clones | tr '\n' ' ' | sed 's/ $//')"
done
# The model takes each call as it is: batches can be counted.
report read.tape --engine model:service=1us --clock simulated --depth 64 --batch 64 --recorded-batches
is '.batch.max == 4 and .submit_calls == 500'
report read.tape --engine model:service=1us,channels=64 --clock simulated --depth 64 --batch 32 --batch-wait
is '.batch.max == 32 and .submit_calls == 63'
report read.tape --engine model:service=1us --clock simulated --depth 64 --depth-low 8 --batch 64
is '.depth.max == 64'

# What is pinned is bounded; slots beyond it do the same without registered buffers.
if engine_available io_uring; then
    runs 0 iotape convert -q --from synth 'rw=randrw,bs=4k,size=1m,ops=2000,depth=64,seed=3' -o mixed.tape
    report mixed.tape --engine io_uring:pinned=64k --root root --writes --verify --depth 64 --batch 64
    whole 2000
    is '.depth.max > 16 and (.engine_granted | test("buffers:16/64"))'
    # Large and many possible ops cost the memory of those that are in flight.
    runs 0 iotape convert -q --from synth 'rw=read,bs=4m,size=64m,ops=16,rate=200,seed=3' -o large.tape
    runs 0 iotape replay large.tape --engine sync --root root --prepare --writes -q --runtime 1ms
    report large.tape --engine io_uring --root root --pace recorded
    whole 16
    is '.engine_granted | test("buffers:16/")'
fi

# A given depth holds back what is due, and says how often; without one nothing is held.
runs 0 iotape convert -q --from synth 'rw=randread,bs=4k,size=1m,ops=1000,rate=10000,streams=3,seed=2' -o rate.tape
report rate.tape --engine model:service=1ms,channels=64 --clock simulated --pace recorded --depth 4
whole 1000
is '.holds > 900 and .late_by.depth_cap > 0 and .depth.max == 4'
report rate.tape --engine model:service=1ms,channels=64 --clock simulated --pace recorded
is '.holds == 0 and .late_ops == 0 and .lag_ns.max == 0 and .depth.max == 10'

# ---- orders: a recording whose completions overtake each other, then a slower device ------------
runs 0 iotape replay rate.tape --engine model:service=50us,random=200us,channels=16 --clock simulated --pace recorded --result rec.raw -q
runs 0 iotape convert -q rec.raw -o rec.tape
runs 0 iotape convert -q rec.tape --to csv -o rec.csv

# check WHAT RESULT: for each operation, what had completed in the recording (in its scope) before it
# was issued has completed in the result before it was issued.
check() {
    runs 0 iotape convert -q "$2" --to csv -o result.csv
    awk -F, -v what="$1" '
        FNR == 1 { for (i = 1; i <= NF; i++) at[$i] = i; file++; next }
        file == 1 { n = FNR - 2; issue[n] = $at["issue_ns"]; done[n] = issue[n] + $at["latency_ns"]
                    scope[n] = what == "stream" ? $at["tid"] : what == "file" ? $at["file"] : 0; count = n + 1 }
        file == 2 { r = $at["ref"]; issued2[r] = $at["issue_ns"]; done2[r] = issued2[r] + $at["latency_ns"] }
        END {
            for (b = 0; b < count; b++) for (a = 0; a < b; a++)
                if (scope[a] == scope[b] && done[a] <= issue[b]) { edges++; if (done2[a] > issued2[b]) wrong++ }
            print edges + 0, wrong + 0
        }' rec.csv result.csv >edges
    read -r edges wrong <edges
    [ "$edges" -gt 1000 ] || fail "$1: only $edges edges"
    equal "$1: operations issued too early" "$3" "$wrong"
}
for order in stream file all; do
    for how in '--pace recorded' '--depth 16'; do
        rm -f result.tape
        report rec.tape --engine model:service=300us,random=300us,channels=8 --clock simulated --order $order $how --result result.tape
        whole 1000
        is '.held_by_order > 0'
        check $order result.tape 0
    done
done
# The check can fail: without an order there are such operations.
rm -f result.tape
report rec.tape --engine model:service=300us,random=300us,channels=8 --clock simulated --pace recorded --result result.tape
runs 0 iotape convert -q result.tape --to csv -o result.csv
( check all result.tape 0 ) 2>/dev/null && fail "the order check finds nothing wrong without --order"
for engine in sync io_uring; do
    iotape replay --list-engines | sed -n "/^$engine /{n;p;}" | grep -q 'not here' && continue
    for shape in '' '--workers 2' '--processes 2'; do
        rm -f result.tape
        report rec.tape --engine $engine --root root --depth 4 --order stream,file $shape --result result.tape
        whole 1000
        check file result.tape 0
    done
done

# ---- think: on the device of the recording the replay is the recording ---------------------------
rm -f result.tape
report rec.tape --engine model:service=50us,random=200us,channels=16 --clock simulated --pace think --result result.tape
whole 1000
is '.lag_ns.max == 0'
runs 0 iotape convert -q result.tape --to csv -o result.csv
equal "think on the same device" "$(cut -d, -f1 rec.csv | cksum)" "$(cut -d, -f1 result.csv | cksum)"
# On one that takes 5 ms longer each stream takes so much longer.
report rec.tape --engine model:service=5ms,channels=64 --clock simulated --pace think
whole 1000
is '.lag_ns.max == 0 and .duration_ns > 400000000'
# No latencies, no think time; unless one is assumed.
runs 1 iotape replay rate.tape --engine null --pace think
says 'assume-latency' err
runs 1 iotape replay rate.tape --engine null --order file
report rate.tape --engine model:service=10us --clock simulated --pace think --assume-latency 10us
whole 1000

# Pinned; and what cannot be is refused, not lowered.
report read.tape --engine null --pin 0
whole 2000
runs 1 iotape replay read.tape --engine null --pin 0-
runs 2 iotape replay read.tape --engine sync --clock simulated --root root
runs 2 iotape replay read.tape --engine null --depth 4 --batch 8
exit 0
