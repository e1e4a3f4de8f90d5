/* What nodes may, asked without HTTP: rights over a registry in memory with its Nodes and Pods, and
 * what they may not write. Who is told what over HTTP is in tests/func/nodes.sh. */
#include "apiserver/http/node_access.h"

#include "apiserver/http/node_graph.h"
#include "openapi/kinds/builtin.h"
#include "tests/lib/world.h"

static struct world w;
static struct node_access *access_of_nodes;

static struct object *make(const struct kind *kind, const char *namespace_name, const char *members)
{
    return world_make(&w, kind, namespace_name, members, NULL);
}

static void make_node(const char *name, const char *user)
{
    SCOPED_FREE char *members =
        xasprintf("\"metadata\":{\"name\":\"%s\",\"annotations\":{\"sandbox-apiserver/node-user\":"
                  "\"%s\"}}",
                  name, user);
    object_unref(make(&kind_node, "", members));
}

static struct object *make_pod(const char *name, const char *node, const char *spec)
{
    SCOPED_FREE char *members = xasprintf(
        "\"metadata\":{\"name\":\"%s\"},\"spec\":{\"nodeName\":\"%s\",%s}", name, node, spec);
    return make(&kind_pod, "x", members);
}

#define CONTAINERS "\"containers\":[{\"name\":\"a\",\"image\":\"b\"}]"
#define SECRET(name)                                                                               \
    CONTAINERS ",\"volumes\":[{\"name\":\"v\",\"secret\":{\"secretName\":\"" name "\"}}]"

static void setup(void)
{
    kinds_served = kinds_standalone;
    world_start(&w, NULL);
    access_of_nodes = node_access_new(w.registry);
    make_node("n1", "system:node:n1");
    make_node("n2", "system:node:n2");
    make_node("mine", "");
    object_unref(make_pod("of-n1", "n1", SECRET("one") ",\"serviceAccountName\":\"robot\""));
    object_unref(make_pod("of-mine", "mine", SECRET("local")));
    object_unref(make_pod("of-absent", "absent", SECRET("ghost")));
}

static void teardown(void)
{
    node_access_free(access_of_nodes);
    world_stop(&w);
}

/* ---- rights ---- */

#define N1 "system:node:n1 system:nodes"
#define LOCAL "system:node:local system:nodes"
#define NO_RELATION "no relationship found between node 'n1' and this object"
#define NO_RELATION_LOCAL "no relationship found between node 'local' and this object"
#define READ_ONLY "can only read resources of this type"

