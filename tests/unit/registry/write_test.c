/* Create, update and delete: the rules of docs/kubernetes-api.md 15, 17 to 19, 21. */
#include "openapi/kinds/builtin.h"
#include "tests/lib/world.h"

static struct world w;

static void start(void)
{
    world_start(&w, NULL);
}

static void start_with_pods(void)
{
    kinds_served = kinds_standalone;
    world_start(&w, NULL);
}

static void stop(void)
{
    world_stop(&w);
}

#define STALE                                                                                      \
    "the object has been modified; please apply your changes to the latest version and try again"

/* ---- helpers ---- */

static const char *at(const struct object *o, const char *path) /* valid until the next call */
{
    static char text[400];
    SCOPED(json_free_p) cJSON *tree = object_tree(o);
    const cJSON *node = json_at(tree, path);
    if (!node)
        return "-";
    SCOPED_FREE char *json = json_to_str(node);
    ck_assert_uint_lt(strlen(json), sizeof text);
    memcpy(text, json, strlen(json) + 1);
    return text;
}

static void refuse_create(cJSON *tree, enum err_code code, const char *text)
{
    struct write_options opts = world_opts();
    struct object *o = NULL;
    SCOPED(err_fini) struct err err = {0};
    int rc = registry_create(w.registry, &kind_sandbox, "ns", tree, &opts, &o, &err);
    ck_assert_int_eq(rc, -(int)code);
    ck_assert_str_eq(err_text(&err), text);
}

static void refuse_set(const char *name, const char *path, const char *json, enum err_code code,
                       const char *text)
{
    struct write_options opts = world_opts();
    struct object *o = NULL;
    SCOPED(err_fini) struct err err = {0};
    int rc = world_try_set(&w, "ns", name, path, json, &opts, false, &o, &err);
    ck_assert_msg(rc == -(int)code, "%d %s", rc, err_text(&err));
    ck_assert_str_eq(err_text(&err), text);
}

static struct object *delete_with(const char *name, const char *policy, int orphan, bool is_dry,
                                  bool *ret_gone)
{
    struct delete_options opts = {.propagation = policy,
                                  .orphan_dependents = orphan,
                                  .dry_run = is_dry,
                                  .deadline_ms = world_deadline()};
    struct object *o = NULL;
    SCOPED(err_fini) struct err err = {0};
    int rc = registry_delete(w.registry, &kind_sandbox, "ns", name, &opts, &o, ret_gone, &err);
    ck_assert_msg(rc == 0, "%s", err_text(&err));
    return o;
}

/* ---- create ---- */

START_TEST(test_create)
{
    SCOPED(object_unref_p)
    struct object *o = world_create(&w, "ns", "a", "\"labels\":{\"l\":\"1\"}");
    ck_assert_int_eq(o->rev, 2);
    ck_assert_str_eq(o->namespace_name, "ns");
    ck_assert_str_eq(at(o, "metadata.generation"), "1");
    ck_assert_str_eq(at(o, "metadata.creationTimestamp"), "\"2026-01-02T03:04:05Z\"");
    ck_assert_str_eq(at(o, "metadata.resourceVersion"), "\"2\"");
    ck_assert_str_eq(at(o, "spec.operatingMode"), "\"Running\"");
    ck_assert_uint_eq(strlen(o->uid), 36);
    SCOPED(object_unref_p) struct object *got = world_get(&w, "ns", "a"); /* reads its own write */
    ck_assert_str_eq(got->json, o->json);
    ck_assert_int_eq(got->rev, o->rev);
}
END_TEST

START_TEST(test_create_exists)
{
    object_unref(world_create(&w, "ns", "a", "\"finalizers\":[\"x.io/f\"]"));
    refuse_create(world_sandbox("a", ""), ERR_ALREADY_EXISTS,
                  "sandboxes.agents.x-k8s.io \"a\" already exists");
    world_delete(&w, "ns", "a");
    refuse_create(world_sandbox("a", ""), ERR_ALREADY_EXISTS,
                  "object is being deleted: sandboxes.agents.x-k8s.io \"a\" already exists");
    SCOPED(object_unref_p) struct object *other = world_create(&w, "other", "a", "");
}
END_TEST

START_TEST(test_create_version)
{
    refuse_create(world_sandbox("a", "\"resourceVersion\":\"1\""), ERR_UNKNOWN,
                  "resourceVersion should not be set on objects to be created");
    object_unref(world_create(&w, "ns", "a", "\"resourceVersion\":\"0\""));
}
END_TEST

