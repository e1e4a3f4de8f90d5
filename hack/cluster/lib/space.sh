# Where the cluster lives: a network namespace joined to the host by one veth pair, a mount namespace in which
# containerd and kubelet mount what they like, and a control group that holds every process. Deleting the three
# undoes whatever was made in them. Sourced, not run.
# shellcheck shell=bash disable=SC2034,SC2153
CGROUP=asb-$NAME
VETH=asb-$NAME

# choose_node_kind: real where it can be; otherwise NODE_WHY says what is missing.
choose_node_kind() {
    NODE_KIND=fake NET_KIND=loopback ADDR=127.0.0.1 HOST_ADDR=127.0.0.1
    PORT_BASE=${AGENT_SANDBOX_PORT:-24000}
    NODE_WHY=$(node_obstacle)
    [ -n "$NODE_WHY" ] || { NODE_KIND=real && NET_KIND=netns; }
    settings_derive
}

# node_obstacle: the first reason why no real node can run here, or nothing.
node_obstacle() {
    local program
    if [ -n "${AGENT_SANDBOX_FAKE_NODE:-}" ]; then echo "asked for by AGENT_SANDBOX_FAKE_NODE" && return; fi
    if [ "$(id -u)" != 0 ]; then echo "a kubelet needs root, this is user $(id -un)" && return; fi
    for program in containerd ctr runc iptables conntrack nsenter unshare ip; do
        command -v "$program" >/dev/null || { echo "the program $program is missing (hack/deps node installs it)" && return; }
    done
    for program in ptp host-local loopback; do
        [ -x "/usr/lib/cni/$program" ] || { echo "the CNI plugin $program is missing (hack/deps node installs it)" && return; }
    done
    unshare --net --mount true 2>/dev/null || { echo "no network and mount namespaces can be made here" && return; }
    cgroup_obstacle
}

# --- control groups: version 1 (one tree per controller) or version 2 (one tree) -------------------------------------

# cgroup_roots: mount points of all version 1 trees, or of the one version 2 tree when there are none.
cgroup_roots() {
    awk '{ for (i = 7; $i != "-"; i++); if ($(i + 1) == "cgroup") v1[$5]; if ($(i + 1) == "cgroup2") v2 = $5 }
        END { for (m in v1) { print m; n++ } if (!n && v2) print v2 }' /proc/self/mountinfo | sort
}

# cgroup_trees: all of them. Beside version 1 trees an empty version 2 tree may be mounted, and runc makes groups there.
cgroup_trees() { awk '{ for (i = 7; $i != "-"; i++); if ($(i + 1) ~ /^cgroup2?$/) print $5 }' /proc/self/mountinfo | sort -u; }

cgroup_is_v2() { [ -e "$(cgroup_roots | sed -n 1p)/cgroup.controllers" ]; }

cgroup_obstacle() {
    local root
    root=$(cgroup_roots | sed -n 1p)
    [ -n "$root" ] || { echo "no control groups are mounted" && return; }
    mkdir "$root/asb-probe-$$" 2>/dev/null || { echo "control groups under $root cannot be made" && return; }
    rmdir "$root/asb-probe-$$"
    ! cgroup_is_v2 || cgroup_delegate "$root" 2>/dev/null ||
        echo "the controllers cpu, cpuset, memory and pids of $root cannot be handed to child groups"
}

# cgroup_delegate GROUP: let its children have controllers (version 2). Fails when one of the needed ones is missing.
cgroup_delegate() {
    local c given
    for c in cpuset cpu io memory hugetlb pids; do
        { echo "+$c" >"$1/cgroup.subtree_control"; } 2>/dev/null || true
    done
    given=" $(cat "$1/cgroup.subtree_control") "
    for c in cpuset cpu memory pids; do [[ $given == *" $c "* ]] || return 1; done
}

cgroup_make() {
    local root group f
    for root in $(cgroup_roots); do
        for group in "$root/$CGROUP" "$root/$CGROUP/system"; do
            mkdir -p "$group"
            # A version 1 cpuset is empty when new, and no process can enter it then.
            for f in cpuset.cpus cpuset.mems; do
                if [ -e "$root/$f" ] && ! cgroup_is_v2; then cat "${group%/*}/$f" >"$group/$f"; fi
            done
        done
        ! cgroup_is_v2 || cgroup_delegate "$root/$CGROUP" || die "controllers of $root/$CGROUP cannot be handed to child groups"
    done
}

