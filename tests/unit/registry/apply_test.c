/* Server-side apply through the registry: making what is not there, asking whether that is allowed,
 * writing nothing when nothing changes, somebody else being quicker. */
#include "tests/lib/world.h"

static struct world w;

static void setup(void)
{
    world_start(&w, NULL);
}

static void teardown(void)
{
    world_stop(&w);
}

#define V "\"apiVersion\":\"agents.x-k8s.io/v1beta1\",\"kind\":\"Sandbox\""
#define POD "\"podTemplate\":{\"spec\":{\"containers\":[{\"name\":\"main\",\"image\":\"i\"}]}}"

struct asked {
    int times;
    bool refuses;
    const char *meanwhile; /* somebody makes the object first */
};

static int may_create(void *ctx, struct err *err)
{
    struct asked *a = ctx;
    a->times++;
    if (a->meanwhile) {
        object_unref(world_create(&w, "ns", "a", a->meanwhile));
        a->meanwhile = NULL;
    }
    return a->refuses ? err_set(err, ERR_FORBIDDEN, "no") : 0;
}

static int apply(const char *manager, const char *json, struct asked *asked, bool dry_run,
                 struct object **ret, bool *ret_created, struct err *err)
{
    SCOPED(json_free_p) cJSON *patch = world_tree(json);
    struct write_options opts = world_opts();
    opts.field_manager = manager;
    opts.dry_run = dry_run;
    const struct apply_request req = {.kind = &kind_sandbox,
                                      .namespace_name = "ns",
                                      .name = "a",
                                      .subresource = "",
                                      .patch = patch,
                                      .may_create = may_create,
                                      .ctx = asked};
    return registry_apply(w.registry, &req, &opts, ret, ret_created, err);
}

#define A "{" V ",\"metadata\":{\"name\":\"a\"},\"spec\":{" POD ",\"service\":true}}"

START_TEST(test_create)
{
    SCOPED(object_unref_p) struct object *made = NULL, *same = NULL, *dry = NULL;
    SCOPED(err_fini) struct err err = {0};
    struct asked asked = {0};
    bool is_created = false;
    ck_assert_int_eq(apply("m", A, &asked, true, &dry, &is_created, &err), 0);
    ck_assert(is_created && dry->rev == 0 && asked.times == 1);
    ck_assert_int_eq(apply("m", A, &asked, false, &made, &is_created, &err), 0);
    ck_assert(is_created && made->rev > 0 && asked.times == 2);
    ck_assert_ptr_nonnull(strstr(made->json, "\"manager\":\"m\",\"operation\":\"Apply\""));
    /* The same again: nothing is asked, nothing written, however late it is. */
    clock_fake_advance(&w.clock, 5000);
    ck_assert_int_eq(apply("m", A, &asked, false, &same, &is_created, &err), 0);
    ck_assert(!is_created && same->rev == made->rev && asked.times == 2);
}
END_TEST

START_TEST(test_refused)
{
    SCOPED(object_unref_p) struct object *o = NULL;
    SCOPED(err_fini) struct err err = {0};
    struct asked asked = {.refuses = true};
    bool is_created;
    ck_assert_int_eq(apply("m", A, &asked, false, &o, &is_created, &err), -ERR_FORBIDDEN);
    ck_assert_ptr_null(world_get(&w, "ns", "a"));
    /* What is wrong is said before anybody is asked. */
    static const char *const wrong[] = {
        "{" V ",\"metadata\":{\"name\":\"b\"}}", "{" V ",\"spec\":{" POD "}}",
        "{" V ",\"metadata\":{\"name\":\"a\"},\"spec\":{}}",
        "{" V ",\"metadata\":{\"name\":\"a\",\"uid\":\"u\"},\"spec\":{" POD "}}"};
    static const int codes[] = {ERR_BAD_REQUEST, ERR_BAD_REQUEST, ERR_INVALID, ERR_CONFLICT};
    for (size_t i = 0; i < ARRAY_LEN(wrong); i++)
        ck_assert_int_eq(apply("m", wrong[i], &asked, false, &o, &is_created, &err), -codes[i]);
    ck_assert_int_eq(asked.times, 1);
}
END_TEST

START_TEST(test_race)
{
    /* Somebody creates the object between the look and the write: then it is an update, in which
     * their fields are theirs. */
    SCOPED(object_unref_p) struct object *o = NULL;
    SCOPED(err_fini) struct err err = {0};
    struct asked asked = {.meanwhile = "\"labels\":{\"who\":\"they\"}"};
    bool is_created = true;
    ck_assert_int_eq(apply("m",
                           "{" V ",\"metadata\":{\"name\":\"a\",\"labels\":{\"mine\":\"1\"}},"
                           "\"spec\":{" POD "}}",
                           &asked, false, &o, &is_created, &err),
                     -ERR_CONFLICT);
    ck_assert_ptr_nonnull(strstr(err_text(&err), "image"));
    asked = (struct asked){.meanwhile = NULL};
    ck_assert_int_eq(apply("m", "{" V ",\"metadata\":{\"labels\":{\"mine\":\"1\"}}}", &asked, false,
                           &o, &is_created, &err),
                     0);
    ck_assert(!is_created && asked.times == 0);
    ck_assert_ptr_nonnull(strstr(o->json, "\"labels\":{\"mine\":\"1\",\"who\":\"they\"}"));
}
END_TEST

