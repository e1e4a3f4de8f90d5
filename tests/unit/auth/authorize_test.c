/* May they: the rules that need nobody, the review asked word by word, its cache, refusals word by
 * word, and trouble. */
#include <stdio.h>

#include "apiserver/auth/auth.h"
#include "apiserver/base/json.h"
#include "tests/lib/fake_kube.h"
#include "tests/lib/suite.h"

#define GROUP "agents.x-k8s.io"

static struct fake_kube *cluster;
static struct auth *auth;
static struct clock_fake now;

static void start(bool with_cluster)
{
    SCOPED(err_fini) struct err err = {0};
    clock_fake_init(&now, 1000000);
    cluster = with_cluster ? fake_kube_new() : NULL;
    struct auth_config config = {.kube = with_cluster ? fake_kube_client(cluster) : NULL,
                                 .clock = &now.clock};
    ck_assert_msg(auth_new(&config, &auth, &err) == 0, "%s", err_text(&err));
}

static void stop(void)
{
    auth_free(auth);
    if (cluster)
        fake_kube_free(cluster);
}

static int check(const char *name, char **groups, const struct access *access, struct err *err)
{
    struct user u = {.name = xstrdup(name), .uid = xstrdup("")};
    u.groups = groups;
    int r = auth_authorize(auth, &u, access, err);
    u.groups = NULL;
    user_fini(&u);
    return r;
}

static const struct access list = {.verb = "list",
                                   .is_resource = true,
                                   .path = "/apis/x",
                                   .namespace_name = "ns",
                                   .group = GROUP,
                                   .version = "v1beta1",
                                   .resource = "sandboxes",
                                   .subresource = "",
                                   .name = ""};

START_TEST(test_no_review)
{
    start(false);
    char masters[] = "system:masters", others[] = "system:authenticated";
    SCOPED(err_fini) struct err err = {0};
    ck_assert_int_eq(check("root", (char *[]){masters, NULL}, &list, &err), 0);
    ck_assert_int_eq(check("jane", (char *[]){others, NULL}, &list, &err), -ERR_FORBIDDEN);
    static const char *const open[] = {"/healthz", "/livez", "/readyz"};
    static const char *const closed[] = {"/readyz/etcd", "/livez/",   "/version",
                                         "/metrics",     "/healthzz", "/"};
    for (size_t i = 0; i < ARRAY_LEN(open); i++)
        ck_assert_int_eq(check("x", NULL, &(struct access){.verb = "get", .path = open[i]}, &err),
                         0);
    for (size_t i = 0; i < ARRAY_LEN(closed); i++)
        ck_assert_int_eq(check("x", NULL, &(struct access){.verb = "get", .path = closed[i]}, &err),
                         -ERR_FORBIDDEN);
    struct access trick = list;
    trick.path = "/livez";
    ck_assert_int_eq(check("x", NULL, &trick, &err), -ERR_FORBIDDEN);
    stop();
}
END_TEST

