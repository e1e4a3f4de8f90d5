#!/bin/bash
# Bodies of protocol buffers, as a server without a cluster takes them: what it makes of them is what Go makes of them, of whole ones and
# of broken ones; and client-go's typed clients, set to that form, work there. Needs no cluster.
# shellcheck shell=bash source=tests/func/lib.sh
. "$(dirname "$0")/../func/lib.sh"
programs=$("$ROOT/tests/compat/clients" go)
[ -x "$programs/wire" ] || { not_ok "client-go is there" "tests/compat/clients make go" && exit 1; }
[ -x "$OUT/tests/func/wire" ] || make -s -C "$ROOT" OUT="$OUT" "$OUT/tests/func/wire"

# relay COMMAND...: the lines of a program that prints `ok TEXT` and `not ok TEXT`, with reasons above.
relay() {
    local line
    while IFS= read -r line; do
        case $line in
        "ok "*) ok "${line#ok }" ;;
        "not ok "*) not_ok "${line#not ok }" ;;
        *) printf '# %s\n' "$line" | cut -c1-1000 ;;
        esac
    done < <("$@" 2>&1 || echo "not ok $2 came to its end")
}

relay "$programs/wire" decode "$OUT/tests/func/wire"
standalone_up
relay "$programs/wire" typed "$DATA/admin.kubeconfig"
