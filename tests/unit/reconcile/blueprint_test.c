/* Templates to Sandboxes: secure defaults, hashes, and what makes a Sandbox stale. Names carry the
 * ids of the behaviour checklist (W-t..., T-t...). */
#include "apiserver/base/json.h"
#include "apiserver/base/str.h"
#include "openapi/kinds.h"
#include "reconcile/blueprint.h"
#include "reconcile/keys.h"
#include "tests/lib/suite.h"

static cJSON *parse(const char *text)
{
    cJSON *tree;
    struct err err = {0};
    if (json_parse_str(text, &tree, &err) < 0)
        ck_abort_msg("%s: %s", err_text(&err), text);
    return tree;
}

static cJSON *template_of(const char *spec)
{
    SCOPED_FREE char *text =
        xasprintf("{\"metadata\":{\"name\":\"test-template\"},\"spec\":%s}", spec);
    return parse(text);
}

#define POD(more)                                                                                  \
    "{\"podTemplate\":{\"spec\":{\"containers\":[{\"name\":\"c\",\"image\":\"i\"}]" more "}}"
#define PLAIN POD("") "}"
#define CLAIM(name, meta, spec) "{\"metadata\":{\"name\":\"" name "\"" meta "},\"spec\":{" spec "}}"
#define CLAIMS(list) POD("") ",\"volumeClaimTemplates\":[" list "]}"
#define SECURED                                                                                    \
    ",\"automountServiceAccountToken\":false,\"dnsPolicy\":\"None\",\"dnsConfig\":{"               \
    "\"nameservers\":[\"8.8.8.8\",\"1.1.1.1\"]}"

/* ---- secure defaults ---- */

static const struct {
    const char *id, *spec, *pod; /* pod: the secured pod spec's members after containers */
} secured[] = {
    {"W-t019 default template", PLAIN, SECURED},
    {"W-t020 explicit automount", POD(",\"automountServiceAccountToken\":true") "}",
     ",\"automountServiceAccountToken\":true,\"dnsPolicy\":\"None\",\"dnsConfig\":{\"nameservers\":"
     "["
     "\"8.8.8.8\",\"1.1.1.1\"]}"},
    {"W-t021 Unmanaged keeps DNS", POD("") ",\"networkPolicyManagement\":\"Unmanaged\"}",
     ",\"automountServiceAccountToken\":false"},
    {"own rules keep DNS, even empty ones", POD("") ",\"networkPolicy\":{}}",
     ",\"automountServiceAccountToken\":false"},
    {"explicit dnsPolicy", POD(",\"dnsPolicy\":\"Default\"") "}",
     ",\"automountServiceAccountToken\":false,\"dnsPolicy\":\"Default\""},
    {"R-07 dnsConfig without policy: completed", POD(",\"dnsConfig\":{\"searches\":[\"x\"]}") "}",
     ",\"automountServiceAccountToken\":false,\"dnsPolicy\":\"None\",\"dnsConfig\":{"
     "\"searches\":[\"x\"],\"nameservers\":[\"8.8.8.8\",\"1.1.1.1\"]}"},
    {"R-07 own resolvers without policy: kept",
     POD(",\"dnsConfig\":{\"nameservers\":[\"9.9.9.9\"]}") "}",
     ",\"automountServiceAccountToken\":false,\"dnsPolicy\":\"None\",\"dnsConfig\":{"
     "\"nameservers\":[\"9.9.9.9\"]}"},
    {"explicit Managed", POD("") ",\"networkPolicyManagement\":\"Managed\"}", SECURED},
};

START_TEST(test_secured)
{
    SCOPED(json_free_p) cJSON *template = template_of(secured[_i].spec);
    SCOPED(json_free_p) cJSON *before = json_copy(template);
    SCOPED(json_free_p) cJSON *spec = blueprint_spec(template);
    SCOPED_FREE char *text = xasprintf(
        "{\"containers\":[{\"name\":\"c\",\"image\":\"i\",\"resources\":{}}]%s}", secured[_i].pod);
    SCOPED(json_free_p) cJSON *want = parse(text);
    SCOPED_FREE char *got = json_to_str(json_at(spec, "podTemplate.spec"));
    ck_assert_msg(json_equal(json_at(spec, "podTemplate.spec"), want), "%s: %s", secured[_i].id,
                  got);
    ck_assert_msg(json_equal(template, before), "%s: the template was changed", secured[_i].id);
    ck_assert(!json_get(spec, "networkPolicy") && !json_get(spec, "networkPolicyManagement"));
}
END_TEST

/* W-t018 */
START_TEST(test_spec_copies_all)
{
    SCOPED(json_free_p)
    cJSON *template = template_of(POD("") ",\"volumeClaimTemplates\":[" CLAIM(
        "d", "", "") "],\"service\":true,"
                     "\"envVarsInjectionPolicy\":\"Allowed\"}");
    SCOPED(json_free_p) cJSON *spec = blueprint_spec(template);
    ck_assert_uint_eq(json_len(spec), 3);
    ck_assert(json_bool_or(spec, "service", false));
    SCOPED(json_free_p)
    cJSON *claims = parse("[{\"metadata\":{\"name\":\"d\"},\"spec\":{\"resources\":{}}}]");
    ck_assert(json_equal(json_get(spec, "volumeClaimTemplates"), claims));
}
END_TEST

