#!/usr/bin/env bash
# Starts one Restate server on loopback in the foreground; SIGTERM stops it. It is healthy when both addresses respond:
# http://127.0.0.1:$INGRESS_PORT/restate/health and http://127.0.0.1:$ADMIN_PORT/health.
#
#   tools/restate/up.sh [--install-only] FOLDER
#
# INGRESS_PORT (8080), ADMIN_PORT (9070) and NODE_PORT (5122) set the ports. Other Restate settings
# (RESTATE_…) are passed through.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
bin=$("$here/install.sh")
if [[ ${1:-} == --install-only ]]; then
    exit 0
fi
folder=${1:?where the data of the server is kept}
mkdir -p "$folder"

export RESTATE_BASE_DIR=$folder
# The data directory contains the node's name: do not change it.
export RESTATE_NODE_NAME=${RESTATE_NODE_NAME:-one} RESTATE_CLUSTER_NAME=${RESTATE_CLUSTER_NAME:-moothall}
# Its ports have no authentication: listen on loopback only.
export RESTATE_BIND_ADDRESS=127.0.0.1:${NODE_PORT:-5122}
export RESTATE_ADVERTISED_ADDRESS=http://127.0.0.1:${NODE_PORT:-5122}/
export RESTATE_INGRESS__BIND_ADDRESS=127.0.0.1:${INGRESS_PORT:-8080}
export RESTATE_ADMIN__BIND_ADDRESS=127.0.0.1:${ADMIN_PORT:-9070}
while IFS='=' read -r name value; do
    if [[ $name == [A-Z]* && -z ${!name+set} ]]; then
        export "$name=$value"
    fi
done <"$here/../../deploy/restate/restate.env"
exec "$bin/restate-server" --no-logo
