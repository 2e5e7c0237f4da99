#!/bin/sh
# SPDX-License-Identifier: MIT
# iotape-formats.5 has a section for every format, and names every option of it.
. "$IOTAPE_SRC/tests/testlib.sh"
page=$IOTAPE_SRC/convert/iotape-formats.5
[ -e "$page" ] || fail "no $page"
# sections WAY: the .SS names below its .SH
sections() { awk -v sh="$1 FORMATS" '/^\.SH / { on = substr($0, 5) == sh } on && /^\.SS / { print $2 }' "$page"; }
sections INPUT >in.page
sections OUTPUT >out.page
iotape-convert --list-formats >formats || fail "--list-formats"
awk '$1 == "in" { print $2 }' formats >in.list
awk '$1 == "out" { print $2 }' formats >out.list
diff in.list in.page >&2 || fail "input formats (<) and their sections (>)"
diff out.list out.page >&2 || fail "output formats (<) and their sections (>)"
while read -r way name _; do
    iotape-convert --help-format "$name" | awk -v way="--$([ "$way" = in ] && echo from || echo to) $name:" '
        /^--(from|to) / { on = index($0, way) == 1 } on && /^ +--[a-z]/ { sub("--", "", $1); print $1 }' >keys
    while read -r key; do
        awk -v sh="$([ "$way" = in ] && echo INPUT || echo OUTPUT) FORMATS" -v ss="$name" '
            /^\.SH / { on = substr($0, 5) == sh; in_ss = 0 } on && /^\.SS / { in_ss = $2 == ss } in_ss' "$page" |
            tr -c 'a-z_0-9\n' ' ' | grep -qw -- "$key" || fail "$name: option $key is not in the page"
    done <keys
done <formats

# blkparse -s: the figures of each program behind the events; a format of the user's that names the command everywhere.
cat >s.txt <<'END'
8,0    1        1     0.000000000   128  Q   R 0 + 8 [fio]
8,0    1        2     0.000001000   128  D   R 0 + 8 [fio]
8,0    0        1     0.000100000     0  C   R 0 + 8 [swapper/0]
fio (127)
 Reads Queued:           0,        0KiB	 Writes Queued:           0,        0KiB
 Dispatch wait:          0        	 Dispatch wait:           0
 Completion wait:        0        	 Completion wait:         0
my prog (128, 129)
 Reads Queued:           1,        4KiB	 Writes Queued:           0,        0KiB
END
runs 0 iotape convert s.txt -o s.tape
equal "blkparse -s" '1 100000 0' "$(iotape convert s.tape --to jsonl -o - -q | jq -r '"1 \(.latency_ns) \(.issue_ns)"')"
