/* Discovery documents; see discovery.h. The verbs have kube-apiserver's order for custom
 * resources. */
#include "openapi/discovery.h"

#include <string.h>

#include "apiserver/base/json.h"
#include "apiserver/base/mem.h"
#include "apiserver/base/rand.h"
#include "openapi/kinds.h"

static const char *const review_verbs[] = {"create", NULL};
static const char *const read_verbs[] = {"get", "list", "watch", NULL};
static const char *const verbs[] = {"delete", "deletecollection", "get",   "list", "patch",
                                    "create", "update",           "watch", NULL};
static const char *const subresource_verbs[] = {"get", "patch", "update", NULL};

static cJSON *words(const char *const *list)
{
    cJSON *array = json_array();
    for (; *list; list++)
        json_push(array, json_string(*list));
    return array;
}

static const char *const *verbs_of(const struct kind *kind)
{
    return kind->is_review ? review_verbs : kind->is_read_only ? read_verbs : verbs;
}

static void print_and_free(cJSON *document, struct buf *out)
{
    json_print(document, out);
    json_free(document);
}

/* The core group is told of at /api. */
static bool is_core(const struct kind *kind)
{
    return kind->group[0] == '\0';
}

/* The first kind of a group-version or group in kinds_served stands for it. */
static bool is_first_of_group(const struct kind *kind)
{
    for (const struct kind *const *k = kinds_served; *k != kind; k++)
        if (str_equal((*k)->group, kind->group))
            return false;
    return true;
}

static bool is_first_of_version(const struct kind *kind)
{
    for (const struct kind *const *k = kinds_served; *k != kind; k++)
        if (str_equal((*k)->group, kind->group) && str_equal((*k)->version, kind->version))
            return false;
    return true;
}

/* ---- unaggregated ------------------------------------------------------------------------ */

static cJSON *version_entry(const struct kind *kind)
{
    SCOPED_FREE char *group_version = kind_api_version(kind);
    cJSON *v = json_object();
    json_set_str(v, "groupVersion", group_version);
    json_set_str(v, "version", kind->version);
    return v;
}

/* name, versions, preferredVersion: the versions of a group in the order of kinds_served, the first
 * preferred. */
static void add_group(cJSON *group, const struct kind *first)
{
    json_set_str(group, "name", first->group);
    cJSON *versions = json_array();
    for (const struct kind *const *k = kinds_served; *k; k++)
        if (str_equal((*k)->group, first->group) && is_first_of_version(*k))
            json_push(versions, version_entry(*k));
    json_set(group, "versions", versions);
    json_set(group, "preferredVersion", version_entry(first));
}

void discovery_print_groups(struct buf *out)
{
    cJSON *list = json_object(), *groups = json_array();
    json_set_str(list, "kind", "APIGroupList");
    json_set_str(list, "apiVersion", "v1");
    for (const struct kind *const *k = kinds_served; *k; k++) {
        if (is_core(*k) || !is_first_of_group(*k))
            continue;
        cJSON *group = json_object();
        add_group(group, *k);
        json_push(groups, group);
    }
    json_set(list, "groups", groups);
    print_and_free(list, out);
}

void discovery_print_core(struct buf *out)
{
    cJSON *document = json_object(), *versions = json_array();
    json_set_str(document, "kind", "APIVersions");
    for (const struct kind *const *k = kinds_served; *k; k++)
        if (is_core(*k) && is_first_of_version(*k))
            json_push(versions, json_string((*k)->version));
    json_set(document, "versions", versions);
    print_and_free(document, out);
}

bool discovery_print_group(const char *group, struct buf *out)
{
    for (const struct kind *const *k = kinds_served; *k; k++) {
        if (!str_equal((*k)->group, group))
            continue;
        cJSON *document = json_object();
        json_set_str(document, "kind", "APIGroup");
        json_set_str(document, "apiVersion", "v1");
        add_group(document, *k);
        print_and_free(document, out);
        return true;
    }
    return false;
}

/* First 8 bytes of SHA-256 of GROUP/VERSION/KIND as base64: changes when the stored form does. */
static void set_storage_hash(cJSON *resource, const struct kind *kind)
{
    SCOPED_FREE char *text = xasprintf("%s/%s/%s", kind->group, kind->version, kind->kind);
    SCOPED(buf_fini) struct buf hash = {0};
    unsigned char digest[32];
    digest_sha256(text, strlen(text), digest);
    buf_base64(&hash, digest, 8);
    json_set_str(resource, "storageVersionHash", buf_cstr(&hash));
}

static cJSON *main_resource(const struct kind *kind)
{
    cJSON *r = json_object();
    json_set_str(r, "name", kind->plural);
    json_set_str(r, "singularName", kind->singular);
    json_set_bool(r, "namespaced", !kind->is_cluster_scoped);
    json_set_str(r, "kind", kind->kind);
    json_set(r, "verbs", words(verbs_of(kind)));
    if (kind->short_names)
        json_set(r, "shortNames", words(kind->short_names));
    if (kind->categories)
        json_set(r, "categories", words(kind->categories));
    set_storage_hash(r, kind);
    return r;
}

static const struct subresource scale_subresource = {"scale", subresource_verbs, "autoscaling",
                                                     "v1", "Scale"};

