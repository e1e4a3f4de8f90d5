// manager runs an operator on controller-runtime, as its makers show how: an elected manager with a cache, watches of what is owned and of
// metadata, finalizers, applied and patched objects and status. The server is killed below it.
//
//	manager KUBECONFIG NAMESPACE
//
// The command kill_server is a function of bash, in the file BASH_ENV.
package main

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"agent-sandbox.dev/compat/tap"
)

const (
	soon  = 60 * time.Second
	boxes = 6
)

// scene is the manager with its operator, and who works against it.
type scene struct {
	ctx       context.Context
	namespace string
	api       client.Client // without a cache
	manager   ctrl.Manager
	operator  *operator
}

func name(n int) string { return fmt.Sprintf("box-%d", n) }

func (s *scene) get(kind *unstructured.Unstructured, name string) *unstructured.Unstructured {
	o := of(kind.GroupVersionKind(), s.namespace, name)
	if err := s.api.Get(s.ctx, client.ObjectKeyFromObject(o), o); err != nil {
		return nil
	}
	return o
}

func (s *scene) box(n int) *unstructured.Unstructured {
	return s.get(of(sandboxKind, "", ""), name(n))
}

func (s *scene) template(n int) *unstructured.Unstructured {
	return s.get(of(templateKind, "", ""), "of-"+name(n))
}

func imageOf(template *unstructured.Unstructured) string {
	if template == nil {
		return ""
	}
	list, _, _ := unstructured.NestedSlice(template.Object, "spec", "podTemplate", "spec", "containers")
	image, _ := list[0].(map[string]any)["image"].(string)
	return image
}

func (s *scene) list(from client.Reader, options ...client.ListOption) []unstructured.Unstructured {
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(sandboxKind)
	tap.Must(from.List(s.ctx, list, append(options, client.InNamespace(s.namespace))...), "list")
	return list.Items
}

// make creates the Sandboxes, without pods.
func (s *scene) make() {
	for n := range boxes {
		box := of(sandboxKind, s.namespace, name(n))
		box.SetAnnotations(map[string]string{imageKey: "first"})
		box.SetLabels(map[string]string{"odd": fmt.Sprint(n % 2)})
		box.Object["spec"] = map[string]any{"operatingMode": "Suspended", "podTemplate": podTemplate("a")}
		tap.Must(s.api.Create(s.ctx, box), "create")
	}
}

// settled waits until a Sandbox has all that the operator gives it.
func (s *scene) settled(n int, image string) bool {
	return tap.Within(soon, func() bool {
		box, note := s.box(n), &corev1.ConfigMap{}
		err := s.api.Get(s.ctx, client.ObjectKey{Namespace: s.namespace, Name: "note-" + name(n)}, note)
		return err == nil && note.Data["image"] == image && box != nil && isNoted(box) && imageOf(s.template(n)) == image
	})
}

// rests waits until nothing is reconciled any more.
func (s *scene) rests() bool {
	before, since := -1, time.Now()
	return tap.Within(soon, func() bool {
		if now := s.operator.allPasses(); now != before {
			before, since = now, time.Now()
		}
		return time.Since(since) > 2*time.Second
	})
}

func (s *scene) works() {
	s.make()
	for n := range boxes {
		tap.Check(name(n)+" is noted, with template and ConfigMap", s.settled(n, "first"), s.box(n), s.template(n))
	}
	tap.Check("at rest nothing is reconciled", s.rests(), s.operator.passes)
	box := s.box(0)
	tap.Same("the finalizer is there", finalizer, fmt.Sprint(box.GetFinalizers()[len(box.GetFinalizers())-1]))
	tap.Check("and the conditions of the server beside the operator's", len(conditionsOf(box)) > 1, conditionsOf(box))
	owner := metav1.GetControllerOf(s.template(0))
	tap.Check("the template is owned", owner != nil && owner.UID == box.GetUID() && owner.Kind == "Sandbox", owner)
	if note := (&corev1.ConfigMap{}); s.api.Get(s.ctx, client.ObjectKey{Namespace: s.namespace, Name: "note-" + name(0)}, note) == nil {
		tap.Check("and the ConfigMap", metav1.IsControlledBy(note, box), note.OwnerReferences)
	}
	tap.Check("the template's fields are the operator's, by apply", func() bool {
		for _, entry := range s.template(0).GetManagedFields() {
			if entry.Manager == "operator" && entry.Operation == metav1.ManagedFieldsOperationApply {
				return true
			}
		}
		return false
	}(), s.template(0).GetManagedFields())
}

