#!/bin/sh
# SPDX-License-Identifier: MIT
# Real traces of the published sets give exactly their independently computed counts.
. "$IOTAPE_SRC/tests/testlib.sh"
shared
need jq
truth=$SHARED/traces/truth.json
[ -r "$truth" ] || skip "no truth.json"

# check KEY FILE [FLAG...]: KEY in truth.json; duration=no where the source's stamp is not the issue time
check() {
    key=$1 file=$2 duration=$3
    shift 3
    runs 0 iotape-convert "$SHARED/traces/$file" -o t.tape "$@"
    runs 0 iotape-convert info t.tape --json
    mv out info.json
    for pair in read:R write:W discard:D discard:trim; do
        want=$(jq -r --arg k "$key" --arg o "${pair#*:}" '.[$k].ops[$o] // empty' "$truth")
        [ -n "$want" ] || continue
        equal "$key ${pair%:*} count" "$want" "$(json info.json ".by_op.${pair%:*}.count")"
        equal "$key ${pair%:*} bytes" "$(jq -r --arg k "$key" --arg o "${pair#*:}" '.[$k].bytes[$o]' "$truth")" \
            "$(json info.json ".by_op.${pair%:*}.bytes")"
    done
    for name in min_offset max_end; do
        equal "$key $name" "$(jq -r --arg k "$key" ".[\$k].$name" "$truth")" "$(json info.json ".$name")"
    done
    equal "$key ops" "$(jq -r --arg k "$key" '.[$k].records' "$truth")" "$(json info.json .ops)"
    [ "$duration" = no ] ||
        equal "$key duration" "$(jq -r --arg k "$key" '.[$k].duration_ns' "$truth")" "$(json info.json .duration_ns)"
    rm t.tape
}

same() { check "$1" "$1" yes; }
same mqsim-ascii/tpcc-small.trace
same disksim-ascii/disksim4-ascii.first20000.trace
same libcachesim/cloudPhysicsIO.first20000.csv
same libcachesim/cloudPhysicsIO.first20000.vscsi
same hfplayer/sampleTrace.csv
same hfplayer/small-tpch.csv
same blkreplay/windows-shared-server.load.gz
same published-extracts/alibaba-6lines.csv
same published-extracts/tencent-cbs-9lines.csv
same published-extracts/darshan-dxt-example.txt
# one line of the published text is malformed
check published-extracts/spc-spec-example-11lines.spc published-extracts/spc-spec-example-11lines.spc yes --skip-bad 1
# stamps of completion, or none
check biosnoop/bcc-biosnoop-0.txt biosnoop/bcc-biosnoop-0.txt no
check iosnoop/iosnoop-0.txt iosnoop/iosnoop-0.txt no
same iosnoop/iosnoop-3.txt

# the malformed line, named
runs 1 iotape-convert "$SHARED/traces/published-extracts/spc-spec-example-11lines.spc" -o bad.tape
says 'spc-spec-example-11lines.spc:9:' err
[ ! -e bad.tape ] || fail "a half-written tape was left"

# no block events in it
runs 1 iotape-convert "$SHARED/traces/ftrace/catapult-decompressed_atrace_data.txt" -o bad.tape
says 'block_rq_issue' err
[ ! -e bad.tape ] || fail "a half-written tape was left"

for f in perf-script-block-7events.txt ftrace-flush-error-5events.txt fiu-iodedup-2lines.txt msr-1line.csv systor17-1line.csv; do
    runs 0 iotape-convert "$SHARED/traces/published-extracts/$f" -o t.tape
    runs 0 iotape-convert info t.tape --json
    [ "$(json out .ops)" -gt 0 ] || fail "$f: no ops"
    rm t.tape
done
