#!/bin/sh
# SPDX-License-Identifier: MIT
# A PostgreSQL server under pgbench, watched by strace and by the bpf recorder in the same run: per
# file and op equal counts and bytes.
. "$IOTAPE_SRC/tests/testlib.sh"
need_root
need strace runuser
iotape capture --list | grep -A1 '^bpf' | grep -q 'can run here' || skip "the bpf recorder cannot run here"
bin=$(ls -d /usr/lib/postgresql/*/bin 2>/dev/null | tail -n 1)
[ -x "$bin/postgres" ] && [ -x "$bin/initdb" ] && id postgres >/dev/null 2>&1 || skip "no PostgreSQL server installed"
chmod 755 . ..
mkdir data && chown postgres data
pg() { runuser -u postgres -- env PGHOST="$PWD/data" PGUSER=postgres PGDATABASE=postgres "$@"; }
pg "$bin/initdb" -D "$PWD/data" -A trust >log 2>&1 || { tail log; fail "initdb"; }
cat >>data/postgresql.conf <<END
listen_addresses = ''
unix_socket_directories = '$PWD/data'
shared_buffers = 4MB
autovacuum = off
fsync = on
END
iotape capture --recorder bpf -o pg.tape -- strace -f -ttt -T -y -o strace.txt \
    runuser -u postgres -- "$bin/postgres" -D "$PWD/data" >server.log 2>&1 &
tool=$!
trap 'kill $tool 2>/dev/null' EXIT
ready=0
for _ in $(seq 100); do pg psql -qAtc 'select 1' >/dev/null 2>&1 && ready=1 && break; sleep 0.2; done
[ $ready = 1 ] || { tail server.log; fail "the server does not answer"; }
pg psql -qc "create table t as select i, repeat('x', 100) as pad, 0 as n from generate_series(1, 3000) i" ||
    fail "create table"
cat >script.sql <<'END'
\set i random(1, 3000)
begin; update t set n = n + 1 where i = :i; insert into t values(:i, 'new', 0); select sum(n) from t; end;
END
pg pgbench -n -f "$PWD/script.sql" -c 2 -t 25 >log 2>&1 || { tail log; fail "pgbench"; }
pg psql -qc checkpoint
pg "$bin/pg_ctl" -D "$PWD/data" -m fast stop >log 2>&1 || { tail log; fail "stop"; }
trap - EXIT
wait $tool || { tail server.log; fail "capture: exit $?"; }
iotape convert strace.txt -o strace.tape >log || { cat log; fail "convert"; }

# list TAPE: how often each op was on each file of the data folder, and its bytes. Left out: mappings,
# and where the two tapes differ by design: opened folders, and names that were not there.
list() {
    iotape dump "$1" | awk -v d="\"$PWD/data/" 'index($3, d) == 1 && $2 !~ /^(mmap|munmap|msync|fill|writeback|mkdir|rmdir)$/ &&
        !($2 !~ /^(read|write|fsync|fdatasync)$/ && $6 < 0) {
        op = $2 == "create" ? "open" : $2; n[op " " $3]++
        if (op == "read" || op == "write") b[op " " $3] += $6 }
        END { for (k in n) print k, n[k], b[k] + 0 }' | sort | while read -r op file rest; do
        case $op in open | close) path=${file#\"}; [ -d "${path%\"}" ] && continue ;; esac
        echo "$op $file $rest"
    done
}
list pg.tape >pg.list
list strace.tape >strace.list
awk '$1 == "write" { n += $3 } END { exit !(n > 100) }' pg.list || fail "few writes"
awk '$1 ~ /sync/ { n += $3 } END { exit !(n > 10) }' pg.list || fail "few fsyncs"
diff strace.list pg.list >differ || { head -30 differ; fail "strace and bpf differ in $(grep -c '^[<>]' differ) lines of $(wc -l <pg.list)"; }
echo "$(wc -l <pg.list) counts equal"
