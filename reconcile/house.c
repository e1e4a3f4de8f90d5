/* Keys of the queue: a letter and what it is about; see rows. The feed turns changes of objects
 * into keys, workers run the passes. */
#include "reconcile/house.h"

#include <stdlib.h>
#include <string.h>

#include "apiserver/base/json.h"
#include "apiserver/base/log.h"
#include "apiserver/base/loop.h"
#include "apiserver/base/mem.h"
#include "openapi/kinds.h"
#include "openapi/kinds/builtin.h"
#include "reconcile/feed.h"
#include "reconcile/house_pass.h"
#include "reconcile/peek.h"

#define WORKERS 4

struct house {
    struct house_config config;
    struct pass_env env;
    struct loop *loop;
    struct feed *feed;
    struct links *owners; /* see house_pass.h, both */
    struct links *users, *selected;
    struct links *services; /* keys of Services, which name a label that they select */
    bool is_running;
};

/* ---- the passes ---- */

static int namespace_pass(struct house *h, const char *what, struct loop_result *ret,
                          struct err *err)
{
    return house_namespace_pass(&h->env, h->config.authority, what, ret, err);
}

static int owners_pass(struct house *h, const char *what, struct loop_result *ret, struct err *err)
{
    return house_owners_pass(&h->env, h->owners, what, ret, err);
}

static int bind_pass(struct house *h, const char *what, struct loop_result *ret, struct err *err)
{
    SCOPED_FREE char *namespace_name = NULL;
    const char *name = pass_key_split(what, &namespace_name);
    return house_bind_pass(&h->env, namespace_name, name, ret, err);
}

static int events_pass(struct house *h, const char *what, struct loop_result *ret, struct err *err)
{
    (void)what;
    return house_events_pass(&h->env, ret, err);
}

/* A namespace that every server has. */
static int first_pass(struct house *h, const char *what, struct loop_result *ret, struct err *err)
{
    (void)ret;
    return pass_ensure(&h->env, &kind_namespace, "", house_named("v1", "Namespace", what),
                       HOUSE_MANAGER, err);
}

static int crds_pass(struct house *h, const char *what, struct loop_result *ret, struct err *err)
{
    (void)what, (void)ret;
    return house_crds_pass(&h->env, err);
}

static int roles_pass(struct house *h, const char *what, struct loop_result *ret, struct err *err)
{
    (void)what, (void)ret;
    return house_roles_pass(&h->env, err);
}

static int claim_pass(struct house *h, const char *what, struct loop_result *ret, struct err *err)
{
    (void)ret;
    return house_claim_pass(&h->env, h->users, what, err);
}

static int volume_pass(struct house *h, const char *what, struct loop_result *ret, struct err *err)
{
    (void)ret;
    return house_volume_pass(&h->env, what, err);
}

static int slices_pass(struct house *h, const char *what, struct loop_result *ret, struct err *err)
{
    (void)ret;
    return house_slices_pass(&h->env, h->selected, what, err);
}

static int class_pass(struct house *h, const char *what, struct loop_result *ret, struct err *err)
{
    (void)what, (void)ret;
    return house_class_pass(&h->env, err);
}

static int api_pass(struct house *h, const char *what, struct loop_result *ret, struct err *err)
{
    (void)what, (void)ret;
    return house_api_pass(&h->env, &h->config.api, err);
}

static const struct row {
    char letter;
    int (*pass)(struct house *h, const char *what, struct loop_result *ret, struct err *err);
} rows[] = {
    {'n', namespace_pass}, /* its name */
    {'o', owners_pass},    /* owners_key */
    {'b', bind_pass},      /* NAMESPACE/NAME of a Pod */
    {'e', events_pass},    /* nothing */
    {'f', first_pass},     /* name of a namespace */
    {'r', roles_pass},     /* nothing */
    {'c', crds_pass},      /* nothing */
    {'v', claim_pass},     /* NAMESPACE/NAME of a PersistentVolumeClaim */
    {'p', volume_pass},    /* name of a PersistentVolume */
    {'s', class_pass},     /* nothing */
    {'l', slices_pass},    /* NAMESPACE/NAME of a Service */
    {'k', api_pass},       /* nothing */
};

