#!/bin/sh
# SPDX-License-Identifier: MIT
# fio's own counters against the preload recorder's, engine by engine; what cannot be seen is
# counted to the op. And a replay of ours through io_uring, captured.
. "$IOTAPE_SRC/tests/testlib.sh"
need fio jq
export ASAN_OPTIONS=verify_asan_link_order=0:detect_leaks=0

capture="iotape capture -q -r preload -f"
fio_job="--filename=$PWD/fio.dat --size=4m --bs=4k --rw=randrw --iodepth=16 --iodepth_batch_submit=8"
counts() { jq -r '.jobs[0] | "\(.read.total_ios) \(.write.total_ios)"' fio.json; }

fio --name=x --ioengine=psync $fio_job --create_only=1 >/dev/null || fail "fio cannot lay out its file"
for engine in psync:sync sync:sync pvsync2:vectored libaio:libaio posixaio:posix_aio; do
    api=${engine#*:}
    $capture -o fio.tape -- fio --name=x --ioengine="${engine%:*}" $fio_job --output-format=json \
        --output=fio.json >/dev/null 2>err || { cat err >&2; fail "fio ${engine%:*}"; }
    iotape dump fio.tape --file "*/fio.dat" >dump.raw || fail "dump"
    equal "$engine" "$(counts)" "$(awk -v api="$api" '$9 == api && $2 == "read" {r++} $9 == api && $2 == "write" {w++}
        END {print r + 0, w + 0}' dump.raw)"
done

# fio enters io_uring by system calls of its own: none can be recorded, all are counted.
if fio --name=x --ioengine=io_uring $fio_job --output-format=json --output=fio.json >/dev/null 2>&1; then
    $capture -o fio.tape -- fio --name=x --ioengine=io_uring $fio_job --output-format=json \
        --output=fio.json >/dev/null 2>err
    total=$(counts | awk '{print $1 + $2}')
    iotape info --json fio.tape >info.json
    seen=$(iotape dump fio.tape | awk '$9 == "io_uring"' | wc -l)
    unseen=$(json info.json '[.meta | to_entries[] | select(.key | startswith("unseen.io_uring")) | .value | tonumber] | add // 0')
    equal "io_uring seen and unseen" "$total" "$((seen + unseen))"
fi

# liburing's calls: the replayer's own engine.
iotape convert -q --from synth 'rw=rw,rwmix=60,bs=4k,size=1m,ops=400,depth=8,seed=3' -o synth.tape || fail "synth"
mkdir root
if iotape replay synth.tape --engine io_uring --depth 8 --batch 4 --root root --writes --prepare -q --json plain.json >/dev/null 2>&1; then
    $capture -o replay.tape -- iotape-replay synth.tape --engine io_uring --depth 8 --batch 4 --root root --writes --prepare \
        -q --json replay.json >/dev/null 2>err || { cat err >&2; fail "replay under capture"; }
    iotape dump replay.tape >dump.raw
    equal "replayed and captured" "$(json replay.json .ops_completed)" \
        "$(awk '$9 == "io_uring" && ($2 == "read" || $2 == "write")' dump.raw | wc -l)"
fi
exit 0
