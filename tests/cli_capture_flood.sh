#!/bin/sh
# SPDX-License-Identifier: MIT
# A recorder that is stopped until its rings are full: what it then records and what it says it has lost
# are together what the program has issued, to the op.
. "$IOTAPE_SRC/tests/testlib.sh"
need jq seq
export ASAN_OPTIONS=verify_asan_link_order=0:detect_leaks=0
mkdir data
for i in $(seq 0 300); do echo x >"data/$i"; done
meta() { json info.json ".meta[\"$1\"] // 0"; }

# flood RECORDER READS OTHER_READS FILES CHILD_READS AIO_READS
flood() {
    rm -f full.tape
    runs 0 iotape capture -r "$1" --ring-size 64k --filter 'path=*/data/*' -o full.tape -- \
        "$IOTAPE_BUILD/tests/prog_flood" data "$2" "$3" "$4" "$5" "$6"
    issued=$(sed -n 's/^issued=\([0-9]*\) .*/\1/p' out)
    cpu=$(sed -n 's/.* cpu=\([0-9]*\).*/\1/p' out)
    other=$(sed -n 's/.* other_cpu=\([0-9]*\).*/\1/p' out)
    iotape info --json full.tape >info.json || fail "info"
    recorded=$(json info.json .ops)
    lost=$(json info.json .lost)
    [ "$lost" -gt 0 ] || fail "$1 $*: nothing was lost"
    [ "$recorded" -gt 100 ] || fail "$1: only $recorded recorded"
    equal "$1: recorded and lost" "$issued" $((recorded + lost))
    # The tape has it by kind, the terminal as well, and in its last line.
    equal "$1: lost, by kind" "$lost" "$(meta lost.ring-full)"
    says "^iotape capture: $lost lost: ring-full$" err
    says "^iotape capture: $recorded ops, .*, $lost lost; " err
}

flood preload 20000 5000 0 0 0
# Each thread has its own ring: both have lost some, neither all.
iotape dump full.tape | awk '/^[0-9]/ && /\/data\// { n[$8]++ } END { for (s in n) print n[s] }' >threads
equal "threads in the tape" 2 "$(wc -l <threads)"
# New files, and a child with a ring of its own that is not full.
flood preload 3000 3000 300 500 100
equal "preload: completions not seen" 100 "$(json info.json '.meta["unseen.completion, ring-full"]')"

iotape capture --list | grep -A1 '^bpf' | grep -q 'can run here' || exit 0
# One ring for all: once the first processor has filled it, the other loses all that it issues.
flood bpf 20000 5000 0 0 0
if [ "$cpu" != "$other" ]; then
    equal "lost on the second processor" 5000 "$(meta "lost_cpu$other.ring-full")"
    equal "lost on the first processor" $((lost - 5000)) "$(meta "lost_cpu$cpu.ring-full")"
else
    equal "lost on the only processor" "$lost" "$(meta "lost_cpu$cpu.ring-full")"
fi
# What tells of new files, threads and processes finds the ring full too; it is no op.
flood bpf 20000 5000 300 500 100
# The end of one op takes less room than an op: a few still fit.
unseen=$(json info.json '.meta["unseen.completion, ring-full"]')
[ "$unseen" -gt 190 ] && [ "$unseen" -le 200 ] || fail "bpf: $unseen completions not seen of 200"
