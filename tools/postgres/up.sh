#!/usr/bin/env bash
# Starts a temporary PostgreSQL server in the foreground, for tests and experiments: a new cluster in a temporary folder, on
# loopback, with a password, a certificate and the settings of deploy/postgres/moothall.conf. Stopping the script deletes it.
#
#   tools/postgres/up.sh [--install-only] [--port N] [--restart] [SETTING=VALUE …]
#
# With --restart, a killed server is restarted, as a supervisor would do.
# When the server accepts connections, it prints one line: READY <address> <certificate file>
set -euo pipefail

recommended=$(realpath "$(dirname "${BASH_SOURCE[0]}")/../../deploy/postgres/moothall.conf")
port=0
settings=()
while (($# > 0)); do
    case $1 in
    --install-only) install_only=1 ;;
    --restart) restart=1 ;;
    --port)
        port=$2
        shift
        ;;
    *=*) settings+=(-c "$1") ;;
    *)
        echo "unknown argument: $1" >&2
        exit 2
        ;;
    esac
    shift
done

programs=$("$(dirname "${BASH_SOURCE[0]}")/install.sh")
if [[ -n ${install_only:-} ]]; then
    exit 0
fi

# PostgreSQL refuses to run as root.
as=()
if ((EUID == 0)); then
    owner=nobody
    getent passwd postgres >/dev/null && owner=postgres
    as=(setpriv "--reuid=$owner" "--regid=$(id -g "$owner")" --clear-groups --)
fi

folder=$(mktemp -d)
server=
# shellcheck disable=SC2317  # called by the trap
finish() {
    trap - EXIT
    if [[ -n $server ]]; then
        # SIGQUIT stops immediately; the data is temporary.
        kill -QUIT "$server" 2>/dev/null || true
        wait "$server" 2>/dev/null || true
    fi
    rm -rf "$folder"
}
trap finish EXIT
trap 'exit 0' TERM INT

if ((EUID == 0)); then
    chown "$owner" "$folder"
fi
cd "$folder" # the account may not have access to the current directory
password=$(od -An -N16 -tx1 /dev/urandom | tr -d ' \n')
"${as[@]}" sh -c "umask 077 && printf '%s' '$password' >password &&
    openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=localhost \
        -addext 'subjectAltName=DNS:localhost,IP:127.0.0.1' -addext 'basicConstraints=critical,CA:FALSE' \
        -keyout key.pem -out certificate.pem 2>openssl.log"
"${as[@]}" "$programs/initdb" --pgdata=data --username=moothall --pwfile=password --auth=scram-sha-256 \
    --encoding=UTF8 --locale=C.UTF-8 --no-sync >initdb.log
install --mode=644 "$recommended" "$folder/moothall.conf"
echo "include '$folder/moothall.conf'" >>data/postgresql.conf
chmod a+rx "$folder" && chmod a+r "$folder/certificate.pem"

start() {
    "${as[@]}" "$programs/postgres" -D data -c listen_addresses=127.0.0.1 -c "port=$chosen" -c unix_socket_directories= \
        -c shared_buffers=128MB `# the file assumes a dedicated machine` \
        -c ssl=on -c "ssl_cert_file=$folder/certificate.pem" -c "ssl_key_file=$folder/key.pem" \
        "${settings[@]}" >>server.log 2>&1 &
    server=$!
}

# Waits until the server accepts connections and creates the database; fails if the server exits first.
until_ready() {
    local _
    for _ in {1..300}; do
        if PGPASSWORD=$password "$programs/psql" -qAt -h 127.0.0.1 -p "$chosen" -U moothall -d postgres \
            -c 'CREATE DATABASE moothall' >/dev/null 2>&1; then
            return 0
        fi
        kill -0 "$server" 2>/dev/null || return 1
        sleep 0.1
    done
    return 1
}

ready=
for _ in {1..5}; do
    # PostgreSQL cannot choose a free port itself, and a free port may be taken a moment later.
    chosen=$port
    ((port != 0)) || chosen=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
    start
    if until_ready; then
        ready=1
        break
    fi
    ((port == 0)) || break
done
if [[ -n $ready ]]; then
    echo "READY postgres://moothall:$password@127.0.0.1:$chosen/moothall $folder/certificate.pem"
    wait "$server" || true
    while [[ -n ${restart:-} ]]; do
        # It cannot start until the last process of the killed server has exited.
        start
        wait "$server" || true
        sleep 0.2
    done
fi
echo "the server did not start, or ended by itself:" >&2
tail -n 20 server.log >&2
exit 1
