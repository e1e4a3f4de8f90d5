/* The pure decisions about a warm pool: members, prototype, size, grace, pacing, slow start. Names
 * carry the ids of the behaviour checklist (W-t...). */
#include <stdatomic.h>

#include "apiserver/base/json.h"
#include "apiserver/base/str.h"
#include "reconcile/batch.h"
#include "reconcile/child.h"
#include "reconcile/keys.h"
#include "reconcile/pace.h"
#include "reconcile/warmpool.h"
#include "tests/lib/suite.h"

#define NOW_MS INT64_C(1767225600000) /* 2026-01-01T00:00:00Z */
#define GRACE_MS 300000

static cJSON *parse(const char *text)
{
    cJSON *tree;
    struct err err = {0};
    if (json_parse_str(text, &tree, &err) < 0)
        ck_abort_msg("%s: %s", err_text(&err), text);
    return tree;
}

static cJSON *make_template(const char *pod_metadata)
{
    SCOPED_FREE char *text = xasprintf(
        "{\"metadata\":{\"name\":\"test-template\",\"namespace\":\"ns\"},\"spec\":{\"podTemplate\":"
        "{"
        "\"metadata\":%s,\"spec\":{\"containers\":[{\"name\":\"c\",\"image\":\"i\"}]}},"
        "\"volumeClaimTemplates\":[{\"metadata\":{\"name\":\"d\"},\"spec\":{}}],\"service\":true}}",
        pod_metadata);
    return parse(text);
}

static cJSON *make_pool(const char *spec)
{
    SCOPED_FREE char *text = xasprintf(
        "{\"apiVersion\":\"extensions.agents.x-k8s.io/v1beta1\",\"kind\":\"SandboxWarmPool\","
        "\"metadata\":{\"name\":\"test-pool\",\"namespace\":\"ns\",\"uid\":\"pool-uid\","
        "\"generation\":3},"
        "\"spec\":{\"sandboxTemplateRef\":{\"name\":\"test-template\"}%s}}",
        spec);
    return parse(text);
}

/* ---- prototype ---- */

START_TEST(test_prototype) /* W-t017, W-t018 */
{
    SCOPED(json_free_p) cJSON *template = make_template("{\"labels\":{\"app\":\"x\"}}");
    SCOPED(json_free_p) cJSON *pool = make_pool("");
    struct blueprint b;
    blueprint_init(&b, template);
    SCOPED(json_free_p) cJSON *sandbox = pool_prototype(pool, &b, true);
    SCOPED_FREE char *text = xasprintf(
        "{\"apiVersion\":\"agents.x-k8s.io/v1beta1\",\"kind\":\"Sandbox\",\"metadata\":{"
        "\"generateName\":\"test-pool-\",\"namespace\":\"ns\",\"labels\":{"
        "\"agents.x-k8s.io/warm-pool-sandbox\":\"59733166\","
        "\"agents.x-k8s.io/sandbox-template-ref-hash\":\"69155462\","
        "\"agents.x-k8s.io/launch-type\":\"warm\","
        "\"agents.x-k8s.io/sandbox-pod-template-hash\":\"%s\","
        "\"agents.x-k8s.io/sandbox-template-hash\":\"%s\","
        "\"agents.x-k8s.io/created-by\":\"controller\"},"
        "\"annotations\":{\"agents.x-k8s.io/sandbox-template-ref\":\"test-template\"},"
        "\"ownerReferences\":[{\"apiVersion\":\"extensions.agents.x-k8s.io/v1beta1\","
        "\"kind\":\"SandboxWarmPool\",\"name\":\"test-pool\",\"uid\":\"pool-uid\",\"controller\":"
        "true,"
        "\"blockOwnerDeletion\":true}]},"
        "\"spec\":{\"podTemplate\":{\"metadata\":{\"labels\":{\"app\":\"x\","
        "\"agents.x-k8s.io/warm-pool-sandbox\":\"59733166\","
        "\"agents.x-k8s.io/sandbox-template-ref-hash\":\"69155462\","
        "\"agents.x-k8s.io/sandbox-pod-template-hash\":\"%s\","
        "\"agents.x-k8s.io/sandbox-template-hash\":\"%s\"},"
        "\"annotations\":{\"cluster-autoscaler.kubernetes.io/safe-to-evict\":\"true\"}},"
        "\"spec\":{\"containers\":[{\"name\":\"c\",\"image\":\"i\",\"resources\":{}}],"
        "\"automountServiceAccountToken\":false,\"dnsPolicy\":\"None\","
        "\"dnsConfig\":{\"nameservers\":[\"8.8.8.8\",\"1.1.1.1\"]}}},"
        "\"volumeClaimTemplates\":[{\"metadata\":{\"name\":\"d\"},\"spec\":{\"resources\":{}}}],"
        "\"service\":true}}",
        b.pod_template_hash, b.hash, b.pod_template_hash, b.hash);
    SCOPED(json_free_p) cJSON *want = parse(text);
    SCOPED_FREE char *got = json_to_str(sandbox);
    ck_assert_msg(json_equal(sandbox, want), "%s", got);
}
END_TEST

