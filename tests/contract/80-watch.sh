# Watch.
. "$(dirname "$0")/lib.sh"
WATCH_LIST='watch=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true'

prepare() {
    # Check 147 needs watches that are idle for more than a minute; they are looked at when all else is done.
    [ -z "${FIRST:-}" ] || return 0
    FIRST=$(newest) IDLE_SINCE=$SECONDS
    VIA=aggregator watch_open idle-aggregator "$T?watch=true&allowWatchBookmarks=true&resourceVersion=$FIRST"
    [ "$ROADS" = aggregator ] || VIA=direct watch_open idle-direct "$T?watch=true&allowWatchBookmarks=true&resourceVersion=$FIRST"
}
newest() { api GET "$B" && version; }
kinds() { events "$1" '.type' | xargs; }

check_143() { # a watch sees creation, change and deletion
    watch_open "life-$ROAD" "$B?watch=1&resourceVersion=$(newest)"
    make w143
    merge "$B/w143" '{"metadata":{"labels":{"a":"b"}}}'
    local changed
    changed=$(version)
    api DELETE "$B/w143"
    came "life-$ROAD" 3
    is "ADDED w143 MODIFIED w143 DELETED w143" "$(events "life-$ROAD" | xargs)"
    is "$RV $changed" "$(events "life-$ROAD" .object.metadata.resourceVersion | head -n 2 | xargs)"
    [ "$(events "life-$ROAD" .object.metadata.resourceVersion | tail -n 1)" -gt "$changed" ] || fail "the deletion has no version of its own"
    is 3 "$(wc -l <"$WORK/life-$ROAD.watch")" # one line each
    watch_close "life-$ROAD"
}

check_144() { # the headers come before any event
    watch_open "silent-$ROAD" "$T?watch=true&resourceVersion=$(newest)"
    is 0 "$(wc -l <"$WORK/silent-$ROAD.watch")"
    like '^[Cc]ontent-[Tt]ype: application/json' "$(<"$WORK/silent-$ROAD.headers")"
    watch_close "silent-$ROAD"
    watch_open "chunked-$ROAD" "$T?watch=true&resourceVersion=$(newest)" --http1.1
    like '^[Tt]ransfer-[Ee]ncoding: chunked' "$(<"$WORK/chunked-$ROAD.headers")"
    watch_close "chunked-$ROAD"
}

check_145() { # without a version everything there is comes first
    make w145
    make w145b
    watch_open "initial-$ROAD" "$B?watch=true"
    came "initial-$ROAD" "$(api GET "$B" && q '.items | length')"
    like '^ADDED w145$' "$(events "initial-$ROAD")"
    like '^ADDED w145b$' "$(events "initial-$ROAD")"
    is ADDED "$(events "initial-$ROAD" .type | sort -u)"
    watch_close "initial-$ROAD"
}

check_146() { # a version that is gone is an ERROR event
    only direct || return
    own_up || return
    local list=$A/namespaces/default/sandboxes n
    for n in 1 2 3; do own POST "$list" "$(sandbox "o$n")"; done
    etcd_compact
    own_down
    own_up || return
    VIA=own watch_open old "$list?watch=true&resourceVersion=1"
    watch_end old 5
    is 0 $?
    like '^HTTP/[0-9.]+ 200' "$(<"$WORK/old.headers")"
    is "ERROR Status 410 Expired" "$(events old '"\(.type) \(.object.kind) \(.object.code) \(.object.reason)"')"
}

# marker NAME JQ-EXPRESSION: of the first bookmark; others may follow soon.
marker() { events "$1" "select(.type == \"BOOKMARK\") | $2" | head -n 1; }

check_148() { # initial events with a marker at their end
    make w148
    watch_open "marked-$ROAD" "$B?$WATCH_LIST"
    came "marked-$ROAD" $(($(api GET "$B" && q '.items | length') + 1))
    like '^ADDED w148$' "$(events "marked-$ROAD")"
    is 'Sandbox agents.x-k8s.io/v1beta1 true' "$(marker "marked-$ROAD" '"\(.object.kind) \(.object.apiVersion) \(.object.metadata.annotations["k8s.io/initial-events-end"])"')"
    [ "$(marker "marked-$ROAD" .object.metadata.resourceVersion)" -ge "$RV" ] || fail "the marker is older than what came before it"
    watch_close "marked-$ROAD"
}

check_149() { # the marker comes at once when there is nothing
    watch_open "nothing-$ROAD" "$C?$WATCH_LIST"
    came "nothing-$ROAD" 1 2
    is 'SandboxClaim true' "$(marker "nothing-$ROAD" '"\(.object.kind) \(.object.metadata.annotations["k8s.io/initial-events-end"])"')"
    watch_close "nothing-$ROAD"
}

