/* Look-ups of members by a table and without one: the same is seen, and the same is left. */
#include "apiserver/base/json_members.h"

#include "tests/lib/suite.h"

static const size_t look_ups[] = {0, 1000}; /* few enough to go without a table, and many */

static struct json_members open_members(cJSON *object, int row)
{
    return json_members_of(object, look_ups[row]);
}

START_TEST(test_members)
{
    SCOPED(json_free_p) cJSON *object = NULL;
    ck_assert_int_eq(json_parse_str("{\"a\":1,\"b\":2,\"c\":3}", &object, NULL), 0);
    struct json_members m = open_members(object, _i);
    ck_assert_ptr_eq(json_members_get(&m, "b"), json_get(object, "b"));
    ck_assert_ptr_null(json_members_get(&m, "d"));
    json_members_set(&m, "b", json_string("x")); /* where it was */
    json_members_set(&m, "d", json_int(4));
    json_members_set(&m, "d", json_int(5));
    json_members_remove(&m, "a");
    json_members_remove(&m, "a");
    json_members_set(&m, "a", json_int(6));
    json_members_remove(&m, "c");
    ck_assert_str_eq(json_members_get(&m, "b")->valuestring, "x");
    ck_assert_ptr_null(json_members_get(&m, "c"));
    json_members_fini(&m);
    SCOPED_FREE char *text = json_to_str(object);
    ck_assert_str_eq(text, "{\"b\":\"x\",\"d\":5,\"a\":6}");
}
END_TEST

START_TEST(test_from_nothing)
{
    SCOPED(json_free_p) cJSON *object = json_object();
    struct json_members m = open_members(object, _i);
    json_members_remove(&m, "a");
    json_members_set(&m, "a", json_null());
    ck_assert_ptr_eq(json_members_get(&m, "a"), object->child);
    json_members_fini(&m);
    ck_assert_uint_eq(json_len(object), 1);
}
END_TEST

SUITE(json_members)
{
    LOOP("members", test_members, 0, ARRAY_LEN(look_ups));
    LOOP("from nothing", test_from_nothing, 0, ARRAY_LEN(look_ups));
}
