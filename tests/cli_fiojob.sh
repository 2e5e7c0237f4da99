#!/bin/sh
# SPDX-License-Identifier: MIT
# fio job files in: the ops they describe and the command that replays them; out: an imitation that fio runs.
. "$IOTAPE_SRC/tests/testlib.sh"
need jq

made() { # made FILE: its ops into made.tape, info in info.json, the report in report
    rm -f made.tape
    iotape-convert "$1" -o made.tape >report 2>err || { cat err >&2; fail "$1"; }
    iotape-convert info made.tape --json >info.json
}
cat >jobs.fio <<'END'
# inherited, overridden, counted
[global]
ioengine=io_uring
bs=4k
size=1m
direct=1
group_reporting

[seq]
rw=write
bs=64k
fsync=4
iodepth=16
iodepth_batch=4

[rand]
rw=randread
numjobs=3
thread
number_ios=50
random_distribution=zipf:1.2
END
made jobs.fio
equal "writes" "16 1048576" "$(json info.json '.by_op.write | "\(.count) \(.bytes)"')"
equal "syncs" 4 "$(json info.json .by_op.fsync.count)"
equal "reads" "150 614400" "$(json info.json '.by_op.read | "\(.count) \(.bytes)"')"
equal "files: one of seq, three of rand" 4 "$(json info.json .files)"
equal "streams" 4 "$(json info.json .streams)"
says "replay it with: iotape replay T.tape --engine io_uring --depth 16 --pace asap --batch 4 .*--direct --writes" report
says "'group_reporting' says nothing" report

# rates are exact arrivals, and the time or the size ends the job, what comes first
printf '[r]\nrw=randread\nsize=16m\nbs=4k\nrate_iops=1000\nruntime=2\n' >rate.fio
made rate.fio
equal "2 s at 1,000" 2000 "$(json info.json .ops)"
equal "last issue" 1999000000 "$(json info.json .duration_ns)"
says "--pace recorded" report
printf '[r]\nrw=read\nsize=40k\nbs=4k\nrate_iops=1000\nruntime=2\n' >size.fio
made size.fio
equal "the size came first" 10 "$(json info.json .ops)"
# each block once, as fio's random map has it
printf '[r]\nrw=randwrite\nsize=256k\nbs=4k\nfilename=/dev/sdz\n' >map.fio
made map.fio
iotape-convert dump made.tape | awk '!/^#/ {print $4}' | sort -u >places
equal "64 blocks, each once" 64 "$(wc -l <places)"
says "--target DEV" report

# what is not understood is named, with its place
bad() { # bad TEXT PATTERN
    printf "$1" >bad.fio
    rm -f t.tape
    runs 1 iotape-convert bad.fio --from fiojob -o t.tape
    says "$2" err
    equal "lines of complaint" 1 "$(wc -l <err)"
    [ ! -e t.tape ] || fail "an output was left"
}
bad '[a]\nrw=read\nsize=1m\nzonemode=zbd\n' 'bad.fio:4:1: .*zonemode'
bad '[a]\nrw=read\nsize=ten\n' 'bad.fio:3:6: .*ten'
bad '[a]\nrw=sideways\nsize=1m\n' "rw 'sideways'"
bad '[a]\nrw=read\nbs=4k,8k\nsize=1m\n' 'differs by direction'
bad '[a]\nrw=read\n' 'no size'
bad 'rw=read\n' 'expected \[global\]'
bad '[a\nrw=read\n' "1:2: expected '\]'"
bad '[a]\nrw=read\nsize=${SIZE}\n' 'from the environment'

# out: what the imitation says, and fio runs it
runs 0 iotape-convert --from synth 'rw=randrw,rwmix=70,bssplit=4k/80:64k/20,size=64m,ops=4000,rate=2000,arrival=poisson,path=/x' -o some.tape
runs 0 iotape-convert some.tape -o like.fio
says '^rw=randrw$' like.fio
says '^rwmixread=(69|70|71)$' like.fio
says '^bssplit=4096/(79|80|81):65536/' like.fio
says '^rate_iops=1[34][0-9][0-9],[56][0-9][0-9]$' like.fio
says '^rate_process=poisson$' like.fio
says 'iodepth=32 for file0 is a guess' out
if command -v fio >/dev/null; then
    sed 's/^ioengine=.*/ioengine=null/; s/^filename=.*/filename=x/; /^rate/d' like.fio >run.fio
    fio run.fio --output-format=json --output=fio.json >/dev/null 2>&1 || fail "fio does not run it"
    equal "ios" 4000 "$(json fio.json '.jobs[0] | .read.total_ios + .write.total_ios')"
    share=$(json fio.json '.jobs[0] | .read.total_ios * 100 / (.read.total_ios + .write.total_ios) | floor')
    [ "$share" -ge 66 ] && [ "$share" -le 74 ] || fail "fio read $share % where the tape read 70 %"
fi
