# The terminal of the page at /ui/, in a headless Chromium, into a real container.
# shellcheck shell=bash disable=SC2034 source=tests/node/lib.sh
STANDALONE=1
command -v chromium >/dev/null || "$(dirname "$0")/../../hack/deps" page >&2
command -v chromium >/dev/null || { echo "ok 1 - terminal # skip no chromium here, and it cannot be installed" && echo 1..1 && exit 0; }
. "$(dirname "$0")/lib.sh"

real_node_up "the node registers itself with a server without a cluster"
SANDBOXES=/apis/agents.x-k8s.io/v1beta1/namespaces/default/sandboxes
post() { kube POST "$1" "${JSON[@]}" -d "$2"; }
is_ready_object() { kube GET "$1" | jq -e "$READY" >/dev/null; }
post "$SANDBOXES" '{"apiVersion": "agents.x-k8s.io/v1beta1", "kind": "Sandbox", "metadata": {"name": "shell"}, "spec": {"podTemplate": {"spec": {
    "terminationGracePeriodSeconds": 1, "containers": [{"name": "main", "image": "'$BUSYBOX'", "command": ["sleep", "100000"]}]}}}}' >/dev/null
t "a Sandbox runs" within 90 is_ready_object "$SANDBOXES/shell"

# Somebody who may see everything of the namespace, but not reach in.
ROLES=/apis/rbac.authorization.k8s.io/v1/namespaces/default
post /api/v1/namespaces/default/serviceaccounts '{"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "viewer"}}' >/dev/null
post "$ROLES/rolebindings" '{"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding", "metadata": {"name": "viewer"}, "subjects": [{"kind": "ServiceAccount",
    "name": "viewer", "namespace": "default"}], "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "view"}}' >/dev/null
VIEWER=$(post /api/v1/namespaces/default/serviceaccounts/viewer/token '{"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}}' | jq -r .status.token)

SPKI=$(openssl x509 -in "$WORK/server/serving.crt" -pubkey -noout | openssl pkey -pubin -outform der | openssl dgst -sha256 -binary | base64)
while IFS= read -r line; do # its lines, with our numbers
    case $line in
    "ok "*) ok "${line#ok * - }" ;;
    "not ok "*) not_ok "${line#not ok * - }" ;;
    1..*) ;;
    *) echo "# ${line#"# "}" ;;
    esac
done < <(python3 "$ROOT/tests/ui/terminal.py" "$WORK/server/ui.url" "$SPKI" shell "$VIEWER" 2>&1 || echo "not ok 0 - the browser's part ends well")

kube DELETE "$SANDBOXES/shell" >/dev/null
nothing_there() { kube GET "$PODS" | jq -e '.items == []' >/dev/null; }
t "the Sandbox goes" within 60 nothing_there
nothing_left "nothing is left of it on the machine"
