# Who asks, and may they: on the server's own port, which must take nobody's word for it.
. "$(dirname "$0")/lib.sh"
ROADS=direct
MASTERS=(-H 'X-Remote-User: admin' -H 'X-Remote-Group: system:masters')

prepare() {
    certificate jane /CN=jane
    certificate somebody /CN=somebody-else front-proxy-ca
    certificate added /CN=contract-proxy front-proxy-ca
    certificate posing /CN=front-proxy-client
    make a
}

check_15() { # the health paths are open to all
    anyone GET /livez
    code 200
    is ok "$BODY"
}

check_16() { # without credentials the caller is system:anonymous
    anyone GET "$B"
    refused 403 Forbidden 'User "system:anonymous" cannot list resource "sandboxes"'
}

check_17() { # a bearer token that nobody knows is 401
    anyone GET "$B" "" -H 'Authorization: Bearer bogus'
    refused 401 Unauthorized Unauthorized
}

allowed_by_token() { anyone GET "$B" "" -H "Authorization: Bearer $TOKEN" && [ "$CODE" = 200 ]; }
check_18() { # a ServiceAccount's token is decided by RBAC
    kubectl -n "$NS" create serviceaccount robot >/dev/null
    TOKEN=$(kubectl -n "$NS" create token robot)
    anyone GET "$B" "" -H "Authorization: Bearer $TOKEN"
    refused 403 Forbidden "User \"system:serviceaccount:$NS:robot\" cannot list"
    kubectl -n "$NS" create rolebinding robot --clusterrole view --serviceaccount "$NS:robot" >/dev/null
    soon 20 allowed_by_token
}

check_19() { # X-Remote headers without a certificate are ignored
    anyone GET "$B" "" "${MASTERS[@]}"
    refused 403 Forbidden 'User "system:anonymous"'
}

check_20() { # under a client certificate they are ignored as well
    IDENTITY=jane cu GET "$B" "" -H 'X-Remote-User: other'
    refused 403 Forbidden 'User "jane"'
    IDENTITY=posing cu GET "$B" "" "${MASTERS[@]}" # the front proxy's name, but another authority
    refused 403 Forbidden 'User "front-proxy-client"'
}

check_21() { # the front proxy's word is taken, and the user is system:authenticated
    cx jane GET "$B"
    refused 403 Forbidden 'User "jane"'
    cx jane GET /apis # RBAC gives this to system:authenticated only
    code 200
}

check_22() { # the front proxy without a user names nobody
    cx "" GET "$B"
    code 401 403
}

check_23() { # a name that the front proxy may not have is never trusted
    IDENTITY=somebody cu GET "$B" "" "${MASTERS[@]}"
    code 401 403
}

# The recording proxy stands between a server of our own and kube-apiserver.
recorded() { jq -c "select(.path | endswith(\"$1\")) | .body.spec" "$WORK/recorded"; }
own_recorded() {
    [ -z "$OWN_PID" ] || return 0
    helper proxy --to "$CLUSTER_API" --cert "$CLUSTER_PKI/admin.crt" --key "$CLUSTER_PKI/admin.key" --record "$WORK/recorded"
    PROXY_PID=$HELPER_PID
    cat >"$WORK/recorded.kubeconfig" <<E
apiVersion: v1
kind: Config
clusters: [{name: c, cluster: {server: "http://127.0.0.1:$HELPER_PORT"}}]
users: [{name: u, user: {}}]
contexts: [{name: c, context: {cluster: c, user: u}}]
current-context: c
E
    OWN_KUBECONFIG=$WORK/recorded.kubeconfig
    own_up
}

check_24() { # groups and extra of the front proxy reach the SubjectAccessReview
    own_recorded || return
    VIA=own cx u GET "$B" "" -H 'X-Remote-Group: a' -H 'X-Remote-Group: b' -H 'X-Remote-Extra-Example.com%2fK: v'
    code 403
    local review
    review=$(recorded /subjectaccessreviews | jq -c 'select(.user == "u")' | tail -n 1)
    is '["a","b","system:authenticated"]' "$(jq -c '.groups | sort' <<<"$review")"
    is '["v"]' "$(jq -c '.extra["example.com/k"]' <<<"$review")"
    is "$NS list agents.x-k8s.io v1beta1 sandboxes" "$(jq -r '.resourceAttributes | "\(.namespace) \(.verb) \(.group) \(.version) \(.resource)"' <<<"$review")"
}

trusts_added() { IDENTITY=added cu GET "$B" "" "${MASTERS[@]}" && [ "$CODE" = 200 ]; }
check_25() { # a change of the allowed names takes effect without a restart
    local names
    IDENTITY=added cu GET "$B" "" "${MASTERS[@]}"
    code 401 403
    names=$(kubectl -n kube-system get configmap extension-apiserver-authentication -o jsonpath='{.data.requestheader-allowed-names}')
    allow_names "$(jq -c '. + ["contract-proxy"]' <<<"$names")"
    soon 10 trusts_added
    allow_names "$names"
}
allow_names() {
    kubectl -n kube-system patch configmap extension-apiserver-authentication --type merge \
        -p "$(jq -cn --arg v "$1" '{data: {"requestheader-allowed-names": $v}}')" >/dev/null
}

