/* GET, LIST, pages and continue tokens. */
#include <stdio.h>

#include "apiserver/registry/continue.h"
#include "tests/lib/world.h"

static struct world w;

static void start(void)
{
    world_start(&w, NULL);
}

static void stop(void)
{
    world_stop(&w);
}

static void make(const char *namespace_name, const char *names,
                 const char *metadata) /* one letter each */
{
    for (const char *p = names; *p; p++) {
        char name[2] = {*p, '\0'};
        object_unref(world_create(&w, namespace_name, name, metadata));
    }
}

static struct list_request all(void)
{
    return (struct list_request){.kind = &kind_sandbox, .deadline_ms = world_deadline()};
}

/* Names of the result, separated by blanks. */
static const char *names_of(const struct list_result *l)
{
    static char text[200];
    text[0] = '\0';
    for (size_t i = 0; i < l->n; i++)
        snprintf(text + strlen(text), sizeof text - strlen(text), "%s%s", i ? " " : "",
                 l->objects[i]->name);
    return text;
}

static struct list_result list(const struct list_request *req)
{
    struct list_result l = {0};
    SCOPED(err_fini) struct err err = {0};
    int rc = registry_list(w.registry, req, &l, &err);
    ck_assert_msg(rc == 0, "%s", err_text(&err));
    return l;
}

static void refuse(const struct list_request *req, enum err_code code, const char *text)
{
    struct list_result l = {0};
    SCOPED(err_fini) struct err err = {0};
    ck_assert_int_eq(registry_list(w.registry, req, &l, &err), -(int)code);
    ck_assert_str_eq(err_text(&err), text);
}

START_TEST(test_get)
{
    SCOPED(object_unref_p) struct object *made = world_create(&w, "ns", "a", ""), *got = NULL;
    SCOPED(err_fini) struct err err = {0};
    const struct read_version versions[] = {
        {READ_LATEST, 0}, {READ_ANY, 0}, {READ_AT_LEAST, made->rev}, {READ_AT_LEAST, 1}};
    for (size_t i = 0; i < ARRAY_LEN(versions); i++) {
        ck_assert_int_eq(registry_get(w.registry, &kind_sandbox, "ns", "a", versions[i],
                                      world_deadline(), &got, &err),
                         0);
        ck_assert_int_eq(got->rev, made->rev);
        object_unref(got);
        got = NULL;
    }
    ck_assert_int_eq(registry_get(w.registry, &kind_sandbox, "ns", "b", versions[0],
                                  world_deadline(), &got, &err),
                     -ERR_NOT_FOUND);
    ck_assert_str_eq(err_text(&err), "sandboxes.agents.x-k8s.io \"b\" not found");
    ck_assert_str_eq(err.name, "b");
    ck_assert_str_eq(err.group, "agents.x-k8s.io");
    ck_assert_str_eq(err.kind, "sandboxes");
    ck_assert_int_eq(registry_get(w.registry, &kind_sandbox, "other", "a", versions[0],
                                  world_deadline(), &got, &err),
                     -ERR_NOT_FOUND);
    ck_assert_int_eq(registry_get(w.registry, &kind_sandbox_claim, "ns", "a", versions[0],
                                  world_deadline(), &got, &err),
                     -ERR_NOT_FOUND);
}
END_TEST

START_TEST(test_get_future)
{
    struct object *got = NULL;
    SCOPED(err_fini) struct err err = {0};
    int64_t before_ms = clock_monotonic_ms(&clock_system);
    ck_assert_int_eq(registry_get(w.registry, &kind_sandbox, "ns", "a",
                                  (struct read_version){READ_AT_LEAST, 999}, world_deadline(), &got,
                                  &err),
                     -ERR_TIMEOUT);
    ck_assert_int_ge(clock_monotonic_ms(&clock_system) - before_ms, 2900);
    ck_assert_str_eq(err_text(&err), "Timeout: Too large resource version: 999, current: 1");
    ck_assert_int_eq(err.retry_after_s, 1);
    ck_assert_uint_eq(err.n_causes, 1);
    ck_assert_str_eq(err.causes[0].reason, "ResourceVersionTooLarge");
    ck_assert_str_eq(err.causes[0].message, "Too large resource version");
}
END_TEST

