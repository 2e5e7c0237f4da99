#!/bin/sh
# SPDX-License-Identifier: MIT
# A ring that runs over while its reader is stopped: recorded and lost make up what was done, to the op,
# on the terminal and in the tape, and what comes after is recorded again.
. "$IOTAPE_SRC/tests/testlib.sh"
need jq
prog=$IOTAPE_BUILD/tests/prog_capture
export ASAN_OPTIONS=verify_asan_link_order=0:detect_leaks=0
head -c 8192 /dev/zero >file
tool=""
trap '[ -z "$tool" ] || kill -9 $tool $target 2>/dev/null' EXIT
trap 'exit 130' INT TERM

# stopped PID: waits until the program has stopped itself
stopped() {
    for _ in $(seq 300); do
        grep -q '^State:.*T' "/proc/$1/status" 2>/dev/null && return
        sleep 0.05
    done
    fail "process $1 has not stopped"
}

# 1 read, then 50,000 into a ring for some thousands while nobody empties it, then 100.
overflow() {
    recorder=$1
    rm -f t.tape
    iotape-capture -r "$recorder" --ring-size 64k -o t.tape -- sh -c "echo \$\$ >pid; exec '$prog' bursts file 50000 100" 2>err &
    tool=$!
    for _ in $(seq 300); do [ -s pid ] && break; sleep 0.05; done
    target=$(cat pid)
    stopped "$target"
    kill -STOP $tool
    stopped $tool
    kill -CONT "$target"
    sleep 0.05
    stopped "$target"
    kill -CONT $tool
    # It empties the ring and looks at the counts at least once a second.
    sleep 0.3
    kill -CONT "$target"
    wait $tool || { cat err >&2; fail "$recorder: exit $?"; }
    tool=""
    rm pid
    iotape info t.tape --json >info.json || fail info
    reads=$(iotape dump t.tape --op read --file '*/file' | grep -vc '^#')
    lost=$(json info.json .lost)
    [ "$lost" -gt 0 ] || fail "$recorder: nothing was lost"
    equal "$recorder: recorded and lost" 50101 $((reads + lost))
    says "iotape capture: $lost lost: ring-full" err
    says "$lost lost; t.tape" err
    equal "$recorder: the last are there" 100 "$(iotape dump t.tape --op read --file '*/file' | grep -v '^#' | tail -n 100 | awk '{ n += $4 == (NR - 1) % 8 * 512 } END { print n }')"
    json info.json '.meta | to_entries[] | "\(.key) \(.value)"' >meta
}

overflow preload
if iotape capture --list | grep -A1 '^bpf' | grep -q 'can run here'; then
    overflow bpf
    # By CPU too.
    equal "by CPU" "$lost" "$(sed -n 's/^lost_cpu[0-9]*\.ring-full //p' meta | awk '{ n += $1 } END { print n }')"
fi
exit 0
