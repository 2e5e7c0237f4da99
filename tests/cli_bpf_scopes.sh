#!/bin/sh
# SPDX-License-Identifier: MIT
# Whom the bpf recorder records: --pid with later children, --cgroup, --system, --comm.
. "$IOTAPE_SRC/tests/testlib.sh"
need_root
iotape capture --list | grep -A1 '^bpf' | grep -q 'can run here' || skip "the bpf recorder cannot run here"
jobs=""
trap 'kill $jobs 2>/dev/null; [ -z "${cgroup-}" ] || rmdir "$cgroup" 2>/dev/null' EXIT
trap 'exit 130' INT TERM

# writer NAME: appends to NAME from a shell named as it is; its pid in $pid
cp "$(command -v sh)" ./alpha
cp alpha beta
writer() {
    ./"$1" -c "while :; do echo x >>'$1.log'; sleep 0.02; done" &
    pid=$!
    jobs="$jobs $pid"
}
writer alpha; alpha=$pid
writer beta

# seen NAME TAPE: how many writes of NAME's log are in it
seen() { iotape dump "$2" | grep -c " write \"$PWD/$1.log\" "; }
record() {
    rm -f t.tape
    runs 0 iotape capture --recorder bpf -o t.tape --duration 1s "$@"
}

record --pid "$alpha"
[ "$(seen alpha t.tape)" -gt 5 ] || fail "--pid: $(seen alpha t.tape) writes of alpha"
equal "--pid: writes of beta" 0 "$(seen beta t.tape)"
# Children that began after the attachment (sleep) are there too.
iotape dump t.tape | grep -q '"sleep"' || fail "--pid: no children"

# Children that ran before it are, and theirs.
sh -c "(cd . && exec ./alpha -c 'while :; do echo x >>gamma.log; sleep 0.02; done') & wait" &
jobs="$jobs $!"
parent=$!
sleep 0.2
jobs="$jobs $(cat /proc/$parent/task/$parent/children 2>/dev/null)"
record --pid $parent
[ "$(seen gamma t.tape)" -gt 5 ] || fail "--pid: $(seen gamma t.tape) writes of a child that ran before"

record --system
[ "$(seen alpha t.tape)" -gt 5 ] || fail "--system: no alpha"
[ "$(seen beta t.tape)" -gt 5 ] || fail "--system: no beta"
# Not ourselves.
equal "--system: our own tape" 0 "$(iotape dump t.tape | grep -c "\"$PWD/t.tape\"")"

record --system --comm beta
[ "$(seen beta t.tape)" -gt 5 ] || fail "--comm: no beta"
equal "--comm: writes of alpha" 0 "$(seen alpha t.tape)"

# A cgroup, and one below it.
root=$(awk '$3 == "cgroup2" { print $2; exit }' /proc/mounts)
if [ -n "$root" ] && mkdir "$root/iotape-test.$$" 2>/dev/null; then
    cgroup=$root/iotape-test.$$
    echo "$alpha" >"$cgroup/cgroup.procs" || fail "cannot move into $cgroup"
    record --cgroup "$cgroup"
    [ "$(seen alpha t.tape)" -gt 5 ] || fail "--cgroup: no alpha"
    equal "--cgroup: writes of beta" 0 "$(seen beta t.tape)"
    mkdir "$cgroup/below"
    echo "$alpha" >"$cgroup/below/cgroup.procs" || fail "cannot move below"
    record --cgroup "$cgroup"
    [ "$(seen alpha t.tape)" -gt 5 ] || fail "--cgroup: nothing from below"
    echo "$alpha" >"$root/cgroup.procs"
    sleep 0.2
    for p in $(cat "$cgroup/below/cgroup.procs"); do echo "$p" >"$root/cgroup.procs" 2>/dev/null; done
    rmdir "$cgroup/below"
fi
