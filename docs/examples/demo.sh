#!/usr/bin/env bash
# The first commands of the README and of the quick start: no key, no network.
# shellcheck disable=SC2016  # the program's own words hold backquotes and dollar signs
# shellcheck source-path=SCRIPTDIR source=lib/start.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib/start.sh"

run 0 ask --model demo "What is a moot hall?"
says "This is a demonstration: no model was asked." "$out"
shown README.md "$out"
shown README.md "$err"
shown docs/src/quick-start.md "$out"
shown docs/src/quick-start.md "$err"

run 0 ask --model demo --schema "$examples/score.schema.json" --receipt receipt.jsonl "Should a bakery open on Sundays?"
is '{"score":1,"reason":"demonstration"}' "$out"
shown README.md "$out"
shown README.md "$err"

run 0 verify receipt.jsonl
says "the receipt holds" "$out"
says "verdict   pass" "$out"
shown README.md "$out"

# Without a key and without a model, the program says what to do.
run 2 ask "hello"
says "error: no model is chosen and no API key is set" "$err"
says "--model demo" "$err"

# The question may come from a pipe.
printf 'hello' >question.txt
run 0 ask --model demo <question.txt
says "Your question has 5 characters." "$out"

# One JSON object, a field a line.
run 0 ask --model demo --json "hello"
shown docs/src/exit-codes.md "$out"
is pass "$(field verdict)"
is 0.00 "$(field cost_usd)"

run 0 models groq
shown docs/src/models.md "$out"
