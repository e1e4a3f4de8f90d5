/* Whole passes over claims: a registry over the store in memory that binds in POSTs, a cluster in
 * memory. Writes are counted, every call of the store fails once, and a claim's life is followed
 * from POST to end. Names like C-t063 are those of the contract's checklist. */
#include "reconcile/claim_pass.h"

#include "apiserver/base/metric.h"
#include "reconcile/blueprint.h"
#include "reconcile/child.h"
#include "reconcile/condition.h"
#include "reconcile/keys.h"
#include "reconcile/sandbox_pass.h"
#include "tests/lib/fake_cluster.h"
#include "tests/lib/pool_world.h"

static struct pool_world pw;
static struct fake_cluster cluster;
static struct claim_reconciler *claims;
static struct sandbox_reconciler *sandboxes;
static bool leads;

static struct registry *reg(void)
{
    return pw.w.registry;
}

static bool fence(void *ctx, struct store_compare *ret)
{
    (void)ctx;
    *ret = (struct store_compare){"/leader", STORE_CREATE, 0};
    return leads;
}

static struct pass_env env(void)
{
    return (struct pass_env){.registry = reg(),
                             .cluster = &cluster.base,
                             .clock = &pw.w.clock.clock,
                             .randomness = &pw.w.randomness,
                             .fence = fence};
}

static void start_reconcilers(void)
{
    claims = claim_reconciler_new(&(struct claim_reconciler_config){
        .env = env(), .settings = {.label_domains = pool_world_domains}});
    sandboxes = sandbox_reconciler_new(
        &(struct sandbox_reconciler_config){.env = env(), .cluster_domain = "cluster.local"});
}

static void stop_reconcilers(void)
{
    claim_reconciler_free(claims);
    sandbox_reconciler_free(sandboxes);
}

static void setup(void)
{
    leads = true;
    pool_world_start(&pw);
    fake_cluster_init(&cluster);
    start_reconcilers();
}

static void teardown(void)
{
    stop_reconcilers();
    fake_cluster_fini(&cluster);
    pool_world_stop(&pw);
}

/* ---- steps ---- */

static cJSON *read_claim(const char *name)
{
    return pool_world_read(reg(), &kind_sandbox_claim, name);
}

static void remove_claim(const char *name)
{
    SCOPED(object_unref_p) struct object *o = NULL;
    bool gone;
    struct delete_options opts = {.orphan_dependents = -1, .deadline_ms = world_deadline()};
    ck_assert_int_eq(
        registry_delete(reg(), &kind_sandbox_claim, "ns", name, &opts, &o, &gone, NULL), 0);
}

static void post(const char *name, const char *metadata, const char *spec)
{
    SCOPED(err_fini) struct err err = {0};
    SCOPED(json_free_p) cJSON *claim = NULL;
    int rc = pool_world_post(reg(), pool_world_claim(name, metadata, spec), false, &claim, &err);
    ck_assert_msg(rc == 0, "%s", err_text(&err));
}

static int64_t pass(const char *name)
{
    SCOPED_FREE char *key = xasprintf("ns/%s", name);
    struct loop_result r = {0};
    int rc = claim_pass(claims, key, &r);
    return rc < 0 ? rc : r.again_after_ms;
}

static void pass_sandbox(const char *name)
{
    SCOPED_FREE char *key = xasprintf("ns/%s", name);
    struct loop_result r = {0};
    ck_assert_int_eq(sandbox_pass(sandboxes, key, &r), 0);
}

static void expect(const char *name, const char *status, const char *reason, const char *sandbox)
{
    SCOPED(json_free_p) cJSON *claim = read_claim(name);
    const cJSON *ready = condition_find(json_at(claim, "status.conditions"), "Ready");
    ck_assert_str_eq(json_str_or(ready, "status", "-"), status);
    ck_assert_str_eq(json_str_or(ready, "reason", "-"), reason);
    ck_assert_str_eq(json_str_or(claim, "status.sandbox.name", "-"), sandbox);
    if (ready)
        ck_assert_int_eq(json_i64_or(ready, "observedGeneration", 0),
                         json_i64_or(claim, "metadata.generation", -1));
}

static void expect_message(const char *name, const char *message)
{
    SCOPED(json_free_p) cJSON *claim = read_claim(name);
    ck_assert_str_eq(
        json_str_or(condition_find(json_at(claim, "status.conditions"), "Ready"), "message", "-"),
        message);
}

static void make_ready(const char *sandbox)
{
    pool_world_edit(reg(), &kind_sandbox, sandbox, "status",
                    "{\"podIPs\":[\"10.0.0.9\"],\"conditions\":[{\"type\":\"Ready\",\"status\":"
                    "\"True\",\"reason\":\"DependenciesReady\",\"message\":\"Pod is Ready\","
                    "\"lastTransitionTime\":\"2026-01-02T03:04:06Z\"}]}");
}

static void make_finished(const char *sandbox, const char *at)
{
    SCOPED_FREE char *json = xasprintf(
        "[{\"type\":\"Finished\",\"status\":\"True\",\"reason\":\"PodSucceeded\",\"message\":\"m\","
        "\"lastTransitionTime\":\"%s\"},{\"type\":\"Ready\",\"status\":\"False\",\"reason\":"
        "\"PodSucceeded\",\"message\":\"m\",\"lastTransitionTime\":\"%s\"}]",
        at, at);
    pool_world_edit(reg(), &kind_sandbox, sandbox, "status|conditions", json);
}

static bool exists(const struct kind *kind, const char *name)
{
    SCOPED(json_free_p) cJSON *tree = pool_world_read(reg(), kind, name);
    return tree != NULL;
}

/* The series of the counter of claims that got a Sandbox. */
static double counted(const char *launch_type, const char *condition)
{
    SCOPED(buf_fini) struct buf text = {0}, line = {0};
    buf_printf(&line,
               "agent_sandbox_claim_creation_total{namespace=\"ns\",sandbox_template=\"t\","
               "launch_type=\"%s\",warmpool_name=\"p\",pod_condition=\"%s\",created_by="
               "\"unknown\"} ",
               launch_type, condition);
    metric_print_all(&text);
    const char *at = strstr(buf_cstr(&text), buf_cstr(&line));
    return at ? strtod(at + line.len, NULL) : 0;
}

/* Another server on the store, that knows what this one does; from then on neither hears of the
 * other's writes, until hear_again. */
static struct registry *start_deaf(void)
{
    struct registry *other = registry_new(&pw.w.config);
    registry_start(other);
    for (int i = 0; i < 5000 && !(registry_is_synced(other) &&
                                  registry_revision(other) >= registry_revision(reg()));
         i++)
        sleep_ms(1);
    memstore_set_watch_down(pw.w.store, true);
    return other;
}

static void hear_again(struct registry *other)
{
    int64_t written;
    memstore_set_watch_down(pw.w.store, false);
    ck_assert_int_eq(store_revision(pw.w.store, world_deadline(), &written, NULL), 0);
    world_wait_rev(&pw.w, written);
    registry_stop(other);
    registry_free(other);
}

static int64_t stored_revision(void)
{
    int64_t rev;
    ck_assert_int_eq(store_revision(pw.w.store, world_deadline(), &rev, NULL), 0);
    return rev;
}

/* ---- warm: bound in the POST ---- */

/* From POST to the pod with its claim's labels: two writes of ours, one of the cluster. C-t178,
 * C-t179, C-t185, G-t015, O-t002, O-t005, O-t032. */
START_TEST(test_writes_of_a_warm_claim) /* IL-113 */
{
    pool_world_member(reg(), "p-1", "n", MEMBER_PENDING);
    pass_sandbox("p-1"); /* makes the Pod */
    cJSON *pod = fake_cluster_find(&cluster, CHILD_POD, "ns", "p-1");
    json_set(json_get(pod, "status"), "phase", json_string("Running"));
    json_set(json_get(pod, "status"), "podIPs", world_tree("[{\"ip\":\"10.0.0.9\"}]"));
    json_set(json_get(pod, "status"), "conditions",
             world_tree("[{\"type\":\"Ready\",\"status\":\"True\"}]"));
    pass_sandbox("p-1");
    int64_t before = registry_revision(reg());
    int cluster_writes = cluster.creates + cluster.patches + cluster.updates + cluster.deletes;
    post("c", "", "");
    pass("c");
    pass_sandbox("p-1");
    pass("c");
    ck_assert_int_le(registry_revision(reg()) - before, 2);
    ck_assert_int_le(
        cluster.creates + cluster.patches + cluster.updates + cluster.deletes - cluster_writes, 1);
    ck_assert_ptr_null(
        meta_label(fake_cluster_find(&cluster, CHILD_POD, "ns", "p-1"), LABEL_WARM_POOL));
    expect("c", "True", "DependenciesReady", "p-1");
    SCOPED(json_free_p) cJSON *claim = read_claim("c");
    ck_assert_int_eq(json_i64_or(claim, "metadata.generation", 0), 1); /* */
    ck_assert_ptr_nonnull(meta_annotation(claim, ANNOTATION_FIRST_READY_AT));
    ck_assert_ptr_nonnull(meta_annotation(claim, ANNOTATION_FIRST_OBSERVED_AT));
    ck_assert_double_eq(counted("warm", "ready"), 1);
    int64_t settled = registry_revision(reg());
    pass("c"); /* C-t128: nothing more to do, ever */
    ck_assert_int_eq(registry_revision(reg()), settled);
    ck_assert_double_eq(counted("warm", "ready"), 1);
}
END_TEST

