#!/bin/sh
# SPDX-License-Identifier: MIT
# A matrix whose trials write: each starts from the same files, which are as they were after it, however
# it ended.
. "$IOTAPE_SRC/tests/testlib.sh"
need jq sha1sum

cat >in.csv <<'END'
0,create,/d/new,,0,3,
10,write,/d/new,0,4096,4096,
20,write,/d/db,0,4096,4096,
30,write,/d/db,1000000,8192,8192,
40,rename,/d/old,,0,0,/d/moved
50,read,/d/moved,0,4096,4096,
60,unlink,/d/gone,,0,0,
END
runs 0 iotape convert -q --from csv --columns time:us,op,path,offset,length,result,file2 in.csv -o t.tape
mkdir -p root/d
for f in db old gone; do head -c 1500000 /dev/urandom >root/d/$f; done
state() { (cd root && find . | sort && find . -type f | sort | xargs sha1sum); }
state >before
as_before() { state >after; cmp -s before after || { diff before after >&2; fail "$1: not as it was"; }; }

runs 0 iotape compare t.tape --engine sync,threads --root root --writes --trials 6 --dir one --json -
# Only the first trial finds /d/old and /d/gone unless they are put back.
equal "errors" 0 "$(jq -s 'map(.figures.errors) | add' one/journal.jsonl)"
equal "trials" 12 "$(wc -l <one/journal.jsonl)"
says 'before each run the files were put back as they had been \(by [a-z]+, [0-9.]+ .s a run\)' out
equal "method" 12 "$(jq -s 'map(select(.restored == "extents" or .restored == "reflink")) | length' one/journal.jsonl)"
equal "time" true "$(jq -s 'map(.figures.restore) | add > 100000' one/journal.jsonl)"
as_before "a whole matrix"

# Told not to, a second trial meets what the first left.
cp -a root other
runs 1 iotape compare t.tape --engine sync --root other --writes --trials 2 --dir none --restore-by none
says 'nothing restores the files' err
says "2 of the tape's files do not exist here" err

# Ctrl-C, then on: the same figures of the same trials, and the files as they were.
iotape compare t.tape --engine sync,threads --root root --writes --trials 300 --dir two --quiet 2>err &
tool=$!
for _ in $(seq 200); do [ "$(wc -l <two/journal.jsonl 2>/dev/null || echo 0)" -ge 3 ] && break; sleep 0.05; done
kill -INT $tool
wait $tool
says 'stopped after' err
as_before interrupted
[ ! -e root/.iotape-restore ] || fail "interrupted: before-images are left"

# kill -9: what was changed is kept, another experiment does not begin on it, --resume goes on.
iotape compare t.tape --engine sync,threads --root root --writes --trials 300 --dir three --quiet 2>err &
tool=$!
for _ in $(seq 200); do [ "$(wc -l <three/journal.jsonl 2>/dev/null || echo 0)" -ge 3 ] && break; sleep 0.05; done
kill -9 $tool
wait $tool 2>/dev/null
# The trial dies with it, a little later.
for _ in $(seq 100); do pgrep -f "iotape-replay.*$PWD" >/dev/null 2>&1 || break; sleep 0.05; done
sleep 0.2
[ -s root/.iotape-restore/journal.jsonl ] || fail "killed: no before-images"
runs 1 iotape compare t.tape --engine sync --root root --writes --trials 2 --dir four
says 'root/.iotape-restore holds what a comparison that was killed had changed: --resume' err
done=$(grep -c . three/journal.jsonl)
runs 0 timeout -s INT 60 iotape compare t.tape --engine sync,threads --root root --writes --trials $((done / 2 + 2)) --dir three --resume --quiet
equal "resumed: errors" 0 "$(jq -s 'map(.figures.errors) | add' three/journal.jsonl)"
as_before resumed
[ ! -e root/.iotape-restore ] || fail "resumed: before-images are left"

# Where the user says; one that was killed is put back by hand.
runs 2 iotape compare t.tape --engine sync --root root --restore keep
says 'trials write' err
iotape replay t.tape --root root --writes --restore keep -q >/dev/null || fail replay
runs 1 iotape compare t.tape --engine sync --root root --writes --restore keep --trials 2 --dir five
says 'keep holds what a comparison' err
runs 0 iotape replay t.tape --root root --writes --restore keep --restore-only
as_before "by hand"
runs 0 iotape compare t.tape --engine null,sync --root root --writes --restore keep --trials 2 --dir six
[ ! -e keep ] || fail "keep is left"
as_before "null first"

# A tape that only reads leaves nothing to say.
printf '0,read,/d/db,0,4096,4096,\n' >in.csv
runs 0 iotape convert -q --from csv --columns time:us,op,path,offset,length,result,file2 in.csv -o reads.tape
runs 0 iotape compare reads.tape --engine sync --root root --writes --trials 2 --dir seven
grep -q 'put back' out && fail "nothing was changed, and something put back"
as_before "reads"