check_26() { # system:aggregator, without any group, gets the OpenAPI documents
    cx system:aggregator GET /openapi/v3
    code 200
    cx system:aggregator GET /openapi/v2
    code 200
}

check_27() { # system:kube-aggregator, without any group, gets the discovery documents
    cx system:kube-aggregator GET "$A"
    code 200
    cx system:kube-aggregator GET /apis
    code 200
}

check_28() { # a hundred equal requests need few reviews
    own_recorded || return
    local before after began=$SECONDS
    before=$(recorded /subjectaccessreviews | wc -l)
    seq 100 | sed "s|.*|url=\"${URL[own]}$B\"\noutput=/dev/null|" >"$WORK/hundred"
    curl -sS --cacert "${CA[own]}" --cert "$WORK/jane.crt" --key "$WORK/jane.key" -K "$WORK/hundred" || fail "curl failed"
    after=$(recorded /subjectaccessreviews | wc -l)
    below $((4 + 3 * ((SECONDS - began) / 10))) $((after - before)) # what is remembered is for 10 s
}

check_29() { # a right that is taken away is gone within 10 s
    kubectl -n "$NS" create rolebinding pat --clusterrole view --user pat >/dev/null
    is_code() { cx pat GET "$B" && [ "$CODE" = "$1" ]; }
    soon 12 is_code 200
    kubectl -n "$NS" delete rolebinding pat >/dev/null
    soon 12 is_code 403
    refused 403 Forbidden 'User "pat"'
}

check_30() { # impersonation on the server's own port is refused or really carried out
    cu GET "$B" "" -H 'Impersonate-User: x'
    case $CODE in
    4*) ;;
    *) fail "answered $CODE to system:masters although x has no rights" ;;
    esac
    IDENTITY=jane cu GET "$B" "" -H 'Impersonate-User: admin' -H 'Impersonate-Group: system:masters'
    code 400 403
}

check_31() { # resourceNames hold for the watch of one object
    role nora get,list,watch sandboxes.agents.x-k8s.io --resource-name a
    watch_as_nora() { cx nora GET "$B?watch=true&fieldSelector=metadata.name%3Da&timeoutSeconds=1" && [ "$CODE" = 200 ]; }
    soon 12 watch_as_nora
    has ADDED "$BODY"
    cx nora GET "$B?watch=true&timeoutSeconds=1"
    refused 403 Forbidden 'User "nora" cannot watch resource "sandboxes"'
    kubectl -n "$NS" get sandbox a -w --as nora >"$WORK/nora" 2>&1 &
    local watcher=$!
    PIDS+=($watcher)
    soon 5 has_lines "$WORK/nora" 2 # headings, and the object as it is
    # kubectl begins the watch later, and leaves out its first event.
    seen_by_nora() { merge "$B/a" "{\"metadata\":{\"annotations\":{\"seen\":\"$EPOCHREALTIME\"}}}"; has_lines "$WORK/nora" 3; }
    soon 5 seen_by_nora
    hasnt Forbidden "$(<"$WORK/nora")"
    kill $watcher
    kc get sandboxes -w --as nora
    is 1 $RC
    has Forbidden "$OUT"
}

check_32() { # rights on sandboxes/status alone are not rights on sandboxes
    role stan get,patch sandboxes.agents.x-k8s.io/status
    patched() { TYPE=application/merge-patch+json cx stan PATCH "$B/a/status" '{"status":{"conditions":[]}}' && [ "$CODE" = 200 ]; }
    soon 12 patched
    TYPE=application/merge-patch+json cx stan PATCH "$B/a" '{"metadata":{"labels":{"k":"v"}}}'
    refused 403 Forbidden 'User "stan" cannot patch resource "sandboxes"'
}

check_33() { # an apply that would create needs the right to create
    role paul get,patch sandboxes.agents.x-k8s.io
    applied() { TYPE=application/apply-patch+yaml cx paul PATCH "$B/a?fieldManager=m&force=true" "$(sandbox a)" && [ "$CODE" = 200 ]; }
    soon 12 applied
    TYPE=application/apply-patch+yaml cx paul PATCH "$B/new?fieldManager=m" "$(sandbox new)"
    refused 403 Forbidden 'User "paul" cannot create resource "sandboxes"'
    sandbox new >"$WORK/new.json"
    kc apply --server-side -f "$WORK/new.json" --as paul
    is 1 $RC
    has 'cannot create resource "sandboxes"' "$OUT"
}

check_34() { # without reviews nobody is let in
    own_recorded || return
    kill "$PROXY_PID"
    wait "$PROXY_PID" 2>/dev/null
    local unseen=$A/namespaces/$NS-unseen/sandboxes # what was reviewed before is remembered
    MAX_TIME=40 IDENTITY=jane own GET "$unseen"
    code 401 403 500 503
    MAX_TIME=40 IDENTITY=nobody own GET "$B" "" -H "Authorization: Bearer unseen-$RANDOM"
    code 401 500 503
    MAX_TIME=40 VIA=own cx jane GET "$unseen"
    code 401 403 500 503
}

run_checks
