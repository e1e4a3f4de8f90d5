//go:build tools

// Package tools pins the older kubectl that the cluster is asked by as well. As in hack/cluster/tools, k8s.io/kubernetes needs the
// replacements of its own go.mod, which do not reach through a dependency.
package tools

import _ "k8s.io/kubernetes/cmd/kubectl"
