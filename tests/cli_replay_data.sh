#!/bin/sh
# SPDX-License-Identifier: MIT
# What is written, and --verify: every engine's reads find its writes, damage is found, also by a
# later run, and the cache is what was asked for.
. "$IOTAPE_SRC/tests/testlib.sh"
need jq gzip cmp

runs 0 iotape convert -q --from synth 'rw=randrw,rwmix=50,bs=512-16k,size=2m,ops=3000,streams=3,seed=7' -o mixed.tape
runs 0 iotape convert -q --from synth 'rw=read,bs=64k,size=2m' -o read.tape
runs 0 iotape convert -q --from synth 'rw=write,bs=64k,size=2m' -o write.tape

for engine in $(iotape replay --list-engines | awk '/^[a-z]/ {print $1}'); do
    case $engine in null | model) continue ;; esac
    engine_available $engine || continue
    rm -rf root && mkdir root
    runs 0 iotape replay mixed.tape --engine $engine --depth 16 --root root --prepare --writes --verify --json -
    equal "$engine" "3000 0 0 true" "$(json out '"\(.ops_completed) \(.errors) \(.verify.errors) \(.verify.blocks > 10000)"')"
    # Another engine finds what it left.
    runs 0 iotape replay read.tape --engine sync --root root --verify --json -
    equal "$engine, read by sync" "0 4096" "$(json out '"\(.verify.errors) \(.verify.blocks)"')"
done
for shape in '--workers 3' '--processes 2' '--pace recorded' '--order stream --assume-latency 1us'; do
    runs 0 iotape replay mixed.tape --engine sync --depth 8 --root root --writes --verify $shape --json -
    equal "$shape" "0 0" "$(json out '"\(.errors) \(.verify.errors)"')"
done

# A flipped bit in one block, and a block in the wrong place.
runs 0 iotape replay write.tape --engine sync --root root --writes --verify -q
cp root/synth good
printf '\377' | dd of=root/synth bs=1 seek=100100 conv=notrunc 2>/dev/null
runs 1 iotape replay read.tape --engine sync --root root --verify --json -
equal "flipped" "1 1 EILSEQ" "$(json out '"\(.verify.errors) \(.errors) \(.errors_by[0].errno)"')"
cp good root/synth
dd if=good of=root/synth bs=512 skip=10 seek=2000 count=1 conv=notrunc 2>/dev/null
runs 1 iotape replay read.tape --engine sync --root root --verify --json -
equal "misplaced" "1 1" "$(json out '"\(.verify.errors) \(.errors)"')"

# Killed while writing: every block that has a header is whole and in its place.
cp good root/synth
runs 0 iotape convert -q --from synth 'rw=randwrite,bs=4k,size=2m,ops=500,rate=500,seed=9' -o slow.tape
iotape-replay slow.tape --engine sync --root root --writes --verify --pace recorded -q &
pid=$!
sleep 0.4
kill -9 $pid
wait $pid 2>/dev/null
runs 0 iotape replay read.tape --engine sync --root root --verify --json -
equal "after a kill" "0 4096" "$(json out '"\(.verify.errors) \(.verify.blocks)"')"

# Fill.
for fill in zero random compress=75; do
    runs 0 iotape replay write.tape --engine sync --root root --writes --fill $fill -q
    size=$(gzip -1 <root/synth | wc -c)
    case $fill in
    zero) cmp -s -n 2097152 root/synth /dev/zero || fail "--fill zero is not" ;;
    random) [ "$size" -gt 2000000 ] || fail "--fill random compresses to $size" ;;
    *) [ "$size" -gt 400000 ] && [ "$size" -lt 700000 ] || fail "--fill $fill compresses to $size" ;;
    esac
done
runs 2 iotape replay write.tape --engine sync --root root --fill compress=101

# Cache: checked, so the counts are what was there just before the start.
runs 0 iotape replay read.tape --engine sync --root root --cache warm --json -
equal "warm" true "$(json out '.cache.measured and .cache.resident >= 507')"
if iotape replay read.tape --engine sync --root root --cache cold --json - >out 2>err; then
    equal "cold" true "$(json out '.cache.measured and .cache.resident <= 5')"
else
    says 'still resident' err # a file system that lives in memory
fi
exit 0
