#!/bin/bash
# kubectl as it comes, the cluster's own and an older one: each command that reads or writes objects, on our kinds.
# shellcheck source=tests/compat/lib.sh
. "$(dirname "$0")/lib.sh"

# idle NAME [LINE-OF-SPEC]: a Sandbox without a pod.
idle() { sandbox "$1" "${2:-operatingMode: Suspended}"; }
# rc EXPECTED TEXT COMMAND...: its exit code; what it says is in OUT.
rc() {
    local expected=$1 text=$2 code=0
    shift 2
    OUT=$("$@" 2>&1) || code=$?
    if [ $code = "$expected" ]; then ok "$text"; else not_ok "$text" "exit code $code, not $expected: $OUT"; fi
}
# editor LINE...: a program that edits a file by these commands of sed, as $EDITOR.
editor() {
    printf '#!/bin/sh\nsed -i %s "$1"\n' "$(printf -- "-e '%s' " "$@")" >"$WORK/editor"
    chmod +x "$WORK/editor"
    export KUBE_EDITOR=$WORK/editor
}

# seen_again: a change of an object that is watched alone shows. kubectl begins such a watch after it has shown the object, and leaves out the
# first event, which may be the change.
seen_again() {
    k label sandbox read-2 --overwrite "seen=now-${EPOCHREALTIME/[!0-9]/}" >/dev/null
    grep -q '^now-' "$WORK/watch"
}

discovery() {
    OUT=$(k api-resources --no-headers)
    like "api-resources lists the kinds" '^sandboxwarmpools +swp +extensions.agents.x-k8s.io/v1beta1 +true +SandboxWarmPool$' "$OUT"
    is "all four" 4 "$(grep -c 'agents.x-k8s.io/v1beta1' <<<"$OUT")"
    is "by verb as well" 4 "$(k api-resources --verbs=deletecollection,watch -o name | grep -c agents.x-k8s.io)"
    is "none is in a category" "" "$(k api-resources --categories=all -o name | grep agents.x-k8s.io)"
    like "explain tells of a kind" '^KIND: +Sandbox$' "$(k explain sandbox)"
    like "of one field" 'FIELD: operatingMode <string>' "$(k explain sandbox.spec.operatingMode)"
    has "of all fields" "volumeClaimTemplates" "$(k explain sandbox --recursive)"
    like "of a list's elements" 'lastTransitionTime.*-required-' "$(k explain sandbox.status.conditions)"
    lacks openapi-v2 "from the older description too" || like "from the older description too" '^KIND: +SandboxWarmPool$' "$(k explain swp.spec --output=plaintext-openapiv2)"
    refused "and of no field that is not there" 'field "nonsense" does not exist' k explain sandbox.spec.nonsense
}

creating() {
    is "create" "sandbox.agents.x-k8s.io/made created" "$(idle made | k create -f -)"
    rc 1 "create what is there" k create -f <(idle made)
    has "says so" 'Error from server (AlreadyExists): error when creating' "$OUT"
    has "and names it" 'sandboxes.agents.x-k8s.io "made" already exists' "$OUT"
    is "create of a dry run" "sandbox.agents.x-k8s.io/dry created (server dry run)" "$(idle dry | k create --dry-run=server -f -)"
    rc 1 "stores nothing" k get sandbox dry
    is "as the error says" 'Error from server (NotFound): sandboxes.agents.x-k8s.io "dry" not found' "$OUT"
    { idle wrong && echo "  nonsense: 1"; } >"$WORK/wrong.yaml"
    rc 1 "an unknown field is refused" k create -f "$WORK/wrong.yaml"
    has "with its path" 'strict decoding error: unknown field "spec.nonsense"' "$OUT"
    rc 0 "with --validate=warn it is not" k create --validate=warn -f "$WORK/wrong.yaml"
    has "but warned of" 'Warning: unknown field "spec.nonsense"' "$OUT"
    k delete sandbox wrong >/dev/null
    is "with --validate=ignore it passes in silence" "sandbox.agents.x-k8s.io/wrong created" "$(k create --validate=ignore -f "$WORK/wrong.yaml")"
    is "and is dropped" "" "$(k get sandbox wrong -o 'jsonpath={.spec.nonsense}')"
    rc 1 "a wrong value is refused" k create -f <(idle bad 'operatingMode: Sideways')
    has "with its path and what may stand there" 'spec.operatingMode: Unsupported value: "Sideways": supported values: "Running", "Suspended"' "$OUT"
    sed 's/name: main/name: [main]/' <(idle bad) >"$WORK/bad.yaml"
    rc 1 "a wrong type is refused" k create -f "$WORK/bad.yaml"
    has "by a cause" 'must be of type string' "$OUT"
}

