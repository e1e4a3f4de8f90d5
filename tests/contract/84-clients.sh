# Other clients, limits, abuse.
. "$(dirname "$0")/lib.sh"
ROADS=direct
LIST=$A/namespaces/default/sandboxes # of a server of our own

check_207() { # a controller's informers on all four kinds, with client-go; CONTRACT_CLIENT_GO="0.28.0 0.31.0" adds versions
    local bin n=0
    for bin in $("$HERE/../compat/clients" informers); do
        n=$((n + 1))
        namespace "$NS-$n"
        is "ok" "$("$bin" "$KUBECONFIG" "$NS-$n" 2>&1 | tail -n 3)"
    done
    [ $n -gt 0 ] || skip "tests/compat/clients make go did not succeed"
}

check_208() { # the official Python client: objects, watch, and what it makes of 410
    local python n
    python=$("$HERE/../compat/clients" python)
    [ -n "$python" ] || { skip "tests/compat/clients make python did not succeed" && return; }
    own_up || return
    for n in 1 2 3; do own POST "$LIST" "$(sandbox "p$n")"; done
    etcd_compact
    own_down
    own_up || return
    "$python" - "$KUBECONFIG" "$NS" "${URL[own]}" "${CA[own]}" >"$WORK/python" 2>&1 <<'E' || fail "$(tail -n 5 "$WORK/python")"
import sys
from kubernetes import client, config, watch

config.load_kube_config(sys.argv[1])
api, where = client.CustomObjectsApi(), ("agents.x-k8s.io", "v1beta1", sys.argv[2], "sandboxes")
body = {"apiVersion": "agents.x-k8s.io/v1beta1", "kind": "Sandbox", "metadata": {"name": "py"},
        "spec": {"podTemplate": {"spec": {"containers": [{"name": "main", "image": "a"}]}}}}
made = api.create_namespaced_custom_object(*where, body)
assert [i["metadata"]["name"] for i in api.list_namespaced_custom_object(*where)["items"]] == ["py"]
patched = api.patch_namespaced_custom_object(*where, "py", {"metadata": {"labels": {"a": "b"}}})
assert patched["metadata"]["labels"] == {"a": "b"}
seen = []
for event in watch.Watch().stream(api.list_namespaced_custom_object, *where, resource_version=made["metadata"]["resourceVersion"], timeout_seconds=5):
    seen.append(event["type"])
    if event["type"] == "MODIFIED":
        api.delete_namespaced_custom_object(*where, "py")
    if event["type"] == "DELETED":
        break
assert seen == ["MODIFIED", "DELETED"], seen

# From a version that is gone it starts once more and then tells the caller, who lists anew.
gone = client.Configuration.get_default_copy()
gone.host, gone.ssl_ca_cert = sys.argv[3:5]
api, where = client.CustomObjectsApi(client.ApiClient(gone)), ("agents.x-k8s.io", "v1beta1", "default", "sandboxes")
try:
    for event in watch.Watch().stream(api.list_namespaced_custom_object, *where, resource_version="1", timeout_seconds=5):
        raise AssertionError(event)
    raise AssertionError("the watch ended")
except client.ApiException as e:
    assert e.status == 410 and "Expired" in e.reason, e
version = api.list_namespaced_custom_object(*where)["metadata"]["resourceVersion"]
assert [e for e in watch.Watch().stream(api.list_namespaced_custom_object, *where, resource_version=version, timeout_seconds=1)] == []
E
    own_down
}

check_211() { # what a GitOps tool does again and again changes nothing
    # Argo CD and Flux are not here; both apply on the server and compare a dry run of that with what is stored.
    local n before
    sandbox looped '.spec.service = true' >"$WORK/a.json"
    for n in 1 2 3; do
        kc apply --server-side --field-manager=argocd-controller -f "$WORK/a.json"
        is 0 $RC
        [ $n != 1 ] || before=$(stored looped .metadata.resourceVersion)
        kc diff --server-side --field-manager=argocd-controller -f "$WORK/a.json"
        is "0 " "$RC $OUT"
    done
    is "$before" "$(stored looped .metadata.resourceVersion)"
}

