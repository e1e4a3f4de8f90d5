// watches has client-go watch Sandboxes in all ways it knows at once: informers by WatchList and by list and watch, and RetryWatcher,
// each through kube-apiserver and at the server's own port, over HTTP/2 and over HTTP/1.1. Others write all the time, while the server
// is killed and while it is replaced: nobody may miss an event, or have one twice. Then the history that they stopped at is forgotten.
//
//	watches KUBECONFIG NAMESPACE URL AUTHORITY
//
// The commands kill_server, replace_server and forget_history are functions of bash, in the file BASH_ENV.
package main

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/klog/v2"

	"agent-sandbox.dev/compat/tap"
)

var sandboxes = schema.GroupVersionResource{Group: "agents.x-k8s.io", Version: "v1beta1", Resource: "sandboxes"}

const soon = 60 * time.Second

// scene is who is on it.
type scene struct {
	config    *rest.Config
	servers   []server
	namespace string
	client    dynamic.ResourceInterface // of the writers
	informed  []*informed
	retried   []*retried
}

func (s *scene) roads(each func(server, string)) {
	for _, to := range s.servers {
		for protocol := range protocols {
			each(to, protocol)
		}
	}
}

// fill starts the informers among objects that are there.
func (s *scene) fill(ctx context.Context) {
	const before = 20
	for n := range before {
		_, err := s.client.Create(ctx, sandbox(fmt.Sprintf("before-%d", n)), metav1.CreateOptions{})
		tap.Must(err, "create")
	}
	for _, watchList := range []bool{true, false} {
		useWatchList(watchList) // informers look at it when they start, in their own time
		first := len(s.informed)
		s.roads(func(to server, protocol string) {
			s.informed = append(s.informed, informedOf(ctx, newRoad(s.config, to, protocol), s.namespace, watchList))
		})
		for _, i := range s.informed[first:] {
			tap.Check(i.name+": the cache is filled", tap.Within(soon, i.informer.HasSynced))
		}
	}
	for _, i := range s.informed {
		tap.Check(i.name+": the handler has all that was there", tap.Within(soon, func() bool { return i.knows("before-19") && len(i.told(0, ^uint64(0))) >= before }))
		right, wrong := i.filled()
		tap.Same(i.name+": by one request of its kind", "1 0", fmt.Sprint(right, wrong))
		tap.Check(i.name+": which is the protocol", i.only(i.protocol), i.protocols)
	}
}

// live lets everybody watch what writers write, over a crash and a replacement. Returns between which versions that was.
func (s *scene) live(ctx context.Context) {
	from := listOf(ctx, s.client, metav1.ListOptions{}).GetResourceVersion()
	s.roads(func(to server, protocol string) {
		s.retried = append(s.retried, retriedOf(ctx, newRoad(s.config, to, protocol), s.namespace, versionOf(from)))
	})
	w := startWriters(ctx, s.client)
	w.after(100)
	s.roads(func(to server, protocol string) { checkPages(ctx, newRoad(s.config, to, protocol), s.namespace) })
	tap.Do("kill_server")
	w.after(100)
	tap.Do("replace_server")
	w.after(100)
	w.finish()
	tap.Note("%d writes, %d tries while the server was away", w.writes.Load(), w.away)
	tap.Check("no write was refused but for the server being away", len(w.refused) == 0, w.refused)
	last, err := s.client.Create(ctx, sandbox("zz-last"), metav1.CreateOptions{})
	tap.Must(err, "create")
	s.compare(w, versionOf(from), versionOf(last.GetResourceVersion()))
	s.equal(ctx)
}

// once says what is wrong with the order of what a witness was told: in all, or of each object by itself.
func once(events []event, byObject bool) string {
	before := map[string]uint64{}
	for _, e := range events {
		of := ""
		if byObject {
			of = e.name
		}
		if e.version <= before[of] {
			return fmt.Sprintf("%v after version %d", e, before[of])
		}
		before[of] = e.version
	}
	return ""
}

// same says in what two accounts differ.
func same(a, b []event) string {
	for n := range min(len(a), len(b)) {
		if a[n] != b[n] {
			return fmt.Sprintf("event %d: %v and %v", n, a[n], b[n])
		}
	}
	if len(a) != len(b) {
		return fmt.Sprintf("%d events and %d", len(a), len(b))
	}
	return ""
}