check_150() { # sendInitialEvents needs resourceVersionMatch
    api GET "$B?watch=true&sendInitialEvents=true"
    refused 422 Invalid "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan"
    api GET "$B?watch=true&resourceVersionMatch=NotOlderThan"
    refused 422 Invalid "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided"
}

check_151() { # timeoutSeconds
    local began=$EPOCHREALTIME
    watch_open "short-$ROAD" "$B?watch=true&timeoutSeconds=2"
    watch_end "short-$ROAD" 4
    is 0 $?
    below "$(since "$began")" 2
    hasnt ERROR "$(kinds "short-$ROAD")"
}

check_152() { # a label that goes is a deletion for who selects it
    make w152 '.metadata.labels = {k: "v"}'
    watch_open "label-$ROAD" "$B?watch=true&resourceVersion=$RV&labelSelector=k%3Dv"
    make w152b
    merge "$B/w152" '{"metadata":{"labels":{"k":null}}}'
    local gone
    gone=$(version)
    merge "$B/w152" '{"metadata":{"annotations":{"unseen":"1"}}}'
    merge "$B/w152" '{"metadata":{"labels":{"k":"v"}}}'
    api DELETE "$B/w152b"
    api DELETE "$B/w152" # seen last
    came "label-$ROAD" 3
    is "DELETED w152 ADDED w152 DELETED w152" "$(events "label-$ROAD" | xargs)"
    is "$gone v" "$(events "label-$ROAD" '"\(.object.metadata.resourceVersion) \(.object.metadata.labels.k)"' | head -n 1)"
    watch_close "label-$ROAD"
}

check_153() { # one object by its name
    watch_open "name-$ROAD" "$B?watch=true&resourceVersion=$(newest)&fieldSelector=metadata.name%3Dw153"
    make w153b
    make w153
    api DELETE "$B/w153b"
    api DELETE "$B/w153" # seen last
    came "name-$ROAD" 2
    is "ADDED w153 DELETED w153" "$(events "name-$ROAD" | xargs)"
    watch_close "name-$ROAD"
}

check_154() { # as a table
    ACCEPT='application/json;as=Table;v=v1;g=meta.k8s.io' watch_open "table-$ROAD" "$B?watch=true&resourceVersion=$(newest)"
    make w154
    merge "$B/w154" '{"metadata":{"labels":{"a":"b"}}}'
    came "table-$ROAD" 2
    is "Table 4 1 Table 0 1" "$(events "table-$ROAD" '"\(.object.kind) \(.object.columnDefinitions | length) \(.object.rows | length)"' | xargs)"
    is w154 "$(events "table-$ROAD" '.object.rows[0].cells[0]' | sort -u)"
    watch_close "table-$ROAD"
}

check_155() { # as metadata, bookmarks too
    make w155
    local protobuf='application/vnd.kubernetes.protobuf;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,'
    if asks_kubernetes; then protobuf=''; fi
    ACCEPT="${protobuf}application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json" watch_open "meta-$ROAD" "$B?$WATCH_LIST"
    came "meta-$ROAD" $(($(api GET "$B" && q '.items | length') + 1))
    is "PartialObjectMetadata meta.k8s.io/v1 null" "$(events "meta-$ROAD" '"\(.object.kind) \(.object.apiVersion) \(.object.spec)"' | sort -u)"
    is true "$(marker "meta-$ROAD" '.object.metadata.annotations["k8s.io/initial-events-end"]')"
    watch_close "meta-$ROAD"
}

open_watches() { own GET /metrics && awk '/^apiserver_longrunning_requests\{.*resource="'"${1:-sandboxclaims}"'"/ { n += $2 } END { print n + 0 }' "$WORK/body"; }
check_156() { # the watch of a client that was killed is given up
    only direct || return
    [ -n "$OWN_PID" ] || own_up || return # where nobody else watches
    local n
    for n in 1 2 3 4 5; do VIA=own watch_open "dying-$n" "$C?watch=true"; done
    is 5 "$(open_watches)"
    for n in 1 2 3 4 5; do kill -9 "$(cat "$WORK/dying-$n.pid")"; done
    wait $(cat "$WORK"/dying-?.pid) 2>/dev/null # or the shell reports their end
    given_up() { [ "$(open_watches)" = 0 ]; }
    soon 10 given_up
}

