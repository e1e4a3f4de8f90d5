# Unknown fields, dry run, admission webhooks.
. "$(dirname "$0")/lib.sh"

unknown() { sandbox "$1" '.spec.foo = 1'; }

check_194() { # kubectl create with an unknown field is refused
    api POST "$B?fieldValidation=Strict" "$(unknown a194)"
    refused 400 BadRequest 'Sandbox in version "v1beta1" cannot be handled as a Sandbox: strict decoding error: unknown field "spec.foo"'
    only aggregator || return
    unknown a194 >"$WORK/a.json"
    kc create -f "$WORK/a.json"
    is 1 $RC
    has 'strict decoding error: unknown field "spec.foo"' "$OUT"
}

check_195() { # warned of, created, and not stored
    api POST "$B?fieldValidation=Warn" "$(unknown a195)"
    code 201
    is '299 - "unknown field \"spec.foo\""' "$(header Warning)"
    is null "$(stored a195 .spec.foo)"
    only aggregator || return
    unknown a195b >"$WORK/a.json"
    kc create --validate=warn -f "$WORK/a.json"
    is 0 $RC
    has 'Warning: unknown field "spec.foo"' "$OUT"
}

check_196() { # ignored silently
    api POST "$B?fieldValidation=Ignore" "$(unknown a196)"
    is "201 " "$CODE $(header Warning)"
    only aggregator || return
    unknown a196b >"$WORK/a.json"
    kc create --validate=ignore -f "$WORK/a.json"
    is "0 sandbox.agents.x-k8s.io/a196b created" "$RC $OUT"
}

check_197() { # a key twice
    api POST "$B" '{"apiVersion":"agents.x-k8s.io/v1beta1","kind":"Sandbox","metadata":{"name":"a197"},"spec":{"service":true,"service":false,"podTemplate":{"spec":{"containers":[]}}}}'
    is "201 false" "$CODE $(q .spec.service)"
    warns 'duplicate field \"spec.service\"'
}

check_198() { # one warning each
    api POST "$B" "$(sandbox a198 '.spec.foo = 1 | .metadata.bar = 2')"
    code 201
    is 2 "$(header Warning | wc -l)"
    warns 'unknown field \"spec.foo\"'
    warns 'unknown field \"metadata.bar\"'
}

check_199() { # another word
    api POST "$B?fieldValidation=X" "$(sandbox a199)"
    refused 422 Invalid 'fieldValidation: Unsupported value: "X": supported values: "", "Ignore", "Strict", "Warn"'
}

check_200() { # a dry run of create
    api POST "$B?dryRun=All" "$(sandbox a200)"
    is "201 36 null" "$CODE $(q '"\(.metadata.uid | length) \(.metadata.resourceVersion)"')"
    api GET "$B/a200"
    code 404
    make a200
    api POST "$B?dryRun=All" "$(sandbox a200)"
    refused 409 AlreadyExists
    only aggregator || return
    sandbox a200b >"$WORK/a.json"
    kc create --dry-run=server -f "$WORK/a.json"
    is "0 sandbox.agents.x-k8s.io/a200b created (server dry run)" "$RC $OUT"
}

check_201() { # a dry run of everything else
    make a201
    watch_open "dry-$ROAD" "$B?watch=true&resourceVersion=$RV"
    merge "$B/a201?dryRun=All" '{"metadata":{"labels":{"a":"b"}}}'
    is "200 b $RV" "$CODE $(q '"\(.metadata.labels.a) \(.metadata.resourceVersion)"')"
    api DELETE "$B/a201?dryRun=All"
    is "200 Success" "$CODE $(q .status)"
    api DELETE "$B?dryRun=All"
    code 200
    make_pool p201
    merge "$W/p201/scale?dryRun=All" '{"spec":{"replicas":7}}'
    is "200 7" "$CODE $(q .spec.replicas)"
    api GET "$W/p201"
    is "1 $RV" "$(q '"\(.spec.replicas) \(.metadata.resourceVersion)"')"
    is null "$(stored a201 .metadata.labels)"
    merge "$B/a201" '{"metadata":{"labels":{"really":"so"}}}'
    came "dry-$ROAD" 1
    is so "$(events "dry-$ROAD" .object.metadata.labels.really)"
    watch_close "dry-$ROAD"
    apply "$B/a201b" "$(sandbox a201b)" one dryRun=All
    code 201
    api GET "$B/a201b"
    code 404
}

check_202() { # another word
    api POST "$B?dryRun=None" "$(sandbox a202)"
    refused 422 Invalid 'dryRun: Unsupported value: ["None"]: supported values: "All"'
}

