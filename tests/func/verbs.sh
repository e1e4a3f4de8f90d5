# A short life of every kind: each verb by curl, as a client without a library would do it. Then watches, tables, discovery, OpenAPI,
# and the paging of a long list while others write.
# shellcheck shell=bash source=tests/func/lib.sh
. "$(dirname "$0")/lib.sh"
etcd_up
server_up
MERGE=(-H 'Content-Type: application/merge-patch+json' -d)
PATCH=(-H 'Content-Type: application/json-patch+json' -d)
AGENTS=/apis/agents.x-k8s.io/v1beta1 EXTENDED=/apis/extensions.agents.x-k8s.io/v1beta1

template() { jq -cn --arg n "$1" '{apiVersion: "extensions.agents.x-k8s.io/v1beta1", kind: "SandboxTemplate", metadata: {name: $n}, spec: {podTemplate: {spec: {containers: [{name: "main", image: "example.org/app:1"}]}}}}'; }
pool() { jq -cn --arg n "$1" '{apiVersion: "extensions.agents.x-k8s.io/v1beta1", kind: "SandboxWarmPool", metadata: {name: $n}, spec: {replicas: 2, sandboxTemplateRef: {name: "t"}}}'; }
claim() { jq -cn --arg n "$1" '{apiVersion: "extensions.agents.x-k8s.io/v1beta1", kind: "SandboxClaim", metadata: {name: $n}, spec: {warmPoolRef: {name: "p"}}}'; }

create() { api POST "$LIST" "${JSON[@]}" -d "$1"; }

# gone TEXT NAME
gone() { answers "$1" 404 GET "$LIST/$2"; }

# ---- one kind ----

creating() {
    api POST "$LIST?dryRun=All" "${JSON[@]}" -d "$($MAKE one)"
    is "$KIND: a dry run of create answers as if" "201 true null one" "$CODE $(q '"\(.metadata.uid | length == 36) \(.metadata.resourceVersion) \(.metadata.name)"')"
    gone "$KIND: and stores nothing" one
    create "$($MAKE one)"
    is "$KIND: create" "201 1 default one" "$CODE $(q '"\(.metadata.generation) \(.metadata.namespace) \(.metadata.name)"')"
    like "$KIND: with uid, version and time" '^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12} [1-9][0-9]* [0-9T:-]*Z$' \
        "$(q '"\(.metadata.uid) \(.metadata.resourceVersion) \(.metadata.creationTimestamp)"')"
    local made=$BODY
    UID_ONE=$(q .metadata.uid)
    api GET "$LIST/one"
    is "$KIND: get gives the same bytes" "$made" "$BODY"
    create "$($MAKE one)"
    is "$KIND: what is there is not made again" "409 AlreadyExists $RESOURCE.$GROUP \"one\" already exists" "$CODE $(q .reason) $(q .message)"
    create "$($MAKE '' | jq -c 'del(.metadata.name) | .metadata.generateName = "made-"')"
    like "$KIND: generateName" '^201 made-[bcdfghjklmnpqrstvwxz2456789]{5}$' "$CODE $(q .metadata.name)"
    MADE=$(q .metadata.name)
}

listing() {
    api GET "$LIST"
    is "$KIND: list" "200 ${KIND}List ${GROUP}/v1beta1 $MADE one" "$CODE $(q '"\(.kind) \(.apiVersion) \([.items[].metadata.name] | join(" "))"')"
    like "$KIND: has a version" '^[1-9][0-9]*$' "$(q .metadata.resourceVersion)"
    api GET "${BASE}/$RESOURCE?fieldSelector=metadata.name=one"
    is "$KIND: list of all namespaces by name" "200 one" "$CODE $(q '[.items[].metadata.name] | join(" ")')"
    api GET "$LIST?limit=1"
    is "$KIND: a page" "1 1" "$(q '"\(.items | length) \(.metadata.remainingItemCount)"')"
    api GET "$LIST?limit=1&continue=$(q .metadata.continue)"
    is "$KIND: and the next" "one " "$(q '"\(.items[0].metadata.name) \(.metadata.continue)"')"
}

