#!/usr/bin/env bash
# A consultation without a key, network or image: the verdict, the memo, one conversation, the receipt, a pause and an unneeded approval.
# shellcheck source-path=SCRIPTDIR source=lib/start.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib/start.sh"

run 0 consult HLXI --model demo --memo memo.md --receipt receipt.jsonl
# The book shows the verdict.
shown docs/src/guides/consult.md "$(head -n 31 <<<"$out")"
says "1548 calls, up to" "$err"
says "with \`--rounds 4\`: 1008 calls" "$err"
says "with \`--verdict panel\`: 1116 calls" "$err"
says "class none" "$err"
says "Fictional company" "$(<memo.md)"
run 0 verify receipt.jsonl

run 0 runs --json
id=$(field run_id)
run 0 show "$id" --memo
is "$(<memo.md)" "$out"
run 0 show "$id" --move m12
says "- tier lead, " "$out"
run 0 show "$id" --move m12 --thread D2
says "**[Round 10] DECISION MAKER (D2):**" "$out"
run 0 show "$id" --artifacts documents
# Fifteen moves, and doing nothing.
is "16" "$(find documents -name 'm*.md' | wc -l)"
is "45" "$(find documents -name 'm*.i?.json' | wc -l)"
run 0 show "$id" --json
says '"recommended_moves": [' "$out"
run 0 replay "$id"
says "results gives the same outcome: ranked" "$out"
run 2 approve "$id" --move m12 --by somebody
says "m12 is already ranked and needs no approval" "$err"

run 0 consult AAPL --model anthropic/claude-haiku-5-5 --estimate
shown docs/src/guides/consult.md "$out"

# An exhausted budget pauses the run; with more budget it continues and repeats no finished call.
run 5 consult HLXI --model demo --verdict off --moves 3 --rounds 3 --budget-tokens 100000
says "raise the limit with \`moothall resume" "$err"
run 0 runs --state paused --json
id=$(field run_id)
run 0 show "$id" --memo
says "Not finished" "$out"
run 0 resume "$id" --budget-tokens 90000000
says "Recommended" "$out"

# An invalid consultation is refused before a run is created.
run 2 consult AAPL --model demo
says "the SEC requires a contact address, and none is configured" "$err"
run 2 consult HLXI --model demo --committee senate
says "no committee named \`senate\`" "$err"
