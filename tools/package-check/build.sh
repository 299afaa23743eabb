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
export RUSTFLAGS="${RUSTFLAGS:-} --remap-path-prefix=$PWD=/moothall --remap-path-prefix=${CARGO_HOME:-$HOME/.cargo}=/cargo"
packages=(--package moothall --package moothall-pdf)
case $target in
*-linux-gnu) cargo zigbuild --locked --profile dist "${packages[@]}" --target "$target.2.17" ;;
*) cargo build --locked --profile dist "${packages[@]}" --target "$target" ;;
esac