# hook KIND NAME PATH [REPLACED-LINES-OF-YAML]: a webhook configuration for Sandboxes of this namespace. Helper.py answers it.
hook() {
    if [ -z "${HOOK_URL:-}" ]; then
        serving_certificate hook hook-ca "IP:$CLUSTER_ADDRESS"
        helper webhook --address "$CLUSTER_ADDRESS" --cert "$WORK/hook.crt" --key "$WORK/hook.key" --record "$WORK/reviews"
        HOOK_URL=https://$CLUSTER_ADDRESS:$HELPER_PORT
    fi
    HOOKS+=("$1/$2-$NS")
    kubectl create -f - <<E
apiVersion: admissionregistration.k8s.io/v1
kind: $1
metadata: {name: "$2-$NS"}
webhooks:
- name: $2.contract.test
  admissionReviewVersions: [v1]
  sideEffects: ${4:-None}
  timeoutSeconds: 2
  clientConfig: {url: "$HOOK_URL/$3", caBundle: "$(base64 -w0 "$WORK/hook-ca.crt")"}
  namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: $NS}}
  objectSelector: {matchLabels: {hook: "$2"}}
  rules: [{apiGroups: [agents.x-k8s.io], apiVersions: ["*"], operations: [CREATE, UPDATE, DELETE], resources: [sandboxes]}]
E
}
HOOKS=()
restore() { [ ${#HOOKS[@]} = 0 ] || kubectl delete --ignore-not-found "${HOOKS[@]}" >/dev/null; }
hooked() { sandbox "$1" ".metadata.labels = {hook: \"$2\"}"; }
# answered CODE NAME HOOK [QUERY]: a create that the hook sees gets that code.
answered() { api POST "$B${4:-}" "$(hooked "$2-$RANDOM" "$3")" && [ "$CODE" = "$1" ]; }

check_203() { # a validating webhook that denies
    webhooks_are_called || return
    hook ValidatingWebhookConfiguration denying deny >"$WORK/out" 2>&1 || fail "$(<"$WORK/out")"
    # Without a code in the webhook's answer it is 400, without a reason.
    soon 10 answered 400 a203 denying
    refused 400 none 'admission webhook "denying.contract.test" denied the request: not on my watch'
    # What the webhook was told.
    is "CREATE sandboxes Sandbox $NS false" "$(jq -r '.body.request | "\(.operation) \(.resource.resource) \(.kind.kind) \(.namespace) \(.dryRun)"' "$WORK/reviews" | grep -F "$NS" | tail -n 1)"
}

check_204() { # a mutating webhook
    webhooks_are_called || return
    hook MutatingWebhookConfiguration labelling label >"$WORK/out" 2>&1 || fail "$(<"$WORK/out")"
    labelled() { answered 201 a204 labelling "?fieldManager=asker" && [ "$(q .metadata.labels.webhook)" = was-here ]; }
    soon 10 labelled
    is was-here "$(stored "$(q .metadata.name)" .metadata.labels.webhook)"
    # kube-apiserver tracks fields before it calls webhooks: on create nobody owns what they add.
    is '"asker"' "$(q -c '.metadata.managedFields[].manager')"
    hasnt '"f:webhook"' "$(q -c '.metadata.managedFields')"
}

check_205() { # side effects and dry run
    webhooks_are_called || return
    # admissionregistration.k8s.io/v1 takes only None and NoneOnDryRun: a webhook with other side effects cannot be registered.
    hook ValidatingWebhookConfiguration effects allow Some >"$WORK/out" 2>&1
    has 'Unsupported value: "Some"' "$(<"$WORK/out")"
    hook ValidatingWebhookConfiguration dry deny NoneOnDryRun >"$WORK/out" 2>&1 || fail "$(<"$WORK/out")"
    soon 10 answered 400 a205 dry '?dryRun=All'
    is true "$(jq -r 'select(.body.request.name | startswith("a205")?) | .body.request.dryRun' "$WORK/reviews" | tail -n 1)"
}

check_206() { # a webhook that cannot be reached and must be
    webhooks_are_called || return
    local url=$HOOK_URL
    HOOK_URL=https://127.0.0.1:1
    hook ValidatingWebhookConfiguration dead allow >"$WORK/out" 2>&1 || fail "$(<"$WORK/out")"
    HOOK_URL=$url
    soon 10 answered 500 a206 dead
    refused 500 InternalError 'failed calling webhook "dead.contract.test"'
}

run_checks
