# shellcheck shell=bash
# The build, steps, background jobs, servers and the final report of `.ci/run` and `.ci/long`.

# All steps share one build: one target directory, one profile, one feature set. `--workspace` keeps the features the same,
# so no step of this profile may build with `--package`; built programs are started by path.
export CARGO_TARGET_DIR="$HOME/.cache/moothall/target"
export CARGO_PROFILE_DEV_DEBUG=0 # no line numbers in backtraces; the build writes a third less
# Assertions inside of dependencies and the standard library slow down the tests of debug builds; our own checks are tests.
export CARGO_PROFILE_DEV_DEBUG_ASSERTIONS=false
export CARGO_PROFILE_DEV_OVERFLOW_CHECKS=true
export CARGO_INCREMENTAL=0
export CARGO_TERM_COLOR=never
product="$CARGO_TARGET_DIR/debug/moothall"
# shellcheck disable=SC2034  # both scripts use it
xtask="$CARGO_TARGET_DIR/debug/xtask"

# Fail instead of building without the guest agent or the web UI.
export MOOTHALL_REQUIRE_GUEST=1
export MOOTHALL_REQUIRE_UI=1
export MOOTHALL_TEST_IMAGES="$HOME/.cache/moothall/images-data/images"

scratch=$(mktemp -d)
current_step=start
declare -A job_pids=()   # background jobs that have not been joined yet
declare -A job_started=()
declare -A server_logs=() # by process id

# step NAME COMMAND…: never call it in a condition, where bash ignores `set -e`.
step() {
    current_step=$1
    local started=$SECONDS
    shift
    printf '\n== %s\n' "$current_step"
    "$@"
    record_step "$current_step" $((SECONDS - started))
}

# background NAME COMMAND…: runs it in parallel with the following steps until `join NAME`.
background() {
    local name=$1
    shift
    job_started[$name]=$SECONDS
    (
        "$@"
        echo $((SECONDS - job_started[$name])) >"$scratch/$name.seconds"
    ) >"$scratch/$name.log" 2>&1 &
    job_pids[$name]=$!
}

# join NAME: waits for a background job, shows its output, and fails if it failed.
join() {
    local name=$1 started=$SECONDS status=0
    current_step="$name (background)"
    printf '\n== %s\n' "$current_step"
    wait "${job_pids[$name]}" || status=$?
    unset "job_pids[$name]"
    cat "$scratch/$name.log"
    ((status == 0)) || exit "$status"
    record_step "$current_step: $(minutes "$(<"$scratch/$name.seconds")") in all, waited" $((SECONDS - started))
}

record_step() {
    local line
    line=$(printf '%-60s %s' "$1" "$(minutes "$2")")
    # A file, because background jobs run in subshells.
    printf '%s\n' "$line" >>"$scratch/steps"
    printf -- '-- %s\n' "$line"
}

minutes() {
    printf '%d.%d min' $(($1 / 60)) $(($1 % 60 / 6))
}

report_steps() {
    printf '\n==== minutes per step\n'
    cat "$scratch/steps"
}

# --- servers on loopback --------------------------------------------------------------------------------------------

start_local_model() {
    start_server local-model bash tools/local-model/up.sh --port 0
    MOOTHALL_TEST_LOCAL_MODEL=${ready_line%% *}
    export MOOTHALL_TEST_LOCAL_MODEL
    local _
    for _ in {1..120}; do
        if curl --fail --silent --noproxy '*' --output /dev/null "$MOOTHALL_TEST_LOCAL_MODEL/health"; then
            echo "local model at $MOOTHALL_TEST_LOCAL_MODEL"
            return
        fi
        sleep 0.5
    done
    echo "the local model did not answer within a minute"
    return 1
}

start_postgres() {
    start_server postgres bash tools/postgres/up.sh
    read -r MOOTHALL_TEST_POSTGRES MOOTHALL_TEST_POSTGRES_CERTIFICATE <<<"$ready_line"
    export MOOTHALL_TEST_POSTGRES MOOTHALL_TEST_POSTGRES_CERTIFICATE
    echo "PostgreSQL at ${MOOTHALL_TEST_POSTGRES##*@}"
}

# start_server NAME COMMAND…: starts it and waits for its line `READY …`; `ready_line` is set to the rest of that line.
start_server() {
    local log="$scratch/$1.log" _
    shift
    : >"$log" # must exist before the first read
    "$@" >"$log" 2>&1 &
    server_logs[$!]=$log
    for _ in {1..240}; do
        if ready_line=$(grep --max-count 1 '^READY ' "$log"); then
            ready_line=${ready_line#READY }
            return
        fi
        kill -0 "$!"
        sleep 0.5
    done
    echo "not ready within two minutes: $*"
    return 1
}

# --- end ------------------------------------------------------------------------------------------------------------

finish() {
    local status=$? pid
    trap - EXIT
    if ((status != 0)); then
        printf '\nFAILED in step: %s (exit %d, after %s)\n' "$current_step" "$status" "$(minutes "$SECONDS")"
        # Of servers that may be the cause, because they ended or did not start. Why a step failed is printed above, and
        # must stay near the end of the log.
        for pid in "${!server_logs[@]}"; do
            [[ $current_step == start\ * ]] || ! kill -0 "$pid" 2>/dev/null || continue
            printf 'end of %s:\n' "${server_logs[$pid]##*/}"
            grep --invert-match '^READY ' "${server_logs[$pid]}" | tail -n 20 || true # the READY line contains a password
        done
    fi
    for pid in "${job_pids[@]}" "${!server_logs[@]}"; do
        kill "$pid" 2>/dev/null || true
        wait "$pid" 2>/dev/null || true
    done
    rm -rf "$scratch"
    exit "$status"
}
trap finish EXIT
