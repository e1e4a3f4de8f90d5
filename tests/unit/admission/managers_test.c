/* The managers of fields: reading and writing the list, the update rule, the limit. */
#include "admission/managers.h"

#include "apiserver/base/json.h"
#include "openapi/kinds.h"
#include "tests/lib/suite.h"

#define V "agents.x-k8s.io/v1beta1"
#define NOW "2026-01-02T03:04:05Z"

static cJSON *tree_of(const char *text)
{
    SCOPED_FREE char *json = xstrdup(text);
    for (char *p = json; *p; p++)
        *p = *p == '\'' ? '"' : *p;
    cJSON *tree = NULL;
    ck_assert_msg(json_parse_str(json, &tree, NULL) == 0, "%s", json);
    return tree;
}

/* ' stands for ". */
static char *printed(struct managers *m)
{
    struct buf out = {0};
    managers_print(m, &out);
    char *text = buf_take(&out, NULL);
    for (char *p = text; *p; p++)
        *p = *p == '"' ? '\'' : *p;
    return text;
}

static void check(struct managers *m, const char *expected, const char *what)
{
    SCOPED_FREE char *text = printed(m);
    ck_assert_msg(strcmp(text, expected) == 0, "%s: %s", what, text);
}

/* One entry, members by name. */
#define ENTRY(name, op, time, fields)                                                              \
    "{'apiVersion':'" V "','fieldsType':'FieldsV1','fieldsV1':" fields ",'manager':'" name         \
    "','operation':'" op "'" time "}"
#define AT(time) ",'time':'" time "'"
#define STATUS ",'subresource':'status'"

/* ---- the list ---- */

static const struct {
    const char *in, *out; /* out NULL = makes no sense, "=" = as in */
} lists[] = {
    {"[]", "="},
    {"[" ENTRY("a", "Update", AT(NOW), "{'f:spec':{}}") "]", "="},
    {"[" ENTRY("a", "Apply", "", "{}") "]", "="},
    {"[{'operation':'Update','apiVersion':'" V "','fieldsType':'FieldsV1'}]",
     "[{'apiVersion':'" V "','fieldsType':'FieldsV1','fieldsV1':{},'operation':'Update'}]"},
    /* times are put into UTC and whole seconds */
    {"[" ENTRY("a", "Update", AT("2026-01-02T05:04:05.9+02:00"), "{'f:a':{}}") "]",
     "[" ENTRY("a", "Update", AT(NOW), "{'f:a':{}}") "]"},
    /* of one manager twice the later one counts; appliers are the same whatever the version */
    {"[" ENTRY("a", "Update", "", "{'f:a':{}}") "," ENTRY("a", "Update", "", "{'f:b':{}}") "]",
     "[" ENTRY("a", "Update", "", "{'f:b':{}}") "]"},
    {"[{'apiVersion':'x/v9','fieldsType':'FieldsV1','fieldsV1':{'f:a':{}},'manager':'a',"
     "'operation':'Apply'}," ENTRY("a", "Apply", "", "{'f:b':{}}") "]",
     "[" ENTRY("a", "Apply", "", "{'f:b':{}}") "]"},
    {"[" ENTRY("a", "Create", "", "{}") "]", NULL},
    {"[{}]", NULL},
    {"[null]", NULL},
    {"[1]", NULL},
    {"{}", NULL},
    {"[{'operation':'Update','fieldsType':'FieldsV1'}]", NULL},
    {"[{'operation':'Update','apiVersion':'" V "'}]", NULL},
    {"[{'operation':'Update','apiVersion':'" V "','fieldsType':'FieldsV2'}]", NULL},
    {"[{'operation':'Update','apiVersion':1,'fieldsType':'FieldsV1'}]", NULL},
    {"[" ENTRY("a", "Update", "", "{'spec':{}}") "]", NULL},
    {"[" ENTRY("a", "Update", "", "{'f:spec':{}}") ",{}]", NULL},
};

START_TEST(test_list)
{
    SCOPED(json_free_p) cJSON *tree = tree_of(lists[_i].in);
    SCOPED(managers_fini) struct managers m = {0};
    int rc = managers_read(&m, tree, true);
    ck_assert_msg((rc < 0) == !lists[_i].out, "%s", lists[_i].in);
    if (rc < 0) {
        ck_assert_uint_eq(m.n, 0);
        return;
    }
    const char *expected = strcmp(lists[_i].out, "=") == 0 ? lists[_i].in : lists[_i].out;
    check(&m, expected, lists[_i].in);
    /* What was printed is read as it is, also as raw text. */
    SCOPED(buf_fini) struct buf text = {0};
    managers_print(&m, &text);
    SCOPED(json_free_p) cJSON *raw = json_raw(xstrdup(buf_cstr(&text)));
    SCOPED(managers_fini) struct managers again = {0};
    ck_assert_int_eq(managers_read(&again, raw, false), 0);
    ck_assert(managers_equal_but_time(&m, &again));
    check(&again, expected, "again");
}
END_TEST

