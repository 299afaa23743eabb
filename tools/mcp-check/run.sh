#!/usr/bin/env bash
# Tests `moothall mcp` with third-party clients: the MCP inspector, the MCP Python client and Gemini CLI. Covers every era of the protocol over every transport,
# the schemas by the inspector's strict rules, the calls of the sandbox draft pattern, and a decision in a form of the client.
#
#   tools/mcp-check/run.sh PROGRAM FOLDER    PROGRAM is moothall, or --install-only; FOLDER caches the clients, FOLDER/../agent-clients Gemini CLI
set -euo pipefail

mkdir -p "$2"
folder=$(realpath "$2")
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)

if ! cmp --silent "$here/package.json" "$folder/package.json"; then
    rm -rf "$folder/node_modules" "$folder/package-lock.json"
    cp "$here/package.json" "$folder/package.json.new"
    (cd "$folder" && mv package.json.new package.json && npm install --no-audit --no-fund --loglevel=error) ||
        { rm -f "$folder/package.json"; exit 1; }
fi
agents=$(dirname "$folder")/agent-clients
bash "$here/../agent-clients/install.sh" "$agents" gemini
if ! cmp --silent "$here/requirements.txt" "$folder/venv/requirements.txt"; then
    python3 -m venv --clear "$folder/venv"
    "$folder/venv/bin/pip" install --quiet --requirement "$here/requirements.txt"
    cp "$here/requirements.txt" "$folder/venv/requirements.txt"
fi
[[ $1 != --install-only ]] || exit 0
program=$(realpath "$1")
export PATH="$folder/node_modules/node/bin:$PATH"

scratch=$(mktemp -d)
server=
trap 'if [[ -n $server ]]; then kill "$server" 2>/dev/null || true; wait "$server" 2>/dev/null || true; fi; rm -rf "$scratch"' EXIT
export HOME="$scratch" USER=ada NO_PROXY=127.0.0.1 no_proxy=127.0.0.1
unset "${!XDG_@}" "${!MOOTHALL_@}"
mkdir -p "$scratch/ws/src" "$scratch/ws/.moothall"
cd "$scratch"
printf 'version = 1\n[review]\nelicitation = "form"\n' >ws/.moothall/policy.toml
"$program" policy --workspace ws trust --yes
printf 'all:\n' >ws/Makefile
serve=("$program" mcp --workspace "$scratch/ws" --tools all --tool-names both)

inspect() {
    "$folder/node_modules/.bin/mcp-inspector" --cli "$@" --format json -q
}

fail() {
    echo "FAILED: $*" >&2
    exit 1
}

# A real coding agent reads the entry that `moothall connect` wrote, starts the server and lists it.
mkdir bin "$scratch/.gemini"
ln -s "$program" bin/moothall
printf '{\n  // mine\n  "security": { "folderTrust": { "enabled": false } }\n}\n' >"$scratch/.gemini/settings.json"
cp "$scratch/.gemini/settings.json" before
gemini() {
    (cd "$scratch/ws" && PATH="$scratch/bin:$PATH" GEMINI_CLI_NO_RELAUNCH=true "$agents/gemini/node_modules/.bin/gemini" mcp list 2>&1)
}
PATH="$scratch/bin:$PATH" "$program" connect gemini --yes --hook
listed=$(gemini)
grep --quiet 'moothall.*Connected' <<<"$listed" || fail "gemini lists: $listed"
"$program" connect gemini --remove --yes
cmp before "$scratch/.gemini/settings.json" || fail "connect --remove left something"
echo "gemini: connected and removed"

# Over standard streams the inspector starts the server itself.
expected=19
for era in legacy auto modern; do
    listed=$(inspect "${serve[@]}" --method tools/list --protocol-era "$era" --strict 2>strict) || { cat strict >&2; fail "strict, $era"; }
    count=$(grep --only-matching '"inputSchema"' <<<"$listed" | wc -l)
    ((count == expected)) || fail "$era lists $count tools"
    if grep --quiet --ignore-case 'warn\|error\|problem' strict; then
        cat strict >&2
        fail "the inspector reports schema problems"
    fi
    inspect "${serve[@]}" --method tools/call --tool-name draft_list --protocol-era "$era" >called
    grep --quiet '"drafts"' called || { cat called >&2; fail "draft_list, $era"; }
    echo "inspector, stdio, $era: $count tools"
done

"${serve[@]}" --http 127.0.0.1:0 --token-file "$scratch/token" >address 2>told &
server=$!
until [[ -s address ]]; do
    kill -0 "$server" || { cat told >&2; exit 1; }
    sleep 0.05
done
url=$(<address)
token=$(<token)
for era in legacy auto modern; do
    listed=$(inspect "$url" --transport http --header "Authorization: Bearer $token" --method tools/list --protocol-era "$era")
    count=$(grep --only-matching '"inputSchema"' <<<"$listed" | wc -l)
    ((count == expected)) || fail "$era over HTTP lists $count tools"
    inspect "$url" --transport http --header "Authorization: Bearer $token" --method resources/templates/list --protocol-era "$era" >called
    grep --quiet 'moothall://draft/{draft_id}/diff' called || { cat called >&2; fail "templates, $era"; }
    echo "inspector, http, $era: $count tools"
done

MCP_CHECK_URL=$url MCP_CHECK_TOKEN=$token "$folder/venv/bin/python" "$here/client.py" "$scratch/ws" "${serve[@]}"
kill -0 "$server" || fail "the server exited"
"$program" audit verify --workspace ws
