#include "tests/lib/pool_world.h"

#include "reconcile/blueprint.h"
#include "reconcile/child.h"
#include "reconcile/keys.h"

#define NS "ns"

const char *const pool_world_domains[] = {"sandbox.users.io", NULL};

static const char template_json[] =
    "{\"apiVersion\":\"extensions.agents.x-k8s.io/v1beta1\",\"kind\":\"SandboxTemplate\","
    "\"metadata\":{\"name\":\"t\"},\"spec\":{\"podTemplate\":{\"metadata\":{\"labels\":{\"app\":"
    "\"x\"},\"annotations\":{\"n\":\"1\"}},\"spec\":{\"containers\":[{\"name\":\"c\",\"image\":"
    "\"img:1\"}]}}}}";
static const char pool_json[] =
    "{\"apiVersion\":\"extensions.agents.x-k8s.io/v1beta1\",\"kind\":\"SandboxWarmPool\","
    "\"metadata\":{\"name\":\"p\"},\"spec\":{\"sandboxTemplateRef\":{\"name\":\"t\"}}}";

static struct write_options system_opts(void)
{
    struct write_options opts = world_opts();
    opts.is_system = true;
    return opts;
}

static struct object *put_tree(struct registry *r, const struct kind *kind, cJSON *take_tree)
{
    SCOPED(err_fini) struct err err = {0};
    struct write_options opts = system_opts();
    struct object *o = NULL;
    int rc = registry_create(r, kind, NS, take_tree, &opts, &o, &err);
    ck_assert_msg(rc == 0, "create: %s", err_text(&err));
    return o;
}

struct object *pool_world_put(struct registry *r, const struct kind *kind, const char *json)
{
    return put_tree(r, kind, world_tree(json));
}

void pool_world_start(struct pool_world *pw)
{
    struct registry_config config = {.bind = &pw->binder.ops};
    struct claim_settings settings = {.label_domains = pool_world_domains};
    claim_binder_init(&pw->binder, &settings, &pw->w.clock.clock);
    world_start(&pw->w, &config);
    object_unref(pool_world_put(pw->w.registry, &kind_sandbox_template, template_json));
    object_unref(pool_world_put(pw->w.registry, &kind_sandbox_warm_pool, pool_json));
}

void pool_world_stop(struct pool_world *pw)
{
    world_stop(&pw->w);
}

cJSON *pool_world_read(struct registry *r, const struct kind *kind, const char *name)
{
    SCOPED(err_fini) struct err err = {0};
    SCOPED(object_unref_p) struct object *o = NULL;
    int rc = registry_get(r, kind, NS, name, (struct read_version){READ_LATEST, 0},
                          world_deadline(), &o, &err);
    ck_assert_msg(rc == 0 || rc == -ERR_NOT_FOUND, "get %s: %s", name, err_text(&err));
    return o ? object_tree(o) : NULL;
}

struct edit {
    const char *path, *json;
};

static int apply_edit(void *ctx, const cJSON *old, cJSON **ret, struct err *err)
{
    const struct edit *e = ctx;
    (void)err;
    cJSON *tree = json_copy(old), *at = tree;
    SCOPED_FREE char *path = xstrdup(e->path);
    char *name = path;
    for (char *bar; (bar = strchr(name, '|')); name = bar + 1) {
        *bar = '\0';
        at = json_ensure_object(at, name);
    }
    if (strcmp(e->json, "null") == 0)
        json_remove(at, name);
    else
        json_set(at, name, world_tree(e->json));
    *ret = tree;
    return 0;
}

/* Names of the path are separated by bars, as keys have dots and slashes. */
void pool_world_edit(struct registry *r, const struct kind *kind, const char *name,
                     const char *path, const char *json)
{
    struct edit e = {path, json};
    SCOPED(err_fini) struct err err = {0};
    SCOPED(object_unref_p) struct object *o = NULL;
    struct write_options opts = system_opts();
    int rc = registry_update(
        r,
        &(struct update_request){
            .kind = kind, .namespace_name = NS, .name = name, .change = apply_edit, .ctx = &e},
        &opts, &o, &err);
    ck_assert_msg(rc == 0, "edit %s: %s", name, err_text(&err));
}

