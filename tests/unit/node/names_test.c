#include "node/names.h"

#include "apiserver/base/json.h"
#include "tests/lib/suite.h"

static char server[] = "10.96.0.10";
static char *servers[] = {server, NULL};

static cJSON *pod_of(const char *spec)
{
    cJSON *pod = NULL;
    SCOPED_FREE char *text =
        xasprintf("{\"metadata\":{\"name\":\"p\",\"namespace\":\"n\"},\"spec\":%s}", spec);
    ck_assert_msg(json_parse_str(text, &pod, NULL) == 0, "%s", text);
    return pod;
}

static const struct {
    const char *spec;
    char *const *dns;
    const char *machine, *resolv;
} rows[] = {
    {"{}", servers, "nameserver 9.9.9.9\n",
     "nameserver 10.96.0.10\nsearch n.svc.cluster.local svc.cluster.local cluster.local\n"
     "options ndots:5\n"},
    {"{}", NULL, "# mine\nsearch a b\nnameserver 9.9.9.9\n",
     "# mine\nnameserver 9.9.9.9\nsearch a b\n"},
    {"{\"dnsPolicy\":\"Default\"}", servers, "nameserver 9.9.9.9", "nameserver 9.9.9.9\n"},
    {"{\"dnsPolicy\":\"None\",\"dnsConfig\":{\"nameservers\":[\"1.1.1.1\"],\"searches\":[\"x\","
     "\"y\"],"
     "\"options\":[{\"name\":\"ndots\",\"value\":\"2\"},{\"name\":\"edns0\"}]}}",
     servers, "nameserver 9.9.9.9\n",
     "nameserver 1.1.1.1\nsearch x y\noptions ndots:2\noptions edns0\n"},
    {"{\"dnsConfig\":{\"searches\":[\"x\"]}}", NULL, "search a\n", "search a x\n"},
};

START_TEST(test_resolv)
{
    SCOPED(json_free_p) cJSON *pod = pod_of(rows[_i].spec);
    SCOPED(buf_fini) struct buf out = {0};
    names_print_resolv(pod, rows[_i].dns, "cluster.local", rows[_i].machine, &out);
    ck_assert_str_eq(buf_cstr(&out), rows[_i].resolv);
}
END_TEST

START_TEST(test_hosts)
{
    SCOPED(json_free_p)
    cJSON *pod =
        pod_of("{\"hostname\":\"h\",\"subdomain\":\"s\",\"hostAliases\":[{\"ip\":\"10.1.1.1\","
               "\"hostnames\":[\"a\",\"b\"]}]}");
    SCOPED(buf_fini) struct buf out = {0};
    names_print_hosts(pod, "10.90.0.2", "10.90.0.1", "cluster.local", &out);
    ck_assert_str_eq(buf_cstr(&out),
                     "127.0.0.1\tlocalhost\n::1\tlocalhost ip6-localhost ip6-loopback\n"
                     "10.90.0.2\th.s.n.svc.cluster.local\th\n"
                     "10.90.0.1\tkubernetes.default.svc\tkubernetes.default.svc.cluster.local\n"
                     "10.1.1.1\ta\tb\n");
}
END_TEST

SUITE(names)
{
    LOOP("resolv.conf", test_resolv, 0, ARRAY_LEN(rows));
    TESTS("hosts", test_hosts);
}
