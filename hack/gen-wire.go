// gen-wire: prints openapi/wire.gen.c, how Kubernetes' own kinds look as protocol buffers. Read, by reflection, from the Go
// types of the k8s.io/api that tests/compat/go.mod pins: numbers of fields, names in JSON, and what Go's JSON leaves out.
// Run by hack/update-shapes; alone: cd tests/compat && go run ../../hack/gen-wire.go
package main

import (
	"fmt"
	"log"
	"reflect"
	"strconv"
	"strings"

	authentication "k8s.io/api/authentication/v1"
	authorization "k8s.io/api/authorization/v1"
	autoscaling "k8s.io/api/autoscaling/v1"
	coordination "k8s.io/api/coordination/v1"
	core "k8s.io/api/core/v1"
	discovery "k8s.io/api/discovery/v1"
	events "k8s.io/api/events/v1"
	networking "k8s.io/api/networking/v1"
	rbac "k8s.io/api/rbac/v1"
	storage "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// What a server without a cluster takes and answers, by apiVersion.
var roots = []struct {
	version string
	objects []any
}{
	{"v1", []any{core.Binding{}, core.ConfigMap{}, core.Event{}, core.Namespace{}, core.Node{}, core.PersistentVolume{},
		core.PersistentVolumeClaim{}, core.Pod{}, core.Secret{}, core.Service{}, core.ServiceAccount{}}},
	{"authentication.k8s.io/v1", []any{authentication.SelfSubjectReview{}, authentication.TokenRequest{}, authentication.TokenReview{}}},
	{"authorization.k8s.io/v1", []any{authorization.LocalSubjectAccessReview{}, authorization.SelfSubjectAccessReview{},
		authorization.SelfSubjectRulesReview{}, authorization.SubjectAccessReview{}}},
	{"autoscaling/v1", []any{autoscaling.Scale{}}},
	{"coordination.k8s.io/v1", []any{coordination.Lease{}}},
	{"discovery.k8s.io/v1", []any{discovery.EndpointSlice{}}},
	{"events.k8s.io/v1", []any{events.Event{}}},
	{"networking.k8s.io/v1", []any{networking.NetworkPolicy{}}},
	{"rbac.authorization.k8s.io/v1", []any{rbac.ClusterRole{}, rbac.ClusterRoleBinding{}, rbac.Role{}, rbac.RoleBinding{}}},
	{"storage.k8s.io/v1", []any{storage.StorageClass{}}},
	{"v1", []any{meta.DeleteOptions{}, meta.Status{}}},
}

// Types whose form in JSON is not that of their fields.
var special = map[reflect.Type]string{
	reflect.TypeFor[meta.Time]():            "TIME",
	reflect.TypeFor[meta.MicroTime]():       "MICRO_TIME",
	reflect.TypeFor[resource.Quantity]():    "QUANTITY",
	reflect.TypeFor[intstr.IntOrString]():   "INT_OR_STRING",
	reflect.TypeFor[runtime.RawExtension](): "RAW",
	reflect.TypeFor[meta.FieldsV1]():        "RAW",
}

var (
	scalars = map[reflect.Kind]string{reflect.String: "STRING", reflect.Bool: "BOOL", reflect.Int32: "INT32", reflect.Int64: "INT64"}
	state   = map[reflect.Type]int{} // 1 = being printed, 2 = printed
)

// symbol: core_pod_spec for k8s.io/api/core/v1.PodSpec.
func symbol(t reflect.Type) string {
	folders := strings.Split(t.PkgPath(), "/")
	name, previous := folders[len(folders)-2]+"_", 'A'
	for i, c := range t.Name() {
		next := 'A'
		if i+1 < len(t.Name()) {
			next = rune(t.Name()[i+1])
		}
		if c < 'a' && (previous >= 'a' || (i > 0 && next >= 'a')) {
			name += "_"
		}
		name += strings.ToLower(string(c))
		previous = c
	}
	return name
}

// wireType: the C type of values, and the message they are, if any.
func wireType(t reflect.Type, where string) (string, reflect.Type) {
	if name, ok := special[t]; ok {
		return name, nil
	}
	if name, ok := scalars[t.Kind()]; ok {
		return name, nil
	}
	if t.Name() != "" && t.Kind() == reflect.Slice && t.Elem().Kind() == reflect.String {
		return "STRINGS", nil // a message with a list in it, for maps have no lists
	}
	if t.Kind() == reflect.Slice && t.Elem().Kind() == reflect.Uint8 {
		return "BYTES", nil
	}
	if t.Kind() != reflect.Struct {
		log.Fatalf("%s: cannot express %s", where, t)
	}
	return "MESSAGE", t
}

// row of a field; "" for one that is not in protocol buffers.
func row(f reflect.StructField, where string) string {
	tag := strings.Split(f.Tag.Get("protobuf"), ",")
	if len(tag) < 2 {
		if f.Type != reflect.TypeFor[meta.TypeMeta]() {
			log.Fatalf("%s: no number", where)
		}
		return ""
	}
	number, err := strconv.Atoi(tag[1])
	if err != nil {
		log.Fatal(where, err)
	}
	name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
	t, flags := f.Type, []string{}
	if _, ok := special[t]; ok {
	} else if t.Kind() == reflect.Pointer {
		t, flags = t.Elem(), append(flags, "WIRE_POINTER")
	} else if t.Kind() == reflect.Map {
		t, flags = t.Elem(), append(flags, "WIRE_MAP")
	} else if t.Kind() == reflect.Slice && t.Elem().Kind() != reflect.Uint8 {
		t, flags = t.Elem(), append(flags, "WIRE_REPEATED")
	}
	kind, message := wireType(t, where)
	isStruct := t.Kind() == reflect.Struct
	if f.Anonymous && name == "" {
		flags = append(flags, "WIRE_INLINE")
	} else if name == "" || name == "-" {
		log.Fatalf("%s: no name in JSON", where)
	} else if len(flags) == 0 && kind != "BYTES" && (isStruct || !strings.Contains(options, "omit")) && !strings.HasSuffix(kind, "TIME") {
		flags = append(flags, "WIRE_ALWAYS")
	}
	of := "NULL"
	if message != nil {
		print(message)
		of = "&message_" + symbol(message)
	}
	if len(flags) == 0 {
		flags = []string{"0"}
	}
	return fmt.Sprintf("    {%d, %q, WIRE_%s, %s, %s},\n", number, name, kind, strings.Join(flags, " | "), of)
}

// print a message, after those that it is made of.
func print(t reflect.Type) {
	if state[t] == 1 {
		log.Fatalf("%s is part of itself", t)
	}
	if state[t] == 2 {
		return
	}
	state[t] = 1
	rows := ""
	for i := range t.NumField() {
		rows += row(t.Field(i), t.String()+"."+t.Field(i).Name)
	}
	state[t] = 2
	fmt.Printf("\nstatic const struct wire_field fields_%s[] = {\n%s    {0},\n};\n", symbol(t), rows)
	fmt.Printf("static const struct wire_message message_%s = {%q, fields_%s};\n", symbol(t), t.Name(), symbol(t))
}

func main() {
	fmt.Print("/* Generated by hack/gen-wire.go from the Go types of Kubernetes' API; do not edit. */\n#include \"openapi/wire.h\"\n")
	list := ""
	for _, r := range roots {
		for _, o := range r.objects {
			t := reflect.TypeOf(o)
			print(t)
			list += fmt.Sprintf("    {%q, %q, &message_%s},\n", r.version, t.Name(), symbol(t))
		}
	}
	fmt.Printf("\nconst struct wire_root wire_roots[] = {\n%s    {0},\n};\n", list)
}
