/* Apply over a small table that has one field of each kind: what fits, which fields a tree sets,
 * what distinguishes two trees, what they make together, and what is left without some fields. */
#include "openapi/merge.h"

#include "apiserver/base/json.h"
#include "tests/lib/suite.h"

/* ---- the table ---- */

static const struct field fields_port[] = {
    {.name = "port", .type = F_INT32, .flags = FIELD_REQUIRED, .doc = "."},
    {.name = "protocol", .type = F_STRING, .dflt = "\"TCP\"", .doc = "."},
    {.name = "name", .type = F_STRING, .doc = "."},
    {0},
};
static const struct shape shape_port = {.name = "Port", .fields = fields_port};
static const struct field fields_item[] = {
    {.name = "name", .type = F_STRING, .doc = "."},
    {.name = "value", .type = F_STRING, .doc = "."},
    {.name = "inner", .type = F_OBJECT, .of = &shape_port, .doc = "."},
    {0},
};
static const struct shape shape_item = {.name = "Item", .fields = fields_item};
static const char *const by_name[] = {"name", NULL}, *const by_port[] = {"protocol", "port", NULL};
static const struct field fields_root[] = {
    {.name = "s", .type = F_STRING, .doc = "."},
    {.name = "b", .type = F_BOOL, .doc = "."},
    {.name = "n", .type = F_INT64, .doc = "."},
    {.name = "t", .type = F_TIME, .doc = "."},
    {.name = "q", .type = F_QUANTITY, .doc = "."},
    {.name = "o", .type = F_OBJECT, .of = &shape_item, .doc = "."},
    {.name = "oa", .type = F_OBJECT, .of = &shape_item, .is_atomic = true, .doc = "."},
    {.name = "m", .type = F_MAP, .item = F_STRING, .doc = "."},
    {.name = "ma", .type = F_MAP, .item = F_STRING, .is_atomic = true, .doc = "."},
    {.name = "mo", .type = F_MAP, .item = F_OBJECT, .of = &shape_item, .doc = "."},
    {.name = "la", .type = F_LIST, .item = F_OBJECT, .of = &shape_item, .doc = "."},
    {.name = "ls", .type = F_LIST, .item = F_STRING, .list = LIST_SET, .doc = "."},
    {.name = "lm",
     .type = F_LIST,
     .item = F_OBJECT,
     .of = &shape_item,
     .list = LIST_MAP,
     .keys = by_name,
     .doc = "."},
    {.name = "lp",
     .type = F_LIST,
     .item = F_OBJECT,
     .of = &shape_port,
     .list = LIST_MAP,
     .keys = by_port,
     .doc = "."},
    {.name = "lw",
     .type = F_LIST,
     .item = F_OBJECT,
     .of = &shape_item,
     .list = LIST_MAP,
     .keys = by_name,
     .items_atomic = true,
     .doc = "."},
    {.name = "free", .type = F_EMPTY, .doc = "."},
    {0},
};
static const struct shape shape_root = {.name = "Root", .fields = fields_root};

/* ---- helpers ---- */

static struct arena arena;

static void teardown(void)
{
    arena_fini(&arena);
}

static char *swap(const char *text, char from, char to)
{
    char *out = xstrdup(text);
    for (char *p = out; *p; p++)
        *p = *p == from ? to : *p;
    return out;
}

static cJSON *tree_of(const char *text)
{
    SCOPED_FREE char *json = swap(text, '\'', '"');
    cJSON *tree = NULL;
    ck_assert_msg(json_parse_str(json, &tree, NULL) == 0, "%s", json);
    return tree;
}

static const struct fieldset *set_of(const char *text)
{
    SCOPED_FREE char *json = swap(text, '\'', '"');
    struct scan s = {json, json + strlen(json)};
    const struct fieldset *set = NULL;
    ck_assert_msg(fieldset_parse(&arena, &s, true, &set) == 0, "%s", json);
    return set;
}

static void check_set(const struct fieldset *set, const char *expected, const char *what)
{
    SCOPED(buf_fini) struct buf out = {0};
    fieldset_print(set, &out);
    SCOPED_FREE char *text = swap(buf_cstr(&out), '"', '\'');
    ck_assert_msg(strcmp(text, expected) == 0, "%s: %s, not %s", what, text, expected);
}

