#!/usr/bin/env bash
# Reads a PDF with a third-party library and prints its number of pages, then its text.
#
#   tools/pdf-check/run.sh FILE FOLDER    FILE is a PDF, or --install-only; FOLDER caches the library
set -euo pipefail

mkdir -p "$2"
folder=$(realpath "$2")
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)

# shellcheck source=tools/venv.sh
source "$here/../venv.sh"
install_venv "$folder/venv" "$here/requirements.txt"
[[ $1 != --install-only ]] || exit 0
exec "$folder/venv/bin/python" -c '
import sys, pypdf
pages = pypdf.PdfReader(sys.argv[1], strict=True).pages
print(len(pages))
print("\n".join(page.extract_text() for page in pages))' "$1"
