#!/usr/bin/env bash
# Connect coding agents: entries with and without a hook, the advice of the hook, and removal without a trace.
# shellcheck disable=SC2016  # expected texts contain backquotes
# shellcheck source-path=SCRIPTDIR source=lib/start.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib/start.sh"
mkdir bin project
ln -s "$program" bin/moothall
export PATH="$PWD/bin:$PATH"

# The user's file keeps comments and settings.
mkdir -p "$HOME/.codex"
printf '# mine\nmodel = "gpt-5.5" # good\n' >"$HOME/.codex/config.toml"
cp "$HOME/.codex/config.toml" before
run 0 connect codex --yes
says '+ [mcp_servers.moothall]' "$err"
shown docs/src/guides/connect.md "$(grep -A 2 'mcp_servers.moothall' <<<"$err")"
run 0 connect codex --yes
says 'codex is already connected' "$err"
run 0 connect codex --hook --yes
says 'Codex skips a new hook until you have reviewed it' "$err"
run 0 connect codex --remove --yes
cmp before "$HOME/.codex/config.toml" || fail "the file of the user changed"

# The file of a project, and the advice of its hook.
cd project
run 0 connect claude-code --project --hook --yes
says '"moothall"' "$(<.mcp.json)"
printf 'all:\n' >Makefile
printf 'x = 1\n' >main.py
call() {
    printf '{"cwd": "%s", "tool_name": "Edit", "tool_input": {"file_path": "%s", "old_string": "%s", "new_string": "%s"}}' "$PWD" "$@" >../call.json
}
call main.py 'x = 1' 'x = 2'
run 0 hook claude-code <../call.json
call Makefile 'all:' 'all: run'
run 2 hook claude-code <../call.json
says 'needs review by a person' "$err"
says 'path.protected Makefile' "$err"
run 0 connect claude-code --project --remove --yes

# Nothing is written without a confirmation.
run 2 connect gemini
says 'hint: write it without asking with `--yes`' "$err"
[[ ! -e $HOME/.gemini ]] || fail "a file was written"
