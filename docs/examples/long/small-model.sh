#!/usr/bin/env bash
# A small model on this machine, set up by `moothall init` alone: a question, an answer that follows a schema, three programs and a consultation
# with two moves and two rounds. A small model may fail a task; the screen must always say how it ended. Prints how often answers were refused,
# asked for again or degraded, and how many calls of each kind had a usable answer at the first try.
#
#   LOCAL_MODEL_URL  the server; a model of 0.5 to 1.5 billion parameters is meant
# shellcheck source-path=SCRIPTDIR source=../lib/start.sh
source "$(dirname "${BASH_SOURCE[0]}")/../lib/start.sh"
# shellcheck source-path=SCRIPTDIR source=../lib/terminal.sh
source "$examples/lib/terminal.sh"
trap 'close_terminal; rm -rf "$scratch"' EXIT
export NO_PROXY=127.0.0.1 no_proxy=127.0.0.1
sandboxes auto
open_shell 110 50

# ends_like REGEX SECONDS: waits for the line that says how a run ended, and sets `seen` to it.
ends_like() {
    local deadline=$((SECONDS + $2))
    until seen=$(screen | grep --extended-regexp --max-count 1 -- "$1"); do
        ((SECONDS < deadline)) || fail "the screen never showed how the run ended"$'\n'"$(screen)"
        sleep 0.5
    done
    printf 'shown: %s\n' "$seen"
}

type_line "moothall init --no-demo"
shows "provider/name [demo]"
type_line 2
shows "Server URL"
type_line "$local_model/v1"
shows "Model name on this server ["
key Enter
shows "Email address [none]"
key Enter
shows "Write these changes? [Y/n]"
key Enter
shows "answered as" 300
ends_with 0
cat "$XDG_CONFIG_HOME/moothall/moothall.toml"

type_line 'moothall ask "Name one reason why a company keeps cash."'
shows "tokens" 300
ends_with 0

cp "$examples/score.schema.json" .
type_line 'moothall ask --schema score.schema.json "Should a bakery open on Sundays?"'
shows '"score"' 600
ends_with 0

ran=0
for task in "Print the sum of the numbers from 1 to 10." "Print the word moothall backwards." "Print the first ten prime numbers, one per line."; do
    type_line "moothall run '$task'"
    ends_like '^[a-z ]+ · [0-9]+ attempts?' 1200
    [[ $seen != ran* ]] || ran=$((ran + 1))
    sleep 1
    clear_screen
done
printf '%d of 3 programs ran\n' "$ran"

type_line "moothall consult HLXI --moves 2 --rounds 2 --yes --events events.jsonl"
ends_like '^[a-z ]+ · [0-9]+ calls' 7200
screen | tail -n 50

count() {
    grep --count --fixed-strings -- "$1" events.jsonl || true
}
printf 'consultation: %d answers, %d refused, %d debates degraded\n' \
    "$(count '"event":"model_replied"')" "$(count '"event":"output_rejected"')" "$(screen | grep --count 'degraded')"

"$program" runs --json >runs.json
for run in $(python3 -c 'import json; print(*(run["run_id"] for run in json.load(open("runs.json"))["runs"]))'); do
    "$program" calls "$run" --jsonl
done >calls.jsonl
python3 - <<'PYTHON'
import collections
import json

calls, used = collections.Counter(), collections.Counter()
for line in open("calls.jsonl"):
    call = json.loads(line)
    if not call["retry"]:
        calls[call["purpose"]] += 1
        used[call["purpose"]] += call["result"] == "used"
print(f"{'kind':24}{'calls':>6}{'usable at first try':>21}")
for kind, count in sorted(calls.items()):
    share = f"{used[kind]} ({100 * used[kind] // count} %)"
    print(f"{kind:24}{count:6}{share:>21}")
PYTHON
