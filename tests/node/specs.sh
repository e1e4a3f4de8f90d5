# What Pods may ask for and get, and what hostile ones do not: volumes, security, probes, images, refusals.
# shellcheck shell=bash source=tests/node/lib.sh
. "$(dirname "$0")/lib.sh"
ALLOWED=$WORK/shared
mkdir -p "$ALLOWED/in" && echo shared >"$ALLOWED/in/file"
NODE_FLAGS=(--sync-frequency 1s)
mount -t tmpfs tmpfs /etc/containers/registries.conf.d && printf '[[registry]]\nlocation = "127.0.0.1:5001"\ninsecure = true\n' >/etc/containers/registries.conf.d/slow.conf
python3 -c 'import socket, signal; s = socket.create_server(("127.0.0.1", 5001), backlog=100); signal.pause()' &
PIDS+=($!)
real_node_up "the node starts" --allowed-host-paths "$ALLOWED" --allowed-capabilities NET_BIND_SERVICE

# ---- volumes ----

object() { kube POST "/api/v1/namespaces/default/$1" -H 'Content-Type: application/json' -d "$2" >/dev/null; }
object configmaps '{"metadata": {"name": "settings"}, "data": {"a": "1", "b": "2"}, "binaryData": {"c": "AAE="}}'
object secrets '{"metadata": {"name": "hidden"}, "stringData": {"key": "word"}}'
object persistentvolumeclaims '{"metadata": {"name": "kept"}, "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Mi"}}}}'
pod volumes '.metadata.labels = {app: "x"} | .spec.securityContext = {fsGroup: 4000, runAsUser: 1000} | .spec.volumes = [
    {name: "disk", emptyDir: {}}, {name: "memory", emptyDir: {medium: "Memory", sizeLimit: "1Mi"}},
    {name: "settings", configMap: {name: "settings", items: [{key: "a", path: "sub/x", mode: 256}]}}, {name: "hidden", secret: {secretName: "hidden"}},
    {name: "own", downwardAPI: {items: [{path: "labels", fieldRef: {fieldPath: "metadata.labels"}}]}},
    {name: "all", projected: {sources: [{configMap: {name: "settings"}}, {secret: {name: "hidden", optional: true}}, {secret: {name: "none", optional: true}}]}},
    {name: "kept", persistentVolumeClaim: {claimName: "kept"}}, {name: "shared", hostPath: {path: "'"$ALLOWED/in"'", type: "Directory"}}] |
    def at(n; p): {name: n, mountPath: p};
    main(.envFrom = [{configMapRef: {name: "settings"}, prefix: "S_"}] | .volumeMounts = [at("disk"; "/disk"), at("memory"; "/memory"), at("settings"; "/settings"),
        at("hidden"; "/hidden"), at("own"; "/own"), at("all"; "/all"), at("kept"; "/kept"), at("shared"; "/shared") + {readOnly: true},
        at("disk"; "/part") + {subPath: "made/deep"}, at("all"; "/etc/one-file") + {subPath: "a"}])'
comes "a Pod with every kind of volume becomes Ready" volumes "$READY"
is "files come from config maps and secrets" "1 word 1 2 word" "$(inside volumes sh -c 'for f in /settings/sub/x /hidden/key /all/a /all/b /all/key; do echo $(cat $f); done' | paste -sd' ')"
is "binary data, too" "00 01" "$(inside volumes od -An -tx1 /all/c | xargs)"
is "a single file by subPath" 1 "$(inside volumes cat /etc/one-file)"
is "fields of the Pod" 'app="x"' "$(inside volumes cat /own/labels)"
is "variables from a whole object" 1 "$(inside volumes sh -c 'echo $S_a')"
is "a mode is kept, with the group's right to read" 440 "$(inside volumes stat -c %a /settings/sub/x)"
is "the user is as asked for, the volume's group is his" "1000 4000" "$(inside volumes sh -c 'id -u; id -G' | xargs | awk '{print $1, $NF}')"
t "he writes to disk, memory, claim and part" inside volumes sh -c 'for d in disk memory kept part; do echo x > /$d/f || exit 1; done'
is "a part is a folder in the volume" x "$(inside volumes cat /disk/made/deep/f)"
like "memory has its limit" '1024|1\.0M' "$(inside volumes df -k /memory | tail -n 1)"
has "config is read-only" "Read-only" "$(inside volumes sh -c 'echo x > /settings/new')"
is "an allowed folder of the machine is there" shared "$(inside volumes cat /shared/file)"
has "read-only where asked for" "Read-only" "$(inside volumes sh -c 'echo x > /shared/file')"
pod_delete volumes
gone "it ends" volumes
pod again '.spec.volumes = [{name: "kept", persistentVolumeClaim: {claimName: "kept"}}] | main(.volumeMounts = [{name: "kept", mountPath: "/kept"}])'
comes "another Pod takes the claim" again "$READY"
is "what was written is there" x "$(inside again cat /kept/f)"

