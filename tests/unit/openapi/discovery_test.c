/* Discovery documents, member by member as kube-apiserver v1.37 answers for the same custom
 * resources. */
#include "openapi/discovery.h"

#include "apiserver/base/json.h"
#include "tests/lib/suite.h"

/* With ' for ", and @V and @S for the verbs of a resource and of a subresource. */
#define VERBS "['delete','deletecollection','get','list','patch','create','update','watch']"
#define SUB_VERBS "['get','patch','update']"
#define A "agents.x-k8s.io"
#define E "extensions.agents.x-k8s.io"

/* clang-format off */
static const char groups[] =
    "{'kind':'APIGroupList','apiVersion':'v1','groups':[{'name':'agents.x-k8s.io',"
    "'versions':[{'groupVersion':'agents.x-k8s.io/v1beta1','version':'v1beta1'}],"
    "'preferredVersion':{'groupVersion':'agents.x-k8s.io/v1beta1','version':'v1beta1'}},"
    "{'name':'extensions.agents.x-k8s.io','versions':["
    "{'groupVersion':'extensions.agents.x-k8s.io/v1beta1','version':'v1beta1'}],"
    "'preferredVersion':{'groupVersion':'extensions.agents.x-k8s.io/v1beta1',"
    "'version':'v1beta1'}}]}";
static const char group_agents[] =
    "{'kind':'APIGroup','apiVersion':'v1','name':'agents.x-k8s.io','versions':["
    "{'groupVersion':'agents.x-k8s.io/v1beta1','version':'v1beta1'}],"
    "'preferredVersion':{'groupVersion':'agents.x-k8s.io/v1beta1','version':'v1beta1'}}";
static const char resources_agents[] =
    "{'kind':'APIResourceList','apiVersion':'v1','groupVersion':'agents.x-k8s.io/v1beta1',"
    "'resources':[{'name':'sandboxes','singularName':'sandbox','namespaced':true,"
    "'kind':'Sandbox','verbs':@V,'shortNames':['sandbox'],"
    "'storageVersionHash':'fPd/zcm8A2c='},{'name':'sandboxes/status','singularName':'',"
    "'namespaced':true,'kind':'Sandbox','verbs':@S}]}";
static const char resources_extensions[] =
    "{'kind':'APIResourceList','apiVersion':'v1',"
    "'groupVersion':'extensions.agents.x-k8s.io/v1beta1','resources':["
    "{'name':'sandboxclaims','singularName':'sandboxclaim','namespaced':true,"
    "'kind':'SandboxClaim','verbs':@V,'shortNames':['sandboxclaim'],"
    "'storageVersionHash':'aLvkrUG8glw='},{'name':'sandboxclaims/status','singularName':'',"
    "'namespaced':true,'kind':'SandboxClaim','verbs':@S},{'name':'sandboxtemplates',"
    "'singularName':'sandboxtemplate','namespaced':true,'kind':'SandboxTemplate','verbs':@V,"
    "'shortNames':['sandboxtemplate'],'storageVersionHash':'15/A/jIV9sA='},"
    "{'name':'sandboxwarmpools','singularName':'sandboxwarmpool','namespaced':true,"
    "'kind':'SandboxWarmPool','verbs':@V,'shortNames':['swp'],"
    "'storageVersionHash':'3qMP+J58q6o='},{'name':'sandboxwarmpools/status',"
    "'singularName':'','namespaced':true,'kind':'SandboxWarmPool','verbs':@S},"
    "{'name':'sandboxwarmpools/scale','singularName':'','namespaced':true,"
    "'group':'autoscaling','version':'v1','kind':'Scale','verbs':@S}]}";
