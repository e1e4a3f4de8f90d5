/* Many threads write while watches are attached: every watch sees the whole history once and in
 * order, and what it adds up to is what a list shows. Meant for the thread sanitizer too. */
#include <pthread.h>
#include <stdio.h>

#include "apiserver/base/map.h"
#include "apiserver/registry/cache.h"
#include "tests/lib/world.h"

#define WRITERS 8
#define WATCHERS 4
#define NAMES 12
#define ROUNDS 60

static struct world w;

/* ---- writers ---- */

struct writer {
    pthread_t thread;
    unsigned seed;
};

static int change_something(void *ctx, const cJSON *old, cJSON **ret, struct err *err)
{
    const unsigned *seed = ctx;
    (void)err;
    char text[16];
    snprintf(text, sizeof text, "%u", *seed);
    *ret = json_copy(old);
    json_set_str(json_ensure_object(json_get(*ret, "metadata"), "labels"), "v", text);
    return 0;
}

static void write_once(struct writer *me)
{
    char name[16];
    unsigned pick = (unsigned)rand_r(&me->seed);
    snprintf(name, sizeof name, "n%u", pick / 7 % NAMES);
    struct write_options opts = world_opts();
    struct delete_options dopts = {.orphan_dependents = -1, .deadline_ms = world_deadline()};
    struct update_request req = {.kind = &kind_sandbox,
                                 .namespace_name = "ns",
                                 .name = name,
                                 .change = change_something,
                                 .ctx = &me->seed};
    SCOPED(object_unref_p) struct object *o = NULL;
    bool is_gone;
    int rc;
    if (pick % 7 < 2)
        rc = registry_create(w.registry, &kind_sandbox, "ns", world_sandbox(name, ""), &opts, &o,
                             NULL);
    else if (pick % 7 < 4)
        rc = registry_delete(w.registry, &kind_sandbox, "ns", name, &dopts, &o, &is_gone, NULL);
    else
        rc = registry_update(w.registry, &req, &opts, &o, NULL);
    ck_assert(rc == 0 || rc == -ERR_NOT_FOUND || rc == -ERR_ALREADY_EXISTS);
    if (rc == 0)
        ck_assert_int_ge(registry_revision(w.registry), o->rev); /* acknowledged = in the cache */
}

static void *write_many(void *arg)
{
    struct writer *me = arg;
    for (int i = 0; i < ROUNDS; i++)
        write_once(me);
    return NULL;
}

/* ---- watchers ---- */

struct watcher {
    pthread_t thread;
    struct watch *watch;
    pthread_mutex_t mutex;
    pthread_cond_t woken;
    bool is_woken;
    struct omap *state; /* item → revision, as a pointer's value */
    struct buf log;     /* of the whole history, for comparing */
    int64_t last_rev;   /* atomic */
};

static void wake(void *ctx)
{
    struct watcher *me = ctx;
    pthread_mutex_lock(&me->mutex);
    me->is_woken = true;
    pthread_cond_signal(&me->woken);
    pthread_mutex_unlock(&me->mutex);
}

static void *mark(int64_t rev)
{
    return (void *)(intptr_t)rev;
}

static void take_event(struct watcher *me, struct watch_event *e)
{
    const struct object *o = e->object;
    int64_t known = (int64_t)(intptr_t)omap_get(me->state, o->name);
    ck_assert_msg(o->rev > me->last_rev || e->type == WATCH_ADDED, "revision %lld after %lld",
                  (long long)o->rev, (long long)me->last_rev);
    ck_assert(e->type == WATCH_ADDED ? known == 0 : known != 0 && known < o->rev);
    if (e->type == WATCH_DELETED)
        omap_del(me->state, o->name);
    else
        omap_put(me->state, o->name, mark(o->rev));
    buf_printf(&me->log, "%d %s %lld\n", e->type, o->name, (long long)o->rev);
    if (o->rev > me->last_rev)
        __atomic_store_n(&me->last_rev, o->rev, __ATOMIC_RELEASE);
}

