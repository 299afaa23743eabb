#!/usr/bin/env bash
# Installs gVisor's runsc, at least the first version with the `systrap` platform. Does nothing if it is installed.
#
# Debian 12 has an older version; its backports have a newer one. They are read from this machine's Debian mirror, for this
# package only: no package source is left behind for other installations.
set -euo pipefail

oldest=20240729

main() {
    if is_new_enough "$(installed_version)"; then
        echo "runsc $(installed_version) is there"
        return
    fi
    local scratch suite uri keys=/usr/share/keyrings/debian-archive-keyring.gpg
    scratch=$(mktemp -d)
    # shellcheck disable=SC2064  # expand now
    trap "rm -rf '$scratch'" EXIT
    # shellcheck disable=SC1091  # a system file
    suite=$(. /etc/os-release && echo "$VERSION_CODENAME")
    apt-get update -qq
    if is_new_enough "$(candidate_version)"; then
        DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends runsc
    else
        uri=$(debian_source "$suite")
        echo "installing runsc from $suite-backports"
        mkdir -p "$scratch/lists/partial"
        # Without this file, apt uses its default Debian keys.
        [[ -f $keys ]] && keys="[signed-by=$keys] " || keys=
        echo "deb $keys$uri $suite-backports main" >"$scratch/backports.list"
        local options=(
            -o "Dir::Etc::sourcelist=$scratch/backports.list"
            -o "Dir::Etc::sourceparts=$scratch/none"
            -o "Dir::State::lists=$scratch/lists"
            # apt downloads as another user, which cannot access this folder.
            -o "APT::Sandbox::User=root"
        )
        mkdir "$scratch/none"
        apt-get "${options[@]}" update -qq
        DEBIAN_FRONTEND=noninteractive apt-get "${options[@]}" install -y -qq --no-install-recommends \
            -t "$suite-backports" runsc
    fi
    is_new_enough "$(installed_version)" || {
        echo "runsc $(installed_version) is too old: at least $oldest is needed"
        return 1
    }
    echo "runsc $(installed_version) is installed"
}

# Versions are dates, such as `0.0~20240729.0-4~bpo12+2` and `release-20250101.0`.
installed_version() {
    runsc --version 2>/dev/null | sed -n 1p | the_date
}

candidate_version() {
    apt-cache policy runsc | grep Candidate: | the_date
}

the_date() {
    grep -o '20[0-9]\{6\}' | head -n 1 || true
}

is_new_enough() {
    [[ -n $1 ]] && (($1 >= oldest))
}

# The mirror that apt uses for this Debian release.
debian_source() {
    # shellcheck disable=SC2016  # the dollars are apt's
    apt-get indextargets --format '$(RELEASE) $(COMPONENT) $(REPO_URI)' 'Identifier: Packages' |
        sed -n "s/^$1 main //p" | sed -n 1p
}

main