START_TEST(test_spec)
{
    start(true);
    SCOPED(json_free_p) cJSON *fields = NULL, *labels = NULL;
    json_parse_str(
        "{\"requirements\":[{\"key\":\"metadata.name\",\"operator\":\"In\",\"values\":[\"a\"]}]}",
        &fields, NULL);
    json_parse_str("{\"requirements\":[{\"key\":\"app\",\"operator\":\"Exists\"}]}", &labels, NULL);
    struct access full = list;
    full.subresource = "status";
    full.name = "a";
    full.field_selector = fields;
    full.label_selector = labels;
    char one[] = "g1", two[] = "g2";
    struct user u = {.name = xstrdup("allowed"), .uid = xstrdup("u-1")};
    u.groups = (char *[]){one, two, NULL};
    pairs_add(&u.extra, "k", "v1");
    pairs_add(&u.extra, "l", "x");
    pairs_add(&u.extra, "k", "v2");
    ck_assert_int_eq(auth_authorize(auth, &u, &full, NULL), 0);
    SCOPED_FREE char *asked = fake_kube_last_review(cluster);
    ck_assert_str_eq(
        asked,
        "{\"apiVersion\":\"authorization.k8s.io/"
        "v1\",\"kind\":\"SubjectAccessReview\",\"spec\":{\"user\":"
        "\"allowed\",\"uid\":\"u-1\",\"groups\":[\"g1\",\"g2\"],\"extra\":{\"k\":[\"v1\",\"v2\"],"
        "\"l\":[\"x\"]},"
        "\"resourceAttributes\":{\"namespace\":\"ns\",\"verb\":\"list\",\"group\":\"agents.x-k8s."
        "io\","
        "\"version\":\"v1beta1\",\"resource\":\"sandboxes\",\"subresource\":\"status\",\"name\":"
        "\"a\","
        "\"fieldSelector\":{\"requirements\":[{\"key\":\"metadata.name\",\"operator\":\"In\","
        "\"values\":[\"a\"]}]},"
        "\"labelSelector\":{\"requirements\":[{\"key\":\"app\",\"operator\":\"Exists\"}]}}}}");
    ck_assert_int_eq(
        auth_authorize(auth, &u, &(struct access){.verb = "get", .path = "/version"}, NULL), 0);
    SCOPED_FREE char *path = fake_kube_last_review(cluster);
    ck_assert_ptr_nonnull(
        strstr(path, "\"nonResourceAttributes\":{\"path\":\"/version\",\"verb\":\"get\"}}}"));
    u.groups = NULL;
    user_fini(&u);
    stop();
}
END_TEST

static const struct {
    const char *user, *verb, *namespace_name, *group, *resource, *subresource, *name, *path,
        *message;
    bool is_resource;
} refusals[] = {
    {"jane", "list", "ns", GROUP, "sandboxes", "", "", "",
     "sandboxes.agents.x-k8s.io is forbidden: User \"jane\" cannot list resource \"sandboxes\" in "
     "API group "
     "\"agents.x-k8s.io\" in the namespace \"ns\"",
     true},
    {"jane", "list", "", GROUP, "sandboxes", "", "", "",
     "sandboxes.agents.x-k8s.io is forbidden: User \"jane\" cannot list resource \"sandboxes\" in "
     "API group "
     "\"agents.x-k8s.io\" at the cluster scope",
     true},
    {"jane", "get", "ns", GROUP, "sandboxes", "status", "a", "",
     "sandboxes.agents.x-k8s.io \"a\" is forbidden: User \"jane\" cannot get resource "
     "\"sandboxes/status\" in API group "
     "\"agents.x-k8s.io\" in the namespace \"ns\"",
     true},
    {"jane", "get", "ns", "", "pods", "", "p", "",
     "pods \"p\" is forbidden: User \"jane\" cannot get resource \"pods\" in API group \"\" in the "
     "namespace \"ns\"",
     true},
    {"<b>&\"q\"", "get", NULL, NULL, NULL, NULL, NULL, "/x?<y>",
     "forbidden: User \"&lt;b&gt;&amp;\\\"q\\\"\" cannot get path \"/x?&lt;y&gt;\"", false},
    {"denied", "delete", "ns", GROUP, "sandboxes", "", "a", "",
     "sandboxes.agents.x-k8s.io \"a\" is forbidden: User \"denied\" cannot delete resource "
     "\"sandboxes\" in API group "
     "\"agents.x-k8s.io\" in the namespace \"ns\": because &lt;b&gt; &amp; c",
     true},
    {"both", "get", NULL, NULL, NULL, NULL, NULL, "/y",
     "forbidden: User \"both\" cannot get path \"/y\"", false},
};