static const struct {
    const char *id, *given; /* NULL = the template is silent */
    bool flag;
    const char *want; /* NULL = absent */
} evictions[] = {
    {"W-t022", NULL, true, "true"},     {"W-t023", NULL, false, NULL},
    {"W-t024", "false", true, "false"}, {"W-t025", "false", false, "false"},
    {"W-t026", "true", true, "true"},   {"W-t027", "true", false, "true"},
};

START_TEST(test_eviction)
{
    SCOPED_FREE char *metadata =
        evictions[_i].given
            ? xasprintf("{\"annotations\":{\"" ANNOTATION_SAFE_TO_EVICT "\":\"%s\"}}",
                        evictions[_i].given)
            : xstrdup("{}");
    SCOPED(json_free_p) cJSON *template = make_template(metadata);
    SCOPED(json_free_p) cJSON *pool = make_pool("");
    struct blueprint b;
    blueprint_init(&b, template);
    SCOPED(json_free_p) cJSON *sandbox = pool_prototype(pool, &b, evictions[_i].flag);
    const cJSON *annotations = json_at(sandbox, "spec.podTemplate.metadata.annotations");
    const cJSON *value = json_get(annotations, ANNOTATION_SAFE_TO_EVICT);
    ck_assert_msg(str_equal(value ? value->valuestring : NULL, evictions[_i].want), "%s",
                  evictions[_i].id);
}
END_TEST

/* ---- members ---- */

#define OURS "\"ownerReferences\":[{\"controller\":true,\"uid\":\"pool-uid\"}]"
#define FOREIGN "\"ownerReferences\":[{\"controller\":true,\"uid\":\"x\"}]"
#define ORPHAN "\"ownerReferences\":[{\"uid\":\"pool-uid\"}]"
#define WARM "\"" LABEL_LAUNCH_TYPE "\":\"warm\","
#define OF_TEMPLATE "\"" LABEL_TEMPLATE_REF_HASH "\":\"69155462\""
#define HASH(h) ",\"" LABEL_BLUEPRINT_HASH "\":\"" h "\""

static const struct {
    const char *id, *owner, *labels, *more;
    enum member_content content;
    bool has_template, recreates;
    enum member_verdict verdict;
} verdicts[] = {
    {"W-t008 owned", OURS, WARM OF_TEMPLATE, "", CONTENT_EQUAL, true, true, MEMBER_KEEP},
    {"W-t009 foreign", FOREIGN, WARM OF_TEMPLATE, "", CONTENT_DIFFERENT, true, true, MEMBER_IGNORE},
    {"W-t007 orphan", ORPHAN, OF_TEMPLATE, "", CONTENT_EQUAL, true, false, MEMBER_ADOPT},
    {"W-t034 stale orphan", ORPHAN, OF_TEMPLATE HASH("="), "", CONTENT_DIFFERENT, true, false,
     MEMBER_DELETE_STALE},
    {"orphan without a template", ORPHAN, OF_TEMPLATE, "", CONTENT_UNKNOWN, false, true,
     MEMBER_ADOPT},
    {"no launch type", OURS, OF_TEMPLATE, "", CONTENT_EQUAL, true, true, MEMBER_LABEL},
    {"W-t041 Recreate, changed", OURS, WARM OF_TEMPLATE, "", CONTENT_DIFFERENT, true, true,
     MEMBER_DELETE_STALE},
    {"W-t030 otherwise it stays", OURS, WARM OF_TEMPLATE, "", CONTENT_DIFFERENT, true, false,
     MEMBER_KEEP},
    {"W-t031 Recreate, another template", OURS, WARM "\"" LABEL_TEMPLATE_REF_HASH "\":\"0\"", "",
     CONTENT_EQUAL, true, true, MEMBER_DELETE_STALE},
    {"W-t036 present hash", OURS, WARM OF_TEMPLATE HASH("="), "", CONTENT_DIFFERENT, true, true,
     MEMBER_KEEP},
    {"no template", OURS, WARM OF_TEMPLATE, "", CONTENT_UNKNOWN, false, true, MEMBER_KEEP},
    {"W-t082 terminating", OURS, WARM OF_TEMPLATE, ",\"deletionTimestamp\":\"x\"", CONTENT_EQUAL,
     true, true, MEMBER_GOING},
    {"terminating orphan", ORPHAN, WARM OF_TEMPLATE, ",\"deletionTimestamp\":\"x\"", CONTENT_EQUAL,
     true, true, MEMBER_IGNORE},
};

