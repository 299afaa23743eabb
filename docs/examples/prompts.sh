#!/usr/bin/env bash
# Your own prompts and memo sections, and a model per member.
# shellcheck source-path=SCRIPTDIR source=lib/start.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib/start.sh"

run 0 prompts list
says "prompts/analyst.md" "$out"
run 0 prompts export mine
rm mine/prompts/* mine/memo/*
printf '# Our view of {{company}}\n\n{{content}}\n' >mine/memo/recommendation.md
printf 'Propose {{shares}} for {{company}}.\n' >mine/prompts/propose.md
run 2 consult HLXI --model demo --committee mine
shown docs/src/guides/prompts.md "$err"
printf 'Propose {{share}} for {{company}}. Prefer moves that can be undone.\n' >mine/prompts/propose.md
run 0 prompts check mine
says "own text: prompts/propose.md" "$out"
run 0 consult HLXI --committee mine --moves 3 --rounds 2 --verdict off --model demo --model-for D2=demo/second --memo memo.md --receipt receipt.jsonl
says "Our view of Helix Instruments" "$(<memo.md)"
run 0 verify receipt.jsonl
says "memo/recommendation.md sha256" "$out"
says "demo/second (D2)" "$out"