START_TEST(test_list_order)
{
    make("b", "21", "");
    make("a-b", "3", "");
    make("a", "54", "");
    struct list_request req = all();
    SCOPED(list_result_fini) struct list_result l = list(&req);
    /* Bytewise by NAMESPACE/NAME: "a-b/" sorts before "a/". */
    ck_assert_str_eq(names_of(&l), "3 4 5 1 2");
    ck_assert_int_eq(l.rev, registry_revision(w.registry));
    ck_assert_ptr_null(l.continue_token);
    ck_assert_int_eq(l.remaining, -1);
    req.namespace_name = "a";
    SCOPED(list_result_fini) struct list_result of_a = list(&req);
    ck_assert_str_eq(names_of(&of_a), "4 5");
    req.namespace_name = "none";
    SCOPED(list_result_fini) struct list_result none = list(&req);
    ck_assert_uint_eq(none.n, 0);
    ck_assert_int_gt(none.rev, 0);
}
END_TEST

/* All pages are of the first page's revision, whatever happens meanwhile. */
START_TEST(test_pages_are_pinned)
{
    make("ns", "abcde", "");
    struct list_request req = all();
    req.namespace_name = "ns";
    req.limit = 2;
    SCOPED(list_result_fini) struct list_result one = list(&req);
    ck_assert_str_eq(names_of(&one), "a b");
    ck_assert_int_eq(one.remaining, 3);
    make("ns", "x", "");
    world_delete(&w, "ns", "d");
    req.continue_token = one.continue_token;
    SCOPED(list_result_fini) struct list_result two = list(&req);
    ck_assert_str_eq(names_of(&two), "c d");
    ck_assert_int_eq(two.remaining, 1);
    ck_assert_int_eq(two.rev, one.rev);
    req.continue_token = two.continue_token;
    SCOPED(list_result_fini) struct list_result three = list(&req);
    ck_assert_str_eq(names_of(&three), "e");
    ck_assert_ptr_null(three.continue_token);
    ck_assert_int_eq(three.rev, one.rev);
    req.limit = 0;
    req.continue_token = one.continue_token;
    SCOPED(list_result_fini) struct list_result rest = list(&req);
    ck_assert_str_eq(names_of(&rest), "c d e");
}
END_TEST

START_TEST(test_limit_exact)
{
    make("ns", "abc", "");
    struct list_request req = all();
    req.limit = 3;
    SCOPED(list_result_fini) struct list_result l = list(&req);
    ck_assert_str_eq(names_of(&l), "a b c");
    ck_assert_ptr_null(l.continue_token);
}
END_TEST

START_TEST(test_pages_with_selector)
{
    make("ns", "ace", "\"labels\":{\"k\":\"1\"}");
    make("ns", "bdf", "");
    struct selector *s = NULL;
    ck_assert_int_eq(selector_parse("k=1", NULL, &s, NULL), 0);
    struct list_request req = all();
    req.selector = s;
    req.limit = 2;
    SCOPED(list_result_fini) struct list_result one = list(&req);
    ck_assert_str_eq(names_of(&one), "a c");
    ck_assert_int_eq(one.remaining, -1);
    ck_assert_ptr_nonnull(one.continue_token);
    make("ns", "x", "\"labels\":{\"k\":\"1\"}"); /* makes the next page come from the store */
    req.continue_token = one.continue_token;
    SCOPED(list_result_fini) struct list_result two = list(&req);
    ck_assert_str_eq(names_of(&two), "e");
    selector_free(s);
}
END_TEST

START_TEST(test_exact)
{
    make("ns", "abc", "");
    struct list_request req = all();
    SCOPED(list_result_fini) struct list_result then = list(&req);
    make("ns", "d", "");
    world_delete(&w, "ns", "a");
    req.version = (struct read_version){READ_EXACT, then.rev};
    SCOPED(list_result_fini) struct list_result again = list(&req);
    ck_assert_str_eq(names_of(&again), "a b c");
    ck_assert_int_eq(again.rev, then.rev);
    req.limit = 1;
    SCOPED(list_result_fini) struct list_result first = list(&req);
    ck_assert_str_eq(names_of(&first), "a");
    ck_assert_int_eq(first.remaining, 2);
    req.limit = 0;
    req.version.rev = registry_revision(w.registry);
    SCOPED(list_result_fini) struct list_result now = list(&req);
    ck_assert_str_eq(names_of(&now), "b c d");
    req.version.rev = 1;
    SCOPED(list_result_fini) struct list_result nothing = list(&req);
    ck_assert_uint_eq(nothing.n, 0);
}
END_TEST