static void check_tree(const cJSON *tree, const char *expected, const char *what)
{
    SCOPED_FREE char *json = json_to_str(tree);
    SCOPED_FREE char *text = swap(json, '"', '\'');
    ck_assert_msg(strcmp(text, expected) == 0, "%s: %s, not %s", what, text, expected);
}

/* ---- what fits ---- */

static const struct {
    const char *tree, *why; /* why NULL = it fits */
} fits[] = {
    {"{}", NULL},
    {"{'s':null,'b':null,'n':null,'t':null,'q':null,'o':null,'m':null,'la':null,'lm':null}", NULL},
    {"{'s':'x','b':true,'n':1.5,'t':1,'q':2,'o':{'inner':{'port':1}},'m':{'a':'b'}}", NULL},
    {"{'q':{'a':1}}", NULL}, /* validation refuses it, not apply */
    {"{'q':[1]}", NULL},
    {"{'free':{'a':{'b':[{}]}}}", NULL},
    {"{'ls':['a','b'],'lm':[{'name':'a'}],'lp':[{'port':1},{'port':1,'protocol':'UDP'}]}", NULL},
    {"{'lp':[{'name':'x'}]}", NULL}, /* the default is key enough */
    {"{'x':1}", ".x: field not declared in schema"},
    {"{'o':{'inner':{'x':1}}}", ".o.inner.x: field not declared in schema"},
    {"{'la':[{},{'x':1}]}", ".la[1].x: field not declared in schema"},
    {"{'mo':{'k':{'x':1}}}", ".mo.k.x: field not declared in schema"},
    {"{'lm':[{'name':'a','x':1}]}", ".lm[name='a'].x: field not declared in schema"},
    {"{'s':1}", ".s: expected string, got &value.valueUnstructured{Value:1}"},
    {"{'s':true}", ".s: expected string, got &value.valueUnstructured{Value:true}"},
    {"{'s':['a',null]}", ".s: expected string, got &value.valueUnstructured{Value:[]interface "
                         "{}{'a', interface {}(nil)}}"},
    {"{'s':{'b':1.5,'a':'x'}}", ".s: expected string, got &value.valueUnstructured{Value:map"
                                "[string]interface {}{'a':'x', 'b':1.5}}"},
    {"{'b':'yes'}", ".b: expected boolean, got &{yes}"},
    {"{'n':'5'}", ".n: expected numeric (int or float), got string"},
    {"{'n':[]}", ".n: expected numeric (int or float), got []interface {}"},
    {"{'t':{}}", ".t: expected any scalar, got &{map[]}"},
    {"{'o':[]}", ".o: expected map, got &{[]}"},
    {"{'m':'a'}", ".m: expected map, got &{a}"},
    {"{'la':{}}", ".la: expected list, got &{map[]}"},
    {"{'ls':[{}]}",
     ".ls: element 0: associative list without keys has an element that's a map type"},
    {"{'ls':['a',null]}",
     ".ls: element 1: associative list without keys has an element that's an explicit null"},
    {"{'ls':[[]]}", ".ls: element 0: not supported: associative list with lists as elements"},
    {"{'ls':['a','b','a']}", ".ls: duplicate entries for key [='a']"},
    {"{'lm':[null]}", ".lm: element 0: associative list with keys may not have a null element"},
    {"{'lm':['a']}", ".lm: element 0: associative list with keys may not have non-map elements"},
    {"{'lm':[{'name':'a'},{'value':'b'}]}",
     ".lm: element 1: associative list with keys has an element that omits all key fields "
     "['name'] (and doesn't have default values for any key fields)"},
    {"{'lm':[{'name':'a'},{'name':'a'}]}", ".lm: duplicate entries for key [name='a']"},
    {"{'lp':[{'port':80},{'port':80.0,'protocol':'TCP'}]}",
     ".lp: duplicate entries for key [port=80,protocol='TCP']"},
    {"{'s':1,'b':2}", "errors:\n"
                      "  .s: expected string, got &value.valueUnstructured{Value:1}\n"
                      "  .b: expected boolean, got &{2}"},
    {"1", "expected map, got &{1}"},
};

