# What a client can do wrong. Every request is answered with the code, reason, message and causes that kube-apiserver gives, and none
# leaves a trace in etcd. Below HTTP, where there is no right answer, the server answers or closes, and lives on.
# Source of the texts: docs/kubernetes-api.md 4, 11-15, 17, 22, 23, 25.
# shellcheck shell=bash source=tests/func/lib.sh
. "$(dirname "$0")/lib.sh"
etcd_up
server_up
GROUP=agents.x-k8s.io/v1beta1
PODTEMPLATE='"podTemplate":{"spec":{"containers":[{"name":"main","image":"example.org/app:1"}]}}'
UNRECOGNIZED='the object provided is unrecognized (must be of type Sandbox): '
NO_KIND="${UNRECOGNIZED}couldn't get version/kind; json parse error: "
UNHANDLED='Sandbox in version "v1beta1" cannot be handled as a Sandbox: '
UNCHECKED='FieldValueInvalid <nil> Invalid value: null: some validation rules were not checked because the object was invalid; correct the existing errors to complete validation'
SUBDOMAIN="a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"

# times N TEXT: the text N times.
times() { printf "%.0s$2" $(seq "$1"); }

# begins TEXT: the first 30 characters of a body, as errors quote it.
begins() { printf '(%.30s ...)' "$1"; }

# settle: from here on nothing may be written.
settle() { REVISION=$(etcd_revision); }
# untouched: nothing was since; and if it was, that is said once.
untouched() {
    local before=$REVISION
    settle
    [ "$REVISION" = "$before" ]
}

# verdict TEXT EXPECTED ACTUAL: and nothing was stored.
verdict() {
    if [ "$2" != "$3" ]; then
        is "$@"
        settle
    elif ! untouched; then
        not_ok "$1" "the store was written to"
    else
        ok "$1"
    fi
}

# bad TEXT CODE REASON MESSAGE METHOD PATH [CURL-ARGUMENT...]
bad() {
    local text=$1 expected="$2 $2 $3 $4"
    shift 4
    api "$@"
    verdict "$text" "$expected" "$CODE $(q '"\(.code) \(.reason // "-") \(.message)"')"
}

# invalid TEXT WHAT CAUSES METHOD PATH [CURL-ARGUMENT...]: a 422 about WHAT; each line of CAUSES is REASON FIELD MESSAGE, in any order. The
# message is made of them.
invalid() {
    local text=$1 what=$2 causes
    causes=$(sort <<<"$3")
    shift 3
    api "$@"
    verdict "$text" "422 Invalid"$'\n'"$causes" "$CODE $(q .reason)"$'\n'"$(q '.details.causes[] | "\(.reason) \(.field) \(.message)"' | sort)"
    q --arg begin "$what is invalid: " '.message as $m | ($m | startswith($begin)) and
        all(.details.causes[]; . as $c | $m | contains($c.field + ": " + $c.message))' | grep -qx true ||
        not_ok "$text: the message has all causes" "$BODY"
}

# plain TEXT CODE BODY METHOD PATH...: an answer that is no Status.
plain() {
    local text=$1 expected="$2 $3"
    shift 3
    api "$@"
    verdict "$text" "$expected" "$CODE $BODY"
}

# post DATA: arguments for a POST of it.
post() { POST=(POST "$SANDBOXES" "${JSON[@]}" --data-binary "$1"); }
# post_jq JQ-PROGRAM: of a small sandbox named a, changed by the program.
post_jq() { post "$(sandbox a "$1")"; }
# post_to QUERY JQ-PROGRAM
post_to() { POST=(POST "$SANDBOXES?$1" "${JSON[@]}" --data-binary "$(sandbox a "$2")"); }

api POST "$SANDBOXES" "${JSON[@]}" -d "$(sandbox there '.spec.volumeClaimTemplates = [{metadata: {name: "data"},
    spec: {accessModes: ["ReadWriteOnce"], resources: {requests: {storage: "1Gi"}}}}]')"
is "an object to try things on" 201 "$CODE"
THERE=$BODY
settle

