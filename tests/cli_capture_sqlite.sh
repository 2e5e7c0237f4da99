#!/bin/sh
# SPDX-License-Identifier: MIT
# A real database: what the preload recorder and strace see of the same run, per file and per op.
. "$IOTAPE_SRC/tests/testlib.sh"
need sqlite3 strace
strace -o probe true 2>/dev/null || skip "strace cannot trace here"

cat >work.sql <<'END'
PRAGMA journal_mode=DELETE;
CREATE TABLE t(k INTEGER PRIMARY KEY, v BLOB);
BEGIN; WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n+1 FROM c WHERE n<3000)
INSERT INTO t SELECT n, randomblob(300) FROM c; COMMIT;
UPDATE t SET v=randomblob(400) WHERE k%7=0;
DELETE FROM t WHERE k%11=0;
PRAGMA journal_mode=WAL;
INSERT INTO t SELECT k+10000, v FROM t WHERE k<500;
SELECT count(*), sum(length(v)) FROM t;
VACUUM;
END
# strace inside the capture: both see the same calls of one process.
iotape capture -q -r preload -f -o t.tape -- \
    strace -f -y -o strace.txt -e trace=read,pread64,write,pwrite64,fsync,fdatasync,ftruncate,openat,unlink \
    sqlite3 work.db <work.sql >result || fail "capture: exit $?"
says '^[0-9]+\|[0-9]+$' result
iotape dump t.tape --stream sqlite3 >dump.raw || fail "dump"

# Per file of the database: op, offset, length, result.
sed -n "s/^[0-9]* *//; /work\.db/p" strace.txt | awk '
    /<unfinished|resumed/ { print "torn"; next }
    match($0, /^(pread64|pwrite64)\([0-9]+<[^>]*>/) {
        name = substr($0, 1, 6) == "pread6" ? "read" : "write"
        match($0, /<[^>]*>/); file = substr($0, RSTART + 1, RLENGTH - 2)
        n = split($0, part, ", "); sub(/\).*/, "", part[n])
        result = $0; sub(/.*= /, "", result)
        print name, file, part[n], part[n - 1], result; next }
    match($0, /^(fsync|fdatasync)\([0-9]+</) {
        name = $0; sub(/\(.*/, "", name)
        match($0, /<[^>]*>/); file = substr($0, RSTART + 1, RLENGTH - 2)
        result = $0; sub(/.*= /, "", result)
        print name, file, "-", 0, result }' | sort >from_strace
grep -v '^#' dump.raw | grep 'work\.db' | awk '
    $2 == "read" || $2 == "write" || $2 == "fsync" || $2 == "fdatasync" {
        gsub(/"/, "", $3); if ($2 ~ /sync/ || $10 !~ /x/) print $2, $3, $4, $5, $6 }' | sort >from_tape
grep -q torn from_strace && fail "strace's lines are torn"
[ "$(wc -l <from_strace)" -gt 200 ] || fail "strace saw only $(wc -l <from_strace) ops"
cmp -s from_strace from_tape || { diff from_strace from_tape | head -20 >&2; fail "strace (<) and the tape (>) differ"; }

# Unlinks of the journal, and opens, in number.
equal "unlinks" "$(grep -c '^[0-9 ]*unlink(.*work\.db.*= 0' strace.txt)" \
    "$(grep -c ' unlink .*work\.db.* - 0 0 ' dump.raw)"
equal "opens" "$(grep -c 'openat(.*work\.db.*= [0-9]' strace.txt)" \
    "$(grep -cE ' (open|create) "[^"]*work\.db[^"]*" - 0 [0-9]' dump.raw)"
exit 0
