/* Whole passes over a warm pool: its size, its templates, its pace. Counts writes, and lets every
 * n-th call of the store fail to see that passes converge all the same. Names carry the ids of the
 * behaviour checklist. */
#include <inttypes.h>
#include <pthread.h>
#include <sched.h>

#include "tests/unit/reconcile/warmpool_fixture.h"

/* ---- sizing ---- */

START_TEST(test_fill) /* W-t002, W-t005, W-t011..W-t014 */
{
    create_template("t", "");
    create_pool(",\"replicas\":3");
    int64_t before = registry_revision(fx.world.registry);
    struct loop_result r = pass_ok();
    ck_assert_uint_eq(count(), 3);
    ck_assert_int_eq(registry_revision(fx.world.registry), before + 4); /* three and one status */
    expect_status(3, 0);
    ck_assert_int_eq(r.again_after_ms, 0);
    int64_t filled = registry_revision(fx.world.registry);
    r = pass_ok(); /* nothing to do: nothing written */
    ck_assert_int_eq(registry_revision(fx.world.registry), filled);
    ck_assert_int_ge(r.again_after_ms, GRACE_MS); /* W-t074, W-t079 */
    SCOPED_FREE char *name = name_of(0);
    set_ready(name, true);
    clock_fake_advance(&fx.world.clock, 1000);
    pass_ok();
    expect_status(3, 1);
    all_ready();
    clock_fake_advance(&fx.world.clock, 1000);
    r = pass_ok();
    expect_status(3, 3);
    ck_assert_int_eq(r.again_after_ms, 0); /* W-t076 */
    int64_t settled = registry_revision(fx.world.registry);
    pass_ok();
    ck_assert_int_eq(registry_revision(fx.world.registry), settled);
    SCOPED(json_free_p) cJSON *member = get(&kind_sandbox, name);
    ck_assert(str_has_prefix(name, "p-"));
    ck_assert_str_eq(json_str(owner_controller(member), "name"), "p");
    ck_assert_int_eq(json_i64_or(member, "metadata.generation", 0), 1);
}
END_TEST

START_TEST(test_resize) /* W-t003, W-t004, W-t006, W-t016 */
{
    create_template("t", "");
    create_pool(",\"replicas\":2");
    settle();
    edit(&kind_sandbox_warm_pool, "p", "spec.replicas", "5");
    settle();
    ck_assert_uint_eq(count(), 5);
    edit(&kind_sandbox_warm_pool, "p", "spec.replicas", "1");
    pass_ok();
    ck_assert_uint_eq(count(), 1);
    expect_status(1, 0);
    all_ready();
    settle();
    expect_status(1, 1);
    edit(&kind_sandbox_warm_pool, "p", "spec.replicas", "0");
    settle();
    ck_assert_uint_eq(count(), 0);
    expect_status(0, 0);
}
END_TEST

START_TEST(test_ready_ones_stay) /* IL-044 */
{
    create_template("t", "");
    create_pool(",\"replicas\":6");
    settle();
    SCOPED_FREE char *a = name_of(0), *b = name_of(3);
    set_ready(a, true);
    set_ready(b, true);
    edit(&kind_sandbox_warm_pool, "p", "spec.replicas", "2");
    settle();
    ck_assert_uint_eq(count(), 2);
    SCOPED(json_free_p) cJSON *x = get(&kind_sandbox, a), *y = get(&kind_sandbox, b);
    ck_assert(x && y);
    expect_status(2, 2);
}
END_TEST

/* One that is made anew under the same name is another: what was known of the one before it, and
 * its members, which are on their way out, do not count. */
START_TEST(test_namesake_starts_anew)
{
    create_template("t", "");
    create_pool(",\"replicas\":1");
    settle();
    delete_object(&kind_sandbox_warm_pool, "p");
    create_pool(",\"replicas\":1");
    settle();
    ck_assert_uint_eq(count(), 2);
    expect_status(1, 0);
}
END_TEST