# ---- bodies that are no object ----
post ''
bad "empty body" 400 BadRequest "${NO_KIND}unexpected end of JSON input (<empty>)" "${POST[@]}"
post hello
bad "not JSON" 400 BadRequest "${NO_KIND}invalid character 'h' looking for beginning of value (68656c6c6f)" "${POST[@]}"
post '{"apiVersion":'
bad "JSON that is cut off" 400 BadRequest "${NO_KIND}unexpected end of JSON input ({\"apiVersion\":)" "${POST[@]}"
post "{\"apiVersion\":\"$GROUP\",\"kind\":\"Sandbox\",}"
bad "comma before a brace" 400 BadRequest "${NO_KIND}invalid character '}' looking for beginning of object key string $(begins "{\"apiVersion\":\"$GROUP")" "${POST[@]}"
SMALL=$(sandbox a)
post "$SMALL xyz"
bad "trailing data" 400 BadRequest "${NO_KIND}invalid character 'x' after top-level value $(begins "$SMALL")" "${POST[@]}"
post "$SMALL$SMALL"
bad "two objects" 400 BadRequest "${NO_KIND}invalid character '{' after top-level value $(begins "$SMALL")" "${POST[@]}"
post $'\xef\xbb\xbf'"$SMALL"
bad "byte order mark" 400 BadRequest "${NO_KIND}invalid character 'ï' looking for beginning of value (efbbbf$(printf '%.27s' "$SMALL" | od -An -tx1 -v | tr -d ' \n') ...)" "${POST[@]}"
post null
bad "null" 400 BadRequest "${UNRECOGNIZED}Object 'Kind' is missing in 'null' (6e756c6c)" "${POST[@]}"
post "$(sandbox a | sed 's/"a"/"a\tb"/')"
bad "control character in a string" 400 BadRequest "${NO_KIND}invalid character '\\t' in string literal $(begins "$SMALL")" "${POST[@]}"
post "$(sandbox a | sed 's/"a"/01/')"
bad "number with a leading zero" 400 BadRequest "${NO_KIND}invalid character '1' after object key:value pair $(begins "$SMALL")" "${POST[@]}"
printf '{"apiVersion":"%s","kind":"Sandbox","metadata":{"name":"a"},"spec":%s%s}' $GROUP "$(times 10001 '[')" "$(times 10001 ']')" >"$WORK/deep"
post "@$WORK/deep"
bad "nesting of 10,002" 400 BadRequest "${NO_KIND}invalid character '[' exceeded max depth $(begins "$(head -c 40 "$WORK/deep")")" "${POST[@]}"
head -c $((4 << 20)) /dev/zero | tr '\0' a >"$WORK/large"
post "@$WORK/large"
for via in --http1.1 --http2; do # also for clients that insist on sending all of it
    VIA=("$via")
    bad "4 MiB, $via" 413 RequestEntityTooLarge "Request entity too large: limit is 3145728" "${POST[@]}"
    bad "4 MiB, sent without asking first, $via" 413 RequestEntityTooLarge "Request entity too large: limit is 3145728" "${POST[@]}" -H Expect:
    bad "4 MiB in chunks, $via" 413 RequestEntityTooLarge "Request entity too large: limit is 3145728" "${POST[@]}" -H 'Transfer-Encoding: chunked'
    bad "4 MiB to a delete, $via" 413 RequestEntityTooLarge "Request entity too large: limit is 3145728" DELETE "$SANDBOXES/there" "${JSON[@]}" --data-binary "@$WORK/large"
done
VIA=()

YAML=(POST "$SANDBOXES" -H 'Content-Type: application/yaml' --data-binary)
bad "YAML with a tab" 400 BadRequest "${UNRECOGNIZED}yaml: line 2: found a tab character that violates indentation (61706956657273696f6e3a206167656e74732e782d6b38732e696f2f7631 ...)" \
    "${YAML[@]}" "apiVersion: $GROUP"$'\n\tkind: Sandbox\n'
bad "empty YAML" 400 BadRequest "${UNRECOGNIZED}Object 'Kind' is missing in '' (<empty>)" "${YAML[@]}" ''
printf 'a: &a [%s]\n' "$(times 50 'x,')" >"$WORK/bomb"
for i in {b..i}; do
    printf '%s: &%s [%s]\n' "$i" "$i" "$(times 50 "*$(tr b-i a-h <<<"$i"),")"
done >>"$WORK/bomb"
api "${YAML[@]}" "@$WORK/bomb"
verdict "YAML that unfolds to 50^9 values" 413 "$CODE"
printf 'a: %s%s\n' "$(times 20000 '[')" "$(times 20000 ']')" >"$WORK/deep-yaml"
api "${YAML[@]}" "@$WORK/deep-yaml"
verdict "YAML with a nesting of 20,000" 400 "$CODE"

# ---- objects of the wrong kind, metadata of the wrong type ----
post_jq 'del(.kind)'
bad "no kind" 400 BadRequest "${UNRECOGNIZED}Object 'Kind' is missing in '$(sandbox a 'del(.kind)')' $(begins "$(sandbox a 'del(.kind)')")" "${POST[@]}"
post_jq '.kind = "Foo"'
invalid "another kind" 'Foo.agents.x-k8s.io "a"' 'FieldValueInvalid kind Invalid value: "Foo": must be Sandbox' "${POST[@]}"
post_jq '.apiVersion = "agents.x-k8s.io/v9"'
bad "another version" 400 BadRequest "the API version in the data (agents.x-k8s.io/v9) does not match the expected API version ($GROUP)" "${POST[@]}"
post_jq 'del(.apiVersion)'
bad "no version" 400 BadRequest "the API version in the data () does not match the expected API version ($GROUP)" "${POST[@]}"
post_jq '.metadata = "x"'
bad "metadata is a string" 400 BadRequest "${UNHANDLED}json: cannot unmarshal string into Go value of type v1.ObjectMeta" "${POST[@]}"
post_jq '.metadata.name = 5'
bad "name is a number" 400 BadRequest "${UNHANDLED}json: cannot unmarshal number into Go struct field ObjectMeta.name of type string" "${POST[@]}"
post_jq '.metadata.labels = {a: 1}'
bad "label is a number" 400 BadRequest "${UNHANDLED}json: cannot unmarshal number into Go struct field ObjectMeta.labels of type string" "${POST[@]}"
post_jq '.metadata.finalizers = "f"'
bad "finalizers are a string" 400 BadRequest "${UNHANDLED}json: cannot unmarshal string into Go struct field ObjectMeta.finalizers of type []string" "${POST[@]}"
post_jq '.metadata.creationTimestamp = "yesterday"'
bad "creation time is no time" 400 BadRequest "${UNHANDLED}parsing time \"yesterday\" as \"2006-01-02T15:04:05Z07:00\": cannot parse \"yesterday\" as \"2006\"" "${POST[@]}"
post_jq '.metadata.namespace = "other"'
bad "another namespace than the URL's" 400 BadRequest "the namespace of the provided object does not match the namespace sent on the request" "${POST[@]}"
post_jq '.metadata.resourceVersion = "5"'
bad "a version on create" 500 - "resourceVersion should not be set on objects to be created" "${POST[@]}"

