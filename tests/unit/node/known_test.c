#include "node/known.h"

#include "apiserver/base/json.h"
#include "apiserver/base/mem.h"
#include "tests/lib/suite.h"

static const struct link_port port = {.name = "veth0", .mac = "02:00:00:00:00:02"};

static cJSON *pod_of(const char *uid, int version, const char *spec, const char *status)
{
    cJSON *tree = NULL;
    SCOPED_FREE char *text =
        xasprintf("{\"metadata\":{\"uid\":\"%s\",\"name\":\"n\",\"namespace\":\"s\","
                  "\"resourceVersion\":\"%d\",\"labels\":{\"version\":\"%d\"}},"
                  "\"spec\":{%s},\"status\":{%s}}",
                  uid, version, version, spec, status);
    ck_assert_msg(json_parse_str(text, &tree, NULL) == 0, "%s", text);
    return tree;
}

static void take(struct known *k, const char *uid, int version, const char *spec,
                 const char *status, bool is_delete)
{
    SCOPED(json_free_p) cJSON *pod = pod_of(uid, version, spec, status);
    known_take(k, KNOWN_PODS, pod, is_delete);
}

/* Of how many Pods the address is known. */
static size_t count(struct known *k)
{
    SCOPED(known_view_fini) struct known_view v = known_look(k);
    return v.n_pods;
}

/* Which Pods elsewhere count as peers. */
static const struct {
    const char *spec, *status;
    bool counts;
} rows[] = {
    {"\"nodeName\":\"other\"", "\"podIP\":\"10.1.2.3\"", true},
    {"\"nodeName\":\"other\"", "\"podIPs\":[{\"ip\":\"fd00::1\"},{\"ip\":\"10.1.2.3\"}]", true},
    {"\"nodeName\":\"other\"", "\"podIP\":\"fd00::1\"", false},
    {"\"nodeName\":\"other\"", "", false},
    {"\"nodeName\":\"other\",\"hostNetwork\":true", "\"podIP\":\"10.1.2.3\"", false},
    {"\"nodeName\":\"other\"", "\"podIP\":\"10.1.2.3\",\"phase\":\"Succeeded\"", false},
    {"\"nodeName\":\"other\"", "\"podIP\":\"10.1.2.3\",\"phase\":\"Failed\"", false},
    {"\"nodeName\":\"other\"", "\"podIP\":\"10.1.2.3\",\"phase\":\"Running\"", true},
    {"\"nodeName\":\"own\"", "\"podIP\":\"10.1.2.3\"", false},
};

START_TEST(test_who_counts)
{
    struct known k;
    known_init(&k, "own");
    take(&k, "u", 1, rows[_i].spec, rows[_i].status, false);
    ck_assert_msg(count(&k) == rows[_i].counts, "%s %s", rows[_i].spec, rows[_i].status);
    known_fini(&k);
}
END_TEST

START_TEST(test_sandboxes)
{
    struct known k;
    known_init(&k, "own");
    known_attach(&k, "u", "/n/1", 0x0a5a0002, &port);
    ck_assert_uint_eq(count(&k), 0); /* the cluster has not told of it */
    take(&k, "u", 1, "\"nodeName\":\"own\"", "", false);
    ck_assert_uint_eq(count(&k), 1);
    take(&k, "u", 1, "", "", true);
    ck_assert_uint_eq(count(&k), 1); /* it ends still */
    known_detach(&k, "u");
    ck_assert_uint_eq(count(&k), 0);
    ck_assert_uint_eq(map_len(k.pods), 0);
    known_fini(&k);
}
END_TEST

START_TEST(test_an_address_has_one_sandbox)
{
    struct known k;
    known_init(&k, "own");
    take(&k, "a", 1, "\"nodeName\":\"own\"", "", false);
    take(&k, "b", 2, "\"nodeName\":\"own\"", "", false);
    known_attach(&k, "a", "/n/1", 0x0a5a0002, &port);
    known_attach(&k, "b", "/n/2", 0x0a5a0002, &port);
    ck_assert_uint_eq(count(&k), 1);
    known_detach(&k, "b");
    ck_assert_uint_eq(count(&k), 0);
    known_fini(&k);
}
END_TEST

START_TEST(test_only_what_changes_counts)
{
    struct known k;
    known_init(&k, "own");
    take(&k, "u", 2, "\"nodeName\":\"other\"", "\"podIP\":\"10.1.2.3\"", false);
    uint64_t before = k.changes;
    take(&k, "u", 2, "\"nodeName\":\"other\"", "\"podIP\":\"10.1.2.3\",\"reason\":\"x\"", false);
    take(&k, "u", 1, "\"nodeName\":\"other\"", "\"podIP\":\"10.1.2.4\"", false); /* older */
    ck_assert_uint_eq(k.changes, before);
    take(&k, "u", 3, "\"nodeName\":\"other\"", "\"podIP\":\"10.1.2.3\"", false);
    ck_assert_uint_gt(k.changes, before);
    known_fini(&k);
}
END_TEST

START_TEST(test_lists_are_whole)
{
    struct known k;
    known_init(&k, "own");
    SCOPED(json_free_p) cJSON *pod = pod_of("u", 1, "", "\"podIP\":\"10.1.2.3\"");
    SCOPED(json_free_p) cJSON *other = pod_of("v", 1, "", "\"podIP\":\"10.1.2.4\"");
    const cJSON *both[] = {pod, other};
    for (int s = 0; s < KNOWN_SOURCES; s++) {
        ck_assert(!known_is_whole(&k));
        known_take_list(&k, (enum known_source)s, both, 2);
    }
    ck_assert(known_is_whole(&k));
    ck_assert_uint_eq(count(&k), 2);
    ck_assert_uint_eq(map_len(k.policies), 1); /* by namespace and name */
    for (int s = 0; s < KNOWN_SOURCES; s++)
        known_take_list(&k, (enum known_source)s, both, s == KNOWN_PODS);
    ck_assert_uint_eq(count(&k), 1);
    ck_assert_uint_eq(map_len(k.policies), 0);
    ck_assert_uint_eq(map_len(k.namespaces), 0);
    known_fini(&k);
}
END_TEST

SUITE(known)
{
    LOOP("peers", test_who_counts, 0, ARRAY_LEN(rows));
    TESTS("known", test_sandboxes, test_an_address_has_one_sandbox, test_only_what_changes_counts,
          test_lists_are_whole);
}