applying() {
    is "apply makes" "sandbox.agents.x-k8s.io/applied created" "$(idle applied | k apply -f -)"
    is "the same again changes nothing" "sandbox.agents.x-k8s.io/applied unchanged" "$(idle applied | k apply -f -)"
    rc 0 "diff sees none" k diff -f <(idle applied)
    idle applied "shutdownPolicy: Delete" >"$WORK/changed.yaml"
    rc 1 "diff of a change" k diff -f "$WORK/changed.yaml"
    like "shows it" '^\+ +shutdownPolicy: Delete' "$OUT"
    rc 1 "as does diff --server-side" k diff --server-side --force-conflicts -f "$WORK/changed.yaml"
    like "with its line" '^\+ +shutdownPolicy: Delete' "$OUT"
    is "apply changes" "sandbox.agents.x-k8s.io/applied configured" "$(k apply -f "$WORK/changed.yaml")"
    is "the change is there" Delete "$(k get sandbox applied -o 'jsonpath={.spec.shutdownPolicy}')"
    idle applied | k apply -f - >/dev/null
    isnt "what is left out is gone again" Delete "$(k get sandbox applied -o 'jsonpath={.spec.shutdownPolicy}')"
    k apply -f "$WORK/changed.yaml" >/dev/null
    has "view-last-applied" "shutdownPolicy: Delete" "$(k apply view-last-applied sandbox/applied)"
    is "set-last-applied" "sandbox.agents.x-k8s.io/applied configured" "$(idle applied | k apply set-last-applied -f -)"
    like "apply --dry-run=server" 'applied (configured|unchanged) \(server dry run\)' "$(k apply --dry-run=server -f "$WORK/changed.yaml")"

    is "apply --server-side makes" "sandbox.agents.x-k8s.io/shared serverside-applied" "$(idle shared | k apply --server-side --field-manager alice -f -)"
    rc 1 "another's field is a conflict" k apply --server-side --field-manager bob -f <(idle shared "operatingMode: Running")
    has "with its owner and path" 'conflict with "alice": .spec.operatingMode' "$OUT"
    has "and kubectl's advice" "--force-conflicts" "$OUT"
    rc 0 "--force-conflicts takes it" k apply --server-side --field-manager bob --force-conflicts -f <(idle shared)
    is "and both own it" "alice bob" "$(k get sandbox shared --show-managed-fields -o json | jq -r '[.metadata.managedFields[] | select(.operation == "Apply") | .manager] | sort | join(" ")')"

    { idle one | sed 's/{name: one}/{name: one, labels: {set: x}}/' && echo --- && idle two | sed 's/{name: two}/{name: two, labels: {set: x}}/'; } >"$WORK/set.yaml"
    k apply -f "$WORK/set.yaml" >/dev/null
    rc 0 "apply --prune" k apply --prune -l set=x --prune-allowlist=agents.x-k8s.io/v1beta1/Sandbox -f <(sed '/^---/,$d' "$WORK/set.yaml")
    has "takes away what is not in the set any more" "sandbox.agents.x-k8s.io/two pruned" "$OUT"
    export KUBECTL_APPLYSET=true
    rc 0 "apply of a set with a parent" k apply --server-side --prune --applyset parent -f "$WORK/set.yaml" --force-conflicts
    rc 0 "and of less" k apply --server-side --prune --applyset parent -f <(sed '/^---/,$d' "$WORK/set.yaml")
    has "prunes as well" "sandbox.agents.x-k8s.io/two pruned" "$OUT"
    unset KUBECTL_APPLYSET
}

