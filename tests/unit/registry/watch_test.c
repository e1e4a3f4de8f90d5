/* Watches: start, filter, bookmarks, ends. Source: docs/kubernetes-api.md 24. */
#include <inttypes.h>
#include <stdio.h>

#include "apiserver/registry/bind.h"
#include "tests/lib/world.h"

static struct world w;

static void start(void)
{
    world_start(&w, NULL);
}

static void stop(void)
{
    world_stop(&w);
}

/* ---- a reader: watch_next until something comes, told by wake ---- */

struct reader {
    struct watch *watch;
    unsigned wakes; /* atomic */
};

static void wake(void *ctx)
{
    struct reader *r = ctx;
    __atomic_fetch_add(&r->wakes, 1, __ATOMIC_RELEASE);
}

static struct watch_request from(int64_t rev)
{
    return (struct watch_request){
        .kind = &kind_sandbox, .version = {READ_AT_LEAST, rev}, .deadline_ms = world_deadline()};
}

static struct watch_request initial(void)
{
    return (struct watch_request){.kind = &kind_sandbox,
                                  .send_initial = true,
                                  .send_initial_end = true,
                                  .deadline_ms = world_deadline()};
}

static void open_watch(struct reader *r, const struct watch_request *req)
{
    SCOPED(err_fini) struct err err = {0};
    *r = (struct reader){0};
    int rc = registry_watch(w.registry, req, wake, r, &r->watch, &err);
    ck_assert_msg(rc == 0, "%s", err_text(&err));
}

/* Waits for the next event: 1, or -1 at the end. Relies on wake alone once watch_next has said
 * 0. */
static int next(struct reader *r, struct watch_event *ret)
{
    for (int i = 0; i < 5000; i++) {
        unsigned before = __atomic_load_n(&r->wakes, __ATOMIC_ACQUIRE);
        int rc = watch_next(r->watch, ret);
        if (rc != 0)
            return rc;
        for (; i < 5000 && __atomic_load_n(&r->wakes, __ATOMIC_ACQUIRE) == before; i++)
            sleep_ms(1);
    }
    ck_abort_msg("no event within 5 s");
    return 0;
}

/* What comes, as text: A:name@rev M:... D:... B@rev I@rev (end of the initial events) E:text |,
 * until n events or the end. */
static const char *read_events(struct reader *r, size_t n)
{
    static char text[4000];
    text[0] = '\0';
    for (size_t i = 0; i < n; i++) {
        struct watch_event e = {0};
        size_t len = strlen(text);
        if (next(r, &e) < 0) {
            snprintf(text + len, sizeof text - len, "%s|", i ? " " : "");
            break;
        }
        if (e.type == WATCH_ERROR)
            snprintf(text + len, sizeof text - len, "%sE:%s", i ? " " : "", err_text(&e.err));
        else if (e.type == WATCH_BOOKMARK)
            snprintf(text + len, sizeof text - len, "%s%c@%lld", i ? " " : "",
                     e.is_initial_end ? 'I' : 'B', (long long)e.rev);
        else
            snprintf(text + len, sizeof text - len, "%s%c:%s@%lld", i ? " " : "", "AMD"[e.type],
                     e.object->name, (long long)e.object->rev);
        watch_event_fini(&e);
    }
    return text;
}

static void nothing(struct reader *r)
{
    struct watch_event e;
    ck_assert_int_eq(watch_next(r->watch, &e), 0);
}

/* What watch_each_change says, in the words of read_events, while there is room for another. */
struct changes {
    char text[400];
    size_t room;
};

static bool put_change(void *ctx, enum watch_type type, const struct object *o)
{
    struct changes *c = ctx;
    size_t len = strlen(c->text);
    snprintf(c->text + len, sizeof c->text - len, "%s%c:%s@%lld", len ? " " : "", "AMD"[type],
             o -> name, (long long)o -> rev);
    return --c->room > 0;
}

static const char *changes(struct reader *r, size_t room)
{
    static struct changes c;
    c = (struct changes){.room = room};
    watch_each_change(r->watch, put_change, &c);
    return c.text;
}

