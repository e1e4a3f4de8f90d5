/* Discovery documents, member by member as kube-apiserver v1.37 answers for the same custom
 * resources. */
#include "openapi/discovery.h"

#include "apiserver/base/json.h"
#include "tests/lib/suite.h"

#define VERBS                                                                                      \
    "\"verbs\":[\"delete\",\"deletecollection\",\"get\",\"list\",\"patch\",\"create\",\"update\"," \
    "\"watch\"]"
#define SUB_VERBS "\"verbs\":[\"get\",\"patch\",\"update\"]"
#define GROUP(group)                                                                               \
    "\"name\":\"" group "\",\"versions\":[{\"groupVersion\":\"" group                              \
    "/v1beta1\",\"version\":\"v1beta1\"}],"                                                        \
    "\"preferredVersion\":{\"groupVersion\":\"" group "/v1beta1\",\"version\":\"v1beta1\"}"
#define MAIN(name, singular, kind, short_name, hash)                                               \
    "{\"name\":\"" name "\",\"singularName\":\"" singular                                          \
    "\",\"namespaced\":true,\"kind\":\"" kind "\"," VERBS ",\"shortNames\":[\"" short_name         \
    "\"],\"storageVersionHash\":\"" hash "\"}"
#define STATUS(name, kind)                                                                         \
    "{\"name\":\"" name "/status\",\"singularName\":\"\",\"namespaced\":true,\"kind\":\"" kind     \
    "\"," SUB_VERBS "}"
#define SCALE(name)                                                                                \
    "{\"name\":\"" name "/scale\",\"singularName\":\"\",\"namespaced\":true,\"group\":"            \
    "\"autoscaling\",\"version\":\"v1\","                                                          \
    "\"kind\":\"Scale\"," SUB_VERBS "}"
#define KIND(group, kind) "{\"group\":\"" group "\",\"version\":\"v1beta1\",\"kind\":\"" kind "\"}"
#define AGGREGATED(group, name, singular, kind, short_name, rest)                                  \
    "{\"resource\":\"" name "\",\"responseKind\":" KIND(                                           \
        group, kind) ",\"scope\":\"Namespaced\",\"singularResource\":\"" singular "\"," VERBS      \
                     ",\"shortNames\":[\"" short_name "\"]" rest "}"
#define AGGREGATED_STATUS(group, kind)                                                             \
    "{\"subresource\":\"status\",\"responseKind\":" KIND(group, kind) "," SUB_VERBS "}"
#define A "agents.x-k8s.io"
#define E "extensions.agents.x-k8s.io"

static const char groups[] =
    "{\"kind\":\"APIGroupList\",\"apiVersion\":\"v1\",\"groups\":[{" GROUP(A) "},{" GROUP(E) "}]}";
static const char group_agents[] = "{\"kind\":\"APIGroup\",\"apiVersion\":\"v1\"," GROUP(A) "}";
static const char resources_agents[] =
    "{\"kind\":\"APIResourceList\",\"apiVersion\":\"v1\",\"groupVersion\":\"" A
    "/v1beta1\",\"resources\":[" MAIN("sandboxes", "sandbox", "Sandbox", "sandbox",
                                      "fPd/zcm8A2c=") "," STATUS("sandboxes", "Sandbox") "]}";
static const char resources_extensions[] =
    "{\"kind\":\"APIResourceList\",\"apiVersion\":\"v1\",\"groupVersion\":\"" E
    "/v1beta1\",\"resources\":[" MAIN("sandboxclaims", "sandboxclaim", "SandboxClaim", "sandboxclaim", "aLvkrUG8glw=") "," STATUS(
        "sandboxclaims",
        "SandboxClaim") "," MAIN("sandboxtemplates", "sandboxtemplate", "SandboxTemplate",
                                 "sandboxtemplate",
                                 "15/A/jIV9sA=") "," MAIN("sandboxwarmpools", "sandboxwarmpool",
                                                          "SandboxWarmPool", "swp",
                                                          "3qMP+J58q6o=") "," STATUS("sandboxwarmpo"
                                                                                     "ols",
                                                                                     "SandboxWarmPo"
                                                                                     "ol") "," SCALE("sandboxwarmpools") "]}";
static const char aggregated[] =
    "{\"kind\":\"APIGroupDiscoveryList\",\"apiVersion\":\"apidiscovery.k8s.io/"
    "v2\",\"metadata\":{},\"items\":["
    "{\"metadata\":{\"name\":\"" A
    "\"},\"versions\":[{\"version\":\"v1beta1\",\"freshness\":\"Current\",\"resources\":"
    "[" AGGREGATED(
        A, "sandboxes", "sandbox", "Sandbox", "sandbox",
        ",\"subresources\":[" AGGREGATED_STATUS(
            A,
            "Sandbox") "]") "]}]},"
                            "{\"metadata\":{\"name\":\"" E
                            "\"},\"versions\":[{\"version\":\"v1beta1\",\"freshness\":\"Current\","
                            "\"resources\":[" AGGREGATED(
                                E, "sandboxclaims", "sandboxclaim", "SandboxClaim", "sandboxclaim",
                                ",\"subresources\":[" AGGREGATED_STATUS(
                                    E,
                                    "SandboxClaim") "]") "," AGGREGATED(E, "sandboxtemplates",
                                                                        "sandboxtemplate",
                                                                        "SandboxTemplate",
                                                                        "sandboxtemplate",
                                                                        "") "," AGGREGATED(E,
                                                                                           "sandbox"
                                                                                           "warmpoo"
                                                                                           "ls",
                                                                                           "sandbox"
                                                                                           "warmpoo"
                                                                                           "l",
                                                                                           "Sandbox"
                                                                                           "WarmPoo"
                                                                                           "l",
                                                                                           "swp",
                                                                                           ",\"subr"
                                                                                           "esource"
                                                                                           "s\":"
                                                                                           "[" AGGREGATED_STATUS(
                                                                                               E,
                                                                                               "San"
                                                                                               "dbo"
                                                                                               "xWa"
                                                                                               "rmP"
                                                                                               "oo"
                                                                                               "l") ","
                                                                                                    "{\"subresource\":\"scale\",\"responseKind\":{\"group\":\"autoscaling\",\"version\":\"v1\",\"kind\":\"Scale\"}," SUB_VERBS
                                                                                                    "}]") "]}]}]}";

static void assert_document(const struct buf *document, const char *expected)
{
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
    discovery_print_aggregated("v2", &out);
    assert_document(&out, aggregated);
    buf_clear(&out);
    discovery_print_aggregated("v2beta1", &out);
    ck_assert_ptr_nonnull(strstr(out.data, "\"apiVersion\":\"apidiscovery.k8s.io/v2beta1\""));
}
END_TEST

SUITE(discovery)
{
    TESTS("documents", test_groups, test_group, test_resources, test_aggregated);
}
