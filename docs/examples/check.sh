#!/usr/bin/env bash
# Check the numbers of a text against a company's filings.
# shellcheck disable=SC2016  # texts contain dollar signs
# shellcheck source-path=SCRIPTDIR source=lib/start.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib/start.sh"

cat >memo.md <<'END'
Revenue was $1,214.9 million in fiscal 2025 [F0:Revenue:FY2025], 2.2% more than a year before [F0:Revenue.yoy:FY2025].
Gross margin was 54.1% [F0:GrossMargin:FY2025]. Inventory reached $273.6 million.
We assume that prices stay within 3% [A1: no rival moves again].
END
shown docs/src/guides/check.md "$(<memo.md)"
run 3 check memo.md --facts HLXI
shown docs/src/guides/check.md "$out"
checked=$out
run 3 check --sample
is "${checked//memo.md/sample.md}" "$out"
shown docs/src/guides/check.md "$err"
run 3 check memo.md --facts HLXI --json
is needs-person "$(grep -m1 '"verdict": "needs' <<<"$out" | sed 's/.*: "\(.*\)",/\1/')"
is 400 "$(field per_thousand)"

# Supported claims pass.
echo 'Revenue was $1,214.9 million [F0:Revenue:FY2025].' >right.md
run 0 check right.md --facts HLXI
says "1 of 1 supported (100.0%)" "$out"
run 0 check - --facts HLXI <right.md

# A quotation must match the filing word for word.
passage='[T0:0009990001-26-000008:1A:3]'
echo "The report says \"If we follow, our gross margin falls\" $passage." >quote.md
run 0 check quote.md --facts HLXI
echo "The report says \"If we follow, our gross margin rises\" $passage." >misquote.md
run 3 check misquote.md --facts HLXI
says "MISCITED" "$out"
