/* JSON patch and merge patch: rows of (document, patch, result). */
#include "apiserver/registry/patch.h"

#include "apiserver/base/json.h"
#include "tests/lib/suite.h"

struct row {
    const char *doc, *patch, *result; /* result NULL = refused */
};

static const struct row json_rows[] = {
    /* add */
    {"{\"a\":1}", "[{\"op\":\"add\",\"path\":\"/b\",\"value\":2}]", "{\"a\":1,\"b\":2}"},
    {"{\"a\":1}", "[{\"op\":\"add\",\"path\":\"/a\",\"value\":[1]}]", "{\"a\":[1]}"},
    {"{\"l\":[1,3]}", "[{\"op\":\"add\",\"path\":\"/l/1\",\"value\":2}]", "{\"l\":[1,2,3]}"},
    {"{\"l\":[1,3]}", "[{\"op\":\"add\",\"path\":\"/l/0\",\"value\":0}]", "{\"l\":[0,1,3]}"},
    {"{\"l\":[1]}", "[{\"op\":\"add\",\"path\":\"/l/1\",\"value\":2}]", "{\"l\":[1,2]}"},
    {"{\"l\":[1]}", "[{\"op\":\"add\",\"path\":\"/l/-\",\"value\":{\"x\":null}}]",
     "{\"l\":[1,{\"x\":null}]}"},
    {"{\"l\":[1]}", "[{\"op\":\"add\",\"path\":\"/l/2\",\"value\":2}]", NULL},
    {"{\"l\":[1]}", "[{\"op\":\"add\",\"path\":\"/l/x\",\"value\":2}]", NULL},
    {"{\"l\":[1]}", "[{\"op\":\"add\",\"path\":\"/l/-1\",\"value\":2}]", "{\"l\":[1,2]}"},
    {"{\"l\":[1]}", "[{\"op\":\"add\",\"path\":\"/l/-2\",\"value\":2}]", "{\"l\":[2,1]}"},
    {"{\"l\":[1]}", "[{\"op\":\"add\",\"path\":\"/l/-3\",\"value\":2}]", NULL},
    {"{\"a\":1}", "[{\"op\":\"add\",\"path\":\"/x/y\",\"value\":2}]", NULL},
    {"{\"a\":1}", "[{\"op\":\"add\",\"path\":\"/a/y\",\"value\":2}]", NULL},
    {"{\"a\":1}", "[{\"op\":\"add\",\"path\":\"\",\"value\":{\"b\":2}}]", NULL},
    {"{\"\":1}", "[{\"op\":\"add\",\"path\":\"/\",\"value\":2}]", "{\"\":2}"},
    /* remove */
    {"{\"a\":1,\"b\":2}", "[{\"op\":\"remove\",\"path\":\"/a\"}]", "{\"b\":2}"},
    {"{\"l\":[1,2,3]}", "[{\"op\":\"remove\",\"path\":\"/l/1\"}]", "{\"l\":[1,3]}"},
    {"{\"a\":1}", "[{\"op\":\"remove\",\"path\":\"/b\"}]", NULL},
    {"{\"l\":[1]}", "[{\"op\":\"remove\",\"path\":\"/l/1\"}]", NULL},
    {"{\"l\":[1]}", "[{\"op\":\"remove\",\"path\":\"/l/-\"}]", NULL},
    {"{\"l\":[1,2]}", "[{\"op\":\"remove\",\"path\":\"/l/-2\"}]", "{\"l\":[2]}"},
    {"{\"l\":[1,2]}", "[{\"op\":\"remove\",\"path\":\"/l/-3\"}]", NULL},
    /* replace */
    {"{\"a\":1}", "[{\"op\":\"replace\",\"path\":\"/a\",\"value\":\"x\"}]", "{\"a\":\"x\"}"},
    {"{\"l\":[1,2]}", "[{\"op\":\"replace\",\"path\":\"/l/0\",\"value\":9}]", "{\"l\":[9,2]}"},
    {"{\"l\":[1,2]}", "[{\"op\":\"replace\",\"path\":\"/l/2\",\"value\":9}]", NULL},
    {"{\"l\":[1,2]}", "[{\"op\":\"replace\",\"path\":\"/l/-1\",\"value\":9}]", "{\"l\":[1,9]}"},
    {"{\"l\":[{\"a\":1}]}", "[{\"op\":\"add\",\"path\":\"/l/-1/a\",\"value\":9}]",
     "{\"l\":[{\"a\":9}]}"},
    {"{\"a\":1}", "[{\"op\":\"replace\",\"path\":\"/x/y\",\"value\":9}]", NULL},
    {"{\"a\":1}", "[{\"op\":\"replace\",\"path\":\"\",\"value\":[]}]", "[]"},
    {"{\"a\":1}", "[{\"op\":\"replace\",\"path\":\"\",\"value\":5}]", NULL},
    {"{\"a\":1}", "[{\"op\":\"replace\",\"path\":\"\"}]", NULL},
    /* move */
    {"{\"a\":1}", "[{\"op\":\"move\",\"from\":\"/a\",\"path\":\"/b\"}]", "{\"b\":1}"},
    {"{\"l\":[1,2,3]}", "[{\"op\":\"move\",\"from\":\"/l/0\",\"path\":\"/l/2\"}]",
     "{\"l\":[2,3,1]}"},
    {"{\"a\":{\"b\":1}}", "[{\"op\":\"move\",\"from\":\"/a\",\"path\":\"/a/c\"}]", NULL},
    {"{\"a\":1}", "[{\"op\":\"move\",\"from\":\"/x\",\"path\":\"/b\"}]", NULL},
    {"{\"a\":1}", "[{\"op\":\"move\",\"path\":\"/b\"}]", NULL},
    {"{\"a\":1}", "[{\"op\":\"move\",\"from\":\"\",\"path\":\"/b\"}]", NULL},
    /* copy */
    {"{\"a\":{\"b\":1}}", "[{\"op\":\"copy\",\"from\":\"/a\",\"path\":\"/c\"}]",
     "{\"a\":{\"b\":1},\"c\":{\"b\":1}}"},
    {"{\"a\":{\"b\":1}}", "[{\"op\":\"copy\",\"from\":\"/a\",\"path\":\"/a/c\"}]",
     "{\"a\":{\"b\":1,\"c\":{\"b\":1}}}"},
    {"{\"a\":1}", "[{\"op\":\"copy\",\"from\":\"/x\",\"path\":\"/b\"}]", "{\"a\":1,\"b\":null}"},
    {"{\"a\":[]}", "[{\"op\":\"copy\",\"from\":\"/a/0\",\"path\":\"/b\"}]", NULL},
    {"{\"a\":1}", "[{\"op\":\"copy\",\"from\":\"/x/y\",\"path\":\"/b\"}]", NULL},
    {"{\"a\":1}", "[{\"op\":\"copy\",\"from\":\"\",\"path\":\"/b\"}]", NULL},
    {"{\"a\":{}}", "[{\"op\":\"copy\",\"from\":\"/a\",\"path\":\"\"}]", NULL},
    {"{\"a\":{}}", "[{\"op\":\"move\",\"from\":\"/a\",\"path\":\"\"}]", NULL},
    /* test */
    {"{\"a\":{\"b\":[1,2.0]}}", "[{\"op\":\"test\",\"path\":\"/a\",\"value\":{\"b\":[1,2]}}]",
     "{\"a\":{\"b\":[1,2.0]}}"},
    {"{\"a\":1}", "[{\"op\":\"test\",\"path\":\"/a\",\"value\":2}]", NULL},
    {"{\"a\":1}", "[{\"op\":\"test\",\"path\":\"/a\",\"value\":\"1\"}]", NULL},
    {"{\"a\":null}", "[{\"op\":\"test\",\"path\":\"/a\",\"value\":null}]", "{\"a\":null}"},
    {"{\"l\":[1]}", "[{\"op\":\"test\",\"path\":\"/l/5\",\"value\":null}]", NULL},
    {"{\"a\":1}", "[{\"op\":\"test\",\"path\":\"\",\"value\":{\"a\":1}}]", "{\"a\":1}"},
    /* pointers */
    {"{\"a/b\":1,\"m~n\":2}", "[{\"op\":\"remove\",\"path\":\"/a~1b\"}]", "{\"m~n\":2}"},
    {"{\"a/b\":1,\"m~n\":2}", "[{\"op\":\"remove\",\"path\":\"/m~0n\"}]", "{\"a/b\":1}"},
    {"{\"~1\":1}", "[{\"op\":\"remove\",\"path\":\"/~01\"}]", "{}"},
    {"{\"a\":{\"b\":{\"c\":1}}}", "[{\"op\":\"add\",\"path\":\"/a/b/d\",\"value\":2}]",
     "{\"a\":{\"b\":{\"c\":1,\"d\":2}}}"},
    {"{\"l\":[[1],[2]]}", "[{\"op\":\"add\",\"path\":\"/l/1/0\",\"value\":0}]",
     "{\"l\":[[1],[0,2]]}"},
    /* several, all or nothing */
    {"{\"a\":1}",
     "[{\"op\":\"remove\",\"path\":\"/a\"},{\"op\":\"add\",\"path\":\"/b\",\"value\":1}]",
     "{\"b\":1}"},
    {"{\"a\":1}", "[{\"op\":\"remove\",\"path\":\"/a\"},{\"op\":\"remove\",\"path\":\"/a\"}]",
     NULL},
    {"{\"a\":1}", "[]", "{\"a\":1}"},
    {"{\"a\":1}", "null", "{\"a\":1}"},
    /* broken operations */
    {"{\"a\":1}", "[null]", NULL},
    {"{\"a\":1}", "[5]", NULL},
    {"{\"a\":1}", "[{\"path\":\"/a\",\"value\":1}]", NULL},
    {"{\"a\":1}", "[{\"op\":\"add\",\"value\":1}]", NULL},
    {"{\"a\":1}", "[{\"op\":\"frob\",\"path\":\"/a\"}]", NULL},
    {"{\"a\":1}", "[{\"op\":\"add\",\"path\":5,\"value\":1}]", NULL},
    /* leniencies */
    {"{\"a\":1}", "[{\"op\":\"replace\",\"path\":\"/b\",\"value\":2}]", "{\"a\":1,\"b\":2}"},
    {"{\"a\":1}", "[{\"op\":\"test\",\"path\":\"/b\",\"value\":null}]", "{\"a\":1}"},
    {"{\"a\":1}", "[{\"op\":\"add\",\"path\":\"/b\"}]", "{\"a\":1,\"b\":null}"},
    {"{\"l\":[1]}", "[{\"op\":\"add\",\"path\":\"/l/-1\",\"value\":2}]", "{\"l\":[1,2]}"},
    {"{\"a\":1}", "[{\"op\":\"add\",\"path\":\"spec/b\",\"value\":2}]", "{\"a\":1,\"b\":2}"},
    {"{\"a\":1}", "[{\"op\":\"add\",\"path\":\"spec\",\"value\":2}]", NULL},
};

