/* Rules of a table of our own: when they run, what they say, and which ones a server refuses. */
#include "admission/rules.h"

#include "admission/steps.h"
#include "apiserver/base/json.h"
#include "apiserver/base/mem.h"
#include "tests/lib/suite.h"

static const struct rule inner_rules[] = {
    {.rule = "self.n > 0", .message = "n must be positive", .field = "n"},
    {.rule = "self.n >= oldSelf.n", .message = "n must not fall", .reason = "FieldValueForbidden"},
    {.rule = "10 / self.n > 0", .message = "n must be small", .field = "n"},
    {.rule = "!has(self.s) || self.s > 1", .message = "s is a number"},
    {.rule = "!has(self.l) || self.l.all(a, self.l.all(b, self.l.all(c, self.l.all(d, true))))",
     .message = "l is short"},
    {.rule = "!has(self.m) || self.m == 'x'",
     .message_expression = "has(self.e) ? self.e : 'm is ' + self.m",
     .message = "  m must be x ",
     .reason = "FieldValueRequired"},
    {.rule = "!has(self.u) || self.u == 1", .reason = "FieldValueDuplicate"},
    {.rule = "!has(self.o) || !oldSelf.hasValue() || oldSelf.value().o == self.o",
     .message = "o is fixed",
     .is_old_optional = true},
    {.rule = "!has(self.at) || self.at < timestamp('2030-01-01T00:00:00Z')",
     .message = "at is soon"},
    {0},
};
#define ANY(member)                                                                                \
    {                                                                                              \
        .name = member, .type = F_ANY                                                              \
    }
static const struct field inner_fields[] = {{.name = "n", .type = F_INT64},
                                            {.name = "at", .type = F_TIME},
                                            ANY("s"),
                                            ANY("l"),
                                            ANY("m"),
                                            ANY("e"),
                                            ANY("u"),
                                            ANY("o"),
                                            {0}};
static const struct shape inner = {.name = "Inner", .fields = inner_fields, .rules = inner_rules};
static const struct rule item_rules[] = {
    {.rule = "self.v < 10", .message = "v must be small", .field = "v"},
    {.rule = "self.v == oldSelf.v", .message = "v is fixed"},
    {0},
};
static const struct field item_fields[] = {
    {.name = "k", .type = F_STRING}, {.name = "v", .type = F_INT64}, ANY("l"), {0}};
static const struct shape item = {.name = "Item", .fields = item_fields, .rules = item_rules};
static const char *const item_keys[] = {"k", NULL};
static const struct rule outer_rules[] = {
    {.rule = "has(self.name) ? self.name : true", .message = "name is no rule"},
    {.rule = "!has(self.bad) || !self.bad.is", .message = "must not be bad"},
    {0},
};
static const struct field outer_fields[] = {
    ANY("name"),
    ANY("bad"),
    {.name = "spec", .type = F_OBJECT, .of = &inner},
    {.name = "keyed",
     .type = F_LIST,
     .item = F_OBJECT,
     .of = &item,
     .list = LIST_MAP,
     .keys = item_keys},
    {.name = "plain", .type = F_LIST, .item = F_OBJECT, .of = &item, .list = LIST_ATOMIC},
    {.name = "map", .type = F_MAP, .item = F_OBJECT, .of = &item},
    {0}};
static const struct shape outer = {.name = "Outer", .fields = outer_fields, .rules = outer_rules};
static const struct kind kind = {.kind = "Thing", .shape = &outer};

