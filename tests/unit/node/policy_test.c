#include "node/policy.h"

#include "apiserver/base/json.h"
#include "apiserver/base/mem.h"
#include "node/ranges.h"
#include "tests/lib/suite.h"

static cJSON *tree_of(const char *text)
{
    cJSON *tree = NULL;
    ck_assert_msg(json_parse_str(text, &tree, NULL) == 0, "%s", text);
    return tree;
}

/* ---- labels ---- */

static const struct {
    const char *selector, *labels;
    bool matches;
} labels_rows[] = {
    {"{}", "{}", true},
    {"{\"matchLabels\":{\"a.b/c\":\"1\"}}", "{\"a.b/c\":\"1\",\"x\":\"2\"}", true},
    {"{\"matchLabels\":{\"a\":\"1\"}}", "{\"a\":\"2\"}", false},
    {"{\"matchLabels\":{\"a\":\"\"}}", "{}", false},
    {"{\"matchExpressions\":[{\"key\":\"a\",\"operator\":\"In\",\"values\":[\"1\",\"2\"]}]}",
     "{\"a\":\"2\"}", true},
    {"{\"matchExpressions\":[{\"key\":\"a\",\"operator\":\"In\",\"values\":[\"1\"]}]}", "{}",
     false},
    {"{\"matchExpressions\":[{\"key\":\"a\",\"operator\":\"NotIn\",\"values\":[\"1\"]}]}", "{}",
     true},
    {"{\"matchExpressions\":[{\"key\":\"a\",\"operator\":\"NotIn\",\"values\":[\"1\"]}]}",
     "{\"a\":\"1\"}", false},
    {"{\"matchExpressions\":[{\"key\":\"a\",\"operator\":\"Exists\"}]}", "{\"a\":\"\"}", true},
    {"{\"matchExpressions\":[{\"key\":\"a\",\"operator\":\"DoesNotExist\"}]}", "{\"a\":\"\"}",
     false},
    {"{\"matchExpressions\":[{\"key\":\"a\",\"operator\":\"DoesNotExist\"}]}", "{}", true},
    {"{\"matchExpressions\":[{\"key\":\"a\",\"operator\":\"Other\"}]}", "{\"a\":\"\"}", false},
    {"{\"matchLabels\":{\"a\":\"1\"},\"matchExpressions\":[{\"key\":\"b\",\"operator\":"
     "\"Exists\"}]}",
     "{\"a\":\"1\"}", false},
};

START_TEST(test_labels)
{
    SCOPED(json_free_p) cJSON *selector = tree_of(labels_rows[_i].selector);
    SCOPED(json_free_p) cJSON *labels = tree_of(labels_rows[_i].labels);
    ck_assert_msg(policy_match_labels(selector, labels) == labels_rows[_i].matches, "%s %s",
                  labels_rows[_i].selector, labels_rows[_i].labels);
}
END_TEST

/* ---- rules ---- */

/* Two Pods of this node, one of another; red is another namespace, with the label team. */
struct fixture {
    cJSON *web, *db, *ports, *spaces[2], *policy;
    struct policy_pod pods[3];
    const struct policy_pod *all[3];
    const cJSON *policies[1];
    struct map *namespaces;
    struct policy_world world;
};

