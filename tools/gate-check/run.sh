#!/usr/bin/env bash
# Tests `moothall gate` in the tools that call it: the pre-commit framework with .pre-commit-hooks.yaml, and the commands of action.yml and of
# the GitLab template. Each must block a bad change and pass a good one.
#
#   tools/gate-check/run.sh PROGRAM FOLDER    PROGRAM is moothall, or --install-only; FOLDER caches pre-commit
set -euo pipefail

mkdir -p "$2"
tool=$(realpath "$2")/pre-commit
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=tools/venv.sh
source "$here/../venv.sh"
install_venv "$tool" "$here/requirements.txt"
[[ $1 != --install-only ]] || exit 0
program=$(realpath "$1")
top=$(realpath "$here/../..")

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
mkdir -p "$scratch/bin" "$scratch/home"
ln -s "$program" "$scratch/bin/moothall"
export HOME="$scratch/home" PATH="$scratch/bin:$tool/bin:$PATH" PRE_COMMIT_HOME="$scratch/cache"
unset "${!XDG_@}" "${!MOOTHALL_@}" "${!GIT_@}"
git config --global user.name ada
git config --global user.email ada@example.com
git config --global init.defaultBranch main
git config --global protocol.file.allow always

fail() {
    echo "FAILED: $*" >&2
    exit 1
}

# A credential of nobody, made here so that none is in the repository.
token="ghp_$(printf nobody | sha256sum | cut -c1-36)"

# The hooks as a repository of their own, as pre-commit expects them.
git init --quiet "$scratch/hooks"
cp "$top/.pre-commit-hooks.yaml" "$scratch/hooks/"
git -C "$scratch/hooks" add --all
git -C "$scratch/hooks" commit --quiet --message hooks
git -C "$scratch/hooks" tag v1

git init --quiet "$scratch/ws"
cd "$scratch/ws"
printf 'repos:\n- repo: %s\n  rev: v1\n  hooks:\n  - id: moothall-gate\n' "$scratch/hooks" >.pre-commit-config.yaml
echo 'a = 1' >a.py
git add --all
git commit --quiet --message base
pre-commit install

echo 'a = 2' >a.py
git commit --quiet --all --message good || fail "pre-commit blocked a good commit"
good=$(git rev-parse HEAD)
echo "k = '$token'" >>a.py
if git commit --quiet --all --message bad >out 2>&1; then fail "pre-commit passed a bad commit"; fi
grep --quiet secret.specific out || fail "pre-commit did not show the finding: $(<out)"
if grep --quiet "$token" out; then fail "the credential was printed"; fi
rm out
git commit --quiet --all --no-verify --message bad
bad=$(git rev-parse HEAD)
base=$(git rev-parse HEAD~2)

# run_step FILE QUERY: prints the commands at a place of a YAML file.
run_step() {
    "$tool/bin/python" -c 'import sys, yaml; print(eval(sys.argv[2], {"file": yaml.safe_load(open(sys.argv[1]))}))' "$top/$1" "$2"
}

action=$(run_step action.yml 'file["runs"]["steps"][1]["run"]')
code=0
BASE=$base HEAD=$good RANGE='' bash -e -c "$action" >out || code=$?
((code == 0)) || fail "the action blocked a good change: $(<out)"
BASE=$good HEAD=$bad RANGE='' bash -e -c "$action" >out || code=$?
((code == 1)) || fail "the action ended with $code: $(<out)"
grep --quiet '^::error file=a.py,line=2,' out || fail "no annotation: $(<out)"
code=0
BASE='' HEAD='' RANGE="$base..$bad" bash -e -c "$action" >out || code=$?
((code == 1)) || fail "the action ended with $code for a range: $(<out)"

gitlab=$(run_step deploy/gitlab/moothall-gate.yml '"\n".join(file["moothall-gate"]["script"])')
CI_MERGE_REQUEST_DIFF_BASE_SHA=$base CI_COMMIT_SHA=$good bash -e -c "$gitlab" || fail "the template blocked a good change"
code=0
CI_MERGE_REQUEST_DIFF_BASE_SHA=$good CI_COMMIT_SHA=$bad bash -e -c "$gitlab" || code=$?
((code == 1)) || fail "the template ended with $code"
"$tool/bin/python" - moothall-gate.xml <<'PYTHON'
import sys, xml.etree.ElementTree as tree
suite = tree.parse(sys.argv[1]).getroot()[0]
assert suite.attrib["failures"] == "1", suite.attrib
assert "secret.specific" in suite.find("testcase/failure").text
PYTHON
echo "pre-commit, action.yml and the GitLab template block and pass"
