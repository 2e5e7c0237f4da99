#!/bin/sh
# SPDX-License-Identifier: MIT
# fio's I/O logs: what fio's own reader crashes on, cuts or passes over is read whole or refused with its place.
. "$IOTAPE_SRC/tests/testlib.sh"

lines() { # lines LOG: the ops of a log
    rm -f t.tape
    iotape-convert "$1" -o t.tape >report 2>err || { cat err >&2; fail "$1"; }
    iotape-convert dump t.tape | grep -v '^#' | cut -d' ' -f1-5
}
# bad TEXT PATTERN: exit 1, one line, no output
bad() {
    printf "$1" >bad.log
    rm -f t.tape
    runs 1 iotape-convert bad.log --from fioiolog -o t.tape
    says "$2" err
    equal "lines of complaint" 1 "$(wc -l <err)"
    [ ! -e t.tape ] || fail "an output was left"
}

# a trim and syncs among writes, lengths of 64 bits, files used without add or open
printf 'fio version 2 iolog\n/a add\n/a open\n/a write 0 4096\n/a sync 0 0\n/a sync\n/a datasync 0 0\n/a trim 4096 8589934592\n/b read 9007199254740992 4294967296\n/a close\n' >log
lines log >got
cat >want <<'END'
0.000000000 write "/a" 0 4096
0.000000000 fsync "/a" - 0
0.000000000 fsync "/a" - 0
0.000000000 fdatasync "/a" - 0
0.000000000 discard "/a" 4096 8589934592
0.000000000 read "/b" 9007199254740992 4294967296
END
diff want got >&2 || fail "version 2"
says '1 files are used without add or open' report
says 'version 2 has no times' report
says 'cannot tell +.*time' report

# waits count from the wait before; a zero length ends nothing
printf 'fio version 2 iolog\n/a add\n/a open\n/a read 0 512\n/a wait 5000 0\n/a read 0 0\n/a wait 4000 0\n/a read 512 512\n/a wait 50 0\n/a read 1024 512\n' >log
equal "waits" "0.000000000 0.005000000 0.009000000 0.009050000" "$(lines log | cut -d' ' -f1 | paste -sd' ')"
says '1 ops have a length of 0' report

# version 3: microseconds, of which time 0 is one like any other; lines that go back are sorted
printf 'fio version 3 iolog\n0 /a add\n0 /a open\n0 /a read 0 512\n250 /a write 0 512\n100 /a read 512 512\n100 /a wait 5 0\n' >log
bad "$(cat log)\n" 'bad.log:7:8: version 3 has times and no wait'
head -6 log >ok.log
equal "times" "0.000000000 0.000100000 0.000250000" "$(lines ok.log | cut -d' ' -f1 | paste -sd' ')"
says '1 lines go back in time' report

# no drift: a million gaps of 2 us end where they should (each gap is not rounded by itself)
{ echo 'fio version 3 iolog'; awk 'BEGIN { for (i = 0; i < 200000; i++) printf "%d /a read %d 512\n", i * 2 + 7, i * 512 }'; } >long.log
lines long.log | tail -n 1 >last
equal "the last of 200,000" '0.399998000 read "/a" 102399488 512' "$(cat last)"

bad 'fio version 3 iolog\n1 /a b read 0 512\n' 'bad.log:2:15: too many words: a name with blanks'
bad 'fio version 3 iolog\n1 /a read 0 512\nfio version 3 iolog\n' 'bad.log:3:1: a second header'
bad 'fio version 3 iolog\n1 /a read 0 512\n2 /a re' "bad.log:3:6: expected add, open, close, read.*not 're'"
bad 'fio version 3 iolog\n1 /a read 0\n' 'bad.log:2:11: expected NAME ACTION OFFSET LENGTH'
bad 'fio version 3 iolog\nx /a read 0 512\n' 'bad.log:2:1: expected a time in microseconds'
bad 'fio version 3 iolog\n1 /a read 0 9223372036854775808\n' 'bad.log:2:13: expected a length'
bad 'fio version 3 iolog\n1 /a read 9223372036854775000 4096\n' 'bad.log:2:31: expected a length in bytes that ends below'
bad 'fio version 2 iolog\n/a sync_file 0 0\n' "not 'sync_file'"
bad 'fio version 9 iolog\n' "bad.log:1:13: expected 'fio version 2 iolog'"
bad '2, 0, 512\n' 'expected 0 .read. or 1'
printf 'fio version 3 iolog\n1 /a read 0 512\ntorn li\n3 /a read 512 512\n' >torn.log
runs 0 iotape-convert torn.log --skip-bad 1 -o skipped.tape
says '2 ops found' out
says '1 could not be parsed, first: torn.log:3:' out

# version 1: no names, no times
printf '0, 0, 4096\n1, 4096, 512\n' >old.log
rm -f t.tape
runs 0 iotape-convert old.log --from fioiolog -o t.tape
equal "version 1" 'read "file" 0 4096 write "file" 4096 512' "$(iotape-convert dump t.tape | grep -v '^#' | cut -d' ' -f2-5 | paste -sd' ')"
runs 1 iotape-convert old.log -o t2.tape
