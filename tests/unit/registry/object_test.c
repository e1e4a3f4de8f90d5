#include "apiserver/registry/object.h"

#include <pthread.h>

#include "apiserver/base/json.h"
#include "apiserver/base/scan.h"
#include "openapi/kinds.h"
#include "tests/lib/suite.h"

#define HEAD "{\"apiVersion\":\"agents.x-k8s.io/v1beta1\",\"kind\":\"Sandbox\",\"metadata\":"
#define WHOLE                                                                                      \
    HEAD "{\"annotations\":{\"a\":\"\\\"{[\\\\\"},\"labels\":{\"a\":\"1\",\"b/"                    \
         "c\":\"\"},\"name\":\"n\",\"namespace\":\"s\","                                           \
         "\"uid\":\"u-1\"},\"spec\":{\"x\":[1,-2.5e3,null,true,[],{}]}}"

static struct object *make(const char *json, int64_t rev)
{
    struct object *o = NULL;
    SCOPED(err_fini) struct err err = {0};
    ck_assert_msg(object_from_bytes(&kind_sandbox, xstrdup(json), strlen(json), rev, &o, &err) == 0,
                  "%s: %s", err_text(&err), json);
    return o;
}

START_TEST(test_index)
{
    SCOPED(object_unref_p) struct object *o = make(WHOLE, 7);
    ck_assert_str_eq(o->name, "n");
    ck_assert_str_eq(o->namespace_name, "s");
    ck_assert_str_eq(o->uid, "u-1");
    ck_assert_uint_eq(o->labels.n, 2);
    ck_assert_str_eq(pairs_get(&o->labels, "a"), "1");
    ck_assert_str_eq(pairs_get(&o->labels, "b/c"), "");
    ck_assert(!o->is_terminating);
    ck_assert_int_eq(o->rev, 7);
}
END_TEST

START_TEST(test_splice)
{
    SCOPED(object_unref_p) struct object *o = make(WHOLE, 7);
    SCOPED(buf_fini) struct buf b = {0};
    object_write(o, &b);
    ck_assert(
        strstr(buf_cstr(&b), "\"namespace\":\"s\",\"resourceVersion\":\"7\",\"uid\":\"u-1\""));
    SCOPED(json_free_p) cJSON *tree = object_tree(o);
    ck_assert_str_eq(json_str(tree, "metadata.resourceVersion"), "7");
    json_sort(tree);
    SCOPED_FREE char *again = json_to_str(tree);
    ck_assert_str_eq(again, buf_cstr(&b)); /* it stands where sorting puts it */
}
END_TEST

START_TEST(test_no_revision_without_rev)
{
    SCOPED(object_unref_p) struct object *o = make(WHOLE, 0);
    SCOPED(buf_fini) struct buf b = {0};
    object_write(o, &b);
    ck_assert_str_eq(buf_cstr(&b), WHOLE);
}
END_TEST

START_TEST(test_at_rev)
{
    struct object *o = make(WHOLE, 7);
    struct object *later = object_at_rev(o, 9);
    SCOPED(object_unref_p) struct object *latest = object_at_rev(later, 11);
    object_unref(o);
    object_unref(later);
    ck_assert_int_eq(latest->rev, 11);
    ck_assert_str_eq(latest->name, "n");
    ck_assert_str_eq(latest->json, WHOLE);
}
END_TEST

START_TEST(test_terminating_and_escapes)
{
    SCOPED(object_unref_p)
    struct object *o = make(HEAD "{\"deletionTimestamp\":\"2026-01-02T03:04:05Z\",\"labels\":{"
                                 "\"\\u0061\":\"\\u00e9\\\"\",\"n\":null},"
                                 "\"name\":\"n\",\"uid\":\"u\"}}",
                            1);
    ck_assert(o->is_terminating);
    ck_assert_str_eq(o->labels.v[0].name, "a");
    ck_assert_str_eq(o->labels.v[0].value, "\xc3\xa9\"");
    ck_assert_str_eq(o->labels.v[1].value, "");
    ck_assert_str_eq(o->namespace_name, "");
}
END_TEST