START_TEST(test_fits)
{
    SCOPED(json_free_p) cJSON *tree = tree_of(fits[_i].tree);
    SCOPED(buf_fini) struct buf why = {0};
    bool is_right = merge_fits(tree, &shape_root, false, &why);
    SCOPED_FREE char *text = swap(buf_cstr(&why), '"', '\'');
    /* One word of Go's own text has a quote in it. */
    SCOPED_FREE char *expected = fits[_i].why ? swap(fits[_i].why, '"', '\'') : xstrdup("");
    ck_assert_msg(is_right == !fits[_i].why, "%s: %s", fits[_i].tree, text);
    ck_assert_str_eq(text, expected);
    ck_assert(is_right == merge_fits(tree, &shape_root, true, NULL) ||
              strstr(expected, "duplicate"));
}
END_TEST

/* ---- leaves ---- */

static const struct {
    const char *tree, *set;
} leaves[] = {
    {"{}", "{}"},
    {"{'s':'x','n':1,'q':1}", "{'f:n':{},'f:q':{},'f:s':{}}"},
    {"{'s':null,'o':null,'lm':null}", "{'f:lm':{},'f:o':{},'f:s':{}}"},
    {"{'o':{}}", "{'f:o':{}}"},
    {"{'o':{'inner':{'port':1}}}", "{'f:o':{'f:inner':{'f:port':{}}}}"},
    {"{'oa':{'name':'x'},'ma':{'a':'b'}}", "{'f:ma':{},'f:oa':{}}"},
    {"{'m':{'b':'1','a':'2'}}", "{'f:m':{'f:a':{},'f:b':{}}}"},
    {"{'mo':{'k':{'name':'x'}}}", "{'f:mo':{'f:k':{'.':{},'f:name':{}}}}"},
    {"{'la':[]}", "{'f:la':{}}"},
    {"{'la':[{'name':'x'}]}", "{'f:la':{}}"},
    {"{'lm':[]}", "{}"},
    {"{'ls':['b','a']}", "{'f:ls':{'v:\\'a\\'':{},'v:\\'b\\'':{}}}"},
    {"{'lm':[{'name':'x','value':'y'}]}",
     "{'f:lm':{'k:{\\'name\\':\\'x\\'}':{'.':{},'f:name':{},'f:value':{}}}}"},
    {"{'lm':[{'name':'x','value':'1'},{'name':'x'}]}", "{'f:lm':{'k:{\\'name\\':\\'x\\'}':{}}}"},
    {"{'lp':[{'port':80}]}",
     "{'f:lp':{'k:{\\'port\\':80,\\'protocol\\':\\'TCP\\'}':{'.':{},'f:port':{}}}}"},
    {"{'lw':[{'name':'x','value':'1'}]}", "{'f:lw':{'k:{\\'name\\':\\'x\\'}':{}}}"},
    {"{'free':{'a':{'b':1},'c':[1]}}", "{'f:free':{'f:a':{'.':{},'f:b':{}},'f:c':{}}}"},
};

START_TEST(test_leaves)
{
    SCOPED(json_free_p) cJSON *tree = tree_of(leaves[_i].tree);
    check_set(merge_leaves(&arena, tree, &shape_root, NULL), leaves[_i].set, leaves[_i].tree);
    arena_fini(&arena);
}
END_TEST

/* ---- comparing ---- */

