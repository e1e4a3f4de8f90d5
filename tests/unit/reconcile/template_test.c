/* A template's NetworkPolicy and label: pure decisions, then whole passes over a registry and a
 * cluster in memory. Names carry the ids of the behaviour checklist (T-t...). */
#include "apiserver/base/json.h"
#include "apiserver/base/str.h"
#include "reconcile/child.h"
#include "reconcile/keys.h"
#include "reconcile/template.h"
#include "reconcile/template_pass.h"
#include "tests/lib/fake_cluster.h"
#include "tests/lib/world.h"

#define POD "\"podTemplate\":{\"spec\":{\"containers\":[{\"name\":\"c\",\"image\":\"i\"}]}}"
#define HASH "69155462" /* of test-template */

static const struct template_settings none;

static cJSON *make_template(const char *spec)
{
    SCOPED_FREE char *text = xasprintf(
        "{\"apiVersion\":\"extensions.agents.x-k8s.io/v1beta1\",\"kind\":\"SandboxTemplate\","
        "\"metadata\":{\"name\":\"test-template\",\"namespace\":\"ns\",\"uid\":\"u\"},\"spec\":"
        "{" POD "%s}}",
        spec);
    return world_tree(text);
}

/* ---- contents ---- */

#define SELECTOR                                                                                   \
    "\"podSelector\":{\"matchLabels\":{\"" LABEL_TEMPLATE_REF_HASH "\":\"" HASH                    \
    "\"}},\"policyTypes\":[\"Ingress\",\"Egress\"]"
static const struct {
    const char *id, *template, *spec;
} contents[] = {
    {"T-t001 R-13 built in", "",
     SELECTOR
     ",\"ingress\":[{\"from\":[{\"namespaceSelector\":{\"matchLabels\":{\"kubernetes.io/"
     "metadata.name\":\"agent-sandbox-system\"}},\"podSelector\":{\"matchLabels\":{\"app\":"
     "\"sandbox-router\"}}}]}],"
     "\"egress\":[{\"to\":[{\"ipBlock\":{\"cidr\":\"0.0.0.0/0\",\"except\":[\"10.0.0.0/8\","
     "\"172.16.0.0/12\",\"192.168.0.0/16\",\"169.254.0.0/16\"]}},{\"ipBlock\":{\"cidr\":\"::/"
     "0\",\"except\":[\"fc00::/7\",\"fe80::/10\"]}}]}]"},
    {"T-t002 own rules",
     ",\"networkPolicy\":{\"ingress\":[{\"ports\":[{\"port\":80}]}],\"egress\":[{}]}",
     SELECTOR ",\"ingress\":[{\"ports\":[{\"port\":80}]}],\"egress\":[{}]"},
    {"own rules, one direction", ",\"networkPolicy\":{\"egress\":[{}],\"ingress\":[]}",
     SELECTOR ",\"egress\":[{}]"},
    {"deny all", ",\"networkPolicy\":{}", SELECTOR},
};

START_TEST(test_contents) /* IL-057 */
{
    SCOPED(json_free_p) cJSON *template = make_template(contents[_i].template);
    SCOPED(json_free_p) cJSON *policy = template_policy(template, &none);
    SCOPED_FREE char *text =
        xasprintf("{\"apiVersion\":\"networking.k8s.io/"
                  "v1\",\"kind\":\"NetworkPolicy\",\"metadata\":{\"name\":"
                  "\"test-template-network-policy\",\"namespace\":\"ns\",\"ownerReferences\":[{"
                  "\"apiVersion\":"
                  "\"extensions.agents.x-k8s.io/"
                  "v1beta1\",\"kind\":\"SandboxTemplate\",\"name\":\"test-template\","
                  "\"uid\":\"u\",\"controller\":true,\"blockOwnerDeletion\":true}]},\"spec\":{%s}}",
                  contents[_i].spec);
    SCOPED(json_free_p) cJSON *want = world_tree(text);
    SCOPED_FREE char *got = json_to_str(policy);
    ck_assert_msg(json_equal(policy, want), "%s: %s", contents[_i].id, got);
}
END_TEST

