// wire compares what the server makes of protocol buffers with what Go makes of them.
//
//	wire decode PROGRAM       objects of every kind, filled at random, then with their bytes damaged: the tree that tests/func/wire.c
//	                          prints is the JSON of what Go decodes, and what Go refuses is refused
//	wire typed KUBECONFIG     client-go's typed clients, set to protocol buffers, at a server without a cluster
package main

import (
	"fmt"
	"os"

	"agent-sandbox.dev/compat/tap"
)

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: wire decode PROGRAM | wire typed KUBECONFIG")
		os.Exit(2)
	}
	switch os.Args[1] {
	case "decode":
		decode(os.Args[2])
	case "typed":
		typed(os.Args[2])
	default:
		tap.Must(fmt.Errorf("%s", os.Args[1]), "a command that is known")
	}
}
