#!/usr/bin/env bash
# Calculations in debates: programs of the speakers run in sandboxes, become evidence, and give the same output again.
# shellcheck source-path=SCRIPTDIR source=lib/start.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib/start.sh"
sandboxes auto
small=(consult HLXI --model demo --moves 2 --rounds 2 --verdict off --yes)

run 0 "${small[@]}" --calculations --receipt receipt.jsonl --memo memo.md
says "calculation X0:m1-D1-1: The net margin that the move has to protect. · net margin " "$err"
says "Calculations" "$(<memo.md)"
run 0 runs --json
id=$(field run_id)
run 0 show "$id" --move m1
says "### Calculations" "$out"
says "facts read: NetIncome:FY" "$out"
says "result(\"net margin\", round(margin, 1), \"%\")" "$out"

# The same programs give the same output, byte for byte.
run 0 verify receipt.jsonl --calculations
says "gave the same output again" "$out"

# Without a sandbox, no program runs, and the debate continues.
run 0 "${small[@]}" --calculations --isolation none
says "not run: no sandbox for calculations" "$err"

# Off unless requested.
run 0 "${small[@]}" --isolation none --json
[[ $out != *X0:* ]] || fail "a calculation that nobody requested"
