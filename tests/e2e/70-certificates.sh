#!/bin/bash
# Renewing the certificates: new ones are served, and nobody notices a gap.
# shellcheck source=tests/e2e/lib.sh
. "$(dirname "$0")/lib.sh"
namespace "$NS"
create box >/dev/null
[ -n "$CLUSTER_NETNS" ] || { skip "renewal of certificates" "the cluster has no network of its own" && exit 0; }

# served: the serial number of the certificate on the server's port.
served() {
    "$CLUSTER" run openssl s_client -connect "sandbox-apiserver.$SYSTEM.svc:443" </dev/null 2>/dev/null | openssl x509 -noout -serial
}

# ask_on: reads and writes until told to end; what fails is written down.
ask_on() {
    local n=0
    while [ ! -e "$WORK/enough" ]; do
        n=$((n + 1))
        kubectl -n "$NS" get sandbox box -o name >/dev/null 2>>"$WORK/failures" || echo "get $n failed" >>"$WORK/failures"
        kubectl -n "$NS" annotate sandbox box "n=$n" --overwrite >/dev/null 2>>"$WORK/failures" || echo "annotate $n failed" >>"$WORK/failures"
        echo $n >"$WORK/asked"
    done
}

old=$(served)
like "the server shows a certificate" '^serial=[0-9A-F]+' "$old"
: >"$WORK/failures"
ask_on &
asker=$!
t "hack/install --renew" "$ROOT/hack/install" --dev --renew
like "a certificate is shown again" '^serial=[0-9A-F]+' "$(served)"
renewed() { new=$(served) && [ -n "$new" ] && [ "$new" != "$old" ]; }
t "it is a new one, once the old server is asked no more" within 60 renewed
t "which ends" within 60 one_server
sleep 2
touch "$WORK/enough"
wait $asker
is "no request failed meanwhile (of $(($(cat "$WORK/asked") * 2)))" "" "$(cat "$WORK/failures")"
services_available