static cJSON *parse(const char *text)
{
    cJSON *tree = NULL;
    ck_assert_msg(json_parse_str(text, &tree, NULL) == 0, "%s", text);
    return tree;
}

START_TEST(test_json)
{
    const struct row *row = &json_rows[_i];
    SCOPED(json_free_p) cJSON *doc = parse(row->doc), *patch = parse(row->patch), *result = NULL;
    SCOPED(err_fini) struct err err = {0};
    int r = patch_json(doc, patch, &result, &err);
    SCOPED_FREE char *untouched = json_to_str(doc);
    if (!row->result) {
        ck_assert_msg(r == -ERR_INVALID && !result, "%s", row->patch);
        ck_assert_str_eq(err_text(&err),
                         "the server rejected our request due to an error in our request");
        ck_assert(err.has_details && !err.n_causes);
    } else {
        ck_assert_msg(r == 0, "%s", row->patch);
        SCOPED(json_free_p) cJSON *expected = parse(row->result);
        SCOPED_FREE char *got = json_to_str(result);
        ck_assert_msg(json_equal(result, expected), "%s gave %s", row->patch, got);
    }
    SCOPED(json_free_p) cJSON *again = parse(untouched), *before = parse(row->doc);
    ck_assert(json_equal(again, before));
}
END_TEST

