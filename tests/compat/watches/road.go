package main

import (
	"context"
	"io"
	"net/http"
	"net/url"
	"os"
	"sync"

	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"agent-sandbox.dev/compat/tap"
)

// road is one client's way to the server: through kube-apiserver or to its own port, over HTTP/2 or HTTP/1.1.
type road struct {
	name     string
	protocol string // as it stands in an answer
	client   dynamic.Interface
	*wire
}

// server is where an API is served.
type server struct{ name, url, authority string }

var protocols = map[string][]string{"HTTP/2.0": nil, "HTTP/1.1": {"http/1.1"}}

func newRoad(of *rest.Config, to server, protocol string) *road {
	r := &road{name: to.name + " " + protocol, protocol: protocol, wire: newWire()}
	config := rest.CopyConfig(of)
	config.QPS = -1
	config.NextProtos = protocols[protocol]
	if to.url != "" {
		pem, err := os.ReadFile(to.authority)
		tap.Must(err, "authority of the server's certificate")
		config.Host, config.CAData, config.CAFile = to.url, pem, ""
	}
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { r.next = next; return r.wire })
	client, err := dynamic.NewForConfig(config)
	tap.Must(err, "client of "+r.name)
	r.client = client
	return r
}

// wire carries a client's requests and counts them. A wire that was cut ends what is on its way, and lets nothing pass until it is mended.
type wire struct {
	next http.RoundTripper

	mu        sync.Mutex
	mended    chan struct{} // closed while requests pass
	live      context.Context
	end       context.CancelFunc
	protocols map[string]int
	lists     int // lists of a first page, the start of a cache without WatchList
	streams   int // watches that begin with what there is
}

func newWire() *wire {
	w := &wire{protocols: map[string]int{}, mended: make(chan struct{})}
	w.mend()
	return w
}

func (w *wire) mend() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.live, w.end = context.WithCancel(context.Background())
	close(w.mended)
}

func (w *wire) cut() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.end()
	w.mended = make(chan struct{})
}

// fillings is how often a cache was filled.
func (w *wire) fillings() (lists, streams int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.lists, w.streams
}

// only says whether all answers came over that protocol, and there were some.
func (w *wire) only(protocol string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.protocols) == 1 && w.protocols[protocol] > 0
}

// pass waits until the wire is whole.
func (w *wire) pass(ctx context.Context) (context.Context, error) {
	for {
		w.mu.Lock()
		mended, live := w.mended, w.live
		w.mu.Unlock()
		select {
		case <-mended:
			if live.Err() == nil {
				return live, nil
			}
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

func (w *wire) count(query url.Values) {
	switch {
	case query.Get("sendInitialEvents") == "true":
		w.streams++
	case query.Get("watch") == "" && query.Get("continue") == "":
		w.lists++
	}
}

func (w *wire) RoundTrip(request *http.Request) (*http.Response, error) {
	live, err := w.pass(request.Context())
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(request.Context())
	context.AfterFunc(live, cancel)
	answer, err := w.next.RoundTrip(request.WithContext(ctx))
	if err != nil {
		cancel()
		return nil, err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.protocols[answer.Proto]++
	if answer.StatusCode == http.StatusOK && request.Method == http.MethodGet {
		w.count(request.URL.Query())
	}
	answer.Body = &body{answer.Body, live, cancel}
	return answer, nil
}

// body ends as if its server had ended it when the wire is cut: what the transport brings until it has noticed is dropped.
type body struct {
	io.ReadCloser
	live   context.Context
	cancel context.CancelFunc
}

func (b *body) Read(into []byte) (int, error) {
	n, err := b.ReadCloser.Read(into)
	if b.live.Err() != nil {
		return 0, io.EOF
	}
	return n, err
}

func (b *body) Close() error {
	b.cancel()
	return b.ReadCloser.Close()
}
