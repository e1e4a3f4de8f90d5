/* Texts of refusals: docs/kubernetes-api.md 25 and the recorded answers of kube-apiserver. */
#include "apiserver/registry/select.h"

#include "apiserver/base/json.h"
#include "openapi/kinds.h"
#include "tests/lib/suite.h"

#define QN                                                                                         \
    "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an "    \
    "alphanumeric character "                                                                      \
    "(e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is "                  \
    "'([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
#define LV                                                                                         \
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or "    \
    "'.', and must start "                                                                         \
    "and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex "  \
    "used for validation "                                                                         \
    "is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"
#define V64 "vvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvv"

static void selector_free_p(struct selector **s)
{
    selector_free(*s);
}

/* Five objects, named by letter, as the recordings have them. */
static const char *const objects[] = {
    "\"labels\":{\"app\":\"web\",\"k\":\"1\"},\"name\":\"a\"",
    "\"labels\":{\"app\":\"db\",\"k\":\"10\"},\"name\":\"b\"",
    "\"labels\":{\"k\":\"x\"},\"name\":\"c\"",
    "\"labels\":{\"e\":\"\"},\"name\":\"d\"",
    "\"name\":\"e\"",
};

static struct object *object_of(size_t i)
{
    char *json = xasprintf(
        "{\"apiVersion\":\"agents.x-k8s.io/v1beta1\",\"kind\":\"Sandbox\",\"metadata\":{%s,"
        "\"namespace\":\"ns\",\"uid\":\"u\"}}",
        objects[i]);
    struct object *o = NULL;
    ck_assert_int_eq(object_from_bytes(&kind_sandbox, json, strlen(json), 1, &o, NULL), 0);
    return o;
}

static const struct {
    const char *label, *field, *matches; /* names of the objects that match */
} good[] = {
    {"", "", "abcde"},
    {"app=web", "", "a"},
    {"app==web", "", "a"},
    {"app!=web", "", "bcde"},
    {"app", "", "ab"},
    {"!app", "", "cde"},
    {"app in (web,db)", "", "ab"},
    {" app  in ( web , db ) ", "", "ab"},
    {"app notin (web)", "", "bcde"},
    {"k>5", "", "b"},
    {"k<5", "", "a"},
    {"k>5,k<20", "", "b"},
    {"e=", "", "d"},
    {"e in (,x)", "", "d"},
    {"e in (x,)", "", "d"},
    {"e in (,)", "", "d"},
    {"app in ()", "", ""},
    {"app,k=10", "", "b"},
    {"app=web,app=db", "", ""},
    {"! app", "", "cde"},
    {"in in (a)", "", ""},
    {"notin", "", ""},
    {"example.org/x!=1", "", "abcde"},
    {"", "metadata.name=a", "a"},
    {"", "metadata.name==a", "a"},
    {"", "metadata.name!=a", "bcde"},
    {"", "metadata.namespace=default", ""},
    {"", "metadata.namespace=ns", "abcde"},
    {"", "metadata.namespace!=ns", ""},
    {"", "metadata.name=a,metadata.namespace=default", ""},
    {"", "metadata.name=a,metadata.name=b", ""},
    {"", "metadata.name=", ""},
    {"", "metadata.name=a\\,b", ""},
    {"", "metadata.name=a\\=b", ""},
    {"", "metadata.name=a\\\\b", ""},
    {"", "metadata.name=a,", "a"},
    {"", "=", "abcde"},
    {"", "!=,==", "abcde"},
    {"app=db", "metadata.name=a", ""},
};

