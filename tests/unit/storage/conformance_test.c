/* One contract, several stores: every test here (and in conformance_watch_test.c) runs in memory,
 * on Debian's etcd 3.4 and on the newest etcd at hand. Keys and values, ranges, transactions. */
#include <pthread.h>

#include "tests/unit/storage/conformance_fixture.h"

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

SUITE(conformance)
{
    const TTest *const tests[] = {
        test_get_and_put,
        test_binary_and_empty_values,
        test_keys_of_all_bytes,
        test_too_large,
        test_status,
        test_reads_are_linearizable,
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
    };
    store_fixture_add(s, tests, ARRAY_LEN(tests));
}
