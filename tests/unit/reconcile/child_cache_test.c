/* The cache of children: it never goes back in time, whatever answers and events overtake each
 * other. */
#include <stdio.h>

#include "apiserver/base/json.h"
#include "apiserver/base/str.h"
#include "reconcile/child.h"
#include "reconcile/child_cache.h"
#include "tests/lib/suite.h"

/* A script of what happens: kind of step, name, revision. Pods belong to the Sandbox of their
 * name. */
enum step { EVENT, GONE, ANSWER, UNLABELLED_ANSWER, LIST, LIST_EMPTY };
struct happening {
    enum step step;
    int rev;       /* of the object; of a list: its own */
    int listed_at; /* LIST: the object's */
};

static const struct {
    const char *what;
    struct happening script[8]; /* ends with rev 0 */
    int rev;                    /* of the Pod in the end; 0 = absent */
} rows[] = {
    {"events", {{LIST_EMPTY, 1}, {EVENT, 5}, {EVENT, 6}}, 6},
    {"gone", {{LIST_EMPTY, 1}, {EVENT, 5}, {GONE, 6}}, 0},
    {"answer before its event", {{LIST_EMPTY, 1}, {ANSWER, 5}}, 5},
    {"answer overtakes events", {{LIST_EMPTY, 1}, {ANSWER, 7}, {EVENT, 5}, {EVENT, 6}}, 7},
    {"then they catch up", {{LIST_EMPTY, 1}, {ANSWER, 7}, {EVENT, 5}, {EVENT, 7}, {EVENT, 8}}, 8},
    {"answer that is late", {{LIST_EMPTY, 1}, {EVENT, 5}, {EVENT, 6}, {ANSWER, 5}}, 6},
    {"answer about what is gone", {{LIST_EMPTY, 1}, {EVENT, 5}, {GONE, 6}, {ANSWER, 5}}, 0},
    {"answer, then gone", {{LIST_EMPTY, 1}, {ANSWER, 5}, {EVENT, 5}, {GONE, 6}}, 0},
    {"made anew", {{LIST_EMPTY, 1}, {ANSWER, 8}, {EVENT, 5}, {GONE, 6}}, 8},
    {"not watched", {{LIST_EMPTY, 1}, {UNLABELLED_ANSWER, 5}}, 0},
    {"nothing known yet", {{ANSWER, 5}}, 0},
    {"list that is behind an answer", {{LIST_EMPTY, 1}, {ANSWER, 7}, {LIST, 6, 5}}, 7},
    {"list that lacks what an answer has", {{LIST_EMPTY, 1}, {ANSWER, 7}, {LIST_EMPTY, 6}}, 7},
    {"list in which it is gone", {{LIST_EMPTY, 1}, {ANSWER, 7}, {LIST_EMPTY, 8}}, 0},
    {"list that is newer", {{LIST_EMPTY, 1}, {EVENT, 5}, {LIST, 9, 8}}, 8},
};

static char told[64];

static void on_child(void *ctx, const char *owner_kind, const char *namespace_name,
                     const char *owner_name)
{
    (void)ctx;
    snprintf(told, sizeof told, "%s %s/%s", owner_kind, namespace_name, owner_name);
}

static cJSON *pod(int rev, bool is_labelled)
{
    SCOPED_FREE char *text =
        xasprintf("{\"metadata\":{\"name\":\"a\",\"namespace\":\"ns\",\"resourceVersion\":\"%d\","
                  "\"labels\":{%s},"
                  "\"managedFields\":[{}],\"ownerReferences\":[{\"apiVersion\":\"agents.x-k8s.io/"
                  "v1beta1\",\"kind\":"
                  "\"Sandbox\",\"name\":\"s\",\"controller\":true}]},\"spec\":{\"nodeName\":\"n\","
                  "\"containers\":[]},"
                  "\"status\":{\"phase\":\"Running\",\"hostIP\":\"x\"}}",
                  rev, is_labelled ? "\"agents.x-k8s.io/sandbox-name-hash\":\"h\"" : "");
    cJSON *tree = NULL;
    json_parse_str(text, &tree, NULL);
    return tree;
}

