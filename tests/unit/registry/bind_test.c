/* A claim and its member are written together or not at all: in the POST, by many threads and two
 * servers at once, with every call of the store failing once in every way, and with the server
 * ending in between. */
#include "apiserver/registry/bind.h"

#include <pthread.h>

#include "apiserver/base/metric.h"
#include "reconcile/child.h"
#include "reconcile/claim.h"
#include "reconcile/keys.h"
#include "tests/lib/pool_world.h"

static struct pool_world pw;

static void setup(void)
{
    pool_world_start(&pw);
}

static void teardown(void)
{
    pool_world_stop(&pw);
}

static struct registry *reg(void)
{
    return pw.w.registry;
}

static cJSON *post(const char *name)
{
    SCOPED(err_fini) struct err err = {0};
    cJSON *claim = NULL;
    int rc = pool_world_post(reg(), pool_world_claim(name, "", ""), false, &claim, &err);
    ck_assert_msg(rc == 0, "post: %s", err_text(&err));
    return claim;
}

/* The answer to the POST is the stored claim, with binding and Ready; C-t185, G-t015. */
START_TEST(test_post)
{
    pool_world_member(reg(), "p-1", "n", MEMBER_READY);
    int64_t before = registry_revision(reg());
    SCOPED(json_free_p) cJSON *claim = post("c");
    SCOPED(json_free_p) cJSON *stored = pool_world_read(reg(), &kind_sandbox_claim, "c");
    ck_assert(json_equal(claim, stored));
    ck_assert_str_eq(pool_world_bound(reg(), claim), "p-1");
    ck_assert(claim_is_ready(json_get(claim, "status")));
    ck_assert_str_eq(json_str(claim, "status.sandbox.podIPs") ? "" : "list", "list");
    ck_assert_str_eq(json_at(claim, "status.sandbox.podIPs")->child->valuestring, "10.0.0.1");
    ck_assert_str_eq(meta_annotation(claim, ANNOTATION_SANDBOX_NAME), "p-1");
    ck_assert_int_eq(json_i64_or(claim, "metadata.generation", 0), 1);
    ck_assert_int_eq(registry_revision(reg()), before + 1); /* one transaction */
}
END_TEST

/* The next event of a watch of claims with that field selector, from that revision on; false when
 * there is none yet. */
static bool told(const char *field, int64_t rev, struct watch_event *ret)
{
    struct watch_request req = {.kind = &kind_sandbox_claim,
                                .version = {READ_AT_LEAST, rev},
                                .deadline_ms = world_deadline()};
    struct watch *watch = NULL;
    ck_assert_int_eq(selector_parse("", field, &req.take_selector, NULL), 0);
    ck_assert_int_eq(registry_watch(reg(), &req, NULL, NULL, &watch, NULL), 0);
    int rc = watch_next(watch, ret);
    watch_close(watch);
    return rc > 0;
}

/* A client that waits for its claim from the revision of the POST's answer, without a look at the
 * answer, is told that it is bound; who watches more than that one claim is told nothing twice, nor
 * is anybody of a claim that was not bound. */
START_TEST(test_post_then_watch)
{
    pool_world_member(reg(), "p-1", "n", MEMBER_READY);
    SCOPED(json_free_p) cJSON *bound = post("c");
    SCOPED(json_free_p) cJSON *waiting = post("d"); /* nobody is left */
    int64_t rev = 0, waiting_rev = 0;
    ck_assert_int_eq(str_to_i64(json_str(bound, "metadata.resourceVersion"), &rev), 0);
    ck_assert_int_eq(str_to_i64(json_str(waiting, "metadata.resourceVersion"), &waiting_rev), 0);
    SCOPED(watch_event_fini) struct watch_event e = {0}, none = {0};
    ck_assert(told("metadata.name=c", rev, &e));
    ck_assert_int_eq(e.type, WATCH_ADDED);
    ck_assert_str_eq(e.object->name, "c");
    ck_assert_int_eq(e.object->rev, rev);
    ck_assert(!told("metadata.name=d", waiting_rev, &none));
    ck_assert(!told("metadata.name=c", rev + 1, &none));
    ck_assert(told("", rev, &none)); /* of the other one */
    ck_assert_str_eq(none.object->name, "d");
}
END_TEST

static const cJSON *entry_of(const cJSON *object, const char *manager, const char *subresource)
{
    const cJSON *entry;
    cJSON_ArrayForEach(entry, json_at(object, "metadata.managedFields"))
    {
        if (str_equal(json_str(entry, "manager"), manager) &&
            str_equal(json_str_or(entry, "subresource", ""), subresource))
            return entry;
    }
    return NULL;
}

