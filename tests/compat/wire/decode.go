package main

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"math/rand"
	"os"
	"os/exec"
	"reflect"
	"strconv"
	"strings"
	"time"

	authentication "k8s.io/api/authentication/v1"
	authorization "k8s.io/api/authorization/v1"
	autoscaling "k8s.io/api/autoscaling/v1"
	coordination "k8s.io/api/coordination/v1"
	core "k8s.io/api/core/v1"
	discovery "k8s.io/api/discovery/v1"
	events "k8s.io/api/events/v1"
	networking "k8s.io/api/networking/v1"
	rbac "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/randfill"

	"agent-sandbox.dev/compat/tap"
)

type message interface {
	Marshal() ([]byte, error)
	Unmarshal([]byte) error
	Reset()
}

var kinds = []struct {
	version string
	object  message
}{
	{"v1", &core.Binding{}}, {"v1", &core.ConfigMap{}}, {"v1", &core.Event{}}, {"v1", &core.Namespace{}}, {"v1", &core.Node{}},
	{"v1", &core.PersistentVolume{}}, {"v1", &core.PersistentVolumeClaim{}}, {"v1", &core.Pod{}}, {"v1", &core.Secret{}},
	{"v1", &core.Service{}}, {"v1", &core.ServiceAccount{}}, {"v1", &meta.DeleteOptions{}}, {"v1", &meta.Status{}},
	{"authentication.k8s.io/v1", &authentication.SelfSubjectReview{}}, {"authentication.k8s.io/v1", &authentication.TokenRequest{}},
	{"authentication.k8s.io/v1", &authentication.TokenReview{}},
	{"authorization.k8s.io/v1", &authorization.LocalSubjectAccessReview{}}, {"authorization.k8s.io/v1", &authorization.SelfSubjectAccessReview{}},
	{"authorization.k8s.io/v1", &authorization.SelfSubjectRulesReview{}}, {"authorization.k8s.io/v1", &authorization.SubjectAccessReview{}},
	{"autoscaling/v1", &autoscaling.Scale{}}, {"coordination.k8s.io/v1", &coordination.Lease{}},
	{"discovery.k8s.io/v1", &discovery.EndpointSlice{}}, {"events.k8s.io/v1", &events.Event{}},
	{"networking.k8s.io/v1", &networking.NetworkPolicy{}}, {"rbac.authorization.k8s.io/v1", &rbac.ClusterRole{}},
	{"rbac.authorization.k8s.io/v1", &rbac.ClusterRoleBinding{}}, {"rbac.authorization.k8s.io/v1", &rbac.Role{}},
	{"rbac.authorization.k8s.io/v1", &rbac.RoleBinding{}},
}

const (
	filled  = 150 // objects a kind
	damaged = 20  // variants of the bytes of each
)

// seconds from the year 1 to 9999.
func seconds(c randfill.Continue) int64 { return c.Int63n(315537897599) - 62135596800 }

// How what is not filled field by field is filled; texts have NUL, broken UTF-8 and what JSON escapes.
var fills = []any{
	func(t *meta.Time, c randfill.Continue) {
		if c.Intn(4) > 0 {
			t.Time = time.Unix(seconds(c), c.Int63n(1e9))
		}
	},
	func(t *meta.MicroTime, c randfill.Continue) {
		if c.Intn(4) > 0 {
			t.Time = time.Unix(seconds(c), c.Int63n(1e9))
		}
	},
	func(q *resource.Quantity, c randfill.Continue) {
		*q = *resource.NewMilliQuantity(c.Int63n(1e6)*[]int64{0, 1, 1000, 1024000}[c.Intn(4)], []resource.Format{resource.DecimalSI, resource.BinarySI, resource.DecimalExponent}[c.Intn(3)])
	},
	func(v *intstr.IntOrString, c randfill.Continue) {
		if *v = intstr.FromInt32(int32(c.Uint32())); c.Bool() {
			*v = intstr.FromString(c.String(4))
		}
	},
	func(f *meta.FieldsV1, c randfill.Continue) {
		f.Raw = []byte([]string{`{}`, `{"f:a":{".":{},"k:{\"a\":1}":{}}}`}[c.Intn(2)])
	},
	func(t *meta.TypeMeta, c randfill.Continue) {},
	func(s *string, c randfill.Continue) {
		*s = strings.Repeat([]string{"", "a", "-", "\x00", "\xff", "é", "\U0001f600", "<\"\\\n"}[c.Intn(8)], c.Intn(4))
	},
	func(n *int64, c randfill.Continue) { *n = []int64{0, 1, -1, 1 << 53, c.Int63()}[c.Intn(5)] },
	func(n *int32, c randfill.Continue) { *n = []int32{0, 1, -1, int32(c.Uint32())}[c.Intn(4)] },
}

