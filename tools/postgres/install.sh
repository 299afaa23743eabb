#!/usr/bin/env bash
# Installs Debian's PostgreSQL if needed and prints the folder of its programs.
#
#   tools/postgres/install.sh [--find]
#
# With --find, nothing is installed; fails if PostgreSQL is missing.
set -euo pipefail

# Debian installs the programs of each version in a separate folder that is not on PATH.
find_programs() {
    local folder
    for folder in $(printf '%s\n' /usr/lib/postgresql/*/bin | sort --version-sort --reverse); do
        if [[ -x $folder/initdb ]]; then
            echo "$folder"
            return
        fi
    done
    command -v initdb >/dev/null && dirname "$(command -v initdb)"
}

if ! find_programs; then
    [[ ${1:-} != --find ]] || exit 1
    echo "installing postgresql" >&2
    apt-get update -qq >&2
    # Prevent the package from starting a system-wide cluster.
    mkdir -p /etc/postgresql-common
    [[ -e /etc/postgresql-common/createcluster.conf ]] ||
        echo "create_main_cluster = false" >/etc/postgresql-common/createcluster.conf
    DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends postgresql openssl >&2
    find_programs
fi