static void happen(struct child_cache *c, const struct happening *h)
{
    SCOPED(json_free_p)
    cJSON *object = pod(h->step == LIST ? h->listed_at : h->rev, h->step != UNLABELLED_ANSWER);
    SCOPED_FREE char *version = xasprintf("%d", h->rev);
    const cJSON *const list[] = {object};
    switch (h->step) {
    case EVENT:
    case GONE:
        child_cache_event(c, object, h->step == GONE);
        return;
    case ANSWER:
    case UNLABELLED_ANSWER:
        child_cache_answer(c, object);
        return;
    case LIST:
    case LIST_EMPTY:
        child_cache_replace(c, list, h->step == LIST, version);
        return;
    }
}

START_TEST(test_order)
{
    struct child_cache *c = child_cache_new(CHILD_POD, on_child, NULL);
    for (const struct happening *h = rows[_i].script; h->rev; h++)
        happen(c, h);
    SCOPED(json_free_p) cJSON *got = child_cache_get(c, "ns", "a");
    SCOPED(json_free_p) cJSON *labelled = child_cache_list(c, "ns", "h");
    SCOPED_FREE char *want = rows[_i].rev ? xasprintf("%d", rows[_i].rev) : NULL;
    const char *rev = json_str(got, "metadata.resourceVersion");
    ck_assert_msg(str_equal(rev, want), "%s: %s", rows[_i].what, rev ? rev : "absent");
    ck_assert_msg(json_len(labelled) == (want ? 1 : 0), "%s: by label", rows[_i].what);
    child_cache_free(c);
}
END_TEST

/* S-t134, M-t001: what nobody reads is not kept. */
START_TEST(test_content)
{
    struct child_cache *c = child_cache_new(CHILD_POD, on_child, NULL);
    ck_assert(!child_cache_is_synced(c));
    happen(c, &(struct happening){LIST, 5, 5});
    ck_assert(child_cache_is_synced(c));
    ck_assert_str_eq(told, "Sandbox ns/s");
    SCOPED(json_free_p) cJSON *got = child_cache_get(c, "ns", "a");
    ck_assert_str_eq(json_str(got, "spec.nodeName"), "n");
    ck_assert_str_eq(json_str(got, "status.phase"), "Running");
    ck_assert(!json_at(got, "spec.containers") && !json_at(got, "status.hostIP"));
    ck_assert(!json_at(got, "metadata.managedFields"));
    told[0] = '\0';
    happen(c, &(struct happening){LIST_EMPTY, 9});
    ck_assert_str_eq(told, "Sandbox ns/s"); /* it learns that its Pod is gone */
    child_cache_free(c);
}
END_TEST

/* Of containers only those that are in trouble, and of those only what is said of them. */
START_TEST(test_troubled_containers)
{
    struct child_cache *c = child_cache_new(CHILD_POD, on_child, NULL);
    SCOPED(json_free_p) cJSON *whole = pod(5, true), *statuses = NULL;
    ck_assert_int_eq(
        json_parse_str(
            "[{\"name\":\"a\",\"state\":{\"running\":{}}},{\"name\":\"b\",\"image\":\"i\","
            "\"restartCount\":2,\"state\":{\"terminated\":{\"exitCode\":1,\"containerID\":"
            "\"x\"}}}]",
            &statuses, NULL),
        0);
    json_set(json_get(whole, "status"), "containerStatuses", json_copy(statuses));
    child_cache_event(c, whole, false);
    SCOPED(json_free_p) cJSON *kept = child_cache_get(c, "ns", "a");
    SCOPED_FREE char *text = json_to_str(json_at(kept, "status.containerStatuses"));
    ck_assert_str_eq(text, "[{\"name\":\"b\",\"restartCount\":2,\"state\":{\"terminated\":{"
                           "\"exitCode\":1}}}]");
    ck_assert_ptr_null(json_at(kept, "status.initContainerStatuses"));
    child_cache_free(c);
}
END_TEST

