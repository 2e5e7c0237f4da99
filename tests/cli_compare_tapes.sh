#!/bin/sh
# SPDX-License-Identifier: MIT
# Two tapes on the command line: reports, conditions, exit statuses, bad input.
. "$IOTAPE_SRC/tests/testlib.sh"
need jq

# Two synthetic tapes: B is A without its first writes, and twice as fast.
iotape convert -q --from synth 'rw=randrw,bs=4k,size=64m,ops=5000,rate=1000,seed=7' -o a.tape || fail synth
iotape convert -q a.tape --op read --speed 2 -o b.tape || fail convert
reads=$(iotape info a.tape --json | jq .by_op.read.count)
writes=$(iotape info a.tape --json | jq .by_op.write.count)

runs 0 iotape compare a.tape b.tape
says '^lost in B|  lost in B +'"$writes"' ' out
says '  extra in B +0' out
says '  matched +'"$reads"'$' out
[ ! -s err ] || fail "stderr: $(cat err)"

# A tape is like itself.
runs 0 iotape compare a.tape a.tape --json self.json -q
[ ! -s out ] || fail "quiet, but printed"
equal matched 5000 "$(json self.json .match.matched)"
equal 'KS of gaps' 0 "$(json self.json .fidelity.gap.ks)"
equal overtaken 0 "$(json self.json .fidelity.overtaken)"
equal 'worst error' 0 "$(json self.json .fidelity.issue_error_ns.max)"
equal 'no latency' null "$(json self.json .a.latency_ns)"

# JSON on standard output is all there is there.
runs 0 iotape compare a.tape b.tape --json -
equal lost "$writes" "$(jq .match.lost.ops out)"
equal 'lost by op' "$writes" "$(jq .match.lost.by_op.write out)"

# One of the two may be a pipe.
iotape compare - b.tape --json piped.json -q <a.tape || fail "pipe"
equal 'matched from a pipe' "$reads" "$(json piped.json .match.matched)"

# Conditions: true is 3, false is 0, what the tapes cannot tell is undecided.
runs 3 iotape compare -q a.tape b.tape --fail-if 'lost>0'
says "fail-if lost>0: true" err
runs 0 iotape compare -q a.tape b.tape --fail-if 'extra>0' --fail-if 'iops<-60%'
runs 3 iotape compare -q a.tape b.tape --fail-if 'gap_ks>0.1'
runs 0 iotape compare -q a.tape b.tape --fail-if 'p99>+5%'
runs 4 iotape compare -q a.tape b.tape --fail-if 'p99>+5%' --require-decision
runs 2 iotape compare -q a.tape b.tape --fail-if 'colour>5'
runs 2 iotape compare -q a.tape b.tape --fail-if 'p99'
runs 2 iotape compare a.tape
runs 2 iotape compare a.tape b.tape c.tape
runs 2 iotape compare --nosuch a.tape b.tape
runs 2 iotape compare - -

# Bad input: one line, exit 1, no report left.
head -c 300 a.tape >short.tape
echo 'not a tape' >text.tape
for bad in text.tape missing.tape; do
    rm -f r.json
    runs 1 iotape compare a.tape $bad --json r.json
    equal "lines about $bad" 1 "$(wc -l <err)"
    [ ! -e r.json ] || fail "a report of nothing"
done
# A tape that was cut is compared as far as it goes, and that is said.
head -c $(($(wc -c <a.tape) * 2 / 3)) a.tape >cut.tape
runs 0 iotape compare a.tape cut.tape
says 'note: B is cut off' out

# A report that cannot be written.
runs 1 iotape compare -q a.tape b.tape --json /nonexistent/r.json

# The page: one file, nothing fetched, plots with names; without gnuplot it says so and is whole.
runs 0 iotape compare -q a.tape b.tape --html r.html
says '<!DOCTYPE html>' r.html
says '</html>' r.html
! grep -Eq '<script|src=|https?://[^w]' r.html || fail "the page fetches something"
if command -v gnuplot >/dev/null 2>&1; then
    says '<svg role="img" aria-label="[^"]' r.html
    equal 'ids met twice' '' "$(grep -o "id=['\"][^'\"]*" r.html | sort | uniq -d)"
fi
mkdir bare
for p in iotape-compare; do ln -s "$(command -v $p)" bare/$p; done
runs 0 env PATH="$PWD/bare" iotape-compare -q a.tape b.tape --html bare.html
says 'No plots: gnuplot is not installed' bare.html
! grep -q '<svg' bare.html || fail "plots without gnuplot"

# A long path does not widen the table: its end is shown, and all of it in the JSON.
deep=/var/lib/a-folder-with-a-rather-long-name/and-another-one-below-it/base/16384/2619
printf '0,read,%s,0,4096\n5,read,/short,0,4096\n' $deep >long.csv
runs 0 iotape convert -q --from csv --columns time:us,op,path,offset,length long.csv -o long.tape
runs 0 iotape compare long.tape long.tape --json r.json
says '^  \.\.\.(/[^/ ]*)+/base/16384/2619 ' out
says '^  /short ' out
[ "$(awk '{ if (length > most) most = length } END { print most }' out)" -le 160 ] || fail "a wide table"
says "$deep" r.json
