#!/usr/bin/env bash
# Writes and validates the bills of materials (CycloneDX) of the Rust crates and of the web UI's npm packages.
#
#   tools/package-check/sbom.sh FOLDER
set -euo pipefail
folder=$(realpath "$1")
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
scratch=$(mktemp -d)
trap 'rm -rf "$scratch" crates/moothall/moothall.cdx.json' EXIT

cache="$HOME/.cache/moothall/sbom"
command -v cargo-cyclonedx >/dev/null || PATH="$cache/bin:$PATH"
command -v cargo-cyclonedx >/dev/null ||
    CARGO_TARGET_DIR="$scratch/target" cargo install --quiet --locked --debug --root "$cache" --version 0.5.9 cargo-cyclonedx
# Only the crates of the product: it writes one file into each crate of the workspace.
cargo cyclonedx --quiet --format json --spec-version 1.5 --target all --manifest-path crates/moothall/Cargo.toml --override-filename moothall.cdx
mv crates/moothall/moothall.cdx.json "$folder/moothall-rust.cdx.json"
find crates bench xtask fuzz -maxdepth 2 -name '*.cdx.json' -delete

# From the lock file: the packages need not be installed.
npm exec --yes --prefix "$scratch" --package @cyclonedx/cyclonedx-npm@6.0.1 -- \
    cyclonedx-npm --package-lock-only --output-reproducible --spec-version 1.5 --output-file "$folder/moothall-web.cdx.json" web/package.json

python3 -m venv "$scratch/venv"
"$scratch/venv/bin/pip" install --quiet 'cyclonedx-python-lib[json-validation]'
"$scratch/venv/bin/python" - "$folder"/*.cdx.json <<'PYTHON'
import json, sys
from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator

for name in sys.argv[1:]:
    text = open(name).read()
    document = json.loads(text)
    version = SchemaVersion.from_version(document["specVersion"])
    error = JsonStrictValidator(version).validate_str(text)
    if error is not None:
        sys.exit(f"{name}: {error}")
    count = len(document.get("components", []))
    if count < 50:
        sys.exit(f"{name}: only {count} components")
    print(f"{name}: valid CycloneDX {document['specVersion']}, {count} components")
PYTHON
