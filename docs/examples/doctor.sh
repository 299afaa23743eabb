#!/usr/bin/env bash
# Test the isolation of this machine's sandboxes; images; refused settings.
# shellcheck source-path=SCRIPTDIR source=lib/start.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib/start.sh"

# Without an image, the error says how to build one.
echo 'print("hello")' >hello.py
run 4 exec hello.py
says "it has not been built" "$err"
says "moothall image build python" "$err"
sandboxes auto

run 0 image list
says "python" "$out"
run 0 image verify python
shown docs/src/operations/images.md "$out"

run 0 doctor
says "microvm" "$out"
says "works" "$out"
says "programs run on " "$out"
run 0 doctor --json
[[ $(field chosen) =~ ^(microvm|runsc)$ ]] || fail "unexpected default engine '$(field chosen)'"

# A minimum isolation class is enforced.
MOOTHALL_ISOLATION__ENGINE=microvm run 0 exec hello.py --json
if [[ $(field class) == emulated-vm ]]; then
    MOOTHALL_ISOLATION__MINIMUM=hardware-vm run 4 exec hello.py
    says "no usable sandbox on this host (minimum isolation class: hardware-vm)" "$err"
fi

# A moothall.toml in the working directory cannot weaken isolation.
printf '[isolation]\nallow_shared_kernel = true\n' >moothall.toml
run 2 exec hello.py
says "the untrusted moothall.toml in the working directory allows programs to share the host kernel" "$err"
shown docs/src/operations/configuration.md "$err"

rm moothall.toml
run 0 sandbox reap
shown docs/src/concepts/sandboxes.md "$out"
