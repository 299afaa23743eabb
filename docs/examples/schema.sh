#!/usr/bin/env bash
# Structured output: an answer that follows its schema, one that does not even when asked again, and a schema that is broken.
# shellcheck source-path=SCRIPTDIR source=lib/start.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib/start.sh"

schema=$examples/score.schema.json

run 0 ask --model demo --schema "$schema" --json "Should a bakery open on Sundays?"
says '"value": {' "$out"
is 1 "$(field score)"
is pass "$(field verdict)"

# No answer can follow this one: the second is as bad as the first.
echo '{ "type": "object", "properties": { "days": { "type": "integer", "minimum": 8, "maximum": 7 } }, "required": ["days"] }' >days.schema.json
run 4 ask --model demo --schema days.schema.json --receipt receipt.jsonl "How many days has a week?"
is "" "$out"
says "demo did not answer as it was asked to: /days: " "$err"
run 1 verify receipt.jsonl
says "effects   2" "$out"
says "finding   output.schema: /days: " "$out"

# The local model's Anthropic wire does not hold the model to the schema, so it answers in prose: the answer is refused, the model is
# shown its error once, and the second answer is prose again.
run 4 ask --model anthropic/smollm2-135m --base-url "$local_model/v1" --max-tokens 80 \
    --schema "$schema" --events events.jsonl --receipt receipt.jsonl "Should a bakery open on Sundays?"
is "" "$out"
says "did not answer as it was asked to" "$err"
is 2 "$(grep -c '"event":"output_rejected"' events.jsonl)"
run 1 verify receipt.jsonl
says "effects   2" "$out"
says "verdict   fail" "$out"

# A schema that cannot be used is a mistake of the caller's.
echo '{ "type": "nope" }' >broken.schema.json
run 2 ask --model demo --schema broken.schema.json "Should a bakery open on Sundays?"
says "the schema is not valid" "$err"