START_TEST(test_verdict)
{
    SCOPED(json_free_p) cJSON *template = make_template("{}");
    struct blueprint b;
    blueprint_init(&b, template);
    SCOPED_FREE char *text = xasprintf("{\"metadata\":{\"name\":\"m\",\"labels\":{%s},%s%s}}",
                                       verdicts[_i].labels, verdicts[_i].owner, verdicts[_i].more);
    SCOPED(json_free_p) cJSON *sandbox = parse(text);
    cJSON *hash = json_get(json_at(sandbox, "metadata.labels"), LABEL_BLUEPRINT_HASH);
    if (hash)
        json_set_str(json_at(sandbox, "metadata.labels"), LABEL_BLUEPRINT_HASH, b.hash);
    struct member *m = member_new(sandbox, "pool-uid", 1);
    m->content = verdicts[_i].content;
    enum member_verdict got =
        member_judge(m, verdicts[_i].has_template ? &b : NULL, verdicts[_i].recreates);
    ck_assert_msg(got == verdicts[_i].verdict, "%s: %d", verdicts[_i].id, got);
    member_free(m);
}
END_TEST

START_TEST(test_adoption_keeps_the_rest)
{
    SCOPED(json_free_p) cJSON *pool = make_pool("");
    SCOPED(json_free_p)
    cJSON *sandbox =
        parse("{\"metadata\":{\"labels\":{\"a\":\"b\"},\"ownerReferences\":[{\"uid\":\"x\"}]},"
              "\"spec\":{}}");
    member_adopt(sandbox, pool);
    ck_assert_str_eq(meta_label(sandbox, "a"), "b");
    ck_assert_str_eq(meta_label(sandbox, LABEL_LAUNCH_TYPE), "warm");
    ck_assert_uint_eq(json_len(json_at(sandbox, "metadata.ownerReferences")), 2);
    ck_assert_str_eq(json_str(owner_controller(sandbox), "uid"), "pool-uid");
}
END_TEST

/* ---- grace ---- */

#define READY(status, time)                                                                        \
    ",\"status\":{\"conditions\":[{\"type\":\"Ready\",\"status\":\"" status                        \
    "\",\"lastTransitionTime\":\"" time "\"}]}"
static const struct {
    const char *id, *created, *status;
    int64_t left_ms;
} graces[] = {
    {"W-t068 too old", "2025-12-31T23:54:00Z", "", -60000},
    {"W-t069 young", "2025-12-31T23:56:00Z", "", 60000},
    {"ready", "2025-12-31T23:00:00Z", READY("True", "2025-12-31T23:01:00Z"), INT64_MAX},
    {"never ready: from its creation", "2025-12-31T23:54:00Z",
     READY("False", "2025-12-31T23:54:00Z"), -60000},
    {"not ready lately: from then on", "2025-12-01T00:00:00Z",
     READY("False", "2025-12-31T23:58:00Z"), 180000},
    {"no creation time", "", "", INT64_MAX},
};

