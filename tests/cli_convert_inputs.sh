#!/bin/sh
# SPDX-License-Identifier: MIT
# Compressed, packed, piped and several inputs.
. "$IOTAPE_SRC/tests/testlib.sh"
need jq gzip xz zstd bzip2 tar
csv=$IOTAPE_SRC/tests/samples/csv.in
runs 0 iotape-convert dump "$csv"
mv out want
# same NAME...: converts to the same ops
same() {
    runs 0 iotape-convert "$@" -o s.tape
    runs 0 iotape-convert dump s.tape
    cmp -s out want || { diff out want >&2; fail "$*: other ops"; }
}
gzip -c "$csv" >t.gz
xz -c "$csv" >t.xz
zstd -q -c "$csv" >t.zst
bzip2 -c "$csv" >t.bz2
for f in t.gz t.xz t.zst t.bz2; do
    same $f
    iotape-convert - -o p.tape -q <$f || fail "$f from standard input"
    iotape-convert dump p.tape | cmp -s - want || fail "$f from standard input: other ops"
done
# two gzip members are one file
{ head -n 4 "$csv" | gzip -c; tail -n +5 "$csv" | gzip -c; } >two.gz
same two.gz
# cut compressed data is an error with the file's name
head -c $(($(wc -c <t.gz) - 12)) t.gz >cut.gz
runs 1 iotape-convert cut.gz -o c.tape
says 'cut.gz: cannot be decompressed' err
ls | grep -q c.tape && fail "an output was left"

# members of a tar: one input each, compressed ones too; also from a pipe
mkdir -p d
printf 'time_ms,op,offset,length\n0,read,0,512\n10,read,512,512\n' >d/a.csv
printf 'time_ms,op,offset,length\n5,write,0,4096\n' | gzip -c >d/b.csv.gz
tar cf t.tar d
gzip -c t.tar >t.tar.gz
for f in t.tar t.tar.gz; do
    runs 0 iotape-convert $f -o m.tape --report-json r.json
    equal "$f inputs" 2 "$(json r.json '.inputs | length')"
    iotape-convert dump m.tape | awk 'NR > 1 { print $1, $2 }' >got
    printf '0.000000000 read\n0.005000000 write\n0.010000000 read\n' | cmp -s - got || { cat got >&2; fail "$f: other ops"; }
done
cat t.tar | iotape-convert - -o m2.tape -q || fail "a tar from a pipe"
cmp m.tape m2.tape || fail "a tar from a pipe gives another tape"

# several inputs: by time, shifted, aligned; of different formats: refused
iotape-convert d/a.csv d/b.csv.gz -o m3.tape -q || fail "two inputs"
iotape-convert dump m3.tape | awk 'NR > 1 { print $1, $2 }' | cmp -s - got || fail "two inputs: not by time"
iotape-convert d/a.csv d/b.csv.gz -o m4.tape -q --shift 2:2ms || fail "--shift"
equal shifted 0.007000000 "$(iotape-convert dump m4.tape --op write | awk 'NR == 2 { print $1 }')"
iotape-convert d/a.csv d/b.csv.gz -o m5.tape -q --align start || fail "--align"
equal aligned 0.000000000 "$(iotape-convert dump m5.tape --op write | awk 'NR == 2 { print $1 }')"
runs 1 iotape-convert d/a.csv m3.tape -o m6.tape
says 'is csv but m3.tape is tape' err
# tapes that know the wall clock meet by it
printf 'time_s,op,offset,length\n1000,read,0,512\n1002,read,0,512\n' >w1.csv
printf 'time_s,op,offset,length\n1001,write,0,512\n' >w2.csv
for n in 1 2; do runs 0 iotape-convert w$n.csv -o w$n.tape --epoch unix; done
equal wall 1000000000000 "$(iotape-convert info w1.tape --json | jq -r .meta.start_wall_ns)"
runs 0 iotape-convert w1.tape w2.tape -o w.tape
iotape-convert dump w.tape | awk 'NR > 1 { print $1, $2 }' >got
printf '0.000000000 read\n1.000000000 write\n2.000000000 read\n' | cmp -s - got || { cat got >&2; fail "tapes did not meet by their clocks"; }
equal "wall of the merge" 1000000000000 "$(iotape-convert info w.tape --json | jq -r .meta.start_wall_ns)"
runs 0 iotape-convert w1.tape -o later.tape --time 1s..
equal "wall after --time" 1002000000000 "$(iotape-convert info later.tape --json | jq -r .meta.start_wall_ns)"

