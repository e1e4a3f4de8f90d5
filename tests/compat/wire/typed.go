package main

import (
	"context"
	"time"

	authentication "k8s.io/api/authentication/v1"
	authorization "k8s.io/api/authorization/v1"
	coordination "k8s.io/api/coordination/v1"
	core "k8s.io/api/core/v1"
	rbac "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"agent-sandbox.dev/compat/tap"
)

var (
	ctx   = context.Background()
	named = meta.ObjectMeta{Name: "typed", Labels: map[string]string{"by": "wire"}}
)

const ns = "default"

func pod() *core.Pod {
	return &core.Pod{ObjectMeta: named, Spec: core.PodSpec{
		SchedulerName: "nobody",
		Volumes:       []core.Volume{{Name: "v", VolumeSource: core.VolumeSource{EmptyDir: &core.EmptyDirVolumeSource{}}}},
		Containers: []core.Container{{
			Name: "a", Image: "example.org/app",
			Env:          []core.EnvVar{{Name: "CPU", ValueFrom: &core.EnvVarSource{ResourceFieldRef: &core.ResourceFieldSelector{Resource: "limits.cpu"}}}},
			Resources:    core.ResourceRequirements{Limits: core.ResourceList{"cpu": resource.MustParse("100m")}},
			VolumeMounts: []core.VolumeMount{{Name: "v", MountPath: "/v"}},
			ReadinessProbe: &core.Probe{ProbeHandler: core.ProbeHandler{
				HTTPGet: &core.HTTPGetAction{Port: intstr.FromString("http"), Path: "/"}}},
		}},
	}}
}

// next event of a watch that is about an object of that name.
func next(w watch.Interface) (watch.Event, string) {
	select {
	case e := <-w.ResultChan():
		if m, ok := e.Object.(meta.Object); ok {
			return e, m.GetName()
		}
		return e, ""
	case <-time.After(20 * time.Second):
		return watch.Event{}, "no event"
	}
}

func objects(c *kubernetes.Clientset) {
	maps := c.CoreV1().ConfigMaps(ns)
	w, err := maps.Watch(ctx, meta.ListOptions{LabelSelector: "by=wire"})
	tap.Must(err, "watches ConfigMaps")
	made, err := maps.Create(ctx, &core.ConfigMap{ObjectMeta: named, Data: map[string]string{"a": "b"}, BinaryData: map[string][]byte{"c": {0, 255}}}, meta.CreateOptions{})
	tap.Must(err, "creates a ConfigMap")
	tap.Same("with its bytes", "\x00\xff", string(made.BinaryData["c"]))
	e, name := next(w)
	tap.Same("the watch tells of it", "ADDED typed", string(e.Type)+" "+name)
	w.Stop()
	made.Data["a"] = ""
	changed, err := maps.Update(ctx, made, meta.UpdateOptions{})
	tap.Must(err, "updates it")
	value, found := changed.Data["a"]
	tap.Check("to an empty text", found && value == "", changed)
	changed.ResourceVersion = made.ResourceVersion
	_, err = maps.Update(ctx, changed, meta.UpdateOptions{})
	tap.Check("from an old version it is a conflict", errors.IsConflict(err), err)
	list, err := maps.List(ctx, meta.ListOptions{LabelSelector: "by=wire"})
	tap.Check("lists it", err == nil && len(list.Items) == 1, err, list)
	uid := made.UID[:len(made.UID)-1] + "x"
	err = maps.Delete(ctx, "typed", meta.DeleteOptions{Preconditions: &meta.Preconditions{UID: &uid}})
	tap.Check("deletes not another one", errors.IsConflict(err), err)
	tap.Must(maps.Delete(ctx, "typed", meta.DeleteOptions{Preconditions: &meta.Preconditions{UID: &made.UID}}), "deletes it")
	_, err = maps.Create(ctx, &core.ConfigMap{}, meta.CreateOptions{})
	tap.Check("one without a name is refused", errors.IsInvalid(err), err)
}

