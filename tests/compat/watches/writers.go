package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"

	"agent-sandbox.dev/compat/tap"
)

// sandbox is one without a pod.
func sandbox(name string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "agents.x-k8s.io/v1beta1", "kind": "Sandbox", "metadata": map[string]any{"name": name},
		"spec": map[string]any{"operatingMode": "Suspended", "podTemplate": map[string]any{"spec": map[string]any{
			"containers": []any{map[string]any{"name": "main", "image": "a"}}}}},
	}}
}

// writers make, change and delete objects until they are told to stop, and go on where they were when the server is away.
type writers struct {
	client dynamic.ResourceInterface
	writes atomic.Int64
	work   sync.WaitGroup
	stop   chan struct{}

	mu       sync.Mutex
	answered map[event]bool // what the server said it has written
	refused  []error        // other than that it is away
	away     int
}

const writerCount = 4

func startWriters(ctx context.Context, client dynamic.ResourceInterface) *writers {
	w := &writers{client: client, stop: make(chan struct{}), answered: map[event]bool{}}
	for n := range writerCount {
		w.work.Go(func() {
			for i := 0; !w.stopped(); i++ {
				w.live(ctx, fmt.Sprintf("w%d-%d", n, i), i%2 == 1)
			}
		})
	}
	return w
}

func (w *writers) stopped() bool {
	select {
	case <-w.stop:
		return true
	default:
		return false
	}
}

// after waits for so many more writes.
func (w *writers) after(count int64) {
	aim := w.writes.Load() + count
	tap.Check(fmt.Sprintf("%d more writes are done", count), tap.Within(90*time.Second, func() bool { return w.writes.Load() >= aim }))
}

func (w *writers) finish() {
	close(w.stop)
	w.work.Wait()
}

// live is the life of an object: it comes, is changed in two ways, and every other one goes and comes once more.
func (w *writers) live(ctx context.Context, name string, dies bool) {
	w.write(ctx, func() (*unstructured.Unstructured, error) { return w.create(ctx, name) })
	w.write(ctx, func() (*unstructured.Unstructured, error) {
		return w.client.Patch(ctx, name, types.MergePatchType, []byte(`{"metadata":{"labels":{"by":"patch"}}}`), metav1.PatchOptions{})
	})
	w.write(ctx, func() (*unstructured.Unstructured, error) { return w.update(ctx, name) })
	if !dies {
		return
	}
	w.write(ctx, func() (*unstructured.Unstructured, error) {
		err := w.client.Delete(ctx, name, metav1.DeleteOptions{})
		if apierrors.IsNotFound(err) {
			err = nil // by a try before, of which the answer was lost
		}
		return nil, err
	})
	w.write(ctx, func() (*unstructured.Unstructured, error) { return w.create(ctx, name) })
}

func (w *writers) create(ctx context.Context, name string) (*unstructured.Unstructured, error) {
	made, err := w.client.Create(ctx, sandbox(name), metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) {
		return nil, nil // by a try before
	}
	return made, err
}

func (w *writers) update(ctx context.Context, name string) (*unstructured.Unstructured, error) {
	o, err := w.client.Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	o.SetAnnotations(map[string]string{"by": "update"})
	return w.client.Update(ctx, o, metav1.UpdateOptions{})
}

// write tries until it succeeds.
func (w *writers) write(ctx context.Context, try func() (*unstructured.Unstructured, error)) {
	for ctx.Err() == nil {
		written, err := try()
		if err == nil {
			w.note(written)
			break
		}
		if !apierrors.IsConflict(err) {
			w.failed(err)
			time.Sleep(100 * time.Millisecond)
		}
	}
	time.Sleep(30 * time.Millisecond) // the others of this machine want to work, too
}

func (w *writers) note(o *unstructured.Unstructured) {
	w.writes.Add(1)
	if o == nil {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	e := eventOf(watch.Modified, o)
	e.kind = ""
	w.answered[e] = true
}

func (w *writers) failed(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	var status apierrors.APIStatus
	if !errors.As(err, &status) || apierrors.IsServiceUnavailable(err) || apierrors.IsServerTimeout(err) || apierrors.IsTimeout(err) ||
		apierrors.IsTooManyRequests(err) || apierrors.IsInternalError(err) {
		w.away++
	} else if len(w.refused) < 10 {
		w.refused = append(w.refused, err)
	}
}
