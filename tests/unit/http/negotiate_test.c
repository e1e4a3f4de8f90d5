/* Accept and Content-Type, as rows. */
#include "apiserver/http/negotiate.h"

#include "tests/lib/suite.h"

struct row {
    enum negotiate_for purpose;
    const char *accept; /* NULL = no header */
    const char *result; /* media[ transform version][ pretty]; NULL = 406 */
};
#define R NEGOTIATE_RESOURCE
#define W NEGOTIATE_WATCH
#define P NEGOTIATE_PLAIN
#define TABLE "application/json;as=Table;v=v1;g=meta.k8s.io"
#define PARTIAL "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io"

static const struct row rows[] = {
    {R, NULL, "json"},
    {R, "", "json"},
    {R, "*/*", "json"},
    {R, "*", "json"},
    {R, "application/*", "json"},
    {R, "application/json", "json"},
    {R, "application/json;charset=utf-8", "json"},
    {R, "application/json;version=1;export=1;profile=x", "json"},
    {R, " application/json ; q=0.5 ", "json"},
    {R, "application/yaml", "yaml"},
    {R, "application/yaml;q=0.2,application/json;q=0.8", "json"},
    {R, "application/json;q=0.2,application/yaml;q=0.8", "yaml"},
    {R, "*/*,application/yaml", "yaml"},
    {R, "application/*,application/yaml", "yaml"},
    {R, "application/json;q=0", "json"},
    {R, "application/json;q=x", "json"},
    {R, "text/html,*/*;q=0.1", "json"},
    {R, "application/vnd.kubernetes.protobuf,application/json", "json"},
    {R, "application/vnd.kubernetes.protobuf", NULL},
    {R, "application/cbor", NULL},
    {R, "text/html", NULL},
    {R, "Application/JSON", NULL},
    {R, ";;;,,", NULL},
    {R, "application", NULL},
    {R, "application/json/x", NULL},
    {R, "application/json;pretty=1", "json pretty"},
    {R, "application/json;pretty=0", "json"},
    {R, TABLE, "json table meta.k8s.io/v1"},
    {R, "application/json;as=Table;v=v1beta1;g=meta.k8s.io", "json table meta.k8s.io/v1beta1"},
    {R, "application/yaml;as=Table;v=v1;g=meta.k8s.io", "yaml table meta.k8s.io/v1"},
    {R, TABLE "," PARTIAL ",application/json", "json table meta.k8s.io/v1"},
    {R, PARTIAL, "json partial meta.k8s.io/v1"},
    {R, "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io",
     "json partial-list meta.k8s.io/v1"},
    {R, "application/json;as=Table;v=v2;g=meta.k8s.io", NULL},
    {R, "application/json;as=Table;v=v2;g=meta.k8s.io,application/json", "json"},
    {R, "application/json;as=Table;v=v1;g=example.org", NULL},
    {R, "application/json;as=Foo;v=v1;g=meta.k8s.io", NULL},
    {R, "application/json;g=meta.k8s.io", NULL},
    {R, "application/vnd.kubernetes.protobuf;as=Table;v=v1;g=meta.k8s.io", NULL},
    {R, "application/json;stream=watch", "json"},
    {R, "application/json;stream=foo", NULL},
    {R, "application/yaml;stream=watch", NULL},
    {R, "application/json;sv=v1", "json"},
    {R, "application/json;sv=v9", NULL},
    {W, NULL, "json"},
    {W, "application/json;stream=watch", "json"},
    {W, "application/yaml", NULL},
    {W, "application/yaml,application/json", NULL},
    {W, "text/plain", NULL},
    {W, "application/json;stream=x", NULL},
    {W, TABLE, "json table meta.k8s.io/v1"},
    {P, "application/json", "json"},
    {P, TABLE, NULL},
    {P, TABLE ",application/yaml", "yaml"},
    {P, "application/json;stream=watch", NULL},
};

static char *describe(const struct negotiated *n)
{
    static const char *const transforms[] = {"", " table ", " partial ", " partial-list "};
    return xasprintf("%s%s%s%s", n->media == MEDIA_YAML ? "yaml" : "json", transforms[n->transform],
                     n->transform_version ? n->transform_version : "",
                     n->is_pretty ? " pretty" : "");
}

START_TEST(test_accept)
{
    const struct row *row = &rows[_i];
    SCOPED(pairs_fini) struct pairs headers = {0}, params = {0};
    SCOPED(err_fini) struct err err = {0};
    struct negotiated n;
    if (row->accept)
        pairs_add(&headers, "accept", row->accept);
    int r = negotiate(&headers, &params, row->purpose, &n, &err);
    ck_assert_msg((r == 0) == (row->result != NULL), "%s: %d", row->accept, r);
    if (r < 0) {
        ck_assert_int_eq(r, -ERR_NOT_ACCEPTABLE);
        ck_assert_str_eq(
            err_text(&err),
            row->purpose == W && strstr(row->accept, "yaml")
                ? "only the following media types are accepted: application/json;stream=watch, "
                  "application/vnd.kubernetes.protobuf;stream=watch"
                : "only the following media types are accepted: application/json, "
                  "application/yaml, "
                  "application/vnd.kubernetes.protobuf");
        return;
    }
    SCOPED_FREE char *got = describe(&n);
    ck_assert_msg(strcmp(got, row->result) == 0, "%s gave %s", row->accept, got);
}
END_TEST

static const struct {
    const char *pretty, *agent;
    bool is_pretty;
} layouts[] = {
    {NULL, NULL, false},
    {"true", NULL, true},
    {"1", NULL, true},
    {"T", "curl/8", true},
    {"0", "curl/8", false},
    {"x", "curl/8", false},
    {"", "curl/8", true},
    {NULL, "curl/8", true},
    {NULL, "Wget/1", true},
    {NULL, "Mozilla/5.0 (X)", true},
    {NULL, "Mozilla/4.0", false},
    {NULL, "kubectl/v1.33", false},
};