# ---- unknown and repeated fields ----
post_to fieldValidation=Strict '.alpha = 1 | .spec.podTemplate.spec.containers[0].imagee = "x" | .spec.zeta = 1'
bad "unknown fields, strict" 400 BadRequest "${UNHANDLED}strict decoding error: unknown field \"alpha\", unknown field \"spec.podTemplate.spec.containers[0].imagee\", unknown field \"spec.zeta\"" "${POST[@]}"
post_to fieldValidation=Strict '.metadata.bogus = 1 | .metadata.Labels = {a: "b"}'
bad "unknown metadata, strict" 400 BadRequest "${UNHANDLED}strict decoding error: unknown field \"metadata.Labels\", unknown field \"metadata.bogus\"" "${POST[@]}"
POST=(POST "$SANDBOXES?fieldValidation=Strict" "${JSON[@]}" -d "{\"apiVersion\":\"$GROUP\",\"kind\":\"Sandbox\",\"metadata\":{\"name\":\"a\",\"labels\":{\"a\":\"1\",\"a\":\"2\"}},\"spec\":{\"service\":true,\"service\":false,$PODTEMPLATE}}")
bad "repeated fields, strict" 400 BadRequest "${UNHANDLED}strict decoding error: duplicate field \"metadata.labels.a\", duplicate field \"spec.service\"" "${POST[@]}"
bad "repeated keys of YAML, strict" 400 BadRequest "${UNHANDLED}strict decoding error: yaml: unmarshal errors:"$'\n'"  line 6: key \"spec\" already set in map" \
    POST "$SANDBOXES?fieldValidation=Strict" -H 'Content-Type: application/yaml' --data-binary "apiVersion: $GROUP
kind: Sandbox
metadata:
  name: a
spec: {podTemplate: {spec: {containers: []}}}
spec: {podTemplate: {spec: {containers: []}}}
"
post_to fieldValidation=Bogus .
invalid "unknown validation" 'CreateOptions.meta.k8s.io ""' 'FieldValueNotSupported fieldValidation Unsupported value: "Bogus": supported values: "", "Ignore", "Strict", "Warn"' "${POST[@]}"
post_to "fieldManager=$(times 129 m)" .
invalid "long manager" 'CreateOptions.meta.k8s.io ""' 'FieldValueTooLong fieldManager Too long: may not be more than 128 bytes' "${POST[@]}"
post_to dryRun=Some .
invalid "unknown dry run" 'CreateOptions.meta.k8s.io ""' 'FieldValueNotSupported dryRun Unsupported value: ["Some"]: supported values: "All"' "${POST[@]}"

