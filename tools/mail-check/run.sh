#!/usr/bin/env bash
# Starts a real mail server on loopback that accepts mail only with TLS and a password, and prints `READY PORT`.
#
#   tools/mail-check/run.sh OUT FOLDER [PORT [MODE]]    OUT gets ca.pem and one file for each mail; FOLDER caches the packages;
#                                                       MODE is tls (default) or starttls
#   tools/mail-check/run.sh --install-only FOLDER
set -euo pipefail

mkdir -p "$2"
folder=$(realpath "$2")
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)

# shellcheck source=tools/venv.sh
source "$here/../venv.sh"
install_venv "$folder/venv" "$here/requirements.txt"
[[ $1 != --install-only ]] || exit 0
exec "$folder/venv/bin/python" "$here/receiver.py" "$1" "${3:-0}" "${4:-tls}"
