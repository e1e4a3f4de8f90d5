/* Decisions about claims as data. Names like C-t022 are those of the contract's checklist. */
#include "reconcile/claim.h"

#include "apiserver/base/json.h"
#include "apiserver/base/mem.h"
#include "reconcile/child.h"
#include "reconcile/claim_bind.h"
#include "reconcile/condition.h"
#include "reconcile/keys.h"
#include "tests/lib/suite.h"

#define NOW_MS INT64_C(1767225600000) /* 2026-01-01T00:00:00Z */
#define NOW_S (NOW_MS / 1000)

static const char *const domains[] = {"sandbox.users.io", NULL};
static const struct claim_settings settings = {.label_domains = domains};

/* JSON with ' for ". */
static cJSON *tree(const char *text)
{
    SCOPED_FREE char *json = xstrdup(text);
    cJSON *t = NULL;
    SCOPED(err_fini) struct err err = {0};
    for (char *p = json; *p; p++)
        *p = *p == '\'' ? '"' : *p;
    ck_assert_msg(json_parse_str(json, &t, &err) == 0, "%s: %s", err_text(&err), json);
    return t;
}

/* metadata and spec: further members, beginning with a comma, or "". */
static cJSON *claim_with(const char *metadata, const char *spec, const char *status)
{
    SCOPED_FREE char *text = xasprintf(
        "{'apiVersion':'extensions.agents.x-k8s.io/v1beta1','kind':'SandboxClaim','metadata':{"
        "'name':'c','namespace':'ns','uid':'claim-uid','generation':3%s},'spec':{'warmPoolRef':{"
        "'name':'p'}%s}%s}",
        metadata, spec, status);
    return tree(text);
}

static cJSON *template_with(const char *pod_metadata, const char *pod_spec, const char *spec)
{
    SCOPED_FREE char *text = xasprintf(
        "{'apiVersion':'extensions.agents.x-k8s.io/v1beta1','kind':'SandboxTemplate','metadata':{"
        "'name':'t','namespace':'ns'},'spec':{'podTemplate':{'metadata':{%s},'spec':{%s}}%s}}",
        pod_metadata, pod_spec, spec);
    return tree(text);
}

#define POOL_OWNER                                                                                 \
    "'ownerReferences':[{'apiVersion':'extensions.agents.x-k8s.io/v1beta1','kind':"                \
    "'SandboxWarmPool','name':'p','uid':'pool-uid','controller':true}]"
#define POOL_LABELS                                                                                \
    "'agents.x-k8s.io/warm-pool-sandbox':'aaaaaaaa',"                                              \
    "'agents.x-k8s.io/sandbox-template-ref-hash':'f10c3da3'"

static cJSON *sandbox_with(const char *metadata, const char *status)
{
    SCOPED_FREE char *text = xasprintf(
        "{'apiVersion':'agents.x-k8s.io/v1beta1','kind':'Sandbox','metadata':{'name':'p-1',"
        "'namespace':'ns','uid':'sandbox-uid'%s},'spec':{'podTemplate':{'metadata':{'labels':{"
        "'agents.x-k8s.io/warm-pool-sandbox':'aaaaaaaa','app':'x'},'annotations':{"
        "'cluster-autoscaler.kubernetes.io/safe-to-evict':'true'}},'spec':{'containers':[{'name':"
        "'c','image':'i'}]}}}%s}",
        metadata, status);
    return tree(text);
}

static cJSON *member(void)
{
    return sandbox_with(
        ",'labels':{" POOL_LABELS ",'agents.x-k8s.io/sandbox-template-hash':'h',"
        "'agents.x-k8s.io/sandbox-pod-template-hash':'h',"
        "'agents.x-k8s.io/created-by':'controller'},"
        "'annotations':{'agents.x-k8s.io/pod-name':'other','keep':'me'}," POOL_OWNER,
        "");
}

#define OWN                                                                                        \
    ",'ownerReferences':[{'apiVersion':'extensions.agents.x-k8s.io/v1beta1','kind':"               \
    "'SandboxClaim','name':'c','uid':'claim-uid','controller':true}]"

/* ---- C5 ---- */

static const struct {
    const char *id, *map, *key, *value;
    const char *text; /* behind `failed to validate label "KEY": `, its beginning; NULL = allowed */
} metadata_rows[] = {
    {"C-t021", "labels", "sandbox.users.io/a", "1", NULL},
    {"C-t021", "labels", "team.sandbox.users.io/a", "", NULL},
    {"C-t021", "annotations", "plain", "x", NULL},
    {"C-t021", "annotations", "example.com/y", "any value at all", NULL},
    {"C-t022", "labels", "a", "1",
     "label \"a\" must have a domain prefix (e.g. 'sandbox.users.io/my-label') to prevent opting "
     "into unintended policy domains"},
    {"C-t023", "labels", "sandbox.users.io/a",
     "vvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvv",
     "invalid label value: \"vvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvv\" "
     "does not match allowed pattern: must be no more than 63 bytes"},
    {"C-t024", "labels", "sandbox.users.io/a", "not ok",
     "invalid label value: \"not ok\" does not match allowed pattern: a valid label must be an "
     "empty string or consist of"},
    {"C-t025", "labels", "sandbox.users.io/a b", "1",
     "invalid label key: \"sandbox.users.io/a b\": name part must consist of alphanumeric"},
    {"C-t026", "labels", "agents.x-k8s.io/claim-uid", "1",
     "label domain \"agents.x-k8s.io\" is not in the allowlist"},
    {"C-t026", "labels", "Example.com/a", "1", "invalid label key: \"Example.com/a\": prefix part"},
    {"C-t026", "labels", "xsandbox.users.io/a", "1",
     "label domain \"xsandbox.users.io\" is not in the allowlist"},
    {"C-t026", "annotations", "x.k8s.io/a", "1",
     "restricted system domain: \"x.k8s.io/a\" is not allowed in AdditionalPodMetadata"},
    {"C-t026", "annotations", "xk8s.io/a", "1", NULL},
    {"C-t027", "annotations", "cluster-autoscaler.kubernetes.io/safe-to-evict", "false", NULL},
    {"C-t027", "labels", "cluster-autoscaler.kubernetes.io/safe-to-evict", "false",
     "label domain \"cluster-autoscaler.kubernetes.io\" is not in the allowlist"},
    {"C-t028", "labels", "App", "Sandbox-Router",
     "restricted system label value: \"App\"=\"Sandbox-Router\" is not allowed in "
     "AdditionalPodMetadata"},
    {"key", "annotations", "", "1",
     "invalid annotation key: \"\": name part must be non-empty; name part must consist of"},
    {"key", "annotations", "a/b/c", "1",
     "invalid annotation key: \"a/b/c\": a valid label key must consist of alphanumeric"},
};

