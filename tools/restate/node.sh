#!/usr/bin/env bash
# Starts one of three nodes of a Restate cluster on loopback in the foreground, with two copies of everything.
#
#   tools/restate/node.sh NUMBER FOLDER
#
# Start 1, 2 and 3. They respond after a second or two, but the cluster works only when every partition has a leader, after
# about ten: see `$(tools/restate/install.sh)/restatectl --address http://127.0.0.1:25121 status`.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
number=${1:?1, 2 or 3}
export RESTATE_CLUSTER_NAME=moothall-three RESTATE_NODE_NAME=n$number
RESTATE_AUTO_PROVISION=$([[ $number == 1 ]] && echo true || echo false)
export RESTATE_AUTO_PROVISION
export RESTATE_DEFAULT_REPLICATION=2 RESTATE_DEFAULT_NUM_PARTITIONS=6 RESTATE_ROCKSDB_TOTAL_MEMORY_SIZE=512MB
export RESTATE_METADATA_CLIENT__ADDRESSES='["http://127.0.0.1:25121","http://127.0.0.1:25122","http://127.0.0.1:25123"]'
NODE_PORT=2512$number INGRESS_PORT=2808$number ADMIN_PORT=2907$number exec "$here/up.sh" "${2:?where the data is kept}"
