/* One contract, several stores: every test here runs in memory, on Debian's etcd 3.4 and on the
 * newest etcd at hand. An etcd is started once per store; each test uses keys of its own below a
 * random prefix. */
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <time.h>

#include "apiserver/base/clock.h"
#include "tests/lib/store_fixture.h"
#include "tests/lib/suite.h"

#define WAIT_MS 120000

static int64_t deadline(void)
{
    return clock_monotonic_ms(&clock_system) + WAIT_MS;
}

/* ---- short forms ---- */

#define KEY(name) key_of((char[200]){0}, (name))
static const char *key_of(char *out, const char *name)
{
    snprintf(out, 200, "%s%s", root, name);
    return out;
}

static struct store_txn_result txn(const struct store_txn *t)
{
    struct err err = {0};
    struct store_txn_result r = {0};
    ck_assert_msg(store_txn(store, t, deadline(), &r, &err) == 0, "%s", err_text(&err));
    return r;
}

static int64_t put_n(const char *key, const char *value, size_t n, int64_t lease)
{
    struct store_op op = {.key = key, .value = value, .value_len = n, .lease = lease};
    SCOPED(store_txn_result_fini)
    struct store_txn_result r = txn(&(struct store_txn){.ops = &op, .n_ops = 1});
    ck_assert(r.succeeded);
    return r.rev;
}
static int64_t put(const char *name, const char *value)
{
    return put_n(KEY(name), value, strlen(value), 0);
}
static int64_t del(const char *name)
{
    struct store_op op = {.key = KEY(name)};
    SCOPED(store_txn_result_fini)
    struct store_txn_result r = txn(&(struct store_txn){.ops = &op, .n_ops = 1});
    ck_assert(r.succeeded);
    return r.rev;
}
/* The value, "" with absent set when there is none. */
static char *get(const char *name)
{
    struct err err = {0};
    struct store_kv kv = {0};
    int r = store_get(store, KEY(name), deadline(), &kv, NULL, &err);
    ck_assert_msg(r == 0 || r == -ERR_NOT_FOUND, "%s", err_text(&err));
    err_fini(&err);
    char *value = r == 0 ? steal(&kv.value) : NULL;
    store_kv_fini(&kv);
    return value;
}
static void expect(const char *name, const char *value)
{
    SCOPED_FREE char *is = get(name);
    if (value == NULL)
        ck_assert_ptr_null(is);
    else
        ck_assert_str_eq(is == NULL ? "(absent)" : is, value);
}
static int64_t revision(void)
{
    int64_t rev = 0;
    ck_assert_int_eq(store_revision(store, deadline(), &rev, NULL), 0);
    return rev;
}
static struct store_page range(const char *from, const char *end, int64_t limit, int64_t rev,
                               bool keys_only)
{
    struct err err = {0};
    struct store_page p = {0};
    ck_assert_msg(store_range(store, from, end, limit, rev, keys_only, deadline(), &p, &err) == 0,
                  "%s", err_text(&err));
    return p;
}
static void compact(int64_t rev)
{
    struct err err = {0};
    ck_assert_msg(store_compact(store, rev, deadline(), &err) == 0, "%s", err_text(&err));
}

/* ---- a watch that remembers ---- */

struct seen {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    struct store_event *events;
    size_t n;
    int64_t rev;      /* newest covered */
    int64_t call_rev; /* of the call before */
    unsigned n_calls;
    enum err_code lost;
    int64_t compact_rev;
    bool is_wrong; /* a rule of the contract was broken */
};

static void on_events(void *ctx, struct store_event *events, size_t n, int64_t rev)
{
    struct seen *s = ctx;
    pthread_mutex_lock(&s->lock);
    for (size_t i = 0; i < n; i++) {
        s->is_wrong = s->is_wrong || events[i].kv.mod_rev <= s->rev || events[i].kv.mod_rev > rev;
        s->events = xreallocarray(s->events, s->n + 1, sizeof *s->events);
        s->events[s->n++] = steal(&events[i]);
    }
    s->is_wrong = s->is_wrong || rev < s->rev || s->lost != ERR_NONE;
    s->rev = rev;
    s->n_calls++;
    pthread_cond_broadcast(&s->changed);
    pthread_mutex_unlock(&s->lock);
}
static void on_lost(void *ctx, const struct err *err, int64_t compact_rev)
{
    struct seen *s = ctx;
    pthread_mutex_lock(&s->lock);
    s->is_wrong = s->is_wrong || s->lost != ERR_NONE;
    s->lost = err->code;
    s->compact_rev = compact_rev;
    pthread_cond_broadcast(&s->changed);
    pthread_mutex_unlock(&s->lock);
}
static const struct store_watch_ops watch_ops = {.on_events = on_events, .on_lost = on_lost};

