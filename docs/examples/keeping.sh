#!/usr/bin/env bash
# Maintain runs: compare, back up, restore, delete old ones and free their space.
# shellcheck source-path=SCRIPTDIR source=lib/start.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib/start.sh"

small=(consult HLXI --model demo --verdict off --moves 5 --rounds 1 --yes)
database=$HOME/.local/share/moothall/moothall.db
run 0 "${small[@]}" --as-of 2025-12-31 --json
oldest=$(field run_id)
run 0 "${small[@]}" --json
newest=$(field run_id)

# Compare two dates.
run 0 diff "$oldest" "$newest"
shown docs/src/concepts/runs.md "$(tail -n +3 <<<"$out")"
run 0 diff "$newest" "$newest"
says "no differences" "$out"

# A backup, and a modified backup.
run 0 backup runs.tar
says "saved 2 runs to runs.tar" "$out"
is $'manifest.json\nmoothall.db' "$(tar --list --file runs.tar)"
is 600 "$(stat --format %a runs.tar)"
run 2 restore runs.tar
says "runs already exist in" "$err"
run 0 restore runs.tar --into elsewhere
says "restored 2 runs from" "$out"
sed 's/Helix/HELIX/' runs.tar >changed.tar
run 2 restore changed.tar --into nowhere
says "the backup is damaged or was modified" "$err"

# A restore drill: the backup includes drafts and the audit log.
mkdir workspace
echo "all:" >workspace/Makefile
run 0 draft request Makefile --task t1 --workspace workspace --json
run 0 audit verify --workspace workspace
before=$out
run 0 backup all.tar
says "saved 2 runs and the drafts of 1 workspace to all.tar" "$out"
mv "$HOME/.local" "$HOME/lost"
run 0 restore all.tar
run 0 runs
run 0 draft list --all --workspace workspace
run 0 audit verify --workspace workspace
is "$before" "$out"

# Old runs: listed first, then deleted.
run 0 runs prune --older-than 0s --keep 1 --dry-run
says "1 run with" "$out"
before=$(stat --format %s "$database")
run 0 runs prune --older-than 0s --keep 1 --yes
says "deleted 1 run with" "$out"
after=$(stat --format %s "$database")
((after < before)) || fail "the file did not shrink: $before bytes before, $after bytes after"
run 0 runs --json
is "$newest" "$(field run_id)"

# Without a terminal to confirm in, deletion needs `--yes`.
run 2 runs rm "$newest"
says "deleting 1 run needs confirmation" "$err"
run 0 runs rm "$newest" --yes
run 0 runs
is "no runs" "$out"
