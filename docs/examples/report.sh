#!/usr/bin/env bash
# The memo of a consultation in every format, its scores for a spreadsheet, and its receipt.
# shellcheck source-path=SCRIPTDIR source=lib/start.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib/start.sh"

run 0 consult HLXI --model demo --moves 5 --rounds 2
run 0 runs --json
id=$(field run_id)

run 0 report "$id"
says "## Recommendation" "$out"
run 0 report "$id" --output memo.html
says "default-src 'none'" "$(<memo.html)"
run 0 report "$id" --output memo.pdf
is "%PDF-" "$(head -c 5 memo.pdf)"
run 0 report "$id" --paper letter --output letter.pdf
run 0 report "$id" --format csv
says "rank,move,title,decision_maker,metric,score" "$out"
run 0 report "$id" --output receipt.jsonl
run 0 verify receipt.jsonl

# The claim checker finds no problem in the memo.
run 0 report "$id" --output memo.md
run 0 check memo.md --facts HLXI

run 2 report no-such-run
says "hint:" "$err"