/* S-t136: a patch is the same, whether it is made from the Pod or from what is kept of it. */
START_TEST(test_patch_from_what_is_kept)
{
    SCOPED(json_free_p) cJSON *sandbox = NULL, *whole = pod(5, true);
    ck_assert_int_eq(json_parse_str("{\"metadata\":{\"name\":\"a\",\"uid\":\"u\"},\"spec\":{"
                                    "\"podTemplate\":{\"metadata\":{\"labels\":{\"x\":\"y\"},"
                                    "\"annotations\":{\"n\":\"v\"}},\"spec\":{}}}}",
                                    &sandbox, NULL),
                     0);
    struct child_cache *c = child_cache_new(CHILD_POD, on_child, NULL);
    child_cache_event(c, whole, false);
    SCOPED(json_free_p) cJSON *kept = child_cache_get(c, "ns", "a");
    for (int adopt = 0; adopt <= 1; adopt++) {
        SCOPED(json_free_p) cJSON *from_whole = pod_patch(sandbox, whole, adopt);
        SCOPED(json_free_p) cJSON *from_kept = pod_patch(sandbox, kept, adopt);
        SCOPED_FREE char *a = json_to_str(from_whole);
        SCOPED_FREE char *b = json_to_str(from_kept);
        ck_assert_str_eq(a, b);
        ck_assert_str_eq(meta_label(from_kept, "x"), "y");
    }
    child_cache_free(c);
}
END_TEST

static const struct {
    const char *name, *owner, *told;
} policies[] = {
    {"x-network-policy",
     "{\"apiVersion\":\"extensions.agents.x-k8s.io/"
     "v1beta1\",\"kind\":\"SandboxTemplate\",\"name\":\"t\","
     "\"controller\":true}",
     "SandboxTemplate ns/t"},
    {"t-network-policy",
     "{\"apiVersion\":\"v1\",\"kind\":\"Other\",\"name\":\"o\",\"controller\":true}",
     "SandboxTemplate ns/t"},
    {"other", "{\"apiVersion\":\"v1\",\"kind\":\"Other\",\"name\":\"o\",\"controller\":true}", ""},
};

/* A template also looks when the policy that stands in its way goes. */
START_TEST(test_policy_owner)
{
    struct child_cache *c = child_cache_new(CHILD_NETPOL, on_child, NULL);
    SCOPED_FREE char *text =
        xasprintf("{\"metadata\":{\"name\":\"%s\",\"namespace\":\"ns\",\"resourceVersion\":\"5\","
                  "\"ownerReferences\":[%s]},\"spec\":{\"podSelector\":{}}}",
                  policies[_i].name, policies[_i].owner);
    cJSON *policy = NULL;
    json_parse_str(text, &policy, NULL);
    told[0] = '\0';
    child_cache_event(c, policy, false);
    ck_assert_str_eq(told, policies[_i].told);
    SCOPED(json_free_p) cJSON *got = child_cache_get(c, "ns", policies[_i].name);
    ck_assert(json_at(got, "spec.podSelector") != NULL);
    json_free(policy);
    child_cache_free(c);
}
END_TEST

/* a volume claim that goes wakes its Sandbox, which makes it anew. */
START_TEST(test_volume_claim_goes)
{
    struct child_cache *c = child_cache_new(CHILD_PVC, on_child, NULL);
    SCOPED(json_free_p) cJSON *claim = pod(5, true);
    child_cache_event(c, claim, false);
    told[0] = '\0';
    child_cache_event(c, claim, true);
    ck_assert_str_eq(told, "Sandbox ns/s");
    ck_assert_ptr_null(child_cache_get(c, "ns", "a"));
    child_cache_free(c);
}
END_TEST

SUITE(child_cache)
{
    LOOP("order", test_order, 0, ARRAY_LEN(rows));
    TESTS("content", test_content, test_troubled_containers, test_patch_from_what_is_kept,
          test_volume_claim_goes);
    LOOP("policies", test_policy_owner, 0, ARRAY_LEN(policies));
}
