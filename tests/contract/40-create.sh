# Create, get, and the rules of metadata.
. "$(dirname "$0")/lib.sh"

create() { api POST "$B" "$(sandbox "$@")"; }

check_65() { # create
    create a65
    code 201
    only aggregator || return
    sandbox a65b >"$WORK/a.json"
    kc create -f "$WORK/a.json"
    is "0 sandbox.agents.x-k8s.io/a65b created" "$RC $OUT"
}

check_66() { # what the server fills in
    make a66
    api GET "$B/a66"
    like '^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$' "$(q .metadata.uid)"
    like '^20[0-9]{2}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}Z$' "$(q .metadata.creationTimestamp)"
    like '^[1-9][0-9]*$' "$(version)"
    is "1 $NS null" "$(q '.metadata | "\(.generation) \(.namespace) \(.selfLink)"')"
}

check_67() { # a second create is AlreadyExists
    make a67
    create a67
    refused 409 AlreadyExists 'sandboxes.agents.x-k8s.io "a67" already exists'
    is "a67 agents.x-k8s.io sandboxes" "$(q '.details | "\(.name) \(.group) \(.kind)"')"
    only aggregator || return
    sandbox a67 >"$WORK/a.json"
    kc create -f "$WORK/a.json"
    is 1 $RC
    like '^Error from server \(AlreadyExists\): .*sandboxes.agents.x-k8s.io "a67" already exists' "$OUT"
}

check_68() { # a resourceVersion is refused
    create a68 '.metadata.resourceVersion = "5"'
    refused 500 none "resourceVersion should not be set on objects to be created"
}

check_69() { # a client's uid, time and generation are replaced
    create a69 '.metadata += {uid: "mine", creationTimestamp: "2001-01-01T00:00:00Z", generation: 7, selfLink: "/x"}'
    code 201
    is 36 "$(q '.metadata.uid | length')"
    hasnt 2001 "$(q .metadata.creationTimestamp)"
    is "1 null" "$(q '.metadata | "\(.generation) \(.selfLink)"')"
}

check_70() { # status is not taken
    create a70 '.status = {serviceFQDN: "x"}'
    is "201 null" "$CODE $(q .status)"
    is null "$(stored a70 .status)"
}

check_71() { # generateName, a hundred at once
    sandbox x 'del(.metadata.name) | .metadata.generateName = "t-"' >"$WORK/generate"
    seq 100 | sed "s|.*|url=\"${URL[$ROAD]}$B\"\noutput=/dev/null|" >"$WORK/hundred"
    curl -sSZ --parallel-max 20 -A contract/1 --cacert "${CA[$ROAD]}" --cert "$WORK/admin.crt" --key "$WORK/admin.key" -H 'Content-Type: application/json' \
        --data-binary "@$WORK/generate" -K "$WORK/hundred" 2>"$WORK/curl" || fail "$(<"$WORK/curl")"
    api GET "$B"
    is 100 "$(q '.items[].metadata.name' | grep -cE '^t-[bcdfghjklmnpqrstvwxz2456789]{5}$')"
}

check_72() { # a long generateName is cut to 63
    create x "del(.metadata.name) | .metadata.generateName = \"$(printf 'g%.0s' {1..70})\""
    is "201 63" "$CODE $(q '.metadata.name | length')"
}

check_73() { # another namespace in the body
    create a73 '.metadata.namespace = "other"'
    refused 400 BadRequest "the namespace of the provided object does not match the namespace sent on the request"
}

check_74() { # a namespace that is not there
    api POST "$A/namespaces/nowhere/sandboxes" "$(sandbox a)"
    refused 404 NotFound 'namespaces "nowhere" not found'
}

check_75() { # a namespace that is going
    local going=$NS-going
    kubectl create namespace "$going" >/dev/null
    kubectl -n "$going" create configmap hold >/dev/null
    kubectl -n "$going" patch configmap hold --type merge -p '{"metadata":{"finalizers":["contract.test/hold"]}}' >/dev/null
    kubectl delete namespace "$going" --wait=false >/dev/null
    api POST "$A/namespaces/$going/sandboxes" "$(sandbox a)"
    refused 403 Forbidden "unable to create new content in namespace $going because it is being terminated"
    cause NamespaceTerminating metadata.namespace "namespace $going is being terminated"
    kubectl -n "$going" patch configmap hold --type merge -p '{"metadata":{"finalizers":null}}' >/dev/null
}

check_76() { # another apiVersion
    create a76 '.apiVersion = "agents.x-k8s.io/v9"'
    refused 400 BadRequest "the API version in the data (agents.x-k8s.io/v9) does not match the expected API version (agents.x-k8s.io/v1beta1)"
}

check_77() { # another kind
    create a77 '.kind = "Foo"'
    refused 422 Invalid
    cause FieldValueInvalid kind 'Invalid value: "Foo": must be Sandbox'
}

check_78() { # names that are no DNS subdomains
    local name
    for name in a/b .. UPPER; do
        create "$name"
        refused 422 Invalid
        cause FieldValueInvalid metadata.name "Invalid value: \"$name\": a lowercase RFC 1123 subdomain must consist of"
    done
}