START_TEST(test_create_dry)
{
    struct write_options opts = world_opts();
    opts.dry_run = true;
    SCOPED(object_unref_p) struct object *o = NULL, *present = NULL;
    ck_assert_int_eq(
        registry_create(w.registry, &kind_sandbox, "ns", world_sandbox("a", ""), &opts, &o, NULL),
        0);
    ck_assert_int_eq(o->rev, 0);
    ck_assert_str_eq(at(o, "metadata.resourceVersion"), "-");
    ck_assert_ptr_null(world_get(&w, "ns", "a"));
    present = world_create(&w, "ns", "a", "");
    struct object *none = NULL;
    ck_assert_int_eq(registry_create(w.registry, &kind_sandbox, "ns", world_sandbox("a", ""), &opts,
                                     &none, NULL),
                     -ERR_ALREADY_EXISTS);
    ck_assert_int_eq(registry_revision(w.registry), present->rev);
}
END_TEST

START_TEST(test_create_namespace)
{
    w.namespace_state = NAMESPACE_ABSENT;
    refuse_create(world_sandbox("a", ""), ERR_NOT_FOUND, "namespaces \"ns\" not found");
    w.namespace_state = NAMESPACE_TERMINATING;
    refuse_create(world_sandbox("a", ""), ERR_FORBIDDEN,
                  "sandboxes.agents.x-k8s.io \"a\" is forbidden: unable to create new content in "
                  "namespace ns because "
                  "it is being terminated");
}
END_TEST

/* A source of randomness that gives the same bytes forever: each generated name is the last one
 * again. */
static void fill_same(const struct randomness *r, void *p, size_t n)
{
    unsigned *left = r->ctx;
    memset(p, *left > 0 ? 1 : 2, n);
    *left -= *left > 0;
}

START_TEST(test_generated_name)
{
    SCOPED(object_unref_p) struct object *first = NULL;
    unsigned same = 1000;
    struct randomness stuck = {.fill = fill_same, .ctx = &same};
    w.env.randomness = &stuck;
    struct write_options opts = world_opts();
    cJSON *tree = world_sandbox("", "\"generateName\":\"gen-\"");
    ck_assert_int_eq(registry_create(w.registry, &kind_sandbox, "ns", tree, &opts, &first, NULL),
                     0);
    ck_assert(str_has_prefix(first->name, "gen-") && strlen(first->name) == 9);
    SCOPED_FREE char *text = xasprintf("sandboxes.agents.x-k8s.io \"%s\" already exists, the "
                                       "server was not able to generate a unique name "
                                       "for the object",
                                       first->name);
    same = 1000;
    refuse_create(world_sandbox("", "\"generateName\":\"gen-\""), ERR_ALREADY_EXISTS, text);
    same = 3; /* then other bytes: another name */
    SCOPED(object_unref_p) struct object *second = NULL;
    tree = world_sandbox("", "\"generateName\":\"gen-\"");
    ck_assert_int_eq(registry_create(w.registry, &kind_sandbox, "ns", tree, &opts, &second, NULL),
                     0);
    ck_assert_str_ne(second->name, first->name);
}
END_TEST

static void count(void *n)
{
    ++*(int *)n;
}

START_TEST(test_create_fenced)
{
    int n = 0;
    world_stop_registry(&w);
    w.config.on_fenced = count;
    w.config.fence_ctx = &n;
    world_start_registry(&w);
    const struct store_compare fence = {.key = "/lease", .target = STORE_MOD, .rev = 77};
    struct write_options opts = world_opts();
    opts.fence = &fence;
    struct object *o = NULL;
    SCOPED(err_fini) struct err err = {0};
    ck_assert_int_eq(
        registry_create(w.registry, &kind_sandbox, "ns", world_sandbox("a", ""), &opts, &o, &err),
        -ERR_CONFLICT);
    ck_assert_str_eq(
        err_text(&err),
        "Operation cannot be fulfilled on sandboxes.agents.x-k8s.io \"a\": no longer leader");
    ck_assert_ptr_null(world_get(&w, "ns", "a"));
    SCOPED(object_unref_p) struct object *made = world_create(&w, "ns", "b", "");
    ck_assert_int_eq(world_try_set(&w, "ns", "b", "spec.service", "true", &opts, false, &o, &err),
                     -ERR_CONFLICT);
    struct delete_options dopts = {
        .orphan_dependents = -1, .fence = &fence, .deadline_ms = world_deadline()};
    bool is_gone;
    ck_assert_int_eq(
        registry_delete(w.registry, &kind_sandbox, "ns", "b", &dopts, &o, &is_gone, &err),
        -ERR_CONFLICT);
    ck_assert(strstr(err_text(&err), "no longer leader"));
    ck_assert_int_eq(n, 3); /* each time who leads is told to look */
}
END_TEST

