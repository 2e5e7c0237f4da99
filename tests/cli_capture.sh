#!/bin/sh
# SPDX-License-Identifier: MIT
# iotape capture: exit status, ends of all kinds, limits, filters; nothing is left behind.
. "$IOTAPE_SRC/tests/testlib.sh"
need jq
prog=$IOTAPE_BUILD/tests/prog_truth
export ASAN_OPTIONS=verify_asan_link_order=0:detect_leaks=0
mkdir data
before=$(ls -a /dev/shm /tmp 2>/dev/null | grep -i iotape | grep -v iotape-tests)
capture="iotape capture -q -r preload"

count() { iotape info --json "$1" >info.json 2>info.err || fail "info $1: $(cat info.err)"; json info.json "$2"; }
meta() { iotape info --json "$1" >info.json || fail "info $1"; json info.json ".meta[\"$2\"]"; }

# ---- exit status: the command's own
runs 0 $capture -o a.tape -- true
runs 3 $capture -o b.tape -- sh -c 'exit 3'
runs 143 $capture -o c.tape -- sh -c 'kill -TERM $$'
runs 1 $capture -o d.tape -- /no/such/command
says 'cannot run /no/such/command: No such file' err
[ ! -e d.tape ] || fail "a tape was left of a command that did not run"
runs 1 $capture -o a.tape -- true
says 'a.tape' err
runs 0 $capture -f -o a.tape -- true
runs 2 $capture
runs 2 $capture --pid 1 -- true
runs 2 $capture --filter nonsense -- true
says 'expected path=GLOB' err
runs 2 iotape capture -r nonsense -o e.tape -- true
runs 2 iotape capture -r preload -o e.tape --system
says 'preload' err
[ ! -e e.tape ] || fail "a tape was left of a usage error"
runs 0 iotape capture --list
says '^preload' out
says 'issue +libaio' out

# ---- what the shim cannot enter is named, and refused when it is the command itself
echo 'int main(void) { return 0; }' >static.c
if command -v gcc >/dev/null && gcc -static -o static static.c 2>/dev/null; then
    runs 1 $capture -o static.tape -- ./static
    says 'statically linked; recorder bpf' err
    [ ! -e static.tape ] || fail "a tape was left of a refused command"
    runs 0 iotape capture -r preload -o static.tape -- sh -c './static; env -i ./static'
    equal "static programs named" 1 "$(grep -c 'static is statically linked' err)"
    equal "static programs counted" 2 "$(meta static.tape 'unseen.program statically linked')"
fi
# A program started with an environment of its own is followed all the same.
runs 0 $capture -o env.tape -- env -i ASAN_OPTIONS="$ASAN_OPTIONS" "$prog" sync "$PWD/data/f"
equal "fsyncs of a program with a bare environment" 1 "$(count env.tape .by_op.fsync.count)"

# A program that forbids itself what the shim needs is not harmed; the tape says what is missing.
if "$prog" seccomp "$PWD/data/s" >/dev/null 2>&1; then
    runs 0 iotape capture -r preload -o seccomp.tape -- "$prog" seccomp "$PWD/data/s"
    says 'not seen: .*seccomp' err
fi

# ---- what is written says so
runs 0 $capture -o sync.tape -- "$prog" sync "$PWD/data/f"
equal "fsyncs" 1 "$(count sync.tape .by_op.fsync.count)"
equal "lost" 0 "$(count sync.tape .lost)"

equal "what cannot be told" mmap "$(json info.json '.cannot_tell | join(",")')"

# ---- through a pipe
iotape capture -q -r preload -o - -- sh -c "exec '$prog' sync '$PWD/data/f' >/dev/null" 2>err |
    iotape info --json - >info.json 2>err || { cat err >&2; fail "through a pipe"; }
equal "fsyncs through a pipe" 1 "$(json info.json .by_op.fsync.count)"

# ---- filters
runs 0 $capture -o filter.tape --filter 'path=*/data/*' --filter 'op=read,write' --filter 'size>=4k' -- \
    "$prog" sync "$PWD/data/f"
iotape dump filter.tape | grep -v '^#' | awk '{print $2, $5}' >seen
printf '%s\n' 'write 5000' 'write 4096' 'read 4096' >want
cmp -s want seen || { diff want seen >&2; fail "filters"; }

# ---- names hidden, their shape kept
runs 0 $capture -o hidden.tape --anonymise -- "$prog" sync "$PWD/data/secretname.db"
grep -aq secretname hidden.tape && fail "--anonymise left a name in the tape"
iotape dump hidden.tape >out || fail "dump"
grep -Eq '"(/[0-9a-f]{12}([.][A-Za-z0-9]+)?)+/[0-9a-f]{12}[.]db"' out || { cat out >&2; fail "--anonymise lost the shape"; }
grep -q 'secretname' out && fail "--anonymise left a name"

# ---- what the written data is like; a recording that costs too much
runs 0 $capture -o zeros.tape --content -- dd if=/dev/zero of=data/zeros bs=4k count=2000
runs 0 $capture -o random.tape --content -- dd if=/dev/urandom of=data/random bs=4k count=2000
[ "$(meta zeros.tape content_compress_pct)" -ge 95 ] || fail "--content: zeros compress by $(meta zeros.tape content_compress_pct)%"
[ "$(meta random.tape content_compress_pct)" -le 5 ] || fail "--content: noise compresses by $(meta random.tape content_compress_pct)%"
runs 0 iotape capture -r preload -o costly.tape --max-overhead 0.001 -- sh -c 'for i in 1 2 3 4 5; do echo x >>data/c; sleep 0.4; done'
says 'recording has stopped: it took' err
iotape info costly.tape >/dev/null || fail "--max-overhead: the tape is not good"

if [ -c /dev/full ]; then
    iotape-capture --list >/dev/full 2>err && fail "--list: a full output is no error"
    says 'standard output' err
fi

after=$(ls -a /dev/shm /tmp 2>/dev/null | grep -i iotape | grep -v iotape-tests)
equal "left behind" "$before" "$after"
exit 0
