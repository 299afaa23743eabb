#!/usr/bin/env bash
# Everything that many workers need, up and down again on one machine. A part of it dies in between.
# shellcheck source-path=SCRIPTDIR source=lib/start.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib/start.sh"

run 2 cluster status
says "there is no cluster" "$err"

# The servers are the caller's, because they take their time to install; everything else is the example's own.
export XDG_CACHE_HOME=$caches
trap '"$program" cluster down --purge >/dev/null 2>&1 || true; rm -rf "$scratch"' EXIT
run 0 cluster up
shown docs/src/cluster.md "$err"
engine=${out##* --engine }
# shellcheck source=/dev/null
source <(head -n 1 <<<"$out")
[[ $MOOTHALL_DATABASE_URL == postgres://moothall:* ]] || fail "nothing says where the database is"

run 0 cluster status
says "worker-" "$out"
run 0 consult HLXI --model demo --isolation none --moves 5 --rounds 1 --engine "$engine" --json
consultation=$(field run_id)

# Restate loses its power, and comes back with all that it knew.
kill -9 "$(<"$HOME/.local/share/moothall/cluster/restate-1.pid")"
while "$program" cluster status >/dev/null 2>&1; do sleep 0.1; done
run 4 cluster status
says "a part of the cluster is not up" "$err"
run 0 cluster up
is "$engine" "${out##* --engine }"
run 0 consult HLXI --model demo --isolation none --moves 5 --rounds 1 --engine "$engine"

run 0 cluster down
says "stopped 4 parts" "$out"
run 0 cluster up --workers 1
run 0 runs --json
says "$consultation" "$out"
run 0 cluster down --purge
says "everything of the cluster is deleted" "$out"
[[ ! -e $HOME/.local/share/moothall/cluster ]] || fail "something is left"
