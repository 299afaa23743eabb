#!/usr/bin/env bash
# Runs are kept: listed, shown, followed, paused by a budget, resumed, cancelled, and continued after kill -9.
# shellcheck source-path=SCRIPTDIR source=lib/start.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib/start.sh"
sandboxes microvm

run 0 runs
is "there is no run" "$out"

# A budget that is used up pauses the run; with more it goes on where it stopped.
task=(run --model demo "Print the sum of the amounts in sales.csv" --input "$examples/sales.csv" --expect text:50.25)
run 5 "${task[@]}" --budget-tokens 9000
says "paused" "$err"
run 0 runs --state paused --json
id=$(field run_id)
run 0 show "$id"
says "state      paused: the call may use" "$out"
says "attempt 2  nothing yet" "$out"
run 0 resume "$id" --budget-tokens 20000
is 50.25 "$out"
says "passed · 2 attempts" "$err"
run 0 show "$id"
shown docs/src/runs.md "$(grep '^verdict\|^attempt\|^ ' <<<"$out")"
run 0 show "$id" --code
says "next(rows)" "$out"
run 0 show "$id" --receipt receipt.jsonl
run 0 verify receipt.jsonl
run 0 events "$id"
is 15 "$(wc -l <<<"$out")"
run 0 events "$id" --from 15 --json
says '"event":"run_finished","verdict":"pass"' "$out"
run 2 cancel "$id"
says "is finished already" "$err"

# Killed in the middle: what was answered is not asked again.
"$program" "${task[@]}" >killed.out 2>killed.err &
driver=$!
until grep --quiet '^attempt 2' killed.err; do
    kill -0 "$driver" || fail "the run ended before it could be killed"
    sleep 0.02
done
kill -9 "$driver"
wait "$driver" || true
run 0 runs --json --limit 1
id=$(field run_id)
run 0 resume "$id"
is 50.25 "$out"
run 0 events "$id"
is 1 "$(grep -c 'attempt 1 of 3' <<<"$out")"
is 1 "$(grep -c 'critique:' <<<"$out")"

# One that is paused can be given up.
run 5 "${task[@]}" --budget-tokens 9000
run 0 runs --state paused --json
id=$(field run_id)
run 0 cancel "$id"
says "is cancelled" "$out"
run 2 resume "$id"
says "is cancelled already" "$err"

run 2 show nothing
shown docs/src/troubleshooting.md "$(sed -n 's/^error: there is no run.*/there is no run/p' <<<"$err")"
