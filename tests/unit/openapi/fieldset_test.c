/* Sets of field paths: reading, writing, texts of paths, and the laws that combining them obeys. */
#include "openapi/fieldpath.h"
#include "openapi/fieldset.h"

#include "apiserver/base/json.h"
#include "tests/lib/suite.h"

static struct arena arena;

static void teardown(void)
{
    arena_fini(&arena);
}

static int parse(const char *json, bool as_client, const struct fieldset **ret)
{
    struct scan s = {json, json + strlen(json)};
    int rc = fieldset_parse(&arena, &s, as_client, ret);
    return rc == 0 && !scan_at_end(&s) ? -1 : rc;
}

/* ' stands for ". */
static char *quoted(const char *text)
{
    char *out = xstrdup(text);
    for (char *p = out; *p; p++)
        *p = *p == '\'' ? '"' : *p;
    return out;
}

static const struct fieldset *set_of(const char *text)
{
    SCOPED_FREE char *json = quoted(text);
    const struct fieldset *set = NULL;
    ck_assert_msg(parse(json, true, &set) == 0, "%s", json);
    return set;
}

static char *text_of(const struct fieldset *set)
{
    struct buf out = {0};
    fieldset_print(set, &out);
    char *text = buf_take(&out, NULL);
    for (char *p = text; *p; p++)
        *p = *p == '"' ? '\'' : *p;
    return text;
}

static void check(const struct fieldset *set, const char *expected, const char *what)
{
    SCOPED_FREE char *text = text_of(set);
    ck_assert_msg(strcmp(text, expected) == 0, "%s: %s", what, text);
}

/* ---- reading and writing ---- */

static const struct {
    const char *in, *out; /* out NULL = as in, "-" = refused */
} parsed[] = {
    {"{}", NULL},
    {"null", "{}"},
    {"{'f:a':{}}", NULL},
    {"{'f:a':null}", "{'f:a':{}}"},
    {"{'f:b':{},'f:a':{}}", "{'f:a':{},'f:b':{}}"},
    {"{'f:a':{'f:b':{}}}", NULL},
    {"{'f:a':{'.':{},'f:b':{}}}", NULL},
    {"{'f:a':{'.':{}}}", "{'f:a':{}}"},
    {"{'.':{},'f:a':{}}", "{'f:a':{}}"}, /* nobody owns the whole object */
    {"{'f:l':{'v:\\'x\\'':{},'v:1':{},'v:true':{},'v:null':{},'i:0':{},'i:-1':{}}}",
     "{'f:l':{'i:-1':{},'i:0':{},'v:\\'x\\'':{},'v:1':{},'v:null':{},'v:true':{}}}"},
    {"{'k:{ \\'b\\' : 1.0, \\'a\\':\\'<\\' }':{}}", "{'k:{\\'a\\':\\'\\\\u003c\\',\\'b\\':1}':{}}"},
    {"{'k:{\\'a\\':1}':{'f:x':{}},'k:{ \\'a\\':1}':{'f:y':{}}}",
     "{'k:{\\'a\\':1}':{'f:x':{},'f:y':{}}}"}, /* one item, written in two ways */
    {"{'x:new':{'f:a':{}},'f:a':{}}", "{'f:a':{}}"},
    {"{'x:new':{}}", "{}"},
    {"{'f:':{},'f:a.b/c':{}}", NULL},
    {"{'f:quote\\'d':{}}", NULL},
    {"1", "-"},
    {"[]", "-"},
    {"{'a':{}}", "-"},
    {"{'':{}}", "-"},
    {"{'spec':{}}", "-"},
    {"{'f:a':1}", "-"},
    {"{'f:a':{'f:b':[]}}", "-"},
    {"{'i:x':{}}", "-"},
    {"{'i:':{}}", "-"},
    {"{'v:x':{}}", "-"},
    {"{'v:':{}}", "-"},
    {"{'v:1 2':{}}", "-"},
    {"{'k:1':{}}", "-"},
    {"{'k:{':{}}", "-"},
    {"{'v:[[[[[[[[[[1]]]]]]]]]]':{}}", "-"},
    {"{'f:a\\u0041\\n\\/':{}}", "{'f:aA\\n/':{}}"},
    {"{'f:\\u0000':{}}", NULL},
    {"{'f:\302\251':{},'f:\\ud83d\\ude00':{}}", "{'f:\302\251':{},'f:\360\237\230\200':{}}"},
    {"{'f:a':{}", "-"},
    {"{'f:a'}", "-"},
    {"{'f:a':nul}", "-"},
    {"{'x:a':{'}", "-"},
    {"", "-"},
};

