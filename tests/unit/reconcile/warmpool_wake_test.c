/* Which pools look again when a template changes. */
#include "reconcile/warmpool_wake.h"

#include "apiserver/base/buf.h"
#include "tests/lib/pool_world.h"

static struct pool_world pw; /* with pool p of template t */
static struct buf found;

static void setup(void)
{
    pool_world_start(&pw);
}

static void teardown(void)
{
    pool_world_stop(&pw);
    buf_fini(&found);
}

static void note(void *ctx, const char *key)
{
    (void)ctx;
    buf_printf(&found, "%s ", key);
}

static struct object *put(const struct kind *kind, const char *ns, const char *name,
                          const char *spec)
{
    SCOPED_FREE char *json =
        xasprintf("{\"apiVersion\":\"%s/%s\",\"kind\":\"%s\",\"metadata\":{\"name\":\"%s\","
                  "\"namespace\":\"%s\"},\"spec\":%s}",
                  kind->group, kind->version, kind->kind, name, ns, spec);
    struct object *o = NULL;
    struct write_options opts = world_opts();
    SCOPED(err_fini) struct err err = {0};
    int rc = registry_create(pw.w.registry, kind, ns, world_tree(json), &opts, &o, &err);
    ck_assert_msg(rc == 0, "%s", err_text(&err));
    return o;
}

static void pool(const char *ns, const char *name, const char *template)
{
    SCOPED_FREE char *spec = xasprintf("{\"sandboxTemplateRef\":{\"name\":\"%s\"}}", template);
    object_unref(put(&kind_sandbox_warm_pool, ns, name, spec));
}

/* W-t033: those that name it, in its namespace. */
START_TEST(test_pools_of_a_template)
{
    pool("ns", "q", "t");
    pool("ns", "other", "t2");
    pool("elsewhere", "r", "t");
    SCOPED(object_unref_p)
    struct object *template =
        put(&kind_sandbox_template, "elsewhere", "t",
            "{\"podTemplate\":{\"spec\":{\"containers\":[{\"name\":\"c\",\"image\":\"i\"}]}}}");
    warmpool_wake_note(pw.w.registry, template, note, NULL);
    ck_assert_str_eq(buf_cstr(&found), "elsewhere/r ");
    buf_clear(&found);
    SCOPED(object_unref_p) struct object *in_ns = NULL;
    ck_assert_int_eq(registry_get(pw.w.registry, &kind_sandbox_template, "ns", "t",
                                  (struct read_version){.match = READ_ANY}, world_deadline(),
                                  &in_ns, NULL),
                     0);
    warmpool_wake_note(pw.w.registry, in_ns, note, NULL);
    ck_assert_str_eq(buf_cstr(&found), "ns/p ns/q ");
}
END_TEST

SUITE(warmpool_wake)
{
    TCase *tc = tcase_create("wake");
    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_test(tc, test_pools_of_a_template);
    suite_add_tcase(s, tc);
}