START_TEST(test_batches)
{
    restart(&(struct warmpool_settings){.max_batch = 4});
    create_template("t", "");
    create_pool(",\"replicas\":10");
    pass_ok();
    ck_assert_uint_eq(count(), 4);
    pass_ok();
    ck_assert_uint_eq(count(), 8);
    pass_ok();
    ck_assert_uint_eq(count(), 10);
    edit(&kind_sandbox_warm_pool, "p", "spec.replicas", "0");
    struct loop_result r = pass_ok();
    ck_assert_uint_eq(count(), 6);
    ck_assert_int_gt(r.again_after_ms, 0);
    settle();
    ck_assert_uint_eq(count(), 0);
}
END_TEST

START_TEST(test_member_lost) /* the refill is made by the very pass that misses it */
{
    create_template("t", "");
    create_pool(",\"replicas\":2");
    settle();
    SCOPED_FREE char *name = name_of(0);
    delete_named(name);
    pass_ok();
    ck_assert_uint_eq(count(), 2);
}
END_TEST

START_TEST(test_adopted_member_is_replaced) /* W-t125, IL-050 */
{
    create_template("t", "");
    create_pool(",\"replicas\":2");
    settle();
    SCOPED_FREE char *name = name_of(0);
    edit(&kind_sandbox, name, "metadata.labels", "{}");
    edit(&kind_sandbox, name, "metadata.ownerReferences",
         "[{\"apiVersion\":\"extensions.agents.x-k8s.io/v1beta1\",\"kind\":\"SandboxClaim\","
         "\"name\":\"c\",\"uid\":\"c\",\"controller\":true}]");
    pass_ok();
    ck_assert_uint_eq(count(), 3);
    edit(&kind_sandbox_warm_pool, "p", "spec.replicas", "0");
    settle();
    ck_assert_uint_eq(count(), 1); /* never the claim's */
}
END_TEST

START_TEST(test_five_passes_in_a_row)
{
    create_template("t", "");
    create_pool(",\"replicas\":7");
    for (int i = 0; i < 5; i++)
        pass_ok();
    ck_assert_uint_eq(count(), 7);
}
END_TEST

/* W-t081, W-t093: whoever asks how often, a key is on one worker. */
START_TEST(test_many_workers) /* IL-040 */
{
    create_template("t", "");
    create_pool(",\"replicas\":20");
    struct loop *l = loop_new(&(struct loop_config){.name = "pools",
                                                    .workers = 8,
                                                    .clock = &clock_system,
                                                    .work = warmpool_pass,
                                                    .ctx = fx.reconciler});
    loop_start(l);
    for (int i = 0; i < 64; i++)
        loop_add(l, "ns/p");
    while (count() < 20)
        sched_yield();
    for (int i = 0; i < 64; i++)
        loop_add(l, "ns/p");
    while (loop_len(l) > 0)
        sched_yield();
    loop_stop(l);
    loop_free(l);
    ck_assert_uint_eq(count(), 20);
}
END_TEST

/* ---- orphans ---- */

static void create_orphan(const char *name, const char *image, const char *labels)
{
    SCOPED_FREE char *text =
        xasprintf("{\"apiVersion\":\"agents.x-k8s.io/"
                  "v1beta1\",\"kind\":\"Sandbox\",\"metadata\":{\"name\":\"%s\","
                  "\"labels\":{%s}},\"spec\":{\"podTemplate\":{\"spec\":{\"containers\":[{\"name\":"
                  "\"c\",\"image\":"
                  "\"%s\"}],\"automountServiceAccountToken\":false,\"dnsPolicy\":\"Default\"}}}}",
                  name, labels, image);
    create(&kind_sandbox, text);
}

/* Another server on the store, and what led on it; from then on neither hears of the other's
 * writes. */
struct rival {
    struct registry *registry;
    struct warmpool_reconciler *reconciler;
};

static void rival_start(struct rival *r)
{
    r->registry = registry_new(&fx.world.config);
    registry_start(r->registry);
    for (int i = 0;
         i < 5000 && !(registry_is_synced(r->registry) &&
                       registry_revision(r->registry) >= registry_revision(fx.world.registry));
         i++)
        sleep_ms(1);
    r->reconciler = warmpool_reconciler_new(&(struct pass_env){.registry = r->registry,
                                                               .cluster = &fx.cluster.base,
                                                               .clock = &fx.world.clock.clock,
                                                               .randomness = &fx.world.randomness,
                                                               .fence = fence},
                                            &(struct warmpool_settings){0});
    memstore_set_watch_down(fx.world.store, true);
}

