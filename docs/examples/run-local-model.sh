#!/usr/bin/env bash
# A real model on this machine writes a program that passes. It has 135 million parameters and usually fails, so it gets an easy task and several
# attempts.
# shellcheck source-path=SCRIPTDIR source=lib/start.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib/start.sh"
sandboxes auto

# Small models write better programs in a code block than inside JSON, and need an output limit.
cat >catalog.toml <<'TOML'
dated = "2026-11-15"

[model."lab/smollm2-135m"]
context = 8192
max_output = 200
structured = false
TOML
cat >moothall.toml <<TOML
model = "lab/smollm2-135m"
catalog = "catalog.toml"

[provider.lab]
base_url = "$local_model/v1"
TOML

run 0 run "Print hello world." --expect 'regex:(?i)hello,? world' --attempts 8 --receipt receipt.jsonl
says "passed · " "$err"
says "\$0.00" "$err"
run 0 verify receipt.jsonl
says "workflow  run with lab/smollm2-135m" "$out"
