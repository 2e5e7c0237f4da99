#!/bin/sh
# SPDX-License-Identifier: MIT
# What becomes of an op's flags in the calls that engines make, as strace sees them.
. "$IOTAPE_SRC/tests/testlib.sh"
# LeakSanitizer cannot run under strace: it traces too.
ASAN_OPTIONS=${ASAN_OPTIONS:+$ASAN_OPTIONS:}detect_leaks=0
export ASAN_OPTIONS
need strace
strace -f true >/dev/null 2>&1 || skip "strace may not trace here"

cat >b.txt <<'EOF'
  8,0    0        1     0.000000000   100  Q  WS 0 + 8 [app]
  8,0    0        2     0.000100000   100  Q   W 8 + 8 [app]
  8,0    0        3     0.000200000   100  Q FWFS 16 + 8 [app]
EOF
runs 0 iotape-convert b.txt -o b.tape -q
truncate -s 1m disk

# traced ENGINE CALLS: the calls on the disk's descriptor are left in st
traced() {
    runs 0 strace -f -o all -e "trace=$2" iotape-replay b.tape --target disk --writes --buffered \
        --engine "$1" --depth 1 -q --json r.json --force
    equal "$1: completed" 3 "$(json r.json .ops_completed)"
    equal "$1: errors" 0 "$(json r.json .errors)"
    grep -E "(pwrite|io_submit|fdatasync|io_uring_enter)" all >st
}
order() { sed -nE 's/^[0-9]+ +([a-z0-9_]+)\(.*/\1/p' st | tr '\n' ' '; }

# The sync hint of a block trace is not O_SYNC; a flush+FUA write is a flush, then a durable write.
traced sync pwrite64,pwritev2,fdatasync
equal "sync: calls" "pwrite64 pwrite64 fdatasync pwritev2 " "$(order)"
says 'pwritev2.*8192, RWF_DSYNC' st

if engine_available libaio; then
    traced libaio io_submit,fdatasync
    equal "libaio: calls" "io_submit io_submit fdatasync io_submit " "$(order)"
    equal "libaio: durable writes" 1 "$(grep -c RWF_DSYNC st)"
fi

if engine_available posixaio; then
    traced posixaio pwrite64,fdatasync
    equal "posixaio: calls" "pwrite64 pwrite64 fdatasync pwrite64 " "$(order)"
fi

# --drop-flags leaves the plain writes.
runs 0 strace -f -o all -e trace=pwrite64,pwritev2,fdatasync iotape-replay b.tape --target disk \
    --writes --buffered --engine sync --depth 1 --drop-flags preflush,fua -q
grep -E "(pwrite|fdatasync)" all >st
equal "dropped: calls" "pwrite64 pwrite64 pwrite64 " "$(order)"

# io_uring links the flush to its write: two entries in that call.
if iotape-replay --list-engines | grep io_uring | grep -qv 'built without' &&
    iotape-replay b.tape --target disk --writes --buffered --engine io_uring -q 2>/dev/null; then
    traced io_uring io_uring_enter
    equal "io_uring: two entries" 1 "$(grep -cE 'io_uring_enter\([0-9]+, 2, ' st)"
fi