# ops beyond the end of a device whose size is known: the unit is wrong, and that is said
runs 0 iotape-convert --from synth 'rw=read,size=1m,bs=4k,device,path=/dev/x' -o dev.tape -q
runs 0 iotape-convert dev.tape -o d2.tape
grep -q 'sector-size' out && fail "a size within is complained of"
printf 'time_s,op,file,offset,length\n0,read,/dev/x,1048576,512\n' >beyond.csv
runs 0 iotape-convert beyond.csv -o beyond.tape -q
runs 0 iotape-convert dev.tape beyond.tape -o d2.tape
says '/dev/x has 1048576 bytes, but ops reach byte 1049088: is --sector-size right' out

# tables of other shapes
printf 'R;8;16;1.5\nW;0;8;2.25\n' >t.txt
runs 0 iotape-convert t.txt -o x.tape --from csv --columns 'op,offset:sector,length:sector,time:ms'
iotape-convert dump x.tape | awk 'NR > 1 { print $1, $2, $4, $5 }' >got
printf '0.000000000 read 4096 8192\n0.000750000 write 0 4096\n' | cmp -s - got || { cat got >&2; fail "semicolons"; }
printf '0 100 4 1\n1 200 8 0\n' >t.txt
runs 0 iotape-convert t.txt -o x.tape --from csv:read=0,write=1 --columns 'op,offset:4k,length:sector,time' --time-unit us
iotape-convert dump x.tape | awk 'NR > 1 { print $1, $2, $4, $5 }' >got
printf '0.000000000 write 819200 4096\n0.000001000 read 409600 2048\n' | cmp -s - got || { cat got >&2; fail "blanks"; }
# 18 digits, every one of them
printf 'Timestamp,Type,Offset,Size\n128166372003061629,Read,0,512\n128166372003061630,Write,0,512\n' >t.txt
runs 0 iotape-convert t.txt -o x.tape --from csv --epoch windows
equal "100 ns" 0.000000100 "$(iotape-convert dump x.tape | awk 'NR == 3 { print $1 }')"
equal "1601 to 1970" 1172163600306162900 "$(iotape-convert info x.tape --json | jq -r .meta.start_wall_ns)"
# a line far longer than any buffer
{ printf 'time_s,op,offset,length,-\n0,read,0,512,'; head -c 3000000 /dev/zero | tr '\0' x; printf '\n1,read,0,512,y\n'; } >long.csv
runs 0 iotape-convert long.csv -o x.tape
says '2 ops found' out

# numbers of every length at every place of a row, blanks around some; a byte that is no digit is found in each
awk 'BEGIN {print "time,op,offset,length"; for (n = 1; n <= 18; n++) for (pad = 0; pad < 8; pad++) printf "%s%d,read,%s,%s%d\n", substr("          ", 1, pad), n * 8 + pad, substr("987654321012345678", 1, n), pad % 3 ? "" : "\t", n}' >long.csv
runs 0 iotape-convert long.csv -o long.tape -q
awk -F, 'NR > 1 {gsub(/[ \t]/, ""); print $3, $4}' long.csv >want
iotape-convert long.tape --to csv -o - -q | awk -F, 'NR > 1 {print $4, $5}' >got
cmp -s want got || fail "numbers changed on their way: $(diff want got | head -3)"
for at in 1 2 5 7 8 9 10 12 15 16 17 18; do
    echo 987654321012345678 | sed "s/./x/$at" | awk '{print "time,op,offset,length\n1,read," $0 ",512"}' >bad.csv
    runs 1 iotape-convert bad.csv -o bad.tape -q
    says "bad.csv:2:8: " err
done

