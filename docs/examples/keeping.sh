#!/usr/bin/env bash
# Living with runs: compared, backed up, restored; what is old goes and its space comes back.
# shellcheck source-path=SCRIPTDIR source=lib/start.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib/start.sh"

small=(consult HLXI --model demo --moves 5 --rounds 1 --yes)
database=$HOME/.local/share/moothall/moothall.db
run 0 "${small[@]}" --as-of 2025-12-31 --json
oldest=$(field run_id)
run 0 "${small[@]}" --json
newest=$(field run_id)

# What is different between two days.
run 0 diff "$oldest" "$newest"
shown docs/src/runs.md "$(tail -n +3 <<<"$out")"
run 0 diff "$newest" "$newest"
says "nothing is different" "$out"

# A backup, and a changed one.
run 0 backup runs.tar
says "2 runs in runs.tar" "$out"
is $'manifest.json\nmoothall.db' "$(tar --list --file runs.tar)"
is 600 "$(stat --format %a runs.tar)"
run 2 restore runs.tar
says "there are runs in" "$err"
run 0 restore runs.tar --into elsewhere
says "restored 2 runs of" "$out"
sed 's/Helix/HELIX/' runs.tar >changed.tar
run 2 restore changed.tar --into nowhere
says "it was damaged or changed" "$err"

# A drill: drafts and the audit journal are in the backup, too.
mkdir workspace
echo "all:" >workspace/Makefile
run 0 draft request Makefile --task t1 --workspace workspace --json
run 0 audit verify --workspace workspace
before=$out
run 0 backup all.tar
says "2 runs and the drafts of 1 workspace in all.tar" "$out"
mv "$HOME/.local" "$HOME/lost"
run 0 restore all.tar
run 0 runs
run 0 draft list --all --workspace workspace
run 0 audit verify --workspace workspace
is "$before" "$out"

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
