#!/usr/bin/env bash
# Tests the output of `cargo xtask dist` like a user who downloaded it: only the program, in an empty folder, with an empty home and no settings.
#
#   tools/dist-check/run.sh FOLDER    the output folder, with or without images.tar
set -euo pipefail

made=$(realpath "$1")
scratch=$(mktemp -d)
server=
trap '[[ -z $server ]] || kill "$server" 2>/dev/null || true; rm -rf "$scratch"' EXIT
mkdir "$scratch/home" "$scratch/empty"

fail() {
    echo "dist-check: $*" >&2
    exit 1
}

# moothall ARGUMENTS…: runs the program as a new user would.
moothall() {
    env -i HOME="$scratch/home" PATH="$PATH" NO_COLOR=1 ./moothall "$@"
}

echo "-- every file is what its checksum says, and every file has one"
cd "$made"
sha256sum --check --strict --quiet SHA256SUMS
listed=$(sed 's/^[0-9a-f]* [ *]//' SHA256SUMS | sort)
[[ $listed == "$(find . -mindepth 1 ! -name SHA256SUMS -printf '%P\n' | sort)" ]] || fail "SHA256SUMS does not list every file"
for name in moothall moothall-pdf Containerfile LICENSE-APACHE LICENSE-MIT; do
    [[ -f $name ]] || fail "$name is missing"
done

cp moothall moothall-pdf "$scratch/empty"
cd "$scratch/empty"
echo "-- $(moothall --version), $(stat --format %s moothall) bytes, and $(./moothall-pdf --version), $(stat --format %s moothall-pdf) bytes"
foreign=$(ldd moothall moothall-pdf | awk '/=>|^\t/ { print $1 }' | grep --invert-match --extended-regexp '^(linux-vdso|libc|libm|libgcc_s|/lib64/ld-linux-x86-64)\.so' || true)
[[ -z $foreign ]] || fail "it needs libraries that some Linux systems do not have: $foreign"

walls=()
if [[ -f $made/images.tar ]]; then
    echo "-- images"
    moothall image import --any-digest "$made/images.tar"
    moothall image verify
    echo "-- doctor"
    moothall doctor
else
    echo "-- no images came with it, so debates go without a sandbox"
    walls=(--isolation none)
fi

echo "-- a consultation"
moothall consult HLXI --model demo "${walls[@]}" --memo memo.md >ranked 2>told || { cat told >&2; fail "the consultation failed"; }
head --lines 6 ranked
class=$(sed --quiet 's/.*debated in isolation class \([a-z-]*\).*/\1/p' told)
echo "debated in isolation class $class"
[[ -s memo.md ]] || fail "memo.md is missing or empty"
[[ ${#walls[@]} -gt 0 || $class != none ]] || fail "the debates had no sandbox: $(<told)"

echo "-- the memo as PDF"
moothall report "$(moothall runs --json | sed --quiet 's/.*"run_id": "\([^"]*\)".*/\1/p' | head --lines 1)" --format pdf --output memo.pdf
[[ $(head --bytes 5 memo.pdf) == %PDF- ]] || fail "memo.pdf is not a PDF"

echo "-- \`moothall --help\` starts in less than 10 ms"
started=$(date +%s%N)
for _ in {1..20}; do moothall --help >/dev/null; done
help_ms=$((($(date +%s%N) - started) / 20000000))
echo "$help_ms ms"
((help_ms < 10)) || fail "it takes $help_ms ms"

echo "-- the server and its pages"
export NO_PROXY=127.0.0.1 no_proxy=127.0.0.1 # all requests stay on this machine
env -i HOME="$scratch/home" PATH="$PATH" ./moothall serve --auth none --addr 127.0.0.1:0 --model demo >address 2>told &
server=$!
until [[ -s address ]]; do
    kill -0 "$server" || fail "the server did not start: $(<told)"
    sleep 0.05
done
base=$(<address)
[[ $(curl --silent --fail "$base/healthz") == ok ]] || fail "the health check failed"
curl --silent --fail "$base/" >page
script=$(sed --quiet 's/.*<script[^>]* src="\([^"]*\)".*/\1/p' page | head --lines 1)
[[ -n $script ]] || fail "this build does not contain the web UI"
curl --silent --fail --output /dev/null "$base$script" || fail "$script is missing"
kill "$server"
wait "$server" || fail "the server did not exit cleanly"
server=
echo "fine"
