#!/usr/bin/env bash
# A real model on this machine as the blind panel of one benchmark company with three moves; the debates are scripted. The model has 135 million
# parameters, so the server must enforce the form of its answers. Its quality is printed, not required: every card is used or counted as missing,
# and the calls are those of the estimate.
# shellcheck source-path=SCRIPTDIR source=../lib/start.sh
source "$(dirname "${BASH_SOURCE[0]}")/../lib/start.sh"

cat >catalog.toml <<'TOML'
dated = "2026-11-19"

[model."lab/smollm2-135m"]
context = 4096
max_output = 150
structured = true
TOML
cat >moothall.toml <<TOML
catalog = "catalog.toml"

[provider.lab]
base_url = "$local_model/v1"
concurrent = 1
TOML

# number NAME: prints a number at the top level of the JSON output of the last command.
number() {
    sed -n "s/^  \"$1\": \([0-9]*\),\{0,1\}\$/\1/p" "$scratch/out"
}

moves=3 members=5
size=(--moves "$moves" --rounds 2 --panel lab/smollm2-135m)
run 0 consult EVAL-01 --model lab/smollm2-135m "${size[@]}" --estimate --json
planned=$(number all_calls)

run 0 eval "${size[@]}" --companies 1 --parallel 1 --keep --yes --json
# The figures of the model: cards that can be used and all cards, for the moves and doing nothing; controls caught and scored.
figures=$(tr --delete ' \n' <"$scratch/out")
read -r used cards < <(sed -n 's/.*"cards":\[\([0-9]*\),\([0-9]*\)\].*/\1 \2/p' <<<"$figures")
is $(((moves + 1) * members)) "$cards"
quality=$(sed -n 's/.*"controls":\[\([0-9]*\),\([0-9]*\)\].*/\1 of \2 controls caught by single members/p' <<<"$figures")

run 0 runs --json
id=$(field run_id)
run 0 show "$id" --json
is "$planned" "$(($(number calls) - $(number extra_calls)))"
# The moves, doing nothing, two known-bad moves, and three weakened copies beside their originals.
run 0 calls "$id" --jsonl
is $(((moves + 1 + 2 + 3 * 2) * members)) "$(grep --count --extended-regexp '"call":"[^"]*/panel/P[0-9]+"' <<<"$out")"
# Each card is one usable answer of a member about a move or doing nothing.
is "$used" "$(grep --extended-regexp '"call":"m[0-9]+(/d[0-9]+)?/panel/' <<<"$out" | grep --count '"result":"used"')"
printf '%d calls as estimated, %d of %d cards used, %d missing; %s\n' "$planned" "$used" "$cards" "$((cards - used))" "$quality"
