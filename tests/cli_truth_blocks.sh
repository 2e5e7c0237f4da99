#!/bin/sh
# SPDX-License-Identifier: MIT
# Real block traces give exactly their true counts; every way of handing them over gives the same.
. "$IOTAPE_SRC/tests/testlib.sh"
shared
need jq gzip
truth=$SHARED/traces/truth.json
[ -r "$truth" ] && [ -d "$SHARED/blktrace" ] || skip "no real block traces beside the checkout"

# counts IN [FLAG...]: one line of what info says
counts() {
    rm -f c.tape
    iotape-convert "$@" -o c.tape >report 2>err || { cat err >&2; fail "convert $*"; }
    iotape-convert info c.tape --json >info.json || fail "info of $*"
    jq -r '[.by_op.read.count, .by_op.read.bytes, .by_op.write.count, .by_op.write.bytes,
            (.by_op.discard.count // 0), (.by_op.discard.bytes // 0), (.by_op.flush.count // 0),
            .duration_ns, .min_offset, .max_end] | map(tostring) | join(" ")' info.json
}

# by_truth KEY EVENT FILE...: against truth.json
by_truth() {
    key=$1 event=$2
    shift 2
    got=$(counts "$@" --event "$event" | cut -d' ' -f1-4,8-)
    want=$(jq -r --arg k "$key [$event events]" '.[$k] | [.ops.R // 0, .bytes.R // 0, .ops.W // 0, .bytes.W // 0,
           .duration_ns, .min_offset, .max_end] | map(tostring) | join(" ")' "$truth")
    equal "$key $event" "$want" "$got"
}
for event in Q D C; do
    by_truth 'blktrace-bin/mynotes-sda.blktrace.{0,1}' $event "$SHARED/traces/blktrace-bin/mynotes-sda"
    by_truth blktrace-bin/romeus-trace_x_0_y_0.bin $event "$SHARED/traces/blktrace-bin/romeus-trace_x_0_y_0.bin"
done
by_truth blkparse-text/wiscsee-blkparse-output.txt D "$SHARED/traces/blkparse-text/wiscsee-blkparse-output.txt"
equal "passthrough of the text" 4 "$(json info.json .by_op.passthrough.count)"
equal "ops of the text" 677 "$(json info.json .ops)"

# the captures' own table: case, file, event, reads, read bytes, writes, written, discards, discarded, flushes
while read -r dir name event want; do
    case $dir in \#* | '') continue ;; esac
    set=$SHARED/blktrace/$dir/$name
    [ -e "$set.blktrace.0" ] || continue
    got=$(counts "$set" --event "$event")
    equal "$dir $name $event" "$want" "$(echo "$got" | cut -d' ' -f1-7)"
    # as a list in the other order, one CPU after the other as a stream, and blkparse's merged dump
    equal "$dir: a list" "$got" "$(counts "$set.blktrace.1" "$set.blktrace.0" --event "$event")"
    equal "$dir: a stream" "$got" "$(cat "$set.blktrace.1" "$set.blktrace.0" | counts - --event "$event")"
    merged=$SHARED/blktrace/$dir/merged.bin text=$SHARED/blktrace/$dir/blkparse.txt.gz
    [ "$name" = trace ] || merged=$SHARED/blktrace/$dir/merged-$name.bin text=$SHARED/blktrace/$dir/blkparse-$name.txt.gz
    equal "$dir: merged" "$got" "$(counts "$merged" --event "$event")"
    equal "$dir: text" "$got" "$(counts "$text" --event "$event")"
done <<END
virtio-randread trace Q 1500 6144000 0 0 0 0 0
virtio-randread trace D 1500 6144000 0 0 0 0 0
virtio-mixed-2cpu trace Q 970 31866880 430 12943360 0 0 0
virtio-mixed-2cpu trace D 970 31866880 430 12943360 0 0 0
nvme-burst trace Q 758 3104768 778 3186688 0 0 0
nvme-burst trace C 758 3104768 778 3186688 0 0 0
ext4-fsync-sqlite trace Q 136 8396800 1738 28504064 36 231710720 117
ext4-fsync-sqlite trace D 135 8396800 928 28504064 36 231710720 591
discards trace Q 51 1081344 6401 30408704 749 115015680 0
discards trace D 51 1081344 51 30408704 749 115015680 0
dm-delay-two-devices dm-0 Q 343 1404928 257 1052672 0 0 0
dm-delay-two-devices vda D 343 1404928 257 1052672 0 0 0
END

# every I/O of every capture has found its completion
for dir in virtio-randread virtio-mixed-2cpu nvme-burst ext4-fsync-sqlite discards; do
    counts "$SHARED/blktrace/$dir/trace" >/dev/null
    runs 0 iotape-convert dump c.tape
    equal "$dir: ops without a latency" 0 "$(awk '!/^#/ && $7 == "-"' out | wc -l)"
    says "latency is from it to C" report
    grep -q 'had not completed' report && fail "$dir: ops without a completion"
done
# stacked devices in one capture: said, and --device takes one
counts "$SHARED"/blktrace/dm-delay-two-devices/*.blktrace.* >both
says "the same I/O is here twice" report
equal "one of two devices" "$(counts "$SHARED/blktrace/dm-delay-two-devices/dm-0")" \
    "$(counts "$SHARED"/blktrace/dm-delay-two-devices/*.blktrace.* --device 253,0)"

# blkparse's own totals
if command -v blkparse >/dev/null; then
    for dir in virtio-mixed-2cpu discards ext4-fsync-sqlite; do
        blkparse -i "$SHARED/blktrace/$dir/trace" 2>/dev/null >parsed
        queued=$(sed -n '/^Total/,$s/.*Reads Queued: *\([0-9]*\),.*Writes Queued: *\([0-9]*\),.*/\1 \2/p' parsed)
        equal "$dir: blkparse's queued" "$queued" \
            "$(counts "$SHARED/blktrace/$dir/trace" | awk '{print $1, $3 + $5 + $7}')"
    done
fi