static const struct row merge_rows[] = {
    {"{\"a\":\"b\"}", "{\"a\":\"c\"}", "{\"a\":\"c\"}"},
    {"{\"a\":\"b\"}", "{\"b\":\"c\"}", "{\"a\":\"b\",\"b\":\"c\"}"},
    {"{\"a\":\"b\"}", "{\"a\":null}", "{}"},
    {"{\"a\":\"b\",\"b\":\"c\"}", "{\"a\":null}", "{\"b\":\"c\"}"},
    {"{\"a\":[\"b\"]}", "{\"a\":\"c\"}", "{\"a\":\"c\"}"},
    {"{\"a\":\"c\"}", "{\"a\":[\"b\"]}", "{\"a\":[\"b\"]}"},
    {"{\"a\":{\"b\":\"c\"}}", "{\"a\":{\"b\":\"d\",\"c\":null}}", "{\"a\":{\"b\":\"d\"}}"},
    {"{\"a\":[{\"b\":\"c\"}]}", "{\"a\":[1]}", "{\"a\":[1]}"},
    {"{\"a\":1}", "{\"a\":{\"b\":{\"c\":null}}}", "{\"a\":{\"b\":{}}}"},
    {"{}", "{\"a\":{\"bb\":{\"ccc\":null}}}", "{\"a\":{\"bb\":{}}}"},
    {"{\"a\":1}", "{\"x\":[{\"k\":null}]}", "{\"a\":1,\"x\":[{\"k\":null}]}"},
    {"[1]", "{\"a\":1}", "{\"a\":1}"},
    {"{\"a\":1}", "{}", "{\"a\":1}"},
    {"{\"a\":1}", "{\"nope\":null}", "{\"a\":1}"},
};

