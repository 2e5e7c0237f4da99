#!/bin/sh
# SPDX-License-Identifier: MIT
# The exporters of block formats and fio's log: what each keeps comes back equal, what it cannot hold is
# counted, and blkparse, btt, btrecord and fio read the files and agree on the counts.
. "$IOTAPE_SRC/tests/testlib.sh"
need jq

# 400 ops on two devices: reads, writes with flags, discards, flushes, an error, one without an end
awk 'BEGIN {
    print "issue_ns,op,file,offset,length,result,latency_ns,pid,comm,flags"
    split("preflush|fua sync meta readahead", flag, " ")
    for (i = 0; i < 400; i++) {
        op = i % 7 == 3 ? "discard" : i % 11 == 5 ? "flush" : i % 2 ? "write" : "read"
        f = op == "write" && i % 3 == 0 ? flag[1 + i % 4] : ""
        off = op == "flush" ? "" : (i * 7919 % 10007) * 4096
        len = op == "flush" ? 0 : op == "discard" ? 1048576 : 4096 * (1 + i % 5)
        res = i == 100 ? -5 : op == "flush" ? 0 : len
        lat = i == 200 ? "" : 1000 + i * 13 % 90000
        if (i == 200) res = ""
        printf "%d,%s,\"%s\",%s,%d,%s,%s,%d,p%d,%s\n", i * 10000 + i % 900, op, i % 5 ? "8,0" : "8,16", off, len, res, lat, 100 + i % 3, i % 3, f
    }
}' >ops.csv
runs 0 iotape-convert ops.csv -o ops.tape
runs 0 iotape-convert info ops.tape --json
mv out info.json
reads=$(json info.json .by_op.read.count) writes=$(json info.json .by_op.write.count)
trims=$(json info.json .by_op.discard.count) flushes=$(json info.json .by_op.flush.count)
# bytes asked for; info counts what moved
bytes() { awk -F'"' -v op="$1" '$1 ~ "," op ",$" { split($3, f, ","); sum += f[3] } END { print sum }' ops.csv; }

# dump_of TAPE FIELD...: the columns asked for, of a dump
dump_of() {
    _tape=$1; shift
    iotape-convert dump "$_tape" | grep -v '^#' | sed 's/"\([0-9,]*\)"/\1/' | awk -v want="$*" '
        BEGIN { n = split(want, w, " ") } { for (i = 1; i <= n; i++) printf "%s ", $w[i]; print "" }'
}

# blktrace and its text: all but the api, which is "block" there
runs 0 iotape-convert ops.tape -o x.blktrace.0
runs 0 iotape-convert x.blktrace.0 -o back.tape
dump_of ops.tape 1 2 3 4 5 6 7 8 10 >want
dump_of back.tape 1 2 3 4 5 6 7 8 10 >got
sed -i 's/ unknown / /' want; sed -i 's/ block / /' got
awk '{ $8 = ""; print }' want >want8; awk '{ $8 = ""; print }' got >got8
diff want8 got8 >difference || { head -8 difference >&2; fail "blktrace: fields differ"; }
runs 0 iotape-convert ops.tape -o x.blkparse
runs 0 iotape-convert x.blkparse -o text.tape
iotape-convert dump back.tape >a; iotape-convert dump text.tape >b
cmp -s a b || { diff a b | head -8 >&2; fail "blkparse text: not what blktrace gives"; }
runs 0 iotape-convert ops.tape -o q.blktrace.0 --to blktrace:issue=0
equal "no D events" 0 "$(iotape-convert q.blktrace.0 -o q.tape | grep -c 'issue event')"

# fio's log: microseconds, no latencies
for version in 2 3; do
    rm -f log.tape
    runs 0 iotape-convert ops.tape -o "v$version.iolog" --to "fioiolog:version=$version"
    says '400 latency|399 latency' out
    says '[0-9]+ flush, written as sync' out
    runs 0 iotape-convert "v$version.iolog" -o log.tape
    dump_of ops.tape 2 3 4 5 | sed 's/^flush \([^ ]*\) .*/fsync \1 - 0 /' >want
    dump_of log.tape 2 3 4 5 >got
    diff want got >difference || { head -8 difference >&2; fail "iolog $version: ops differ"; }
    dump_of ops.tape 1 | awk '{ printf "%.6f\n", $1 }' >want
    dump_of log.tape 1 | awk '{ printf "%.6f\n", $1 }' >got
    cmp -s want got || fail "iolog $version: times are not the nearest microsecond"
done

