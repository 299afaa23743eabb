#!/usr/bin/env bash
# Budgets: a call whose worst case does not fit is never made, and a dollar budget needs a price.
# shellcheck source-path=SCRIPTDIR source=lib/start.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib/start.sh"

# The worst case counts a token for each byte of the prompt and the whole of --max-tokens.
run 5 ask --model demo --budget-tokens 1000 "What is a moot hall?"
says "over-budget: the call may use 4180 tokens, but only 1000 of the run's 1000 are left" "$err"
run 0 ask --model demo --budget-tokens 1000 --max-tokens 500 "What is a moot hall?"

# In dollars: nothing is sent, so no server need be there.
run 5 ask --model openai/gpt-4.1-mini --base-url http://127.0.0.1:9/v1 --budget 0.001 "What is a moot hall?"
says "over-budget: the call may cost \$0.006588, but only \$0.001 of the run's \$0.001 are left" "$err"
shown docs/src/budgets-and-costs.md "$err"

# A refusal by the budget is on the receipt like everything else.
run 5 ask --model demo --budget-tokens 1000 --json --receipt receipt.jsonl "What is a moot hall?"
is over-budget "$(field kind)"
run 1 verify receipt.jsonl
says "finding   model.failed: over-budget" "$out"

# The price of the local model is unknown: it can be asked, but not within a budget in dollars.
run 2 ask --model lab/smollm2-135m --base-url "$local_model/v1" --budget 0.01 "Name a colour."
says "price-unknown: the run has a budget in dollars, but the price of this model is unknown" "$err"
shown docs/src/budgets-and-costs.md "$err"
run 0 ask --model lab/smollm2-135m --base-url "$local_model/v1" --max-tokens 40 --budget-tokens 200 "Name a colour."
says "price unknown" "$err"
