#!/usr/bin/env bash
# The server without a key or network: start, follow and export a consultation over HTTP; refused requests; shutdown.
# shellcheck source-path=SCRIPTDIR source=lib/start.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib/start.sh"

# All requests stay on this machine.
export NO_PROXY=127.0.0.1 no_proxy=127.0.0.1

"$program" serve --auth none --addr 127.0.0.1:0 --model demo --pace 0 >address 2>told &
server=$!
trap 'kill "$server" 2>/dev/null || true; rm -rf "$scratch"' EXIT
until [[ -s address ]]; do
    kill -0 "$server" || fail "the server did not start: $(<told)"
    sleep 0.02
done
base=$(<address)
is "ok" "$(curl --silent --fail "$base/healthz")"

# A repeated request starts only one run.
wanted='{"workflow": "consult", "ticker": "HLXI", "verdict": "off", "moves": 5, "rounds": 3, "isolation": "none"}'
post() { curl --silent --header 'content-type: application/json' "$@"; }
run_id=$(post --header 'idempotency-key: example' --data "$wanted" "$base/api/runs" | sed -E 's/.*"run_id":"([^"]+)".*/\1/')
again=$(post --header 'idempotency-key: example' --data "$wanted" "$base/api/runs")
says "$run_id" "$again"

# The stream ends with the run and can continue from any event.
curl --silent --no-buffer "$base/api/runs/$run_id/events" >events
says "event: hello" "$(head -n 5 events)"
says '"type":"pipeline_complete"' "$(tail -n 3 events)"
last=$(grep --count '^id: ' events)
curl --silent --no-buffer "$base/api/runs/$run_id/events?after=$((last - 2))" >rest
is "2" "$(grep --count '^id: ' rest)"
is "204" "$(curl --silent --output /dev/null --write-out '%{http_code}' "$base/api/runs/$run_id/events?after=$last")"

# The state, the conversations and the memo, as the commands show them.
says '"state":"complete"' "$(curl --silent "$base/api/runs/$run_id")"
says '"role":"critic"' "$(curl --silent --compressed "$base/api/runs/$run_id/moves/m1/threads/D2")"
run 0 report "$run_id" --format md
is "$out" "$(curl --silent "$base/api/runs/$run_id/export.md")"

# Errors explain the reason.
refused=$(post --data '{"workflow": "consult", "ticker": "HLXI", "rounds": 99}' "$base/api/runs")
says '"code":"out-of-range"' "$refused"
is "421" "$(curl --silent --output /dev/null --write-out '%{http_code}' --header 'host: evil.example' "$base/api/runs")"

# The sandboxes of this machine; without an image, the response says how to build one.
says 'moothall image build python' "$(curl --silent "$base/api/doctor")"

kill "$server"
wait "$server"
trap 'rm -rf "$scratch"' EXIT
