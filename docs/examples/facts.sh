#!/usr/bin/env bash
# Facts about the company that comes with the program: no key, no network.
# shellcheck source-path=SCRIPTDIR source=lib/start.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib/start.sh"

run 0 facts HLXI
says "this company does not exist" "$out"
# The page of the book shows the head and the first rows.
shown docs/src/facts.md "$(head -n 13 <<<"$out")"
shown docs/src/facts.md "$(grep -A4 '^ *FY2021' <<<"$out")"

run 0 facts HLXI --json
is 2026-08-13 "$(field as_of)"
says '"id": "Revenue:FY2025"' "$out"
says '"value": "1214900000"' "$out"

# Restated since: the day before the correction knows nothing of it.
run 0 facts HLXI --as-of 2025-02-26 --csv
shown docs/src/facts.md "$(grep '^Inventory:FY2023,' <<<"$out" | tr -d '\r')"
shown docs/src/facts.md "$err"
run 0 facts HLXI --as-of 2025-02-27 --csv
shown docs/src/facts.md "$(grep '^Inventory:FY2023,' <<<"$out" | tr -d '\r')"

# Nobody is asked at the SEC without a contact.
run 2 facts AAPL
says "the SEC wants to know who asks" "$err"
shown docs/src/facts.md "the SEC wants to know who asks"

run 2 facts HLXI --as-of 2018-01-01
says "no annual report was filed on or before 2018-01-01" "$err"

mkdir empty
run 2 facts AAPL --offline empty
says "is not a recording" "$err"