static const struct {
    const char *old, *new, *added, *modified, *removed;
} compared[] = {
    {"{}", "{}", "{}", "{}", "{}"},
    {"{'s':'x'}", "{'s':'x'}", "{}", "{}", "{}"},
    {"{'n':1}", "{'n':1.0}", "{}", "{}", "{}"},
    {"{'s':'x'}", "{'s':'y'}", "{}", "{'f:s':{}}", "{}"},
    {"{'s':'x'}", "{}", "{}", "{}", "{'f:s':{}}"},
    {"{}", "{'o':{'name':'x'}}", "{'f:o':{'.':{},'f:name':{}}}", "{}", "{}"},
    {"{'o':{'name':'x'}}", "{'o':{}}", "{}", "{}", "{'f:o':{'f:name':{}}}"},
    {"{'o':{'name':'x'}}", "{}", "{}", "{}", "{'f:o':{'.':{},'f:name':{}}}"},
    {"{}", "{'o':{}}", "{'f:o':{}}", "{}", "{}"},
    {"{'o':{}}", "{'o':null}", "{}", "{'f:o':{}}", "{}"},
    {"{'ma':{'a':'1'}}", "{'ma':{'b':'1'}}", "{}", "{'f:ma':{}}", "{}"},
    {"{'m':{'a':'1'}}", "{'m':{'b':'1'}}", "{'f:m':{'f:b':{}}}", "{}", "{'f:m':{'f:a':{}}}"},
    {"{'la':[1]}", "{'la':[1,2]}", "{}", "{'f:la':{}}", "{}"},
    {"{'lm':[]}", "{}", "{}", "{}", "{'f:lm':{}}"},
    {"{'ls':['a','b']}", "{'ls':['b','a']}", "{}", "{}", "{}"}, /* order is nobody's */
    {"{'ls':['a']}", "{'ls':['b']}", "{'f:ls':{'v:\\'b\\'':{}}}", "{}",
     "{'f:ls':{'v:\\'a\\'':{}}}"},
    {"{'lm':[{'name':'a','value':'1'}]}", "{'lm':[{'name':'a','value':'2'}]}", "{}",
     "{'f:lm':{'k:{\\'name\\':\\'a\\'}':{'f:value':{}}}}", "{}"},
    {"{'lw':[{'name':'a','value':'1'}]}", "{'lw':[{'name':'a','value':'2'}]}", "{}",
     "{'f:lw':{'k:{\\'name\\':\\'a\\'}':{}}}", "{}"},
    {"{'lm':[{'name':'a'},{'name':'a'}]}", "{'lm':[{'name':'a'},{'name':'a'}]}", "{}", "{}", "{}"},
    {"{'lm':[{'name':'a'},{'name':'a'}]}", "{'lm':[{'name':'a'},{'name':'a','value':'1'}]}", "{}",
     "{'f:lm':{'k:{\\'name\\':\\'a\\'}':{}}}", "{}"},
    {"{'lm':[{'name':'a'},{'name':'a'}]}", "{'lm':[{'name':'a'}]}",
     "{'f:lm':{'k:{\\'name\\':\\'a\\'}':{'.':{},'f:name':{}}}}", "{}",
     "{'f:lm':{'k:{\\'name\\':\\'a\\'}':{}}}"},
    {"{'lm':[{'name':'a'}]}", "{'lm':[{'name':'a'},{'name':'a'}]}",
     "{'f:lm':{'k:{\\'name\\':\\'a\\'}':{}}}", "{}",
     "{'f:lm':{'k:{\\'name\\':\\'a\\'}':{'.':{},'f:name':{}}}}"},
    {"{'q':1}", "{'q':'1'}", "{}", "{'f:q':{}}", "{}"},
    {"{'q':1}", "{'q':{'a':1}}", "{'f:q':{'f:a':{}}}", "{'f:q':{}}", "{}"},
};

START_TEST(test_compare)
{
    SCOPED(json_free_p) cJSON *old = tree_of(compared[_i].old), *new = tree_of(compared[_i].new);
    struct comparison c;
    merge_compare(&arena, old, new, &shape_root, &c);
    check_set(c.added, compared[_i].added, "added");
    check_set(c.modified, compared[_i].modified, "modified");
    check_set(c.removed, compared[_i].removed, "removed");
    /* The other way round, what was added is removed. */
    struct comparison back;
    merge_compare(&arena, new, old, &shape_root, &back);
    if (!strstr(compared[_i].new, "'q':{"))
        ck_assert(fieldset_equal(c.added, back.removed) && fieldset_equal(c.removed, back.added));
    ck_assert(fieldset_equal(c.modified, back.modified));
    arena_fini(&arena);
}
END_TEST

/* ---- merging ---- */

#define N(x) "{'name':'" x "'}"