/* Once, by the leader that was there; not by one that comes later. */
START_TEST(test_bound_claim_is_told_about_once)
{
    pool_world_member(reg(), "p-1", "n", MEMBER_READY);
    post("c", "", "");
    pass("c");
    ck_assert_str_eq(cluster.last_event, "SandboxAdopted");
    ck_assert_int_eq(cluster.events, 1);
    pass("c");
    ck_assert_int_eq(cluster.events, 1);
    clock_fake_advance(&pw.w.clock, 5000);
    stop_reconcilers();
    start_reconcilers();
    pass("c");
    ck_assert_int_eq(cluster.events, 1);
}
END_TEST

/* C-t091, C-t182: a member that is not ready; later it is. */
START_TEST(test_unready_member) /* IL-029 */
{
    pool_world_member(reg(), "p-1", "n", MEMBER_ADDRESS);
    post("c", "", "");
    expect("c", "False", "DependenciesNotReady", "p-1");
    pass("c");
    SCOPED(json_free_p) cJSON *before = read_claim("c");
    ck_assert_ptr_null(meta_annotation(before, ANNOTATION_FIRST_READY_AT));
    make_ready("p-1");
    pass("c");
    expect("c", "True", "DependenciesReady", "p-1");
    SCOPED(json_free_p) cJSON *claim = read_claim("c");
    ck_assert_ptr_nonnull(meta_annotation(claim, ANNOTATION_FIRST_READY_AT));
}
END_TEST

/* ---- warm: bound by the reconciler ---- */

START_TEST(test_reconciler_adopts)
{
    post("c", "", "");
    expect("c", "-", "-", "-");
    pool_world_member(reg(), "p-1", "n", MEMBER_READY);
    pass("c");
    expect("c", "True", "DependenciesReady", "p-1");
    ck_assert_str_eq(cluster.last_event, "SandboxAdopted");
    SCOPED(json_free_p) cJSON *claim = read_claim("c");
    ck_assert_str_eq(pool_world_bound(reg(), claim), "p-1");
    pass("c");
    ck_assert_int_eq(cluster.events, 1);
}
END_TEST

/* C-t092, C-t110, C-t112, C-t113 */
START_TEST(test_grace) /* IL-023 */
{
    pool_world_member(reg(), "p-1", "", MEMBER_PENDING);
    post("c", "", "");
    int64_t again = pass("c");
    ck_assert(again > 0 && again <= 500);
    expect("c", "-", "-", "-");
    pool_world_edit(reg(), &kind_sandbox, "p-1", "status|podIPs", "[\"10.0.0.1\"]");
    pass("c");
    expect("c", "False", "DependenciesNotReady", "p-1");
    pool_world_member(reg(), "p-2", "", MEMBER_PENDING);
    post("d", "", "");
    clock_fake_advance(&pw.w.clock, 2000);
    pass("d");
    expect("d", "False", "SandboxNotReady", "d");
}
END_TEST

/* C-t118, C-t126, C-t181: an assignment by hand is finished, without event and counter; IL-037. */
START_TEST(test_finish_adoption)
{
    pool_world_member(reg(), "p-1", "", MEMBER_PENDING);
    pool_world_member(reg(), "p-2", "n", MEMBER_READY);
    post("c", ",\"annotations\":{\"agents.x-k8s.io/sandbox-name\":\"p-1\"}", "");
    expect("c", "-", "-", "-"); /* not bound over its assignment */
    pass("c");
    expect("c", "False", "DependenciesNotReady", "p-1");
    ck_assert_int_eq(cluster.events, 0);
    post("l", ",\"labels\":{\"agents.x-k8s.io/sandbox-name\":\"p-2\"}", ""); /* C-t135 */
    pass("l");
    expect("l", "True", "DependenciesReady", "p-2");
    SCOPED(json_free_p) cJSON *claim = read_claim("l");
    ck_assert_ptr_null(meta_label(claim, ANNOTATION_SANDBOX_NAME));
    ck_assert_str_eq(meta_annotation(claim, ANNOTATION_SANDBOX_NAME), "p-2");
    ck_assert_uint_eq(pool_world_owned(reg(), NULL), 2);
}
END_TEST

/* C-t132, C-t133, C-t139, C-t140: an assignment that leads nowhere is dropped and the claim goes
 * on. */
START_TEST(test_stale_assignment)
{
    pool_world_member(reg(), "p-1", "n", MEMBER_READY);
    post("a", "", "");
    post("b", ",\"annotations\":{\"agents.x-k8s.io/sandbox-name\":\"p-1\"}", "");
    post("c", ",\"labels\":{\"agents.x-k8s.io/sandbox-name\":\"nowhere\"}", "");
    post("d", ",\"annotations\":{\"agents.x-k8s.io/sandbox-name\":\"nowhere\"}", "");
    pass("b");
    pass("c");
    pass("d");
    expect("d", "False", "SandboxNotReady", "d");
    expect("b", "False", "SandboxNotReady", "b");
    expect("c", "False", "SandboxNotReady", "c");
    SCOPED(json_free_p) cJSON *b = read_claim("b"), *c = read_claim("c");
    ck_assert_ptr_null(meta_annotation(b, ANNOTATION_SANDBOX_NAME));
    ck_assert_ptr_null(meta_label(c, ANNOTATION_SANDBOX_NAME));
}
END_TEST

/* A bound Sandbox that somebody deletes is replaced, from the pool or by a new one. */
START_TEST(test_sandbox_lost)
{
    pool_world_member(reg(), "p-1", "n", MEMBER_READY);
    post("c", "", "");
    world_delete(&pw.w, "ns", "p-1");
    pool_world_member(reg(), "p-2", "n", MEMBER_READY);
    pass("c");
    expect("c", "True", "DependenciesReady", "p-2");
    world_delete(&pw.w, "ns", "p-2");
    pass("c");
    expect("c", "False", "SandboxNotReady", "c");
}
END_TEST

/* ---- cold ---- */

/* C-t001, C-t015, C-t086, C-t111, O-t020 */
START_TEST(test_cold)
{
    post("c", ",\"labels\":{\"agents.x-k8s.io/created-by\":\"x\"}", "");
    pass("c");
    expect("c", "False", "SandboxNotReady", "c");
    ck_assert_str_eq(cluster.last_event, "SandboxProvisioned");
    ck_assert_double_eq(counted("cold", "not_ready"), 1);
    make_ready("c");
    pass("c");
    expect("c", "True", "DependenciesReady", "c");
    SCOPED(json_free_p) cJSON *claim = read_claim("c");
    SCOPED(json_free_p) cJSON *sandbox = pool_world_read(reg(), &kind_sandbox, "c");
    ck_assert_ptr_null(meta_annotation(claim, ANNOTATION_SANDBOX_NAME));
    ck_assert_str_eq(meta_label(sandbox, LABEL_LAUNCH_TYPE), "cold");
    ck_assert_int_eq(cluster.events, 1);
}
END_TEST

/* IL-028: this process does not hear of its own writes for a while: it makes nothing twice, and no
 * word of it comes to status. */
START_TEST(test_cold_without_hearing)
{
    post("c", "", "");
    int64_t before = registry_revision(reg());
    struct registry *other = start_deaf();
    for (int i = 0; i < 3; i++)
        pass("c"); /* may fail, and comes back then */
    hear_again(other);
    ck_assert_int_ge(pass("c"), 0);
    expect("c", "False", "SandboxNotReady", "c");
    ck_assert_int_eq(registry_revision(reg()), before + 2); /* the Sandbox, the claim's status */
    ck_assert_int_eq(cluster.events, 1);
    ck_assert_double_eq(counted("cold", "not_ready"), 1);
}
END_TEST

/* C-t032: claims of their own are never bound, not in the POST and not later. */
START_TEST(test_cold_only)
{
    pool_world_member(reg(), "p-1", "n", MEMBER_READY);
    pool_world_edit(reg(), &kind_sandbox_template, "t", "spec|envVarsInjectionPolicy",
                    "\"Allowed\"");
    post("c", "", ",\"env\":[{\"name\":\"N\",\"value\":\"1\"}]");
    pass("c");
    expect("c", "False", "SandboxNotReady", "c");
    ck_assert_uint_eq(pool_world_owned(reg(), NULL), 1);
}
END_TEST