/* ---- update ---- */

START_TEST(test_update)
{
    SCOPED(object_unref_p)
    struct object *made = world_create(&w, "ns", "a", "\"labels\":{\"l\":\"1\"}");
    SCOPED(object_unref_p)
    struct object *labelled = world_set(&w, "ns", "a", "metadata.labels", "{\"l\":\"2\"}");
    ck_assert_int_gt(labelled->rev, made->rev);
    ck_assert_str_eq(at(labelled, "metadata.generation"), "1");
    SCOPED(object_unref_p)
    struct object *changed = world_set(&w, "ns", "a", "spec.service", "true");
    ck_assert_str_eq(at(changed, "metadata.generation"), "2");
    SCOPED(object_unref_p) struct object *same = world_set(&w, "ns", "a", "spec.service", "true");
    ck_assert_int_eq(same->rev, changed->rev);
    ck_assert_int_eq(registry_revision(w.registry), changed->rev); /* nothing was written */
    SCOPED(object_unref_p)
    struct object *defaulted = world_set(&w, "ns", "a", "spec.operatingMode", "null");
    ck_assert_int_eq(defaulted->rev, changed->rev); /* the default comes back */
}
END_TEST

START_TEST(test_update_refusals)
{
    SCOPED(object_unref_p) struct object *made = world_create(&w, "ns", "a", "");
    const char *rev = "metadata.resourceVersion";
    refuse_set("nope", "spec.service", "true", ERR_NOT_FOUND,
               "sandboxes.agents.x-k8s.io \"nope\" not found");
    refuse_set("a", rev, "null", ERR_INVALID,
               "sandboxes.agents.x-k8s.io \"a\" is invalid: metadata.resourceVersion: Invalid "
               "value: 0: must be "
               "specified for an update");
    refuse_set("a", rev, "\"0\"", ERR_INVALID,
               "sandboxes.agents.x-k8s.io \"a\" is invalid: metadata.resourceVersion: Invalid "
               "value: 0: must be "
               "specified for an update");
    refuse_set("a", rev, "\"1\"", ERR_CONFLICT,
               "Operation cannot be fulfilled on sandboxes.agents.x-k8s.io \"a\": " STALE);
    refuse_set("a", rev, "\"abc\"", ERR_UNKNOWN,
               "strconv.ParseUint: parsing \"abc\": invalid syntax");
    refuse_set("a", rev, "\"99999999999999999999\"", ERR_UNKNOWN,
               "strconv.ParseUint: parsing \"99999999999999999999\": value out of range");
    refuse_set("a", "metadata.name", "\"b\"", ERR_BAD_REQUEST,
               "the name of the object (b) does not match the name on the URL (a)");
    refuse_set("a", "metadata.name", "null", ERR_BAD_REQUEST,
               "the name of the object (a based on URL) was undeterminable: name must be provided");
    refuse_set(
        "a", "metadata.namespace", "\"x\"", ERR_BAD_REQUEST,
        "the namespace of the provided object does not match the namespace sent on the request");
    SCOPED_FREE char *uid_text = xasprintf(
        "Operation cannot be fulfilled on sandboxes.agents.x-k8s.io \"a\": StorageError: invalid "
        "object, Code: "
        "4, Key: /registry/agents.x-k8s.io/sandboxes/ns/a, ResourceVersion: 0, AdditionalErrorMsg: "
        "Precondition failed: UID in precondition: u-2, UID in object meta: %s",
        made->uid);
    refuse_set("a", "metadata.uid", "\"u-2\"", ERR_CONFLICT, uid_text);
    refuse_set("a", "kind", "\"SandboxX\"", ERR_INVALID,
               "SandboxX.agents.x-k8s.io \"a\" is invalid: kind: Invalid value: \"SandboxX\": must "
               "be Sandbox");
    ck_assert_int_eq(registry_revision(w.registry), made->rev);
}
END_TEST