static void seen_init(struct seen *s)
{
    *s = (struct seen){0};
    pthread_mutex_init(&s->lock, NULL);
    pthread_cond_init(&s->changed, NULL);
}
static void seen_fini(struct seen *s)
{
    ck_assert(!s->is_wrong);
    for (size_t i = 0; i < s->n; i++) {
        store_kv_fini(&s->events[i].kv);
        store_kv_fini(&s->events[i].prev);
    }
    free(s->events);
    pthread_cond_destroy(&s->changed);
    pthread_mutex_destroy(&s->lock);
}
/* Until the watch has covered rev, or is lost. */
static void wait_rev(struct seen *s, int64_t rev)
{
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += WAIT_MS / 1000;
    int code = 0;
    pthread_mutex_lock(&s->lock);
    while (s->rev < rev && s->lost == ERR_NONE && code == 0)
        code = pthread_cond_timedwait(&s->changed, &s->lock, &until);
    int64_t is = s->rev;
    pthread_mutex_unlock(&s->lock);
    ck_assert_msg(code == 0, "watch is at %" PRId64 ", not at %" PRId64, is, rev);
}

/* ---- reading and writing ---- */

START_TEST(test_get_and_put)
{
    struct store_kv kv = {0};
    int64_t rev0 = revision(), rev = 0;
    ck_assert_int_eq(store_get(store, KEY("a"), deadline(), &kv, &rev, NULL), -ERR_NOT_FOUND);
    ck_assert_int_eq(rev, rev0);
    int64_t rev1 = put("a", "one");
    ck_assert_int_eq(rev1, rev0 + 1);
    int64_t rev2 = put("a", "two");
    ck_assert_int_eq(store_get(store, KEY("a"), deadline(), &kv, &rev, NULL), 0);
    ck_assert_str_eq(kv.key, KEY("a"));
    ck_assert_str_eq(kv.value, "two");
    ck_assert_uint_eq(kv.value_len, 3);
    ck_assert_int_eq(kv.create_rev, rev1);
    ck_assert_int_eq(kv.mod_rev, rev2);
    ck_assert_int_eq(kv.lease, 0);
    ck_assert_int_eq(rev, rev2);
    store_kv_fini(&kv);
    int64_t rev3 = del("a");
    ck_assert_int_eq(rev3, rev2 + 1);
    expect("a", NULL);
    int64_t rev4 = put("a", "again");
    ck_assert_int_eq(store_get(store, KEY("a"), deadline(), &kv, NULL, NULL), 0);
    ck_assert_int_eq(kv.create_rev, rev4);
    store_kv_fini(&kv);
}
END_TEST

START_TEST(test_binary_and_empty_values)
{
    char bytes[256];
    for (int i = 0; i < 256; i++)
        bytes[i] = (char)i;
    put_n(KEY("bytes"), bytes, sizeof bytes, 0);
    put_n(KEY("empty"), "", 0, 0);
    struct store_kv kv = {0};
    ck_assert_int_eq(store_get(store, KEY("bytes"), deadline(), &kv, NULL, NULL), 0);
    ck_assert_uint_eq(kv.value_len, 256);
    ck_assert(memcmp(kv.value, bytes, 256) == 0 && kv.value[256] == '\0');
    store_kv_fini(&kv);
    ck_assert_int_eq(store_get(store, KEY("empty"), deadline(), &kv, NULL, NULL), 0);
    ck_assert_uint_eq(kv.value_len, 0);
    ck_assert_str_eq(kv.value, "");
    store_kv_fini(&kv);
}
END_TEST

START_TEST(test_keys_of_all_bytes)
{
    static const char *const names[] = {"\001", " ", "\"\\", "%2F", "a/b", "z", "\xc3\xa4", "\xff"};
    for (size_t i = ARRAY_LEN(names); i-- > 0;)
        put(names[i], names[i]);
    SCOPED_FREE char *end = store_prefix_end(root);
    SCOPED(store_page_fini) struct store_page p = range(root, end, 0, 0, false);
    ck_assert_uint_eq(p.n, ARRAY_LEN(names));
    for (size_t i = 0; i < p.n; i++)
        ck_assert_str_eq(p.kvs[i].value, names[i]); /* in bytewise order */
}
END_TEST

