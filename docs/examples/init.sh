#!/usr/bin/env bash
# A new user in a real terminal: press Enter four times to finish a demo run in less than two minutes.
# shellcheck source-path=SCRIPTDIR source=lib/start.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib/start.sh"

# shellcheck source-path=SCRIPTDIR source=lib/terminal.sh
source "$examples/lib/terminal.sh"
trap 'close_terminal; rm -rf "$scratch"' EXIT
rm -rf "$HOME"
mkdir "$HOME"
unset XDG_CONFIG_HOME

# Waits for a question, then accepts its default.
accept() {
    shows "$1"
    key Enter
}

started=$SECONDS
open_terminal 110 50 "env HOME='$HOME' NO_COLOR=1 PATH='$PATH' '$program' init; echo exit code \$?; sleep 600"
accept "provider/name [demo]"
accept "Email address [none]"
accept "Write these changes? [Y/n]"
accept "Run the demo now? [Y/n]"
shows "exit code 0"
took=$((SECONDS - started))
((took < 120)) || fail "it took $took seconds"
printf 'from the first question to the memo: %s seconds\n' "$took"

"${terminal[@]}" capture-pane -p -S - -t session | sed "s|$HOME|~|g" >recording.txt
cat recording.txt
is 'model = "demo"' "$(<"$HOME/.config/moothall/moothall.toml")"
[[ -s $HOME/.local/share/moothall/demonstration.md ]] || fail "the memo is missing or empty"

# The recording in the book matches this session: questions and written settings.
shown docs/src/get-started/setup.md "$(sed -n '1,/Run the demo now/p' recording.txt)"
shown docs/src/get-started/setup.md "$(grep --after-context=1 '^Done' recording.txt)"
