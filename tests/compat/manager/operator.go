package main

import (
	"context"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

var (
	sandboxKind  = schema.GroupVersionKind{Group: "agents.x-k8s.io", Version: "v1beta1", Kind: "Sandbox"}
	templateKind = schema.GroupVersionKind{Group: "extensions.agents.x-k8s.io", Version: "v1beta1", Kind: "SandboxTemplate"}
	poolKind     = schema.GroupVersionKind{Group: "extensions.agents.x-k8s.io", Version: "v1beta1", Kind: "SandboxWarmPool"}
)

const (
	finalizer = "compat.test/operator"
	imageKey  = "compat.test/image" // annotation: what the template of a Sandbox runs
	forKey    = "compat.test/for"   // annotation of a pool: the Sandbox that has to be looked at
	condition = "Noted"
)

func of(kind schema.GroupVersionKind, namespace, name string) *unstructured.Unstructured {
	o := &unstructured.Unstructured{}
	o.SetGroupVersionKind(kind)
	o.SetNamespace(namespace)
	o.SetName(name)
	return o
}

func podTemplate(image string) map[string]any {
	return map[string]any{"spec": map[string]any{"containers": []any{map[string]any{"name": "main", "image": image}}}}
}

// operator gives each Sandbox a template that follows its annotation, a ConfigMap, a condition and a finalizer.
type operator struct {
	client.Client

	mu      sync.Mutex
	passes  map[string]int // by name
	ended   map[string]int // Sandboxes that it let go
	strange []error
}

func (o *operator) addTo(manager ctrl.Manager) error {
	return ctrl.NewControllerManagedBy(manager).
		Named("operator").
		For(of(sandboxKind, "", "")).
		Owns(of(templateKind, "", "")).
		Owns(&corev1.ConfigMap{}).
		WatchesMetadata(of(poolKind, "", ""), handler.EnqueueRequestsFromMapFunc(func(_ context.Context, pool client.Object) []reconcile.Request {
			name, ok := pool.GetAnnotations()[forKey]
			if !ok {
				return nil
			}
			return []reconcile.Request{{NamespacedName: types.NamespacedName{Namespace: pool.GetNamespace(), Name: name}}}
		})).
		Complete(o)
}

// Reconcile counts, and hides what is no fault: somebody else was first, or the server is away.
func (o *operator) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	o.mu.Lock()
	o.passes[request.Name]++
	o.mu.Unlock()
	box := of(sandboxKind, "", "")
	if err := o.Get(ctx, request.NamespacedName, box); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	err := o.pass(ctx, box)
	if apierrors.IsInvalid(err) || apierrors.IsBadRequest(err) || apierrors.IsForbidden(err) || apierrors.IsUnsupportedMediaType(err) {
		o.mu.Lock()
		o.strange = append(o.strange, err)
		o.mu.Unlock()
	}
	return ctrl.Result{}, err
}

func (o *operator) pass(ctx context.Context, box *unstructured.Unstructured) error {
	if !box.GetDeletionTimestamp().IsZero() {
		return o.letGo(ctx, box)
	}
	if controllerutil.AddFinalizer(box, finalizer) {
		return o.Update(ctx, box) // its event leads here once more
	}
	if err := o.applyTemplate(ctx, box); err != nil {
		return fmt.Errorf("template: %w", err)
	}
	note := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: box.GetNamespace(), Name: "note-" + box.GetName()}}
	if _, err := controllerutil.CreateOrUpdate(ctx, o, note, func() error {
		note.Data = map[string]string{"image": box.GetAnnotations()[imageKey]}
		return controllerutil.SetControllerReference(box, note, o.Scheme())
	}); err != nil {
		return fmt.Errorf("note: %w", err)
	}
	return o.noteCondition(ctx, box)
}

func (o *operator) letGo(ctx context.Context, box *unstructured.Unstructured) error {
	before := box.DeepCopy()
	if !controllerutil.RemoveFinalizer(box, finalizer) {
		return nil
	}
	if err := o.Patch(ctx, box, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})); err != nil {
		return client.IgnoreNotFound(err)
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.ended[box.GetName()]++
	return nil
}

func (o *operator) applyTemplate(ctx context.Context, box *unstructured.Unstructured) error {
	template := of(templateKind, box.GetNamespace(), "of-"+box.GetName())
	template.Object["spec"] = map[string]any{"podTemplate": podTemplate(box.GetAnnotations()[imageKey])}
	if err := controllerutil.SetControllerReference(box, template, o.Scheme()); err != nil {
		return err
	}
	return o.Apply(ctx, client.ApplyConfigurationFromUnstructured(template), client.FieldOwner("operator"), client.ForceOwnership)
}

func conditionsOf(box *unstructured.Unstructured) []any {
	list, _, _ := unstructured.NestedSlice(box.Object, "status", "conditions")
	return list
}

func isNoted(box *unstructured.Unstructured) bool {
	for _, c := range conditionsOf(box) {
		if c.(map[string]any)["type"] == condition {
			return true
		}
	}
	return false
}

// noteCondition adds a condition to those of others, as long as they are what the cache says.
func (o *operator) noteCondition(ctx context.Context, box *unstructured.Unstructured) error {
	if isNoted(box) {
		return nil
	}
	before := box.DeepCopy()
	list := append(conditionsOf(box), map[string]any{"type": condition, "status": "True", "reason": "Seen", "message": "",
		"lastTransitionTime": time.Now().UTC().Format(time.RFC3339)})
	if err := unstructured.SetNestedSlice(box.Object, list, "status", "conditions"); err != nil {
		return err
	}
	return o.Status().Patch(ctx, box, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
}

func (o *operator) passesOf(name string) int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.passes[name]
}

func (o *operator) allPasses() (sum int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, n := range o.passes {
		sum += n
	}
	return sum
}