START_TEST(test_metadata) /* IL-006, IL-007 */
{
    SCOPED(json_free_p) cJSON *claim = claim_with("", "", "");
    SCOPED(claim_error_fini) struct claim_error e = {0};
    cJSON *metadata = json_ensure_object(json_get(claim, "spec"), "additionalPodMetadata");
    json_set_str(json_ensure_object(metadata, metadata_rows[_i].map), metadata_rows[_i].key,
                 metadata_rows[_i].value);
    int rc = claim_check_metadata(claim, &settings, &e);
    ck_assert_msg(rc == (metadata_rows[_i].text ? -1 : 0), "%s: %s", metadata_rows[_i].id, e.text);
    if (rc == 0)
        return;
    bool is_label = str_equal(metadata_rows[_i].map, "labels");
    SCOPED_FREE char *expected =
        xasprintf("invalid additionalPodMetadata: failed to validate %s \"%s\": %s",
                  is_label ? "label" : "annotation", metadata_rows[_i].key, metadata_rows[_i].text);
    ck_assert_msg(str_has_prefix(e.text, expected), "%s: %s", metadata_rows[_i].id, e.text);
    ck_assert_int_eq(e.failure, CLAIM_BAD_METADATA);
    ck_assert(claim_error_is_final(&e));
}
END_TEST

/* C-t029, M-t018; system domains stay closed whatever the file says (IL-006). */
static const struct {
    const char *text, *domains; /* joined by blanks */
} domain_rows[] = {
    {"", "sandbox.users.io"},
    {" \n,\r\n", "sandbox.users.io"},
    {"Example.COM", "example.com"},
    {"a.io,b.io\nc.io\r\n d.io \t", "a.io b.io c.io d.io"},
};

START_TEST(test_domains)
{
    char **list = claim_domains_parse(domain_rows[_i].text);
    SCOPED(buf_fini) struct buf joined = {0};
    for (size_t i = 0; list[i]; i++)
        buf_printf(&joined, "%s%s", i ? " " : "", list[i]);
    ck_assert_str_eq(buf_cstr(&joined), domain_rows[_i].domains);
    strv_free(list);
}
END_TEST

/* IL-006: told at the POST, with what is allowed and where that is set. */
START_TEST(test_foreseen)
{
    static const char *const custom[] = {"example.com", "other.io", NULL};
    const struct claim_settings own = {.label_domains = custom};
    SCOPED(json_free_p)
    cJSON *good = claim_with("", ",'additionalPodMetadata':{'labels':{'example.com/a':'1'}}", "");
    SCOPED(json_free_p)
    cJSON *bad = claim_with("", ",'additionalPodMetadata':{'labels':{'team.io/a':'1'}}", "");
    SCOPED_FREE char *text = claim_foresee(bad, &own);
    ck_assert_ptr_null(claim_foresee(good, &own));
    ck_assert_str_eq(text, "this claim will be refused: invalid additionalPodMetadata: failed to "
                           "validate label \"team.io/a\": label domain \"team.io\" is not in the "
                           "allowlist (labels may have the domains of "
                           "--allowed-label-domains-file: example.com other.io)");
}
END_TEST

START_TEST(test_custom_domain)
{
    static const char *const custom[] = {"example.com", "agents.x-k8s.io", NULL};
    const struct claim_settings own = {.label_domains = custom};
    SCOPED(json_free_p)
    cJSON *good = claim_with("", ",'additionalPodMetadata':{'labels':{'x.example.com/a':'1'}}", "");
    SCOPED(json_free_p)
    cJSON *closed =
        claim_with("", ",'additionalPodMetadata':{'labels':{'agents.x-k8s.io/a':'1'}}", "");
    SCOPED(claim_error_fini) struct claim_error e = {0};
    ck_assert_int_eq(claim_check_metadata(good, &own, &e), 0);
    ck_assert_int_eq(claim_check_metadata(closed, &own, &e), -1);
}
END_TEST

/* ---- C3 ---- */

#define FINISHED(at)                                                                               \
    ",'status':{'conditions':[{'type':'Finished','status':'True','lastTransitionTime':'" at "'}]}"

static const struct {
    const char *id, *lifecycle, *status;
    int64_t left_ms;
} time_rows[] = {
    {"C-t074", "", "", INT64_MAX},
    {"C-t074", ",'lifecycle':{'shutdownPolicy':'Delete'}", "", INT64_MAX},
    {"C-t075", ",'lifecycle':{'ttlSecondsAfterFinished':60}", "", INT64_MAX},
    {"C-t075", ",'lifecycle':{'ttlSecondsAfterFinished':60}", FINISHED("2025-12-31T23:59:30Z"),
     30000},
    {"C-t076", ",'lifecycle':{'ttlSecondsAfterFinished':0}", FINISHED("2026-01-01T00:00:00Z"), 0},
    {"C-t077", ",'lifecycle':{'ttlSecondsAfterFinished':60,'shutdownTime':'2026-01-01T00:00:05Z'}",
     FINISHED("2025-12-31T23:59:30Z"), 5000},
    {"C-t078", ",'lifecycle':{'ttlSecondsAfterFinished':60,'shutdownTime':'2026-01-01T01:00:00Z'}",
     FINISHED("2025-12-31T23:59:30Z"), 30000},
    {"offset", ",'lifecycle':{'shutdownTime':'2026-01-01T02:00:00.5+02:00'}", "", 500},
    {"past", ",'lifecycle':{'shutdownTime':'2025-12-31T23:59:59Z'}", "", -1000},
};

START_TEST(test_time_left)
{
    SCOPED(json_free_p)
    cJSON *claim = claim_with("", time_rows[_i].lifecycle, time_rows[_i].status);
    ck_assert_msg(claim_time_left_ms(claim, NOW_MS) == time_rows[_i].left_ms, "%s",
                  time_rows[_i].id);
}
END_TEST

/* ---- C9, C10 ---- */

