/* The store fails at every n-th call, in each of its ways: what was acknowledged is there, nothing
 * is there twice, and no absence is told that is not known. */
#include <stdio.h>

#include "tests/lib/world.h"

static struct world w;

struct plan {
    enum memstore_fault fault;
    uint64_t every;   /* calls */
    const char *only; /* this call; NULL = all */
};

static enum memstore_fault decide(void *ctx, const char *call, uint64_t n)
{
    const struct plan *p = ctx;
    if (p->only && strcmp(p->only, call) != 0)
        return MEMSTORE_OK;
    return n % p->every == 0 ? p->fault : MEMSTORE_OK;
}

/* ---- one object counted up, made and removed, against a model ---- */

static const char count_path[] = "metadata.annotations.count";

struct model {
    bool is_there;
    int64_t count;
    int64_t acknowledged, failed;
};

static int increment(void *ctx, const cJSON *old, cJSON **ret, struct err *err)
{
    (void)ctx, (void)err;
    char text[32];
    int64_t n = 0;
    (void)str_to_i64(json_str_or(old, count_path, "0"), &n);
    snprintf(text, sizeof text, "%lld", (long long)n + 1);
    *ret = json_copy(old);
    json_set_str(json_ensure_object(json_get(*ret, "metadata"), "annotations"), "count", text);
    return 0;
}

static int64_t count_of(const struct object *o)
{
    SCOPED(json_free_p) cJSON *tree = object_tree(o);
    int64_t n = 0;
    (void)str_to_i64(json_str_or(tree, count_path, "0"), &n);
    return n;
}

static bool is_store_trouble(int rc)
{
    return rc == -ERR_SERVER_TIMEOUT || rc == -ERR_UNDETERMINED;
}

/* What is really there, asked with the faults off. */
static void look(struct model *now)
{
    SCOPED(object_unref_p) struct object *o = world_get(&w, "ns", "a");
    now->is_there = o != NULL;
    now->count = o ? count_of(o) : 0;
}

static void with_faults(struct plan *p)
{
    memstore_set_fault(w.store, p ? decide : NULL, p);
}

static int64_t soon(void)
{
    return clock_monotonic_ms(&clock_system) + 400;
}

/* Tries one operation under faults; then the state must be the model's, or, if it failed, the one
 * before. */
static void step(struct plan *p, struct model *m, int what)
{
    struct write_options opts = world_opts();
    opts.deadline_ms = soon();
    struct delete_options dopts = {.orphan_dependents = -1, .deadline_ms = soon()};
    struct update_request req = {
        .kind = &kind_sandbox, .namespace_name = "ns", .name = "a", .change = increment};
    SCOPED(object_unref_p) struct object *o = NULL;
    SCOPED(err_fini) struct err err = {0};
    struct model after = *m, now = {0};
    bool is_gone = false;
    int rc, expected;
    with_faults(p);
    if (what == 0) {
        rc = registry_create(w.registry, &kind_sandbox, "ns", world_sandbox("a", ""), &opts, &o,
                             &err);
        expected = m->is_there ? -ERR_ALREADY_EXISTS : 0;
        after.is_there = true;
        after.count = m->is_there ? m->count : 0;
    } else if (what == 1) {
        rc = registry_delete(w.registry, &kind_sandbox, "ns", "a", &dopts, &o, &is_gone, &err);
        expected = m->is_there ? 0 : -ERR_NOT_FOUND;
        after = (struct model){0};
    } else {
        rc = registry_update(w.registry, &req, &opts, &o, &err);
        expected = m->is_there ? 0 : -ERR_NOT_FOUND;
        after.count += m->is_there;
    }
    with_faults(NULL);
    look(&now);
    ck_assert_msg(rc == expected || is_store_trouble(rc), "operation %d: %d %s", what, rc,
                  err_text(&err));
    bool is_after = now.is_there == after.is_there && now.count == after.count;
    bool is_before = now.is_there == m->is_there && now.count == m->count;
    ck_assert_msg(is_after || (is_store_trouble(rc) && is_before),
                  "operation %d answered %d: there %d->%d count %lld->%lld", what, rc, m->is_there,
                  now.is_there, (long long)m->count, (long long)now.count);
    m->acknowledged += rc == expected;
    m->failed += rc != expected;
    m->is_there = now.is_there;
    m->count = now.count;
}

static const struct plan plans[] = {
    {MEMSTORE_UNAVAILABLE, 1, NULL},       {MEMSTORE_UNAVAILABLE, 2, NULL},
    {MEMSTORE_UNAVAILABLE, 3, NULL},       {MEMSTORE_UNDETERMINED_DONE, 1, "txn"},
    {MEMSTORE_UNDETERMINED_DONE, 1, NULL}, {MEMSTORE_UNDETERMINED_DONE, 2, NULL},
    {MEMSTORE_UNDETERMINED_DONE, 3, NULL}, {MEMSTORE_UNDETERMINED_DONE, 5, NULL},
    {MEMSTORE_UNDETERMINED_LOST, 2, NULL}, {MEMSTORE_UNDETERMINED_LOST, 3, NULL},
    {MEMSTORE_UNDETERMINED_LOST, 5, NULL}, {MEMSTORE_UNDETERMINED_LOST, 2, "txn"},
};

