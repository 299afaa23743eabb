#!/usr/bin/env bash
# A receipt is valid; with one changed byte it is not, and the error names the line.
# shellcheck source-path=SCRIPTDIR source=lib/start.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib/start.sh"

run 0 ask --model demo --schema "$examples/score.schema.json" --receipt receipt.jsonl "Should a bakery open on Sundays?"
run 0 verify receipt.jsonl
says "receipt is valid" "$out"
shown docs/src/concepts/receipts.md "$out"
is 5 "$(wc -l <receipt.jsonl)"

sed 's/demonstration\\"/excellent\\"/' receipt.jsonl >forged.jsonl
run 4 verify forged.jsonl
says "forged.jsonl is not valid: line 3: the previous line was changed" "$err"
shown docs/src/concepts/receipts.md "$err"
run 4 verify forged.jsonl --json
is false "$(field holds)"
is 3 "$(field line)"

# Flip a bit in every 37th byte, one at a time: each flip is detected.
bytes=$(wc -c <receipt.jsonl)
for at in $(seq 0 37 $((bytes - 1))); do
    cp receipt.jsonl flipped.jsonl
    byte=$(od -An -tu1 -j "$at" -N 1 receipt.jsonl)
    printf '%b' "\\x$(printf '%02x' $((byte ^ 1)))" | dd of=flipped.jsonl bs=1 seek="$at" conv=notrunc status=none
    if "$program" verify flipped.jsonl >/dev/null 2>&1; then
        fail "a flipped bit in byte $at was not detected"
    fi
done

head -n 3 receipt.jsonl >short.jsonl
run 4 verify short.jsonl
says "line 4: the receipt is truncated" "$err"

# Two equal runs have the same head.
run 0 verify receipt.jsonl --json
head=$(field head)
run 0 ask --model demo --schema "$examples/score.schema.json" --receipt again.jsonl "Should a bakery open on Sundays?"
run 0 verify again.jsonl --json
is "$head" "$(field head)"