static const struct {
    const char *id, *metadata, *error;
} candidate_rows[] = {
    {"C-t085", ",'labels':{" POOL_LABELS "}," POOL_OWNER, NULL},
    {"IL-021",
     ",'labels':{" POOL_LABELS
     "},'ownerReferences':[{'apiVersion':'extensions.agents.x-k8s.io/v1alpha1','kind':"
     "'SandboxWarmPool','name':'p','uid':'u','controller':true}]",
     NULL},
    {"C-t087",
     ",'labels':{" POOL_LABELS
     "},'ownerReferences':[{'apiVersion':'apps/v1','kind':'ReplicaSet','name':'p','uid':'u',"
     "'controller':true}]",
     "sandbox ns/p-1 is not managed by warm pool. Controller: ReplicaSet/p"},
    {"C-t088", ",'deletionTimestamp':'2026-01-01T00:00:00Z','labels':{" POOL_LABELS "}," POOL_OWNER,
     "sandbox is deleted"},
    {"C-t100", ",'labels':{" POOL_LABELS "}",
     "sandbox ns/p-1 is unowned and cannot be safely adopted"},
    {"C-t118",
     ",'labels':{" POOL_LABELS
     "},'ownerReferences':[{'apiVersion':'extensions.agents.x-k8s.io/v1beta1','kind':"
     "'SandboxWarmPool','name':'q','uid':'u','controller':true}]",
     "incorrect warm pool, expected p"},
    {"C-t119", ",'labels':{'agents.x-k8s.io/warm-pool-sandbox':'a'}," POOL_OWNER,
     "sandbox is missing the sandbox template ref hash label"},
    {"C-t119", "," POOL_OWNER, "sandbox is missing the warm pool sandbox label"},
};

START_TEST(test_candidate)
{
    SCOPED(json_free_p) cJSON *claim = claim_with("", "", "");
    SCOPED(json_free_p) cJSON *sandbox = sandbox_with(candidate_rows[_i].metadata, "");
    SCOPED_FREE char *error = claim_candidate_error(claim, sandbox);
    ck_assert_msg(str_equal(error, candidate_rows[_i].error), "%s: %s", candidate_rows[_i].id,
                  error);
}
END_TEST

/* C-t117 */
START_TEST(test_other_namespace)
{
    SCOPED(json_free_p) cJSON *claim = claim_with("", "", "");
    SCOPED(json_free_p) cJSON *sandbox = member();
    json_set_str(json_get(sandbox, "metadata"), "namespace", "other");
    SCOPED_FREE char *error = claim_candidate_error(claim, sandbox);
    ck_assert_str_eq(error, "cross-namespace adoption forbidden: sandbox is in \"other\", claim is "
                            "in \"ns\"");
}
END_TEST

/* ---- C6: the assignment ---- */

START_TEST(test_assignment)
{
    bool from_label;
    SCOPED(json_free_p)
    cJSON *both = claim_with(",'labels':{'agents.x-k8s.io/sandbox-name':'l'},'annotations':{"
                             "'agents.x-k8s.io/sandbox-name':'a'}",
                             "", "");
    ck_assert_str_eq(claim_assignment(both, &from_label), "a"); /* C-t186 */
    ck_assert(!from_label);
    claim_clear_assignment(both);
    ck_assert_str_eq(claim_assignment(both, &from_label), "l");
    ck_assert(from_label);
    claim_set_assignment(both, "l"); /* C-t135 */
    ck_assert_str_eq(claim_assignment(both, &from_label), "l");
    ck_assert(!from_label);
    claim_clear_assignment(both);
    ck_assert_ptr_null(claim_assignment(both, &from_label));
    ck_assert_ptr_null(json_at(both, "metadata.labels"));
    ck_assert_ptr_null(json_at(both, "metadata.annotations"));
}
END_TEST

/* ---- C12: adoption ---- */

START_TEST(test_adopt)
{
    SCOPED(json_free_p)
    cJSON *claim = claim_with(",'labels':{'agents.x-k8s.io/created-by':'go-client'},'annotations':{"
                              "'opentelemetry.io/trace-context':'{}'}",
                              ",'additionalPodMetadata':{'labels':{'sandbox.users.io/a':'1'}}", "");
    SCOPED(json_free_p)
    cJSON *template =
        template_with("'labels':{'app':'x'},'annotations':{'n':'1'}", "'containers':[]", "");
    SCOPED(json_free_p) cJSON *old = member(), *new = NULL;
    SCOPED(claim_error_fini) struct claim_error e = {0};
    ck_assert_int_eq(claim_adopt(claim, template, old, &new, &e), 0);
    ck_assert(claim_controls(claim, new));
    ck_assert_uint_eq(json_len(json_at(new, "metadata.ownerReferences")), 1);
    SCOPED(json_free_p)
    cJSON *labels =
        tree("{'agents.x-k8s.io/sandbox-template-ref-hash':'f10c3da3',"
             "'agents.x-k8s.io/created-by':'go-client','agents.x-k8s.io/launch-type':'warm',"
             "'agents.x-k8s.io/claim-uid':'claim-uid'}"); /* C-t101 */
    SCOPED(json_free_p)
    cJSON *annotations =
        tree("{'agents.x-k8s.io/pod-name':'p-1','keep':'me','opentelemetry.io/trace-context':'{}'}"
             ""); /* C-t014, C-t094, C-t095 */
    SCOPED(json_free_p)
    cJSON *pod =
        tree("{'labels':{'app':'x','agents.x-k8s.io/claim-uid':'claim-uid',"
             "'agents.x-k8s.io/created-by':'go-client',"
             "'agents.x-k8s.io/sandbox-template-ref-hash':'f10c3da3','sandbox.users.io/a':'1'},"
             "'annotations':{'n':'1'}}"); /* C-t099 */
    ck_assert(json_equal(json_at(new, "metadata.labels"), labels));
    ck_assert(json_equal(json_at(new, "metadata.annotations"), annotations));
    ck_assert(json_equal(json_at(new, "spec.podTemplate.metadata"), pod));
    ck_assert(
        json_equal(json_at(new, "spec.podTemplate.spec"), json_at(old, "spec.podTemplate.spec")));
}
END_TEST

static const struct {
    const char *id, *template_annotations, *claim_annotations;
    bool has_template;
    const char *pods; /* value of safe-to-evict, NULL = absent */
} evict_rows[] = {
    {"C-t096", "'cluster-autoscaler.kubernetes.io/safe-to-evict':'false'", "", true, "false"},
    {"C-t098", "", "'cluster-autoscaler.kubernetes.io/safe-to-evict':'true'", true, "true"},
    {"C-t099", "", "", true, NULL},
    {"C-t099", "", "", false, NULL},
};