static const struct right_row {
    const char *who;  /* user and group */
    const char *what; /* verb group/resource/subresource namespace/name */
    bool is_allowed;
    const char *why;
} right_rows[] = {
    {N1, "get /secrets/ x/one", true, NULL},
    {N1, "watch /secrets/ x/one", true, NULL},
    {N1, "list /secrets/ x/one", true, NULL},
    {N1, "list /secrets/ x/", false, "No Object name found"},
    {N1, "list /secrets/ /one", false, "can only read namespaced object of this type"},
    {N1, "get /secrets/ y/one", false, NO_RELATION},
    {N1, "get /secrets/ x/local", false, NO_RELATION},
    {N1, "get /secrets/ x/on", false, NO_RELATION},
    {N1, "get /configmaps/ x/one", false, NO_RELATION},
    {N1, "update /secrets/ x/one", false, READ_ONLY},
    {N1, "get, /secrets/ x/one", false, READ_ONLY},
    {N1, " /secrets/ x/one", false, READ_ONLY},
    {N1, "deletecollection /configmaps/ x/one", false, READ_ONLY},
    {N1, "get /secrets/status x/one", false, NULL},
    {N1, "get apps/secrets/ x/one", false, NULL},
    {N1, "list /persistentvolumeclaims/ x/one", false,
     "can only get individual resources of this type"},
    {N1, "get /serviceaccounts/ x/robot", true, NULL},
    {N1, "get /serviceaccounts/ x/default", false, NO_RELATION},
    {N1, "create /serviceaccounts/token x/robot", true, NULL},
    {N1, "create /serviceaccounts/token x/default", false, NO_RELATION},
    {N1, "get /serviceaccounts/token x/robot", false,
     "can only create tokens for individual service accounts"},
    {N1, "get /nodes/ /n1", true, NULL},
    {N1, "get /nodes/ /n2", false, "node 'n1' cannot read 'n2', only its own Node object"},
    {N1, "watch /nodes/ /", false, "node 'n1' cannot read all nodes, only its own Node object"},
    {N1, "delete /nodes/ /n1", false, NULL},
    {N1, "create /nodes/proxy /n1", false, NULL},
    {N1, "patch coordination.k8s.io/leases/ kube-node-lease/n1", true, NULL},
    {N1, "create coordination.k8s.io/leases/ kube-node-lease/", true, NULL},
    {N1, "patch coordination.k8s.io/leases/ kube-node-lease/n2", false,
     "can only access node lease with the same name as the requesting node"},
    {N1, "patch coordination.k8s.io/leases/ x/n1", false,
     "can only access leases in the \"kube-node-lease\" system namespace"},
    {N1, "list coordination.k8s.io/leases/ kube-node-lease/n1", false,
     "can only get, create, update, or patch a node lease"},
    {N1, "delete /pods/ x/of-n1", true, NULL},
    {N1, "deletecollection /pods/ x/", false, NULL},
    {N1, "create /pods/ x/", false, NULL},
    {N1, "create /pods/exec x/of-n1", false, NULL},
    {N1, "create /pods/binding x/of-n1", false, NULL},
    {LOCAL, "get /secrets/ x/local", true, NULL},
    {LOCAL, "get /secrets/ x/one", false, NO_RELATION_LOCAL},
    {LOCAL, "get /secrets/ x/ghost", false, NO_RELATION_LOCAL}, /* there is no such Node */
    {LOCAL, "get /nodes/ /mine", true, NULL},
    {LOCAL, "get /nodes/ /n1", false, "node 'local' cannot read 'n1', only its own Node object"},
    {LOCAL, "patch coordination.k8s.io/leases/ kube-node-lease/mine", true, NULL},
    {LOCAL, "patch coordination.k8s.io/leases/ kube-node-lease/n1", false,
     "can only access node lease with the same name as the requesting node"},
    {"system:node:mine system:nodes", "get /secrets/ x/local", true, NULL},
    {"system:node:absent system:nodes", "get /secrets/ x/ghost", true, NULL},
    {"system:node:n1 others", "get /secrets/ x/one", false, NULL},
    {"n1 system:nodes", "get /secrets/ x/one", false, NULL},
    {"system:node: system:nodes", "get /nodes/ /", false, NULL},
};

/* What is before the next of these letters; goes behind it. */
static char *word(const char **at, char end)
{
    const char *stop = strchrnul(*at, end);
    char *text = xstrndup(*at, (size_t)(stop - *at));
    *at = *stop ? stop + 1 : stop;
    return text;
}

static void set_word(cJSON *object, const char *name, const char **at, char end)
{
    SCOPED_FREE char *text = word(at, end);
    if (*text)
        json_set_str(object, name, text);
}

static cJSON *spec_of(const struct right_row *row)
{
    cJSON *spec = json_object(), *what = json_object(), *groups = json_array();
    const char *who = row->who, *at = row->what;
    set_word(spec, "user", &who, ' ');
    json_push(groups, json_string(who));
    json_set(spec, "groups", groups);
    set_word(what, "verb", &at, ' ');
    set_word(what, "group", &at, '/');
    set_word(what, "resource", &at, '/');
    set_word(what, "subresource", &at, ' ');
    set_word(what, "namespace", &at, '/');
    set_word(what, "name", &at, '\0');
    json_set(spec, "resourceAttributes", what);
    return spec;
}

