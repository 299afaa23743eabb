#!/bin/sh
# Installs Moothall @VERSION@ for the current user, without root:
#
#   sh install.sh
#
# MOOTHALL_PREFIX       where to install [default: ~/.local]
# MOOTHALL_DOWNLOAD_URL where to download from; the checksums below stay the same
#
# The files are in PREFIX/lib/moothall, with a link in PREFIX/bin. To uninstall, delete both.
set -eu

version=@VERSION@
url=${MOOTHALL_DOWNLOAD_URL:-@URL@}
prefix=${MOOTHALL_PREFIX:-$HOME/.local}

fail() {
    echo "error: $1" >&2
    [ -z "${2:-}" ] || echo "hint: $2" >&2
    exit 1
}

case $(uname -s) in
    Linux) system=unknown-linux-gnu ;;
    Darwin) system=apple-darwin ;;
    *) fail "no package for $(uname -s)" "build Moothall from source" ;;
esac
case $(uname -m) in
    x86_64 | amd64) target=x86_64-$system ;;
    aarch64 | arm64) target=aarch64-$system ;;
    *) fail "no package for $(uname -m)" "build Moothall from source" ;;
esac
sum=
case $target in
    @SUMS@
esac
[ -n "$sum" ] || fail "no package for $target in version $version" "build Moothall from source"

name=moothall-$version-$target
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT TERM

echo "downloading $name.tar.gz"
if command -v curl >/dev/null; then
    curl --fail --location --silent --show-error --output "$work/$name.tar.gz" "$url/$name.tar.gz" ||
        fail "cannot download $url/$name.tar.gz"
elif command -v wget >/dev/null; then
    wget --quiet --output-document="$work/$name.tar.gz" "$url/$name.tar.gz" ||
        fail "cannot download $url/$name.tar.gz"
else
    fail "cannot find curl or wget" "install one of them"
fi

if command -v sha256sum >/dev/null; then
    found=$(sha256sum "$work/$name.tar.gz" | cut -d ' ' -f 1)
else
    found=$(shasum -a 256 "$work/$name.tar.gz" | cut -d ' ' -f 1)
fi
[ "$found" = "$sum" ] ||
    fail "the checksum of $name.tar.gz is $found, expected $sum" "nothing was installed; try again, and report it if it persists"

tar -xzf "$work/$name.tar.gz" -C "$work"
mkdir -p "$prefix/bin" "$prefix/lib"
# Renamed into place, so that an interrupted upgrade leaves the old version.
rm -rf "$prefix/lib/moothall.new" "$prefix/lib/moothall.old"
cp -R "$work/$name" "$prefix/lib/moothall.new"
printf '{"kind":"install-script","version":"%s"}\n' "$version" >"$prefix/lib/moothall.new/share/moothall/install.json"
[ ! -e "$prefix/lib/moothall" ] || mv "$prefix/lib/moothall" "$prefix/lib/moothall.old"
mv "$prefix/lib/moothall.new" "$prefix/lib/moothall"
rm -rf "$prefix/lib/moothall.old"
ln -sf ../lib/moothall/bin/moothall "$prefix/bin/moothall"

echo "installed $("$prefix/bin/moothall" --version) as $prefix/bin/moothall"
case ":$PATH:" in
    *":$prefix/bin:"*) ;;
    *) echo "hint: add it to your PATH: export PATH=\"$prefix/bin:\$PATH\"" ;;
esac
