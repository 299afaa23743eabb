#!/usr/bin/env bash
# Installs Restate's server and cluster tool if needed and prints the folder of their programs.
#
#   tools/restate/install.sh [--find]
#
# With --find, nothing is installed; fails if Restate is missing.
#
# Installs the platform packages directly and without scripts, because the wrapper packages report installations to a
# third party. The server is under the Business Source License 1.1: see docs/src/operations/workers.md.
set -euo pipefail

version=1.7.12 # matches restate-sdk =0.13.0 in crates/moothall-restate/Cargo.toml
case "$(uname -s)-$(uname -m)" in
    Linux-x86_64) platform=linux-x64 ;;
    Linux-aarch64) platform=linux-arm64 ;;
    Darwin-arm64) platform=darwin-arm64 ;;
    Darwin-x86_64) platform=darwin-x64 ;;
    *)
        echo "there is no Restate for $(uname -s) on $(uname -m)" >&2
        exit 1
        ;;
esac
folder="${XDG_CACHE_HOME:-$HOME/.cache}/moothall/restate-$version"

# Built next to its final path and renamed at the end, so an interrupted install is never used.
install() {
    local partial
    mkdir -p "$(dirname "$folder")"
    partial=$(mktemp -d "$folder.partial.XXXXXX")
    # shellcheck disable=SC2064  # expand now
    trap "rm -rf '$partial'" EXIT
    echo "installing Restate $version (about 250 MB) into $folder" >&2
    npm install --prefix "$partial" --no-save --no-audit --no-fund --ignore-scripts --loglevel=error --fetch-retries=5 \
        "@restatedev/restate-server-$platform@$version" "@restatedev/restatectl-$platform@$version" >&2
    mkdir "$partial/bin"
    ln -s "../node_modules/@restatedev/restate-server-$platform/bin/restate-server" "$partial/bin/restate-server"
    ln -s "../node_modules/@restatedev/restatectl-$platform/bin/restatectl" "$partial/bin/restatectl"
    # Another process may have finished first; use its install.
    [[ -d $folder ]] || mv "$partial" "$folder"
    rm -rf "$partial"
}

if [[ ! -d $folder ]]; then
    [[ ${1:-} != --find ]] || exit 1
    install
fi
echo "$folder/bin"
