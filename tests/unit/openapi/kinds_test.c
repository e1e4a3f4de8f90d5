/* The tables themselves: no mistakes, and the look-ups. */
#include "openapi/kinds.h"

#include "openapi/kinds/apimachinery.h"
#include "openapi/kinds/builtin.h"
#include "tests/lib/suite.h"

static void print_mistake(void *ctx, const char *text)
{
    (void)ctx;
    ck_abort_msg("%s", text);
}

START_TEST(test_tables_have_no_mistakes)
{
    ck_assert_uint_eq(kinds_check(print_mistake, NULL), 0);
}
END_TEST

/* Those that a server without a cluster serves as well. */
START_TEST(test_tables_of_builtin_kinds_have_no_mistakes)
{
    size_t n = 0;
    kinds_served = kinds_standalone;
    ck_assert_uint_eq(kinds_check(print_mistake, NULL), 0);
    for (; kinds_served[n]; n++)
        ck_assert_ptr_eq(
            kind_find(kinds_served[n]->group, kinds_served[n]->version, kinds_served[n]->plural),
            kinds_served[n]);
    ck_assert_uint_le(n, KINDS_MAX);
    for (size_t i = 0; kinds_all[i]; i++)
        ck_assert_ptr_eq(kind_find_by_kind(kinds_all[i]->group, kinds_all[i]->kind), kinds_all[i]);
}
END_TEST

START_TEST(test_paths_of_kinds)
{
    SCOPED_FREE char *core = kind_api_path(&kind_pod);
    SCOPED_FREE char *ours = kind_api_path(&kind_sandbox);
    ck_assert_str_eq(core, "/api/v1");
    ck_assert_str_eq(ours, "/apis/agents.x-k8s.io/v1beta1");
    ck_assert_ptr_nonnull(kind_subresource(&kind_pod, "binding"));
    ck_assert_ptr_null(kind_subresource(&kind_pod, "finalize"));
}
END_TEST

START_TEST(test_kind_find)
{
    ck_assert_ptr_eq(kind_find("agents.x-k8s.io", "v1beta1", "sandboxes"), &kind_sandbox);
    ck_assert_ptr_eq(kind_find("extensions.agents.x-k8s.io", "v1beta1", "sandboxwarmpools"),
                     &kind_sandbox_warm_pool);
    ck_assert_ptr_null(kind_find("agents.x-k8s.io", "v1alpha1", "sandboxes"));
    ck_assert_ptr_null(kind_find("agents.x-k8s.io", "v1beta1", "sandboxclaims"));
    ck_assert_ptr_eq(kind_find_by_kind("extensions.agents.x-k8s.io", "SandboxClaim"),
                     &kind_sandbox_claim);
    ck_assert_ptr_null(kind_find_by_kind("agents.x-k8s.io", "SandboxClaim"));
    ck_assert(kind_group_version_served("extensions.agents.x-k8s.io", "v1beta1"));
    ck_assert(!kind_group_version_served("extensions.agents.x-k8s.io", "v1"));
}
END_TEST

START_TEST(test_kinds_are_few)
{
    size_t n = 0;
    while (kinds_all[n])
        n++;
    ck_assert_uint_eq(n, 4);
    ck_assert_uint_le(n, KINDS_MAX);
}
END_TEST

START_TEST(test_shape_field)
{
    ck_assert_ptr_nonnull(shape_field(&shape_pod_spec, "containers"));
    ck_assert_ptr_null(shape_field(&shape_pod_spec, "container"));
    ck_assert_ptr_null(shape_field(NULL, "x"));
    ck_assert_ptr_null(shape_field(shapes_shared[4], "x")); /* a shape without fields */
}
END_TEST

SUITE(kinds)
{
    TESTS("kinds", test_tables_have_no_mistakes, test_tables_of_builtin_kinds_have_no_mistakes,
          test_paths_of_kinds, test_kind_find, test_kinds_are_few, test_shape_field);
}