START_TEST(test_too_large)
{
    SCOPED_FREE char *value = xcalloc(1, 2 << 20);
    struct store_op op = {.key = KEY("big"), .value = value, .value_len = 2 << 20};
    struct store_txn_result r = {0};
    SCOPED(err_fini) struct err err = {0};
    int64_t rev = revision();
    struct store_txn t = {.ops = &op, .n_ops = 1};
    ck_assert_int_eq(store_txn(store, &t, deadline(), &r, &err), -ERR_TOO_LARGE);
    ck_assert_str_eq(err_text(&err), "etcdserver: request is too large");
    ck_assert_int_eq(revision(), rev);
    put_n(KEY("big"), value, 1 << 20, 0);
    struct store_kv kv = {0};
    ck_assert_int_eq(store_get(store, KEY("big"), deadline(), &kv, NULL, NULL), 0);
    ck_assert_uint_eq(kv.value_len, 1 << 20);
    store_kv_fini(&kv);
}
END_TEST

/* ---- ranges ---- */

static void put_numbered(int n)
{
    for (int i = 0; i < n; i++) {
        char name[16];
        snprintf(name, sizeof name, "n/%03d", i);
        put(name, name);
    }
}

START_TEST(test_pages)
{
    put_numbered(25);
    put("m", "before");
    put("n0", "after");
    int64_t rev = revision();
    const char *from = KEY("n/");
    SCOPED_FREE char *end = store_prefix_end(from);
    SCOPED_FREE char *next = xstrdup(from);
    size_t n = 0;
    bool more = true;
    while (more) {
        SCOPED(store_page_fini) struct store_page p = range(next, end, 10, n == 0 ? 0 : rev, false);
        ck_assert_int_eq(p.rev, rev);
        ck_assert_int_eq(p.count, 25 - (int64_t)n); /* what is left of the range asked for */
        for (size_t i = 0; i < p.n; i++, n++) {
            char name[16];
            snprintf(name, sizeof name, "n/%03zu", n);
            ck_assert_str_eq(p.kvs[i].value, name);
        }
        more = p.more;
        free(next);
        next = xasprintf("%s\001", p.kvs[p.n - 1].key);
        put("n/late", "not at that revision");
    }
    ck_assert_uint_eq(n, 25);
}
END_TEST

START_TEST(test_range_edges)
{
    put_numbered(3);
    SCOPED_FREE char *end = store_prefix_end(KEY("n/"));
    SCOPED(store_page_fini) struct store_page exact = range(KEY("n/"), end, 3, 0, false);
    ck_assert(exact.n == 3 && !exact.more && exact.count == 3);
    SCOPED(store_page_fini) struct store_page keys = range(KEY("n/"), end, 0, 0, true);
    ck_assert(keys.n == 3 && keys.kvs[0].value_len == 0 && keys.kvs[0].mod_rev > 0);
    ck_assert_str_eq(keys.kvs[0].value, "");
    SCOPED(store_page_fini) struct store_page none = range(KEY("o"), KEY("p"), 0, 0, false);
    ck_assert(none.n == 0 && !none.more && none.count == 0 && none.rev == revision());
    SCOPED(store_page_fini) struct store_page half = range(KEY("n/001"), KEY("n/002"), 0, 0, false);
    ck_assert(half.n == 1);
    SCOPED(store_page_fini) struct store_page one = range(KEY("n/001"), NULL, 0, 0, false);
    ck_assert(one.n == 1 && one.count == 1);
    SCOPED(store_page_fini) struct store_page all = range("", "", 0, 0, true);
    ck_assert(all.n >= 3);
}
END_TEST

