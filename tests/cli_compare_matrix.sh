#!/bin/sh
# SPDX-License-Identifier: MIT
# Matrices on the model engine and the simulated clock: exact and quick.
. "$IOTAPE_SRC/tests/testlib.sh"
need jq

iotape convert -q --from synth 'rw=randread,bs=4k,size=16m,ops=1000,seed=1' -o t.tape || fail synth
slow='model:service=100us,noise=1'
fast='model:service=80us,noise=1'
sim='--clock simulated'

# A clear difference, and the same engine twice.
runs 0 iotape compare t.tape --engine "$slow,$fast,$slow" --depth 1,4 $sim --trials 8 \
    --dir m --json m.json --csv m.csv --markdown m.md --html m.html
says 'SIMULATED' out
equal cells 6 "$(jq '.cells | length' m.json)"
equal comparisons 4 "$(jq .comparisons m.json)"
equal 'the faster ones' 'different different' \
    "$(jq -r '[.cells[2,3].comparisons.iops.verdict] | join(" ")' m.json)"
equal 'the same ones' 0 \
    "$(jq '[.cells[4,5].comparisons.iops | select(.verdict == "different")] | length' m.json)"
jq -e '.cells[2].comparisons.iops | .ratio > 1.2 and .ratio < 1.3 and .low < .ratio and .ratio < .high' \
    m.json >/dev/null || fail "the ratio of 100 us to 80 us"
equal 'trials kept' 48 "$(ls m/trial-*.json | wc -l)"
equal 'tapes kept' 48 "$(ls m/trial-*.tape | wc -l)"
equal 'journal' 48 "$(wc -l <m/journal.jsonl)"
equal 'rows of the CSV' 7 "$(wc -l <m.csv)"
says '^\| engine \|' m.md
says 'kernel: ' m.md
says '</html>' m.html
! grep -q 'could not draw' m.html || fail "a plot failed"
if command -v gnuplot >/dev/null 2>&1; then
    [ "$(grep -c '<svg role="img"' m.html)" -ge 8 ] || fail "plots are missing"
    equal 'ids met twice' '' "$(grep -o "id=['\"][^'\"]*" m.html | sort | uniq -d)"
fi
[ "$(jq '.cells[0].service_curve_ns | length' m.json)" -gt 20 ] || fail "no latency curve"
jq -e '.plan.environment.kernel' m.json >/dev/null || fail "no environment"

# The folder is not written over; what differs is named.
runs 1 iotape compare t.tape --engine "$slow,$fast" $sim --trials 6 --dir m
says 'holds trials already' err
runs 2 iotape compare t.tape --engine "$slow,$fast" $sim --trials 8 --dir m --resume
says "differs in 'dimensions'" err

# Interrupted by Ctrl-C, then by kill -9, then resumed: the table of an uninterrupted run.
set -- t.tape --engine "$slow,$fast" --depth 1,2 $sim --trials 7 --warmup 1 --seed 5
runs 0 iotape compare "$@" --dir whole --json whole.json
cp out whole.txt
lines() { [ -e part/journal.jsonl ] && wc -l <part/journal.jsonl || echo 0; }
begin() { # SIGNAL LINES OPTIONS...
    _signal=$1 _lines=$2
    shift 2
    iotape-compare "$@" --dir part --cool-down 0 >part.out 2>part.err &
    _pid=$!
    _turns=0
    while [ "$(lines)" -lt "$_lines" ] && [ $_turns -lt 2000 ]; do
        sleep 0.01
        _turns=$((_turns + 1))
    done
    kill -"$_signal" $_pid
    wait $_pid
}
begin INT 5 "$@"
equal 'status when stopped' 1 $?
says 'goes on' part.err
[ ! -s part.out ] || fail "a table of half an experiment"
before=$(lines)
begin KILL $((before + 6)) "$@" --resume
[ "$(lines)" -lt 32 ] || fail "not interrupted in time"
printf '{"block":9,"ce' >>part/journal.jsonl
runs 0 iotape compare "$@" --dir part --resume --json part.json
cmp out whole.txt || fail "another table after being interrupted"
for f in whole part; do jq 'del(.plan.environment, .plan.started)' $f.json >$f.plain; done
cmp whole.plain part.plain || fail "another report after being interrupted"
# More trials may be asked of a finished experiment.
runs 0 iotape compare t.tape --engine "$slow,$fast" --depth 1,2 $sim --trials 9 --warmup 1 --seed 5 \
    --dir part --resume -q
