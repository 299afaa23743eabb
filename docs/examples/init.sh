#!/usr/bin/env bash
# A new user in a real terminal: press Enter four times to finish a demo run in less than two minutes.
# shellcheck source-path=SCRIPTDIR source=lib/start.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib/start.sh"

command -v tmux >/dev/null || fail "tmux is missing: apt-get install tmux"
terminal=(tmux -S "$scratch/tmux" -f /dev/null)
trap '"${terminal[@]}" kill-server 2>/dev/null || true; rm -rf "$scratch"' EXIT
rm -rf "$HOME"
mkdir "$HOME"
unset XDG_CONFIG_HOME

# Waits for a text on the screen, then types a reply.
answer() {
    local deadline=$((SECONDS + 100))
    until "${terminal[@]}" capture-pane -p -S - -t newcomer | grep --quiet --fixed-strings -- "$1"; do
        ((SECONDS < deadline)) || fail "the screen never showed: $1"
        sleep 0.05
    done
    "${terminal[@]}" send-keys -t newcomer "$2"
}

started=$SECONDS
"${terminal[@]}" new-session -d -s newcomer -x 110 -y 50 "env HOME='$HOME' NO_COLOR=1 PATH='$PATH' '$program' init; echo exit code \$?; sleep 600"
answer "provider/name [demo]" Enter
answer "Email address [none]" Enter
answer "Write these changes? [Y/n]" Enter
answer "Run the demo now? [Y/n]" Enter
answer "exit code 0" ""
took=$((SECONDS - started))
((took < 120)) || fail "it took $took seconds"
printf 'from the first question to the memo: %s seconds\n' "$took"

"${terminal[@]}" capture-pane -p -S - -t newcomer | sed "s|$HOME|~|g" >recording.txt
cat recording.txt
is 'model = "demo"' "$(<"$HOME/.config/moothall/moothall.toml")"
[[ -s $HOME/.local/share/moothall/demonstration.md ]] || fail "the memo is missing or empty"

# The recording in the book matches this session: questions and written settings.
shown docs/src/get-started/setup.md "$(sed -n '1,/Run the demo now/p' recording.txt)"
shown docs/src/get-started/setup.md "$(grep --after-context=1 '^Done' recording.txt)"