START_TEST(test_range_without_limit_is_whole)
{
    /* More than etcd.c asks for at a time; 16 a transaction. */
    char names[16][16];
    struct store_op ops[16];
    for (int i = 0; i < 1200; i++) {
        char *name = names[i % 16];
        snprintf(name, 16, "%05d", i);
        ops[i % 16] = (struct store_op){.key = xstrdup(KEY(name)), .value = name, .value_len = 5};
        if (i % 16 == 15) {
            SCOPED(store_txn_result_fini)
            struct store_txn_result r = txn(&(struct store_txn){.ops = ops, .n_ops = 16});
            ck_assert(r.succeeded);
            for (int j = 0; j < 16; j++) {
                SCOPED_FREE char *key = (char *)(uintptr_t)ops[j].key;
            }
        }
    }
    SCOPED_FREE char *end = store_prefix_end(root);
    SCOPED(store_page_fini) struct store_page p = range(root, end, 0, 0, false);
    ck_assert(p.n == 1200 && p.count == 1200 && !p.more && p.rev == revision());
    for (size_t i = 1; i < p.n; i++)
        ck_assert_int_lt(strcmp(p.kvs[i - 1].key, p.kvs[i].key), 0);
}
END_TEST

START_TEST(test_old_revisions)
{
    int64_t rev1 = put("a", "one");
    int64_t rev2 = put("a", "two");
    int64_t rev3 = del("a");
    int64_t rev4 = put("b", "other");
    const struct {
        int64_t rev;
        const char *value;
    } rows[] = {{rev1 - 1, NULL}, {rev1, "one"}, {rev2, "two"}, {rev3, NULL}, {rev4, NULL}};
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        SCOPED(store_page_fini) struct store_page p = range(KEY("a"), NULL, 0, rows[i].rev, false);
        ck_assert_int_eq(p.rev, rows[i].rev);
        ck_assert_uint_eq(p.n, rows[i].value != NULL);
        if (p.n > 0)
            ck_assert_str_eq(p.kvs[0].value, rows[i].value);
    }
}
END_TEST

static int range_at(int64_t rev)
{
    SCOPED(store_page_fini) struct store_page p = {0};
    return store_range(store, root, NULL, 0, rev, false, deadline(), &p, NULL);
}

START_TEST(test_future_and_compacted)
{
    int64_t rev1 = put("a", "one");
    put("a", "two");
    int64_t rev3 = put("b", "three");
    ck_assert_int_eq(range_at(rev3 + 1), -ERR_EXPIRED);
    ck_assert_int_eq(range_at(rev3), 0);
    compact(rev1 + 1);
    ck_assert_int_eq(range_at(rev1), -ERR_EXPIRED);
    ck_assert_int_eq(range_at(rev1 + 1), 0);
    expect("a", "two");
    ck_assert_int_eq(store_compact(store, rev1 + 1, deadline(), NULL),
                     -ERR_EXPIRED); /* done already */
    ck_assert_int_eq(store_compact(store, rev3 + 100, deadline(), NULL), -ERR_EXPIRED);
    compact(rev3);
    expect("a", "two");
    expect("b", "three");
    SCOPED(store_page_fini) struct store_page p = range(KEY("a"), NULL, 0, rev3, false);
    ck_assert_str_eq(p.kvs[0].value, "two");
}
END_TEST

/* ---- transactions ---- */

START_TEST(test_create_if_absent)
{
    struct store_compare c = {.key = KEY("a"), .target = STORE_MOD, .rev = 0};
    struct store_op op = {.key = KEY("a"), .value = "one", .value_len = 3};
    struct store_txn t = {.compares = &c, .n_compares = 1, .ops = &op, .n_ops = 1};
    SCOPED(store_txn_result_fini) struct store_txn_result first = txn(&t);
    ck_assert(first.succeeded && first.n_current == 0);
    op.value = "two";
    SCOPED(store_txn_result_fini) struct store_txn_result second = txn(&t);
    ck_assert(!second.succeeded);
    ck_assert_int_eq(second.rev, first.rev);
    ck_assert_uint_eq(second.n_current, 1);
    ck_assert_str_eq(second.current[0].key, KEY("a"));
    ck_assert_str_eq(second.current[0].value, "one");
    ck_assert_int_eq(second.current[0].mod_rev, first.rev);
    c.target = STORE_CREATE;
    SCOPED(store_txn_result_fini) struct store_txn_result third = txn(&t);
    ck_assert(!third.succeeded);
    expect("a", "one");
}
END_TEST