# ---- volumes follow what they are filled from ----

# change KIND/NAME JSON: a merge patch.
change() { kube PATCH "/api/v1/namespaces/default/$1" -H 'Content-Type: application/merge-patch+json' -d "$2" >/dev/null; }
remove() { kube DELETE "/api/v1/namespaces/default/$1" >/dev/null; }
kube GET /api/v1/namespaces/default/serviceaccounts/default >/dev/null 2>&1 || object serviceaccounts '{"metadata": {"name": "default"}}'
object configmaps '{"metadata": {"name": "moving"}, "data": {"a": "old", "b": "old", "folder.c": "old"}}'
object configmaps '{"metadata": {"name": "fixed"}, "immutable": true, "data": {"f": "old"}}'
object secrets '{"metadata": {"name": "moved"}, "stringData": {"key": "old"}}'
pod follower '.metadata.labels = {app: "old"} | .spec.serviceAccountName = "default" | .spec.volumes = [{name: "fixed", configMap: {name: "fixed"}},
    {name: "parts", configMap: {name: "moving", items: [{key: "folder.c", path: "folder/c"}]}},
    {name: "all", projected: {sources: [{configMap: {name: "moving"}}, {secret: {name: "moved"}}, {configMap: {name: "later", optional: true}},
        {downwardAPI: {items: [{path: "labels", fieldRef: {fieldPath: "metadata.labels"}}]}}, {serviceAccountToken: {path: "token", expirationSeconds: 600}}]}}] |
    def at(n; p): {name: n, mountPath: p};
    main(.volumeMounts = [at("fixed"; "/fixed"), at("all"; "/all"), at("all"; "/one") + {subPath: "a"}, at("parts"; "/folder") + {subPath: "folder"}])'
comes "a Pod with volumes from other objects becomes Ready" follower "$READY"
FOLLOWER=$(container follower)
# shows FILE...: what is in them, - of those that are not there.
shows() { node_podman exec "$FOLLOWER" sh -c 'for f; do cat $f 2>/dev/null || printf -- -; echo; done' - "$@" | xargs; }
shows_now() { [ "$(shows "${@:2}")" = "$1" ]; }
# follows TEXT CONTENT FILE...
follows() { if within 30 shows_now "${@:2}"; then ok "$1"; else not_ok "$1" "$(shows "${@:3}"; tail -n 5 "$WORK/node.log")"; fi; }
ALL=(/all/a /all/b /all/key /all/labels /all/z)
is "its files are of the objects as they are" 'old old old app=old -' "$(shows "${ALL[@]}")"
TOKEN=$(shows /all/token)
like "it has a token" '^[^.]+\.[^.]+\.[^.]+$' "$TOKEN"
remove configmaps/fixed
object configmaps '{"metadata": {"name": "fixed"}, "data": {"f": "new"}}'
object configmaps '{"metadata": {"name": "later"}, "data": {"z": "new"}}'
change secrets/moved '{"stringData": {"key": "new"}}'
change pods/follower '{"metadata": {"labels": {"app": "new"}}}'
change configmaps/moving '{"data": {"a": "new", "b": null, "folder.c": "new"}}'
follows "they follow: a value, one less, a secret, a label, an optional object that appears" 'new - new app=new new' "${ALL[@]}"
is "at once: every name leads through one link" ..data/a "$(node_podman exec "$FOLLOWER" readlink /all/a)"
is "parts stay what they were" "old old" "$(shows /one /folder/c)"
is "so does what came from an immutable object" old "$(shows /fixed/f)"
is "and a token that is not due" "$TOKEN" "$(shows /all/token)"
remove configmaps/later
follows "an optional object that vanishes takes its file along" 'new -' /all/a /all/z
remove configmaps/moving
told_of_missing() { kube GET "/api/v1/namespaces/default/events" | jq -e 'any(.items[]; .involvedObject.name == "follower" and .reason == "FailedMount" and (.message | contains("moving")))' >/dev/null; }
t "an event says of an object that is missed" within 30 told_of_missing
is "and its files stay" 'new new' "$(shows /all/a /all/key)"
object configmaps '{"metadata": {"name": "moving"}, "data": {"a": "back", "folder.c": "back"}}'
follows "until it is back" back /all/a
node_kill 9
real_node_up "the node starts again" --allowed-host-paths "$ALLOWED" --allowed-capabilities NET_BIND_SERVICE
has_other_token() { local now; now=$(shows /all/token) && [ "$now" != "$TOKEN" ] && [ -n "$now" ] && [ "$now" != - ]; }
t "one that knows no token any more gets another" within 30 has_other_token
is "into the container that runs" "$FOLLOWER" "$(container follower)"
pod_delete follower

