#!/usr/bin/env bash
# What may pass by itself is tried again; what may not is not. Nothing listens on port 9 of this machine.
# shellcheck source-path=SCRIPTDIR source=lib/start.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib/start.sh"

export MOOTHALL_RETRY__FIRST_DELAY=1ms

run 4 ask --model lab/smollm2-135m --base-url http://127.0.0.1:9/v1 --json "hello"
is transport "$(field kind)"
is 4 "$(field tries)"
says " WARN model call failed, trying again kind=\"transport\"" "$err"

MOOTHALL_RETRY__RETRIES=0 run 4 ask --model lab/smollm2-135m --base-url http://127.0.0.1:9/v1 --json "hello"
is 1 "$(field tries)"
is 0 "$(grep -c 'trying again' <<<"$err" || true)"

# A key is never sent over plain http to another machine, however often one tries.
LAB_API_KEY=sk-of-the-user run 4 ask --model lab/smollm2-135m --base-url http://model.example/v1 --json "hello"
is auth "$(field kind)"
is 1 "$(field tries)"

# The table of the page has a row for every class of failure.
while read -r class; do
    grep --quiet "^| \`$class\` |" "$examples/../src/retries-and-limits.md" || fail "the page has no row for $class"
done < <(sed -n 's/^ *Self::[A-Za-z]* => "\([a-z-]*\)",$/\1/p' "$examples/../../crates/moothall-types/src/model/failure.rs")