START_TEST(test_merge)
{
    const struct row *row = &merge_rows[_i];
    SCOPED(json_free_p)
    cJSON *doc = parse(row->doc), *patch = parse(row->patch), *result = NULL,
          *expected = parse(row->result);
    patch_merge(doc, patch, &result);
    SCOPED_FREE char *got = json_to_str(result);
    ck_assert_msg(json_equal(result, expected), "%s with %s gave %s", row->doc, row->patch, got);
    SCOPED(json_free_p) cJSON *before = parse(row->doc);
    ck_assert(json_equal(doc, before));
}
END_TEST

static void set_many(cJSON *object, int from, int to, int64_t value)
{
    for (int i = from; i < to; i++) {
        SCOPED_FREE char *name = xasprintf("k%d", i);
        json_add(object, name, json_int(value));
    }
}

#define MANY 200000

/* Takes minutes when each member is looked for among all. */
START_TEST(test_merge_many)
{
    SCOPED(json_free_p)
    cJSON *doc = json_object(), *patch = json_object(), *expected = json_object(), *result = NULL;
    set_many(doc, 0, MANY, 1);
    set_many(patch, MANY / 2, MANY * 3 / 2, 2);
    json_add(patch, "gone", json_null());
    json_add(doc, "gone", json_int(1));
    json_add(patch, "inside", parse("{\"a\":{\"b\":1,\"c\":null}}"));
    set_many(expected, 0, MANY / 2, 1);
    set_many(expected, MANY / 2, MANY * 3 / 2, 2);
    json_add(expected, "inside", parse("{\"a\":{\"b\":1}}"));
    patch_merge(doc, patch, &result);
    ck_assert(json_equal(result, expected));
}
END_TEST

static cJSON *many_operations(size_t n)
{
    cJSON *list = json_array();
    for (size_t i = 0; i < n; i++)
        json_push(list, json_null());
    return list;
}

START_TEST(test_too_many)
{
    SCOPED(json_free_p)
    cJSON *doc = json_object(), *fits = many_operations(10000), *more = many_operations(10001),
          *result = NULL;
    SCOPED(err_fini) struct err err = {0};
    ck_assert_int_eq(patch_json(doc, fits, &result, &err), -ERR_INVALID);
    ck_assert_int_eq(patch_json(doc, more, &result, &err), -ERR_TOO_LARGE);
    ck_assert_str_eq(err_text(&err), "Request entity too large: The allowed maximum operations in "
                                     "a JSON patch is 10000, got 10001");
}
END_TEST

/* Many operations on a long list are, before they take minutes. */
START_TEST(test_too_long_ways)
{
    SCOPED(json_free_p)
    cJSON *doc = parse("{\"a\":[]}"), *patch = json_array(), *result = NULL;
    SCOPED(err_fini) struct err err = {0};
    for (int i = 0; i < PATCH_STEPS_MAX / 1000; i++)
        json_push(json_get(doc, "a"), json_null());
    for (int i = 0; i < 999; i++)
        json_push(patch, parse("{\"op\":\"test\",\"path\":\"/a/1\",\"value\":null}"));
    ck_assert_int_eq(patch_json(doc, patch, &result, &err), 0);
    json_push(patch, parse("{\"op\":\"copy\",\"from\":\"/a/0\",\"path\":\"/a/0\"}"));
    ck_assert_int_eq(patch_json(doc, patch, &result, &err), -ERR_TOO_LARGE);
    ck_assert_str_eq(err_text(&err), "Request entity too large: the operations of the JSON patch "
                                     "pass more than 20000000 items");
}
END_TEST

/* Doubling a document again and again is stopped. */
START_TEST(test_copy_growth)
{
    SCOPED(json_free_p)
    cJSON *doc = parse("{\"a\":[\"0123456789012345678901234567890123456789\"]}"),
          *patch = json_array(), *result = NULL;
    SCOPED(err_fini) struct err err = {0};
    for (int i = 0; i < 40; i++)
        json_push(patch, parse("{\"op\":\"copy\",\"from\":\"/a\",\"path\":\"/a/-\"}"));
    ck_assert_int_eq(patch_json(doc, patch, &result, &err), -ERR_INVALID);
}
END_TEST

SUITE(patch)
{
    LOOP("json", test_json, 0, ARRAY_LEN(json_rows));
    LOOP("merge", test_merge, 0, ARRAY_LEN(merge_rows));
    TESTS("limits", test_too_many, test_too_long_ways, test_copy_growth, test_merge_many);
}