START_TEST(test_compacted)
{
    make("ns", "abc", "");
    struct list_request req = all();
    req.limit = 1;
    SCOPED(list_result_fini) struct list_result one = list(&req);
    int64_t rev = one.rev;
    make("ns", "de", "");
    ck_assert_int_eq(store_compact(w.store, registry_revision(w.registry), world_deadline(), NULL),
                     0);
    req.version = (struct read_version){READ_EXACT, rev};
    refuse(&req, ERR_EXPIRED, "The resourceVersion for the provided list is too old.");
    req.version = (struct read_version){READ_LATEST, 0};
    req.continue_token = one.continue_token;
    struct list_result l = {0};
    SCOPED(err_fini) struct err err = {0};
    ck_assert_int_eq(registry_list(w.registry, &req, &l, &err), -ERR_EXPIRED);
    ck_assert(str_has_prefix(
        err_text(&err), "The provided continue parameter is too old to display a consistent list"));
    ck_assert_ptr_nonnull(err.continue_token);
    /* Going on with what came: the rest at the newest revision. */
    req.continue_token = err.continue_token;
    req.limit = 2;
    SCOPED(list_result_fini) struct list_result rest = list(&req);
    ck_assert_str_eq(names_of(&rest), "b c");
    ck_assert_int_eq(rest.rev, registry_revision(w.registry));
    ck_assert_int_eq(rest.remaining, 2);
}
END_TEST

START_TEST(test_future)
{
    struct list_request req = all();
    req.version = (struct read_version){READ_EXACT, 1000};
    refuse(&req, ERR_TIMEOUT, "Timeout: Too large resource version: 1000, current: 1");
}
END_TEST

static const struct {
    const char *token, *text;
} bad_tokens[] = {
    {"garbage", "invalid character '\\u0081' looking for beginning of value"},
    {"aGVsbG8", "invalid character 'h' looking for beginning of value"},
    {"eyJ2IjoieCIsInJ2Ijo1LCJzdGFydCI6ImEifQ", "server does not recognize this encoded version x"},
    {"eyJ2IjoibWV0YS5rOHMuaW8vdjEiLCJydiI6MCwic3RhcnQiOiJhIn0",
     "incorrect encoded start resourceVersion (version meta.k8s.io/v1)"},
    {"eyJ2IjoibWV0YS5rOHMuaW8vdjEiLCJydiI6NSwic3RhcnQiOiIifQ",
     "encoded start key empty (version meta.k8s.io/v1)"},
    {"eyJ2IjoibWV0YS5rOHMuaW8vdjEiLCJydiI6NSwic3RhcnQiOiIuLi8uLi94In0", "../../x"},
    {"x", "illegal base64 data at input byte 0"},
    {"a*b", "illegal base64 data at input byte 1"},
    {"x", "illegal base64 data at input byte 0"},
    {"eyJ2IjoxfQ",
     "json: cannot unmarshal number into Go struct field continueToken.v of type string"},
    {"WzFd", "json: cannot unmarshal array into Go value of type storage.continueToken"},
};

START_TEST(test_bad_token)
{
    struct list_request req = all();
    req.continue_token = bad_tokens[_i].token;
    SCOPED_FREE char *text =
        xasprintf("invalid continue token: continue key is not valid: %s", bad_tokens[_i].text);
    refuse(&req, ERR_BAD_REQUEST, text);
}
END_TEST

