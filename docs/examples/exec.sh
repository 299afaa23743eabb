#!/usr/bin/env bash
# Run programs in sandboxes without a model: inputs, outputs and exit causes.
# shellcheck source-path=SCRIPTDIR source=lib/start.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib/start.sh"
sandboxes microvm

echo 'print("hello from a sandbox")' >hello.py
run 0 exec hello.py
is "hello from a sandbox" "$out"
shown docs/src/guides/exec.md "$err"

# The result names the sandbox that was used.
run 0 exec hello.py --json
says '"exit": "exited"' "$out"
says '"limits_not_held": []' "$out"
is 0 "$(grep -c '"held": false' <<<"$out" || true)"

# Files, arguments and standard input.
cat >total.py <<'PY'
import csv, sys

with open("/inputs/sales.csv", newline="") as file:
    total = sum(float(row["amount"]) for row in csv.DictReader(file))
with open("out/total.txt", "w") as file:
    print(f"{total:.2f} {sys.argv[1]}", file=file)
PY
run 0 exec total.py --input "$examples/sales.csv" --output results -- EUR
shown docs/src/guides/exec.md "$err"
is "50.25 EUR" "$(<results/total.txt)"
echo 'print(input().upper())' >upper.py
echo quietly >words.txt
run 0 exec upper.py <words.txt
is QUIETLY "$out"

# Exit causes are distinguished.
echo 'import sys; sys.exit("no such luck")' >fail.py
run 1 exec fail.py
shown docs/src/guides/exec.md "$err"
echo 'while True: pass' >loop.py
run 1 exec loop.py --timeout 1
shown docs/src/guides/exec.md "$err"
cat >memory.py <<'PY'
blocks = []
while True:
    blocks.append(bytearray(10_000_000))
PY
run 1 exec memory.py
shown docs/src/guides/exec.md "$err"
echo 'import os; os.kill(os.getpid(), 9)' >kill.py
run 1 exec kill.py
says "ended by signal 9" "$err"

# Output beyond 1 MiB is cut, with a note.
echo 'print("x" * 2_000_000)' >long.py
run 0 exec long.py
is 1048576 "${#out}"
says "the output was cut after 1048576 bytes" "$err"

# Programs have no network.
echo 'import socket; socket.create_connection(("127.0.0.1", 9), 2)' >network.py
run 1 exec network.py
says "exit code 1" "$err"

# No sandbox is left.
run 0 sandbox list
is "no sandboxes" "$out"