/* The controller owns what the binding wrote, of the claim and of the member. */
START_TEST(test_managers)
{
    pool_world_member(reg(), "p-1", "n", MEMBER_READY);
    SCOPED(json_free_p) cJSON *claim = post("c");
    SCOPED(json_free_p) cJSON *member = pool_world_read(reg(), &kind_sandbox, "p-1");
    const cJSON *status = entry_of(claim, CLAIM_CONTROLLER, "status");
    const cJSON *main_part = entry_of(claim, CLAIM_CONTROLLER, "");
    ck_assert(status && main_part && entry_of(claim, "unknown", ""));
    ck_assert(json_get(json_get(json_get(status, "fieldsV1"), "f:status"), "f:sandbox"));
    ck_assert(!json_get(json_get(main_part, "fieldsV1"), "f:status"));
    ck_assert(json_get(json_get(main_part, "fieldsV1"), "f:metadata"));
    ck_assert(entry_of(member, CLAIM_CONTROLLER, ""));
}
END_TEST

START_TEST(test_nobody)
{
    pool_world_member(reg(), "p-1", "n", MEMBER_PENDING);
    SCOPED(json_free_p) cJSON *claim = post("c");
    ck_assert_str_eq(pool_world_bound(reg(), claim), "");
    ck_assert_ptr_null(json_get(claim, "status"));
}
END_TEST

/* C-t163: what is deleted or taken leaves the index with its own change. */
START_TEST(test_index_follows)
{
    pool_world_member(reg(), "p-1", "n", MEMBER_READY);
    pool_world_member(reg(), "p-2", "n", MEMBER_READY);
    world_delete(&pw.w, "ns", "p-1");
    SCOPED(json_free_p) cJSON *a = post("a");
    SCOPED(json_free_p) cJSON *b = post("b");
    ck_assert_str_eq(pool_world_bound(reg(), a), "p-2");
    ck_assert_str_eq(pool_world_bound(reg(), b), "");
    pool_world_member(reg(), "p-3", "", MEMBER_PENDING);
    pool_world_edit(reg(), &kind_sandbox, "p-3", "status|podIPs", "[\"10.0.0.3\"]");
    SCOPED(json_free_p) cJSON *c = post("c");
    ck_assert_str_eq(pool_world_bound(reg(), c), "p-3");
}
END_TEST

/* A restarted server knows the members from its load. */
START_TEST(test_index_after_restart) /* IL-051 */
{
    pool_world_member(reg(), "p-1", "n", MEMBER_READY);
    pool_world_member(reg(), "p-2", "n", MEMBER_READY);
    SCOPED(json_free_p) cJSON *a = post("a");
    world_stop_registry(&pw.w);
    world_start_registry(&pw.w);
    SCOPED(json_free_p) cJSON *b = post("b");
    SCOPED(json_free_p) cJSON *c = post("c");
    ck_assert_str_ne(pool_world_bound(reg(), b), "");
    ck_assert_str_ne(pool_world_bound(reg(), b), pool_world_bound(reg(), a));
    ck_assert_str_eq(pool_world_bound(reg(), c), "");
}
END_TEST

START_TEST(test_dry_run)
{
    SCOPED(err_fini) struct err err = {0};
    SCOPED(json_free_p) cJSON *dry = NULL;
    pool_world_member(reg(), "p-1", "n", MEMBER_READY);
    int64_t before = registry_revision(reg());
    ck_assert_int_eq(pool_world_post(reg(), pool_world_claim("c", "", ""), true, &dry, &err), 0);
    ck_assert_str_eq(json_str(dry, "status.sandbox.name"), "p-1");
    ck_assert(claim_is_ready(json_get(dry, "status")));
    ck_assert_int_eq(registry_revision(reg()), before);
    ck_assert_uint_eq(pool_world_owned(reg(), NULL), 0);
    SCOPED(json_free_p) cJSON *claim = post("c"); /* nothing was reserved */
    ck_assert_str_eq(pool_world_bound(reg(), claim), "p-1");
}
END_TEST

START_TEST(test_name_taken)
{
    SCOPED(err_fini) struct err err = {0};
    SCOPED(json_free_p) cJSON *again = NULL;
    pool_world_member(reg(), "p-1", "n", MEMBER_READY);
    SCOPED(json_free_p) cJSON *a = post("a");
    pool_world_member(reg(), "p-2", "n", MEMBER_READY);
    ck_assert_int_eq(pool_world_post(reg(), pool_world_claim("a", "", ""), false, &again, &err),
                     -ERR_ALREADY_EXISTS);
    SCOPED(json_free_p) cJSON *b = post("b"); /* the member was given back */
    ck_assert_str_eq(pool_world_bound(reg(), b), "p-2");
}
END_TEST

