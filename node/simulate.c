/* A reflector brings Pods, a work queue carries out what pod.h decides, one call a step. The lock
 * guards what is known of the Pods and is never held over a call. What the cluster answered to a
 * write is taken in at once, so an event that is older than it changes nothing. */
#include "node/simulate.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "apiserver/base/json.h"
#include "apiserver/base/log.h"
#include "apiserver/base/loop.h"
#include "apiserver/base/map.h"
#include "apiserver/base/mem.h"
#include "node/address.h"
#include "node/register.h"

#define FULL_AGAIN_MS 1000 /* a Pod that found no room looks again */

struct node {
    char *name;
    char address[ADDRESS_TEXT_SIZE];
    int pods; /* bound to it, and on their way there */
    bool is_registered;
};

/* What was done so far, for the last line of the log. */
struct counts {
    int64_t bound, statuses, ended; /* Pods bound to a node, status writes, Pods deleted */
    int64_t refused;                /* calls that the cluster answered with an error */
};

struct simulation {
    struct simulation_config config;
    struct loop *loop, *node_loop;
    struct reflector *reflector;

    pthread_mutex_t lock; /* guards what follows, but the nodes' names and registration */
    struct map *pods;     /* key -> struct pod */
    struct map *by_name;  /* node's name -> struct node */
    struct node *nodes;
    struct address_space *addresses;
    struct counts counts;
};

static int64_t now_ms(const struct simulation *s)
{
    return clock_monotonic_ms(s->config.clock);
}

/* ---- what is known; lock held ---- */

static struct node *node_of(struct simulation *s, const struct pod *p)
{
    return p && *p->node ? map_get(s->by_name, p->node) : NULL;
}

static void forget(struct simulation *s, const char *key)
{
    struct pod *p = map_del(s->pods, key);
    struct node *node = node_of(s, p);
    if (node)
        node->pods--;
    if (p && p->ip)
        address_give_back(s->addresses, p->ip);
    pod_free(p);
}

static void remember(struct simulation *s, const char *key, struct pod *take)
{
    struct node *node = node_of(s, take);
    if (node)
        node->pods++;
    if (take->ip)
        address_take_this(s->addresses, take->ip);
    map_put(s->pods, key, take);
}

/* Pods of others, and those for which nothing is left to do. */
static bool is_ours(struct simulation *s, const struct pod *p)
{
    if (!*p->node)
        return s->config.pods.schedules && !p->is_terminating;
    if (!node_of(s, p))
        return false;
    return p->is_terminating || (p->stage != POD_DONE && p->stage != POD_FAILED);
}

static bool is_in_same_state(const struct pod *a, const struct pod *b)
{
    return strcmp(a->node, b->node) == 0 && a->stage == b->stage && a->restarts == b->restarts &&
           a->is_terminating == b->is_terminating && a->fault == b->fault;
}

/* The newest state of a Pod; an older one than is known is dropped. True when there may be
 * something to do. */
static bool take_in(struct simulation *s, const char *key, struct pod *take)
{
    struct pod *old = map_get(s->pods, key);
    bool is_same = old && strcmp(old->uid, take->uid) == 0;
    if (is_same && take->rev < old->rev) {
        pod_free(take);
        return false;
    }
    if (!is_ours(s, take)) {
        forget(s, key);
        pod_free(take);
        return false;
    }
    bool goes_on = is_same && is_in_same_state(old, take);
    take->since_ms = goes_on ? old->since_ms : now_ms(s);
    forget(s, key);
    remember(s, key, take);
    return !goes_on;
}

static char *key_of(const cJSON *tree)
{
    return xasprintf("%s/%s", json_str_or(tree, "metadata.namespace", ""),
                     json_str_or(tree, "metadata.name", ""));
}

/* ---- the cluster's news ---- */

static void on_event(void *ctx, const cJSON *object, bool is_delete)
{
    struct simulation *s = ctx;
    SCOPED_FREE char *key = key_of(object);
    struct pod *p = is_delete ? NULL : pod_new(object, &s->config.pods);
    bool has_work = false;
    pthread_mutex_lock(&s->lock);
    if (p)
        has_work = take_in(s, key, p);
    else
        forget(s, key);
    pthread_mutex_unlock(&s->lock);
    if (has_work)
        loop_add(s->loop, key);
    else if (is_delete)
        loop_forget(s->loop, key);
}

