/* Checks at paths, by small objects: what is said, where, and what an old object excuses. That the
 * texts are kube-apiserver's is tried by tests/func/core-rules.sh. */
#include "admission/checks.h"

#include "apiserver/base/buf.h"
#include "apiserver/base/json.h"
#include "openapi/kinds/builtin.h"
#include "tests/lib/suite.h"

#define POD(members) "{'spec':{'containers':[{'name':'a','image':'x'" members "}]}}"
#define FROZEN                                                                                     \
    "spec: Forbidden: pod updates may not change fields other than "                               \
    "`spec.containers[*].image`,`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,"      \
    "`spec.tolerations` (only additions to existing tolerations),"                                 \
    "`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously "          \
    "negative)"

static const struct {
    const char *name;
    const struct kind *kind;
    const char *object, *old; /* with ' for "; old may be NULL */
    const char *causes;       /* field: text, one a line */
} rows[] = {
    {"nothing wrong", &kind_pod, POD(""), NULL, ""},
    {"what is not there", &kind_pod, "{'spec':{}}", NULL, "spec.containers: Required value\n"},
    {"in each item", &kind_pod, "{'spec':{'containers':[{'name':'a'},{'name':'b','image':''}]}}",
     NULL, "spec.containers[0].image: Required value\nspec.containers[1].image: Required value\n"},
    {"a name that another list has", &kind_pod,
     "{'spec':{'containers':[{'name':'a','image':'x'}],'initContainers':[{'name':'b','image':'x'},"
     "{'name':'a','image':'x'}]}}",
     NULL, "spec.initContainers[1].name: Duplicate value: \"a\"\n"},
    {"no number in the text", &kind_persistent_volume_claim,
     "{'spec':{'accessModes':['X'],'resources':{'requests':{'storage':'1'}}}}", NULL,
     "spec.accessModes: Unsupported value: \"X\": supported values: \"ReadOnlyMany\", "
     "\"ReadWriteMany\", \"ReadWriteOnce\", \"ReadWriteOncePod\"\n"},
    {"another name in the text, also of what is missing above", &kind_persistent_volume_claim,
     "{'spec':{'accessModes':['ReadWriteOnce']}}", NULL,
     "spec.resources[storage]: Required value\n"},
    {"zero where it is none", &kind_pod, POD(",'ports':[{'containerPort':1,'hostPort':0}]"), NULL,
     ""},
    {"and where it is one", &kind_service, "{'spec':{'ports':[{'port':0}]}}", NULL,
     "spec.ports[0].port: Invalid value: 0: must be between 1 and 65535, inclusive\n"},
    {"requests in other units", &kind_pod,
     POD(",'resources':{'requests':{'cpu':'1000m','memory':'1Gi'},'limits':{'cpu':1,'memory':"
         "'1000Mi'}}"),
     NULL,
     "spec.containers[0].resources.requests: Invalid value: \"1Gi\": must be less than or equal to "
     "memory limit of 1000Mi\n"},
    {"two handlers", &kind_pod,
     POD(",'livenessProbe':{'exec':{'command':['a']},'tcpSocket':{'port':1}}"), NULL,
     "spec.containers[0].livenessProbe.tcpSocket: Forbidden: may not specify more than 1 handler "
     "type\n"},
    {"two ports of one number", &kind_service,
     "{'spec':{'ports':[{'name':'a','port':1,'protocol':'TCP'},{'name':'b','port':1,'protocol':"
     "'UDP'},{'name':'c','port':1,'protocol':'TCP'}]}}",
     NULL, "spec.ports[2]: Duplicate value: {\"port\":1,\"protocol\":\"TCP\"}\n"},
    {"only for one type", &kind_secret, "{'type':'kubernetes.io/ssh-auth'}", NULL,
     "data[ssh-privatekey]: Required value\n"},
    {"not for another", &kind_secret, "{'type':'Opaque'}", NULL, ""},
    {"what was so before is excused", &kind_secret,
     "{'type':'kubernetes.io/tls','data':{'a b':'','tls.key':'','c d':''}}",
     "{'type':'kubernetes.io/tls','data':{'a b':'','tls.key':''}}",
     "data[c d]: Invalid value: \"c d\": a valid config key must consist of alphanumeric "
     "characters, '-', '_' or '.' (e.g. 'key.name',  or 'KEY_NAME',  or 'key-name', regex used for "
     "validation is '[-._a-zA-Z0-9]+')\n"},
    {"an immutable field", &kind_secret, "{'type':'b'}", "{'type':'a'}",
     "type: Invalid value: \"b\": field is immutable\n"},
    {"a frozen one", &kind_pod, POD(",'env':[]"), POD(",'env':[{'name':'a'}]"), FROZEN "\n"},
    {"containers that only an endpoint of their own may add", &kind_pod,
     "{'spec':{'containers':[{'name':'a','image':'x'}],'ephemeralContainers':[{'name':'e'}]}}",
     POD(""), FROZEN "\n"},
    {"and what may change in it", &kind_pod, "{'spec':{'containers':[{'name':'a','image':'y'}]}}",
     POD(""), ""},
};

static cJSON *parse(const char *text)
{
    SCOPED_FREE char *copy = xstrdup(text);
    cJSON *tree = NULL;
    for (char *p = copy; *p; p++)
        *p = *p == '\'' ? '"' : *p;
    ck_assert_int_eq(json_parse_str(copy, &tree, NULL), 0);
    return tree;
}

START_TEST(test_checks)
{
    SCOPED(json_free_p) cJSON *object = parse(rows[_i].object), *old = NULL;
    SCOPED(err_fini) struct err causes = {0};
    SCOPED(buf_fini) struct buf text = {0};
    if (rows[_i].old)
        old = parse(rows[_i].old);
    checks_validate(rows[_i].kind, object, old, &causes);
    for (size_t i = 0; i < causes.n_causes; i++)
        buf_printf(&text, "%s: %s\n", causes.causes[i].field, causes.causes[i].message);
    ck_assert_msg(strcmp(buf_cstr(&text), rows[_i].causes) == 0, "%s: %s", rows[_i].name,
                  buf_cstr(&text));
}
END_TEST

/* A list that is long is not walked for each of its items. */
START_TEST(test_long_lists)
{
    SCOPED(json_free_p) cJSON *object = parse("{'spec':{'containers':[],'volumes':[]}}");
    SCOPED(err_fini) struct err causes = {0};
    for (int i = 0; i < 50000; i++) {
        SCOPED_FREE char *name = xasprintf("v%d", i);
        cJSON *volume = parse("{'emptyDir':{}}");
        json_set_str(volume, "name", name);
        json_push(json_at(object, "spec.volumes"), volume);
    }
    json_push(json_at(object, "spec.containers"), parse("{'name':'a','image':'x'}"));
    checks_validate(&kind_pod, object, NULL, &causes);
    ck_assert_uint_eq(causes.n_causes, 0);
}
END_TEST

SUITE(checks)
{
    LOOP("checks", test_checks, 0, ARRAY_LEN(rows));
    TESTS("long lists", test_long_lists);
}
