#!/bin/sh
# SPDX-License-Identifier: MIT
# Nothing is written that was not allowed, and no tape leads out of its directory.
. "$IOTAPE_SRC/tests/testlib.sh"
need jq

csv() { # csv TAPE PATH OP...
    tape=$1 path=$2; shift 2
    rm -f "$tape"
    : >in.csv
    t=0
    for op; do echo "$t,$op,$path,0,4096" >>in.csv; t=$((t + 1)); done
    runs 0 iotape convert -q --from csv --columns time:us,op,path,offset,length in.csv -o "$tape"
}

mkdir root outside
head -c 8192 /dev/zero >outside/victim
head -c 8192 /dev/zero >root/file

# A path with .. and a symbolic link, as last component and on the way.
csv up.tape "/../outside/victim" read
runs 1 iotape replay up.tape --engine sync --root root
says 'lead out' err
csv plain.tape /link read
ln -s ../outside/victim root/link
runs 1 iotape replay plain.tape --engine sync --root root
says 'refused' err
csv deep.tape /dir/victim write
ln -s ../outside root/dir
runs 1 iotape replay deep.tape --engine sync --root root --writes
says 'refused' err
runs 1 iotape replay deep.tape --engine sync --root root --writes --prepare
ln -sfn "$PWD/outside" root/dir
runs 1 iotape replay deep.tape --engine sync --root root --writes --prepare
equal "the victim" "4294967295 8192" "$(cksum <outside/victim | sed 's/.*/4294967295 8192/')"
cmp -s outside/victim root/file || fail "something outside the root was written"
# An absolute path is taken below the root.
csv abs.tape "$PWD/outside/victim" write
runs 1 iotape replay abs.tape --engine sync --root root --writes
runs 0 iotape replay abs.tape --engine sync --root root --writes --prepare -q
[ -f "root$PWD/outside/victim" ] || fail "not below the root"
cmp -s outside/victim root/file || fail "an absolute path left the root"

# Where to is asked for; a file without a place is an error, never sent elsewhere.
csv file.tape /file read write
runs 2 iotape replay file.tape --engine sync
says 'where to' err
runs 1 iotape replay file.tape --engine sync --map /other=root/file
says '/file: no --map' err
runs 1 iotape replay file.tape --engine sync --map /file=root/missing
says 'prepare' err
runs 0 iotape replay file.tape --engine sync --map /file=root/file -q
# Operations that name no file go nowhere without --target.
printf '0,read,0,4096\n1,read,4096,4096\n' >in.csv
runs 0 iotape convert -q --from csv --columns time:us,op,offset,length in.csv -o nofile.tape
if iotape replay nofile.tape --engine sync --root root >out 2>err; then
    # The importer may have named the one file there is.
    :
else
    says 'file' err
fi
runs 0 iotape replay nofile.tape --engine sync --target root/file -q

# Beyond the target: the count and the remedy, and the remedies work.
printf '0,read,/big,1048576,4096\n1,read,/big,0,4096\n' >in.csv
runs 0 iotape convert -q --from csv --columns time:us,op,path,offset,length in.csv -o big.tape
runs 1 iotape replay big.tape --engine sync --target root/file
says '^iotape-replay: 1 operations reach beyond .* the first is op 0 .*--fit' err
for fit in wrap scale; do
    runs 0 iotape replay big.tape --engine sync --target root/file --fit $fit --json -
    equal "--fit $fit" "2 0 0" "$(json out '"\(.ops_completed) \(.errors) \(.short_transfers)"')"
done
head -c 131072 /dev/zero >root/packed
runs 0 iotape replay big.tape --engine sync --target root/packed --fit pack --json -
equal "--fit pack" "2 0 0" "$(json out '"\(.ops_completed) \(.errors) \(.short_transfers)"')"
runs 1 iotape replay big.tape --engine sync --target root/file --fit pack