START_TEST(test_safe_to_evict)
{
    SCOPED_FREE char *more = xasprintf(",'additionalPodMetadata':{'annotations':{%s}}",
                                       evict_rows[_i].claim_annotations);
    SCOPED_FREE char *annotations =
        xasprintf("'annotations':{%s}", evict_rows[_i].template_annotations);
    SCOPED(json_free_p) cJSON *claim = claim_with("", more, "");
    SCOPED(json_free_p) cJSON *template = template_with(annotations, "", "");
    SCOPED(json_free_p) cJSON *old = member(), *new = NULL;
    SCOPED(claim_error_fini) struct claim_error e = {0};
    ck_assert_int_eq(
        claim_adopt(claim, evict_rows[_i].has_template ? template : NULL, old, &new, &e), 0);
    const cJSON *is =
        json_get(json_at(new, "spec.podTemplate.metadata.annotations"), ANNOTATION_SAFE_TO_EVICT);
    ck_assert_msg(str_equal(is ? is->valuestring : NULL, evict_rows[_i].pods), "%s",
                  evict_rows[_i].id);
}
END_TEST

/* C-t097, C-t102 */
START_TEST(test_adopt_without_template)
{
    SCOPED(json_free_p) cJSON *claim = claim_with("", "", "");
    SCOPED(json_free_p) cJSON *old = member(), *new = NULL;
    SCOPED(claim_error_fini) struct claim_error e = {0};
    json_set_str(json_at(old, "spec.podTemplate.metadata.annotations"), ANNOTATION_SAFE_TO_EVICT,
                 "false");
    ck_assert_int_eq(claim_adopt(claim, NULL, old, &new, &e), 0);
    const cJSON *metadata = json_at(new, "spec.podTemplate.metadata");
    ck_assert_str_eq(
        json_get(json_get(metadata, "annotations"), ANNOTATION_SAFE_TO_EVICT)->valuestring,
        "false");
    ck_assert_ptr_nonnull(json_get(json_get(metadata, "labels"), LABEL_WARM_POOL));
    ck_assert_ptr_nonnull(json_get(json_get(metadata, "labels"), LABEL_CLAIM_UID));
    ck_assert_ptr_null(meta_label(new, LABEL_CREATED_BY));
}
END_TEST

/* ---- staleness: what the pool's strategy and the template say ---- */

static const struct {
    const char *id, *strategy;
    bool is_current, has_template, suits;
} stale_rows[] = {
    {"C-t103", "Recreate", false, true, false},
    {"C-t104", "Recreate", true, true, true},
    /* C-t106 and C-t107 as released later: a stale member is never taken. */
    {"C-t106", "OnReplenish", false, true, false},
    {"C-t107", NULL, false, true, false},
    {"OnReplenish", "OnReplenish", true, true, true},
    {"C-t108", "Recreate", true, false, false},
    {"no template", "OnReplenish", true, false, true},
};

START_TEST(test_staleness)
{
    SCOPED(json_free_p) cJSON *pool = tree("{'metadata':{'name':'p'},'spec':{}}");
    if (stale_rows[_i].strategy)
        json_set_str(json_ensure_object(json_get(pool, "spec"), "updateStrategy"), "type",
                     stale_rows[_i].strategy);
    SCOPED(json_free_p)
    cJSON *template = template_with("'labels':{'app':'other'}",
                                    "'automountServiceAccountToken':false,'dnsPolicy':'Default',"
                                    "'containers':[{'name':'c','image':'i'}]",
                                    "");
    SCOPED(json_free_p) cJSON *is = member(); /* C-t105: without a known hash, by content */
    cJSON *pod = json_at(is, "spec.podTemplate.spec");
    json_set_bool(pod, "automountServiceAccountToken", false);
    json_set_str(pod, "dnsPolicy", stale_rows[_i].is_current ? "Default" : "None");
    const char *why = claim_staleness(pool, stale_rows[_i].has_template ? template : NULL, is);
    ck_assert_msg((why == NULL) == stale_rows[_i].suits, "%s", stale_rows[_i].id);
}
END_TEST

/* ---- C15 ---- */

START_TEST(test_maintain)
{
    bool changes;
    SCOPED(json_free_p) cJSON *claim = claim_with("", "", "");
    SCOPED(json_free_p) cJSON *template = template_with("'labels':{'app':'y'}", "", "");
    SCOPED(json_free_p) cJSON *old = member(), *is = NULL;
    SCOPED(claim_error_fini) struct claim_error e = {0};
    claim_adopt(claim, template, old, &is, &e);
    ck_assert_int_eq(claim_maintain(claim, template, LAUNCH_WARM, is, &changes, &e), 0);
    ck_assert(!changes);
    json_set_str(json_at(template, "metadata"), "name", "u"); /* the pool has another template */
    json_set_str(json_at(template, "spec.podTemplate.metadata.labels"), "app", "z");
    ck_assert_int_eq(claim_maintain(claim, template, LAUNCH_WARM, is, &changes, &e), 0);
    ck_assert(changes);
    ck_assert_str_eq(json_get(json_at(is, "spec.podTemplate.metadata.labels"), "app")->valuestring,
                     "z");
    ck_assert_str_ne(meta_label(is, LABEL_TEMPLATE_REF_HASH), "f10c3da3");
    ck_assert_int_eq(claim_maintain(claim, template, LAUNCH_WARM, is, &changes, &e), 0);
    ck_assert(!changes);
}
END_TEST

/* C-t165, C-t166, C-t167 */
static const struct {
    const char *is, *wanted, *becomes;
} launch_rows[] = {{"warm", "cold", "warm"},
                   {"cold", "warm", "cold"},
                   {NULL, "cold", "cold"},
                   {NULL, "warm", "warm"}};

START_TEST(test_launch_type)
{
    bool changes;
    SCOPED(json_free_p) cJSON *claim = claim_with("", "", "");
    SCOPED(json_free_p) cJSON *sandbox = sandbox_with(OWN, "");
    SCOPED(claim_error_fini) struct claim_error e = {0};
    if (launch_rows[_i].is)
        json_set_str(json_ensure_object(json_get(sandbox, "metadata"), "labels"), LABEL_LAUNCH_TYPE,
                     launch_rows[_i].is);
    ck_assert_int_eq(claim_maintain(claim, NULL, launch_rows[_i].wanted, sandbox, &changes, &e), 0);
    ck_assert_str_eq(meta_label(sandbox, LABEL_LAUNCH_TYPE), launch_rows[_i].becomes);
    ck_assert(changes == !launch_rows[_i].is);
}
END_TEST