START_TEST(test_right)
{
    const struct right_row *row = &right_rows[_i];
    SCOPED(json_free_p) cJSON *spec = spec_of(row);
    SCOPED_FREE char *why = NULL;
    bool is_allowed = node_access_allows(access_of_nodes, spec, &why);
    ck_assert_msg(is_allowed == row->is_allowed, "%s: %s: %d", row->who, row->what, is_allowed);
    ck_assert_msg(str_equal(why, row->why), "%s: %s: %s", row->who, row->what, why ? why : "-");
}
END_TEST

START_TEST(test_paths_are_for_roles)
{
    SCOPED(json_free_p)
    cJSON *spec = world_tree("{\"user\":\"system:node:n1\",\"groups\":[\"system:nodes\"],"
                             "\"nonResourceAttributes\":{\"path\":\"/metrics\",\"verb\":\"get\"}}");
    SCOPED_FREE char *why = NULL;
    ck_assert(!node_access_allows(access_of_nodes, spec, &why));
    ck_assert_ptr_null(why);
    ck_assert(node_access_is_node(spec));
}
END_TEST

/* ---- what Pods refer to ---- */

static const char everything[] =
    "\"imagePullSecrets\":[{\"name\":\"s1\"}],"
    "\"initContainers\":[{\"name\":\"i\",\"image\":\"b\",\"env\":[{\"name\":\"A\",\"valueFrom\":"
    "{\"secretKeyRef\":{\"name\":\"s2\",\"key\":\"k\"}}}],\"envFrom\":[{\"configMapRef\":{\"name\":"
    "\"c1\"}}]}],"
    "\"containers\":[{\"name\":\"a\",\"image\":\"b\",\"env\":[{\"name\":\"A\",\"value\":\"s9\"},"
    "{\"name\":\"B\",\"valueFrom\":{\"configMapKeyRef\":{\"name\":\"c2\",\"key\":\"k\"}}}],"
    "\"envFrom\":[{\"secretRef\":{\"name\":\"s3\"}}]}],"
    "\"volumes\":[{\"name\":\"v1\",\"secret\":{\"secretName\":\"s4\"}},"
    "{\"name\":\"v2\",\"configMap\":{\"name\":\"c3\"}},"
    "{\"name\":\"v3\",\"persistentVolumeClaim\":{\"claimName\":\"p1\"}},"
    "{\"name\":\"v4\",\"projected\":{\"sources\":[{\"secret\":{\"name\":\"s5\"}},"
    "{\"configMap\":{\"name\":\"c4\"}}]}}]";

static const struct {
    const char *resource, *name;
} referred[] = {
    {"secrets", "s1"},
    {"secrets", "s2"},
    {"secrets", "s3"},
    {"secrets", "s4"},
    {"secrets", "s5"},
    {"configmaps", "c1"},
    {"configmaps", "c2"},
    {"configmaps", "c3"},
    {"configmaps", "c4"},
    {"persistentvolumeclaims", "p1"},
    {"serviceaccounts", "default"},
};

static bool refers(struct node_graph *g, const char *resource, const char *name, const char *node)
{
    const struct reference to = {resource, "x", name};
    bool is = false;
    ck_assert_int_eq(node_graph_ask(g, &to, node, &is, NULL), 0);
    return is;
}

static void check_all(struct node_graph *g, bool expected)
{
    for (size_t i = 0; i < ARRAY_LEN(referred); i++)
        ck_assert_msg(refers(g, referred[i].resource, referred[i].name, "n2") == expected, "%s %s",
                      referred[i].resource, referred[i].name);
}

static void drop_pod(const char *name)
{
    SCOPED(object_unref_p) struct object *o = NULL;
    struct delete_options opts = {
        .orphan_dependents = -1, .has_grace = true, .deadline_ms = world_deadline()};
    bool is_gone;
    ck_assert_int_eq(registry_delete(w.registry, &kind_pod, "x", name, &opts, &o, &is_gone, NULL),
                     0);
    ck_assert(is_gone);
}

