// informer lives as a controller does: informers on all four kinds from a shared factory, caches that have to be filled, a status
// written, a finalizer that is added, holds the object and is taken away. Exits 0 when all of it went through.
//
//	informer KUBECONFIG NAMESPACE
package main

import (
	"context"
	"fmt"
	"os"
	"time"

	"k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/metadata/metadatainformer"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/clientcmd"
)

const finalizer = "contract.test/informer"

func kinds() []schema.GroupVersionResource {
	agents, extensions := "agents.x-k8s.io", "extensions.agents.x-k8s.io"
	return []schema.GroupVersionResource{
		{Group: agents, Version: "v1beta1", Resource: "sandboxes"},
		{Group: extensions, Version: "v1beta1", Resource: "sandboxclaims"},
		{Group: extensions, Version: "v1beta1", Resource: "sandboxtemplates"},
		{Group: extensions, Version: "v1beta1", Resource: "sandboxwarmpools"},
	}
}

func check(err error, what string) {
	if err != nil {
		fmt.Fprintf(os.Stderr, "%s: %v\n", what, err)
		os.Exit(1)
	}
}

// controller reconciles as the documentation of client-go shows it: look into the cache, write what is missing, wait for the next event.
type controller struct {
	client dynamic.ResourceInterface
	done   chan string
}

func (c *controller) reconcile(ctx context.Context, object *unstructured.Unstructured) {
	name := object.GetName()
	if object.GetDeletionTimestamp() != nil {
		_, err := c.client.Patch(ctx, name, types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{})
		if err != nil && !errors.IsNotFound(err) {
			check(err, "taking the finalizer away")
		}
		return
	}
	changed := object.DeepCopy()
	if len(object.GetFinalizers()) == 0 {
		changed.SetFinalizers([]string{finalizer})
		_, err := c.client.Update(ctx, changed, metav1.UpdateOptions{})
		if err != nil && !errors.IsConflict(err) {
			check(err, "adding the finalizer")
		}
		return
	}
	if address, _, _ := unstructured.NestedString(object.Object, "status", "serviceFQDN"); address == "" {
		check(unstructured.SetNestedField(changed.Object, "seen.example.org", "status", "serviceFQDN"), "status")
		_, err := c.client.UpdateStatus(ctx, changed, metav1.UpdateOptions{})
		if err != nil && !errors.IsConflict(err) {
			check(err, "writing the status")
		}
		return
	}
	c.done <- "reconciled"
}

func main() {
	ctx, cancel := context.WithTimeout(context.Background(), 60*time.Second)
	defer cancel()
	config, err := clientcmd.BuildConfigFromFlags("", os.Args[1])
	check(err, "kubeconfig")
	client, err := dynamic.NewForConfig(config)
	check(err, "client")
	byMetadata, err := metadata.NewForConfig(config)
	check(err, "metadata client")
	namespace := os.Args[2]
	factory := dynamicinformer.NewFilteredDynamicSharedInformerFactory(client, 0, namespace, nil)
	partial := metadatainformer.NewFilteredSharedInformerFactory(byMetadata, 0, namespace, nil)
	sandboxes := client.Resource(kinds()[0]).Namespace(namespace)
	c := &controller{client: sandboxes, done: make(chan string, 100)}
	for _, kind := range kinds() {
		factory.ForResource(kind).Informer()
		partial.ForResource(kind).Informer()
	}
	_, err = factory.ForResource(kinds()[0]).Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(o interface{}) { c.reconcile(ctx, o.(*unstructured.Unstructured)) },
		UpdateFunc: func(_, o interface{}) { c.reconcile(ctx, o.(*unstructured.Unstructured)) },
		DeleteFunc: func(interface{}) { c.done <- "deleted" },
	})
	check(err, "handler")
	factory.Start(ctx.Done())
	partial.Start(ctx.Done())
	synced, cancelSync := context.WithTimeout(ctx, 20*time.Second)
	defer cancelSync()
	for kind, ok := range factory.WaitForCacheSync(synced.Done()) {
		if !ok {
			check(fmt.Errorf("the cache is not filled"), kind.Resource)
		}
	}
	for kind, ok := range partial.WaitForCacheSync(synced.Done()) {
		if !ok {
			check(fmt.Errorf("the cache of metadata is not filled"), kind.Resource)
		}
	}
	_, err = sandboxes.Create(ctx, &unstructured.Unstructured{Object: map[string]interface{}{
		"apiVersion": "agents.x-k8s.io/v1beta1", "kind": "Sandbox", "metadata": map[string]interface{}{"name": "informed"},
		"spec": map[string]interface{}{"podTemplate": map[string]interface{}{"spec": map[string]interface{}{"containers": []interface{}{}}}},
	}}, metav1.CreateOptions{})
	check(err, "create")
	for _, step := range []string{"reconciled", "deleted"} {
		select {
		case got := <-c.done:
			if got != step {
				check(fmt.Errorf("expected %s, got %s", step, got), "order")
			}
		case <-ctx.Done():
			check(ctx.Err(), step)
		}
		if step == "reconciled" {
			check(sandboxes.Delete(ctx, "informed", metav1.DeleteOptions{}), "delete")
		}
	}
	fmt.Println("ok")
}