check_79() { # labels
    create a79 '.metadata.labels = {"-x": "v"}'
    refused 422 Invalid
    cause FieldValueInvalid metadata.labels 'Invalid value: "-x": name part must consist of'
    create a79 ".metadata.labels = {k: \"$(printf 'v%.0s' {1..64})\"}"
    refused 422 Invalid
    cause FieldValueInvalid metadata.labels
    has "must be no more than 63 bytes" "$(q .message)"
}

check_80() { # annotations of at most 256 KiB
    create a80 '.metadata.annotations = {k: ("v" * 262144)}'
    refused 422 Invalid
    cause FieldValueTooLong metadata.annotations "Too long: may not be more than 262144 bytes"
    create a80 '.metadata.annotations = {k: ("v" * 262143)}'
    code 201
}

check_81() { # owner references
    create a81 '.metadata.ownerReferences = [{apiVersion: "v1", kind: "ConfigMap", name: "a", uid: "u1", controller: true}, {apiVersion: "v1", kind: "Secret", name: "b", uid: "u2", controller: true}]'
    refused 422 Invalid "Only one reference can have Controller set to true"
    create a81 '.metadata.ownerReferences = [{apiVersion: "v1", kind: "ConfigMap", name: "a"}]'
    refused 422 Invalid
    cause FieldValueRequired "metadata.ownerReferences[0].uid" "Required value: must not be empty"
}

check_82() { # the same owner twice is stored once
    create a82 '.metadata.ownerReferences = ([{apiVersion: "v1", kind: "ConfigMap", name: "a", uid: "u1"}] | . + .)'
    is "201 1" "$CODE $(q '.metadata.ownerReferences | length')"
    warns ".metadata.ownerReferences contains duplicate entries"
    api DELETE "$B/a82"
}

check_83() { # finalizers
    create a83 '.metadata.finalizers = ["x"]'
    code 201
    warns 'prefer a domain-qualified finalizer name'
    merge "$B/a83" '{"metadata":{"finalizers":null}}'
    create a83b '.metadata.finalizers = ["a b"]'
    refused 422 Invalid
    cause FieldValueInvalid metadata.finalizers 'Invalid value: "a b"'
}

check_84() { # bodies above 3 MiB
    { sandbox a84 | head -c -1 && printf ',"x":"' && head -c 3145729 /dev/zero | tr '\0' x && printf '"}'; } | head -c 3145729 >"$WORK/big"
    api POST "$B" "@$WORK/big"
    refused 413 RequestEntityTooLarge "limit is 3145728"
}

check_85() { # broken JSON
    api POST "$B" '{"apiVersion":"agents.x-k8s.io/v1beta1","kind":"Sandbox",'
    refused 400 BadRequest "couldn't get version/kind; json parse error: "
}

check_86() { # YAML
    TYPE=application/yaml api POST "$B" 'apiVersion: agents.x-k8s.io/v1beta1
kind: Sandbox
metadata: {name: a86}
spec:
  podTemplate: {spec: {containers: [{name: main, image: a}]}}
'
    is "201 a86" "$CODE $(q .metadata.name)"
}

check_87() { # another content type
    TYPE=text/plain create a87
    refused 415 UnsupportedMediaType "application/json, application/yaml"
}

check_88() { # no content type is JSON
    TYPE=none create a88
    code 201
}

check_89() { # a string for an integer
    api POST "$W" "$(pool p89 '.spec.replicas = "two"')"
    refused 422 Invalid
    cause FieldValueTypeInvalid spec.replicas 'Invalid value: "string": spec.replicas in body must be of type integer: "string"'
    is "p89 extensions.agents.x-k8s.io SandboxWarmPool" "$(q '.details | "\(.name) \(.group) \(.kind)"')"
}

check_90() { # two mistakes are told together
    create a90 'del(.spec.podTemplate) | .spec.operatingMode = "Dreaming"'
    refused 422 Invalid
    cause FieldValueRequired spec.podTemplate "Required value"
    cause FieldValueNotSupported spec.operatingMode 'Unsupported value: "Dreaming": supported values: "Running", "Suspended"'
    only aggregator || return
    sandbox a90 'del(.spec.podTemplate) | .spec.operatingMode = "Dreaming"' >"$WORK/a.json"
    kc create -f "$WORK/a.json"
    like '^\* spec.podTemplate: Required value' "$OUT"
    like '^\* spec.operatingMode: Unsupported value' "$OUT"
}

check_91() { # what is not there
    api GET "$B/nope"
    refused 404 NotFound 'sandboxes.agents.x-k8s.io "nope" not found'
    only aggregator || return
    kc get sandbox nope
    is '1 Error from server (NotFound): sandboxes.agents.x-k8s.io "nope" not found' "$RC $OUT"
}

check_92() { # get at a version
    make a92
    api GET "$B/a92?resourceVersion=0"
    code 200
    api GET "$B/a92?resourceVersion=999999999999"
    refused 504 Timeout "Too large resource version: 999999999999"
    cause ResourceVersionTooLarge null "Too large resource version"
    took 5 "$SECONDS_TAKEN"
    below "$SECONDS_TAKEN" 2.5
}

check_93() { # indented for people
    make a93
    api GET "$B/a93" "" -A Wget
    like '^  "kind": "Sandbox",?$' "$BODY"
    api GET "$B/a93?pretty=0" "" -A Wget
    is 1 "$(wc -l <<<"$BODY")"
    api GET "$B/a93?pretty=true"
    like '^  "kind": "Sandbox",?$' "$BODY"
}

run_checks
