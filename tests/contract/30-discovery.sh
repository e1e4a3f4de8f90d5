# Discovery, OpenAPI and the other paths that are about no object.
. "$(dirname "$0")/lib.sh"
ROADS=aggregator
V2='application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList'
V2BETA1='application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList'

check_35() { # kubectl api-resources lists sandboxes
    kc api-resources --api-group=agents.x-k8s.io --no-headers
    is "sandboxes sandbox agents.x-k8s.io/v1beta1 true Sandbox" "$(tr -s ' ' <<<"$OUT")"
}

check_36() { # and the three kinds of the other group
    kc api-resources --api-group=extensions.agents.x-k8s.io --no-headers
    is 3 "$(wc -l <<<"$OUT")"
    like '^sandboxwarmpools +swp +extensions.agents.x-k8s.io/v1beta1 +true +SandboxWarmPool$' "$OUT"
    like '^sandboxclaims +sandboxclaim +extensions.agents.x-k8s.io/v1beta1 +true +SandboxClaim$' "$OUT"
    like '^sandboxtemplates +sandboxtemplate +extensions.agents.x-k8s.io/v1beta1 +true +SandboxTemplate$' "$OUT"
}

check_37() { # kubectl api-versions has both group-versions
    kc api-versions
    is "agents.x-k8s.io/v1beta1 extensions.agents.x-k8s.io/v1beta1" "$(grep 'agents.x-k8s.io' <<<"$OUT" | xargs)"
}

check_38() { # short, singular and full names resolve
    local name
    for name in swp sandboxwarmpool sandboxwarmpools sandboxwarmpools.v1beta1.extensions.agents.x-k8s.io sandbox sandboxes.agents.x-k8s.io; do
        kc get "$name"
        is "$name: 0 No resources found in $NS namespace." "$name: $RC $OUT"
    done
}

check_39() { # aggregated discovery: its own media type, a quoted ETag
    ACCEPT=$V2 cu GET /apis
    code 200
    is "$V2" "$(header Content-Type)"
    is "apidiscovery.k8s.io/v2 APIGroupDiscoveryList" "$(q '"\(.apiVersion) \(.kind)"')"
    is "agents.x-k8s.io extensions.agents.x-k8s.io" "$(q '[.items[].metadata.name] | join(" ")')"
    is true "$(q '[.items[].versions[].resources[] | .responseKind != null and .scope == "Namespaced"] | all')"
    like '^"[^"]+"$' "$(header ETag)"
    is "Accept" "$(header Vary)"
    is public "$(header Cache-Control)"
}

check_40() { # its ETag again is 304 without a body
    ACCEPT=$V2 cu GET /apis
    ACCEPT=$V2 cu GET /apis "" -H "If-None-Match: $(header ETag)"
    code 304
    is "" "$BODY"
}

check_41() { # the v2beta1 form is still served
    ACCEPT=$V2BETA1 cu GET /apis
    is "200 apidiscovery.k8s.io/v2beta1" "$CODE $(q .apiVersion)"
    is "$V2BETA1" "$(header Content-Type)"
    ACCEPT="$V2BETA1,$V2" cu GET /apis # the order of the clauses decides
    is apidiscovery.k8s.io/v2beta1 "$(q .apiVersion)"
    ACCEPT="$V2,$V2BETA1,application/json" cu GET /apis
    is apidiscovery.k8s.io/v2 "$(q .apiVersion)"
}

check_42() { # plain JSON is an APIGroupList of two
    ACCEPT=application/json cu GET /apis
    is "APIGroupList v1 agents.x-k8s.io extensions.agents.x-k8s.io" "$(q '"\(.kind) \(.apiVersion) \([.groups[].name] | join(" "))"')"
}

check_43() { # an unknown parameter of the media type is ignored
    ACCEPT="$V2;profile=nopeer" cu GET /apis
    is "200 apidiscovery.k8s.io/v2" "$CODE $(q .apiVersion)"
}

