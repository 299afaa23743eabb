#!/usr/bin/env bash
# Facts about the built-in fictional company: no key, no network.
# shellcheck source-path=SCRIPTDIR source=lib/start.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib/start.sh"

run 0 facts HLXI
says "this company does not exist" "$out"
# The book shows the header and the first rows.
shown docs/src/guides/facts.md "$(head -n 13 <<<"$out")"
shown docs/src/guides/facts.md "$(grep -A4 '^ *FY2021' <<<"$out")"

run 0 facts HLXI --json
is 2026-08-13 "$(field as_of)"
says '"id": "Revenue:FY2025"' "$out"
says '"value": "1214900000"' "$out"

# Restated later: a date before the correction shows the old value.
run 0 facts HLXI --as-of 2025-02-26 --csv
shown docs/src/guides/facts.md "$(grep '^Inventory:FY2023,' <<<"$out" | tr -d '\r')"
shown docs/src/guides/facts.md "$err"
run 0 facts HLXI --as-of 2025-02-27 --csv
shown docs/src/guides/facts.md "$(grep '^Inventory:FY2023,' <<<"$out" | tr -d '\r')"

# Without a contact, no request is sent to the SEC.
run 2 facts AAPL
says "the SEC requires a contact address, and none is configured" "$err"
shown docs/src/guides/facts.md "the SEC requires a contact address, and none is configured"

run 2 facts HLXI --as-of 2018-01-01
says "no annual report was filed on or before 2018-01-01" "$err"

mkdir empty
run 2 facts AAPL --offline empty
says "is not a recording" "$err"