changing() {
    editor "s/terminationGracePeriodSeconds: 1/terminationGracePeriodSeconds: 2/"
    idle changed | k create -f - >/dev/null
    is "edit" "sandbox.agents.x-k8s.io/changed edited" "$(k edit sandbox changed)"
    is "changes what was edited" 2 "$(k get sandbox changed -o 'jsonpath={.spec.podTemplate.spec.terminationGracePeriodSeconds}')"
    editor "s/operatingMode: Suspended/operatingMode: Sideways/"
    rc 1 "edit to what is not valid is refused" k edit sandbox changed
    has "with the reason" 'is invalid' "$OUT"
    editor "/^metadata:/s/\$/\\n  labels: {edited: \"yes\"}/"
    k edit sandbox changed >/dev/null
    is "edit adds a label" yes "$(k get sandbox changed -o 'jsonpath={.metadata.labels.edited}')"
    pool edited nobody 0 | k create -f - >/dev/null

    is "patch of type merge" "sandbox.agents.x-k8s.io/changed patched" "$(k patch sandbox changed --type merge -p '{"metadata":{"labels":{"edited":null,"by":"merge"}}}')"
    is "the same again" "sandbox.agents.x-k8s.io/changed patched (no change)" "$(k patch sandbox changed --type merge -p '{"metadata":{"labels":{"by":"merge"}}}')"
    rc 0 "patch of type json" k patch sandbox changed --type json -p '[{"op":"test","path":"/metadata/labels/by","value":"merge"},{"op":"replace","path":"/metadata/labels/by","value":"json"}]'
    is "did what it says" '{"by":"json"}' "$(k get sandbox changed -o 'jsonpath={.metadata.labels}')"
    rc 1 "a test in it that fails" k patch sandbox changed --type json -p '[{"op":"test","path":"/metadata/labels/by","value":"merge"}]'
    has "is told" "The request is invalid: the server rejected our request due to an error in our request" "$OUT"
    rc 1 "patch of type strategic is refused" k patch sandbox changed -p '{"metadata":{"labels":{"by":"strategic"}}}'
    has "with the types there are" "accepted media types include: application/json-patch+json, application/merge-patch+json, application/apply-patch+yaml" "$OUT"
    rc 0 "patch --subresource=status" k patch sandbox changed --subresource=status --type merge -p '{"status":{"serviceFQDN":"seen.example.org"},"spec":{"operatingMode":"Running"}}'
    is "leaves the spec" Suspended "$(k get sandbox changed -o 'jsonpath={.spec.operatingMode}')"
    rc 0 "get --subresource=status" k get sandbox changed --subresource=status -o 'jsonpath={.kind}'
    rc 0 "patch --subresource=scale" k patch swp edited --subresource=scale --type merge -p '{"spec":{"replicas":1}}'
    is "scales" 1 "$(k get swp edited -o 'jsonpath={.spec.replicas}')"
    is "get --subresource=scale" Scale/1 "$(k get swp edited --subresource=scale -o 'jsonpath={.kind}/{.spec.replicas}')"
    is "scale" "sandboxwarmpool.extensions.agents.x-k8s.io/edited scaled" "$(k scale swp/edited --replicas 0 --current-replicas 1)"
    rc 1 "scale from a number that it has not" k scale swp edited --replicas 3 --current-replicas 2
    has "says which it has" "Expected replicas to be 2, was 0" "$OUT"
    rc 1 "a kind without that subresource" k scale sandbox changed --replicas 1
    has "is not found there" 'Error from server (NotFound): sandboxes.agents.x-k8s.io "changed" not found' "$OUT"

    is "label" "sandbox.agents.x-k8s.io/changed labeled" "$(k label sandbox changed a=1 b=2)"
    rc 1 "label of another value" k label sandbox changed a=2
    has "needs --overwrite" "'a' already has a value (1), and --overwrite is false" "$OUT"
    rc 0 "with it" k label sandbox changed a=2 b- --overwrite
    is "is there" "2" "$(k get sandbox changed -o 'jsonpath={.metadata.labels.a}{.metadata.labels.b}')"
    rc 1 "label of a version that is gone" k label sandbox changed c=3 --resource-version=1
    has "is a conflict" "the object has been modified; please apply your changes to the latest version and try again" "$OUT"
    rc 1 "a label that is none" k label sandbox changed 'c=a b'
    is "annotate" "sandbox.agents.x-k8s.io/changed annotated" "$(k annotate sandbox changed example.org/note='any text')"
    is "is there" "any text" "$(k get sandbox changed -o 'jsonpath={.metadata.annotations.example\.org/note}')"
    rc 0 "and away" k annotate sandboxes --all example.org/note-

    k get sandbox changed -o yaml | sed 's/terminationGracePeriodSeconds: 2/terminationGracePeriodSeconds: 3/' >"$WORK/replace.yaml"
    is "replace" "sandbox.agents.x-k8s.io/changed replaced" "$(k replace -f "$WORK/replace.yaml")"
    rc 1 "replace of what has changed" k replace -f <(sed 's/Seconds: 3/Seconds: 4/' "$WORK/replace.yaml")
    has "is a conflict" "the object has been modified; please apply your changes to the latest version and try again" "$OUT"
    local uid
    uid=$(k get sandbox changed -o 'jsonpath={.metadata.uid}')
    idle changed >"$WORK/replace.yaml"
    rc 0 "replace --force" k replace --force -f "$WORK/replace.yaml"
    isnt "makes another one" "$uid" "$(k get sandbox changed -o 'jsonpath={.metadata.uid}')"
    rc 1 "replace of what is not there" k replace -f <(idle nobody)
    has "is not found" 'sandboxes.agents.x-k8s.io "nobody" not found' "$OUT"
}

