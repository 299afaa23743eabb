#!/usr/bin/env bash
# The built-in agent: "add --version to watchdog.py" from task to workspace, with one rejection.
# shellcheck source-path=SCRIPTDIR source=lib/start.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib/start.sh"
export USER=ada

mkdir -p project/src
printf 'import sys\n\n\ndef main():\n    print(sys.argv)\n\n\nmain()\n' >project/src/watchdog.py
printf '# project\n' >project/README.md

run 0 edit "Add --version flag to watchdog.py" --path project --model demo --receipt receipt.ndjson
is "src/watchdog.py" "$out"
says "content.placeholder" "$err"
says "2 attempts" "$err"
is 1 "$(grep --count -- --version project/src/watchdog.py)"
is 1 "$(grep --count 'print(sys.argv)' project/src/watchdog.py)"
run 0 verify receipt.ndjson
run 0 audit verify --workspace project

# A task that it cannot do is reported as not applied.
run 1 edit "make it faster" --path project --model demo
says "not applied" "$err"
