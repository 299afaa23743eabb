#!/usr/bin/env bash
# Record the replies of a run and replay it without a model: the programs run again, and the verdict is the same.
# shellcheck source-path=SCRIPTDIR source=lib/start.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib/start.sh"
sandboxes microvm

task=(run --model demo "Print the sum of the amounts in sales.csv" --input "$examples/sales.csv" --expect text:50.25)

run 0 "${task[@]}" --record recordings --receipt one.jsonl
says "passed · 2 attempts" "$err"
is 3 "$(find recordings -name '*.json' | wc -l)"

run 0 "${task[@]}" --replay recordings --receipt two.jsonl
says "passed · 2 attempts" "$err"

# Calls, executions and results are the same, so the receipt heads are the same.
run 0 verify one.jsonl --json
head=$(field head)
run 0 verify two.jsonl --json
is "$head" "$(field head)"

# Another task was not recorded, and no model is called instead.
run 4 run --model demo "print the first 20 primes" --replay recordings
says "not-found: no recording in" "$err"