START_TEST(test_good)
{
    SCOPED(selector_free_p) struct selector *s = NULL;
    SCOPED(err_fini) struct err err = {0};
    int rc = selector_parse(good[_i].label, good[_i].field, &s, &err);
    ck_assert_msg(rc == 0, "%s %s: %s", good[_i].label, good[_i].field, err_text(&err));
    char found[8] = "";
    for (size_t i = 0; i < ARRAY_LEN(objects); i++) {
        SCOPED(object_unref_p) struct object *o = object_of(i);
        if (selector_matches(s, o))
            memcpy(found + strlen(found), (char[]){o->name[0], '\0'}, 2);
    }
    ck_assert_msg(strcmp(found, good[_i].matches) == 0, "%s %s: %s", good[_i].label, good[_i].field,
                  found);
}
END_TEST

static const struct {
    const char *label, *field, *text;
} bad[] = {
    {",", "", "found ',', expected: !, identifier, or 'end of string'"},
    {"app=web,", "", "found '', expected: identifier after ','"},
    {"app=web,=", "", "found '=', expected: identifier after ','"},
    {"app=(", "", "unable to parse requirement: found '(', expected: identifier"},
    {"app in (web", "", "unable to parse requirement: found '', expected: ',' or ')'"},
    {"app in (web=", "", "unable to parse requirement: found '=', expected: ',' or ')'"},
    {"app in", "", "unable to parse requirement: found '' expected: '('"},
    {"app in (=", "", "unable to parse requirement: found '=', expected: ',', ')' or identifier"},
    {"app ~ web", "",
     "unable to parse requirement: found '~', expected: in, notin, =, ==, !=, gt, lt"},
    {"-x=1", "", "unable to parse requirement: <nil>: Invalid value: \"-x\": name part " QN},
    {"x.io/=1", "",
     "unable to parse requirement: <nil>: Invalid value: \"x.io/\": name part must be non-empty; "
     "name part " QN},
    {"app in (a$,b$)", "",
     "unable to parse requirement: [values[0][app]: Invalid value: \"a$\": " LV
     ", values[1][app]: Invalid value: \"b$\": " LV "]"},
    {"a/b/c=1", "",
     "unable to parse requirement: <nil>: Invalid value: \"a/b/c\": a valid label key " QN
     " with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"},
    {"\xc3\xa9=1", "",
     "unable to parse requirement: <nil>: Invalid value: \"\xc3\xa9\": name part " QN},
    {"app=a b", "", "found 'b', expected: ',' or 'end of string'"},
    {"app=" V64, "",
     "unable to parse requirement: values[0][app]: Invalid value: \"" V64
     "\": must be no more than 63 bytes"},
    {"app=a$", "", "unable to parse requirement: values[0][app]: Invalid value: \"a$\": " LV},
    {"app='web'", "", "unable to parse requirement: values[0][app]: Invalid value: \"'web'\": " LV},
    {"k>x", "",
     "unable to parse requirement: values[0]: Invalid value: \"x\": for 'Gt', 'Lt' operators, the "
     "value must be an "
     "integer"},
    {"k>", "",
     "unable to parse requirement: values[0]: Invalid value: \"\": for 'Gt', 'Lt' operators, the "
     "value must be an "
     "integer"},
    {"!!app", "", "unable to parse requirement: found '!', expected: identifier"},
    {"!=x", "", "found '!=', expected: !, identifier, or 'end of string'"},
    {"", "spec.operatingMode=Running", "field label not supported: spec.operatingMode"},
    {"", "metadata.uid=x", "field label not supported: metadata.uid"},
    {"", "spec.a=b,metadata.name",
     "invalid selector: 'spec.a=b,metadata.name'; can't understand 'metadata.name'"},
    {"", "metadata.name", "invalid selector: 'metadata.name'; can't understand 'metadata.name'"},
    {"", "metadata.name in (a)",
     "invalid selector: 'metadata.name in (a)'; can't understand 'metadata.name in (a)'"},
    {"", "metadata.name=a\\b", "invalid field selector: invalid escape sequence: \\b"},
    {"", "metadata.name=a\\", "invalid field selector: invalid escape sequence: \\"},
};

