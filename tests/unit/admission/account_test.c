/* What a Pod gets from its ServiceAccount: rows of a Pod's spec, the account, and what was added.
 */
#include <stdio.h>

#include "admission/admit.h"
#include "apiserver/base/buf.h"
#include "apiserver/base/json.h"
#include "apiserver/base/mem.h"
#include "openapi/kinds/builtin.h"
#include "tests/lib/suite.h"

#define PATH "/var/run/secrets/kubernetes.io/serviceaccount"

static struct clock_fake fake;
static struct rand_fixed fixed;
static const char *account; /* JSON with ' for "; NULL = there is none, "" = it is not known */
static char asked[100];

static cJSON *tree_of(const char *quoted)
{
    SCOPED_FREE char *text = xstrdup(quoted);
    cJSON *tree = NULL;
    SCOPED(err_fini) struct err err = {0};
    for (char *c = text; *c; c++)
        *c = *c == '\'' ? '"' : *c;
    ck_assert_msg(json_parse_str(text, &tree, &err) == 0, "%s: %s", err_text(&err), text);
    return tree;
}

static int find(void *ctx, const char *namespace_name, const char *name, cJSON **ret,
                struct err *err)
{
    (void)ctx;
    snprintf(asked, sizeof asked, "%s/%s", namespace_name, name);
    if (!account)
        return err_set(err, ERR_NOT_FOUND, "serviceaccounts \"%s\" not found", name);
    if (!*account)
        return err_set(err, ERR_UNAVAILABLE, "not now");
    *ret = tree_of(account);
    return 0;
}

static void setup(void)
{
    clock_fake_init(&fake, 1767323045000);
    rand_fixed_init(&fixed, 7);
}

/* The Pod's spec after it was made, or the error's text; the caller's. */
static char *make(const char *members)
{
    const struct admit_env env = {
        .clock = &fake.clock, .randomness = &fixed.r, .service_account = find};
    const struct admit_request req = {.kind = &kind_pod, .namespace_name = "ns"};
    SCOPED(err_fini) struct err err = {0};
    SCOPED_FREE char *text = xasprintf(
        "{'apiVersion':'v1','kind':'Pod','metadata':{'name':'p'},'spec':{'containers':["
        "{'name':'a','image':'i'},{'name':'b','image':'i','volumeMounts':[{'name':'own','mountPath'"
        ":'" PATH "'}]}],'initContainers':[{'name':'c','image':'i'}],'volumes':[{'name':'own',"
        "'emptyDir':{}}]%s}}",
        members);
    SCOPED(json_free_p) cJSON *pod = tree_of(text);
    if (admit(&env, &req, pod, NULL, &err) < 0)
        return xstrdup(err_text(&err));
    return json_to_str(json_get(pod, "spec"));
}

static const struct {
    const char *name, *account, *members;
    bool is_mounted;
} mounting[] = {
    {"nobody says no", "{}", "", true},
    {"the account does", "{'automountServiceAccountToken':false}", "", false},
    {"the Pod does", "{'automountServiceAccountToken':true}",
     ",'automountServiceAccountToken':false", false},
    {"the Pod has the last word", "{'automountServiceAccountToken':false}",
     ",'automountServiceAccountToken':true", true},
    {"the default account, before it is made", NULL, "", true},
};