/* Story of the recordings: a and b made, a leaves and re-enters k=1, b gets a finalizer, is deleted
 * and released, c comes and goes. Revisions 2 to 12. */
static void tell_story(void)
{
    object_unref(world_create(&w, "ns", "a", "\"labels\":{\"k\":\"1\"}")); /* 2 */
    object_unref(world_create(&w, "ns", "b", "\"labels\":{\"k\":\"2\"}")); /* 3 */
    object_unref(world_set(&w, "ns", "a", "spec.service", "true"));        /* 4 */
    struct write_options opts = world_opts();
    struct object *o = NULL;
    ck_assert_int_eq(world_try_set(&w, "ns", "a", "status.service", "\"a\"", &opts, true, &o, NULL),
                     0); /* 5 */
    object_unref(o);
    object_unref(world_set(&w, "ns", "a", "metadata.labels.k", "\"2\""));          /* 6 */
    object_unref(world_set(&w, "ns", "a", "metadata.labels.k", "\"1\""));          /* 7 */
    object_unref(world_set(&w, "ns", "a", "metadata.labels.k", "\"1\""));          /* nothing */
    object_unref(world_set(&w, "ns", "b", "metadata.finalizers", "[\"x.io/f\"]")); /* 8 */
    world_delete(&w, "ns", "b");                                                   /* 9 */
    object_unref(world_set(&w, "ns", "b", "metadata.finalizers", "null"));         /* 10 */
    object_unref(world_create(&w, "ns", "c", ""));                                 /* 11 */
    world_delete(&w, "ns", "c");                                                   /* 12 */
}

static const struct {
    const char *label, *field, *namespace_name;
    int64_t rev;
    size_t n;
    const char *events;
} stories[] = {
    {"", "", NULL, 1, 11, "A:a@2 A:b@3 M:a@4 M:a@5 M:a@6 M:a@7 M:b@8 M:b@9 D:b@10 A:c@11 D:c@12"},
    {"", "", "ns", 7, 5, "M:b@8 M:b@9 D:b@10 A:c@11 D:c@12"},
    {"", "", "other", 1, 0, ""},
    {"k=1", "", NULL, 1, 5, "A:a@2 M:a@4 M:a@5 D:a@6 A:a@7"},
    {"k=2", "", NULL, 1, 6, "A:b@3 A:a@6 D:a@7 M:b@8 M:b@9 D:b@10"},
    {"!k", "", NULL, 1, 2, "A:c@11 D:c@12"},
    {"", "metadata.name=b", NULL, 1, 4, "A:b@3 M:b@8 M:b@9 D:b@10"},
    {"", "metadata.name!=a", NULL, 1, 6, "A:b@3 M:b@8 M:b@9 D:b@10 A:c@11 D:c@12"},
    {"", "", NULL, 12, 0, ""},
};

/* The same events whether they are read from history or as they happen, or after a restart of the
 * server and all changes in one go. */
START_TEST(test_story)
{
    struct reader live, past, restarted;
    for (int pass = 0; pass < 3; pass++) {
        struct reader *r = pass == 0 ? &live : pass == 1 ? &past : &restarted;
        struct watch_request req = from(stories[_i].rev);
        req.namespace_name = stories[_i].namespace_name;
        ck_assert_int_eq(
            selector_parse(stories[_i].label, stories[_i].field, &req.take_selector, NULL), 0);
        if (pass == 2) {
            world_stop_registry(&w);
            world_start_registry(&w);
        }
        open_watch(r, &req);
        if (pass == 0)
            tell_story();
        ck_assert_str_eq(pass < 2 ? read_events(r, stories[_i].n) : changes(r, 99),
                         stories[_i].events);
        nothing(r);
        watch_close(r->watch);
    }
}
END_TEST

/* DELETED out of a selection has the old content at the new revision; a deletion the last state at
 * its revision. */