# cgroup_join: moves the (sub)shell that calls it.
cgroup_join() {
    local root
    [ "$NODE_KIND" = real ] || return 0
    for root in $(cgroup_roots); do echo "$BASHPID" >"$root/$CGROUP/system/cgroup.procs"; done
}

# cgroup_pids [CHILD]: everything in the cluster's group or in that child of it.
cgroup_pids() {
    local root
    for root in $(cgroup_trees); do
        [ ! -d "$root/$CGROUP" ] ||
            find "$root/$CGROUP/${1:-}" -name cgroup.procs -exec cat {} + 2>/dev/null || true
    done | sort -un
}

cgroup_signal() {
    local pids
    pids=$(cgroup_pids "${2:-}")
    # shellcheck disable=SC2086
    [ -z "$pids" ] || kill "-$1" $pids 2>/dev/null || true
}

# cgroup_empty TENTHS [CHILD]: waits until nobody is left in it.
cgroup_empty() {
    local tenths=$1
    while [ -n "$(cgroup_pids "${2:-}")" ]; do
        tenths=$((tenths - 1))
        [ "$tenths" -gt 0 ] || return 1
        sleep 0.1
    done
}

cgroup_remove() {
    local root tries
    for root in $(cgroup_trees); do
        tries=30
        while [ -d "$root/$CGROUP" ]; do
            find "$root/$CGROUP" -depth -type d -exec rmdir {} + 2>/dev/null || true
            [ -d "$root/$CGROUP" ] || break
            tries=$((tries - 1))
            [ $tries -gt 0 ] || die "the control group $root/$CGROUP cannot be removed"
            sleep 0.1
        done
    done
}

# --- network ---------------------------------------------------------------------------------------------------------

net_exists() { [ -e "$NETNS" ] && nsenter "--net=$NETNS" true 2>/dev/null; }

# net_is_free ADDRESS: no route but the default one leads there.
net_is_free() { ip -4 route show match "$1" | awk '$1 != "default" { taken = 1 } END { exit taken }'; }

# net_choose: a free /30; the last one if it is still free, so that addresses in certificates stay right.
net_choose() {
    local base n candidates=()
    [ "$ADDR" = 127.0.0.1 ] || [ -z "$ADDR" ] || candidates+=("${ADDR%.*}")
    if [ -n "${AGENT_SANDBOX_SUBNET:-}" ]; then
        candidates=("$AGENT_SANDBOX_SUBNET")
    else
        for base in 10.199 172.29 192.168; do
            for n in 0 1 2 3 4 5 6 7 8 9; do candidates+=("$base.$((200 + n))"); done
        done
    fi
    for base in "${candidates[@]}"; do
        if net_is_free "$base.2"; then
            HOST_ADDR=$base.1 ADDR=$base.2
            return
        fi
    done
    die "no free subnet between host and cluster among ${candidates[*]}; give one by AGENT_SANDBOX_SUBNET"
}

net_up() {
    net_exists && return
    ! ip link show "$VETH" >/dev/null 2>&1 || ip link del "$VETH"
    rm -f "$NETNS"
    exec 8</run && flock 8 # two that come up at once would find the same one free
    net_choose
    mountpoint_make /run/netns
    : >"$NETNS"
    unshare "--net=$NETNS" true
    ip link add "$VETH" type veth peer name eth0 netns "${NETNS##*/}"
    ip addr add "$HOST_ADDR/30" dev "$VETH"
    ip link set "$VETH" up
    exec 8>&-
    # No default route: the cluster has no way out. Service addresses need a route before kube-proxy's rules see them.
    # shellcheck disable=SC2016
    nsenter "--net=$NETNS" sh -ec '
        ip link set lo up
        ip addr add "$1/30" dev eth0
        ip link set eth0 up
        ip route add "$2" via "$3" src "$1"
        echo 1 >/proc/sys/net/ipv4/ip_forward' net "$ADDR" "$SERVICE_RANGE" "$HOST_ADDR"
}

net_down() {
    ! ip link show "$VETH" >/dev/null 2>&1 || ip link del "$VETH"
    if [ -e "$NETNS" ]; then
        umount "$NETNS" 2>/dev/null || true
        rm -f "$NETNS"
    fi
}