struct absence {
    struct map *present; /* keys of a list */
    struct pairs gone;   /* keys that are known and not in it */
};

static bool note_absent(void *ctx, const char *key, void *value)
{
    (void)value;
    struct absence *a = ctx;
    if (!map_get(a->present, key))
        pairs_add(&a->gone, key, "");
    return true;
}

static void on_replace(void *ctx, const cJSON *const *objects, size_t n, const char *version)
{
    (void)version;
    struct simulation *s = ctx;
    struct absence absence = {.present = map_new()};
    for (size_t i = 0; i < n; i++) {
        SCOPED_FREE char *key = key_of(objects[i]);
        map_put(absence.present, key, s);
        on_event(s, objects[i], false);
    }
    pthread_mutex_lock(&s->lock);
    map_each(s->pods, note_absent, &absence);
    for (size_t i = 0; i < absence.gone.n; i++)
        forget(s, absence.gone.v[i].name);
    pthread_mutex_unlock(&s->lock);
    pairs_fini(&absence.gone);
    map_free(absence.present);
    log_info("pods listed pods=%zu", n);
}

static const struct reflector_ops reflector_ops = {.on_replace = on_replace, .on_event = on_event};

/* ---- one step of one Pod ---- */

struct step {
    struct pod_plan plan;
    char *uid, *path;
    const char *method, *content_type;
    cJSON *body;
    struct node *node; /* of a binding */
    uint64_t rev;      /* of the Pod */
    char ip[ADDRESS_TEXT_SIZE];
};

static void step_fini(struct step *t)
{
    free(t->uid);
    free(t->path);
    json_free(t->body);
}

static char *path_of(const struct pod *p, const char *subresource)
{
    return kube_path(&(struct kube_place){.api = "/api/v1",
                                          .namespace_name = p->namespace_name,
                                          .resource = "pods",
                                          .name = p->name,
                                          .subresource = subresource});
}

/* The emptiest; NULL when all are full. */
static struct node *choose_node(struct simulation *s)
{
    struct node *best = NULL;
    for (int i = 0; i < s->config.nodes; i++) {
        struct node *n = &s->nodes[i];
        if (n->pods < s->config.pods_per_node && (!best || n->pods < best->pods))
            best = n;
    }
    return best;
}

static void prepare_unschedulable(const struct simulation *s, const struct pod *p,
                                  const char *problem, struct step *t)
{
    SCOPED_FREE char *why =
        xasprintf("0/%d nodes are available: %s (simulated)", s->config.nodes, problem);
    t->plan.act = POD_CALL_UNSCHEDULABLE;
    t->path = path_of(p, "status");
    t->method = "PATCH";
    t->content_type = KUBE_STRATEGIC_PATCH;
    t->body = pod_unschedulable_patch(p, why, clock_unix_s(s->config.clock));
}

/* node NULL: to none. */
static void move_to(struct simulation *s, struct pod *p, struct node *node)
{
    struct node *before = node_of(s, p);
    if (before)
        before->pods--;
    free(p->node);
    p->node = xstrdup(node ? node->name : "");
    if (node)
        node->pods++;
}

/* The Pod counts on its node from now on, so that it does so once whether its event or the call's
 * answer comes first. */
static void prepare_bind(struct simulation *s, struct pod *p, struct step *t)
{
    t->node = choose_node(s);
    if (t->node) {
        t->path = path_of(p, "binding");
        t->method = "POST";
        t->body = pod_binding(p, t->node->name);
        move_to(s, p, t->node);
    } else if (p->is_called_unschedulable) {
        t->plan = (struct pod_plan){.act = POD_WAIT, .wait_ms = FULL_AGAIN_MS};
    } else {
        prepare_unschedulable(s, p, "too many pods", t);
    }
}