# Tables put behind one another bring their headers along, and a mark at the start is no part of the first name.
printf '\357\273\277time_us,op,offset,length\n1,read,0,4096\n' >h1.csv
printf 'time_us,op,offset,length\n5,write,4096,4096\n' >h2.csv
cat h1.csv h2.csv >h.csv
runs 0 iotape convert h.csv -o h.tape
equal "headers" "2 4000" "$(iotape convert h.tape --to jsonl -o - -q | jq -s -r '"\(length) \(.[1].issue_ns)"')"

# a table that cannot be read by itself is a bad input; asked for with columns that lack the op, a wrong use
printf 'time,offset,length\n1,0,512\n' >noop.csv
runs 1 iotape-convert noop.csv -o noop.tape
says 'noop.csv: no column says what the op is' err
runs 2 iotape-convert noop.csv --columns time,offset,length -o noop.tape
[ ! -e noop.tape ] || fail "an output was left"

# what the kernel prints of requests without a place, and names that are not there
cat >bio.txt <<'END'
TIME(s)        COMM           PID    DISK    T  SECTOR    BYTES   LAT(ms)
0.000000000    ?              0              R  -1        8          1.09
1.000000000    ?              0      sda     W  -1        0          1.09
3.094404000    Browser Block  2465   sda     W  148372480 143360     1.72
END
runs 0 iotape-convert bio.txt -o bio.tape
says '1 request that moves nothing' out
equal "biosnoop" 'flush "sda" - 0 write "sda" 75966709760 143360' \
    "$(iotape-convert dump bio.tape | awk '!/^#/ { printf "%s%s %s %s %s", n++ ? " " : "", $2, $3, $4, $5 }')"

# what iosnoop says when it is ended; event lines in the comments of a trace are no events
cat >ios.txt <<'END'
Tracing block I/O. Ctrl-C to end.
COMM         PID    TYPE DEV      BLOCK        BYTES     LATms
cp           8893   W    8,0      1000         4096      2.50
^C
Ending tracing...
END
runs 0 iotape-convert ios.txt -o ios.tape
says '1 ops found' out
says '2 line of the end of tracing' out
cat >commented.txt <<'END'
# tracer: nop
#             dd-7     [000] ....  1.000000: block_rq_issue: 8,0 W 4096 () 8 + 8 [dd]
              dd-7     [000] ....  2.000000: block_rq_issue: 8,0 W 4096 () 16 + 8 [dd]
          <idle>-0     [000] ....  2.000100: block_rq_complete: 8,0 W () 16 + 8 [0]
END
runs 0 iotape-convert commented.txt -o commented.tape
says '1 ops found' out

# perf trace: milliseconds in front, COMM/TID
cat >perf.txt <<'END'
     0.000 jbd2/sda1/174 block:block_rq_issue:8,0 WS 61440 () 2048 + 120 [jbd2/sda1]
     0.700 (         ): my prog/12 block:block_rq_issue:8,0 R 4096 () 8 + 8 [my prog]
     1.436 swapper/0/0 block:block_rq_complete:8,0 WS () 2048 + 120 [0]
     2.000 (         ): swapper/0/0 block:block_rq_complete:8,0 R () 8 + 8 [0]
END
runs 0 iotape-convert perf.txt -o perf.tape
equal "perf trace" '0 write 1048576 61440 174 jbd2/sda1 1436000 700000 read 4096 4096 12 my prog 1300000' \
    "$(iotape-convert perf.tape --to jsonl -o - -q | jq -r '"\(.issue_ns) \(.op) \(.offset) \(.length) \(.tid) \(.comm) \(.latency_ns)"' | xargs)"

# barriers of old kernels, and what else old blkparses print
cat >old.txt <<'END'
  8,16   1        1     0.000007500 17689  Q  WBS 8540 + 8 [my prog x]
  8,16   1        2     0.000017500 17689  T   N [swapper] 1
  8,16   1        3     0.000107500     0  C  WBS 8540 + 8 [0]
END
runs 0 iotape-convert old.txt -o old.tape
equal "blkparse" 'write 4372480 4096 0.000100000 sync|fua|preflush' \
    "$(iotape-convert dump old.tape | awk '!/^#/ { print $2, $4, $5, $7, $NF }')"
exit 0
