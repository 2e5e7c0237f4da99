#!/bin/sh
# SPDX-License-Identifier: MIT
# A database server of many processes under load: per file and op, the preload recorder and strace
# count the same.
. "$IOTAPE_SRC/tests/testlib.sh"
need strace setpriv
need_root
bin=$(ls -d /usr/lib/postgresql/*/bin 2>/dev/null | tail -n 1)
[ -n "$bin" ] && id postgres >/dev/null 2>&1 || skip "no PostgreSQL server on this machine"
strace -o probe true 2>/dev/null || skip "strace cannot trace here"

# The server runs as its own user: a folder that it can reach.
top=$(mktemp -d /tmp/iotape-tests.pg.XXXXXX) || fail "mktemp"
trap 'rm -rf "$top"' EXIT
chmod 755 "$top"
mkdir "$top/pg" && chown postgres "$top/pg"
as="setpriv --reuid=postgres --regid=postgres --clear-groups"
$as test -r "$IOTAPE_BUILD/libiotape-preload.so" || skip "the server's user cannot read the build folder"
(cd "$top/pg" && $as "$bin/initdb" -D "$top/pg/d" -A trust >/dev/null 2>&1) || fail "initdb"
cat >"$top/run.sh" <<END
cd $top/pg
$bin/pg_ctl -D $top/pg/d -o "-k $top/pg -h ''" -l $top/pg/log -w start >/dev/null || exit 1
$bin/pgbench -h $top/pg -i -s 1 -q postgres >/dev/null 2>&1 || exit 1
$bin/pgbench -h $top/pg -c 4 -j 2 -t 25 postgres >/dev/null 2>&1 || exit 1
$bin/pg_ctl -D $top/pg/d -m fast -w stop >/dev/null
END
iotape capture -q -r preload -o pg.tape -- $as strace -f -y -qq -o "$top/pg/strace.txt" \
    -e trace=read,pread64,write,pwrite64,readv,writev,preadv,pwritev,fsync,fdatasync,sync_file_range \
    sh "$top/run.sh" || fail "capture: exit $?"

# Only descriptors of files under the data folder; a call that was torn begins with the same words.
sed -nE 's/^[0-9]+ +([a-z_0-9]+)\([0-9]+<([^>]*)>.*/\1 \2/p' "$top/pg/strace.txt" | grep " $top/pg/d/" |
    sed -E 's/ \(deleted\)$//; s/^(pread64|readv|preadv) /read /; s/^(pwrite64|writev|pwritev) /write /
            s/^sync_file_range /sync_range /' | sort | uniq -c >from_strace
iotape dump pg.tape >dump.raw || fail "dump"
tr -d '"' <dump.raw | awk '$2 ~ /^(read|write|fsync|fdatasync|sync_range)$/ {print $2, $3}' |
    grep " $top/pg/d/" >from_tape.raw
sort from_tape.raw | uniq -c >from_tape
[ "$(wc -l <from_tape)" -gt 100 ] || fail "the tape has only $(wc -l <from_tape) files and ops"
cmp -s from_strace from_tape || { diff from_strace from_tape | head -20 >&2; fail "strace (<) and the tape (>) differ"; }
iotape info --json pg.tape >info.json
equal "lost" 0 "$(json info.json .lost)"
exit 0