/* C-t003, C-t004, C-t017, C-t018: the pool is missing, then the template, then neither. */
START_TEST(test_missing) /* IL-033 */
{
    SCOPED(object_unref_p) struct object *o = NULL;
    bool gone;
    struct delete_options opts = {.orphan_dependents = -1, .deadline_ms = world_deadline()};
    ck_assert_int_eq(
        registry_delete(reg(), &kind_sandbox_template, "ns", "t", &opts, &o, &gone, NULL), 0);
    SCOPED(err_fini) struct err err = {0};
    SCOPED(json_free_p) cJSON *claim = NULL;
    cJSON *other = pool_world_claim("o", "", "");
    json_set_str(json_at(other, "spec.warmPoolRef"), "name", "q");
    ck_assert_int_eq(pool_world_post(reg(), other, false, &claim, &err), 0);
    ck_assert_int_eq(pass("o"), 60000);
    expect("o", "False", "WarmPoolNotFound", "-");
    expect_message("o", "SandboxWarmPool \"q\" not found");
    post("c", "", "");
    ck_assert_int_eq(pass("c"), 60000);
    expect("c", "False", "TemplateNotFound", "-");
    expect_message("c", "SandboxTemplate \"t\" not found");
    int64_t settled = registry_revision(reg());
    pass("c");
    ck_assert_int_eq(registry_revision(reg()), settled); /* IL-015: no hot loop of writes */
}
END_TEST

/* A claim on its way out with its namespace makes no noise and no new Sandbox. */
START_TEST(test_namespace_ends)
{
    post("c", "", "");
    pw.w.namespace_state = NAMESPACE_TERMINATING;
    int64_t before = registry_revision(reg());
    ck_assert_int_eq(pass("c"), 60000);
    ck_assert_int_eq(registry_revision(reg()), before);
    pw.w.namespace_state = NAMESPACE_ACTIVE;
    pass("c");
    expect("c", "False", "SandboxNotReady", "c");
}
END_TEST

/* C-t005: the name belongs to somebody else; not bound over it either. */
START_TEST(test_name_taken)
{
    object_unref(world_create(&pw.w, "ns", "c", ""));
    pool_world_member(reg(), "p-1", "n", MEMBER_READY);
    post("c", "", "");
    expect("c", "-", "-", "-");
    ck_assert_int_lt(pass("c"), 0);
    expect("c", "False", "ReconcilerError", "-");
    expect_message("c", "Error seen: sandbox \"c\" is not controlled by claim \"c\". Please use a "
                        "different claim name or delete the sandbox manually");
    world_delete(&pw.w, "ns", "c");
    pass("c");
    expect("c", "True", "DependenciesReady", "p-1");
}
END_TEST

/* ---- metadata ---- */

/* C-t021, C-t022: bad metadata is not bound in the POST, says so, and is final; corrected it goes
 * on. */
START_TEST(test_invalid_metadata) /* IL-015 */
{
    pool_world_member(reg(), "p-1", "n", MEMBER_READY);
    post("c", "", ",\"additionalPodMetadata\":{\"labels\":{\"a\":\"1\"}}");
    expect("c", "-", "-", "-");
    ck_assert_int_eq(pass("c"), 0);
    expect("c", "False", "InvalidMetadata", "-");
    pool_world_edit(reg(), &kind_sandbox_claim, "c", "spec|additionalPodMetadata", "null");
    pass("c");
    expect("c", "True", "DependenciesReady", "p-1");
    pool_world_edit(reg(), &kind_sandbox_claim, "c", "spec|additionalPodMetadata",
                    "{\"labels\":{\"a\":\"1\"}}");
    ck_assert_int_eq(pass("c"), 0);
    expect("c", "False", "InvalidMetadata", "p-1"); /* the binding stays */
}
END_TEST

/* a conflict is found before anything is assigned. */
START_TEST(test_conflicting_metadata)
{
    pool_world_member(reg(), "p-1", "n", MEMBER_READY);
    pool_world_edit(reg(), &kind_sandbox_template, "t", "spec|podTemplate|metadata|annotations|n",
                    "\"1\"");
    post("c", "", ",\"additionalPodMetadata\":{\"annotations\":{\"n\":\"2\"}}");
    ck_assert_int_lt(pass("c"), 0);
    expect("c", "False", "ReconcilerError", "-");
    SCOPED(json_free_p) cJSON *claim = read_claim("c");
    ck_assert_ptr_null(meta_annotation(claim, ANNOTATION_SANDBOX_NAME));
    post("d", "", "");
    expect("d", "True", "DependenciesReady", "p-1");
}
END_TEST

/* C23: the same found while a half adoption is finished; the assignment stays. */
START_TEST(test_conflict_of_an_assigned_member)
{
    pool_world_member(reg(), "p-1", "n", MEMBER_READY);
    pool_world_edit(reg(), &kind_sandbox_template, "t", "spec|podTemplate|metadata|annotations|n",
                    "\"1\"");
    post("c", ",\"annotations\":{\"agents.x-k8s.io/sandbox-name\":\"p-1\"}",
         ",\"additionalPodMetadata\":{\"annotations\":{\"n\":\"2\"}}");
    ck_assert_int_lt(pass("c"), 0);
    expect("c", "False", "ReconcilerError", "-");
    expect_message(
        "c", "Error seen: failed to complete adoption of \"p-1\": metadata override conflict: "
             "annotation \"n\" is defined in template with value \"1\", but claim requests "
             "\"2\"");
    SCOPED(json_free_p) cJSON *claim = read_claim("c");
    ck_assert_str_eq(meta_annotation(claim, ANNOTATION_SANDBOX_NAME), "p-1");
}
END_TEST

static void delete_object(const struct kind *kind, const char *name)
{
    SCOPED(object_unref_p) struct object *o = NULL;
    bool gone;
    struct delete_options opts = {.orphan_dependents = -1, .deadline_ms = world_deadline()};
    ck_assert_int_eq(registry_delete(reg(), kind, "ns", name, &opts, &o, &gone, NULL), 0);
}

static void ask_for_metadata(const char *value)
{
    SCOPED_FREE char *json = xasprintf("{\"labels\":{\"sandbox.users.io/a\":\"%s\"}}", value);
    pool_world_edit(reg(), &kind_sandbox_claim, "c", "spec|additionalPodMetadata", json);
}

/* C15: changed metadata reaches the bound Sandbox; without a template it cannot. R-05: what has
 * reached it already needs neither pool nor template. */
START_TEST(test_metadata_follows)
{
    pool_world_member(reg(), "p-1", "n", MEMBER_READY);
    post("c", "", "");
    ask_for_metadata("1");
    pass("c");
    SCOPED(json_free_p) cJSON *sandbox = pool_world_read(reg(), &kind_sandbox, "p-1");
    ck_assert_ptr_nonnull(
        json_get(json_at(sandbox, "spec.podTemplate.metadata.labels"), "sandbox.users.io/a"));
    delete_object(&kind_sandbox_template, "t");
    pass("c");
    expect("c", "True", "DependenciesReady", "p-1");
    ask_for_metadata("2");
    pass("c");
    expect("c", "False", "TemplateNotFound", "p-1");
    expect_message("c",
                   "failed to get template for metadata propagation: SandboxTemplate \"t\" not "
                   "found");
    pool_world_edit(reg(), &kind_sandbox_claim, "c", "spec|additionalPodMetadata", "{}");
    pass("c"); /* C-t007 */
    expect("c", "True", "DependenciesReady", "p-1");
}
END_TEST

/* the pool is gone, the template that the Sandbox was made from is not. */
START_TEST(test_metadata_without_the_pool)
{
    pool_world_member(reg(), "p-1", "n", MEMBER_READY);
    post("c", "", "");
    delete_object(&kind_sandbox_warm_pool, "p");
    ask_for_metadata("1");
    pass("c");
    expect("c", "True", "DependenciesReady", "p-1");
    SCOPED(json_free_p) cJSON *sandbox = pool_world_read(reg(), &kind_sandbox, "p-1");
    SCOPED(json_free_p) cJSON *claim = read_claim("c");
    ck_assert(claim_metadata_is_applied(claim, sandbox));
}
END_TEST

static const char *template_hash_of(const char *sandbox_name, const char *template_name)
{
    char hash[NAME_HASH_SIZE];
    SCOPED(json_free_p) cJSON *sandbox = pool_world_read(reg(), &kind_sandbox, sandbox_name);
    template_ref_hash(template_name, hash);
    return str_equal(meta_label(sandbox, LABEL_TEMPLATE_REF_HASH), hash) ? template_name
                                                                         : "another";
}

/* the bound Sandbox stays under the policy of the template that it was made from, whatever
 * its pool names later, until that template is gone. */
START_TEST(test_stays_with_its_template)
{
    pool_world_member(reg(), "p-1", "n", MEMBER_READY);
    post("c", "", "");
    SCOPED(json_free_p) cJSON *template = pool_world_read(reg(), &kind_sandbox_template, "t");
    json_remove(template, "metadata");
    json_set_str(json_ensure_object(template, "metadata"), "name", "u");
    SCOPED_FREE char *text = json_to_str(template);
    object_unref(pool_world_put(reg(), &kind_sandbox_template, text));
    pool_world_edit(reg(), &kind_sandbox_warm_pool, "p", "spec|sandboxTemplateRef|name", "\"u\"");
    pass("c");
    ck_assert_str_eq(template_hash_of("p-1", "t"), "t");
    expect("c", "True", "DependenciesReady", "p-1");
    delete_object(&kind_sandbox_template, "t");
    pass("c");
    ck_assert_str_eq(template_hash_of("p-1", "u"), "u");
    expect("c", "True", "DependenciesReady", "p-1");
}
END_TEST