START_TEST(test_parse)
{
    SCOPED_FREE char *json = quoted(parsed[_i].in);
    const struct fieldset *set = NULL;
    int rc = parse(json, true, &set);
    const char *expected = parsed[_i].out ? parsed[_i].out : parsed[_i].in;
    ck_assert_msg((rc < 0) == (strcmp(expected, "-") == 0), "%s", json);
    if (rc < 0)
        return;
    check(set, expected, parsed[_i].in);
    /* What was printed reads as the same set, and prints the same. */
    SCOPED(buf_fini) struct buf out = {0};
    const struct fieldset *other = NULL;
    fieldset_print(set, &out);
    ck_assert_int_eq(parse(buf_cstr(&out), false, &other), 0);
    ck_assert(fieldset_equal(set, other));
    check(other, expected, parsed[_i].in);
}
END_TEST

START_TEST(test_depth)
{
    SCOPED(buf_fini) struct buf text = {0};
    const struct fieldset *set;
    for (int depth = FIELDSET_DEPTH_MAX; depth <= FIELDSET_DEPTH_MAX + 1; depth++) {
        buf_clear(&text);
        for (int i = 0; i < depth; i++)
            buf_puts(&text, "{\"f:a\":");
        buf_puts(&text, "{}");
        for (int i = 0; i < depth; i++)
            buf_putc(&text, '}');
        ck_assert_int_eq(parse(buf_cstr(&text), true, &set), depth > FIELDSET_DEPTH_MAX ? -1 : 0);
    }
}
END_TEST

/* ---- combining ---- */

#define A "{'f:a':{},'f:b':{'.':{},'f:c':{}},'f:d':{'k:{\\'n\\':1}':{'.':{},'f:n':{},'f:x':{}}}}"

static const struct {
    const char *a, *b, *both, *common, *left, *beyond; /* beyond: a without what is at or below b */
} combined[] = {
    {A, "{}", A, "{}", A, A},
    {"{}", A, A, "{}", "{}", "{}"},
    {A, A, A, A, "{}", "{}"},
    {"{'f:a':{}}", "{'f:b':{}}", "{'f:a':{},'f:b':{}}", "{}", "{'f:a':{}}", "{'f:a':{}}"},
    {"{'f:b':{'.':{},'f:c':{}}}", "{'f:b':{}}", "{'f:b':{'.':{},'f:c':{}}}", "{'f:b':{}}",
     "{'f:b':{'f:c':{}}}", "{}"},
    {"{'f:b':{}}", "{'f:b':{'f:c':{}}}", "{'f:b':{'.':{},'f:c':{}}}", "{}", "{'f:b':{}}",
     "{'f:b':{}}"},
    {"{'f:b':{'f:c':{},'f:d':{}}}", "{'f:b':{'f:c':{}}}", "{'f:b':{'f:c':{},'f:d':{}}}",
     "{'f:b':{'f:c':{}}}", "{'f:b':{'f:d':{}}}", "{'f:b':{'f:d':{}}}"},
    {"{'f:l':{'v:1':{},'v:2':{}}}", "{'f:l':{'v:2':{},'v:3':{}}}",
     "{'f:l':{'v:1':{},'v:2':{},'v:3':{}}}", "{'f:l':{'v:2':{}}}", "{'f:l':{'v:1':{}}}",
     "{'f:l':{'v:1':{}}}"},
};

START_TEST(test_combine)
{
    const struct fieldset *a = set_of(combined[_i].a), *b = set_of(combined[_i].b);
    check(fieldset_union(&arena, a, b), combined[_i].both, "union");
    check(fieldset_intersection(&arena, a, b), combined[_i].common, "intersection");
    check(fieldset_difference(&arena, a, b), combined[_i].left, "difference");
    check(fieldset_exclude(&arena, a, b), combined[_i].beyond, "exclude");
}
END_TEST

