#!/bin/sh
# SPDX-License-Identifier: MIT
# --max-overhead with probes in the kernel: what they take from the programs counts, not only what the
# collector does.
. "$IOTAPE_SRC/tests/testlib.sh"
need dd
iotape capture --list | grep -A1 '^bpf' | grep -q 'can run here' || skip "the bpf recorder cannot run here"

# most: the percentage that the summary tells
most() { sed -n 's/.*recording took at most \([0-9]*\).* of a CPU.*/\1/p' err; }

# Programs that are not recorded pass the probes too: this one's calls are no I/O of the target's.
dd if=/dev/zero of=/dev/null bs=1 2>/dev/null &
busy=$!
trap 'kill -9 $busy 2>/dev/null' EXIT
runs 0 iotape capture -r bpf -o idle.tape --max-overhead 1000 -- sleep 2.2
[ "$(most)" -ge 1 ] || { cat err >&2; fail "calls that are passed over cost nothing"; }
kill -9 $busy
# A target that does nothing but small writes is above 5 % at once: recording stops, the target goes on.
runs 0 iotape capture -r bpf -o busy.tape --max-overhead 5 -- sh -c 'timeout 2 dd if=/dev/zero of=file bs=1 2>/dev/null; echo done >after'
says 'recording has stopped: it took [0-9.]+% of a CPU, more than --max-overhead 5' err
iotape info busy.tape >/dev/null || fail "the tape is not good"
for _ in $(seq 100); do [ -e after ] && break; sleep 0.1; done
[ -e after ] || fail "the target did not go on"

# Without the right to the kernel's statistics each op counts what the benchmark measured, and that is said.
command -v capsh >/dev/null 2>&1 || exit 0
runs 0 capsh --drop=cap_sys_admin -- -c "exec iotape capture -r bpf -o plain.tape --max-overhead 1000 -- dd if=/dev/zero of=file bs=4k count=100"
says '--max-overhead counts 600 ns for each op' err
iotape info plain.tape >info || fail info
says '--max-overhead counts 600 ns' info