# ---- values ----
IN=spec.podTemplate.spec.containers
A='Sandbox.agents.x-k8s.io "a"'
post_jq 'del(.spec)'
invalid "no spec" "$A" "$UNCHECKED
FieldValueRequired spec Required value" "${POST[@]}"
post_jq '.spec = "x"'
invalid "spec is a string" "$A" "$UNCHECKED
FieldValueTypeInvalid spec Invalid value: \"string\": spec in body must be of type object: \"string\"" "${POST[@]}"
post_jq '.spec.podTemplate.spec = {}'
invalid "no containers" "$A" "$UNCHECKED
FieldValueRequired $IN Required value" "${POST[@]}"
post_jq '.spec.podTemplate.spec.containers = {}'
invalid "containers are an object" "$A" "$UNCHECKED
FieldValueTypeInvalid $IN Invalid value: \"object\": $IN in body must be of type array: \"object\"" "${POST[@]}"
post_jq '.spec.podTemplate.spec.containers[0].ports = [{containerPort: 80}, {containerPort: 80, protocol: "UDP"}, {containerPort: 80, protocol: "TCP"}]'
invalid "the same port twice" "$A" "FieldValueDuplicate ${IN}[0].ports[2] Duplicate value: {\"containerPort\":80,\"protocol\":\"TCP\"}" "${POST[@]}"
post_jq '.spec.podTemplate.spec.containers[0].ports = [{containerPort: 2147483648}]'
invalid "a number that is too large" "$A" "FieldValueInvalid <nil> Invalid value: \"\": Checked value must be of type integer with format int32 in ${IN}[0].ports[0].containerPort" "${POST[@]}"
post_jq '.spec.podTemplate.spec.containers[0].resources.requests.cpu = "1 core"'
invalid "a quantity that is none" "$A" "FieldValueInvalid ${IN}[0].resources.requests.cpu Invalid value: \"1 core\": ${IN}[0].resources.requests.cpu in body should match '^(\\+|-)?(([0-9]+(\\.[0-9]*)?)|(\\.[0-9]+))(([KMGTPE]i)|[numkMGTPE]|([eE](\\+|-)?(([0-9]+(\\.[0-9]*)?)|(\\.[0-9]+))))?\$'" "${POST[@]}"
post_jq '.spec.shutdownTime = "tomorrow"'
invalid "a time that is none" "$A" "$UNCHECKED
FieldValueTypeInvalid spec.shutdownTime Invalid value: \"tomorrow\": spec.shutdownTime in body must be of type date-time: \"tomorrow\"" "${POST[@]}"
post_jq '.spec.operatingMode = "Paused"'
invalid "a word that is not among those allowed" "$A" "$UNCHECKED
FieldValueNotSupported spec.operatingMode Unsupported value: \"Paused\": supported values: \"Running\", \"Suspended\"" "${POST[@]}"
post_jq '.spec.operatingMode = "X" | .spec.service = "y" | .spec.shutdownTime = "z" | .spec.podTemplate.spec |= (.hostNetwork = "no" | .containers = [{image: 1}, {name: "b", ports: [{}]}])'
invalid "many things at once" "$A" "$UNCHECKED
FieldValueNotSupported spec.operatingMode Unsupported value: \"X\": supported values: \"Running\", \"Suspended\"
FieldValueTypeInvalid ${IN}[0].image Invalid value: \"integer\": ${IN}[0].image in body must be of type string: \"integer\"
FieldValueRequired ${IN}[0].name Required value
FieldValueRequired ${IN}[1].ports[0].containerPort Required value
FieldValueTypeInvalid spec.podTemplate.spec.hostNetwork Invalid value: \"string\": spec.podTemplate.spec.hostNetwork in body must be of type boolean: \"string\"
FieldValueTypeInvalid spec.service Invalid value: \"string\": spec.service in body must be of type boolean: \"string\"
FieldValueTypeInvalid spec.shutdownTime Invalid value: \"z\": spec.shutdownTime in body must be of type date-time: \"z\"" "${POST[@]}"
POOL='{"apiVersion":"extensions.agents.x-k8s.io/v1beta1","kind":"SandboxWarmPool","metadata":{"name":"x"},"spec":{"sandboxTemplateRef":{"name":"t"},"replicas":-1}}'
invalid "a pool of less than nothing" 'SandboxWarmPool.extensions.agents.x-k8s.io "x"' 'FieldValueInvalid .spec.replicas Invalid value: -1: should be a non-negative integer
FieldValueInvalid spec.replicas Invalid value: -1: spec.replicas in body should be greater than or equal to 0' POST "$EXTENSIONS/sandboxwarmpools" "${JSON[@]}" -d "$POOL"
CLAIM='{"apiVersion":"extensions.agents.x-k8s.io/v1beta1","kind":"SandboxClaim","metadata":{"name":"x"},"spec":{"warmPoolRef":{"name":"p"},"env":[{"name":"A"}]}}'
invalid "a variable without a value" 'SandboxClaim.extensions.agents.x-k8s.io "x"' 'FieldValueRequired spec.env[0].value Required value' \
    POST "$EXTENSIONS/sandboxclaims" "${JSON[@]}" -d "$CLAIM"

# ---- metadata ----
post_jq 'del(.metadata.name)'
invalid "no name" 'Sandbox.agents.x-k8s.io ""' "$UNCHECKED
FieldValueRequired metadata.name Required value: name or generateName is required" "${POST[@]}"
for name in UPPER a/b .. a%b -a a_b é; do
    post "$(sandbox $name)"
    invalid "name $name" "Sandbox.agents.x-k8s.io \"$name\"" "FieldValueInvalid metadata.name Invalid value: \"$name\": $SUBDOMAIN" "${POST[@]}"
done
LONG=$(times 64 n)
post "$(sandbox "$LONG" '.spec.service = true')"
invalid "a name of 64 characters with a service" "Sandbox.agents.x-k8s.io \"$LONG\"" \
    'FieldValueInvalid metadata.name Invalid value: must have at most 63 characters when spec.service is true: it names the service' "${POST[@]}"
post "$(sandbox a.b '.spec.service = true')"
invalid "a name with a dot and a service" 'Sandbox.agents.x-k8s.io "a.b"' \
    'FieldValueInvalid metadata.name Invalid value: must not contain dots when spec.service is true: it names the service' "${POST[@]}"
LONG=$(times 239 n)
invalid "a template's name of 239 characters" "SandboxTemplate.extensions.agents.x-k8s.io \"$LONG\"" \
    'FieldValueInvalid metadata.name Invalid value: must have at most 238 characters unless networkPolicyManagement is Unmanaged: with -network-policy behind, it names the network policy' \
    POST "$EXTENSIONS/sandboxtemplates" "${JSON[@]}" -d "$(sandbox "$LONG" '.kind = "SandboxTemplate" | .apiVersion = "extensions.agents.x-k8s.io/v1beta1"')"