/* Reads until the watch ends. */
static void *watch_all(void *arg)
{
    struct watcher *me = arg;
    for (int rc = 0; rc >= 0;) {
        struct watch_event e;
        rc = watch_next(me->watch, &e);
        if (rc > 0)
            take_event(me, &e);
        if (rc > 0)
            watch_event_fini(&e);
        pthread_mutex_lock(&me->mutex);
        while (rc == 0 && !me->is_woken)
            pthread_cond_wait(&me->woken, &me->mutex);
        if (rc == 0)
            me->is_woken = false;
        pthread_mutex_unlock(&me->mutex);
    }
    return NULL;
}

/* Until it has read the newest change; nothing but these objects is written, so that is the newest
 * revision. */
static void watcher_wait(struct watcher *me)
{
    for (int i = 0; i < 20000; i++) {
        if (__atomic_load_n(&me->last_rev, __ATOMIC_ACQUIRE) == registry_revision(w.registry))
            return;
        sleep_ms(1);
    }
    ck_abort_msg("a watch did not get to the newest revision");
}

static void watcher_start(struct watcher *me, bool is_from_start)
{
    *me = (struct watcher){
        .mutex = PTHREAD_MUTEX_INITIALIZER, .woken = PTHREAD_COND_INITIALIZER, .state = omap_new()};
    struct watch_request req = {.kind = &kind_sandbox,
                                .send_initial = !is_from_start,
                                .version = {is_from_start ? READ_AT_LEAST : READ_LATEST, 1},
                                .deadline_ms = world_deadline()};
    ck_assert_int_eq(registry_watch(w.registry, &req, wake, me, &me->watch, NULL), 0);
    pthread_create(&me->thread, NULL, watch_all, me);
}

static bool count_revs(void *ctx, const char *key, void *value)
{
    (void)key;
    *(int64_t *)ctx += (int64_t)(intptr_t)value;
    return true;
}

static void watcher_check(struct watcher *me, const struct list_result *l)
{
    int64_t sum = 0, expected = 0;
    ck_assert_uint_eq(omap_len(me->state), l->n);
    for (size_t i = 0; i < l->n; i++) {
        ck_assert_int_eq((int64_t)(intptr_t)omap_get(me->state, l->objects[i]->name),
                         l->objects[i]->rev);
        expected += l->objects[i]->rev;
    }
    omap_each(me->state, NULL, count_revs, &sum);
    ck_assert_int_eq(sum, expected);
}

static void watcher_fini(struct watcher *me)
{
    watch_close(me->watch);
    omap_free(me->state);
    buf_fini(&me->log);
}

/* Readers come and go meanwhile. */
static void *read_many(void *arg)
{
    (void)arg;
    for (int i = 0; i < ROUNDS; i++) {
        struct list_request req = {
            .kind = &kind_sandbox, .limit = i % 4, .deadline_ms = world_deadline()};
        SCOPED(list_result_fini) struct list_result l = {0};
        ck_assert_int_eq(registry_list(w.registry, &req, &l, NULL), 0);
        for (size_t k = 0; k < l.n; k++)
            ck_assert_int_le(l.objects[k]->rev, l.rev);
        struct watch *short_lived = NULL;
        struct watch_request wr = {
            .kind = &kind_sandbox, .send_initial = true, .deadline_ms = world_deadline()};
        ck_assert_int_eq(registry_watch(w.registry, &wr, NULL, NULL, &short_lived, NULL), 0);
        watch_close(short_lived);
    }
    return NULL;
}

