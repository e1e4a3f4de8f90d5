# The cluster's processes: started in its namespaces and control group, and ended in order. Sourced, not run.
# shellcheck shell=bash source=hack/lib/process.sh
. "$ROOT/hack/lib/process.sh"

proc_enter() {
    cgroup_join
    exec setsid "${IN_CLUSTER[@]}" "$@"
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
