#!/usr/bin/env bash
# Structured output: a valid answer, an answer that is still invalid after a second request, and an invalid schema.
# shellcheck source-path=SCRIPTDIR source=lib/start.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib/start.sh"

schema=$examples/score.schema.json

run 0 ask --model demo --schema "$schema" --json "Should a bakery open on Sundays?"
says '"value": {' "$out"
is 1 "$(field score)"
is pass "$(field verdict)"

# No answer can follow this schema, so the second one is invalid too.
echo '{ "type": "object", "properties": { "days": { "type": "integer", "minimum": 8, "maximum": 7 } }, "required": ["days"] }' >days.schema.json
run 4 ask --model demo --schema days.schema.json --receipt receipt.jsonl "How many days has a week?"
is "" "$out"
says "demo gave an invalid answer: /days: " "$err"
run 1 verify receipt.jsonl
says "effects   2" "$out"
says "finding   output.schema: /days: " "$out"

# The local model's Anthropic endpoint does not enforce the schema, so the model answers in prose: the answer is refused, the model is
# shown the error once, and the second answer is prose again.
run 4 ask --model anthropic/smollm2-135m --base-url "$local_model/v1" --max-tokens 80 \
    --schema "$schema" --events events.jsonl --receipt receipt.jsonl "Should a bakery open on Sundays?"
is "" "$out"
says "gave an invalid answer: the answer is not a single JSON value" "$err"
is 2 "$(grep -c '"event":"output_rejected"' events.jsonl)"
run 1 verify receipt.jsonl
says "effects   2" "$out"
says "verdict   fail" "$out"

# An invalid schema is a usage error.
echo '{ "type": "nope" }' >broken.schema.json
run 2 ask --model demo --schema broken.schema.json "Should a bakery open on Sundays?"
says "broken.schema.json is not a usable schema: invalid JSON schema" "$err"
