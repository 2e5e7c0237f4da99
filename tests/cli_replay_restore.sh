#!/bin/sh
# SPDX-License-Identifier: MIT
# --restore: whatever a replay did to a file set, a file or a device, the next one with the same
# folder starts from what was there, and --restore-only leaves it so. By extents and by reflink, after
# kill -9 and with a full disk.
. "$IOTAPE_SRC/tests/testlib.sh"
need jq sha1sum
mounted=""
device=""
trap '[ -n "$mounted" ] && umount "$mounted"; [ -n "$device" ] && losetup -d "$device"' EXIT
trap 'exit 130' INT TERM

# tape NAME: from the lines of standard input
tape() { cat >in.csv; runs 0 iotape convert -q --from csv --columns time:us,op,path,offset,length,result,file2 in.csv -o "$1"; }

# Writes inside and past the end, a file cut, one removed, one replaced, one renamed away; a folder
# and files that were not there.
tape t.tape <<'END'
0,mkdir,/d2,,0,0,
5,create,/d2/in,,0,3,
6,write,/d2/in,0,512,512,
10,write,/d/db,0,4096,4096,
20,write,/d/db,1000000,8192,8192,
30,create,/d/new,,0,3,
40,write,/d/new,0,4096,4096,
50,rename,/d/old,,0,0,/d/moved
55,rename,/d/new,,0,0,/d/replaced
60,unlink,/d/gone,,0,0,
70,truncate,/d/cut,,100,0,
80,write,/d/app,30000,4096,4096,
90,write,/d/sparse,262144,65536,65536,
95,write,/d/reopened,0,512,512,
END

# files DIR: a file set to lose
files() {
    mkdir -p "$1/d"
    for f in db old gone cut replaced; do head -c 2000000 /dev/urandom >"$1/d/$f"; done
    head -c 30000 /dev/urandom >"$1/d/app"
    head -c 5000 /dev/urandom >"$1/d/reopened"
    truncate -s 1m "$1/d/sparse"
    chmod 0751 "$1/d/gone"
}
# state DIR: every name, mode, length, content
state() { (cd "$1" && find . | grep -v '^./keep' | sort | while read -r f; do
    stat -c '%n %A' "$f"
    [ ! -f "$f" ] || { stat -c %s "$f"; sha1sum <"$f"; }
done); }
# as_before DIR WHAT
as_before() { state "$1" >after; cmp -s before after || { diff before after >&2; fail "$2: not as it was"; }; }

# cycle DIR METHOD OPTIONS...: replays that change everything, each from the same state
cycle() {
    root=$1 method=$2
    shift 2
    state "$root" >before
    runs 0 iotape replay t.tape --root "$root" --writes --restore "$root/keep" "$@" --json -
    equal "$method: kept" "$method 8 0" "$(json out '.restore | "\(.method) \(.kept_files) \(.files)"')"
    state "$root" >changed
    cmp -s before changed && fail "the replay changed nothing"
    for engine in sync io_uring; do
        engine_available $engine || continue
        runs 0 iotape replay t.tape --root "$root" --writes --restore "$root/keep" --engine $engine --json - "$@"
        # The same names at each start, or the mkdir and the renames would fail.
        equal "$method $engine: errors" "0 0" "$(json out '"\(.errors) \(.unexpected_results)"')"
        equal "$method $engine: put back" "$method 8 0" \
            "$(json out '.restore | "\(.method) \(.files) \(.kept_files)"')"
        equal "$method $engine: its time" true "$(json out '.restore.time_ns > 1000')"
        state "$root" >again
        # What is written is random by the seed: the same each time.
        cmp -s changed again || { diff changed again >&2; fail "$method $engine: another result"; }
    done
    runs 0 iotape replay t.tape --root "$root" --writes --restore "$root/keep" --restore-only
    says "^restored +8 files.* 3 new names removed .*\\($method\\)" out
    as_before "$root" "$method"
    [ ! -e "$root/keep" ] || fail "the folder is still there"
}

files plain
cycle plain extents --restore-by extents
# The hole is a hole again, where files can have one.
equal "the hole" 0 "$(stat -c %b plain/d/sparse)"
# Only what the tape writes of a file that stays was kept: three chunks of 64 KiB of db.
runs 0 iotape replay t.tape --root plain --writes --restore plain/keep --restore-by extents
number=$(jq -r 'select(.path // "" | endswith("/d/db")) | .n' plain/keep/journal.jsonl)
equal "kept of db" 131072 "$(jq -s "[.[] | select(.n == $number and .to) | .to - .from] | add" plain/keep/journal.jsonl)"
runs 0 iotape replay t.tape --root plain --writes --restore plain/keep --restore-only

# A second tape with the same folder: what it changes besides is kept too, all of it goes back.
tape t2.tape <<'END'
0,write,/d/db,500000,4096,4096,
1,write,/d/other,0,4096,4096,
END
head -c 9000 /dev/urandom >plain/d/other
state plain >before
runs 0 iotape replay t.tape --root plain --writes --restore plain/keep --restore-by extents
runs 0 iotape replay t2.tape --root plain --writes --restore plain/keep --restore-by extents --json -
equal "second tape" "8 1" "$(json out '.restore | "\(.files) \(.kept_files)"')"
runs 0 iotape replay t2.tape --root plain --writes --restore plain/keep --restore-only
as_before plain "two tapes"

