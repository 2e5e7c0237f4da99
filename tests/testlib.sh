# SPDX-License-Identifier: MIT
# Sourced by cli_*.sh: `. "$IOTAPE_SRC/tests/testlib.sh"`. The working folder is the test's own.
set -u

fail() { echo "FAIL: $*" >&2; exit 1; }
skip() { echo "$*"; exit 77; }
need() { for p; do command -v "$p" >/dev/null 2>&1 || skip "no $p on this machine"; done; }
need_root() { [ "$(id -u)" = 0 ] || skip "needs root"; }

# equal WHAT EXPECTED ACTUAL
equal() { [ "$2" = "$3" ] || fail "$1: expected '$2', got '$3'"; }
# runs EXIT COMMAND...: must exit so; output in out, err
runs() {
    _want=$1; shift
    "$@" >out 2>err </dev/null
    _got=$?
    [ $_got = "$_want" ] || { cat out err >&2; fail "exit $_got, expected $_want: $*"; }
}
# says PATTERN FILE: an extended regular expression found in it
says() { grep -Eq -- "$1" "$2" || { cat "$2" >&2; fail "'$1' is not in $2"; }; }
# json FILE FILTER: the value, by jq
json() { jq -r "$2" "$1" || fail "jq $2 on $1"; }
# attached PID N: waits until this capture has attached N programs to the kernel, so that what follows is recorded
attached() {
    for _ in $(seq 300); do
        [ "$(cat /proc/"$1"/fdinfo/* 2>/dev/null | grep -c '^link_type')" -ge "$2" ] && return
        kill -0 "$1" 2>/dev/null || return 0 # ended: the test looks at how
        sleep 0.1
    done
    fail "the capture has not begun"
}
# Real traces to try on, when the checkout has them beside it.
# shellcheck disable=SC2034
shared() { [ -d "$IOTAPE_SRC/../shared" ] && SHARED=$(cd "$IOTAPE_SRC/../shared" && pwd) || skip "no shared traces beside the checkout"; }
# app_recorders: the names of those that record programs and can run here
app_recorders() { echo preload; iotape-capture --list | grep -A1 '^bpf' | grep -q 'can run here' && echo bpf; return 0; }
# engine_available NAME: it can run in this build, on this kernel
engine_available() { iotape-replay --list-engines | sed -n "/^$1 /{n;p;}" | grep -q 'not here' && return 1; return 0; }
