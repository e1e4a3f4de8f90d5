#include "node/firewall.h"

#include <string.h>

#include "apiserver/base/json.h"
#include "apiserver/base/log.h"
#include "apiserver/base/mem.h"
#include "apiserver/base/thread.h"
#include "node/known.h"
#include "node/nft.h"
#include "node/ranges.h"

#define INTERFACE "eth0" /* of every sandbox, as the engine calls it */
#define PAUSE_MS 200     /* between changes nobody waits for */
#define RETRY_MS 2000    /* after a failure */
#define AGAIN_MS 60000   /* the kernel is given the same once more, should somebody have taken it */
#define PATIENCE_MS 60000 /* of a sandbox that waits for its rules */

struct firewall {
    struct firewall_config config;
    struct reflector *reflectors[KNOWN_SOURCES];
    pthread_t thread;

    pthread_mutex_t lock; /* guards what follows */
    pthread_cond_t wake;
    struct known known;
    uint64_t tried, applied; /* changes of it */
    int waiting;
    char *trouble; /* of the last try, NULL = none */
    bool is_stopping;
};

/* ---- the cluster's news ---- */

static void take(struct firewall *f, enum known_source source, const cJSON *object, bool is_delete)
{
    pthread_mutex_lock(&f->lock);
    known_take(&f->known, source, object, is_delete);
    pthread_cond_broadcast(&f->wake);
    pthread_mutex_unlock(&f->lock);
}

static void take_list(struct firewall *f, enum known_source source, const cJSON *const *objects,
                      size_t n)
{
    pthread_mutex_lock(&f->lock);
    known_take_list(&f->known, source, objects, n);
    pthread_cond_broadcast(&f->wake);
    pthread_mutex_unlock(&f->lock);
}

static void on_pod(void *ctx, const cJSON *o, bool is_delete)
{
    take(ctx, KNOWN_PODS, o, is_delete);
}

static void on_pods(void *ctx, const cJSON *const *list, size_t n, const char *version)
{
    (void)version;
    take_list(ctx, KNOWN_PODS, list, n);
}

static void on_policy(void *ctx, const cJSON *o, bool is_delete)
{
    take(ctx, KNOWN_POLICIES, o, is_delete);
}

static void on_policies(void *ctx, const cJSON *const *list, size_t n, const char *version)
{
    (void)version;
    take_list(ctx, KNOWN_POLICIES, list, n);
}

static void on_namespace(void *ctx, const cJSON *o, bool is_delete)
{
    take(ctx, KNOWN_NAMESPACES, o, is_delete);
}

static void on_namespaces(void *ctx, const cJSON *const *list, size_t n, const char *version)
{
    (void)version;
    take_list(ctx, KNOWN_NAMESPACES, list, n);
}

static const struct {
    const char *path;
    struct reflector_ops ops;
} sources[KNOWN_SOURCES] = {
    [KNOWN_PODS] = {"/api/v1/pods", {.on_replace = on_pods, .on_event = on_pod}},
    [KNOWN_POLICIES] = {"/apis/networking.k8s.io/v1/networkpolicies",
                        {.on_replace = on_policies, .on_event = on_policy}},
    [KNOWN_NAMESPACES] = {"/api/v1/namespaces",
                          {.on_replace = on_namespaces, .on_event = on_namespace}},
};

/* ---- nothing is enforced: who would be concerned ---- */

static bool is_selected(const struct known_view *v, const struct policy_pod *pod)
{
    for (size_t i = 0; i < v->n_policies; i++) {
        if (policy_selects(v->policies[i], pod))
            return true;
    }
    return false;
}

struct telling {
    const struct known_view *view;
    char **changed; /* uids */
};

static bool look_at(void *ctx, const char *uid, void *value)
{
    struct telling *t = ctx;
    struct known_pod *p = value;
    bool is = p->sandbox.netns && p->version && is_selected(t->view, &p->view);
    if (is != p->is_selected)
        strv_add(&t->changed, xstrdup(uid));
    p->is_selected = is;
    return true;
}

