# The life of Pods with real containers: start, status, restarts, init containers and sidecars, hooks, the end, and a node that dies.
# shellcheck shell=bash source=tests/node/lib.sh
. "$(dirname "$0")/lib.sh"

real_node_up "the node starts and registers itself"
is "its Node is Ready" True "$(kube GET "/api/v1/nodes/$NODE_NAME" | jq -r '.status.conditions[] | select(.type == "Ready") | .status')"
t "and keeps a lease" within 20 kube GET "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/$NODE_NAME"

# ---- a plain one ----

BEGIN=$(now_ms)
pod plain '.metadata.annotations = {app: "x y"} | .spec.hostname = "box" | .spec.subdomain = "boxes" | main(.args = ["sh", "$(NONE)", "$$(GREETING)"] | .command = ["sh", "-c",
    "echo \"$(GREETING) $1 $2 $POD_IP\"; trap \"exit 0\" TERM; sleep 100000 & wait"] | .workingDir = "/tmp" | .env = [
    {name: "WHO", value: "you"}, {name: "GREETING", value: "hello $(WHO)"},
    {name: "POD_IP", valueFrom: {fieldRef: {fieldPath: "status.podIP"}}},
    {name: "LABEL", valueFrom: {fieldRef: {fieldPath: "metadata.annotations['"'app'"']"}}},
    {name: "CPUS", valueFrom: {resourceFieldRef: {resource: "limits.cpu", divisor: "1m"}}}] |
    .resources = {limits: {cpu: "250m", memory: "64Mi"}})'
comes "a Pod becomes Ready" plain "$READY"
echo "# it took $(($(now_ms) - BEGIN)) ms"
STATUS=$(get plain .status)
is "its phase is Running" Running "$(jq -r .phase <<<"$STATUS")"
is "its conditions are those of a kubelet" \
    "ContainersReady=True Initialized=True PodReadyToStartContainers=True PodScheduled=True Ready=True" \
    "$(jq -r '[.conditions[] | "\(.type)=\(.status)"] | sort | join(" ")' <<<"$STATUS")"
like "it has an address of the range" '^10\.90\.' "$(jq -r .podIP <<<"$STATUS")"
is "once" "[{\"ip\":\"$(jq -r .podIP <<<"$STATUS")\"}]" "$(jq -c .podIPs <<<"$STATUS")"
is "the node's address is said" 127.0.0.1 "$(jq -r .hostIP <<<"$STATUS")"
is "its container's status is whole" '["running"] true true 0 true' \
    "$(jq -r '.containerStatuses[0] | "\(.state | keys | tojson) \(.ready) \(.started) \(.restartCount) \(.containerID | startswith("podman://"))"' <<<"$STATUS")"
like "variables are expanded in commands, and \$\$ is not" "^hello you \\\$\\(NONE\\) \\\$\\(GREETING\\) 10\\.90\\." "$(said plain)"
is "fields and resources become variables" "x y 250" "$(inside plain sh -c 'echo "$LABEL $CPUS"')"
is "the working directory is as asked for" /tmp "$(inside plain sh -c 'readlink /proc/1/cwd')"
is "the host name is the Pod's" box "$(inside plain hostname)"
has "its full name is in /etc/hosts" "box.boxes.default.svc.cluster.local" "$(inside plain cat /etc/hosts)"
t "the node reaches the Pod" busybox ping -c 1 -W 5 "$(get plain .status.podIP)"
is "memory is limited by its control group" 67108864 \
    "$(inside plain sh -c 'cat /sys/fs/cgroup/memory.max /sys/fs/cgroup/memory/memory.limit_in_bytes 2>/dev/null | head -n 1')"

# ---- ends ----

pod done '.spec.restartPolicy = "Never" | run("echo last words > /dev/termination-log")'
pod failed '.spec.restartPolicy = "Never" | run("echo to its output; exit 3") | main(.terminationMessagePolicy = "FallbackToLogsOnError")'
pod crash 'run("exit 1")'
pod nosuch '.spec.restartPolicy = "Never" | main(.command = ["/no/such/program"])'
comes "a command that ends well makes Succeeded" 'done' '.status.phase == "Succeeded"'
is "with the reasons of a kubelet" "Completed 0 last words|PodCompleted" "$(get 'done' '(.status.containerStatuses[0].state.terminated | "\(.reason) \(.exitCode) \(.message | rtrimstr("\n"))") +
    "|" + (.status.conditions[] | select(.type == "Ready") | .reason)')"
comes "one that fails makes Failed" failed '.status.phase == "Failed"'
is "with exit code and its output as message" "Error 3 to its output" "$(get failed '.status.containerStatuses[0].state.terminated | "\(.reason) \(.exitCode) \(.message | rtrimstr("\n"))"')"
comes "a program that is not there makes Failed" nosuch '.status.phase == "Failed"'
is "with what the engine says" "StartError 128" "$(get nosuch '.status.containerStatuses[0].state.terminated | "\(.reason) \(.exitCode)"')"
comes "one that ends again and again waits in CrashLoopBackOff" crash '.status.containerStatuses[0] | .state.waiting.reason == "CrashLoopBackOff" and .restartCount == 1 and
    .lastState.terminated.exitCode == 1'
is "its phase stays Running" Running "$(get crash .status.phase)"
comes "and is started again after the back-off" crash '.status.containerStatuses[0].restartCount >= 2' 40