# The load generator of tests/func does what a shell cannot: many watches, each of which must see every event once and in order.
load() { "$LOAD" "$1" -U "${URL[own]}" -c "$WORK/load" "${@:2}"; }
LOAD=$ROOT/build/gcc/tests/func/load
prepare_load() {
    [ -x "$LOAD" ] || { skip "$LOAD is not built: make func-targets" && return 1; }
    [ -n "$OWN_PID" ] || own_up || return 1
    mkdir -p "$WORK/load"
    cp "$WORK"/admin.{crt,key} "$WORK/load"
    cp "${CA[own]}" "$WORK/load/serving-ca.crt"
    own GET "$A/namespaces/default/sandboxes"
    RV=$(version)
}

check_157() { # a thousand watches, each event once and in order
    only direct || return
    prepare_load || return
    load watch -n 1000 -r "$RV" -u end-157 -d $((60 * PATIENCE)) >"$WORK/thousand" 2>&1 &
    local watcher=$!
    PIDS+=("$watcher")
    all_open() { [ "$(open_watches sandboxes)" -ge 1000 ]; }
    soon 20 all_open
    load create -n 100 -t 2 -p many -l "$WORK/ledger" >"$WORK/writers" 2>&1 || fail "writers: $(<"$WORK/writers")"
    own POST "$A/namespaces/default/sandboxes" "$(sandbox end-157)"
    wait $watcher || fail "watches: $(head -c 500 "$WORK/thousand")"
}

check_158() { # watches that are cut off resume without a gap
    only direct || return
    prepare_load || return
    load watch -n 20 -r "$RV" -u end-158 -d $((60 * PATIENCE)) >"$WORK/resuming" 2>&1 &
    local watcher=$!
    PIDS+=("$watcher")
    load create -n 1000 -t 4 -p cut -l "$WORK/ledger-cut" -d $((60 * PATIENCE)) >"$WORK/writers" 2>&1 &
    local writer=$!
    soon 10 has_lines "$WORK/ledger-cut" 50
    kill -9 "$OWN_PID" # no goodbye for anybody
    wait "$OWN_PID" 2>/dev/null
    own_up
    wait $writer || fail "writers: $(<"$WORK/writers")"
    own_down
    own_up
    own POST "$A/namespaces/default/sandboxes" "$(sandbox end-158)"
    wait $watcher || fail "watches: $(head -c 500 "$WORK/resuming")"
}

check_159() { # the controller manager's informers get their bookmarks
    only aggregator || return
    # Since the server was replaced for this run, which made all of them list and watch anew.
    is "" "$(tail -c "+$((${CONTRACT_LOG_FROM:-0} + 1))" "$CLUSTER_STATE"/log/kube-controller-manager.log | grep -E "hasn't received required bookmark" | grep agents.x-k8s.io | tail -n 3)"
    like 'agents.x-k8s.io' "$(grep -hoE 'QuotaMonitor created object count evaluator.*agents.x-k8s.io|resource="?sandboxes.agents.x-k8s.io"?|sandboxes.agents.x-k8s.io' "$CLUSTER_STATE"/log/kube-controller-manager.log | head -n 3)"
}

check_160() { # through the aggregator an event takes less than 100 ms
    only aggregator || return
    make w160
    watch_open seen "$B?watch=true&resourceVersion=$RV"
    local n=0 took seen
    exec {seen}< <(tail -n +1 -f "$WORK/seen.watch")
    PIDS+=($!)
    prompt() { # from the request's first byte on
        local began=$EPOCHREALTIME
        n=$((n + 1))
        merge "$B/w160" "{\"metadata\":{\"labels\":{\"n\":\"$n\"}}}"
        read -r -t $((2 * PATIENCE)) -u "$seen" || return
        took=$(since "$began")
        less "$(awk -v took="$took" -v before="$SECONDS_TO_CONNECT" 'BEGIN { print took - before }')" 0.1
    }
    soon 6 prompt # the first that is: other tests run on this machine
    is $n "$(wc -l <"$WORK/seen.watch")"
    watch_close seen
}

check_147() { # an idle watch gets a bookmark within 70 s, of the newest version
    [ "$ROAD" = "${ROADS##* }" ] || { NOTE=elsewhere && return; }
    local road rv
    for road in $ROADS; do
        within $((75 - SECONDS + IDLE_SINCE)) has_lines "$WORK/idle-$road.watch" 1
        is "BOOKMARK SandboxTemplate" "$(events "idle-$road" '"\(.type) \(.object.kind)"' | tail -n 1)"
        rv=$(events "idle-$road" .object.metadata.resourceVersion | tail -n 1)
        [ "${rv:-0}" -gt "$FIRST" ] || fail "bookmark ${rv:-none} is not newer than the start, $FIRST"
    done
}

run_checks
