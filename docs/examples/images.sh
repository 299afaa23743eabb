#!/usr/bin/env bash
# Copy an image to another machine as a file.
# shellcheck source-path=SCRIPTDIR source=lib/start.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib/start.sh"
sandboxes auto

run 0 image export debate --output debate.tar
digest=${out##* }
run 2 image export debate --output debate.tar
says "debate.tar already exists" "$err"

# The other machine.
export MOOTHALL_DATA_DIR="$scratch/other"
run 2 image verify debate
run 2 image import debate.tar
says "unexpected digest $digest" "$err"
run 0 image import debate.tar --digest "$digest"
is "$digest" "${out##* }"
run 0 image verify debate
says "debate matches its digest" "$out"

# A file that was changed in transit is refused.
printf 'x' | dd of=debate.tar bs=1 seek=$(($(stat --format %s debate.tar) / 2)) conv=notrunc status=none
run 2 image import debate.tar --digest "$digest"
says "image \`debate\`: vmlinuz was changed" "$err"