static struct fixture *fixture_new(const char *spec)
{
    struct fixture *f = xcalloc(1, sizeof *f);
    SCOPED_FREE char *text =
        xasprintf("{\"metadata\":{\"namespace\":\"blue\"},\"spec\":{%s}}", spec);
    f->web = tree_of("{\"app\":\"web\"}");
    f->db = tree_of("{\"app\":\"db\"}");
    f->ports = tree_of("[{\"name\":\"http\",\"containerPort\":8080},"
                       "{\"name\":\"dns\",\"containerPort\":53,\"protocol\":\"UDP\"}]");
    f->spaces[0] = tree_of("{}");
    f->spaces[1] = tree_of("{\"team\":\"x\"}");
    f->policy = tree_of(text);
    f->policies[0] = f->policy;
    f->namespaces = map_new();
    map_put(f->namespaces, "blue", f->spaces[0]);
    map_put(f->namespaces, "red", f->spaces[1]);
    f->pods[0] =
        (struct policy_pod){"blue", f->web, f->ports, 0x0a5a0002, "veth0", "02:00:00:00:00:02"};
    f->pods[1] = (struct policy_pod){"blue", f->db, NULL, 0x0a5a0003, "veth1", "02:00:00:00:00:03"};
    f->pods[2] = (struct policy_pod){"red", f->web, f->ports, 0x0a800004, NULL, NULL};
    for (size_t i = 0; i < ARRAY_LEN(f->all); i++)
        f->all[i] = &f->pods[i];
    f->world = (struct policy_world){.bridge = "sandbox0",
                                     .policies = f->policies,
                                     .n_policies = 1,
                                     .pods = f->all,
                                     .n_pods = 3,
                                     .namespaces = f->namespaces};
    return f;
}

static void fixture_free(struct fixture *f)
{
    json_free(f->web);
    json_free(f->db);
    json_free(f->ports);
    json_free(f->spaces[0]);
    json_free(f->spaces[1]);
    json_free(f->policy);
    map_free(f->namespaces);
    free(f);
}

/* What the chain of the first Pod is in a direction, its sets as they are; NULL = it has none. */
static char *chain_of(const char *rules, const char *direction)
{
    struct buf out = {0};
    SCOPED_FREE char *map = xasprintf("map %s {", direction);
    const char *at = strstr(strstr(rules, map), "10.90.0.2 : jump ");
    const char *end = strchr(strstr(rules, map), '\n');
    if (!at || at > end)
        return NULL;
    at += strlen("10.90.0.2 : jump ");
    SCOPED_FREE char *head = xasprintf("chain %.*s {\n", (int)strcspn(at, " ,"), at);
    const char *line = strstr(rules, head) + strlen(head);
    for (; *line != '}'; line = strchr(line, '\n') + 1) {
        const char *set = strchr(line, '@'), *stop = strchr(line, '\n');
        if (!set || set > stop) {
            buf_append(&out, line, (size_t)(stop - line));
        } else {
            size_t n = strcspn(set + 1, " ");
            SCOPED_FREE char *named = xasprintf("set %.*s {", (int)n, set + 1);
            const char *elements = strstr(strstr(rules, named), "elements = ") + 11;
            buf_append(&out, line, (size_t)(set - line));
            buf_append(&out, elements, strcspn(elements, ";"));
            buf_append(&out, set + 1 + n, (size_t)(stop - set - 1 - n));
        }
        buf_puts(&out, "; ");
    }
    return buf_take(&out, NULL);
}

#define WEB "\"podSelector\":{\"matchLabels\":{\"app\":\"web\"}}"
#define SOURCE "ct original ip saddr "
#define TARGET "ct reply ip saddr "
#define PORT "ct reply proto-src "