# --- mounts ----------------------------------------------------------------------------------------------------------

# mountpoint_make FOLDER: makes it and remembers each folder that was not there, so that down can take it away.
mountpoint_make() {
    local missing=$1 list=()
    while [ ! -d "$missing" ]; do
        list=("$missing" "${list[@]}")
        missing=${missing%/*}
    done
    [ ${#list[@]} -eq 0 ] || { mkdir -p "$1" && printf '%s\n' "${list[@]}" >>"$STATE/mountpoints"; }
}

mountpoints_remove() {
    [ -e "$STATE/mountpoints" ] || return 0
    sort -ru "$STATE/mountpoints" | while read -r folder; do rmdir "$folder" 2>/dev/null || true; done
    rm -f "$STATE/mountpoints"
}

mount_exists() { [ -e "$RUN/mnt" ] && nsenter "--mount=$RUN/mnt" true 2>/dev/null; }

# The mount namespace: containerd's and kubelet's fixed folders are the state folder's, so nothing lands elsewhere.
mount_up() {
    mount_exists && return
    run_remove
    mkdir -p "$RUN" "$STATE"/node/{kubelet,cni,log}
    local folder
    for folder in /var/lib/kubelet /var/lib/cni /run/netns /run/containerd; do mountpoint_make "$folder"; done
    # A namespace can be pinned only to a file on a private mount.
    mount --bind "$RUN" "$RUN"
    mount --make-private "$RUN"
    : >"$RUN/mnt"
    # shellcheck disable=SC2016
    unshare "--mount=$RUN/mnt" --propagation private sh -ec '
        mount --make-rshared /
        mount --bind "$1/node/kubelet" /var/lib/kubelet
        mount --bind "$1/node/cni" /var/lib/cni
        mount --bind "$1/node/log" /var/log
        mount -t tmpfs -o mode=755 tmpfs /run/netns
        mount -t tmpfs -o mode=711 tmpfs /run/containerd' mounts "$STATE"
}

run_remove() {
    [ -e "$RUN" ] || return 0
    umount "$RUN/mnt" 2>/dev/null || true
    umount "$RUN" 2>/dev/null || true
    rm -rf "$RUN"
}

space_up() {
    mkdir -p "$STATE/node"
    if [ "$NET_KIND" = netns ]; then
        cgroup_make
        net_up
        mount_up
        settings_derive
    fi
    settings_save
}

space_down() {
    if [ "$(id -u)" = 0 ]; then
        run_remove
        net_down
        cgroup_remove
        mountpoints_remove
    fi
}

# space_verify PURGED: names everything of this cluster that is still there after down; fails if there is anything.
space_verify() {
    local left=() tree process
    for tree in $(cgroup_trees); do [ ! -e "$tree/$CGROUP" ] || left+=("control group $tree/$CGROUP"); done
    ! ip link show "$VETH" >/dev/null 2>&1 || left+=("interface $VETH")
    [ ! -e "$NETNS" ] || left+=("network namespace $NETNS")
    [ ! -e "$RUN" ] || left+=("folder $RUN")
    [ -z "$1" ] || [ ! -e "$STATE" ] || left+=("folder $STATE")
    for tree in /var/lib/kubelet /var/lib/cni /run/containerd; do
        [ ! -e "$STATE/mountpoints" ] || ! grep -qsx "$tree" "$STATE/mountpoints" || left+=("folder $tree")
    done
    ! grep -qsF -e "$STATE/" -e "$RUN" -e "$NETNS" /proc/self/mountinfo || left+=("a mount: $(grep -F -e "$STATE/" -e "$RUN" -e "$NETNS" /proc/self/mountinfo)")
    # Whoever is still in the mount namespace sees the state folder mounted; the others name it in their arguments.
    for process in /proc/[0-9]*; do
        if grep -qsF "$STATE/node/" "$process/mountinfo" || grep -qsaF -e "$STATE/" -e "$RUN/" "$process/cmdline"; then
            left+=("process ${process#/proc/}: $(tr '\0' ' ' <"$process/cmdline" 2>/dev/null | cut -c1-200)")
        fi
    done
    [ ${#left[@]} -eq 0 ] || { printf 'left: %s\n' "${left[@]}" >&2 && return 1; }
    echo "nothing of cluster $NAME is left"
}
