#!/bin/sh
# SPDX-License-Identifier: MIT
# synth: what each key of a specification does, seen in the ops; the same seed, the same tape.
. "$IOTAPE_SRC/tests/testlib.sh"
need awk jq
C=iotape-convert
make() { runs 0 $C --from synth "$1" -o t.tape -q; $C dump t.tape | awk 'NR > 1' >ops; }
wrong() { runs 1 $C --from synth "$1" -o bad.tape; says "synth: $2" err; [ ! -e bad.tape ] || fail "$1 left an output"; }

make 'rw=randrw,size=1g,ops=5000,seed=3'
cp t.tape first
make 'rw=randrw,size=1g,ops=5000,seed=3'
cmp t.tape first || fail "the same seed gives another tape"
make 'rw=randrw,size=1g,ops=5000,seed=4'
cmp -s t.tape first && fail "another seed gives the same tape"
equal ops 5000 "$(wc -l <ops)"
awk '$4 % 4096 || $4 + $5 > 1073741824 { exit 1 }' ops || fail "an offset that is unaligned or outside"
awk '$2 == "read" { n++ } END { exit !(n > 2300 && n < 2700) }' ops || fail "rw is not half reads"
make 'rw=randrw,rwmix=90,size=1g,ops=5000'
awk '$2 == "read" { n++ } END { exit !(n > 4400 && n < 4600) }' ops || fail "rwmix=90"

# how much: each file once, in order; random once
make 'rw=write,bs=64k,size=1000k,files=2'
awk '{ sum[$3] += $5; if ($4 != last[$3] + 0) exit 1; last[$3] = $4 + $5 } END { for (f in sum) if (sum[f] != 1024000) exit 1 }' ops || fail "not each file once, in order"
make 'rw=randread,random=once,size=4m'
equal "blocks once" 1024 "$(awk '{ print $4 }' ops | sort -u | wc -l)"
make 'rw=randread,random=zipf:1.2,size=1g,ops=20000'
top=$(awk '{ print $4 }' ops | sort | uniq -c | sort -rn | awk 'NR <= 10 { n += $1 } END { print n }')
[ "$top" -gt 8000 ] || fail "zipf:1.2: the ten hottest of 262,144 blocks got $top of 20,000"

# when
make 'rw=read,rate=3,ops=4,size=1m'
equal "times are rounded once" "0.000000000 0.333333333 0.666666667 1.000000000" "$(awk '{ print $1 }' ops | paste -sd' ')"
make 'rw=read,rate=1000,arrival=poisson,ops=20000,size=1g'
awk 'END { exit !($1 > 19 && $1 < 21) }' ops || fail "poisson: 20,000 ops at 1,000 a second end at $(tail -n 1 ops)"
awk '{ g = $1 - last; last = $1; s += g; q += g * g } END { m = s / NR; cv = sqrt(q / NR - m * m) / m; exit !(cv > 0.9 && cv < 1.1) }' ops || fail "poisson: the gaps do not vary so"
make 'rw=read,rate=1000,arrival=burst,burst=20,ops=100,size=1g'
equal "bursts" "0.000000000 0.020000000 0.040000000 0.060000000 0.080000000" "$(awk '{ print $1 }' ops | sort -u | paste -sd' ')"
make 'rw=read,think=5ms,streams=2,batch=3,ops=12,size=1g'
equal "think" "6 0.000000000 6 0.005000000" "$(awk '{ print $1 }' ops | uniq -c | awk '{ print $1, $2 }' | paste -sd' ')"
equal "batches" 4 "$(awk '{ print $10 }' ops | sort -u | wc -l)"
make 'rw=read,rate=100,runtime=500ms,size=1g'
equal runtime 50 "$(wc -l <ops)"