static const struct {
    const char *name, *spec, *ingress, *egress; /* NULL = not isolated */
} rows[] = {
    {"of another Pod", "\"podSelector\":{\"matchLabels\":{\"app\":\"x\"}}", NULL, NULL},
    {"default", WEB, "drop; ", NULL},
    {"no selector is everybody", "\"policyTypes\":[\"Ingress\"]", "drop; ", NULL},
    {"default with egress", WEB ",\"egress\":[{}]", "drop; ", "return; drop; "},
    {"empty types", WEB ",\"policyTypes\":[],\"ingress\":[{}]", "return; drop; ", NULL},
    {"egress alone", WEB ",\"policyTypes\":[\"Egress\"],\"ingress\":[{}]", NULL, "drop; "},
    {"both", WEB ",\"policyTypes\":[\"Ingress\",\"Egress\"]", "drop; ", "drop; "},
    {"empty lists are everything", WEB ",\"ingress\":[{\"from\":[],\"ports\":[]}]",
     "return; drop; ", NULL},
    {"Pods of the namespace", WEB ",\"ingress\":[{\"from\":[{\"podSelector\":{}}]}]",
     SOURCE "{ 10.90.0.2-10.90.0.3 } return; drop; ", NULL},
    {"of other namespaces",
     WEB ",\"ingress\":[{\"from\":[{\"namespaceSelector\":{\"matchLabels\":{\"team\":\"x\"}}}]}]",
     SOURCE "{ 10.128.0.4 } return; drop; ", NULL},
    {"of all namespaces, by label",
     WEB ",\"ingress\":[{\"from\":[{\"namespaceSelector\":{}," WEB "}]}]",
     SOURCE "{ 10.90.0.2, 10.128.0.4 } return; drop; ", NULL},
    {"a peer that says nothing is nobody", WEB ",\"ingress\":[{\"from\":[{}]}]", "drop; ", NULL},
    {"nobody of that label",
     WEB ",\"ingress\":[{\"from\":[{\"podSelector\":{\"matchLabels\":{\"a\":\"b\"}}}]}]", "drop; ",
     NULL},
    {"block with exceptions",
     WEB ",\"egress\":[{\"to\":[{\"ipBlock\":{\"cidr\":\"0.0.0.0/0\",\"except\":[\"10.0.0.0/8\","
         "\"192.168.0.0/16\"]}},{\"ipBlock\":{\"cidr\":\"::/0\"}}]}]",
     "drop; ",
     TARGET "{ 0.0.0.0-9.255.255.255, 11.0.0.0-192.167.255.255, 192.169.0.0-255.255.255.255 } "
            "return; drop; "},
    {"an exception from one block is in another",
     WEB ",\"ingress\":[{\"from\":[{\"ipBlock\":{\"cidr\":\"1.2.3.0/24\",\"except\":[\"1.2.3.0/"
         "25\"]}},{\"ipBlock\":{\"cidr\":\"1.2.3.7/32\"}}]}]",
     SOURCE "{ 1.2.3.7, 1.2.3.128-1.2.3.255 } return; drop; ", NULL},
    {"a block that is everything",
     WEB ",\"ingress\":[{\"from\":[{\"ipBlock\":{\"cidr\":"
         "\"0.0.0.0/0\"}}]}]",
     "return; drop; ", NULL},
    {"ports of all protocols",
     WEB ",\"ingress\":[{\"ports\":[{\"port\":80},{\"port\":53,\"protocol\":\"UDP\"},{\"port\":90,"
         "\"endPort\":99},{\"port\":95},{\"protocol\":\"SCTP\",\"port\":7}]}]",
     "meta l4proto tcp " PORT "{ 80, 90-99 } return; meta l4proto udp " PORT
     "{ 53 } return; meta l4proto sctp " PORT "{ 7 } return; drop; ",
     NULL},
    {"a whole protocol",
     WEB ",\"ingress\":[{\"ports\":[{\"protocol\":\"UDP\"},{\"protocol\":"
         "\"UDP\",\"port\":5}]}]",
     "meta l4proto udp return; drop; ", NULL},
    {"impossible ports",
     WEB ",\"ingress\":[{\"ports\":[{\"port\":0},{\"port\":70000},{\"port\":9,\"endPort\":8},"
         "{\"port\":9,\"protocol\":\"XTP\"}]}]",
     "drop; ", NULL},
    {"ports and peers",
     WEB ",\"ingress\":[{\"from\":[{\"ipBlock\":{\"cidr\":\"1.2.3.4/32\"}}],\"ports\":[{\"port\":"
         "80}]}]",
     "meta l4proto tcp " PORT "{ 80 } " SOURCE "{ 1.2.3.4 } return; drop; ", NULL},
    {"a name of the Pod's own",
     WEB ",\"ingress\":[{\"ports\":[{\"port\":\"http\"},{\"port\":\"dns\",\"protocol\":\"UDP\"},"
         "{\"port\":\"dns\"},{\"port\":\"other\"}]}]",
     "meta l4proto tcp " PORT "{ 8080 } return; meta l4proto udp " PORT "{ 53 } return; drop; ",
     NULL},
    {"a name of those it goes to",
     WEB ",\"egress\":[{\"to\":[{\"namespaceSelector\":{}}],\"ports\":[{\"port\":\"http\"}]}]",
     "drop; ", "meta l4proto tcp " PORT "8080 " TARGET "{ 10.90.0.2, 10.128.0.4 } return; drop; "},
    {"of those that it may go to",
     WEB ",\"egress\":[{\"to\":[{\"podSelector\":{}}],\"ports\":[{\"port\":\"http\"}]}]", "drop; ",
     "meta l4proto tcp " PORT "8080 " TARGET "{ 10.90.0.2 } return; drop; "},
};

