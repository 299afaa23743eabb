#!/usr/bin/env bash
# Start and stop a whole cluster on one machine. One of its processes is killed in between.
# shellcheck source-path=SCRIPTDIR source=lib/start.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib/start.sh"

run 2 cluster status
says "no cluster in " "$err"

# Uses the caller's installed servers, because installing them takes long; everything else is separate.
export XDG_CACHE_HOME=$caches
trap '"$program" cluster down --purge >/dev/null 2>&1 || true; rm -rf "$scratch"' EXIT
run 0 cluster up
shown docs/src/operations/cluster.md "$err"
engine=${out##* --runner }
# shellcheck source=/dev/null
source <(head -n 1 <<<"$out")
[[ $MOOTHALL_DATABASE_URL == postgres://moothall:* ]] || fail "MOOTHALL_DATABASE_URL is not set"

run 0 cluster status
says "worker-" "$out"
run 0 consult HLXI --model demo --verdict off --isolation none --moves 5 --rounds 1 --runner "$engine" --json
consultation=$(field run_id)

# Restate is killed and restarts with all its data.
kill -9 "$(<"$HOME/.local/share/moothall/cluster/restate-1.pid")"
while "$program" cluster status >/dev/null 2>&1; do sleep 0.1; done
run 4 cluster status
says "part of the cluster is down or not responding" "$err"
run 0 cluster up
is "$engine" "${out##* --runner }"
run 0 consult HLXI --model demo --verdict off --isolation none --moves 5 --rounds 1 --runner "$engine"

run 0 cluster down
says "stopped 4 parts" "$out"
run 0 cluster up --workers 1
run 0 runs --json
says "$consultation" "$out"
run 0 cluster down --purge
says "deleted all data of the cluster" "$out"
[[ ! -e $HOME/.local/share/moothall/cluster ]] || fail "the cluster directory still exists"
