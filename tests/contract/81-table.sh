# Tables, metadata, YAML, compression: other forms of the same objects.
. "$(dirname "$0")/lib.sh"
TABLE='application/json;as=Table;v=v1;g=meta.k8s.io'

prepare() {
    make t1 '.metadata.labels = {a: "b"}'
    sleep 1
    make t2
}

check_161() { # kubectl get
    only aggregator || return
    kc get sandboxes
    like '^NAME +READY +REASON +AGE$' "$OUT"
    like '^t1 +([a-zA-Z<>]+ +)*[0-9]+s$' "$OUT"
}

check_162() { # all namespaces, labels, sorted
    only aggregator || return
    OUT=$(kubectl get sandboxes -A --show-labels --sort-by=.metadata.creationTimestamp 2>&1)
    like '^NAMESPACE +NAME +READY +REASON +AGE +LABELS$' "$OUT"
    like "^$NS +t1 .* a=b\$" "$OUT"
    like "^$NS +t2 .* <none>\$" "$OUT"
    is "t1 t2" "$(awk -v ns="$NS" '$1 == ns { print $2 }' <<<"$OUT" | grep -E '^t[12]$' | xargs)"
}

check_163() { # includeObject
    ACCEPT=$TABLE api GET "$B?includeObject=None"
    is "200 null" "$CODE $(q '[.rows[].object] | unique | .[]')"
    ACCEPT=$TABLE api GET "$B?includeObject=Object"
    is "200 Sandbox true" "$CODE $(q '.rows[0].object | "\(.kind) \(.spec != null)"')"
    ACCEPT=$TABLE api GET "$B?includeObject=Metadata"
    is "200 PartialObjectMetadata false" "$CODE $(q '.rows[0].object | "\(.kind) \(.spec != null)"')"
    ACCEPT=$TABLE api GET "$B?includeObject=X"
    refused 400 BadRequest "must be 'Metadata', 'Object', 'None', or empty"
}

check_164() { # one object as a table
    ACCEPT=$TABLE api GET "$B/t1"
    is "200 Table meta.k8s.io/v1 1 t1" "$CODE $(q '"\(.kind) \(.apiVersion) \(.rows | length) \(.rows[0].cells[0])"')"
    is "Name Ready Reason Age" "$(q '[.columnDefinitions[].name] | join(" ")')"
    is "name" "$(q '.columnDefinitions[0].format')"
}

check_165() { # what the metadata client asks for
    local protobuf='application/vnd.kubernetes.protobuf;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,'
    if asks_kubernetes; then protobuf=''; fi
    ACCEPT="${protobuf}application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json" api GET "$B"
    is "200 PartialObjectMetadataList meta.k8s.io/v1 PartialObjectMetadata null" "$CODE $(q '"\(.kind) \(.apiVersion) \(.items[0].kind) \(.items[0].spec)"')"
    is application/json "$(header Content-Type)"
}

check_166() { # the form of one object for a list
    ACCEPT='application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1' api GET "$B"
    refused 406 NotAcceptable "you requested PartialObjectMetadata, but the requested object is a list"
}

check_167() { # protobuf is not served
    ACCEPT=application/vnd.kubernetes.protobuf api GET "$B/t1"
    asks_kubernetes || refused 406 NotAcceptable "only the following media types are accepted: application/json, application/yaml"
    code 406 # kube-apiserver writes this Status in protobuf
    ACCEPT=application/vnd.kubernetes.protobuf,application/json api GET "$B/t1"
    is "200 application/json" "$CODE $(header Content-Type)"
}

check_168() { # YAML
    ACCEPT=application/yaml api GET "$B/t1"
    is "200 application/yaml" "$CODE $(header Content-Type)"
    like '^kind: Sandbox$' "$BODY"
    like '^  name: t1$' "$BODY"
    ACCEPT=application/yaml api GET "$B?watch=true&timeoutSeconds=1"
    code 406
}

check_169() { # large answers are compressed
    local n
    for n in 1 2 3 4; do api POST "$T" "$(template "g$n" '.metadata.annotations = {k: ("v" * 250000)}')"; done
    api GET "$T" "" -H 'Accept-Encoding: gzip'
    is "200 gzip" "$CODE $(header Content-Encoding)"
    below "$(gzip -dc "$WORK/body" | wc -c)" 1000000
    api GET "$B/t1" "" -H 'Accept-Encoding: gzip'
    is "200 " "$CODE $(header Content-Encoding)"
    api DELETE "$T"
}

run_checks
