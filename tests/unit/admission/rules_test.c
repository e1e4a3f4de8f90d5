/* Rules of a table of our own: when they run, what they say, and which ones a server refuses. */
#include "admission/rules.h"

#include "admission/steps.h"
#include "apiserver/base/json.h"
#include "tests/lib/suite.h"

static const struct rule inner_rules[] = {
    {.rule = "self.n > 0", .message = "n must be positive", .field = "n"},
    {.rule = "self.n >= oldSelf.n", .message = "n must not fall", .reason = "FieldValueForbidden"},
    {.rule = "10 / self.n > 0", .message = "n must be small", .field = "n"},
    {.rule = "!has(self.s) || self.s > 1", .message = "s is a number"},
    {.rule = "!has(self.l) || self.l.all(a, self.l.all(b, self.l.all(c, self.l.all(d, true))))",
     .message = "l is short"},
    {0},
};
static const struct field inner_fields[] = {{.name = "n", .type = F_INT64}, {0}};
static const struct shape inner = {.name = "Inner", .fields = inner_fields, .rules = inner_rules};
static const struct rule outer_rules[] = {
    {.rule = "self.name", .message = "name is no rule"},
    {.rule = "self.name != 'bad' ", .message = "name must not be bad"},
    {0},
};
static const struct field outer_fields[] = {
    {.name = "name", .type = F_STRING}, {.name = "spec", .type = F_OBJECT, .of = &inner}, {0}};
static const struct shape outer = {.name = "Outer", .fields = outer_fields, .rules = outer_rules};
static const struct kind kind = {.kind = "Thing", .shape = &outer};

#define NO_RULE                                                                                    \
    "<nil>: FieldValueInvalid: Invalid value: no truth value evaluating rule: name is no rule\n"
#define NO_NAME                                                                                    \
    "<nil>: FieldValueInvalid: Invalid value: no such key: name evaluating rule: name is no "      \
    "rule\n<nil>: FieldValueInvalid: Invalid value: no such key: name evaluating rule: name must " \
    "not be bad\n"
static const struct {
    const char *object, *old, *causes;
} rows[] = {
    {"{'name':'a'}", NULL, NO_RULE},
    {"{'name':'a','spec':{'n':3}}", NULL, NO_RULE},
    {"{}", NULL, NO_NAME},
    {"{'name':'bad'}", NULL,
     NO_RULE "<nil>: FieldValueInvalid: Invalid value: name must not be bad\n"},
    {"{'name':'a','spec':{'n':0}}", NULL,
     NO_RULE "spec.n: FieldValueInvalid: Invalid value: n must be positive\n"
             "spec: FieldValueInvalid: Invalid value: division by zero evaluating rule: n must be "
             "small\n"},
    {"{'name':'a','spec':{'n':1}}", "{'name':'a','spec':{'n':2}}",
     NO_RULE "spec: FieldValueForbidden: Invalid value: n must not fall\n"},
    {"{'name':'a','spec':{'n':2}}", "{'name':'a','spec':{'n':2}}", NO_RULE},
    {"{'name':'a','spec':{'n':2}}", "{'name':'a'}", NO_RULE},
    {"{'name':'a','spec':{'n':2,'s':'x'}}", NULL,
     NO_RULE "spec: FieldValueInvalid: Invalid value: 'no such overload': call arguments did not "
             "match a supported operator, function or macro signature for rule: s is a number\n"},
    {"{'name':'a','spec':{'n':2,'l':[0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,"
     "0,"
     "0,0,0,0,0,0,0,0]}}",
     NULL,
     NO_RULE "spec: FieldValueInvalid: Invalid value: 'operation cancelled: actual cost limit "
             "exceeded': no further validation rules will be run due to call cost exceeds limit "
             "for rule: l is short\n"},
    {"{'name':'a'}", "{'name':'a','spec':{'n':2}}", NO_RULE},
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

START_TEST(test_row)
{
    SCOPED(json_free_p)
    cJSON *object = tree_of(rows[_i].object), *old = rows[_i].old ? tree_of(rows[_i].old) : NULL;
    SCOPED(err_fini) struct err causes = {0};
    SCOPED(buf_fini) struct buf got = {0};
    const struct admit_request req = {.kind = &kind, .old = old};
    rules_validate(&(struct admission){.req = &req, .object = object}, false, &causes);
    for (size_t i = 0; i < causes.n_causes; i++)
        buf_printf(&got, "%s: %s: %s\n", causes.causes[i].field, causes.causes[i].reason,
                   causes.causes[i].message);
    ck_assert_msg(strcmp(buf_cstr(&got), rows[_i].causes) == 0, "%s: %s", rows[_i].object,
                  buf_cstr(&got));
}
END_TEST

START_TEST(test_blocked)
{
    SCOPED(json_free_p) cJSON *object = json_object();
    SCOPED(err_fini) struct err causes = {0};
    const struct admit_request req = {.kind = &kind};
    rules_validate(&(struct admission){.req = &req, .object = object}, true, &causes);
    ck_assert_uint_eq(causes.n_causes, 1);
    ck_assert_ptr_nonnull(strstr(causes.causes[0].message, "were not checked"));
}
END_TEST

static void keep(void *ctx, const char *text)
{
    buf_printf(ctx, "%s\n", text);
}

START_TEST(test_refused)
{
    static const struct rule broken[] = {
        {.rule = "self.a ==", .message = "m1"}, {.rule = "this.a", .message = "m2"}, {0}};
    static const struct shape with_broken = {
        .name = "Broken", .fields = inner_fields, .rules = broken};
    static const struct field holders[] = {
        {.name = "list", .type = F_LIST, .item = F_OBJECT, .of = &inner},
        {.name = "spec", .type = F_OBJECT, .of = &with_broken},
        {0}};
    static const struct shape whole = {.name = "Whole", .fields = holders};
    static const struct kind bad = {.kind = "Bad", .shape = &whole};
    SCOPED(buf_fini) struct buf got = {0};
    ck_assert_uint_eq(rules_check_kind(&bad, keep, &got), 7);
    ck_assert_str_eq(buf_cstr(&got),
                     "Broken: rule \"m1\": character 10: an expression is missing\n"
                     "Broken: rule \"m2\": character 5: a name that is not declared\n"
                     "Inner: rule \"n must be positive\": stands below a list or map, or too deep\n"
                     "Inner: rule \"n must not fall\": stands below a list or map, or too deep\n"
                     "Inner: rule \"n must be small\": stands below a list or map, or too deep\n"
                     "Inner: rule \"s is a number\": stands below a list or map, or too deep\n"
                     "Inner: rule \"l is short\": stands below a list or map, or too deep\n");
    ck_assert_uint_eq(rules_check_kind(&kind, NULL, NULL), 0);
}
END_TEST

SUITE(rules)
{
    LOOP("causes", test_row, 0, ARRAY_LEN(rows));
    TESTS("rest", test_blocked, test_refused);
}