/* ---- hashes ---- */

static const struct {
    const char *id, *a, *b;
    bool same, pod_same;
} hashes[] = {
    {"W-t046 same input", PLAIN, PLAIN, true, true},
    {"W-t047 pod spec", PLAIN, POD(",\"hostname\":\"h\"") "}", false, false},
    {"W-t048 claim added", PLAIN, CLAIMS(CLAIM("d", "", "")), false, true},
    {"W-t049 service", PLAIN, POD("") ",\"service\":true}", false, true},
    {"service false is not unset", PLAIN, POD("") ",\"service\":false}", false, true},
    {"metadata changes the hash", PLAIN,
     "{\"podTemplate\":{\"metadata\":{\"labels\":{\"a\":\"b\"}},\"spec\":{\"containers\":[{"
     "\"name\":\"c\",\"image\":\"i\"}]}}}",
     false, false},
    {"spelling", CLAIMS(CLAIM("d", "", "\"resources\":{\"requests\":{\"storage\":\"1Gi\"}}")),
     CLAIMS(CLAIM("d", "", "\"resources\":{\"requests\":{\"storage\":\"1024Mi\"}}")), true, true},
    {"policies are outside", PLAIN,
     POD("") ",\"envVarsInjectionPolicy\":\"Allowed\",\"networkPolicyManagement\":\"Unmanaged\"}",
     true, true},
};

START_TEST(test_hashes)
{
    SCOPED(json_free_p) cJSON *x = template_of(hashes[_i].a), *y = template_of(hashes[_i].b);
    struct blueprint a, b;
    blueprint_init(&a, x);
    blueprint_init(&b, y);
    ck_assert_msg(str_equal(a.hash, b.hash) == hashes[_i].same, "%s", hashes[_i].id);
    ck_assert_msg(str_equal(a.pod_template_hash, b.pod_template_hash) == hashes[_i].pod_same, "%s",
                  hashes[_i].id);
    ck_assert_str_eq(a.ref_hash, "69155462");
}
END_TEST

/* T-t011 */
START_TEST(test_ref_hash)
{
    char a[NAME_HASH_SIZE], b[NAME_HASH_SIZE];
    template_ref_hash("", a);
    ck_assert_str_eq(a, "811c9dc5");
    template_ref_hash("py-runtime", b);
    ck_assert_str_eq(b, "5cd950a3");
}
END_TEST

/* W-t067: a new member of the blueprint has to be compared and hashed. */
START_TEST(test_field_set)
{
    static const char *const outside[] = {"networkPolicy", "networkPolicyManagement",
                                          "envVarsInjectionPolicy", "volumeClaimTemplatesPolicy"};
    static const char *const inside[] = {"podTemplate", "volumeClaimTemplates", "service"};
    const struct shape *spec = shape_field(kind_sandbox_template.shape, "spec")->of;
    size_t n = 0;
    for (const struct field *f = spec->fields; f->name; f++)
        n++;
    ck_assert_uint_eq(n, ARRAY_LEN(outside) + ARRAY_LEN(inside));
    for (size_t i = 0; i < ARRAY_LEN(inside); i++)
        ck_assert(shape_field(spec, inside[i]));
}
END_TEST

/* ---- comparison ---- */