/* Lock held; uids whose Pods have become concerned, or are no longer. */
static char **find_selected(struct firewall *f)
{
    SCOPED(known_view_fini) struct known_view view = known_look(&f->known);
    struct telling t = {.view = &view};
    map_each(f->known.pods, look_at, &t);
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
    SCOPED(known_view_fini) struct known_view view = known_look(&f->known);
    return policy_compile(
        &(struct policy_world){
            .bridge = f->config.bridge,
            .policies = view.policies,
            .n_policies = view.n_policies,
            .pods = view.pods,
            .n_pods = view.n_pods,
            .namespaces = f->known.namespaces,
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

/* Waits until there is something to do; the number of the newest change, 0 = stop. *is_again: it is
 * time to give the kernel what it should have. */
static uint64_t wait_for_work(struct firewall *f, int64_t last_ms, bool *is_again)
{
    const struct clock *clock = f->config.clock;
    pthread_mutex_lock(&f->lock);
    for (;;) {
        bool has_failed = f->applied<f->tried, is_news = f->known.changes> f->tried;
        int64_t pause_ms = has_failed              ? RETRY_MS
                           : is_news && f->waiting ? 0
                           : is_news               ? PAUSE_MS
                                                   : AGAIN_MS;
        int64_t at_ms = known_is_whole(&f->known) ? last_ms + pause_ms : INT64_MAX;
        *is_again = !is_news && !has_failed;
        if (f->is_stopping || clock_monotonic_ms(clock) >= at_ms)
            break;
        thread_cond_wait_until(&f->wake, &f->lock, at_ms);
    }
    uint64_t number = f->is_stopping ? 0 : f->known.changes;
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

int firewall_adopt(struct firewall *f, const char *uid, const struct firewall_sandbox *s,
                   struct err *err)
{
    struct link_port at = {0};
    uint32_t ip;
    int rc = find_sandbox(f, s, &ip, &at, err);
    if (rc < 0)
        return rc;
    pthread_mutex_lock(&f->lock);
    known_attach(&f->known, uid, s->netns, ip, &at);
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
                   f->trouble                  ? f->trouble
                   : known_is_whole(&f->known) ? "they are being applied"
                                               : "the cluster has not told them");
}

static bool is_attached(const struct known_pod *p, const struct firewall_sandbox *s)
{
    struct range ip;
    return p && p->sandbox.netns && p->version && strcmp(p->sandbox.netns, s->netns) == 0 &&
           ranges_read_cidr(s->ip, &ip) && ip.first == p->sandbox.ip;
}

int firewall_attach(struct firewall *f, const cJSON *pod, const struct firewall_sandbox *s,
                    struct err *err)
{
    const char *uid = json_str_or(pod, "metadata.uid", "");
    struct link_port at = {0};
    uint32_t ip = 0;
    pthread_mutex_lock(&f->lock);
    bool is_there = is_attached(map_get(f->known.pods, uid), s);
    pthread_mutex_unlock(&f->lock);
    int rc = is_there ? 0 : find_sandbox(f, s, &ip, &at, err);
    if (rc < 0)
        return rc;
    pthread_mutex_lock(&f->lock);
    if (!is_there) {
        known_take(&f->known, KNOWN_PODS, pod, false);
        known_attach(&f->known, uid, s->netns, ip, &at);
    }
    const struct known_pod *p = map_get(f->known.pods, uid);
    rc = wait_for(f, p ? p->sandbox.since : f->known.changes, err);
    pthread_mutex_unlock(&f->lock);
    return rc;
}

void firewall_detach(struct firewall *f, const char *uid)
{
    pthread_mutex_lock(&f->lock);
    known_detach(&f->known, uid);
    pthread_cond_broadcast(&f->wake);
    pthread_mutex_unlock(&f->lock);
}

bool firewall_is_open(struct firewall *f, const char *uid)
{
    pthread_mutex_lock(&f->lock);
    const struct known_pod *p = map_get(f->known.pods, uid);
    bool is_open = p && p->is_selected;
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
    known_init(&f->known, config->node);
    *ret = f;
    return 0;
}

void firewall_watch(struct firewall *f)
{
    thread_start(&f->thread, "firewall", run, f);
    for (int s = 0; s < KNOWN_SOURCES; s++)
        f->reflectors[s] =
            reflector_start(f->config.kube, sources[s].path, NULL, NULL, &sources[s].ops, f);
}

void firewall_stop(struct firewall *f)
{
    for (int s = 0; s < KNOWN_SOURCES; s++)
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
    known_fini(&f->known);
    pthread_mutex_destroy(&f->lock);
    pthread_cond_destroy(&f->wake);
    free(f->trouble);
    free(f);
}