START_TEST(test_references)
{
    struct node_graph *g = node_graph_new(w.registry);
    check_all(g, false);
    object_unref(make_pod("a", "n2", everything));
    check_all(g, true);
    object_unref(make_pod("b", "n2", everything));
    drop_pod("a");
    check_all(g, true); /* the other one */
    ck_assert(!refers(g, "secrets", "s9", "n2"));
    ck_assert(!refers(g, "secrets", "s1", "n"));
    ck_assert(!refers(g, "secrets", "s1", "n1"));
    drop_pod("b");
    check_all(g, false);
    node_graph_free(g);
}
END_TEST

static int give_node(void *ctx, const cJSON *old, cJSON **ret, struct err *err)
{
    (void)ctx, (void)err;
    *ret = json_copy(old);
    json_set_at(*ret, "spec.nodeName", json_string("n2"));
    return 0;
}

/* One without a node is nobody's, until it has one. */
START_TEST(test_reference_of_unbound)
{
    struct node_graph *g = node_graph_new(w.registry);
    struct write_options opts = world_opts();
    SCOPED(object_unref_p) struct object *o = NULL;
    SCOPED(err_fini) struct err err = {0};
    char **nodes = NULL;
    const struct reference to = {"secrets", "x", "s1"};
    opts.is_system = true;
    object_unref(make(&kind_pod, "x",
                      "\"metadata\":{\"name\":\"p\"},\"spec\":{\"imagePullSecrets\":[{\"name\":"
                      "\"s1\"}]," CONTAINERS "}"));
    ck_assert_int_eq(node_graph_nodes(g, &to, &nodes, NULL), 0);
    ck_assert_ptr_null(nodes);
    const struct update_request update = {
        .kind = &kind_pod, .namespace_name = "x", .name = "p", .change = give_node};
    ck_assert_msg(registry_update(w.registry, &update, &opts, &o, &err) == 0, "%s", err_text(&err));
    ck_assert_int_eq(node_graph_nodes(g, &to, &nodes, NULL), 0);
    ck_assert_str_eq(nodes[0], "n2");
    ck_assert_ptr_null(nodes[1]);
    strv_free(nodes);
    node_graph_free(g);
}
END_TEST

/* More changed than the history keeps, between two questions. */
START_TEST(test_references_after_a_gap)
{
    struct world own;
    world_start(&own, &(struct registry_config){.history_events = 2});
    struct world before = w;
    w = own;
    struct node_graph *g = node_graph_new(w.registry);
    object_unref(make_pod("a", "n2", everything));
    check_all(g, true);
    drop_pod("a");
    for (int i = 0; i < 5; i++) {
        SCOPED_FREE char *name = xasprintf("p%d", i);
        object_unref(make_pod(name, "n3", SECRET("new")));
    }
    check_all(g, false);
    ck_assert(refers(g, "secrets", "new", "n3"));
    node_graph_free(g);
    world_stop(&w);
    w = before;
}
END_TEST

/* ---- what is written ---- */

static const struct write_guard *guard_of(const char *name, struct arena *arena)
{
    char group[] = "system:nodes", *groups[] = {group, NULL};
    const struct user u = {.name = arena_printf(arena, "system:node:%s", name), .groups = groups};
    const struct write_guard *g = node_access_guard(access_of_nodes, &u, arena);
    ck_assert_ptr_nonnull(g);
    return g;
}

#define NODE(name, rest) "{\"metadata\":{\"name\":\"" name "\"" rest "}}"
#define MARKED(name) ",\"annotations\":{\"sandbox-apiserver/node-user\":\"system:node:" name "\"}"
#define LABELS(text) ",\"labels\":{" text "}"
#define TAINTED "{\"metadata\":{\"name\":\"n1\"},\"spec\":{\"taints\":[{\"key\":\"a\"}]}}"
#define LEASE(name, ns) "{\"metadata\":{\"name\":\"" name "\",\"namespace\":\"" ns "\"}}"
#define POD(node) "{\"metadata\":{\"name\":\"p\"},\"spec\":{\"nodeName\":\"" node "\"}}"