static void *five_passes(void *arg)
{
    struct loop_result r = {0};
    for (int i = 0; i < 5; i++)
        warmpool_pass(arg, "ns/p", &r);
    return NULL;
}

static void rival_stop(struct rival *r)
{
    warmpool_reconciler_free(r->reconciler);
    registry_stop(r->registry);
    registry_free(r->registry);
}

/* The old leader wrote what the new one has not heard of: five passes are begun in that state, and
 * what they miss comes only then. W-t080, W-t085: members that were made are not made again;
 * W-t083, W-t088: those that were deleted, and are still in sight, are neither deleted twice nor
 * mourned; W-t084: what comes meanwhile and is not the pool's counts for nothing. */
static const struct {
    const char *id, *replicas; /* asked for while nobody hears */
    size_t sandboxes;
} unheard[] = {
    {"W-t080 W-t085 made by the old leader", "4", 4},
    {"W-t083 W-t088 deleted by the old leader", "2", 2},
};

START_TEST(test_unheard)
{
    struct rival old;
    pthread_t thread;
    create_template("t", "");
    create_pool(",\"replicas\":3");
    settle();
    edit(&kind_sandbox_warm_pool, "p", "spec.replicas", unheard[_i].replicas);
    rival_start(&old);
    struct loop_result r = {0};
    warmpool_pass(old.reconciler, "ns/p", &r);
    struct registry *mine = fx.world.registry;
    restart(&(struct warmpool_settings){0}); /* just elected */
    pthread_create(&thread, NULL, five_passes, fx.reconciler);
    fx.world.registry = old.registry;
    create_orphan("of-nobody", "i", "");
    fx.world.registry = mine;
    memstore_set_watch_down(fx.world.store, false);
    pthread_join(thread, NULL);
    int64_t written;
    ck_assert_int_eq(store_revision(fx.world.store, world_deadline(), &written, NULL), 0);
    world_wait_rev(&fx.world, written);
    ck_assert_msg(count() == unheard[_i].sandboxes + 1, "%s: %zu", unheard[_i].id, count());
    settle();
    ck_assert_msg(count() == unheard[_i].sandboxes + 1, "%s: %zu", unheard[_i].id, count());
    rival_stop(&old);
}
END_TEST

START_TEST(test_orphans) /* W-t007, W-t010, W-t034, W-t035 */
{
    char pool[NAME_HASH_SIZE], template[NAME_HASH_SIZE];
    digest_name_hash("p", pool);
    digest_name_hash("t", template);
    create_template("t", "");
    edit(&kind_sandbox_template, "t", "spec.podTemplate.spec.dnsPolicy", "\"Default\"");
    SCOPED_FREE char *labels = xasprintf("\"%s\":\"%s\",\"%s\":\"%s\"", LABEL_WARM_POOL, pool,
                                         LABEL_TEMPLATE_REF_HASH, template);
    SCOPED_FREE char *no_ref = xasprintf("\"%s\":\"%s\"", LABEL_WARM_POOL, pool);
    create_orphan("same", "i", labels);
    create_orphan("stale", "other", labels);
    create_orphan("no-ref", "i", no_ref);
    create_pool(",\"replicas\":2");
    settle();
    SCOPED(json_free_p)
    cJSON *same = get(&kind_sandbox, "same"), *stale = get(&kind_sandbox, "stale"),
          *unlabelled = get(&kind_sandbox, "no-ref");
    ck_assert(same && !stale && !unlabelled);
    ck_assert_str_eq(json_str(owner_controller(same), "name"), "p");
    ck_assert_str_eq(meta_label(same, LABEL_LAUNCH_TYPE), "warm");
    ck_assert_int_eq(json_i64_or(same, "metadata.generation", 0), 1);
    ck_assert_uint_eq(count(), 2);
}
END_TEST

/* ---- rollout ---- */

