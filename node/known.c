#include "node/known.h"

#include <string.h>

#include "apiserver/base/json.h"
#include "apiserver/base/log.h"
#include "apiserver/base/mem.h"
#include "node/ranges.h"

/* ---- a Pod ---- */

static void pod_free(struct known_pod *p)
{
    free(p->uid);
    free(p->namespace_name);
    json_free(p->labels);
    json_free(p->ports);
    free(p->sandbox.netns);
    free(p);
}

static struct known_pod *pod_of(struct known *k, const char *uid)
{
    struct known_pod *p = map_get(k->pods, uid);
    if (!p) {
        p = xcalloc(1, sizeof *p);
        p->uid = xstrdup(uid);
        p->namespace_name = xstrdup("");
        map_put(k->pods, uid, p);
    }
    return p;
}

static void drop_unused(struct known *k, struct known_pod *p)
{
    if (!p->is_there && !p->sandbox.netns)
        pod_free(map_del(k->pods, p->uid));
}

static void copy_ports(const cJSON *containers, cJSON *out)
{
    const cJSON *container, *port;
    cJSON_ArrayForEach(container, containers)
    {
        cJSON_ArrayForEach(port, json_get(container, "ports"))
        {
            if (json_str(port, "name"))
                json_push(out, json_copy(port));
        }
    }
}

static cJSON *ports_of(const cJSON *pod)
{
    cJSON *out = json_array();
    copy_ports(json_at(pod, "spec.containers"), out);
    copy_ports(json_at(pod, "spec.initContainers"), out);
    if (!out->child)
        json_free(steal(&out));
    return out;
}

/* Its first address of IPv4, 0 = none. */
static uint32_t address_of(const cJSON *pod)
{
    struct range r;
    const cJSON *item;
    if (ranges_read_cidr(json_str_or(pod, "status.podIP", ""), &r))
        return r.first;
    cJSON_ArrayForEach(item, json_at(pod, "status.podIPs"))
    {
        if (ranges_read_cidr(json_str_or(item, "ip", ""), &r))
            return r.first;
    }
    return 0;
}

/* Whether the address that its status says is its own and in use: not that of its machine, nor one
 * that it has given back. Of this node's Pods the sandboxes are known better. */
static bool has_address(const struct known *k, const cJSON *pod)
{
    const char *phase = json_str_or(pod, "status.phase", "");
    return !str_equal(json_str(pod, "spec.nodeName"), k->node) &&
           !json_bool_or(pod, "spec.hostNetwork", false) && strcmp(phase, "Succeeded") != 0 &&
           strcmp(phase, "Failed") != 0;
}

static bool is_as_before(const struct known_pod *p, const cJSON *labels, uint32_t elsewhere)
{
    return p->version && p->elsewhere == elsewhere && (p->labels != NULL) == (labels != NULL) &&
           (!labels || json_equal(p->labels, labels));
}

/* Unless a newer state is known. Ports of a Pod do not change. */
static void take_pod(struct known *k, const cJSON *pod)
{
    struct known_pod *p = pod_of(k, json_str_or(pod, "metadata.uid", ""));
    uint64_t version = 0;
    str_to_u64(json_str_or(pod, "metadata.resourceVersion", ""), &version);
    const cJSON *labels = json_at(pod, "metadata.labels");
    uint32_t elsewhere = has_address(k, pod) ? address_of(pod) : 0;
    p->is_there = true;
    if (version < p->version)
        return;
    bool is_same = is_as_before(p, labels, elsewhere);
    if (p->version == 0) {
        free(p->namespace_name);
        p->namespace_name = xstrdup(json_str_or(pod, "metadata.namespace", ""));
        p->ports = ports_of(pod);
    }
    p->version = version ? version : 1;
    p->elsewhere = elsewhere;
    if (is_same)
        return;
    json_free(p->labels);
    p->labels = json_copy(labels);
    k->changes++;
}

/* Its sandbox may still run: the rules stay until it ends. */
static void drop_pod(struct known *k, const char *uid)
{
    struct known_pod *p = map_get(k->pods, uid);
    if (!p || !p->is_there)
        return;
    p->is_there = false;
    p->elsewhere = 0;
    drop_unused(k, p);
    k->changes++;
}

/* ---- policies and Namespaces ---- */

static cJSON *policy_part(const cJSON *policy)
{
    const char *space = json_str_or(policy, "metadata.namespace", "");
    cJSON *part = json_object();
    json_set_at(part, "metadata.namespace", json_string(space));
    json_add(part, "spec", json_copy(json_get(policy, "spec")));
    if (policy_is_too_large(policy))
        log_warn("policy has more than %d rules, peers and ports, so it allows nothing "
                 "namespace=%s policy=%s",
                 POLICY_ENTRIES_MAX, space, json_str_or(policy, "metadata.name", ""));
    return part;
}

static cJSON *namespace_part(const cJSON *o)
{
    const cJSON *labels = json_at(o, "metadata.labels");
    return labels ? json_copy(labels) : json_object();
}

static void keep(struct known *k, struct map *m, const char *key, cJSON *take_part)
{
    cJSON *old = take_part ? map_put(m, key, take_part) : map_del(m, key);
    json_free(old);
    k->changes++;
}

/* ---- news ---- */