START_TEST(test_grace)
{
    SCOPED_FREE char *text = xasprintf("{\"metadata\":{\"creationTimestamp\":\"%s\"}%s}",
                                       graces[_i].created, graces[_i].status);
    SCOPED(json_free_p) cJSON *sandbox = parse(text);
    struct member *m = member_new(sandbox, "u", 1);
    int64_t left = member_grace_left_ms(m, NOW_MS, GRACE_MS);
    ck_assert_msg(left == graces[_i].left_ms, "%s: %lld", graces[_i].id, (long long)left);
    member_free(m);
}
END_TEST

#define SCHEDULED(status, more)                                                                    \
    "{\"status\":{\"conditions\":[{\"type\":\"PodScheduled\",\"status\":\"" status "\"" more "}]}" \
    "}"
static const struct {
    const char *id, *pod; /* NULL = none */
    int64_t left_ms;
} pods[] = {
    {"W-t073 no Pod", NULL, 0},
    {"W-t070 unschedulable", SCHEDULED("False", ",\"reason\":\"Unschedulable\""), INT64_MAX},
    {"gated", SCHEDULED("False", ",\"reason\":\"SchedulingGated\""), INT64_MAX},
    {"other reason", SCHEDULED("False", ",\"reason\":\"SchedulerError\""), 0},
    {"W-t072 scheduled long ago",
     SCHEDULED("True", ",\"lastTransitionTime\":\"2025-12-31T23:00:00Z\""), -3525000},
    {"scheduled lately", SCHEDULED("True", ",\"lastTransitionTime\":\"2025-12-31T23:59:00Z\""),
     15000},
    {"scheduled at no time", SCHEDULED("True", ""), 0},
    {"no condition", "{}", 0},
    {"terminating",
     "{\"metadata\":{\"deletionTimestamp\":\"x\"},\"status\":{\"conditions\":[{\"type\":"
     "\"PodScheduled\",\"status\":\"False\",\"reason\":\"Unschedulable\"}]}}",
     0},
};

START_TEST(test_pod_grace)
{
    SCOPED(json_free_p) cJSON *pod = pods[_i].pod ? parse(pods[_i].pod) : NULL;
    int64_t left = member_pod_grace_left_ms(pod, NOW_MS, GRACE_MS);
    ck_assert_msg(left == pods[_i].left_ms, "%s: %lld", pods[_i].id, (long long)left);
}
END_TEST

START_TEST(test_grace_requeue) /* W-t074, W-t075 */
{
    ck_assert_int_eq(pool_grace_requeue_ms(10000, 0), 12000);
    ck_assert_int_eq(pool_grace_requeue_ms(10000, 0.5), 15000);
    ck_assert_int_le(pool_grace_requeue_ms(10000, 0.999999), 18000);
}
END_TEST

/* ---- size ---- */

START_TEST(test_sizes)
{
    SCOPED(json_free_p) cJSON *silent = make_pool(""), *zero = make_pool(",\"replicas\":0");
    ck_assert_int_eq(pool_desired(silent), 1); /* W-t001 */
    ck_assert_int_eq(pool_desired(zero), 0);
    ck_assert_int_eq(pool_deficit(5, 2, 300), 3);
    ck_assert_int_eq(pool_deficit(5, 5, 300), 0);
    ck_assert_int_eq(pool_deficit(5, 9, 300), 0);
    ck_assert_int_eq(pool_deficit(1000, 0, 300), 300);
    ck_assert_int_eq(pool_excess(2, 5, 300), 3);
    ck_assert_int_eq(pool_excess(5, 2, 300), 0);
    ck_assert_int_eq(pool_excess(0, 1000, 300), 300);
}
END_TEST

START_TEST(test_excess_order) /* IL-044 */
{
    struct member a = {.name = xstrdup("a"), .is_ready = true, .created_ms = 1};
    struct member b = {.name = xstrdup("b"), .is_ready = true, .created_ms = 2};
    struct member c = {.name = xstrdup("c"), .created_ms = 1},
                  d = {.name = xstrdup("d"), .created_ms = 2};
    struct member *list[] = {&a, &b, &c, &d};
    qsort(list, ARRAY_LEN(list), sizeof list[0], member_compare_excess);
    ck_assert_str_eq(list[0]->name, "d");
    ck_assert_str_eq(list[1]->name, "c");
    ck_assert_str_eq(list[2]->name, "b");
    ck_assert_str_eq(list[3]->name, "a");
    for (size_t i = 0; i < ARRAY_LEN(list); i++)
        free(list[i]->name);
}
END_TEST

