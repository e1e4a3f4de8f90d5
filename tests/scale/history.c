/* Reads everything that ever happened in the store of the etcd at -e, revision by revision, and
 * checks after each that nothing was lost and nothing is held twice:
 *
 *   a claim that names a Sandbox controls it, in that very revision;
 *   a claim keeps its Sandbox as long as that lives;
 *   a Sandbox belongs to one claim at most, for ever, and never goes back to a pool;
 *   a claim controls one Sandbox at most;
 *   no Sandbox of a claim goes while the claim stays (-k: it may, Sandboxes are deleted on
 * purpose).
 *
 * Then it prints how many claims there are, by how they got their Sandbox, and how many revisions a
 * claim cost. The store must not have been compacted. Exit code 0 = all of that held. */
#include <getopt.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>

#include "apiserver/base/clock.h"
#include "apiserver/base/json.h"
#include "apiserver/base/map.h"
#include "apiserver/base/mem.h"
#include "apiserver/base/str.h"
#include "apiserver/base/thread.h"
#include "storage/etcd.h"

#define CLAIMS "/registry/extensions.agents.x-k8s.io/sandboxclaims/"
#define SANDBOXES "/registry/agents.x-k8s.io/sandboxes/"
#define REPORTS_MAX 20
#define DEADLINE_MS 120000
#define COSTS_MAX 100

struct sandbox {
    char *uid, *owner; /* the controller's uid, "" = none */
    bool is_of_claim, was_of_pool, is_there;
    int64_t last_rev;
};
struct claim {
    char *uid, *sandbox; /* status.sandbox.name, "" = none */
    bool is_there, is_ending, was_warm, was_ready;
    unsigned cost; /* revisions, of the claim and of its Sandbox once it has one */
    int64_t last_rev;
};

static struct {
    pthread_mutex_t lock; /* guards reached and is_lost; the rest is the watch's thread's */
    pthread_cond_t moved;
    int64_t target, reached;
    bool is_lost;
    bool may_delete;
    struct map *claims, *sandboxes; /* by NAMESPACE/NAME */
    struct map *owners;             /* claim's uid -> key of its Sandbox */
    struct map *held;               /* Sandbox's uid -> uid of the claim that has it, for ever */
    struct map *touched_claims;     /* of the revision at hand; key -> claim */
    int64_t at;
    int64_t wrong, events;
} h = {.lock = PTHREAD_MUTEX_INITIALIZER};

__attribute__((format(printf, 1, 2))) static void wrong(const char *fmt, ...)
{
    if (h.wrong++ >= REPORTS_MAX)
        return;
    va_list ap;
    va_start(ap, fmt);
    printf("revision %" PRId64 ": ", h.at);
    vprintf(fmt, ap);
    putchar('\n');
    va_end(ap);
}

static void set(char **at, const char *value)
{
    free(*at);
    *at = xstrdup(value ? value : "");
}

static const cJSON *controller_of(const cJSON *tree)
{
    const cJSON *o;
    cJSON_ArrayForEach(o, json_at(tree, "metadata.ownerReferences"))
    {
        if (json_bool_or(o, "controller", false))
            return o;
    }
    return NULL;
}

static struct claim *claim_at(const char *key)
{
    struct claim *c = map_get(h.claims, key);
    if (!c) {
        c = xcalloc(1, sizeof *c);
        set(&c->uid, "");
        set(&c->sandbox, "");
        map_put(h.claims, key, c);
    }
    return c;
}

static struct sandbox *sandbox_at(const char *key)
{
    struct sandbox *s = map_get(h.sandboxes, key);
    if (!s) {
        s = xcalloc(1, sizeof *s);
        set(&s->uid, "");
        set(&s->owner, "");
        map_put(h.sandboxes, key, s);
    }
    return s;
}

/* The Sandbox that a claim names, in the claim's namespace. */
static struct sandbox *named_by(const char *claim_key, const char *name)
{
    const char *slash = strchr(claim_key, '/');
    SCOPED_FREE char *key = xasprintf("%.*s/%s", (int)(slash - claim_key), claim_key, name);
    return map_get(h.sandboxes, key);
}

static void spend(struct claim *c)
{
    if (c->last_rev == h.at)
        return;
    c->last_rev = h.at;
    c->cost++;
}

/* ---- one change ---- */

static void sandbox_gone(const char *key, struct sandbox *s)
{
    const char *held = map_get(h.owners, s->owner);
    if (s->is_of_claim && held && strcmp(held, key) == 0)
        free(map_del(h.owners, s->owner));
    s->is_there = false;
}

static bool has_uid(const struct claim *c, const char *uid)
{
    return c->is_there && strcmp(c->uid, uid) == 0;
}

struct search {
    const char *uid;
    struct claim *found;
};
static bool match_claim(void *ctx, const char *key, void *value)
{
    (void)key;
    struct search *s = ctx;
    if (has_uid(value, s->uid))
        s->found = value;
    return !s->found;
}

