#!/bin/bash
# An operator on controller-runtime over our kinds: elected, with a cache and an index, watches of what it owns, finalizers, status; the
# server is killed below it.
# shellcheck source=tests/compat/lib.sh
. "$(dirname "$0")/lib.sh"
namespace "$NS"
programs=$("$CLIENTS" go)
[ -x "$programs/manager" ] || bail "there is no controller-runtime: tests/compat/clients make go"
declare -f kill_server >"$WORK/server"
export SYSTEM CLUSTER
relay env BASH_ENV="$WORK/server" "$programs/manager" "$KUBECONFIG" "$NS"
