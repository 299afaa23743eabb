#!/usr/bin/env bash
# Fifty small edits by a real model on this machine: counts readable answers and applied edits. The model has 135 million parameters and rarely
# follows a format; its proposals are rarely right, and the gate judges them anyway. EDITS sets the number (default: 50).
# shellcheck source-path=SCRIPTDIR source=../lib/start.sh
source "$(dirname "${BASH_SOURCE[0]}")/../lib/start.sh"

cat >catalog.toml <<'TOML'
dated = "2026-11-15"

[model."lab/smollm2-135m"]
context = 4096
max_output = 200
TOML
cat >moothall.toml <<TOML
model = "lab/smollm2-135m"
catalog = "catalog.toml"

[provider.lab]
base_url = "$local_model/v1"
TOML
tasks=('Print goodbye instead of hello.' 'Print hello twice.' 'Add a comment at the top.' 'Put the print into a function main and call it.'
    'Print hello in capital letters.' 'Print the numbers from 1 to 3 after hello.' 'Ask for a name and greet it.' 'Print hello world.'
    'Add a variable name and print it.' 'Print hello with an exclamation mark.')

edits=${EDITS:-50}
declare -A states=()
questions=0
for ((number = 1; number <= edits; number++)); do
    rm -rf project answers
    mkdir project
    printf 'print("hello %d")\n' "$number" >project/hello.py
    # 1: the gate refused it; 3: it needs review. Both answers were readable.
    code=0
    "$program" edit "${tasks[number % 10]}" --path project --attempts 1 --json --record answers >"$scratch/out" 2>"$scratch/err" || code=$?
    ((code == 0 || code == 1 || code == 3)) || fail "$(cat "$scratch/err")"
    # The state of the drafts; the state of the run has less indentation. Unreadable answers were never submitted and have none.
    state=$(sed -n 's/^    "state": "\([a-z]*\)",$/\1/p' "$scratch/out")
    states[${state:=unreadable}]=$((${states[$state]:-0} + 1))
    asked=(answers/*)
    questions=$((questions + ${#asked[@]}))
    printf '%d %s after %d questions\n' "$number" "$state" "${#asked[@]}"
done

printf '%d edits, %d questions:' "$edits" "$questions"
for state in "${!states[@]}"; do
    printf ' %s %d' "$state" "${states[$state]}"
done
printf '\n'
# Less than 1 % may be unreadable.
((${states[unreadable]:-0} * 100 < edits)) || fail "${states[unreadable]} of $edits answers were unreadable"
