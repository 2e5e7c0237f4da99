#!/bin/sh
# SPDX-License-Identifier: MIT
# Filters and transforms of convert: which ops stay, and what becomes of them.
. "$IOTAPE_SRC/tests/testlib.sh"
need jq awk
C=iotape-convert
synth() { runs 0 $C --from synth "$1" -o "$2" -q; }
ops() { $C info "$1" --json | jq -r .ops; }
# columns FILE 'N,N': of the dump
columns() { $C dump "$1" | awk -v c="$2" 'BEGIN { n = split(c, k, ",") } NR > 1 { l = $k[1]; for (i = 2; i <= n; i++) l = l " " $k[i]; print l }'; }

synth 'rw=randrw,bs=4k,size=16m,ops=2000,rate=1000,files=4,streams=2,processes,opens,fsync=100,path=/data/db/f' t.tape
total=$(ops t.tape)

# filters keep exactly what they say
runs 0 $C t.tape -o r.tape -q --op read,fsync
columns r.tape 2 | sort | uniq -c | awk '{ print $2 }' | tr '\n' ' ' >kinds
equal kinds "fsync read " "$(cat kinds)"
runs 0 $C t.tape -o n.tape -q --op write,open,close
equal "a filter and its opposite" "$total" $(($(ops r.tape) + $(ops n.tape)))
runs 0 $C t.tape -o r.tape -q --time 500ms..1s
equal "ops of half a second" 500 "$($C info r.tape --json | jq '.by_op.read.count + .by_op.write.count')"
equal "time 0 is its first" 0.000000000 "$(columns r.tape 1 | head -n 1)"
equal "duration" 499000000 "$($C info r.tape --json | jq .duration_ns)"
runs 0 $C t.tape -o r.tape -q --file '*/f.2'
equal files 1 "$($C info r.tape --json | jq .files)"
runs 0 $C t.tape -o r.tape -q --file '*.1' --file '*.3'
equal files 2 "$($C info r.tape --json | jq .files)"
runs 0 $C t.tape -o r.tape -q --stream 1001
equal stream '1001/1001"synth"' "$(columns r.tape 8 | sort -u)"
runs 0 $C t.tape -o r.tape -q --range 0..64k --op read,write
columns r.tape 4 | awk '$1 >= 65536 { exit 1 }' || fail "--range kept an op outside"
want=$(columns t.tape 2,4 | awk '($1 == "read" || $1 == "write") && $2 < 65536' | wc -l)
equal "--range" "$want" "$(ops r.tape)"
runs 0 $C t.tape -o r.tape -q --head 10
columns t.tape 1,2,4 | head -n 10 >want
columns r.tape 1,2,4 | cmp -s - want || fail "--head"
runs 0 $C t.tape -o a.tape -q --sample 25
runs 0 $C t.tape -o b.tape -q --sample 25
cmp a.tape b.tape || fail "--sample is not the same twice"
[ "$(ops a.tape)" -gt $((total * 18 / 100)) ] && [ "$(ops a.tape)" -lt $((total * 32 / 100)) ] || fail "--sample 25 kept $(ops a.tape) of $total"
runs 0 $C t.tape -o b.tape -q --sample 25 --sample-seed 2
cmp -s a.tape b.tape && fail "another seed, the same sample"
runs 0 $C t.tape -o a.tape -q --sample 50 --sample-by file --sample-seed 1
for f in $(columns a.tape 3 | sort -u); do
    equal "$f is whole" "$(columns t.tape 3 | grep -cF "$f")" "$(columns a.tape 3 | grep -cF "$f")"
done
# what filters leave of nothing is an empty tape, not an error
runs 0 $C t.tape -o e.tape --op discard
says "$total ops left out" out
equal "empty" 0 "$(ops e.tape)"

# times
runs 0 $C t.tape -o r.tape -q --speed 4
equal "--speed" "$(($($C info t.tape --json | jq .duration_ns) / 4))" "$($C info r.tape --json | jq .duration_ns)"
runs 0 $C t.tape -o r.tape -q --clamp-gaps 100us
equal "--clamp-gaps" $((1999 * 100000)) "$($C info r.tape --json | jq .duration_ns)"

