// Command fakenode plays the kubelet where no real one can run: it registers a Node, says of each pod bound to it
// that it runs and is ready, and lets deleted pods go. No container ever runs; the node's label says so.
package main

import (
	"context"
	"encoding/binary"
	"errors"
	"flag"
	"log"
	"net/netip"
	"os/signal"
	"sync/atomic"
	"syscall"
	"time"

	coordination "k8s.io/api/coordination/v1"
	core "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/util/retry"
	"k8s.io/client-go/util/workqueue"
)

const (
	label       = "agent-sandbox.dev/fake"
	leaseSpace  = "kube-node-lease"
	leaseSecond = 40 // a node without a renewed lease counts as dead after this time
	workers     = 8
)

type node struct {
	client kubernetes.Interface
	pods   cache.Indexer
	name   string
	last   atomic.Uint32 // pods that were given an address
}

func main() {
	kubeconfig := flag.String("kubeconfig", "", "how to reach the cluster")
	name := flag.String("node", "fake-1", "name of the node")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	if err := run(ctx, *kubeconfig, *name); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, kubeconfig, name string) error {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return err
	}
	config.QPS, config.Burst = 500, 1000
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	n := &node{client: client, name: name}
	if err := n.register(ctx); err != nil {
		return err
	}
	factory := informers.NewSharedInformerFactoryWithOptions(client, 0, informers.WithTweakListOptions(
		func(o *meta.ListOptions) { o.FieldSelector = "spec.nodeName=" + name }))
	pods := factory.Core().V1().Pods().Informer()
	n.pods = pods.GetIndexer()
	queue := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[string]())
	add := func(object any) {
		if key, err := cache.MetaNamespaceKeyFunc(object); err == nil {
			queue.Add(key)
		}
	}
	if _, err := pods.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    add,
		UpdateFunc: func(_, object any) { add(object) },
	}); err != nil {
		return err
	}
	factory.Start(ctx.Done())
	factory.WaitForCacheSync(ctx.Done())
	for range workers {
		go n.work(ctx, queue)
	}
	n.renew(ctx)
	queue.ShutDown()
	return nil
}

func (n *node) register(ctx context.Context) error {
	object := &core.Node{ObjectMeta: meta.ObjectMeta{
		Name: n.name, Labels: map[string]string{label: "true", core.LabelHostname: n.name, core.LabelOSStable: "linux"},
	}}
	_, err := n.client.CoreV1().Nodes().Create(ctx, object, meta.CreateOptions{})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return err
	}
	// The node controller writes to a new node at the same time.
	return retry.RetryOnConflict(retry.DefaultBackoff, func() error { return n.report(ctx) })
}

// report writes the node's status: ready, and with room for every pod.
func (n *node) report(ctx context.Context) error {
	object, err := n.client.CoreV1().Nodes().Get(ctx, n.name, meta.GetOptions{})
	if err != nil {
		return err
	}
	room := core.ResourceList{
		core.ResourceCPU: resource.MustParse("1k"), core.ResourceMemory: resource.MustParse("1Ti"),
		core.ResourcePods: resource.MustParse("100k"), core.ResourceEphemeralStorage: resource.MustParse("10Ti"),
	}
	now := meta.Now()
	object.Status.Capacity, object.Status.Allocatable = room, room
	object.Status.NodeInfo.KubeletVersion = "fake"
	object.Status.Conditions = []core.NodeCondition{{
		Type: core.NodeReady, Status: core.ConditionTrue, Reason: "FakeNode",
		Message: "no container runs here", LastHeartbeatTime: now, LastTransitionTime: now,
	}}
	_, err = n.client.CoreV1().Nodes().UpdateStatus(ctx, object, meta.UpdateOptions{})
	return err
}

// renew keeps the node's lease until the end.
func (n *node) renew(ctx context.Context) {
	tick := time.NewTicker(leaseSecond / 4 * time.Second)
	defer tick.Stop()
	for {
		if err := n.renewOnce(ctx); err != nil && ctx.Err() == nil {
			log.Printf("lease: %v", err)
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

func (n *node) renewOnce(ctx context.Context) error {
	leases := n.client.CoordinationV1().Leases(leaseSpace)
	seconds, now := int32(leaseSecond), meta.NowMicro()
	spec := coordination.LeaseSpec{HolderIdentity: &n.name, LeaseDurationSeconds: &seconds, RenewTime: &now}
	lease, err := leases.Get(ctx, n.name, meta.GetOptions{})
	if apierrors.IsNotFound(err) {
		_, err = leases.Create(ctx, &coordination.Lease{ObjectMeta: meta.ObjectMeta{Name: n.name}, Spec: spec}, meta.CreateOptions{})
		return err
	}
	if err != nil {
		return err
	}
	lease.Spec = spec
	_, err = leases.Update(ctx, lease, meta.UpdateOptions{})
	return err
}

func (n *node) work(ctx context.Context, queue workqueue.TypedRateLimitingInterface[string]) {
	for {
		key, done := queue.Get()
		if done {
			return
		}
		object, found, err := n.pods.GetByKey(key)
		if err == nil && found {
			err = n.handle(ctx, object.(*core.Pod).DeepCopy())
		}
		switch {
		case err == nil || apierrors.IsNotFound(err):
			queue.Forget(key)
		case errors.Is(err, context.Canceled):
		default:
			log.Printf("%s: %v", key, err)
			queue.AddRateLimited(key)
		}
		queue.Done(key)
	}
}

func (n *node) handle(ctx context.Context, pod *core.Pod) error {
	pods := n.client.CoreV1().Pods(pod.Namespace)
	if pod.DeletionTimestamp != nil {
		now := int64(0)
		return pods.Delete(ctx, pod.Name, meta.DeleteOptions{GracePeriodSeconds: &now,
			Preconditions: &meta.Preconditions{UID: &pod.UID}})
	}
	if pod.Status.Phase != core.PodPending {
		return nil
	}
	n.fill(pod)
	_, err := pods.UpdateStatus(ctx, pod, meta.UpdateOptions{})
	return err
}

// fill says of a pod what a kubelet says when all its containers run and are ready.
func (n *node) fill(pod *core.Pod) {
	now, yes := meta.Now(), true
	pod.Status.Phase, pod.Status.StartTime = core.PodRunning, &now
	pod.Status.PodIP = n.address()
	pod.Status.PodIPs = []core.PodIP{{IP: pod.Status.PodIP}}
	for _, t := range []core.PodConditionType{core.PodInitialized, core.PodReady, core.ContainersReady} {
		pod.Status.Conditions = append(pod.Status.Conditions,
			core.PodCondition{Type: t, Status: core.ConditionTrue, LastTransitionTime: now})
	}
	pod.Status.ContainerStatuses = nil
	for _, c := range pod.Spec.Containers {
		pod.Status.ContainerStatuses = append(pod.Status.ContainerStatuses, core.ContainerStatus{
			Name: c.Name, Image: c.Image, ImageID: "fake", ContainerID: "fake://" + string(pod.UID), Ready: true, Started: &yes,
			State: core.ContainerState{Running: &core.ContainerStateRunning{StartedAt: now}},
		})
	}
}

// address counts through 10.130.0.0/15, which is routed nowhere.
func (n *node) address() string {
	var b [4]byte
	binary.BigEndian.PutUint32(b[:], 10<<24|130<<16+n.last.Add(1)%(1<<17-2)+1)
	return netip.AddrFrom4(b).String()
}
