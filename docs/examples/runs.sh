#!/usr/bin/env bash
# Stored runs: list, show, follow, pause by budget, resume, cancel, and continue after kill -9.
# shellcheck source-path=SCRIPTDIR source=lib/start.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib/start.sh"
sandboxes microvm

run 0 runs
is "no runs" "$out"

# An exhausted budget pauses the run; with more budget it continues where it stopped.
task=(run --model demo "Print the sum of the amounts in sales.csv" --input "$examples/sales.csv" --expect text:50.25)
run 5 "${task[@]}" --budget-tokens 9000
says "paused" "$err"
run 0 runs --state paused --json
id=$(field run_id)
run 0 show "$id"
says "state      paused: the call may use" "$out"
says "attempt 2  not started" "$out"
run 0 resume "$id" --budget-tokens 20000
is 50.25 "$out"
says "passed · 2 attempts" "$err"
run 0 show "$id"
shown docs/src/concepts/runs.md "$(grep '^verdict\|^attempt\|^ ' <<<"$out")"
run 0 show "$id" --code
says "next(rows)" "$out"
run 0 show "$id" --receipt receipt.jsonl
run 0 verify receipt.jsonl
run 0 events "$id"
is 15 "$(wc -l <<<"$out")"
run 0 events "$id" --from 15 --json
says '"event":"run_finished","verdict":"pass"' "$out"
run 2 cancel "$id"
says "is already finished" "$err"

# After kill -9, finished calls are not repeated.
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

# A paused run can be cancelled.
run 5 "${task[@]}" --budget-tokens 9000
run 0 runs --state paused --json
id=$(field run_id)
run 0 cancel "$id"
says "is cancelled" "$out"
run 2 resume "$id"
says "is already cancelled" "$err"

run 2 show nothing
says "error: no run \`nothing\`" "$err"
shown docs/src/operations/troubleshooting.md "no run \`"
