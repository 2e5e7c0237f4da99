#!/bin/sh
# SPDX-License-Identifier: MIT
# Two commands under the design of a matrix. Times are not judged here, only figures they print.
. "$IOTAPE_SRC/tests/testlib.sh"
need jq awk

# A figure that the trial's seed gives, 10 % higher for B: the same every time.
cat >figure.sh <<'EOF'
awk -v seed="$IOTAPE_TRIAL_SEED" -v factor="$1" 'BEGIN {
    srand(seed); rand()
    printf "starting up\nscore=%.6f units\n", factor * 100 * (1 + (rand() - 0.5) / 50)
}'
EOF
a='sh ./figure.sh 1, "a"' b='sh ./figure.sh 1.1'
runs 0 iotape compare --ab "$a" "$b" --value-regex 'score=([0-9.]+)' --trials 8 --dir ab --json ab.json --csv ab.csv
says '^A: sh ./figure.sh 1, "a"$' out
says '^B .* different$' out
jq -e '.cells[1].comparisons.value | .ratio > 1.07 and .ratio < 1.13 and .verdict == "different"' ab.json \
    >/dev/null || fail "the ratio of the figures"
jq -e '.cells[0].figures | .wall.mean > 0 and .cmd_rss.mean > 0 and .cmd_cpu.mean >= 0' ab.json >/dev/null ||
    fail "what the commands cost"
says '^"sh ./figure.sh 1, ""a""",8,' ab.csv
equal 'outputs kept' 'starting up' "$(head -n 1 ab/trial-0000-0000.out)"

# The number may come from JSON, with words before it.
cat >json.sh <<'EOF'
echo "note: warming up"
awk -v seed="$IOTAPE_TRIAL_SEED" 'BEGIN { srand(seed); rand()
    printf "{\"jobs\": [{\"read\": {\"iops\": %.3f}}]}\n", 1000 + rand() }'
EOF
runs 0 iotape compare --ab 'sh ./json.sh' 'sh ./json.sh' --value-json '.jobs[0].read.iops' --trials 8 --dir js --json js.json
equal verdict equivalent "$(json js.json .cells[1].comparisons.value.verdict)"

# A command that fails, a figure that is not there: n/a, with the reason; the other goes on.
runs 0 iotape compare --ab 'true' 'echo broken >&2; exit 3' --trials 6 --dir bad
says 'B: n/a: exit 3: broken' out
runs 1 iotape compare --ab 'true' 'false' --value-regex 'score=([0-9.]+)' --trials 6 --dir none
says 'no number at score=' err

# A trial that fails where others worked is run again, and counted.
runs 0 iotape compare --ab 'true' '[ -e b ] && [ ! -e broke ] && { touch broke; echo once >&2; exit 1; }; touch b' \
    --trials 6 --dir again --json again.json
says 'a void trial is run again: exit 1: once' err
says '^note: B: 1 runs failed and were run again' out
equal 'trials of B' 6 "$(json again.json '.cells[1].trials')"

# Under a recorder, what the commands did is a figure too: 16 writes against 64.
if iotape capture -q --force -o probe.tape -- true 2>/dev/null; then
    dd='dd if=/dev/zero of=zeros bs=4k conv=notrunc status=none'
    runs 0 iotape compare --ab "$dd count=16" "$dd count=64" --witness --trials 2 --dir w --json w.json \
        --metric ops
    jq -e '(.cells[1].figures.ops.mean - .cells[0].figures.ops.mean) as $more | $more > 47 and $more < 49' \
        w.json >/dev/null || fail "ops that the recorder saw: $(jq -c '[.cells[].figures.ops.mean]' w.json)"
    [ -s w/trial-0000-0001.tape ] || fail "no tape of the command"
    runs 0 iotape compare --ab true 'echo broken >&2; exit 3' --witness --trials 1 --dir wbad
    says 'B: n/a: exit 3: broken' out
fi

# What a trial starts ends with it, and a stop reaches all of it.
iotape-compare --ab 'sleep 300' 'sleep 301' --trials 2 --dir stop >stop.out 2>stop.err &
pid=$!
turns=0
while [ ! -e stop/trial-0000-0000.err ] && [ ! -e stop/trial-0000-0001.err ] && [ $turns -lt 1000 ]; do
    sleep 0.01
    turns=$((turns + 1))
done
sleep 0.1
kill -INT $pid
wait $pid
equal 'status when stopped' 1 $?
! pgrep -f '^sleep 30[01]$' >/dev/null || fail "the trial runs on"

runs 2 iotape compare --ab 'true'
runs 2 iotape compare --ab 'true' 'false' --engine sync
runs 2 iotape compare --ab 'true' 'false' --value-regex 'a(' --dir x
runs 2 iotape compare --ab 'true' 'false' --value-regex 'a' --dir x
runs 2 iotape compare --ab 'true' 'false' --metric p99 --dir x