#define INVALID ": FieldValueInvalid: Invalid value: "
#define TROUBLE INVALID "\"object\": "
#define FORTY "0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0"
/* Warnings come behind the causes. */
static const struct {
    const char *object, *old, *causes;
} rows[] = {
    {"{}", NULL, ""},
    {"{'name':'a'}", NULL, "<nil>" TROUBLE "no truth value evaluating rule: name is no rule\n"},
    {"{'bad':{'is':true}}", NULL, "<nil>" INVALID "must not be bad\n"},
    {"{'bad':{}}", NULL, "<nil>" TROUBLE "no such key: is evaluating rule: must not be bad\n"},
    {"{'spec':{'n':3}}", NULL, ""},
    {"{'spec':{'n':0}}", NULL,
     "spec.n" INVALID "n must be positive\n"
     "spec" TROUBLE "division by zero evaluating rule: n must be small\n"},
    {"{'spec':{'n':2,'s':'x'}}", NULL,
     "spec" TROUBLE "'no such overload': call arguments did not match a supported operator, "
     "function or macro signature for rule: s is a number\n"},
    {"{'spec':{'n':2,'l':[" FORTY "],'u':2},'keyed':[{'k':'a','v':20}]}", NULL,
     "spec" TROUBLE "'operation cancelled: actual cost limit exceeded': no further validation "
     "rules will be run due to call cost exceeds limit for rule: l is short\n"},
    {"{'spec':{'n':1,'at':'2029-12-31T23:59:59Z'}}", NULL, ""},
    {"{'spec':{'n':1,'at':'2030-01-01T00:00:00+00:00'}}", NULL, "spec" INVALID "at is soon\n"},
    {"{'spec':{'n':1,'at':'soon'}}", NULL, "spec" TROUBLE "no time evaluating rule: at is soon\n"},
    /* messages */
    {"{'spec':{'n':1,'m':'y'}}", NULL, "spec: FieldValueRequired: Required value: m is y\n"},
    {"{'spec':{'n':1,'m':'y','e':''}}", NULL,
     "spec: FieldValueRequired: Required value: m must be x\n"},
    {"{'spec':{'n':1,'m':'y','e':' \\t '}}", NULL,
     "spec: FieldValueRequired: Required value: m must be x\n"},
    {"{'spec':{'n':1,'m':'y','e':'a\\nb'}}", NULL,
     "spec: FieldValueRequired: Required value: m must be x\n"},
    {"{'spec':{'n':1,'m':'y','e':'b\\n'}}", NULL, "spec: FieldValueRequired: Required value: b\n"},
    {"{'spec':{'n':1,'m':1}}", NULL, "spec: FieldValueRequired: Required value: m must be x\n"},
    {"{'spec':{'n':1,'u':2}}", NULL,
     "spec: FieldValueDuplicate: Duplicate value: failed rule: !has(self.u) || self.u == 1\n"},
    /* transitions */
    {"{'spec':{'n':1}}", "{'spec':{'n':2}}",
     "spec: FieldValueForbidden: Forbidden: n must not fall\n"},
    {"{'spec':{'n':2}}", "{'spec':{'n':2}}", ""},
    {"{'spec':{'n':2}}", "{}", ""},
    {"{'spec':{'n':2}}", "{'spec':1}", ""},
    {"{}", "{'spec':{'n':2}}", ""},
    {"{'spec':{'n':2,'o':1}}", NULL, ""},
    {"{'spec':{'n':2,'o':1}}", "{'spec':{'n':2,'o':2}}", "spec" INVALID "o is fixed\n"},
    {"{'spec':{'n':2,'o':1}}", "{'spec':{'n':2,'o':1}}", ""},
    /* lists and maps */
    {"{'plain':[{'v':1},{'v':10}],'map':{'a':{'v':11}}}", NULL,
     "plain[1].v" INVALID "v must be small\n"
     "map[a].v" INVALID "v must be small\n"},
    {"{'plain':[{'v':1}]}", "{'plain':[{'v':2}]}", ""},
    {"{'map':{'a':{'v':1},'b':{'v':1}}}", "{'map':{'a':{'v':2}}}", "map[a]" INVALID "v is fixed\n"},
    {"{'keyed':[{'k':'b','v':1},{'k':'a','v':1}]}", "{'keyed':[{'k':'a','v':2}]}",
     "keyed[1]" INVALID "v is fixed\n"},
    /* what was broken before, and is as it was, is a warning */
    {"{'spec':{'n':1,'u':2,'x':1}}", "{'spec':{'n':1,'u':2}}",
     "warning: spec: Duplicate value: failed rule: !has(self.u) || self.u == 1\n"},
    {"{'spec':{'n':1,'u':3}}", "{'spec':{'n':1,'u':2}}",
     "spec: FieldValueDuplicate: Duplicate value: failed rule: !has(self.u) || self.u == 1\n"},
    {"{'bad':{'is':true},'x':1}", "{'bad':{'is':true}}",
     "warning: <nil>: Invalid value: must not be bad\n"},
    {"{'bad':{'is':true}}", "{}", "<nil>" INVALID "must not be bad\n"},
    {"{'keyed':[{'k':'b','v':1},{'k':'a','v':20,'x':1}]}", "{'keyed':[{'k':'a','v':20}]}",
     "warning: keyed[1].v: Invalid value: v must be small\n"},
    {"{'plain':[{'v':20}],'x':1}", "{'plain':[{'v':20}]}",
     "warning: plain[0].v: Invalid value: v must be small\n"},
    {"{'plain':[{'v':20},{'v':1}]}", "{'plain':[{'v':20}]}",
     "plain[0].v" INVALID "v must be small\n"},
};

