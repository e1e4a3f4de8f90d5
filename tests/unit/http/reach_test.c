/* What is asked of a Pod's node, and what is refused before. The texts are those of a
 * kube-apiserver v1.37 that was asked the same. */
#include "apiserver/http/reach.h"

#include "apiserver/base/json.h"
#include "apiserver/http/route.h"
#include "tests/lib/suite.h"

#define PODS "/api/v1/namespaces/n/pods/"

static const char one[] = "{\"spec\":{\"containers\":[{\"name\":\"a\"}]}}";
static const char three[] =
    "{\"spec\":{\"initContainers\":[{\"name\":\"i\"}],\"containers\":[{\"name\":\"a\"},"
    "{\"name\":\"b\"}],\"ephemeralContainers\":[{\"name\":\"e\"}]}}";

static const struct row {
    const char *what, *pod; /* behind the path of Pods, with its query */
    const char *path;       /* at the node, or */
    const char *error;
    enum err_code code;
} rows[] = {
    {"p/log", one, "/containerLogs/n/p/a"},
    {"p/log?follow=true&previous=1&timestamps=false&tailLines=0&limitBytes=9&sinceSeconds=7", one,
     "/containerLogs/n/p/a?follow=true&previous=true&sinceSeconds=7&tailLines=0&limitBytes=9"},
    {"p/log?sinceTime=2020-01-01T00:00:00%2B01:00", one,
     "/containerLogs/n/p/a?sinceTime=2020-01-01T00%3A00%3A00%2B01%3A00"},
    {"p/log?sinceTime=&insecureSkipTLSVerifyBackend=true", one, "/containerLogs/n/p/a"},
    {"p/log?container=i", three, "/containerLogs/n/p/i"},
    {"p/log?container=e&container=zz", three, "/containerLogs/n/p/e"},
    {"p/exec?command=sh&command=-c&command=&command=a%26b%20%2F&stdin=1&stdout=true&stderr=0&tty=",
     one, "/exec/n/p/a?input=1&output=1&tty=1&command=sh&command=-c&command=&command=a%26b%20%2F"},
    {"p/attach?container=b&stderr=x", three, "/attach/n/p/b?error=1"},
    {"p/portforward", three, "/portForward/n/p"},
    {"p/portforward?ports=80&ports=65536", three, "/portForward/n/p?port=80,65536"},
    {"p/log", three, NULL, "a container name must be specified for pod p, choose one of: [i a b e]",
     ERR_BAD_REQUEST},
    {"p/exec?container=c", three, NULL, "container c is not valid for pod p", ERR_BAD_REQUEST},
    {"p/log?tailLines=-1", one, NULL,
     "PodLogOptions \"p\" is invalid: tailLines: Invalid value: -1: must be greater than or equal "
     "to 0",
     ERR_INVALID},
    {"p/log?limitBytes=0&sinceSeconds=0", one, NULL,
     "PodLogOptions \"p\" is invalid: [limitBytes: Invalid value: 0: must be greater than 0, "
     "sinceSeconds: Invalid value: 0: must be greater than 0]",
     ERR_INVALID},
    {"p/log?sinceSeconds=0&sinceTime=2020-01-01T00:00:00Z", one, NULL,
     "PodLogOptions \"p\" is invalid: []: Forbidden: at most one of `sinceTime` or `sinceSeconds` "
     "may "
     "be specified",
     ERR_INVALID},
    {"p/log?stream=All", one, NULL,
     "PodLogOptions \"p\" is invalid: stream: Forbidden: may not be specified", ERR_INVALID},
    {"p/log?tailLines=x", one, NULL, "strconv.ParseInt: parsing \"x\": invalid syntax",
     ERR_BAD_REQUEST},
    {"p/log?sinceTime=gestern", one, NULL,
     "parsing time \"gestern\" as \"2006-01-02T15:04:05Z07:00\": cannot parse \"gestern\" as "
     "\"2006\"",
     ERR_BAD_REQUEST},
    {"p/portforward?ports=1&ports=x", one, NULL,
     "cannot convert to []int32: strconv.ParseUint: parsing \"x\": invalid syntax",
     ERR_BAD_REQUEST},
};

static void parse(struct request *req, const char *method, const char *what)
{
    size_t n = strcspn(what, "?");
    SCOPED_FREE char *name = xstrndup(what, n);
    req->method = xstrdup(method);
    req->path = xasprintf(PODS "%s", name);
    req->query = xstrdup(what[n] ? what + n + 1 : "");
    ck_assert_int_eq(route_parse(req, NULL), 0);
}