START_TEST(test_token_round_trip)
{
    for (int i = 0; i < 20; i++) {
        SCOPED_FREE char *start = xasprintf("ns/%.*s\001", i, "aaaaaaaaaaaaaaaaaaaaaaa");
        SCOPED_FREE char *token = continue_print(i + 1, start);
        SCOPED(continue_point_fini) struct continue_point p = {0};
        ck_assert_int_eq(continue_parse(token, &p, NULL), 0);
        ck_assert_str_eq(p.start, start);
        ck_assert_int_eq(p.rev, i + 1);
        ck_assert_uint_eq(
            strspn(token, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"),
            strlen(token));
    }
}
END_TEST

/* A token counts from the namespace that was asked for, and leads into no other one. */
START_TEST(test_token_of_other_namespace)
{
    make("a", "1", "");
    make("b", "2", "");
    make("b", "3", "");
    static const struct {
        const char *start, *names;
    } tokens[] = {{"2\001", "3"}, {"a/1\001", ""}, {"1", "2 3"}, {"b/2", ""}};
    for (size_t i = 0; i < ARRAY_LEN(tokens); i++) {
        SCOPED_FREE char *token = continue_print(registry_revision(w.registry), tokens[i].start);
        struct list_request req = all();
        req.namespace_name = "b";
        req.continue_token = token;
        SCOPED(list_result_fini) struct list_result l = list(&req);
        ck_assert_str_eq(names_of(&l), tokens[i].names);
    }
}
END_TEST

/* Bytes in the store that are no object are neither absent nor listed around. */
START_TEST(test_unreadable)
{
    make("ns", "a", "");
    const struct store_op op = {
        .key = "/registry/agents.x-k8s.io/sandboxes/ns/x", .value = "{}", .value_len = 2};
    const struct store_txn txn = {.ops = &op, .n_ops = 1};
    SCOPED(store_txn_result_fini) struct store_txn_result res = {0};
    ck_assert_int_eq(store_txn(w.store, &txn, world_deadline(), &res, NULL), 0);
    world_wait_rev(&w, res.rev);
    for (int i = 0; i < 2; i++) { /* seen by the watch, then by a load */
        struct object *o = NULL;
        ck_assert_int_eq(registry_get(w.registry, &kind_sandbox, "ns", "x",
                                      (struct read_version){READ_ANY, 0}, world_deadline(), &o,
                                      NULL),
                         -ERR_INTERNAL);
        struct list_request req = all();
        struct list_result l = {0};
        ck_assert_int_eq(registry_list(w.registry, &req, &l, NULL), -ERR_INTERNAL);
        req.namespace_name = "other";
        SCOPED(list_result_fini) struct list_result other = list(&req);
        world_stop_registry(&w);
        world_start_registry(&w);
    }
}
END_TEST

START_TEST(test_not_loaded_yet)
{
    registry_stop(w.registry);
    registry_free(w.registry);
    w.registry = registry_new(&w.config); /* not started */
    struct object *o = NULL;
    SCOPED(err_fini) struct err err = {0};
    ck_assert_int_eq(registry_get(w.registry, &kind_sandbox, "ns", "a",
                                  (struct read_version){READ_ANY, 0}, world_deadline(), &o, &err),
                     -ERR_UNAVAILABLE);
    struct list_request req = all();
    struct list_result l = {0};
    ck_assert_int_eq(registry_list(w.registry, &req, &l, &err), -ERR_UNAVAILABLE);
    struct write_options opts = world_opts();
    ck_assert_int_eq(
        registry_create(w.registry, &kind_sandbox, "ns", world_sandbox("a", ""), &opts, &o, &err),
        -ERR_UNAVAILABLE);
    ck_assert_int_eq(registry_revision(w.registry), 0);
    ck_assert(!registry_is_synced(w.registry));
}
END_TEST

/* More objects than a page of the store has, at an old revision, with a selector that few match. */
START_TEST(test_many_from_store)
{
    for (int i = 0; i < 1200; i++) {
        SCOPED_FREE char *name = xasprintf("n%04d", i);
        object_unref(world_create(&w, "ns", name, i % 100 ? "" : "\"labels\":{\"k\":\"1\"}"));
    }
    int64_t rev = registry_revision(w.registry);
    make("ns", "z", "\"labels\":{\"k\":\"1\"}");
    struct selector *s = NULL;
    ck_assert_int_eq(selector_parse("k", NULL, &s, NULL), 0);
    struct list_request req = all();
    req.version = (struct read_version){READ_EXACT, rev};
    SCOPED(list_result_fini) struct list_result whole = list(&req);
    ck_assert_uint_eq(whole.n, 1200);
    req.selector = s;
    SCOPED(list_result_fini) struct list_result some = list(&req);
    ck_assert_uint_eq(some.n, 12);
    req.limit = 7;
    SCOPED(list_result_fini) struct list_result seven = list(&req);
    ck_assert_uint_eq(seven.n, 7);
    req.version = (struct read_version){READ_LATEST, 0};
    req.continue_token = seven.continue_token;
    SCOPED(list_result_fini) struct list_result five = list(&req);
    ck_assert_uint_eq(five.n, 5);
    selector_free(s);
}
END_TEST

SUITE(read)
{
    TCase *tc = tcase_create("world");
    tcase_add_checked_fixture(tc, start, stop);
    tcase_set_timeout(tc, 60);
    const TTest *const tests[] = {test_get,
                                  test_get_future,
                                  test_list_order,
                                  test_pages_are_pinned,
                                  test_limit_exact,
                                  test_pages_with_selector,
                                  test_exact,
                                  test_compacted,
                                  test_future,
                                  test_token_round_trip,
                                  test_token_of_other_namespace,
                                  test_unreadable,
                                  test_not_loaded_yet,
                                  test_many_from_store};
    for (size_t i = 0; i < ARRAY_LEN(tests); i++)
        tcase_add_test(tc, tests[i]);
    tcase_add_loop_test(tc, test_bad_token, 0, ARRAY_LEN(bad_tokens));
    suite_add_tcase(s, tc);
}