/* ---- the same by registry_bind ---- */

static int bind_stored(const char *claim, const char *member, enum bind_outcome *ret)
{
    SCOPED(err_fini) struct err err = {0};
    SCOPED(object_unref_p) struct object *o = NULL, *bound = NULL, *sandbox = NULL;
    struct write_options opts = world_opts();
    ck_assert_int_eq(registry_get(reg(), &kind_sandbox_claim, "ns", claim,
                                  (struct read_version){READ_LATEST, 0}, world_deadline(), &o,
                                  &err),
                     0);
    int rc =
        registry_bind(reg(), &(struct bind_request){o, member}, &opts, ret, &bound, &sandbox, &err);
    if (rc == 0 && *ret == BIND_DONE) {
        SCOPED(json_free_p) cJSON *tree = object_tree(bound);
        ck_assert_str_eq(pool_world_bound(reg(), tree), sandbox->name);
    }
    return rc;
}

START_TEST(test_bind_stored)
{
    enum bind_outcome outcome;
    SCOPED(json_free_p) cJSON *claim = post("c");
    ck_assert_int_eq(bind_stored("c", NULL, &outcome), 0);
    ck_assert_int_eq(outcome, BIND_NOBODY);
    pool_world_member(reg(), "p-1", "", MEMBER_PENDING);
    ck_assert_int_eq(bind_stored("c", NULL, &outcome), 0);
    ck_assert_int_eq(outcome, BIND_WAITING);
    pool_world_member(reg(), "p-2", "n", MEMBER_ADDRESS);
    ck_assert_int_eq(bind_stored("c", NULL, &outcome), 0);
    ck_assert_int_eq(outcome, BIND_DONE);
}
END_TEST

/* C-t126, C-t127: a certain member, though it has no address, and no other. */
START_TEST(test_bind_certain)
{
    enum bind_outcome outcome;
    SCOPED(json_free_p) cJSON *claim = post("c");
    pool_world_member(reg(), "p-1", "", MEMBER_PENDING);
    pool_world_member(reg(), "p-2", "n", MEMBER_READY);
    ck_assert_int_eq(bind_stored("c", "nowhere", &outcome), 0);
    ck_assert_int_eq(outcome, BIND_NOBODY);
    ck_assert_int_eq(bind_stored("c", "p-1", &outcome), 0);
    ck_assert_int_eq(outcome, BIND_DONE);
    ck_assert_uint_eq(pool_world_owned(reg(), meta_uid(claim)), 1);
}
END_TEST

/* ---- lost races ---- */

static struct metric conflicts = {.name = "sandbox_claim_binding_conflicts_total",
                                  .type = METRIC_COUNTER};

/* Two servers on one store: the other one's writes reach this one's cache only through the watch,
 * which is held back here. */
START_TEST(test_lost_member) /* IL-037 */
{
    struct registry *other = registry_new(&pw.w.config);
    registry_start(other);
    pool_world_member(reg(), "p-1", "n", MEMBER_READY);
    pool_world_member(reg(), "p-2", "n", MEMBER_READY);
    for (int i = 0; i < 5000 && !(registry_is_synced(other) &&
                                  registry_revision(other) >= registry_revision(reg()));
         i++)
        sleep_ms(1);
    SCOPED(err_fini) struct err err = {0};
    SCOPED(json_free_p) cJSON *a = NULL, *b = NULL;
    memstore_set_watch_down(pw.w.store, true);
    ck_assert_int_eq(pool_world_post(other, pool_world_claim("a", "", ""), false, &a, &err), 0);
    ck_assert_int_eq(pool_world_post(reg(), pool_world_claim("b", "", ""), false, &b, &err), 0);
    memstore_set_watch_down(pw.w.store, false);
    world_wait_rev(&pw.w, 1);
    ck_assert_str_eq(json_str(a, "status.sandbox.name"), "p-1");
    ck_assert_str_eq(json_str(b, "status.sandbox.name"), "p-2");
    registry_stop(other);
    registry_free(other);
    ck_assert_uint_eq(pool_world_owned(reg(), NULL), 2);
}
END_TEST

/* C-t141: whoever it tries has changed meanwhile: the claim is stored without one, which is no
 * error, nobody is lost, and it is bound later. */
