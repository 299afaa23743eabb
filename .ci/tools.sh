#!/usr/bin/env bash
# The gate's tools at their pinned versions. `bash .ci/tools.sh` installs all of them; `.ci/run` sources this file.
#
# They are installed in a separate folder, so your own copies are not replaced. A copy of the right version on PATH is used.

# shellcheck disable=SC2034  # the versions are read by the name of the tool
declare -A tool_versions=(
    [cargo-nextest]=0.9.143
    [cargo-deny]=0.20.2
    [mdbook]=0.5.4
    [cargo-fuzz]=0.13.2
)

# The server and the file watcher of mdbook need many dependencies that building the book does not.
declare -A tool_flags=(
    [mdbook]="--no-default-features --features search"
)

tools_folder="$HOME/.cache/moothall/tools"
export PATH="$tools_folder/bin:$PATH"

# Installs one tool unless its pinned version is present.
install_tool() {
    local tool=$1 version=${tool_versions[$1]} flags
    read -ra flags <<<"${tool_flags[$tool]:-}"
    if has_tool "$tool" "$version"; then
        echo "$tool $version is there"
        return
    fi
    echo "installing $tool $version"
    # A debug build takes half the time to compile, and these tools are fast enough.
    CARGO_TARGET_DIR="$tools_folder/target" CARGO_PROFILE_DEV_DEBUG=0 \
        cargo install --quiet --locked --debug --root "$tools_folder" --version "$version" "${flags[@]}" "$tool"
    has_tool "$tool" "$version"
}

has_tool() {
    local tool=$1 version=$2
    # The first line is `cargo-deny 0.20.2`, `mdbook v0.5.4` or `cargo-nextest 0.9.151 (…)`.
    [[ "$("$tool" --version 2>/dev/null | head -n 1)" =~ \ v?"$version"(\ |$) ]]
}

# install_tools [NAME…]: all by default.
install_tools() {
    local tool
    (($# > 0)) || set -- "${!tool_versions[@]}"
    for tool in "$@"; do
        install_tool "$tool"
    done
    # Gigabytes that only another install would use.
    rm -rf "$tools_folder/target"
}

if [[ ${BASH_SOURCE[0]} == "$0" ]]; then
    set -euo pipefail
    cd "$(dirname "${BASH_SOURCE[0]}")/.."
    install_tools
    echo "add to your PATH: $tools_folder/bin"
fi
