/* Defaults of absent fields. */
#include "openapi/default.h"

#include "apiserver/base/json.h"
#include "openapi/kinds.h"
#include "tests/lib/suite.h"

static const struct {
    const char *name;
    const struct kind *kind;
    const char *before, *after; /* with ' for " */
} rows[] = {
    {"no spec, nothing", &kind_sandbox, "{}", "{}"},
    {"sandbox", &kind_sandbox, "{'spec':{}}",
     "{'spec':{'operatingMode':'Running','shutdownPolicy':'Retain'}}"},
    {"what is there stays", &kind_sandbox, "{'spec':{'operatingMode':'X','shutdownPolicy':5}}",
     "{'spec':{'operatingMode':'X','shutdownPolicy':5}}"},
    {"podFailurePolicy is not stored", &kind_sandbox,
     "{'spec':{'operatingMode':'X','shutdownPolicy':'Y'}}",
     "{'spec':{'operatingMode':'X','shutdownPolicy':'Y'}}"},
    {"claim without lifecycle", &kind_sandbox_claim, "{'spec':{}}", "{'spec':{}}"},
    {"claim with lifecycle", &kind_sandbox_claim, "{'spec':{'lifecycle':{}}}",
     "{'spec':{'lifecycle':{'shutdownPolicy':'Retain'}}}"},
    {"pool", &kind_sandbox_warm_pool, "{'spec':{'updateStrategy':{}}}",
     "{'spec':{'updateStrategy':{'type':'OnReplenish'},'replicas':1}}"},
    {"template", &kind_sandbox_template, "{'spec':{}}",
     "{'spec':{'envVarsInjectionPolicy':'Disallowed','networkPolicyManagement':'Managed',"
     "'volumeClaimTemplatesPolicy':'Disallowed'}}"},
    {"protocol of a port", &kind_sandbox_template,
     "{'spec':{'envVarsInjectionPolicy':'a','networkPolicyManagement':'b','"
     "volumeClaimTemplatesPolicy':'c','podTemplate':"
     "{'spec':{'containers':[{'ports':[{'containerPort':1},{'protocol':'UDP'},null,5]},'x']}}}}",
     "{'spec':{'envVarsInjectionPolicy':'a','networkPolicyManagement':'b','"
     "volumeClaimTemplatesPolicy':'c','podTemplate':"
     "{'spec':{'containers':[{'ports':[{'containerPort':1,'protocol':'TCP'},{'protocol':'UDP'},"
     "null,5]},'x']}}}}"},
    {"names of references", &kind_sandbox,
     "{'spec':{'operatingMode':'a','shutdownPolicy':'b','podTemplate':{'spec':{'imagePullSecrets':["
     "{}],'containers':[{'env':[{"
     "'valueFrom':{'secretKeyRef':{'key':'k'},'fileKeyRef':{}}}],'resources':{}}],'volumes':[{'"
     "azureDisk':{},'rbd':{'pool':'p'}}]"
     "}}}}",
     "{'spec':{'operatingMode':'a','shutdownPolicy':'b','podTemplate':{'spec':{'imagePullSecrets':["
     "{'name':''}],'containers':[{"
     "'env':[{'valueFrom':{'secretKeyRef':{'key':'k','name':''},'fileKeyRef':{'optional':false}}}],"
     "'resources':{}}],'volumes':[{"
     "'azureDisk':{'fsType':'ext4','readOnly':false},'rbd':{'keyring':'/etc/ceph/"
     "keyring','pool':'p','user':'admin'}}]}}}}"},
    {"wrong types are left alone", &kind_sandbox, "{'spec':[]}", "{'spec':[]}"},
};

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

START_TEST(test_row)
{
    SCOPED(json_free_p) cJSON *tree = parse(rows[_i].before);
    SCOPED(json_free_p) cJSON *expected = parse(rows[_i].after);
    for (int pass = 0; pass < 2; pass++) { /* applying twice changes nothing */
        default_apply(tree, rows[_i].kind->shape);
        SCOPED_FREE char *text = json_to_str(tree);
        ck_assert_msg(json_equal(tree, expected), "%s: %s", rows[_i].name, text);
    }
}
END_TEST

SUITE(default)
{
    LOOP("table", test_row, 0, ARRAY_LEN(rows));
}
