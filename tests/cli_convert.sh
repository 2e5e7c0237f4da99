#!/bin/sh
# SPDX-License-Identifier: MIT
# convert as a program: formats chosen, errors in one line, outputs whole or absent.
. "$IOTAPE_SRC/tests/testlib.sh"
need jq
csv=$IOTAPE_SRC/tests/samples/csv.in
out_of() { sed -n '$p' "$1"; }

# usage is 2, bad input is 1; neither leaves anything
runs 2 iotape-convert
says 'no input given' err
runs 2 iotape-convert "$csv"
says 'say -o OUT' err
runs 2 iotape-convert "$csv" -o t.tape --from nonsense
says "no format 'nonsense'" err
runs 2 iotape-convert "$csv" -o t.tape --to nonsense
says "no format 'nonsense'" err
runs 2 iotape-convert "$csv" -o t.tape --from csv:nonsense=1
says nonsense err
runs 2 iotape-convert "$csv" -o t.tape --to tape:level=10
runs 2 iotape-convert "$csv" -o t.tape --time 5..1
runs 2 iotape-convert "$csv" -o t.tape --op nonsense
says "'nonsense' is not an op" err
runs 2 iotape-convert "$csv" -o t.tape --speed 0
runs 2 iotape-convert "$csv" -o t.tape --map nothing
runs 2 iotape-convert "$csv" -o t.tape --fit wrap
runs 2 iotape-convert "$csv" -o - --split file
runs 2 iotape-convert "$csv" -o t.tape --columns 'time,nonsense'
says "'nonsense' is not a column" err
runs 1 iotape-convert nowhere -o t.tape
says 'nowhere: No such file' err
runs 1 iotape-convert "$IOTAPE_SRC/tests" -o t.tape
says 'directory' err
printf 'hello\nworld\n' >plain
runs 1 iotape-convert plain -o t.tape
says 'plain: not in a format' err
[ "$(wc -l <err)" = 1 ] || fail "more than one line on stderr"
ls | grep -q t.tape && fail "an output was left: $(ls)"

# every format is in the man page
iotape-convert --list-formats | while read -r way name rest; do
    grep -q "^\.B $name\$" "$IOTAPE_SRC/convert/iotape-convert.1" || fail "the man page does not name the format $name"
done || exit 1

# an ambiguous table names both formats
printf '1538323200,1,8,0,1063\n' >five
runs 1 iotape-convert five -o t.tape --from csv
says 'five:1:1: no header' err

# the line, the column, and --skip-bad
cat >bad.csv <<'END'
time_ms,op,offset,length
0,read,0,4096
1,read,x,4096
2,frobnicate,0,4096
3,write,8192,512
END
runs 1 iotape-convert bad.csv -o t.tape
says "bad.csv:3:8: 'x' is not a number" err
runs 1 iotape-convert bad.csv -o t.tape --skip-bad 1
says "bad.csv:4:3: 'frobnicate'" err
[ ! -e t.tape ] || fail "half an output"
runs 0 iotape-convert bad.csv -o t.tape --skip-bad 2
says '2 could not be parsed, first: bad.csv:3:8' out
runs 0 iotape-convert info t.tape --json
equal ops 2 "$(json out .ops)"
equal duration 3000000 "$(json out .duration_ns)"

# an input is never the output; an output is replaced only when whole
runs 0 iotape-convert "$csv" -o t.tape -q
[ ! -s out ] && [ ! -s err ] || fail "-q prints"
runs 1 iotape-convert t.tape -o t.tape
says 'is an input too' err
ln t.tape hard.tape
runs 1 iotape-convert t.tape -o hard.tape
cp t.tape kept
runs 1 iotape-convert bad.csv -o t.tape
cmp t.tape kept || fail "a failed conversion changed the output"
equal mode 600 "$(stat -c %a t.tape)"
runs 1 iotape-convert "$csv" -o nowhere/t.tape
says nowhere err

# the report: on stdout, on stderr when the output is there, and as JSON
runs 0 iotape-convert "$csv" -o - --to csv
says '^issue_ns,op,file' out
says '5 ops found, 5 written' err
says '1 times back' err
runs 0 iotape-convert "$csv" -o t.tape --report-json report.json
equal ops_out 5 "$(json report.json .ops_out)"
equal read 4096 "$(json report.json .by_op.read.bytes)"
equal from csv "$(json report.json .from)"
runs 0 iotape-convert "$csv" -o t.tape --report-json -
equal to tape "$(json out .to)"
runs 2 iotape-convert "$csv" -o - --report-json -

# by suffix, by --to; a time far out is said
runs 0 iotape-convert "$csv" -o t.jsonl
says '^\{"issue_ns":0,"op":"write"' t.jsonl
runs 0 iotape-convert "$csv" -o t.csv
says '^issue_ns' t.csv
printf 'time_s,op,offset,length\n0,read,0,512\n1,read,512,512\n1262304000,read,1024,512\n' >far.csv
runs 0 iotape-convert far.csv -o t.tape
says 'most of the duration is this gap; --clamp-gaps' out
runs 0 iotape-convert far.csv -o t.tape --clamp-gaps 2s
says '1 gaps shortened' out
runs 0 iotape-convert info t.tape --json
equal clamped 3000000000 "$(json out .duration_ns)"

# interrupted: nothing left
iotape-convert --from synth 'rw=randwrite,size=100g,ops=1g' -o t2.tape >out 2>err &
sleep 1
kill -TERM $!
wait $!
equal "interrupted exit" 1 $?
says 'interrupted' err
ls -A | grep -q t2 && fail "an interrupted conversion left $(ls -A | grep t2)"
# A lost terminal is an interrupt; under nohup it is not.
iotape-convert --from synth 'rw=randwrite,size=100g,ops=1g' -o t2.tape >out 2>err &
sleep 1
kill -HUP $!
wait $!
equal "hung up exit" 1 $?
says 'interrupted' err
ls -A | grep -q t2 && fail "a conversion that lost its terminal left $(ls -A | grep t2)"
(trap '' HUP; exec iotape-convert --from synth 'rw=randwrite,size=100g,ops=1g' -o t2.tape >out 2>err) &
sleep 1
kill -HUP $!
sleep 0.3
kill -TERM $! || fail "an ignored SIGHUP ended it"
wait $!

# ulimit -f is a full disk: an error, nothing left.
(ulimit -f 4; iotape-convert --from synth 'rw=randwrite,size=1g,ops=200k' -o t2.csv >out 2>err)
equal "file size limit exit" 1 $?
says 'too large' err
ls -A | grep -q t2 && fail "a conversion at its file size limit left $(ls -A | grep t2)"
exit 0