/* The claim named like the Sandbox, as cold ones are, else the one with that uid. */
static struct claim *claim_of(const char *key, const char *uid)
{
    struct claim *c = map_get(h.claims, key);
    if (c && has_uid(c, uid))
        return c;
    struct search s = {.uid = uid};
    map_each(h.claims, match_claim, &s);
    return s.found;
}

static void given_to(const char *key, struct sandbox *s, const char *owner)
{
    const char *before = map_get(h.held, s->uid), *other = map_get(h.owners, owner);
    if (before && strcmp(before, owner) != 0)
        wrong("Sandbox %s goes from claim %s to claim %s", key, before, owner);
    else if (!before)
        map_put(h.held, s->uid, xstrdup(owner));
    if (other && strcmp(other, key) != 0)
        wrong("claim %s has two Sandboxes, %s and %s", owner, other, key);
    else if (!other)
        map_put(h.owners, owner, xstrdup(key));
}

static void sandbox_put(const char *key, const cJSON *tree)
{
    struct sandbox *s = sandbox_at(key);
    const cJSON *controller = controller_of(tree);
    const char *uid = json_str_or(tree, "metadata.uid", "");
    const char *owner = json_str_or(controller, "uid", "");
    bool is_of_claim = str_equal(json_str(controller, "kind"), "SandboxClaim");
    if (s->is_there && strcmp(s->uid, uid) != 0)
        wrong("Sandbox %s has another uid without having gone", key);
    if (!s->is_there || strcmp(s->uid, uid) != 0)
        s->was_of_pool = false;
    if (s->is_there && s->is_of_claim && strcmp(s->owner, owner) != 0)
        wrong("Sandbox %s of claim %s goes to %s", key, s->owner, *owner ? owner : "nobody");
    s->is_there = true;
    s->is_of_claim = is_of_claim;
    s->was_of_pool = s->was_of_pool || str_equal(json_str(controller, "kind"), "SandboxWarmPool");
    set(&s->uid, uid);
    set(&s->owner, owner);
    if (!is_of_claim)
        return;
    given_to(key, s, owner);
    struct claim *c = claim_of(key, owner);
    if (c)
        spend(c);
}

static void sandbox_deleted(const char *key)
{
    struct sandbox *s = map_get(h.sandboxes, key);
    if (!s || !s->is_there)
        return;
    const struct claim *c = s->is_of_claim ? claim_of(key, s->owner) : NULL;
    if (c && !c->is_ending && !h.may_delete)
        wrong("Sandbox %s goes while its claim stays", key);
    sandbox_gone(key, s);
}

static bool is_ready(const cJSON *tree)
{
    const cJSON *c;
    cJSON_ArrayForEach(c, json_at(tree, "status.conditions"))
    {
        if (str_equal(json_str(c, "type"), "Ready"))
            return str_equal(json_str(c, "status"), "True");
    }
    return false;
}

static void claim_put(const char *key, const cJSON *tree)
{
    struct claim *c = claim_at(key);
    const char *uid = json_str_or(tree, "metadata.uid", "");
    const char *name = json_str_or(tree, "status.sandbox.name", "");
    const struct sandbox *before = *c->sandbox ? named_by(key, c->sandbox) : NULL;
    if (c->is_there && strcmp(c->uid, uid) != 0)
        wrong("claim %s has another uid without having gone", key);
    if (before && before->is_there && strcmp(before->owner, uid) == 0 &&
        strcmp(c->sandbox, name) != 0)
        wrong("claim %s leaves its Sandbox %s for \"%s\"", key, c->sandbox, name);
    c->is_there = true;
    c->is_ending = json_str(tree, "metadata.deletionTimestamp") != NULL;
    set(&c->uid, uid);
    set(&c->sandbox, name);
    spend(c);
    c->was_ready = c->was_ready || is_ready(tree);
    map_put(h.touched_claims, key, c);
}

static bool check_claim(void *ctx, const char *key, void *value)
{
    (void)ctx;
    struct claim *c = value;
    if (!c->is_there || !*c->sandbox)
        return true;
    const struct sandbox *s = named_by(key, c->sandbox);
    if (!s || !s->is_there)
        wrong("claim %s names Sandbox %s, which is not there", key, c->sandbox);
    else if (strcmp(s->owner, c->uid) != 0)
        wrong("claim %s names Sandbox %s, which belongs to \"%s\"", key, c->sandbox, s->owner);
    else
        c->was_warm = s->was_of_pool;
    return true;
}

static void end_revision(void)
{
    map_each(h.touched_claims, check_claim, NULL);
    map_free(h.touched_claims);
    h.touched_claims = map_new();
}