START_TEST(test_update_system_fields)
{
    SCOPED(object_unref_p) struct object *made = world_create(&w, "ns", "a", "");
    const char *const ignored[][2] = {
        {"metadata.creationTimestamp", "\"2001-01-01T00:00:00Z\""},
        {"metadata.generation", "77"},
        {"metadata.uid", "null"},
        {"metadata.namespace", "null"},
        {"metadata.annotations", "{}"},
        {"metadata.selfLink", "\"/x\""},
        {"metadata.managedFields", "null"},
        {"status", "{\"service\":\"x\"}"},
    };
    for (size_t i = 0; i < ARRAY_LEN(ignored); i++) {
        SCOPED(object_unref_p)
        struct object *o = world_set(&w, "ns", "a", ignored[i][0], ignored[i][1]);
        ck_assert_msg(o->rev == made->rev, "%s", ignored[i][0]);
    }
}
END_TEST

START_TEST(test_status) /* IL-155 */
{
    object_unref(world_create(&w, "ns", "a", "\"labels\":{\"l\":\"1\"}"));
    struct write_options opts = world_opts();
    SCOPED(object_unref_p) struct object *o = NULL, *gone = NULL, *kept = NULL;
    ck_assert_int_eq(world_try_set(&w, "ns", "a", "status.service", "\"a\"", &opts, true, &o, NULL),
                     0);
    ck_assert_str_eq(at(o, "status"), "{\"service\":\"a\"}");
    ck_assert_str_eq(at(o, "metadata.generation"), "1");
    /* All else is as stored. */
    ck_assert_int_eq(world_try_set(&w, "ns", "a", "metadata.labels", "{\"a b\":\"2\"}", &opts, true,
                                   &kept, NULL),
                     0);
    ck_assert_int_eq(kept->rev, o->rev);
    object_unref(kept);
    kept = NULL;
    ck_assert_int_eq(world_try_set(&w, "ns", "a", "spec", "5", &opts, true, &kept, NULL), 0);
    ck_assert_int_eq(kept->rev, o->rev);
    ck_assert_int_eq(world_try_set(&w, "ns", "a", "status", "null", &opts, true, &gone, NULL), 0);
    ck_assert_str_eq(at(gone, "status"), "-");
    struct object *none = NULL;
    SCOPED(err_fini) struct err err = {0};
    ck_assert_int_eq(world_try_set(&w, "ns", "a", "status", "\"x\"", &opts, true, &none, &err),
                     -ERR_INVALID);
    ck_assert_str_eq(err_text(&err),
                     "Sandbox.agents.x-k8s.io \"a\" is invalid: [status: Invalid value: "
                     "\"string\":  in body must be of "
                     "type object: \"string\", <nil>: Invalid value: null: some validation rules "
                     "were not checked because "
                     "the object was invalid; correct the existing errors to complete validation]");
}
END_TEST

START_TEST(test_update_dry)
{
    SCOPED(object_unref_p) struct object *made = world_create(&w, "ns", "a", ""), *o = NULL;
    struct write_options opts = world_opts();
    opts.dry_run = true;
    ck_assert_int_eq(world_try_set(&w, "ns", "a", "spec.service", "true", &opts, false, &o, NULL),
                     0);
    ck_assert_int_eq(o->rev, made->rev);
    ck_assert_str_eq(at(o, "metadata.generation"), "2");
    SCOPED(object_unref_p) struct object *got = world_get(&w, "ns", "a");
    ck_assert_str_eq(got->json, made->json);
}
END_TEST

START_TEST(test_template_generation) /* IL-155 */
{
    struct write_options opts = world_opts();
    cJSON *tree = world_tree(
        "{\"apiVersion\":\"extensions.agents.x-k8s.io/v1beta1\",\"kind\":\"SandboxTemplate\","
        "\"metadata\":{\"name\":\"t\"},\"spec\":{\"podTemplate\":{\"spec\":{\"containers\":[]}}}}");
    SCOPED(object_unref_p) struct object *o = NULL;
    ck_assert_int_eq(
        registry_create(w.registry, &kind_sandbox_template, "ns", tree, &opts, &o, NULL), 0);
    ck_assert_str_eq(at(o, "metadata.generation"), "1");
    SCOPED(object_unref_p) struct object *sandbox = world_get(&w, "ns", "t");
    ck_assert_ptr_null(sandbox);
}
END_TEST

/* Somebody else writes between reading and writing: the change is made again on what is there. */
struct interference {
    int left;
    const char *path, *json;
};