static const struct write_row {
    const char *who;
    const struct kind *kind;
    const char *old, *object; /* NULL = none */
    const char *error;        /* behind "is forbidden: "; NULL = allowed */
} write_rows[] = {
    {"n1", &kind_node, NULL, NODE("n1", ""), NULL},
    {"n1", &kind_node, NODE("n1", ""), NODE("n1", ""), NULL},
    {"n1", &kind_node, NULL, NODE("n2", ""), "node \"n1\" is not allowed to modify node \"n2\""},
    {"n1", &kind_node, NODE("mine", ""), NODE("mine", ""),
     "node \"n1\" is not allowed to modify node \"mine\""},
    {"n1", &kind_node, NODE("n2", ""), NULL, "node \"n1\" is not allowed to modify node \"n2\""},
    {"local", &kind_node, NULL, NODE("any", ""), NULL},
    {"local", &kind_node, NODE("mine", ""), NODE("mine", ""), NULL},
    {"local", &kind_node, NODE("n1", MARKED("n1")), NODE("n1", ""),
     "node \"local\" is not allowed to modify node \"n1\""},
    {"n1", &kind_node, NODE("n1", ""), TAINTED, "node \"n1\" is not allowed to modify taints"},
    {"n1", &kind_node, TAINTED, NODE("n1", ""), "node \"n1\" is not allowed to modify taints"},
    {"n1", &kind_node, NULL, TAINTED, NULL},
    {"n1", &kind_node, NULL,
     NODE("n1", LABELS("\"kubernetes.io/hostname\":\"n1\",\"a\":\"b\",\"x.example/y\":\"\","
                       "\"node.kubernetes.io/any\":\"\",\"a.kubelet.kubernetes.io/any\":\"\"")),
     NULL},
    {"n1", &kind_node, NULL,
     NODE("n1", LABELS("\"x.k8s.io/b\":\"\",\"kubernetes.io/a\":\"\",\"node-restriction.kubernetes."
                       "io/x\":\"\",\"notkubernetes.io/x\":\"\"")),
     "node \"n1\" is not allowed to set the following labels: kubernetes.io/a, "
     "node-restriction.kubernetes.io/x, x.k8s.io/b"},
    {"n1", &kind_node, NODE("n1", LABELS("\"k8s.io/b\":\"1\"")),
     NODE("n1", LABELS("\"k8s.io/b\":\"2\"")), "is not allowed to modify labels: k8s.io/b"},
    {"n1", &kind_node, NODE("n1", LABELS("\"k8s.io/b\":\"1\"")), NODE("n1", ""),
     "is not allowed to modify labels: k8s.io/b"},
    {"n1", &kind_node, NODE("n1", LABELS("\"k8s.io/b\":\"1\"")),
     NODE("n1", LABELS("\"k8s.io/b\":\"1\"")), NULL},
    {"n1", &kind_lease, NULL, LEASE("n1", "kube-node-lease"), NULL},
    {"n1", &kind_lease, NULL, LEASE("n2", "kube-node-lease"),
     "can only access node lease with the same name as the requesting node"},
    {"n1", &kind_lease, LEASE("n1", "x"), LEASE("n1", "x"),
     "can only access leases in the \"kube-node-lease\" system namespace"},
    {"local", &kind_lease, NULL, LEASE("mine", "kube-node-lease"), NULL},
    {"local", &kind_lease, NULL, LEASE("n1", "kube-node-lease"),
     "can only access node lease with the same name as the requesting node"},
    {"n1", &kind_pod, POD("n1"), POD("n1"), NULL},
    {"n1", &kind_pod, POD("n1"), NULL, NULL},
    {"n1", &kind_pod, POD("n2"), POD("n1"),
     "node \"n1\" can only update pod status for pods with spec.nodeName set to itself"},
    {"n1", &kind_pod, POD("n2"), NULL,
     "node \"n1\" can only delete pods with spec.nodeName set to itself"},
    {"n1", &kind_pod, POD(""), NULL,
     "node \"n1\" can only delete pods with spec.nodeName set to itself"},
    {"n1", &kind_pod, NULL, POD("n1"), "node \"n1\" cannot create pods"},
    {"local", &kind_pod, POD("mine"), POD("mine"), NULL},
    {"local", &kind_pod, POD(""), NULL,
     "node \"local\" can only delete pods with spec.nodeName set to itself"},
    {"local", &kind_pod, POD("absent"), NULL,
     "node \"local\" can only delete pods with spec.nodeName set to itself"},
    {"local", &kind_pod, POD("n1"), POD("n1"),
     "node \"local\" can only update pod status for pods with spec.nodeName set to itself"},
    {"n1", &kind_core_event, NULL, "{\"metadata\":{\"name\":\"e\"}}", NULL},
};