START_TEST(test_deleted_contents)
{
    tell_story();
    struct watch_request req = from(5);
    ck_assert_int_eq(selector_parse("k=1", NULL, &req.take_selector, NULL), 0);
    struct reader r;
    open_watch(&r, &req);
    struct watch_event e;
    ck_assert_int_eq(next(&r, &e), 1);
    ck_assert_int_eq(e.type, WATCH_DELETED);
    ck_assert_str_eq(pairs_get(&e.object->labels, "k"), "1");
    SCOPED(json_free_p) cJSON *tree = object_tree(e.object);
    ck_assert_str_eq(json_str(tree, "metadata.resourceVersion"), "6");
    watch_event_fini(&e);
    watch_close(r.watch);
    req = from(9);
    open_watch(&r, &req);
    ck_assert_int_eq(next(&r, &e), 1);
    ck_assert_int_eq(e.type, WATCH_DELETED);
    ck_assert(e.object->is_terminating);
    ck_assert_int_eq(e.object->rev, 10);
    watch_event_fini(&e);
    watch_close(r.watch);
}
END_TEST

START_TEST(test_initial)
{
    object_unref(world_create(&w, "ns", "b", "\"labels\":{\"k\":\"1\"}"));
    object_unref(world_create(&w, "ns", "a", ""));
    object_unref(world_create(&w, "z", "c", "\"labels\":{\"k\":\"1\"}"));
    struct watch_request req = initial();
    struct reader r;
    open_watch(&r, &req);
    object_unref(world_create(&w, "ns", "d", ""));
    world_delete(&w, "ns", "a");
    ck_assert_str_eq(read_events(&r, 6), "A:a@3 A:b@2 A:c@4 I@4 A:d@5 D:a@6");
    watch_close(r.watch);
    req = initial();
    req.namespace_name = "ns";
    req.send_initial_end = false;
    ck_assert_int_eq(selector_parse("k=1", NULL, &req.take_selector, NULL), 0);
    open_watch(&r, &req);
    ck_assert_str_eq(read_events(&r, 1), "A:b@2");
    nothing(&r);
    watch_close(r.watch);
    req = initial();
    req.kind = &kind_sandbox_claim;
    req.version = (struct read_version){READ_ANY, 0};
    open_watch(&r, &req);
    ck_assert_str_eq(read_events(&r, 1), "I@6"); /* the marker at once, also for nothing */
    watch_close(r.watch);
}
END_TEST

/* Closing with initial events unread frees them (the leak checker looks). */
START_TEST(test_close_early)
{
    object_unref(world_create(&w, "ns", "a", ""));
    object_unref(world_create(&w, "ns", "b", ""));
    struct watch_request req = initial();
    struct reader r;
    open_watch(&r, &req);
    ck_assert_str_eq(read_events(&r, 1), "A:a@2");
    watch_close(r.watch);
    watch_close(NULL);
}
END_TEST

START_TEST(test_from_now)
{
    object_unref(world_create(&w, "ns", "a", ""));
    struct watch_request req = from(0);
    req.version = (struct read_version){READ_LATEST, 0};
    struct reader r;
    open_watch(&r, &req);
    nothing(&r);
    object_unref(world_create(&w, "ns", "b", ""));
    ck_assert_str_eq(read_events(&r, 1), "A:b@3");
    watch_close(r.watch);
}
END_TEST

START_TEST(test_future)
{
    struct watch_request req = from(3);
    req.bookmarks = true;
    struct reader r;
    open_watch(&r, &req);
    nothing(&r);
    object_unref(world_create(&w, "ns", "a", ""));
    object_unref(world_create(&w, "ns", "b", ""));
    object_unref(world_create(&w, "ns", "c", ""));
    ck_assert_str_eq(read_events(&r, 1), "A:c@4"); /* only what is newer than 3 */
    watch_close(r.watch);
    req = initial();
    req.version = (struct read_version){READ_AT_LEAST, 1000};
    open_watch(&r, &req);
    struct watch_event e;
    ck_assert_int_eq(next(&r, &e), 1);
    ck_assert_int_eq(e.type, WATCH_ERROR);
    ck_assert_int_eq(e.err.code, ERR_TIMEOUT);
    ck_assert_str_eq(err_text(&e.err), "Timeout: Too large resource version: 1000, current: 4");
    ck_assert_str_eq(e.err.causes[0].reason, "ResourceVersionTooLarge");
    watch_event_fini(&e);
    ck_assert_int_eq(next(&r, &e), -1);
    watch_close(r.watch);
}
END_TEST

