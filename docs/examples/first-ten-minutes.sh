#!/usr/bin/env bash
# The first ten minutes of a new user in a real terminal of 80 columns: start page, demo, check, a draft with its review, the server.
# Every command is typed as the page "First ten minutes" shows it, and the screen must show the result.
#
#   MOOTHALL_WHEEL    install the program from this Python wheel first
#   RECORDING_SOCKET  record the terminal, see lib/terminal.sh
wheel=${MOOTHALL_WHEEL:-}
if [[ -n $wheel ]]; then
    venv=$(mktemp -d)
    python3 -m venv "$venv"
    "$venv/bin/pip" install --quiet --no-index "$wheel"
    export MOOTHALL_BIN="$venv/bin/moothall"
fi
# shellcheck source-path=SCRIPTDIR source=lib/start.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib/start.sh"

# shellcheck source-path=SCRIPTDIR source=lib/terminal.sh
source "$examples/lib/terminal.sh"

page=$examples/../src/get-started/first-ten-minutes.md
trap 'close_terminal; rm -rf "$scratch" "${venv:-}"' EXIT
unset NO_COLOR
export USER=ada NO_PROXY=127.0.0.1 no_proxy=127.0.0.1
# With images, the demo runs its program in a sandbox; without, it says so.
if [[ -d $images ]]; then
    sandboxes auto
fi

# types COMMAND: the page shows the same command. Draft ids and seals differ and are given as a second argument.
types() {
    grep --quiet --fixed-strings -- "$1" "$page" || fail "$page does not show: $1"
    type_line "$1${2:-}"
}

open_shell 80 24

types "moothall"
shows "Try it, without an API key or a network"
shows "This machine"
reads 4
ends_with 0
clear_screen

types "moothall demo"
for step in "1 of 6" "2 of 6" "3 of 6" "4 of 6" "5 of 6" "6 of 6"; do
    shows "$step"
    shows "Enter runs it, s skips it, q quits"
    reads 3
    key Enter
    case $step in
    1*) shows "a verdict in tiers" ;;
    2*)
        shows "o opens it in a browser, Enter continues"
        reads 3
        key Enter
        shows "numbers cite the filing"
        ;;
    3*) shows "WRONG_VALUE" ;;
    4*)
        if [[ -d $images ]]; then
            shows "✓ isolation class"
        else
            shows "skipped: no usable sandbox"
        fi
        ;;
    5*)
        shows "secret.specific"
        shows "audit log verified"
        ;;
    6*)
        shows "receipt is valid"
        shows "the changed copy was refused"
        ;;
    esac
done
shows "Done: "
reads 4
ends_with 0
clear_screen

types "moothall check --sample"
shows "WRONG_PERIOD"
shows "verdict   needs-person"
reads 4
ends_with 3
clear_screen

# An agent adds a dependency, which needs review; a person reads the change and approves it.
mkdir project
printf '[project]\nname = "app"\ndependencies = []\n' >project/pyproject.toml
printf 'The upload needs one more package.\n\n```toml pyproject.toml\n[project]\nname = "app"\ndependencies = ["requests"]\n```\n' >project/answer.md
types "cd project"
types "moothall draft import answer.md --task upload --submit"
shows "deps.manifest_changed"
shows "needs review: moothall review show drf_"
draft=$(screen | grep --only-matching 'drf_[0-9a-f]*' | tail -n 1)
reads 3
ends_with 3
types "moothall review show" " $draft"
shows '+ dependencies = ["requests"]'
shows "moothall review approve $draft --if-match"
approval=$(screen | sed -n 's/^moothall review approve //p' | tail -n 1)
reads 3
ends_with 0
types "moothall review approve" " $approval"
shows "applied"
reads 2
ends_with 0
is 'dependencies = ["requests"]' "$(tail -n 1 project/pyproject.toml)"
clear_screen

types "moothall serve" " --addr 127.0.0.1:0"
shows "http://127.0.0.1:"
base=$(screen | grep --only-matching 'http://127.0.0.1:[0-9]*' | head -n 1)
is "ok" "$(curl --silent --fail "$base/healthz")"
reads 3
key C-c
ends_with 0
printf 'played the first ten minutes\n'
