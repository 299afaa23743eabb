#!/usr/bin/env bash
# Makes src/fonts/ from the packages in node_modules: only the letters, weights and features that the interface uses,
# which is a third of the bytes. The results are committed; run this by hand after another version of a font.
#
# Needs Python with fonttools and brotli (`pip install fonttools brotli`).
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

# ASCII, Latin-1, the letters of neighbouring languages, punctuation, arrows and signs of calculation.
letters='U+0020-007E,U+00A0-00FF,U+0152,U+0153,U+0160,U+0161,U+0178,U+017D,U+017E,U+2013,U+2014,U+2018-201E,U+2022,U+2026,U+2032,U+2033,U+20AC,U+2190-2193,U+2212,U+00D7,U+2248,U+2260,U+2264,U+2265,U+FFFD'

make() { # FAMILY WEIGHTS
    local from="node_modules/@fontsource-variable/$1/files/$1-latin-wght-normal.woff2"
    fonttools varLib.instancer --quiet --output "$scratch/$1.ttf" "$from" "wght=$2"
    pyftsubset "$scratch/$1.ttf" --unicodes="$letters" --layout-features=kern,liga,mark,mkmk,tnum,ss01,cv11,zero \
        --flavor=woff2 --no-hinting --desubroutinize --name-IDs=1,2 --output-file="src/fonts/$1.woff2"
    cp "node_modules/@fontsource-variable/$1/LICENSE" "src/fonts/$1.LICENSE"
}

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
make geist 400:600
make geist-mono 400:600
make newsreader 400:500
ls -l src/fonts
