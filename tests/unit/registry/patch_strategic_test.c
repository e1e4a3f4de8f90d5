/* Strategic merge patch: rows of (document, patch, result) over a Pod's table. */
#include "apiserver/registry/patch_strategic.h"

#include "apiserver/base/json.h"
#include "openapi/kinds/builtin.h"
#include "tests/lib/suite.h"

static const struct row {
    const char *doc, *patch, *result; /* result NULL = refused */
} rows[] = {
    /* as a merge patch where no list is merged */
    {"{'a':1,'b':{'c':1}}", "{'a':null,'b':{'d':2}}", "{'b':{'c':1,'d':2}}"},
    {"{'spec':{'tolerations':[{'key':'a'}]}}", "{'spec':{'tolerations':[{'key':'b'}]}}",
     "{'spec':{'tolerations':[{'key':'b'}]}}"},
    {"{}", "{'x':{'$patch':'merge','y':1}}", "{'x':{'y':1}}"},
    /* lists by key, in lists by key */
    {"{'spec':{'containers':[{'name':'a','image':'x'},{'name':'b'}]}}",
     "{'spec':{'containers':[{'name':'b','image':'y'},{'name':'c'}]}}",
     "{'spec':{'containers':[{'name':'a','image':'x'},{'name':'b','image':'y'},{'name':'c'}]}}"},
    {"{'spec':{'containers':[{'name':'a','env':[{'name':'E','value':'1'}]}]}}",
     "{'spec':{'containers':[{'name':'a','env':[{'name':'F','value':'2'}]}]}}",
     "{'spec':{'containers':[{'name':'a','env':[{'name':'E','value':'1'},"
     "{'name':'F','value':'2'}]}]}}"},
    {"{'spec':{'containers':[{'name':'a','ports':[{'containerPort':1,'name':'p'}]}]}}",
     "{'spec':{'containers':[{'name':'a','ports':[{'containerPort':1,'name':'q'}]}]}}",
     "{'spec':{'containers':[{'name':'a','ports':[{'containerPort':1,'name':'q'}]}]}}"},
    {"{'status':{}}", "{'status':{'conditions':[{'type':'Ready','status':'True'}]}}",
     "{'status':{'conditions':[{'type':'Ready','status':'True'}]}}"},
    {"{'spec':{'containers':[]}}", "{'spec':{'containers':[{'image':'x'}]}}", NULL},
    /* directives */
    {"{'spec':{'containers':[{'name':'a'},{'name':'b'}]}}",
     "{'spec':{'containers':[{'name':'a','$patch':'delete'}]}}",
     "{'spec':{'containers':[{'name':'b'}]}}"},
    {"{'spec':{'containers':[{'name':'a'},{'name':'b'}]}}",
     "{'spec':{'containers':[{'$patch':'replace'},{'name':'c'}]}}",
     "{'spec':{'containers':[{'name':'c'}]}}"},
    {"{'spec':{'a':1,'b':2}}", "{'spec':{'$patch':'replace','c':3}}", "{'spec':{'c':3}}"},
    {"{'spec':{'a':1}}", "{'spec':{'$patch':'delete'}}", "{}"},
    {"{'spec':{'a':1}}", "{'spec':{'$patch':'mend'}}", NULL},
    {"{'spec':{'volumes':[{'name':'v','emptyDir':{}}]}}",
     "{'spec':{'volumes':[{'name':'v','$retainKeys':['name','secret'],'secret':{}}]}}",
     "{'spec':{'volumes':[{'name':'v','secret':{}}]}}"},
    {"{'metadata':{'finalizers':['a/b','c/d']}}", "{'metadata':{'finalizers':['e/f','a/b']}}",
     "{'metadata':{'finalizers':['a/b','c/d','e/f']}}"},
    {"{'metadata':{'finalizers':['a/b','c/d']}}",
     "{'metadata':{'$deleteFromPrimitiveList/finalizers':['a/b']}}",
     "{'metadata':{'finalizers':['c/d']}}"},
    {"{'spec':{'containers':[{'name':'a'},{'name':'b'}]}}",
     "{'spec':{'$setElementOrder/containers':[{'name':'c'},{'name':'b'},{'name':'a'}],"
     "'containers':[{'name':'c'}]}}",
     "{'spec':{'containers':[{'name':'c'},{'name':'b'},{'name':'a'}]}}"},
};