check_44() { # scale says that it is autoscaling/v1 Scale
    cu GET "$E"
    is autoscalingv1Scale "$(q '.resources[] | select(.name == "sandboxwarmpools/scale") | .group + .version + .kind')"
    is 6 "$(q '.resources | length')"
}

check_45() { # kube-apiserver's own document has both groups, current
    ACCEPT=$V2 ca GET /apis
    is "agents.x-k8s.io Current
extensions.agents.x-k8s.io Current" "$(q '.items[] | select(.metadata.name | endswith("agents.x-k8s.io")) | "\(.metadata.name) \([.versions[].freshness] | join(","))"' | sort)"
}

check_46() { # the group's document
    cu GET /apis/agents.x-k8s.io
    is "APIGroup agents.x-k8s.io v1beta1 agents.x-k8s.io/v1beta1" "$(q '"\(.kind) \(.name) \(.preferredVersion.version) \(.versions[0].groupVersion)"')"
}

check_47() { # OpenAPI v2 is Swagger 2.0 of our own paths
    cu GET /openapi/v2
    is 2.0 "$(q .swagger)"
    is true "$(q '[.paths | keys[] | startswith("/apis/")] | all')"
    local etag
    etag=$(header ETag)
    cu GET /openapi/v2 "" -H "If-None-Match: $etag"
    code 304
}

merged() {
    ca GET /openapi/v2
    q '.definitions | keys[]' | grep -E 'agents.*Sandbox$'
}
check_48() { # kube-apiserver merges it within two minutes
    soon 120 merged
    # A parser of the whole has one type for a kind, as Argo CD's and managedfields.NewGVKParser have.
    is '[]' "$(q -c '[.definitions[]["x-kubernetes-group-version-kind"] // [] | .[]] | group_by(.) | map(select(length > 1)[0])')"
}

check_49() { # the index of OpenAPI v3 has exactly our group-versions
    cu GET /openapi/v3
    is '["apis/agents.x-k8s.io/v1beta1","apis/extensions.agents.x-k8s.io/v1beta1"]' "$(q -c '.paths | keys')"
}

document() { # PATH-OF-THE-GROUP-VERSION: fetched by the link in the index
    cu GET /openapi/v3
    local link
    link=$(q --arg p "${1#/}" '.paths[$p].serverRelativeURL')
    cu GET "$link" "" "${@:2}"
}

check_50() { # its links lead to documents that may be kept for ever
    local gv
    for gv in "$A" "$E"; do
        document "$gv"
        code 200
        like public "$(header Cache-Control)"
        like immutable "$(header Cache-Control)"
        is true "$(q '[.components.schemas | to_entries[] | select(.key | test("Sandbox[A-Za-z]*$")) | .value | select(.properties.apiVersion) | ."x-kubernetes-group-version-kind" | type == "array"] | all and length >= 2')"
    done
    ca GET "/openapi/v3$A"
    code 200
}

check_51() { # a wrong hash is answered with the current document, not kept
    cu GET "/openapi/v3$A?hash=00"
    code 200
    hasnt immutable "$(header Cache-Control)"
    is "" "$REDIRECT"
}

check_53() { # kubectl explain
    kc explain sandbox.spec
    is 0 $RC
    like '^GROUP: +agents.x-k8s.io$' "$OUT"
    like '^KIND: +Sandbox$' "$OUT"
    like '^VERSION: +v1beta1$' "$OUT"
    like '^ +podTemplate.*-required-$' "$OUT"
    is "" "$(grep -A1 -E '^  [a-zA-Z]+\s' <<<"$OUT" | grep -B1 -E '^\s*$' | grep -E '^  [a-z]')" # each field has a description
}

check_54() { # kubectl explain --recursive shows the whole tree
    kc explain sandbox --recursive
    is 0 $RC
    below "$(wc -l <<<"$OUT")" 500
    like 'readinessProbe' "$OUT"
}

