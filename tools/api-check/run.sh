#!/usr/bin/env bash
# Tests a server with valid and invalid requests generated from its OpenAPI document (schemathesis): no response may be a server error, and
# every response must match the document. Streams are skipped because they do not end.
#
#   tools/api-check/run.sh PROGRAM FOLDER    PROGRAM is moothall, or --install-only; FOLDER caches the tool
set -euo pipefail

mkdir -p "$2"
tool=$(realpath "$2")/schemathesis
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=tools/venv.sh
source "$here/../venv.sh"
install_venv "$tool" "$here/requirements.txt"
[[ $1 != --install-only ]] || exit 0
program=$(realpath "$1")

scratch=$(mktemp -d)
trap 'kill "$server" 2>/dev/null || true; wait "$server" 2>/dev/null || true; rm -rf "$scratch"' EXIT
cd "$scratch"
env -i HOME="$scratch" PATH="$PATH" "$program" serve --auth none --addr 127.0.0.1:0 --model demo --pace 0 >address 2>told &
server=$!
until [[ -s address ]]; do
    kill -0 "$server" || { cat told >&2; exit 1; }
    sleep 0.05
done
base=$(<address)
export NO_PROXY=127.0.0.1 no_proxy=127.0.0.1

# Create one finished run to read.
curl --silent --fail --header 'content-type: application/json' "$base/api/runs" \
    --data '{"workflow": "consult", "ticker": "HLXI", "moves": 2, "rounds": 1, "isolation": "none"}' >started
run=$(sed -E 's/.*"run_id":"([^"]+)".*/\1/' started)
curl --silent --no-buffer "$base/api/runs/$run/events" >/dev/null

cat >schemathesis.toml <<TOML
[parameters]
run = "$run"
move = "m1"
thread = "D1"
id = "F0:Revenue:FY2025"
TOML
"$tool/bin/schemathesis" --config-file schemathesis.toml run "$base/api/openapi.json" --exclude-path '/api/runs/{run}/events' --exclude-path '/api/runs/{run}/events.json' \
    --checks not_a_server_error,status_code_conformance,content_type_conformance,response_schema_conformance \
    --max-examples 15 --generation-deterministic --no-color
kill -0 "$server"
