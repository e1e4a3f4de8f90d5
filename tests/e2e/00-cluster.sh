#!/bin/bash
# The cluster itself, with plain pods: what the other tests rely on, and hack/cluster's own promises.
WITHOUT_SERVER=1
# shellcheck source=tests/e2e/lib.sh
. "$(dirname "$0")/lib.sh"
namespace "$NS"

began=$EPOCHREALTIME
t "up on a running cluster changes nothing" sh -c "'$CLUSTER' up | grep 'already running'"
like "and takes less than two seconds" '^[01]\.' "$(awk -v a="$began" -v b="$EPOCHREALTIME" 'BEGIN { printf "%.2f", b - a }')"
report=$("$CLUSTER" status -o json)
is "status -o json says that all run" true "$(printf '%s' "$report" | jq .running)"
is "and gives a pid for each" true "$(printf '%s' "$report" | jq '[.components[] | .pid > 1] | all')"
t "status is for people as well" "$CLUSTER" status
[ "$CLUSTER_NODE" = real ] || { skip "pods on a real node" "the cluster has a fake node" && exit 0; }

kubectl -n "$NS" apply -f - >/dev/null <<E
apiVersion: v1
kind: Service
metadata: {name: named}
spec: {selector: {app: web}, ports: [{port: 80, targetPort: 8080}]}
---
apiVersion: v1
kind: Service
metadata: {name: headless}
spec: {clusterIP: None, selector: {app: web}, ports: [{port: 8080}]}
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: data}
spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 16Mi}}}
E
web() {
    kubectl -n "$NS" apply -f - <<E
apiVersion: v1
kind: Pod
metadata: {name: web, labels: {app: web}}
spec:
  terminationGracePeriodSeconds: 1
  securityContext: {runAsNonRoot: true, runAsUser: 1000, fsGroup: 2000}
  containers:
  - name: web
    image: $IMAGE
    command: [sh, -c, "echo again >> /data/starts; exec httpd -f -p 8080 -h /data"]
    readinessProbe: {httpGet: {path: /starts, port: 8080}, periodSeconds: 1}
    volumeMounts: [{name: data, mountPath: /data}]
  volumes: [{name: data, persistentVolumeClaim: {claimName: data}}]
E
}
web >/dev/null
t "a pod with a volume, not as root, becomes ready" kubectl -n "$NS" wait --for=condition=Ready pod/web --timeout 60s
client ask
is "a pod reaches it by its Service's address" again "$(kubectl -n "$NS" exec ask -- wget -qO- http://named/starts 2>&1)"
is "and by a headless Service's name" again "$(kubectl -n "$NS" exec ask -- wget -qO- "http://headless.$NS.svc.cluster.local:8080/starts" 2>&1)"
is "a process in the cluster's network as well" again "$("$CLUSTER" run curl -s "http://named.$NS.svc/starts" 2>&1)"
like "logs and exec go to the kubelet" starts "$(kubectl -n "$NS" exec web -- ls /data 2>&1)"
kubectl -n "$NS" delete pod web >/dev/null
web >/dev/null
t "the pod is made again" kubectl -n "$NS" wait --for=condition=Ready pod/web --timeout 60s
is "and finds its data" 2 "$(kubectl -n "$NS" exec web -- grep -c again /data/starts 2>&1)"
like "there is no way out of the cluster" '100% packet loss|unreachable' "$(kubectl -n "$NS" exec ask -- ping -c 1 -W 1 192.0.2.1 2>&1)"

pid=$(printf '%s' "$report" | jq '.components[] | select(.name == "kube-scheduler") | .pid')
kill -9 "$pid"
is "status notices a killed component" false "$("$CLUSTER" status -o json | jq .running)"
t "up starts it again" "$CLUSTER" up
is "and all run" true "$("$CLUSTER" status -o json | jq .running)"
kubectl -n "$NS" delete pod ask >/dev/null
client ask2
ok "pods are scheduled again"