reading() {
    local n watch
    for n in 1 2 3 4 5; do idle "read-$n" | sed "s/{name: read-$n}/{name: read-$n, labels: {odd: \"$((n % 2))\", nr: \"$n\"}}/"; done | sed 's/^apiVersion/---\n&/' | k create -f - >/dev/null
    is "get -l" "read-1 read-3 read-5" "$(k get sandboxes -l odd=1 -o 'jsonpath={.items[*].metadata.name}')"
    is "get -l of a set" "read-2 read-3" "$(k get sandboxes -l 'nr in (2,3)' -o 'jsonpath={.items[*].metadata.name}')"
    is "get --field-selector" "sandbox.agents.x-k8s.io/read-2" "$(k get sandboxes --field-selector metadata.name=read-2 -o name)"
    rc 1 "of a field that is none" k get sandboxes --field-selector spec.operatingMode=Running
    has "is refused" "field label not supported: spec.operatingMode" "$OUT"
    OUT=$(k get sandboxes -l nr --chunk-size=2 -v=6)
    is "get --chunk-size asks again and again" 3 "$(grep -cE 'GET.*limit=2|verb="GET" url=.*limit=2' <<<"$OUT")"
    is "and gets all" 5 "$(grep -c '^read-' <<<"$OUT")"
    is "get --sort-by" "read-5 read-4 read-3 read-2 read-1" "$(k get sandboxes -l nr --sort-by '{.metadata.labels.nr}' --no-headers | awk '{print $1}' | tac | xargs)"
    is "get -o custom-columns" "NAME MODE read-1 Suspended" "$(k get sandbox read-1 -o custom-columns=NAME:.metadata.name,MODE:.spec.operatingMode | xargs)"
    is "get -o go-template" "Sandbox" "$(k get sandbox read-1 -o 'go-template={{.kind}}')"
    like "get -o yaml" '^apiVersion: agents.x-k8s.io/v1beta1$' "$(k get sandbox read-1 -o yaml)"
    is "without managed fields" "" "$(k get sandbox read-1 -o yaml | grep managedFields)"
    is "get -o yaml of many is a list" List "$(k get sandboxes -o json | jq -r .kind)"
    like "get prints columns" '^NAME +READY +REASON +AGE$' "$(k get sandboxes)"
    like "get -o wide too" '^NAME +READY +REASON +AGE' "$(k get sandboxes -o wide)"
    like "get --show-labels" 'LABELS$' "$(k get sandboxes --show-labels)"
    like "get -L" '^read-2 .* 0$' "$(k get sandboxes -L odd)"
    has "get of several kinds" "sandbox.agents.x-k8s.io/read-1" "$(k get sandboxes,sandboxclaims,swp)"
    is "get of nothing" "No resources found in $NS namespace." "$(k get sandboxclaims)"
    rc 0 "get --ignore-not-found" k get sandbox nobody --ignore-not-found
    is "says nothing" "" "$OUT"
    has "get --all-namespaces" "$NS" "$(kubectl get sandboxes -A)"
    is "get --raw" SandboxList "$(k get --raw "$GROUP/namespaces/$NS/sandboxes?limit=1" | jq -r .kind)"

    k get sandboxes -l nr -w --output-watch-events >"$WORK/watch" 2>&1 &
    watch=$!
    within 20 grep -q '^ADDED .*read-5' "$WORK/watch"
    k label sandbox read-1 seen=yes >/dev/null
    k delete sandbox read-5 >/dev/null
    t "get -w shows what is there, a change and an end" within 20 grep -qE '^DELETED +read-5' "$WORK/watch"
    like "each as its kind" '^MODIFIED +read-1 ' "$(<"$WORK/watch")"
    kill $watch 2>/dev/null
    k get sandbox read-2 -w -o 'jsonpath={.metadata.labels.seen}{"\n"}' >"$WORK/watch" 2>&1 &
    watch=$!
    within 20 test -s "$WORK/watch"
    t "get -w of one object with -o jsonpath" within 20 seen_again
    kill $watch 2>/dev/null

    OUT=$(k describe sandbox read-1)
    like "describe" '^API Version: +agents.x-k8s.io/v1beta1$' "$OUT"
    like "with the spec" '^  Operating Mode: +Suspended$' "$OUT"
    like "and the events" '^Events:' "$OUT"
}

