#!/usr/bin/env bash
# The first commands of the quick start: no key, no network.
# shellcheck disable=SC2016  # expected texts contain backquotes and dollar signs
# shellcheck source-path=SCRIPTDIR source=lib/start.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib/start.sh"

run 0 ask --model demo "What is a moot hall?"
says "This is a demonstration: the demo model makes no API call." "$out"
shown docs/src/get-started/quick-start.md "$out"
shown docs/src/get-started/quick-start.md "$err"

run 0 ask --model demo --schema "$examples/score.schema.json" --receipt receipt.jsonl "Should a bakery open on Sundays?"
is '{"score":1,"reason":"demonstration"}' "$out"
shown docs/src/concepts/receipts.md "$out"
shown docs/src/concepts/receipts.md "$err"

run 0 verify receipt.jsonl
says "receipt is valid" "$out"
says "verdict   pass" "$out"
shown docs/src/concepts/receipts.md "$out"

run 0 ask --model demo --receipt answer.jsonl "What is a moot hall?"
run 0 verify answer.jsonl
shown docs/src/get-started/quick-start.md "$out"

# Without a key or a model, the error says what to do.
run 2 ask "hello"
says "error: no model is selected and no API key is set" "$err"
says "--model demo" "$err"

# The question can come from a pipe.
printf 'hello' >question.txt
run 0 ask --model demo <question.txt
says "Your question has 5 characters." "$out"

# One JSON object, one field per line.
run 0 ask --model demo --json "hello"
shown docs/src/reference/exit-codes.md "$out"
is pass "$(field verdict)"
is 0.00 "$(field cost_usd)"

run 0 models groq
shown docs/src/guides/models.md "$out"
