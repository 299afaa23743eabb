# shellcheck shell=bash
# Sourced after start.sh by examples that play a session in a real terminal: types commands, presses keys and checks what the screen shows.
#
#   RECORDING_SOCKET  the terminal is recorded (tools/recording/record.py): type slowly, and wait where a person reads

command -v tmux >/dev/null || fail "tmux is missing: apt-get install tmux"
recording=${RECORDING_SOCKET:-}
# shellcheck disable=SC2154  # start.sh sets it
terminal=(tmux -S "${recording:-$scratch/tmux}" -f /dev/null)

# close_terminal: for the EXIT trap.
close_terminal() {
    "${terminal[@]}" kill-server 2>/dev/null || true
}

# open_terminal COLUMNS LINES COMMAND
open_terminal() {
    "${terminal[@]}" new-session -d -s session -x "$1" -y "$2" "$3"
    "${terminal[@]}" set-option -g status off >/dev/null
}

# open_shell COLUMNS LINES: a shell that finds `moothall`.
open_shell() {
    mkdir "$scratch/bin"
    # shellcheck disable=SC2154  # start.sh sets it
    ln -s "$program" "$scratch/bin/moothall"
    open_terminal "$1" "$2" \
        "env PATH='$scratch/bin:$PATH' PS1='$ ' TERM=xterm-256color HISTFILE=/dev/null BASH_SILENCE_DEPRECATION_WARNING=1 bash --norc --noprofile"
    shows '$'
}

# Everything that was on the screen since the last `clear_screen`.
screen() {
    "${terminal[@]}" capture-pane -p -J -S - -t session
}

# shows TEXT [SECONDS]: waits until the screen shows it.
shows() {
    local deadline=$((SECONDS + ${2:-100}))
    until screen | grep --fixed-strings -- "$1" >/dev/null; do
        ((SECONDS < deadline)) || fail "the screen never showed: $1"$'\n'"$(screen)"
        sleep 0.05
    done
    printf 'shown: %s\n' "$1"
}

# reads SECONDS: the time that a person needs, in a recording.
reads() {
    [[ -z $recording ]] || sleep "$1"
}

key() {
    "${terminal[@]}" send-keys -t session "$1"
}

# type_line TEXT: types it and presses Enter.
type_line() {
    local line=$1 at
    printf '$ %s\n' "$line"
    if [[ -n $recording ]]; then
        for ((at = 0; at < ${#line}; at++)); do
            "${terminal[@]}" send-keys -t session -l -- "${line:at:1}"
            sleep 0.03
        done
        sleep 0.4
    else
        "${terminal[@]}" send-keys -t session -l -- "$line"
    fi
    key Enter
}

clear_screen() {
    key C-l
    reads 0.3
    "${terminal[@]}" clear-history -t session
}

# ends_with CODE [SECONDS]: waits for the last command, checks its exit code and clears the screen.
ends_with() {
    [[ -z $recording ]] || return 0
    # shellcheck disable=SC2016  # for the shell in the terminal
    "${terminal[@]}" send-keys -t session -l -- 'echo "exit code $?"'
    key Enter
    shows "exit code $1" "${2:-100}"
    clear_screen
}
