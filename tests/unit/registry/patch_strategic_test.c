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

SUITE(patch_strategic)
{
    LOOP("rows", test_row, 0, ARRAY_LEN(rows));
}