static int change_interfered(void *ctx, const cJSON *old, cJSON **ret, struct err *err)
{
    struct interference *x = ctx;
    (void)err;
    if (x->left-- > 0)
        object_unref(world_set(&w, "ns", "a", x->path, x->left % 2 ? "\"1\"" : "\"2\""));
    *ret = json_copy(old);
    json_set(json_ensure_object(json_get(*ret, "metadata"), "annotations"), "mine",
             json_string("x"));
    return 0;
}

START_TEST(test_race)
{
    object_unref(world_create(&w, "ns", "a", "\"annotations\":{\"o\":\"0\"}"));
    struct interference x = {.left = 5, .path = "metadata.annotations.o"};
    struct update_request req = {.kind = &kind_sandbox,
                                 .namespace_name = "ns",
                                 .name = "a",
                                 .change = change_interfered,
                                 .ctx = &x};
    struct write_options opts = world_opts();
    SCOPED(object_unref_p) struct object *o = NULL;
    ck_assert_int_eq(registry_update(w.registry, &req, &opts, &o, NULL), 0);
    ck_assert_str_eq(at(o, "metadata.annotations"), "{\"mine\":\"x\",\"o\":\"2\"}");
    ck_assert_int_eq(x.left, -1);
}
END_TEST

/* The cache is behind, on purpose: a refusal and a "nothing to do" are checked against the
 * store. */
START_TEST(test_stale_cache)
{
    SCOPED(object_unref_p) struct object *made = world_create(&w, "ns", "a", "");
    memstore_set_watch_down(w.store, true);
    /* Another server's write. */
    struct store_op op = {.key = "/registry/agents.x-k8s.io/sandboxes/ns/a"};
    SCOPED(json_free_p) cJSON *tree = object_tree(made);
    json_remove(json_get(tree, "metadata"), "resourceVersion");
    json_set_str(json_get(tree, "spec"), "operatingMode", "Suspended");
    SCOPED_FREE char *text = json_to_str(tree);
    op.value = text;
    op.value_len = strlen(text);
    const struct store_txn txn = {.ops = &op, .n_ops = 1};
    SCOPED(store_txn_result_fini) struct store_txn_result res = {0};
    ck_assert_int_eq(store_txn(w.store, &txn, world_deadline(), &res, NULL), 0);
    /* In the cache it is Running still. */
    struct write_options opts = world_opts();
    SCOPED(object_unref_p) struct object *o = NULL, *newer = NULL;
    ck_assert_int_eq(
        world_try_set(&w, "ns", "a", "spec.operatingMode", "\"Running\"", &opts, false, &o, NULL),
        0);
    ck_assert_int_gt(o->rev, res.rev);
    SCOPED_FREE char *rev = xasprintf("\"%lld\"", (long long)o->rev);
    ck_assert_int_eq(
        world_try_set(&w, "ns", "a", "metadata.resourceVersion", rev, &opts, false, &newer, NULL),
        0);
    ck_assert_int_eq(newer->rev, o->rev);
    memstore_set_watch_down(w.store, false);
}
END_TEST

/* ---- delete ---- */

START_TEST(test_delete)
{
    SCOPED(object_unref_p) struct object *made = world_create(&w, "ns", "a", "");
    bool is_gone = false;
    SCOPED(object_unref_p) struct object *o = delete_with("a", NULL, -1, false, &is_gone);
    ck_assert(is_gone);
    ck_assert_str_eq(o->uid, made->uid);
    ck_assert_ptr_null(world_get(&w, "ns", "a"));
    struct delete_options opts = {
        .uid = "u", .orphan_dependents = -1, .deadline_ms = world_deadline()};
    struct object *none = NULL;
    SCOPED(err_fini) struct err err = {0};
    ck_assert_int_eq(
        registry_delete(w.registry, &kind_sandbox, "ns", "a", &opts, &none, &is_gone, &err),
        -ERR_NOT_FOUND);
    ck_assert_str_eq(err_text(&err), "sandboxes.agents.x-k8s.io \"a\" not found");
}
END_TEST