START_TEST(test_compare_mod_and_create)
{
    int64_t created = put("a", "one"), modified = put("a", "two");
    const struct {
        enum store_target target;
        int64_t rev;
        bool holds;
    } rows[] = {{STORE_MOD, created, false},
                {STORE_MOD, modified, true},
                {STORE_CREATE, created, true},
                {STORE_CREATE, modified, false},
                {STORE_CREATE, 0, false}};
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct store_compare c = {.key = KEY("a"), .target = rows[i].target, .rev = rows[i].rev};
        struct store_op op = {.key = KEY("b"), .value = "x", .value_len = 1};
        SCOPED(store_txn_result_fini)
        struct store_txn_result r =
            txn(&(struct store_txn){.compares = &c, .n_compares = 1, .ops = &op, .n_ops = 1});
        ck_assert_msg(r.succeeded == rows[i].holds, "row %zu", i);
    }
}
END_TEST

START_TEST(test_all_or_nothing)
{
    int64_t a = put("a", "a0");
    put("b", "b0");
    struct store_compare compares[] = {{.key = KEY("a"), .rev = a},
                                       {.key = KEY("missing"), .rev = 7},
                                       {.key = KEY("b"), .rev = 1}};
    struct store_op ops[] = {{.key = KEY("a"), .value = "a1", .value_len = 2}, {.key = KEY("b")}};
    struct store_txn t = {.compares = compares, .n_compares = 3, .ops = ops, .n_ops = 2};
    SCOPED(store_txn_result_fini) struct store_txn_result r = txn(&t);
    ck_assert(!r.succeeded);
    ck_assert_uint_eq(r.n_current, 3); /* in the order of compares */
    ck_assert_str_eq(r.current[0].value, "a0");
    ck_assert_ptr_null(r.current[1].key);
    ck_assert_str_eq(r.current[2].value, "b0");
    expect("a", "a0");
    t.n_compares = 1;
    SCOPED(store_txn_result_fini) struct store_txn_result done = txn(&t);
    ck_assert(done.succeeded);
    expect("a", "a1");
    expect("b", NULL);
    SCOPED(store_page_fini) struct store_page p = range(KEY("a"), NULL, 0, 0, false);
    ck_assert_int_eq(p.kvs[0].mod_rev, done.rev);
}
END_TEST

START_TEST(test_noop_moves_no_revision)
{
    int64_t rev = put("a", "a");
    ck_assert_int_eq(del("missing"), rev);
    struct store_compare c = {.key = KEY("a"), .rev = rev};
    SCOPED(store_txn_result_fini)
    struct store_txn_result r = txn(&(struct store_txn){.compares = &c, .n_compares = 1});
    ck_assert(r.succeeded);
    ck_assert_int_eq(r.rev, rev);
    ck_assert_int_eq(revision(), rev);
    ck_assert_int_eq(put("a", "a"), rev + 1); /* the same bytes are a write all the same */
}
END_TEST

START_TEST(test_key_twice)
{
    struct store_op ops[] = {{.key = KEY("a"), .value = "1", .value_len = 1}, {.key = KEY("a")}};
    struct store_txn_result r = {0};
    struct store_txn t = {.ops = ops, .n_ops = 2};
    ck_assert_int_eq(store_txn(store, &t, deadline(), &r, NULL), -ERR_INTERNAL);
    expect("a", NULL);
}
END_TEST

#define N_WRITERS 4
#define N_INCREMENTS 25
static void *increment(void *arg)
{
    (void)arg;
    for (int done = 0; done < N_INCREMENTS;) {
        SCOPED(store_kv_fini) struct store_kv kv = {0};
        SCOPED(store_txn_result_fini) struct store_txn_result r = {0};
        char text[32];
        store_get(store, KEY("counter"), deadline(), &kv, NULL, NULL);
        snprintf(text, sizeof text, "%ld", kv.key == NULL ? 1 : strtol(kv.value, NULL, 10) + 1);
        struct store_compare c = {.key = KEY("counter"), .rev = kv.mod_rev};
        struct store_op op = {.key = KEY("counter"), .value = text, .value_len = strlen(text)};
        struct store_txn t = {.compares = &c, .n_compares = 1, .ops = &op, .n_ops = 1};
        if (store_txn(store, &t, deadline(), &r, NULL) == 0 && r.succeeded)
            done++;
    }
    return NULL;
}

START_TEST(test_concurrent_compare_and_set)
{
    pthread_t threads[N_WRITERS];
    for (size_t i = 0; i < N_WRITERS; i++)
        ck_assert_int_eq(pthread_create(&threads[i], NULL, increment, NULL), 0);
    for (size_t i = 0; i < N_WRITERS; i++)
        pthread_join(threads[i], NULL);
    expect("counter", "100");
}
END_TEST