START_TEST(test_status) /* W-t015, W-t016 */
{
    SCOPED(json_free_p) cJSON *pool = make_pool("");
    SCOPED(json_free_p) cJSON *full = pool_status(pool, &(struct pool_counts){3, 2}, NULL, 0);
    SCOPED(json_free_p) cJSON *empty = pool_status(pool, &(struct pool_counts){0}, NULL, 0);
    SCOPED(json_free_p)
    cJSON *want_full =
        parse("{\"observedGeneration\":3,\"readyReplicas\":2,\"replicas\":3,\"selector\":"
              "\"agents.x-k8s.io/warm-pool-sandbox=59733166\"}");
    SCOPED(json_free_p)
    cJSON *want_empty = parse("{\"observedGeneration\":3,\"selector\":"
                              "\"agents.x-k8s.io/warm-pool-sandbox=59733166\"}");
    ck_assert(json_equal(full, want_full));
    ck_assert(json_equal(empty, want_empty));
}
END_TEST

/* ---- pacing ---- */

START_TEST(test_hold_off) /* W-t103, W-t105 */
{
    struct hold h = {0};
    ck_assert_int_eq(hold_see(&h, 3, 5, 0, 100), 0);
    ck_assert(!h.is_known);
    hold_created(&h, 2);
    ck_assert_int_eq(h.count, 0);
}
END_TEST

START_TEST(test_hold) /* W-t100, W-t101, W-t104 */
{
    struct hold h = {0};
    ck_assert_int_eq(hold_see(&h, 0, 3, 1000, 100), 0); /* the first fill is not held up */
    hold_created(&h, 3);
    ck_assert_int_eq(hold_see(&h, 3, 3, 1000, 200), 0);
    ck_assert_int_eq(hold_see(&h, 2, 3, 1000, 300), 1000);
    ck_assert_int_eq(hold_see(&h, 2, 3, 1000, 700), 600);  /* goes on */
    ck_assert_int_eq(hold_see(&h, 1, 3, 1000, 800), 1000); /* a further drop */
    ck_assert_int_eq(hold_see(&h, 1, 3, 1000, 1800), 0);
    hold_created(&h, 2);
    ck_assert_int_eq(hold_see(&h, 3, 3, 1000, 1900), 0);
    ck_assert_int_eq(hold_see(&h, 2, 3, 1000, 2000), 1000);
    ck_assert_int_eq(hold_see(&h, 2, 2, 1000, 2100), 0); /* full: cleared */
    ck_assert_int_eq(hold_see(&h, 2, 3, 1000, 2200), 0); /* wanting more is no drop */
}
END_TEST

/* Waits for the lull, a second at most, and then from the beginning. */
START_TEST(test_lull)
{
    struct lull l = {0};
    ck_assert_int_eq(lull_wait(&l, 0, false, 0, 100), 0); /* not wished for */
    ck_assert_int_eq(lull_wait(&l, INT64_MAX, false, 150, 100), 0);
    ck_assert_int_eq(lull_wait(&l, 150, false, 150, 100), 0);
    ck_assert_int_eq(lull_wait(&l, 20, false, 150, 100), 130);
    ck_assert_int_eq(lull_wait(&l, 0, false, 150, 600), 150); /* another claim */
    ck_assert_int_eq(lull_wait(&l, 0, false, 150, 1000), 100);
    ck_assert_int_eq(lull_wait(&l, 0, false, 150, 1100), 0);
    ck_assert_int_eq(lull_wait(&l, 0, false, 150, 1200), 150);
    ck_assert_int_eq(lull_wait(&l, 150, false, 150, 1350), 0);
    ck_assert_int_eq(l.since_ms, 0);
    ck_assert_int_eq(lull_wait(&l, 0, true, 150, 1400), 0); /* few are left */
}
END_TEST