static void change(const struct store_event *e)
{
    SCOPED(json_free_p) cJSON *tree = NULL;
    bool is_claim = str_has_prefix(e->kv.key, CLAIMS),
         is_sandbox = str_has_prefix(e->kv.key, SANDBOXES);
    if (!is_claim && !is_sandbox)
        return;
    const char *key = e->kv.key + strlen(is_claim ? CLAIMS : SANDBOXES);
    if (!e->is_delete && json_parse(e->kv.value, e->kv.value_len, NULL, &tree, NULL) < 0) {
        wrong("%s is no JSON", key);
        return;
    }
    if (is_sandbox && tree)
        sandbox_put(key, tree);
    else if (is_sandbox)
        sandbox_deleted(key);
    else if (tree)
        claim_put(key, tree);
    else
        claim_at(key)->is_there = false;
}

static void on_events(void *ctx, struct store_event *events, size_t n, int64_t rev)
{
    (void)ctx;
    for (size_t i = 0; i < n; i++) {
        if (events[i].kv.mod_rev != h.at)
            end_revision();
        h.at = events[i].kv.mod_rev;
        h.events++;
        change(&events[i]);
    }
    end_revision(); /* whole revisions come */
    pthread_mutex_lock(&h.lock);
    h.reached = rev;
    pthread_cond_signal(&h.moved);
    pthread_mutex_unlock(&h.lock);
}

static void on_lost(void *ctx, const struct err *err, int64_t compact_rev)
{
    (void)ctx, (void)compact_rev;
    pthread_mutex_lock(&h.lock);
    printf("the history cannot be read: %s\n", err_text(err));
    h.is_lost = true;
    pthread_cond_signal(&h.moved);
    pthread_mutex_unlock(&h.lock);
}

/* ---- the whole ---- */

struct totals {
    int64_t claims, warm, cold, unbound, ready;
    int64_t warm_costs[COSTS_MAX], cold_costs[COSTS_MAX]; /* claims by cost */
};

static bool add_up(void *ctx, const char *key, void *value)
{
    struct totals *t = ctx;
    const struct claim *c = value;
    (void)key;
    if (!c->is_there)
        return true;
    unsigned cost = c->cost < COSTS_MAX ? c->cost : COSTS_MAX - 1;
    t->claims++;
    t->ready += c->was_ready;
    if (!*c->sandbox)
        t->unbound++;
    else if (c->was_warm)
        t->warm++, t->warm_costs[cost]++;
    else
        t->cold++, t->cold_costs[cost]++;
    return true;
}

static void print_costs(const char *what, const int64_t costs[COSTS_MAX])
{
    printf("# revisions per %s claim:", what);
    for (int i = 0; i < COSTS_MAX; i++) {
        if (costs[i])
            printf(" %d x%" PRId64, i, costs[i]);
    }
    putchar('\n');
}

static void report(void)
{
    struct totals t = {0};
    map_each(h.claims, add_up, &t);
    printf("# %" PRId64 " events up to revision %" PRId64 "\n", h.events, h.reached);
    print_costs("warm", t.warm_costs);
    print_costs("cold", t.cold_costs);
    printf("claims=%" PRId64 " warm=%" PRId64 " cold=%" PRId64 " unbound=%" PRId64 " ready=%" PRId64
           " wrong=%" PRId64 "\n",
           t.claims, t.warm, t.cold, t.unbound, t.ready, h.wrong);
}

static bool read_all(struct store *store)
{
    static const struct store_watch_ops ops = {.on_events = on_events, .on_lost = on_lost};
    SCOPED(err_fini) struct err err = {0};
    int64_t deadline_ms = clock_monotonic_ms(&clock_system) + DEADLINE_MS;
    if (store_revision(store, deadline_ms, &h.target, &err) < 0) {
        printf("etcd does not answer: %s\n", err_text(&err));
        return false;
    }
    struct store_watch *w = store_watch(store, "", 1, &ops, NULL);
    pthread_mutex_lock(&h.lock);
    while (h.reached < h.target && !h.is_lost && clock_monotonic_ms(&clock_system) < deadline_ms)
        thread_cond_wait_until(&h.moved, &h.lock, deadline_ms);
    bool is_whole = h.reached >= h.target;
    pthread_mutex_unlock(&h.lock);
    store_unwatch(store, w);
    return is_whole;
}

int main(int argc, char **argv)
{
    const char *endpoints[2] = {NULL, NULL};
    for (int c; (c = getopt(argc, argv, "e:k")) != -1;) {
        if (c == 'e')
            endpoints[0] = optarg;
        else if (c == 'k')
            h.may_delete = true;
        else
            return 2;
    }
    if (!endpoints[0]) {
        fprintf(stderr, "usage: history -e ETCD [-k]\n");
        return 2;
    }
    thread_cond_init(&h.moved);
    h.claims = map_new();
    h.sandboxes = map_new();
    h.owners = map_new();
    h.held = map_new();
    h.touched_claims = map_new();
    struct fetch *fetch = fetch_new();
    struct store *store = etcd_new(fetch, &(struct etcd_config){.endpoints = endpoints});
    bool is_whole = read_all(store);
    if (is_whole)
        report();
    store_free(store);
    fetch_free(fetch);
    return is_whole && h.wrong == 0 ? 0 : 1; /* the maps go with the process */
}