updating() {
    local old
    api GET "$LIST/one"
    old=$BODY
    api PUT "$LIST/one?dryRun=All" "${JSON[@]}" -d "$(jq -c '.metadata.labels.step = "dry"' <<<"$old")"
    is "$KIND: a dry run of update answers as if" "200 dry $(jq -r .metadata.resourceVersion <<<"$old")" "$CODE $(q '"\(.metadata.labels.step) \(.metadata.resourceVersion)"')"
    api PUT "$LIST/one" "${JSON[@]}" -d "$(jq -c '.metadata.labels.step = "put" | .metadata.uid = ""' <<<"$old")"
    is "$KIND: update of metadata" "200 put 1 $UID_ONE" "$CODE $(q '"\(.metadata.labels.step) \(.metadata.generation) \(.metadata.uid)"')"
    api PUT "$LIST/one" "${JSON[@]}" -d "$(jq -c '.metadata.labels.step = "late"' <<<"$old")"
    is "$KIND: an update of an old version" "409 Conflict" "$CODE $(q .reason)"
    api PATCH "$LIST/one" "${PATCH[@]}" '[{"op":"test","path":"/metadata/labels/step","value":"put"},{"op":"replace","path":"/metadata/labels/step","value":"json"},{"op":"add","path":"/metadata/annotations","value":{}},{"op":"add","path":"/metadata/annotations/example.org~1a","value":"1"}]'
    is "$KIND: JSON patch" "200 json 1" "$CODE $(q '"\(.metadata.labels.step) \(.metadata.annotations["example.org/a"])"')"
    api PATCH "$LIST/one" "${MERGE[@]}" '{"metadata":{"annotations":null,"labels":{"step":"merge"}}}'
    is "$KIND: merge patch" "200 merge null" "$CODE $(q '"\(.metadata.labels.step) \(.metadata.annotations)"')"
    local version
    version=$(q .metadata.resourceVersion)
    api PATCH "$LIST/one" "${MERGE[@]}" '{"metadata":{"labels":{"step":"merge"}}}'
    is "$KIND: a patch that changes nothing writes nothing" "200 $version" "$CODE $(q .metadata.resourceVersion)"
    api PATCH "$LIST/one" "${MERGE[@]}" "$SPEC_CHANGE"
    is "$KIND: a change of spec counts" "200 2" "$CODE $(q .metadata.generation)"
    api PATCH "$LIST/one" "${MERGE[@]}" "{\"metadata\":{\"resourceVersion\":\"$version\",\"labels\":{\"step\":\"late\"}}}"
    is "$KIND: a patch of an old version" "409 Conflict" "$CODE $(q .reason)"
}

statuses() {
    if [ "$KIND" = SandboxTemplate ]; then
        answers "$KIND: has no status to ask for" 404 GET "$LIST/one/status"
        return
    fi
    [ "$KIND" != SandboxWarmPool ] || return 0 # it has no conditions; scaling looks at its status
    local condition='[{type: "Ready", status: "True", reason: "Tried", message: "", lastTransitionTime: "2026-01-02T03:04:05Z"}]'
    api GET "$LIST/one"
    local old=$BODY
    api PUT "$LIST/one/status" "${JSON[@]}" -d "$(jq -c ".status.conditions = $condition | .metadata.labels.step = \"status\" | .spec = {}" <<<"$old")"
    is "$KIND: status takes the status alone" "200 Tried merge 2 true" "$CODE $(q --argjson old "$old" '"\(.status.conditions[0].reason) \(.metadata.labels.step) \(.metadata.generation) \(.spec == $old.spec)"')"
    api PATCH "$LIST/one" "${MERGE[@]}" '{"status":{"conditions":[]}}'
    is "$KIND: the object itself leaves it alone" "200 Tried" "$CODE $(q '.status.conditions[0].reason')"
    api PATCH "$LIST/one/status" "${MERGE[@]}" '{"status":{"conditions":null}}'
    is "$KIND: a patch takes it away" "200 null" "$CODE $(q .status.conditions)"
    api PATCH "$LIST/one/status" "${MERGE[@]}" "{\"status\":{\"conditions\":$(jq -cn "$condition")}}"
    is "$KIND: and puts it back" "200 True" "$CODE $(q '.status.conditions[0].status')"
}

