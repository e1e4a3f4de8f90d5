#!/bin/bash
# The official Python client and the SDK on top of it, as published: objects, pages, watches, subresources, errors; claims of a pool.
# shellcheck source=tests/compat/lib.sh
. "$(dirname "$0")/lib.sh"
namespace "$NS"
python=$("$CLIENTS" python)
[ -n "$python" ] || bail "there is no Python client: tests/compat/clients make python"

relay "$python" "$COMPAT/python/client.py" "$NS"
relay "$python" "$COMPAT/python/sockets.py" "$NS"

{ template sleeper any && echo --- && pool pool sleeper 1; } | k create -f - >/dev/null
no_claimed() { local left && left=$(k get sandboxclaims -o name) && [ -z "$left" ]; }
relay "$python" "$COMPAT/python/sdk.py" "$NS"
t "the claims' Sandboxes go with them" within 60 no_claimed