START_TEST(test_refusal)
{
    start(true);
    SCOPED(err_fini) struct err err = {0};
    struct access x = {.verb = refusals[_i].verb,
                       .is_resource = refusals[_i].is_resource,
                       .path = refusals[_i].path,
                       .namespace_name = refusals[_i].namespace_name,
                       .group = refusals[_i].group,
                       .resource = refusals[_i].resource,
                       .subresource = refusals[_i].subresource,
                       .name = refusals[_i].name};
    ck_assert_int_eq(check(refusals[_i].user, NULL, &x, &err), -ERR_FORBIDDEN);
    ck_assert_str_eq(err_text(&err), refusals[_i].message);
    ck_assert(err.has_details);
    ck_assert_str_eq(err.kind, refusals[_i].resource ? refusals[_i].resource : "");
    ck_assert_str_eq(err.name, refusals[_i].name ? refusals[_i].name : "");
    ck_assert_str_eq(err.group, refusals[_i].group ? refusals[_i].group : "");
    stop();
}
END_TEST

START_TEST(test_cache) /* IL-137 */
{
    start(true);
    SCOPED(err_fini) struct err err = {0};
    struct access get = list;
    get.verb = "get";
    for (int i = 0; i < 100; i++) {
        ck_assert_int_eq(check("allowed", NULL, &list, &err), 0);
        ck_assert_int_eq(check("nobody", NULL, &list, &err), -ERR_FORBIDDEN);
    }
    ck_assert_int_eq(fake_kube_reviews(cluster), 2);
    ck_assert_int_eq(check("allowed", NULL, &get, &err), 0); /* another spec */
    ck_assert_int_eq(fake_kube_reviews(cluster), 3);
    char group[] = "g";
    ck_assert_int_eq(check("allowed", (char *[]){group, NULL}, &list, &err), 0);
    ck_assert_int_eq(fake_kube_reviews(cluster), 4);
    clock_fake_advance(&now, 10000);
    ck_assert_int_eq(check("allowed", NULL, &list, &err), 0);
    ck_assert_int_eq(fake_kube_reviews(cluster), 5);
    SCOPED_FREE char *name = xmalloc(10001);
    memset(name, 'n', 10000);
    name[10000] = '\0';
    get.name = name; /* too large to be kept */
    ck_assert_int_eq(check("allowed", NULL, &get, &err), 0);
    ck_assert_int_eq(check("allowed", NULL, &get, &err), 0);
    ck_assert_int_eq(fake_kube_reviews(cluster), 7);
    stop();
}
END_TEST

START_TEST(test_trouble) /* IL-137 */
{
    start(true);
    SCOPED(err_fini) struct err err = {0};
    ck_assert_int_eq(check("flaky", NULL, &list, &err), 0);
    ck_assert_int_eq(fake_kube_reviews(cluster), 2);
    ck_assert_int_eq(check("forbidden", NULL, &list, &err), -ERR_INTERNAL);
    ck_assert_str_eq(err_text(&err), "Internal Server Error: \"/apis/x\": no luck");
    ck_assert_int_eq(check("forbidden", NULL, &list, &err), -ERR_INTERNAL);
    ck_assert_int_eq(fake_kube_reviews(cluster), 4);
    ck_assert_int_eq(check("odd", NULL, &list, &err), -ERR_INTERNAL);
    ck_assert_int_eq(check("broken", NULL, &list, &err), -ERR_INTERNAL);
    ck_assert_int_eq(fake_kube_reviews(cluster), 10);
    ck_assert_int_eq(check("allowed", NULL, &list, &err), 0);
    fake_kube_break(cluster);
    ck_assert_int_eq(check("allowed", NULL, &list, &err), 0); /* still known */
    ck_assert_int_eq(check("denied", NULL, &list, &err), -ERR_INTERNAL);
    stop();
}
END_TEST

SUITE(authorize)
{
    TESTS("rules", test_no_review, test_spec, test_cache, test_trouble);
    LOOP("refusals", test_refusal, 0, ARRAY_LEN(refusals));
}
