#!/usr/bin/env bash
# A real model on this machine: an answer, its usage, an answer that follows a schema, and an overlong prompt.
# shellcheck source-path=SCRIPTDIR source=lib/start.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib/start.sh"

model=(--model lab/smollm2-135m)
cat >moothall.toml <<TOML
[provider.lab]
base_url = "$local_model/v1"
TOML

run 0 models --check lab/smollm2-135m
says "ok  lab/smollm2-135m answered as smollm2-135m" "$out"
says "models on this server: smollm2-135m" "$out"

run 0 ask "${model[@]}" --max-tokens 40 "Name a colour."
[[ -n $out ]] || fail "the answer is empty"
says "· \$0.00 ·" "$err"

# A truncated answer is shown with a warning.
run 0 ask "${model[@]}" --max-tokens 40 --json "Name a colour."
is pass "$(field verdict)"
is output.cut-off "$(field rule)"
is warn "$(field severity)"
is reported "$(field usage_basis)"
is 0.00 "$(field cost_usd)"
is 1 "$(field tries)"
((($(field input) + $(field cache_read)) > 20)) || fail "the prompt has too few tokens"
(($(field output) > 0)) || fail "the answer has no tokens"

cat >colour.schema.json <<'JSON'
{
  "type": "object",
  "properties": { "colour": { "type": "string", "enum": ["red", "green", "blue"] } },
  "required": ["colour"],
  "additionalProperties": false
}
JSON
run 0 ask "${model[@]}" --max-tokens 40 --schema colour.schema.json --json "Name a colour."
[[ $(field colour) =~ ^(red|green|blue)$ ]] || fail "'$(field colour)' is not a color of the schema"

# Longer than the window of 8,192 tokens: refused by the server, neither truncated nor retried.
for _ in {1..1200}; do printf 'The board asks whether the plan holds. '; done >long.txt
run 4 ask "${model[@]}" --max-tokens 40 - <long.txt
says "context-overflow" "$err"