START_TEST(test_metadata_conflict)
{
    SCOPED(json_free_p)
    cJSON *claim = claim_with("", ",'additionalPodMetadata':{'annotations':{'n':'2'}}", "");
    SCOPED(json_free_p) cJSON *template = template_with("'annotations':{'n':'1'}", "", "");
    SCOPED(json_free_p) cJSON *sandbox = NULL;
    SCOPED(claim_error_fini) struct claim_error e = {0};
    ck_assert_int_eq(claim_sandbox(claim, template, &sandbox, &e), -1);
    ck_assert_str_eq(e.text, "metadata override conflict: annotation \"n\" is defined in template "
                             "with value \"1\", but claim requests \"2\"");
    ck_assert_int_eq(e.failure, CLAIM_OTHER);
}
END_TEST

/* ---- C16 ---- */

START_TEST(test_cold)
{
    SCOPED(json_free_p)
    cJSON *claim = claim_with(",'labels':{'agents.x-k8s.io/created-by':'x'}", "", "");
    SCOPED(json_free_p)
    cJSON *template = template_with(
        "'labels':{'app':'x'}",
        "'automountServiceAccountToken':true,'containers':[{'name':'c','image':'i'}]",
        ",'service':true,'volumeClaimTemplates':[{'metadata':{'name':'d'},'spec':{}}]");
    SCOPED(json_free_p) cJSON *sandbox = NULL;
    SCOPED(claim_error_fini) struct claim_error e = {0};
    ck_assert_int_eq(claim_sandbox(claim, template, &sandbox, &e), 0);
    ck_assert_str_eq(meta_name(sandbox), "c");
    ck_assert(claim_controls(claim, sandbox));
    ck_assert_str_eq(meta_label(sandbox, LABEL_LAUNCH_TYPE), "cold");
    ck_assert_str_eq(meta_label(sandbox, LABEL_CREATED_BY), "x");
    ck_assert_str_eq(meta_label(sandbox, LABEL_TEMPLATE_REF_HASH), "f10c3da3");
    ck_assert_str_eq(meta_annotation(sandbox, ANNOTATION_TEMPLATE_REF), "t");
    ck_assert(json_bool_or(sandbox, "spec.service", false));
    ck_assert_uint_eq(json_len(json_at(sandbox, "spec.volumeClaimTemplates")), 1); /* C-t016 */
    ck_assert(json_bool_or(sandbox, "spec.podTemplate.spec.automountServiceAccountToken",
                           false));                                                 /* C-t002 */
    ck_assert_str_eq(json_str(sandbox, "spec.podTemplate.spec.dnsPolicy"), "None"); /* C-t010 */
}
END_TEST

/* ---- C17 ---- */

#define VOLUME(n) "{'metadata':{'name':'" n "'},'spec':{'from':'template'}}"
#define OWN_VOLUME(n) "{'metadata':{'name':'" n "'},'spec':{'from':'claim'}}"

static const struct {
    const char *id, *policy, *given, *wanted;
    const char *result; /* NAME:FROM ... */
    const char *error;
    enum claim_failure failure;
} volume_rows[] = {
    {"C-t044", "Overrides", VOLUME("d") "," VOLUME("l"), OWN_VOLUME("n") "," OWN_VOLUME("l"),
     "d:template l:claim n:claim ", NULL, CLAIM_FINE},
    {"C-t045", "Allowed", VOLUME("d"), OWN_VOLUME("n"), "d:template n:claim ", NULL, CLAIM_FINE},
    {"C-t046", "Bogus", VOLUME("d"), "", "d:template ", NULL, CLAIM_FINE},
    {"C-t047", "Disallowed", VOLUME("d"), OWN_VOLUME("n"), NULL,
     "failed to merge volume claim templates: volume claim templates are disallowed by the "
     "template",
     CLAIM_BAD_VOLUMES},
    {"C-t048", "Allowed", VOLUME("d"), OWN_VOLUME("d"), NULL,
     "failed to merge volume claim templates: overriding volume claim templates is forbidden by "
     "the "
     "template: cannot override template volume \"d\"",
     CLAIM_BAD_VOLUMES},
    {"C-t049", "", VOLUME("d"), OWN_VOLUME("n"), NULL,
     "failed to merge volume claim templates: volume claim templates are disallowed by the "
     "template",
     CLAIM_BAD_VOLUMES},
    {"C-t050", "Overrides", "", "{'metadata':{},'spec':{}}", NULL,
     "failed to merge volume claim templates: claim: invalid volume claim templates: name at index "
     "0 is empty",
     CLAIM_BAD_VOLUMES},
    {"C-t051", "Overrides", "", OWN_VOLUME("n") "," OWN_VOLUME("n"), NULL,
     "failed to merge volume claim templates: claim: invalid volume claim templates: duplicate "
     "name "
     "\"n\"",
     CLAIM_BAD_VOLUMES},
    {"C-t052", "Overrides", "{'metadata':{},'spec':{}}", OWN_VOLUME("n"), NULL,
     "failed to merge volume claim templates: template: invalid volume claim templates: name at "
     "index 0 is empty",
     CLAIM_BAD_VOLUMES},
    {"C-t053", "Disallowed", VOLUME("n") "," VOLUME("n"), "", NULL,
     "invalid volume claim templates in template: invalid volume claim templates: duplicate name "
     "\"n\"",
     CLAIM_BAD_VOLUMES},
    {"C-t184", "Bogus", "", OWN_VOLUME("n"), NULL,
     "failed to merge volume claim templates: unknown volume claim templates policy \"Bogus\"",
     CLAIM_OTHER},
};

START_TEST(test_volumes) /* IL-065 */
{
    SCOPED_FREE char *own = xasprintf(",'volumeClaimTemplates':[%s]", volume_rows[_i].wanted);
    SCOPED_FREE char *given =
        xasprintf(",'volumeClaimTemplatesPolicy':'%s','volumeClaimTemplates':[%s]",
                  volume_rows[_i].policy, volume_rows[_i].given);
    SCOPED(json_free_p) cJSON *claim = claim_with("", own, "");
    SCOPED(json_free_p) cJSON *template = template_with("", "", given);
    SCOPED(json_free_p) cJSON *sandbox = NULL;
    SCOPED(claim_error_fini) struct claim_error e = {0};
    int rc = claim_sandbox(claim, template, &sandbox, &e);
    ck_assert_msg(str_equal(e.text, volume_rows[_i].error), "%s: %s", volume_rows[_i].id, e.text);
    ck_assert_int_eq(e.failure, volume_rows[_i].failure);
    if (rc < 0)
        return;
    SCOPED(buf_fini) struct buf is = {0};
    const cJSON *v;
    cJSON_ArrayForEach(v, json_at(sandbox, "spec.volumeClaimTemplates"))
        buf_printf(&is, "%s:%s ", json_str(v, "metadata.name"), json_str(v, "spec.from"));
    ck_assert_msg(str_equal(buf_cstr(&is), volume_rows[_i].result), "%s: %s", volume_rows[_i].id,
                  buf_cstr(&is));
}
END_TEST

