/* What is counted when metrics are asked for. Names carry the ids of the behaviour checklist
 * (O-t...). */
#include "apiserver/base/metric.h"
#include "apiserver/base/str.h"
#include "reconcile/gauges.h"
#include "tests/lib/world.h"

static struct world world;
static struct gauges *gauges;

static void setup(void)
{
    world_start(&world, NULL);
    gauges = gauges_start(world.registry);
}

static void teardown(void)
{
    gauges_stop(gauges);
    world_stop(&world);
}

static void create(const struct kind *kind, const char *text)
{
    SCOPED(object_unref_p) struct object *o = NULL;
    SCOPED(err_fini) struct err err = {0};
    struct write_options opts = world_opts();
    opts.is_system = true;
    int rc = registry_create(world.registry, kind, "ns", world_tree(text), &opts, &o, &err);
    ck_assert_msg(rc == 0, "%s", err_text(&err));
}

static void expect(const char *line, bool is_there)
{
    SCOPED(buf_fini) struct buf out = {0};
    metric_print_all(&out);
    ck_assert_msg((strstr(buf_cstr(&out), line) != NULL) == is_there, "%s\n%s", line,
                  buf_cstr(&out));
}

#define OWNER(kind, name)                                                                          \
    "\"ownerReferences\":[{\"apiVersion\":\"extensions.agents.x-k8s.io/"                           \
    "v1alpha1\",\"kind\":\"" kind "\",\"name\":\"" name "\",\"uid\":\"u\",\"controller\":true}]"
#define SPEC "\"spec\":{\"podTemplate\":{\"spec\":{\"containers\":[]}}}"

static const struct {
    const char *id, *meta, *status, *line;
} rows[] = {
    {"O-t029 nothing known", "\"annotations\":{}", "",
     "agent_sandboxes{namespace=\"ns\",ready_condition=\"false\",expired=\"false\",launch_type="
     "\"cold\","
     "sandbox_template=\"unknown\",owned_by=\"None\",created_by=\"unknown\"} 1\n"},
    {"O-t030 of a pool, old version",
     "\"labels\":{\"agents.x-k8s.io/launch-type\":\"warm\",\"agents.x-k8s.io/"
     "created-by\":\"controller\"},"
     "\"annotations\":{\"agents.x-k8s.io/sandbox-template-ref\":\"t\"}," OWNER("SandboxWarmPool",
                                                                               "p"),
     ",\"status\":{\"conditions\":[{\"type\":\"Ready\",\"status\":\"True\",\"reason\":\"R\","
     "\"message\":\"\","
     "\"lastTransitionTime\":\"2026-01-01T00:00:00Z\"}]}",
     "agent_sandboxes{namespace=\"ns\",ready_condition=\"true\",expired=\"false\",launch_type="
     "\"warm\","
     "sandbox_template=\"t\",owned_by=\"SandboxWarmPool\",created_by=\"controller\"} 1\n"},
    {"O-t031 of a claim, untrusted maker",
     "\"labels\":{\"agents.x-k8s.io/created-by\":\"me\"}," OWNER("SandboxClaim", "c"), "",
     "launch_type=\"cold\",sandbox_template=\"unknown\",owned_by=\"SandboxClaim\",created_by="
     "\"unknown\"} 1\n"},
    {"expired", "\"annotations\":{}",
     ",\"status\":{\"conditions\":[{\"type\":\"Ready\",\"status\":\"False\",\"reason\":"
     "\"SandboxExpired\","
     "\"message\":\"\",\"lastTransitionTime\":\"2026-01-01T00:00:00Z\"}]}",
     "ready_condition=\"false\",expired=\"true\""},
};

START_TEST(test_sandbox)
{
    SCOPED_FREE char *text = xasprintf(
        "{\"apiVersion\":\"agents.x-k8s.io/v1beta1\",\"kind\":\"Sandbox\",\"metadata\":{\"name\":"
        "\"a\",%s}," SPEC "%s}",
        rows[_i].meta, rows[_i].status);
    create(&kind_sandbox, text);
    expect(rows[_i].line, true);
}
END_TEST

#define SIZE(status, n)                                                                            \
    "agent_sandbox_warmpool_size{namespace=\"ns\",warmpool_name=\"p\",sandbox_template=\"t\","     \
    "sandbox_status=\"" status "\"} " n "\n"

START_TEST(test_pool)
{
    expect("agent_sandbox_warmpool_size{", false);
    create(&kind_sandbox_warm_pool,
           "{\"apiVersion\":\"extensions.agents.x-k8s.io/"
           "v1beta1\",\"kind\":\"SandboxWarmPool\",\"metadata\":{"
           "\"name\":\"p\"},\"spec\":{\"sandboxTemplateRef\":{\"name\":\"t\"}}}");
    expect(SIZE("ready", "0"), true);
    for (int i = 0; i < 2; i++)
        create(&kind_sandbox,
               "{\"apiVersion\":\"agents.x-k8s.io/v1beta1\",\"kind\":\"Sandbox\",\"metadata\":{"
               "\"generateName\":\"p-\",\"annotations\":{\"agents.x-k8s.io/sandbox-template-ref\":"
               "\"t\"}," OWNER("SandboxWarmPool", "p") "}," SPEC "}");
    expect(SIZE("not_ready", "2"), true);
    expect(SIZE("not_ready", "2"), true); /* counted anew each time */
}
END_TEST

START_TEST(test_build_info) /* O-t003 */
{
    expect("agent_sandbox_build_info{git_version=\"", true);
    expect("\",git_commit=\"unknown\",build_date=\"unknown\",go_version=\"none\",compiler=\"cc ",
           true);
    expect("\",platform=\"linux/", true);
}
END_TEST

SUITE(gauges)
{
    TCase *tc = tcase_create("gauges");
    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_loop_test(tc, test_sandbox, 0, ARRAY_LEN(rows));
    tcase_add_test(tc, test_pool);
    tcase_add_test(tc, test_build_info);
    suite_add_tcase(s, tc);
}
