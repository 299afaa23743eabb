#!/usr/bin/env bash
# Steer a consultation: a brief, your own move, a pause before the debates with a veto, an edit and an addition, and the baseline of the debates.
# shellcheck source-path=SCRIPTDIR source=lib/start.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib/start.sh"

cat >mine.toml <<'TOML'
title = "Sell the idle plant"
thesis = "It costs more than it earns."
TOML
small=(consult HLXI --model demo --verdict off --moves 3 --rounds 2 --isolation none)

# The estimate includes three analyst moves and your own, three scores for doing nothing, and three for each move without a debate.
run 0 "${small[@]}" --add-moves mine.toml --baseline --estimate --json
says '"beside_calls": 15' "$out"

run 3 "${small[@]}" --brief "Shall we grow abroad? No new debt." --add-moves mine.toml --baseline --pause-after moves
says "4 moves need review before the debates" "$err"
run 0 runs --state paused --json
id=$(field run_id)
run 0 moves "$id" --write drafts
says "Sell the idle plant" "$out"
sed -i 's/^title = .*/title = "Hold overhead level for a year"/' drafts/m2.toml
printf '{"title": "Rent out the laboratory at night", "thesis": "It stands idle then."}' >another.json
run 0 moves "$id" --veto m3 --reason "tried in 2024" --by Ada
run 0 moves "$id" --edit m2=drafts/m2.toml --add another.json --by Bob
says "vetoed by Ada: tried in 2024" "$out"
says "3 changes saved" "$out"
# The move was edited after the file was written, so the change is refused.
run 2 moves "$id" --edit m2=drafts/m2.toml --by Ada
shown docs/src/guides/steer.md "$err"
run 2 moves "$id" --veto m9 --by Ada
says "no move \`m9\`" "$err"

run 0 resume "$id" --receipt receipt.jsonl
says "moves accepted with 3 changes" "$err"
says "Doing nothing (m0): score" "$out"
says "Was the debate worth it?" "$out"
run 0 verify receipt.jsonl
says "changed   m3 vetoed by Ada: tried in 2024" "$out"
says 'changed   "Rent out the laboratory at night" added by Bob' "$out"
run 0 show "$id" --memo
says "Shall we grow abroad?" "$out"
says "it is not evidence, and its numbers were not checked" "$out"

# A changed reviewer name in the receipt is detected.
sed 's/"by":"Ada"/"by":"Eve"/' receipt.jsonl >forged.jsonl
run 4 verify forged.jsonl
run 2 moves "$id" --veto m1 --by Ada
says "its moves were already reviewed" "$err"
