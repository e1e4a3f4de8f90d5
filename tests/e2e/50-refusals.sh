#!/bin/bash
# Bad objects get the Status that says what is wrong and where, and nothing of them is stored.
# shellcheck source=tests/e2e/lib.sh
. "$(dirname "$0")/lib.sh"
namespace "$NS"
list=$GROUP/namespaces/$NS/sandboxes

# body NAME SPEC-JSON: a Sandbox as JSON.
body() { printf '{"apiVersion":"agents.x-k8s.io/v1beta1","kind":"Sandbox","metadata":{"name":"%s"},"spec":%s}' "$1" "$2"; }
good='{"podTemplate":{"spec":{"containers":[{"name":"main","image":"busybox"}]}}}'

# post FILE [QUERY]: sends it; the answer is in $answer, the code in $code.
post() {
    answer=$(request POST "$list${2:-}" -H 'Content-Type: application/json' -H 'Expect:' --data-binary "@$1")
    code=$(cat "$WORK/code")
}

# field JQ-EXPRESSION: of the answer.
field() { printf '%s' "$answer" | jq -r "$1" 2>&1; }

# invalid TEXT NAME CAUSE-REASON FIELD MESSAGE: the answer is 422 with such a cause.
invalid() {
    is "$1: 422 Invalid" "422 Invalid Failure" "$code $(field '"\(.reason) \(.status)"')"
    has "$1: the message names kind and object" "Sandbox.agents.x-k8s.io \"$2\" is invalid: " "$(field .message)"
    is "$1: the details name them" "$2 agents.x-k8s.io Sandbox" "$(field '.details | "\(.name) \(.group) \(.kind)"')"
    has "$1: cause and field" "$3 $4: $5" "$(field '.details.causes[] | "\(.reason) \(.field): \(.message)"')"
}

nothing_stored() { is "$1: nothing is stored" "" "$(kubectl -n "$NS" get sandboxes -o name)"; }

body a '{"nonsense":1,"podTemplate":{"spec":{"containers":[{"name":"main","image":"busybox","imagee":"x"}]}}}' >"$WORK/o"
post "$WORK/o" '?fieldValidation=Strict'
is "unknown fields, strict: 400 BadRequest" "400 BadRequest" "$code $(field .reason)"
is "unknown fields, strict: each is named" \
    'Sandbox in version "v1beta1" cannot be handled as a Sandbox: strict decoding error: unknown field "spec.nonsense", unknown field "spec.podTemplate.spec.containers[0].imagee"' \
    "$(field .message)"
nothing_stored "unknown fields, strict"

body a '{"service":"yes","podTemplate":{"spec":{"containers":[{"name":"main","image":"busybox"}]}}}' >"$WORK/o"
post "$WORK/o"
invalid "wrong type" a FieldValueTypeInvalid spec.service 'Invalid value: "string": spec.service in body must be of type boolean: "string"'
nothing_stored "wrong type"

body a '{"podTemplate":{"spec":{}}}' >"$WORK/o"
post "$WORK/o"
invalid "no containers" a FieldValueRequired spec.podTemplate.spec.containers "Required value"
body a '{}' >"$WORK/o"
post "$WORK/o"
invalid "no podTemplate" a FieldValueRequired spec.podTemplate "Required value"
body a '{"podTemplate":{"spec":{"containers":[{"image":"busybox"}]}}}' >"$WORK/o"
post "$WORK/o"
invalid "container without name" a FieldValueRequired 'spec.podTemplate.spec.containers[0].name' "Required value"
nothing_stored "missing parts"

body a '{"podTemplate":{"spec":{"containers":[{"name":"main","image":"busybox","ports":[{"containerPort":80},{"containerPort":80}]}]}}}' >"$WORK/o"
post "$WORK/o"
invalid "duplicate port" a FieldValueDuplicate 'spec.podTemplate.spec.containers[0].ports[1]' 'Duplicate value: {"containerPort":80,"protocol":"TCP"}'
body a '{"operatingMode":"Dreaming","podTemplate":{"spec":{"containers":[{"name":"main","image":"busybox"}]}}}' >"$WORK/o"
post "$WORK/o"
invalid "value that is none of a list" a FieldValueNotSupported spec.operatingMode 'Unsupported value: "Dreaming": supported values: "Running", "Suspended"'
nothing_stored "bad values"

long=$(printf 'a%.0s' {1..64})
body "$long" '{"service":true,"podTemplate":{"spec":{"containers":[{"name":"main","image":"busybox"}]}}}' >"$WORK/o"
post "$WORK/o"
is "name too long for its Service: 422 Invalid" "422 Invalid" "$code $(field .reason)"
has "name too long for its Service: says so" "63 characters" "$(field .message)"
is "name too long for its Service: cause" FieldValueInvalid "$(field '.details.causes[0].reason')"
body Upper_Case "$good" >"$WORK/o"
post "$WORK/o"
invalid "name that is no DNS name" Upper_Case FieldValueInvalid metadata.name 'Invalid value: "Upper_Case": a lowercase RFC 1123 subdomain must consist of'
nothing_stored "bad names"

