/* The rules of the four kinds: which names and changes they refuse, by which words, and that what
 * was there before a rule stays writable. */
#include "admission/rules.h"
#include "admission/steps.h"
#include "apiserver/base/json.h"
#include "apiserver/base/mem.h"
#include "openapi/kinds.h"
#include "tests/lib/suite.h"

#define S &kind_sandbox
#define T &kind_sandbox_template
#define C &kind_sandbox_claim
#define SERVICE_NAME "metadata.name: Invalid value: must have at most 63 characters"
#define SERVICE_DOTS "metadata.name: Invalid value: must not contain dots"
#define VOLUME                                                                                     \
    "spec.volumeClaimTemplates: Invalid value: metadata.name of a template names a volume"
#define CLAIM "spec.volumeClaimTemplates: Invalid value: metadata.name of a template, a '-'"
#define POLICY "metadata.name: Invalid value: must have at most 238 characters"
#define POOL "spec.warmPoolRef: Invalid value: cannot change any more"

/* '@63' stands for 63 letters. said: what the only cause begins with, behind "warning: " the only
 * warning; "" = neither. */
static const struct {
    const struct kind *kind;
    const char *object, *old, *said;
} rows[] = {
    /* a service has the name of its sandbox */
    {S, "{'metadata':{'name':'@63'},'spec':{'service':true}}", NULL, ""},
    {S, "{'metadata':{'name':'@64'},'spec':{'service':true}}", NULL, SERVICE_NAME},
    {S, "{'metadata':{'name':'@253'},'spec':{'service':false}}", NULL, ""},
    {S, "{'metadata':{'name':'@253'},'spec':{}}", NULL, ""},
    {S, "{'metadata':{'name':'a.b'},'spec':{'service':true}}", NULL, SERVICE_DOTS},
    {S, "{'metadata':{'name':'a.b'},'spec':{}}", NULL, ""},
    {S, "{'metadata':{'name':'1ab'},'spec':{'service':true}}", NULL, ""},
    {S, "{'metadata':{'name':'@64'},'spec':{'service':true}}",
     "{'metadata':{'name':'@64'},'spec':{'service':false}}", SERVICE_NAME},
    {S, "{'metadata':{'name':'@64'},'spec':{'service':true},'status':{'nodeName':'n'}}",
     "{'metadata':{'name':'@64'},'spec':{'service':true}}", "warning: " SERVICE_NAME},
    {S, "{'metadata':{'name':'a.b','labels':{'x':'y'}},'spec':{'service':true}}",
     "{'metadata':{'name':'a.b'},'spec':{'service':true}}", "warning: " SERVICE_DOTS},
    {S, "{'metadata':{'name':'@64'},'spec':{}}",
     "{'metadata':{'name':'@64'},'spec':{'service':true}}", ""},
    /* volumes of the pod have the names of templates */
    {S, "{'metadata':{'name':'a'},'spec':{'volumeClaimTemplates':[{'metadata':{'name':'@63'}}]}}",
     NULL, ""},
    {S, "{'metadata':{'name':'a'},'spec':{'volumeClaimTemplates':[{'metadata':{'name':'@64'}}]}}",
     NULL, VOLUME},
    {T, "{'metadata':{'name':'a'},'spec':{'volumeClaimTemplates':[{'metadata':{'name':'A'}}]}}",
     NULL, VOLUME},
    {C, "{'metadata':{'name':'a'},'spec':{'volumeClaimTemplates':[{'metadata':{'name':'a.b'}}]}}",
     NULL, VOLUME},
    {S, "{'metadata':{'name':'a'},'spec':{'volumeClaimTemplates':[{'metadata':{}},{}]}}", NULL, ""},
    {C, "{'metadata':{'name':'a'},'spec':{'volumeClaimTemplates':[{'metadata':{'name':''}}]}}",
     NULL, ""},
    {T,
     "{'metadata':{'name':'a'},'spec':{'volumeClaimTemplates':[{'metadata':{'name':'A'}}],"
     "'service':true}}",
     "{'metadata':{'name':'a'},'spec':{'volumeClaimTemplates':[{'metadata':{'name':'A'}}]}}",
     "warning: " VOLUME},
    /* volume claims have both */
    {S,
     "{'metadata':{'name':'@192'},'spec':{'volumeClaimTemplates':[{'metadata':{'name':'@60'}}]}}",
     NULL, ""},
    {S,
     "{'metadata':{'name':'@193'},'spec':{'volumeClaimTemplates':[{'metadata':{'name':'@60'}}]}}",
     NULL, CLAIM},
    {C,
     "{'metadata':{'name':'@193'},'spec':{'volumeClaimTemplates':[{'metadata':{'name':'@60'}}]}}",
     NULL, CLAIM},
    /* a network policy has the name of its template */
    {T, "{'metadata':{'name':'@238'},'spec':{'networkPolicyManagement':'Managed'}}", NULL, ""},
    {T, "{'metadata':{'name':'@239'},'spec':{'networkPolicyManagement':'Managed'}}", NULL, POLICY},
    {T, "{'metadata':{'name':'@239'},'spec':{}}", NULL, POLICY},
    {T, "{'metadata':{'name':'@253'},'spec':{'networkPolicyManagement':'Unmanaged'}}", NULL, ""},
    {T, "{'metadata':{'name':'@239'},'spec':{'service':true}}",
     "{'metadata':{'name':'@239'},'spec':{}}", "warning: " POLICY},
    /* IL-010: a claim that has its sandbox stays with its pool */
    {C, "{'metadata':{'name':'a'},'spec':{'warmPoolRef':{'name':'q'}}}", NULL, ""},
    {C, "{'metadata':{'name':'a'},'spec':{'warmPoolRef':{'name':'q'}}}",
     "{'metadata':{'name':'a'},'spec':{'warmPoolRef':{'name':'p'}}}", ""},
    {C, "{'metadata':{'name':'a'},'spec':{'warmPoolRef':{'name':'q'}},'status':{'sandbox':{}}}",
     "{'metadata':{'name':'a'},'spec':{'warmPoolRef':{'name':'p'}},'status':{'sandbox':{}}}", ""},
    {C, "{'metadata':{'name':'a'},'spec':{'warmPoolRef':{'name':'q'}}}",
     "{'metadata':{'name':'a'},'spec':{'warmPoolRef':{'name':'p'}},'status':{'sandbox':{'name':'s'}"
     "}}",
     POOL},
    {C, "{'metadata':{'name':'a'},'spec':{'warmPoolRef':{'name':'p'},'env':[]}}",
     "{'metadata':{'name':'a'},'spec':{'warmPoolRef':{'name':'p'}},'status':{'sandbox':{'name':'s'}"
     "}}",
     ""},
};