START_TEST(test_pretty)
{
    SCOPED(pairs_fini) struct pairs headers = {0}, params = {0};
    struct negotiated n;
    if (layouts[_i].agent)
        pairs_add(&headers, "User-Agent", layouts[_i].agent);
    if (layouts[_i].pretty)
        pairs_add(&params, "pretty", layouts[_i].pretty);
    ck_assert_int_eq(negotiate(&headers, &params, R, &n, NULL), 0);
    ck_assert_int_eq(n.is_pretty, layouts[_i].is_pretty);
}
END_TEST

/* Of several Accept headers the first counts. */
START_TEST(test_repeated)
{
    SCOPED(pairs_fini) struct pairs headers = {0}, params = {0};
    struct negotiated n;
    pairs_add(&headers, "ACCEPT", "application/yaml");
    pairs_add(&headers, "Accept", "application/json");
    ck_assert_int_eq(negotiate(&headers, &params, R, &n, NULL), 0);
    ck_assert_int_eq(n.media, MEDIA_YAML);
}
END_TEST

static const struct {
    const char *accept, *aggregated; /* "" = the plain document, NULL = 406 */
} discovery[] = {
    {NULL, ""},
    {"application/json", ""},
    {"application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList", "v2"},
    {"application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList", "v2beta1"},
    {"application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList;profile=nopeer", "v2"},
    {"application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList,"
     "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json",
     "v2beta1"},
    {"application/json;g=apidiscovery.k8s.io;v=v9;as=APIGroupDiscoveryList,application/json", ""},
    {"application/json,application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList", ""},
    {"application/json;g=apidiscovery.k8s.io;v=v9;as=APIGroupDiscoveryList", NULL},
    {"text/html", NULL},
};

START_TEST(test_discovery)
{
    SCOPED(pairs_fini) struct pairs headers = {0}, params = {0};
    struct negotiated n;
    const char *aggregated;
    if (discovery[_i].accept)
        pairs_add(&headers, "Accept", discovery[_i].accept);
    int r = negotiate_discovery(&headers, &params, &aggregated, &n, NULL);
    if (!discovery[_i].aggregated)
        ck_assert_int_eq(r, -ERR_NOT_ACCEPTABLE);
    else
        ck_assert_msg(r == 0 && str_equal(aggregated ? aggregated : "", discovery[_i].aggregated),
                      "%s", discovery[_i].accept);
}
END_TEST

static const struct {
    const char *type;
    int body, patch; /* enum body_type, or -1 = 415 */
} types[] = {
    {NULL, BODY_JSON, -1},
    {"", BODY_JSON, -1},
    {"application/json", BODY_JSON, -1},
    {"application/json; charset=utf-8", BODY_JSON, -1},
    {"application/json;", BODY_JSON, -1},
    {"application/json; a=\"b;\\\"c\" ; d=e;", BODY_JSON, -1},
    {"application/json; charset", -1, -1},
    {"application/json; charset=", -1, -1},
    {"application/json; =utf-8", -1, -1},
    {"application/json; a=\"b", -1, -1},
    {"application/json; a=b c=d", -1, -1},
    {"application/yaml", BODY_YAML, -1},
    {"Application/JSON", BODY_JSON, -1},
    {"text/plain", -1, -1},
    {";;;", -1, -1},
    {"application/cbor", -1, -1},
    {"application/vnd.kubernetes.protobuf", -1, -1},
    {"application/json-patch+json", -1, BODY_JSON_PATCH},
    {"application/merge-patch+json", -1, BODY_MERGE_PATCH},
    {"application/merge-patch+json; charset=utf-8", -1, BODY_MERGE_PATCH},
    {"Application/Merge-Patch+JSON", -1, -1},
    {"application/strategic-merge-patch+json", -1, -1},
};

START_TEST(test_content_type)
{
    SCOPED(pairs_fini) struct pairs headers = {0};
    enum body_type type = BODY_JSON;
    if (types[_i].type)
        pairs_add(&headers, "content-type", types[_i].type);
    int r = negotiate_body(&headers, false, &type, NULL);
    ck_assert_msg(types[_i].body < 0 ? r == -ERR_UNSUPPORTED_MEDIA
                                     : r == 0 && (int)type == types[_i].body,
                  "%s", types[_i].type);
    r = negotiate_patch(&headers, false, &type, NULL);
    ck_assert_msg(types[_i].patch < 0 ? r == -ERR_UNSUPPORTED_MEDIA
                                      : r == 0 && (int)type == types[_i].patch,
                  "%s", types[_i].type);
}
END_TEST

START_TEST(test_protobuf_body)
{
    SCOPED(pairs_fini) struct pairs headers = {0};
    enum body_type type = BODY_JSON;
    pairs_add(&headers, "Content-Type", "application/vnd.kubernetes.protobuf");
    ck_assert_int_eq(negotiate_body(&headers, true, &type, NULL), 0);
    ck_assert_int_eq(type, BODY_PROTOBUF);
}
END_TEST

SUITE(negotiate)
{
    LOOP("accept", test_accept, 0, ARRAY_LEN(rows));
    LOOP("pretty", test_pretty, 0, ARRAY_LEN(layouts));
    TESTS("headers", test_repeated);
    LOOP("discovery", test_discovery, 0, ARRAY_LEN(discovery));
    LOOP("content-type", test_content_type, 0, ARRAY_LEN(types));
    TESTS("protocol buffers", test_protobuf_body);
}
