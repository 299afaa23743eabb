#!/usr/bin/env bash
# Your own catalog gives a model a price, which allows a dollar budget.
# shellcheck disable=SC2016  # expected texts contain backquotes and dollar signs
# shellcheck source-path=SCRIPTDIR source=lib/start.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib/start.sh"

cat >prices.toml <<'TOML'
dated = "2026-11-15"

[model."lab/smollm2-135m"]
context = 8192
max_output = 2048
price = { input = "0.20", output = "0.80" }
TOML
cat >moothall.toml <<TOML
model = "lab/smollm2-135m"
catalog = "prices.toml"

[budget]
usd = "0.01"

[provider.lab]
base_url = "$local_model/v1"
TOML

run 0 models lab
says "lab/smollm2-135m" "$out"
says '8k context     $0.20 in     $0.80 out' "$out"

# $0.20 per million prompt tokens and $0.80 per million answer tokens, rounded up to a millionth of a dollar.
run 0 ask --max-tokens 40 --json "Name a colour."
prompt=$(($(field input) + $(field cache_read)))
millionths=$(((prompt * 20 + $(field output) * 80 + 99) / 100))
decimals=$(field cost_usd)000000
decimals=${decimals#0.}
is "$millionths" "$((10#${decimals:0:6}))"

run 5 ask --budget 0.001 "Name a colour."
says "over-budget: the call may cost \$0.001747" "$err"

# An invalid row is refused, with its position.
echo 'prise = 1' >>prices.toml
run 2 models lab
says "prices.toml is not a valid catalog" "$err"
says 'unknown field `prise`' "$err"
