#!/usr/bin/env bash
# A committee of one's own: made, checked, mended, used.
# shellcheck source-path=SCRIPTDIR source=lib/start.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib/start.sh"

run 0 committee new mine.toml
shown docs/src/committees.md "$err"
run 0 committee check mine.toml
shown docs/src/committees.md "$out"
run 2 committee new mine.toml
says "nothing that exists is replaced" "$err"
run 0 committee show
is "$(<mine.toml)" "$out"

sed -i 's/^rounds = 10/round = 2/' mine.toml
run 2 committee check mine.toml
shown docs/src/committees.md "$err"
sed -i 's/^round = 2/rounds = 2/' mine.toml
run 0 consult HLXI --model demo --committee mine.toml --moves 2
says "2 moves, 2 rounds each" "$err"