static const struct {
    const char *live, *applied, *merged;
} merged[] = {
    {"{}", "{}", "{}"},
    {"{'s':'x','n':1}", "{'s':'y'}", "{'n':1,'s':'y'}"},
    {"{'s':'x'}", "{'s':null}", "{'s':null}"},
    {"{'o':{'name':'x'}}", "{'o':{'value':'y'}}", "{'o':{'name':'x','value':'y'}}"},
    {"{'o':{'name':'x'}}", "{'o':{}}", "{'o':{'name':'x'}}"},
    {"{'o':{'name':'x'}}", "{'o':null}", "{'o':{'name':'x'}}"},
    {"{'o':{}}", "{'o':null}", "{'o':null}"},
    {"{'oa':{'name':'x'}}", "{'oa':{'value':'y'}}", "{'oa':{'value':'y'}}"},
    {"{'la':[1,2]}", "{'la':[3]}", "{'la':[3]}"},
    {"{'la':[1]}", "{'la':null}", "{'la':null}"},
    {"{'lm':[" N("a") "]}", "{'lm':null}", "{'lm':[" N("a") "]}"},
    {"{'lm':[" N("a") "]}", "{'lm':[]}", "{'lm':[" N("a") "]}"},
    {"{'ls':['a','b']}", "{'ls':['b','c']}", "{'ls':['a','b','c']}"},
    {"{'lm':[{'name':'a','value':'1'}]}", "{'lm':[{'name':'a','inner':{'port':1}}]}",
     "{'lm':[{'inner':{'port':1},'name':'a','value':'1'}]}"},
    {"{'lw':[{'name':'a','value':'1'}]}", "{'lw':[{'name':'a'}]}", "{'lw':[{'name':'a'}]}"},
    {"{'lp':[{'port':80,'protocol':'TCP','name':'x'}]}", "{'lp':[{'port':80}]}",
     "{'lp':[{'name':'x','port':80,'protocol':'TCP'}]}"},
    /* order: that of what is applied; what is live alone keeps its neighbours */
    {"{'ls':['z','a','m']}", "{'ls':['m','q','z']}", "{'ls':['a','m','q','z']}"},
    {"{'ls':['a','b','c']}", "{'ls':['c','a']}", "{'ls':['b','c','a']}"},
    {"{'ls':['1','2','3','4','5']}", "{'ls':['a','4','b','2','c']}",
     "{'ls':['1','3','a','4','5','b','2','c']}"},
    {"{'ls':['a']}", "{'ls':['x','a','y']}", "{'ls':['x','a','y']}"},
    {"{'ls':['x','y']}", "{'ls':['a']}", "{'ls':['x','y','a']}"},
    /* repeated items of what is live */
    {"{'lm':[{'name':'a','value':'1'},{'name':'a'},{'name':'b'}]}", "{'lm':[" N("b") "]}",
     "{'lm':[{'name':'a','value':'1'},{'name':'a'},{'name':'b'}]}"},
    {"{'lm':[{'name':'a','value':'1'},{'name':'a'}]}", "{'lm':[" N("a") "]}",
     "{'lm':[" N("a") "]}"},
    {"{'q':1}", "{'q':{'a':1}}", "{'q':{'a':1}}"},
    {"{'free':{'a':{'b':1}}}", "{'free':{'a':{'c':2}}}", "{'free':{'a':{'b':1,'c':2}}}"},
};

START_TEST(test_merge)
{
    SCOPED(json_free_p)
    cJSON *live = tree_of(merged[_i].live), *applied = tree_of(merged[_i].applied);
    SCOPED(json_free_p) cJSON *out = merge_apply(&arena, live, applied, &shape_root);
    check_tree(out, merged[_i].merged, merged[_i].live);
    /* The same once more changes nothing. */
    SCOPED(json_free_p) cJSON *again = merge_apply(&arena, out, applied, &shape_root);
    check_tree(again, merged[_i].merged, "again");
    arena_fini(&arena);
}
END_TEST

/* ---- removing ---- */

