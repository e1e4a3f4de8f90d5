# Certificates of the cluster. Two authorities: one for everything, one that signs nothing but the front proxy's
# client certificate, so that no other client of the cluster can pose as the front proxy. Sourced, not run.
# shellcheck shell=bash disable=SC2153
PKI=$STATE/pki

pki_authority() {
    [ ! -e "$PKI/$1.crt" ] || return 0
    openssl ecparam -name prime256v1 -genkey -noout -out "$PKI/$1.key" 2>/dev/null
    openssl req -x509 -new -key "$PKI/$1.key" -sha256 -days 3650 -subj "/CN=asb-$NAME-$1" \
        -addext 'basicConstraints=critical,CA:TRUE' -addext 'keyUsage=critical,keyCertSign,cRLSign' -out "$PKI/$1.crt"
}

# pki_leaf NAME AUTHORITY SUBJECT USAGE [ALTERNATIVE-NAMES]: made anew when its names changed or it ends within a week.
pki_leaf() {
    local name=$1 ca=$2 subject=$3 usage=$4 names=${5:-} want
    want="$ca|$subject|$usage|$names"
    if [ "$(cat "$PKI/$name.names" 2>/dev/null)" = "$want" ] && [ -e "$PKI/$name.key" ] &&
        openssl x509 -in "$PKI/$name.crt" -noout -checkend 604800 >/dev/null 2>&1; then
        return
    fi
    openssl ecparam -name prime256v1 -genkey -noout -out "$PKI/$name.key" 2>/dev/null
    openssl req -new -key "$PKI/$name.key" -sha256 -subj "$subject" -out "$PKI/$name.csr"
    {
        printf 'basicConstraints=CA:FALSE\nkeyUsage=digitalSignature\nextendedKeyUsage=%s\n' "$usage"
        [ -z "$names" ] || printf 'subjectAltName=%s\n' "$names"
    } >"$PKI/$name.ext"
    openssl x509 -req -in "$PKI/$name.csr" -CA "$PKI/$ca.crt" -CAkey "$PKI/$ca.key" -set_serial "0x$(openssl rand -hex 12)" \
        -sha256 -days 365 -extfile "$PKI/$name.ext" -out "$PKI/$name.crt" 2>/dev/null
    rm -f "$PKI/$name.csr" "$PKI/$name.ext"
    echo "$want" >"$PKI/$name.names"
}

# pki_kubeconfig NAME CERTIFICATE: everything inside, so the file can be copied.
pki_kubeconfig() {
    cat >"$STATE/$1.kubeconfig" <<E
apiVersion: v1
kind: Config
current-context: asb-$NAME
contexts:
- name: asb-$NAME
  context: {cluster: asb-$NAME, user: $1}
clusters:
- name: asb-$NAME
  cluster:
    server: https://$ADDR:$(port_of kube-apiserver)
    certificate-authority-data: $(base64 -w0 "$PKI/ca.crt")
users:
- name: $1
  user:
    client-certificate-data: $(base64 -w0 "$PKI/$2.crt")
    client-key-data: $(base64 -w0 "$PKI/$2.key")
E
}

pki_make() {
    local here='IP:127.0.0.1,DNS:localhost' api
    umask 077
    mkdir -p "$PKI"
    pki_authority ca
    pki_authority front-proxy-ca
    api="$here,IP:$ADDR,IP:10.96.0.1,DNS:kubernetes,DNS:kubernetes.default,DNS:kubernetes.default.svc"
    pki_leaf apiserver ca /CN=kube-apiserver serverAuth "$api,DNS:kubernetes.default.svc.cluster.local"
    pki_leaf etcd ca /CN=etcd serverAuth,clientAuth "$here"
    pki_leaf etcd-client ca /CN=kube-apiserver-etcd-client clientAuth
    pki_leaf kubelet-client ca /O=system:masters/CN=kube-apiserver-kubelet-client clientAuth
    pki_leaf front-proxy-client front-proxy-ca /CN=front-proxy-client clientAuth
    pki_leaf kubelet-server ca "/O=system:nodes/CN=system:node:$NODE_NAME" serverAuth "$here,IP:$ADDR,DNS:$NODE_NAME"
    local user
    for user in admin:/O=system:masters/CN=admin kube-controller-manager:/CN=system:kube-controller-manager \
        kube-scheduler:/CN=system:kube-scheduler kube-proxy:/CN=system:kube-proxy coredns:/CN=system:coredns \
        local-volumes:/CN=system:local-volumes "node:/O=system:nodes/CN=system:node:$NODE_NAME" \
        fake-node:/O=system:masters/CN=fake-node; do
        pki_leaf "${user%%:*}" ca "${user#*:}" clientAuth
        pki_kubeconfig "${user%%:*}" "${user%%:*}"
    done
    if [ ! -e "$PKI/sa.pub" ]; then
        openssl genpkey -algorithm RSA -pkeyopt rsa_keygen_bits:2048 -out "$PKI/sa.key" 2>/dev/null
        openssl pkey -in "$PKI/sa.key" -pubout -out "$PKI/sa.pub"
    fi
    umask 022
}