static const struct {
    const char *id, *strategy, *path, *json;
    bool replaced;
} rollouts[] = {
    {"W-t036 unchanged", "Recreate", "spec.envVarsInjectionPolicy", "\"Allowed\"", false},
    {"W-t037 pod annotation", "Recreate", "spec.podTemplate.metadata",
     "{\"annotations\":{\"a\":\"b\"}}", false},
    {"W-t038 pod label", "Recreate", "spec.podTemplate.metadata", "{\"labels\":{\"a\":\"b\"}}",
     false},
    {"W-t039 claim annotation", "Recreate", "spec.volumeClaimTemplates",
     "[{\"metadata\":{\"name\":\"d\",\"annotations\":{\"a\":\"b\"}},\"spec\":{}}]", false},
    {"W-t040 claim label", "Recreate", "spec.volumeClaimTemplates",
     "[{\"metadata\":{\"name\":\"d\",\"labels\":{\"a\":\"b\"}},\"spec\":{}}]", false},
    {"W-t041 image", "Recreate", "spec.podTemplate.spec", "{" CONTAINERS("new") "}", true},
    {"W-t042 claim added", "Recreate", "spec.volumeClaimTemplates",
     "[{\"metadata\":{\"name\":\"d\"},\"spec\":{}},{\"metadata\":{\"name\":\"e\"},\"spec\":{}}]",
     true},
    {"W-t043 claim spec", "Recreate", "spec.volumeClaimTemplates",
     "[{\"metadata\":{\"name\":\"d\"},\"spec\":{\"storageClassName\":\"x\"}}]", true},
    {"W-t044 claim removed", "Recreate", "spec.volumeClaimTemplates", "[]", true},
    {"W-t045 service", "Recreate", "spec.service", "true", true},
    {"W-t032 explicit DNS", "Recreate", "spec.podTemplate.spec",
     "{" CONTAINERS("i") ",\"dnsPolicy\":\"ClusterFirst\"}", true},
    {"W-t029 OnReplenish", "OnReplenish", "spec.podTemplate.spec", "{" CONTAINERS("new") "}",
     false},
};

/* Whether the pool holds none of the names it held. */
static bool all_replaced(const struct list_result *before)
{
    for (size_t i = 0; i < before->n; i++) {
        SCOPED(json_free_p) cJSON *o = get(&kind_sandbox, before->objects[i]->name);
        if (o)
            return false;
    }
    return true;
}

START_TEST(test_rollout) /* IL-042 */
{
    create_template("t", ",\"volumeClaimTemplates\":[{\"metadata\":{\"name\":\"d\"},\"spec\":{}}]");
    SCOPED_FREE char *spec =
        xasprintf(",\"replicas\":2,\"updateStrategy\":{\"type\":\"%s\"}", rollouts[_i].strategy);
    create_pool(spec);
    settle();
    SCOPED(list_result_fini) struct list_result before = sandboxes();
    edit(&kind_sandbox_template, "t", rollouts[_i].path, rollouts[_i].json);
    struct loop_result r = pass_ok();
    if (rollouts[_i].replaced) {
        ck_assert_uint_eq(count(), 0); /* W-t028: replaced over two passes */
        ck_assert_int_eq(r.again_after_ms, 1);
    }
    settle();
    ck_assert_uint_eq(count(), 2);
    ck_assert_msg(all_replaced(&before) == rollouts[_i].replaced, "%s", rollouts[_i].id);
}
END_TEST

static const struct {
    const char *id, *strategy; /* JSON of spec.updateStrategy, with its comma */
    int new_ones;              /* of two, after the template's image changed */
} lives[] = {
    {"W-t119 default", "", 0},
    {"W-t120 OnReplenish", ",\"updateStrategy\":{\"type\":\"OnReplenish\"}", 0},
    {"W-t121 Recreate", ",\"updateStrategy\":{\"type\":\"Recreate\"}", 2},
};

static int members_with_image(const char *image)
{
    SCOPED(list_result_fini) struct list_result list = sandboxes();
    int n = 0;
    for (size_t i = 0; i < list.n; i++) {
        SCOPED(json_free_p) cJSON *o = object_tree(list.objects[i]);
        n += str_equal(json_str(json_at(o, "spec.podTemplate.spec.containers")->child, "image"),
                       image);
    }
    return n;
}

