#!/usr/bin/env bash
# The call log of a run: filters, sums, one call with its prompt and answer, on the command line and over HTTP.
# shellcheck source-path=SCRIPTDIR source=lib/start.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib/start.sh"

run 0 consult HLXI --model demo --verdict off --moves 2 --rounds 2 --isolation none
run 0 runs --json
id=$(field run_id)

# All calls, with sums.
run 0 calls "$id"
says "m2/round-2/critic/D3" "$out"
says "by role   inference \$0.00 (2 calls) · analysts" "$out"
says "by move   m0 \$0.00 (3 calls) · m1" "$out"
all=$(grep -c ' used' <<<"$out")

# The calls of the critic about one move.
run 0 calls "$id" --role critic --move m1
is 4 "$(grep -c ' used' <<<"$out")"
says "4 of $all calls" "$out"
shown docs/src/guides/calls.md "$(grep '^START\|^by' <<<"$out")"

# For scripts: one object, or one per line.
run 0 calls "$id" --jsonl
is "$all" "$(wc -l <<<"$out")"
run 0 calls "$id" --sort tokens --limit 3 --json
is 3 "$(grep -c '"started_at_ms"' <<<"$out")"

# One call with its prompt, which is built again and compared with the journal, and its answer.
run 0 calls "$id" m1/round-2/critic/D1
says "--- system ---" "$out"
says "--- answer ---" "$out"
run 2 calls "$id" m9/round-2/critic/D1
says "hint: list the calls with" "$err"
run 0 calls "$id" --result failed
is "no calls" "$out"

# The same over HTTP.
"$program" serve --auth none --addr 127.0.0.1:0 --model demo >address 2>serve.err &
server=$!
trap 'kill "$server"; wait "$server" || true; rm -rf "$scratch"' EXIT
until [[ -s address ]]; do
    kill -0 "$server" || fail "the server ended: $(<serve.err)"
    sleep 0.05
done
base=$(head -n 1 address)
page=$(curl -fsS --noproxy '*' "$base/api/runs/$id/calls?role=critic&move=m1&limit=2")
says '"next":' "$page"
says '"call":"m1/round-1/critic"' "$page"
detail=$(curl -fsS --noproxy '*' "$base/api/runs/$id/calls/m1%2Fround-1%2Fcritic")
says '"messages":[{"role":"system"' "$detail"
