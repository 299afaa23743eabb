#!/usr/bin/env bash
# Programs in sandboxes without a model: what goes in, what comes out, and the ways a program can end.
# shellcheck source-path=SCRIPTDIR source=lib/start.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib/start.sh"
sandboxes microvm

echo 'print("hello from a sandbox")' >hello.py
run 0 exec hello.py
is "hello from a sandbox" "$out"
shown docs/src/exec.md "$err"

# The sandbox that was used is part of the result.
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
shown docs/src/exec.md "$err"
is "50.25 EUR" "$(<results/total.txt)"
echo 'print(input().upper())' >upper.py
echo quietly >words.txt
run 0 exec upper.py <words.txt
is QUIETLY "$out"

# Ways to end, told apart.
echo 'import sys; sys.exit("no such luck")' >fail.py
run 1 exec fail.py
shown docs/src/exec.md "$err"
echo 'while True: pass' >loop.py
run 1 exec loop.py --timeout 1
shown docs/src/exec.md "$err"
cat >memory.py <<'PY'
blocks = []
while True:
    blocks.append(bytearray(10_000_000))
PY
run 1 exec memory.py
shown docs/src/exec.md "$err"
echo 'import os; os.kill(os.getpid(), 9)' >kill.py
run 1 exec kill.py
says "ended by signal 9" "$err"

# More than 1 MiB is cut, and that is said.
echo 'print("x" * 2_000_000)' >long.py
run 0 exec long.py
is 1048576 "${#out}"
says "the output was longer than 1048576 bytes; the rest is not shown" "$err"

# There is no network.
echo 'import socket; socket.create_connection(("127.0.0.1", 9), 2)' >network.py
run 1 exec network.py
says "exit code 1" "$err"

# Nothing is left of any of them.
run 0 sandbox list
is "no sandboxes" "$out"
