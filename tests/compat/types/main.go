// types does with our kinds what tools do that know no kind beforehand: Argo CD and others make one parser of all the types of the
// cluster's Swagger document and compare objects by it; backups list whatever discovery names, page by page.
//
//	types KUBECONFIG NAMESPACE
//
// The namespace has at least two objects of each of our kinds.
package main

import (
	"context"
	"fmt"
	"os"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/kube-openapi/pkg/util/proto"
	"sigs.k8s.io/structured-merge-diff/v6/typed"

	"agent-sandbox.dev/compat/tap"
)

const suffix = "agents.x-k8s.io"

// ours are the kinds that discovery names, by kind.
func ours(client *discovery.DiscoveryClient) map[string]schema.GroupVersionResource {
	lists, err := client.ServerPreferredResources()
	tap.Must(err, "discovery of everything")
	kinds := map[string]schema.GroupVersionResource{}
	for _, list := range lists {
		version, err := schema.ParseGroupVersion(list.GroupVersion)
		tap.Must(err, list.GroupVersion)
		if !strings.HasSuffix(version.Group, suffix) {
			continue
		}
		for _, resource := range list.APIResources {
			kinds[resource.Kind] = version.WithResource(resource.Name)
		}
	}
	return kinds
}

// parser has a type for each kind of the cluster.
func parser(client *discovery.DiscoveryClient) *managedfields.GvkParser {
	document, err := client.OpenAPISchema()
	tap.Must(err, "the cluster's Swagger document")
	models, err := proto.NewOpenAPIData(document)
	tap.Must(err, "its models")
	types, err := managedfields.NewGVKParser(models, false)
	tap.Must(err, "one parser of all its types")
	return types
}

// backup lists objects as PartialObjectMetadata, two at a time, and returns how many there are.
func backup(ctx context.Context, client metadata.Interface, resource schema.GroupVersionResource, namespace string) int {
	n, options := 0, metav1.ListOptions{Limit: 2}
	for {
		page, err := client.Resource(resource).Namespace(namespace).List(ctx, options)
		tap.Must(err, "a page of "+resource.Resource)
		n += len(page.Items)
		if page.Continue == "" {
			return n
		}
		options.Continue = page.Continue
	}
}

// applied is what the server would make of the object if somebody else applied it as it is.
func applied(ctx context.Context, client dynamic.ResourceInterface, live *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	wish := live.DeepCopy()
	wish.SetManagedFields(nil)
	wish.SetResourceVersion("")
	wish.SetUID("")
	unstructured.RemoveNestedField(wish.Object, "status")
	return client.Apply(ctx, live.GetName(), wish, metav1.ApplyOptions{FieldManager: "types", Force: true, DryRun: []string{metav1.DryRunAll}})
}

// compare returns how the two differ by their type; who owns what is no difference.
func compare(kind *typed.ParseableType, one, other *unstructured.Unstructured) (string, error) {
	var values [2]*typed.TypedValue
	for i, object := range []*unstructured.Unstructured{one, other} {
		plain := object.DeepCopy()
		plain.SetManagedFields(nil)
		value, err := kind.FromUnstructured(plain.Object)
		if err != nil {
			return "", err
		}
		values[i] = value
	}
	comparison, err := values[0].Compare(values[1])
	if err != nil {
		return "", err
	}
	return comparison.String(), nil
}

// settled tells how the object differs from what it would be once it was applied as it is. While its reconciler writes it differs.
func settled(ctx context.Context, client dynamic.ResourceInterface, kind *typed.ParseableType, name string) (difference string) {
	tap.Within(time.Minute, func() bool {
		live, err := client.Get(ctx, name, metav1.GetOptions{})
		if err == nil {
			var wished *unstructured.Unstructured
			if wished, err = applied(ctx, client, live); err == nil {
				difference, err = compare(kind, live, wished)
			}
		}
		if err != nil {
			difference = err.Error()
		}
		return difference == ""
	})
	return difference
}

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: types KUBECONFIG NAMESPACE")
		os.Exit(2)
	}
	config, err := clientcmd.BuildConfigFromFlags("", os.Args[1])
	tap.Must(err, "kubeconfig")
	names, namespace := discovery.NewDiscoveryClientForConfigOrDie(config), os.Args[2]
	objects, copies := dynamic.NewForConfigOrDie(config), metadata.NewForConfigOrDie(config)
	ctx, kinds, types := context.Background(), ours(names), parser(names)
	tap.Same("discovery names our kinds", 4, len(kinds))
	for kind, resource := range kinds {
		client := objects.Resource(resource).Namespace(namespace)
		list, err := client.List(ctx, metav1.ListOptions{})
		tap.Must(err, "list of "+resource.Resource)
		tap.Check(kind+": there are some", len(list.Items) >= 2, len(list.Items))
		tap.Same(kind+": as many in pages of metadata", len(list.Items), backup(ctx, copies, resource, namespace))
		parsed := types.Type(resource.GroupVersion().WithKind(kind))
		tap.Check(kind+": has a type in the cluster's document", parsed != nil && parsed.IsValid())
		if parsed == nil {
			continue
		}
		for _, live := range list.Items {
			tap.Same(kind+": applied as it is, nothing differs", "", settled(ctx, client, parsed, live.GetName()))
		}
	}
}
