#!/usr/bin/env bash
# A real model on this machine is asked for moves and debates two of them in sandboxes. It has 135 million parameters and can seldom keep to a form,
# so the run shows what a poor model does to a consultation: it ends, and says of everything that is poor that it is.
# shellcheck source-path=SCRIPTDIR source=lib/start.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib/start.sh"
sandboxes auto

cat >catalog.toml <<'TOML'
dated = "2026-11-15"

[model."lab/smollm2-135m"]
context = 4096
max_output = 160
TOML
cat >moothall.toml <<TOML
model = "lab/smollm2-135m"
catalog = "catalog.toml"

[provider.lab]
base_url = "$local_model/v1"
TOML

run 0 consult HLXI --moves 2 --rounds 2 --yes --memo memo.md --receipt receipt.jsonl
