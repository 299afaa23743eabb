#!/usr/bin/env bash
# Moves on trial without a key, a network or an image: the ranking, the memo, one conversation, the receipt, a pause and an approval that is not needed.
# shellcheck source-path=SCRIPTDIR source=lib/start.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib/start.sh"

run 0 consult HLXI --model demo --memo memo.md --receipt receipt.jsonl
# The page of the book shows the head of the ranking.
shown docs/src/consult.md "$(head -n 20 <<<"$out")"
shown README.md "$(head -n 7 <<<"$out")"
says "922 calls" "$err"
says "class none" "$err"
says "Fictional company" "$(<memo.md)"
run 0 verify receipt.jsonl

run 0 runs --json
id=$(field run_id)
run 0 show "$id" --memo
is "$(<memo.md)" "$out"
run 0 show "$id" --move m12
says "rank 1" "$out"
run 0 show "$id" --move m12 --thread D2
says "**[Round 10] DECISION MAKER (D2):**" "$out"
run 0 show "$id" --artifacts documents
# Fifteen, and doing nothing.
is "16" "$(find documents -name 'm*.md' | wc -l)"
is "45" "$(find documents -name 'm*.i?.json' | wc -l)"
run 0 show "$id" --json
says '"recommended_moves": [' "$out"
run 0 replay "$id"
says "the same end follows" "$out"
run 2 approve "$id" --move m12 --by somebody
says "nothing holds it back" "$err"

run 0 consult AAPL --model anthropic/claude-haiku-5-5 --estimate
shown docs/src/consult.md "$out"

# A budget that is used up pauses the run; with more it goes on, and what was answered is not asked again.
run 5 consult HLXI --model demo --moves 3 --rounds 3 --budget-tokens 100000
says "let it go on with more" "$err"
run 0 runs --state paused --json
id=$(field run_id)
run 0 show "$id" --memo
says "Not finished" "$out"
run 0 resume "$id" --budget-tokens 90000000
says "Recommended" "$out"

# What cannot be a consultation is refused before there is a run.
run 2 consult AAPL --model demo
says "the SEC wants to know who asks" "$err"
run 2 consult HLXI --model demo --committee senate
says "there is no committee called" "$err"