tables() {
    local table='Accept: application/json;as=Table;v=v1;g=meta.k8s.io,application/json'
    api GET "$LIST" -H "$table"
    is "$KIND: table" "Table meta.k8s.io/v1 $COLUMNS" "$(q '"\(.kind) \(.apiVersion) \([.columnDefinitions[].name] | join(" "))"')"
    is "$KIND: its row" "$ROW" "$(q '.rows[] | select(.object.metadata.name == "one") | .cells[:-1] | join("|")')"
    like "$KIND: with an age" '^[0-9]+s$' "$(q '.rows[0].cells[-1]')"
    api GET "$LIST/one" -H "$table"
    is "$KIND: table of one" "1 PartialObjectMetadata" "$(q '"\(.rows | length) \(.rows[0].object.kind)"')"
    api GET "$LIST" -H 'Accept: application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io'
    is "$KIND: metadata alone" "PartialObjectMetadataList $MADE one true" "$(q '"\(.kind) \([.items[].metadata.name] | join(" ")) \(all(.items[]; has("spec") | not))"')"
}

deleting() {
    answers "$KIND: delete of another uid" 409 DELETE "$LIST/one" "${JSON[@]}" -d '{"preconditions":{"uid":"other"}}'
    like "$KIND: says so" "the UID in the precondition \(other\) does not match the UID in record \($UID_ONE\)" "$(q .message)"
    answers "$KIND: delete of another version" 409 DELETE "$LIST/one" "${JSON[@]}" -d '{"preconditions":{"resourceVersion":"1"}}'
    answers "$KIND: a dry run of delete" 200 DELETE "$LIST/one?dryRun=All"
    answers "$KIND: deletes nothing" 200 GET "$LIST/one"
    api DELETE "$LIST/one" "${JSON[@]}" -d "{\"kind\":\"DeleteOptions\",\"apiVersion\":\"v1\",\"preconditions\":{\"uid\":\"$UID_ONE\"}}"
    is "$KIND: delete" "200 Status Success one $RESOURCE $UID_ONE" "$CODE $(q '"\(.kind) \(.status) \(.details.name) \(.details.kind) \(.details.uid)"')"
    gone "$KIND: and it is gone" one
    answers "$KIND: a second delete" 404 DELETE "$LIST/one"

    create "$($MAKE held | jq -c '.metadata.finalizers = ["example.org/hold"]')"
    api DELETE "$LIST/held"
    is "$KIND: a finalizer holds it" "200 $KIND 2 0 true" "$CODE $(q '"\(.kind) \(.metadata.generation) \(.metadata.deletionGracePeriodSeconds) \(.metadata.deletionTimestamp != null)"')"
    create "$($MAKE held)"
    is "$KIND: it is not made anew meanwhile" "409 object is being deleted: $RESOURCE.$GROUP \"held\" already exists" "$CODE $(q .message)"
    answers "$KIND: nobody adds a finalizer then" 422 PATCH "$LIST/held" "${MERGE[@]}" '{"metadata":{"finalizers":["example.org/hold","example.org/more"]}}'
    answers "$KIND: the last finalizer goes" 200 PATCH "$LIST/held" "${MERGE[@]}" '{"metadata":{"finalizers":null}}'
    gone "$KIND: and with it the object" held

    for i in 1 2 3; do create "$($MAKE set-$i | jq -c '.metadata.labels.set = "a"')"; done
    answers "$KIND: a dry run of deletecollection" 200 DELETE "$LIST?labelSelector=set=a&dryRun=All"
    api DELETE "$LIST?labelSelector=set=a"
    is "$KIND: deletecollection gives what it found" "200 set-1 set-2 set-3" "$CODE $(q '[.items[].metadata.name] | join(" ")')"
    api GET "$LIST"
    is "$KIND: and takes nothing else" "$MADE" "$(q '[.items[].metadata.name] | join(" ")')"
    answers "$KIND: a collection with a finalizer" 200 DELETE "$LIST?propagationPolicy=Foreground"
    api GET "$LIST/$MADE"
    is "$KIND: is held" foregroundDeletion "$(q '.metadata.finalizers | join(" ")')"
    answers "$KIND: until it is let go" 200 PATCH "$LIST/$MADE" "${PATCH[@]}" '[{"op":"remove","path":"/metadata/finalizers"}]'
    gone "$KIND: then it is gone" "$MADE"
}

