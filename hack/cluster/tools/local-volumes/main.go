// Command local-volumes provides the test cluster's volumes: for each claim of its storage class a folder and a
// PersistentVolume of type local (which, unlike hostPath, honours a pod's fsGroup), and it removes both when the
// claim is gone. The controller manager does the binding.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	core "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/util/workqueue"
)

const (
	provisioner = "agent-sandbox.dev/local-volumes"
	askedOf     = "volume.kubernetes.io/storage-provisioner" // set by the controller manager when the claim may be served
	provisioned = "pv.kubernetes.io/provisioned-by"
)

type server struct {
	client  kubernetes.Interface
	claims  cache.Indexer
	volumes cache.Indexer
	folder  string
	node    string
}

// item is a key of the queue: a claim to be served or a volume to be removed.
type item struct {
	isVolume bool
	key      string
}

func main() {
	kubeconfig := flag.String("kubeconfig", "", "how to reach the cluster")
	folder := flag.String("folder", "", "where the volumes' folders are made")
	node := flag.String("node", "", "the node that has them")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	if err := run(ctx, *kubeconfig, *folder, *node); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, kubeconfig, folder, node string) error {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return err
	}
	if !filepath.IsAbs(folder) || node == "" {
		return errors.New("-folder must be an absolute path and -node be given")
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	factory := informers.NewSharedInformerFactory(client, 10*time.Minute)
	claims := factory.Core().V1().PersistentVolumeClaims().Informer()
	volumes := factory.Core().V1().PersistentVolumes().Informer()
	s := &server{client, claims.GetIndexer(), volumes.GetIndexer(), folder, node}
	queue := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[item]())
	watch := func(informer cache.SharedIndexInformer, isVolume bool) error {
		add := func(object any) {
			if key, err := cache.MetaNamespaceKeyFunc(object); err == nil {
				queue.Add(item{isVolume, key})
			}
		}
		_, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
			AddFunc:    add,
			UpdateFunc: func(_, object any) { add(object) },
		})
		return err
	}
	if err := errors.Join(watch(claims, false), watch(volumes, true)); err != nil {
		return err
	}
	factory.Start(ctx.Done())
	factory.WaitForCacheSync(ctx.Done())
	go func() {
		<-ctx.Done()
		queue.ShutDown()
	}()
	for {
		next, done := queue.Get()
		if done {
			return nil
		}
		err := s.handle(ctx, next)
		if err != nil {
			log.Printf("%s: %v", next.key, err)
			queue.AddRateLimited(next)
		} else {
			queue.Forget(next)
		}
		queue.Done(next)
	}
}

func (s *server) handle(ctx context.Context, i item) error {
	if i.isVolume {
		object, found, err := s.volumes.GetByKey(i.key)
		if err != nil || !found {
			return err
		}
		return s.remove(ctx, object.(*core.PersistentVolume))
	}
	object, found, err := s.claims.GetByKey(i.key)
	if err != nil || !found {
		return err
	}
	return s.provide(ctx, object.(*core.PersistentVolumeClaim))
}

func (s *server) provide(ctx context.Context, claim *core.PersistentVolumeClaim) error {
	if claim.Annotations[askedOf] != provisioner || claim.Spec.VolumeName != "" || claim.DeletionTimestamp != nil {
		return nil
	}
	name := "pvc-" + string(claim.UID)
	path := filepath.Join(s.folder, name)
	if err := os.MkdirAll(path, 0o777); err != nil {
		return err
	}
	// Pods run as any user; the umask must not shut them out.
	if err := os.Chmod(path, 0o777); err != nil {
		return err
	}
	_, err := s.client.CoreV1().PersistentVolumes().Create(ctx, s.volume(name, path, claim), meta.CreateOptions{})
	if err == nil {
		log.Printf("%s/%s: volume %s", claim.Namespace, claim.Name, name)
	}
	if apierrors.IsAlreadyExists(err) {
		return nil
	}
	return err
}

func (s *server) volume(name, path string, claim *core.PersistentVolumeClaim) *core.PersistentVolume {
	mode := core.PersistentVolumeFilesystem
	class := ""
	if claim.Spec.StorageClassName != nil {
		class = *claim.Spec.StorageClassName
	}
	return &core.PersistentVolume{
		ObjectMeta: meta.ObjectMeta{Name: name, Annotations: map[string]string{provisioned: provisioner}},
		Spec: core.PersistentVolumeSpec{
			Capacity:                      core.ResourceList{core.ResourceStorage: claim.Spec.Resources.Requests[core.ResourceStorage]},
			AccessModes:                   claim.Spec.AccessModes,
			PersistentVolumeReclaimPolicy: core.PersistentVolumeReclaimDelete,
			StorageClassName:              class,
			VolumeMode:                    &mode,
			ClaimRef: &core.ObjectReference{
				APIVersion: "v1", Kind: "PersistentVolumeClaim",
				Namespace: claim.Namespace, Name: claim.Name, UID: claim.UID, ResourceVersion: claim.ResourceVersion,
			},
			PersistentVolumeSource: core.PersistentVolumeSource{Local: &core.LocalVolumeSource{Path: path}},
			NodeAffinity: &core.VolumeNodeAffinity{Required: &core.NodeSelector{
				NodeSelectorTerms: []core.NodeSelectorTerm{{MatchExpressions: []core.NodeSelectorRequirement{{
					Key: core.LabelHostname, Operator: core.NodeSelectorOpIn, Values: []string{s.node},
				}}}},
			}},
		},
	}
}

// remove takes away a volume that its claim has left, the folder first: while the object is there it is tried again.
func (s *server) remove(ctx context.Context, volume *core.PersistentVolume) error {
	if volume.Annotations[provisioned] != provisioner || volume.Status.Phase != core.VolumeReleased ||
		volume.Spec.PersistentVolumeReclaimPolicy != core.PersistentVolumeReclaimDelete || volume.Spec.Local == nil {
		return nil
	}
	// The name is made by us, so nothing but a folder of ours can be meant.
	path := filepath.Join(s.folder, volume.Name)
	if volume.Spec.Local.Path != path {
		return fmt.Errorf("its path %s is not %s", volume.Spec.Local.Path, path)
	}
	if err := os.RemoveAll(path); err != nil {
		return err
	}
	err := s.client.CoreV1().PersistentVolumes().Delete(ctx, volume.Name, meta.DeleteOptions{})
	if err == nil {
		log.Printf("%s: removed", volume.Name)
	}
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}
