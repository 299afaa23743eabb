#!/usr/bin/env bash
# Fork a consultation: debate the same moves again, edit one of them, propose moves again, and verify the receipts.
# shellcheck source-path=SCRIPTDIR source=lib/start.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib/start.sh"

cat >m2.toml <<'TOML'
title = "Sell the idle plant"
thesis = "It costs more than it earns."
TOML
run 0 consult HLXI --model demo --verdict off --moves 3 --rounds 2 --isolation none --receipt parent.jsonl
run 0 runs --json
id=$(field run_id)

# A change of an earlier stage is refused, with the point that is possible.
run 2 fork "$id" --from debates --brief "Only moves without new debt."
shown docs/src/guides/fork.md "$err"
run 2 fork "$id" --from debates --edit-move m9=m2.toml --by Ada
says "available moves: m1, m2, m3" "$err"

# The evidence, the two inferences and the moves are reused.
run 0 fork "$id" --from debates --set rounds=1 --edit-move m2=m2.toml --by Ada --receipt fork.jsonl
says "from the debates: " "$err"
says "Sell the idle plant" "$out"
run 0 verify fork.jsonl --parent parent.jsonl
says "its results are those of the parent" "$out"
says "changed   m2 edited by Ada" "$out"
# The run had no panel; the fork has one.
run 0 fork "$id" --from moves --verdict panel --set rounds=1
run 0 runs --json
run 0 show "$(field run_id | head -n 1)"
says "verdict: off → panel" "$out"
run 0 fork "$id" --from moves --brief "Only moves without new debt."
run 0 runs
says "(fork of " "$out"
