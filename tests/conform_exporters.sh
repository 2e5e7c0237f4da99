#!/bin/sh
# SPDX-License-Identifier: MIT
# Every exporter that --list-formats names and that an importer of the same name reads back:
# tape -> exporter -> importer -> tape gives exactly the fields that tests/samples/NAME.keeps names,
# and the ops that the format cannot hold are counted.
#   NAME.keeps: shell variables
#     kinds="read write"     ops that are kept; empty: all
#     columns="2 4 5"        columns of the dump that come back as they were; empty: all
#     time_ns=1000           column 1 comes back to within this; 0: exactly; none: not compared
#     to="" from=""          options of the two formats, with their colon
#     imitates=yes           the format describes the ops, it does not hold them: not read back
#     source="rw=..."        another workload than the one here, as synth takes it
. "$IOTAPE_SRC/tests/testlib.sh"
need awk jq
samples=$IOTAPE_SRC/tests/samples
C=iotape-convert

# One of everything: each kind of op, odd names, unknown and failed results, due times.
{
    printf 'issue_ns,op,file,offset,length,result,latency_ns,completion,pid,tid,comm,api,batch,flags,arg,file2,file_size\n'
    printf '%s\n' '-2000,open,/d/a b,,0,3,500,exact,10,11,"x, y",sync,,,66,,8192' \
        '0,read,/d/a b,0,4096,4096,1500,exact,10,11,"x, y",sync,,direct,,,' \
        '0,write,/d/a b,4096,4096,-28,,,10,12,z,libaio,5,direct|dsync,,,' \
        '10,write,/d/a b,8192,4096,4096,77,upper,10,12,z,libaio,5,direct|dsync,,,' \
        '1000000007,rename,/d/a b,,0,0,,,10,11,"x, y",sync,,,,"/d/c""d",' \
        '1000000008,fsync,"/d/c""d",,0,0,9000,exact,10,11,"x, y",sync,,,,,' \
        '2000000000,discard,/dev/x,1048576,1048576,,,,,,,block,,,,,1073741824' \
        '2000000100,flush,/dev/x,,0,,,,,,,block,,,,,' \
        '9000000000000,read,/dev/x,1099511627776,512,512,1,exact,,,,block,,readahead|meta,,,'
} >all.csv
runs 0 $C all.csv -o all.tape -q
runs 0 $C --from synth 'rw=randrw,bs=4k-16k,size=64m,ops=3000,rate=20000,arrival=poisson,streams=3,files=2,fsync=50,batch=2' -o many.tape -q

# kept FILE KINDS COLUMNS: the lines and columns to compare
kept() {
    $C dump "$1" | awk -v kinds="$2" -v columns="$3" '
        BEGIN { n = split(kinds, k, " "); for (i = 1; i <= n; i++) want[k[i]] = 1; m = split(columns, c, " ") }
        NR > 1 && (!n || $2 in want) {
            if (!m) { print; next }
            l = $c[1]; for (i = 2; i <= m; i++) l = l " " $c[i]; print l
        }'
}

runs 0 $C --list-formats
cp out formats
count=0
while read -r way name rest; do
    [ "$way" = out ] || continue
    case $rest in *"; unavailable: "*) continue ;; esac
    runs 0 $C --help-format "$name"
    says "^--to $name: " out
    grep -Eq "^in +$name " formats || { echo "$name: nothing reads it back here"; continue; }
    kinds="" columns="" time_ns=0 to="" from="" source="" imitates=no
    tapes="all.tape many.tape"
    if [ -e "$samples/$name.keeps" ]; then
        # shellcheck disable=SC1090
        . "$samples/$name.keeps"
        # a dump's file column may hold blanks: only the plain workload is cut into columns
        tapes=many.tape
    fi
    [ $imitates = no ] || { echo "$name: an imitation has no fields to come back"; continue; }
    if [ -n "$source" ]; then
        runs 0 $C --from synth "$source" -o source.tape -q
        tapes=source.tape
    fi
    for tape in $tapes; do
        runs 0 $C "$tape" -o "made.$name" --to "$name$to" --report-json report.json
        equal "$name: ops in and out" "$(json report.json .ops_in)" "$(json report.json .ops_out)"
        runs 0 $C "made.$name" -o back.tape --from "$name$from" -q
        kept "$tape" "$kinds" "$columns" >want
        kept back.tape "$kinds" "$columns" >got
        cmp -s want got || { diff want got | head -n 10 >&2; fail "$name: $tape: what came back differs"; }
        [ "$time_ns" = none ] || {
            kept "$tape" "$kinds" 1 >want
            kept back.tape "$kinds" 1 | paste -d' ' want - |
                awk -v most="$time_ns" '{ d = ($1 - $2) * 1e9; if (d < 0) d = -d; if (d > most + 0.5) { print; exit 1 } }' >late ||
                fail "$name: $tape: times differ by more than $time_ns ns: $(cat late)"
        }
        # every op that was not kept is counted
        lost=$(kept "$tape" "" 2 | awk -v kinds="$kinds" 'BEGIN { n = split(kinds, k, " "); for (i = 1; i <= n; i++) want[k[i]] = 1 } n && !($1 in want)' | wc -l)
        [ "$lost" = 0 ] || [ "$(json report.json '[.not_written[]] | add // 0')" -ge "$lost" ] ||
            fail "$name: $tape: $lost ops were left out without a count"
    done
    # the same bytes into a pipe
    $C "$tape" -o - --to "$name$to" 2>err | cmp -s - "made.$name" || fail "$name: standard output differs"
    count=$((count + 1))
done <formats
echo "$count exporters"
[ $count -gt 0 ]