# life KIND GROUP RESOURCE MAKER SPEC-CHANGE COLUMNS ROW
life() {
    KIND=$1 GROUP=$2 RESOURCE=$3 MAKE=$4 SPEC_CHANGE=$5 COLUMNS=$6 ROW=$7
    BASE=/apis/$GROUP/v1beta1 LIST=/apis/$GROUP/v1beta1/namespaces/default/$RESOURCE
    local first events
    api GET "$LIST"
    first=$(q .metadata.resourceVersion)
    creating
    listing
    updating
    statuses
    tables
    deleting
    watch_until "$first" "DELETED $MADE" "$LIST"
    events=$(jq -r '"\(.type) \(.object.metadata.name)"' "$WORK/watch" | sed "s/$MADE/made/" | uniq | tr '\n' ',')
    is "$KIND: a watch from before tells it all" "ADDED one,ADDED made,MODIFIED one,DELETED one,ADDED held,MODIFIED held,DELETED held,ADDED set-1,ADDED set-2,ADDED set-3,DELETED set-1,DELETED set-2,DELETED set-3,MODIFIED made,DELETED made," "$events"
    is "$KIND: in the order of its versions" "" "$(jq -r .object.metadata.resourceVersion "$WORK/watch" | sort -nuc 2>&1)"
}

# ---- watch ----

# watching FILE QUERY [LIST]: in the background, lines to the file.
watching() {
    curl -sN --max-time 30 -A func/1 --cacert "$WORK/serving-ca.crt" "${AS[@]}" "${VIA[@]}" -D "$1.headers" -o "$1" "$URL${3:-$SANDBOXES}?watch=true&$2" &
    WATCH_PID=$!
    PIDS+=("$WATCH_PID")
}

# watch_until REVISION "TYPE NAME" LIST: what a watch from there says up to that event, into $WORK/watch.
watch_until() {
    watching "$WORK/watch" "resourceVersion=$1" "$3"
    within 10 grep -q "\"type\":\"${2% *}\".*\"name\":\"${2#* }\"" "$WORK/watch"
    kill "$WATCH_PID"
    wait "$WATCH_PID" 2>/dev/null
}