# ---- security ----

pod bare 'main(.securityContext = {allowPrivilegeEscalation: false, readOnlyRootFilesystem: true, runAsUser: 1234, runAsGroup: 5678, capabilities: {drop: ["ALL"]}})'
pod bind 'main(.securityContext = {capabilities: {drop: ["ALL"], add: ["NET_BIND_SERVICE"]}})'
pod notroot 'main(.securityContext = {runAsNonRoot: true})'
comes "a Pod with no rights becomes Ready" bare "$READY"
is "it has user, group, no capabilities and gets no new ones" "1234 5678 0000000000000000 1 2" \
    "$(inside bare sh -c 'echo $(id -u) $(id -g) $(awk "/^CapBnd|^NoNewPrivs|^Seccomp:/ {print \$2}" /proc/1/status)')"
has "its root is read-only" "Read-only" "$(inside bare touch /new)"
comes "a Pod with an allowed capability becomes Ready" bind "$READY"
is "it has that alone" 0000000000000400 "$(inside bind awk '/^CapBnd/ {print $2}' /proc/1/status)"
comes "an image of root does not run where root is forbidden" notroot '.status.containerStatuses[0].state.waiting.reason == "CreateContainerConfigError"'

# ---- probes ----

pod probed '.spec.volumes = [{name: "w", emptyDir: {}}] | run("touch /w/started; httpd -p 8080 -h /w; sleep 100000") | main(.volumeMounts = [{name: "w", mountPath: "/w"}] |
    .ports = [{name: "web", containerPort: 8080}] | .startupProbe = {exec: {command: ["cat", "/w/started"]}, periodSeconds: 1} |
    .readinessProbe = {httpGet: {path: "/ready", port: "web"}, periodSeconds: 1, failureThreshold: 1} |
    .livenessProbe = {tcpSocket: {port: 8080}, periodSeconds: 1, failureThreshold: 2})'
comes "a Pod whose startup probe passes has started" probed '.status.containerStatuses[0].started == true'
t "it is not Ready while its readiness probe fails" pod_is probed '.status.containerStatuses[0].ready == false and .status.phase == "Running"'
inside probed touch /w/ready >/dev/null
comes "it becomes Ready when it passes" probed "$READY"
inside probed rm /w/ready >/dev/null
comes "and not Ready again" probed "$READY | not"
inside probed killall httpd >/dev/null
comes "it is started again when its liveness probe fails" probed '.status.containerStatuses[0].restartCount == 1 and .status.containerStatuses[0].started == true'
is "its probe is named in an event" 1 "$(kube GET '/api/v1/namespaces/default/events?fieldSelector=reason=Unhealthy' | jq '[.items[] | select(.message | test("livenessProbe"))] | length')"

pod loud 'run("while :; do { printf \"HTTP/1.1 500 x\\r\\n\\r\\n\"; head -c 200000 /dev/zero; } | nc -l -p 8080; done") |
    main(.livenessProbe = {httpGet: {port: 8080}, periodSeconds: 1, timeoutSeconds: 5} | .lifecycle.postStart.exec.command = ["head", "-c", "200000", "/dev/zero"])'
told_of_500() { kube GET '/api/v1/namespaces/default/events?fieldSelector=reason=Unhealthy' | jq -e 'any(.items[]; .message | test("HTTP status 500"))' >/dev/null; }
t "an answer of 500 is a failure, however long; a hook may say as much" within 60 told_of_500
pod patient '.spec.volumes = [{name: "w", emptyDir: {}}] | run("mkdir /w/again && sleep 6 && exit 1; cut -d. -f1 /proc/uptime > /w/began; sleep 100000") |
    main(.volumeMounts = [{name: "w", mountPath: "/w"}] | .livenessProbe = {initialDelaySeconds: 4, periodSeconds: 2,
        exec: {command: ["sh", "-c", "[ ! -e /w/began ] || [ -e /w/probed ] || cut -d. -f1 /proc/uptime > /w/probed"]}})'