/* JSON is easier to read with single quotes. */
static cJSON *parse(const char *text)
{
    SCOPED_FREE char *json = xstrdup(text);
    cJSON *tree = NULL;
    for (char *c = json; *c; c++)
        if (*c == '\'')
            *c = '"';
    ck_assert_int_eq(json_parse_str(json, &tree, NULL), 0);
    return tree;
}

START_TEST(test_row)
{
    const struct row *row = &rows[_i];
    SCOPED(json_free_p) cJSON *doc = parse(row->doc), *patch = parse(row->patch), *result = NULL;
    SCOPED(json_free_p) cJSON *expected = row->result ? parse(row->result) : NULL;
    int rc = patch_strategic(doc, patch, &shape_pod, &result, NULL);
    if (!expected) {
        ck_assert_int_eq(rc, -ERR_BAD_REQUEST);
        return;
    }
    SCOPED_FREE char *shown = json_to_str(result);
    ck_assert_int_eq(rc, 0);
    ck_assert_msg(json_equal(result, expected), "%s", shown);
}
END_TEST

#define MANY 100000

static void put_number(struct buf *out, const char *before, int i, const char *behind)
{
    buf_printf(out, "%s'%s%d'%s", i ? "," : "", before, i, behind);
}

/* Takes minutes when each member, or each item's place, is looked for among all. */
START_TEST(test_many)
{
    SCOPED(buf_fini) struct buf doc_text = {0}, patch_text = {0}, wanted_text = {0};
    buf_puts(&doc_text, "{'metadata':{'finalizers':[");
    for (int i = 0; i < MANY; i++)
        put_number(&doc_text, "f", i, "");
    buf_puts(&doc_text, "],'labels':{");
    buf_puts(&patch_text, "{'metadata':{'$setElementOrder/finalizers':['f1','f0'],"
                          "'labels':{'$retainKeys':[");
    buf_puts(&wanted_text, "{'metadata':{'labels':{");
    for (int i = 0; i < MANY; i++) {
        put_number(&doc_text, "x", i, ":'1'");
        put_number(&patch_text, "x", 2 * i, "");
        put_number(&wanted_text, "x", 2 * i, i < MANY / 2 ? ":'1'" : ":'2'");
    }
    buf_puts(&doc_text, "}}}");
    buf_puts(&patch_text, "]");
    for (int i = MANY / 2; i < MANY; i++)
        put_number(&patch_text, "x", 2 * i, ":'2'");
    buf_puts(&patch_text, "}}}");
    buf_puts(&wanted_text, "}}}");
    SCOPED(json_free_p)
    cJSON *doc = parse(buf_cstr(&doc_text)), *patch = parse(buf_cstr(&patch_text)), *result = NULL,
          *wanted = parse(buf_cstr(&wanted_text));
    ck_assert_int_eq(patch_strategic(doc, patch, &shape_pod, &result, NULL), 0);
    ck_assert(json_equal(json_at(result, "metadata.labels"), json_at(wanted, "metadata.labels")));
    const cJSON *order = json_at(result, "metadata.finalizers");
    ck_assert_str_eq(order->child->valuestring, "f2");
    ck_assert_str_eq(order->child->prev->valuestring, "f0");
    ck_assert_str_eq(order->child->prev->prev->valuestring, "f1");
    ck_assert_uint_eq(json_len(order), MANY);
}
END_TEST

SUITE(patch_strategic)
{
    TESTS("many", test_many);
    LOOP("rows", test_row, 0, ARRAY_LEN(rows));
}