/* ---- history that does not reach ---- */

START_TEST(test_too_old)
{
    world_stop_registry(&w);
    w.config.history_events = 3;
    world_start_registry(&w);
    tell_story();
    struct watch_request req = from(8);
    struct reader r;
    open_watch(&r, &req);
    ck_assert_str_eq(read_events(&r, 2), "E:too old resource version: 8 (9) |");
    watch_close(r.watch);
    req = from(9);
    open_watch(&r, &req);
    ck_assert_str_eq(read_events(&r, 3), "D:b@10 A:c@11 D:c@12");
    watch_close(r.watch);
}
END_TEST

START_TEST(test_history_bytes)
{
    world_stop_registry(&w);
    w.config.history_bytes = 2000; /* the dead states of two or three changes */
    world_start_registry(&w);
    tell_story();
    struct watch_request req = from(2);
    struct reader r;
    open_watch(&r, &req);
    ck_assert(strncmp(read_events(&r, 2), "E:too old resource version: 2 (", 31) == 0);
    watch_close(r.watch);
    req = from(11);
    open_watch(&r, &req);
    ck_assert_str_eq(read_events(&r, 1), "D:c@12");
    watch_close(r.watch);
}
END_TEST

/* A reader that does not come is told that it is over, and its memory does not grow. */
START_TEST(test_cut_off)
{
    world_stop_registry(&w);
    w.config.history_events = 4;
    world_start_registry(&w);
    struct watch_request req = from(1);
    struct reader slow;
    open_watch(&slow, &req); /* never read: no wake is due but the one of the end */
    object_unref(world_create(&w, "ns", "a", ""));
    for (int i = 0; i < 10; i++)
        object_unref(world_set(&w, "ns", "a", "metadata.annotations.i", i % 2 ? "\"1\"" : "\"2\""));
    for (int i = 0; i < 1000 && __atomic_load_n(&slow.wakes, __ATOMIC_ACQUIRE) == 0; i++)
        sleep_ms(1);
    ck_assert_uint_eq(__atomic_load_n(&slow.wakes, __ATOMIC_ACQUIRE), 1);
    ck_assert_str_eq(read_events(&slow, 1), "|");
    watch_close(slow.watch);
}
END_TEST

START_TEST(test_compacted_before_restart)
{
    tell_story();
    world_stop_registry(&w);
    ck_assert_int_eq(store_compact(w.store, 8, world_deadline(), NULL), 0);
    world_start_registry(&w);
    struct watch_request req = from(3);
    struct reader r;
    open_watch(&r, &req);
    ck_assert(strncmp(read_events(&r, 2), "E:too old resource version: 3 (", 31) == 0);
    watch_close(r.watch);
    req = from(10);
    open_watch(&r, &req);
    ck_assert_str_eq(read_events(&r, 2), "A:c@11 D:c@12");
    watch_close(r.watch);
    object_unref(world_create(&w, "ns", "n", ""));
    SCOPED(object_unref_p) struct object *o = world_get(&w, "ns", "n");
    ck_assert_ptr_nonnull(o);
}
END_TEST

START_TEST(test_all_compacted_before_restart)
{
    tell_story();
    world_stop_registry(&w);
    ck_assert_int_eq(store_compact(w.store, 12, world_deadline(), NULL), 0);
    world_start_registry(&w);
    struct watch_request req = from(12);
    struct reader r;
    open_watch(&r, &req);
    object_unref(world_create(&w, "ns", "n", ""));
    ck_assert_str_eq(read_events(&r, 1), "A:n@13");
    watch_close(r.watch);
}
END_TEST