static const char *const broken[] = {
    "",
    "null",
    "[]",
    "{}",
    HEAD "{\"name\":\"n\",\"uid\":\"u\"}",
    HEAD "{\"name\":\"n\",\"uid\":\"u\"}} x",
    HEAD "{\"name\":\"n\",\"uid\":\"u\"},\"spec\":{\"a\":01}}",
    HEAD "{\"name\":\"n\",\"uid\":\"u\"},\"spec\":{\"a\":tru}}",
    HEAD "{\"name\":\"n\",\"uid\":\"u\"},\"spec\":{\"a\":\"\\x\"}}",
    HEAD "{\"name\":\"n\",\"uid\":\"u\"},\"spec\":[1,]}",
    HEAD "{\"name\":\"n\",\"uid\":\"u\"},\"spec\":[1}",
    HEAD "{\"name\":\"n\",\"uid\":\"u\"},}",
    HEAD "{\"name\":\"n\"}}",
    HEAD "{\"uid\":\"u\"}}",
    HEAD "{\"name\":1,\"uid\":\"u\"}}",
    HEAD "{\"labels\":{\"a\":1},\"name\":\"n\",\"uid\":\"u\"}}",
    HEAD "{\"name\":\"n\",\"resourceVersion\":\"5\",\"uid\":\"u\"}}",
    "{\"apiVersion\":\"agents.x-k8s.io/"
    "v1\",\"kind\":\"Sandbox\",\"metadata\":{\"name\":\"n\",\"uid\":\"u\"}}",
    "{\"apiVersion\":\"agents.x-k8s.io/"
    "v1beta1\",\"kind\":\"SandboxClaim\",\"metadata\":{\"name\":\"n\",\"uid\":\"u\"}}",
};

START_TEST(test_broken)
{
    struct object *o = NULL;
    SCOPED(err_fini) struct err err = {0};
    const char *json = broken[_i];
    ck_assert_msg(object_from_bytes(&kind_sandbox, xstrdup(json), strlen(json), 1, &o, &err) ==
                      -ERR_INTERNAL,
                  "%s", json);
    ck_assert_ptr_null(o);
}
END_TEST

/* Whatever is cut off a good document is no document. */
START_TEST(test_cut_off)
{
    for (size_t n = 0; n < strlen(WHOLE); n++) {
        struct object *o = NULL;
        ck_assert_msg(object_from_bytes(&kind_sandbox, xstrndup(WHOLE, n), n, 1, &o, NULL) < 0,
                      "%zu bytes", n);
    }
}
END_TEST

START_TEST(test_depth)
{
    size_t n = SCAN_DEPTH_MAX + 1; /* the innermost list is empty and needs no level */
    char *text = xmalloc(2 * n + 2);
    memset(text, '[', n + 1);
    memset(text + n + 1, ']', n + 1);
    struct scan whole = {text + 1, text + 1 + 2 * n}, deeper = {text, text + 2 * n + 2};
    ck_assert(scan_value(&whole, NULL) && scan_at_end(&whole));
    ck_assert(!scan_value(&deeper, NULL));
    free(text);
}
END_TEST

static void *ref_often(void *arg)
{
    struct object *o = arg;
    for (int i = 0; i < 20000; i++) {
        object_unref(object_ref(o));
        object_unref(object_at_rev(o, i));
    }
    object_unref(o);
    return NULL;
}

START_TEST(test_shared_by_threads)
{
    struct object *o = make(WHOLE, 1);
    pthread_t threads[4];
    for (size_t i = 0; i < ARRAY_LEN(threads); i++)
        pthread_create(&threads[i], NULL, ref_often, object_ref(o));
    for (size_t i = 0; i < ARRAY_LEN(threads); i++)
        pthread_join(threads[i], NULL);
    ck_assert_uint_eq(o->refs, 1);
    object_unref(o);
}
END_TEST

SUITE(object)
{
    TESTS("good", test_index, test_splice, test_no_revision_without_rev, test_at_rev,
          test_terminating_and_escapes);
    LOOP("broken", test_broken, 0, ARRAY_LEN(broken));
    TESTS("limits", test_cut_off, test_depth, test_shared_by_threads);
}
