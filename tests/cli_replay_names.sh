#!/bin/sh
# SPDX-License-Identifier: MIT
# Name-space calls are replayed, in order with the reads and writes of their files, whatever the
# engine and with several threads: a journal that is made, written, synced and removed again and
# again, and a file that is replaced by renaming.
. "$IOTAPE_SRC/tests/testlib.sh"
need jq

i=0
t=0
say() { echo "$((t * 10)),$1,$2,$3,$4,$5,$6" >>in.csv; t=$((t + 1)); }
rm -f in.csv
say mkdir /d '' 0 0 ''
say create /d/db '' 0 3 ''
while [ $i -lt 30 ]; do
    say create /d/journal '' 0 3 ''
    say write /d/journal 0 4096 4096 ''
    say fsync /d/journal '' 0 0 ''
    say write /d/db $((i * 4096)) 4096 4096 ''
    say unlink /d/journal '' 0 0 ''
    say create /d/new '' 0 3 ''
    say write /d/new 0 $((512 * (i + 1))) $((512 * (i + 1))) ''
    say rename /d/new '' 0 0 /d/current
    say read /d/current 0 $((512 * (i + 1))) $((512 * (i + 1))) ''
    i=$((i + 1))
done
say truncate /d/current '' 700 0 ''
runs 0 iotape convert -q --from csv --columns time:us,op,path,offset,length,result,file2 in.csv -o names.tape

for engine in sync io_uring libaio; do
    iotape replay --list-engines | sed -n "/^$engine /{n;p;}" | grep -q 'not here' && continue
    for shape in '--depth 1' '--depth 8' '--depth 4 --workers 3' '--depth 2 --processes 2' \
        '--depth 8 --pace recorded' '--depth 8 --order overlap'; do
        # At depth 8 without an order a read may overtake the write before it, as asked for.
        rm -rf root && mkdir root
        runs 0 iotape replay names.tape --engine $engine --root root --prepare --writes $shape --json -
        equal "$engine $shape" "273 273 0" "$(json out '"\(.ops) \(.ops_issued) \(.errors)"')"
        equal "$engine $shape: files" "current db" "$(ls root/d | tr '\n' ' ' | sed 's/ $//')"
        equal "$engine $shape: db" 122880 "$(stat -c %s root/d/db)"
        equal "$engine $shape: truncated" 700 "$(stat -c %s root/d/current)"
        case $shape in
        '--depth 1' | *overlap) equal "$engine $shape" 0 "$(json out .unexpected_results)" ;;
        esac
    done
    # A second time: --prepare makes the file set as it was, with leave to remove.
    runs 1 iotape replay names.tape --engine $engine --root root --prepare
    runs 0 iotape replay names.tape --engine $engine --root root --prepare --writes --json -
    equal "$engine again" "0 0" "$(json out '"\(.errors) \(.unexpected_results)"')"
done
# With one target for everything the names have no meaning.
head -c 1048576 /dev/zero >one
runs 0 iotape replay names.tape --engine sync --target one --writes --json -
equal "names skipped" 123 "$(json out .ops_skipped_by.name_space)"
# mkdir -p tries what is there: a folder that stood already, and the files in it, are made first.
rm -f in.csv
say mkdir /d '' 0 -17 ''
say read /d/db 0 8192 8192 ''
runs 0 iotape convert -q --from csv --columns time:us,op,path,offset,length,result,file2 in.csv -o there.tape
rm -rf root && mkdir root
runs 0 iotape replay there.tape --engine sync --root root --prepare --writes --json -
equal "what was there" "1 0 0" "$(json out '"\(.errors) \(.unexpected_results) \(.short_transfers)"')"
# Neither the root nor a folder that the tape calls a file like others is one.
rm -f in.csv
say open / '' 0 3 ''
say open /d/e '' 0 4 ''
say read /d/e/db 0 8192 8192 ''
say fsync /d/e '' 0 0 ''
say fsync / '' 0 0 ''
runs 0 iotape convert -q --from csv --columns time:us,op,path,offset,length,result,file2 in.csv -o folders.tape
rm -rf root && mkdir root
runs 0 iotape replay folders.tape --engine sync --root root --prepare --writes --json -
equal "folders" "0 0 5" "$(json out '"\(.errors) \(.unexpected_results) \(.ops_issued)"')"
# Without --writes nothing is made or removed.
rm -rf root && mkdir -p root/d
printf x >root/d/db
runs 1 iotape replay names.tape --engine sync --root root
# What cannot be reissued is skipped, each under its own name; what was done to mapped files is done by reads
# and writes of the pages, unless they are to be skipped.
cat >in.jsonl <<'END'
{"issue_ns":0,"op":"mmap","file":"/m","offset":0,"length":65536,"arg":3}
{"issue_ns":10000,"op":"fill","file":"/m","offset":0,"length":16384,"api":"mmap"}
{"issue_ns":20000,"op":"writeback","file":"/m","offset":4096,"length":8192,"api":"mmap"}
{"issue_ns":30000,"op":"msync","file":"/m","offset":0,"length":65536}
{"issue_ns":40000,"op":"munmap","file":"/m","offset":0,"length":65536}
{"issue_ns":50000,"op":"copy","file":"/m","offset":0,"length":4096,"file2":"/copy"}
{"issue_ns":60000,"op":"symlink","file":"/m","file2":"/link"}
{"issue_ns":70000,"op":"zone_reset","file":"/m","offset":0,"length":65536}
{"issue_ns":80000,"op":"passthrough","file":"/m"}
END
runs 0 iotape convert -q in.jsonl -o mapped.tape
for engine in sync io_uring mmap; do
    engine_available $engine || continue
    rm -rf root
    runs 0 iotape replay mapped.tape --engine $engine --root root --prepare --writes --json - --result r.tape --force
    says '2 page-cache fills and write-backs of mapped files are replayed' err
    equal "$engine: as reads and writes" "3 2 1 16384 1 8192 0" "$(json out '"\(.ops_issued) \(.mapped_ops) " +
        (.by_op | "\(.read.count) \(.read.bytes) \(.write.count) \(.write.bytes)") + " \(.errors)"')"
    equal "$engine: what is not" "2 1 1 1 1" "$(json out '.ops_skipped_by | "\(.mapping) \(.copy) \(.symlink) \(.zone) \(.passthrough)"')"
    # The recording and its replay are each other's, op for op.
    runs 0 iotape compare mapped.tape r.tape --json -
    equal "$engine: compared" "3 0" "$(json out '"\(.match.matched) \(.match.kind_differs // 0)"')"
    runs 0 iotape replay mapped.tape --engine $engine --root root --prepare --writes --mapped skip --json -
    equal "$engine: skipped" "1 0 4" "$(json out '"\(.ops_issued) \(.mapped_ops) \(.ops_skipped_by.mapping)"')"
done
# Without --writes the stores are skipped like any write.
runs 0 iotape replay mapped.tape --engine sync --root root --json -
equal "read only" "2 1 1" "$(json out '"\(.ops_issued) \(.mapped_ops) \(.ops_skipped_by.read_only)"')"
exit 0