/* ---- C18 ---- */

#define ENV_PODS                                                                                   \
    "'containers':[{'name':'a','env':[{'name':'OLD','value':'0'}]},{'name':'b','envFrom':[{"       \
    "'configMapRef':{'name':'m'}}]}],'initContainers':[{'name':'i','env':[{'name':'OLD',"          \
    "'valueFrom':{'fieldRef':{'fieldPath':'x'}}}]}]"

static const struct {
    const char *id, *policy, *env;
    const char *result; /* of containers a, b and i: [NAME=VALUE ...] */
    const char *error;
    enum claim_failure failure;
} env_rows[] = {
    {"C-t030", "Overrides", "{'name':'N','value':'1'}", "[OLD=0 N=1 ][][OLD=? ]", NULL, CLAIM_FINE},
    {"C-t031", "Allowed", "{'name':'N','value':'1'},{'name':'M','value':''}",
     "[OLD=0 N=1 M=? ][][OLD=? ]", NULL, CLAIM_FINE},
    {"C-t033", "Allowed", "{'name':'OLD','value':'1'}", NULL,
     "environment variable override is not allowed by the template policy for variable \"OLD\"",
     CLAIM_OTHER},
    {"C-t033", "Allowed", "{'name':'N','value':'1'},{'name':'N','value':'2'}", NULL,
     "environment variable override is not allowed by the template policy for variable \"N\"",
     CLAIM_OTHER},
    {"C-t034", "Disallowed", "{'name':'OLD','value':'1'}", NULL,
     "environment variable injection rejected: environment variable injection is not allowed by "
     "the "
     "template policy",
     CLAIM_ENV_REFUSED},
    {"C-t035", "", "{'name':'N','value':'1'}", NULL,
     "environment variable injection rejected: environment variable injection is not allowed by "
     "the "
     "template policy",
     CLAIM_ENV_REFUSED},
    {"C-t036", "Allowed", "{'name':'N','value':'1','containerName':'b'}", NULL,
     "environment variable injection rejected: container \"b\" uses EnvFrom sources; Allowed "
     "policy "
     "cannot safely prevent overriding EnvFrom-provided variables",
     CLAIM_ENV_REFUSED},
    {"C-t038", "Allowed", "{'name':'N','value':'1','containerName':'a'}", "[OLD=0 N=1 ][][OLD=? ]",
     NULL, CLAIM_FINE},
    {"C-t039", "Allowed", "", "[OLD=0 ][][OLD=? ]", NULL, CLAIM_FINE},
    {"C-t040", "Overrides", "{'name':'OLD','value':'9'}", "[OLD=9 ][][OLD=? ]", NULL, CLAIM_FINE},
    {"C-t041", "Overrides", "{'name':'N','value':'1','containerName':'b'}",
     "[OLD=0 ][N=1 ][OLD=? ]", NULL, CLAIM_FINE},
    {"C-t042", "Allowed", "{'name':'N','value':'1','containerName':'z'}", NULL,
     "target container \"z\" not found in template for environment variable \"N\"", CLAIM_OTHER},
    {"C-t043", "Overrides", "{'name':'OLD','value':'8','containerName':'i'}", "[OLD=0 ][][OLD=8 ]",
     NULL, CLAIM_FINE},
    {"order", "Allowed",
     "{'name':'X','value':'1'},{'name':'Y','value':'2','containerName':'a'},{'name':'Z','value':"
     "'3','containerName':'i'}",
     "[OLD=0 Y=2 X=1 ][][OLD=? Z=3 ]", NULL, CLAIM_FINE},
};

static void print_env(const cJSON *container, struct buf *out)
{
    const cJSON *entry;
    buf_putc(out, '[');
    cJSON_ArrayForEach(entry, json_get(container, "env"))
        buf_printf(out, "%s=%s ", json_str(entry, "name"), json_str_or(entry, "value", "?"));
    buf_putc(out, ']');
}

START_TEST(test_env)
{
    SCOPED_FREE char *env = xasprintf(",'env':[%s]", env_rows[_i].env);
    SCOPED_FREE char *policy = xasprintf(",'envVarsInjectionPolicy':'%s'", env_rows[_i].policy);
    SCOPED(json_free_p) cJSON *claim = claim_with("", env, "");
    SCOPED(json_free_p) cJSON *template = template_with("", ENV_PODS, policy);
    SCOPED(json_free_p) cJSON *sandbox = NULL;
    SCOPED(claim_error_fini) struct claim_error e = {0};
    ck_assert(claim_is_cold_only(claim) == (*env_rows[_i].env != '\0')); /* C-t032 */
    int rc = claim_sandbox(claim, template, &sandbox, &e);
    ck_assert_msg(str_equal(e.text, env_rows[_i].error), "%s: %s", env_rows[_i].id, e.text);
    ck_assert_int_eq(e.failure, env_rows[_i].failure);
    if (rc < 0)
        return;
    SCOPED(buf_fini) struct buf is = {0};
    const cJSON *pod = json_at(sandbox, "spec.podTemplate.spec");
    print_env(json_get(pod, "containers")->child, &is);
    print_env(json_get(pod, "containers")->child->next, &is);
    print_env(json_get(pod, "initContainers")->child, &is);
    ck_assert_msg(str_equal(buf_cstr(&is), env_rows[_i].result), "%s: %s", env_rows[_i].id,
                  buf_cstr(&is));
}
END_TEST

