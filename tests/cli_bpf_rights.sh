#!/bin/sh
# SPDX-License-Identifier: MIT
# The rights the bpf recorder asks for: without them it says which, with no more than them it records.
. "$IOTAPE_SRC/tests/testlib.sh"
need_root
need setpriv setcap
iotape capture --list | grep -A1 '^bpf' | grep -q 'can run here' || skip "the bpf recorder cannot run here"
chmod 755 .. . && mkdir open && chmod 777 open
cp "$IOTAPE_BUILD/iotape-capture" open/ && cd open || fail "copy"
nobody() { setpriv --reuid=65534 --regid=65534 --clear-groups "$@"; }
nobody true || skip "cannot become another user"

runs 0 nobody ./iotape-capture --list
grep -A2 '^bpf' out >bpf
says 'cannot run here: needs CAP_BPF and CAP_PERFMON' bpf
says 'to enable: run it as root, or: setcap cap_bpf' bpf
runs 1 nobody ./iotape-capture --recorder bpf -o a.tape -- cat /etc/hostname
says 'CAP_BPF' err
[ ! -e a.tape ] || fail "a tape of nothing"

caps=$(sed -n 's/.*setcap \([^ ]*\) .*/\1/p' bpf)
setcap "$caps" iotape-capture 2>/dev/null || skip "no file capabilities here"
# Before 5.11 one more is needed: then it is said next.
runs 0 nobody ./iotape-capture --list
grep -A2 '^bpf' out >bpf
more=$(sed -n 's/.*setcap \([^ ]*\) .*/\1/p' bpf)
[ -z "$more" ] || caps=$more
setcap "$caps" iotape-capture 2>/dev/null || skip "no file capabilities here"
runs 0 nobody ./iotape-capture --recorder bpf -o b.tape -- cat /etc/hostname
iotape dump b.tape | grep -q ' "/etc/hostname" ' || fail "the file is not in the tape"