static const struct {
    const char *tree, *set, *rest;
} removed[] = {
    {"{'s':'x','n':1}", "{'f:s':{}}", "{'n':1}"},
    {"{'s':'x'}", "{'f:s':{}}", "{}"},
    {"{'s':'x'}", "{'f:t':{}}", "{'s':'x'}"},
    {"{'o':{'name':'x','value':'y'}}", "{'f:o':{'f:name':{}}}", "{'o':{'value':'y'}}"},
    {"{'o':{'name':'x','value':'y'}}", "{'f:o':{'.':{},'f:name':{}}}", "{}"},
    {"{'m':{'a':'1','b':'2'}}", "{'f:m':{'f:a':{}}}", "{'m':{'b':'2'}}"},
    {"{'o':{'name':'x'}}", "{'f:o':{'f:name':{}}}", "{'o':{}}"},
    {"{'ls':['a']}", "{'f:ls':{'v:\\'a\\'':{}}}", "{'ls':[]}"},
    {"{'ls':['a','b','a']}", "{'f:ls':{'v:\\'a\\'':{}}}", "{'ls':['b']}"},
    {"{'lm':[{'name':'a','value':'1'},{'name':'b'}]}",
     "{'f:lm':{'k:{\\'name\\':\\'a\\'}':{'f:value':{}},'k:{\\'name\\':\\'b\\'}':{}}}",
     "{'lm':[{'name':'a'}]}"},
    {"{'la':[1]}", "{'f:la':{}}", "{}"},
};

START_TEST(test_without)
{
    SCOPED(json_free_p) cJSON *tree = tree_of(removed[_i].tree);
    const struct fieldset *set = set_of(removed[_i].set);
    SCOPED(json_free_p) cJSON *rest = merge_without(&arena, tree, &shape_root, set);
    check_tree(rest, removed[_i].rest, removed[_i].tree);
    /* Fields of the rest are fields of the tree without those. */
    const struct fieldset *a = merge_leaves(&arena, rest, &shape_root, NULL),
                          *b = merge_leaves(&arena, tree, &shape_root, set);
    ck_assert_ptr_null(fieldset_difference(&arena, a, b));
    arena_fini(&arena);
}
END_TEST

/* ---- sets and tables ---- */

START_TEST(test_named)
{
    const struct fieldset *set =
        set_of("{'f:o':{'f:inner':{'f:port':{}}},'f:mo':{'f:k':{'f:name':{}}},'f:m':{'f:a':{}},"
               "'f:lm':{'k:{\\'name\\':\\'a\\'}':{'f:inner':{'f:port':{}}}},'f:gone':{'f:x':{}}}");
    check_set(merge_named(&arena, set, &shape_root),
              "{'f:gone':{'f:x':{}},'f:lm':{'.':{},'k:{\\'name\\':\\'a\\'}':{'f:inner':{'.':{},'f:"
              "port':{}}}},'f:m':{'.':{},'f:a':{}},'f:mo':{'.':{},'f:k':{'f:name':{}}},'f:o':{'.':"
              "{},'f:inner':{'.':{},'f:port':{}}}}",
              "named");
    arena_fini(&arena);
}
END_TEST

START_TEST(test_adapt)
{
    const struct fieldset *set = set_of(
        "{'f:oa':{'f:name':{}},'f:ma':{'.':{},'f:a':{}},'f:la':{'k:{\\'name\\':\\'a\\'}':{}},"
        "'f:lw':{'k:{\\'name\\':\\'a\\'}':{'.':{},'f:name':{}}},'f:o':{'f:name':{}}}");
    const struct fieldset *adapted = merge_adapt(&arena, set, &shape_root);
    check_set(adapted,
              "{'f:la':{},'f:lw':{'k:{\\'name\\':\\'a\\'}':{}},'f:ma':{},'f:o':{'f:name':{}},"
              "'f:oa':{}}",
              "adapted");
    ck_assert_ptr_eq(merge_adapt(&arena, adapted, &shape_root), adapted);
    arena_fini(&arena);
}
END_TEST

SUITE(merge)
{
    TCase *tc = tcase_create("merge");
    tcase_add_checked_fixture(tc, NULL, teardown);
    tcase_add_loop_test(tc, test_fits, 0, ARRAY_LEN(fits));
    tcase_add_loop_test(tc, test_leaves, 0, ARRAY_LEN(leaves));
    tcase_add_loop_test(tc, test_compare, 0, ARRAY_LEN(compared));
    tcase_add_loop_test(tc, test_merge, 0, ARRAY_LEN(merged));
    tcase_add_loop_test(tc, test_without, 0, ARRAY_LEN(removed));
    tcase_add_test(tc, test_named);
    tcase_add_test(tc, test_adapt);
    suite_add_tcase(s, tc);
}