static void prepare_enter(struct simulation *s, const struct pod *p, struct step *t)
{
    const struct node *node = node_of(s, p);
    if (p->stage == POD_NEW && node->pods > s->config.pods_per_node)
        t->plan.stage = POD_REFUSED;
    if (!p->ip && !address_take(s->addresses, t->ip))
        t->plan.stage = POD_REFUSED;
    t->path = path_of(p, "status");
    t->method = "PATCH";
    t->content_type = KUBE_STRATEGIC_PATCH;
    t->body =
        pod_stage_patch(p, t->plan.stage, t->ip, node->address, clock_unix_s(s->config.clock));
}

/* Lock held. */
static void prepare(struct simulation *s, struct pod *p, struct step *t)
{
    t->plan = pod_plan(p, &s->config.pods, now_ms(s));
    t->uid = xstrdup(p->uid);
    t->rev = p->rev;
    switch (t->plan.act) {
    case POD_WAIT:
        break;
    case POD_BIND:
        prepare_bind(s, p, t);
        break;
    case POD_CALL_UNSCHEDULABLE:
        prepare_unschedulable(s, p, "no node matches", t);
        break;
    case POD_ENTER:
        prepare_enter(s, p, t);
        break;
    case POD_END:
        t->path = path_of(p, NULL);
        t->method = "DELETE";
        t->body = pod_end_options(p);
        break;
    }
}

static void count(struct simulation *s, const struct step *t, int rc)
{
    struct counts *c = &s->counts;
    c->refused += rc < 0;
    if (rc == 0) {
        c->bound += t->plan.act == POD_BIND;
        c->statuses += t->plan.act == POD_ENTER || t->plan.act == POD_CALL_UNSCHEDULABLE;
        c->ended += t->plan.act == POD_END;
    }
}

/* An event of before the binding may have taken the node away again; a binding that failed takes it
 * away unless an event has brought news. */
static void settle_binding(struct simulation *s, struct pod *p, const struct step *t, int rc)
{
    if (rc == 0 && !*p->node)
        move_to(s, p, t->node);
    else if (rc < 0 && p->rev == t->rev)
        move_to(s, p, NULL);
}

/* What the call led to, with the Pod as the cluster has it now, if it said. */
static void conclude(struct simulation *s, const char *key, struct step *t, int rc,
                     const cJSON *answer)
{
    bool is_pod = rc == 0 && str_equal(json_str(answer, "kind"), "Pod");
    struct pod *written = is_pod ? pod_new(answer, &s->config.pods) : NULL;
    pthread_mutex_lock(&s->lock);
    struct pod *p = map_get(s->pods, key);
    bool is_same = p && strcmp(p->uid, t->uid) == 0;
    count(s, t, rc);
    if (t->node && is_same)
        settle_binding(s, p, t, rc);
    if (*t->ip)
        address_give_back(s->addresses, t->ip); /* the Pod takes it, if it was written there */
    if (written && is_same)
        take_in(s, key, steal(&written));
    pthread_mutex_unlock(&s->lock);
    pod_free(written);
}

/* The Pod is not what it was, or gone: its event brings the next look. */
static bool is_overtaken(int rc)
{
    return rc == -ERR_NOT_FOUND || rc == -ERR_CONFLICT;
}

static int work(void *ctx, const char *key, struct loop_result *ret)
{
    struct simulation *s = ctx;
    SCOPED(step_fini) struct step t = {0};
    SCOPED(json_free_p) cJSON *answer = NULL;
    SCOPED(err_fini) struct err err = {0};
    pthread_mutex_lock(&s->lock);
    struct pod *p = map_get(s->pods, key);
    if (p)
        prepare(s, p, &t);
    pthread_mutex_unlock(&s->lock);
    if (!t.method) {
        ret->again_after_ms = t.plan.wait_ms;
        return 0;
    }
    int rc = kube_do(
        s->config.kube,
        &(struct kube_call){
            .method = t.method, .path = t.path, .body = t.body, .content_type = t.content_type},
        &answer, &err);
    conclude(s, key, &t, rc, answer);
    if (rc < 0 && !is_overtaken(rc)) {
        log_warn("%s failed pod=%s, trying again: %s", t.method, key, err_text(&err));
        return rc;
    }
    /* What comes next has a time of its own; after other steps it is an event that brings it. */
    if (rc == 0 && (t.plan.act == POD_ENTER || t.plan.act == POD_BIND))
        ret->again_after_ms = 1;
    else if (t.plan.act == POD_CALL_UNSCHEDULABLE)
        ret->again_after_ms = FULL_AGAIN_MS;
    return 0;
}