static void expect_idle_timeout(const char *sandbox_name, const char *timeout)
{
    SCOPED(json_free_p) cJSON *sandbox = pool_world_read(reg(), &kind_sandbox, sandbox_name);
    ck_assert_pstr_eq(meta_annotation(sandbox, ANNOTATION_IDLE_TIMEOUT), timeout);
}

/* A claim's idle timeout is its Sandbox's: bound in the POST, made cold, or wished for later. */
START_TEST(test_idle_timeout)
{
    static const char asks[] = ",\"annotations\":{\"" ANNOTATION_IDLE_TIMEOUT "\":\"15m\"}";
    pool_world_member(reg(), "p-1", "n", MEMBER_READY);
    expect_idle_timeout("p-1", NULL);
    post("c", asks, "");
    expect_idle_timeout("p-1", "15m");
    post("d", asks, "");
    pass("d");
    expect_idle_timeout("d", "15m");
    pool_world_edit(reg(), &kind_sandbox_claim, "c",
                    "metadata|annotations|" ANNOTATION_IDLE_TIMEOUT, "\"1h\"");
    pass("c");
    expect_idle_timeout("p-1", "1h");
    int64_t settled = registry_revision(reg());
    pass("c");
    ck_assert_int_eq(registry_revision(reg()), settled);
}
END_TEST

/* ---- expiry ---- */

#define PAST "\"shutdownTime\":\"2020-01-01T00:00:00Z\""

/* C-t063, C-t064, C-t073: seen first, then cleaned up; extended it lives again. */
START_TEST(test_retain)
{
    pool_world_member(reg(), "p-1", "n", MEMBER_READY);
    post("c", "", "");
    pass("c");
    pool_world_edit(reg(), &kind_sandbox_claim, "c", "spec|lifecycle",
                    "{" PAST ",\"shutdownPolicy\":\"Retain\"}");
    ck_assert_int_eq(pass("c"), 1);
    expect("c", "False", "ClaimExpired", "p-1");
    ck_assert(exists(&kind_sandbox, "p-1"));
    ck_assert_str_eq(cluster.last_event, "ClaimExpired");
    ck_assert_int_eq(pass("c"), 0);
    expect("c", "False", "ClaimExpired", "-");
    ck_assert(!exists(&kind_sandbox, "p-1"));
    int64_t settled = registry_revision(reg());
    pass("c");
    ck_assert_int_eq(registry_revision(reg()), settled);
    pool_world_edit(reg(), &kind_sandbox_claim, "c", "spec|lifecycle|shutdownTime",
                    "\"2099-01-01T00:00:00Z\"");
    ck_assert_int_gt(pass("c"), 0);
    expect("c", "False", "SandboxNotReady", "c");
}
END_TEST

/* IL-074: a Pod that restarts for ever never begins the time that is to follow its end. */
static const struct {
    const char *policy, *lifecycle;
    bool is_warm, is_told;
} endless[] = {
    {"null", ",\"lifecycle\":{\"ttlSecondsAfterFinished\":5}", false, true},
    {"\"Always\"", ",\"lifecycle\":{\"ttlSecondsAfterFinished\":5}", false, true},
    {"\"Always\"", ",\"lifecycle\":{\"ttlSecondsAfterFinished\":5}", true, true},
    {"\"Never\"", ",\"lifecycle\":{\"ttlSecondsAfterFinished\":5}", true, false},
    {"\"OnFailure\"", ",\"lifecycle\":{\"ttlSecondsAfterFinished\":5}", false, false},
    {"null", "", false, false},
};

START_TEST(test_time_that_never_begins)
{
    pool_world_edit(reg(), &kind_sandbox_template, "t", "spec|podTemplate|spec|restartPolicy",
                    endless[_i].policy);
    if (endless[_i].is_warm)
        pool_world_member(reg(), "p-1", "n", MEMBER_READY);
    post("c", "", endless[_i].lifecycle);
    pass("c");
    const char *got = endless[_i].is_warm ? "SandboxAdopted" : "SandboxProvisioned";
    ck_assert_str_eq(cluster.last_event, endless[_i].is_told ? "TTLNeverBegins" : got);
    int events = cluster.events;
    pass("c");
    ck_assert_int_eq(cluster.events, events);
}
END_TEST

static const char *const ends[] = {"Retain", "Delete", "DeleteForeground"};

/* IL-079: the time was extended while the pass judged by the version before: nothing is deleted.
 * The server that extends is another one, whose write this one's cache does not have yet. */
START_TEST(test_extended_while_it_ends)
{
    SCOPED_FREE char *lifecycle = xasprintf("{" PAST ",\"shutdownPolicy\":\"%s\"}", ends[_i]);
    pool_world_member(reg(), "p-1", "n", MEMBER_READY);
    post("c", "", "");
    pass("c");
    pool_world_edit(reg(), &kind_sandbox_claim, "c", "spec|lifecycle", lifecycle);
    ck_assert_int_eq(pass("c"), 1);
    struct registry *other = start_deaf();
    pool_world_edit(other, &kind_sandbox_claim, "c", "spec|lifecycle|shutdownTime",
                    "\"2099-01-01T00:00:00Z\"");
    pass("c");
    hear_again(other);
    ck_assert_int_gt(pass("c"), 0);
    expect("c", "True", "DependenciesReady", "p-1");
}
END_TEST

/* IL-034: the time runs for a claim that nobody can serve as well. */
START_TEST(test_unserved_claim_ends)
{
    bool stays = str_equal(ends[_i], "Retain");
    SCOPED_FREE char *lifecycle = xasprintf(
        ",\"lifecycle\":{\"shutdownTime\":\"2026-01-02T03:04:15Z\",\"shutdownPolicy\":\"%s\"}",
        ends[_i]);
    pool_world_edit(reg(), &kind_sandbox_warm_pool, "p", "spec|sandboxTemplateRef|name",
                    "\"none\"");
    post("c", "", lifecycle);
    int64_t again = pass("c");
    expect("c", "False", "TemplateNotFound", "-");
    ck_assert_int_gt(again, 9000);
    ck_assert_int_le(again, 10000);
    clock_fake_advance(&pw.w.clock, again);
    ck_assert_int_eq(pass("c"), 1);
    expect("c", "False", "ClaimExpired", "-");
    pass("c");
    SCOPED(json_free_p) cJSON *claim = read_claim("c");
    ck_assert((claim && !meta_is_terminating(claim)) == stays);
    ck_assert_uint_eq(pool_world_owned(reg(), NULL), 0);
}
END_TEST

static enum memstore_fault no_writes(void *ctx, const char *call, uint64_t n)
{
    (void)ctx, (void)n;
    return str_equal(call, "txn") ? MEMSTORE_UNAVAILABLE : MEMSTORE_OK;
}

/* a clean-up that fails comes back by back-off (a pass that fails), not at once, and the
 * claim goes on saying that it has expired. */
START_TEST(test_failed_clean_up)
{
    pool_world_member(reg(), "p-1", "n", MEMBER_READY);
    post("c", "", "");
    pass("c");
    pool_world_edit(reg(), &kind_sandbox_claim, "c", "spec|lifecycle",
                    "{" PAST ",\"shutdownPolicy\":\"Retain\"}");
    ck_assert_int_eq(pass("c"), 1);
    int64_t settled = registry_revision(reg());
    memstore_set_fault(pw.w.store, no_writes, NULL);
    for (int i = 0; i < 3; i++)
        ck_assert_int_lt(pass("c"), 0);
    memstore_set_fault(pw.w.store, NULL, NULL);
    ck_assert_int_eq(registry_revision(reg()), settled);
    expect("c", "False", "ClaimExpired", "p-1");
    ck_assert_int_eq(pass("c"), 0);
    expect("c", "False", "ClaimExpired", "-");
    ck_assert(!exists(&kind_sandbox, "p-1"));
}
END_TEST

/* C-t065: somebody else's Sandbox is left alone. */
START_TEST(test_retain_foreign)
{
    object_unref(world_create(&pw.w, "ns", "s", ""));
    post("c", "", ",\"lifecycle\":{" PAST "}");
    expect("c", "-", "-", "-"); /* born expired: not bound */
    pool_world_edit(reg(), &kind_sandbox_claim, "c", "status", "{\"sandbox\":{\"name\":\"s\"}}");
    ck_assert_int_eq(pass("c"), 1);
    ck_assert_int_eq(pass("c"), 0);
    expect("c", "False", "ClaimExpired", "-");
    expect_message("c",
                   "Claim expired. sandbox not owned by this claim: sandbox \"s\" is not owned "
                   "by claim \"c\"; deletion skipped.");
    ck_assert(exists(&kind_sandbox, "s"));
}
END_TEST