func (s *scene) compare(w *writers, from, until uint64) {
	for _, r := range s.retried {
		tap.Check(r.name+": sees the last one", tap.Within(soon, func() bool { return r.knows("zz-last") }))
	}
	truth := s.retried[0].told(from, until)
	tap.Same(s.retried[0].name+": each event once and in order", "", once(truth, false))
	for _, r := range s.retried[1:] {
		tap.Same(r.name+": the same events in the same order", "", same(truth, r.told(from, until)))
	}
	seen, gone := map[event]bool{}, map[string]int{}
	for _, e := range truth {
		if e.kind == watch.Deleted {
			gone[e.uid]++
		}
		e.kind = ""
		seen[e] = true
	}
	lost := 0
	for e := range w.answered {
		if !seen[e] {
			lost++
			tap.Note("%v was written and is not among the events", e)
		}
	}
	tap.Same(fmt.Sprintf("each of %d writes that were answered is one of the %d events", len(w.answered), len(truth)), 0, lost)
	for _, i := range s.informed {
		tap.Check(i.name+": sees the last one", tap.Within(soon, func() bool { return i.knows("zz-last") }))
		told := i.told(from, until)
		tap.Same(i.name+": nothing twice, nothing older after newer", "", once(told, true))
		if right, wrong := i.filled(); right+wrong == 1 {
			tap.Same(i.name+": every event, in order", "", same(truth, told))
		} else {
			tap.Note("%s: filled its cache anew, %d events of %d", i.name, len(told), len(truth))
			tap.Check(i.name+": no event that was none", subset(told, truth))
		}
	}
}

// subset says whether all that is told of here is told of there, where more may be: an informer that lists anew sees the last state, and
// calls it a change of what it had.
func subset(some, all []event) bool {
	versions := map[uint64]bool{}
	for _, e := range all {
		versions[e.version] = true
	}
	for _, e := range some {
		if !versions[e.version] {
			return false
		}
	}
	return true
}

// equal: at rest each cache is the list.
func (s *scene) equal(ctx context.Context) {
	for _, i := range s.informed {
		var how string
		tap.Check(i.name+": the cache is the list", tap.Within(soon, func() bool {
			how = i.differs(listOf(ctx, s.client, metav1.ListOptions{}).Items)
			return how == ""
		}), how)
	}
}

// forget: everybody stops, and what happens then is not in any history when they go on. Pages are turned over it as well.
func (s *scene) forget(ctx context.Context) {
	on := make(chan struct{})
	var pages []expirings
	s.roads(func(to server, protocol string) {
		pages = append(pages, beginAll(ctx, newRoad(s.config, to, protocol), s.namespace, on))
	})
	for _, i := range s.informed {
		i.cut()
	}
	for _, r := range s.retried {
		r.cut()
	}
	stopped := version(listOf(ctx, s.client, metav1.ListOptions{}))
	for n := range 3 {
		_, err := s.client.Create(ctx, sandbox(fmt.Sprintf("new-%d", n)), metav1.CreateOptions{})
		tap.Must(err, "create")
		_, err = s.client.Patch(ctx, fmt.Sprintf("before-%d", n), types.MergePatchType, []byte(`{"metadata":{"labels":{"changed":"unseen"}}}`), metav1.PatchOptions{})
		tap.Must(err, "patch")
		tap.Must(s.client.Delete(ctx, fmt.Sprintf("before-1%d", n), metav1.DeleteOptions{}), "delete")
	}
	tap.Do("forget_history")
	tap.Check("the server is there again", tap.Within(soon, func() bool {
		_, err := s.client.Get(ctx, "new-0", metav1.GetOptions{})
		return err == nil
	}))
	filled := map[*informed]int{}
	for _, i := range s.informed {
		filled[i], _ = i.filled()
		i.mend()
	}
	for _, r := range s.retried {
		r.mend()
	}
	for _, r := range s.retried {
		err := r.ended(soon)
		tap.Check(r.name+": is told that its version has expired, and ends", apierrors.IsResourceExpired(err), err)
		tap.Check(r.name+": and nothing else", len(r.told(stopped, ^uint64(0))) == 0, r.told(stopped, ^uint64(0)))
	}
	s.equal(ctx)
	for _, i := range s.informed {
		right, _ := i.filled()
		tap.Same(i.name+": filled its cache once more", filled[i]+1, right)
		for n := range 3 {
			dead := fmt.Sprintf("before-1%d", n)
			tap.Check(i.name+": tells of "+dead+" once that it is gone", tap.Within(soon, func() bool { return i.tombs(dead) == 1 }), i.tombs(dead))
		}
	}
	close(on)
	for _, p := range pages {
		p.check(ctx)
	}
}

func main() {
	klog.SetLogger(logr.Discard())
	ctx, cancel := context.WithTimeout(context.Background(), 8*time.Minute)
	defer cancel()
	config, err := clientcmd.BuildConfigFromFlags("", os.Args[1])
	tap.Must(err, "kubeconfig")
	s := &scene{config: config, namespace: os.Args[2], servers: []server{{name: "aggregator"}, {"direct", os.Args[3], os.Args[4]}}}
	s.client = newRoad(config, s.servers[0], "HTTP/2.0").client.Resource(sandboxes).Namespace(s.namespace)
	s.fill(ctx)
	s.live(ctx)
	s.forget(ctx)
}