START_TEST(test_bucket)
{
    int64_t wait;
    struct bucket off = {0}, b = {0};
    ck_assert_int_eq(bucket_take(&off, 1000, 0, 100, &wait), 1000); /* W-t106 */
    ck_assert_int_eq(bucket_take(&off, 0, 5, 100, &wait), 0);       /* W-t107 */
    ck_assert_int_eq(bucket_take(&b, 100, 5, 100, &wait), 5);       /* W-t108 */
    ck_assert_int_eq(bucket_take(&b, 100, 5, 100, &wait), 0);
    ck_assert_int_gt(wait, 199);
    ck_assert_int_le(wait, 201);
    ck_assert_int_eq(bucket_take(&b, 100, 5, 100 + wait, &wait), 1); /* never a hair too early */
    ck_assert_int_eq(bucket_take(&b, 100, 5, 100000, &wait), 5); /* W-t109: caps at one second */
}
END_TEST

START_TEST(test_bucket_extremes)
{
    int64_t wait;
    struct bucket slow = {0}, huge = {0}, tiny = {0};
    ck_assert_int_eq(bucket_take(&slow, 9, 0.5, 0, &wait), 1); /* W-t110: at least one */
    ck_assert_int_eq(bucket_take(&slow, 9, 0.5, 0, &wait), 0);
    ck_assert_int_ge(wait, 2000);
    ck_assert_int_le(wait, 2001);
    ck_assert_int_eq(bucket_take(&huge, INT64_MAX, 1e300, 0, &wait), INT64_MAX); /* W-t111 */
    ck_assert_int_eq(bucket_take(&tiny, 1, 1e-300, 0, &wait), 1);
    ck_assert_int_eq(bucket_take(&tiny, 1, 1e-300, 0, &wait), 0);
    ck_assert_int_gt(wait, 0);
}
END_TEST

/* ---- slow start ---- */

struct tally {
    atomic_int calls, rounds;
    int fail_at, rounds_max; /* -1 = never */
};

static int tally_run(void *ctx, size_t i)
{
    struct tally *t = ctx;
    atomic_fetch_add(&t->calls, 1);
    return (int)i == t->fail_at ? -1 : 0;
}

static bool tally_goes_on(void *ctx)
{
    struct tally *t = ctx;
    return t->rounds_max < 0 || atomic_fetch_add(&t->rounds, 1) < t->rounds_max;
}

static const struct {
    const char *id;
    size_t count;
    int fail_at, rounds_max;
    size_t done, tried;
} batches[] = {
    {"W-t095 all", 14, -1, -1, 14, 14},        {"W-t096 none", 0, -1, -1, 0, 0},
    {"W-t097 fails at 5", 100, 5, -1, 6, 7},   {"fails at once", 100, 0, -1, 0, 1},
    {"W-t098 told to stop", 100, -1, 2, 3, 3}, {"many", 300, -1, -1, 300, 300},
};

START_TEST(test_batch)
{
    for (size_t parallel = 1; parallel <= 16; parallel *= 4) {
        struct tally t = {.fail_at = batches[_i].fail_at, .rounds_max = batches[_i].rounds_max};
        size_t tried;
        size_t done = batch_run(&(struct batch){.count = batches[_i].count,
                                                .parallel = parallel,
                                                .run = tally_run,
                                                .goes_on = tally_goes_on,
                                                .ctx = &t},
                                &tried);
        ck_assert_msg(done == batches[_i].done && tried == batches[_i].tried, "%s: %zu of %zu",
                      batches[_i].id, done, tried);
        ck_assert_uint_eq((size_t)atomic_load(&t.calls), tried);
    }
}
END_TEST

SUITE(warmpool)
{
    TESTS("prototype", test_prototype);
    LOOP("eviction", test_eviction, 0, ARRAY_LEN(evictions));
    LOOP("verdicts", test_verdict, 0, ARRAY_LEN(verdicts));
    TESTS("adoption", test_adoption_keeps_the_rest);
    LOOP("grace", test_grace, 0, ARRAY_LEN(graces));
    LOOP("grace by Pod", test_pod_grace, 0, ARRAY_LEN(pods));
    TESTS("size", test_grace_requeue, test_sizes, test_excess_order, test_status);
    TESTS("pacing", test_hold_off, test_hold, test_lull, test_bucket, test_bucket_extremes);
    LOOP("slow start", test_batch, 0, ARRAY_LEN(batches));
}
