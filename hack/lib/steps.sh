# Numbered steps of a demonstration, each with how long it took. Sourced, not run.
# shellcheck shell=bash
STEPS=0 STEP=''
STEPS_LOG=$(mktemp)
exec {STEPS_OUT}>&1 # for the end; who starts what outlives this closes it there

# since EPOCHREALTIME
since() { awk -v a="$1" -v b="$EPOCHREALTIME" 'BEGIN { printf "%.1f s", b - a }'; }

# step TEXT COMMAND...: what the command prints is shown only when it fails, which ends everything.
step() {
    STEP=$EPOCHREALTIME
    STEPS=$((STEPS + 1))
    printf '%2d. %-56s' "$STEPS" "$1"
    shift
    "$@" >"$STEPS_LOG" 2>&1 || exit 1
    printf '%10s\n' "$(since "$STEP")"
    STEP=
}

# The end, in the middle of a step perhaps.
steps_finish() {
    local rc=$?
    if [ -n "$STEP" ]; then
        printf 'failed after %s\n' "$(since "$STEP")" >&"$STEPS_OUT"
        tail -n 40 "$STEPS_LOG" >&"$STEPS_OUT"
    fi
    rm -f "$STEPS_LOG"
    exit $rc
}
trap steps_finish EXIT

# shown COMMAND...: prints the command and what it says.
shown() {
    printf '\n$ %s\n' "$*"
    "$@"
}