/* Status and scale, and what else the kind has. what is called for each. */
static void each_subresource(const struct kind *kind,
                             void (*what)(const struct kind *kind, const struct subresource *s,
                                          cJSON *list),
                             cJSON *list)
{
    const struct subresource status = {"status", subresource_verbs, kind->group, kind->version,
                                       kind->kind};
    for (const struct subresource *s = kind->subresources; s && s->name; s++)
        what(kind, s, list);
    if (kind->has_status)
        what(kind, &status, list);
    if (kind->scale)
        what(kind, &scale_subresource, list);
}

static void push_sub_resource(const struct kind *kind, const struct subresource *s, cJSON *list)
{
    SCOPED_FREE char *full = xasprintf("%s/%s", kind->plural, s->name);
    cJSON *r = json_object();
    json_set_str(r, "name", full);
    json_set_str(r, "singularName", "");
    json_set_bool(r, "namespaced", !kind->is_cluster_scoped);
    if (strcmp(s->group, kind->group) != 0) {
        json_set_str(r, "group", s->group);
        json_set_str(r, "version", s->version);
    }
    json_set_str(r, "kind", s->kind);
    json_set(r, "verbs", words(s->verbs));
    json_push(list, r);
}

bool discovery_print_resources(const char *group, const char *version, struct buf *out)
{
    if (!kind_group_version_served(group, version))
        return false;
    SCOPED_FREE char *group_version = xasprintf("%s%s%s", group, *group ? "/" : "", version);
    cJSON *document = json_object(), *resources = json_array();
    json_set_str(document, "kind", "APIResourceList");
    json_set_str(document, "apiVersion", "v1");
    json_set_str(document, "groupVersion", group_version);
    for (const struct kind *const *k = kinds_served; *k; k++) {
        if (!str_equal((*k)->group, group) || !str_equal((*k)->version, version))
            continue;
        json_push(resources, main_resource(*k));
        each_subresource(*k, push_sub_resource, resources);
    }
    json_set(document, "resources", resources);
    print_and_free(document, out);
    return true;
}

/* ---- aggregated -------------------------------------------------------------------------- */

static cJSON *response_kind(const char *group, const char *version, const char *kind)
{
    cJSON *k = json_object();
    json_set_str(k, "group", group);
    json_set_str(k, "version", version);
    json_set_str(k, "kind", kind);
    return k;
}

static void push_aggregated_subresource(const struct kind *kind, const struct subresource *sub,
                                        cJSON *list)
{
    (void)kind;
    cJSON *s = json_object();
    json_set_str(s, "subresource", sub->name);
    json_set(s, "responseKind", response_kind(sub->group, sub->version, sub->kind));
    json_set(s, "verbs", words(sub->verbs));
    json_push(list, s);
}

static cJSON *aggregated_resource(const struct kind *kind)
{
    cJSON *r = json_object();
    json_set_str(r, "resource", kind->plural);
    json_set(r, "responseKind", response_kind(kind->group, kind->version, kind->kind));
    json_set_str(r, "scope", kind->is_cluster_scoped ? "Cluster" : "Namespaced");
    json_set_str(r, "singularResource", kind->singular);
    json_set(r, "verbs", words(verbs_of(kind)));
    if (kind->short_names)
        json_set(r, "shortNames", words(kind->short_names));
    if (kind->categories)
        json_set(r, "categories", words(kind->categories));
    cJSON *subresources = json_array();
    each_subresource(kind, push_aggregated_subresource, subresources);
    if (subresources->child)
        json_set(r, "subresources", subresources);
    else
        json_free(subresources);
    return r;
}

static cJSON *aggregated_version(const struct kind *first)
{
    cJSON *v = json_object(), *resources = json_array();
    json_set_str(v, "version", first->version);
    for (const struct kind *const *k = kinds_served; *k; k++)
        if (str_equal((*k)->group, first->group) && str_equal((*k)->version, first->version))
            json_push(resources, aggregated_resource(*k));
    json_set(v, "resources", resources);
    json_set_str(v, "freshness", "Current");
    return v;
}

static cJSON *aggregated_group(const struct kind *first)
{
    cJSON *item = json_object(), *metadata = json_object(), *versions = json_array();
    json_set_str(metadata, "name", first->group);
    json_set(item, "metadata", metadata);
    for (const struct kind *const *k = kinds_served; *k; k++)
        if (str_equal((*k)->group, first->group) && is_first_of_version(*k))
            json_push(versions, aggregated_version(*k));
    json_set(item, "versions", versions);
    return item;
}

void discovery_print_aggregated(const char *api_version, bool of_core, struct buf *out)
{
    SCOPED_FREE char *full = xasprintf("apidiscovery.k8s.io/%s", api_version);
    cJSON *document = json_object(), *items = json_array();
    json_set_str(document, "kind", "APIGroupDiscoveryList");
    json_set_str(document, "apiVersion", full);
    json_set(document, "metadata", json_object());
    for (const struct kind *const *k = kinds_served; *k; k++)
        if (is_core(*k) == of_core && is_first_of_group(*k))
            json_push(items, aggregated_group(*k));
    json_set(document, "items", items);
    print_and_free(document, out);
}
