#!/bin/sh
# SPDX-License-Identifier: MIT
# A sample keeps threads whole and counts what the others do, in the tape and for everyone who reads it;
# --max-overhead can ask for one instead of an end.
. "$IOTAPE_SRC/tests/testlib.sh"
prog=$IOTAPE_BUILD/tests/prog_truth
export ASAN_OPTIONS=verify_asan_link_order=0:detect_leaks=0
mkdir data

recorders=preload
iotape capture --list | grep -A1 '^bpf' | grep -q 'can run here' && recorders="preload bpf"

# recorded TAPE: its ops, but for pages and unmappings, which are not counted when passed over
recorded() { iotape dump "$1" | grep -v '^#' | awk '$2 !~ /^(fill|writeback|munmap|msync)$/' | wc -l; }
passed() { iotape info "$1" --json | jq -r '.meta.sample_passed_over // 0'; }

# ops RECORDER MODE [OPTION ...]: captures MODE as T.tape
ops() {
    recorder=$1 mode=$2
    shift 2
    rm -f data/*
    runs 0 iotape capture -r "$recorder" -f -o t.tape "$@" -- "$prog" "$mode" "$PWD/data/file"
    says ' 0 lost;' err
}
for recorder in $recorders; do
    for mode in sync libaio posixaio append forks threads; do
        ops $recorder $mode
        all=$(recorded t.tape)
        equal "$mode: a whole tape" null "$(iotape info t.tape --json | jq .meta.sample_one_in)"
        ops $recorder $mode --sample 3
        equal "$recorder $mode: recorded + passed over" "$all" $(($(recorded t.tape) + $(passed t.tape)))
    done
    # Threads are whole or not there, and some of 32 are either.
    iotape dump t.tape --file "$PWD/data/file" | awk '$2 == "read" {print $8}' | sort | uniq -c | awk '{print $1}' >reads
    equal "$recorder: reads of a thread" 200 "$(sort -u reads)"
    [ "$(wc -l <reads)" -ge 4 ] && [ "$(wc -l <reads)" -le 20 ] || fail "1 of 3 threads: $(wc -l <reads)"
done

# Who reads the tape is told.
says "a sample of one thread in 3, $(passed t.tape) passed over" err
equal steps 0:3 "$(iotape info t.tape --json | jq -r .meta.sample_steps)"
iotape info t.tape >info
says "^  sample +one thread in 3 was recorded; $(passed t.tape) ops of the others were passed over" info
iotape convert -q t.tape -o n.tape || fail convert
iotape replay n.tape --engine null --json replay.json >out 2>err || { cat err >&2; fail replay; }
says "n.tape is a sample: one thread in 3 was recorded, $(passed t.tape) operations" err
equal "replay's JSON" 3 "$(json replay.json .tape_sample.one_in)"
iotape compare n.tape t.tape >compare 2>err || { cat err >&2; fail compare; }
says "B is a sample: one thread in 3 was recorded" compare

# Too much: one in as many as may be, and when that is too much, the end. Any capture takes 10 us a second.
for recorder in $recorders; do
    runs 0 iotape capture -r $recorder -f -o t.tape --max-overhead 0.001 --overhead-action sample -- sh -c 'for i in 1 2 3 4 5 6 7; do echo x >>data/c; sleep 0.4; done'
    says 'more than --max-overhead 0.001: from 1\.[0-9] s on one thread in 1024 is recorded' err
    says 'recording has stopped: it took [0-9.]+% of a CPU, more than --max-overhead 0.001' err
    iotape info t.tape >info || fail "the tape is not good"
    says 'sample_steps +[0-9]{10}:1024' info
    # Between the two, no op is lost from the counts. On a busy machine the end may come first: again.
    runs 0 iotape capture -r $recorder -f -o whole.tape -- sh -c 'sleep 1.3; exec "$0" threads data/threads' "$prog"
    for try in 1 2 3 4 5; do
        rm -f data/*
        runs 0 iotape capture -r $recorder -f -o t.tape --max-overhead 0.001 --overhead-action sample -- sh -c 'sleep 1.3; exec "$0" threads data/threads' "$prog"
        grep -q 'recording has stopped' err || break
    done
    [ $try = 5 ] && continue
    [ "$(passed t.tape)" -gt 0 ] || fail "$recorder: nothing was passed over"
    equal "$recorder: sampled on the way" "$(recorded whole.tape)" $(($(recorded t.tape) + $(passed t.tape)))
done

# What cannot be sampled says so.
runs 2 iotape capture --overhead-action sample -o x.tape -- true
says 'goes with --max-overhead' err
runs 2 iotape capture --sample 0 -o x.tape -- true
iotape capture --list | grep -A1 '^block' | grep -q 'can run here' || exit 0
runs 2 iotape capture -r block --device /dev/null --sample 2 -o x.tape
says 'the block recorder does not sample' err
[ -e x.tape ] && fail "something was written"
exit 0
