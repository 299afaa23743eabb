#!/usr/bin/env bash
# Drafts for agents: the confinement of the server, an agent's calls over HTTP, a review decision, and refused clients.
# shellcheck source-path=SCRIPTDIR source=lib/start.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib/start.sh"
export USER=ada NO_PROXY=127.0.0.1 no_proxy=127.0.0.1

mkdir -p ws/src
printf 'import sys\n\n\ndef main():\n    print(sys.argv)\n' >ws/src/watchdog.py
printf 'all:\n' >ws/Makefile

# Tests what the frontend process cannot do.
run 0 mcp --workspace ws --check
shown docs/src/guides/mcp.md "$out"

"$program" mcp --workspace ws --http 127.0.0.1:0 --token-file token >address 2>told &
server=$!
trap 'kill "$server" 2>/dev/null || true; rm -rf "$scratch"' EXIT
until [[ -s address ]]; do
    kill -0 "$server" || fail "the server did not start: $(<told)"
    sleep 0.02
done
url=$(<address)

# call TOOL ARGUMENTS: sends a call like an agent's client. Sets `answer` to the result.
call() {
    local meta='{"io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientInfo": {"name": "example", "version": "1"},
                 "io.modelcontextprotocol/clientCapabilities": {}}'
    answer=$(curl --silent --fail "$url" --header "authorization: Bearer $(<token)" --header 'content-type: application/json' \
        --header 'accept: application/json, text/event-stream' --header 'mcp-protocol-version: 2026-07-28' \
        --header 'mcp-method: tools/call' --header "mcp-name: $1" \
        --data "{\"jsonrpc\": \"2.0\", \"id\": 1, \"method\": \"tools/call\", \"params\": {\"name\": \"$1\", \"arguments\": $2, \"_meta\": $meta}}")
    printf '%s\n' "$answer"
}

# "Add --version to watchdog.py".
call draft_request '{"source_path": "src/watchdog.py", "task_id": "phase10_version_flag"}'
draft=$(sed -E 's/.*"draft_id":"([^"]+)".*/\1/' <<<"$answer")
call draft_edit "{\"draft_id\": \"$draft\", \"old\": \"print(sys.argv)\", \"new\": \"print('1.0' if '--version' in sys.argv else sys.argv)\"}"
says '"success":true' "$answer"
call draft_check "{\"draft_id\": \"$draft\"}"
says '"action":"allow"' "$answer"
is 0 "$(grep --count version ws/src/watchdog.py || true)"
call draft_submit "{\"draft_id\": \"$draft\", \"change_summary\": \"prints the version\"}"
says '"decision":"accepted"' "$answer"
is 1 "$(grep --count version ws/src/watchdog.py)"

# An error says what to do instead.
call draft_request '{"source_path": "../outside.py", "task_id": "t1"}'
says 'hint: use a path inside the workspace' "$answer"

# An escalated draft needs review; the agent polls its status.
call draft_request '{"source_path": "Makefile", "task_id": "build"}'
draft=$(sed -E 's/.*"draft_id":"([^"]+)".*/\1/' <<<"$answer")
call draft_edit "{\"draft_id\": \"$draft\", \"old\": \"all:\", \"new\": \"all: build\"}"
call draft_submit "{\"draft_id\": \"$draft\", \"change_summary\": \"builds by default\"}"
says '"decision":"escalated"' "$answer"
run 0 review show "$draft" --workspace ws --json
seal=$(field seal | head -n 1)
run 0 review approve "$draft" --if-match "$seal" --workspace ws
call draft_status "{\"draft_id\": \"$draft\", \"wait_s\": 20}"
says '"state":"applied"' "$answer"

# Requests without the token are refused, and so are web pages with it.
knock() { curl --silent --output /dev/null --write-out '%{http_code}' "$url" --data '{}' "$@"; }
is 401 "$(knock)"
is 403 "$(knock --header "authorization: Bearer $(<token)" --header 'origin: https://evil.example' --header 'content-type: application/json')"

kill "$server"
wait "$server"
trap 'rm -rf "$scratch"' EXIT
run 0 audit verify --workspace ws