START_TEST(test_bad) /* IL-143 */
{
    struct selector *s = NULL;
    SCOPED(err_fini) struct err err = {0};
    int rc = selector_parse(bad[_i].label, bad[_i].field, &s, &err);
    ck_assert_msg(rc == -ERR_BAD_REQUEST, "%s %s", bad[_i].label, bad[_i].field);
    ck_assert_str_eq(err_text(&err), bad[_i].text);
    ck_assert_ptr_null(s);
    ck_assert_int_eq(selector_parse(bad[_i].label, bad[_i].field, &s, NULL), -ERR_BAD_REQUEST);
}
END_TEST

static void check_requirements(cJSON *got, const char *expected)
{
    SCOPED(json_free_p) cJSON *tree = got;
    if (!expected) {
        ck_assert_ptr_null(tree);
        return;
    }
    ck_assert_ptr_nonnull(tree);
    SCOPED_FREE char *text = json_to_str(tree);
    ck_assert_str_eq(text, expected);
}

START_TEST(test_requirements)
{
    SCOPED(selector_free_p) struct selector *s = NULL;
    ck_assert_int_eq(selector_parse("z,!y,b in (2,1),a!=3,k>5",
                                    "metadata.name=n,metadata.namespace!=m", &s, NULL),
                     0);
    check_requirements(selector_label_requirements(s),
                       "{\"requirements\":[{\"key\":\"a\",\"operator\":\"NotIn\",\"values\":[\"3\"]"
                       "},{\"key\":\"b\","
                       "\"operator\":\"In\",\"values\":[\"1\",\"2\"]},{\"key\":\"y\",\"operator\":"
                       "\"DoesNotExist\"},"
                       "{\"key\":\"z\",\"operator\":\"Exists\"}]}");
    check_requirements(selector_field_requirements(s),
                       "{\"requirements\":[{\"key\":\"metadata.name\",\"operator\":\"In\","
                       "\"values\":[\"n\"]},{\"key\":"
                       "\"metadata.namespace\",\"operator\":\"NotIn\",\"values\":[\"m\"]}]}");
    ck_assert_str_eq(selector_name(s), "n");
    ck_assert(!selector_is_empty(s));
}
END_TEST

START_TEST(test_nothing)
{
    SCOPED(selector_free_p) struct selector *s = NULL;
    ck_assert_int_eq(selector_parse(NULL, NULL, &s, NULL), 0);
    ck_assert(selector_is_empty(s) && selector_is_empty(NULL));
    ck_assert_ptr_null(selector_name(s));
    ck_assert_ptr_null(selector_name(NULL));
    check_requirements(selector_label_requirements(s), NULL);
    check_requirements(selector_field_requirements(NULL), NULL);
    selector_free(NULL);
}
END_TEST

START_TEST(test_ceilings)
{
    SCOPED(buf_fini) struct buf many = {0}, values = {0}, fields = {0};
    buf_puts(&values, "k in (a");
    for (int i = 0; i < 2000; i++) {
        buf_printf(&many, "%sk%d", i ? "," : "", i);
        buf_printf(&values, ",v%d", i);
        buf_puts(&fields, "metadata.name!=a,");
    }
    buf_puts(&values, ")");
    struct selector *s = NULL;
    ck_assert_int_eq(selector_parse(buf_cstr(&many), NULL, &s, NULL), -ERR_BAD_REQUEST);
    ck_assert_int_eq(selector_parse(buf_cstr(&values), NULL, &s, NULL), -ERR_BAD_REQUEST);
    ck_assert_int_eq(selector_parse(NULL, buf_cstr(&fields), &s, NULL), -ERR_BAD_REQUEST);
}
END_TEST

SUITE(select)
{
    LOOP("good", test_good, 0, ARRAY_LEN(good));
    LOOP("bad", test_bad, 0, ARRAY_LEN(bad));
    TESTS("rest", test_requirements, test_nothing, test_ceilings);
}
