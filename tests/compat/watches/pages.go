package main

import (
	"context"
	"fmt"
	"slices"
	"sort"
	"strconv"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/pager"

	"agent-sandbox.dev/compat/tap"
)

const pageSize = 7

// difference says in what two sets of objects differ, nothing when they do not.
func difference(wanted, got []unstructured.Unstructured) string {
	left := map[string]unstructured.Unstructured{}
	for _, o := range got {
		left[o.GetName()] = o
	}
	if len(left) != len(got) {
		return "some are there twice"
	}
	for _, o := range wanted {
		other, ok := left[o.GetName()]
		if !ok {
			return o.GetName() + " is missing"
		}
		if !equality.Semantic.DeepEqual(o.Object, other.Object) {
			return fmt.Sprintf("%s is not the same: %v and %v", o.GetName(), o.Object, other.Object)
		}
		delete(left, o.GetName())
	}
	for name := range left {
		return name + " should not be there"
	}
	return ""
}

func listOf(ctx context.Context, client dynamic.ResourceInterface, options metav1.ListOptions) *unstructured.UnstructuredList {
	list, err := client.List(ctx, options)
	tap.Must(err, "list")
	return list
}

// book is a list that is read page by page.
type book struct {
	road     *road
	client   dynamic.ResourceInterface
	versions []string // of the pages
	limits   []int64  // that they were asked with
	turn     func()   // before the second page
}

func (b *book) page(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
	if len(b.limits) == 1 && b.turn != nil {
		b.turn()
	}
	list, err := b.client.List(ctx, options)
	b.limits = append(b.limits, options.Limit)
	if err == nil {
		b.versions = append(b.versions, list.GetResourceVersion())
	}
	return list, err
}

// pager of client-go that reads it.
func (b *book) pager(fallBack bool) *pager.ListPager {
	p := pager.New(b.page)
	p.PageSize, p.FullListIfExpired = pageSize, fallBack
	return p
}

func itemsOf(list runtime.Object) []unstructured.Unstructured {
	var items []unstructured.Unstructured
	tap.Must(meta.EachListItem(list, func(o runtime.Object) error {
		items = append(items, *o.(*unstructured.Unstructured))
		return nil
	}), "items of a list")
	return items
}

// checkPages reads all pages while others write: they are one state of the store, the first one's.
func checkPages(ctx context.Context, r *road, namespace string) {
	b := &book{road: r, client: r.client.Resource(sandboxes).Namespace(namespace)}
	list, paged, err := b.pager(true).List(ctx, metav1.ListOptions{})
	tap.Must(err, r.name+": a list by pages")
	tap.Check(r.name+": a list by pages has some of them", paged && len(b.limits) > 2, b.limits)
	sort.Strings(b.versions)
	tap.Same(r.name+": all of one version", 1, len(slices.Compact(b.versions)))
	exact := listOf(ctx, b.client, metav1.ListOptions{ResourceVersion: b.versions[0], ResourceVersionMatch: metav1.ResourceVersionMatchExact})
	tap.Same(r.name+": together they are the list of exactly that version", "", difference(exact.Items, itemsOf(list)))
}

// expiring is a list of which the history is forgotten between its first page and its second one.
type expiring struct {
	book
	first chan struct{} // the first page is there
	done  chan struct{}
	items []unstructured.Unstructured
	err   error
}

// begin reads the first page and then waits for `on`. How: all pages together, one after the other, or each item.
func begin(ctx context.Context, r *road, namespace string, on <-chan struct{}, read func(*expiring) error) *expiring {
	e := &expiring{first: make(chan struct{}), done: make(chan struct{})}
	e.book = book{road: r, client: r.client.Resource(sandboxes).Namespace(namespace), turn: func() { close(e.first); <-on }}
	go func() {
		defer close(e.done)
		e.err = read(e)
	}()
	<-e.first
	return e
}

// expirings are the ways in which client-go can meet that.
type expirings struct{ fallsBack, insists, eachItem *expiring }

func beginAll(ctx context.Context, r *road, namespace string, on <-chan struct{}) expirings {
	whole := func(fallBack bool) func(*expiring) error {
		return func(e *expiring) error {
			list, _, err := e.pager(fallBack).List(ctx, metav1.ListOptions{})
			if err == nil {
				e.items = itemsOf(list)
			}
			return err
		}
	}
	return expirings{
		begin(ctx, r, namespace, on, whole(true)),
		begin(ctx, r, namespace, on, whole(false)),
		begin(ctx, r, namespace, on, func(e *expiring) error {
			return e.pager(true).EachListItem(ctx, metav1.ListOptions{}, func(o runtime.Object) error {
				e.items = append(e.items, *o.(*unstructured.Unstructured))
				return nil
			})
		}),
	}
}

// check what became of them when nothing is written any more.
func version(list *unstructured.UnstructuredList) uint64 {
	n, err := strconv.ParseUint(list.GetResourceVersion(), 10, 64)
	tap.Must(err, "a list's version is a number")
	return n
}

func (e expirings) check(ctx context.Context) {
	name := e.insists.road.name
	for _, one := range []*expiring{e.fallsBack, e.insists, e.eachItem} {
		<-one.done
	}
	now := listOf(ctx, e.insists.client, metav1.ListOptions{})
	tap.Check(name+": when its token has expired the pager lists anew", e.fallsBack.err == nil, e.fallsBack.err)
	tap.Same(name+": without pages", "[7 7 0]", fmt.Sprint(e.fallsBack.limits))
	tap.Same(name+": and has all", "", difference(now.Items, e.fallsBack.items))
	tap.Check(name+": or it says Expired, if it may not", apierrors.IsResourceExpired(e.insists.err), e.insists.err)
	tap.Check(name+": as it does for one item after the other", apierrors.IsResourceExpired(e.eachItem.err), e.eachItem.err)
	tap.Same(name+": of which the first page came", pageSize, len(e.eachItem.items))
	status, ok := e.insists.err.(apierrors.APIStatus)
	if !ok || status.Status().Continue == "" {
		tap.Check(name+": a token to go on with is in the error", false, e.insists.err)
		return
	}
	rest := listOf(ctx, e.insists.client, metav1.ListOptions{Continue: status.Status().Continue})
	last := e.eachItem.items[pageSize-1].GetName()
	wanted := slices.DeleteFunc(now.Items, func(o unstructured.Unstructured) bool { return o.GetName() <= last })
	tap.Same(name+": the token in the error goes on behind the first page, as it is now", "", difference(wanted, rest.Items))
	then := listOf(ctx, e.insists.client, metav1.ListOptions{Limit: 1}) // others may write meanwhile
	tap.Check(name+": with the version of now", version(now) <= version(rest) && version(rest) <= version(then),
		now.GetResourceVersion(), rest.GetResourceVersion(), then.GetResourceVersion())
}