START_TEST(test_history_is_whole)
{
    world_start(&w, NULL);
    struct watcher watchers[WATCHERS];
    struct writer writers[WRITERS];
    pthread_t reader;
    for (size_t i = 0; i < WATCHERS; i++)
        watcher_start(&watchers[i], i % 2 == 0);
    for (size_t i = 0; i < WRITERS; i++) {
        writers[i] = (struct writer){.seed = (unsigned)i + 1};
        pthread_create(&writers[i].thread, NULL, write_many, &writers[i]);
    }
    pthread_create(&reader, NULL, read_many, NULL);
    for (size_t i = 0; i < WRITERS; i++)
        pthread_join(writers[i].thread, NULL);
    pthread_join(reader, NULL);
    struct watcher late;
    watcher_start(&late, true); /* the whole history after the fact */
    struct list_request req = {.kind = &kind_sandbox, .deadline_ms = world_deadline()};
    SCOPED(list_result_fini) struct list_result l = {0};
    ck_assert_int_eq(registry_list(w.registry, &req, &l, NULL), 0);
    for (size_t i = 0; i < WATCHERS; i++)
        watcher_wait(&watchers[i]);
    watcher_wait(&late);
    registry_stop(w.registry);
    for (size_t i = 0; i < WATCHERS; i++)
        pthread_join(watchers[i].thread, NULL);
    pthread_join(late.thread, NULL);
    for (size_t i = 0; i < WATCHERS; i++) {
        watcher_check(&watchers[i], &l);
        if (i % 2 == 0)
            ck_assert_str_eq(buf_cstr(&watchers[i].log), buf_cstr(&late.log));
        watcher_fini(&watchers[i]);
    }
    watcher_check(&late, &l);
    watcher_fini(&late);
    world_stop(&w);
}
END_TEST

/* ---- one object, counted up by all ---- */

static int count_up(void *ctx, const cJSON *old, cJSON **ret, struct err *err)
{
    (void)ctx, (void)err;
    char text[32];
    int64_t n = 0;
    (void)str_to_i64(json_str_or(old, "metadata.labels.n", "0"), &n);
    snprintf(text, sizeof text, "%lld", (long long)n + 1);
    *ret = json_copy(old);
    json_set_str(json_ensure_object(json_get(*ret, "metadata"), "labels"), "n", text);
    return 0;
}

static void *count_many(void *arg)
{
    (void)arg;
    struct update_request req = {
        .kind = &kind_sandbox, .namespace_name = "ns", .name = "a", .change = count_up};
    for (int i = 0; i < 25; i++) {
        struct write_options opts = world_opts();
        struct object *o = NULL;
        ck_assert_int_eq(registry_update(w.registry, &req, &opts, &o, NULL), 0);
        object_unref(o);
    }
    return NULL;
}

START_TEST(test_no_update_is_lost)
{
    world_start(&w, NULL);
    object_unref(world_create(&w, "ns", "a", ""));
    pthread_t threads[WRITERS];
    for (size_t i = 0; i < WRITERS; i++)
        pthread_create(&threads[i], NULL, count_many, NULL);
    for (size_t i = 0; i < WRITERS; i++)
        pthread_join(threads[i], NULL);
    SCOPED(object_unref_p) struct object *o = world_get(&w, "ns", "a");
    ck_assert_str_eq(pairs_get(&o->labels, "n"), "200");
    world_stop(&w);
}
END_TEST

/* ---- one name, made by all: one wins ---- */

static unsigned n_made;

static void *make_one(void *arg)
{
    (void)arg;
    for (int i = 0; i < 20; i++) {
        char name[16];
        snprintf(name, sizeof name, "x%d", i);
        struct write_options opts = world_opts();
        SCOPED(object_unref_p) struct object *o = NULL;
        int rc = registry_create(w.registry, &kind_sandbox, "ns", world_sandbox(name, ""), &opts,
                                 &o, NULL);
        ck_assert(rc == 0 || rc == -ERR_ALREADY_EXISTS);
        __atomic_fetch_add(&n_made, rc == 0, __ATOMIC_RELAXED);
    }
    return NULL;
}

START_TEST(test_one_wins)
{
    world_start(&w, NULL);
    n_made = 0;
    pthread_t threads[WRITERS];
    for (size_t i = 0; i < WRITERS; i++)
        pthread_create(&threads[i], NULL, make_one, NULL);
    for (size_t i = 0; i < WRITERS; i++)
        pthread_join(threads[i], NULL);
    ck_assert_uint_eq(n_made, 20);
    world_stop(&w);
}
END_TEST