/* IL-060: the resolvers' addresses and their port, and nothing else, beside the built-in rules. */
START_TEST(test_resolvers)
{
    static const char *const resolvers[] = {"169.254.20.10", "fd00::10", NULL};
    const struct template_settings some = {resolvers};
    SCOPED(json_free_p) cJSON *template = make_template("");
    SCOPED(json_free_p) cJSON *before = template_policy(template, &none);
    SCOPED(json_free_p) cJSON *after = template_policy(template, &some);
    SCOPED(json_free_p)
    cJSON *rule = world_tree("{\"ports\":[{\"protocol\":\"UDP\",\"port\":53},{\"protocol\":\"TCP\","
                             "\"port\":53}],\"to\":[{\"ipBlock\":{\"cidr\":\"169.254.20.10/32\"}},{"
                             "\"ipBlock\":{\"cidr\":\"fd00::10/128\"}}]}");
    json_push(json_at(before, "spec.egress"), json_copy(rule));
    ck_assert(json_equal(before, after));
    /* a template's own rules stay alone */
    SCOPED(json_free_p) cJSON *own = make_template(",\"networkPolicy\":{}");
    SCOPED(json_free_p) cJSON *own_before = template_policy(own, &none);
    SCOPED(json_free_p) cJSON *own_after = template_policy(own, &some);
    ck_assert(json_equal(own_before, own_after));
    ck_assert_ptr_null(template_host_block("169.254.20.10/32"));
    ck_assert_ptr_null(template_host_block("dns.example"));
}
END_TEST

START_TEST(test_selects_its_pods) /* T-t008 */
{
    SCOPED(json_free_p) cJSON *template = make_template("");
    SCOPED(json_free_p) cJSON *policy = template_policy(template, &none);
    SCOPED(json_free_p)
    cJSON *sandbox = world_tree(
        "{\"metadata\":{\"name\":\"s\",\"uid\":\"s\",\"labels\":{\"" LABEL_TEMPLATE_REF_HASH
        "\":\"" HASH "\"},\"ownerReferences\":[{\"apiVersion\":\"extensions.agents.x-k8s.io/"
        "v1beta1\",\"kind\":\"SandboxClaim\",\"name\":\"c\",\"uid\":\"c\",\"controller\":true}]},"
        "\"spec\":{" POD "}}");
    SCOPED(json_free_p) cJSON *pod = pod_desired(sandbox);
    const cJSON *want;
    cJSON_ArrayForEach(want, json_at(policy, "spec.podSelector.matchLabels"))
    {
        ck_assert_str_eq(meta_label(pod, want->string), want->valuestring);
    }
    ck_assert_uint_eq(json_len(json_at(policy, "spec.podSelector.matchLabels")), 1);
}
END_TEST

/* ---- decisions ---- */

#define OURS "\"ownerReferences\":[{\"controller\":true,\"uid\":\"u\"}]"
#define FOREIGN "\"ownerReferences\":[{\"controller\":true,\"uid\":\"x\"}]"
#define UNMANAGED ",\"networkPolicyManagement\":\"Unmanaged\""
#define NO_PROTOCOL ",\"networkPolicy\":{\"ingress\":[{\"ports\":[{\"port\":1}]}]}"
static const struct {
    const char *id, *template, *meta, *spec; /* of the existing policy; meta NULL = there is none */
    enum step_verb verb;
} plans[] = {
    {"missing", "", NULL, NULL, STEP_CREATE},
    {"T-t003 Unmanaged, missing", UNMANAGED, NULL, NULL, STEP_KEEP},
    {"T-t004 Unmanaged, ours", UNMANAGED, OURS, "", STEP_DELETE},
    {"T-t006 Unmanaged, foreign", UNMANAGED, FOREIGN, "", STEP_KEEP},
    {"Unmanaged, unowned", UNMANAGED, "\"x\":1", "", STEP_KEEP},
    {"Unmanaged, ours, going", UNMANAGED, OURS ",\"deletionTimestamp\":\"x\"", "", STEP_KEEP},
    {"T-t007 foreign", "", FOREIGN, "", STEP_REFUSE},
    {"unowned", "", "\"x\":1", "", STEP_REFUSE},
    {"T-t005 other selector", ",\"networkPolicy\":{}", OURS,
     "\"podSelector\":{\"matchLabels\":{\"a\":\"b\"}}", STEP_UPDATE},
    {"same", ",\"networkPolicy\":{}", OURS, SELECTOR, STEP_KEEP},
    {"same, empty list", ",\"networkPolicy\":{}", OURS, SELECTOR ",\"ingress\":[]", STEP_KEEP},
    {"T-t012 protocol filled in", NO_PROTOCOL, OURS,
     SELECTOR ",\"ingress\":[{\"ports\":[{\"port\":1,\"protocol\":\"TCP\"}]}]", STEP_KEEP},
    {"other protocol", NO_PROTOCOL, OURS,
     SELECTOR ",\"ingress\":[{\"ports\":[{\"port\":1,\"protocol\":\"UDP\"}]}]", STEP_UPDATE},
    {"T-t013 edited", ",\"networkPolicy\":{}", OURS, SELECTOR ",\"egress\":[{}]", STEP_UPDATE},
};