post_jq '.metadata.labels = {"-x": "1"}'
invalid "label key" "$A" "FieldValueInvalid metadata.labels Invalid value: \"-x\": name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')" "${POST[@]}"
post_jq '.metadata.labels = {x: "a b"}'
invalid "label value" "$A" "FieldValueInvalid metadata.labels Invalid value: \"a b\": a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')" "${POST[@]}"
post_jq '.metadata.annotations = {x: ("v" * 262144)}'
printf '%s' "${POST[-1]}" >"$WORK/annotated"
post "@$WORK/annotated"
invalid "long annotation" "$A" "$UNCHECKED
FieldValueTooLong metadata.annotations Too long: may not be more than 262144 bytes" "${POST[@]}"
post_jq '.metadata.ownerReferences = [{}]'
invalid "empty owner" "$A" "$UNCHECKED
FieldValueRequired metadata.ownerReferences[0].apiVersion Required value: must not be empty
FieldValueRequired metadata.ownerReferences[0].kind Required value: must not be empty
FieldValueRequired metadata.ownerReferences[0].name Required value: must not be empty
FieldValueRequired metadata.ownerReferences[0].uid Required value: must not be empty" "${POST[@]}"

# ---- a claim that has its sandbox stays with its pool (IL-010) ----
CLAIM=$EXTENSIONS/sandboxclaims/bound
MOVE=(-H 'Content-Type: application/merge-patch+json' -d '{"spec":{"warmPoolRef":{"name":"q"}}}')
answers "a claim" 201 POST "$EXTENSIONS/sandboxclaims" "${JSON[@]}" \
    -d '{"apiVersion":"extensions.agents.x-k8s.io/v1beta1","kind":"SandboxClaim","metadata":{"name":"bound"},"spec":{"warmPoolRef":{"name":"p"}}}'
answers "without a sandbox it can name another pool" 200 PATCH "$CLAIM" -H 'Content-Type: application/merge-patch+json' -d '{"spec":{"warmPoolRef":{"name":"o"}}}'
answers "it gets a sandbox" 200 PATCH "$CLAIM/status" -H 'Content-Type: application/merge-patch+json' -d '{"status":{"sandbox":{"name":"s"}}}'
settle
invalid "with a sandbox it cannot" 'SandboxClaim.extensions.agents.x-k8s.io "bound"' \
    'FieldValueInvalid spec.warmPoolRef Invalid value: cannot change any more: the claim has its sandbox' PATCH "$CLAIM" "${MOVE[@]}"
answers "all else can change" 200 PATCH "$CLAIM" -H 'Content-Type: application/merge-patch+json' -d '{"spec":{"lifecycle":{"shutdownPolicy":"Delete"}}}'
settle

# ---- updates ----
PUT=(PUT "$SANDBOXES/there" "${JSON[@]}" --data-binary)
invalid "volumeClaimTemplates changed" 'Sandbox.agents.x-k8s.io "there"' 'FieldValueInvalid spec Invalid value: volumeClaimTemplates is immutable' \
    "${PUT[@]}" "$(jq -c '.spec.volumeClaimTemplates[0].spec.resources.requests.storage = "2Gi"' <<<"$THERE")"
invalid "volumeClaimTemplates taken away" 'Sandbox.agents.x-k8s.io "there"' 'FieldValueInvalid spec Invalid value: volumeClaimTemplates is immutable' \
    PATCH "$SANDBOXES/there" -H 'Content-Type: application/merge-patch+json' -d '{"spec":{"volumeClaimTemplates":null}}'
bad "another name than the URL's" 400 BadRequest "the name of the object (b) does not match the name on the URL (there)" "${PUT[@]}" "$(jq -c '.metadata.name = "b"' <<<"$THERE")"
bad "an old version" 409 Conflict 'Operation cannot be fulfilled on sandboxes.agents.x-k8s.io "there": the object has been modified; please apply your changes to the latest version and try again' \
    "${PUT[@]}" "$(jq -c '.metadata.resourceVersion = "1" | .spec.service = true' <<<"$THERE")"
invalid "no version" 'sandboxes.agents.x-k8s.io "there"' 'FieldValueInvalid metadata.resourceVersion Invalid value: 0: must be specified for an update' \
    "${PUT[@]}" "$(jq -c 'del(.metadata.resourceVersion) | .spec.service = true' <<<"$THERE")"
bad "no such object" 404 NotFound 'sandboxes.agents.x-k8s.io "gone" not found' PUT "$SANDBOXES/gone" "${JSON[@]}" -d "$(jq -c '.metadata.name = "gone"' <<<"$THERE")"
bad "a JSON patch whose test fails" 422 Invalid 'the server rejected our request due to an error in our request' \
    PATCH "$SANDBOXES/there" -H 'Content-Type: application/json-patch+json' -d '[{"op":"test","path":"/spec/service","value":1}]'
bad "a JSON patch that is an object" 400 BadRequest 'error decoding patch: json: cannot unmarshal object into Go value of type []handlers.jsonPatchOp' \
    PATCH "$SANDBOXES/there" -H 'Content-Type: application/json-patch+json' -d '{}'
