#!/usr/bin/env bash
# Installs coding agents from npm for the tests of `moothall guard`, one directory each. The versions are fixed: every release changes
# tools, flags and default models.
#
#   tools/agent-clients/install.sh FOLDER NAME…    NAME is gemini (100 MB), claude (235 MB), codex (436 MB), opencode (354 MB) or all
set -euo pipefail

mkdir -p "$1"
folder=$(realpath "$1")
shift
[[ ${1:-} != all ]] || set -- gemini claude codex opencode

for name in "$@"; do
    case $name in
    gemini) package=@google/gemini-cli@0.61.0 ;;
    # The platform package, because the main package of newer versions needs Node 22.
    claude) package=@anthropic-ai/claude-code-linux-x64@2.1.325 ;;
    codex) package=@openai/codex@0.166.0 ;;
    opencode) package=opencode-ai@1.18.33 ;;
    *)
        echo "unknown client $name" >&2
        exit 2
        ;;
    esac
    [[ $(cat "$folder/$name/installed" 2>/dev/null) != "$package" ]] || continue
    rm -rf "${folder:?}/$name"
    mkdir "$folder/$name"
    npm install --no-audit --no-fund --loglevel=error --prefix "$folder/$name" "$package"
    echo "$package" >"$folder/$name/installed"
done
