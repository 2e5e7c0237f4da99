#!/bin/sh
# SPDX-License-Identifier: MIT
# sqlite3 watched by strace and by the bpf recorder in the same run: per file and op equal counts,
# bytes and offsets.
. "$IOTAPE_SRC/tests/testlib.sh"
need sqlite3 strace
iotape capture --list | grep -A1 '^bpf' | grep -q 'can run here' || skip "the bpf recorder cannot run here"
{
    echo "create table t(a integer primary key, b text);"
    echo "begin; with recursive n(i) as (select 1 union all select i + 1 from n where i < 2000)"
    echo "insert into t select i, hex(randomblob(100)) from n; commit;"
    for i in 1 2 3 4 5 6 7 8 9 10; do echo "insert into t(b) values('x$i'); select count(*) from t where a > $i;"; done
} >sql
runs 0 iotape capture --recorder bpf -o bpf.tape -- sh -c 'exec strace -f -ttt -T -y -o strace.txt sqlite3 t.db <sql'
says '^2000$' out
iotape convert strace.txt -o strace.tape >log || { cat log; fail "convert"; }
# list TAPE: the ops on the database's files, without times. open and create are one here: strace
# cannot tell whether the file was new, and opens that failed are not in its tape.
list() {
    iotape dump "$1" | awk -v d="\"$PWD/t.db" 'index($3, d) == 1 && $2 != "mmap" && $2 != "munmap" && !($2 == "open" && $6 < 0) {
        op = $2 == "create" ? "open" : $2; print op, $3, $4, $5, op == "open" ? 0 : $6 }'
}
list bpf.tape >bpf.list
list strace.tape >strace.list
[ "$(grep -c ' write \|^write' bpf.list)" -gt 100 ] || fail "few writes"
grep -q 'journal' bpf.list || fail "no journal"
diff strace.list bpf.list >differ || { head -20 differ; fail "strace and bpf differ in $(wc -l <differ) lines"; }