check_212() { # too many reads at once are told when to come again
    certificate reader /CN=contract-reader
    kubectl create clusterrolebinding "$NS-reader" --clusterrole view --user contract-reader >/dev/null
    own_up --max-requests-inflight=5 || return
    may_read() { IDENTITY=reader own GET "$LIST" && [ "$CODE" = 200 ]; }
    soon 12 may_read
    etcd_signal STOP # so that reads stay in flight
    local n
    for n in {1..10}; do
        curl -s --max-time 20 --cacert "${CA[own]}" --cert "$WORK/reader.crt" --key "$WORK/reader.key" -D "$WORK/read-$n" -o /dev/null "${URL[own]}$LIST" &
    done
    some_are_refused() { cat "$WORK"/read-* | grep -iE '^HTTP/[0-9.]+ 429'; }
    soon 5 some_are_refused
    like '^[Rr]etry-[Aa]fter: 1' "$(tr -d '\r' < <(cat "$WORK"/read-*))"
    kubectl --server "${URL[own]}" --certificate-authority "${CA[own]}" --client-certificate "$WORK/reader.crt" --client-key "$WORK/reader.key" \
        get --raw "$LIST" >"$WORK/kubectl" 2>&1 &
    local reader=$!
    sleep 1
    etcd_signal CONT
    wait $reader || fail "kubectl gave up: $(<"$WORK/kubectl")"
    has SandboxList "$(<"$WORK/kubectl")"
    kubectl delete clusterrolebinding "$NS-reader" >/dev/null
}

check_214() { # a request that takes too long is 504
    own_down
    own_up --request-timeout=3 || return
    etcd_signal STOP
    own POST "$LIST" "$(sandbox slow)"
    etcd_signal CONT
    # 60 s is the default; three are as good.
    code 504 500
    took 6 "$SECONDS_TAKEN"
    is Status "$(q .kind)"
}

# read_on SECONDS: reads one object and the list again and again; what it got, one line each.
read_on() {
    local end=$((SECONDS + $1))
    while [ $SECONDS -lt $end ]; do
        MAX_TIME=10 own GET "$LIST"
        echo "$CODE $([ "$CODE" = 200 ] && q '.items | length')"
        MAX_TIME=10 own GET "$LIST/kept"
        echo "$CODE get"
        sleep 1
    done
}

check_215() { # without etcd for 30 s: no 404, no empty list, and it goes on by itself
    own_down
    own_up || return
    within 20 eval 'own POST "$LIST" "$(sandbox kept)" && [ "$CODE" = 201 ]'
    own GET "$LIST"
    VIA=own watch_open through "$LIST?watch=true&resourceVersion=$(version)"
    etcd_stop "$ETCD_DIR"
    read_on 30 >"$WORK/read" 2>&1
    ETCD=$CLUSTER_BIN/etcd etcd_start "$ETCD_DIR" >/dev/null || fail "etcd does not start again"
    is "" "$(grep -E '^404|^200 0$' "$WORK/read")"
    like '^50[03] ' "$(<"$WORK/read")"
    made_again() { own POST "$LIST" "$(sandbox "again-$RANDOM")" && [ "$CODE" = 201 ]; }
    soon 15 made_again
    came through 1
    is ADDED "$(events through .type | sort -u)" # the same watch
    watch_close through
}

alive() { own GET /livez && [ "$CODE" = 200 ]; }
check_216() { # clients without manners hurt nobody
    own_down
    own_up || return
    local pid=$OWN_PID abuser slowest=0
    python3 "$HERE/helper.py" abuse --to "127.0.0.1:$OWN_PORT" --seconds 6 >"$WORK/abuse" 2>&1 &
    abuser=$!
    PIDS+=("$abuser")
    sleep 1
    while kill -0 $abuser 2>/dev/null; do
        own GET "$LIST"
        code 200 || break
        slowest=$(printf '%s\n%s\n' "$slowest" "$SECONDS_TAKEN" | sort -g | tail -n 1)
        sleep 0.2
    done
    wait $abuser || fail "$(tail -n 3 "$WORK/abuse")"
    took 2 "$slowest" "the slowest request beside them"
    kill -0 "$pid" 2>/dev/null || fail "the server has ended: $(tail -n 3 "$WORK/own.log")"
}

run_checks
