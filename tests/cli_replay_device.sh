#!/bin/sh
# SPDX-License-Identifier: MIT
# Block devices: written only when named twice, never when mounted or in use.
. "$IOTAPE_SRC/tests/testlib.sh"
need jq losetup mkfs.ext4
need_root
head -c 16777216 /dev/zero >disk.img
dev=$(losetup --show -f disk.img 2>/dev/null) || skip "no loop devices"
trap 'umount mnt 2>/dev/null; losetup -d "$dev"' EXIT
runs 0 iotape convert -q --from synth 'rw=randrw,bs=4k,size=8m,ops=200,seed=1' -o t.tape

# Reads need no leave; writes without --destroy are a usage error; so is another device's name.
runs 0 iotape replay t.tape --engine sync --target "$dev" --json -
equal "writes skipped" true "$(json out '.ops_skipped_by.read_only > 0 and .errors == 0')"
runs 2 iotape replay t.tape --engine sync --target "$dev" --writes
says 'destroy' err
runs 2 iotape replay t.tape --engine sync --map "/synth=$dev" --writes
runs 2 iotape replay t.tape --engine sync --target "$dev" --writes --destroy disk.img
cmp -n 16777216 disk.img /dev/zero || fail "the device was written"
runs 0 iotape replay t.tape --engine sync --target "$dev" --writes --destroy "$dev" --json -
equal "written" true "$(json out '.by_op.write.count > 0 and .errors == 0 and .ops_skipped == 0')"
cmp -s -n 16777216 disk.img /dev/zero && fail "the device was not written"

# Direct, with the alignment checked first.
runs 0 iotape replay t.tape --engine sync --target "$dev" --direct --json -
equal "direct errors" 0 "$(json out .errors)"
printf '0,read,/d,100,300\n1,read,/d,4096,4096\n' >in.csv
runs 0 iotape convert -q --from csv --columns time:us,op,path,offset,length in.csv -o odd.tape
runs 1 iotape replay odd.tape --engine sync --target "$dev" --direct
says '1 direct transfers .* the first is op 0 \(offset 100, length 300\)' err
for how in buffered round; do
    runs 0 iotape replay odd.tape --engine sync --target "$dev" --direct --unaligned $how --json -
    equal "--unaligned $how" "2 0" "$(json out '"\(.ops_completed) \(.errors)"')"
done

# Mounted: refused; and one that only lies below the root is not a way in.
mkfs.ext4 -q -F "$dev" || fail "mkfs"
mkdir mnt
if mount "$dev" mnt 2>/dev/null; then
    runs 1 iotape replay t.tape --engine sync --target "$dev" --writes --destroy "$dev"
    says 'mounted or in use' err
    umount mnt
fi
mkdir root
if mknod root/synth b 7 0 2>/dev/null; then
    runs 1 iotape replay t.tape --engine sync --root root --writes
    says 'block device' err
fi
rm -f root/synth

# A read-only device is refused at once, not with an error an operation.
blockdev --setro "$dev" || fail "setro"
runs 1 iotape replay t.tape --engine sync --target "$dev" --writes --destroy "$dev"
says 'read-only' err
runs 0 iotape replay t.tape --engine sync --target "$dev" -q
blockdev --setrw "$dev"

# A loop device on the device takes no claim on it, and is a user of it all the same.
if upper=$(losetup --show -f "$dev" 2>/dev/null); then
    runs 1 iotape replay t.tape --engine sync --target "$dev" --writes --destroy "$dev"
    losetup -d "$upper"
    says 'in use, below a loop device' err
    runs 0 iotape replay t.tape --engine sync --target "$dev" --writes --destroy "$dev" -q
fi
exit 0