/* A rollout from beginning to end: what stays, and what a lost member is replaced with. */
START_TEST(test_rollout_life)
{
    create_template("t", "");
    SCOPED_FREE char *spec = xasprintf(",\"replicas\":2%s", lives[_i].strategy);
    create_pool(spec);
    settle();
    all_ready();
    settle();
    edit(&kind_sandbox_template, "t", "spec.podTemplate.spec", "{" CONTAINERS("new") "}");
    settle();
    ck_assert_msg(members_with_image("new") == lives[_i].new_ones, "%s", lives[_i].id);
    SCOPED_FREE char *name = name_of(0);
    delete_named(name);
    settle();
    int want = lives[_i].new_ones ? 2 : 1; /* W-t029: old and new side by side */
    ck_assert_msg(members_with_image("new") == want, "%s: replacement", lives[_i].id);
    ck_assert_uint_eq(count(), 2);
}
END_TEST

START_TEST(test_two_pools) /* W-t122 */
{
    create_template("t", "");
    create_template("u", ",\"service\":true");
    create_pool(",\"replicas\":2,\"updateStrategy\":{\"type\":\"Recreate\"}");
    create_pool_of("q", "u", ",\"replicas\":1,\"updateStrategy\":{\"type\":\"Recreate\"}");
    settle();
    SCOPED(list_result_fini) struct list_result before = sandboxes();
    pass_of("ns/q");
    ck_assert_uint_eq(count(), 3);
    edit(&kind_sandbox_template, "u", "spec.podTemplate.spec", "{" CONTAINERS("new") "}");
    pass_of("ns/q");
    pass_of("ns/q");
    settle();
    ck_assert_uint_eq(count(), 3);
    ck_assert_int_eq(members_with_image("new"), 1);
    for (size_t i = 0; i < before.n; i++) { /* those of p are as they were */
        SCOPED(json_free_p) cJSON *o = get(&kind_sandbox, before.objects[i]->name);
        ck_assert_ptr_nonnull(o);
        ck_assert_str_eq(meta_annotation(o, ANNOTATION_TEMPLATE_REF), "t");
    }
    expect_status(2, 0);
}
END_TEST

START_TEST(test_switch_template) /* W-t031, W-t123 */
{
    create_template("t", "");
    create_template("u", "");
    create_pool(",\"replicas\":2,\"updateStrategy\":{\"type\":\"Recreate\"}");
    settle();
    SCOPED(list_result_fini) struct list_result before = sandboxes();
    edit(&kind_sandbox_warm_pool, "p", "spec.sandboxTemplateRef.name", "\"u\"");
    settle();
    ck_assert(all_replaced(&before));
    SCOPED_FREE char *name = name_of(0);
    SCOPED(json_free_p) cJSON *member = get(&kind_sandbox, name);
    ck_assert_str_eq(meta_annotation(member, ANNOTATION_TEMPLATE_REF), "u");
}
END_TEST

START_TEST(test_missing_template)
{
    create_pool(",\"replicas\":2");
    struct loop_result r = pass_ok();
    ck_assert_uint_eq(count(), 0);
    expect_status(0, 0);
    expect_progress("False", "TemplateNotFound", "SandboxTemplate \"t\" not found"); /* IL-048 */
    ck_assert_int_eq(fx.cluster.events, 0); /* it may come with the next object of the same file */
    clock_fake_advance(&fx.world.clock, r.again_after_ms);
    pass_ok();
    ck_assert_str_eq(fx.cluster.last_event, "TemplateNotFound");
    pass_ok();
    ck_assert_int_eq(fx.cluster.events, 1);
    create_template("t", "");
    settle();
    ck_assert_uint_eq(count(), 2);
}
END_TEST

/* ---- pacing ---- */