# --- bodies that are no objects ---
{ body a "$good" | head -c -1 && printf ',"x":"' && head -c 4194304 /dev/zero | tr '\0' x && printf '"}'; } >"$WORK/o"
post "$WORK/o"
is "4 MiB: 413 RequestEntityTooLarge" "413 RequestEntityTooLarge" "$code $(field .reason)"
has "4 MiB: says the limit" "limit is 3145728" "$(field .message)"
unreadable="the object provided is unrecognized (must be of type Sandbox): couldn't get version/kind; json parse error: "
{ printf '{"apiVersion":"agents.x-k8s.io/v1beta1","kind":"Sandbox","metadata":{"name":"a"},"spec":' && head -c 10000 /dev/zero | tr '\0' '[' &&
    head -c 10000 /dev/zero | tr '\0' ']' && printf '}'; } >"$WORK/o"
post "$WORK/o"
is "10,000 levels deep: 400 BadRequest" "400 BadRequest" "$code $(field .reason)"
has "10,000 levels deep: says what it is" "$unreadable" "$(field .message)"
body a "$good" | head -c 60 >"$WORK/o"
post "$WORK/o"
is "cut off: 400 BadRequest" "400 BadRequest" "$code $(field .reason)"
has "cut off: says what it is" "$unreadable" "$(field .message)"
body a '{"service":true,"service":false,"podTemplate":{"spec":{"containers":[{"name":"main","image":"busybox"}]}}}' >"$WORK/o"
post "$WORK/o" '?fieldValidation=Strict'
is "duplicate key, strict: 400 BadRequest" "400 BadRequest" "$code $(field .reason)"
has "duplicate key, strict: is named" 'strict decoding error: duplicate field "spec.service"' "$(field .message)"
nothing_stored "unreadable bodies"

printf '{"apiVersion":"v1","kind":"Sandbox","metadata":{"name":"a"},"spec":%s}' "$good" >"$WORK/o"
post "$WORK/o"
is "another apiVersion: 400" "400 the API version in the data (v1) does not match the expected API version (agents.x-k8s.io/v1beta1)" "$code $(field .message)"
printf 'not an object' >"$WORK/o"
answer=$(request POST "$list" -H 'Content-Type: text/plain' --data-binary "@$WORK/o")
is "another content type: 415 UnsupportedMediaType" "415 UnsupportedMediaType" "$(cat "$WORK/code") $(field .reason)"
nothing_stored "the rest"

# Broken UTF-8 is no refusal: each wrong byte is stored as U+FFFD, as kube-apiserver does it.
body broken "$good" | sed 's/busybox/busy\xffbox/' >"$WORK/o"
post "$WORK/o"
is "broken UTF-8: 201 and the replacement character" "201 busy�box" "$code $(field '.spec.podTemplate.spec.containers[0].image')"
is "broken UTF-8: the same is read back" "busy�box" "$(value sandbox/broken '.spec.podTemplate.spec.containers[0].image')"

# --- updates ---
body a "$good" >"$WORK/o"
post "$WORK/o" '?fieldManager=e2e'
is "the good object is created" 201 "$code"
post "$WORK/o"
is "a second one is 409 AlreadyExists" '409 AlreadyExists sandboxes.agents.x-k8s.io "a" already exists' "$code $(field '"\(.reason) \(.message)"')"
answer=$(request PATCH "$list/a" -H 'Content-Type: application/merge-patch+json' -d '{"metadata":{"resourceVersion":"1"},"spec":{"service":true}}')
is "an old resourceVersion is 409 Conflict" "409 Conflict" "$(cat "$WORK/code") $(field .reason)"
answer=$(request PATCH "$list/a" -H 'Content-Type: application/merge-patch+json' -d '{"spec":{"volumeClaimTemplates":[]}}')
is "volumeClaimTemplates cannot change: 422" "422 Invalid" "$(cat "$WORK/code") $(field .reason)"
has "volumeClaimTemplates cannot change: text" "volumeClaimTemplates is immutable" "$(field .message)"
answer=$(request PATCH "$list/a" -H 'Content-Type: application/strategic-merge-patch+json' -d '{}')
is "a strategic merge patch is 415" "415 UnsupportedMediaType" "$(cat "$WORK/code") $(field .reason)"
answer=$(request GET "$list/none")
is "what is not there is 404" '404 NotFound sandboxes.agents.x-k8s.io "none" not found' "$(cat "$WORK/code") $(field '"\(.reason) \(.message)"')"
