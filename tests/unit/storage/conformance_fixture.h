/* Short forms for the tests of the contract that every store keeps (storage/store.h): keys are
 * below the test's own prefix, and a call that must work fails the test when it does not. */
#pragma once

#include <inttypes.h>
#include <stdio.h>

#include "apiserver/base/clock.h"
#include "tests/lib/store_fixture.h"
#include "tests/lib/suite.h"

#define WAIT_MS 120000

static inline int64_t deadline(void)
{
    return clock_monotonic_ms(&clock_system) + WAIT_MS;
}

#define KEY(name) key_of((char[200]){0}, (name))
static inline const char *key_of(char *out, const char *name)
{
    snprintf(out, 200, "%s%s", root, name);
    return out;
}

static inline struct store_txn_result txn(const struct store_txn *t)
{
    struct err err = {0};
    struct store_txn_result r = {0};
    ck_assert_msg(store_txn(store, t, deadline(), &r, &err) == 0, "%s", err_text(&err));
    return r;
}

static inline int64_t put_n(const char *key, const char *value, size_t n, int64_t lease)
{
    struct store_op op = {.key = key, .value = value, .value_len = n, .lease = lease};
    SCOPED(store_txn_result_fini)
    struct store_txn_result r = txn(&(struct store_txn){.ops = &op, .n_ops = 1});
    ck_assert(r.succeeded);
    return r.rev;
}
static inline int64_t put(const char *name, const char *value)
{
    return put_n(KEY(name), value, strlen(value), 0);
}
static inline int64_t del(const char *name)
{
    struct store_op op = {.key = KEY(name)};
    SCOPED(store_txn_result_fini)
    struct store_txn_result r = txn(&(struct store_txn){.ops = &op, .n_ops = 1});
    ck_assert(r.succeeded);
    return r.rev;
}
/* The value, "" with absent set when there is none. */
static inline char *get(const char *name)
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
static inline void expect(const char *name, const char *value)
{
    SCOPED_FREE char *is = get(name);
    if (value == NULL)
        ck_assert_ptr_null(is);
    else
        ck_assert_str_eq(is == NULL ? "(absent)" : is, value);
}
static inline int64_t revision(void)
{
    int64_t rev = 0;
    ck_assert_int_eq(store_revision(store, deadline(), &rev, NULL), 0);
    return rev;
}
static inline struct store_page range(const char *from, const char *end, int64_t limit, int64_t rev,
                                      bool keys_only)
{
    struct err err = {0};
    struct store_page p = {0};
    ck_assert_msg(store_range(store, from, end, limit, rev, keys_only, deadline(), &p, &err) == 0,
                  "%s", err_text(&err));
    return p;
}
static inline void compact(int64_t rev)
{
    struct err err = {0};
    ck_assert_msg(store_compact(store, rev, deadline(), &err) == 0, "%s", err_text(&err));
}
