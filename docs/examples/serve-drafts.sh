#!/usr/bin/env bash
# Drafts over HTTP: list, show, approve by seal and apply a draft that needs review; verify the audit log.
# shellcheck source-path=SCRIPTDIR source=lib/start.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib/start.sh"
export USER=ada NO_PROXY=127.0.0.1 no_proxy=127.0.0.1

mkdir ws
printf 'all:\n' >ws/Makefile
"$program" serve --auth none --addr 127.0.0.1:0 --model demo --workspace ws >address 2>told &
server=$!
trap 'kill "$server" 2>/dev/null || true; rm -rf "$scratch"' EXIT
until [[ -s address ]]; do
    kill -0 "$server" || fail "the server did not start: $(<told)"
    sleep 0.02
done
base=$(<address)
says '"drafts":[]' "$(curl --silent --fail "$base/api/drafts")"

# An agent drafts a protected file; the gate requires review.
run 0 draft request Makefile --task build --workspace ws --json
draft=$(field draft_id)
run 0 draft edit "$draft" --old "all:" --new "all: build" --workspace ws
run 3 draft submit "$draft" --workspace ws
says "$draft" "$(curl --silent "$base/api/drafts?state=escalated")"
shown=$(curl --silent "$base/api/drafts/$draft")
says '"rule":"path.protected"' "$shown"
says '"text":" build","is_changed":true' "$shown"

# A decision applies to the version that was shown.
seal=$(sed -E 's/.*"seal":"([0-9a-f]{64})".*/\1/' <<<"$shown")
say() { curl --silent --header 'content-type: application/json' --data "$1" "$base/api/drafts/$draft/approve"; }
says '"code":"seal-differs"' "$(say "{\"seal\": \"${seal//[0-9]/a}\"}")"
is "all:" "$(<ws/Makefile)"
says '"state":"applied"' "$(say "{\"seal\": \"$seal\"}")"
is "all: build" "$(<ws/Makefile)"
says '"holds":true' "$(curl --silent "$base/api/audit")"

kill "$server"
wait "$server"
trap 'rm -rf "$scratch"' EXIT
