/* Which claims look again when pools and templates change: C-t150 to C-t155. */
#include "reconcile/claim_wake.h"

#include "apiserver/base/buf.h"
#include "apiserver/base/json.h"
#include "openapi/kinds.h"
#include "tests/lib/suite.h"

static struct claim_wake *w;
static struct buf woken;

static void wake(void *ctx, const char *key)
{
    (void)ctx;
    buf_printf(&woken, "%s ", key);
}

static void setup(void)
{
    w = claim_wake_new(wake, NULL);
}

static void teardown(void)
{
    claim_wake_free(w);
    buf_fini(&woken);
}

static void note(const struct kind *kind, bool is_delete, const char *ns, const char *name,
                 const char *metadata, const char *rest)
{
    char *json =
        xasprintf("{\"apiVersion\":\"%s/%s\",\"kind\":\"%s\",\"metadata\":{\"name\":\"%s\","
                  "\"namespace\":\"%s\"%s,\"uid\":\"u\"}%s}",
                  kind->group, kind->version, kind->kind, name, ns, metadata, rest);
    struct object *o = NULL;
    ck_assert_int_eq(object_from_bytes(kind, json, strlen(json), 1, &o, NULL), 0);
    claim_wake_note(w, o, is_delete);
    object_unref(o);
}

static void claim(const char *ns, const char *name, const char *pool, const char *sandbox,
                  const char *metadata)
{
    SCOPED_FREE char *rest =
        xasprintf(",\"spec\":{\"warmPoolRef\":{\"name\":\"%s\"}},\"status\":{\"sandbox\":{%s%s%s}}",
                  pool, *sandbox ? "\"name\":\"" : "", sandbox, *sandbox ? "\"" : "");
    note(&kind_sandbox_claim, false, ns, name, metadata, rest);
}

static void pool(const char *name, int generation, const char *template)
{
    SCOPED_FREE char *metadata = xasprintf(",\"generation\":%d", generation);
    SCOPED_FREE char *rest =
        xasprintf(",\"spec\":{\"sandboxTemplateRef\":{\"name\":\"%s\"}}", template);
    note(&kind_sandbox_warm_pool, false, "ns", name, metadata, rest);
}

static void expect(const char *keys)
{
    ck_assert_str_eq(buf_cstr(&woken), keys);
    buf_clear(&woken);
}

START_TEST(test_pools)
{
    claim("ns", "bound", "p", "s", "");
    claim("ns", "free", "p", "", "");
    claim("ns", "going", "p", "", ",\"deletionTimestamp\":\"2026-01-01T00:00:00Z\"");
    claim("ns", "other", "pp", "", "");
    claim("else", "free", "p", "", "");
    expect("");
    pool("p", 1, "t");
    expect("ns/free "); /* C-t150, C-t151 */
    pool("p", 1, "t");
    expect(""); /* C-t152: its status only */
    pool("p", 2, "t");
    expect("ns/free ");
    note(&kind_sandbox_warm_pool, true, "ns", "p", "", "");
    expect("ns/free ");
    claim("ns", "free", "p", "s", "");
    pool("p", 1, "t");
    expect("");
    note(&kind_sandbox_claim, true, "ns", "free", "", "");
    claim("ns", "other", "p", "", ""); /* it names another pool now */
    pool("p", 2, "t");
    expect("ns/other ");
}
END_TEST

START_TEST(test_templates) /* IL-033 */
{
    pool("p", 1, "t");
    pool("q", 1, "t");
    pool("r", 1, "u");
    claim("ns", "a", "p", "s", "");
    claim("ns", "b", "q", "", "");
    claim("ns", "c", "r", "", "");
    claim("ns", "d", "p", "", ",\"deletionTimestamp\":\"2026-01-01T00:00:00Z\"");
    note(&kind_sandbox_template, false, "else", "t", "", "");
    expect("");
    note(&kind_sandbox_template, false, "ns", "t", "", "");
    expect("ns/a ns/b "); /* C-t153, C-t154 */
    note(&kind_sandbox_template, false, "ns", "t", "", "");
    note(&kind_sandbox_template, true, "ns", "t", "", "");
    expect(""); /* C-t155 */
    note(&kind_sandbox_template, false, "ns", "t", "", "");
    expect("ns/a ns/b ");
    claim("ns", "e", "r", "s", ""); /* bound, of a pool of another template by now */
    note(&kind_sandbox_template, true, "ns", "t", "", "");
    expect("ns/e ");
}
END_TEST

/* After a gap the present objects come again, and what went meanwhile is forgotten. */
START_TEST(test_reset)
{
    claim("ns", "gone", "p", "", "");
    pool("p", 1, "t");
    expect("ns/gone ");
    claim_wake_reset(w, &kind_sandbox_claim);
    claim("ns", "here", "p", "", "");
    claim_wake_reset(w, &kind_sandbox_warm_pool);
    pool("p", 1, "t");
    expect("ns/here ");
    claim_wake_reset(w, &kind_sandbox_template);
    note(&kind_sandbox_template, false, "ns", "t", "", "");
    expect("ns/here ");
}
END_TEST

SUITE(claim_wake)
{
    TCase *tc = tcase_create("wake");
    tcase_add_checked_fixture(tc, setup, teardown);
    const TTest *const tests[] = {test_pools, test_templates, test_reset};
    for (size_t i = 0; i < ARRAY_LEN(tests); i++)
        tcase_add_test(tc, tests[i]);
    suite_add_tcase(s, tc);
}