/* Appliers first, then by second, name and subresource. */
START_TEST(test_order)
{
    static const char *const entries[] = {
        ENTRY("5", "Update", AT(NOW), "{'f:a':{}}"),
        ENTRY("4", "Update", STATUS AT(NOW), "{'f:b':{}}"),
        ENTRY("1", "Apply", AT(NOW), "{'f:c':{}}"),
        ENTRY("4", "Update", AT(NOW), "{'f:d':{}}"),
        ENTRY("2", "Update", "", "{'f:e':{}}"),
        ENTRY("3", "Update", AT("2020-01-01T00:00:00Z"), "{'f:f':{}}"),
        ENTRY("0", "Apply", "", "{'f:g':{}}"),
    };
    SCOPED_FREE char *list = xasprintf("[%s,%s,%s,%s,%s,%s,%s]", entries[0], entries[1], entries[2],
                                       entries[3], entries[4], entries[5], entries[6]);
    SCOPED_FREE char *expected =
        xasprintf("[%s,%s,%s,%s,%s,%s,%s]", entries[6], entries[2], entries[4], entries[5],
                  entries[3], entries[1], entries[0]);
    SCOPED(json_free_p) cJSON *tree = tree_of(list);
    SCOPED(managers_fini) struct managers m = {0};
    ck_assert_int_eq(managers_read(&m, tree, true), 0);
    check(&m, expected, "order");
}
END_TEST

static const struct {
    const char *list;
    bool is_reset;
} resets[] = {
    {"[]", false},
    {"[{}]", true},
    {"[{'manager':'','operation':'','time':null}]", true},
    {"[{'manager':'a'}]", false},
    {"[{'fieldsV1':{}}]", false},
    {"[{},{}]", false},
    {"{}", false},
};

START_TEST(test_reset)
{
    SCOPED(json_free_p) cJSON *list = tree_of(resets[_i].list);
    ck_assert_msg(managers_is_reset(list) == resets[_i].is_reset, "%s", resets[_i].list);
}
END_TEST

/* ---- the update rule ---- */

static const struct {
    const char *what, *before; /* the fields of other */
    const char *old, *new;
    const char *subresource, *other, *writer; /* fields afterwards; NULL = no entry */
} records[] = {
    {"nothing", "{'f:spec':{'f:service':{}}}", "{'spec':{'service':true}}",
     "{'spec':{'service':true}}", "", "{'f:spec':{'f:service':{}}}", NULL},
    {"added", "{'f:spec':{}}", "{'spec':{}}", "{'spec':{'service':true}}", "", "{'f:spec':{}}",
     "{'f:spec':{'f:service':{}}}"},
    {"changed", "{'f:spec':{'.':{},'f:service':{}}}", "{'spec':{'service':true}}",
     "{'spec':{'service':false}}", "", "{'f:spec':{}}", "{'f:spec':{'f:service':{}}}"},
    {"removed", "{'f:spec':{'.':{},'f:service':{}}}", "{'spec':{'service':true}}", "{'spec':{}}",
     "", "{'f:spec':{}}", NULL},
    {"the last one removed", "{'f:spec':{'f:service':{}}}", "{'spec':{'service':true}}",
     "{'spec':{}}", "", NULL, NULL},
    {"never owned", "{'f:spec':{}}", "{'metadata':{}}",
     "{'apiVersion':'a','kind':'b','metadata':{'name':'n','uid':'u','generation':2,"
     "'resourceVersion':'1','creationTimestamp':'t','namespace':'x','labels':{'l':''}}}",
     "", "{'f:spec':{}}", "{'f:metadata':{'f:labels':{'.':{},'f:l':{}}}}"},
    {"status is not the main endpoint's", "{'f:status':{'f:service':{}}}",
     "{'status':{'service':'a'}}", "{'status':{'service':'b'}}", "",
     "{'f:status':{'f:service':{}}}", NULL},
    {"status", "{'f:status':{'f:service':{}}}", "{'status':{'service':'a'}}",
     "{'status':{'service':'b'},'spec':{},'metadata':{'labels':{}}}", "status", NULL,
     "{'f:status':{'f:service':{}}}"},
};

START_TEST(test_record)
{
    SCOPED_FREE char *list =
        xasprintf("[" ENTRY("other", "Update", "", "%s") "]", records[_i].before);
    SCOPED(json_free_p)
    cJSON *before = tree_of(list), *old = tree_of(records[_i].old), *new = tree_of(records[_i].new);
    SCOPED(managers_fini) struct managers m = {0};
    struct comparison c;
    ck_assert_int_eq(managers_read(&m, before, true), 0);
    merge_compare(&m.arena, old, new, kind_sandbox.shape, &c);
    const struct manager_id writer = {
        .name = "writer", .version = V, .subresource = records[_i].subresource};
    managers_record(&m, &writer, &c,
                    managers_reset_fields(&m.arena, &kind_sandbox, records[_i].subresource), NOW);
    SCOPED(buf_fini) struct buf expected = {0};
    buf_putc(&expected, '[');
    if (records[_i].other)
        buf_printf(&expected, ENTRY("other", "Update", "", "%s"), records[_i].other);
    if (records[_i].writer)
        buf_printf(&expected, "%s" ENTRY("writer", "Update", "%s" AT(NOW), "%s"),
                   records[_i].other ? "," : "", records[_i].writer,
                   *records[_i].subresource ? STATUS : "");
    buf_putc(&expected, ']');
    check(&m, buf_cstr(&expected), records[_i].what);
}
END_TEST