/* The store forgets what was not seen yet; returns its revision. */
static int64_t lose_watch(void)
{
    memstore_set_watch_down(w.store, true);
    const struct store_op op = {.key = "/elsewhere", .value = "x", .value_len = 1};
    const struct store_txn txn = {.ops = &op, .n_ops = 1};
    int64_t rev = 0;
    for (int i = 0; i < 5; i++) {
        SCOPED(store_txn_result_fini) struct store_txn_result res = {0};
        ck_assert_int_eq(store_txn(w.store, &txn, world_deadline(), &res, NULL), 0);
        rev = res.rev;
    }
    for (int i = 0; i < 5000 && registry_is_synced(w.registry); i++)
        sleep_ms(1);
    ck_assert(!registry_is_synced(w.registry));
    ck_assert_int_eq(store_compact(w.store, rev, world_deadline(), NULL), 0);
    memstore_set_watch_down(w.store, false);
    return rev;
}

/* Everything is loaded anew, watches start over. */
START_TEST(test_lost)
{
    object_unref(world_create(&w, "ns", "a", ""));
    struct watch_request req = from(1), claims = from(1);
    claims.kind = &kind_sandbox_claim;
    struct reader r, c;
    open_watch(&r, &req);
    open_watch(&c, &claims);
    ck_assert_str_eq(read_events(&r, 1), "A:a@2");
    nothing(&r);
    nothing(&c);
    int64_t rev = lose_watch();
    ck_assert_str_eq(read_events(&r, 2), "E:too old resource version: 2 (7) |");
    ck_assert_str_eq(read_events(&c, 2), "E:too old resource version: 1 (7) |");
    watch_close(r.watch);
    watch_close(c.watch);
    world_wait_rev(&w, rev);
    SCOPED(object_unref_p) struct object *o = world_get(&w, "ns", "a");
    ck_assert_int_eq(o->rev, 2);
    object_unref(world_create(&w, "ns", "b", ""));
    req = from(rev);
    open_watch(&r, &req);
    ck_assert_str_eq(read_events(&r, 1), "A:b@8");
    watch_close(r.watch);
}
END_TEST

static struct reader loading; /* with a watch: read from while the registry loads */
static struct watch_event heard;

/* Asked of the loaded objects, once they are in the tables. */
static bool listen_at_load(void *ctx, const cJSON *member, struct bind_member *ret)
{
    (void)ctx, (void)member, (void)ret;
    if (loading.watch)
        ck_assert_int_eq(next(&loading, &heard), 1);
    return false;
}

static struct bind_plan *no_plan(void *ctx, struct registry *r, const cJSON *claim)
{
    (void)ctx, (void)r, (void)claim;
    return NULL;
}

/* Nor is a watch told meanwhile that it has everything. */
START_TEST(test_lost_before_bookmark)
{
    const struct bind_ops ops = {.claim = &kind_sandbox_claim,
                                 .member = &kind_sandbox,
                                 .member_label = "x",
                                 .describe = listen_at_load,
                                 .plan = no_plan};
    struct watch_request req = from(1);
    req.bookmarks = true;
    world_stop(&w);
    world_start(&w, &(struct registry_config){.bookmark_period_ms = 1, .bind = &ops});
    object_unref(world_create(&w, "ns", "a", "\"labels\":{\"x\":\"\"}"));
    open_watch(&loading, &req);
    ck_assert_str_eq(read_events(&loading, 1), "A:a@2");
    world_wait_rev(&w, lose_watch());
    ck_assert_int_eq(heard.type, WATCH_ERROR);
    watch_event_fini(&heard);
    watch_close(loading.watch);
}
END_TEST

/* ---- bookmarks, time-outs, stop ---- */

