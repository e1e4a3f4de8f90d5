// streams tries exec and port-forward of a Pod with what client-go has for them: executors over SPDY and over WebSockets, and the
// forwarder of ports over SPDY and over SPDY inside WebSockets, as kubectl has it.
//
//	streams KUBECONFIG NAMESPACE POD
//
// The Pod's first container has a shell, cat, stty and nc of busybox.
package main

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"time"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/klog/v2"

	"github.com/go-logr/logr"

	"agent-sandbox.dev/compat/tap"
)

// far is how long anything may take on a machine that does something else as well.
const far = 90 * time.Second

// pod is what is talked to.
type pod struct {
	config          *rest.Config
	client          *kubernetes.Clientset
	namespace, name string
}

func (p *pod) url(subresource string, query url.Values) *url.URL {
	u := p.client.CoreV1().RESTClient().Post().Resource("pods").Namespace(p.namespace).Name(p.name).SubResource(subresource).URL()
	u.RawQuery = query.Encode()
	return u
}

func main() {
	if len(os.Args) != 4 {
		fmt.Fprintln(os.Stderr, "usage: streams KUBECONFIG NAMESPACE POD")
		os.Exit(2)
	}
	klog.SetLogger(logr.Discard())
	config, err := clientcmd.BuildConfigFromFlags("", os.Args[1])
	tap.Must(err, "kubeconfig")
	client, err := kubernetes.NewForConfig(config)
	tap.Must(err, "client")
	p := &pod{config, client, os.Args[2], os.Args[3]}
	ctx, cancel := context.WithTimeout(context.Background(), 4*far)
	defer cancel()
	for _, way := range executors {
		commands(ctx, p, way)
	}
	for _, version := range []string{"v3.channel.k8s.io", "v2.channel.k8s.io"} {
		old(ctx, p, older(version))
	}
	tap.Must(serve(ctx, p), "servers in the container")
	for _, way := range dialers {
		ports(p, way)
	}
}
