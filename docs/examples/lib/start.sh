# shellcheck shell=bash
# Sourced by every example: a home and a working folder of its own, no keys and no settings of the caller's, and words to assert with.
#
#   MOOTHALL_BIN     the program; `moothall` on PATH where it is not set
#   LOCAL_MODEL_URL  the local model, without /v1; the address that tools/local-model/up.sh takes by default
#   MOOTHALL_TEST_IMAGES  the images for examples that call `sandboxes`; those of your data folder where it is not set
set -euo pipefail

# shellcheck disable=SC2034  # for the examples that read a file beside them
examples=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
program=$(realpath "$(command -v "${MOOTHALL_BIN:-moothall}")")
# shellcheck disable=SC2034  # for the examples that ask the local model
local_model=${LOCAL_MODEL_URL:-http://127.0.0.1:28411}

images=${MOOTHALL_TEST_IMAGES:-${MOOTHALL_DATA_DIR:-${XDG_DATA_HOME:-$HOME/.local/share}/moothall}/images}
caches=${XDG_CACHE_HOME:-$HOME/.cache}

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

# Every MOOTHALL_ variable is a setting, so MOOTHALL_BIN itself must go as well.
while read -r name; do
    case $name in
    MOOTHALL_* | XDG_* | *_API_KEY) unset "$name" ;;
    esac
done < <(compgen -e)
export HOME="$scratch/home" XDG_CONFIG_HOME="$scratch/home/.config" NO_COLOR=1
mkdir -p "$XDG_CONFIG_HOME/moothall" "$scratch/work"
cd "$scratch/work"

# sandboxes ENGINE: lets the example run programs. Images and templates are the caller's, because both take their time; everything else,
# runs among it, is the example's own. It is `auto` unless the page shows what an engine prints.
sandboxes() {
    [[ -d $images ]] || fail "there are no images in $images; make them with: moothall image build"
    mkdir -p "$HOME/.local/share/moothall"
    ln -s "$(realpath "$images")" "$HOME/.local/share/moothall/images"
    export XDG_CACHE_HOME=$caches MOOTHALL_ISOLATION__ENGINE=$1
}

# run EXIT ARGUMENTS…: runs the program, shows what it says and demands this exit code.
# Afterwards `out` holds its standard output and `err` its standard error.
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
    ((got == wanted)) || fail "the exit code is $got, the documentation says $wanted"
}

# says TEXT WHERE: demands that WHERE, usually "$out" or "$err", holds TEXT.
says() {
    [[ $2 == *"$1"* ]] || fail "nothing says: $1"
}

# is WANTED GOT
is() {
    [[ $1 == "$2" ]] || fail "it is '$2', the documentation says '$1'"
}

# shown PAGE TEXT: demands that every line of TEXT stands in that page of the documentation, apart from run ids and times.
shown() {
    local page=$examples/../../$1 line
    while IFS= read -r line; do
        case $line in
        "run       "* | *'"run_id"'* | *'"latency_ms"'*) continue ;;
        esac
        line=$(sed -E 's/ · [0-9]+\.[0-9] s$//; s/ · run [0-9a-f-]+$//' <<<"$line")
        grep --quiet --fixed-strings -- "$line" "$page" || fail "$1 does not show: $line"
    done <<<"$2"
}

# field NAME: the value of a field in the JSON of the last run, where the name stands once.
field() {
    sed -n "s/^ *\"$1\": \"\{0,1\}\([^\"]*[^\",]\)\"\{0,1\},\{0,1\}\$/\1/p" "$scratch/out"
}

fail() {
    printf '%s: %s\n' "$0" "$1" >&2
    exit 1
}