START_TEST(test_delete_preconditions)
{
    SCOPED(object_unref_p) struct object *made = world_create(&w, "ns", "a", ""), *o = NULL;
    struct delete_options opts = {.uid = "u-1",
                                  .resource_version = "1",
                                  .orphan_dependents = -1,
                                  .deadline_ms = world_deadline()};
    bool is_gone;
    SCOPED(err_fini) struct err err = {0};
    ck_assert_int_eq(
        registry_delete(w.registry, &kind_sandbox, "ns", "a", &opts, &o, &is_gone, &err),
        -ERR_CONFLICT);
    SCOPED_FREE char *text = xasprintf(
        "Operation cannot be fulfilled on Sandbox.agents.x-k8s.io \"a\": the UID in the "
        "precondition (u-1) does "
        "not match the UID in record (%s). The object might have been deleted and then recreated",
        made->uid);
    ck_assert_str_eq(err_text(&err), text);
    ck_assert_str_eq(err.kind, "Sandbox");
    opts.uid = NULL;
    ck_assert_int_eq(
        registry_delete(w.registry, &kind_sandbox, "ns", "a", &opts, &o, &is_gone, &err),
        -ERR_CONFLICT);
    ck_assert_str_eq(err_text(&err), "Operation cannot be fulfilled on Sandbox.agents.x-k8s.io "
                                     "\"a\": the ResourceVersion in the "
                                     "precondition (1) does not match the ResourceVersion in "
                                     "record (2). The object might have been "
                                     "modified");
    opts.uid = made->uid;
    opts.resource_version = "2";
    ck_assert_int_eq(
        registry_delete(w.registry, &kind_sandbox, "ns", "a", &opts, &o, &is_gone, &err), 0);
}
END_TEST

/* One row a step on one object: policy, then the finalizers that must be there; "gone" when it must
 * be gone. */
static const struct {
    const char *stored, *policy;
    int orphan;
    const char *finalizers;
} policies[] = {
    {"[]", NULL, -1, "gone"},
    {"[]", "Background", -1, "gone"},
    {"[]", NULL, 0, "gone"},
    {"[]", NULL, 1, "[\"orphan\"]"},
    {"[]", "Orphan", -1, "[\"orphan\"]"},
    {"[]", "Foreground", -1, "[\"foregroundDeletion\"]"},
    {"[\"x.io/f\"]", NULL, -1, "[\"x.io/f\"]"},
    {"[\"x.io/f\"]", "Foreground", -1, "[\"x.io/f\",\"foregroundDeletion\"]"},
    {"[\"x.io/f\",\"foregroundDeletion\"]", "Orphan", -1, "[\"x.io/f\",\"orphan\"]"},
    {"[\"foregroundDeletion\",\"x.io/f\"]", NULL, -1, "[\"foregroundDeletion\",\"x.io/f\"]"},
    {"[\"foregroundDeletion\",\"x.io/f\"]", "Foreground", -1,
     "[\"foregroundDeletion\",\"x.io/f\"]"},
    {"[\"foregroundDeletion\",\"x.io/f\"]", "Background", -1, "[\"x.io/f\"]"},
    {"[\"orphan\"]", "Background", -1, "gone"},
    {"[\"orphan\"]", NULL, -1, "[\"orphan\"]"},
    {"[\"orphan\"]", NULL, 0, "gone"},
};

START_TEST(test_policy)
{
    SCOPED_FREE char *metadata = xasprintf("\"finalizers\":%s", policies[_i].stored);
    SCOPED(object_unref_p) struct object *made = world_create(&w, "ns", "a", metadata);
    bool is_gone = false;
    SCOPED(object_unref_p)
    struct object *dry = delete_with("a", policies[_i].policy, policies[_i].orphan, true, &is_gone);
    ck_assert_int_eq(registry_revision(w.registry), made->rev);
    SCOPED(object_unref_p)
    struct object *o = delete_with("a", policies[_i].policy, policies[_i].orphan, false, &is_gone);
    ck_assert_int_eq(is_gone, strcmp(policies[_i].finalizers, "gone") == 0);
    if (is_gone)
        return;
    ck_assert_str_eq(at(o, "metadata.finalizers"), policies[_i].finalizers);
    ck_assert_str_eq(at(o, "metadata.generation"), "2");
    ck_assert_str_eq(at(o, "metadata.deletionTimestamp"), "\"2026-01-02T03:04:05Z\"");
    ck_assert_str_eq(at(o, "metadata.deletionGracePeriodSeconds"), "0");
    ck_assert_int_gt(o->rev, made->rev);
    ck_assert_int_eq(dry->rev, made->rev);
    ck_assert(o->is_terminating);
}
END_TEST

