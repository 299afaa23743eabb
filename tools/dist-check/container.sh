#!/usr/bin/env bash
# Builds the container from a folder that `cargo xtask dist` created, starts it as its Containerfile describes, and tests its server.
#
#   tools/dist-check/container.sh FOLDER
#
# Needs podman. If no registry can be reached, the base image is built from Debian packages (mmdebstrap) under the same name: the build steps
# are then the real ones, on a base with the same packages.
set -euo pipefail

made=$(realpath "$1")
base=$(sed --quiet 's/^FROM //p' "$made/Containerfile")
name=moothall-dist-check-$$
scratch=$(mktemp -d)
trap 'podman rm --force --ignore "$name" >/dev/null; podman rmi --force "$name" >/dev/null 2>&1 || true; rm -rf "$scratch"' EXIT

fail() {
    echo "dist-check: $*" >&2
    exit 1
}

if ! podman image exists "$base" && ! podman pull --quiet "$base"; then
    echo "-- no registry: $base is made of Debian's packages"
    mmdebstrap --quiet --variant=minbase bookworm "$scratch/base.tar"
    podman import --quiet "$scratch/base.tar" "$base" >/dev/null
fi

echo "-- build"
podman build --quiet --pull=never --network host --tag "$name" --file "$made/Containerfile" "$made"
podman image inspect --format '{{.Size}} bytes, user {{.User}}' "$name"

echo "-- the program and its images"
podman run --rm "$name" --version
podman run --rm "$name" image verify
podman run --rm "$name" consult HLXI --model demo --moves 3 --rounds 2 >"$scratch/ranked" 2>"$scratch/told" || { cat "$scratch/told" >&2; fail "the consultation failed"; }
class=$(sed --quiet 's/.*debated in isolation class \([a-z-]*\).*/\1/p' "$scratch/told")
echo "debated in isolation class $class"
[[ $class != none ]] || fail "the debates had no sandbox: $(<"$scratch/told")"

echo "-- the server"
podman run --detach --name "$name" --publish 127.0.0.1::7777 "$name" \
    serve --addr 0.0.0.0:7777 --auth tokens --public-url http://moothall.test --insecure >/dev/null
place=$(podman port "$name" 7777)
ask() { curl --silent --noproxy '*' --connect-to "moothall.test:80:$place" "http://moothall.test$1" "${@:2}"; }
for _ in {1..100}; do
    [[ $(ask /healthz) != ok ]] || break
    [[ $(podman inspect --format '{{.State.Running}}' "$name") == true ]] || fail "the server exited: $(podman logs "$name" 2>&1)"
    sleep 0.2
done
[[ $(ask /healthz) == ok ]] || fail "the server does not respond"
# Requests without a token are refused.
[[ $(ask /api/runs --output /dev/null --write-out '%{http_code}') == 401 ]] || fail "a request without a token was accepted"
token=$(podman exec "$name" moothall token create --scope read)
ask /api/runs --fail --output /dev/null --header "authorization: Bearer $token" || fail "the token was refused"
podman stop --time 20 "$name" >/dev/null
echo "fine"
