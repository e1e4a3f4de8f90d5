/* The garbage collector of a server without a cluster: what goes when its owners are gone, before
 * them, or is left behind. */
#include "tests/unit/reconcile/house_fixture.h"

static void ignore(void *ctx, const char *key)
{
    (void)ctx, (void)key;
}

/* One that names these owners; references is JSON text. */
static void make_owned(const char *name, const char *references)
{
    SCOPED_FREE char *members =
        xasprintf("\"metadata\":{\"name\":\"%s\",\"ownerReferences\":[%s]}", name, references);
    SCOPED(object_unref_p) struct object *o = make(&kind_config_map, "x", members);
    owners_note(links, o, false, ignore, NULL);
}

static char *reference(const struct object *owner, bool blocks)
{
    return xasprintf("{\"apiVersion\":\"v1\",\"kind\":\"ConfigMap\",\"name\":\"%s\",\"uid\":\"%s\","
                     "\"blockOwnerDeletion\":%s}",
                     owner->name, owner->uid, blocks ? "true" : "false");
}

static struct object *make_owner(const char *name)
{
    SCOPED_FREE char *members = xasprintf("\"metadata\":{\"name\":\"%s\"}", name);
    return make(&kind_config_map, "x", members);
}

static int64_t look_at(const char *name)
{
    struct loop_result result = {0};
    SCOPED(object_unref_p) struct object *o = NULL;
    SCOPED(err_fini) struct err err = {0};
    ck_assert_int_eq(pass_get(&env, &kind_config_map, "x", name, &o, &err), 0);
    ck_assert_ptr_nonnull(o);
    SCOPED_FREE char *key = owners_key(o);
    ck_assert_int_eq(house_owners_pass(&env, links, key, &result, &err), 0);
    return result.again_after_ms;
}

static size_t count_owners(const char *name)
{
    SCOPED(json_free_p) cJSON *tree = get(&kind_config_map, "x", name);
    return json_len(json_at(tree, "metadata.ownerReferences"));
}

START_TEST(test_goes_with_its_owners)
{
    SCOPED(object_unref_p) struct object *a = make_owner("a"), *b = make_owner("b");
    SCOPED_FREE char *of_a = reference(a, false), *of_b = reference(b, false);
    SCOPED_FREE char *of_both = xasprintf("%s,%s", of_a, of_b);
    make_owned("one", of_a);
    make_owned("two", of_both);
    look_at("one");
    ck_assert_uint_eq(count_owners("one"), 1); /* its owner is there */
    drop(&kind_config_map, "x", "a", NULL);
    look_at("one");
    ck_assert(!is_there(&kind_config_map, "x", "one"));
    look_at("two");
    ck_assert_uint_eq(count_owners("two"), 1); /* b is left */
    drop(&kind_config_map, "x", "b", NULL);
    look_at("two");
    ck_assert(!is_there(&kind_config_map, "x", "two"));
}
END_TEST

/* An owner made anew under its name is another; one of a kind that is not served counts as
 * there. */
START_TEST(test_who_an_owner_is)
{
    SCOPED(object_unref_p) struct object *before = make_owner("a");
    SCOPED_FREE char *of_before = reference(before, false);
    make_owned("dependent", of_before);
    make_owned("foreign", "{\"apiVersion\":\"example.org/v1\",\"kind\":\"Thing\",\"name\":\"t\","
                          "\"uid\":\"u\"}");
    drop(&kind_config_map, "x", "a", NULL);
    object_unref(make_owner("a"));
    look_at("dependent");
    look_at("foreign");
    ck_assert(!is_there(&kind_config_map, "x", "dependent"));
    ck_assert(is_there(&kind_config_map, "x", "foreign"));
}
END_TEST

struct taking { /* at the moment when the collector is about to write */
    const char *name, *references;
    bool is_done;
};

static int take_over(void *ctx, const cJSON *old, cJSON **ret, struct err *err)
{
    const struct taking *t = ctx;
    cJSON *references = NULL;
    (void)err;
    ck_assert_int_eq(json_parse_str(t->references, &references, NULL), 0);
    *ret = json_copy(old);
    json_set_at(*ret, "metadata.ownerReferences", references);
    return 0;
}