# names
runs 0 $C t.tape -o r.tape -q --map /data=/mnt/copy --map /data/db/f.3=/other
columns r.tape 3 | sort -u >got
printf '"/mnt/copy/db/f.0"\n"/mnt/copy/db/f.1"\n"/mnt/copy/db/f.2"\n"/other"\n' | cmp -s - got || { cat got >&2; fail "--map"; }
runs 1 $C t.tape -o r2.tape --map /data/db/f.1=/x --map /data/db/f.2=/x
says 'two files would be named /x' err
runs 0 $C t.tape -o a.tape -q --anonymise
runs 0 $C t.tape -o b.tape -q --anonymise
columns a.tape 3 | sort -u >names
[ "$(grep -cE '^"/[0-9a-f]{16}/[0-9a-f]{16}/[0-9a-f]{16}\.[0-3]"$' names)" = 4 ] || { cat names >&2; fail "--anonymise: names"; }
equal "one folder stays one" 1 "$(cut -d/ -f2,3 names | sort -u | wc -l)"
columns b.tape 3 | sort -u | cmp -s - names && fail "--anonymise: the same key twice"
grep -aq /data a.tape && fail "--anonymise left a name"
columns t.tape 1,2,4,5 >want
columns a.tape 1,2,4,5 | cmp -s - want || fail "--anonymise changed more than names"
runs 0 $C t.tape -o a.tape -q --strip
columns a.tape 8 | grep -q synth && fail "--strip left a command"
equal "--strip: command line" null "$($C info a.tape --json | jq .meta.command)"

# offsets
cat >wide.csv <<'END'
time_ms,op,file,offset,length
0,read,/dev/a,0,4096
1,read,/dev/a,1099511627776,4096
2,write,/dev/a,1099511631872,8192
3,discard,/dev/a,0,2199023255552
4,read,/dev/a,2199019061248,4096
END
runs 0 $C wide.csv -o w.tape -q --fit wrap --fit-size 1g
columns w.tape 4,5 | awk '$1 + $2 > 1073741824 { exit 1 }' || fail "wrap: beyond the end"
equal "wrap: kept whole" 5 "$(ops w.tape)"
runs 0 $C wide.csv -o w.tape -q --fit scale --fit-size 1g
columns w.tape 4,5 >got
awk '$1 + $2 > 1073741824 || $1 % 4096 { exit 1 }' got || { cat got >&2; fail "scale: beyond the end, or unaligned"; }
equal "scale: the middle" 536870912 "$(sed -n '2s/ .*//p' got)"
runs 0 $C wide.csv -o w.tape --fit pack --fit-grain 64k
says 'packed +the largest file takes 192' out
columns w.tape 4,5 >got
printf '0 4096\n65536 4096\n69632 8192\n0 196608\n' >want
head -n 4 got | cmp -s - want || { cat got >&2; fail "pack: neighbours did not stay neighbours"; }
runs 1 $C wide.csv -o w2.tape --fit pack --fit-grain 64k --fit-size 128k
says 'takes 192' err
[ ! -e w2.tape ] || fail "pack: an output was left"

# split: the parts are the whole
runs 0 $C t.tape -o s.tape --split file
sum=0
for f in s.*.tape; do sum=$((sum + $(ops $f))); equal "$f: files" 1 "$($C info $f --json | jq .files)"; done
equal "split by file" "$total" $sum
equal "outputs" 4 "$(ls s.*.tape | wc -l)"
rm s.*.tape
runs 0 $C t.tape -o s.tape -q --split stream
equal "outputs" 2 "$(ls s.*.tape | wc -l)"
rm s.*.tape
runs 0 $C t.tape -o s.tape -q --split time:500ms
equal "outputs" 4 "$(ls s.*.tape | wc -l)"
sum=0
for f in s.*.tape; do sum=$((sum + $(ops $f))); done
equal "split by time" "$total" $sum
equal "split_start_ns" 1000000000 "$($C info s.002.tape --json | jq -r .meta.split_start_ns)"
runs 0 $C s.00*.tape -o joined.tape -q --shift 2:500ms --shift 3:1s --shift 4:1500ms
columns t.tape 1,2,3,4,5 >want
columns joined.tape 1,2,3,4,5 | cmp -s - want || fail "parts joined again are not the whole"
synth 'rw=read,size=4k,bs=4k,files=100' many.tape
runs 1 $C many.tape -o p.tape --split file
says 'more than 64 outputs' err
ls | grep -q '^p\.' && fail "outputs were left: $(ls)"
exit 0
