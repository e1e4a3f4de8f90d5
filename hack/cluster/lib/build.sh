# Builds the programs of the cluster from the pinned Go modules beside this folder, once per version: into a
# temporary folder that gets its final name when it is complete. Sourced, not run.
# shellcheck shell=bash disable=SC2034
hash_of() { cat "$@" | sha256sum | cut -c1-12; }

TOOLS=$HERE/tools
# kube_version MODULE: the version of Kubernetes that its go.mod pins.
kube_version() { sed -nE 's/^(require)?[[:space:]]*k8s\.io\/kubernetes (v[^ ]+).*/\2/p' "$1/go.mod" | head -n 1; }
KUBE_VERSION=$(kube_version "$TOOLS")
BIN=$CACHE/kube-$KUBE_VERSION-$(hash_of "$TOOLS/go.mod" "$TOOLS/go.sum")
HELPERS=$CACHE/helpers-$(hash_of "$TOOLS/go.mod" "$TOOLS/go.sum" "$TOOLS"/*/main.go)
COREDNS_DIR=$CACHE/coredns-$(hash_of "$HERE/coredns/go.mod" "$HERE/coredns/go.sum" "$HERE/coredns/main.go")

# build_folder FOLDER TITLE MODULE PROGRAM=PACKAGE...
build_folder() {
    local folder=$1 title=$2 module=$3 spec flags p rest version
    shift 3
    [ ! -d "$folder" ] || return 0
    command -v go >/dev/null ||
        die "building $title needs Go $(awk '$1 == "go" { print $2 }' "$module/go.mod") or newer, and there is no go in PATH"
    mkdir -p "$CACHE"
    (
        exec 8>"$folder.lock"
        flock 8 || die "cannot lock $folder.lock"
        [ ! -d "$folder" ] || exit 0
        rm -rf "$folder".tmp.*
        tmp=$(mktemp -d "$folder.tmp.XXXXXX")
        chmod 755 "$tmp"
        log=$folder.log
        : >"$log"
        version=$(kube_version "$module")
        version=${version:-$KUBE_VERSION} rest=${version#v1.}
        flags="-s -w"
        for p in k8s.io/component-base/version k8s.io/client-go/pkg/version; do
            flags="$flags -X $p.gitVersion=$version -X $p.gitMajor=1 -X $p.gitMinor=${rest%%.*} -X $p.gitTreeState=clean"
        done
        echo "building $title into $folder (once)"
        STEP=
        step "download modules" build_logged "$log" "$module" go mod download
        for spec in "$@"; do
            step "build ${spec%%=*}" build_logged "$log" "$module" env CGO_ENABLED=0 \
                go build -trimpath -buildvcs=false -ldflags "$flags" -o "$tmp/${spec%%=*}" "${spec#*=}"
        done
        mv "$tmp" "$folder"
        rm -f "$log"
    ) 9>&- || exit 1
    rm -f "$folder.lock"
}

build_logged() {
    local log=$1
    (cd "$2" && shift 2 && GOFLAGS='' GOWORK=off "$@") >>"$log" 2>&1 || die_log "building failed" "$log"
}

build_all() {
    local k=k8s.io/kubernetes/cmd
    build_folder "$BIN" "Kubernetes $KUBE_VERSION" "$TOOLS" kube-apiserver=$k/kube-apiserver \
        etcd=go.etcd.io/etcd/server/v3 kubectl=$k/kubectl kube-controller-manager=$k/kube-controller-manager \
        kube-scheduler=$k/kube-scheduler kubelet=$k/kubelet kube-proxy=$k/kube-proxy
    build_folder "$HELPERS" "the cluster's helpers" "$TOOLS" local-volumes=./local-volumes fake-node=./fakenode
    [ "$NODE_KIND" != real ] || build_folder "$COREDNS_DIR" CoreDNS "$HERE/coredns" coredns=.
}
