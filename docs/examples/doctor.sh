#!/usr/bin/env bash
# What this machine's sandboxes are worth, found out by running them; images; and what is refused.
# shellcheck source-path=SCRIPTDIR source=lib/start.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib/start.sh"

# Before there is an image, the cure is named.
echo 'print("hello")' >hello.py
run 4 exec hello.py
says "it has not been built" "$err"
says "moothall image build python" "$err"
sandboxes auto

run 0 image list
says "python" "$out"
run 0 image verify python
shown docs/src/images.md "$out"

run 0 doctor
says "microvm" "$out"
says "works" "$out"
says "programs run on " "$out"
run 0 doctor --json
[[ $(field chosen) =~ ^(microvm|runsc)$ ]] || fail "without being told to, '$(field chosen)' is chosen"

# A minimum is a minimum.
MOOTHALL_ISOLATION__ENGINE=microvm run 0 exec hello.py --json
if [[ $(field class) == emulated-vm ]]; then
    MOOTHALL_ISOLATION__MINIMUM=hardware-vm run 4 exec hello.py
    says "no sandbox on this host is at least hardware-vm" "$err"
fi

# A moothall.toml that merely lies in the folder cannot ask for a weaker wall.
printf '[isolation]\nallow_shared_kernel = true\n' >moothall.toml
run 2 exec hello.py
says "the moothall.toml in this folder wants programs to share this machine's kernel" "$err"
shown docs/src/configuration.md "$err"

rm moothall.toml
run 0 sandbox reap
shown docs/src/sandboxes.md "$out"
