//go:build tools

// Package tools pins the program that tests/func/h2spec.sh builds.
package tools

import _ "github.com/summerwind/h2spec/cmd/h2spec"