static cJSON *tree_of(const char *quoted)
{
    SCOPED_FREE char *text = xstrdup(quoted);
    for (char *p = text; *p; p++)
        if (*p == '\'')
            *p = '"';
    cJSON *tree = NULL;
    ck_assert_int_eq(json_parse_str(text, &tree, NULL), 0);
    return tree;
}

static void validate(const struct kind *k, const cJSON *object, const cJSON *old, bool is_blocked,
                     struct buf *got)
{
    SCOPED(err_fini) struct err causes = {0};
    SCOPED(pairs_fini) struct pairs warnings = {0};
    SCOPED(json_free_p) cJSON *copy = json_copy(object);
    const struct admit_request req = {.kind = k, .old = old};
    rules_validate(&(struct admission){.req = &req, .object = copy, .warnings = &warnings},
                   is_blocked, &causes);
    for (size_t i = 0; i < causes.n_causes; i++)
        buf_printf(got, "%s: %s: %s\n", causes.causes[i].field, causes.causes[i].reason,
                   causes.causes[i].message);
    for (size_t i = 0; i < warnings.n; i++)
        buf_printf(got, "warning: %s\n", warnings.v[i].name);
}

START_TEST(test_row)
{
    SCOPED(json_free_p)
    cJSON *object = tree_of(rows[_i].object), *old = rows[_i].old ? tree_of(rows[_i].old) : NULL;
    SCOPED(buf_fini) struct buf got = {0};
    validate(&kind, object, old, false, &got);
    ck_assert_msg(strcmp(buf_cstr(&got), rows[_i].causes) == 0, "%s: %s", rows[_i].object,
                  buf_cstr(&got));
}
END_TEST

START_TEST(test_blocked)
{
    static const struct rule added[] = {{.rule = "true", .is_added = true}, {0}};
    static const struct shape only_added = {.name = "Added", .fields = item_fields, .rules = added};
    static const struct kind quiet = {.kind = "Quiet", .shape = &only_added};
    SCOPED(json_free_p) cJSON *object = json_object();
    SCOPED(buf_fini) struct buf got = {0};
    validate(&quiet, object, NULL, true, &got);
    ck_assert_str_eq(buf_cstr(&got), "");
    validate(&kind, object, NULL, true, &got);
    ck_assert_ptr_nonnull(strstr(buf_cstr(&got), "<nil>: FieldValueInvalid: Invalid value: null: "
                                                 "some validation rules were not checked"));
}
END_TEST

