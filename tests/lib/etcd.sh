# A real etcd for shell tests, on 127.0.0.1 with random ports below 32768. Sourced; POSIX sh.
#
#   . tests/lib/etcd.sh
#   dir=$(mktemp -d); endpoint=$(etcd_start "$dir") || exit 1
#   ... "$endpoint" ...
#   etcd_stop "$dir"       # ends it; the folder is the caller's
#
# The program is $ETCD, else $AGENT_SANDBOX_ETCD, else the newest of hack/cluster's cache, else /usr/bin/etcd.
# A stopped one can be started again with the same folder: data and endpoint stay. No fsync: nothing here is about durability.

etcd_program() {
    # shellcheck disable=SC2012 # our own names, nothing odd in them
    for etcd_p in "${ETCD:-}" "${AGENT_SANDBOX_ETCD:-}" \
        "$(ls -d /var/cache/agent-sandbox/kube-v*/etcd 2>/dev/null | tail -n 1)" /usr/bin/etcd; do
        if [ -n "$etcd_p" ] && [ -x "$etcd_p" ]; then
            printf '%s\n' "$etcd_p"
            return 0
        fi
    done
    echo "etcd_start: no etcd (package etcd-server)" >&2
    return 1
}

etcd_random_port() {
    printf '%s\n' "$((20000 + $(od -An -N2 -tu2 /dev/urandom) % 12000))"
}

# etcd_start DIR: starts with data, log and pid below DIR, waits until healthy, prints the endpoint.
etcd_start() {
    etcd_bin=$(etcd_program) || return 1
    etcd_tries=5 # a random port may be taken; with data the ports are given
    [ -d "$1/data" ] && etcd_tries=1
    while [ "$etcd_tries" -gt 0 ]; do
        [ -d "$1/data" ] || echo "$(etcd_random_port) $(etcd_random_port)" >"$1/ports"
        read -r etcd_client etcd_peer <"$1/ports"
        etcd_peer=http://127.0.0.1:$etcd_peer
        "$etcd_bin" --data-dir "$1/data" --logger=zap --log-level=error --unsafe-no-fsync \
            --listen-client-urls "http://127.0.0.1:$etcd_client" \
            --advertise-client-urls "http://127.0.0.1:$etcd_client" \
            --listen-peer-urls "$etcd_peer" --initial-advertise-peer-urls "$etcd_peer" \
            --initial-cluster "default=$etcd_peer" </dev/null >>"$1/log" 2>&1 &
        echo $! >"$1/pid"
        etcd_wait "$1" && { echo "http://127.0.0.1:$etcd_client"; return 0; }
        etcd_stop "$1"
        etcd_tries=$((etcd_tries - 1))
        [ "$etcd_tries" -eq 0 ] || rm -rf "$1/data"
    done
    echo "etcd_start: does not become healthy, see $1/log" >&2
    return 1
}

# At most 20 s; gives up at once when the process is gone.
etcd_wait() {
    etcd_n=0
    while [ "$etcd_n" -lt 200 ]; do
        kill -0 "$(cat "$1/pid")" 2>/dev/null || return 1
        curl -s --max-time 2 "http://127.0.0.1:$etcd_client/health" | grep -q '"health":"true"' && return 0
        sleep 0.1
        etcd_n=$((etcd_n + 1))
    done
    return 1
}

# etcd_stop DIR: ends the one started with DIR, by its pid, and waits until it is gone.
etcd_stop() {
    [ -s "$1/pid" ] || return 0
    etcd_pid=$(cat "$1/pid")
    rm -f "$1/pid"
    kill "$etcd_pid" 2>/dev/null || return 0
    etcd_n=0
    while kill -0 "$etcd_pid" 2>/dev/null && [ "$etcd_n" -lt 100 ]; do
        # A zombie of this shell still answers kill -0.
        case $(ps -o stat= -p "$etcd_pid" 2>/dev/null) in Z* | '') break ;; esac
        sleep 0.1
        etcd_n=$((etcd_n + 1))
    done
    kill -9 "$etcd_pid" 2>/dev/null || true
}
