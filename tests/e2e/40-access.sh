#!/bin/bash
# Who may do what: RBAC through kube-apiserver, and on the server's own port, which must trust nobody's word.
# shellcheck source=tests/e2e/lib.sh
. "$(dirname "$0")/lib.sh"
namespace "$NS"
list=$GROUP/namespaces/$NS/sandboxes
create box >/dev/null || bail "a Sandbox cannot be made"

# --- through kube-apiserver ---
denied="sandboxes.agents.x-k8s.io is forbidden: User \"jane\" cannot list resource \"sandboxes\" in API group \"agents.x-k8s.io\" in the namespace \"$NS\""
has "a user without rights gets the usual text" "$denied" "$(kubectl -n "$NS" get sandboxes --as jane 2>&1)"
kubectl -n "$NS" create rolebinding jane-view --clusterrole view --user jane >/dev/null
t "the cluster's role view lets her list" within 10 kubectl -n "$NS" get sandboxes --as jane
refused "but not delete" 'User "jane" cannot delete resource "sandboxes" in API group' kubectl -n "$NS" delete sandbox box --as jane
is "auth can-i agrees" no "$(kubectl -n "$NS" auth can-i create sandboxes.agents.x-k8s.io --as jane 2>/dev/null)"
kubectl -n "$NS" create rolebinding joe-edit --clusterrole edit --user joe >/dev/null
t "the role edit lets joe create" within 10 create joes --as joe
t "and delete" kubectl -n "$NS" delete sandbox joes --as joe --timeout 30s
refused "but not in another namespace" 'User "joe" cannot list resource "sandboxes"' kubectl -n default get sandboxes --as joe

# --- straight to the server's port ---
! lacks aggregator "past the front proxy, straight to the server's port" || exit 0
[ -n "$CLUSTER_NETNS" ] || { skip "the server's own port" "the cluster has no network of its own" && exit 0; }
like "without any identity it is refused" '^(401|403) ' "$(direct "$list")"
like "the probe paths are open" '^200 ok' "$(direct /livez)"
forged=(-H 'X-Remote-User: admin' -H 'X-Remote-Group: system:masters')
like "X-Remote-User without a certificate is not believed" '^(401|403) ' "$(direct "$list" "${forged[@]}")"
certificate mallory /CN=mallory
answer=$(direct "$list" --cert "$WORK/mallory.crt" --key "$WORK/mallory.key")
like "a client certificate of the cluster's authority is its own user" '^403 .*User \\"mallory\\" cannot list' "$answer"
answer=$(direct "$list" --cert "$WORK/mallory.crt" --key "$WORK/mallory.key" "${forged[@]}")
like "X-Remote-User under it is ignored" '^403 .*User \\"mallory\\" cannot list' "$answer"
certificate posing /CN=front-proxy-client
answer=$(direct "$list" --cert "$WORK/posing.crt" --key "$WORK/posing.key" "${forged[@]}")
like "the front proxy's name under the wrong authority as well" '^403 .*User \\"front-proxy-client\\" cannot list' "$answer"
certificate othername /CN=somebody-else front-proxy-ca
like "a wrong name under the front proxy's authority is refused" '^(401|403) ' \
    "$(direct "$list" --cert "$WORK/othername.crt" --key "$WORK/othername.key" "${forged[@]}")"
certificate stranger /CN=admin self
like "a self-signed certificate is 401" '^401 ' "$(direct "$list" --cert "$WORK/stranger.crt" --key "$WORK/stranger.key")"
proxy=(--cert "$CLUSTER_PKI/front-proxy-client.crt" --key "$CLUSTER_PKI/front-proxy-client.key")
like "the true front proxy is believed" '^200 .*"kind":"SandboxList"' "$(direct "$list" "${proxy[@]}" "${forged[@]}")"
like "and what it says decides" '^403 .*User \\"nobody\\" cannot list' "$(direct "$list" "${proxy[@]}" -H 'X-Remote-User: nobody')"
like "the front proxy without a user is nobody" '^(401|403) ' "$(direct "$list" "${proxy[@]}")"
like "a wrong bearer token is 401" '^401 ' "$(direct "$list" -H 'Authorization: Bearer wrong')"
kubectl -n "$NS" create serviceaccount robot >/dev/null
token=$(kubectl -n "$NS" create token robot)
answer=$(direct "$list" -H "Authorization: Bearer $token")
like "a ServiceAccount's token is its user" "^403 .*User \\\\\"system:serviceaccount:$NS:robot\\\\\" cannot list" "$answer"
kubectl -n "$NS" create rolebinding robot-view --clusterrole view --serviceaccount "$NS:robot" >/dev/null
listed_by_token() { direct "$list" -H "Authorization: Bearer $token" | grep '^200 '; }
t "and has that user's rights" within 20 listed_by_token