static bool take_first(void *ctx, struct store_compare *ret)
{
    struct taking *t = ctx;
    SCOPED(object_unref_p) struct object *o = NULL;
    SCOPED(err_fini) struct err err = {0};
    struct write_options opts = world_opts();
    *ret = (struct store_compare){.key = "/lease", .target = STORE_CREATE, .rev = 0};
    if (t->is_done)
        return true;
    t->is_done = true;
    int rc = registry_update(w.registry,
                             &(struct update_request){.kind = &kind_config_map,
                                                      .namespace_name = "x",
                                                      .name = t->name,
                                                      .is_patch = true,
                                                      .change = take_over,
                                                      .ctx = t},
                             &opts, &o, &err);
    ck_assert_msg(rc == 0, "%s", err_text(&err));
    return true;
}

/* As a claim takes a member of a pool that is going. */
START_TEST(test_taken_over_meanwhile)
{
    SCOPED(object_unref_p) struct object *a = make_owner("a"), *b = make_owner("b");
    SCOPED_FREE char *of_a = reference(a, false), *of_b = reference(b, false);
    SCOPED_FREE char *list = xasprintf("[%s]", of_b);
    struct taking taking = {.name = "one", .references = list};
    make_owned("one", of_a);
    drop(&kind_config_map, "x", "a", NULL);
    env.fence = take_first;
    env.ctx = &taking;
    ck_assert_int_gt(look_at("one"), 0); /* it is judged again */
    ck_assert(is_there(&kind_config_map, "x", "one"));
    ck_assert_int_eq(look_at("one"), 0);
    ck_assert(is_there(&kind_config_map, "x", "one"));
}
END_TEST

START_TEST(test_foreground)
{
    SCOPED(object_unref_p) struct object *a = make_owner("a");
    SCOPED_FREE char *of_a = reference(a, true);
    make_owned("dependent", of_a);
    drop(&kind_config_map, "x", "a", "Foreground");
    ck_assert_int_gt(look_at("a"), 0); /* waits for the one that it has deleted */
    ck_assert(!is_there(&kind_config_map, "x", "dependent"));
    ck_assert(is_there(&kind_config_map, "x", "a"));
    look_at("a");
    ck_assert(!is_there(&kind_config_map, "x", "a"));
}
END_TEST

/* What owns something in turn waits for it as well; what has another owner stays. */
START_TEST(test_foreground_goes_down)
{
    SCOPED(object_unref_p) struct object *a = make_owner("a"), *other = make_owner("other");
    SCOPED_FREE char *of_a = reference(a, true), *of_other = reference(other, true);
    SCOPED_FREE char *of_both = xasprintf("%s,%s", of_a, of_other);
    make_owned("middle", of_a);
    make_owned("shared", of_both);
    SCOPED(object_unref_p) struct object *middle = NULL;
    SCOPED(err_fini) struct err err = {0};
    ck_assert_int_eq(pass_get(&env, &kind_config_map, "x", "middle", &middle, &err), 0);
    SCOPED_FREE char *of_middle = reference(middle, true);
    make_owned("leaf", of_middle);
    drop(&kind_config_map, "x", "a", "Foreground");
    ck_assert_int_gt(look_at("a"), 0);
    ck_assert_uint_eq(count_owners("shared"), 1);
    ck_assert(is_there(&kind_config_map, "x", "middle")); /* waits for the leaf */
    ck_assert(is_there(&kind_config_map, "x", "leaf"));
    ck_assert_int_gt(look_at("middle"), 0);
    ck_assert(!is_there(&kind_config_map, "x", "leaf"));
    look_at("middle");
    ck_assert(!is_there(&kind_config_map, "x", "middle"));
    look_at("a");
    ck_assert(!is_there(&kind_config_map, "x", "a"));
    ck_assert(is_there(&kind_config_map, "x", "shared"));
}
END_TEST

START_TEST(test_orphan)
{
    SCOPED(object_unref_p) struct object *a = make_owner("a");
    SCOPED_FREE char *of_a = reference(a, true);
    make_owned("dependent", of_a);
    drop(&kind_config_map, "x", "a", "Orphan");
    look_at("a");
    ck_assert(!is_there(&kind_config_map, "x", "a"));
    ck_assert(is_there(&kind_config_map, "x", "dependent"));
    ck_assert_uint_eq(count_owners("dependent"), 0);
}
END_TEST

SUITE(house_owners)
{
    TCase *tc = tcase_create("owners");
    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_test(tc, test_goes_with_its_owners);
    tcase_add_test(tc, test_who_an_owner_is);
    tcase_add_test(tc, test_taken_over_meanwhile);
    tcase_add_test(tc, test_foreground);
    tcase_add_test(tc, test_foreground_goes_down);
    tcase_add_test(tc, test_orphan);
    suite_add_tcase(s, tc);
}
