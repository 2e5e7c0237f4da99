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
! grep -q group_reporting report || fail "an option of reporting is worth no line"

# sizes that are given one by one are as they are
printf '[r]\nrw=randread\nbssplit=5k/50:9k/50\nbs_unaligned=1\nsize=1m\nnumber_ios=100\n' >odd.fio
made odd.fio
equal "sizes as given" "5120 9216" "$(iotape-convert dump made.tape | awk '!/^#/ { print $5 }' | sort -n -u | tr '\n' ' ' | sed 's/ $//')"
printf '[r]\nrw=randread\nbsrange=1k-9k\nbs_unaligned=1\nsize=1m\n' >odd.fio
runs 1 iotape-convert odd.fio -o odd.tape
says 'odd.fio:.*bs_unaligned with a range' err

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

# op, file, offset and length of made.tape, as fio's iolog has them
shape() { iotape-convert made.tape --to fioiolog -o - -q | awk '$3 == "read" || $3 == "write" || $3 == "trim" {print $3, $2, $4, $5} $2 == "read" || $2 == "write" || $2 == "trim" {print $2, $1, $3, $4}' | sed 's|/*\([^ /]*\) |\1 |'; }
# LINES of it are what fio does for the same job
like_fio() { # like_fio JOBTEXT
    printf '[global]\nioengine=null\n[a]\n%b' "$1" >shape.fio
    made shape.fio
    shape >ours
    [ -s ours ] || fail "nothing came of $1"
    command -v fio >/dev/null || return 0
    rm -f log
    fio shape.fio --write_iolog=log >/dev/null 2>&1 || fail "fio does not run $1"
    awk '$3 == "read" || $3 == "write" || $3 == "trim" {print $3, $2, $4, $5} $2 == "read" || $2 == "write" || $2 == "trim" {print $2, $1, $3, $4}' log >theirs
    head -n "$(wc -l <theirs)" ours | cmp -s - theirs || { diff ours theirs | head >&2; fail "not as fio does it: $1"; }
}
like_fio 'rw=write:8k\nsize=64k\nio_size=20k\n'
like_fio 'rw=read\nnrfiles=3\nfile_service_type=sequential\nsize=48k\n'
like_fio 'rw=read\nnrfiles=3\nfile_service_type=roundrobin:2\nsize=48k\n'
like_fio 'rw=trimwrite\nsize=32k\n'
like_fio 'rw=write\nbs=4k,16k\nsize=64k\n'
like_fio 'rw=trim\nbs=4k,16k,8k\nsize=64k\n'
like_fio 'rw=read\nsize=25%\nfilesize=64k\n'
like_fio 'rw=read\nfilename_format=$jobname-$filenum.dat\nnrfiles=2\nsize=16k\n'
# a comment ends a line; verification that is off is none
like_fio 'rw=write ; in a row\nbs=8k# small\nverify=0\nsize=64k\t# all\n[b] # another\nstonewall\nnumber_ios=2\nrw=read\nsize=16k\n'
printf '[z]\nrw=randwrite\nfilesize=1m\nsize=64k\n[laid]\nrw=write\nsize=64k\ncreate_only=1\n' >wide.fio
made wide.fio
equal "the size in a larger file ends the job" "16 65536" "$(json info.json '.by_op.write | "\(.count) \(.bytes)"')"
shape | awk '$3 >= 65536 {far++} $3 >= 1048576 {out++} END {exit !(far > 5 && !out)}' || fail "not all over the file"
says "'laid' has create_only" report
printf '[c]\nrw=write\nfilesize=64k\nfilename=shared\nnumjobs=2\noffset_increment=16k\n' >steps.fio
made steps.fio
equal "each up to the end of the file" 28 "$(json info.json .ops)"
equal "and no further" 61440 "$(shape | sort -k3n | awk 'END {print $3}')"
# fio's units: KiB is 1000, unless kb_base=1000, when k is
like_fio 'rw=write\nbs=4KiB\nsize=32kib\n'
like_fio 'kb_base=1000\nrw=write\nbs=4k\nsize=32KiB\n'
like_fio 'rw=write\nbs=4Ki\nsize=32KB\n'
# no op is cut short where all are of one size; a range with a colon; a folder for each clone
like_fio 'rw=write\nbs=8k\nsize=20k\nnrfiles=2\n'
like_fio 'rw=trimwrite\nbs=8k\nsize=20k\n'
like_fio 'rw=read\nbs=8k\nsize=30%\nfilesize=100k\n'
like_fio 'rw=write\nbs=8k\nsize=20k\nio_size=44k\n'
like_fio 'rw=write\nbsrange=8k:8k\nsize=32k\n'
mkdir -p one two
like_fio 'rw=write\nsize=8k\ndirectory=one:two\nnrfiles=2\n'
printf '[f]\nrw=write\nsize=4k\ndirectory=one:two\nnumjobs=3\n' >folders.fio
made folders.fio
equal "folders in turn" "one/f.0.0 one/f.2.0 two/f.1.0" "$(iotape-convert made.tape --to fioiolog -o - -q | awk '$3 == "write" {print $2}' | sed 's|^/*||' | sort | xargs)"
printf '[hot]\nrw=randread\nrandom_distribution=zoned:90/10:10/90\nsize=10m\nio_size=8m\nnorandommap\n' >zones.fio
made zones.fio
equal "nine tenths of the ops in one tenth of the file" yes \
    "$(shape | awk '$3 < 1048576 {n++} END {print (NR == 2048 && n > 1780 && n < 1900 ? "yes" : n " of " NR)}')"
