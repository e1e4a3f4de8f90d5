#!/bin/bash
# What may not be written of the kinds of Kubernetes that a server without a cluster serves: the same objects, wrong in one way each
# (core-rules.cases), go to it and to a real kube-apiserver, and the answers must be the same.
# shellcheck shell=bash source=tests/func/lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=tests/lib/kube.sh
. "$ROOT/tests/lib/kube.sh"
kube_is_built || { skip "$(basename "$0")" "$NO_KUBE" && exit 0; }
CASES=$ROOT/tests/func/core-rules.cases
CORE=/api/v1/namespaces/default

# good KIND: one that both take.
good() {
    case $1 in
    pods) echo '{"kind":"Pod","spec":{"schedulerName":"nobody","containers":[{"name":"a","image":"x"}]}}' ;;
    services) echo '{"kind":"Service","spec":{"clusterIP":"None","ports":[{"port":80}]}}' ;;
    persistentvolumeclaims) echo '{"kind":"PersistentVolumeClaim","spec":{"storageClassName":"none","accessModes":["ReadWriteOnce"],"resources":{"requests":{"storage":"1Gi"}}}}' ;;
    configmaps) echo '{"kind":"ConfigMap","data":{"a":"b"},"immutable":true}' ;;
    secrets) echo '{"kind":"Secret","data":{"a":"YQ=="},"type":"Opaque","immutable":true}' ;;
    esac | jq -c '. + {apiVersion: "v1", metadata: {name: "old"}}'
}

# ask METHOD PATH FILE: body of the server's answer into $WORK/here, kube-apiserver's into $WORK/there.
ask() {
    curl -sS --max-time 60 --cacert "$DATA/ca.crt" --cert "$DATA/admin.crt" --key "$DATA/admin.key" -X "$1" "${JSON[@]}" -d "@$3" "$URL$2" >"$WORK/here"
    curl -sS --max-time 60 --cacert "$WORK/kube-ca.crt" --cert "$WORK/admin.crt" --key "$WORK/admin.key" -X "$1" "${JSON[@]}" -d "@$3" "$KUBE_URL$2" >"$WORK/there"
}

# said FILE WHAT: what of a Status is compared.
said() {
    jq -c --arg what "$2" 'if .kind != "Status" then "taken" elif $what == "code" then .code else [.code, .message, .details.causes] end' "$1" 2>&1
}

kube_up
cp "$WORK/serving-ca.crt" "$WORK/kube-ca.crt"
standalone_up
for kind in pods services persistentvolumeclaims configmaps secrets; do
    good "$kind" >"$WORK/good"
    ask POST "$CORE/$kind" "$WORK/good"
    is "both take a good one of $kind" '"taken" "taken"' "$(said "$WORK/here" all) $(said "$WORK/there" all)"
done
while IFS=$'\t' read -r name program; do
    what=all kind=${name#code }
    [ "$kind" = "$name" ] || what=code
    case $kind in
    *=) method=PUT path=$CORE/${kind%=}/old change=. ;;
    *) method=POST path=$CORE/$kind change='.metadata.name = "new"' ;;
    esac
    good "${kind%=}" | jq -c "$change | $program" >"$WORK/body"
    ask $method "$path?dryRun=All" "$WORK/body"
    is "$name: $program" "$(said "$WORK/there" $what)" "$(said "$WORK/here" $what)"
done < <(grep -v '^#' "$CASES")