START_TEST(test_plan)
{
    SCOPED(json_free_p) cJSON *template = make_template(plans[_i].template);
    SCOPED(json_free_p) cJSON *existing = NULL;
    SCOPED(step_fini) struct step step = {0};
    if (plans[_i].meta) {
        SCOPED_FREE char *text = xasprintf(
            "{\"metadata\":{\"name\":\"test-template-network-policy\",\"labels\":{\"mine\":"
            "\"kept\"},%s},\"spec\":{%s}}",
            plans[_i].meta, plans[_i].spec);
        existing = world_tree(text);
    }
    template_plan_policy(template, &none, existing, &step);
    ck_assert_msg(step.verb == plans[_i].verb, "%s: %d", plans[_i].id, step.verb);
    if (step.verb == STEP_UPDATE) {
        SCOPED(json_free_p) cJSON *wanted = template_policy(template, &none);
        ck_assert_str_eq(meta_label(step.body, "mine"), "kept");
        ck_assert(json_equal(json_get(step.body, "spec"), json_get(wanted, "spec")));
    }
    if (step.verb == STEP_REFUSE)
        ck_assert_str_eq(step.error,
                         "refusing to update NetworkPolicy \"test-template-network-policy\" as it "
                         "is not controlled by SandboxTemplate \"test-template\"");
}
END_TEST

/* ---- passes ---- */

static struct fixture {
    struct world world;
    struct fake_cluster cluster;
    struct template_reconciler reconciler;
    bool follows; /* does not lead */
} fx;

static bool fence(void *ctx, struct store_compare *ret)
{
    (void)ctx;
    *ret = (struct store_compare){.key = "/lease", .target = STORE_CREATE, .rev = 0};
    return !fx.follows;
}

static void setup(void)
{
    fx = (struct fixture){0};
    world_start(&fx.world, NULL);
    fake_cluster_init(&fx.cluster);
    fx.reconciler.env = (struct pass_env){.registry = fx.world.registry,
                                          .cluster = &fx.cluster.base,
                                          .clock = &fx.world.clock.clock,
                                          .randomness = &fx.world.randomness,
                                          .fence = fence};
}

static void teardown(void)
{
    fake_cluster_fini(&fx.cluster);
    world_stop(&fx.world);
}

static void create_named(const char *name, const char *spec)
{
    SCOPED_FREE char *text = xasprintf(
        "{\"apiVersion\":\"extensions.agents.x-k8s.io/v1beta1\",\"kind\":\"SandboxTemplate\","
        "\"metadata\":{\"name\":\"%s\"},\"spec\":{" POD "%s}}",
        name, spec);
    SCOPED(object_unref_p) struct object *o = NULL;
    SCOPED(err_fini) struct err err = {0};
    struct write_options opts = world_opts();
    int rc = registry_create(fx.world.registry, &kind_sandbox_template, "ns", world_tree(text),
                             &opts, &o, &err);
    ck_assert_msg(rc == 0, "%s", err_text(&err));
}