static const char aggregated[] =
    "{'kind':'APIGroupDiscoveryList','apiVersion':'apidiscovery.k8s.io/v2','metadata':{},"
    "'items':[{'metadata':{'name':'agents.x-k8s.io'},'versions':[{'version':'v1beta1',"
    "'resources':[{'resource':'sandboxes','responseKind':{'group':'agents.x-k8s.io',"
    "'version':'v1beta1','kind':'Sandbox'},'scope':'Namespaced','singularResource':'sandbox',"
    "'verbs':@V,'shortNames':['sandbox'],'subresources':[{'subresource':'status',"
    "'responseKind':{'group':'agents.x-k8s.io','version':'v1beta1','kind':'Sandbox'},"
    "'verbs':@S}]}],'freshness':'Current'}]},"
    "{'metadata':{'name':'extensions.agents.x-k8s.io'},'versions':[{'version':'v1beta1',"
    "'resources':[{'resource':'sandboxclaims',"
    "'responseKind':{'group':'extensions.agents.x-k8s.io','version':'v1beta1',"
    "'kind':'SandboxClaim'},'scope':'Namespaced','singularResource':'sandboxclaim',"
    "'verbs':@V,'shortNames':['sandboxclaim'],'subresources':[{'subresource':'status',"
    "'responseKind':{'group':'extensions.agents.x-k8s.io','version':'v1beta1',"
    "'kind':'SandboxClaim'},'verbs':@S}]},{'resource':'sandboxtemplates',"
    "'responseKind':{'group':'extensions.agents.x-k8s.io','version':'v1beta1',"
    "'kind':'SandboxTemplate'},'scope':'Namespaced','singularResource':'sandboxtemplate',"
    "'verbs':@V,'shortNames':['sandboxtemplate']},{'resource':'sandboxwarmpools',"
    "'responseKind':{'group':'extensions.agents.x-k8s.io','version':'v1beta1',"
    "'kind':'SandboxWarmPool'},'scope':'Namespaced','singularResource':'sandboxwarmpool',"
    "'verbs':@V,'shortNames':['swp'],'subresources':[{'subresource':'status',"
    "'responseKind':{'group':'extensions.agents.x-k8s.io','version':'v1beta1',"
    "'kind':'SandboxWarmPool'},'verbs':@S},{'subresource':'scale',"
    "'responseKind':{'group':'autoscaling','version':'v1','kind':'Scale'},'verbs':@S}]}],"
    "'freshness':'Current'}]}]}";
/* clang-format on */

static char *expand(const char *text)
{
    struct buf out = {0};
    for (const char *p = text; *p; p++) {
        if (*p == '@')
            buf_puts(&out, *++p == 'V' ? VERBS : SUB_VERBS);
        else
            buf_putc(&out, *p);
    }
    char *whole = buf_take(&out, NULL);
    for (char *p = whole; *p; p++)
        *p = *p == '\'' ? '"' : *p;
    return whole;
}

static void assert_document(const struct buf *document, const char *text)
{
    SCOPED_FREE char *expected = expand(text);
    SCOPED(json_free_p) cJSON *ours = NULL;
    SCOPED(json_free_p) cJSON *wanted = NULL;
    ck_assert_int_eq(json_parse(document->data, document->len, NULL, &ours, NULL), 0);
    ck_assert_int_eq(json_parse_str(expected, &wanted, NULL), 0);
    ck_assert_msg(json_equal(ours, wanted), "%s\nexpected %s", document->data, expected);
}

START_TEST(test_groups)
{
    SCOPED(buf_fini) struct buf out = {0};
    discovery_print_groups(&out);
    assert_document(&out, groups);
}
END_TEST

START_TEST(test_group)
{
    SCOPED(buf_fini) struct buf out = {0};
    ck_assert(discovery_print_group(A, &out));
    assert_document(&out, group_agents);
    buf_clear(&out);
    ck_assert(!discovery_print_group("x", &out));
    ck_assert_uint_eq(out.len, 0);
}
END_TEST

START_TEST(test_resources)
{
    SCOPED(buf_fini) struct buf out = {0};
    ck_assert(discovery_print_resources(A, "v1beta1", &out));
    assert_document(&out, resources_agents);
    buf_clear(&out);
    ck_assert(discovery_print_resources(E, "v1beta1", &out));
    assert_document(&out, resources_extensions);
    buf_clear(&out);
    ck_assert(!discovery_print_resources(E, "v1alpha1", &out));
    ck_assert_uint_eq(out.len, 0);
}
END_TEST

START_TEST(test_aggregated)
{
    SCOPED(buf_fini) struct buf out = {0};
    discovery_print_aggregated("v2", false, &out);
    assert_document(&out, aggregated);
    buf_clear(&out);
    discovery_print_aggregated("v2beta1", false, &out);
    ck_assert_ptr_nonnull(strstr(out.data, "\"apiVersion\":\"apidiscovery.k8s.io/v2beta1\""));
}
END_TEST

SUITE(discovery)
{
    TESTS("documents", test_groups, test_group, test_resources, test_aggregated);
}