START_TEST(test_node_is_asked)
{
    const struct row *row = &rows[_i];
    SCOPED(request_fini) struct request req = {0};
    SCOPED(err_fini) struct err err = {0};
    SCOPED(buf_fini) struct buf path = {0};
    SCOPED(json_free_p) cJSON *pod = NULL;
    const char *container;
    ck_assert_int_eq(json_parse(row->pod, strlen(row->pod), NULL, &pod, NULL), 0);
    parse(&req, "GET", row->what);
    int rc = reach_check(&req, &err);
    if (rc == 0)
        rc = reach_container(&req, pod, &container, &err);
    ck_assert_msg(rc == -(int)row->code, "%s: %s", row->what, err_text(&err));
    if (row->error) {
        ck_assert_str_eq(err_text(&err), row->error);
        return;
    }
    reach_path(&req, container, &path);
    ck_assert_str_eq(buf_cstr(&path), row->path);
}
END_TEST

START_TEST(test_which_they_are)
{
    static const struct {
        const char *what;
        bool is_one, is_upgrade;
    } ways[] = {{"p/log", true, false},        {"p/exec", true, true},     {"p/attach", true, true},
                {"p/portforward", true, true}, {"p/status", false, false}, {"p", false, false}};
    for (size_t i = 0; i < ARRAY_LEN(ways); i++) {
        SCOPED(request_fini) struct request req = {0};
        parse(&req, "POST", ways[i].what);
        ck_assert_msg(reach_is_one(&req) == ways[i].is_one, "%s", ways[i].what);
        ck_assert_msg(reach_is_upgrade(&req) == ways[i].is_upgrade, "%s", ways[i].what);
    }
}
END_TEST

static const struct {
    const char *name, *node, *address;
    int port; /* 0 = refused */
} nodes[] = {
    {"internal first",
     "{\"status\":{\"addresses\":[{\"type\":\"Hostname\",\"address\":\"10.0.0.3\"},{\"type\":"
     "\"ExternalIP\",\"address\":"
     "\"10.0.0.2\"},{\"type\":\"InternalIP\",\"address\":\"10.0.0.1\"}],\"daemonEndpoints\":{"
     "\"kubeletEndpoint\":{"
     "\"Port\":10250}}}}",
     "10.0.0.1", 10250},
    {"numbers only",
     "{\"status\":{\"addresses\":[{\"type\":\"InternalIP\",\"address\":\"node.example\"},{\"type\":"
     "\"InternalIP\","
     "\"address\":\"fd00::1\"}],\"daemonEndpoints\":{\"kubeletEndpoint\":{\"Port\":1}}}}",
     "fd00::1", 1},
    {"no port", "{\"status\":{\"addresses\":[{\"type\":\"InternalIP\",\"address\":\"10.0.0.1\"}]}}",
     NULL, 0},
    {"a port that is none",
     "{\"status\":{\"addresses\":[{\"type\":\"InternalIP\",\"address\":\"10.0.0.1\"}],"
     "\"daemonEndpoints\":{"
     "\"kubeletEndpoint\":{\"Port\":65536}}}}",
     NULL, 0},
    {"no address", "{\"status\":{\"daemonEndpoints\":{\"kubeletEndpoint\":{\"Port\":1}}}}", NULL,
     0},
};

START_TEST(test_where_a_node_is)
{
    SCOPED(json_free_p) cJSON *node = NULL;
    SCOPED(err_fini) struct err err = {0};
    const char *address = NULL;
    int port = 0;
    ck_assert_int_eq(json_parse(nodes[_i].node, strlen(nodes[_i].node), NULL, &node, NULL), 0);
    int rc = reach_endpoint(node, &address, &port, &err);
    ck_assert_msg(rc == (nodes[_i].port ? 0 : -ERR_UNAVAILABLE), "%s", nodes[_i].name);
    ck_assert_msg(port == nodes[_i].port && str_equal(address, nodes[_i].address), "%s: %s",
                  nodes[_i].name, address);
}
END_TEST

SUITE(reach)
{
    LOOP("asked", test_node_is_asked, 0, ARRAY_LEN(rows));
    TESTS("ways", test_which_they_are);
    LOOP("nodes", test_where_a_node_is, 0, ARRAY_LEN(nodes));
}