START_TEST(test_write)
{
    const struct write_row *row = &write_rows[_i];
    SCOPED(arena_fini) struct arena arena = {0};
    SCOPED(err_fini) struct err err = {0};
    SCOPED(json_free_p)
    cJSON *old = row->old ? world_tree(row->old) : NULL,
          *object = row->object ? world_tree(row->object) : NULL;
    const struct write_guard *g = guard_of(row->who, &arena);
    int rc = g->check(g->ctx, row->kind, old, object, &err);
    ck_assert_msg(rc == (row->error ? -ERR_FORBIDDEN : 0), "%d: %s", _i, err_text(&err));
    const char *why = strstr(err_text(&err), "is forbidden: ");
    if (row->error)
        ck_assert_str_eq(why + strlen("is forbidden: "), row->error);
}
END_TEST

/* Whoever has a certificate of the Node's name has the Node alone, once he wrote it. */
START_TEST(test_node_gets_its_user)
{
    SCOPED(arena_fini) struct arena arena = {0};
    SCOPED(json_free_p)
    cJSON *old = world_tree(NODE("n1", "")), *of_local = world_tree(NODE("n1", "")),
          *of_n1 = world_tree(NODE("n1", ""));
    const struct write_guard *local = guard_of("local", &arena), *n1 = guard_of("n1", &arena);
    ck_assert_int_eq(local->check(local->ctx, &kind_node, old, of_local, NULL), 0);
    ck_assert(!node_access_has_user(of_local));
    ck_assert_int_eq(n1->check(n1->ctx, &kind_node, old, of_n1, NULL), 0);
    ck_assert(node_access_has_user(of_n1));
    ck_assert_int_eq(local->check(local->ctx, &kind_node, of_n1, of_local, NULL), -ERR_FORBIDDEN);
}
END_TEST

START_TEST(test_who_is_no_node)
{
    SCOPED(arena_fini) struct arena arena = {0};
    char name[] = "system:node:n1", other[] = "n1", group[] = "system:nodes", *none[] = {NULL},
         *groups[] = {group, NULL};
    const struct user outside = {.name = name, .groups = none},
                      nameless = {.name = other, .groups = groups},
                      node = {.name = name, .groups = groups};
    ck_assert_ptr_null(node_access_guard(access_of_nodes, &outside, &arena));
    ck_assert_ptr_null(node_access_guard(access_of_nodes, &nameless, &arena));
    ck_assert_ptr_null(node_access_guard(NULL, &node, &arena));
}
END_TEST

/* ---- tokens ---- */

#define BOUND(more) "{\"boundObjectRef\":{\"uid\":\"u\"}" more "}"

