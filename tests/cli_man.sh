#!/bin/sh
# SPDX-License-Identifier: MIT
# The man pages and --help name the same options; the wrapper reaches every program.
. "$IOTAPE_SRC/tests/testlib.sh"

options_of_help() { grep -oE '^ {2,8}(-[a-zA-Z], )?--[a-z0-9][a-z0-9-]*' | grep -oE -- '--[a-z0-9-]+' | sort -u; }
# The tags of the page's lists: what follows .TP, and .IP and .OP themselves.
options_of_man() { sed 's/\\-/-/g; s/\\ / /g' | awk 'tag || /^\.(IP|OP)/ { print } { tag = /^\.T[PQ]/ }' |
    grep -oE -- '(^|[ ",])--[a-z0-9][a-z0-9-]*' | grep -oE -- '--[a-z0-9-]+' | sort -u; }

for program in capture convert replay compare; do
    page=$(ls "$IOTAPE_SRC"/*/iotape-$program.1 2>/dev/null) || fail "no man page for iotape-$program"
    runs 0 "iotape-$program" --help
    [ ! -s err ] || fail "iotape-$program --help writes to stderr"
    # the subcommands that the wrapper runs through it
    [ $program != convert ] || for sub in info dump; do iotape-convert $sub --help >>out || fail "$sub --help"; done
    options_of_help <out >help.txt
    options_of_man <"$page" >man.txt
    [ -s help.txt ] || fail "iotape-$program --help shows no options"
    diff help.txt man.txt >diff.txt || fail "iotape-$program: --help (<) and man page (>) differ: $(cat diff.txt)"
    runs 0 iotape-$program --version
    says '^iotape [0-9]' out
    runs 2 iotape-$program --no-such-option
    says 'no-such-option' err
    [ ! -s out ] || fail "iotape-$program: a usage error writes to stdout"
    runs 0 iotape "$program" --help
    runs 0 iotape help "$program"
done
# The wrapper of the sources finds what make built.
mkdir -p tree/build
cp "$IOTAPE_SRC/iotape" tree/
ln -s "$IOTAPE_BUILD"/iotape-* tree/build/
runs 0 tree/iotape version
runs 0 tree/iotape replay --help
runs 2 iotape
runs 2 iotape nonsense
says "'nonsense' is not a command" err
runs 0 iotape version
says '^iotape [0-9]' out
runs 0 iotape help
says 'replay' out