/* Rules that are each within their budget, but not all together. */
START_TEST(test_budget)
{
    static const struct rule costly[] = {
        {.rule = "!has(self.l) || self.l.all(a, self.l.all(b, self.l.all(c, true)))",
         .message = "l"},
        {0}};
    static const struct shape one = {.name = "One", .fields = item_fields, .rules = costly};
    static const struct field many[] = {
        {.name = "many", .type = F_LIST, .item = F_OBJECT, .of = &one}, {0}};
    static const struct shape whole = {.name = "Many", .fields = many};
    static const struct kind heavy = {.kind = "Heavy", .shape = &whole};
    SCOPED(buf_fini) struct buf text = {0}, got = {0};
    buf_puts(&text, "{'many':[");
    for (int i = 0; i < 100; i++)
        buf_printf(&text, "%s{'l':[" FORTY "]}", i ? "," : "");
    buf_puts(&text, "]}");
    SCOPED(json_free_p) cJSON *object = tree_of(buf_cstr(&text));
    validate(&heavy, object, NULL, false, &got);
    ck_assert_ptr_nonnull(strstr(buf_cstr(&got),
                                 "validation failed due to running out of cost "
                                 "budget, no further validation rules will be run"));
    ck_assert_ptr_null(strchr(strchr(buf_cstr(&got), '\n') + 1, '\n')); /* said once */
}
END_TEST

static void keep(void *ctx, const char *text)
{
    buf_printf(ctx, "%s\n", text);
}

START_TEST(test_refused)
{
    static const struct rule broken[] = {{.rule = "self.n ==", .message = "m1"},
                                         {.rule = "this.n", .message = "m2"},
                                         {.rule = "self.e.matches('(')", .message = "m3"},
                                         {.rule = "self.n == 1", .message_expression = "url('x')"},
                                         {0}};
    static const struct shape with_broken = {
        .name = "Broken", .fields = inner_fields, .rules = broken};
    static const struct field holders[] = {
        {.name = "list", .type = F_LIST, .item = F_OBJECT, .of = &with_broken}, {0}};
    static const struct shape whole = {.name = "Whole", .fields = holders};
    static const struct kind bad = {.kind = "Bad", .shape = &whole};
    SCOPED(buf_fini) struct buf got = {0};
    ck_assert_uint_eq(rules_check_kind(&bad, keep, &got), 4);
    ck_assert_str_eq(buf_cstr(&got),
                     "Broken: rule \"m1\": character 10: an expression is missing\n"
                     "Broken: rule \"m2\": character 5: a name that is not declared: this\n"
                     "Broken: rule \"m3\": character 20: a regular expression: a group without "
                     "end\n"
                     "Broken: rule \"self.n == 1\": character 9: a function of Kubernetes that is "
                     "not supported here: url\n");
}
END_TEST

/* Mistakes that show before there is an object: expression over self, and what is said. */
static const struct field checked_fields[] = {
    {.name = "metadata", .type = F_META},
    {.name = "i", .type = F_INT64},
    {.name = "d", .type = F_NUMBER},
    {.name = "s", .type = F_STRING},
    {.name = "b", .type = F_BOOL},
    {.name = "t", .type = F_TIME},
    {.name = "q", .type = F_QUANTITY},
    {.name = "any", .type = F_ANY},
    {.name = "o", .type = F_OBJECT, .of = &item},
    {.name = "list", .type = F_LIST, .item = F_OBJECT, .of = &item},
    {.name = "texts", .type = F_LIST, .item = F_STRING},
    {.name = "map", .type = F_MAP, .item = F_INT64},
    {.name = "a-b", .type = F_BOOL},
    {0}};