/* C-t066, C-t067, C-t068, C-t072, C-t187 */
static const char *const policies[] = {"Delete", "DeleteForeground"};
START_TEST(test_delete)
{
    SCOPED_FREE char *lifecycle = xasprintf("{" PAST ",\"shutdownPolicy\":\"%s\"}", policies[_i]);
    pool_world_member(reg(), "p-1", "n", MEMBER_READY);
    post("c", "", "");
    pass("c");
    pool_world_edit(reg(), &kind_sandbox_claim, "c", "spec|lifecycle", lifecycle);
    ck_assert_int_eq(pass("c"), 1);
    ck_assert(exists(&kind_sandbox_claim, "c"));
    ck_assert_int_eq(pass("c"), 0);
    SCOPED(json_free_p) cJSON *claim = read_claim("c");
    if (_i == 0) {
        ck_assert_ptr_null(claim);
    } else {
        ck_assert(meta_is_terminating(claim));
        ck_assert_str_eq(json_at(claim, "metadata.finalizers")->child->valuestring,
                         "foregroundDeletion");
    }
    ck_assert(exists(&kind_sandbox, "p-1")); /* goes by its owner reference */
    ck_assert_int_eq(pass("c"), 0);
    ck_assert_int_eq(cluster.events, 3); /* adopted, expired, deleting */
}
END_TEST

/* C-t070, C-t071: the pod ends, the time to live runs, and with 0 it is over at once. */
START_TEST(test_ttl)
{
    post("c", "", ",\"lifecycle\":{\"ttlSecondsAfterFinished\":60}");
    pass("c");
    make_finished("c", "2026-01-02T03:04:00Z"); /* 5 s ago */
    ck_assert_int_eq(pass("c"), 55000);
    expect("c", "False", "PodSucceeded", "c");
    pool_world_edit(reg(), &kind_sandbox_claim, "c", "spec|lifecycle|ttlSecondsAfterFinished",
                    "null");
    ck_assert_int_eq(pass("c"), 0);
    post("d", "", ",\"lifecycle\":{\"ttlSecondsAfterFinished\":0}");
    pass("d");
    make_finished("d", "2026-01-02T03:04:05Z");
    ck_assert_int_eq(pass("d"), 1); /* mirrored and expired in one write */
    expect("d", "False", "ClaimExpired", "d");
    ck_assert_int_eq(pass("d"), 0);
    ck_assert(!exists(&kind_sandbox, "d"));
    SCOPED(json_free_p) cJSON *claim = read_claim("d");
    ck_assert_ptr_nonnull(condition_find(json_at(claim, "status.conditions"), "Finished"));
}
END_TEST

/* ---- who is taken ---- */

/* C-t114, C-t115, C-t172: a younger one that is ready goes first; who is passed by keeps its place.
 */
START_TEST(test_order_of_members) /* IL-050 */
{
    pool_world_member(reg(), "p-1", "", MEMBER_ADDRESS);
    pool_world_member(reg(), "p-2", "", MEMBER_READY);
    pool_world_member(reg(), "p-3", "", MEMBER_READY);
    pool_world_member(reg(), "p-4", "", MEMBER_ADDRESS);
    static const char *const want[][2] = {{"a", "p-2"}, {"b", "p-3"}, {"c", "p-1"}, {"d", "p-4"}};
    for (size_t i = 0; i < ARRAY_LEN(want); i++) {
        post(want[i][0], "", "");
        SCOPED(json_free_p) cJSON *claim = read_claim(want[i][0]);
        ck_assert_str_eq(pool_world_bound(reg(), claim), want[i][1]);
    }
}
END_TEST

START_TEST(test_only_unfit_members) /* C-t089 */
{
    pool_world_member(reg(), "p-1", "n", MEMBER_READY);
    pool_world_member(reg(), "p-2", "n", MEMBER_READY);
    pool_world_edit(reg(), &kind_sandbox, "p-1", "metadata|ownerReferences", "null");
    pool_world_edit(reg(), &kind_sandbox, "p-2", "metadata|finalizers", "[\"a/b\"]");
    world_delete(&pw.w, "ns", "p-2");
    post("c", "", "");
    expect("c", "-", "-", "-");
    pass("c");
    expect("c", "False", "SandboxNotReady", "c");
}
END_TEST

START_TEST(test_pool_gone) /* C-t164 */
{
    SCOPED(object_unref_p) struct object *o = NULL;
    bool gone;
    struct delete_options opts = {.orphan_dependents = -1, .deadline_ms = world_deadline()};
    pool_world_member(reg(), "p-1", "n", MEMBER_READY);
    ck_assert_int_eq(
        registry_delete(reg(), &kind_sandbox_warm_pool, "ns", "p", &opts, &o, &gone, NULL), 0);
    post("c", "", "");
    expect("c", "-", "-", "-");
    pass("c");
    expect("c", "False", "WarmPoolNotFound", "-");
    ck_assert_uint_eq(pool_world_owned(reg(), NULL), 0);
}
END_TEST

/* C-t125, C-t177: a bound claim takes no second member; a lost launch type is filled in, once. */
START_TEST(test_launch_type_is_filled_in)
{
    pool_world_member(reg(), "p-1", "n", MEMBER_READY);
    post("c", "", "");
    pool_world_member(reg(), "p-2", "n", MEMBER_READY);
    pass("c");
    int64_t settled = registry_revision(reg());
    pool_world_edit(reg(), &kind_sandbox, "p-1", "metadata|labels|" LABEL_LAUNCH_TYPE, "null");
    pass("c");
    SCOPED(json_free_p) cJSON *sandbox = pool_world_read(reg(), &kind_sandbox, "p-1");
    ck_assert_str_eq(meta_label(sandbox, LABEL_LAUNCH_TYPE), "warm");
    ck_assert_int_eq(registry_revision(reg()), settled + 2); /* the edit, the repair */
    pass("c");
    ck_assert_int_eq(registry_revision(reg()), settled + 2);
    expect("c", "True", "DependenciesReady", "p-1");
    ck_assert_uint_eq(pool_world_owned(reg(), NULL), 1);
}
END_TEST

/* C-t123, O-t021: with the binding come pod-name and the claim's maker, in the same write. */
START_TEST(test_what_comes_with_the_binding)
{
    pool_world_member(reg(), "p-1", "n", MEMBER_READY);
    post("c", "", "");
    SCOPED(json_free_p) cJSON *sandbox = pool_world_read(reg(), &kind_sandbox, "p-1");
    ck_assert_str_eq(meta_annotation(sandbox, ANNOTATION_POD_NAME), "p-1");
    ck_assert_ptr_null(meta_label(sandbox, LABEL_CREATED_BY));
    pass("c");
    ck_assert_double_eq(counted("warm", "ready"), 1);
}
END_TEST

START_TEST(test_pod_of_a_bound_claim) /* C-t124 */
{
    pool_world_member(reg(), "p-1", "n", MEMBER_PENDING);
    pass_sandbox("p-1");
    cJSON *pod = fake_cluster_find(&cluster, CHILD_POD, "ns", "p-1");
    json_set(json_get(pod, "status"), "phase", json_string("Running"));
    json_set(json_get(pod, "status"), "podIPs", world_tree("[{\"ip\":\"10.0.0.9\"}]"));
    json_set(json_get(pod, "status"), "conditions",
             world_tree("[{\"type\":\"Ready\",\"status\":\"True\"}]"));
    pass_sandbox("p-1");
    post("c", "", "");
    pass_sandbox("p-1");
    pass("c");
    expect("c", "True", "DependenciesReady", "p-1");
    fake_cluster_remove(&cluster, CHILD_POD, "ns", "p-1");
    pass_sandbox("p-1");
    pass("c");
    expect("c", "False", "DependenciesNotReady", "p-1");
    SCOPED(json_free_p) cJSON *claim = read_claim("c");
    SCOPED(json_free_p) cJSON *sandbox = pool_world_read(reg(), &kind_sandbox, "p-1");
    ck_assert(claim_controls(claim, sandbox));
}
END_TEST

START_TEST(test_assigned_to_an_old_claim) /* C-t134 */
{
    pool_world_member(reg(), "p-1", "n", MEMBER_READY);
    post("a", "", "");
    SCOPED(json_free_p) cJSON *a = read_claim("a");
    SCOPED_FREE char *owner =
        xasprintf("[{\"apiVersion\":\"extensions.agents.x-k8s.io/v1alpha1\",\"kind\":"
                  "\"SandboxClaim\",\"name\":\"a\",\"uid\":\"%s\",\"controller\":true}]",
                  meta_uid(a));
    pool_world_edit(reg(), &kind_sandbox, "p-1", "metadata|ownerReferences", owner);
    post("b", ",\"annotations\":{\"agents.x-k8s.io/sandbox-name\":\"p-1\"}", "");
    pass("b");
    expect("b", "False", "SandboxNotReady", "b");
    SCOPED(json_free_p) cJSON *b = read_claim("b");
    ck_assert_ptr_null(meta_annotation(b, ANNOTATION_SANDBOX_NAME));
}
END_TEST

/* The number of creation latencies of warm claims. */
static double measured(void)
{
    SCOPED(buf_fini) struct buf text = {0};
    metric_print_all(&text);
    static const char line[] = "agent_sandbox_creation_latency_ms_count{namespace=\"ns\","
                               "launch_type=\"warm\",sandbox_template=\"t\"} ";
    const char *at = strstr(buf_cstr(&text), line);
    return at ? strtod(at + sizeof line - 1, NULL) : 0;
}