START_TEST(test_laws)
{
    const struct fieldset *a = set_of(combined[_i].a), *b = set_of(combined[_i].b);
    const struct fieldset *both = fieldset_union(&arena, a, b),
                          *common = fieldset_intersection(&arena, a, b),
                          *left = fieldset_difference(&arena, a, b),
                          *right = fieldset_difference(&arena, b, a);
    ck_assert(fieldset_equal(both, fieldset_union(&arena, b, a)));
    ck_assert(fieldset_equal(common, fieldset_intersection(&arena, b, a)));
    ck_assert(fieldset_equal(a, fieldset_union(&arena, left, common)));
    ck_assert(
        fieldset_equal(both, fieldset_union(&arena, fieldset_union(&arena, left, common), right)));
    ck_assert_ptr_null(fieldset_intersection(&arena, left, b));
    ck_assert_ptr_null(fieldset_difference(&arena, a, both));
    ck_assert_ptr_null(fieldset_exclude(&arena, a, both));
    ck_assert(fieldset_equal(fieldset_union(&arena, a, a), a));
}
END_TEST

START_TEST(test_look_up)
{
    static const char *const abc[] = {"a", "b", "c", NULL}, *const ab[] = {"a", "b", NULL},
                             *const x[] = {"x", NULL};
    const struct fieldset *set = fieldset_of_path(&arena, abc);
    check(set, "{'f:a':{'f:b':{'f:c':{}}}}", "path");
    ck_assert(fieldset_has_path(set, abc));
    ck_assert(!fieldset_has_path(set, ab)); /* on the way only */
    ck_assert(!fieldset_has_path(set, x));
    ck_assert(!fieldset_has_path(NULL, x));
    ck_assert_ptr_null(fieldset_find(NULL, STEP_FIELD, "a"));
    ck_assert_ptr_null(fieldset_find(set, STEP_VALUE, "a"));
    ck_assert_ptr_nonnull(fieldset_find(set, STEP_FIELD, "a"));
    ck_assert_ptr_null(fieldset_finish(&arena, fieldset_new(&arena)));
}
END_TEST

/* ---- texts ---- */

static void add_line(void *ctx, const struct fieldpath *path)
{
    fieldpath_print(path, ctx);
    buf_putc(ctx, '\n');
}

START_TEST(test_paths)
{
    const struct fieldset *set = set_of(
        "{'f:z':{},'f:spec':{'.':{},'f:a':{},'f:l':{'k:{\\'n\\':\\'x\\',\\'p\\':80}':{'.':{},'f:n':"
        "{}}"
        ",'k:{\\'n\\':\\'x\\',\\'p\\':9}':{},'k:{\\'n\\':null,\\'p\\':true}':{},'v:10':{},'v:9':{},"
        "'v:\\'q\\'':{},'i:3':{}}}}");
    SCOPED(buf_fini) struct buf text = {0};
    fieldpath_each(set, add_line, &text);
    ck_assert_str_eq(buf_cstr(&text), ".spec\n"
                                      ".z\n"
                                      ".spec.a\n"
                                      ".spec.l[n=\"x\",p=9]\n"
                                      ".spec.l[n=\"x\",p=80]\n"
                                      ".spec.l[n=null,p=true]\n"
                                      ".spec.l[=\"q\"]\n"
                                      ".spec.l[=9]\n"
                                      ".spec.l[=10]\n"
                                      ".spec.l[3]\n"
                                      ".spec.l[n=\"x\",p=80].n\n");
}
END_TEST

SUITE(fieldset)
{
    TCase *tc = tcase_create("sets");
    tcase_add_checked_fixture(tc, NULL, teardown);
    tcase_add_loop_test(tc, test_parse, 0, ARRAY_LEN(parsed));
    tcase_add_loop_test(tc, test_combine, 0, ARRAY_LEN(combined));
    tcase_add_loop_test(tc, test_laws, 0, ARRAY_LEN(combined));
    tcase_add_test(tc, test_depth);
    tcase_add_test(tc, test_look_up);
    tcase_add_test(tc, test_paths);
    suite_add_tcase(s, tc);
}
