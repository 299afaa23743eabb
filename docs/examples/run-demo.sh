#!/usr/bin/env bash
# The three tasks of the demo model: one passes, one passes at the second attempt, one must not pass.
# shellcheck disable=SC2016  # expected texts contain backquotes and dollar signs
# shellcheck source-path=SCRIPTDIR source=lib/start.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib/start.sh"
sandboxes microvm

run 0 run --model demo "print the first 20 primes" --expect 'regex:^2\s3\s5'
shown docs/src/guides/programs.md "$err"
is 71 "$(tail -n 1 <<<"$out")"

# Without a contract, a program can run but not pass.
run 0 run --model demo "print the first 20 primes" --receipt receipt.jsonl
shown docs/src/guides/programs.md "$err"
says "ran · 1 attempt" "$err"
run 0 verify receipt.jsonl
says "effects   2" "$out"

cp "$examples/sales.csv" .
run 0 run --model demo "Print the sum of the amounts in sales.csv" --input sales.csv --expect text:50.25 --receipt receipt.jsonl --events events.jsonl
is 50.25 "$out"
shown docs/src/guides/programs.md "$err"
says "passed · 2 attempts" "$err"
is 1 "$(grep -c '"event":"critiqued"' events.jsonl)"
run 0 verify receipt.jsonl
says "effects   5" "$out"

# The program exits with 0 and prints plausible but invented names.
run 1 run --model demo "Print the usernames in users.json" --expect regex:alice --receipt receipt.jsonl
shown docs/src/guides/programs.md "$err"
says 'input.fabricated: `users.json` was not given, and the program makes its content up' "$err"
run 1 verify receipt.jsonl
says "verdict   fail" "$out"
# With the file, nothing is invented.
echo '[{"username": "ada"}]' >users.json
run 0 run --model demo "Print the usernames in users.json" --input users.json --expect text:ada

# A check is your own program in a separate sandbox.
cat >check.py <<'PY'
import sys

primes = [int(line) for line in open("stdout.txt")]
sys.exit(0 if len(primes) == 20 and primes[-1] == 71 else "the last prime is wrong")
PY
run 0 run --model demo "print the first 20 primes" --check check.py
says "checked in microvm" "$err"
run 1 run --model demo "print the first 19 primes" --check check.py
says "contract.check: the check says no (exit code 1): the last prime is wrong" "$err"
says "run.repeated: the attempt failed exactly as the one before; no further one is made" "$err"

# JSON in, JSON out.
cat >request.json <<'JSON'
{"task": "print the first 5 primes", "model": "demo", "expect": {"text": "2\n3\n5\n7\n11"}}
JSON
run 0 run --stdio <request.json
is 8 "$(wc -l <<<"$out")"
says '{"result":{"run_id":' "$(tail -n 1 <<<"$out")"
says '"result":"passed"' "$(tail -n 1 <<<"$out")"
run 0 run --model demo "print the first 5 primes" --json
is ran "$(field result)"
is pass "$(field verdict)"

# The book explains every rule.
sources="$examples/../../crates/moothall-core/src/program"
[[ -d $sources ]] || fail "no folder $sources"
while read -r rule; do
    grep --quiet "^| \`$rule\`" "$examples/../src/guides/programs.md" || fail "the page has no row for $rule"
done < <(grep -rhoE '"(run|contract|dependency|input|check|exit|network|expectation|output|model|sandbox)\.[a-z-]+"' \
    --include='*.rs' --exclude='*_tests.rs' "$sources"* | tr -d '"' | grep -v '\.py$\|\.txt$' | sort -u)
