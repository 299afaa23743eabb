#!/usr/bin/env bash
# Judge git diffs: the working tree, staged files, commits and a patch, and every commit with a hook.
# shellcheck source-path=SCRIPTDIR source=lib/start.sh
source "$(dirname "${BASH_SOURCE[0]}")/lib/start.sh"
export USER=ada
git config --global user.name ada
git config --global user.email ada@example.com
git config --global init.defaultBranch main

git init --quiet ws
cd ws
printf 'import sys\n\n\ndef main():\n    print(sys.argv)\n' >watchdog.py
printf 'all:\n' >Makefile
git add --all
git commit --quiet --message base

# Nothing changed, then an ordinary edit.
run 0 gate
printf 'import sys\n\n\ndef main():\n    print(sys.argv[1:])\n' >watchdog.py
run 0 gate
shown docs/src/guides/gate.md "$out"

# A path of one machine is rejected; a protected file needs a person.
printf '    open("/%s/ada/data.csv")\n' home >>watchdog.py
printf 'all: build\n' >Makefile
run 1 gate
shown docs/src/guides/gate.md "$out"
run 1 gate --format json
is rejected "$(field outcome)"
run 0 gate --staged
git add --all
run 1 gate --staged --format github
says '::error file=watchdog.py,line=6,' "$out"
run 1 gate --staged --format sarif
says '"version": "2.1.0"' "$out"
run 1 gate --staged --format junit
says '<failure type="reject"' "$out"

# A patch, and the commits of a branch.
git diff --cached >../change.patch
run 1 gate --patch ../change.patch
git commit --quiet --message change
run 1 gate HEAD~1..HEAD
printf 'version = 1\n' >moothall-policy.toml
mkdir .moothall
mv moothall-policy.toml .moothall/policy.toml
run 3 gate
says 'policy.changed' "$out"
rm -r .moothall

# A hook that judges every commit, and none afterwards.
run 0 gate install
says 'installed' "$out"
mkdir ../bin
ln -s "$program" ../bin/moothall
PATH="$scratch/work/bin:$PATH"
printf 'all: test\n' >Makefile
if git commit --quiet --all --message blocked; then fail "the hook did not block a protected file"; fi
printf 'import sys\n' >watchdog.py
git checkout --quiet Makefile watchdog.py
printf 'a = 1\n' >notes.py
git add notes.py
git commit --quiet --message passes
run 0 gate install --remove
is 0 "$(find .git/hooks -name 'pre-commit*' ! -name '*.sample' | wc -l)"