# where
make 'rw=read,streams=3,processes,private,files=2,size=8k,direct,api=io_uring'
equal "private files" 6 "$(awk '{ print $3 }' ops | sort -u | wc -l)"
equal "processes" '1000/1000"synth" 1001/1001"synth" 1002/1002"synth"' "$(awk '{ print $8 }' ops | sort -u | paste -sd' ')"
equal "api, flags" "io_uring direct" "$(awk '{ print $9, $11 }' ops | sort -u)"
equal "sizes for --prepare" 8192 "$($C t.tape -o - --to jsonl -q | jq -s 'map(.file_size) | unique | .[]')"
# aio-stress -s 512k -r 64 -d 64 -i 8 -b 8 on two files
make 'rw=write,size=1m,bs=64k,depth=64,switch=8,batch=8,files=2,api=libaio,direct'
equal "files in turn" "8 /synth.0 8 /synth.1 8 /synth.0 8 /synth.1" "$(awk '{ gsub(/"/, "", $3); print $3 }' ops | uniq -c | awk '{ print $1, $2 }' | paste -sd' ')"
equal depth 64 "$($C info t.tape --json | jq -r .meta.depth)"
# iozone -r 64 -i 0 -i 1 -e
make 'stages=write:rewrite:read:reread,bs=64k,size=256k,fsync_end,opens'
equal "stages" "1 open 4 write 1 fsync 1 close 1 open 4 write 1 fsync 1 close 1 open 4 read 1 close 1 open 4 read 1 close" \
    "$(awk '{ print $2 }' ops | uniq -c | awk '{ print $1, $2 }' | paste -sd' ')"
make 'stages=backread,bs=64k,size=192k'
equal backread "131072 65536 0" "$(awk '{ print $4 }' ops | paste -sd' ')"
make 'stages=strideread,bs=4k,size=16k,stride=8k'
equal strideread "0 8192 4096 12288" "$(awk '{ print $4 }' ops | paste -sd' ')"
make 'rw=read,bs=4k,size=20k,back=8k'
equal back "0 12288 8192 4096 0" "$(awk '{ print $4 }' ops | paste -sd' ')"
make 'rw=write,fsync=2,sync=fdatasync,ops=4,size=1m'
equal fsync "write write fdatasync write write fdatasync" "$(awk '{ print $2 }' ops | paste -sd' ')"
make 'rw=write,bssplit=4k/25:8k/75,ops=4000,size=1g'
awk '$5 == 4096 { n++ } $5 != 4096 && $5 != 8192 { exit 1 } END { exit !(n > 850 && n < 1150) }' ops || fail "bssplit"

make 'rw=randwrite,random=zoned:50/5:30/15:20/80,size=100m,ops=10000'
awk '{ mb = $4 / 1048576; n[mb < 5 ? 0 : mb < 20 ? 1 : 2]++; if (mb >= 19 && mb < 20) edge++; if (mb >= 99) last++ }
    END { exit !(n[0] > 4800 && n[0] < 5200 && n[1] > 2800 && n[1] < 3200 && edge > 100 && last > 5) }' ops || fail "zoned"

wrong 'size=1k' 'size holds not one op'
wrong 'runtime=1s' 'runtime needs rate or think'
wrong 'rate=10,think=1ms' 'rate and think exclude each other'
wrong 'bssplit=4k/60' 'the percentages of bssplit do not add up'
wrong 'bs=0' 'bs is 0'
wrong 'random=zipf:0' 'random is not'
wrong 'random=zoned:50/10:20/90' 'the parts of random=zoned do not add up'
wrong 'random=zoned:50/10;50/90' 'random=zoned is not OPS/PLACES'
wrong 'random=zoned:50' 'random=zoned is not OPS/PLACES'
wrong 'random=zoned:' 'random=zoned is not OPS/PLACES'
wrong 'stages=foo' "stage 'foo'" 
runs 2 $C --from synth 'nonsense=1' -o bad.tape
says nonsense err
runs 2 $C --from synth 'rw=foo' -o bad.tape

# writes of their own size; half of the random reads in a row; discards that are written after
runs 0 iotape-convert --from synth 'rw=rw,rwmix=50,bs=4k,bs_write=16k,own_places,size=1m,ops=200' -o ways.tape -q
equal "sizes by op" "read 4096
write 16384" "$(iotape-convert ways.tape --to csv -o - -q | awk -F, 'NR > 1 {print $2, $5}' | sort -u)"
runs 0 iotape-convert --from synth 'rw=randtrimwrite,random=once,bs=4k,size=64k' -o trims.tape -q
equal "each place discarded, then written" 16 "$(iotape-convert trims.tape --to csv -o - -q | awk -F, 'NR > 1 && $2 == "discard" {place = $4} NR > 1 && $2 == "write" && $4 == place {n++} END {print n}')"
exit 0