START_TEST(test_every_race_lost)
{
    enum { MANY = 2 };
    enum bind_outcome outcome;
    struct registry *other = registry_new(&pw.w.config);
    registry_start(other);
    for (int i = 0; i < MANY; i++) {
        SCOPED_FREE char *name = xasprintf("p-%d", i);
        pool_world_member(reg(), name, "n", MEMBER_READY);
    }
    for (int i = 0; i < 5000 && !(registry_is_synced(other) &&
                                  registry_revision(other) >= registry_revision(reg()));
         i++)
        sleep_ms(1);
    memstore_set_watch_down(pw.w.store, true);
    for (int i = 0; i < MANY; i++) {
        SCOPED_FREE char *name = xasprintf("p-%d", i);
        pool_world_edit(other, &kind_sandbox, name, "metadata|labels|x", "\"y\"");
    }
    SCOPED(json_free_p) cJSON *claim = post("c");
    ck_assert_str_eq(pool_world_bound(reg(), claim), "");
    int64_t written;
    memstore_set_watch_down(pw.w.store, false);
    ck_assert_int_eq(store_revision(pw.w.store, world_deadline(), &written, NULL), 0);
    world_wait_rev(&pw.w, written);
    registry_stop(other);
    registry_free(other);
    ck_assert_uint_eq(pool_world_owned(reg(), NULL), 0);
    ck_assert_int_eq(bind_stored("c", NULL, &outcome), 0);
    ck_assert_int_eq(outcome, BIND_DONE);
    ck_assert_uint_eq(pool_world_owned(reg(), NULL), 1);
}
END_TEST

/* ---- many at once: C-t120, C-t121, C-t122 ---- */

#define THREADS 8
#define MEMBERS 40
#define CLAIMS (2 * MEMBERS)

struct poster {
    pthread_t thread;
    struct registry *registry;
    int first;
};

static void *post_many(void *arg)
{
    const struct poster *me = arg;
    for (int i = me->first; i < CLAIMS; i += THREADS) {
        SCOPED_FREE char *name = xasprintf("c%d", i);
        SCOPED(json_free_p) cJSON *claim = NULL;
        SCOPED(err_fini) struct err err = {0};
        int rc = pool_world_post(me->registry, pool_world_claim(name, "", ""), false, &claim, &err);
        ck_assert_msg(rc == 0, "%s: %s", name, err_text(&err));
    }
    return NULL;
}

/* Every member bound once, every claim at most once, and they agree. */
static void check_all(size_t bound_expected)
{
    size_t n_bound = 0;
    for (int i = 0; i < CLAIMS; i++) {
        SCOPED_FREE char *name = xasprintf("c%d", i);
        SCOPED(json_free_p) cJSON *claim = pool_world_read(reg(), &kind_sandbox_claim, name);
        ck_assert_ptr_nonnull(claim);
        bool is_bound = *pool_world_bound(reg(), claim) != '\0';
        n_bound += is_bound;
        ck_assert_uint_eq(pool_world_owned(reg(), meta_uid(claim)), is_bound);
    }
    ck_assert_uint_eq(n_bound, bound_expected);
    ck_assert_uint_eq(pool_world_owned(reg(), NULL), bound_expected);
}

static void run_posters(struct registry *const *registries, size_t n)
{
    struct poster posters[THREADS];
    for (int i = 0; i < MEMBERS; i++) {
        SCOPED_FREE char *name = xasprintf("p-%d", i);
        SCOPED_FREE char *node = xasprintf("n%d", i % 3);
        pool_world_member(reg(), name, node, MEMBER_READY);
    }
    for (int i = 0; i < THREADS; i++) {
        posters[i] = (struct poster){.registry = registries[(size_t)i % n], .first = i};
        pthread_create(&posters[i].thread, NULL, post_many, &posters[i]);
    }
    for (int i = 0; i < THREADS; i++)
        pthread_join(posters[i].thread, NULL);
}

START_TEST(test_threads)
{
    struct registry *const one[] = {reg()};
    run_posters(one, 1);
    check_all(MEMBERS);
    ck_assert_double_eq(metric_value(&conflicts, NULL), 0); /* reservations keep threads apart */
}
END_TEST

/* Two servers that do not know of each other's reservations. A claim that loses too many races may
 * stay unbound for the reconciler, but no member is ever bound twice. */
START_TEST(test_two_servers)
{
    struct registry *other = registry_new(&pw.w.config);
    registry_start(other);
    for (int i = 0; i < 5000 && !registry_is_synced(other); i++)
        sleep_ms(1);
    struct registry *const both[] = {reg(), other};
    run_posters(both, 2);
    world_wait_rev(&pw.w, registry_revision(other));
    registry_stop(other);
    registry_free(other);
    check_all(MEMBERS);
}
END_TEST

