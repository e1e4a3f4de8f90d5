/* Unit tests of node/dns: what an EndpointSlice says of names, and where the server listens. */
#include "node/dns.h"

#include "apiserver/base/json.h"
#include "tests/lib/suite.h"

#define SLICE(endpoints)                                                                           \
    "{\"metadata\": {\"name\": \"web-1\", \"namespace\": \"team\", \"labels\": "                   \
    "{\"kubernetes.io/service-name\": \"web\"}}, \"endpoints\": [" endpoints "]}"

static const struct {
    const char *slice, *lines;
} rows[] = {
    {SLICE(""), ""},
    {SLICE("{\"addresses\": [\"10.90.0.5\"]}"), "10.90.0.5 web.team.svc.cluster.local\n"},
    {SLICE("{\"addresses\": [\"10.90.0.5\", \"fd00::5\"], \"conditions\": {\"ready\": true}}"),
     "10.90.0.5 web.team.svc.cluster.local\nfd00::5 web.team.svc.cluster.local\n"},
    {SLICE("{\"addresses\": [\"10.90.0.5\"], \"conditions\": {\"ready\": false}}, "
           "{\"addresses\": [\"10.90.0.6\"], \"hostname\": \"a\"}"),
     "10.90.0.6 web.team.svc.cluster.local\n10.90.0.6 a.web.team.svc.cluster.local\n"},
    {SLICE("{\"addresses\": [7]}, {}"), ""},
    {SLICE("{\"addresses\": [\"10.90.0.5 example.org\\n10.90.0.6\"]}"), ""}, /* a line of its own */
    {SLICE("{\"addresses\": [\"10.90.0.5\"], \"hostname\": \"a example.org\"}"),
     "10.90.0.5 web.team.svc.cluster.local\n"},
    {"{\"metadata\": {\"namespace\": \"team\"}, \"endpoints\": [{\"addresses\": [\"10.90.0.5\"]}]}",
     ""},
    {"{}", ""},
};

START_TEST(lines_of_a_slice)
{
    SCOPED(json_free_p) cJSON *slice = cJSON_Parse(rows[_i].slice);
    SCOPED(buf_fini) struct buf out = {0};
    ck_assert_ptr_nonnull(slice);
    dns_print_slice(slice, "cluster.local", &out);
    ck_assert_str_eq(buf_cstr(&out), rows[_i].lines);
}
END_TEST

START_TEST(slice_of_the_api)
{
    SCOPED(json_free_p) cJSON *slice = cJSON_Parse(SLICE("")), *labels = NULL;
    ck_assert(!dns_is_api(slice));
    json_set_at(slice, "metadata.namespace", json_string("default"));
    ck_assert(!dns_is_api(slice));
    labels = json_object();
    json_set_str(labels, "kubernetes.io/service-name", "kubernetes");
    json_set_at(slice, "metadata.labels", steal(&labels));
    ck_assert(dns_is_api(slice));
    json_set_at(slice, "metadata.namespace", json_string("team"));
    ck_assert(!dns_is_api(slice));
}
END_TEST

START_TEST(address_of_a_range)
{
    SCOPED_FREE char *usual = dns_address("10.90.0.0/16"), *small = dns_address("192.168.7.32/28");
    ck_assert_str_eq(usual, "10.90.0.1");
    ck_assert_str_eq(small, "192.168.7.33");
    ck_assert_ptr_null(dns_address("10.90.0.0"));
    ck_assert_ptr_null(dns_address("fd00::/64"));
    ck_assert_ptr_null(dns_address(""));
}
END_TEST

SUITE(dns)
{
    LOOP("slices", lines_of_a_slice, 0, ARRAY_LEN(rows));
    TESTS("address", slice_of_the_api, address_of_a_range);
}