static int work(void *ctx, const char *key, struct loop_result *ret)
{
    struct house *h = ctx;
    SCOPED(err_fini) struct err err = {0};
    const struct row *row = rows;
    while (row->letter != *key)
        row++;
    int rc = row->pass(h, key + 1, ret, &err);
    if (rc < 0 && !pass_is_link_error(err.code))
        log_warn("%s failed, trying again: %s", key, err_text(&err));
    return rc;
}

static void add(struct house *h, char letter, const char *what)
{
    SCOPED_FREE char *key = xasprintf("%c%s", letter, what);
    loop_add(h->loop, key);
}

/* ---- what the feed tells ---- */

static void look_at(void *ctx, const char *key)
{
    add(ctx, 'o', key);
}

/* A Pod without a node has nothing in the field spec.nodeName, the first of its kind's. */
static bool is_unbound(const struct object *pod)
{
    return pod->fields && !pod->fields[0][0];
}

/* Every present object of a kind that has not got yet what it waits for. */
static void look_at_all(struct house *h, const struct kind *kind, char letter,
                        bool (*waits)(const struct object *o))
{
    SCOPED(list_result_fini) struct list_result found = {0};
    SCOPED(err_fini) struct err err = {0};
    const struct list_request list = {.kind = kind, .version = {READ_ANY, 0}};
    if (registry_list(h->config.registry, &list, &found, &err) < 0)
        return; /* they come again with the feed's next opening */
    for (size_t i = 0; i < found.n; i++) {
        SCOPED_FREE char *key = pass_key(found.objects[i]->namespace_name, found.objects[i]->name);
        if (waits(found.objects[i]))
            add(h, letter, key);
    }
}

static bool has_no_volume(const struct object *claim)
{
    SCOPED(json_free_p) cJSON *phase = object_peek(claim, "status", "phase");
    return cJSON_IsString(phase) && strcmp(phase->valuestring, "Pending") == 0;
}

static void look_at_text(struct house *h, char letter, const struct object *o, const char *outer,
                         const char *inner)
{
    SCOPED(json_free_p) cJSON *value = object_peek(o, outer, inner);
    if (cJSON_IsString(value))
        add(h, letter, value->valuestring);
}

static void add_all(struct house *h, char letter, char **take_keys)
{
    for (size_t i = 0; take_keys && take_keys[i]; i++)
        add(h, letter, take_keys[i]);
    strv_free(take_keys);
}

/* Services that select the Pod, and those that did. */
static void look_at_services(struct house *h, const struct object *pod, const char *key)
{
    for (size_t i = 0; i < pod->labels.n; i++) {
        SCOPED_FREE char *label =
            house_label_key(pod->namespace_name, pod->labels.v[i].name, pod->labels.v[i].value);
        add_all(h, 'l', links_to(h->services, label));
    }
    add_all(h, 'l', links_to(h->selected, key));
}

static void on_service(struct house *h, const struct object *o, const char *key, bool is_delete)
{
    (void)links_set(h->services, key, is_delete ? NULL : house_selected_by(o));
    add(h, 'l', key);
}

static void on_pod(struct house *h, const struct object *o, const char *key, bool is_delete)
{
    char **claims = house_claims_of(o);
    for (size_t i = 0; claims && claims[i] && !is_unbound(o); i++)
        add(h, 'v', claims[i]); /* which it may use no longer */
    (void)links_set(h->users, key, is_delete ? NULL : steal(&claims));
    strv_free(claims);
    if (!is_delete && is_unbound(o))
        add(h, 'b', key);
    look_at_services(h, o, key);
}

static void on_claim(struct house *h, const struct object *o, const char *key, bool is_delete)
{
    look_at_text(h, 'p', o, "spec", "volumeName");
    if (!is_delete)
        add(h, 'v', key);
    add_all(h, 'b', links_to(h->users, key)); /* which waited for it */
}