START_TEST(test_subresources_create_nothing)
{
    SCOPED(json_free_p) cJSON *patch = world_tree("{" V ",\"status\":{}}");
    SCOPED(object_unref_p) struct object *o = NULL;
    SCOPED(err_fini) struct err err = {0};
    struct asked asked = {0};
    struct write_options opts = world_opts();
    const struct apply_request req = {.kind = &kind_sandbox,
                                      .namespace_name = "ns",
                                      .name = "a",
                                      .subresource = "status",
                                      .patch = patch,
                                      .may_create = may_create,
                                      .ctx = &asked};
    bool is_created;
    ck_assert_int_eq(registry_apply(w.registry, &req, &opts, &o, &is_created, &err),
                     -ERR_NOT_FOUND);
    ck_assert_int_eq(asked.times, 0);
}
END_TEST

/* ---- other writes ---- */

static char *managers_of(const struct object *o)
{
    SCOPED(json_free_p) cJSON *tree = object_tree(o);
    struct buf out = {0};
    const cJSON *entry;
    cJSON_ArrayForEach(entry, json_at(tree, "metadata.managedFields"))
    {
        SCOPED_FREE char *fields = json_to_str(json_get(entry, "fieldsV1"));
        const char *subresource = json_str_or(entry, "subresource", "");
        buf_printf(&out, "%s%s%s%s=%s", out.len ? " " : "", json_str_or(entry, "manager", ""),
                   *subresource ? "/" : "", subresource, fields);
    }
    return buf_take(&out, NULL);
}

static int set_both(void *ctx, const cJSON *old, cJSON **ret, struct err *err)
{
    (void)ctx, (void)err;
    *ret = json_copy(old);
    json_set_str(json_ensure_object(json_get(*ret, "metadata"), "annotations"), "pod", "p");
    json_set_str(json_ensure_object(*ret, "status"), "service", "s");
    return 0;
}

/* The reconciler writes metadata and status at once, and owns each where it belongs. */
START_TEST(test_system)
{
    SCOPED(object_unref_p) struct object *made = world_create(&w, "ns", "a", ""), *o = NULL;
    SCOPED_FREE char *before = managers_of(made);
    struct write_options opts = world_opts();
    opts.is_system = true;
    opts.field_manager = "sandbox-controller";
    const struct update_request req = {
        .kind = &kind_sandbox, .namespace_name = "ns", .name = "a", .change = set_both};
    ck_assert_int_eq(registry_update(w.registry, &req, &opts, &o, NULL), 0);
    SCOPED_FREE char *after = managers_of(o);
    SCOPED_FREE char *expected =
        xasprintf("sandbox-controller={\"f:metadata\":{\"f:annotations\":{\".\":{},\"f:pod\":{}}}} "
                  "sandbox-controller/status={\"f:status\":{\".\":{},\"f:service\":{}}} %s",
                  before);
    ck_assert_str_eq(after, expected);
    /* Once more: nothing is written. */
    SCOPED(object_unref_p) struct object *again = NULL;
    clock_fake_advance(&w.clock, 5000);
    ck_assert_int_eq(registry_update(w.registry, &req, &opts, &again, NULL), 0);
    ck_assert_int_eq(again->rev, o->rev);
}
END_TEST

/* A client's list: taken over, kept when it makes no sense, forgotten on demand. */
START_TEST(test_client_lists)
{
    SCOPED(object_unref_p) struct object *made = world_create(&w, "ns", "a", "");
    SCOPED_FREE char *before = managers_of(made);
    static const char own[] =
        "[{\"manager\":\"x\",\"operation\":\"Update\",\"apiVersion\":"
        "\"agents.x-k8s.io/v1beta1\",\"fieldsType\":\"FieldsV1\",\"fieldsV1\":"
        "{\"f:spec\":{}}}]";
    static const struct {
        const char *list, *after; /* NULL = as before */
    } rows[] = {
        {"[{\"manager\":\"x\",\"operation\":\"X\"}]", NULL},
        {"null", NULL},
        {own, "x={\"f:spec\":{}}"},
        {"[]", "x={\"f:spec\":{}}"},
        {"[{}]", ""},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        SCOPED(object_unref_p)
        struct object *o = world_set(&w, "ns", "a", "metadata.managedFields", rows[i].list);
        SCOPED_FREE char *after = managers_of(o);
        ck_assert_str_eq(after, rows[i].after ? rows[i].after : before);
    }
    /* Who was forgotten is not followed until somebody applies. */
    SCOPED(object_unref_p)
    struct object *o = world_set(&w, "ns", "a", "metadata.labels", "{\"l\":\"1\"}");
    SCOPED_FREE char *none = managers_of(o);
    ck_assert_str_eq(none, "");
}
END_TEST

SUITE(apply)
{
    TCase *tc = tcase_create("apply");
    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_test(tc, test_create);
    tcase_add_test(tc, test_refused);
    tcase_add_test(tc, test_race);
    tcase_add_test(tc, test_subresources_create_nothing);
    tcase_add_test(tc, test_system);
    tcase_add_test(tc, test_client_lists);
    suite_add_tcase(s, tc);
}
