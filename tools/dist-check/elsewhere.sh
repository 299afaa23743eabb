#!/usr/bin/env bash
# Tests a program that was built on a system other than Linux: a consultation that reports its missing isolation, the review of drafts, and the
# server. Programs are not run, and the error explains why.
#
#   tools/dist-check/elsewhere.sh PROGRAM
set -euo pipefail

program=$(cd "$(dirname "$1")" && pwd)/$(basename "$1")
scratch=$(mktemp -d)
server=
trap '[[ -z $server ]] || kill "$server" 2>/dev/null || true; rm -rf "$scratch"' EXIT
mkdir "$scratch/home" "$scratch/work"
cd "$scratch/work"

fail() {
    echo "dist-check: $*" >&2
    exit 1
}

moothall() {
    env -i HOME="$scratch/home" PATH="$PATH" NO_COLOR=1 "$program" "$@"
}

echo "-- a consultation"
moothall consult HLXI --model demo --moves 3 --rounds 2 >ranked 2>told || { cat told >&2; fail "the consultation failed"; }
head -n 6 ranked
grep -q 'debated in isolation class none' told || fail "the missing isolation is not reported: $(cat told)"

echo "-- a program"
echo 'print("hello")' >hello.py
if moothall exec hello.py >out 2>told; then
    fail "a program was run without a sandbox"
fi
cat told

echo "-- a draft"
printf 'one\ntwo\n' >notes.txt
draft=$(moothall draft request notes.txt --task words)
moothall draft edit "$draft" --old two --new three
moothall draft submit "$draft" --summary 'another word'
[[ $(cat notes.txt) == $'one\nthree' ]] || fail "the draft was not applied"
moothall review --by somebody
moothall audit verify
# Links out of the workspace are not followed.
ln -s "$scratch" out-of-here
if moothall draft request out-of-here/home/secret --task words 2>told; then
    fail "a link out of the workspace was followed"
fi
cat told

echo "-- the server"
env -i HOME="$scratch/home" PATH="$PATH" "$program" serve --auth none --addr 127.0.0.1:0 --model demo >address 2>told &
server=$!
until [[ -s address ]]; do
    kill -0 "$server" || fail "the server did not start: $(cat told)"
    sleep 0.1
done
[[ $(curl --silent --noproxy '*' --fail "$(cat address)/healthz") == ok ]] || fail "the health check failed"
kill "$server"
wait "$server" || fail "the server did not exit cleanly"
server=
echo "fine"