static void create(const char *spec)
{
    create_named("t", spec);
}

static int change_mode(void *ctx, const cJSON *old, cJSON **ret, struct err *err)
{
    (void)err;
    *ret = json_copy(old);
    json_set_str(json_get(*ret, "spec"), "networkPolicyManagement", ctx);
    return 0;
}

static void set_mode(const char *mode)
{
    SCOPED(object_unref_p) struct object *o = NULL;
    SCOPED(err_fini) struct err err = {0};
    struct write_options opts = world_opts();
    SCOPED_FREE char *copy = xstrdup(mode);
    int rc = registry_update(fx.world.registry,
                             &(struct update_request){.kind = &kind_sandbox_template,
                                                      .namespace_name = "ns",
                                                      .name = "t",
                                                      .change = change_mode,
                                                      .ctx = copy},
                             &opts, &o, &err);
    ck_assert_msg(rc == 0, "%s", err_text(&err));
}

static int pass(void)
{
    struct loop_result ret = {0};
    return template_pass(&fx.reconciler, "ns/t", &ret);
}

static cJSON *policy(void)
{
    return fake_cluster_find(&fx.cluster, CHILD_NETPOL, "ns", "t-network-policy");
}

static int writes(void)
{
    return fx.cluster.creates + fx.cluster.updates + fx.cluster.patches + fx.cluster.deletes;
}

START_TEST(test_life) /* T-t004, T-t009, T-t010, T-t013, IL-061 */
{
    create("");
    int64_t before = registry_revision(fx.world.registry);
    ck_assert_int_eq(pass(), 0);
    ck_assert_int_eq(registry_revision(fx.world.registry), before + 1);
    ck_assert_int_eq(writes(), 1);
    SCOPED(object_unref_p) struct object *o = NULL;
    SCOPED(err_fini) struct err err = {0};
    registry_get(fx.world.registry, &kind_sandbox_template, "ns", "t",
                 (struct read_version){READ_LATEST}, world_deadline(), &o, &err);
    char hash[NAME_HASH_SIZE];
    digest_name_hash("t", hash);
    ck_assert_str_eq(pairs_get(&o->labels, LABEL_TEMPLATE_REF_HASH), hash);
    ck_assert_int_eq(pass(), 0); /* nothing changes: nothing is written */
    ck_assert_int_eq(registry_revision(fx.world.registry), before + 1);
    ck_assert_int_eq(writes(), 1);
    json_remove(json_get(policy(), "spec"), "ingress");
    ck_assert_int_eq(pass(), 0);
    ck_assert_ptr_nonnull(json_at(policy(), "spec.ingress"));
    fake_cluster_remove(&fx.cluster, CHILD_NETPOL, "ns", "t-network-policy");
    ck_assert_int_eq(pass(), 0);
    ck_assert_ptr_nonnull(policy());
    set_mode("Unmanaged");
    ck_assert_int_eq(pass(), 0);
    ck_assert_ptr_null(policy());
    ck_assert_int_eq(pass(), 0);
    set_mode("Managed");
    ck_assert_int_eq(pass(), 0);
    ck_assert_ptr_nonnull(policy());
}
END_TEST

START_TEST(test_foreign_policy) /* T-t007 */
{
    fake_cluster_put(&fx.cluster, CHILD_NETPOL, "ns",
                     world_tree("{\"metadata\":{\"name\":\"t-network-policy\"},\"spec\":{}}"));
    create("");
    ck_assert_int_lt(pass(), 0);
    ck_assert_int_eq(writes(), 0);
    fake_cluster_remove(&fx.cluster, CHILD_NETPOL, "ns", "t-network-policy");
    ck_assert_int_eq(pass(), 0);
    ck_assert_ptr_nonnull(policy());
}
END_TEST

/* Policies add up: with two whose names hash alike (a1bc9a4f) the younger one would open for the
 * pods of the older one what that one's policy keeps closed. */