func pods(c *kubernetes.Clientset) {
	made, err := c.CoreV1().Pods(ns).Create(ctx, pod(), meta.CreateOptions{})
	tap.Must(err, "creates a Pod")
	tap.Same("with its probe", "http", made.Spec.Containers[0].ReadinessProbe.HTTPGet.Port.StrVal)
	tap.Same("and its limit", "100m", made.Spec.Containers[0].Resources.Limits.Cpu().String())
	made.Status.Conditions = []core.PodCondition{{Type: "wire", Status: "True", LastTransitionTime: meta.Unix(1, 5)}}
	made, err = c.CoreV1().Pods(ns).UpdateStatus(ctx, made, meta.UpdateOptions{})
	tap.Must(err, "updates its status")
	tap.Same("in whole seconds", int64(1), made.Status.Conditions[0].LastTransitionTime.Unix())
	err = c.CoreV1().Pods(ns).Bind(ctx, &core.Binding{ObjectMeta: named, Target: core.ObjectReference{Kind: "Node", Name: "wire"}}, meta.CreateOptions{})
	tap.Must(err, "binds it")
	now := int64(0)
	tap.Must(c.CoreV1().Pods(ns).Delete(ctx, "typed", meta.DeleteOptions{GracePeriodSeconds: &now}), "and deletes it at once")
	_, err = c.CoreV1().Services(ns).Create(ctx, &core.Service{ObjectMeta: named, Spec: core.ServiceSpec{ClusterIP: "None", Ports: []core.ServicePort{{Port: 80}}}}, meta.CreateOptions{})
	tap.Must(err, "creates a Service, whose target port is 0 in Go")
	service, err := c.CoreV1().Services(ns).Get(ctx, "typed", meta.GetOptions{})
	tap.Must(err, "reads it")
	tap.Same("and gets the port", 80, service.Spec.Ports[0].TargetPort.IntValue())
	tap.Must(c.CoreV1().Services(ns).Delete(ctx, "typed", meta.DeleteOptions{}), "deletes it")
}

func others(c *kubernetes.Clientset) {
	now, holder := meta.NewMicroTime(time.Unix(1e9, 123456789)), "me"
	lease, err := c.CoordinationV1().Leases(ns).Create(ctx, &coordination.Lease{ObjectMeta: named, Spec: coordination.LeaseSpec{HolderIdentity: &holder, RenewTime: &now}}, meta.CreateOptions{})
	tap.Must(err, "creates a Lease")
	tap.Same("in microseconds", 123456000, lease.Spec.RenewTime.Nanosecond())
	tap.Must(c.CoordinationV1().Leases(ns).Delete(ctx, "typed", meta.DeleteOptions{}), "deletes it")
	_, err = c.RbacV1().Roles(ns).Create(ctx, &rbac.Role{ObjectMeta: named, Rules: []rbac.PolicyRule{{Verbs: []string{"get"}, APIGroups: []string{""}, Resources: []string{"pods"}}}}, meta.CreateOptions{})
	tap.Must(err, "creates a Role")
	tap.Must(c.RbacV1().Roles(ns).Delete(ctx, "typed", meta.DeleteOptions{}), "deletes it")
	_, err = c.CoreV1().Events(ns).Create(ctx, &core.Event{ObjectMeta: named, InvolvedObject: core.ObjectReference{Kind: "Pod", Namespace: ns, Name: "typed"}, LastTimestamp: meta.Now()}, meta.CreateOptions{})
	tap.Must(err, "creates an Event")
	told, err := c.EventsV1().Events(ns).Get(ctx, "typed", meta.GetOptions{})
	tap.Check("which is one of the other group as well", err == nil && told.Regarding.Name == "typed", err, told)
	seconds := int64(600)
	token, err := c.CoreV1().ServiceAccounts(ns).CreateToken(ctx, "default", &authentication.TokenRequest{Spec: authentication.TokenRequestSpec{ExpirationSeconds: &seconds}}, meta.CreateOptions{})
	tap.Must(err, "asks for a token")
	review, err := c.AuthenticationV1().TokenReviews().Create(ctx, &authentication.TokenReview{Spec: authentication.TokenReviewSpec{Token: token.Status.Token}}, meta.CreateOptions{})
	tap.Check("which a review knows", err == nil && review.Status.User.Username == "system:serviceaccount:default:default", err, review)
	access, err := c.AuthorizationV1().SelfSubjectAccessReviews().Create(ctx, &authorization.SelfSubjectAccessReview{Spec: authorization.SelfSubjectAccessReviewSpec{
		ResourceAttributes: &authorization.ResourceAttributes{Namespace: ns, Verb: "get", Resource: "pods"}}}, meta.CreateOptions{})
	tap.Check("and may", err == nil && access.Status.Allowed, err, access)
}

func typed(kubeconfig string) {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	tap.Must(err, "a kubeconfig")
	config.ContentType = runtime.ContentTypeProtobuf
	c, err := kubernetes.NewForConfig(config)
	tap.Must(err, "a client")
	objects(c)
	pods(c)
	others(c)
}
