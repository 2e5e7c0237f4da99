#!/bin/sh
# SPDX-License-Identifier: MIT
# dump: stable columns, odd names, filters.
. "$IOTAPE_SRC/tests/testlib.sh"
C=iotape-convert
printf 'issue_ns,op,file,offset,length,result,latency_ns,completion,pid,tid,comm,api,batch,flags,arg,file2,due_ns,submit_ns,ref,cause\n' >t.csv
printf '0,read,"/a ""b""\nc\\d",1,2,3,4,upper,5,6,"x y",libaio,7,direct|sync,,,,,,\n' >>t.csv
printf '1000000001,rename,/e,,0,,,,5,6,"x y",,,,,/f,,,,\n' >>t.csv
printf '1000000002,open,/e,,0,-2,,,,,,,,,66,,,,,\n' >>t.csv
cat >want <<'END'
# time op file offset length result latency stream api batch flags
0.000000000 read "/a \"b\"\nc\\d" 1 2 3 0.000000004 5/6"x y" libaio 7 direct|sync upper
1.000000001 rename "/e" - 0 - - 5/6"x y" unknown - - file2="/f"
1.000000002 open "/e" - 0 -2 - - unknown - - arg=0x42
END
runs 0 $C t.csv -o t.tape -q
runs 0 $C dump t.tape
diff want out || fail "columns"
runs 0 $C dump t.csv
diff want out || fail "columns of another format"
cat t.tape | iotape-convert dump - >out || fail "from a pipe"
diff want out || fail "columns from a pipe"
gzip -c t.tape >t.tape.gz
runs 0 $C dump t.tape.gz
diff want out || fail "columns of a compressed tape"
# the columns of a result tape
printf 'issue_ns,op,file,offset,length,due_ns,submit_ns,ref,cause\n0,read,/a,0,512,-100,20,3,wakeup\n' >r.csv
cause=$(iotape-convert dump r.csv 2>/dev/null | sed -n 's/.*cause=//p')
[ -n "$cause" ] || { printf 'issue_ns,op,file,offset,length,due_ns,submit_ns,ref,cause\n0,read,/a,0,512,-100,20,3,wake-up\n' >r.csv; }
runs 0 $C dump r.csv
says 'due=-0\.000000100 submit=0\.000000020 ref=3 cause=wake' out
# filters
lines() { runs 0 $C dump "$@"; equal "$*" "$want" $(($(wc -l <out) - 1)); }
want=1 lines t.tape --op rename
want=2 lines t.tape --time 1s..
want=1 lines t.tape --time ..1s
want=1 lines t.tape --head 1
want=2 lines t.tape --file /e
want=2 lines t.tape --stream 5
want=0 lines t.tape --stream 6
want=1 lines t.tape --range 0..10 --op read
runs 2 $C dump t.tape --op x
runs 2 $C dump
# a reader that leaves is no error message
runs 0 $C --from synth 'rw=read,size=1g,bs=4k' -o big.tape -q
$C dump big.tape 2>err | head -n 2 >out
[ ! -s err ] || { cat err >&2; fail "a closed pipe is complained of"; }
exit 0
