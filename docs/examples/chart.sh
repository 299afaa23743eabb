#!/usr/bin/env bash
# A program returns a chart as PNG. The time limit is long because this is slow on an emulated CPU.
# shellcheck source-path=SCRIPTDIR source=lib/start.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib/start.sh"
sandboxes auto

cat >chart.py <<'PY'
import csv

import matplotlib.pyplot as plt

with open("/inputs/sales.csv", newline="") as file:
    rows = list(csv.DictReader(file))
plt.bar([row["date"] for row in rows], [float(row["amount"]) for row in rows])
plt.savefig("out/chart.png")
PY
run 0 exec chart.py --image data --input "$examples/sales.csv" --timeout 120 --output charts
says "wrote charts/chart.png" "$err"
is "89504e470d0a1a0a" "$(od -An -tx1 -N 8 charts/chart.png | tr -d ' ')"
