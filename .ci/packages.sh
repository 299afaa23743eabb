# shellcheck shell=bash
# What the gate installs in addition to cargo tools: Debian packages, and clients and servers from npm and pip.

mcp_check="$HOME/.cache/moothall/mcp-check"
api_check="$HOME/.cache/moothall/api-check"
gate_check="$HOME/.cache/moothall/gate-check"
mail_check="$HOME/.cache/moothall/mail-check"
otlp_check="$HOME/.cache/moothall/otlp-check"
pdf_check="$HOME/.cache/moothall/pdf-check"
package_check="$HOME/.cache/moothall/package-check"

# Needed by the first steps.
install_basic_packages() {
    local missing=()
    command -v c++ >/dev/null || missing+=(build-essential)
    command -v curl >/dev/null || missing+=(curl)
    command -v git >/dev/null || missing+=(git)
    command -v npm >/dev/null || missing+=(npm)
    command -v tmux >/dev/null || missing+=(tmux)
    python3 -c 'import ensurepip' 2>/dev/null || missing+=(python3-venv)
    install_debian_packages "${missing[@]}"
}

# Needed by later steps. The builds of the first steps do not wait for this.
install_packages_and_clients() {
    local missing=()
    command -v qemu-system-x86_64 >/dev/null || missing+=(qemu-system-x86)
    command -v mmdebstrap >/dev/null || missing+=(mmdebstrap)
    command -v mksquashfs >/dev/null || missing+=(squashfs-tools)
    command -v runc >/dev/null || missing+=(runc)
    command -v crun >/dev/null || missing+=(crun)
    command -v strace >/dev/null || missing+=(strace)
    command -v rpmbuild >/dev/null || missing+=(rpm)
    command -v cpio >/dev/null || missing+=(cpio)
    command -v lintian >/dev/null || missing+=(lintian)
    command -v dbus-run-session >/dev/null || missing+=(dbus)
    command -v gnome-keyring-daemon >/dev/null || missing+=(gnome-keyring)
    command -v chromium-headless-shell >/dev/null || missing+=(chromium-headless-shell fonts-liberation)
    install_debian_packages "${missing[@]}"
    bash .ci/runsc.sh
    bash tools/postgres/up.sh --install-only
    bash tools/restate/install.sh
    bash tools/local-model/up.sh --install-only
    bash tools/api-check/run.sh --install-only "$api_check"
    bash tools/agent-clients/install.sh "$HOME/.cache/moothall/agent-clients" gemini
    bash tools/gate-check/run.sh --install-only "$gate_check"
    bash tools/mail-check/run.sh --install-only "$mail_check"
    bash tools/mcp-check/run.sh --install-only "$mcp_check"
    bash tools/otlp-check/run.sh --install-only "$otlp_check"
    bash tools/pdf-check/run.sh --install-only "$pdf_check"
    bash tools/package-check/run.sh --install-only "$package_check"
}

install_debian_packages() {
    if (($# == 0)); then
        echo "nothing is missing"
        return
    fi
    echo "installing $*"
    apt-get update -qq
    DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$@"
}
