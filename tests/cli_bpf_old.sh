#!/bin/sh
# SPDX-License-Identifier: MIT
# The bpf recorder without what kernels after 5.8 have: the same truth, from the same tests.
. "$IOTAPE_SRC/tests/testlib.sh"
iotape capture --list | grep -A1 '^bpf' | grep -q 'can run here' || skip "the bpf recorder cannot run here"
export IOTAPE_BPF_OLD=1
for test in unit_bpf_sync unit_bpf_aio unit_bpf_uring; do
    [ -x "$IOTAPE_BUILD/tests/$test" ] || fail "no $test in the build"
    mkdir $test
    (cd $test && "$IOTAPE_BUILD/tests/$test" >../log 2>&1)
    case $? in 0 | 77) ;; *) cat log >&2; fail "$test" ;; esac
done
[ "$(id -u)" != 0 ] || IOTAPE_BPF_OLD=1 sh "$IOTAPE_SRC/tests/cli_bpf_scopes.sh" || fail "scopes"