equal 'lines after two more trials' 40 "$(lines)"

# Conditions: only what is decided counts.
runs 3 iotape compare t.tape -q --engine "$fast,$slow" $sim --trials 8 --dir c1 --fail-if 'p99>+5%'
says 'p99>\+5%: true' err
runs 0 iotape compare t.tape -q --engine "$fast,$slow" $sim --trials 8 --dir c2 --fail-if 'p99>+50%'
runs 0 iotape compare t.tape -q --engine "$fast,$slow" $sim --trials 4 --dir c3 --fail-if 'p99>+5%'
runs 4 iotape compare t.tape -q --engine "$fast,$slow" $sim --trials 4 --dir c3 --resume \
    --fail-if 'p99>+5%' --require-decision
runs 0 iotape compare t.tape --engine "$fast,$slow" $sim --trials 4 --dir c3 --resume
says 'under 6 trials' out
says 'undecided' out
runs 3 iotape compare t.tape -q --engine "$fast,$slow" $sim --trials 8 --dir c2 --resume --fail-if 'p99>90us'
runs 2 iotape compare t.tape -q --engine "$fast,$slow" $sim --dir c4 --fail-if 'colour>1'

# What should make a reader doubt: two humps, unsteady trials, failing ops.
runs 0 iotape compare t.tape --engine 'model:noise=0.5,model:noise=0.5,run-hump=40,model:drift=900,model:error-rate=5' \
    $sim --trials 12 --dir d
says 'run-hump=40: two-humped' out
says 'drift=900: not steady: the second half of a trial runs [0-9]+ % slower' out
says 'error-rate=5: [0-9.]+ failed' out

# Cells that cannot run say why, and the rest goes on.
runs 0 iotape compare t.tape --engine "$slow" --depth 1,70000 $sim --trials 6 --dir n
says 'depth 70000: n/a: depth 70000 is above 65536' out
runs 1 iotape compare t.tape --engine sync --root /nonexistent/root --trials 6 --dir f
says 'no cell can run: exit 1: ' err

# What all processes need together counts.
if engine_available libaio; then
    limit=$(($(cat /proc/sys/fs/aio-max-nr) / 2))
    if [ $limit -lt 65536 ]; then
        runs 1 iotape compare t.tape --engine libaio --processes 4 --depth $limit --root . --trials 6 --dir p
        says "fs.aio-max-nr is .*: depth $((limit * 4)) needs" err
    fi
fi

# At a recorded pace: a depth cap that holds ops back refuses the verdict.
iotape convert -q --from synth 'rw=randread,bs=4k,size=16m,ops=1000,rate=9500,seed=1' -o paced.tape
runs 0 iotape compare paced.tape --engine 'model:service=90us,model:service=110us' --depth 2 --pace recorded \
    --metric p50 $sim --trials 6 --dir h
says 'undecided \(refused\)' out

# So does the replayer's own lag, which stalls make; without them the same difference is one.
iotape convert -q --from synth 'rw=randread,bs=4k,size=16m,ops=1000,rate=1000,seed=1' -o calm.tape
pair="--engine model:service=90us,model:service=100us --pace recorded --metric p50 $sim --trials 6"
runs 0 iotape compare calm.tape $pair --dir calm
says 'different, worse' out
IOTAPE_FAULT='stall:9:20ms;stall:300:20ms;stall:600:20ms' runs 0 iotape compare calm.tape $pair --dir lagging
says 'undecided \(refused\)' out
says "verdict on p50 refused: the replayer's lag" out

# Usage.
runs 2 iotape compare t.tape --engine nosuch --dir u
runs 2 iotape compare t.tape --engine "$slow" --metric colour --dir u
runs 2 iotape compare t.tape --engine "$slow" --baseline engine=other --dir u
runs 2 iotape compare t.tape --engine "$slow" --resume
runs 2 iotape compare - --engine "$slow"
runs 1 iotape compare missing.tape --engine "$slow" --dir u
[ ! -e u ] || fail "a folder for nothing"