waiting() {
    sandbox live | k apply -f - >/dev/null
    rc 0 "wait for a condition" k wait --for=condition=Ready sandbox/live --timeout 60s
    has "says so" "sandbox.agents.x-k8s.io/live condition met" "$OUT"
    rc 0 "wait for a value" k wait --for=jsonpath='{.spec.operatingMode}'=Suspended sandbox/read-1 --timeout 10s
    rc 0 "wait for any value" k wait --for=jsonpath='{.status.podIPs}' sandbox/live --timeout 30s
    rc 0 "wait for what is there already" k wait --for=create sandbox/live --timeout 10s
    rc 1 "wait for what does not come" k wait --for=condition=Ready sandbox/read-1 --timeout 1s
    has "ends" "timed out waiting for the condition on sandboxes/read-1" "$OUT"
    k delete sandbox read-2 --wait=false >/dev/null
    rc 0 "wait for the end" k wait --for=delete sandbox/read-2 --timeout 30s
    like "events --for" 'Sandbox/live' "$(k events --for sandbox/live)"
    like "describe shows them" '^ +Normal ' "$(k describe sandbox live | sed -n '/^Events:/,$p')"
}

permitted() {
    is "auth can-i" yes "$(k auth can-i create sandboxes.agents.x-k8s.io)"
    rc 1 "auth can-i of somebody else" k auth can-i create sandboxes.agents.x-k8s.io --as jane
    k create role reader --verb get,list --resource sandboxes.agents.x-k8s.io,sandboxes.agents.x-k8s.io/status >/dev/null
    k create rolebinding reader --role reader --user jane >/dev/null
    t "with a role" within 10 k auth can-i get sandboxes.agents.x-k8s.io --as jane
    is "of a subresource" yes "$(k auth can-i get sandboxes.agents.x-k8s.io --subresource status --as jane)"
    like "auth can-i --list" '^sandboxes.agents.x-k8s.io +\[\] +\[\] +\[get list\]' "$(k auth can-i --list --as jane)"
    rc 0 "what may be read is read" k get sandboxes --as jane
    rc 1 "what may not be done is refused" k delete sandbox live --as jane
    has "with who, what and where" "Error from server (Forbidden): sandboxes.agents.x-k8s.io \"live\" is forbidden: User \"jane\" cannot delete resource \"sandboxes\" in API group \"agents.x-k8s.io\" in the namespace \"$NS\"" "$OUT"
}

deleting() {
    local uid
    rc 0 "delete --cascade=background" k delete sandbox live --cascade=background --timeout 30s
    has "says so" 'sandbox.agents.x-k8s.io "live" deleted' "$OUT"
    t "and the pod goes" within 60 gone "$NS" pod/live service/live
    for n in fore left; do sandbox $n | k apply -f - >/dev/null; done
    k wait --for=condition=Ready sandbox/fore sandbox/left --timeout 60s >/dev/null
    k delete sandbox fore --cascade=foreground --wait=false >/dev/null
    rc 0 "delete --cascade=foreground" k wait --for=delete sandbox/fore --timeout 60s
    t "ends after its pod did" gone "$NS" pod/fore
    uid=$(k get pod left -o 'jsonpath={.metadata.uid}')
    rc 0 "delete --cascade=orphan" k delete sandbox left --cascade=orphan --timeout 60s
    is "leaves the same pod without an owner" "$uid/" "$(k get pod left -o 'jsonpath={.metadata.uid}/{.metadata.ownerReferences}')"
    k delete pod left --wait=false >/dev/null
    is "delete --dry-run=server" "sandbox.agents.x-k8s.io \"made\" deleted from $NS namespace (server dry run)" "$(k delete sandbox made --dry-run=server)"
    rc 0 "does nothing" k get sandbox made
    rc 0 "delete --grace-period=0 --force" k delete sandbox made --grace-period=0 --force
    has "delete -l" '"read-3" deleted' "$(k delete sandboxes -l nr=3)"
    has "delete -f" '"applied" deleted' "$(idle applied | k delete -f -)"
    rc 1 "delete of what is not there" k delete sandbox nobody
    rc 0 "delete --all" k delete sandboxes,swp --all --timeout 60s
    is "leaves nothing" "" "$(k get sandboxes,swp -o name)"
}

for folder in $("$CLIENTS" kubectls); do
    PATH=$folder:$PATH
    ABOUT="kubectl $(kubectl version --client -o json | jq -r .clientVersion.gitVersion): "
    NS=compat-kubectl-$RANDOM
    namespace "$NS"
    discovery
    creating
    applying
    changing
    reading
    waiting
    permitted
    deleting
done
ABOUT=
isnt "two versions were tried" 1 "$("$CLIENTS" kubectls | wc -l)"