PATCHES='the body of the request was in an unknown format - accepted media types include: application/json-patch+json, application/merge-patch+json'
for type in ' application/strategic-merge-patch+json' ' application/json' ''; do
    api PATCH "$SANDBOXES/there" -H "Content-Type:$type" -d '{}'
    verdict "a patch of type \"$type\"" "415 UnsupportedMediaType $PATCHES" "$CODE $(q .reason) $(q ".message[:${#PATCHES}]")"
done

# ---- parameters ----
bad "a bad label selector" 400 BadRequest "unable to parse requirement: found '(', expected: identifier" GET "$SANDBOXES?labelSelector=a=("
bad "an unknown field selector" 400 BadRequest "field label not supported: spec.operatingMode" GET "$SANDBOXES?fieldSelector=spec.operatingMode=x"
bad "a field selector without an operator" 400 BadRequest "invalid selector: 'metadata.name'; can't understand 'metadata.name'" GET "$SANDBOXES?fieldSelector=metadata.name"
bad "a continue token that is no JSON" 400 BadRequest "invalid continue token: continue key is not valid: invalid character 'h' looking for beginning of value" GET "$SANDBOXES?limit=2&continue=aGVsbG8"
bad "a continue token of version 0" 400 BadRequest "invalid continue token: continue key is not valid: incorrect encoded start resourceVersion (version meta.k8s.io/v1)" \
    GET "$SANDBOXES?limit=2&continue=eyJ2IjoibWV0YS5rOHMuaW8vdjEiLCJydiI6MCwic3RhcnQiOiJhIn0"
bad "a version that is no number" 400 BadRequest 'invalid resource version: resourceVersion: Invalid value: "abc": strconv.ParseUint: parsing "abc": invalid syntax' GET "$SANDBOXES?resourceVersion=abc"
bad "the same to one object" 500 - 'resourceVersion: Invalid value: "abc": strconv.ParseUint: parsing "abc": invalid syntax' GET "$SANDBOXES/there?resourceVersion=abc"
bad "a limit that is no number" 400 BadRequest 'strconv.ParseInt: parsing "abc": invalid syntax' GET "$SANDBOXES?limit=abc"
invalid "how to match no version" 'ListOptions.meta.k8s.io ""' 'FieldValueForbidden resourceVersionMatch Forbidden: resourceVersionMatch is forbidden unless resourceVersion is provided' GET "$SANDBOXES?resourceVersionMatch=Exact"
invalid "initial events without a match" 'ListOptions.meta.k8s.io ""' 'FieldValueForbidden resourceVersionMatch Forbidden: sendInitialEvents requires setting resourceVersionMatch to NotOlderThan' GET "$SANDBOXES?watch=1&sendInitialEvents=true"
invalid "an unknown propagation" 'DeleteOptions.meta.k8s.io ""' 'FieldValueNotSupported propagationPolicy Unsupported value: "Nope": supported values: "Foreground", "Background", "Orphan", "nil"' DELETE "$SANDBOXES/there?propagationPolicy=Nope"
api GET "$SANDBOXES?resourceVersion=999999999999"
verdict "a version of the future" "504 Timeout ResourceVersionTooLarge" "$CODE $(q '"\(.reason) \(.details.causes[0].reason)"')"

# ---- paths, methods, media types ----
NOT_FOUND='404 page not found'
api_path() { echo "/apis/agents.x-k8s.io/v1beta1$1"; }
plain "unknown resource" 404 "$NOT_FOUND" GET "$(api_path /namespaces/default/nothings)"
plain "resource of the other group" 404 "$NOT_FOUND" GET "$(api_path /namespaces/default/sandboxclaims)"
plain "unknown group" 404 "$NOT_FOUND" GET /apis/example.org/v1/namespaces/default/sandboxes
plain "unknown version" 404 "$NOT_FOUND" GET /apis/agents.x-k8s.io/v9/namespaces/default/sandboxes
plain "create without a namespace" 404 "$NOT_FOUND" POST "$(api_path /sandboxes)" "${JSON[@]}" -d "$(sandbox a)"
plain "delete of all namespaces" 404 "$NOT_FOUND" DELETE "$(api_path /sandboxes)"
bad "unknown subresource" 404 NotFound 'sandboxes.agents.x-k8s.io "there" not found' GET "$SANDBOXES/there/nope"
bad "scale of what has none" 404 NotFound 'sandboxes.agents.x-k8s.io "there" not found' GET "$SANDBOXES/there/scale"
for method in OPTIONS FOO get; do
    bad "method $method" 405 MethodNotAllowed ' is not supported on resources of kind "sandboxes.agents.x-k8s.io"' $method "$SANDBOXES/there"
done
bad "delete of a status" 405 MethodNotAllowed 'delete is not supported on resources of kind "sandboxes.agents.x-k8s.io"' DELETE "$SANDBOXES/there/status"
bad "put on a collection" 400 BadRequest "name must be provided" PUT "$SANDBOXES" "${JSON[@]}" -d "$THERE"
BODIES='the body of the request was in an unknown format - accepted media types include: application/json, application/yaml, application/vnd.kubernetes.protobuf'
for type in text/plain application/cbor application/merge-patch+json application/vnd.kubernetes.protobuf; do
    bad "a body of $type" 415 UnsupportedMediaType "$BODIES" POST "$SANDBOXES" -H "Content-Type: $type" -d "$(sandbox a)"
done
answers "a body's type counts in any case" 201 POST "$SANDBOXES?dryRun=All" -H "Content-Type: Application/JSON" -d "$(sandbox a)"
for type in text/html Application/JSON application/vnd.kubernetes.protobuf; do
    bad "an answer of $type" 406 NotAcceptable 'only the following media types are accepted: application/json, application/yaml, application/vnd.kubernetes.protobuf' \
        POST "$SANDBOXES" -H "Accept: $type" "${JSON[@]}" -d "$(sandbox a)"
done
bad "a slash in disguise" 404 NotFound 'sandboxes.agents.x-k8s.io "there" not found' GET "$SANDBOXES/there%2Fnope"
bad "a percent sign in a name" 400 BadRequest "Name parameter invalid: \"a%b\": may not contain '%'" GET "$SANDBOXES/a%25b"
plain "a bad escape" 400 "400 Bad Request" GET "$SANDBOXES/a%zz"
bad "a NUL in a name" 404 NotFound 'sandboxes.agents.x-k8s.io "a\x00" not found' GET "$SANDBOXES/a%00"
bad "a NUL behind a name" 404 NotFound 'sandboxes.agents.x-k8s.io "there\x00" not found' DELETE "$SANDBOXES/there%00"
bad "a name of dots" 404 NotFound 'sandboxes.agents.x-k8s.io "." not found' GET "$SANDBOXES/./there"
bad "dots that lead out" 404 NotFound 'sandboxes.agents.x-k8s.io "x" not found' GET "$SANDBOXES/x/../there"
bad "the same in disguise" 400 BadRequest "Name parameter invalid: \"..\": may not be '..'" DELETE "$SANDBOXES/%2e%2e"
bad "dots in the namespace" 404 NotFound 'sandboxes.agents.x-k8s.io "there" not found' GET "$(api_path /namespaces/%2e%2e/sandboxes/there)"
bad "a name of 300 characters" 404 NotFound "sandboxes.agents.x-k8s.io \"$(times 300 n)\" not found" GET "$SANDBOXES/$(times 300 n)"
answers "8 KiB of selector are fine" 200 GET "$SANDBOXES?labelSelector=x%20in%20($(times 2700 'ab,')a)"
answers "32 KiB of header are fine" 200 GET "$SANDBOXES" -H "X-Padding: $(times 32768 p)"

# ---- taken, but not as sent ----
# taken TEXT JQ-TEST METHOD PATH...: 201, and what was stored passes the test; then it goes.
taken() {
    local text=$1 test=$2
    shift 2
    api "$@"
    if [ "$CODE" = 201 ] && q "$test" | grep -qx true; then ok "$text"; else not_ok "$text" "$CODE $BODY"; fi
    cp "$WORK/headers" "$WORK/kept"
    api DELETE "$SANDBOXES/a"
    cp "$WORK/kept" "$WORK/headers"
    settle
}
post_to fieldValidation=Warn '.spec.zeta = 1 | .metadata.labels = {b: "c"}'
taken "an unknown field is dropped" '(.spec | has("zeta") | not) and .metadata.labels.b == "c"' "${POST[@]}"
is "with a warning" '299 - "unknown field \"spec.zeta\""' "$(header Warning)"
post_to fieldValidation=Ignore '.spec.zeta = 1'
taken "in silence when asked for" '.spec | has("zeta") | not' "${POST[@]}"
is "without a warning" "" "$(header Warning)"
post "$(sandbox a '.metadata.annotations.b = "@"' | sed $'s/@/\xff\xfe/')"
taken "broken UTF-8 becomes U+FFFD" '.metadata.annotations.b == "\ufffd\ufffd"' "${POST[@]}"
post "$(sandbox a '.metadata.annotations.b = "@"' | sed 's/@/\\ud800x/')"
taken "so does half a surrogate" '.metadata.annotations.b == "\ufffdx"' "${POST[@]}"
printf '{"apiVersion":"%s","kind":"Sandbox","metadata":{"name":"a"},"spec":{%s,"x":%s%s}}' $GROUP "$PODTEMPLATE" "$(times 5000 '[')" "$(times 5000 ']')" >"$WORK/deep"
post "@$WORK/deep"
taken "an unknown field with a nesting of 5,000 is dropped" '.spec | has("x") | not' "${POST[@]}"
is "with a warning" '299 - "unknown field \"spec.x\""' "$(header Warning)"
printf '{"apiVersion":"%s","kind":"Sandbox","metadata":{"name":"a"},"spec":{%s,"x":%s1%s}}' $GROUP "$PODTEMPLATE" "$(times 5000 '{\"x\":')" "$(times 5000 '}')" >"$WORK/deep"
post "@$WORK/deep"
taken "of objects too" '.spec | has("x") | not' "${POST[@]}"
post "{\"apiVersion\":\"$GROUP\",\"kind\":\"Sandbox\",\"metadata\":{\"name\":\"a\"},\"spec\":{\"service\":true,\"service\":false,$PODTEMPLATE}}"
taken "of a repeated field the last counts" '.spec.service == false' "${POST[@]}"
is "with a warning" '299 - "duplicate field \"spec.service\""' "$(header Warning)"

# What is accepted and will be refused by the reconciler is foretold, with the flag that decides.
api POST "$EXTENSIONS/sandboxclaims" "${JSON[@]}" -d '{"apiVersion":"extensions.agents.x-k8s.io/v1beta1","kind":"SandboxClaim","metadata":{"name":"a"},
    "spec":{"warmPoolRef":{"name":"p"},"additionalPodMetadata":{"labels":{"team.io/a":"1"}}}}'
is "IL-006 a claim that asks for a label of another domain is accepted" 201 "$CODE"
has "IL-006 and warned of, with the flag" "--allowed-label-domains-file: sandbox.users.io" "$(header Warning)"
settle

# ---- below HTTP: raw bytes over TLS ----
# raw: sends stdin (LF becomes CRLF); ANSWER is what came back until the server closed or 2 s passed.
raw() {
    ANSWER=$(sed 's/$/\r/' | timeout 2 openssl s_client -quiet -nameopt utf8 -connect "127.0.0.1:$PORT" -CAfile "$WORK/serving-ca.crt" \
        -cert "$WORK/admin.crt" -key "$WORK/admin.key" 2>/dev/null | tr -d '\000' | head -c 4000)
}

# survives TEXT [PATTERN]: what came back begins like that (or nothing came), nothing was stored, and the server answers others.
survives() {
    local text=$1 first
    first=$(head -n 1 <<<"$ANSWER" | tr -d '\r')
    if [[ -n $first && ! $first =~ ${2:-^HTTP/1.1\ 4} ]]; then
        not_ok "$text" "answer: $ANSWER"
        settle
    elif ! untouched; then
        not_ok "$text" "the store was written to; answer: $ANSWER"
    else
        answers "$text: ${first:-closed}" 200 GET /livez
    fi
}
HOST=$'Host: localhost\nConnection: close'
SMUGGLED="POST $SANDBOXES HTTP/1.1
Host: localhost
Content-Type: application/json
Content-Length: $(sandbox smuggled | wc -c)

$(sandbox smuggled)"
raw <<<"POST $SANDBOXES/x HTTP/1.1
Host: localhost
Content-Type: application/json
Content-Length: 4
Transfer-Encoding: chunked

0

$SMUGGLED"
survives "both a length and chunks: what follows is not run" '^HTTP/1.1 [45]'
raw <<<"GET $SANDBOXES HTTP/1.1
Host: localhost
Content-Length: 0
Content-Length: 400

$SMUGGLED"
survives "two lengths: what follows is not run"
for length in -5 +5 0x5 '5 5' 5,5 99999999999999999999999 abc ''; do
    raw <<<"POST $SANDBOXES HTTP/1.1
$HOST
Content-Type: application/json
Content-Length: $length

$(sandbox a)"
    survives "a length of \"$length\""
done
for size in zz -1 0x5 FFFFFFFFFFFFFFFFF 100000000000000000000 ' 5' '5 5' ''; do
    raw <<<"POST $SANDBOXES HTTP/1.1
$HOST
Content-Type: application/json
Transfer-Encoding: chunked

$size
$(sandbox a)
0
"
    survives "a chunk of \"$size\""
done
for coding in 'chunked, identity' identity gzip 'xchunked' 'chunked, chunked'; do
    raw <<<"POST $SANDBOXES HTTP/1.1
$HOST
Content-Type: application/json
Transfer-Encoding: $coding

1
x
0
"
    survives "a transfer coding of \"$coding\"" '^HTTP/1.1 [45]'
done
raw <<<"GET $SANDBOXES HTTP/1.1
Connection: close
"
survives "no host"
raw <<<"GET $SANDBOXES HTTP/1.1
$HOST
X-Remote-User : admin
"
survives "a blank before a colon"
raw <<<"GET $SANDBOXES HTTP/1.1
$HOST
no colon at all
"
survives "a header without a colon"
raw <<<"GET $SANDBOXES HTTP/9.9
$HOST
"
survives "a version of the future" '^HTTP/1.1 [45]'
raw <<<"GARBAGE"
survives "no request at all"
raw <<<"$(times 100000 G) / HTTP/1.1
$HOST
"
survives "a method of 100,000 letters" '^HTTP/1.1 [45]'
raw <<<"GET /$(times 200000 a) HTTP/1.1
$HOST
"
survives "a path of 200,000 letters"
raw <<<"GET $SANDBOXES HTTP/1.1
$HOST
X-Long: $(times 500000 h)
"
survives "a header of 500,000 letters"
raw <<<"GET $SANDBOXES HTTP/1.1
$HOST
$(for i in {1..20000}; do echo "X-$i: 1"; done)
"
survives "20,000 headers" '^HTTP/1.1 [24]'
raw <<<"DELETE $SANDBOXES/there HTTP/1.1
$HOST
Content-Type: application/json
Content-Length: 100

{"
survives "a body that ends early"
raw <<<"POST $SANDBOXES HTTP/1.1
$HOST
Content-Type: application/json
Content-Length: 100
Expect: something-else

{}"
survives "an expectation nobody can meet" '^HTTP/1.1 4'
# In a shell of its own, for the server may close before it has read, and that ends who writes.
ANSWER=$(exec 3<>"/dev/tcp/127.0.0.1/$PORT" && printf 'GET / HTTP/1.1\r\nHost: localhost\r\n\r\n' >&3 && timeout 5 head -c 200 <&3 | tr -d '\000')
survives "a request without TLS" .
api GET "$SANDBOXES"
is "in the end there is what was there" there "$(q '[.items[].metadata.name] | join(" ")')"
is "with the version it had" "$(jq -r .metadata.resourceVersion <<<"$THERE")" "$(q '.items[0].metadata.resourceVersion')"
