# One short life under valgrind: not a byte is lost, nothing is read before it was written, nothing is used after it was freed.
# For the plain build only: the others have checkers of their own that valgrind cannot run.
# shellcheck shell=bash source=tests/func/lib.sh
. "$(dirname "$0")/lib.sh"
if [ -n "$SLOW" ]; then skip "leaks" "this build has a sanitizer of its own" && exit 0; fi
need valgrind
# shellcheck disable=SC2054 # the commas are valgrind's
WRAP=(valgrind --leak-check=full --show-leak-kinds=definite,indirect,possible --errors-for-leak-kinds=definite,indirect,possible
    --error-exitcode=99 --num-callers=30 --suppressions="$ROOT/tests/valgrind.supp" --log-file="$WORK/valgrind.%p")
MERGE=(-H 'Content-Type: application/merge-patch+json' -d)

etcd_up
server_up --requestheader-client-ca-file="$WORK/client-ca.crt" --requestheader-allowed-names=nobody
load_behind watch watch -n 8 -r "$(etcd_revision)" -u end -d 120
WATCH=$LOAD_PID
within 60 grep -q open "$WORK/watch.out"
t "writers" load create -n 40 -t 8 -p valgrind -s 3000 -l "$WORK/ledger"
t "what they wrote" load verify -t 2 -p valgrind -s 3000 -l "$WORK/ledger"
t "a mixture" load mix -t 8 -d 3 -p mix
api POST "$SANDBOXES" "${JSON[@]}" -d "$(sandbox held '.metadata.finalizers = ["example.org/hold"]')"
answers "update of a status" 200 PATCH "$SANDBOXES/held/status" "${MERGE[@]}" '{"status":{"nodeName":"n"}}'
answers "delete that waits" 200 DELETE "$SANDBOXES/held"
answers "and then happens" 200 PATCH "$SANDBOXES/held" "${MERGE[@]}" '{"metadata":{"finalizers":null}}'
answers "JSON patch" 200 PATCH "$SANDBOXES/valgrind-00000" -H 'Content-Type: application/json-patch+json' -d '[{"op":"add","path":"/spec/service","value":true}]'
answers "YAML" 201 POST "$SANDBOXES" -H 'Content-Type: application/yaml' -d $'apiVersion: agents.x-k8s.io/v1beta1\nkind: Sandbox\nmetadata: {name: yaml}\nspec: {podTemplate: {spec: {containers: [{name: a, image: b}]}}}\n'
answers "paging" 200 GET "$SANDBOXES?limit=10"
answers "its next page" 200 GET "$SANDBOXES?limit=10&continue=$(q .metadata.continue)"
answers "a selector" 200 GET "$SANDBOXES?labelSelector=run=valgrind,x%20notin%20(y)"
answers "a table" 200 GET "$SANDBOXES" -H 'Accept: application/json;as=Table;v=v1;g=meta.k8s.io'
answers "a pool" 201 POST "$EXTENSIONS/sandboxwarmpools" "${JSON[@]}" -d '{"apiVersion":"extensions.agents.x-k8s.io/v1beta1","kind":"SandboxWarmPool","metadata":{"generateName":"p-"},"spec":{"replicas":2,"sandboxTemplateRef":{"name":"t"}}}'
answers "its scale" 200 PATCH "$EXTENSIONS/sandboxwarmpools/$(q .metadata.name)/scale" "${MERGE[@]}" '{"spec":{"replicas":3}}'
answers "bad JSON" 400 POST "$SANDBOXES" "${JSON[@]}" -d '{"a":['
answers "bad values" 422 POST "$SANDBOXES" "${JSON[@]}" -d "$(sandbox bad '.spec.operatingMode = "x" | .spec.podTemplate.spec.containers = [{image: 1}]')"
answers "a conflict" 409 DELETE "$SANDBOXES/yaml" "${JSON[@]}" -d '{"preconditions":{"uid":"x"}}'
answers "discovery" 200 GET /apis
answers "OpenAPI" 200 GET /openapi/v2 --compressed
answers "metrics" 200 GET /metrics
as nobody
answers "nobody" 403 GET "$SANDBOXES"
answers "a token" 401 GET "$SANDBOXES" -H 'Authorization: Bearer x'
as admin
answers "a collection" 200 DELETE "$SANDBOXES?labelSelector=run=valgrind"
kill -HUP "$SERVER_PID"
answers "the last event" 201 POST "$SANDBOXES" "${JSON[@]}" -d "$(sandbox end)"
load_result watch "$WATCH" "watches"
load_behind ending watch -n 4 -1 -r "$(etcd_revision)" -d 120
within 60 grep -q open "$WORK/ending.out"
server_stop
is "the end" 0 $?
load_result ending "$LOAD_PID" "watches that were open then"
sed -n '/LEAK SUMMARY/,/suppressed/s/^==[0-9]*==/#/p; /All heap blocks/s/^==[0-9]*==/#/p' "$WORK"/valgrind.*
like "valgrind has nothing to say" 'ERROR SUMMARY: 0 errors from 0 contexts' "$(cat "$WORK"/valgrind.*)"