static cJSON *member_tree(struct registry *r, const char *name)
{
    SCOPED(json_free_p) cJSON *template = pool_world_read(r, &kind_sandbox_template, "t");
    SCOPED(json_free_p) cJSON *pool = pool_world_read(r, &kind_sandbox_warm_pool, "p");
    struct blueprint b;
    char hash[NAME_HASH_SIZE];
    blueprint_init(&b, template);
    digest_name_hash("p", hash);
    cJSON *member = world_sandbox(name, "");
    cJSON *metadata = json_get(member, "metadata"), *refs = json_array();
    cJSON *labels = json_ensure_object(metadata, "labels");
    json_set_str(labels, LABEL_WARM_POOL, hash);
    json_set_str(labels, LABEL_TEMPLATE_REF_HASH, b.ref_hash);
    json_set_str(labels, LABEL_BLUEPRINT_HASH, b.hash);
    json_set_str(labels, LABEL_POD_TEMPLATE_HASH, b.pod_template_hash);
    json_set_str(labels, LABEL_LAUNCH_TYPE, LAUNCH_WARM);
    json_set_str(labels, LABEL_CREATED_BY, "controller");
    json_set_str(json_ensure_object(metadata, "annotations"), ANNOTATION_TEMPLATE_REF, "t");
    json_push(refs, owner_reference(pool));
    json_set(metadata, "ownerReferences", refs);
    json_set(member, "spec", blueprint_spec(template));
    cJSON *pod = json_ensure_object(json_get(member, "spec"), "podTemplate");
    cJSON *pod_metadata = json_ensure_object(pod, "metadata");
    json_set_str(json_ensure_object(pod_metadata, "labels"), LABEL_WARM_POOL, hash);
    json_set_str(json_ensure_object(pod_metadata, "annotations"), ANNOTATION_SAFE_TO_EVICT, "true");
    return member;
}

void pool_world_member(struct registry *r, const char *name, const char *node,
                       enum member_state state)
{
    cJSON *member = member_tree(r, name);
    bool is_ready = state == MEMBER_READY;
    SCOPED_FREE char *status = xasprintf(
        "{\"conditions\":[{\"type\":\"Ready\",\"status\":\"%s\",\"reason\":\"%s\",\"message\":"
        "\"%s\",\"lastTransitionTime\":\"2026-01-02T03:00:00Z\",\"observedGeneration\":1}]%s%s%s%s"
        "}",
        is_ready ? "True" : "False", is_ready ? "DependenciesReady" : "DependenciesNotReady",
        is_ready ? "Pod is Ready" : "Pod is Running but not Ready", *node ? ",\"nodeName\":\"" : "",
        node, *node ? "\"" : "", state == MEMBER_PENDING ? "" : ",\"podIPs\":[\"10.0.0.1\"]");
    json_set(member, "status", world_tree(status));
    object_unref(put_tree(r, &kind_sandbox, member));
}

cJSON *pool_world_claim(const char *name, const char *metadata, const char *spec)
{
    SCOPED_FREE char *json = xasprintf(
        "{\"apiVersion\":\"extensions.agents.x-k8s.io/v1beta1\",\"kind\":\"SandboxClaim\","
        "\"metadata\":{\"name\":\"%s\"%s},\"spec\":{\"warmPoolRef\":{\"name\":\"p\"}%s}}",
        name, metadata, spec);
    return world_tree(json);
}

int pool_world_post(struct registry *r, cJSON *take_claim, bool dry_run, cJSON **ret,
                    struct err *err)
{
    struct write_options opts = world_opts();
    SCOPED(object_unref_p) struct object *o = NULL;
    opts.dry_run = dry_run;
    int rc = registry_create(r, &kind_sandbox_claim, NS, take_claim, &opts, &o, err);
    if (rc == 0)
        *ret = object_tree(o);
    return rc;
}

const char *pool_world_bound(struct registry *r, const cJSON *claim)
{
    const char *name = json_str_or(claim, "status.sandbox.name", "");
    if (!*name)
        return "";
    SCOPED(json_free_p) cJSON *sandbox = pool_world_read(r, &kind_sandbox, name);
    ck_assert_ptr_nonnull(sandbox);
    ck_assert(claim_controls(claim, sandbox));
    ck_assert_ptr_null(meta_label(sandbox, LABEL_WARM_POOL));
    ck_assert_str_eq(meta_label(sandbox, LABEL_CLAIM_UID), meta_uid(claim));
    return name;
}

size_t pool_world_owned(struct registry *r, const char *claim_uid)
{
    SCOPED(list_result_fini) struct list_result list = {0};
    struct list_request req = {.kind = &kind_sandbox, .deadline_ms = world_deadline()};
    size_t n = 0;
    ck_assert_int_eq(registry_list(r, &req, &list, NULL), 0);
    for (size_t i = 0; i < list.n; i++) {
        SCOPED(json_free_p) cJSON *tree = object_tree(list.objects[i]);
        const cJSON *ref = owner_controller(tree);
        n += str_equal(json_str(ref, "kind"), KIND_CLAIM) &&
             (!claim_uid || str_equal(json_str(ref, "uid"), claim_uid));
    }
    return n;
}