START_TEST(test_every_nth) /* IL-154 */
{
    struct plan plan = plans[_i];
    struct model m = {0};
    world_start(&w, NULL);
    for (int round = 0; round < (plan.every == 1 ? 1 : 8); round++) {
        static const int script[] = {2, 1, 0, 0, 2, 2, 2, 1, 1, 2, 0, 2};
        for (size_t i = 0; i < ARRAY_LEN(script); i++)
            step(&plan, &m, script[i]);
    }
    /* A lost connection behind the transaction alone keeps nobody from an answer. */
    if (plan.only && plan.fault == MEMSTORE_UNDETERMINED_DONE)
        ck_assert_int_eq(m.failed, 0);
    world_stop(&w);
}
END_TEST

/* ---- texts ---- */

START_TEST(test_texts)
{
    world_start(&w, NULL);
    object_unref(world_create(&w, "ns", "a", ""));
    struct plan plan = {MEMSTORE_UNAVAILABLE, 1, NULL};
    with_faults(&plan);
    struct object *o = NULL;
    SCOPED(err_fini) struct err err = {0};
    const struct read_version latest = {READ_LATEST, 0}, any = {READ_ANY, 0};
    ck_assert_int_eq(registry_get(w.registry, &kind_sandbox, "ns", "a", latest, soon(), &o, &err),
                     -ERR_SERVER_TIMEOUT);
    ck_assert_str_eq(err_text(&err), "The get operation against sandboxes.agents.x-k8s.io could "
                                     "not be completed at this time, please "
                                     "try again.");
    ck_assert_str_eq(err.name, "get");
    ck_assert_str_eq(err.kind, "sandboxes");
    ck_assert_int_eq(err.retry_after_s, 2);
    /* Absent for all we know is not absent. */
    ck_assert_int_eq(registry_get(w.registry, &kind_sandbox, "ns", "b", latest, soon(), &o, &err),
                     -ERR_SERVER_TIMEOUT);
    struct list_request req = {.kind = &kind_sandbox, .deadline_ms = soon()};
    struct list_result l = {0};
    ck_assert_int_eq(registry_list(w.registry, &req, &l, &err), -ERR_SERVER_TIMEOUT);
    struct write_options opts = world_opts();
    ck_assert_int_eq(
        registry_create(w.registry, &kind_sandbox, "ns", world_sandbox("c", ""), &opts, &o, &err),
        -ERR_SERVER_TIMEOUT);
    ck_assert(strstr(err_text(&err), "The create operation against sandboxes.agents.x-k8s.io"));
    ck_assert_int_eq(world_try_set(&w, "ns", "zz", "spec.service", "true", &opts, false, &o, &err),
                     -ERR_SERVER_TIMEOUT);
    struct delete_options dopts = {.orphan_dependents = -1, .deadline_ms = soon()};
    bool is_gone;
    ck_assert_int_eq(
        registry_delete(w.registry, &kind_sandbox, "ns", "zz", &dopts, &o, &is_gone, &err),
        -ERR_SERVER_TIMEOUT);
    /* From memory it goes on. */
    ck_assert_int_eq(registry_get(w.registry, &kind_sandbox, "ns", "a", any, soon(), &o, &err), 0);
    object_unref(o);
    with_faults(NULL);
    world_stop(&w);
}
END_TEST

/* The outcome stays unknown until the deadline: an error, and the write happened at most once. */
START_TEST(test_unknown_to_the_end)
{
    world_start(&w, NULL);
    struct plan plan = {MEMSTORE_UNDETERMINED_DONE, 1, NULL};
    struct write_options opts = world_opts();
    opts.deadline_ms = clock_monotonic_ms(&clock_system) + 300;
    struct object *o = NULL;
    SCOPED(err_fini) struct err err = {0};
    with_faults(&plan);
    ck_assert_int_eq(
        registry_create(w.registry, &kind_sandbox, "ns", world_sandbox("a", ""), &opts, &o, &err),
        -ERR_UNDETERMINED);
    with_faults(NULL);
    ck_assert_str_eq(err_text(&err), "The create operation against sandboxes.agents.x-k8s.io could "
                                     "not be completed at this time, please "
                                     "try again.");
    ck_assert_int_eq(err.retry_after_s, 2);
    SCOPED(object_unref_p) struct object *there = world_get(&w, "ns", "a");
    ck_assert_ptr_nonnull(there);
    world_stop(&w);
}
END_TEST

/* Loading fails a few times first. */
START_TEST(test_load_with_faults)
{
    world_start(&w, NULL);
    object_unref(world_create(&w, "ns", "a", ""));
    world_stop_registry(&w);
    struct plan plan = {MEMSTORE_UNAVAILABLE, 2, "range"};
    with_faults(&plan);
    w.registry = registry_new(&w.config);
    registry_start(w.registry);
    sleep_ms(50);
    struct object *o = NULL;
    ck_assert_int_eq(registry_get(w.registry, &kind_sandbox, "ns", "a",
                                  (struct read_version){READ_ANY, 0}, soon(), &o, NULL),
                     -ERR_UNAVAILABLE);
    with_faults(NULL);
    for (int i = 0; i < 5000 && !registry_is_synced(w.registry); i++)
        sleep_ms(1);
    SCOPED(object_unref_p) struct object *there = world_get(&w, "ns", "a");
    ck_assert_ptr_nonnull(there);
    world_stop(&w);
}
END_TEST

SUITE(fault)
{
    LOOP("every n-th call", test_every_nth, 0, ARRAY_LEN(plans));
    TESTS("rest", test_texts, test_unknown_to_the_end, test_load_with_faults);
}
