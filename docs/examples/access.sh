#!/usr/bin/env bash
# Teams and tokens: create, show once, limit, revoke.
# shellcheck source-path=SCRIPTDIR source=lib/start.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib/start.sh"

run 0 token create --scope run --spend 20 --expires 30d --label nightly
[[ $out == moot_* && ${#out} -eq 69 ]] || fail "a token is moot_ followed by 64 digits"
says "4 concurrent runs · \$20.00 per 24 hours · 600 requests per minute" "$err"
says "save the token now: only its hash is stored and it cannot be shown again" "$err"
shown docs/src/operations/access.md "$(tail -n 2 <<<"$err")"
token=$out

# Only the hash is stored.
run 0 token list
[[ $out != *"${token#moot_}"* ]] || fail "the list shows the token"
if grep --quiet --recursive "${token#moot_}" "$HOME"; then fail "the token is stored on disk"; fi

run 2 token create --team research
says "moothall team create research" "$err"
run 0 team create research
run 0 token create --team research --scope admin --json
id=$(field id)
run 0 token list --team research
says "$id  research  admin   active" "$out"
run 0 token revoke "$id"
is "token $id is revoked" "$out"
run 0 token list --team research --json
is revoked "$(field state)"
