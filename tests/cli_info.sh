#!/bin/sh
# SPDX-License-Identifier: MIT
# Bytes are those that moved: what a call returned, where that is known.
# info: its figures against ops whose every figure is known.
. "$IOTAPE_SRC/tests/testlib.sh"
need jq
C=iotape-convert
cat >t.csv <<'END'
issue_ns,op,file,offset,length,result,latency_ns,pid,batch,flags,arg
-5000,open,/a,,0,3,,1,,,66
0,read,/a,0,4096,4096,1000,1,7,direct,
0,read,/a,4096,4096,4096,3000,1,7,direct,
500,write,/b,1048576,8192,-28,2000,2,,,
2000000500,read,/a,8192,4096,100,1000,1,,,
2000001500,write,/b,1056768,4096,4096,500,2,,preflush,
2000002000,fsync,/b,,0,0,9000,2,,,
2000002500,discard,/b,0,65536,,,2,,,
2000002600,flush,/c,,0,,,,,,
2000009000,close,/a,,0,0,,1,,,
END
runs 0 $C t.csv -o t.tape -q
cat >want <<'END'
.ops 10
.by_op.read.count 3
.by_op.read.bytes 8292
.by_op.write.count 2
.by_op.write.bytes 4096
.by_op.fsync.count 1
.by_op.discard.bytes 65536
.by_op.flush.count 1
.by_op.open.bytes 0
.by_op.fdatasync.count 0
.duration_ns 2000002600
.min_offset 0
.max_end 1060864
.files 3
.streams 2
.lost 0
.normalised true
.truncated false
.damage.blocks 0
.errors 1
.short_transfers 1
.direct 2
.sequential_reads 2
.sequential_writes 1
.working_set_bytes.read 12288
.working_set_bytes.write 12288
.working_set_bytes.touched 24576
.working_set_bytes.exact true
.depth.max 3
.latency_ns.read.count 3
.latency_ns.read.max 3000
.latency_ns.sync.p50 9000
.latency_unknown 2
.largest_gap_ns 2000000000
.largest_gap_at_ns 500
.gaps_above_1s 1
.batches 1
.largest_batch 2
.hot_files[0].path /a
.hot_files[0].ops 5
END
keys=$(cut -d' ' -f1 want | paste -sd,)
for way in t.tape t.csv; do
    runs 0 $C info $way --json
    jq -r "$keys" out | paste -d' ' - want | awk '$1 != $3 { print $2 ": " $1 ", expected " $3; bad = 1 } END { exit bad }' >differ ||
        fail "$way: $(cat differ)"
done
equal format csv "$(json out .format)"
runs 0 $C info t.tape
says '10 ops in 2\.00 s' out
says 'read +3 +30\.0%' out
# headers alone say the same counts
same_quick() {
    runs 0 $C info "$1" --json
    jq -c '[.ops, .by_op, .duration_ns, .min_offset, .max_end, .files, .streams]' out >full
    mv out full.json
    runs 0 $C info "$1" --json --quick
    jq -c '[.ops, .by_op, .duration_ns, .min_offset, .max_end, .files, .streams]' out | cmp -s - full ||
        fail "$1 --quick: $(jq -c '[.ops, .by_op, .duration_ns]' out), not $(cat full)"
}
same_quick t.tape
equal "--quick leaves out" null "$(json out .depth)"
# many ops: still the same counts, and the working set within 2 percent of 102,400 blocks
runs 0 $C --from synth 'rw=randread,random=once,size=400m,bs=4k,rate=100000' -o big.tape -q
same_quick big.tape
equal exact false "$(json full.json .working_set_bytes.exact)"
set=$(json full.json .working_set_bytes.read)
[ $set -gt 411041792 ] && [ $set -lt 427819008 ] || fail "working set $set, expected about 419430400"
# damage is said, with what it cost
size=$(stat -c %s big.tape)
head -c $((size / 2)) big.tape >cut.tape
runs 0 $C info cut.tape --json
equal truncated true "$(json out .truncated)"
# no tape at all
runs 1 $C info nowhere
runs 2 $C info
runs 2 $C info t.tape --nonsense
: >empty
runs 1 $C info empty
says 'empty' err
# nothing in a tape steers the terminal: not its paths, not its metadata
printf '{"issue_ns":0,"op":"read","file":"/a\\u001b[2J\\n\\u009b31m","offset":0,"length":512}\n' >steer.jsonl
runs 0 $C --from jsonl steer.jsonl -o steer.tape -q
runs 0 $C info steer.tape
says '/a\?\[2J\?\?31m: 1 ops' out
tr -d '\n' <out | LC_ALL=C grep -q '[[:cntrl:]]' && fail "info printed a control character"
runs 0 $C dump steer.tape
says '/a\\033\[2J\\n\\302\\23331m' out
exit 0
