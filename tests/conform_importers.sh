#!/bin/sh
# SPDX-License-Identifier: MIT
# Every importer that --list-formats names: its sample gives its .out, is recognised by content, and
# what is cut, empty or garbage ends in one line, exit 1 and no output.
#   tests/samples/NAME.in*   a file or a folder; NAME.args: options it needs, one line
. "$IOTAPE_SRC/tests/testlib.sh"
samples=$IOTAPE_SRC/tests/samples
need gzip

# no_mess WHAT: after a failed conversion to t.tape
no_mess() {
    [ ! -e t.tape ] || fail "$1: an output was left"
    ls -A | grep -q 't\.tape' && fail "$1: a temporary was left: $(ls -A)"
    [ "$(wc -l <err)" = 1 ] || { cat err >&2; fail "$1: not one line on stderr"; }
    return 0
}
# survives WHAT COMMAND...: exit 0, or 1 with one line and nothing left
survives() {
    _what=$1; shift
    rm -f t.tape
    "$@" >out 2>err </dev/null
    _rc=$?
    case $_rc in
    0) ;;
    1) no_mess "$_what" ;;
    *) cat err >&2; fail "$_what: exit $_rc" ;;
    esac
}

iotape-convert --list-formats >formats || fail "--list-formats"
count=0
while read -r way name rest; do
    [ "$way" = in ] || continue
    case $rest in *"; unavailable: "*) continue ;; esac
    in=""
    for f in "$samples/$name".in*; do [ -e "$f" ] && in=$f && break; done
    want=$samples/$name.out
    if [ "$name" = tape ]; then
        # made here: the format's own golden files are those of traces/samples
        runs 0 iotape-convert "$samples/csv.in" -o sample.tape
        in=sample.tape want=$samples/csv.out
    fi
    [ -n "$in" ] || fail "$name: no tests/samples/$name.in"
    [ -e "$want" ] || fail "$name: no tests/samples/$name.out"
    args=""
    [ -e "$samples/$name.args" ] && args=$(cat "$samples/$name.args")
    text=no
    iotape-convert --help-format "$name" >help || fail "$name: --help-format"
    says "^--from $name: " help
    case $name in synth) text=yes ;; esac
    forced="" word=$in
    case $rest in *"(needs --from)"*) [ -d "$in" ] || forced="--from $name" ;; esac
    by="--from $name $args"
    case $args in *--from*) forced="" by=$args ;; esac
    [ $text = yes ] && word=$(cat "$in")

    # shellcheck disable=SC2086
    runs 0 iotape-convert "$word" -o t.tape $forced $args
    runs 0 iotape-convert dump t.tape
    diff "$want" out >difference || { head -n 20 difference >&2; fail "$name: the dump of its sample differs"; }
    # shellcheck disable=SC2086
    runs 0 iotape-convert dump "$word" $forced $(echo "$args" | grep -o -- '--from [^ ]*')
    count=$((count + 1))
    [ $text = no ] && [ ! -d "$in" ] || continue

    # the same by content, from a compressed copy, and from standard input
    mkdir -p copy && gzip -c "$in" >"copy/${in##*/}"
    # shellcheck disable=SC2086
    runs 0 iotape-convert "copy/${in##*/}" -o z.tape $forced $args
    runs 0 iotape-convert dump z.tape
    cmp -s "$want" out || fail "$name: from a compressed copy"
    # shellcheck disable=SC2086
    iotape-convert - -o s.tape $forced $args <"$in" >out 2>err || { cat err >&2; fail "$name: from standard input"; }
    case "$forced$args" in *--from*) ;; *) says "\($name\) -> s.tape" out ;; esac

    # empty: not even a guess
    : >empty
    # shellcheck disable=SC2086
    runs 1 iotape-convert empty -o t.tape $by
    rm -f t.tape
    no_mess "$name: empty"
    says empty err
    # one byte of no format, and 5,003 of them
    printf '\001' >garbage
    # shellcheck disable=SC2086
    runs 1 iotape-convert garbage -o t.tape $by
    no_mess "$name: one wrong byte"
    head -c 5003 /bin/sh >garbage
    # shellcheck disable=SC2086
    survives "$name: a program" iotape-convert garbage -o t.tape $by
    # cut at several places
    size=$(wc -c <"$in")
    for part in 2 5 9; do
        head -c $((size * part / 10)) "$in" >cut
        # shellcheck disable=SC2086
        survives "$name: cut at $part tenths" iotape-convert cut -o t.tape $by
    done
    rm -f t.tape z.tape s.tape
done <formats
echo "$count importers"
[ $count -gt 0 ]