START_TEST(test_bookmarks)
{
    world_stop_registry(&w);
    w.config.bookmark_period_ms = 100;
    world_start_registry(&w);
    struct watch_request req = from(1), quiet = from(1);
    req.bookmarks = true;
    struct reader r, q;
    open_watch(&q, &quiet);
    open_watch(&r, &req);
    ck_assert_str_eq(read_events(&r, 1), "B@1");
    const struct store_op op = {.key = "/elsewhere", .value = "x", .value_len = 1};
    const struct store_txn txn = {.ops = &op, .n_ops = 1};
    SCOPED(store_txn_result_fini) struct store_txn_result res = {0};
    ck_assert_int_eq(store_txn(w.store, &txn, world_deadline(), &res, NULL), 0);
    world_wait_rev(&w, res.rev);
    ck_assert_str_eq(read_events(&r, 1), "B@2"); /* an idle resource advances */
    object_unref(world_create(&w, "ns", "a", ""));
    ck_assert_str_eq(read_events(&r, 2), "A:a@3 B@3");
    ck_assert_str_eq(read_events(&q, 1), "A:a@3"); /* nobody asked for bookmarks here */
    nothing(&q);
    watch_close(r.watch);
    watch_close(q.watch);
}
END_TEST

START_TEST(test_timeout)
{
    struct watch_request req = from(1);
    req.timeout_ms = 100;
    req.bookmarks = true; /* there is no time for one */
    struct reader r;
    open_watch(&r, &req);
    int64_t before_ms = clock_monotonic_ms(&clock_system);
    ck_assert_str_eq(read_events(&r, 1), "|");
    ck_assert_int_ge(clock_monotonic_ms(&clock_system) - before_ms, 80);
    watch_close(r.watch);
    req.timeout_ms = 2200;
    open_watch(&r, &req);
    ck_assert_str_eq(read_events(&r, 2), "B@1 |"); /* one before the end */
    watch_close(r.watch);
}
END_TEST

START_TEST(test_stop)
{
    struct watch_request req = from(1);
    struct reader r;
    open_watch(&r, &req);
    nothing(&r);
    object_unref(world_create(&w, "ns", "g", ""));
    registry_stop(w.registry); /* over: what was not taken is not told any more */
    ck_assert_str_eq(read_events(&r, 1), "|");
    watch_close(r.watch);
    struct watch *none = NULL;
    ck_assert_int_lt(registry_watch(w.registry, &req, wake, &r, &none, NULL), 0);
}
END_TEST

/* Only watches that want something are woken, and only once until they have read all. */
START_TEST(test_wakes)
{
    struct watch_request req = from(1), other = from(1);
    other.namespace_name = "other";
    struct reader r, o;
    open_watch(&r, &req);
    open_watch(&o, &other);
    nothing(&r);
    nothing(&o);
    for (int i = 0; i < 5; i++) {
        char name[2] = {(char)('a' + i), '\0'};
        object_unref(world_create(&w, "ns", name, ""));
    }
    for (int i = 0; i < 1000 && __atomic_load_n(&r.wakes, __ATOMIC_ACQUIRE) == 0; i++)
        sleep_ms(1);
    ck_assert_uint_eq(__atomic_load_n(&r.wakes, __ATOMIC_ACQUIRE), 1);
    ck_assert_uint_eq(__atomic_load_n(&o.wakes, __ATOMIC_ACQUIRE), 0);
    ck_assert_str_eq(read_events(&r, 5), "A:a@2 A:b@3 A:c@4 A:d@5 A:e@6");
    nothing(&r);
    watch_close(r.watch);
    watch_close(o.watch);
}
END_TEST

/* What comes first is not a change, and what follows is taken up to where there is no room. */
START_TEST(test_each_change)
{
    tell_story();
    struct watch_request req = initial();
    struct reader r;
    open_watch(&r, &req);
    ck_assert_str_eq(changes(&r, 9), "");
    ck_assert_str_eq(read_events(&r, 2), "A:a@7 I@12");
    object_unref(world_create(&w, "ns", "d", "")); /* 13 */
    object_unref(world_create(&w, "ns", "e", "")); /* 14 */
    object_unref(world_create(&w, "ns", "f", "")); /* 15 */
    ck_assert_str_eq(changes(&r, 1), "A:d@13");
    ck_assert_str_eq(read_events(&r, 1), "A:e@14");
    ck_assert_str_eq(changes(&r, 9), "A:f@15");
    ck_assert_str_eq(changes(&r, 9), "");
    nothing(&r);
    object_unref(world_create(&w, "ns", "g", ""));
    registry_stop(w.registry); /* over: what was not taken is not told any more */
    ck_assert_str_eq(changes(&r, 9), "");
    watch_close(r.watch);
}
END_TEST