/* ---- watches ---- */

static void expect_event(const struct store_event *e, bool is_delete, const char *name,
                         const char *value, const char *prev, int64_t rev)
{
    ck_assert_int_eq(e->is_delete, is_delete);
    ck_assert_str_eq(e->kv.key, KEY(name));
    ck_assert_int_eq(e->kv.mod_rev, rev);
    if (!is_delete)
        ck_assert_str_eq(e->kv.value, value);
    if (prev == NULL)
        ck_assert_ptr_null(e->prev.key);
    else
        ck_assert_str_eq(e->prev.value, prev);
}

START_TEST(test_watch_history_then_live)
{
    struct seen s;
    seen_init(&s);
    int64_t rev1 = put("a", "one");
    int64_t rev2 = put("a", "two");
    struct store_watch *w = store_watch(store, root, rev1, &watch_ops, &s);
    wait_rev(&s, rev2);
    int64_t rev3 = del("a");
    int64_t rev4 = put("a", "three");
    wait_rev(&s, rev4);
    store_unwatch(store, w);
    ck_assert_uint_eq(s.n, 4);
    expect_event(&s.events[0], false, "a", "one", NULL, rev1);
    expect_event(&s.events[1], false, "a", "two", "one", rev2);
    expect_event(&s.events[2], true, "a", NULL, "two", rev3);
    expect_event(&s.events[3], false, "a", "three", NULL, rev4);
    ck_assert_int_eq(s.events[1].kv.create_rev, rev1);
    ck_assert_int_eq(s.events[2].prev.mod_rev, rev2);
    seen_fini(&s);
}
END_TEST

START_TEST(test_watch_from_now_and_prefix)
{
    struct seen s;
    seen_init(&s);
    put("in/a", "before");
    struct store_watch *w = store_watch(store, KEY("in/"), 0, &watch_ops, &s);
    wait_rev(&s, revision()); /* told where it starts */
    ck_assert_uint_eq(s.n, 0);
    int64_t rev1 = put("in/b", "b");
    put("in", "outside");
    put("in0", "outside");
    int64_t rev4 = put("out", "outside");
    wait_rev(&s, rev4); /* moves with other keys too */
    store_unwatch(store, w);
    ck_assert_uint_eq(s.n, 1);
    expect_event(&s.events[0], false, "in/b", "b", NULL, rev1);
    seen_fini(&s);
}
END_TEST

START_TEST(test_watch_of_everything)
{
    struct seen s;
    seen_init(&s);
    int64_t rev = revision();
    struct store_watch *w = store_watch(store, "", rev + 1, &watch_ops, &s);
    for (int i = 0; i < 50; i++)
        put("a", "x");
    wait_rev(&s, rev + 50);
    store_unwatch(store, w);
    ck_assert_uint_eq(s.n, 50);
    for (size_t i = 0; i < s.n; i++)
        ck_assert_int_eq(s.events[i].kv.mod_rev, rev + 1 + (int64_t)i);
    seen_fini(&s);
}
END_TEST

START_TEST(test_watch_transaction)
{
    struct seen s;
    seen_init(&s);
    put("gone", "x");
    int64_t rev = put("kept", "y");
    struct store_watch *w = store_watch(store, root, rev + 1, &watch_ops, &s);
    struct store_op ops[] = {{.key = KEY("gone")},
                             {.key = KEY("new"), .value = "n", .value_len = 1}};
    SCOPED(store_txn_result_fini)
    struct store_txn_result r = txn(&(struct store_txn){.ops = ops, .n_ops = 2});
    wait_rev(&s, r.rev);
    store_unwatch(store, w);
    ck_assert_uint_eq(s.n, 2); /* together, one revision, in the order of operations */
    expect_event(&s.events[0], true, "gone", NULL, "x", r.rev);
    expect_event(&s.events[1], false, "new", "n", NULL, r.rev);
    seen_fini(&s);
}
END_TEST

START_TEST(test_watch_catches_up_in_batches)
{
    struct seen s;
    seen_init(&s);
    SCOPED_FREE char *value = xmalloc(3000);
    memset(value, 'v', 3000);
    int64_t first = 0, last = 0;
    for (int i = 0; i < 1500;
         i++) { /* more than etcd's batch of 1000 revisions, more than one fragment */
        last = put_n(KEY("a"), value, 3000, 0);
        first = first == 0 ? last : first;
    }
    struct store_watch *w = store_watch(store, root, first, &watch_ops, &s);
    last = put("b", "live");
    wait_rev(&s, last);
    store_unwatch(store, w);
    ck_assert_uint_eq(s.n, 1501);
    for (size_t i = 0; i < s.n; i++)
        ck_assert_int_eq(s.events[i].kv.mod_rev, first + (int64_t)i);
    seen_fini(&s);
}
END_TEST