// damage changes, drops, repeats or cuts off some bytes.
func damage(b []byte, r *rand.Rand) []byte {
	b = bytes.Clone(b)
	for n := 1 + r.Intn(3); n > 0 && len(b) > 0; n-- {
		at := r.Intn(len(b))
		to := at + r.Intn(min(len(b)-at, 16)+1)
		switch r.Intn(5) {
		case 0:
			b[at] = byte(r.Intn(256))
		case 1:
			b[at] ^= 1 << r.Intn(8)
		case 2:
			b = append(b[:at:at], b[to:]...)
		case 3:
			b = append(b[:to:to], b[at:]...)
		case 4:
			b = b[:at]
		}
	}
	return b
}

// plain drops what is null, which is the same as absent for who decodes it.
func plain(node any) any {
	switch v := node.(type) {
	case map[string]any:
		for key, member := range v {
			if v[key] = plain(member); v[key] == nil {
				delete(v, key)
			}
		}
	case []any:
		for i := range v {
			v[i] = plain(v[i])
		}
	}
	return node
}

func parse(text []byte) (any, error) {
	var tree any
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	err := d.Decode(&tree)
	return plain(tree), err
}

// same, but for quantities, which Go writes anew.
func same(a, b any) bool {
	switch x := a.(type) {
	case map[string]any:
		y, ok := b.(map[string]any)
		for key := range x {
			ok = ok && same(x[key], y[key])
		}
		return ok && len(x) == len(y)
	case []any:
		y, ok := b.([]any)
		ok = ok && len(x) == len(y)
		for i := 0; ok && i < len(x); i++ {
			ok = same(x[i], y[i])
		}
		return ok
	case string:
		y, ok := b.(string)
		if p, err := resource.ParseQuantity(x); err == nil && ok && x != y {
			q, err := resource.ParseQuantity(y)
			return err == nil && p.Cmp(q) == 0
		}
	}
	return reflect.DeepEqual(a, b)
}

// expected: the JSON of what Go decodes, or why it does not.
func expected(object message, raw []byte) (tree any, problem string) {
	object.Reset()
	err := object.Unmarshal(raw)
	if err == nil {
		var text []byte
		if text, err = json.Marshal(object); err == nil {
			tree, err = parse(text)
		}
	}
	if err != nil {
		return nil, err.Error()
	}
	return tree, ""
}

type decoder struct {
	in  io.Writer
	out *bufio.Reader
}

func (d *decoder) ask(version, kind string, raw []byte) (tree any, problem string) {
	fmt.Fprintf(d.in, "%s %s %s\n", version, kind, base64.StdEncoding.EncodeToString(raw))
	line, err := d.out.ReadString('\n')
	tap.Must(err, "the program answers")
	if strings.HasPrefix(line, "!") {
		return nil, strings.TrimSpace(line[1:])
	}
	tree, err = parse([]byte(line))
	tap.Must(err, "with JSON")
	return tree, ""
}

func decode(program string) {
	cmd := exec.Command(program)
	in, err := cmd.StdinPipe()
	tap.Must(err, "a pipe")
	out, err := cmd.StdoutPipe()
	tap.Must(err, "a pipe")
	tap.Must(cmd.Start(), "the program starts")
	d := &decoder{in, bufio.NewReaderSize(out, 1<<20)}
	seed, err := strconv.ParseInt(cmp.Or(os.Getenv("WIRE_SEED"), "1"), 10, 64) // the same each time, unless one looks for more
	tap.Must(err, "WIRE_SEED is a number")
	r := rand.New(rand.NewSource(seed))
	f := randfill.New().RandSource(rand.NewSource(seed)).NilChance(.4).NumElements(0, 3).MaxDepth(30).Funcs(fills...)
	for _, k := range kinds {
		compareKind(d, f, r, k.version, k.object)
	}
	in.Close()
	tap.Check("the program ends well", cmd.Wait() == nil)
}

func compareKind(d *decoder, f *randfill.Filler, r *rand.Rand, version string, object message) {
	kind := reflect.TypeOf(object).Elem().Name()
	var wrong []any
	refused, compared := 0, 0
	// Entries of maps are read by Go without a look at types and bounds, and it prints years that RFC 3339 has not: there we refuse more.
	compare := func(raw []byte, mayRefuse bool) {
		wantTree, want := expected(object, raw)
		gotTree, got := d.ask(version, kind, raw)
		compared++
		if want != "" {
			refused++
		}
		if got != "" && mayRefuse {
			return
		}
		if (want == "") != (got == "") || !same(wantTree, gotTree) {
			a, _ := json.Marshal(wantTree)
			b, _ := json.Marshal(gotTree)
			wrong = append(wrong, fmt.Sprintf("%x", raw), "Go:   "+want+string(a), "here: "+got+string(b))
		}
	}
	for range filled {
		object.Reset()
		f.Fill(object)
		raw, err := object.Marshal()
		tap.Must(err, "Go encodes")
		compare(raw, false)
		for range damaged {
			compare(damage(raw, r), true)
		}
	}
	if len(wrong) > 9 {
		wrong = wrong[:9]
	}
	tap.Check(fmt.Sprintf("%s %s: the same tree", version, kind), len(wrong) == 0, wrong...)
	tap.Check(fmt.Sprintf("%s %s: whole and broken ones were compared", version, kind), refused > 0 && refused < compared, refused, compared)
}
