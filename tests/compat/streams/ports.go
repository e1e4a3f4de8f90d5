package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/util/httpstream"
	"k8s.io/client-go/tools/portforward"
	"k8s.io/client-go/tools/remotecommand"
	"k8s.io/client-go/transport/spdy"

	"agent-sandbox.dev/compat/tap"
)

// Ports of the servers in the container.
const (
	echoPort  = 7100 // and the next: say what they hear, and close when they have heard all
	echoPorts = 20   // nc keeps two connections waiting, not more
	floodPort = 7002 // talks on and on, and hears nothing
	nonePort  = 7003 // nobody is there
)

// serve starts them.
func serve(ctx context.Context, p *pod) error {
	script := fmt.Sprintf(`port=%d
		while [ $port -lt %d ]; do nc -ll -p $port -e cat & port=$((port + 1)); done >/dev/null 2>&1 </dev/null
		nc -ll -p %d -e yes >/dev/null 2>&1 </dev/null &
		until [ "$(netstat -ltn | grep -cE ':(71..|%d) ')" = %d ]; do sleep 0.1; done`, echoPort, echoPort+echoPorts, floodPort, floodPort, echoPorts+1)
	ctx, cancel := context.WithTimeout(ctx, far)
	defer cancel()
	var errs bytes.Buffer
	err := p.run(ctx, executors[1], remotecommand.StreamOptions{Stderr: &errs}, script)
	if err != nil {
		return fmt.Errorf("%w: %s", err, errs.String())
	}
	return nil
}

// dialer is a way to reach ports.
type dialer struct {
	name string
	make func(p *pod, u *url.URL) (httpstream.Dialer, error)
}

var dialers = []dialer{
	{"SPDY", func(p *pod, u *url.URL) (httpstream.Dialer, error) {
		transport, upgrader, err := spdy.RoundTripperFor(p.config)
		if err != nil {
			return nil, err
		}
		return spdy.NewDialer(upgrader, &http.Client{Transport: transport}, "POST", u), nil
	}},
	{"SPDY in a WebSocket", func(p *pod, u *url.URL) (httpstream.Dialer, error) {
		return portforward.NewSPDYOverWebsocketDialer(u, p.config)
	}},
}

// forward is a forwarder that runs.
type forward struct {
	stop  chan struct{}
	ended chan error
	local map[uint16]string // addresses, by the Pod's port
	said  *bytes.Buffer
}

func (p *pod) forward(way dialer, remote ...uint16) (*forward, error) {
	d, err := way.make(p, p.url("portforward", nil))
	if err != nil {
		return nil, err
	}
	f := &forward{make(chan struct{}), make(chan error, 1), map[uint16]string{}, &bytes.Buffer{}}
	var ports []string
	for _, port := range remote {
		ports = append(ports, fmt.Sprintf(":%d", port))
	}
	ready := make(chan struct{})
	forwarder, err := portforward.NewOnAddresses(d, []string{"127.0.0.1"}, ports, f.stop, ready, io.Discard, f.said)
	if err != nil {
		return nil, err
	}
	go func() { f.ended <- forwarder.ForwardPorts() }()
	select {
	case <-ready:
	case err := <-f.ended:
		return nil, fmt.Errorf("forwarding ended: %w", err)
	case <-time.After(far):
		return nil, fmt.Errorf("no forwarding within %s", far)
	}
	forwarded, err := forwarder.GetPorts()
	for _, port := range forwarded {
		f.local[port.Remote] = fmt.Sprintf("127.0.0.1:%d", port.Local)
	}
	return f, err
}

// dial opens a connection to a forwarded port, that lasts no longer than anything may.
func (f *forward) dial(port uint16) (net.Conn, error) {
	conn, err := net.Dial("tcp", f.local[port])
	if err == nil {
		err = conn.SetDeadline(time.Now().Add(far))
	}
	return conn, err
}

// echo sends all, then says that this was all, and compares what comes back meanwhile and until the end.
func (f *forward) echo(port uint16, sent []byte) error {
	conn, err := f.dial(port)
	if err != nil {
		return err
	}
	defer conn.Close()
	go func() {
		conn.Write(sent)
		conn.(*net.TCPConn).CloseWrite()
	}()
	got, err := io.ReadAll(conn)
	if err == nil && !bytes.Equal(sent, got) {
		err = fmt.Errorf("expected %s, got %s", digest(sent), digest(got))
	}
	return err
}

func ports(p *pod, way dialer) {
	remote := []uint16{floodPort}
	for i := range uint16(echoPorts) {
		remote = append(remote, echoPort+i)
	}
	f, err := p.forward(way, remote...)
	tap.Check(way.name+": ports are forwarded", err == nil, err)
	if err != nil {
		return
	}
	err = f.echo(echoPort, noise(2, 5<<20))
	tap.Check(way.name+": what goes in comes out, byte by byte, and what is said after the last byte is the end", err == nil, err)
	crowd(f, way, "connections at once do not touch each other")
	leavers(f, way)
	crowd(f, way, "nor do they mind those that left in the middle")
	close(f.stop)
	err = <-f.ended
	tap.Check(way.name+": forwarding ends when it is told to", err == nil, err, f.said)
	refused(p, way)
}

// crowd has many connections at once, of all sizes.
func crowd(f *forward, way dialer, text string) {
	const connections = 2 * echoPorts
	var wait sync.WaitGroup
	failures := make(chan string, connections)
	for i := range connections {
		wait.Go(func() {
			if err := f.echo(echoPort+uint16(i%echoPorts), noise(int64(i), i*i*200)); err != nil {
				failures <- fmt.Sprintf("connection %d: %s", i, err)
			}
		})
	}
	wait.Wait()
	close(failures)
	var reasons []any
	for failure := range failures {
		reasons = append(reasons, failure)
	}
	tap.Check(fmt.Sprintf("%s: %d %s", way.name, connections, text), len(reasons) == 0, reasons...)
}

// leavers go while the other side is talking.
func leavers(f *forward, way dialer) {
	heard := 0
	for range 5 {
		conn, err := f.dial(floodPort)
		if err != nil {
			continue
		}
		n, _ := io.ReadFull(conn, make([]byte, 100_000))
		conn.Close()
		heard += n
	}
	tap.Same(way.name+": a server that talks on and on is heard", 5*100_000, heard)
}

// refused: nobody is at that port, which the client is told. It gives all forwarding up then, as kubectl does.
func refused(p *pod, way dialer) {
	f, err := p.forward(way, nonePort)
	if err != nil {
		tap.Check(way.name+": a port is forwarded where nobody is", false, err)
		return
	}
	conn, err := f.dial(nonePort)
	if err == nil {
		_, err = conn.Read(make([]byte, 1))
		conn.Close()
	}
	tap.Check(way.name+": a connection to where nobody is ends", err != nil)
	select {
	case err = <-f.ended:
	case <-time.After(far):
		err = fmt.Errorf("nothing within %s", far)
	}
	tap.Check(way.name+": it is told so", err != nil && strings.Contains(err.Error(), "lost connection to pod"), err, f.said)
}