#define STORAGE(size) "\"resources\":{\"requests\":{\"storage\":\"" size "\"}}"
static const struct {
    const char *id, *template, *sandbox;
    bool equal;
} comparisons[] = {
    {"W-t050 identical", PLAIN, POD(SECURED) "}", true},
    {"W-t051 identical with claims", CLAIMS(CLAIM("d", "", STORAGE("1Gi"))),
     POD(SECURED) ",\"volumeClaimTemplates\":[" CLAIM("d", "", STORAGE("1024Mi")) "]}", true},
    {"W-t052 identical with service", POD("") ",\"service\":true}",
     POD(SECURED) ",\"service\":true}", true},
    {"W-t053 claim label", CLAIMS(CLAIM("d", ",\"labels\":{\"a\":\"b\"}", "")),
     POD(SECURED) ",\"volumeClaimTemplates\":[" CLAIM("d", "", "") "]}", true},
    {"W-t054 claim annotation", CLAIMS(CLAIM("d", "", "")),
     POD(SECURED) ",\"volumeClaimTemplates\":[" CLAIM("d", ",\"annotations\":{\"a\":\"b\"}",
                                                      "") "]}",
     true},
    {"W-t055 image",
     "{\"podTemplate\":{\"spec\":{\"containers\":[{\"name\":\"c\",\"image\":\"other\"}]}}}",
     POD(SECURED) "}", false},
    {"W-t056 claim count", CLAIMS(CLAIM("d", "", "")), POD(SECURED) "}", false},
    {"W-t057 claim order", CLAIMS(CLAIM("d", "", "") "," CLAIM("e", "", "")),
     POD(SECURED) ",\"volumeClaimTemplates\":[" CLAIM("e", "", "") "," CLAIM("d", "", "") "]}",
     false},
    {"W-t058 claim name", CLAIMS(CLAIM("d", "", "")),
     POD(SECURED) ",\"volumeClaimTemplates\":[" CLAIM("e", "", "") "]}", false},
    {"W-t059 storage class", CLAIMS(CLAIM("d", "", "\"storageClassName\":\"a\"")),
     POD(SECURED) ",\"volumeClaimTemplates\":[" CLAIM("d", "", "\"storageClassName\":\"b\"") "]}",
     false},
    {"W-t060 service true or false", POD("") ",\"service\":true}",
     POD(SECURED) ",\"service\":false}", false},
    {"W-t061 service set or not", POD("") ",\"service\":false}", POD(SECURED) "}", false},
    {"W-t062 identical pod specs", POD(",\"hostname\":\"h\"") "}",
     POD(",\"hostname\":\"h\"" SECURED) "}", true},
    {"W-t063 automount unset or false", POD(",\"automountServiceAccountToken\":false") "}",
     POD(SECURED) "}", true},
    {"W-t064 automount true or false", POD(",\"automountServiceAccountToken\":true") "}",
     POD(SECURED) "}", false},
    {"W-t065 empty DNS or injected", POD(",\"dnsPolicy\":\"\"") "}", POD(SECURED) "}", true},
    {"W-t066 Default or ClusterFirst", POD(",\"dnsPolicy\":\"Default\"") "}",
     POD(",\"automountServiceAccountToken\":false,\"dnsPolicy\":\"ClusterFirst\"") "}", false},
    {"W-t032 explicit DNS", POD(",\"dnsPolicy\":\"ClusterFirst\"") "}", POD(SECURED) "}", false},
    {"W-t124 pod metadata", PLAIN,
     "{\"podTemplate\":{\"metadata\":{\"labels\":{\"x\":\"y\"}},\"spec\":{\"containers\":[{"
     "\"name\":\"c\",\"image\":\"i\"}]" SECURED "}}}",
     true},
    {"operatingMode and the like are not compared", PLAIN,
     POD(SECURED) ",\"operatingMode\":\"Suspended\",\"shutdownPolicy\":\"Retain\"}", true},
};

START_TEST(test_comparison)
{
    SCOPED(json_free_p) cJSON *template = template_of(comparisons[_i].template);
    SCOPED(json_free_p) cJSON *spec = parse(comparisons[_i].sandbox);
    ck_assert_msg(blueprint_equals(template, spec) == comparisons[_i].equal, "%s",
                  comparisons[_i].id);
}
END_TEST

static const struct {
    const char *id, *ref_hash, *hash; /* hash "=" is the present one */
    bool same_content, trusted, stale;
} stale_rows[] = {
    {"hash label decides", "69155462", "=", false, true, false},
    {"W-t034 copied hash, altered spec, untrusted", "69155462", "=", false, false, true},
    {"W-t035 genuine, untrusted", "69155462", "=", true, false, false},
    {"other hash, same content", "69155462", "00000000", true, true, false},
    {"other hash, other content", "69155462", "00000000", false, true, true},
    {"no hash, same content", "69155462", "", true, true, false},
    {"W-t031 other template of the same content", "11111111", "=", true, true, true},
};

START_TEST(test_stale)
{
    SCOPED(json_free_p) cJSON *template = template_of(PLAIN);
    struct blueprint b;
    blueprint_init(&b, template);
    bool is_present = str_equal(stale_rows[_i].hash, "=");
    SCOPED_FREE char *text = xasprintf(
        "{\"metadata\":{\"labels\":{\"" LABEL_TEMPLATE_REF_HASH "\":\"%s\",\"" LABEL_BLUEPRINT_HASH
        "\":\"%s\"}},\"spec\":%s}",
        stale_rows[_i].ref_hash, is_present ? b.hash : stale_rows[_i].hash,
        stale_rows[_i].same_content ? POD(SECURED) "}" : POD(",\"hostname\":\"x\"" SECURED) "}");
    SCOPED(json_free_p) cJSON *sandbox = parse(text);
    ck_assert_msg(blueprint_is_stale(&b, sandbox, stale_rows[_i].trusted) == stale_rows[_i].stale,
                  "%s", stale_rows[_i].id);
}
END_TEST

SUITE(blueprint)
{
    LOOP("secure defaults", test_secured, 0, ARRAY_LEN(secured));
    TESTS("spec", test_spec_copies_all, test_field_set);
    LOOP("hashes", test_hashes, 0, ARRAY_LEN(hashes));
    TESTS("ref hash", test_ref_hash);
    LOOP("comparison", test_comparison, 0, ARRAY_LEN(comparisons));
    LOOP("stale", test_stale, 0, ARRAY_LEN(stale_rows));
}