func (s *scene) follows() {
	uid := s.template(1).GetUID()
	tap.Must(s.api.Delete(s.ctx, of(templateKind, s.namespace, "of-"+name(1))), "delete")
	tap.Check("a template that was deleted comes again", tap.Within(soon, func() bool { t := s.template(1); return t != nil && t.GetUID() != uid }))

	template := s.template(2)
	before := template.DeepCopy()
	template.Object["spec"] = map[string]any{"podTemplate": podTemplate("other")}
	tap.Must(s.api.Patch(s.ctx, template, client.MergeFrom(before)), "patch")
	tap.Check("one that was changed is put back", tap.Within(soon, func() bool { return imageOf(s.template(2)) == "first" }), s.template(2))

	box := s.box(3)
	stale := box.DeepCopy()
	before = box.DeepCopy()
	box.SetAnnotations(map[string]string{imageKey: "second"})
	tap.Must(s.api.Patch(s.ctx, box, client.MergeFrom(before)), "patch")
	tap.Check("a change of a Sandbox reaches what it owns", s.settled(3, "second"), s.template(3))
	stale.SetLabels(map[string]string{"stale": "yes"})
	err := s.api.Update(s.ctx, stale)
	tap.Check("an update of an old version is a conflict", apierrors.IsConflict(err), err)
	err = s.api.Patch(s.ctx, stale, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
	tap.Check("as is a patch with an optimistic lock", apierrors.IsConflict(err), err)

	s.rests()
	passes := s.operator.passesOf(name(4))
	pool := of(poolKind, s.namespace, "pool")
	pool.SetAnnotations(map[string]string{forKey: name(4)})
	pool.Object["spec"] = map[string]any{"replicas": int64(0), "sandboxTemplateRef": map[string]any{"name": "nobody"}}
	tap.Must(s.api.Create(s.ctx, pool), "create")
	tap.Check("a pool, watched by its metadata, leads to its Sandbox", tap.Within(soon, func() bool { return s.operator.passesOf(name(4)) > passes }))

	box = s.box(5)
	before = box.DeepCopy()
	box.Object["spec"].(map[string]any)["podTemplate"] = podTemplate("b")
	tap.Must(s.api.Patch(s.ctx, box, client.MergeFrom(before)), "patch")
	tap.Check("the server sees to the same Sandbox", tap.Within(soon, func() bool { return s.observed(5, box.GetGeneration()) }), s.box(5))
	tap.Check("and leaves the operator's condition", isNoted(s.box(5)), conditionsOf(s.box(5)))
}

// observed says whether the server's condition Ready is of that generation.
func (s *scene) observed(n int, generation int64) bool {
	for _, c := range conditionsOf(s.box(n)) {
		c := c.(map[string]any)
		if c["type"] == "Ready" && c["observedGeneration"] == generation {
			return true
		}
	}
	return false
}

// caches compares what the manager's cache says with what the server does.
func (s *scene) caches(when string) {
	var got, want []string
	tap.Check(when+": the cache is the list", tap.Within(soon, func() bool {
		got, want = nil, nil
		for _, o := range s.list(s.manager.GetClient()) {
			got = append(got, o.GetName()+" "+string(o.GetUID())+" "+o.GetResourceVersion())
		}
		for _, o := range s.list(s.manager.GetAPIReader()) {
			want = append(want, o.GetName()+" "+string(o.GetUID())+" "+o.GetResourceVersion())
		}
		return same(got, want)
	}), got, want)
	tap.Same(when+": by label", boxes/2, len(s.list(s.manager.GetClient(), client.MatchingLabels{"odd": "1"})))
	tap.Same(when+": by an index", 1, len(s.list(s.manager.GetClient(), client.MatchingFields{imageKey: "second"})))
}

func same(a, b []string) bool {
	left := map[string]int{}
	for _, x := range a {
		left[x]++
	}
	for _, x := range b {
		left[x]--
	}
	for _, n := range left {
		if n != 0 {
			return false
		}
	}
	return true
}

// survives: the operator goes on when the server is there again.
func (s *scene) survives() {
	tap.Do("kill_server")
	tap.Check("the server is there again", tap.Within(soon, func() bool { return s.box(0) != nil }))
	box := s.box(0)
	before := box.DeepCopy()
	box.SetAnnotations(map[string]string{imageKey: "third"})
	tap.Must(s.api.Patch(s.ctx, box, client.MergeFrom(before)), "patch")
	tap.Check("after a crash changes are followed as before", s.settled(0, "third"), s.template(0))
	s.caches("after a crash")
}

func (s *scene) ends() {
	tap.Must(s.api.DeleteAllOf(s.ctx, of(sandboxKind, "", ""), client.InNamespace(s.namespace), client.MatchingLabels{"odd": "0"},
		client.PropagationPolicy(metav1.DeletePropagationForeground)), "delete of many")
	tap.Check("many are deleted by label, in the foreground, behind finalizers", tap.Within(soon, func() bool {
		return len(s.list(s.api)) == boxes/2 && s.template(0) == nil && s.template(2) == nil && s.template(4) == nil
	}), s.list(s.api))
	tap.Must(s.api.DeleteAllOf(s.ctx, of(sandboxKind, "", ""), client.InNamespace(s.namespace)), "delete of all")
	tap.Check("then all", tap.Within(soon, func() bool { return len(s.list(s.api)) == 0 }), s.list(s.api))
	tap.Check("and what they owned", tap.Within(soon, func() bool { return s.template(1) == nil && s.template(3) == nil && s.template(5) == nil }))
	tap.Check("the cache is empty", tap.Within(soon, func() bool { return len(s.list(s.manager.GetClient())) == 0 }))
	for n := range boxes {
		tap.Same(name(n)+" was let go once", 1, s.operator.ended[name(n)])
	}
	tap.Check("no request of the operator was wrong", len(s.operator.strange) == 0, s.operator.strange)
}

func main() {
	klog.SetLogger(logr.Discard())
	ctrl.SetLogger(logr.Discard())
	ctx, cancel := context.WithTimeout(context.Background(), 8*time.Minute)
	defer cancel()
	config, err := clientcmd.BuildConfigFromFlags("", os.Args[1])
	tap.Must(err, "kubeconfig")
	config.QPS = -1
	api, err := client.New(config, client.Options{Scheme: scheme.Scheme})
	tap.Must(err, "client")
	s := &scene{ctx: ctx, namespace: os.Args[2], api: api}
	s.manager, err = ctrl.NewManager(config, ctrl.Options{
		Scheme:                        scheme.Scheme,
		Cache:                         cache.Options{DefaultNamespaces: map[string]cache.Config{s.namespace: {}}},
		Client:                        client.Options{Cache: &client.CacheOptions{Unstructured: true}},
		Metrics:                       metricsserver.Options{BindAddress: "0"},
		LeaderElection:                true,
		LeaderElectionID:              "operator",
		LeaderElectionNamespace:       s.namespace,
		LeaderElectionReleaseOnCancel: true,
	})
	tap.Must(err, "manager")
	s.operator = &operator{Client: s.manager.GetClient(), passes: map[string]int{}, ended: map[string]int{}}
	tap.Must(s.operator.addTo(s.manager), "controller")
	tap.Must(s.manager.GetFieldIndexer().IndexField(ctx, of(sandboxKind, "", ""), imageKey, func(o client.Object) []string {
		return []string{o.GetAnnotations()[imageKey]}
	}), "index")
	running, stop := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() { ended <- s.manager.Start(running) }()
	<-s.manager.Elected()
	tap.Check("the caches are filled", s.manager.GetCache().WaitForCacheSync(ctx))
	s.works()
	s.follows()
	s.caches("at rest")
	s.survives()
	s.ends()
	stop()
	err = <-ended
	tap.Check("the manager ends in order", err == nil, err)
}