static const struct token_row {
    const char *who, *node, *spec, *error;
} token_rows[] = {
    {"n1", "n1", BOUND(""), NULL},
    {"n1", "n1", BOUND(",\"audiences\":[]"), NULL},
    {"n1", "n1", BOUND(",\"audiences\":[\"vault\"]"), NULL},
    {"n1", NULL, BOUND(""), "node requested token not bound to a pod"},
    {"n1", "n1", "{}", "node requested token with a pod binding without a uid"},
    {"n1", "n2", BOUND(""), "node requested token bound to a pod scheduled on a different node"},
    {"local", "n1", BOUND(""), "node requested token bound to a pod scheduled on a different node"},
    {"local", "mine", BOUND(""), NULL},
    {"n1", "n1", BOUND(",\"audiences\":[\"vault\",\"vault\"]"),
     "node may only request 0 or 1 audiences"},
    {"n1", "n1", BOUND(",\"audiences\":[\"bank\"]"),
     "audience \"bank\" not found in pod spec volume, system:node:n1 is not authorized to request "
     "tokens for this audience"},
};

START_TEST(test_token)
{
    const struct token_row *row = &token_rows[_i];
    SCOPED(arena_fini) struct arena arena = {0};
    SCOPED(err_fini) struct err err = {0};
    SCOPED(json_free_p) cJSON *spec = world_tree(row->spec);
    SCOPED(object_unref_p)
    struct object *account = make(&kind_service_account, "x", "\"metadata\":{\"name\":\"robot\"}"),
                  *pod = NULL;
    if (row->node)
        pod =
            make_pod("p", row->node,
                     CONTAINERS ",\"volumes\":[{\"name\":\"t\",\"projected\":{\"sources\":["
                                "{\"serviceAccountToken\":{\"path\":\"a\"}},"
                                "{\"serviceAccountToken\":{\"path\":\"b\",\"audience\":\"vault\"}}"
                                "]}}]");
    int rc = node_access_token(guard_of(row->who, &arena), account, pod, spec, &err);
    ck_assert_msg(rc == (row->error ? -ERR_FORBIDDEN : 0), "%d: %s", _i, err_text(&err));
    SCOPED_FREE char *text =
        xasprintf("serviceaccounts \"robot\" is forbidden: %s", row->error ? row->error : "");
    if (row->error)
        ck_assert_str_eq(err_text(&err), text);
}
END_TEST

/* Of a Pod that asks for none there is none, not even for the server. */
START_TEST(test_no_token)
{
    SCOPED(arena_fini) struct arena arena = {0};
    SCOPED(json_free_p) cJSON *spec = world_tree(BOUND(""));
    SCOPED(object_unref_p)
    struct object *account = make(&kind_service_account, "x", "\"metadata\":{\"name\":\"robot\"}"),
                  *pod = make_pod("p", "n1", CONTAINERS);
    ck_assert_int_eq(node_access_token(guard_of("n1", &arena), account, pod, spec, NULL),
                     -ERR_FORBIDDEN);
}
END_TEST

SUITE(node_access)
{
    TCase *t = tcase_create("rights");
    tcase_add_checked_fixture(t, setup, teardown);
    tcase_add_loop_test(t, test_right, 0, (int)ARRAY_LEN(right_rows));
    tcase_add_test(t, test_paths_are_for_roles);
    suite_add_tcase(s, t);
    t = tcase_create("references");
    tcase_add_checked_fixture(t, setup, teardown);
    tcase_add_test(t, test_references);
    tcase_add_test(t, test_reference_of_unbound);
    tcase_add_test(t, test_references_after_a_gap);
    suite_add_tcase(s, t);
    t = tcase_create("writes");
    tcase_add_checked_fixture(t, setup, teardown);
    tcase_add_loop_test(t, test_write, 0, (int)ARRAY_LEN(write_rows));
    tcase_add_test(t, test_node_gets_its_user);
    tcase_add_test(t, test_who_is_no_node);
    suite_add_tcase(s, t);
    t = tcase_create("tokens");
    tcase_add_checked_fixture(t, setup, teardown);
    tcase_add_loop_test(t, test_token, 0, (int)ARRAY_LEN(token_rows));
    tcase_add_test(t, test_no_token);
    suite_add_tcase(s, t);
}
