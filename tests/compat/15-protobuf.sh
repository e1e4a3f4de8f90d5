#!/bin/bash
# Bodies of protocol buffers, as a server without a cluster takes them: what it makes of them is what Go makes of them, of whole ones and
# of broken ones; and client-go's typed clients, set to that form, work there. Needs no cluster.
# shellcheck shell=bash source=tests/func/lib.sh
. "$(dirname "$0")/../func/lib.sh"
# shellcheck source=tests/lib/relay.sh
. "$ROOT/tests/lib/relay.sh"
programs=$("$ROOT/tests/compat/clients" go)
[ -x "$programs/wire" ] || { not_ok "client-go is there" "tests/compat/clients make go" && exit 1; }
[ -x "$OUT/tests/func/wire" ] || make -s -C "$ROOT" OUT="$OUT" "$OUT/tests/func/wire"

relay "$programs/wire" decode "$OUT/tests/func/wire"
standalone_up
relay "$programs/wire" typed "$DATA/admin.kubeconfig"
