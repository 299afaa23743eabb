#!/usr/bin/env bash
# Starts an OTLP/HTTP receiver that decodes requests with OpenTelemetry's own protobuf classes, and prints its address.
#
#   tools/otlp-check/run.sh FILE FOLDER    FILE gets one line of JSON for each span, or --install-only; FOLDER caches the classes
set -euo pipefail

mkdir -p "$2"
folder=$(realpath "$2")
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)

# Tests start several receivers at the same time.
exec 9>"$folder/lock"
flock 9
if ! cmp --silent "$here/requirements.txt" "$folder/venv/requirements.txt"; then
    python3 -m venv --clear "$folder/venv"
    "$folder/venv/bin/pip" install --quiet --requirement "$here/requirements.txt"
    cp "$here/requirements.txt" "$folder/venv/requirements.txt"
fi
exec 9>&-
[[ $1 != --install-only ]] || exit 0
exec "$folder/venv/bin/python" "$here/receiver.py" "$1"
