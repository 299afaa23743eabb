#!/usr/bin/env bash
# Builds the binaries of a release for one target. Linux binaries run on glibc 2.17 and newer.
#
#   tools/package-check/build.sh TARGET
#
# Linux needs cargo-zigbuild and zig: `pip install --requirement tools/package-check/build-requirements.txt`.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

target=$1
# Paths of the build machine would make the bytes depend on it.
paths=()
remap() {
    export RUSTFLAGS="${RUSTFLAGS:-} --remap-path-prefix=$1=$2"
    paths+=(--regexp "$1/")
}
remap "$PWD" /moothall
remap "${CARGO_HOME:-$HOME/.cargo}" /cargo
# Build scripts write code there. Last, because it may be below the repository.
remap "${CARGO_TARGET_DIR:-$PWD/target}" /target
packages=(--package moothall --package moothall-pdf)
case $target in
*-linux-gnu) cargo zigbuild --locked --profile dist "${packages[@]}" --target "$target.2.17" ;;
*) cargo build --locked --profile dist "${packages[@]}" --target "$target" ;;
esac
for binary in moothall moothall-pdf; do
    if grep --text --only-matching --fixed-strings --max-count 1 "${paths[@]}" "${CARGO_TARGET_DIR:-target}/$target/dist/$binary"; then
        echo "$binary contains a path of this machine" >&2
        exit 1
    fi
done
