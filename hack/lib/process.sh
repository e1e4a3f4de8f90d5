# Starts, watches and ends processes by name. Each is known by its pid together with its start time and the
# boot it was started in, so that a pid that was given to somebody else is never signalled. Sourced, not run.
# The caller has STATE, a folder with run/ and log/ in it; die_log TEXT LOGFILE, an end; and may have proc_enter COMMAND...,
# which becomes the process (in other namespaces, say).
# shellcheck shell=bash disable=SC2034
BOOT=$(cat /proc/sys/kernel/random/boot_id)
PROC_PID=''

# proc_started PID: state letter and start time (ticks since boot), nothing if there is no such process.
proc_started() {
    local stat
    { stat=$(<"/proc/$1/stat"); } 2>/dev/null || return 1
    # The name in parentheses may hold anything, so cut behind the last one.
    # shellcheck disable=SC2086
    set -- ${stat##*) }
    echo "$1 ${20}"
}

# proc_alive NAME: does it run? Sets PROC_PID.
proc_alive() {
    local pid ticks boot now
    PROC_PID=
    { read -r pid ticks boot <"$STATE/run/$1.pid"; } 2>/dev/null || return 1
    [ "$boot" = "$BOOT" ] || return 1
    now=$(proc_started "$pid") || return 1
    [ "${now#* }" = "$ticks" ] && [ "${now%% *}" != Z ] || return 1
    PROC_PID=$pid
}

proc_enter() { exec setsid "$@"; }

# proc_note NAME PID: from now on it goes by that name.
proc_note() {
    local now
    now=$(proc_started "$2") || return 1
    echo "$2 ${now#* } $BOOT" >"$STATE/run/$1.pid"
}

# proc_start NAME COMMAND...: starts it, unless it runs already.
proc_start() {
    local name=$1 log=$STATE/log/$1.log
    shift
    ! proc_alive "$name" || return 0
    [ ! -e "$log" ] || mv "$log" "$log.1"
    (
        trap - ERR
        proc_enter "$@"
    ) >"$log" 2>&1 </dev/null 9>&- &
    PROC_PID=$!
    proc_note "$name" "$PROC_PID" || die_log "$name did not start" "$log"
}

# proc_wait NAME SECONDS COMMAND...: until the command succeeds; the process must stay alive meanwhile.
proc_wait() {
    local name=$1 tries=$(($2 * 10)) log=$STATE/log/$1.log
    shift 2
    until "$@" >/dev/null 2>&1; do
        proc_alive "$name" || die_log "$name ended" "$log"
        tries=$((tries - 1))
        [ $tries -gt 0 ] || die_log "$name is not ready in time" "$log"
        sleep 0.1
    done
}

# proc_signal SIGNAL NAME...: to those that run.
proc_signal() {
    local signal=$1 name
    shift
    for name in "$@"; do ! proc_alive "$name" || kill "-$signal" "$PROC_PID" 2>/dev/null || true; done
}

# proc_gone TENTHS NAME...: waits until none of them runs.
proc_gone() {
    local tenths=$1 name some
    shift
    while [ "$tenths" -gt 0 ]; do
        some=
        for name in "$@"; do ! proc_alive "$name" || some=1; done
        [ -n "$some" ] || return 0
        tenths=$((tenths - 1))
        sleep 0.1
    done
    return 1
}
