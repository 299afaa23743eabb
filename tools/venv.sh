# shellcheck shell=bash
# Sourced by the checks that need Python packages.

# install_venv FOLDER REQUIREMENTS: makes a virtual environment with these packages, again only if the list has changed. Processes that
# need the same one at the same time wait for each other.
install_venv() {
    mkdir -p "$1"
    (
        flock 9
        cmp --silent "$2" "$1/requirements.txt" && exit
        python3 -m venv --clear "$1"
        "$1/bin/pip" install --quiet --requirement "$2"
        cp "$2" "$1/requirements.txt"
    ) 9>"$1.lock"
}