START_TEST(test_record_again)
{
    /* The writer keeps what it had, with a new time. */
    SCOPED(json_free_p)
    cJSON *before = tree_of("[" ENTRY("writer", "Update", AT("2020-01-01T00:00:00Z"),
                                      "{'f:spec':{'f:service':{}}}") "]");
    SCOPED(json_free_p) cJSON *old = tree_of("{'spec':{'service':true}}");
    SCOPED(json_free_p) cJSON *new = tree_of("{'spec':{'service':true,'operatingMode':'Running'}}");
    SCOPED(managers_fini) struct managers m = {0};
    struct comparison c;
    ck_assert_int_eq(managers_read(&m, before, true), 0);
    merge_compare(&m.arena, old, new, kind_sandbox.shape, &c);
    const struct manager_id writer = {.name = "writer", .version = V, .subresource = ""};
    managers_record(&m, &writer, &c, NULL, NOW);
    check(&m,
          "[" ENTRY("writer", "Update", AT(NOW),
                    "{'f:spec':{'f:operatingMode':{},'f:service':{}}}") "]",
          "again");
}
END_TEST

START_TEST(test_limit)
{
    /* Eleven updaters of different age, and an applier that does not count. */
    SCOPED(buf_fini) struct buf list = {0};
    buf_puts(&list, "[" ENTRY("ap", "Apply", "", "{'f:ap':{}}"));
    for (int i = 11; i >= 1; i--)
        buf_printf(
            &list,
            "," ENTRY("u%02d", "Update", "%s,'time':'20%02d-01-01T00:00:00Z'", "{'f:f%02d':{}}"), i,
            i, i == 3 ? STATUS : "", 10 + i);
    buf_putc(&list, ']');
    SCOPED(json_free_p) cJSON *tree = tree_of(buf_cstr(&list));
    SCOPED(managers_fini) struct managers m = {0};
    ck_assert_int_eq(managers_read(&m, tree, true), 0);
    managers_limit(&m);
    ck_assert_uint_eq(m.n, 11);
    const struct manager_id id = {.name = "ancient-changes", .version = V, .subresource = ""};
    const struct manager *ancient = managers_find(&m, &id);
    ck_assert_ptr_nonnull(ancient);
    ck_assert_str_eq(ancient->time, "2012-01-01T00:00:00Z"); /* of the newest in it */
    const char *const first[] = {"f01", NULL}, *const second[] = {"f02", NULL},
                      *const third[] = {"f03", NULL};
    ck_assert(fieldset_has_path(ancient->fields, first));
    ck_assert(fieldset_has_path(ancient->fields, second));
    ck_assert(!fieldset_has_path(ancient->fields, third));
    managers_limit(&m); /* ten are not too many */
    ck_assert_uint_eq(m.n, 11);
}
END_TEST

START_TEST(test_limit_twice)
{
    /* The bucket of an earlier time takes in the next oldest. */
    SCOPED(buf_fini) struct buf list = {0};
    buf_puts(&list,
             "[" ENTRY("ancient-changes", "Update", AT("2012-01-01T00:00:00Z"), "{'f:a':{}}"));
    for (int i = 1; i <= 12; i++)
        buf_printf(
            &list,
            "," ENTRY("u%02d", "Update", ",'time':'20%02d-01-01T00:00:00Z'", "{'f:f%02d':{}}"), i,
            i, 10 + i);
    buf_putc(&list, ']');
    SCOPED(json_free_p) cJSON *tree = tree_of(buf_cstr(&list));
    SCOPED(managers_fini) struct managers m = {0};
    ck_assert_int_eq(managers_read(&m, tree, true), 0);
    managers_limit(&m);
    ck_assert_uint_eq(m.n, 10);
    const struct manager_id id = {.name = "ancient-changes", .version = V, .subresource = ""};
    const char *const a[] = {"a", NULL};
    ck_assert(fieldset_has_path(managers_find(&m, &id)->fields, a));
}
END_TEST

START_TEST(test_versions)
{
    SCOPED(json_free_p)
    cJSON *tree = tree_of(
        "[" ENTRY("a", "Update", "", "{'f:a':{}}") ",{'apiVersion':'x/v9','fieldsType':'FieldsV1',"
                                                   "'fieldsV1':{},'operation':'Update'}]");
    SCOPED(managers_fini) struct managers m = {0};
    ck_assert_int_eq(managers_read(&m, tree, true), 0);
    ck_assert(!managers_know_version(&m, V));
    managers_drop_empty(&m);
    ck_assert(managers_know_version(&m, V));
}
END_TEST

SUITE(managers)
{
    LOOP("list", test_list, 0, ARRAY_LEN(lists));
    LOOP("reset", test_reset, 0, ARRAY_LEN(resets));
    LOOP("record", test_record, 0, ARRAY_LEN(records));
    TESTS("rules", test_order, test_record_again, test_limit, test_limit_twice, test_versions);
}
