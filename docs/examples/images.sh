#!/usr/bin/env bash
# An image goes from one machine to another as a file.
# shellcheck source-path=SCRIPTDIR source=lib/start.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib/start.sh"
sandboxes auto

run 0 image export debate --out debate.tar
digest=${out##* }
run 2 image export debate --out debate.tar
says "debate.tar exists already" "$err"

# The other machine.
export MOOTHALL_DATA_DIR="$scratch/other"
run 2 image verify debate
run 0 image import debate.tar
is "$digest" "${out##* }"
run 0 image verify debate
says "debate is what its digest says" "$out"

# A file that was changed on its way.
printf 'x' | dd of=debate.tar bs=1 seek=$(($(stat --format %s debate.tar) / 2)) conv=notrunc status=none
run 2 image import debate.tar
says "image \`debate\`: vmlinuz was changed" "$err"