START_TEST(test_watch_compacted)
{
    struct seen s;
    seen_init(&s);
    int64_t rev1 = put("a", "one");
    put("a", "two");
    int64_t rev3 = put("a", "three");
    compact(rev3);
    struct store_watch *w = store_watch(store, root, rev1, &watch_ops, &s);
    wait_rev(&s, INT64_MAX);
    store_unwatch(store, w);
    ck_assert_int_eq(s.lost, ERR_EXPIRED);
    ck_assert_int_eq(s.compact_rev, rev3);
    ck_assert_uint_eq(s.n, 0);
    seen_fini(&s);
}
END_TEST

/* A watch either tells of the deletion in the compacted revision or is lost; etcd 3.4 by itself
 * does neither. */
START_TEST(test_watch_from_compacted_deletion)
{
    struct seen s;
    seen_init(&s);
    put("a", "one");
    int64_t rev = del("a");
    compact(rev);
    int64_t rev2 = put("b", "two");
    struct store_watch *w = store_watch(store, root, rev, &watch_ops, &s);
    wait_rev(&s, rev2);
    store_unwatch(store, w);
    if (s.lost == ERR_NONE)
        ck_assert(s.n == 2 && s.events[0].is_delete);
    else
        ck_assert(s.lost == ERR_EXPIRED && s.compact_rev == rev && s.n == 0);
    seen_fini(&s);
}
END_TEST

START_TEST(test_watch_after_compaction_goes_on)
{
    struct seen s;
    seen_init(&s);
    int64_t rev1 = put("a", "one");
    compact(rev1);
    struct store_watch *w = store_watch(store, root, rev1 + 1, &watch_ops, &s);
    int64_t rev2 = put("a", "two");
    wait_rev(&s, rev2);
    store_unwatch(store, w);
    ck_assert_uint_eq(s.n, 1);
    expect_event(&s.events[0], false, "a", "two", "one", rev2);
    seen_fini(&s);
}
END_TEST

START_TEST(test_watch_from_the_future)
{
    struct seen s;
    seen_init(&s);
    int64_t rev = revision();
    struct store_watch *w = store_watch(store, root, rev + 3, &watch_ops, &s);
    put("a", "1");
    put("a", "2");
    put("a", "3");
    wait_rev(&s, rev + 3);
    store_unwatch(store, w);
    ck_assert_uint_eq(s.n, 1);
    expect_event(&s.events[0], false, "a", "3", "2", rev + 3);
    seen_fini(&s);
}
END_TEST

START_TEST(test_many_watches_end_at_once)
{
    struct seen s[8];
    struct store_watch *w[8];
    int64_t rev = revision();
    for (size_t i = 0; i < 8; i++) {
        seen_init(&s[i]);
        w[i] = store_watch(store, root, rev + 1, &watch_ops, &s[i]);
    }
    rev = put("a", "one");
    for (size_t i = 0; i < 8; i++)
        wait_rev(&s[i], rev);
    int64_t before_ms = clock_monotonic_ms(&clock_system);
    for (size_t i = 0; i < 8; i++)
        store_unwatch(store, w[i]);
    ck_assert_int_lt(clock_monotonic_ms(&clock_system) - before_ms, 2000);
    for (size_t i = 0; i < 8; i++)
        seen_fini(&s[i]);
    /* and one that is ended before it has begun */
    seen_init(&s[0]);
    store_unwatch(store, store_watch(store, root, 0, &watch_ops, &s[0]));
    seen_fini(&s[0]);
}
END_TEST

/* ---- leases ---- */

static int64_t grant(int64_t ttl_s)
{
    int64_t id = 0;
    ck_assert_int_eq(store_lease_grant(store, ttl_s, deadline(), &id, NULL), 0);
    ck_assert_int_ne(id, 0);
    return id;
}