check_55() { # kubectl explain of what is not there
    kc explain sandboxclaim.spec.nope
    is '1 error: field "nope" does not exist' "$RC $(tail -n 1 <<<"$OUT")"
}

# An old kubectl: $KUBECTL_OLD, or one that stands beside a kubectl of this machine.
old_kubectl() {
    local p
    for p in "${KUBECTL_OLD:-}" "$(which -a kubectl | while read -r p; do ls "$(dirname "$(readlink -f "$p")")"/kubectl.1.28 2>/dev/null; done | head -n 1)"; do
        if [ -n "$p" ] && [ -x "$p" ]; then echo "$p" && return; fi
    done
    return 1
}
check_56() { # kubectl 1.28 explains and gets
    local old
    old=$(old_kubectl) || { skip "no kubectl 1.28 on this machine (KUBECTL_OLD names one)" && return; }
    OUT=$("$old" explain sandbox 2>&1) || fail "$OUT"
    like '^ +spec' "$OUT"
    OUT=$("$old" -n "$NS" get sandboxes 2>&1) || fail "$OUT"
    OUT=$("$old" explain sandbox.spec --output plaintext-openapiv2 2>&1) || fail "$OUT"
    like '^ +podTemplate' "$OUT"
}

check_57() { # no strategic merge patch in the v3 document
    local gv
    for gv in "$A" "$E"; do
        document "$gv"
        hasnt strategic "$(q '[.paths[].patch.requestBody.content | keys?] | flatten | unique | join(" ")')"
        has application/merge-patch+json "$(q '[.paths[].patch.requestBody.content | keys?] | flatten | unique | join(" ")')"
    done
}

check_58() { # every PATCH declares the parameters that kubectl looks for
    local gv
    for gv in "$A" "$E"; do
        document "$gv"
        is true "$(q '[.paths[] | select(.patch) | [((.parameters // []) + .patch.parameters)[] | select(.in == "query") | .name] | contains(["dryRun", "fieldManager", "fieldValidation", "force"])] | all and length > 0')"
    done
}

check_59() { # the version parses
    cu GET /version
    like '^v[0-9]+\.[0-9]+\.[0-9]+' "$(q .gitVersion)"
    is true "$(q '[has("major", "minor", "gitCommit", "gitTreeState", "buildDate", "goVersion", "compiler", "platform")] | all')"
}

check_60() { # readyz?verbose tells each check
    cu GET '/readyz?verbose'
    code 200
    like '^\[\+\]etcd ok$' "$BODY"
    like '^\[\+\]ping ok$' "$BODY"
    is "readyz check passed" "$(tail -n 1 <<<"$BODY")"
    is "" "$(grep -vE '^\[\+\][^ ]+ ok$|^readyz check passed$' <<<"$BODY")"
    cu GET '/readyz?verbose&exclude=etcd'
    like '^\[\+\]etcd excluded: ok$' "$BODY"
}

not_ready() { own GET /readyz && [ "$CODE" = 500 ]; }
check_61() { # without etcd it is not ready, but lives
    own_up || return
    etcd_signal STOP
    soon 30 not_ready
    has '[-]etcd failed: reason withheld' "$BODY"
    is "readyz check failed" "$(tail -n 1 <<<"$BODY")"
    own GET /livez
    code 200
    etcd_signal CONT
    soon 30 own_is_ready
}

check_62() { # metrics, for those who may
    cu GET /metrics
    code 200
    like '^apiserver_request_total\{' "$BODY"
    anyone GET /metrics
    code 403
}

check_63() { # another version is 404
    ca GET /apis/agents.x-k8s.io/v1
    code 404
    cu GET /apis/agents.x-k8s.io/v1
    code 404
}

check_64() { # another subresource is 404
    make a
    cu GET "$B/a/nope"
    refused 404 NotFound 'sandboxes.agents.x-k8s.io "a" not found'
    cu GET "$B/a/scale"
    refused 404 NotFound
}

run_checks
