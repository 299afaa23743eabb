#!/usr/bin/env bash
# Starts an OTLP/HTTP receiver that decodes requests with OpenTelemetry's own protobuf classes, and prints its address.
#
#   tools/otlp-check/run.sh FILE FOLDER    FILE gets one line of JSON for each span, or --install-only; FOLDER caches the classes
set -euo pipefail

mkdir -p "$2"
folder=$(realpath "$2")
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)

# shellcheck source=tools/venv.sh
source "$here/../venv.sh"
install_venv "$folder/venv" "$here/requirements.txt"
[[ $1 != --install-only ]] || exit 0
exec "$folder/venv/bin/python" "$here/receiver.py" "$1"