START_TEST(test_rules)
{
    struct fixture *f = fixture_new(rows[_i].spec);
    SCOPED(buf_fini) struct buf rules = {0};
    ck_assert(policy_compile(&f->world, &rules));
    SCOPED_FREE char *ingress = chain_of(buf_cstr(&rules), "ingress");
    SCOPED_FREE char *egress = chain_of(buf_cstr(&rules), "egress");
    ck_assert_msg(str_equal(ingress, rows[_i].ingress), "%s: %s", rows[_i].name, ingress);
    ck_assert_msg(str_equal(egress, rows[_i].egress), "%s: %s", rows[_i].name, egress);
    fixture_free(f);
}
END_TEST

START_TEST(test_alike)
{
    struct fixture *f = fixture_new("\"ingress\":[{\"from\":[{\"podSelector\":{}}]}]");
    SCOPED(buf_fini) struct buf rules = {0};
    ck_assert(policy_compile(&f->world, &rules));
    ck_assert_ptr_nonnull(strstr(buf_cstr(&rules), "10.90.0.2 : jump c1, 10.90.0.3 : jump c1 }"));
    ck_assert_ptr_null(strstr(buf_cstr(&rules), "chain c2"));
    ck_assert_ptr_null(strstr(buf_cstr(&rules), "set s2"));
    fixture_free(f);
}
END_TEST

START_TEST(test_union)
{
    struct fixture *f = fixture_new("\"ingress\":[{\"ports\":[{\"port\":80}]}]");
    SCOPED(json_free_p)
    cJSON *other =
        tree_of("{\"metadata\":{\"namespace\":\"blue\"},\"spec\":{\"ingress\":[{\"ports\":"
                "[{\"port\":81}]}]}}");
    SCOPED(json_free_p)
    cJSON *elsewhere =
        tree_of("{\"metadata\":{\"namespace\":\"red\"},\"spec\":{\"ingress\":[{}]}}");
    const cJSON *policies[] = {f->policy, other, elsewhere};
    SCOPED(buf_fini) struct buf rules = {0};
    f->world.policies = policies;
    f->world.n_policies = 3;
    ck_assert(policy_compile(&f->world, &rules));
    SCOPED_FREE char *ingress = chain_of(buf_cstr(&rules), "ingress");
    ck_assert_str_eq(ingress, "meta l4proto tcp " PORT "{ 80 } return; meta l4proto tcp " PORT
                              "{ 81 } return; drop; ");
    fixture_free(f);
}
END_TEST

/* Who guards addresses: each Pod of this node, and nobody else, stands in the sets of the
 * bridge. */
START_TEST(test_identity)
{
    struct fixture *f = fixture_new("");
    SCOPED(buf_fini) struct buf rules = {0};
    ck_assert(policy_compile(&f->world, &rules));
    ck_assert_ptr_nonnull(strstr(buf_cstr(&rules),
                                 "{ \"veth0\" . 02:00:00:00:00:02 . 10.90.0.2, \"veth1\" . "
                                 "02:00:00:00:00:03 . 10.90.0.3 }"));
    ck_assert_ptr_nonnull(strstr(buf_cstr(&rules), "{ \"veth0\", \"veth1\" }"));
    ck_assert_ptr_null(strstr(buf_cstr(&rules), "10.128.0.4"));
    fixture_free(f);
}
END_TEST

