# Registration with the aggregator, and what a proxied request looks like.
. "$(dirname "$0")/lib.sh"
ROADS=aggregator

available() { kubectl get apiservice "$1" -o 'jsonpath={.status.conditions[?(@.type=="Available")].status}'; }

check_1() { # agents.x-k8s.io is Available
    is True "$(available v1beta1.agents.x-k8s.io)"
}

check_2() { # extensions.agents.x-k8s.io is Available
    is True "$(available v1beta1.extensions.agents.x-k8s.io)"
}

check_8() { # the availability check's request is answered within 100 ms
    prompt() { cu GET "$A" && [ "$CODE" = 200 ] && less "$SECONDS_TAKEN" 0.1; }
    soon 6 prompt # the first that is: other tests run on this machine
}

check_9() { # a slash at the end is no redirect
    cu GET "$A/"
    code 200
}

check_10() { # no answer redirects
    local path
    for path in "$A" "$A/" "$B" "$B/" "$B/none" "$A/namespaces//sandboxes" /apis /apis/ /openapi/v3 "/openapi/v3$A?hash=wrong" /version /livez/ / /nowhere; do
        cu GET "$path"
        is "$path " "$path $REDIRECT"
        [ "${CODE:0:1}" != 3 ] || fail "$path answers $CODE"
    done
    ca GET "$B/"
    is "" "$REDIRECT"
}

check_11() { # exactly one Audit-Id in an answer
    ca GET "$B"
    is 1 "$(header Audit-Id | wc -l)"
    is "no-cache, private" "$(header Cache-Control)"
    cu GET "$B"
    is 1 "$(header Audit-Id | wc -l)"
}

logged() { kubectl -n "$SYSTEM" logs -l app.kubernetes.io/component=server --since 2m --tail -1 | grep -F "$1"; }
check_12() { # the caller's Audit-Id is the one in the server's log
    local id=contract-$RANDOM$RANDOM
    ca GET "$B" "" -H "Audit-Id: $id"
    is "$id" "$(header Audit-Id)"
    soon 5 logged "$id"
}

check_13() { # a user without rights gets a 403 that names her
    kc get sandboxes --as=jane
    is 1 $RC
    has "Error from server (Forbidden): sandboxes.agents.x-k8s.io is forbidden: User \"jane\" cannot list resource \"sandboxes\" in API group \"agents.x-k8s.io\" in the namespace \"$NS\"" "$OUT"
}

check_14() { # a right that is granted counts within 10 s
    role jane list,get sandboxes.agents.x-k8s.io
    soon 10 kubectl -n "$NS" get sandboxes --as=jane
}

run_checks
