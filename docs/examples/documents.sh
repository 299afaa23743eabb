#!/usr/bin/env bash
# A private company from a folder of documents, with headlines from a file.
# shellcheck disable=SC2016  # texts contain dollar signs
# shellcheck source-path=SCRIPTDIR source=lib/start.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib/start.sh"

mkdir papers
cat >papers/plan.md <<'END'
# Acme Pumps

Acme Pumps makes pumps for breweries and dairies in one plant near the river.

## Prices

We raised list prices by 4% in May and lost two dealers in the north.

## Plans

Every pump is sold with a service contract from autumn on.
END
cat >papers/sales.csv <<'END'
Year,Revenue,Orders
2023,"$11,200,000",410
2024,"$12,900,000",455
2025,"$14,100,000",470
END
cat >feed.xml <<'END'
<rss version="2.0"><channel><title>Example Times</title>
<item><title>Acme Pumps opens a second plant</title><link>https://times.example/1</link>
<pubDate>Fri, 30 Jan 2026 12:00:00 GMT</pubDate></item></channel></rss>
END

run 0 consult --name "Acme Pumps" --source files papers --news feed.xml --model demo --verdict off --moves 5 --rounds 2 --memo memo.md --artifacts out
says "your documents (papers)" "$out"
says "[U0:" "$(<memo.md)"
says "[N0:1]" "$(<out/F2.md)"

# A quotation with one wrong letter, and a number that is in no passage.
cat >wrong.md <<'END'
They "lost too dealers" [U0:plan:2]. Revenue was $14.2 million [U0:sales:3].
END
run 3 check wrong.md --files papers
shown docs/src/guides/documents.md "$(tail -n +2 <<<"$out")"
echo 'They "lost two dealers" [U0:plan:2]. Revenue was $14.1 million [U0:sales:3].' >right.md
run 0 check right.md --files papers

# Filings and documents for a listed company.
run 0 consult HLXI --source filings,files papers --model demo --verdict off --moves 2 --rounds 2 --artifacts both
says "[U0:" "$(<both/F2.md)"
