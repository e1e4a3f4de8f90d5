/* Cells, ages and column definitions of tables. */
#include "openapi/columns.h"

#include "apiserver/base/json.h"
#include "openapi/kinds.h"
#include "tests/lib/suite.h"

#define NOW_MS (INT64_C(1900000000) * 1000) /* 2030-03-17T17:46:40Z */

static cJSON *parse(const char *quoted)
{
    SCOPED_FREE char *text = xstrdup(quoted);
    for (char *p = text; *p; p++)
        if (*p == '\'')
            *p = '"';
    cJSON *tree = NULL;
    ck_assert_msg(json_parse_str(text, &tree, NULL) == 0, "%s", text);
    return tree;
}

#define CREATED(text) "'metadata':{'name':'a','creationTimestamp':'" text "'}"

static const struct {
    const char *name;
    const struct kind *kind;
    const char *object, *cells; /* object with ' for " */
} rows[] = {
    {"sandbox", &kind_sandbox,
     "{" CREATED("2030-03-17T17:46:35Z") ",'status':{'conditions':[{'type':'Suspended','status':'"
                                         "False'},{'type':'Ready',"
                                         "'status':'True','reason':'PodReady'}]}}",
     "[\"a\",\"True\",\"PodReady\",\"5s\"]"},
    {"no status", &kind_sandbox, "{" CREATED("2030-03-17T17:46:40Z") "}",
     "[\"a\",null,null,\"0s\"]"},
    {"claim", &kind_sandbox_claim,
     "{" CREATED("2030-03-17T15:46:40Z") ",'status':{'sandbox':{'name':'s'}}}",
     "[\"a\",null,\"s\",null,\"120m\"]"},
    {"pool", &kind_sandbox_warm_pool,
     "{" CREATED("2029-03-17T17:46:40Z") ",'spec':{'replicas':3},'status':{'readyReplicas':2}}",
     "[\"a\",2,3,\"365d\"]"},
    {"template", &kind_sandbox_template, "{" CREATED("2030-03-17T17:36:40Z") "}",
     "[\"a\",\"10m\"]"},
    {"invalid date", &kind_sandbox_template, "{" CREATED("x") "}", "[\"a\",\"<invalid>\"]"},
    {"zero date", &kind_sandbox_template, "{" CREATED("0001-01-01T00:00:00Z") "}",
     "[\"a\",\"<unknown>\"]"},
    {"empty date", &kind_sandbox_template, "{" CREATED("") "}", "[\"a\",\"<unknown>\"]"},
    {"no metadata", &kind_sandbox_template, "{}", "[\"\",null]"},
    {"text of other types", &kind_sandbox_claim,
     "{'metadata':{'name':'a'},'status':{'sandbox':{'name':5},'conditions':[{'type':'Ready','"
     "status':true,'reason':{'x':[1]}}]}}",
     "[\"a\",\"true\",\"5\",\"{\\\"x\\\":[1]}\",null]"},
    {"numbers of other types", &kind_sandbox_warm_pool,
     "{'metadata':{'name':'a'},'spec':{'replicas':'3'},'status':{"
     "'readyReplicas':2.5}}",
     "[\"a\",2,null,null]"},
};

START_TEST(test_cells) /* IL-142 */
{
    SCOPED(json_free_p) cJSON *object = parse(rows[_i].object);
    SCOPED(json_free_p) cJSON *cells = columns_cells(rows[_i].kind, object, NOW_MS);
    SCOPED_FREE char *text = json_to_str(cells);
    ck_assert_msg(strcmp(text, rows[_i].cells) == 0, "%s: %s", rows[_i].name, text);
}
END_TEST

START_TEST(test_definitions)
{
    SCOPED(json_free_p) cJSON *list = columns_definitions(&kind_sandbox_claim);
    static const char *const names[] = {"Name", "Ready", "Sandbox", "Reason", "Age"};
    static const char *const types[] = {"string", "string", "string", "string", "date"};
    size_t i = 0;
    const cJSON *d;
    cJSON_ArrayForEach(d, list)
    {
        ck_assert_str_eq(json_str(d, "name"), names[i]);
        ck_assert_str_eq(json_str(d, "type"), types[i]);
        ck_assert_str_eq(json_str(d, "format"), i ? "" : "name");
        ck_assert_int_eq(json_i64_or(d, "priority", -1), 0);
        i++;
    }
    ck_assert_uint_eq(i, ARRAY_LEN(names));
    ck_assert_str_eq(
        json_str(list->child->next->next, "description"),
        "Custom resource definition column (in JSONPath format): .status.sandbox.name");
}
END_TEST

START_TEST(test_definitions_without_columns)
{
    SCOPED(json_free_p) cJSON *list = columns_definitions(&kind_sandbox_template);
    ck_assert_uint_eq(json_len(list), 2);
    ck_assert_str_eq(json_str(list->child->next, "name"), "Age");
    ck_assert_str_eq(json_str(list->child->next, "type"), "date");
}
END_TEST

START_TEST(test_path)
{
    SCOPED(json_free_p)
    cJSON *tree = parse("{'a':{'b':[{'k':'x','v':1},{'k':'y','v':2}]},'n':null}");
    static const struct {
        const char *path, *text; /* NULL = nothing */
    } paths[] = {
        {".a.b[0].v", "1"},
        {".a.b[1].v", "2"},
        {".a.b[2].v", NULL},
        {".a.b[?(@.k=='y')].v", "2"},
        {".a.b[?(@.k=='z')]", NULL},
        {".a.c.d", NULL},
        {".n", "null"},
        {".n.x", NULL},
        {".a.b[", NULL},
        {".a.b[x]", NULL},
        {".a[0]", NULL},
        {".a.b[?(@.k='y')]", NULL},
        {".a.b[-1]", NULL},
    };
    for (size_t i = 0; i < ARRAY_LEN(paths); i++) {
        const cJSON *found = columns_path(tree, paths[i].path);
        SCOPED_FREE char *text = found ? json_to_str(found) : NULL;
        ck_assert_msg(str_equal(text, paths[i].text), "%s: %s", paths[i].path,
                      text ? text : "nothing");
    }
}
END_TEST

SUITE(columns)
{
    LOOP("cells", test_cells, 0, ARRAY_LEN(rows));
    TESTS("other", test_definitions, test_definitions_without_columns, test_path);
}