START_TEST(mounts)
{
    account = mounting[_i].account;
    SCOPED_FREE char *text = make(mounting[_i].members);
    SCOPED(json_free_p) cJSON *spec = tree_of(text);
    const cJSON *volume = cJSON_GetArrayItem(json_get(spec, "volumes"), 1);
    const cJSON *containers = json_get(spec, "containers"),
                *first = cJSON_GetArrayItem(containers, 0);
    ck_assert_str_eq(asked, "ns/default");
    ck_assert_int_eq(json_len(json_get(spec, "volumes")), 1 + mounting[_i].is_mounted);
    ck_assert_int_eq(json_len(json_get(first, "volumeMounts")), mounting[_i].is_mounted);
    /* who has something there keeps it */
    ck_assert_int_eq(json_len(json_get(cJSON_GetArrayItem(containers, 1), "volumeMounts")), 1);
    if (!mounting[_i].is_mounted)
        return;
    const char *name = json_str(volume, "name");
    const cJSON *init = cJSON_GetArrayItem(json_get(spec, "initContainers"), 0);
    SCOPED_FREE char *mount = json_to_str(json_get(first, "volumeMounts"));
    SCOPED_FREE char *again = json_to_str(json_get(init, "volumeMounts"));
    SCOPED_FREE char *expected =
        xasprintf("[{\"name\":\"%s\",\"readOnly\":true,\"mountPath\":\"" PATH "\"}]", name);
    ck_assert(str_has_prefix(name, "kube-api-access-"));
    ck_assert_uint_eq(strlen(name), strlen("kube-api-access-") + 5);
    ck_assert_str_eq(mount, expected);
    ck_assert_str_eq(again, expected);
    SCOPED_FREE char *projected = json_to_str(json_get(volume, "projected"));
    ck_assert_str_eq(
        projected,
        "{\"defaultMode\":420,\"sources\":[{\"serviceAccountToken\":{\"expirationSeconds\":3607,"
        "\"path\":\"token\"}},{\"configMap\":{\"name\":\"kube-root-ca.crt\",\"items\":[{\"key\":"
        "\"ca.crt\",\"path\":\"ca.crt\"}]}},{\"downwardAPI\":{\"items\":[{\"path\":\"namespace\","
        "\"fieldRef\":{\"apiVersion\":\"v1\",\"fieldPath\":\"metadata.namespace\"}}]}}]}");
}
END_TEST

static const struct {
    const char *name, *account, *members, *secrets;
} pulling[] = {
    {"none", "{}", "", "null"},
    {"the account's", "{'imagePullSecrets':[{'name':'x'},{'name':'y'}]}", "",
     "[{\"name\":\"x\"},{\"name\":\"y\"}]"},
    {"the Pod's own", "{'imagePullSecrets':[{'name':'x'}]}", ",'imagePullSecrets':[{'name':'z'}]",
     "[{\"name\":\"z\"}]"},
};

START_TEST(pull_secrets)
{
    account = pulling[_i].account;
    SCOPED_FREE char *text = make(pulling[_i].members);
    SCOPED(json_free_p) cJSON *spec = tree_of(text);
    SCOPED(json_free_p) cJSON *none = json_null();
    const cJSON *secrets = json_get(spec, "imagePullSecrets");
    SCOPED_FREE char *got = json_to_str(secrets ? secrets : none);
    ck_assert_str_eq(got, pulling[_i].secrets);
}
END_TEST

START_TEST(refused)
{
    account = NULL;
    SCOPED_FREE char *absent = make(",'serviceAccountName':'robot'");
    ck_assert_str_eq(absent, "pods \"p\" is forbidden: error looking up service account ns/robot: "
                             "serviceaccount \"robot\" not found");
    SCOPED_FREE char *bad = make(",'serviceAccountName':'A_b'");
    ck_assert_ptr_nonnull(strstr(bad, "spec.serviceAccountName: Invalid value: \"A_b\""));
    account = "";
    SCOPED_FREE char *unknown = make("");
    ck_assert_str_eq(
        unknown, "pods \"p\" is forbidden: error looking up service account ns/default: not now");
}
END_TEST

SUITE(account)
{
    TCase *tc = tcase_create("account");
    tcase_add_checked_fixture(tc, setup, NULL);
    tcase_add_loop_test(tc, mounts, 0, ARRAY_LEN(mounting));
    tcase_add_loop_test(tc, pull_secrets, 0, ARRAY_LEN(pulling));
    tcase_add_test(tc, refused);
    suite_add_tcase(s, tc);
}
