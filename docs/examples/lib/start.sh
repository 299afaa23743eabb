# shellcheck shell=bash
# Sourced by every example: sets up a separate home and working directory without the caller's keys and settings, and defines assertions.
#
#   MOOTHALL_BIN     the program; default: `moothall` on PATH
#   LOCAL_MODEL_URL  the local model, without /v1; default: the address of tools/local-model/up.sh
#   MOOTHALL_TEST_IMAGES  the images for examples that call `sandboxes`; default: your data directory
set -euo pipefail

# shellcheck disable=SC2034  # for examples that read a file in this folder
examples=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
program=$(realpath "$(command -v "${MOOTHALL_BIN:-moothall}")")
# shellcheck disable=SC2034  # for examples that use the local model
local_model=${LOCAL_MODEL_URL:-http://127.0.0.1:28411}

images=${MOOTHALL_TEST_IMAGES:-${MOOTHALL_DATA_DIR:-${XDG_DATA_HOME:-$HOME/.local/share}/moothall}/images}
caches=${XDG_CACHE_HOME:-$HOME/.cache}

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

# Every MOOTHALL_ variable is a setting, so MOOTHALL_BIN must be unset too.
while read -r name; do
    case $name in
    MOOTHALL_* | XDG_* | *_API_KEY) unset "$name" ;;
    esac
done < <(compgen -e)
export HOME="$scratch/home" XDG_CONFIG_HOME="$scratch/home/.config" NO_COLOR=1
# Examples download nothing unless they say so.
export MOOTHALL_ISOLATION__BUILD=false
mkdir -p "$XDG_CONFIG_HOME/moothall" "$scratch/work"
cd "$scratch/work"

# sandboxes ENGINE: lets the example run programs. Uses the caller's images and templates, because building them takes long; everything else,
# including runs, is separate. ENGINE is `auto` unless the page shows the output of one engine.
sandboxes() {
    [[ -d $images ]] || fail "no images in $images; build them with: moothall image build"
    mkdir -p "$HOME/.local/share/moothall"
    ln -s "$(realpath "$images")" "$HOME/.local/share/moothall/images"
    export XDG_CACHE_HOME=$caches MOOTHALL_ISOLATION__ENGINE=$1
}

# run EXIT ARGUMENTS…: runs the program, prints its output and checks the exit code.
# Sets `out` to its standard output and `err` to its standard error.
run() {
    local wanted=$1 got=0
    shift
    printf '$ moothall'
    printf ' %q' "$@"
    printf '\n'
    "$program" "$@" >"$scratch/out" 2>"$scratch/err" || got=$?
    # shellcheck disable=SC2034  # for the example
    out=$(<"$scratch/out") err=$(<"$scratch/err")
    cat "$scratch/out" "$scratch/err"
    ((got == wanted)) || fail "expected exit code $wanted, got $got"
}

# says TEXT WHERE: checks that WHERE, usually "$out" or "$err", contains TEXT.
says() {
    [[ $2 == *"$1"* ]] || fail "expected text not found: $1"
}

# is EXPECTED ACTUAL
is() {
    [[ $1 == "$2" ]] || fail "expected '$1', got '$2'"
}

# shown PAGE TEXT: checks that every line of TEXT is in that page of the documentation, ignoring run ids, times and the progress of slow work.
shown() {
    local page=$examples/../../$1 line
    while IFS= read -r line; do
        case $line in
        "run       "* | *'"run_id"'* | *'"latency_ms"'* | "… "*" s") continue ;;
        esac
        line=$(sed -E 's/ · [0-9]+\.[0-9] s$//; s/ · run [0-9a-f-]+$//' <<<"$line")
        grep --quiet --fixed-strings -- "$line" "$page" || fail "$1 does not show: $line"
    done <<<"$2"
}

# field NAME: prints the value of a field in the JSON output of the last command. The name must occur once.
field() {
    sed -n "s/^ *\"$1\": \"\{0,1\}\([^\"]*[^\",]\)\"\{0,1\},\{0,1\}\$/\1/p" "$scratch/out"
}

fail() {
    printf '%s: %s\n' "$0" "$1" >&2
    exit 1
}
