#!/usr/bin/env bash
# Runs in a PostgreSQL database: started on one machine, shown and deleted on another.
# shellcheck source-path=SCRIPTDIR source=lib/start.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib/start.sh"

# A temporary server. Replace it with yours.
bash "$examples/../../tools/postgres/up.sh" >server.log 2>&1 &
server=$!
trap 'kill "$server"; wait "$server" || true; rm -rf "$scratch"' EXIT
until read -r _ address _ < <(grep '^READY ' server.log); do
    kill -0 "$server" || fail "the server did not start: $(cat server.log)"
    sleep 0.2
done

export MOOTHALL_DATABASE_URL=$address
run 0 consult HLXI --model demo --verdict off --moves 5 --rounds 1 --yes --json
consultation=$(field run_id)
[[ ! -e $HOME/.local/share/moothall/moothall.db ]] || fail "a SQLite file was created in addition to the database"

# Another machine: shares only the database address.
export HOME="$scratch/another" XDG_CONFIG_HOME="$scratch/another/.config"
run 0 runs --json
is "$consultation" "$(field run_id)"
run 0 replay "$consultation"
run 0 report "$consultation"
says "HLXI" "$out"

# Tasks that are left to PostgreSQL's own tools.
run 2 backup runs.tar
says "pg_dump" "$err"

# No command shows the password.
password=${address#*//*:}
password=${password%%@*}
run 0 config show
[[ $out != *"$password"* ]] || fail "the password was shown"

# An address that would send the password unencrypted is refused.
MOOTHALL_DATABASE_URL="postgres://moothall:$password@db.example.com/runs?sslmode=prefer" run 2 runs
says "does not enforce TLS" "$err"
shown docs/src/operations/postgres.md "$err"

run 0 runs rm "$consultation" --yes
says "deleted 1 run with" "$out"
run 0 runs
is "no runs" "$out"
