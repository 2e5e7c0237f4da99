#!/bin/sh
# SPDX-License-Identifier: MIT
# Programs that recorders find hard, each done the same by both: one that changes its user, one that is
# given descriptors through a socket, one attached to when its files were open already, one that
# maps its file.
. "$IOTAPE_SRC/tests/testlib.sh"
need jq
prog=$IOTAPE_BUILD/tests/prog_capture
export ASAN_OPTIONS=verify_asan_link_order=0:detect_leaks=0
recorders=$(app_recorders)
ops() { iotape dump "$@" | awk '!/^#/ { print $2, $3, $4, $5, $6 }'; }

# ---- a set-user-ID program: the kernel sees it, a preloaded library cannot be in it, which is said
if [ "$(id -u)" = 0 ] && cp "$(command -v cat)" sucat && chown 65534 sucat && chmod 4755 sucat && chmod 755 .. . &&
    [ "$(sh -c './sucat /proc/self/status' | awk '/^Uid/ { print $3 }')" = 65534 ]; then
    head -c 3000 /dev/zero >plain
    chmod 644 plain
    runs 0 iotape capture -r preload -o su.preload.tape -- sh -c './sucat plain >/dev/null; cat plain >/dev/null'
    says '1 not seen: program set-user-ID' err
    says 'sucat is set-user-ID .*the bpf recorder would' err
    equal "preload: the other program's reads" 3000 \
        "$(ops su.preload.tape --op read --file '*/plain' | awk '{ n += $5 } END { print n }')"
    if [ "$recorders" != preload ]; then
        runs 0 iotape capture -r bpf -o su.bpf.tape -- sh -c './sucat plain >/dev/null; cat plain >/dev/null'
        equal "bpf: both programs' reads" 6000 \
            "$(ops su.bpf.tape --op read --file '*/plain' | awk '{ n += $5 } END { print n }')"
    fi
fi

for recorder in $recorders; do
    # ---- descriptors by SCM_RIGHTS, the second under the number of the first
    head -c 4096 /dev/zero >first
    head -c 4096 /dev/zero >second
    runs 0 iotape capture -r $recorder -o pass.$recorder.tape -- "$prog" pass first second
    ops pass.$recorder.tape --op write >got
    printf 'write "%s/first" 0 100 100\nwrite "%s/second" 0 200 200\n' "$PWD" "$PWD" >want
    cmp -s want got || { diff want got >&2; fail "$recorder: descriptors by SCM_RIGHTS"; }

    # ---- a mapping: bpf sees its pages, preload says that it does not
    rm -f mapped
    runs 0 iotape capture -r $recorder -o map.$recorder.tape -- "$prog" map mapped
    equal "$recorder: calls on the mapping" "mmap 65536,msync 65536,munmap 65536," \
        "$(ops map.$recorder.tape --file '*/mapped' | awk '/^m/ { printf "%s %s,", $1, $4 }')"
    iotape info map.$recorder.tape --json >info.json || fail info
    if [ $recorder = bpf ] && [ "$(json info.json '.cannot_tell | length')" = 0 ]; then
        equal "bytes written by stores" 65536 "$(ops map.bpf.tape --op writeback | awk '{ n += $4 } END { print n }')"
    else
        equal "$recorder: said" mmap "$(json info.json '.cannot_tell | join(",")')"
    fi
done
equal "preload: mappings counted" 1 "$(iotape info map.preload.tape --json | jq -r '.meta["unseen.mapped file"]')"

# ---- attached when its files were open: their paths and sizes, the position of an append
[ "$recorders" != preload ] || exit 0
head -c 5000 /dev/zero >read
head -c 300 /dev/zero >appended
"$prog" held read appended &
target=$!
trap 'kill -9 $target 2>/dev/null' EXIT
for _ in $(seq 100); do grep -q '^State:.*T' /proc/$target/status && break; sleep 0.05; done
iotape-capture -r bpf -o held.tape --pid $target 2>err &
tool=$!
attached $tool 5
sleep 0.2
kill -CONT $target
wait $tool || { cat err >&2; fail "--pid: exit $?"; }
ops held.tape >got
printf 'read "%s/read" 1024 512 512\nwrite "%s/appended" 300 10 10\n' "$PWD" "$PWD" >want
cmp -s want got || { diff want got >&2; fail "--pid: files that were open"; }
iotape dump held.tape | grep -q ' write .*append' || fail "--pid: the append is not marked"
# What --prepare makes of it: the files with the sizes they had.
runs 0 iotape replay held.tape --root root --prepare --writes
equal "--pid: sizes" "5000 310" "$(stat -c %s "root$PWD/read" "root$PWD/appended" | tr '\n' ' ' | sed 's/ $//')"
exit 0