/* O-t012, O-t015: who was ready once is not measured again. */
START_TEST(test_measured_once)
{
    pool_world_member(reg(), "p-1", "n", MEMBER_ADDRESS);
    post("c", "", "");
    pass("c");
    ck_assert_double_eq(measured(), 0);
    make_ready("p-1");
    pass("c");
    ck_assert_double_eq(measured(), 1);
    make_finished("p-1", "2026-01-02T03:04:05Z");
    pass("c");
    expect("c", "False", "PodSucceeded", "p-1");
    make_ready("p-1");
    pass("c");
    expect("c", "True", "DependenciesReady", "p-1");
    ck_assert_double_eq(measured(), 1);
}
END_TEST

/* O-t023, O-t024, O-t026: the first sight is kept until the first write; a namesake has its own. */
START_TEST(test_first_sight)
{
    pool_world_member(reg(), "p-1", "", MEMBER_PENDING);
    post("c", "", "");
    pass("c");
    expect("c", "-", "-", "-");
    clock_fake_advance(&pw.w.clock, 2500);
    pass("c"); /* cold: nobody got an address in time */
    SCOPED(json_free_p) cJSON *claim = read_claim("c");
    ck_assert_str_eq(meta_annotation(claim, ANNOTATION_FIRST_OBSERVED_AT),
                     "2026-01-02T03:04:05.000000Z");
    remove_claim("c");
    world_delete(&pw.w, "ns", "p-1");
    world_delete(&pw.w, "ns", "c");
    post("c", "", "");
    pass("c");
    SCOPED(json_free_p) cJSON *again = read_claim("c");
    ck_assert_str_eq(meta_annotation(again, ANNOTATION_FIRST_OBSERVED_AT),
                     "2026-01-02T03:04:07.500000Z");
}
END_TEST

/* O-t025, O-t027: a claim is remembered until a pass finds it gone; one made anew meanwhile takes
 * its place, and one that this process never saw leaves nothing behind. */
START_TEST(test_who_was_seen)
{
    pool_world_member(reg(), "p-1", "n", MEMBER_READY);
    post("c", "", "");
    pass("c");
    expect("c", "True", "DependenciesReady",
           "p-1"); /* ready: still remembered, for its next pass */
    ck_assert_uint_eq(claim_reconciler_seen(claims), 1);
    remove_claim("c");
    post("c", "", "");
    pass("c");
    pass("c");
    ck_assert_uint_eq(claim_reconciler_seen(claims), 1);
    remove_claim("c");
    pass("c");
    pass("never-there");
    ck_assert_uint_eq(claim_reconciler_seen(claims), 0);
    stop_reconcilers();
    post("d", "", "");
    start_reconcilers();
    remove_claim("d");
    pass("d");
    ck_assert_uint_eq(claim_reconciler_seen(claims), 0);
}
END_TEST

/* C-t130, C-t131, C-t136: another server has bound the claim meanwhile: a pass that does not know
 * it yet writes nothing, takes nobody else, and takes nothing back. */
START_TEST(test_bound_elsewhere)
{
    post("c", "", "");
    pool_world_member(reg(), "p-1", "n", MEMBER_READY);
    pool_world_member(reg(), "p-2", "n", MEMBER_READY);
    struct registry *mine = reg(), *other = start_deaf();
    pw.w.registry = other;
    stop_reconcilers();
    start_reconcilers();
    pass("c");
    pw.w.registry = mine;
    stop_reconcilers();
    start_reconcilers();
    int64_t written = stored_revision();
    pass("c");
    ck_assert_int_eq(stored_revision(), written);
    hear_again(other);
    expect("c", "True", "DependenciesReady", "p-1");
    pass("c");
    ck_assert_int_eq(stored_revision(), written);
    ck_assert_uint_eq(pool_world_owned(reg(), NULL), 1);
}
END_TEST

/* C-t137: the member that was chosen has changed meanwhile: the claim gets the next one, and the
 * first stays a candidate. */
START_TEST(test_member_changed_meanwhile)
{
    pool_world_member(reg(), "p-1", "n", MEMBER_READY);
    pool_world_member(reg(), "p-2", "n", MEMBER_READY);
    struct registry *other = start_deaf();
    pool_world_edit(other, &kind_sandbox, "p-1", "metadata|labels|x", "\"y\"");
    post("c", "", "");
    hear_again(other);
    expect("c", "True", "DependenciesReady", "p-2");
    post("d", "", "");
    expect("d", "True", "DependenciesReady", "p-1");
}
END_TEST

/* C-t129: a new process, whose caches are those of a new process, keeps what was said. */
START_TEST(test_restart_keeps_status)
{
    pool_world_member(reg(), "p-1", "n", MEMBER_READY);
    post("c", "", ",\"lifecycle\":{\"ttlSecondsAfterFinished\":60}");
    pass("c");
    make_finished("p-1", "2026-01-02T03:04:05Z");
    pass("c");
    SCOPED(json_free_p) cJSON *before = read_claim("c");
    int64_t written = stored_revision();
    stop_reconcilers();
    world_stop_registry(&pw.w);
    world_start_registry(&pw.w);
    start_reconcilers();
    ck_assert_int_eq(pass("c"), 60000);
    SCOPED(json_free_p) cJSON *after = read_claim("c");
    ck_assert(json_equal(before, after));
    ck_assert_int_eq(stored_revision(), written);
}
END_TEST

static void set_conditions(const char *scheduled_reason)
{
    SCOPED_FREE char *json = xasprintf(
        "[{\"type\":\"Ready\",\"status\":\"True\",\"reason\":\"DependenciesReady\","
        "\"message\":\"Pod is Ready\",\"lastTransitionTime\":\"2026-01-02T03:04:05Z\"},"
        "{\"type\":\"PodScheduled\",\"status\":\"True\",\"reason\":\"%s\",\"message\":\"\","
        "\"lastTransitionTime\":\"2026-01-02T03:04:05Z\"}]",
        scheduled_reason);
    pool_world_edit(reg(), &kind_sandbox, "p-1", "status|conditions", json);
}

/* C-t162: what a claim does not mirror makes no write. C-t156: what is not changed wakes nobody,
 * for nothing is stored. */
START_TEST(test_other_conditions_are_not_mirrored)
{
    pool_world_member(reg(), "p-1", "n", MEMBER_READY);
    post("c", "", "");
    set_conditions("x");
    pass("c");
    int64_t settled = registry_revision(reg());
    set_conditions("x");
    ck_assert_int_eq(registry_revision(reg()), settled);
    set_conditions("y");
    ck_assert_int_eq(registry_revision(reg()), settled + 1);
    pass("c");
    ck_assert_int_eq(registry_revision(reg()), settled + 1);
}
END_TEST

/* C-t148, C-t149, O-t028: a status made from an old claim is not written nor measured, and that is
 * no error. */
START_TEST(test_old_claim_is_not_written)
{
    pool_world_member(reg(), "p-1", "n", MEMBER_ADDRESS);
    post("c", "", "");
    make_ready("p-1");
    struct registry *other = start_deaf();
    pool_world_edit(other, &kind_sandbox_claim, "c", "metadata|labels|x", "\"y\"");
    ck_assert_int_ge(pass("c"), 0);
    hear_again(other);
    expect("c", "False", "DependenciesNotReady", "p-1");
    ck_assert_double_eq(measured(), 0);
    pass("c");
    expect("c", "True", "DependenciesReady", "p-1");
    ck_assert_double_eq(measured(), 1);
    SCOPED(json_free_p) cJSON *claim = read_claim("c");
    ck_assert_str_eq(meta_label(claim, "x"), "y");
}
END_TEST

/* ---- cold, made again ---- */

START_TEST(test_own_sandbox_found) /* C-t006 */
{
    post("c", "", "");
    pass("c");
    pool_world_edit(reg(), &kind_sandbox_claim, "c", "status", "{}");
    pool_world_edit(reg(), &kind_sandbox, "c", "metadata|labels|" LABEL_TEMPLATE_REF_HASH, "null");
    pass("c");
    expect("c", "False", "SandboxNotReady", "c");
    char hash[NAME_HASH_SIZE];
    digest_name_hash("t", hash);
    SCOPED(json_free_p) cJSON *sandbox = pool_world_read(reg(), &kind_sandbox, "c");
    ck_assert_str_eq(meta_label(sandbox, LABEL_TEMPLATE_REF_HASH), hash);
    ck_assert_uint_eq(pool_world_owned(reg(), NULL), 1);
}
END_TEST

/* C-t009, C-t010: own rules leave DNS alone, without them resolvers outside are given. */
START_TEST(test_dns) /* IL-056 */
{
    post("a", "", "");
    pass("a");
    SCOPED(json_free_p) cJSON *a = pool_world_read(reg(), &kind_sandbox, "a");
    ck_assert_str_eq(json_str(a, "spec.podTemplate.spec.dnsPolicy"), "None");
    ck_assert_str_eq(json_at(a, "spec.podTemplate.spec.dnsConfig.nameservers")->child->valuestring,
                     "8.8.8.8");
    pool_world_edit(reg(), &kind_sandbox_template, "t", "spec|networkPolicy", "{\"egress\":[{}]}");
    post("b", "", "");
    pass("b");
    SCOPED(json_free_p) cJSON *b = pool_world_read(reg(), &kind_sandbox, "b");
    ck_assert_ptr_null(json_at(b, "spec.podTemplate.spec.dnsPolicy"));
    ck_assert_ptr_null(json_at(b, "spec.podTemplate.spec.dnsConfig"));
}
END_TEST

