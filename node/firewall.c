#include "node/firewall.h"

#include <string.h>

#include "apiserver/base/json.h"
#include "apiserver/base/log.h"
#include "apiserver/base/map.h"
#include "apiserver/base/mem.h"
#include "apiserver/base/thread.h"
#include "node/link.h"
#include "node/nft.h"
#include "node/policy.h"
#include "node/ranges.h"

#define INTERFACE "eth0" /* of every sandbox, as the engine calls it */
#define PAUSE_MS 200     /* between changes nobody waits for */
#define RETRY_MS 2000    /* after a failure */
#define AGAIN_MS 60000   /* the kernel is given the same once more, should somebody have taken it */
#define PATIENCE_MS 60000 /* of a sandbox that waits for its rules */

enum source { PODS, POLICIES, NAMESPACES, SOURCES };

struct record { /* of a Pod */
    char *uid, *namespace_name;
    cJSON *labels, *ports;
    uint64_t version;    /* 0 = the cluster has not told of it yet */
    bool is_there;       /* in the cluster */
    bool is_elsewhere;   /* not of this node, and its address is its own */
    uint32_t elsewhere;  /* that address, 0 = none */
    char *netns;         /* NULL = no sandbox is attached */
    uint32_t ip;         /* of the sandbox */
    struct link_port at; /* likewise */
    uint64_t since;      /* number of the change that attached it */
    bool is_selected;    /* where nothing is enforced */
    struct policy_pod view;
};

struct firewall {
    struct firewall_config config;
    struct reflector *reflectors[SOURCES];
    pthread_t thread;

    pthread_mutex_t lock; /* guards what follows */
    pthread_cond_t wake;
    struct map *pods, *policies, *namespaces; /* uid to record; NAMESPACE/NAME, name to trees */
    bool is_known[SOURCES];
    uint64_t wanted, tried, applied; /* numbers of changes */
    int waiting;
    char *trouble; /* of the last try, NULL = none */
    bool is_stopping;
};

static void change(struct firewall *f)
{
    f->wanted++;
    pthread_cond_broadcast(&f->wake);
}

/* ---- what is known of a Pod ---- */

static void record_free(struct record *r)
{
    free(r->uid);
    free(r->namespace_name);
    json_free(r->labels);
    json_free(r->ports);
    free(r->netns);
    free(r);
}

static struct record *record_of(struct firewall *f, const char *uid)
{
    struct record *r = map_get(f->pods, uid);
    if (!r) {
        r = xcalloc(1, sizeof *r);
        r->uid = xstrdup(uid);
        r->namespace_name = xstrdup("");
        map_put(f->pods, uid, r);
    }
    return r;
}