# backwards
like_fio 'rw=read:-8k\nsize=64k\n'
like_fio 'rw=write:-16k\nsize=64k\n'
# what the machine knows
printf '[all]\nrw=write\nbs=16k\nfilename=/dev/none\n[half]\nrw=read\nsize=50%%\nbs=16k\n[own]\nrw=randread\nsize=32k\nbs=16k\n' >unsaid.fio
rm -f made.tape
runs 0 iotape-convert unsaid.fio --from fiojob:filesize=128k -o made.tape
equal "the device, half of it, a size of its own" "8 write 4 half 2 own 16384" \
    "$(shape | awk '{n[$1 " " $2]++} $2 ~ /^own/ && $3 > most {most = $3} END {print n["write none"] + n["write dev/none"] + n["write /dev/none"], "write", n["read half.0.0"], "half", n["read own.0.0"], "own", most}')"
printf '[p]\nrw=read\noffset=25%%\nsize=50%%\nfilesize=64k\n' >part.fio
made part.fio
equal "the middle half" "read p.0.0 16384 4096 8" "$(shape | awk 'NR == 1 {first = $0} END {print first, NR}')"
# reads and writes go through the file each by themselves, with sizes of their own
printf '[m]\nrw=rw\nrwmixread=70\nbs=4k,16k\nsize=1m\nnumber_ios=100\n' >ways.fio
made ways.fio
for way in read:4096 write:16384; do
    shape | awk -v way="${way%:*}" -v size="${way#*:}" '$1 == way {if ($3 != n * size || $4 != size) exit 1; n++} END {exit n < 10}' ||
        fail "${way%:*}s are not in a row of ${way#*:}"
done
# a new place every 8 ops; half of the ops in a row
printf '[s]\nrw=randread:8\nsize=64m\nio_size=4m\n' >run.fio
made run.fio
equal "new places" 128 "$(shape | awk '$3 != next_ {n++} {next_ = $3 + $4} END {print n}')"
printf '[s]\nrw=randread\npercentage_random=50\nsize=1g\nnumber_ios=4000\n' >half.fio
made half.fio
new=$(shape | awk '$3 != next_ {n++} {next_ = $3 + $4} END {print n}')
[ "$new" -gt 1850 ] && [ "$new" -lt 2150 ] || fail "$new of 4000 ops at new places, 2000 are meant"
# bandwidth by direction: 1m of reads at 70 % are 1,463,000 bytes in all; the writes' limit does not bind
printf '[r]\nrw=randrw\nrwmixread=50\nbs=4k,8k\nrate=400k,8m\nsize=1g\nruntime=2\ntime_based\nramp_time=1\n' >bw.fio
made bw.fio
equal "3 s of 100 reads and 100 writes a second" 600 "$(json info.json .ops)"