watches() {
    local version
    LIST=$SANDBOXES
    create "$(sandbox w1 '.metadata.labels.color = "red"')"
    create "$(sandbox w2)"
    version=$(q .metadata.resourceVersion)
    watching "$WORK/list" "sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true&timeoutSeconds=20"
    within 10 grep -q k8s.io/initial-events-end "$WORK/list"
    is "watch: initial events, then the marker" 'ADDED w1,ADDED w2,BOOKMARK null' \
        "$(jq -rs '[.[] | "\(.type) \(.object.metadata.name)"] | join(",")' "$WORK/list")"
    is "watch: the marker has kind and version" "Sandbox agents.x-k8s.io/v1beta1 true true" \
        "$(jq -r --argjson v "$version" 'select(.type == "BOOKMARK") | .object | "\(.kind) \(.apiVersion) \(.metadata.annotations["k8s.io/initial-events-end"]) \((.metadata.resourceVersion | tonumber) >= $v)"' "$WORK/list")"
    kill "$WATCH_PID"

    watching "$WORK/red" "labelSelector=color=red&resourceVersion=$version&timeoutSeconds=20"
    within 10 test -s "$WORK/red.headers"
    api PATCH "$LIST/w2" "${MERGE[@]}" '{"metadata":{"labels":{"color":"red"}}}'
    api PATCH "$LIST/w2" "${MERGE[@]}" '{"metadata":{"labels":{"other":"1"}}}'
    api PATCH "$LIST/w1" "${MERGE[@]}" '{"metadata":{"labels":{"color":"blue"}}}'
    api PATCH "$LIST/w1" "${MERGE[@]}" '{"metadata":{"labels":{"other":"1"}}}'
    api DELETE "$LIST/w2"
    within 10 grep -q 'DELETED.*"w2"' "$WORK/red"
    is "watch: a selector sees objects come and go" 'ADDED w2,MODIFIED w2,DELETED w1,DELETED w2' "$(jq -rs '[.[] | "\(.type) \(.object.metadata.name)"] | join(",")' "$WORK/red")"
    is "watch: one that leaves is told as it was" red "$(jq -r 'select(.object.metadata.name == "w1") | .object.metadata.labels.color' "$WORK/red")"
    kill "$WATCH_PID"

    local begin
    begin=$(now_ms)
    watching "$WORK/short" "resourceVersion=$version&allowWatchBookmarks=true&timeoutSeconds=4"
    wait "$WATCH_PID"
    is "watch: ends at its time without an error" 0 $?
    like "watch: and not before" '^[45]...$' "$(($(now_ms) - begin))"
    api GET "$LIST"
    is "watch: a bookmark comes before the end" "BOOKMARK $(q .metadata.resourceVersion)" "$(tail -n 1 "$WORK/short" | jq -r '"\(.type) \(.object.metadata.resourceVersion)"')"
    like "watch: its headers" '^[Cc]ontent-[Tt]ype: application/json' "$(cat "$WORK/short.headers")"
    api DELETE "$LIST"
}

# ---- scale ----

scaling() {
    local pools=$EXTENSIONS/sandboxwarmpools
    api POST "$pools" "${JSON[@]}" -d "$(pool p)"
    api GET "$pools/p/scale"
    is "scale: get" "200 Scale autoscaling/v1 p 2" "$CODE $(q '"\(.kind) \(.apiVersion) \(.metadata.name) \(.spec.replicas)"')"
    api PUT "$pools/p/scale" --data-binary "$(jq -c '.spec.replicas = 5' <<<"$BODY")" -H Content-Type:
    is "scale: put, without a type as clients do" "200 5" "$CODE $(q .spec.replicas)"
    answers "scale: put of an old version" 409 PUT "$pools/p/scale" "${JSON[@]}" -d '{"kind":"Scale","apiVersion":"autoscaling/v1","metadata":{"name":"p","resourceVersion":"1"},"spec":{"replicas":7}}'
    api PATCH "$pools/p/scale" "${MERGE[@]}" '{"spec":{"replicas":3}}'
    is "scale: merge patch" "200 3" "$CODE $(q .spec.replicas)"
    api PATCH "$pools/p/scale?dryRun=All" "${PATCH[@]}" '[{"op":"replace","path":"/spec/replicas","value":9}]'
    is "scale: a dry run" "200 9" "$CODE $(q .spec.replicas)"
    answers "scale: less than nothing" 422 PATCH "$pools/p/scale" "${MERGE[@]}" '{"spec":{"replicas":-1}}'
    api GET "$pools/p"
    is "scale: the pool has it, and counted the changes" "3 3" "$(q '"\(.spec.replicas) \(.metadata.generation)"')"
    api PATCH "$pools/p/status" "${MERGE[@]}" '{"status":{"replicas":1,"readyReplicas":1,"selector":"a=b"}}'
    api GET "$pools/p/scale"
    is "scale: status and selector" "1 a=b" "$(q '"\(.status.replicas) \(.status.selector)"')"
    api DELETE "$pools/p"
}