static void drop_unused(struct firewall *f, struct record *r)
{
    if (!r->is_there && !r->netns)
        record_free(map_del(f->pods, r->uid));
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
 * that it has given back. */
static bool has_address(const struct firewall *f, const cJSON *pod)
{
    const char *phase = json_str_or(pod, "status.phase", "");
    return !str_equal(json_str(pod, "spec.nodeName"), f->config.node) &&
           !json_bool_or(pod, "spec.hostNetwork", false) && strcmp(phase, "Succeeded") != 0 &&
           strcmp(phase, "Failed") != 0;
}

static bool is_as_before(const struct record *r, const cJSON *labels, uint32_t elsewhere)
{
    return r->version && r->elsewhere == elsewhere && (r->labels != NULL) == (labels != NULL) &&
           (!labels || json_equal(r->labels, labels));
}

/* Takes in a state of the Pod, unless a newer one is known. Ports of a Pod do not change. */
static void take_pod(struct firewall *f, const cJSON *pod)
{
    struct record *r = record_of(f, json_str_or(pod, "metadata.uid", ""));
    uint64_t version = 0;
    str_to_u64(json_str_or(pod, "metadata.resourceVersion", ""), &version);
    const cJSON *labels = json_at(pod, "metadata.labels");
    uint32_t elsewhere = has_address(f, pod) ? address_of(pod) : 0;
    r->is_there = true;
    if (version < r->version)
        return;
    bool is_same = is_as_before(r, labels, elsewhere);
    if (r->version == 0) {
        free(r->namespace_name);
        r->namespace_name = xstrdup(json_str_or(pod, "metadata.namespace", ""));
        r->ports = ports_of(pod);
    }
    r->version = version ? version : 1;
    r->elsewhere = elsewhere;
    if (is_same)
        return;
    json_free(r->labels);
    r->labels = json_copy(labels);
    change(f);
}

static void drop_pod(struct firewall *f, struct record *r)
{
    r->is_there = false;
    r->elsewhere = 0;
    drop_unused(f, r);
    change(f);
}

/* ---- the cluster's news ---- */

static void on_pod(void *ctx, const cJSON *pod, bool is_delete)
{
    struct firewall *f = ctx;
    pthread_mutex_lock(&f->lock);
    struct record *r = map_get(f->pods, json_str_or(pod, "metadata.uid", ""));
    if (!is_delete)
        take_pod(f, pod);
    else if (r)
        drop_pod(f, r);
    pthread_mutex_unlock(&f->lock);
}

struct names {
    char **v;
};

static bool add_name(void *ctx, const char *name, void *value)
{
    struct names *names = ctx;
    (void)value;
    strv_add(&names->v, xstrdup(name));
    return true;
}

/* Keys of a map that are not in a list of them. */
static char **absent(const struct map *m, char *const *present)
{
    struct names all = {0};
    struct map *set = map_new();
    char **gone = NULL;
    static char is_there;
    for (; present && *present; present++)
        map_put(set, *present, &is_there);
    map_each(m, add_name, &all);
    for (char **name = all.v; name && *name; name++) {
        if (!map_get(set, *name))
            strv_add(&gone, xstrdup(*name));
    }
    map_free(set);
    strv_free(all.v);
    return gone;
}

static void know(struct firewall *f, enum source s)
{
    f->is_known[s] = true;
    change(f);
}

static void on_pods(void *ctx, const cJSON *const *pods, size_t n, const char *version)
{
    struct firewall *f = ctx;
    struct names present = {0};
    (void)version;
    pthread_mutex_lock(&f->lock);
    for (size_t i = 0; i < n; i++) {
        take_pod(f, pods[i]);
        strv_add(&present.v, xstrdup(json_str_or(pods[i], "metadata.uid", "")));
    }
    char **gone = absent(f->pods, present.v);
    for (char **uid = gone; uid && *uid; uid++)
        drop_pod(f, map_get(f->pods, *uid));
    know(f, PODS);
    pthread_mutex_unlock(&f->lock);
    strv_free(gone);
    strv_free(present.v);
}

/* A tree under a key, or none. */
static void keep(struct firewall *f, struct map *m, const char *key, cJSON *take_tree)
{
    cJSON *old = take_tree ? map_put(m, key, take_tree) : map_del(m, key);
    json_free(old);
    change(f);
}

/* Policies and Namespaces: the parts of them that count, and under which key. */
struct kept {
    enum source source;
    char *(*key)(const cJSON *object);
    cJSON *(*part)(const cJSON *object);
};

static char *policy_key(const cJSON *policy)
{
    return xasprintf("%s/%s", json_str_or(policy, "metadata.namespace", ""),
                     json_str_or(policy, "metadata.name", ""));
}

static cJSON *policy_part(const cJSON *policy)
{
    cJSON *part = json_object();
    json_set_at(part, "metadata.namespace",
                json_string(json_str_or(policy, "metadata.namespace", "")));
    json_add(part, "spec", json_copy(json_get(policy, "spec")));
    if (policy_is_too_large(policy))
        log_warn("policy has more than %d rules, peers and ports, so it allows nothing "
                 "namespace=%s policy=%s",
                 POLICY_ENTRIES_MAX, json_str_or(policy, "metadata.namespace", ""),
                 json_str_or(policy, "metadata.name", ""));
    return part;
}

static char *namespace_key(const cJSON *o)
{
    return xstrdup(json_str_or(o, "metadata.name", ""));
}

static cJSON *namespace_part(const cJSON *o)
{
    const cJSON *labels = json_at(o, "metadata.labels");
    return labels ? json_copy(labels) : json_object();
}

static const struct kept kept_policies = {POLICIES, policy_key, policy_part};
static const struct kept kept_namespaces = {NAMESPACES, namespace_key, namespace_part};

static struct map *map_of(struct firewall *f, const struct kept *k)
{
    return k->source == POLICIES ? f->policies : f->namespaces;
}

static void on_kept(struct firewall *f, const struct kept *k, const cJSON *object, bool is_delete)
{
    SCOPED_FREE char *key = k->key(object);
    cJSON *part = is_delete ? NULL : k->part(object);
    pthread_mutex_lock(&f->lock);
    keep(f, map_of(f, k), key, part);
    pthread_mutex_unlock(&f->lock);
}

static void on_all_kept(struct firewall *f, const struct kept *k, const cJSON *const *objects,
                        size_t n)
{
    struct names present = {0};
    for (size_t i = 0; i < n; i++) {
        on_kept(f, k, objects[i], false);
        strv_add(&present.v, k->key(objects[i]));
    }
    pthread_mutex_lock(&f->lock);
    char **gone = absent(map_of(f, k), present.v);
    for (char **key = gone; key && *key; key++)
        keep(f, map_of(f, k), *key, NULL);
    know(f, k->source);
    pthread_mutex_unlock(&f->lock);
    strv_free(gone);
    strv_free(present.v);
}

static void on_policy(void *ctx, const cJSON *object, bool is_delete)
{
    on_kept(ctx, &kept_policies, object, is_delete);
}

static void on_policies(void *ctx, const cJSON *const *objects, size_t n, const char *version)
{
    (void)version;
    on_all_kept(ctx, &kept_policies, objects, n);
}

static void on_namespace(void *ctx, const cJSON *object, bool is_delete)
{
    on_kept(ctx, &kept_namespaces, object, is_delete);
}

static void on_namespaces(void *ctx, const cJSON *const *objects, size_t n, const char *version)
{
    (void)version;
    on_all_kept(ctx, &kept_namespaces, objects, n);
}

static const struct {
    const char *path;
    struct reflector_ops ops;
} sources[SOURCES] = {
    [PODS] = {"/api/v1/pods", {.on_replace = on_pods, .on_event = on_pod}},
    [POLICIES] = {"/apis/networking.k8s.io/v1/networkpolicies",
                  {.on_replace = on_policies, .on_event = on_policy}},
    [NAMESPACES] = {"/api/v1/namespaces", {.on_replace = on_namespaces, .on_event = on_namespace}},
};

/* ---- the world as the compiler wants it ---- */

struct gathering {
    const struct firewall *f;
    const struct policy_pod **pods;
    const cJSON **policies;
    size_t n_pods, n_policies;
};

/* A sandbox whose Pod the cluster has not told of yet has no rules: nothing passes. */
static bool gather_pod(void *ctx, const char *uid, void *value)
{
    struct gathering *g = ctx;
    struct record *r = value;
    (void)uid;
    bool is_own = r->netns != NULL;
    if (r->version == 0 || !(is_own || r->elsewhere))
        return true;
    r->view = (struct policy_pod){
        .namespace_name = r->namespace_name,
        .labels = r->labels,
        .ports = r->ports,
        .ip = is_own ? r->ip : r->elsewhere,
        .port = is_own ? r->at.name : NULL,
        .mac = is_own ? r->at.mac : NULL,
    };
    g->pods[g->n_pods++] = &r->view;
    return true;
}

static bool gather_policy(void *ctx, const char *key, void *value)
{
    struct gathering *g = ctx;
    (void)key;
    g->policies[g->n_policies++] = value;
    return true;
}

/* Lock held. */
static struct gathering gather(struct firewall *f)
{
    struct gathering g = {
        .f = f,
        .pods = xcalloc(map_len(f->pods) + 1, sizeof *g.pods),
        .policies = xcalloc(map_len(f->policies) + 1, sizeof *g.policies),
    };
    map_each(f->pods, gather_pod, &g);
    map_each(f->policies, gather_policy, &g);
    return g;
}

static void gathering_fini(struct gathering *g)
{
    free(g->pods);
    free(g->policies);
}

/* ---- nothing is enforced: who would be concerned ---- */

static bool is_selected(const struct gathering *g, const struct policy_pod *pod)
{
    for (size_t i = 0; i < g->n_policies; i++) {
        if (policy_selects(g->policies[i], pod))
            return true;
    }
    return false;
}

struct telling {
    const struct gathering *g;
    char **changed; /* uids */
};

static bool look_at(void *ctx, const char *uid, void *value)
{
    struct telling *t = ctx;
    struct record *r = value;
    bool is = r->netns && r->version && is_selected(t->g, &r->view);
    if (is != r->is_selected)
        strv_add(&t->changed, xstrdup(uid));
    r->is_selected = is;
    return true;
}

/* Lock held; uids whose Pods have become concerned, or are no longer. */
static char **find_selected(struct firewall *f)
{
    SCOPED(gathering_fini) struct gathering g = gather(f);
    struct telling t = {.g = &g};
    map_each(f->pods, look_at, &t);
    return t.changed;
}

static void tell_selected(struct firewall *f)
{
    pthread_mutex_lock(&f->lock);
    char **changed = find_selected(f);
    pthread_mutex_unlock(&f->lock);
    for (char **uid = changed; uid && *uid; uid++)
        f->config.on_selected(f->config.ctx, *uid);
    strv_free(changed);
}

/* ---- rules ---- */

static bool compile(struct firewall *f, struct buf *out)
{
    SCOPED(gathering_fini) struct gathering g = gather(f);
    return policy_compile(
        &(struct policy_world){
            .bridge = f->config.bridge,
            .policies = g.policies,
            .n_policies = g.n_policies,
            .pods = g.pods,
            .n_pods = g.n_pods,
            .namespaces = f->namespaces,
        },
        out);
}

/* Brings the kernel to what is known, unless it was given just that. */
static int apply(struct firewall *f, struct buf *known, bool is_again, struct err *err)
{
    SCOPED(buf_fini) struct buf rules = {0};
    pthread_mutex_lock(&f->lock);
    bool is_good = compile(f, &rules);
    pthread_mutex_unlock(&f->lock);
    if (!is_good)
        return err_set(err, ERR_TOO_LARGE, "the rules of all policies are larger than %zu bytes",
                       POLICY_RULES_MAX);
    if (!is_again && strcmp(buf_cstr(&rules), buf_cstr(known)) == 0)
        return 0;
    buf_fini(known);
    int rc = nft_run(buf_cstr(&rules), false, err);
    if (rc == 0)
        *known = steal(&rules);
    return rc;
}

static void settle(struct firewall *f, uint64_t number, int rc, const struct err *err)
{
    pthread_mutex_lock(&f->lock);
    if (rc < 0 && !str_equal(f->trouble, err_text(err)))
        log_error("network policies are not applied, those before stay, trying again: %s",
                  err_text(err));
    free(f->trouble);
    f->trouble = rc < 0 ? xstrdup(err_text(err)) : NULL;
    f->tried = number;
    if (rc == 0)
        f->applied = number;
    pthread_cond_broadcast(&f->wake);
    pthread_mutex_unlock(&f->lock);
}

static bool is_all_known(const struct firewall *f)
{
    return f->is_known[PODS] && f->is_known[POLICIES] && f->is_known[NAMESPACES];
}

/* Waits until there is something to do; the number of the newest change, 0 = stop. *is_again: it is
 * time to give the kernel what it should have. */
static uint64_t wait_for_work(struct firewall *f, int64_t last_ms, bool *is_again)
{
    const struct clock *clock = f->config.clock;
    pthread_mutex_lock(&f->lock);
    for (;;) {
        bool has_failed = f->applied<f->tried, is_news = f->wanted> f->tried;
        int64_t pause_ms = has_failed              ? RETRY_MS
                           : is_news && f->waiting ? 0
                           : is_news               ? PAUSE_MS
                                                   : AGAIN_MS;
        int64_t at_ms = is_all_known(f) ? last_ms + pause_ms : INT64_MAX;
        *is_again = !is_news && !has_failed;
        if (f->is_stopping || clock_monotonic_ms(clock) >= at_ms)
            break;
        thread_cond_wait_until(&f->wake, &f->lock, at_ms);
    }
    uint64_t number = f->is_stopping ? 0 : f->wanted;
    pthread_mutex_unlock(&f->lock);
    return number;
}

static void *run(void *arg)
{
    struct firewall *f = arg;
    SCOPED(buf_fini) struct buf known = {0};
    int64_t last_ms = 0;
    uint64_t number;
    bool is_again;
    while ((number = wait_for_work(f, last_ms, &is_again)) > 0) {
        SCOPED(err_fini) struct err err = {0};
        int rc = 0;
        if (f->config.is_enforced)
            rc = apply(f, &known, is_again, &err);
        else
            tell_selected(f);
        settle(f, number, rc, &err);
        last_ms = clock_monotonic_ms(f->config.clock);
    }
    return NULL;
}

/* ---- sandboxes ---- */

/* An address has one sandbox; whose was before has ended. */
struct rival {
    const struct record *keeper;
};

static bool end_rival(void *ctx, const char *uid, void *value)
{
    const struct rival *rival = ctx;
    struct record *r = value;
    (void)uid;
    if (r != rival->keeper && r->netns && r->ip == rival->keeper->ip)
        free(steal(&r->netns));
    return true;
}

static int find_sandbox(const struct firewall *f, const struct firewall_sandbox *s,
                        uint32_t *ret_ip, struct link_port *ret, struct err *err)
{
    struct range r;
    if (!ranges_read_cidr(s->ip, &r) || r.first != r.last)
        return err_set(err, ERR_UNAVAILABLE, "the sandbox has no address of IPv4");
    *ret_ip = r.first;
    if (!f->config.is_enforced)
        return 0;
    int rc = link_filter_bridge(f->config.bridge, err);
    return rc < 0 ? rc : link_find_port(s->netns, INTERFACE, f->config.bridge, ret, err);
}

/* Lock held. */
static void put_sandbox(struct firewall *f, struct record *r, const char *netns, uint32_t ip,
                        const struct link_port *at)
{
    free(r->netns);
    r->netns = xstrdup(netns);
    r->ip = ip;
    r->at = *at;
    map_each(f->pods, end_rival, &(struct rival){r});
    change(f);
    r->since = f->wanted;
}

int firewall_adopt(struct firewall *f, const char *uid, const struct firewall_sandbox *s,
                   struct err *err)
{
    struct link_port at = {0};
    uint32_t ip;
    int rc = find_sandbox(f, s, &ip, &at, err);
    if (rc < 0)
        return rc;
    pthread_mutex_lock(&f->lock);
    put_sandbox(f, record_of(f, uid), s->netns, ip, &at);
    pthread_mutex_unlock(&f->lock);
    return 0;
}

/* Lock held. Until the kernel has that change. */
static int wait_for(struct firewall *f, uint64_t number, struct err *err)
{
    int64_t end_ms = clock_monotonic_ms(f->config.clock) + PATIENCE_MS;
    f->waiting++;
    pthread_cond_broadcast(&f->wake);
    while (f->tried < number && !f->is_stopping && clock_monotonic_ms(f->config.clock) < end_ms)
        thread_cond_wait_until(&f->wake, &f->lock, end_ms);
    f->waiting--;
    if (f->applied >= number)
        return 0;
    return err_set(err, ERR_UNAVAILABLE, "network policies are not in force yet: %s",
                   f->trouble        ? f->trouble
                   : is_all_known(f) ? "they are being applied"
                                     : "the cluster has not told them");
}

static bool is_attached(const struct record *r, const struct firewall_sandbox *s)
{
    struct range ip;
    return r && r->netns && r->version && strcmp(r->netns, s->netns) == 0 &&
           ranges_read_cidr(s->ip, &ip) && ip.first == r->ip;
}

int firewall_attach(struct firewall *f, const cJSON *pod, const struct firewall_sandbox *s,
                    struct err *err)
{
    const char *uid = json_str_or(pod, "metadata.uid", "");
    struct link_port at = {0};
    uint32_t ip = 0;
    pthread_mutex_lock(&f->lock);
    bool is_there = is_attached(map_get(f->pods, uid), s);
    pthread_mutex_unlock(&f->lock);
    int rc = is_there ? 0 : find_sandbox(f, s, &ip, &at, err);
    if (rc < 0)
        return rc;
    pthread_mutex_lock(&f->lock);
    struct record *r = record_of(f, uid);
    if (!is_there) {
        take_pod(f, pod);
        put_sandbox(f, r, s->netns, ip, &at);
    }
    rc = wait_for(f, r->since, err);
    pthread_mutex_unlock(&f->lock);
    return rc;
}

void firewall_detach(struct firewall *f, const char *uid)
{
    pthread_mutex_lock(&f->lock);
    struct record *r = map_get(f->pods, uid);
    if (r && r->netns) {
        free(steal(&r->netns));
        drop_unused(f, r);
        change(f);
    }
    pthread_mutex_unlock(&f->lock);
}

bool firewall_is_open(struct firewall *f, const char *uid)
{
    pthread_mutex_lock(&f->lock);
    const struct record *r = map_get(f->pods, uid);
    bool is_open = r && r->is_selected;
    pthread_mutex_unlock(&f->lock);
    return is_open;
}

/* ---- life ---- */

/* The kernel is asked for what every ruleset has. */
static int try_rules(const char *bridge, struct err *err)
{
    SCOPED(buf_fini) struct buf rules = {0};
    struct map *namespaces = map_new();
    const struct policy_pod pod = {
        .namespace_name = "", .ip = 1, .port = "lo", .mac = "02:00:00:00:00:01"};
    const struct policy_pod *const pods[] = {&pod};
    policy_compile(
        &(struct policy_world){
            .bridge = bridge, .pods = pods, .n_pods = 1, .namespaces = namespaces},
        &rules);
    map_free(namespaces);
    return nft_run(buf_cstr(&rules), true, err);
}

static int prepare(const struct firewall_config *c, struct err *err)
{
    if (!c->is_enforced) {
        log_warn("network policies are NOT enforced on this node, as was asked for");
        return 0;
    }
    int rc = policy_can_name(c->bridge)
                 ? link_need_filter(err)
                 : err_set(err, ERR_INVALID, "rules cannot name the bridge %s", c->bridge);
    if (rc == 0)
        rc = try_rules(c->bridge, err);
    return rc < 0 ? err_wrap(err, "network policies cannot be enforced here "
                                  "(--allow-unenforced-policies runs Pods nevertheless)")
                  : 0;
}

int firewall_start(const struct firewall_config *config, struct firewall **ret, struct err *err)
{
    int rc = prepare(config, err);
    if (rc < 0)
        return rc;
    struct firewall *f = xcalloc(1, sizeof *f);
    f->config = *config;
    pthread_mutex_init(&f->lock, NULL);
    thread_cond_init(&f->wake);
    f->pods = map_new();
    f->policies = map_new();
    f->namespaces = map_new();
    *ret = f;
    return 0;
}

void firewall_watch(struct firewall *f)
{
    thread_start(&f->thread, "firewall", run, f);
    for (int s = 0; s < SOURCES; s++)
        f->reflectors[s] =
            reflector_start(f->config.kube, sources[s].path, NULL, NULL, &sources[s].ops, f);
}

static bool free_record(void *ctx, const char *uid, void *value)
{
    (void)ctx, (void)uid;
    record_free(value);
    return true;
}

static bool free_tree(void *ctx, const char *key, void *value)
{
    (void)ctx, (void)key;
    json_free(value);
    return true;
}

void firewall_stop(struct firewall *f)
{
    for (int s = 0; s < SOURCES; s++)
        reflector_stop(f->reflectors[s]);
    pthread_mutex_lock(&f->lock);
    f->is_stopping = true;
    pthread_cond_broadcast(&f->wake);
    pthread_mutex_unlock(&f->lock);
    pthread_join(f->thread, NULL);
}

void firewall_free(struct firewall *f)
{
    if (!f)
        return;
    map_each(f->pods, free_record, NULL);
    map_each(f->policies, free_tree, NULL);
    map_each(f->namespaces, free_tree, NULL);
    map_free(f->pods);
    map_free(f->policies);
    map_free(f->namespaces);
    pthread_mutex_destroy(&f->lock);
    pthread_cond_destroy(&f->wake);
    free(f->trouble);
    free(f);
}
