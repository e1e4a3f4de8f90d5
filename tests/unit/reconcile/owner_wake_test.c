/* Who looks when a Sandbox changes. Names carry the ids of the behaviour checklist (G-t...,
 * W-t...). */
#include "apiserver/base/json.h"
#include "apiserver/base/str.h"
#include "openapi/kinds.h"
#include "reconcile/child.h"
#include "reconcile/owner_wake.h"
#include "tests/lib/suite.h"

static struct buf woken;

static void wake(void *ctx, const struct kind *kind, const char *key)
{
    (void)ctx;
    buf_printf(&woken, "%s %s;", kind->kind, key);
}

#define REF(version, kind, name)                                                                   \
    "{\"apiVersion\":\"extensions.agents.x-k8s.io/" version                                        \
    "\",\"controller\":true,\"kind\":\"" kind "\",\"name\":\"" name "\",\"uid\":\"u\"}"
#define POOL REF("v1beta1", "SandboxWarmPool", "p")
#define CLAIM REF("v1beta1", "SandboxClaim", "c")

static void note(struct owner_wake *w, const char *owner, bool is_delete)
{
    SCOPED_FREE char *text = xasprintf(
        "{\"apiVersion\":\"agents.x-k8s.io/v1beta1\",\"kind\":\"Sandbox\",\"metadata\":{"
        "\"name\":\"a\",\"namespace\":\"ns\",\"ownerReferences\":[%s],\"uid\":\"x\"},\"spec\":{}}",
        owner);
    SCOPED(object_unref_p) struct object *o = NULL;
    SCOPED(err_fini) struct err err = {0};
    size_t len = strlen(text);
    ck_assert_int_eq(object_from_bytes(&kind_sandbox, steal(&text), len, 1, &o, &err), 0);
    buf_clear(&woken);
    owner_wake_note(w, o, is_delete);
}

static const struct {
    const char *id, *before, *after; /* before NULL = new */
    bool is_delete;
    const char *woken;
} rows[] = {
    {"new member", NULL, POOL, false, "SandboxWarmPool ns/p;"},
    {"member changed", POOL, POOL, false, "SandboxWarmPool ns/p;"},
    {"G-t013 W-t125 adopted", POOL, CLAIM, false, "SandboxClaim ns/c;SandboxWarmPool ns/p;"},
    {"C-t157 C-t158 C-t159 C-t160 C-t161 claim's Sandbox changed", CLAIM, CLAIM, false,
     "SandboxClaim ns/c;"},
    {"claim's Sandbox gone", CLAIM, CLAIM, true, "SandboxClaim ns/c;"},
    {"member gone", POOL, POOL, true, "SandboxWarmPool ns/p;"},
    {"owner dropped", POOL, "", false, "SandboxWarmPool ns/p;"},
    {"G-t014 old version", NULL, REF("v1alpha1", "SandboxWarmPool", "p"), false,
     "SandboxWarmPool ns/p;"},
    {"G-t001 nobody's", NULL, "", false, ""},
    {"somebody else's", NULL,
     "{\"apiVersion\":\"v1\",\"controller\":true,\"kind\":\"Pod\",\"name\":\"x\"}", false, ""},
    {"no controller", NULL,
     "{\"apiVersion\":\"extensions.agents.x-k8s.io/"
     "v1beta1\",\"kind\":\"SandboxClaim\",\"name\":\"c\"}",
     false, ""},
};

START_TEST(test_row)
{
    struct owner_wake *w = owner_wake_new(wake, NULL);
    if (rows[_i].before)
        note(w, rows[_i].before, false);
    note(w, rows[_i].after, rows[_i].is_delete);
    ck_assert_msg(str_equal(buf_cstr(&woken), rows[_i].woken), "%s: %s", rows[_i].id,
                  buf_cstr(&woken));
    owner_wake_free(w);
    buf_fini(&woken);
}
END_TEST

static const struct {
    const char *id, *ref, *group, *kind; /* ref NULL = none */
    bool matches;
} kinds[] = {
    {"G-t003 none, nothing asked for", NULL, "", "", false},
    {"G-t003 none", NULL, "extensions.agents.x-k8s.io", "SandboxWarmPool", false},
    {"G-t002 group without its version", POOL, "extensions.agents.x-k8s.io", "SandboxWarmPool",
     true},
    {"G-t004 other version", REF("v7", "SandboxWarmPool", "p"), "extensions.agents.x-k8s.io",
     "SandboxWarmPool", true},
    {"G-t005 other group", POOL, "agents.x-k8s.io", "SandboxWarmPool", false},
    {"G-t005 longer group", POOL, "extensions.agents.x-k8s.io.example", "SandboxWarmPool", false},
    {"G-t006 other kind", POOL, "extensions.agents.x-k8s.io", "SandboxClaim", false},
};

START_TEST(test_kind)
{
    SCOPED(json_free_p) cJSON *ref = NULL;
    if (kinds[_i].ref)
        ck_assert_int_eq(json_parse_str(kinds[_i].ref, &ref, NULL), 0);
    ck_assert_msg(owner_is_kind(ref, kinds[_i].group, kinds[_i].kind) == kinds[_i].matches, "%s",
                  kinds[_i].id);
}
END_TEST

START_TEST(test_reset)
{
    struct owner_wake *w = owner_wake_new(wake, NULL);
    note(w, POOL, false);
    buf_clear(&woken);
    owner_wake_reset(w); /* it may have been taken or deleted unseen */
    ck_assert_str_eq(buf_cstr(&woken), "SandboxWarmPool ns/p;");
    buf_clear(&woken);
    owner_wake_reset(w);
    ck_assert_str_eq(buf_cstr(&woken), "");
    owner_wake_free(w);
    buf_fini(&woken);
}
END_TEST

SUITE(owner_wake)
{
    LOOP("rows", test_row, 0, ARRAY_LEN(rows));
    LOOP("kind", test_kind, 0, ARRAY_LEN(kinds));
    TESTS("reset", test_reset);
}