/* ---- nodes ---- */

static int register_simulated(struct simulation *s, struct node *n, struct err *err)
{
    int rc = register_node(s->config.kube,
                           &(struct node_facts){.name = n->name,
                                                .address = n->address,
                                                .pods = s->config.pods_per_node,
                                                .is_simulated = true},
                           clock_unix_s(s->config.clock), err);
    n->is_registered = rc == 0;
    if (rc == 0)
        log_info("node registered node=%s", n->name);
    return rc;
}

static int node_work(void *ctx, const char *key, struct loop_result *ret)
{
    struct simulation *s = ctx;
    struct node *n = map_get(s->by_name, key);
    SCOPED(err_fini) struct err err = {0};
    int rc = n->is_registered ? 0 : register_simulated(s, n, &err);
    if (rc == 0)
        rc = register_renew(s->config.kube, n->name, s->config.lease_ms,
                            clock_unix_ms(s->config.clock), &err);
    if (rc < 0)
        log_warn("node not registered node=%s, trying again: %s", key, err_text(&err));
    ret->again_after_ms = s->config.lease_ms;
    return rc;
}

/* ---- life ---- */

static void make_nodes(struct simulation *s)
{
    s->nodes = xcalloc((size_t)s->config.nodes, sizeof *s->nodes);
    for (int i = 0; i < s->config.nodes; i++) {
        struct node *n = &s->nodes[i];
        n->name =
            s->config.nodes == 1 ? xstrdup(s->config.name) : xasprintf("%s-%d", s->config.name, i);
        address_of_node(i, n->address);
        map_put(s->by_name, n->name, n);
        loop_add(s->node_loop, n->name);
    }
}

struct simulation *simulation_start(const struct simulation_config *config)
{
    struct simulation *s = xcalloc(1, sizeof *s);
    s->config = *config;
    pthread_mutex_init(&s->lock, NULL);
    s->pods = map_new();
    s->by_name = map_new();
    s->addresses = address_space_new();
    s->loop = loop_new(&(struct loop_config){.name = "pods",
                                             .workers = config->workers,
                                             .clock = config->clock,
                                             .work = work,
                                             .ctx = s});
    s->node_loop = loop_new(&(struct loop_config){
        .name = "nodes", .workers = 1, .clock = config->clock, .work = node_work, .ctx = s});
    make_nodes(s);
    loop_start(s->node_loop);
    loop_start(s->loop);
    SCOPED_FREE char *own = xasprintf("spec.nodeName=%s", config->name);
    bool has_one = config->nodes == 1 && !config->pods.schedules;
    s->reflector = reflector_start(config->kube, "/api/v1/pods", NULL, has_one ? own : NULL,
                                   &reflector_ops, s);
    return s;
}

static bool free_pod(void *ctx, const char *key, void *value)
{
    (void)ctx, (void)key;
    pod_free(value);
    return true;
}

void simulation_stop(struct simulation *s)
{
    if (!s)
        return;
    reflector_stop(s->reflector);
    loop_free(s->loop);
    loop_free(s->node_loop);
    log_info("stopped bound=%" PRId64 " statuses=%" PRId64 " ended=%" PRId64 " refused=%" PRId64,
             s->counts.bound, s->counts.statuses, s->counts.ended, s->counts.refused);
    map_each(s->pods, free_pod, NULL);
    map_free(s->pods);
    map_free(s->by_name);
    for (int i = 0; i < s->config.nodes; i++)
        free(s->nodes[i].name);
    free(s->nodes);
    address_space_free(s->addresses);
    pthread_mutex_destroy(&s->lock);
    free(s);
}
