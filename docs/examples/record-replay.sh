#!/usr/bin/env bash
# Record a reply of the local model, replay it without a model, and show that an unrecorded request is refused.
# shellcheck source-path=SCRIPTDIR source=lib/start.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib/start.sh"

ask=(ask --model openai/smollm2-135m --max-tokens 40)

run 0 "${ask[@]}" --base-url "$local_model/v1" --record recordings "Name a colour."
recorded=$out
is 1 "$(find recordings -name '*.json' | wc -l)"

# No address and no key: a replay makes no calls.
run 0 "${ask[@]}" --replay recordings --receipt one.jsonl "Name a colour."
is "$recorded" "$out"

# Two equal runs have the same head.
run 0 "${ask[@]}" --replay recordings --receipt two.jsonl "Name a colour."
run 0 verify one.jsonl --json
head=$(field head)
run 0 verify two.jsonl --json
is "$head" "$(field head)"

run 4 "${ask[@]}" --replay recordings "Name a fruit."
says "not-found: no recording in recordings matches this request" "$err"
says "which differs at /turns/0/block/text" "$err"
