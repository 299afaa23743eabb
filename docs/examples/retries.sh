#!/usr/bin/env bash
# Temporary failures are retried, others are not. Nothing listens on port 9 of this machine.
# shellcheck source-path=SCRIPTDIR source=lib/start.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib/start.sh"

export MOOTHALL_RETRY__FIRST_DELAY=1ms

run 4 ask --model lab/smollm2-135m --base-url http://127.0.0.1:9/v1 --json "hello"
is transport "$(field kind)"
is 4 "$(field tries)"
says " WARN model call failed, retrying kind=\"transport\"" "$err"

MOOTHALL_RETRY__RETRIES=0 run 4 ask --model lab/smollm2-135m --base-url http://127.0.0.1:9/v1 --json "hello"
is 1 "$(field tries)"
is 0 "$(grep -c 'retrying' <<<"$err" || true)"

# A key is never sent to another machine over plain HTTP.
LAB_API_KEY=sk-of-the-user run 4 ask --model lab/smollm2-135m --base-url http://model.example/v1 --json "hello"
is auth "$(field kind)"
is 1 "$(field tries)"

# The table in the book has a row for every class of failure.
while read -r class; do
    grep --quiet "^| \`$class\` |" "$examples/../src/concepts/retries-and-limits.md" || fail "the page has no row for $class"
done < <(sed -n 's/^ *Self::[A-Za-z]* => "\([a-z-]*\)",$/\1/p' "$examples/../../crates/moothall-types/src/model/failure.rs")