/* C-t037: in a targeted init container too. */
/* Both lists can be as long as a body, and each pass merges them anew. */
START_TEST(test_many_variables)
{
    enum { MANY = 50000 };
    SCOPED(buf_fini) struct buf wanted = {0}, given = {0};
    buf_puts(&wanted, ",'env':[");
    buf_puts(&given, "'containers':[{'name':'a','env':[");
    for (int i = 0; i < MANY; i++) {
        buf_printf(&wanted, "%s{'name':'N%d','value':'1'}", i ? "," : "", i + MANY / 2);
        buf_printf(&given, "%s{'name':'N%d','value':'0'}", i ? "," : "", i);
    }
    buf_puts(&wanted, "]");
    buf_puts(&given, "]}]");
    SCOPED(json_free_p) cJSON *claim = claim_with("", buf_cstr(&wanted), "");
    SCOPED(json_free_p)
    cJSON *template = template_with("", buf_cstr(&given), ",'envVarsInjectionPolicy':'Overrides'");
    SCOPED(json_free_p) cJSON *sandbox = NULL;
    SCOPED(claim_error_fini) struct claim_error e = {0};
    ck_assert_int_eq(claim_sandbox(claim, template, &sandbox, &e), 0);
    const cJSON *c = json_at(sandbox, "spec.podTemplate.spec.containers");
    ck_assert_uint_eq(json_len(json_get(c->child, "env")), MANY + MANY / 2);
}
END_TEST

START_TEST(test_env_from_init)
{
    SCOPED(json_free_p)
    cJSON *claim = claim_with("", ",'env':[{'name':'N','value':'1','containerName':'i'}]", "");
    SCOPED(json_free_p)
    cJSON *template = template_with("", "'initContainers':[{'name':'i','envFrom':[{}]}]",
                                    ",'envVarsInjectionPolicy':'Allowed'");
    SCOPED(json_free_p) cJSON *sandbox = NULL;
    SCOPED(claim_error_fini) struct claim_error e = {0};
    ck_assert_int_eq(claim_sandbox(claim, template, &sandbox, &e), -1);
    ck_assert_int_eq(e.failure, CLAIM_ENV_REFUSED);
}
END_TEST

/* ---- C20 ---- */

#define READY(status, reason)                                                                      \
    ",'status':{'podIPs':['10.0.0.1'],'conditions':[{'type':'Suspended','status':'False'},{"       \
    "'type':'Ready','status':'" status "','reason':'" reason "','message':'m',"                    \
    "'lastTransitionTime':'2025-01-01T00:00:00Z','observedGeneration':7}]}"

static const struct {
    const char *id;
    const char *sandbox; /* its status; NULL = none in hand */
    bool is_expired;
    enum claim_failure failure;
    const char *before;   /* status of the claim */
    const char *expected; /* status reason message time|sandbox */
} status_rows[] = {
    {"C-t008, C-t019", READY("True", "DependenciesReady"), false, CLAIM_FINE, "",
     "True DependenciesReady m 3 2025-01-01T00:00:00Z|p-1"},
    {"copied", READY("False", "PodFailed"), false, CLAIM_FINE, "",
     "False PodFailed m 3 2025-01-01T00:00:00Z|p-1"},
    {"same status", READY("False", "DependenciesNotReady"), false, CLAIM_FINE,
     ",'status':{'conditions':[{'type':'Ready','status':'False','reason':'x','lastTransitionTime':"
     "'2024-01-01T00:00:00Z'}]}",
     "False DependenciesNotReady m 3 2024-01-01T00:00:00Z|p-1"},
    {"none yet", "", false, CLAIM_FINE, "",
     "False SandboxNotReady Sandbox is not ready 3 2026-01-01T00:00:00Z|p-1"},
    {"missing", NULL, false, CLAIM_FINE, ",'status':{'sandbox':{'name':'gone'}}",
     "False SandboxMissing Sandbox does not exist 3 2026-01-01T00:00:00Z|-"},
    {"C-t160", READY("False", "SandboxExpired"), false, CLAIM_FINE, "",
     "False SandboxExpired Underlying Sandbox resource has expired independently of the Claim. 3 "
     "2026-01-01T00:00:00Z|p-1"},
    {"C-t063", NULL, true, CLAIM_FINE, ",'status':{'sandbox':{'name':'gone'}}",
     "False ClaimExpired Claim expired. Sandbox cleanup initiated. 3 2026-01-01T00:00:00Z|-"},
    {"C-t065", NULL, true, CLAIM_NOT_OWNED, ",'status':{'sandbox':{'name':'gone'}}",
     "False ClaimExpired Claim expired. sandbox not owned by this claim: text; deletion skipped. 3 "
     "2026-01-01T00:00:00Z|-"},
    {"C-t003", NULL, false, CLAIM_NO_TEMPLATE, "",
     "False TemplateNotFound text 3 2026-01-01T00:00:00Z|-"},
    {"C-t004", NULL, false, CLAIM_NO_POOL, ",'status':{'sandbox':{'name':'kept'}}",
     "False WarmPoolNotFound text 3 2026-01-01T00:00:00Z|kept"},
    {"C-t146", NULL, false, CLAIM_OTHER, ",'status':{'sandbox':{'name':'kept'}}",
     "False ReconcilerError Error seen: text 3 2026-01-01T00:00:00Z|kept"},
    {"InvalidMetadata", NULL, false, CLAIM_BAD_METADATA, "",
     "False InvalidMetadata text 3 2026-01-01T00:00:00Z|-"},
    {"volumes", NULL, false, CLAIM_BAD_VOLUMES, "",
     "False VolumeClaimTemplatesError text 3 2026-01-01T00:00:00Z|-"},
    {"env", NULL, false, CLAIM_ENV_REFUSED, "",
     "False EnvVarsInjectionRejected text 3 2026-01-01T00:00:00Z|-"},
};

START_TEST(test_status)
{
    SCOPED(json_free_p) cJSON *claim = claim_with("", "", status_rows[_i].before);
    SCOPED(json_free_p)
    cJSON *sandbox = status_rows[_i].sandbox ? sandbox_with("", status_rows[_i].sandbox) : NULL;
    struct claim_error e = {status_rows[_i].failure, (char[]){"text"}};
    struct claim_outcome outcome = {sandbox, &e, status_rows[_i].is_expired};
    SCOPED(json_free_p) cJSON *status = claim_status(claim, &outcome, NOW_S);
    const cJSON *ready = condition_find(json_get(status, "conditions"), "Ready");
    SCOPED_FREE char *is =
        xasprintf("%s %s %s %d %s|%s", json_str(ready, "status"), json_str(ready, "reason"),
                  json_str(ready, "message"), (int)json_i64_or(ready, "observedGeneration", 0),
                  json_str(ready, "lastTransitionTime"), json_str_or(status, "sandbox.name", "-"));
    ck_assert_msg(str_equal(is, status_rows[_i].expected), "%s: %s", status_rows[_i].id, is);
}
END_TEST

#define DONE                                                                                       \
    "{'type':'Finished','status':'True','reason':'PodSucceeded','message':'m',"                    \
    "'lastTransitionTime':'2025-06-01T00:00:00Z','observedGeneration':7}"