# MSR: ticks of 100 ns, reads and writes; btreplay: one device, ns
runs 0 iotape-convert ops.tape -o x.msr
says "$trims discard" out
says "$flushes flush" out
runs 0 iotape-convert x.msr -o msr.tape
dump_of ops.tape 2 4 5 | grep -E '^(read|write)' >want
dump_of msr.tape 2 4 5 >got
cmp -s want got || fail "msr: ops differ"
runs 0 iotape-convert ops.tape -o x.replay.0
says 'op of another device' out
runs 0 iotape-convert x.replay.0 -o bunches.tape
dump_of ops.tape 1 2 3 4 5 | grep -E '^[0-9.]+ (read|write) 8,16 ' | cut -d' ' -f2,4,5 >want
dump_of bunches.tape 2 4 5 | sed 's/ $//' >got
cmp -s want got || { diff want got | head -8 >&2; fail "btreplay: ops differ"; }

# the peers
if command -v blkparse >/dev/null; then
    blkparse -i x >parsed 2>/dev/null || fail "blkparse"
    # one read of the 400 ops never ended
    equal "blkparse: completed reads" "$((reads - 1))" "$(awk '$6 == "C" && $7 ~ /^R/' parsed | wc -l)"
    equal "blkparse: completed writes" "$((writes + trims))" "$(awk '$6 == "C" && $7 ~ /^F?[WD]/' parsed | wc -l)"
    equal "blkparse: completed flushes" "$flushes" "$(awk '$6 == "C" && $7 == "FN"' parsed | wc -l)"
    equal "blkparse: Q events" 400 "$(awk '$6 == "Q"' parsed | wc -l)"
    equal "blkparse: names" "p0 p1 p2" "$(sed -n 's/.* Q .*\[\(.*\)\]/\1/p' parsed | sort -u | tr '\n' ' ' | sed 's/ $//')"
    blkparse -i x -d merged -O >/dev/null 2>&1 || fail "blkparse -d"
    rm -f merged.tape
    runs 0 iotape-convert merged -o merged.tape
    iotape-convert dump merged.tape >c
    equal "a dump of our file" "$(awk '{print $2,$3,$4,$5}' a | sort | md5sum)" "$(awk '{print $2,$3,$4,$5}' c | sort | md5sum)"
    if command -v btt >/dev/null; then
        btt -i merged >btt.out 2>&1 || fail "btt"
        # btt leaves requests without data out, and the one that never ended
        says "^Q2C .* $((400 - flushes - 1)) *$" btt.out
    fi
fi
if command -v btrecord >/dev/null; then
    mkdir -p record && btrecord -D record -d . x >/dev/null 2>&1 || fail "btrecord"
    rm -f record.tape
    runs 0 iotape-convert record/x.replay.0 -o record.tape
    runs 0 iotape-convert info record.tape --json
    # btrecord knows neither discards nor flushes: it takes both for writes
    equal "btrecord reads and writes" "$reads $((writes + trims + flushes))" "$(json out '[.by_op.read.count, .by_op.write.count] | map(tostring) | join(" ")')"
fi
if command -v iowatcher >/dev/null; then
    # it draws reads and writes of the device, each a point at its time
    iowatcher -t x.blktrace.0 -o watch.svg >/dev/null 2>&1 || fail "iowatcher"
    says '</svg>' watch.svg
    says 'Device IO' watch.svg
    [ "$(grep -c '<rect\|<circle\|<path' watch.svg)" -gt 20 ] || fail "iowatcher drew nothing"
fi
if command -v fio >/dev/null; then
    grep -v ' trim ' v3.iolog >fio.iolog
    fio --name=x --read_iolog=fio.iolog --ioengine=null --replay_no_stall=1 --output-format=json --output=fio.json >/dev/null 2>&1 ||
        fail "fio --read_iolog"
    equal "fio: reads and writes" "$reads $(bytes read) $writes $(bytes write)" \
        "$(json fio.json '.jobs[0] | [.read.total_ios, .read.io_bytes, .write.total_ios, .write.io_bytes] | map(tostring) | join(" ")')"
fi

# a name with blanks, an op of no length: counted, never written
printf 'issue_ns,op,file,offset,length\n0,read,/a b,0,512\n10,read,/c,0,0\n20,read,/c,512,512\n' >odd.csv
runs 0 iotape-convert odd.csv -o odd.iolog
says '1 op on a file with blanks in its name' out
says '1 op of 0 bytes' out
equal "lines of ops" 1 "$(grep -c ' read ' odd.iolog)"
