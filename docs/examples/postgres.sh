#!/usr/bin/env bash
# Runs in a PostgreSQL database: started on one machine, looked at and deleted on another.
# shellcheck source-path=SCRIPTDIR source=lib/start.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib/start.sh"

# A server that is gone when this is over. Yours is wherever you have one.
bash "$examples/../../tools/postgres/up.sh" >server.log 2>&1 &
server=$!
trap 'kill "$server"; wait "$server" || true; rm -rf "$scratch"' EXIT
until read -r _ address _ < <(grep '^READY ' server.log); do
    kill -0 "$server" || fail "the server did not start: $(cat server.log)"
    sleep 0.2
done

export MOOTHALL_DATABASE_URL=$address
run 0 consult HLXI --model demo --moves 5 --rounds 1 --yes --json
consultation=$(field run_id)
[[ ! -e $HOME/.local/share/moothall/moothall.db ]] || fail "a file was made beside the database"

# Another machine: nothing of the first one's, but the address.
export HOME="$scratch/another" XDG_CONFIG_HOME="$scratch/another/.config"
run 0 runs --json
is "$consultation" "$(field run_id)"
run 0 replay "$consultation"
run 0 report "$consultation"
says "HLXI" "$out"

# What PostgreSQL does better than we would.
run 2 backup runs.tar
says "pg_dump" "$err"

# The password is shown by nobody.
password=${address#*//*:}
password=${password%%@*}
run 0 config show
[[ $out != *"$password"* ]] || fail "the password was shown"

# An address that would send it through a network in the clear.
MOOTHALL_DATABASE_URL="postgres://moothall:$password@db.example.com/runs?sslmode=prefer" run 2 runs
says "does not insist on TLS" "$err"
shown docs/src/postgres.md "$err"

run 0 runs rm "$consultation" --yes
says "deleted 1 run with" "$out"
run 0 runs
is "there is no run" "$out"
