#!/usr/bin/env bash
# Budgets: a call whose worst case does not fit is never made, and a dollar budget needs a price.
# shellcheck source-path=SCRIPTDIR source=lib/start.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib/start.sh"

# The worst case is one token per prompt byte, 512 for what a provider adds, 16 per message, and all of --max-tokens.
run 5 ask --model demo --budget-tokens 1000 "What is a moot hall?"
says "over-budget: the call may use 4644 tokens, but only 1000 of the run's 1000 are left" "$err"
run 0 ask --model demo --budget-tokens 1000 --max-tokens 400 "What is a moot hall?"

# In dollars: nothing is sent, so no server is needed.
run 5 ask --model openai/gpt-4.1-mini --base-url http://127.0.0.1:9/v1 --budget 0.001 "What is a moot hall?"
says "over-budget: the call may cost \$0.006773, but only \$0.001 of the run's \$0.001 budget is left" "$err"
shown docs/src/guides/budgets.md "$err"

# A budget refusal pauses the run: it has neither a verdict nor a receipt yet.
run 5 ask --model demo --budget-tokens 1000 --json --receipt receipt.jsonl --events events.jsonl "What is a moot hall?"
is over-budget "$(field kind)"
is true "$(field paused)"
is null "$(field verdict)"
[[ ! -e receipt.jsonl ]] || fail "a paused run has a receipt"
says '"event":"run_paused","number":1,"reason":"budget"' "$(tail -n 1 events.jsonl)"

# The price of a server on another machine is unknown: a dollar budget refuses it before anything is sent.
run 2 ask --model lab/smollm2-135m --base-url https://lab.example/v1 --budget 0.01 "Name a colour."
says "price-unknown: the run has a dollar budget, but the price of this model is unknown" "$err"
shown docs/src/guides/budgets.md "$err"
# A server on this machine is free.
run 0 ask --model lab/smollm2-135m --base-url "$local_model/v1" --max-tokens 40 --budget 0.01 "Name a colour."
says "· \$0.00 ·" "$err"