#define VOLUMES(name, spec) "{\"metadata\":{\"name\":\"" name "\"},\"spec\":{" spec "}}"
#define CLASS(x) "\"storageClassName\":\"" x "\""
static const struct {
    const char *id, *policy; /* NULL = unset */
    const char *claim;       /* its list's items; NULL = none */
    const char *reason, *sandbox;
    const char *names; /* of the Sandbox's list, with the storage class */
} volumes[] = {
    {"C-t054 refused", "\"Disallowed\"", VOLUMES("e", ""), "VolumeClaimTemplatesError", "-", ""},
    {"C-t055 none asked for: warm", "\"Disallowed\"", NULL, "DependenciesReady", "p-1", "d/old "},
    {"C-t056 added", "\"Allowed\"", VOLUMES("e", CLASS("new")), "SandboxNotReady", "c",
     "d/old e/new "},
    {"C-t057 not overridden", "\"Allowed\"", VOLUMES("d", CLASS("new")),
     "VolumeClaimTemplatesError", "-", ""},
    {"C-t058 added", "\"Overrides\"", VOLUMES("e", CLASS("new")), "SandboxNotReady", "c",
     "d/old e/new "},
    {"C-t059 replaced", "\"Overrides\"", VOLUMES("d", CLASS("new")), "SandboxNotReady", "c",
     "d/new "},
    {"C-t060 no policy", NULL, VOLUMES("e", ""), "VolumeClaimTemplatesError", "-", ""},
    {"C-t061 no name", "\"Overrides\"", VOLUMES("", ""), "VolumeClaimTemplatesError", "-", ""},
    {"C-t062 one name twice", "\"Overrides\"", VOLUMES("e", "") "," VOLUMES("e", ""),
     "VolumeClaimTemplatesError", "-", ""},
};

START_TEST(test_volumes)
{
    if (volumes[_i].policy)
        pool_world_edit(reg(), &kind_sandbox_template, "t", "spec|volumeClaimTemplatesPolicy",
                        volumes[_i].policy);
    pool_world_edit(reg(), &kind_sandbox_template, "t", "spec|volumeClaimTemplates",
                    "[" VOLUMES("d", CLASS("old")) "]");
    pool_world_member(reg(), "p-1", "n", MEMBER_READY);
    SCOPED_FREE char *spec =
        xasprintf(",\"volumeClaimTemplates\":[%s]", volumes[_i].claim ? volumes[_i].claim : "");
    post("c", "", volumes[_i].claim ? spec : "");
    pass("c");
    SCOPED(json_free_p) cJSON *claim = read_claim("c");
    const cJSON *ready = condition_find(json_at(claim, "status.conditions"), "Ready");
    ck_assert_msg(str_equal(json_str(ready, "reason"), volumes[_i].reason), "%s: %s",
                  volumes[_i].id, json_str_or(ready, "reason", "-"));
    const char *name = json_str_or(claim, "status.sandbox.name", "-");
    ck_assert_msg(str_equal(name, volumes[_i].sandbox), "%s: %s", volumes[_i].id, name);
    SCOPED(json_free_p) cJSON *sandbox = pool_world_read(reg(), &kind_sandbox, name);
    SCOPED(buf_fini) struct buf names = {0};
    const cJSON *v;
    cJSON_ArrayForEach(v, json_at(sandbox, "spec.volumeClaimTemplates"))
    {
        buf_printf(&names, "%s/%s ", meta_name(v), json_str_or(v, "spec.storageClassName", "-"));
    }
    ck_assert_msg(str_equal(buf_cstr(&names), volumes[_i].names), "%s: %s", volumes[_i].id,
                  buf_cstr(&names));
}
END_TEST

/* ---- the end, in other ways ---- */

/* C-t066, C-t069: the Sandbox has expired before its claim. */
START_TEST(test_delete_with_expired_sandbox)
{
    SCOPED_FREE char *lifecycle = xasprintf("{" PAST ",\"shutdownPolicy\":\"%s\"}", policies[_i]);
    pool_world_member(reg(), "p-1", "n", MEMBER_READY);
    post("c", "", "");
    pool_world_edit(reg(), &kind_sandbox, "p-1", "status",
                    "{\"conditions\":[{\"type\":\"Ready\",\"status\":\"False\",\"reason\":"
                    "\"SandboxExpired\",\"message\":\"Sandbox has expired\",\"lastTransitionTime\":"
                    "\"2026-01-02T03:04:06Z\"}]}");
    pass("c");
    expect("c", "False", "SandboxExpired", "p-1");
    pool_world_edit(reg(), &kind_sandbox_claim, "c", "spec|lifecycle", lifecycle);
    ck_assert_int_eq(pass("c"), 1);
    ck_assert_int_eq(pass("c"), 0);
    SCOPED(json_free_p) cJSON *claim = read_claim("c");
    ck_assert(_i == 0 ? !claim : meta_is_terminating(claim));
}
END_TEST

START_TEST(test_earlier_of_two) /* C-t082 */
{
    post("c", "",
         ",\"lifecycle\":{\"ttlSecondsAfterFinished\":60,\"shutdownTime\":"
         "\"2026-01-02T03:04:25Z\"}"); /* 20 s from now */
    pass("c");
    make_finished("c", "2026-01-02T03:04:00Z");
    ck_assert_int_eq(pass("c"), 20000);
    pool_world_edit(reg(), &kind_sandbox_claim, "c", "spec|lifecycle|ttlSecondsAfterFinished",
                    "15");
    ck_assert_int_eq(pass("c"), 10000);
    clock_fake_advance(&pw.w.clock, 10000);
    ck_assert_int_eq(pass("c"), 1);
    expect("c", "False", "ClaimExpired", "c");
}
END_TEST

START_TEST(test_finished_stays) /* C-t083 */
{
    post("c", "", ",\"lifecycle\":{\"shutdownPolicy\":\"Delete\"}");
    pass("c");
    make_finished("c", "2026-01-02T03:04:00Z");
    clock_fake_advance(&pw.w.clock, 24 * 3600000);
    ck_assert_int_eq(pass("c"), 0);
    expect("c", "False", "PodSucceeded", "c");
    ck_assert(exists(&kind_sandbox, "c"));
}
END_TEST

START_TEST(test_held_while_retained) /* C-t084 */
{
    post("c", "", ",\"lifecycle\":{\"ttlSecondsAfterFinished\":0}");
    pass("c");
    pool_world_edit(reg(), &kind_sandbox, "c", "metadata|finalizers", "[\"a/b\"]");
    make_finished("c", "2026-01-02T03:04:05Z");
    ck_assert_int_eq(pass("c"), 1);
    pass("c");
    expect("c", "False", "ClaimExpired", "c");
    SCOPED(json_free_p) cJSON *held = read_claim("c");
    ck_assert_ptr_nonnull(condition_find(json_at(held, "status.conditions"), "Finished"));
    pool_world_edit(reg(), &kind_sandbox, "c", "metadata|finalizers", "null");
    pass("c");
    expect("c", "False", "ClaimExpired", "-");
    SCOPED(json_free_p) cJSON *after = read_claim("c");
    ck_assert_ptr_nonnull(condition_find(json_at(after, "status.conditions"), "Finished"));
}
END_TEST

/* ---- old policies: C-t011 to C-t013 ---- */

static void put_policy(const char *name, const char *uid)
{
    SCOPED_FREE char *json = xasprintf(
        "{\"metadata\":{\"name\":\"%s\",\"namespace\":\"ns\",\"uid\":\"u\",\"ownerReferences\":[{"
        "\"apiVersion\":\"extensions.agents.x-k8s.io/v1beta1\",\"kind\":\"SandboxClaim\",\"name\":"
        "\"c\",\"uid\":\"%s\",\"controller\":true}]}}",
        name, uid);
    fake_cluster_put(&cluster, CHILD_NETPOL, "ns", world_tree(json));
}

START_TEST(test_legacy_policy)
{
    post("c", "", "");
    post("d", "", "");
    SCOPED(json_free_p) cJSON *claim = read_claim("c");
    put_policy("c-network-policy", meta_uid(claim));
    put_policy("d-network-policy", meta_uid(claim));
    pass("c");
    pass("d");
    ck_assert_ptr_null(fake_cluster_find(&cluster, CHILD_NETPOL, "ns", "c-network-policy"));
    ck_assert_ptr_nonnull(fake_cluster_find(&cluster, CHILD_NETPOL, "ns", "d-network-policy"));
}
END_TEST

/* ---- leadership and faults ---- */