comes "a container that fails runs again" patient '.status.containerStatuses[0] | .restartCount == 1 and .state.running'
t "and is probed" within 60 inside patient cat /w/probed
t "not before its delay" [ "$(($(inside patient cat /w/probed) - $(inside patient cat /w/began)))" -ge 3 ]
pod hangs 'main(.lifecycle.postStart.exec.command = ["sleep", "1000"]) | .spec.containers += [range(9) as $i | .spec.containers[0] | .name = "more-\($i)"]'
comes "a Pod has ten hooks that hang" hangs '[.status.containerStatuses[]? | select(.state.running and (.started | not))] | length == 10'
pod polite 'main(.lifecycle.postStart.exec.command = ["true"])'
comes "another Pod's hook is done nevertheless" polite "$READY"
for name in loud patient hangs polite; do pod_delete $name; done

# Registries that take a connection and say nothing; one worker of the node each would be all of them.
for i in {1..20}; do pod "slow-$i" 'main(.image = "127.0.0.1:5001/x:1")'; done
slow_are_begun() { [ "$(ss -Htn state established "( dport = :5001 )" | wc -l)" -ge 16 ]; }
t "images are asked for from a registry that does not answer" within 60 slow_are_begun
pod prompt
comes "another Pod starts nevertheless" prompt "$READY"
for i in {1..20}; do pod_delete "slow-$i"; done
gone "and those that wait for it can be deleted" slow-20
pod_delete prompt

# ---- hostile ones ----

# refused TEXT NAME REASON FIELD JQ-PROGRAM
refused() {
    pod "$2" "$5"
    comes "$1: is Failed" "$2" ".status.phase == \"Failed\" and .status.reason == \"$3\""
    has "$1: a condition says why" "$4" "$(get "$2" '.status.conditions[] | select(.type == "Ready") | .message')"
    is "$1: no container was made" "" "$(node_podman ps -aq --filter "label=node.agent-sandbox.dev/pod=default/$2")"
}
refused "a folder of the machine that is not allowed" host ForbiddenPod "spec.volumes[0].hostPath" '.spec.volumes = [{name: "v", hostPath: {path: "/etc"}}]'
refused "a capability that is not allowed" admin ForbiddenPod "SYS_ADMIN" 'main(.securityContext = {capabilities: {add: ["SYS_ADMIN"]}})'
refused "the machine's network" net ForbiddenPod spec.hostNetwork '.spec.hostNetwork = true'
refused "10,000 variables" vars ForbiddenPod "too many variables" 'main(.env = [range(10000) | {name: "v\(.)", value: "x"}])'
refused "a volume that is not supported" nfs UnsupportedPod "spec.volumes[0].nfs" '.spec.volumes = [{name: "v", nfs: {server: "x", path: "/"}}]'
t "an event says it, too" within 20 eval 'kube GET "/api/v1/namespaces/default/events" | jq -e "any(.items[]; .reason == \"ForbiddenPod\" and .involvedObject.name == \"host\")" >/dev/null'

# A link that one container puts into a volume leads the next one nowhere.
echo secret >"$WORK/secret"
pod links '.spec.volumes = [{name: "v", emptyDir: {}}] | .spec.initContainers = [{name: "trap", image: .spec.containers[0].image, volumeMounts: [{name: "v", mountPath: "/v"}],
    command: ["ln", "-s", "'"$WORK"'", "/v/link"]}] | main(.volumeMounts = [{name: "v", mountPath: "/in", subPath: "link"}])'
comes "a subPath over a link is refused" links '.status.containerStatuses[0].state.waiting | .reason == "CreateContainerConfigError" and (.message | test("leads out"))'
pod noimage 'main(.image = "localhost/agent-sandbox/none:1")'
pod never 'main(.image = "localhost/agent-sandbox/none:1" | .imagePullPolicy = "Never")'
comes "an image that is not there is said to be" noimage '.status.containerStatuses[0].state.waiting.reason | . == "ErrImagePull" or . == "ImagePullBackOff"'
comes "an image that is never pulled, too" never '.status.containerStatuses[0].state.waiting.reason == "ErrImageNeverPull"'

NAMES=(again bare bind notroot probed host admin net vars nfs links noimage never)
for name in "${NAMES[@]}"; do pod_delete $name; done
for name in "${NAMES[@]}"; do within 60 pod_gone $name; done
nothing_left "nothing is left of all Pods"
kube DELETE /api/v1/namespaces/default/persistentvolumeclaims/kept >/dev/null
kube PATCH /api/v1/namespaces/default/persistentvolumeclaims/kept -H 'Content-Type: application/merge-patch+json' -d '{"metadata": {"finalizers": null}}' >/dev/null 2>&1
claims_are_gone() { [ -z "$(ls "$DATA/claims")" ]; }
t "nor of a claim that is deleted" within 90 claims_are_gone