# Operations without a file are held to the target's size too; no sum overflows.
printf '0,read,1048576,4096\n1,read,0,4096\n' >in.csv
runs 0 iotape convert -q --from csv --columns time:us,op,offset,length in.csv -o nofile.tape
runs 1 iotape replay nofile.tape --engine sync --target root/file
says 'reach beyond' err
printf '0,discard,/f,9223372036854771712,9223372036854771712\n' >in.csv
if iotape convert -q --from csv --columns time:us,op,path,offset,length in.csv -o huge.tape 2>/dev/null; then
    runs 1 iotape replay huge.tape --engine sync --target root/file --writes
    runs 1 iotape replay huge.tape --engine sync --target root/file --writes --fit pack
fi

# Usage errors exit 2 and touch nothing.
runs 2 iotape replay file.tape --engine nonsense --root root
runs 2 iotape replay file.tape --engine sync --root root --target root/file
runs 2 iotape replay file.tape --engine sync --root root --destroy root/file --writes
runs 2 iotape replay file.tape --engine sync --root root --destroy /dev/null
runs 2 iotape replay --engine null
# A CPU beyond what can be named is an error, not left out.
runs 1 iotape replay file.tape --engine null --pin 4095
says "'4095' is not a list of CPUs" err
runs 1 iotape replay file.tape --engine null --pin 0-4095
runs 0 iotape replay file.tape --engine null --pin 0 -q

# A lost terminal ends a run as an interrupt does: with its report. Under nohup it does not.
printf '0,read,/file,0,4096\n20000000,read,/file,0,4096\n' >in.csv
runs 0 iotape convert -q --from csv --columns time:us,op,path,offset,length in.csv -o long.tape
iotape-replay long.tape --engine null --pace recorded --json hup.json >out 2>err &
sleep 1
kill -HUP $!
wait $!
equal "hung up exit" 129 $?
equal "its report" 1 "$(json hup.json .ops_completed)"
(trap '' HUP; exec iotape-replay long.tape --engine null --pace recorded --json term.json >out 2>err) &
sleep 1
kill -HUP $!
sleep 0.3
kill -TERM $! || fail "an ignored SIGHUP ended it"
wait $!
equal "ended by the other" 143 $?

# ulimit -f is a full disk: an error, and what was written of the result is a tape.
runs 0 iotape convert -q --from synth 'rw=randread,bs=4k,size=1m,ops=100k' -o many.tape
(ulimit -f 16; iotape-replay many.tape --engine null --result cut.tape >out 2>err)
equal "file size limit exit" 1 $?
says 'too large' err
runs 0 iotape info cut.tape

# A file that has no room is refused before the disk is full, and does not stay half made.
printf '0,read,/exa,1152921504606846976,4096\n' >in.csv
runs 0 iotape convert -q --from csv --columns time:us,op,path,offset,length in.csv -o exa.tape
runs 1 timeout 20 iotape replay exa.tape --engine sync --root root --prepare
says 'making [^ ]*exa takes 1(\.0)? EiB, the file system has .* free' err
[ -e root/exa ] && fail "half a file is left"
# Nor are files made of which each has room and all together have not.
if [ "$(id -u)" = 0 ] && mkdir small && mount -t tmpfs -o size=2m none small 2>/dev/null; then
    i=0
    while [ $i -lt 5 ]; do echo "$i,read,/f$i,$((i * 1000 + 500000)),4096"; i=$((i + 1)); done >in.csv
    runs 0 iotape convert -q --from csv --columns time:us,op,path,offset,length in.csv -o five.tape
    iotape replay five.tape --engine sync --root small --prepare >out 2>err
    rc=$?
    left=$(ls small)
    umount small
    equal "no room for all" 1 $rc
    says 'making [^ ]*f4 and 4 other files takes 2.4 MiB, the file system has 2.0 MiB free' err
    equal "nothing was begun" "" "$left"
fi
exit 0
