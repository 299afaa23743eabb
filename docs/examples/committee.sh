#!/usr/bin/env bash
# Your own committee: create, check, fix and use it.
# shellcheck source-path=SCRIPTDIR source=lib/start.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib/start.sh"

run 0 committee new mine.toml
shown docs/src/guides/committees.md "$err"
run 0 committee check mine.toml
shown docs/src/guides/committees.md "$out"
run 2 committee new mine.toml
says "existing files are not overwritten" "$err"
run 0 committee show
is "$(<mine.toml)" "$out"

sed -i 's/^rounds = 10/round = 2/' mine.toml
run 2 committee check mine.toml
shown docs/src/guides/committees.md "$err"
sed -i 's/^round = 2/rounds = 2/' mine.toml
run 0 consult HLXI --model demo --committee mine.toml --moves 2
says "2 moves, 2 rounds each" "$err"