START_TEST(test_replenish_delay) /* W-t099, W-t100, W-t102 */
{
    restart(&(struct warmpool_settings){.replenish_delay_ms = 60000});
    create_template("t", "");
    create_pool(",\"replicas\":3");
    pass_ok();
    ck_assert_uint_eq(count(), 3); /* the first fill is not held up */
    settle();
    SCOPED_FREE char *name = name_of(0);
    delete_named(name);
    struct loop_result r = pass_ok();
    ck_assert_uint_eq(count(), 2);
    ck_assert_int_eq(r.again_after_ms, 60000);
    clock_fake_advance(&fx.world.clock, 60000);
    pass_ok();
    ck_assert_uint_eq(count(), 3);
    clock_fake_advance(&fx.world.clock, GRACE_MS + 1000);
    pass_ok(); /* stuck ones go all the same */
    ck_assert_uint_eq(count(), 0);
}
END_TEST

START_TEST(test_no_rate) /* W-t114 */
{
    restart(&(struct warmpool_settings){.max_refill_rate = 0});
    create_template("t", "");
    create_pool(",\"replicas\":50");
    struct loop_result r = pass_ok();
    ck_assert_uint_eq(count(), 50);
    ck_assert_int_eq(r.again_after_ms, 0);
}
END_TEST

/* W-t092: what one pool has used up, and when it may go on, does not depend on another one's
 * end. */
START_TEST(test_other_pool_goes)
{
    restart(&(struct warmpool_settings){.max_refill_rate = 2});
    create_template("t", "");
    create_pool(",\"replicas\":5");
    create_pool_of("q", "t", ",\"replicas\":5");
    pass_of("ns/p");
    pass_of("ns/q");
    ck_assert_uint_eq(count(), 4);
    delete_object(&kind_sandbox_warm_pool, "q");
    pass_of("ns/q");
    pass_of("ns/p");
    ck_assert_uint_eq(count(), 4);
}
END_TEST

START_TEST(test_refill_rate) /* W-t115 */
{
    restart(&(struct warmpool_settings){.max_refill_rate = 2});
    create_template("t", "");
    create_pool(",\"replicas\":5");
    pass_ok();
    ck_assert_uint_eq(count(), 2);
    struct loop_result r = pass_ok();
    ck_assert_uint_eq(count(), 2);
    ck_assert_int_gt(r.again_after_ms, 0);
    ck_assert_int_le(r.again_after_ms, 501);
    clock_fake_advance(&fx.world.clock, 1000);
    pass_ok();
    ck_assert_uint_eq(count(), 4);
}
END_TEST

START_TEST(test_rate_after_delay) /* W-t117 */
{
    restart(&(struct warmpool_settings){.replenish_delay_ms = 60000, .max_refill_rate = 1});
    create_template("t", "");
    create_pool(",\"replicas\":2");
    pass_ok();
    ck_assert_uint_eq(count(), 1);
    clock_fake_advance(&fx.world.clock, 1001);
    settle();
    ck_assert_uint_eq(count(), 2);
    SCOPED_FREE char *a = name_of(0), *b = name_of(1);
    delete_named(a);
    delete_named(b);
    struct loop_result r = pass_ok();
    ck_assert_uint_eq(count(), 0);
    ck_assert_int_eq(r.again_after_ms, 60000);
    clock_fake_advance(&fx.world.clock, 60000);
    pass_ok();
    ck_assert_uint_eq(count(), 1);
    pass_ok();
    ck_assert_uint_eq(count(), 1);
    clock_fake_advance(&fx.world.clock, 1001);
    pass_ok();
    ck_assert_uint_eq(count(), 2);
}
END_TEST

START_TEST(test_stuck_ones_are_not_paced) /* W-t118 */
{
    restart(&(struct warmpool_settings){.max_refill_rate = 1});
    create_template("t", "");
    create_pool(",\"replicas\":3");
    for (int i = 0; i < 3; i++) {
        pass_ok();
        clock_fake_advance(&fx.world.clock, 1001);
    }
    ck_assert_uint_eq(count(), 3);
    clock_fake_advance(&fx.world.clock, GRACE_MS + 1000);
    pass_ok();
    ck_assert_uint_eq(count(), 0);
    pass_ok();
    ck_assert_uint_eq(count(), 1);
}
END_TEST