/* ---- faults ---- */

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

#define FAULT_CALLS 5
static const enum memstore_fault kinds_of_fault[] = {
    MEMSTORE_UNAVAILABLE, MEMSTORE_UNDETERMINED_DONE, MEMSTORE_UNDETERMINED_LOST};

/* Whatever the answer was: the claim is bound to one member that is its own, or there is
 * neither. */
static void check_whole(int rc, const cJSON *answer, size_t n_members)
{
    SCOPED(json_free_p) cJSON *claim = pool_world_read(reg(), &kind_sandbox_claim, "c");
    if (rc == 0)
        ck_assert(json_equal(answer, claim));
    if (!claim) {
        ck_assert_uint_eq(pool_world_owned(reg(), NULL), 0);
        return;
    }
    bool is_bound = *pool_world_bound(reg(), claim) != '\0';
    ck_assert_uint_eq(pool_world_owned(reg(), meta_uid(claim)), is_bound);
    ck_assert_uint_eq(pool_world_owned(reg(), NULL), is_bound);
    ck_assert(n_members == 0 || is_bound);
}

START_TEST(test_faults) /* IL-154 */
{
    struct fault f = {(uint64_t)_i % FAULT_CALLS + 1, kinds_of_fault[_i / FAULT_CALLS]};
    SCOPED(json_free_p) cJSON *answer = NULL, *again = NULL;
    SCOPED(err_fini) struct err err = {0};
    pool_world_member(reg(), "p-1", "n", MEMBER_READY);
    pool_world_member(reg(), "p-2", "n", MEMBER_READY);
    memstore_set_fault(pw.w.store, fail_nth, &f);
    int rc = pool_world_post(reg(), pool_world_claim("c", "", ""), false, &answer, &err);
    memstore_set_fault(pw.w.store, NULL, NULL);
    check_whole(rc, answer, 2);
    if (rc == 0)
        return;
    ck_assert_int_ne(rc, -ERR_ALREADY_EXISTS);
    rc = pool_world_post(reg(), pool_world_claim("c", "", ""), false, &again, &err);
    ck_assert(rc == 0 || rc == -ERR_ALREADY_EXISTS);
    check_whole(rc, again, 2);
}
END_TEST

/* ---- the server ends ---- */

/* Every call from the n-th on fails as if the store had gone right behind it, the n-th one having
 * happened or not; then another server starts on what is stored. */
struct crash {
    uint64_t at;
    bool is_done;
};

static enum memstore_fault fail_from(void *ctx, const char *call, uint64_t n)
{
    const struct crash *c = ctx;
    (void)call;
    if (n < c->at)
        return MEMSTORE_OK;
    return n == c->at && c->is_done ? MEMSTORE_UNDETERMINED_DONE : MEMSTORE_UNDETERMINED_LOST;
}

START_TEST(test_crash) /* IL-154 */
{
    struct crash crash = {(uint64_t)_i / 2 + 1, _i % 2};
    SCOPED(json_free_p) cJSON *answer = NULL;
    SCOPED(object_unref_p) struct object *o = NULL;
    struct write_options opts = world_opts();
    opts.deadline_ms = clock_monotonic_ms(&clock_system) + 200;
    pool_world_member(reg(), "p-1", "n", MEMBER_READY);
    memstore_set_fault(pw.w.store, fail_from, &crash);
    int rc = registry_create(reg(), &kind_sandbox_claim, "ns", pool_world_claim("c", "", ""), &opts,
                             &o, NULL);
    world_stop_registry(&pw.w);
    memstore_set_fault(pw.w.store, NULL, NULL);
    world_start_registry(&pw.w);
    answer = o ? object_tree(o) : NULL;
    check_whole(rc, answer, 1);
}
END_TEST

SUITE(bind)
{
    TCase *tc = tcase_create("bind");
    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_set_timeout(tc, 60);
    const TTest *const tests[] = {test_post,         test_post_then_watch, test_managers,
                                  test_nobody,       test_index_follows,   test_index_after_restart,
                                  test_dry_run,      test_name_taken,      test_bind_stored,
                                  test_bind_certain, test_lost_member,     test_every_race_lost,
                                  test_threads,      test_two_servers};
    for (size_t i = 0; i < ARRAY_LEN(tests); i++)
        tcase_add_test(tc, tests[i]);
    tcase_add_loop_test(tc, test_faults, 0, (int)(FAULT_CALLS * ARRAY_LEN(kinds_of_fault)));
    tcase_add_loop_test(tc, test_crash, 0, 6);
    suite_add_tcase(s, tc);
}
