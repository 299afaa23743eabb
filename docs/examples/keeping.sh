#!/usr/bin/env bash
# Living with runs: what is old goes and its space comes back.
# shellcheck source-path=SCRIPTDIR source=lib/start.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib/start.sh"

small=(consult HLXI --model demo --moves 5 --rounds 1 --yes)
database=$HOME/.local/share/moothall/moothall.db
for _ in 1 2; do
    run 0 "${small[@]}"
done
run 0 runs --json --limit 1
newest=$(field run_id)

# Old runs: told first, then deleted.
run 0 runs prune --older-than 0s --keep 1 --dry-run
says "1 run with" "$out"
before=$(stat --format %s "$database")
run 0 runs prune --older-than 0s --keep 1 --yes
says "deleted 1 run with" "$out"
after=$(stat --format %s "$database")
((after < before)) || fail "the file has not become smaller: $before bytes before, $after now"
run 0 runs --json
is "$newest" "$(field run_id)"

# Nobody is there to be asked.
run 2 runs rm "$newest"
says "nobody can be asked whether 1 run may go" "$err"
run 0 runs rm "$newest" --yes
run 0 runs
is "there is no run" "$out"
