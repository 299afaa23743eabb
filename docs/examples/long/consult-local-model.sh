#!/usr/bin/env bash
# A real model on this machine, real prompts and real sandboxes. The model has 135 million parameters and rarely follows a format, so two of the
# user's own moves are debated. The run shows that a consultation with a weak model finishes and reports every deficiency.
# shellcheck source-path=SCRIPTDIR source=../lib/start.sh
source "$(dirname "${BASH_SOURCE[0]}")/../lib/start.sh"
sandboxes auto

cat >catalog.toml <<'TOML'
dated = "2026-11-15"

[model."lab/smollm2-135m"]
context = 4096
max_output = 40
structured = false
TOML
cat >moothall.toml <<TOML
model = "lab/smollm2-135m"
catalog = "catalog.toml"

[provider.lab]
base_url = "$local_model/v1"
TOML
cat >moves.toml <<'TOML'
[[moves]]
title = "Sell service contracts through dealers"
thesis = "Dealers know the laboratories that own an instrument without a contract."

[[moves]]
title = "Close the smallest office"
thesis = "Its work can be done from elsewhere."
TOML

run 0 consult HLXI --verdict off --moves 1 --add-moves moves.toml --rounds 2 --budget-tokens 400000 --yes --receipt receipt.jsonl
says "gave no usable scores, so the move is not ranked" "$out"
says "No move is recommended." "$out"
[[ $err != *"debated in isolation class none"* ]] || fail "the debates ran without a sandbox"
run 0 verify receipt.jsonl
