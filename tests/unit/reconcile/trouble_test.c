/* What hinders Pods and Sandboxes, in words that may be shown. */
#include "apiserver/base/json.h"
#include "apiserver/base/mem.h"
#include "reconcile/trouble.h"
#include "tests/lib/suite.h"

#define X16 "xxxxxxxxxxxxxxxx"
#define X128 X16 X16 X16 X16 X16 X16 X16 X16
#define X512 X128 X128 X128 X128

static const struct {
    const char *text, *fit;
} texts[] = {
    {"", ""},
    {"plain: text", "plain: text"},
    {"a\nb\tc\x7f", "a b c "},
    {"get https://joe:secret@host/v2/?token=abc: denied", "get https://host/v2/?... denied"},
    {"\"https://joe@host\" and \"http://x/y?z\" too",
     "\"https://host\" and \"http://x/y?...\" too"},
    {"https://host/a@b", "https://host/a@b"},
    {"://", "://"},
    {"u://a@b@c", "u://c"},
    {"mail joe@example.org", "mail joe@example.org"},
    {X512, X512},
    {X512 "y", X512 "..."},
};

START_TEST(test_texts) /* IL-048 */
{
    SCOPED(buf_fini) struct buf out = {0};
    trouble_put_text(&out, texts[_i].text);
    ck_assert_str_eq(buf_cstr(&out), texts[_i].fit);
}
END_TEST

#define WAITING(list, name, reason, message)                                                       \
    "\"" list "\":[{\"name\":\"ok\",\"state\":{\"running\":{}}},{\"name\":\"" name                 \
    "\",\"state\":{\"waiting\":{\"reason\":\"" reason "\"" message "}}}]"

static const struct {
    const char *status, *reason, *text; /* NULL = no trouble */
} pods[] = {
    {"{}", NULL, NULL},
    {"{" WAITING("containerStatuses", "c", "ContainerCreating", "") "}", NULL, NULL},
    {"{" WAITING("containerStatuses", "c", "PodInitializing", "") "}", NULL, NULL},
    {"{" WAITING("containerStatuses", "c", "CrashLoopBackOff", ",\"message\":\"back-off 10s\"") "}",
     "CrashLoop", "container \"c\" waits: CrashLoopBackOff: back-off 10s"},
    {"{" WAITING("containerStatuses", "c", "ErrImagePull", "") "}", "ImagePullFailed",
     "container \"c\" waits: ErrImagePull"},
    {"{" WAITING("containerStatuses", "c", "PodInitializing", "") "," WAITING(
         "initContainerStatuses", "i", "CreateContainerConfigError", "") "}",
     "ContainerFailed", "container \"i\" waits: CreateContainerConfigError"},
};

static cJSON *with_status(const char *status)
{
    cJSON *object = json_object(), *tree = NULL;
    ck_assert_int_eq(json_parse_str(status, &tree, NULL), 0);
    json_set(object, "status", tree);
    return object;
}

static void expect(const struct trouble *t, const char *reason, const char *text)
{
    ck_assert_pstr_eq(t->reason, reason);
    ck_assert_pstr_eq(t->text, text);
}

START_TEST(test_pods) /* IL-036, IL-048 */
{
    SCOPED(json_free_p) cJSON *pod = with_status(pods[_i].status);
    SCOPED(trouble_fini) struct trouble t = {0};
    trouble_of_containers(pod, &t);
    expect(&t, pods[_i].reason, pods[_i].text);
}
END_TEST

#define CONDITION(type, status, reason, message)                                                   \
    "{\"type\":\"" type "\",\"status\":\"" status "\",\"reason\":\"" reason                        \
    "\",\"message\":\"" message "\"}"
#define NOT_READY CONDITION("Ready", "False", "DependenciesNotReady", "m")

static const struct {
    const char *conditions, *reason, *text;
} sandboxes[] = {
    {"", NULL, NULL},
    {NOT_READY, NULL, NULL},
    {CONDITION("Ready", "True", "DependenciesReady", ""), NULL, NULL},
    {CONDITION("Ready", "False", "SandboxSuspended", ""), NULL, NULL},
    {CONDITION("Ready", "False", "ReconcilerError", "Error seen: exceeded quota: q"),
     "QuotaExceeded", "Error seen: exceeded quota: q"},
    {CONDITION("Ready", "False", "InvalidConfiguration", "bad"), "InvalidConfiguration", "bad"},
    {CONDITION("Ready", "False", "PodFailed", "Pod failed: Evicted: e"), "PodFailed",
     "Pod failed: Evicted: e"},
    {NOT_READY "," CONDITION("PodScheduled", "False", "Unschedulable", "no"), "Unschedulable",
     "no"},
    {NOT_READY "," CONDITION("PodScheduled", "True", "PodScheduled", ""), NULL, NULL},
    {NOT_READY "," CONDITION("PodScheduled", "Unknown", "PodSchedulingUnknown", ""), NULL, NULL},
};

START_TEST(test_sandboxes) /* IL-036, IL-048 */
{
    SCOPED_FREE char *status = xasprintf("{\"conditions\":[%s]}", sandboxes[_i].conditions);
    SCOPED(json_free_p) cJSON *sandbox = with_status(status);
    SCOPED(trouble_fini) struct trouble t = {0};
    trouble_of_sandbox(sandbox, &t);
    expect(&t, sandboxes[_i].reason, sandboxes[_i].text);
}
END_TEST

SUITE(trouble)
{
    LOOP("texts", test_texts, 0, ARRAY_LEN(texts));
    LOOP("pods", test_pods, 0, ARRAY_LEN(pods));
    LOOP("sandboxes", test_sandboxes, 0, ARRAY_LEN(sandboxes));
}
