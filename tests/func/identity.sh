# Who is let in as whom: nobody, certificates of known and unknown authorities, tokens, and the headers of a front proxy that
# only count over the front proxy's own certificate. Without a cluster only members of system:masters may do anything, so a
# 403 that names the user tells as whom the request was taken.
# shellcheck shell=bash source=tests/func/lib.sh
. "$(dirname "$0")/lib.sh"
authority front-proxy-ca
authority unknown-ca
leaf jane client-ca /O=dev/CN=jane clientAuth
leaf nameless client-ca /O=system:masters clientAuth
leaf server client-ca /O=system:masters/CN=server serverAuth
leaf proxy front-proxy-ca /CN=front-proxy-client clientAuth
leaf other-proxy front-proxy-ca /CN=somebody clientAuth
leaf stranger unknown-ca /O=system:masters/CN=admin clientAuth
leaf false-proxy unknown-ca /CN=front-proxy-client clientAuth
openssl x509 -req -in "$WORK/admin.csr" -CA "$WORK/client-ca.crt" -CAkey "$WORK/client-ca.key" -set_serial 77 -days -1 \
    -out "$WORK/expired.crt" -extfile <(echo extendedKeyUsage=clientAuth) 2>/dev/null
cp "$WORK/admin.key" "$WORK/expired.key"
TOKEN=token-that-nobody-may-read-$RANDOM$RANDOM

etcd_up
server_up --log-level=debug --requestheader-client-ca-file="$WORK/front-proxy-ca.crt" --requestheader-allowed-names=front-proxy-client

# forbidden TEXT USER [CURL-ARGUMENT...]: the request is taken as that user's, and refused.
forbidden() {
    local text=$1 user=$2
    shift 2
    api GET "$SANDBOXES" "$@"
    is "$text" "403 Forbidden sandboxes.agents.x-k8s.io is forbidden: User \"$user\" cannot list resource \"sandboxes\" in API group \"agents.x-k8s.io\" in the namespace \"default\"" \
        "$CODE $(q .reason) $(q .message)"
}

unauthorized() {
    local text=$1
    shift
    api GET "$SANDBOXES" "$@"
    is "$text" "401 Unauthorized Unauthorized" "$CODE $(q .reason) $(q .message)"
}

ALICE=(-H 'X-Remote-User: alice' -H 'X-Remote-Group: dev')
MASTER=(-H 'X-Remote-User: alice' -H 'X-Remote-Group: dev' -H 'X-Remote-Group: system:masters')
BEARER=(-H "Authorization: Bearer $TOKEN")

as nobody
for path in /livez /readyz /healthz; do answers "nobody may ask $path" 200 GET $path; done
forbidden "nobody is system:anonymous" system:anonymous
forbidden "nobody with forged headers is system:anonymous" system:anonymous "${MASTER[@]}"
unauthorized "a token nobody knows is refused" "${BEARER[@]}"
unauthorized "so is it with forged headers" "${BEARER[@]}" "${MASTER[@]}"
unauthorized "an empty token is no better" -H 'Authorization: Bearer x'
for path in /version /apis /openapi/v2 /metrics /nowhere; do
    api GET $path
    is "nobody may not ask $path" "403 forbidden: User \"system:anonymous\" cannot get path \"$path\"" "$CODE $(q .message)"
done
answers "nobody may not write" 403 POST "$SANDBOXES" "${JSON[@]}" -d "$(sandbox nobody)"
answers "nobody may not delete" 403 DELETE "$SANDBOXES"
answers "nobody may not watch" 403 GET "$SANDBOXES?watch=true"

as jane
forbidden "a certificate names the user" jane
forbidden "forged headers beside a client's certificate do not count" jane "${MASTER[@]}"
forbidden "in lower case neither" jane -H 'x-remote-user: admin' -H 'x-remote-group: system:masters'
forbidden "a bad token beside a good certificate does no harm" jane "${BEARER[@]}"
answers "jane may ask livez" 200 GET /livez

as admin
answers "a certificate with O=system:masters may list" 200 GET "$SANDBOXES"
answers "forged headers do not turn it into somebody else" 200 GET "$SANDBOXES" "${ALICE[@]}"
for header in Impersonate-User Impersonate-Group Impersonate-Uid Impersonate-Extra-Scope; do
    api GET "$SANDBOXES" -H "$header: jane"
    like "$header is refused, not ignored" '^(400|403)$' "$CODE"
done

as stranger
unauthorized "a certificate of an unknown authority is refused"
answers "even for what everybody may see" 401 GET /livez
unauthorized "also with a proxy's headers" "${MASTER[@]}"
as false-proxy
unauthorized "so is a proxy's name under an unknown authority" "${MASTER[@]}"
as expired
unauthorized "so is a certificate that has ended"
as server
unauthorized "so is one that is not meant for clients"
as nameless
api GET "$SANDBOXES"
like "a certificate without a name is nobody's" '^40[13]$' "$CODE"

as proxy
forbidden "the front proxy speaks for alice" alice "${ALICE[@]}"
answers "all groups it sends count" 200 GET "$SANDBOXES" "${MASTER[@]}"
answers "names of headers have no case" 200 GET "$SANDBOXES" -H 'x-remote-user: alice' -H 'X-REMOTE-GROUP: system:masters'
forbidden "a user's name is taken as it is" 'system:serviceaccount:default:builder' -H 'X-Remote-User: system:serviceaccount:default:builder'
forbidden "groups in one header are one group" alice -H 'X-Remote-User: alice' -H 'X-Remote-Group: dev, system:masters'
unauthorized "without a user the proxy is nobody we know"
unauthorized "an empty user is none" -H 'X-Remote-User;' -H 'X-Remote-Group: system:masters'
as other-proxy
unauthorized "a certificate of the proxy's authority with another name is refused" "${MASTER[@]}"

as admin
answers "nothing was stored" 200 GET "$SANDBOXES"
is "by any of them" 0 "$(q '.items | length')"
answers "the server lives" 200 GET /readyz
LEAKS=$(grep -c -e "$TOKEN" -e 'BEGIN ' -e 'Authorization' "$SERVER_LOG")
is "no line of the log has the token, a header or a key" 0 "$LEAKS"