static cJSON *tree_of(const char *text)
{
    SCOPED(buf_fini) struct buf out = {0};
    for (; *text; text++) {
        if (*text == '@') {
            char *end;
            for (long n = strtol(text + 1, &end, 10); n > 0; n--)
                buf_putc(&out, 'n');
            text = end - 1;
        } else {
            bool is_quote = *text == '\'';
            buf_putc(&out, is_quote ? '"' : *text);
        }
    }
    cJSON *tree = NULL;
    ck_assert_int_eq(json_parse_str(buf_cstr(&out), &tree, NULL), 0);
    return tree;
}

START_TEST(test_row)
{
    SCOPED(err_fini) struct err causes = {0};
    SCOPED(pairs_fini) struct pairs warnings = {0};
    SCOPED(buf_fini) struct buf got = {0};
    SCOPED(json_free_p) cJSON *object = tree_of(rows[_i].object);
    SCOPED(json_free_p) cJSON *old = rows[_i].old ? tree_of(rows[_i].old) : NULL;
    const struct admit_request req = {.kind = rows[_i].kind, .old = old};
    rules_validate(&(struct admission){.req = &req, .object = object, .warnings = &warnings}, false,
                   &causes);
    for (size_t i = 0; i < causes.n_causes; i++)
        buf_printf(&got, "%s: %s", causes.causes[i].field, causes.causes[i].message);
    for (size_t i = 0; i < warnings.n; i++)
        buf_printf(&got, "warning: %s", warnings.v[i].name);
    bool is_silent = !*rows[_i].said && got.len == 0;
    bool is_said = *rows[_i].said && str_has_prefix(buf_cstr(&got), rows[_i].said);
    ck_assert_msg(causes.n_causes + warnings.n <= 1 && (is_silent || is_said), "%s: %s",
                  rows[_i].object, buf_cstr(&got));
}
END_TEST

START_TEST(test_tables)
{
    ck_assert_uint_eq(rules_check(NULL, NULL), 0);
}
END_TEST

SUITE(kind_rules)
{
    LOOP("rows", test_row, 0, ARRAY_LEN(rows));
    TESTS("rest", test_tables);
}