/* ---- waiting for revisions ---- */

struct waiter {
    pthread_t thread;
    int64_t rev;
    int rc;
};

static void *wait_for_rev(void *arg)
{
    struct waiter *me = arg;
    me->rc = registry_wait_rev(w.registry, me->rev, INT64_MAX);
    ck_assert(me->rc < 0 || registry_revision(w.registry) >= me->rev);
    return NULL;
}

/* ---- a store that does not answer ---- */

#define READERS 30

static unsigned n_come, n_asked; /* atomic */

/* The first call takes until everybody waits for it, or for the next one. */
static enum memstore_fault answer_late(void *ctx, const char *call, uint64_t n)
{
    (void)ctx, (void)call;
    while (__atomic_load_n(&n_come, __ATOMIC_ACQUIRE) < READERS)
        sleep_ms(1);
    sleep_ms(n == 1 ? 200 : 0);
    __atomic_fetch_add(&n_asked, 1, __ATOMIC_RELAXED);
    return MEMSTORE_UNDETERMINED_LOST;
}

static void *read_latest(void *arg)
{
    SCOPED(object_unref_p) struct object *o = NULL;
    int *rc = arg;
    __atomic_fetch_add(&n_come, 1, __ATOMIC_RELEASE);
    *rc = registry_get(w.registry, &kind_sandbox, "ns", "a", (struct read_version){READ_LATEST, 0},
                       world_deadline() + 60000, &o, NULL);
    return NULL;
}

/* Who has waited for a call as long as any may take does not wait for one of his own as well. */
START_TEST(test_one_wait_for_all)
{
    pthread_t threads[READERS];
    int results[READERS];
    world_start(&w, NULL);
    memstore_set_fault(w.store, answer_late, NULL);
    for (int i = 0; i < READERS; i++)
        ck_assert_int_eq(pthread_create(&threads[i], NULL, read_latest, &results[i]), 0);
    for (int i = 0; i < READERS; i++) {
        pthread_join(threads[i], NULL);
        ck_assert_int_eq(results[i], -ERR_SERVER_TIMEOUT);
    }
    ck_assert_uint_lt(__atomic_load_n(&n_asked, __ATOMIC_RELAXED), READERS / 2);
    memstore_set_fault(w.store, NULL, NULL);
    world_stop(&w);
}
END_TEST

/* Each waits for a revision of its own, without a deadline: whoever is not woken hangs the test. */
START_TEST(test_each_waiter_is_woken)
{
    world_start(&w, NULL);
    struct waiter waiters[2 * WRITERS + 1];
    size_t n = ARRAY_LEN(waiters) - 1; /* the last waits for what never comes */
    for (size_t i = 0; i <= n; i++) {
        waiters[i].rev =
            i < n ? registry_revision(w.registry) + 1 + (int64_t)(i * 7 % n) : INT64_MAX;
        pthread_create(&waiters[i].thread, NULL, wait_for_rev, &waiters[i]);
    }
    for (size_t i = 0; i < n; i++) {
        char name[16];
        snprintf(name, sizeof name, "x%zu", i);
        object_unref(world_create(&w, "ns", name, ""));
    }
    for (size_t i = 0; i < n; i++) {
        pthread_join(waiters[i].thread, NULL);
        ck_assert_int_eq(waiters[i].rc, 0);
    }
    registry_stop(w.registry);
    pthread_join(waiters[n].thread, NULL);
    ck_assert_int_eq(waiters[n].rc, -ERR_CANCELLED);
    world_stop(&w);
}
END_TEST

SUITE(concurrency)
{
    TESTS("threads", test_history_is_whole, test_no_update_is_lost, test_one_wins,
          test_each_waiter_is_woken, test_one_wait_for_all);
}