#define CROWD 500 /* watches; each is told at most every 10 ms */
#define CROWD_MS 10

static unsigned wakes_of(const struct reader *r)
{
    return __atomic_load_n(&r->wakes, __ATOMIC_ACQUIRE);
}

/* Takes what is there; the newest revision, or what it was. */
static int64_t drain(struct reader *r, int64_t rev)
{
    struct watch_event e;
    while (watch_next(r->watch, &e) > 0) {
        ck_assert_int_eq(e.object->rev, rev + 1); /* each once, in order */
        rev = e.object->rev;
        watch_event_fini(&e);
    }
    return rev;
}

/* Where many watch, changes that follow soon go out together; who must not wait does not, and
 * nothing is missed. */
START_TEST(test_crowd)
{
    static struct reader crowd[CROWD], prompt;
    struct watch_request req = from(1), at_once = from(1);
    at_once.is_prompt = true;
    open_watch(&prompt, &at_once);
    for (size_t i = 0; i < CROWD; i++)
        open_watch(&crowd[i], &req);
    object_unref(world_create(&w, "ns", "a", "")); /* 2 */
    int64_t prompt_rev = 1, rev[CROWD], last = 52;
    for (size_t i = 0; i < CROWD; i++)
        rev[i] = drain(&crowd[i], 1);
    prompt_rev = drain(&prompt, prompt_rev);
    unsigned before = wakes_of(&crowd[0]);
    int64_t begin_ms = clock_monotonic_ms(&clock_system);
    for (int64_t n = 3; n <= last; n++) {
        SCOPED_FREE char *value = xasprintf("\"%" PRId64 "\"", n);
        object_unref(world_set(&w, "ns", "a", "metadata.labels.n", value));
        for (int i = 0; i < 5000 && prompt_rev < n; i++, sleep_ms(1))
            prompt_rev = drain(&prompt, prompt_rev);
        ck_assert_int_eq(prompt_rev, n);
        rev[0] = drain(&crowd[0], rev[0]);
    }
    int64_t took_ms = clock_monotonic_ms(&clock_system) - begin_ms;
    ck_assert_uint_le(wakes_of(&crowd[0]) - before, (unsigned)(took_ms / CROWD_MS) + 2);
    for (size_t i = 0; i < CROWD; i++) {
        for (int k = 0; k < 5000 && wakes_of(&crowd[i]) == 0; k++)
            sleep_ms(1);
        ck_assert_uint_ge(wakes_of(&crowd[i]), 1);
        ck_assert_int_eq(drain(&crowd[i], rev[i]), last);
        watch_close(crowd[i].watch);
    }
    watch_close(prompt.watch);
}
END_TEST

SUITE(watch)
{
    TCase *tc = tcase_create("world");
    tcase_add_checked_fixture(tc, start, stop);
    tcase_set_timeout(tc, 60);
    const TTest *const tests[] = {test_deleted_contents,
                                  test_initial,
                                  test_close_early,
                                  test_from_now,
                                  test_future,
                                  test_too_old,
                                  test_history_bytes,
                                  test_cut_off,
                                  test_compacted_before_restart,
                                  test_all_compacted_before_restart,
                                  test_lost,
                                  test_lost_before_bookmark,
                                  test_bookmarks,
                                  test_timeout,
                                  test_stop,
                                  test_wakes,
                                  test_each_change,
                                  test_crowd};
    for (size_t i = 0; i < ARRAY_LEN(tests); i++)
        tcase_add_test(tc, tests[i]);
    tcase_add_loop_test(tc, test_story, 0, ARRAY_LEN(stories));
    suite_add_tcase(s, tc);
}
