#!/usr/bin/env bash
# A consultation on the workers of a Restate server. One worker is killed without effect on the result.
# shellcheck source-path=SCRIPTDIR source=lib/start.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib/start.sh"

free_ports() { python3 -c 'import socket; s = [socket.socket() for _ in range(4)]; [x.bind(("127.0.0.1", 0)) for x in s]; print(*[x.getsockname()[1] for x in s])'; }
read -r node ingress admin listen < <(free_ports)
pids=()
trap 'kill "${pids[@]}" 2>/dev/null || true; wait; rm -rf "$scratch"' EXIT

# Uses the caller's installed server, because installing it takes long; its data is separate.
XDG_CACHE_HOME=$caches NODE_PORT=$node INGRESS_PORT=$ingress ADMIN_PORT=$admin \
    "$examples/../../tools/restate/up.sh" "$scratch/restate" >server.log 2>&1 &
pids+=($!)
healthy() { curl --silent --fail --output /dev/null --noproxy '*' "$1"; }
until healthy "http://127.0.0.1:$ingress/restate/health" && healthy "http://127.0.0.1:$admin/health"; do
    kill -0 "${pids[0]}" || fail "the server did not start: $(<server.log)"
    sleep 0.1
done

restate=http://127.0.0.1:$ingress
for worker in one two; do
    "$program" worker --listen "127.0.0.1:$listen" --register "http://127.0.0.1:$admin" >"$worker" 2>"$worker.log" &
    pids+=($!)
    until [[ -s $worker ]]; do
        kill -0 "$!" || fail "a worker did not start: $(<"$worker.log")"
        sleep 0.05
    done
    is "http://127.0.0.1:$listen" "$(<"$worker")"
done

# The receipt is the same as on one machine although a worker dies, except for its last two lines (times and ids).
(sleep 1 && kill -9 "${pids[1]}") &
run 0 consult HLXI --model demo --verdict off --isolation none --runner "restate=$restate" --receipt many.jsonl
run 0 consult HLXI --model demo --verdict off --isolation none --receipt one.jsonl
run 0 verify many.jsonl
is "$(head -n -2 one.jsonl | sha256sum)" "$(head -n -2 many.jsonl | sha256sum)"

# A run that needs review waits on the cluster.
run 3 consult HLXI --model demo --verdict off --isolation none --moves 5 --rounds 1 --pause-after moves --runner "restate=$restate"
run 0 runs --json
run_id=$(sed -n 's/.*"run_id": "\([^"]*\)".*/\1/p' "$scratch/out" | head -n 1)
run 0 resume "$run_id"

# Without a cluster, no run is started.
run 4 consult HLXI --model demo --verdict off --isolation none --runner restate=http://127.0.0.1:1
says "cannot reach Restate at http://127.0.0.1:1" "$err"