START_TEST(test_delete_again) /* IL-080 */
{
    object_unref(world_create(&w, "ns", "f", "\"finalizers\":[\"x.io/f\"]"));
    bool is_gone;
    SCOPED(object_unref_p) struct object *first = delete_with("f", NULL, -1, false, &is_gone);
    clock_fake_advance(&w.clock, 60000);
    SCOPED(object_unref_p) struct object *again = delete_with("f", NULL, -1, false, &is_gone);
    ck_assert_int_eq(again->rev, first->rev);
    SCOPED(object_unref_p)
    struct object *foreground = delete_with("f", "Foreground", -1, false, &is_gone);
    ck_assert_int_gt(foreground->rev, first->rev);
    ck_assert_str_eq(at(foreground, "metadata.deletionTimestamp"), "\"2026-01-02T03:04:05Z\"");
    ck_assert_str_eq(at(foreground, "metadata.generation"), "2");
    refuse_set("f", "metadata.finalizers", "[\"x.io/f\",\"foregroundDeletion\",\"y.io/g\"]",
               ERR_INVALID,
               "Sandbox.agents.x-k8s.io \"f\" is invalid: metadata.finalizers: Forbidden: no new "
               "finalizers can be added "
               "if the object is being deleted, found new finalizers []string{\"y.io/g\"}");
    SCOPED(object_unref_p)
    struct object *kept = world_set(&w, "ns", "f", "metadata.deletionTimestamp", "null");
    ck_assert_int_eq(kept->rev, foreground->rev);
}
END_TEST

START_TEST(test_last_finalizer)
{
    object_unref(world_create(&w, "ns", "f", "\"finalizers\":[\"x.io/f\"]"));
    bool is_gone;
    SCOPED(object_unref_p) struct object *terminating = delete_with("f", NULL, -1, false, &is_gone);
    struct write_options dry = world_opts();
    dry.dry_run = true;
    SCOPED(object_unref_p) struct object *would = NULL;
    ck_assert_int_eq(
        world_try_set(&w, "ns", "f", "metadata.finalizers", "null", &dry, false, &would, NULL), 0);
    SCOPED(object_unref_p) struct object *still = world_get(&w, "ns", "f");
    ck_assert_ptr_nonnull(still);
    SCOPED(object_unref_p) struct object *o = world_set(&w, "ns", "f", "metadata.finalizers", "[]");
    ck_assert_int_eq(o->rev,
                     terminating->rev); /* the answer is the object as it would have been stored */
    ck_assert_str_eq(at(o, "metadata.finalizers"), "-");
    ck_assert_ptr_null(world_get(&w, "ns", "f"));
}
END_TEST

START_TEST(test_collection)
{
    object_unref(world_create(&w, "ns", "s0", "\"labels\":{\"k\":\"x\"}"));
    object_unref(world_create(&w, "ns", "s1", "\"labels\":{\"k\":\"x\"}"));
    object_unref(world_create(&w, "ns", "s2", ""));
    object_unref(
        world_create(&w, "ns", "s3", "\"labels\":{\"k\":\"x\"},\"finalizers\":[\"x.io/f\"]"));
    object_unref(world_create(&w, "other", "s0", "\"labels\":{\"k\":\"x\"}"));
    struct selector *s = NULL;
    ck_assert_int_eq(selector_parse("k=x", NULL, &s, NULL), 0);
    struct list_request req = {.kind = &kind_sandbox,
                               .namespace_name = "ns",
                               .selector = s,
                               .deadline_ms = world_deadline()};
    struct delete_options opts = {
        .orphan_dependents = -1, .dry_run = true, .deadline_ms = world_deadline()};
    SCOPED(list_result_fini) struct list_result dry = {0}, found = {0}, left = {0};
    ck_assert_int_eq(registry_delete_collection(w.registry, &req, &opts, &dry, NULL), 0);
    ck_assert_uint_eq(dry.n, 3);
    opts.dry_run = false;
    opts.uid = "u-1";
    SCOPED(err_fini) struct err err = {0};
    struct list_result none = {0};
    ck_assert_int_eq(registry_delete_collection(w.registry, &req, &opts, &none, &err),
                     -ERR_CONFLICT);
    opts.uid = NULL;
    ck_assert_int_eq(registry_delete_collection(w.registry, &req, &opts, &found, NULL), 0);
    ck_assert_uint_eq(found.n, 3);
    ck_assert_str_eq(found.objects[2]->name, "s3");
    ck_assert(!found.objects[2]->is_terminating); /* as it was before */
    req.version.match = READ_ANY;                 /* even the cache shows nothing of what is gone */
    req.selector = NULL;
    ck_assert_int_eq(registry_list(w.registry, &req, &left, NULL), 0);
    ck_assert_uint_eq(left.n, 2);
    ck_assert_str_eq(left.objects[0]->name, "s2");
    ck_assert(left.objects[1]->is_terminating);
    selector_free(s);
}
END_TEST

