#!/usr/bin/env bash
# A real model on this machine, real prompts and real sandboxes. The model has 135 million parameters and seldom keeps to a form, so two moves of the
# user's own are debated; and the run shows what a poor model does to a consultation: it ends, and says of everything that is poor that it is.
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

run 0 consult HLXI --moves 1 --add-moves moves.toml --rounds 2 --budget-tokens 400000 --yes --receipt receipt.jsonl
says "degraded: D1 gave no usable scores: neutral 5s" "$out"
says "No move is recommended." "$out"
[[ $err != *"debated in class none"* ]] || fail "the debates ran without a sandbox"
run 0 verify receipt.jsonl