static const struct {
    const char *id;
    const char *sandbox; /* its conditions; NULL = none in hand */
    bool is_expired;
    enum claim_failure failure;
    bool had, has;
} finished_rows[] = {
    {"C-t070", DONE, false, CLAIM_FINE, false, true},
    {"kept equal", DONE, false, CLAIM_FINE, true, true},
    {"removed", "", false, CLAIM_FINE, true, false},
    {"gone", NULL, false, CLAIM_FINE, true, false},
    {"C-t071, C-t084", NULL, true, CLAIM_FINE, true, true},
    {"error keeps it", NULL, false, CLAIM_BAD_METADATA, true, true},
};

START_TEST(test_finished)
{
    SCOPED_FREE char *of_sandbox =
        xasprintf(",'status':{'conditions':[%s]}",
                  finished_rows[_i].sandbox ? finished_rows[_i].sandbox : "");
    SCOPED(json_free_p)
    cJSON *claim = claim_with(
        "", "",
        finished_rows[_i].had ? ",'status':{'conditions':[{'type':'Ready','status':'x'}," DONE "]}"
                              : "");
    SCOPED(json_free_p)
    cJSON *sandbox = finished_rows[_i].sandbox ? sandbox_with("", of_sandbox) : NULL;
    struct claim_error e = {finished_rows[_i].failure, (char[]){"text"}};
    struct claim_outcome outcome = {sandbox, &e, finished_rows[_i].is_expired};
    SCOPED(json_free_p) cJSON *status = claim_status(claim, &outcome, NOW_S);
    const cJSON *conditions = json_get(status, "conditions");
    SCOPED(json_free_p) cJSON *done = tree(DONE);
    const cJSON *is = condition_find(conditions, "Finished");
    ck_assert_msg((is != NULL) == finished_rows[_i].has, "%s", finished_rows[_i].id);
    if (!is)
        return;
    ck_assert(json_equal(is, done));
    ck_assert_ptr_eq(conditions->child, is); /* sorted by type */
}
END_TEST

/* ---- stamps: C2, O3 ---- */

static const struct {
    const char *id, *annotations;
    bool was_ready, is_ready, no_observed;
    bool observes;
    const char *first_ready; /* NULL = absent, "now" = stamped */
} stamp_rows[] = {
    {"O-t013", "", false, true, false, true, "now"},
    {"O-t007", "", false, false, false, false, NULL},
    {"O-t008", "", true, true, false, false, "unknown"},
    {"O-t017", "", true, false, false, false, "unknown"},
    {"O-t014", "'agents.x-k8s.io/claim-first-ready-at':'then'", false, true, false, false, "then"},
    {"C-t176", "", false, true, true, true, "now"},
};

START_TEST(test_stamps)
{
    SCOPED_FREE char *annotations = xasprintf(",'annotations':{%s}", stamp_rows[_i].annotations);
    SCOPED_FREE char *before =
        xasprintf(",'status':{'conditions':[{'type':'Ready','status':'%s'}]}",
                  stamp_rows[_i].was_ready ? "True" : "False");
    SCOPED(json_free_p) cJSON *claim = claim_with(annotations, "", before);
    cJSON *status = tree("{'conditions':[{'type':'Ready','status':'False'}]}");
    if (stamp_rows[_i].is_ready)
        json_set_str(json_get(status, "conditions")->child, "status", "True");
    const struct claim_settings own = {.label_domains = domains,
                                       .no_observed_stamp = stamp_rows[_i].no_observed};
    bool observes = claim_set_status(claim, status, &own, NOW_MS - 5000, NOW_MS);
    ck_assert_msg(observes == stamp_rows[_i].observes, "%s", stamp_rows[_i].id);
    const char *ready_at = meta_annotation(claim, ANNOTATION_FIRST_READY_AT);
    const char *expected = str_equal(stamp_rows[_i].first_ready, "now")
                               ? "2026-01-01T00:00:00.000000Z"
                               : stamp_rows[_i].first_ready;
    ck_assert_msg(str_equal(ready_at, expected), "%s: %s", stamp_rows[_i].id, ready_at);
    ck_assert(str_equal(meta_annotation(claim, ANNOTATION_FIRST_OBSERVED_AT),
                        stamp_rows[_i].no_observed ? NULL : "2025-12-31T23:59:55.000000Z"));
}
END_TEST

/* C-t175: one annotation comes, others stay; one that is there stays as it is. */
START_TEST(test_first_observed)
{
    SCOPED(json_free_p) cJSON *claim = claim_with(",'annotations':{'x':'y'}", "", "");
    claim_set_status(claim, tree("{}"), &settings, NOW_MS - 1, NOW_MS);
    SCOPED_FREE char *is = json_to_str(json_at(claim, "metadata.annotations"));
    ck_assert_str_eq(is, "{\"x\":\"y\",\"agents.x-k8s.io/controller-first-observed-at\":"
                         "\"2025-12-31T23:59:59.999000Z\"}");
    claim_set_status(claim, tree("{}"), &settings, NOW_MS, NOW_MS);
    SCOPED_FREE char *after = json_to_str(json_at(claim, "metadata.annotations"));
    ck_assert_str_eq(is, after);
}
END_TEST

SUITE(claim)
{
    TESTS("claim", test_custom_domain, test_foreseen, test_other_namespace, test_assignment,
          test_adopt, test_adopt_without_template, test_maintain, test_metadata_conflict, test_cold,
          test_env_from_init, test_many_variables, test_first_observed);
    LOOP("metadata", test_metadata, 0, ARRAY_LEN(metadata_rows));
    LOOP("domains", test_domains, 0, ARRAY_LEN(domain_rows));
    LOOP("time left", test_time_left, 0, ARRAY_LEN(time_rows));
    LOOP("candidate", test_candidate, 0, ARRAY_LEN(candidate_rows));
    LOOP("safe to evict", test_safe_to_evict, 0, ARRAY_LEN(evict_rows));
    LOOP("staleness", test_staleness, 0, ARRAY_LEN(stale_rows));
    LOOP("launch type", test_launch_type, 0, ARRAY_LEN(launch_rows));
    LOOP("volumes", test_volumes, 0, ARRAY_LEN(volume_rows));
    LOOP("env", test_env, 0, ARRAY_LEN(env_rows));
    LOOP("status", test_status, 0, ARRAY_LEN(status_rows));
    LOOP("finished", test_finished, 0, ARRAY_LEN(finished_rows));
    LOOP("stamps", test_stamps, 0, ARRAY_LEN(stamp_rows));
}