START_TEST(test_tokens_go_with_the_pool) /* W-t113 */
{
    restart(&(struct warmpool_settings){.max_refill_rate = 2});
    create_template("t", "");
    create_pool(",\"replicas\":5");
    pass_ok();
    pass_ok();
    ck_assert_uint_eq(count(), 2); /* no token left */
    delete_object(&kind_sandbox_warm_pool, "p");
    pass_ok();
    create_pool(",\"replicas\":5");
    pass_ok();
    ck_assert_uint_eq(count(), 4); /* the namesake's first two */
}
END_TEST

/* ---- trouble ---- */

START_TEST(test_pool_gone)
{
    struct loop_result r = {0};
    ck_assert_int_eq(warmpool_pass(fx.reconciler, "ns/none", &r), 0);
    create_template("t", "");
    create_pool(",\"replicas\":1");
    settle();
    edit(&kind_sandbox_warm_pool, "p", "metadata.finalizers", "[\"a/b\"]");
    SCOPED(object_unref_p) struct object *o = NULL;
    SCOPED(err_fini) struct err err = {0};
    bool gone;
    registry_delete(
        fx.world.registry, &kind_sandbox_warm_pool, "ns", "p",
        &(struct delete_options){.orphan_dependents = -1, .deadline_ms = world_deadline()}, &o,
        &gone, &err);
    SCOPED_FREE char *name = name_of(0);
    delete_named(name);
    pass_ok(); /* a pool that is going makes none */
    ck_assert_uint_eq(count(), 0);
}
END_TEST

START_TEST(test_not_leading)
{
    create_template("t", "");
    create_pool(",\"replicas\":2");
    fx.follows = true;
    int64_t before = registry_revision(fx.world.registry);
    struct loop_result r = {0};
    warmpool_pass(fx.reconciler, "ns/p", &r);
    ck_assert_int_eq(registry_revision(fx.world.registry), before);
}
END_TEST

static enum memstore_fault fault(void *ctx, const char *call, uint64_t n)
{
    (void)ctx;
    (void)call;
    return n == fx.fail_at ? fx.fault : MEMSTORE_OK;
}

/* Whatever call of the store fails, in whatever way: repeated passes reach the same end, and never
 * too many are left. */
START_TEST(test_converges) /* IL-040 */
{
    static const enum memstore_fault faults[] = {MEMSTORE_UNAVAILABLE, MEMSTORE_UNDETERMINED_DONE,
                                                 MEMSTORE_UNDETERMINED_LOST};
    create_template("t", "");
    create_pool(",\"replicas\":3,\"updateStrategy\":{\"type\":\"Recreate\"}");
    settle();
    fx.fault = faults[_i % (int)ARRAY_LEN(faults)];
    fx.fail_at = 1 + (uint64_t)_i / ARRAY_LEN(faults);
    edit(&kind_sandbox_template, "t", "spec.service", "true");
    edit(&kind_sandbox_warm_pool, "p", "spec.replicas", "4");
    memstore_set_fault(fx.world.store, fault, NULL);
    for (int i = 0; i < 6; i++) {
        struct loop_result r;
        warmpool_pass(fx.reconciler, "ns/p", &r);
        clock_fake_advance(&fx.world.clock, 200);
    }
    memstore_set_fault(fx.world.store, NULL, NULL);
    settle();
    ck_assert_uint_eq(count(), 4);
    expect_status(4, 0);
}
END_TEST

struct first_write {
    bool is_done;
    enum memstore_fault fault;
};

static enum memstore_fault lose_first_write(void *ctx, const char *call, uint64_t n)
{
    struct first_write *first = ctx;
    (void)n;
    if (first->is_done || !str_equal(call, "txn"))
        return MEMSTORE_OK;
    first->is_done = true;
    return first->fault;
}

/* Takes a label of a member away that the next pass will put back. */
static void unlabel(const char *name)
{
    SCOPED(json_free_p) cJSON *member = get(&kind_sandbox, name);
    cJSON *labels = json_at(member, "metadata.labels");
    json_remove(labels, LABEL_LAUNCH_TYPE);
    SCOPED_FREE char *text = json_to_str(labels);
    edit(&kind_sandbox, name, "metadata.labels", text);
}