/* ---- warnings ---- */

START_TEST(test_warnings)
{
    SCOPED(pairs_fini) struct pairs warnings = {0};
    struct write_options opts = world_opts();
    opts.warnings = &warnings;
    object_unref(world_create(&w, "ns", "a", ""));
    SCOPED(object_unref_p) struct object *o = NULL;
    ck_assert_int_eq(world_try_set(&w, "ns", "a", "spec.nope", "1", &opts, false, &o, NULL), 0);
    ck_assert_uint_eq(warnings.n, 1); /* once, though the cached answer was checked again */
    ck_assert_str_eq(warnings.v[0].name, "unknown field \"spec.nope\"");
    struct object *none = NULL;
    ck_assert_int_eq(world_try_set(&w, "ns", "a", "spec", "{\"nope\":1,\"service\":5}", &opts,
                                   false, &none, NULL),
                     -ERR_INVALID);
    ck_assert_uint_eq(warnings.n, 2); /* with errors too */
}
END_TEST

static const struct grace_row {
    const char *own;    /* what the Pod says */
    int64_t given;      /* what its deleter says; -1 = nothing */
    const char *at, *s; /* the end, and the seconds until then */
} grace_rows[] = {
    {"5", -1, "\"2026-01-02T03:04:10Z\"", "5"},
    {"0", -1, "\"2026-01-02T03:04:06Z\"", "1"},
    {"5", 60, "\"2026-01-02T03:05:05Z\"", "60"},
    /* longer than any calendar */
    {"5", INT64_MAX, "\"2094-01-20T06:18:12Z\"", "2147483647"},
    {"9223372036854775807", -1, "\"2094-01-20T06:18:12Z\"", "2147483647"},
};

START_TEST(test_grace)
{
    const struct grace_row *row = &grace_rows[_i];
    SCOPED_FREE char *members = xasprintf(
        "\"metadata\":{\"name\":\"a\"},\"spec\":{\"nodeName\":\"n\",\"containers\":[{\"name\":"
        "\"a\",\"image\":\"b\"}],\"terminationGracePeriodSeconds\":%s}",
        row->own);
    struct delete_options opts = {.orphan_dependents = -1,
                                  .has_grace = row->given >= 0,
                                  .grace_s = row->given,
                                  .deadline_ms = world_deadline()};
    SCOPED(object_unref_p) struct object *pod = world_make(&w, &kind_pod, "ns", members, NULL);
    SCOPED(object_unref_p) struct object *o = NULL;
    bool is_gone;
    ck_assert_int_eq(registry_delete(w.registry, &kind_pod, "ns", "a", &opts, &o, &is_gone, NULL),
                     0);
    ck_assert_str_eq(at(o, "metadata.deletionTimestamp"), row->at);
    ck_assert_str_eq(at(o, "metadata.deletionGracePeriodSeconds"), row->s);
}
END_TEST

SUITE(write)
{
    TCase *tc = tcase_create("world");
    tcase_add_checked_fixture(tc, start, stop);
    tcase_set_timeout(tc, 60);
    const TTest *const tests[] = {
        test_create,
        test_create_exists,
        test_create_version,
        test_create_dry,
        test_create_namespace,
        test_generated_name,
        test_create_fenced,
        test_update,
        test_update_refusals,
        test_update_system_fields,
        test_status,
        test_update_dry,
        test_template_generation,
        test_race,
        test_stale_cache,
        test_delete,
        test_delete_preconditions,
        test_delete_again,
        test_last_finalizer,
        test_collection,
        test_warnings,
    };
    for (size_t i = 0; i < ARRAY_LEN(tests); i++)
        tcase_add_test(tc, tests[i]);
    tcase_add_loop_test(tc, test_policy, 0, ARRAY_LEN(policies));
    suite_add_tcase(s, tc);
    TCase *pods = tcase_create("pods");
    tcase_add_checked_fixture(pods, start_with_pods, stop);
    tcase_add_loop_test(pods, test_grace, 0, ARRAY_LEN(grace_rows));
    suite_add_tcase(s, pods);
}