START_TEST(test_follower_writes_nothing)
{
    post("c", "", "");
    pool_world_member(reg(), "p-1", "n", MEMBER_READY);
    int64_t before = registry_revision(reg());
    leads = false;
    ck_assert_int_lt(pass("c"), 0);
    ck_assert_int_eq(registry_revision(reg()), before);
    leads = true;
    pass("c");
    expect("c", "True", "DependenciesReady", "p-1");
}
END_TEST

static enum memstore_fault fail_all(void *ctx, const char *call, uint64_t n)
{
    (void)ctx;
    (void)call;
    (void)n;
    return MEMSTORE_UNAVAILABLE;
}

START_TEST(test_store_down_keeps_the_binding) /* C-t147, IL-020 */
{
    pool_world_member(reg(), "p-1", "n", MEMBER_READY);
    post("c", "", "");
    pass("c");
    make_finished("p-1", "2026-01-02T03:04:05Z");
    memstore_set_fault(pw.w.store, fail_all, NULL);
    ck_assert_int_lt(pass("c"), 0);
    memstore_set_fault(pw.w.store, NULL, NULL);
    expect("c", "True", "DependenciesReady", "p-1");
    pass("c");
    expect("c", "False", "PodSucceeded", "p-1");
}
END_TEST

/* O-t016, O-t018: Ready and its stamp are one write: if it fails, so does the pass, nothing is
 * measured, and the next pass makes up for both, once. */
START_TEST(test_failed_stamp)
{
    pool_world_member(reg(), "p-1", "n", MEMBER_ADDRESS);
    post("c", "", "");
    pass("c");
    make_ready("p-1");
    memstore_set_fault(pw.w.store, no_writes, NULL);
    ck_assert_int_lt(pass("c"), 0);
    memstore_set_fault(pw.w.store, NULL, NULL);
    ck_assert_double_eq(measured(), 0);
    SCOPED(json_free_p) cJSON *before = read_claim("c");
    ck_assert_ptr_null(meta_annotation(before, ANNOTATION_FIRST_READY_AT));
    pass("c");
    pass("c");
    ck_assert_double_eq(measured(), 1);
    SCOPED(json_free_p) cJSON *after = read_claim("c");
    ck_assert_ptr_nonnull(meta_annotation(after, ANNOTATION_FIRST_READY_AT));
}
END_TEST

/* What is to be written about an assignment fails, or this process has just lost the lead: an
 * error, without a word in status, and the next pass does it. */
static const struct {
    const char *id, *assigned, *sandbox; /* what becomes of it */
    bool is_cancelled;
} unsettled[] = {
    {"C-t142 clean-up fails", "nowhere", "c", false},
    {"C-t143 cancelled in the clean-up", "nowhere", "c", true},
    {"C-t144 cancelled in the adoption", "p-1", "p-1", true},
    {"C-t146 the adoption fails", "p-1", "p-1", false},
};

START_TEST(test_unsettled_assignment)
{
    SCOPED_FREE char *metadata = xasprintf(
        ",\"annotations\":{\"agents.x-k8s.io/sandbox-name\":\"%s\"}", unsettled[_i].assigned);
    pool_world_member(reg(), "p-1", "n", MEMBER_READY);
    post("c", metadata, "");
    SCOPED(json_free_p) cJSON *before = read_claim("c");
    leads = !unsettled[_i].is_cancelled;
    memstore_set_fault(pw.w.store, unsettled[_i].is_cancelled ? NULL : no_writes, NULL);
    ck_assert_msg(pass("c") < 0, "%s", unsettled[_i].id);
    memstore_set_fault(pw.w.store, NULL, NULL);
    leads = true;
    SCOPED(json_free_p) cJSON *between = read_claim("c");
    ck_assert_msg(json_equal(before, between), "%s", unsettled[_i].id);
    if (str_equal(unsettled[_i].assigned, "nowhere"))
        world_delete(&pw.w, "ns", "p-1");
    pass("c");
    SCOPED(json_free_p) cJSON *after = read_claim("c");
    ck_assert_msg(str_equal(json_str(after, "status.sandbox.name"), unsettled[_i].sandbox), "%s",
                  unsettled[_i].id);
}
END_TEST

struct fault {
    uint64_t at;
    enum memstore_fault what;
};

static enum memstore_fault fail_nth(void *ctx, const char *call, uint64_t n)
{
    const struct fault *f = ctx;
    (void)call;
    return n == f->at ? f->what : MEMSTORE_OK;
}

static const enum memstore_fault faults[] = {MEMSTORE_UNAVAILABLE, MEMSTORE_UNDETERMINED_DONE,
                                             MEMSTORE_UNDETERMINED_LOST};
#define FAULT_CALLS 8

/* Passes until they have nothing to do, the n-th call of the store failing: the end is the same. */
static void run_with_fault(int i)
{
    struct fault f = {(uint64_t)i % FAULT_CALLS + 1, faults[i / FAULT_CALLS]};
    memstore_set_fault(pw.w.store, fail_nth, &f);
    for (int k = 0; k < 4; k++)
        pass("c");
    memstore_set_fault(pw.w.store, NULL, NULL);
    pass("c");
}

START_TEST(test_fault_cold)
{
    post("c", "", "");
    run_with_fault(_i);
    expect("c", "False", "SandboxNotReady", "c");
    ck_assert_uint_eq(pool_world_owned(reg(), NULL), 1);
}
END_TEST

START_TEST(test_fault_adoption)
{
    post("c", "", "");
    pool_world_member(reg(), "p-1", "n", MEMBER_READY);
    pool_world_member(reg(), "p-2", "n", MEMBER_READY);
    run_with_fault(_i);
    SCOPED(json_free_p) cJSON *claim = read_claim("c");
    ck_assert_str_ne(pool_world_bound(reg(), claim), "");
    ck_assert_uint_eq(pool_world_owned(reg(), NULL), 1);
}
END_TEST

START_TEST(test_fault_retain)
{
    post("c", "", "");
    pass("c");
    pool_world_edit(reg(), &kind_sandbox_claim, "c", "spec|lifecycle", "{" PAST "}");
    run_with_fault(_i);
    expect("c", "False", "ClaimExpired", "-");
    ck_assert(!exists(&kind_sandbox, "c"));
}
END_TEST

SUITE(claim_pass)
{
    TCase *tc = tcase_create("claim_pass");
    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_set_timeout(tc, 60);
    const TTest *const tests[] = {test_writes_of_a_warm_claim,
                                  test_bound_claim_is_told_about_once,
                                  test_unready_member,
                                  test_reconciler_adopts,
                                  test_grace,
                                  test_finish_adoption,
                                  test_stale_assignment,
                                  test_sandbox_lost,
                                  test_cold,
                                  test_cold_only,
                                  test_missing,
                                  test_namespace_ends,
                                  test_name_taken,
                                  test_invalid_metadata,
                                  test_conflicting_metadata,
                                  test_metadata_follows,
                                  test_retain,
                                  test_retain_foreign,
                                  test_ttl,
                                  test_legacy_policy,
                                  test_follower_writes_nothing,
                                  test_order_of_members,
                                  test_measured_once,
                                  test_first_sight,
                                  test_who_was_seen,
                                  test_conflict_of_an_assigned_member,
                                  test_old_claim_is_not_written,
                                  test_only_unfit_members,
                                  test_pool_gone,
                                  test_failed_clean_up,
                                  test_metadata_without_the_pool,
                                  test_stays_with_its_template,
                                  test_idle_timeout,
                                  test_launch_type_is_filled_in,
                                  test_what_comes_with_the_binding,
                                  test_pod_of_a_bound_claim,
                                  test_assigned_to_an_old_claim,
                                  test_own_sandbox_found,
                                  test_dns,
                                  test_earlier_of_two,
                                  test_finished_stays,
                                  test_held_while_retained,
                                  test_store_down_keeps_the_binding,
                                  test_bound_elsewhere,
                                  test_cold_without_hearing,
                                  test_member_changed_meanwhile,
                                  test_restart_keeps_status,
                                  test_other_conditions_are_not_mirrored,
                                  test_failed_stamp};
    for (size_t i = 0; i < ARRAY_LEN(tests); i++)
        tcase_add_test(tc, tests[i]);
    int n = (int)(FAULT_CALLS * ARRAY_LEN(faults));
    tcase_add_loop_test(tc, test_volumes, 0, (int)ARRAY_LEN(volumes));
    tcase_add_loop_test(tc, test_delete_with_expired_sandbox, 0, (int)ARRAY_LEN(policies));
    tcase_add_loop_test(tc, test_delete, 0, (int)ARRAY_LEN(policies));
    tcase_add_loop_test(tc, test_extended_while_it_ends, 0, (int)ARRAY_LEN(ends));
    tcase_add_loop_test(tc, test_time_that_never_begins, 0, (int)ARRAY_LEN(endless));
    tcase_add_loop_test(tc, test_unserved_claim_ends, 0, (int)ARRAY_LEN(ends));
    tcase_add_loop_test(tc, test_unsettled_assignment, 0, (int)ARRAY_LEN(unsettled));
    tcase_add_loop_test(tc, test_fault_cold, 0, n);
    tcase_add_loop_test(tc, test_fault_adoption, 0, n);
    tcase_add_loop_test(tc, test_fault_retain, 0, n);
    suite_add_tcase(s, tc);
}
