# Starts, watches and ends the cluster's processes. Each is known by its pid together with its start time and the
# boot it was started in, so that a pid that was given to somebody else is never signalled. Sourced, not run.
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

# proc_start NAME COMMAND...: starts it in the cluster's namespaces and control group, unless it runs already.
proc_start() {
    local name=$1 log=$STATE/log/$1.log now
    shift
    ! proc_alive "$name" || return 0
    [ ! -e "$log" ] || mv "$log" "$log.1"
    (
        trap - ERR
        cgroup_join
        exec setsid "${IN_CLUSTER[@]}" "$@"
    ) >"$log" 2>&1 </dev/null 9>&- &
    PROC_PID=$!
    now=$(proc_started "$PROC_PID") || die_log "$name did not start" "$log"
    echo "$PROC_PID ${now#* } $BOOT" >"$STATE/run/$name.pid"
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

# Ends everything: first who would start things anew, then the containers, then the rest; what remains after two
# seconds is killed. A killed process loses nothing that it had written.
proc_stop_all() {
    local all=() file
    for file in "$STATE"/run/*.pid; do
        [ ! -e "$file" ] || { file=${file##*/} && all+=("${file%.pid}"); }
    done
    proc_signal TERM kubelet kube-controller-manager kube-scheduler fake-node local-volumes
    proc_gone 20 kubelet || proc_signal KILL kubelet
    cgroup_signal TERM kubepods
    proc_signal TERM kube-proxy coredns kube-apiserver etcd
    cgroup_empty 10 kubepods || true
    proc_signal TERM containerd
    proc_gone 15 "${all[@]}" || proc_signal KILL "${all[@]}"
    local tries=50
    until cgroup_empty 1; do
        cgroup_signal KILL
        tries=$((tries - 1))
        [ $tries -gt 0 ] || die "these processes cannot be ended: $(cgroup_pids | tr '\n' ' ')"
    done
    proc_gone 50 "${all[@]}" || die "some of ${all[*]} cannot be ended"
    rm -f "$STATE"/run/*.pid
}