#define OLDER "glbvs"
#define YOUNGER "yacxa"

static bool has_policy(const char *name)
{
    return fake_cluster_find(&fx.cluster, CHILD_NETPOL, "ns", name) != NULL;
}

static int pass_of(const char *key)
{
    struct loop_result ret = {0};
    return template_pass(&fx.reconciler, key, &ret);
}

START_TEST(test_names_that_hash_alike)
{
    create_named(YOUNGER, ",\"networkPolicyManagement\":\"Unmanaged\"");
    clock_fake_advance(&fx.world.clock, 1000);
    create_named(OLDER, ""); /* the only one that is managed */
    ck_assert_int_eq(pass_of("ns/" OLDER), 0);
    ck_assert(has_policy(OLDER "-network-policy"));
    SCOPED(object_unref_p) struct object *last = NULL;
    bool is_gone;
    ck_assert_int_eq(registry_delete(fx.world.registry, &kind_sandbox_template, "ns", YOUNGER,
                                     &(struct delete_options){.orphan_dependents = -1,
                                                              .deadline_ms = world_deadline()},
                                     &last, &is_gone, NULL),
                     0);
    clock_fake_advance(&fx.world.clock, 1000);
    create_named(YOUNGER, ",\"networkPolicy\":{\"egress\":[{}]}");
    ck_assert_int_lt(pass_of("ns/" YOUNGER), 0);
    ck_assert(!has_policy(YOUNGER "-network-policy"));
    ck_assert_int_eq(pass_of("ns/" OLDER), 0);
    ck_assert(has_policy(OLDER "-network-policy"));
    object_unref(steal(&last));
    ck_assert_int_eq(registry_delete(fx.world.registry, &kind_sandbox_template, "ns", OLDER,
                                     &(struct delete_options){.orphan_dependents = -1,
                                                              .deadline_ms = world_deadline()},
                                     &last, &is_gone, NULL),
                     0);
    ck_assert_int_eq(pass_of("ns/" YOUNGER), 0);
    ck_assert(has_policy(YOUNGER "-network-policy"));
}
END_TEST

START_TEST(test_gone)
{
    ck_assert_int_eq(pass(), 0);
    ck_assert_int_eq(writes(), 0);
}
END_TEST

START_TEST(test_not_leading)
{
    create("");
    fx.follows = true;
    int64_t before = registry_revision(fx.world.registry);
    ck_assert_int_lt(pass(), 0);
    ck_assert_int_eq(registry_revision(fx.world.registry), before);
    ck_assert_int_eq(writes(), 0);
}
END_TEST

/* Whatever call fails: repeated passes reach the same end. */
START_TEST(test_converges)
{
    static const enum err_code codes[] = {ERR_UNAVAILABLE, ERR_FORBIDDEN, ERR_CONFLICT,
                                          ERR_INVALID};
    create("");
    fx.cluster.fail_code = codes[_i % (int)ARRAY_LEN(codes)];
    fx.cluster.fail_at = 1 + _i / (int)ARRAY_LEN(codes);
    pass();
    pass();
    ck_assert_ptr_nonnull(policy());
    fx.cluster.fail_at = fx.cluster.calls + fx.cluster.fail_at;
    set_mode("Unmanaged");
    pass();
    ck_assert_int_eq(pass(), 0);
    ck_assert_ptr_null(policy());
}
END_TEST

SUITE(template)
{
    LOOP("contents", test_contents, 0, ARRAY_LEN(contents));
    TESTS("pods", test_selects_its_pods, test_resolvers);
    LOOP("plans", test_plan, 0, ARRAY_LEN(plans));
    const TTest *const tests[] = {test_life, test_foreign_policy, test_names_that_hash_alike,
                                  test_gone, test_not_leading};
    TCase *tc = tcase_create("passes");
    tcase_add_checked_fixture(tc, setup, teardown);
    for (size_t i = 0; i < ARRAY_LEN(tests); i++)
        tcase_add_test(tc, tests[i]);
    tcase_add_loop_test(tc, test_converges, 0, 8);
    suite_add_tcase(s, tc);
}
