package main

import (
	"context"
	"fmt"
	"strconv"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/features"
	"k8s.io/client-go/tools/cache"
	watchtools "k8s.io/client-go/tools/watch"

	"agent-sandbox.dev/compat/tap"
)

// event is what a client is told of an object.
type event struct {
	kind      watch.EventType
	name, uid string
	version   uint64
}

func versionOf(text string) uint64 {
	version, err := strconv.ParseUint(text, 10, 64)
	tap.Must(err, "a resource version is a number")
	return version
}

func eventOf(kind watch.EventType, o *unstructured.Unstructured) event {
	return event{kind, o.GetName(), string(o.GetUID()), versionOf(o.GetResourceVersion())}
}

// witness remembers what one client was told, in its order.
type witness struct {
	*road
	name string

	mu     sync.Mutex
	events []event
}

func (w *witness) tell(e event) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.events = append(w.events, e)
}

// told is what it was told after a version and up to another one.
func (w *witness) told(after, until uint64) []event {
	w.mu.Lock()
	defer w.mu.Unlock()
	var found []event
	for _, e := range w.events {
		if e.version > after && e.version <= until {
			found = append(found, e)
		}
	}
	return found
}

func (w *witness) knows(name string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, e := range w.events {
		if e.name == name {
			return true
		}
	}
	return false
}

// informed is a witness with a cache.
type informed struct {
	witness
	informer   cache.SharedIndexInformer
	watchList  bool
	tombstones map[string]int // deletions that were only inferred, by name
}

// useWatchList chooses how informers that start from now on fill their caches.
func useWatchList(use bool) {
	gates := features.FeatureGates().(interface {
		Set(features.Feature, bool) error
	})
	tap.Must(gates.Set(features.WatchListClient, use), "the gate of WatchList")
}

func informedOf(ctx context.Context, r *road, namespace string, watchList bool) *informed {
	how := "list and watch"
	if watchList {
		how = "WatchList"
	}
	i := &informed{witness: witness{road: r, name: r.name + ", informer by " + how}, watchList: watchList, tombstones: map[string]int{}}
	factory := dynamicinformer.NewFilteredDynamicSharedInformerFactory(r.client, 0, namespace, nil)
	i.informer = factory.ForResource(sandboxes).Informer()
	_, err := i.informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: func(o any) { i.tell(eventOf(watch.Added, o.(*unstructured.Unstructured))) },
		UpdateFunc: func(old, o any) {
			if e := eventOf(watch.Modified, o.(*unstructured.Unstructured)); e.version != eventOf(watch.Modified, old.(*unstructured.Unstructured)).version {
				i.tell(e) // the others say that the cache was filled anew
			}
		},
		DeleteFunc: func(o any) {
			if gone, ok := o.(cache.DeletedFinalStateUnknown); ok {
				i.mu.Lock()
				defer i.mu.Unlock()
				i.tombstones[gone.Obj.(*unstructured.Unstructured).GetName()]++
				return
			}
			i.tell(eventOf(watch.Deleted, o.(*unstructured.Unstructured)))
		},
	})
	tap.Must(err, "handler of "+i.name)
	factory.Start(ctx.Done())
	return i
}

// tombs is how often the end of an object was only inferred.
func (i *informed) tombs(name string) int {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.tombstones[name]
}

// filled says how often its cache was, by the way that it has to use and by the other one.
func (i *informed) filled() (right, wrong int) {
	lists, streams := i.fillings()
	if i.watchList {
		return streams, lists
	}
	return lists, streams
}

// differs says in what the cache is not the list.
func (i *informed) differs(list []unstructured.Unstructured) string {
	cached := []unstructured.Unstructured{}
	for _, o := range i.informer.GetStore().List() {
		cached = append(cached, *o.(*unstructured.Unstructured))
	}
	return difference(list, cached)
}

// retried is a witness by RetryWatcher, which begins anew where it stopped, and has no cache.
type retried struct {
	witness
	end chan error // why it ended
}

func retriedOf(ctx context.Context, r *road, namespace string, from uint64) *retried {
	w := &retried{witness: witness{road: r, name: r.name + ", RetryWatcher"}, end: make(chan error, 1)}
	watcher, err := watchtools.NewRetryWatcherWithContext(ctx, fmt.Sprint(from), listWatch(r.client.Resource(sandboxes).Namespace(namespace)))
	tap.Must(err, w.name)
	go func() {
		var last error
		for e := range watcher.ResultChan() {
			if o, ok := e.Object.(*unstructured.Unstructured); ok && e.Type != watch.Error {
				w.tell(eventOf(e.Type, o))
			} else {
				last = apierrors.FromObject(e.Object)
			}
		}
		w.end <- last
	}()
	return w
}

// ended is why it did within that time, nil when it goes on.
func (w *retried) ended(limit time.Duration) error {
	select {
	case err := <-w.end:
		return err
	case <-time.After(limit):
		return nil
	}
}

func listWatch(client dynamic.ResourceInterface) cache.WatcherWithContext {
	return &cache.ListWatch{WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
		return client.Watch(ctx, options)
	}}
}