# ---- documents ----

# refs_resolve TEXT: every $ref of the last answer, a path into the document, leads somewhere.
refs_resolve() {
    is "$1: every reference leads somewhere" "" "$(q '. as $doc | [.. | objects | .["$ref"]? | strings] | unique[] |
        select(. as $ref | $doc | getpath($ref | ltrimstr("#/") | split("/") | map(gsub("~1"; "/"))) == null)')"
}

documents() {
    local v2='application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList' group etag
    api GET /apis
    is "/apis" "APIGroupList agents.x-k8s.io extensions.agents.x-k8s.io" "$(q '"\(.kind) \([.groups[].name] | sort | join(" "))"')"
    api GET /apis/agents.x-k8s.io
    is "/apis/agents.x-k8s.io" "APIGroup v1beta1" "$(q '"\(.kind) \(.preferredVersion.version)"')"
    api GET $AGENTS
    is "its resources" "sandboxes sandboxes/status" "$(q '[.resources[].name] | sort | join(" ")')"
    api GET $EXTENDED
    is "and those of the extensions" "sandboxclaims sandboxclaims/status sandboxtemplates sandboxwarmpools sandboxwarmpools/scale sandboxwarmpools/status" \
        "$(q '[.resources[].name] | sort | join(" ")')"
    is "all verbs" "create,delete,deletecollection,get,list,patch,update,watch" "$(q '[.resources[] | select(.name | contains("/") | not) | .verbs | sort | join(",")] | unique | join(" ")')"
    api GET /apis -H "Accept: $v2"
    is "aggregated discovery" "$v2 agents.x-k8s.io:sandboxes extensions.agents.x-k8s.io:sandboxclaims,sandboxtemplates,sandboxwarmpools" \
        "$(header Content-Type) $(q '[.items[] | .metadata.name + ":" + ([.versions[].resources[].resource] | sort | join(","))] | sort | join(" ")')"
    etag=$(header ETag)
    answers "aggregated discovery, unchanged" 304 GET /apis -H "Accept: $v2" -H "If-None-Match: $etag"
    api GET /openapi/v3
    is "OpenAPI v3: the index" "apis/agents.x-k8s.io/v1beta1 apis/extensions.agents.x-k8s.io/v1beta1" "$(q '.paths | keys | join(" ")')"
    cp "$WORK/body" "$WORK/index"
    for group in agents extensions.agents; do
        answers "OpenAPI v3: $group" 200 GET "$(jq -r ".paths[\"apis/$group.x-k8s.io/v1beta1\"].serverRelativeURL" "$WORK/index")"
        like "OpenAPI v3: $group may be kept" 'immutable' "$(header Cache-Control)"
        like "OpenAPI v3: $group is version 3" '^3\.0' "$(q .openapi)"
        refs_resolve "OpenAPI v3: $group"
        is "OpenAPI v3: $group: each operation has an id of its own" 0 "$(q '[.paths[][] | objects | .operationId // empty] | length - (unique | length)')"
        is "OpenAPI v3: $group: each kind has a schema that says so" true "$(q '[.components.schemas[] | .["x-kubernetes-group-version-kind"]? // empty | .[].kind] | any(startswith("Sandbox"))')"
    done
    answers "OpenAPI v2" 200 GET /openapi/v2 --compressed
    is "OpenAPI v2: is version 2" 2.0 "$(q .swagger)"
    refs_resolve "OpenAPI v2"
    is "OpenAPI v2: has the four kinds" 4 "$(q '[.paths | keys[] | select(test("namespaces/.namespace./sandbox[a-z]*$"))] | length')"
    answers "version" 200 GET /version
    like "version: one that can be parsed" '^v[0-9]+\.[0-9]+\.[0-9]+' "$(q .gitVersion)"
    answers "metrics" 200 GET /metrics
    like "metrics: requests are counted" '^apiserver_request_total\{.*verb="POST".*\} [1-9]' "$BODY"
    answers "livez, check by check" 200 GET '/livez?verbose'
    has "livez: names them" '[+]ping ok' "$BODY"
    answers "readyz, too" 200 GET '/readyz?verbose'
    has "readyz: the end of the start is one" '[+]startup ok' "$BODY"
    answers "an answer in YAML" 200 GET "$SANDBOXES" -H 'Accept: application/yaml'
    like "that is YAML" '^kind: SandboxList$' "$BODY"
    answers "a long answer is compressed" 200 GET /openapi/v2 -H 'Accept-Encoding: gzip'
    is "when asked for" gzip "$(header Content-Encoding)"
    api HEAD "$SANDBOXES" -I
    is "HEAD has no body" "200 $(md5sum <"$WORK/headers")" "$CODE $(md5sum <"$WORK/body")" # curl puts the headers there
}

