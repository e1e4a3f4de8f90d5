# What the tests with other people's clients share: all of tests/e2e/lib.sh, and tests/lib/relay.sh. Sourced, not run; each can be run
# alone as those of tests/e2e, after `tests/compat/clients make`.
# shellcheck shell=bash disable=SC2034
COMPAT=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
CLIENTS=$COMPAT/clients
# shellcheck source=tests/e2e/lib.sh
. "$COMPAT/../e2e/lib.sh"
# shellcheck source=tests/lib/relay.sh
. "$COMPAT/../lib/relay.sh"

# k ARGUMENT...: kubectl in the test's namespace, errors too.
k() { kubectl -n "$NS" "$@" 2>&1; }