START_TEST(test_nobody)
{
    struct fixture *f = fixture_new("");
    SCOPED(buf_fini) struct buf rules = {0};
    f->pods[0].port = f->pods[1].port = NULL;
    ck_assert(policy_compile(&f->world, &rules));
    ck_assert_str_eq(buf_cstr(&rules), "table bridge sandbox_node_sandbox0\n"
                                       "delete table bridge sandbox_node_sandbox0\n"
                                       "table ip sandbox_node_sandbox0\n"
                                       "delete table ip sandbox_node_sandbox0\n");
    fixture_free(f);
}
END_TEST

/* One that is too large allows nothing, and the others what they say. */
START_TEST(test_too_large)
{
    SCOPED(buf_fini) struct buf spec = {0};
    buf_puts(&spec, "\"ingress\":[{\"ports\":[{\"port\":1}");
    for (int i = 0; i < POLICY_ENTRIES_MAX; i++)
        buf_puts(&spec, ",{\"port\":1}");
    buf_puts(&spec, "]}]");
    struct fixture *f = fixture_new(buf_cstr(&spec));
    SCOPED(buf_fini) struct buf rules = {0};
    ck_assert(policy_is_too_large(f->policy));
    ck_assert(policy_compile(&f->world, &rules));
    SCOPED_FREE char *ingress = chain_of(buf_cstr(&rules), "ingress");
    ck_assert_str_eq(ingress, "drop; ");
    fixture_free(f);
}
END_TEST

START_TEST(test_names)
{
    ck_assert(policy_can_name("sandbox0.1-a_b"));
    ck_assert(!policy_can_name(""));
    ck_assert(!policy_can_name("a b"));
    ck_assert(!policy_can_name("a\"b"));
}
END_TEST

/* ---- ranges ---- */

static const struct {
    const char *text;
    uint32_t first, last;
    bool is_good;
} cidr_rows[] = {
    {"10.0.0.0/8", 0x0a000000, 0x0affffff, true},
    {"10.1.2.3/8", 0x0a000000, 0x0affffff, true},
    {"0.0.0.0/0", 0, UINT32_MAX, true},
    {"1.2.3.4/32", 0x01020304, 0x01020304, true},
    {"1.2.3.4", 0x01020304, 0x01020304, true},
    {"1.2.3.4/33", 0, 0, false},
    {"1.2.3.4/-1", 0, 0, false},
    {"1.2.3.4/", 0, 0, false},
    {"::/0", 0, 0, false},
    {"", 0, 0, false},
};

START_TEST(test_cidr)
{
    struct range r = {0};
    ck_assert_msg(ranges_read_cidr(cidr_rows[_i].text, &r) == cidr_rows[_i].is_good, "%s",
                  cidr_rows[_i].text);
    ck_assert_msg(r.first == cidr_rows[_i].first && r.last == cidr_rows[_i].last, "%s",
                  cidr_rows[_i].text);
}
END_TEST

START_TEST(test_ranges_at_the_ends)
{
    SCOPED(ranges_fini) struct ranges r = {0};
    ranges_add(&r, 0, UINT32_MAX);
    ranges_remove(&r, 0, 0);
    ranges_remove(&r, UINT32_MAX, UINT32_MAX);
    ranges_add(&r, UINT32_MAX, UINT32_MAX);
    ranges_add(&r, 5, 9);
    ranges_settle(&r);
    ck_assert_uint_eq(r.n, 1);
    ck_assert_uint_eq(r.v[0].first, 1);
    ck_assert_uint_eq(r.v[0].last, UINT32_MAX);
    ck_assert(!ranges_have(&r, 0));
    ck_assert(ranges_have(&r, UINT32_MAX));
}
END_TEST

SUITE(policy)
{
    LOOP("labels", test_labels, 0, ARRAY_LEN(labels_rows));
    LOOP("rules", test_rules, 0, ARRAY_LEN(rows));
    TESTS("rulesets", test_alike, test_union, test_identity, test_nobody, test_too_large,
          test_names);
    LOOP("blocks", test_cidr, 0, ARRAY_LEN(cidr_rows));
    TESTS("ranges", test_ranges_at_the_ends);
}