# ---- init containers and sidecars ----

pod init '.spec.volumes = [{name: "work", emptyDir: {}}] | .spec.containers[0].volumeMounts = [{name: "work", mountPath: "/work"}] |
    run("cat /work/log; sleep 100000") | def init(n; s): {name: n, image: .spec.containers[0].image, command: ["sh", "-c", s], volumeMounts: [{name: "work", mountPath: "/work"}]};
    .spec.initContainers = [init("first"; "echo first >> /work/log"),
        (init("side"; "echo side >> /work/log; touch /ready; sleep 100000") + {restartPolicy: "Always", startupProbe: {exec: {command: ["cat", "/ready"]}, periodSeconds: 1}}),
        init("second"; "echo second >> /work/log")]'
comes "a Pod with init containers and a sidecar becomes Ready" init "$READY"
is "they ran in order" "first side second" "$(said init | paste -sd' ')"
is "the sidecar runs on" "Completed running Completed" "$(get init '[.status.initContainerStatuses[] | .state.terminated.reason // (.state | keys[0])] | join(" ")')"
pod badinit '.spec.restartPolicy = "Never" | .spec.initContainers = [{name: "first", image: .spec.containers[0].image, command: ["false"]}]'
comes "an init container that fails makes Failed" badinit '.status.phase == "Failed"'
is "its condition says which" "ContainersNotInitialized containers with incomplete status: [first]" \
    "$(get badinit '.status.conditions[] | select(.type == "Initialized") | "\(.reason) \(.message)"')"
pod sidecar '.spec.restartPolicy = "Never" | run("exit 0") | .spec.initContainers = [{name: "side", image: .spec.containers[0].image,
    command: ["sh", "-c", "trap \"exit 0\" TERM; sleep 100000 & wait"], restartPolicy: "Always"}]'
comes "a Pod whose work is done is Succeeded though its sidecar ran" sidecar '.status.phase == "Succeeded"'
comes "and the sidecar is ended" sidecar '.status.initContainerStatuses[0].state.terminated != null'

# ---- hooks and deadlines ----

pod hooks '.spec.volumes = [{name: "out", persistentVolumeClaim: {claimName: "hooks"}}] | .spec.terminationGracePeriodSeconds = 20 |
    run("trap \"echo term >> /out/log; exit 0\" TERM; sleep 100000 & wait") | main(.volumeMounts = [{name: "out", mountPath: "/out"}] |
    .lifecycle = {postStart: {exec: {command: ["sh", "-c", "echo started >> /out/log"]}}, preStop: {exec: {command: ["sh", "-c", "echo stopping >> /out/log"]}}})'
comes "a Pod waits for its claim" hooks '.status.containerStatuses[0].state.waiting.reason == "ContainerCreating"'
t "and an event says so" within 20 eval 'kube GET "/api/v1/namespaces/default/events" | jq -e "any(.items[]; .reason == \"FailedMount\" and .involvedObject.name == \"hooks\")" >/dev/null'
kube POST /api/v1/namespaces/default/persistentvolumeclaims -H 'Content-Type: application/json' -d '{"metadata": {"name": "hooks"},
    "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Mi"}}}}' >/dev/null
comes "it becomes Ready once the claim is there" hooks "$READY"
pod_delete hooks
gone "it ends when it is deleted" hooks
is "hooks and signal came in order" "started stopping term" "$(paste -sd' ' "$DATA"/claims/*/log)"
pod deadline '.spec.activeDeadlineSeconds = 2'
comes "a Pod past its deadline is Failed" deadline '.status.phase == "Failed" and .status.reason == "DeadlineExceeded"'
pod stubborn '.spec.terminationGracePeriodSeconds = 2 | run("trap \"\" TERM; while :; do sleep 1; done")'
comes "a Pod that ignores SIGTERM becomes Ready" stubborn "$READY"
BEGIN=$(now_ms)
pod_delete stubborn
gone "it is killed after its grace period" stubborn 30
t "not before" test $(($(now_ms) - BEGIN)) -ge 1900

# ---- the node dies ----

ID=$(container plain)
node_kill 9
pod_delete 'done'
pod_delete failed '?gracePeriodSeconds=0'
pod early
pod_delete early
real_node_up "the node starts again after kill -9"
gone "what was deleted meanwhile is ended" 'done'
gone "and what was deleted before it was started" early
is "the same container goes on" "$ID" "$(container plain)"
comes "its Pod is Ready" plain "$READY and .status.containerStatuses[0].restartCount == 0"
within 20 eval '[ "$(node_podman ps -aq --filter label=node.agent-sandbox.dev/pod=default/failed | wc -l)" = 0 ]'
is "containers of a Pod that is gone are removed" 0 "$(node_podman ps -aq --filter label=node.agent-sandbox.dev/pod=default/failed | wc -l)"
kill -9 "$(pgrep -P "$NODE_PID")"
pod after
comes "Pods are run after the engine has died, too" after "$READY"
node_podman kill "$(container plain '')" >/dev/null
comes "a Pod whose sandbox dies is built anew" plain "$READY and .status.containerStatuses[0].restartCount == 1" 90

for name in plain crash nosuch init badinit sidecar deadline after; do pod_delete $name; done
for name in plain crash nosuch init badinit sidecar deadline after; do within 60 pod_gone $name; done
nothing_left "nothing is left of all Pods"
node_kill TERM
is "the node ends with exit code 0" 0 $?
