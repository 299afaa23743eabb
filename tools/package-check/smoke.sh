#!/usr/bin/env bash
# Packages a small program that answers like `moothall`, and lints the packages: the code is the real one, and nothing large is built.
#
#   tools/package-check/smoke.sh XTASK TOOLS
set -euo pipefail
xtask=$1 tools=$2
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

version=$(sed -n '/^\[workspace.package\]/,/^$/s/^version = "\(.*\)"/\1/p' Cargo.toml)
cc -s -fPIE -pie -DVERSION="\"$version\"" -o "$scratch/moothall" tools/package-check/stand-in.c
"$xtask" package --any-glibc --binary "$scratch/moothall" --out "$scratch/packages"
bash tools/package-check/run.sh --lint-only --tools "$tools" "$scratch/packages"