static char *key_of(enum known_source source, const cJSON *o)
{
    const char *name = json_str_or(o, "metadata.name", "");
    if (source == KNOWN_PODS)
        return xstrdup(json_str_or(o, "metadata.uid", ""));
    return source == KNOWN_NAMESPACES
               ? xstrdup(name)
               : xasprintf("%s/%s", json_str_or(o, "metadata.namespace", ""), name);
}

static struct map *map_of(const struct known *k, enum known_source source)
{
    return source == KNOWN_PODS ? k->pods : source == KNOWN_POLICIES ? k->policies : k->namespaces;
}

static void drop(struct known *k, enum known_source source, const char *key)
{
    if (source == KNOWN_PODS)
        drop_pod(k, key);
    else
        keep(k, map_of(k, source), key, NULL);
}

void known_take(struct known *k, enum known_source source, const cJSON *object, bool is_delete)
{
    SCOPED_FREE char *key = key_of(source, object);
    if (is_delete)
        drop(k, source, key);
    else if (source == KNOWN_PODS)
        take_pod(k, object);
    else
        keep(k, map_of(k, source), key,
             source == KNOWN_POLICIES ? policy_part(object) : namespace_part(object));
}

struct absence {
    struct map *present;
    char **gone; /* keys */
};

static bool note_absent(void *ctx, const char *key, void *value)
{
    struct absence *a = ctx;
    (void)value;
    if (!map_get(a->present, key))
        strv_add(&a->gone, xstrdup(key));
    return true;
}

void known_take_list(struct known *k, enum known_source source, const cJSON *const *objects,
                     size_t n)
{
    struct absence absence = {.present = map_new()};
    for (size_t i = 0; i < n; i++) {
        SCOPED_FREE char *key = key_of(source, objects[i]);
        map_put(absence.present, key, k);
        known_take(k, source, objects[i], false);
    }
    map_each(map_of(k, source), note_absent, &absence);
    for (char **key = absence.gone; key && *key; key++)
        drop(k, source, *key);
    strv_free(absence.gone);
    map_free(absence.present);
    k->is_listed[source] = true;
    k->changes++;
}

bool known_is_whole(const struct known *k)
{
    return k->is_listed[KNOWN_PODS] && k->is_listed[KNOWN_POLICIES] &&
           k->is_listed[KNOWN_NAMESPACES];
}

/* ---- sandboxes ---- */

static bool end_rival(void *ctx, const char *uid, void *value)
{
    const struct known_pod *keeper = ctx;
    struct known_pod *p = value;
    (void)uid;
    if (p != keeper && p->sandbox.netns && p->sandbox.ip == keeper->sandbox.ip)
        free(steal(&p->sandbox.netns));
    return true;
}

void known_attach(struct known *k, const char *uid, const char *netns, uint32_t ip,
                  const struct link_port *at)
{
    struct known_pod *p = pod_of(k, uid);
    free(p->sandbox.netns);
    p->sandbox =
        (struct known_sandbox){.netns = xstrdup(netns), .ip = ip, .at = *at, .since = ++k->changes};
    map_each(k->pods, end_rival, p);
}

void known_detach(struct known *k, const char *uid)
{
    struct known_pod *p = map_get(k->pods, uid);
    if (!p)
        return;
    k->changes += p->sandbox.netns != NULL;
    free(steal(&p->sandbox.netns));
    drop_unused(k, p);
}

/* ---- the whole ---- */

static bool add_pod(void *ctx, const char *uid, void *value)
{
    struct known_view *v = ctx;
    struct known_pod *p = value;
    bool is_own = p->sandbox.netns != NULL;
    (void)uid;
    if (p->version == 0 || !(is_own || p->elsewhere))
        return true;
    p->view = (struct policy_pod){
        .namespace_name = p->namespace_name,
        .labels = p->labels,
        .ports = p->ports,
        .ip = is_own ? p->sandbox.ip : p->elsewhere,
        .port = is_own ? p->sandbox.at.name : NULL,
        .mac = is_own ? p->sandbox.at.mac : NULL,
    };
    v->pods[v->n_pods++] = &p->view;
    return true;
}

static bool add_policy(void *ctx, const char *key, void *value)
{
    struct known_view *v = ctx;
    (void)key;
    v->policies[v->n_policies++] = value;
    return true;
}

struct known_view known_look(struct known *k)
{
    struct known_view v = {
        .pods = xcalloc(map_len(k->pods) + 1, sizeof *v.pods),
        .policies = xcalloc(map_len(k->policies) + 1, sizeof *v.policies),
    };
    map_each(k->pods, add_pod, &v);
    map_each(k->policies, add_policy, &v);
    return v;
}

void known_view_fini(struct known_view *v)
{
    free(v->pods);
    free(v->policies);
}

void known_init(struct known *k, const char *node)
{
    *k = (struct known){
        .node = node, .pods = map_new(), .policies = map_new(), .namespaces = map_new()};
}

static bool free_pod(void *ctx, const char *uid, void *value)
{
    (void)ctx, (void)uid;
    pod_free(value);
    return true;
}

static bool free_tree(void *ctx, const char *key, void *value)
{
    (void)ctx, (void)key;
    json_free(value);
    return true;
}

void known_fini(struct known *k)
{
    map_each(k->pods, free_pod, NULL);
    map_each(k->policies, free_tree, NULL);
    map_each(k->namespaces, free_tree, NULL);
    map_free(k->pods);
    map_free(k->policies);
    map_free(k->namespaces);
}