/* One that nobody has may be what a claim waits for. */
static void on_volume(struct house *h, const struct object *o, bool is_delete)
{
    SCOPED(json_free_p) cJSON *ref = object_peek(o, "spec", "claimRef");
    bool is_given = json_str_or(ref, "uid", "")[0] != '\0';
    if (!is_delete)
        add(h, 'p', o->name);
    if (is_given && is_delete) {
        SCOPED_FREE char *claim =
            pass_key(json_str_or(ref, "namespace", ""), json_str_or(ref, "name", ""));
        add(h, 'v', claim);
    }
    if (!is_given && !is_delete)
        look_at_all(h, &kind_persistent_volume_claim, 'v', has_no_volume);
}

static void on_object(void *ctx, const struct object *o, bool is_delete)
{
    struct house *h = ctx;
    SCOPED_FREE char *key = pass_key(o->namespace_name, o->name);
    owners_note(h->owners, o, is_delete, look_at, h);
    if (o->kind == &kind_namespace && !is_delete)
        add(h, 'n', o->name);
    if ((o->kind == &kind_service_account && is_delete) ||
        (o->kind == &kind_config_map && strcmp(o->name, KUBE_ROOT_CA) == 0))
        add(h, 'n', o->namespace_name);
    if (house_is_api(o))
        add(h, 'k', "");
    if (o->kind == &kind_pod)
        on_pod(h, o, key, is_delete);
    if (o->kind == &kind_node && !is_delete)
        look_at_all(h, &kind_pod, 'b', is_unbound);
    if (o->kind == &kind_service)
        on_service(h, o, key, is_delete);
    if (o->kind == &kind_persistent_volume_claim)
        on_claim(h, o, key, is_delete);
    if (o->kind == &kind_persistent_volume)
        on_volume(h, o, is_delete);
    if (o->kind == &kind_storage_class && !is_delete)
        look_at_all(h, &kind_persistent_volume_claim, 'v', has_no_volume);
}

/* What was missed comes again as it is now; of what went meanwhile the index keeps a name that
 * nobody asks for. */
static void on_gap(void *ctx, const struct kind *kind)
{
    (void)ctx;
    log_debug("%s may have changed unseen", kind->plural);
}

static void on_begin(void *ctx)
{
    static const char *const namespaces[] = {"default", "kube-system", "kube-node-lease"};
    struct house *h = ctx;
    for (size_t i = 0; i < ARRAY_LEN(namespaces); i++)
        add(h, 'f', namespaces[i]);
    add(h, 'e', "");
    add(h, 'r', "");
    add(h, 'c', "");
    add(h, 's', "");
    loop_start(h->loop);
}

static bool is_loaded(void *ctx)
{
    return registry_is_synced(((struct house *)ctx)->config.registry);
}

/* ---- life ---- */

struct house *house_new(const struct house_config *config)
{
    struct house *h = xcalloc(1, sizeof *h);
    h->config = *config;
    h->env = (struct pass_env){.registry = config->registry,
                               .clock = config->clock,
                               .fence = config->fence,
                               .ctx = config->ctx};
    return h;
}

void house_start(struct house *h)
{
    if (h->is_running)
        return;
    h->is_running = true;
    h->owners = links_new();
    h->users = links_new();
    h->selected = links_new();
    h->services = links_new();
    h->loop = loop_new(
        &(struct loop_config){.name = "house",
                              .workers = h->config.workers > 0 ? h->config.workers : WORKERS,
                              .clock = h->config.clock,
                              .work = work,
                              .ctx = h});
    h->feed = feed_start(&(struct feed_config){.registry = h->config.registry,
                                               .clock = h->config.clock,
                                               .kinds = kinds_served,
                                               .is_ready = is_loaded,
                                               .on_begin = on_begin,
                                               .on_object = on_object,
                                               .on_gap = on_gap,
                                               .ctx = h});
}

void house_stop(struct house *h)
{
    if (!h->is_running)
        return;
    feed_stop(h->feed);
    loop_stop(h->loop);
    loop_free(h->loop);
    links_free(h->owners);
    links_free(h->users);
    links_free(h->selected);
    links_free(h->services);
    h->is_running = false;
}

void house_free(struct house *h)
{
    if (!h)
        return;
    house_stop(h);
    free(h);
}