# ---- paging ----

# paging COUNT: pages of 100 while others write and while half of the objects go.
paging() {
    local token='' pages=0 version
    t "paging: $1 objects" load create -n "$1" -t 8 -p page -l "$WORK/ledger"
    load_behind mix mix -t 4 -d 3 -p other
    : | tee "$WORK/paged" >"$WORK/versions"
    while :; do
        api GET "$SANDBOXES?limit=100&continue=$token"
        [ "$CODE" = 200 ] || break
        q '.items[] | "\(.metadata.name) \(.metadata.resourceVersion)"' >>"$WORK/paged"
        q .metadata.resourceVersion >>"$WORK/versions"
        token=$(q .metadata.continue)
        pages=$((pages + 1))
        [ $pages != 2 ] || api DELETE "$SANDBOXES?fieldSelector=metadata.name=page-$(printf %05d $(($1 - 1)))"
        [ -n "$token" ] || break
    done
    is "paging: all pages come" 200 "$CODE"
    version=$(head -n 1 "$WORK/versions")
    is "paging: of one version" "$version" "$(sort -u "$WORK/versions")"
    is "paging: no object twice" "" "$(cut -d' ' -f1 "$WORK/paged" | sort | uniq -d)"
    is "paging: all of those there were" "$1" "$(grep -c ^page- "$WORK/paged")"
    api GET "$SANDBOXES?resourceVersion=$version&resourceVersionMatch=Exact"
    is "paging: the same as a list of that version" "$(md5sum <"$WORK/paged")" "$(q '.items[] | "\(.metadata.name) \(.metadata.resourceVersion)"' | md5sum)"
    load_result mix "$LOAD_PID" "paging: those who wrote meanwhile had no trouble"
    answers "paging: deletecollection" 200 DELETE "$SANDBOXES?limit=500"
    answers "paging: until nothing is left" 200 DELETE "$SANDBOXES"
    api GET "$SANDBOXES"
    is "paging: nothing is left" 0 "$(q '.items | length')"
}

VIA=(--http1.1)
life Sandbox agents.x-k8s.io sandboxes sandbox '{"spec":{"service":true}}' "Name Ready Reason Age" "one|True|Tried"
VIA=() # the rest by HTTP/2
life SandboxTemplate extensions.agents.x-k8s.io sandboxtemplates template '{"spec":{"service":true}}' "Name Age" "one"
life SandboxWarmPool extensions.agents.x-k8s.io sandboxwarmpools pool '{"spec":{"replicas":4}}' "Name Ready Desired Age" "one||4"
life SandboxClaim extensions.agents.x-k8s.io sandboxclaims claim '{"spec":{"lifecycle":{"ttlSecondsAfterFinished":5}}}' "Name Ready Sandbox Reason Age" "one|True||Tried"
watches
scaling
documents
if [ -z "$SLOW" ]; then paging 1200; else paging 450; fi
