#!/bin/sh
# SPDX-License-Identifier: MIT
# The replayer's counts, reports and skipped operations, on small synthetic tapes.
. "$IOTAPE_SRC/tests/testlib.sh"
need jq

synth() { runs 0 iotape convert -q --from synth "$1" -o "$2"; }
report() { runs 0 iotape replay "$@" --json -; cp out report.json; }
holds() { equal "$1" true "$(json report.json "$1")"; }
invariants() {
    holds '.ops_issued == .ops_completed + .errors'
    holds '.ops == .ops_issued + .ops_skipped'
    holds '.service_ns.count == .ops_issued'
}

synth 'rw=randread,bs=4k,size=1m,ops=2000,seed=1' read.tape
synth 'rw=randrw,rwmix=50,bs=4k,size=1m,ops=2000,fsync=10,seed=2' mix.tape
synth 'rw=randread,bs=4k,size=1m,ops=500,rate=5000,seed=3' rate.tape

# Every engine that can run here issues everything once.
mkdir root
runs 0 iotape replay read.tape --root root --prepare -q
for engine in null model:service=1us sync io_uring libaio; do
    runs 0 iotape replay --list-engines
    sed -n "/^${engine%%:*} /{n;p;}" out | grep -q 'not here' && continue
    report read.tape --engine $engine --depth 4 --root root
    invariants
    equal "$engine issued" 2000 "$(json report.json .ops_issued)"
    equal "$engine errors" 0 "$(json report.json .errors)"
    equal "$engine bytes" 8192000 "$(json report.json .by_op.read.bytes)"
    holds '.depth.max <= 4'
    holds '.lag_ns == null and .late_ops == null and .response_ns == null'
done

# Without --writes nothing is changed, and what would have been is counted.
sum=$(cksum <root/synth)
report mix.tape --engine sync --root root
invariants
equal "skipped" "$(json report.json .ops_skipped)" "$(json report.json .ops_skipped_by.read_only)"
holds '.by_op.write == null and .ops_skipped > 900'
equal "the file" "$sum" "$(cksum <root/synth)"
report mix.tape --engine sync --root root --writes
invariants
equal "skipped with --writes" 0 "$(json report.json .ops_skipped)"
holds '.by_op.write.count > 900 and .by_op.fsync.count > 90'
holds '.duration_with_flush_ns >= .duration_ns'
[ "$sum" != "$(cksum <root/synth)" ] || fail "--writes wrote nothing"

# A paced replay has due times.
report rate.tape --engine io_uring --root root --pace recorded --speed 2
invariants
holds '.lag_ns.count == 500 and .response_ns.count == 500 and .late_ops != null'
holds '.recorded_duration_ns == 49900000 and .duration_ns >= 20000000'

# Loops, window, the result tape.
report read.tape --engine null --loops 3
equal "three loops" 6000 "$(json report.json .ops_issued)"
report rate.tape --engine null --start 20ms --end 50ms
equal "window" 150 "$(json report.json .ops_issued)"
equal "outside" 350 "$(json report.json .ops_skipped_by.window)"
report rate.tape --engine sync --root root --pace recorded --result result.tape
runs 0 iotape info result.tape --json
equal "ops of the result tape" 500 "$(json out .ops)"
runs 1 iotape replay rate.tape --engine null --result result.tape
says 'result.tape' err

# --json - alone writes to stdout; -q writes nothing.
runs 0 iotape replay read.tape --engine null --json -
jq -e . out >/dev/null || fail "--json - is not JSON alone"
runs 0 iotape replay read.tape --engine null -q
[ ! -s out ] || fail "-q prints"

# The page has the report in it, and a plot where gnuplot is.
runs 0 iotape replay rate.tape --engine null --pace recorded --html page.html -q
says '500 issued = 500 completed' page.html
says '</html>' page.html
if command -v gnuplot >/dev/null 2>&1; then says '<svg' page.html; else says 'gnuplot is not installed' page.html; fi

# --plan does nothing.
rm -rf root && mkdir root
runs 0 iotape replay mix.tape --engine sync --root root --prepare --writes --plan
says 'nothing was done' out
equal "files after --plan" "" "$(ls root)"
exit 0