START_TEST(test_lease_revoke)
{
    struct seen s;
    seen_init(&s);
    int64_t id = grant(60), other = grant(60), ttl_s = 0;
    ck_assert_int_ne(id, other);
    put_n(KEY("a"), "x", 1, id);
    put_n(KEY("b"), "y", 1, id);
    int64_t rev = put_n(KEY("c"), "z", 1, other);
    struct store_kv kv = {0};
    ck_assert_int_eq(store_get(store, KEY("a"), deadline(), &kv, NULL, NULL), 0);
    ck_assert_int_eq(kv.lease, id);
    store_kv_fini(&kv);
    ck_assert_int_eq(store_lease_keepalive(store, id, deadline(), &ttl_s, NULL), 0);
    ck_assert_int_eq(ttl_s, 60);
    struct store_watch *w = store_watch(store, root, rev + 1, &watch_ops, &s);
    ck_assert_int_eq(store_lease_revoke(store, id, deadline(), NULL), 0);
    wait_rev(&s, rev + 1);
    store_unwatch(store, w);
    ck_assert_uint_eq(s.n, 2); /* both in one revision */
    ck_assert(s.events[0].is_delete && s.events[1].is_delete);
    expect("a", NULL);
    expect("b", NULL);
    expect("c", "z");
    ck_assert_int_eq(store_lease_revoke(store, id, deadline(), NULL), -ERR_NOT_FOUND);
    ck_assert_int_eq(store_lease_keepalive(store, id, deadline(), &ttl_s, NULL), -ERR_NOT_FOUND);
    store_lease_revoke(store, other, deadline(), NULL);
    seen_fini(&s);
}
END_TEST

START_TEST(test_lease_expiry)
{
    struct seen s;
    seen_init(&s);
    int64_t id = grant(1); /* etcd makes it a little longer */
    int64_t rev = put_n(KEY("a"), "x", 1, id);
    struct store_watch *w = store_watch(store, root, rev + 1, &watch_ops, &s);
    wait_rev(&s, rev + 1); /* the watch hears of it without any other call */
    store_unwatch(store, w);
    ck_assert(s.n == 1 && s.events[0].is_delete);
    expect("a", NULL);
    seen_fini(&s);
}
END_TEST

START_TEST(test_lease_of_a_put)
{
    int64_t id = grant(60);
    put_n(KEY("a"), "x", 1, id);
    put("a", "no lease any more");
    ck_assert_int_eq(store_lease_revoke(store, id, deadline(), NULL), 0);
    expect("a", "no lease any more");
    struct store_op op = {.key = KEY("b"), .value = "x", .value_len = 1, .lease = id};
    struct store_txn_result r = {0};
    struct store_txn t = {.ops = &op, .n_ops = 1};
    ck_assert_int_eq(store_txn(store, &t, deadline(), &r, NULL), -ERR_NOT_FOUND);
    expect("b", NULL);
}
END_TEST

START_TEST(test_status)
{
    int64_t bytes = -1;
    put("a", "some bytes");
    ck_assert_int_eq(store_status(store, deadline(), &bytes, NULL), 0);
    ck_assert_int_gt(bytes, 0);
}
END_TEST

START_TEST(test_reads_are_linearizable)
{
    for (int i = 0; i < 100; i++) {
        char text[16];
        snprintf(text, sizeof text, "%d", i);
        int64_t rev = put("a", text);
        expect("a", text);
        ck_assert_int_ge(revision(), rev);
    }
}
END_TEST

SUITE(conformance)
{
    const TTest *const tests[] = {
        test_get_and_put,
        test_binary_and_empty_values,
        test_keys_of_all_bytes,
        test_too_large,
        test_pages,
        test_range_edges,
        test_range_without_limit_is_whole,
        test_old_revisions,
        test_future_and_compacted,
        test_create_if_absent,
        test_compare_mod_and_create,
        test_all_or_nothing,
        test_noop_moves_no_revision,
        test_key_twice,
        test_concurrent_compare_and_set,
        test_watch_history_then_live,
        test_watch_from_now_and_prefix,
        test_watch_of_everything,
        test_watch_transaction,
        test_watch_catches_up_in_batches,
        test_watch_compacted,
        test_watch_from_compacted_deletion,
        test_watch_after_compaction_goes_on,
        test_watch_from_the_future,
        test_many_watches_end_at_once,
        test_lease_revoke,
        test_lease_expiry,
        test_lease_of_a_put,
        test_status,
        test_reads_are_linearizable,
    };
    store_fixture_add(s, tests, ARRAY_LEN(tests));
}