# Killed in the middle of a replay: the next one does not see what it did.
tape slow.tape <<'END'
0,write,/d/db,0,4096,4096,
60000000,write,/d/db,8192,4096,4096,
END
iotape replay slow.tape --root plain --writes --restore plain/keep --pace recorded --quiet >/dev/null 2>&1 &
tool=$!
for _ in $(seq 200); do
    state plain >now
    cmp -s before now || break
    sleep 0.05
done
cmp -s before now && fail "nothing was written"
# While it runs its folder is taken.
runs 1 iotape replay t2.tape --root plain --writes --restore plain/keep
says 'another replay is using' err
kill -9 $tool
wait $tool 2>/dev/null
runs 0 iotape replay t2.tape --root plain --writes --restore plain/keep --restore-only
as_before plain killed

# A file of which parts are kept is gone, or another one stands in its place: said, and left as it is.
runs 0 iotape replay t2.tape --root plain --writes --restore plain/keep --restore-by extents
mv plain/d/db aside
runs 1 iotape replay t2.tape --root plain --writes --restore plain/keep --restore-only
says 'd/db is gone, and .* holds only what the tape writes' err
head -c 3000 /dev/zero >plain/d/db
runs 1 iotape replay t2.tape --root plain --writes --restore plain/keep --restore-only
says 'd/db is another file now' err
equal "left alone" 3000 "$(wc -c <plain/d/db)"
mv aside plain/d/db
runs 0 iotape replay t2.tape --root plain --writes --restore plain/keep --restore-only
as_before plain "moved and moved back"

# What cannot be meant, and what is in the way.
runs 2 iotape replay t.tape --root plain --restore plain/keep
says 'goes with --writes' err
runs 2 iotape replay t.tape --root plain --writes --restore-only
mkdir mine
echo precious >mine/0
runs 1 iotape replay t.tape --root plain --writes --restore mine
says 'mine holds other things' err
equal "not ours" precious "$(cat mine/0)"
mkdir odd
echo '{"commit":true}' >odd/journal.jsonl
runs 1 iotape replay t.tape --root plain --writes --restore odd
says 'odd/journal.jsonl: not the journal' err
as_before plain "a refusal"

# --target: a file by its own name, through a link.
head -c 2000000 /dev/urandom >one
ln -s one link
sha1sum <one >before
for _ in 1 2 3; do runs 0 iotape replay t.tape --target link --writes --restore keep --restore-by extents; done
sha1sum <one >changed
cmp -s before changed && fail "--target: nothing was written"
runs 0 iotape replay t.tape --target link --writes --restore keep --restore-only
sha1sum <one >after
cmp -s before after || fail "--target: not as it was"

[ "$(id -u)" = 0 ] || { echo "not root: no loop devices tried"; exit 0; }
need losetup
truncate -s 8m disk.img
device=$(losetup -f --show disk.img 2>/dev/null) || skip "no loop devices here"
head -c 8388608 /dev/urandom >content
cat content >"$device"
runs 0 iotape replay t.tape --target "$device" --destroy "$device" --writes --restore keep --json -
equal "device" "extents 1" "$(json out '.restore | "\(.method) \(.kept_files)"')"
cmp -s content "$device" && fail "device: nothing was written"
# Not written back to without leave.
runs 1 iotape replay t.tape --root plain --writes --restore keep
says "--destroy $device allows" err
runs 0 iotape replay t.tape --target "$device" --destroy "$device" --writes --restore keep --restore-only
cmp content "$device" || fail "device: not as it was"
losetup -d "$device"
device=""

# No room for what would be kept: said before anything is changed, and nothing is left.
mkdir small
mount -t tmpfs -o size=2m none small 2>/dev/null || skip "tmpfs cannot be mounted"
mounted=small
head -c 1500000 /dev/urandom >small/large
sha1sum <small/large >before
tape t3.tape <<'END'
0,truncate,/large,,100,0,
END
runs 1 iotape replay t3.tape --root small --writes --restore small/keep
says 'keeping what the tape changes takes 1.4 MiB, small/keep has 5.* KiB free' err
sha1sum <small/large >after
cmp -s before after || fail "no room: not as it was"
[ ! -e small/keep ] || fail "no room: the folder is there"
umount small
mounted=""

command -v mkfs.btrfs >/dev/null 2>&1 || { echo "no mkfs.btrfs: reflinks not tried"; exit 0; }
truncate -s 256m fs.img
mkfs.btrfs -q fs.img || fail "mkfs.btrfs"
mkdir fs
mount -o loop fs.img fs 2>/dev/null || { echo "btrfs cannot be mounted: reflinks not tried"; exit 0; }
mounted=fs
files fs
cycle fs reflink
cycle fs extents --restore-by extents
# A folder on another file system has no reflinks: asked for they are an error, else extents do.
runs 1 iotape replay t.tape --root fs --writes --restore keep --restore-by reflink
says 'no reflink of it in keep' err
rm -rf keep