/* A pass that cannot put it back. */
static void pass_without_labelling(void)
{
    struct first_write first = {.fault = MEMSTORE_UNAVAILABLE};
    struct loop_result r = {0};
    memstore_set_fault(fx.world.store, lose_first_write, &first);
    ck_assert_int_lt(warmpool_pass(fx.reconciler, "ns/p", &r), 0);
    memstore_set_fault(fx.world.store, NULL, NULL);
    ck_assert(first.is_done);
}

/* a member that could not be labelled counts all the same, so none is made in its place. */
START_TEST(test_unlabelled_member_counts)
{
    create_template("t", "");
    create_pool(",\"replicas\":2");
    settle();
    SCOPED_FREE char *name = name_of(0);
    unlabel(name);
    pass_without_labelling();
    ck_assert_uint_eq(count(), 2);
    settle();
    ck_assert_uint_eq(count(), 2);
    SCOPED(json_free_p) cJSON *labelled = get(&kind_sandbox, name);
    ck_assert_str_eq(meta_label(labelled, LABEL_LAUNCH_TYPE), LAUNCH_WARM);
}
END_TEST

/* W-t116: a pass that must not make anything takes no tokens, so the next one has all of them. */
START_TEST(test_tokens_are_kept)
{
    restart(&(struct warmpool_settings){.max_refill_rate = 2});
    create_template("t", "");
    create_pool(",\"replicas\":1");
    settle();
    clock_fake_advance(&fx.world.clock, 1000);
    SCOPED_FREE char *name = name_of(0);
    unlabel(name);
    edit(&kind_sandbox_warm_pool, "p", "spec.replicas", "5");
    pass_without_labelling();
    ck_assert_uint_eq(count(), 1);
    pass_ok();
    ck_assert_uint_eq(count(), 3);
    pass_ok();
    ck_assert_uint_eq(count(), 3);
}
END_TEST

/* W-t087, W-t090: a creation that failed, or of which nobody knows whether it did, holds nothing
 * up: the very next pass makes what is missing and no more. */
static const enum memstore_fault lost_writes[] = {MEMSTORE_UNAVAILABLE, MEMSTORE_UNDETERMINED_DONE,
                                                  MEMSTORE_UNDETERMINED_LOST};

START_TEST(test_failed_creation)
{
    struct first_write first = {.fault = lost_writes[_i]};
    struct loop_result r = {0};
    create_template("t", "");
    create_pool(",\"replicas\":5");
    memstore_set_fault(fx.world.store, lose_first_write, &first);
    warmpool_pass(fx.reconciler, "ns/p", &r);
    memstore_set_fault(fx.world.store, NULL, NULL);
    ck_assert(first.is_done);
    pass_ok();
    ck_assert_uint_eq(count(), 5);
    settle();
    ck_assert_uint_eq(count(), 5);
}
END_TEST

SUITE(warmpool_pass)
{
    const TTest *const tests[] = {
        test_fill,
        test_resize,
        test_ready_ones_stay,
        test_namesake_starts_anew,
        test_batches,
        test_member_lost,
        test_adopted_member_is_replaced,
        test_five_passes_in_a_row,
        test_no_rate,
        test_other_pool_goes,
        test_tokens_are_kept,
        test_many_workers,
        test_orphans,
        test_switch_template,
        test_missing_template,
        test_replenish_delay,
        test_refill_rate,
        test_two_pools,
        test_rate_after_delay,
        test_stuck_ones_are_not_paced,
        test_tokens_go_with_the_pool,
        test_pool_gone,
        test_not_leading,
        test_unlabelled_member_counts,
    };
    TCase *tc = tcase_create("passes");
    tcase_set_timeout(tc, 60);
    tcase_add_checked_fixture(tc, setup, teardown);
    for (size_t i = 0; i < ARRAY_LEN(tests); i++)
        tcase_add_test(tc, tests[i]);
    tcase_add_loop_test(tc, test_rollout, 0, ARRAY_LEN(rollouts));
    tcase_add_loop_test(tc, test_rollout_life, 0, ARRAY_LEN(lives));
    tcase_add_loop_test(tc, test_unheard, 0, ARRAY_LEN(unheard));
    tcase_add_loop_test(tc, test_failed_creation, 0, ARRAY_LEN(lost_writes));
    tcase_add_loop_test(tc, test_converges, 0, 60);
    suite_add_tcase(s, tc);
}
