// Command coredns is CoreDNS with the few plugins that the test cluster's Corefile names. Its full program links some
// fifty plugins and three cloud providers' libraries, which nothing here asks for.
package main

import (
	"github.com/coredns/coredns/core/dnsserver"
	"github.com/coredns/coredns/coremain"

	_ "github.com/coredns/coredns/plugin/bind"
	_ "github.com/coredns/coredns/plugin/cache"
	_ "github.com/coredns/coredns/plugin/errors"
	_ "github.com/coredns/coredns/plugin/health"
	_ "github.com/coredns/coredns/plugin/kubernetes"
	_ "github.com/coredns/coredns/plugin/log"
	_ "github.com/coredns/coredns/plugin/ready"
)

func main() {
	// The order in which a query passes through the plugins, whatever their order in the Corefile.
	dnsserver.Directives = []string{"bind", "health", "ready", "errors", "log", "cache", "kubernetes"}
	coremain.Run()
}