static const struct {
    const char *rule, *said;
} checked[] = {
    {"self.b", ""},
    {"self.a__dash__b", ""},
    {"self.x", "undefined field: x"},
    {"has(self.o.x)", "undefined field: x"},
    {"self.list.all(e, e.x == 1)", "undefined field: x"},
    {"self.list[0].x == 1", "undefined field: x"},
    {"self.?x.hasValue()", "undefined field: x"},
    {"self.metadata.name == self.metadata.generateName", ""},
    {"self.metadata.labels.a == 'b'", "undefined field: labels"},
    {"self.i.x == 1", "type int has no member x"},
    {"self.map.anything == 1", ""},
    {"self.map.anything == ''", "no matching overload for == of (int, string)"},
    {"self.any.x.y == 1 && self.q == '1' && self.q == 1", ""},
    {"self.i", "it gives int, not bool"},
    {"self.any", ""},
    {"self.i == self.d", "no matching overload for == of (int, double)"},
    {"self.i == null", ""},
    {"self.i < self.d", ""},
    {"self.i < self.s", "no matching overload for < of (int, string)"},
    {"self.o < self.o", "no matching overload for < of (map, map)"},
    {"self.i + self.d > 1.0", "no matching overload for + of (int, double)"},
    {"self.s + self.s == ''", ""},
    {"self.s - self.s == ''", "no matching overload for - of (string, string)"},
    {"self.d % self.d == 1.0", "no matching overload for % of (double, double)"},
    {"self.t - self.t > duration('1s') && self.t + duration('1s') > self.t", ""},
    {"duration('1s') + self.t > self.t && duration('1s') - duration('1s') > duration('0s')", ""},
    {"duration('1s') - self.t > self.t", "no matching overload for - of"},
    {"-self.s == ''", "no matching overload for - of (string)"},
    {"!self.i", "no matching overload for ! of (int)"},
    {"self.b && self.i", "no matching overload for && of (bool, int)"},
    {"self.i || self.b", "no matching overload for || of (int, bool)"},
    {"self.i ? true : false", "no matching overload for ?: of (int)"},
    {"(self.b ? 1 : 'a') == 1", "no matching overload for ?: of (int, string)"},
    {"self.s in self.texts && self.s in self.map", ""},
    {"self.s in self.s", "no matching overload for in of (string, string)"},
    {"self.o['v'] == 1", "no matching overload for [] of (map, string)"},
    {"self.texts['v'] == 'a'", "no matching overload for [] of (list, string)"},
    {"self.texts[0].size() == 1", ""},
    {"self.i.size() == 1", "no matching overload for size of (int)"},
    {"self.s.contains(self.i)", "no matching overload for contains of (string, int)"},
    {"self.texts.indexOf('a') + self.s.indexOf('a') == 1", ""},
    {"self.i.all(x, true)", "no matching overload for a macro of (int)"},
    {"self.texts.all(x, x)", "no matching overload for a macro's condition of (string)"},
    {"self.texts.all(i, x, x == i)", "no matching overload for == of (string, int)"},
    {"self.map.all(k, k == 1)", "no matching overload for == of (string, int)"},
    {"self.map.all(k, v, k == '' && v == 1)", ""},
    {"self.texts.map(x, x.size() > 1, x)[0] == 1", ""},
    {"self.texts.filter(x, x == 1) == []", "no matching overload for == of (string, int)"},
    {"self.texts.exists(self, self == 1)", "no matching overload for == of (string, int)"},
    {"[?self.i] == []", "no matching overload for ? of (int)"},
    {"self.?s.optMap(x, x + 'a').orValue('') == ''", ""},
    {"self.s.optMap(x, x) == ''", "no matching overload for a macro of (string)"},
    {"dyn(self.i) == self.s", ""},
    {"oldSelf.x", "undefined field: x"},
};

START_TEST(test_checked)
{
    const struct rule alone[] = {{.rule = checked[_i].rule, .message = "m"}, {0}};
    const struct shape shape = {.name = "Checked", .fields = checked_fields, .rules = alone};
    const struct kind whole = {.kind = "Checked", .shape = &shape};
    SCOPED(buf_fini) struct buf got = {0};
    size_t mistakes = rules_check_kind(&whole, keep, &got);
    ck_assert_msg(mistakes == (*checked[_i].said ? 1 : 0) &&
                      strstr(buf_cstr(&got), checked[_i].said),
                  "%s: %s", checked[_i].rule, buf_cstr(&got));
}
END_TEST

SUITE(rules)
{
    LOOP("checked", test_checked, 0, ARRAY_LEN(checked));
    LOOP("causes", test_row, 0, ARRAY_LEN(rows));
    TESTS("rest", test_blocked, test_budget, test_refused);
}