# jobs behind a stonewall begin where the earlier ones end; others with a delay
printf '[global]\nsize=16k\nbs=4k\n[one]\nrw=read\n[two]\nstonewall\nrw=write\n[three]\nrw=read\n' >wall.fio
made wall.fio
equal "two jobs at once" 2 "$(grep -o 'processes [0-9]*' report | cut -d' ' -f2)"
says 'behind a stonewall' report
equal "in order" "one 0
three 1000000
two 1000000" "$(iotape-convert made.tape --to csv -o - -q | awk -F, 'NR == 1 {for (i = 1; i <= NF; i++) at[$i] = i; next} {f = $at["file"]; sub(/[.].*/, "", f); print f, $at["issue_ns"]}' | sort -u)"
printf '[d]\nrw=read\nsize=40k\nrate_iops=10\n[e]\nrw=read\nsize=4k\nstartdelay=250ms\n[f]\nrw=read\nsize=4k\nstonewall\n' >delay.fio
made delay.fio
equal "ends 1 s and 1 ms after the first" 1001000000 "$(json info.json .duration_ns)"
says '--pace recorded' report
# buffered=0 is direct; the environment's values
printf '[g]\nrw=read\nbuffered=0\nsize=${SHAPE_SIZE}k\n' >env.fio
export SHAPE_SIZE=12
made env.fio
equal "ops of the environment's size" 3 "$(json info.json .ops)"
says '--direct' report
# named where it is passed over without being of reporting
printf '[g]\nrw=read\nsize=4k\nprio=2\n' >prio.fio
made prio.fio
says "'prio' says nothing" report

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
bad '[a]\nrw=read:-2m\nsize=1m\n' 'back is more than the whole file'
bad '[a]\nrw=read\nsize=ten\n' 'bad.fio:3:6: .*ten'
bad '[a]\nrw=sideways\nsize=1m\n' "rw 'sideways'"
bad '[a]\nrw=read\nsize=50%%\n' 'add filesize='
bad '[a]\nrw=randrw\npercentage_random=50,20\nsize=1m\n' 'differs by direction'
bad '[a]\nrw=write\nsize=1m\nfsync=3\nfdatasync=2\n' 'fdatasync beside fsync'
bad '[a]\nrw=write\nfill_device=1\nsize=1m\n' 'fill_device'
bad '[a]\nrw=read\nsize=4k\nstartdelay=100000d\n' 'more than 73 years'
bad 'include other.fio\n[a]\nrw=read\n' 'expected \[global\]'
bad '[a]\nrw=read\ninclude other.fio\n' '3:1: another file is not read'
bad '[a]\nrw=read\nsize=1m\nfile_service_type=zipf:1.2\n' "file_service_type 'zipf:1.2'"
bad '[a]\nrw=read\nsize=1m\nrandom_distribution=pareto:0.2\n' "random_distribution 'pareto:0.2'"
bad '[a]\nrw=write\nsize=1m\nverify=crc32c\n' '4:1: .*verify'
bad '[a]\nrw=read\n' 'no size: add size=, or give --from fiojob:filesize=SIZE'
bad 'rw=read\n' 'expected \[global\]'
bad '[a\nrw=read\n' "1:2: expected '\]'"
unset NO_SUCH_SIZE
bad '[a]\nrw=read\nsize=${NO_SUCH_SIZE}\n' "3:6: the environment has no such variable: 'NO_SUCH_SIZE'"

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
