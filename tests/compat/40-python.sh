#!/bin/bash
# The official Python client and the SDK on top of it, as published: objects, pages, watches, subresources, errors; claims of a pool.
# shellcheck source=tests/compat/lib.sh
. "$(dirname "$0")/lib.sh"
namespace "$NS"
python=$("$CLIENTS" python)
[ -n "$python" ] || bail "there is no Python client: tests/compat/clients make python"

relay "$python" "$COMPAT/python/client.py" "$NS"

k apply -f - >/dev/null <<Y
apiVersion: extensions.agents.x-k8s.io/v1beta1
kind: SandboxTemplate
metadata: {name: sleeper}
spec:
  podTemplate:
    spec:
      automountServiceAccountToken: false
      terminationGracePeriodSeconds: 1
      containers: [{name: main, image: "$IMAGE", command: [sh, -c, "trap 'exit 0' TERM; sleep 100000 & wait"]}]
---
apiVersion: extensions.agents.x-k8s.io/v1beta1
kind: SandboxWarmPool
metadata: {name: pool}
spec: {replicas: 1, sandboxTemplateRef: {name: sleeper}}
Y
no_claimed() { local left && left=$(k get sandboxclaims -o name) && [ -z "$left" ]; }
relay "$python" "$COMPAT/python/sdk.py" "$NS"
t "the claims' Sandboxes go with them" within 60 no_claimed
