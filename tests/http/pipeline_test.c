/* What scenarios cannot say: limits, headers, conditional answers, compression, live watches. */
#include "apiserver/base/json.h"
#include "apiserver/base/log.h"
#include "apiserver/base/metric.h"
#include "tests/lib/http_fixture.h"
#include "tests/lib/suite.h"

#define B "/apis/agents.x-k8s.io/v1beta1/namespaces/ns/sandboxes"
#define SPEC "\"spec\":{\"podTemplate\":{\"spec\":{\"containers\":[]}}}"

static struct http_fixture fixture;

static void setup(const struct pipeline_config *opts)
{
    http_fixture_open(&fixture, opts);
}

static void send_as(const char *user, const char *request, struct response *ret)
{
    http_fixture_send(&fixture, user, request, strlen(request), ret);
}

static void send(const char *request, struct response *ret)
{
    send_as("admin", request, ret);
}

static const char *header(const struct response *resp, const char *name)
{
    return pairs_get(&resp->headers, name);
}

static void create(const char *name)
{
    SCOPED_FREE char *request =
        xasprintf("POST " B "\n\n{\"apiVersion\":\"agents.x-k8s.io/"
                  "v1beta1\",\"kind\":\"Sandbox\",\"metadata\":{\"name\":\"%s\"}," SPEC "}",
                  name);
    SCOPED(response_fini) struct response resp = {0};
    send(request, &resp);
    ck_assert_int_eq(resp.status, 201);
}

/* ---- the log line ---- */

static const struct {
    const char *given, *logged;
} traces[] = {
    {"00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
     "trace=00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"},
    {"00-00000000000000000000000000000000-00f067aa0ba902b7-01", "trace=-"},
    {"00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01", "trace=-"},
    {"00-4BF92F3577B34DA6A3CE929D0E0E4736-00f067aa0ba902b7-01", "trace=-"},
    {"00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-x", "trace=-"},
    {"secret", "trace=-"},
};

static void keep_request_line(void *ctx, const char *line)
{
    struct buf *kept = ctx;
    if (strstr(line, "request method=GET"))
        buf_puts(kept, line);
}

START_TEST(test_trace)
{
    SCOPED(response_fini) struct response resp = {0};
    SCOPED(buf_fini) struct buf line = {0};
    SCOPED_FREE char *request = xasprintf("GET /apis\ntraceparent: %s\n", traces[_i].given);
    setup(NULL);
    log_set_level(LOG_DEBUG);
    log_set_sink(keep_request_line, &line);
    send(request, &resp);
    log_set_sink(NULL, NULL);
    http_fixture_close(&fixture);
    ck_assert_int_eq(resp.status, 200);
    ck_assert_msg(strstr(buf_cstr(&line), traces[_i].logged), "%s", buf_cstr(&line));
    ck_assert_ptr_null(strstr(buf_cstr(&line), "secret"));
}
END_TEST

/* ---- limits ---- */

START_TEST(test_too_many)
{
    SCOPED(response_fini) struct response anonymous = {0}, admin = {0}, health = {0}, write = {0};
    setup(&(struct pipeline_config){.max_reads = -1, .max_writes = -1});
    send_as(NULL, "GET /apis", &anonymous);
    ck_assert_int_eq(anonymous.status, 429);
    ck_assert_str_eq(header(&anonymous, "Retry-After"), "1");
    ck_assert_str_eq(header(&anonymous, "Content-Type"), "text/plain; charset=utf-8");
    ck_assert_str_eq(buf_cstr(&anonymous.body), "Too many requests, please try again later.\n");
    send("GET /apis", &admin);
    ck_assert_int_eq(admin.status, 200);
    send_as(NULL, "GET /livez", &health);
    ck_assert_int_eq(health.status, 200);
    send_as("jane", "DELETE " B "/a", &write);
    ck_assert_int_eq(write.status, 429);
    http_fixture_close(&fixture);
}
END_TEST

START_TEST(test_body_size)
{
    SCOPED(response_fini) struct response fits = {0}, over = {0}, read = {0};
    setup(&(struct pipeline_config){.max_body = 64});
    SCOPED_FREE char *exact = xasprintf("POST " B "\n\n{\"a\":\"%0*d\"}", 64 - 8, 0);
    SCOPED_FREE char *more = xasprintf("POST " B "\n\n{\"a\":\"%0*d\"}", 64 - 7, 0);
    send(exact, &fits);
    ck_assert_int_eq(fits.status, 400);
    send(more, &over);
    ck_assert_int_eq(over.status, 413);
    ck_assert(strstr(buf_cstr(&over.body), "Request entity too large: limit is 64"));
    more[0] = 'G', more[1] = 'E', more[2] = 'T', more[3] = ' ';
    SCOPED_FREE char *get = xasprintf("GET %s", more + 5);
    send(get, &read); /* nobody reads it */
    ck_assert_int_eq(read.status, 200);
    http_fixture_close(&fixture);
}
END_TEST

/* ---- headers ---- */

START_TEST(test_audit_id)
{
    SCOPED(response_fini) struct response given = {0}, made = {0}, odd = {0}, error = {0};
    setup(NULL);
    send("GET /apis\nAudit-Id: x-1", &given);
    ck_assert_str_eq(header(&given, "Audit-Id"), "x-1");
    send("GET /apis", &made);
    ck_assert_uint_eq(strlen(header(&made, "Audit-Id")), 36);
    send("GET /apis\nAudit-Id: a b", &odd);
    ck_assert_uint_eq(strlen(header(&odd, "Audit-Id")), 36);
    send("GET /nothing\nAudit-Id: "
         "0123456789012345678901234567890123456789012345678901234567890123456789",
         &error);
    ck_assert_uint_eq(strlen(header(&error, "Audit-Id")), 64);
    http_fixture_close(&fixture);
}
END_TEST

/* kube-apiserver adds the headers of our answer to what it has said itself. */
START_TEST(test_headers_through_the_front_proxy)
{
    SCOPED(response_fini) struct response direct = {0}, proxied = {0}, refused = {0}, kept = {0};
    setup(NULL);
    send("GET " B, &direct);
    ck_assert_str_eq(header(&direct, "Cache-Control"), "no-cache, private");
    send("GET " B "\nX-Remote-User: admin\nX-Remote-Group: system:masters", &proxied);
    ck_assert_int_eq(proxied.status, 200);
    ck_assert_ptr_null(header(&proxied, "Audit-Id"));
    ck_assert_ptr_null(header(&proxied, "Cache-Control"));
    send("GET " B "\nX-Remote-User: jane", &refused);
    ck_assert_int_eq(refused.status, 403);
    ck_assert_ptr_null(header(&refused, "Audit-Id"));
    ck_assert_ptr_null(header(&refused, "Cache-Control"));
    send("GET /apis\nX-Remote-User: admin\nX-Remote-Group: system:masters\n"
         "Accept: application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList",
         &kept);
    ck_assert_str_eq(header(&kept, "Cache-Control"), "public");
    http_fixture_close(&fixture);
}
END_TEST

/* ---- documents ---- */

static void check_cached(const char *request, const char *cache_control)
{
    SCOPED(response_fini) struct response first = {0}, again = {0}, other = {0};
    send(request, &first);
    ck_assert_int_eq(first.status, 200);
    const char *etag = header(&first, "Etag");
    ck_assert_msg(etag && *etag == '"' && strlen(etag) == 130, "%s", request);
    ck_assert_str_eq(header(&first, "Cache-Control"), cache_control);
    SCOPED_FREE char *conditional = xasprintf("%s\nIf-None-Match: %s", request, etag);
    send(conditional, &again);
    ck_assert_int_eq(again.status, 304);
    ck_assert_uint_eq(again.body.len, 0);
    SCOPED_FREE char *stale = xasprintf("%s\nIf-None-Match: \"0\"", request);
    send(stale, &other);
    ck_assert_int_eq(other.status, 200);
}

START_TEST(test_etags) /* IL-132 */
{
    setup(NULL);
    check_cached(
        "GET /apis\nAccept: application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList",
        "public");
    check_cached("GET /apis\nAccept: "
                 "application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList",
                 "public");
    check_cached("GET /openapi/v2\nAccept: application/json", "no-cache, private");
    check_cached("GET /openapi/v3", "no-cache, private");
    check_cached("GET /openapi/v3/apis/agents.x-k8s.io/v1beta1", "no-cache, private");
    http_fixture_close(&fixture);
}
END_TEST

START_TEST(test_aggregated) /* IL-132 */
{
    SCOPED(response_fini) struct response resp = {0};
    SCOPED(json_free_p) cJSON *tree = NULL;
    setup(NULL);
    send("GET /apis\nAccept: "
         "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList;profile=nopeer",
         &resp);
    ck_assert_str_eq(header(&resp, "Content-Type"),
                     "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList");
    ck_assert_str_eq(header(&resp, "Vary"), "Accept");
    ck_assert(json_parse(buf_cstr(&resp.body), resp.body.len, NULL, &tree, NULL) == 0);
    ck_assert_str_eq(json_str(tree, "apiVersion"), "apidiscovery.k8s.io/v2");
    ck_assert_uint_eq(json_len(json_get(tree, "items")), 2);
    http_fixture_close(&fixture);
}
END_TEST

/* The index leads to the document, which may be kept for ever; another hash gives the same, not to
 * be kept. */
START_TEST(test_openapi)
{
    SCOPED(response_fini) struct response index = {0}, doc = {0}, other = {0};
    SCOPED(json_free_p) cJSON *tree = NULL;
    setup(NULL);
    send("GET /openapi/v3", &index);
    ck_assert(json_parse(buf_cstr(&index.body), index.body.len, NULL, &tree, NULL) == 0);
    const char *url = json_str(json_get(json_get(tree, "paths"), "apis/agents.x-k8s.io/v1beta1"),
                               "serverRelativeURL");
    SCOPED_FREE char *request = xasprintf("GET %s", url);
    send(request, &doc);
    ck_assert_int_eq(doc.status, 200);
    ck_assert_str_eq(header(&doc, "Cache-Control"), "public, immutable");
    ck_assert(header(&doc, "Expires") && str_has_suffix(header(&doc, "Expires"), " GMT"));
    ck_assert_str_eq(header(&doc, "Vary"), "Accept");
    send("GET /openapi/v3/apis/agents.x-k8s.io/v1beta1?hash=00", &other);
    ck_assert_int_eq(other.status, 200);
    ck_assert_str_eq(header(&other, "Cache-Control"), "no-cache, private");
    ck_assert_uint_eq(other.body.len, doc.body.len);
    http_fixture_close(&fixture);
}
END_TEST

START_TEST(test_version)
{
    SCOPED(response_fini) struct response resp = {0};
    SCOPED(json_free_p) cJSON *tree = NULL;
    setup(NULL);
    send("GET /version", &resp);
    ck_assert(strstr(buf_cstr(&resp.body), "\n  \"") &&
              json_parse(buf_cstr(&resp.body), resp.body.len, NULL, &tree, NULL) == 0);
    ck_assert(str_has_prefix(json_str(tree, "gitVersion"), "v1."));
    ck_assert_str_eq(json_str(tree, "major"), "1");
    http_fixture_close(&fixture);
}
END_TEST

/* ---- compression ---- */

START_TEST(test_gzip)
{
    SCOPED(response_fini) struct response small = {0}, large = {0}, plain = {0};
    setup(NULL);
    create("a");
    send("GET " B "/a\nAccept-Encoding: gzip", &small);
    ck_assert(!header(&small, "Content-Encoding") && !header(&small, "Vary"));
    send("GET /openapi/v2\nAccept-Encoding: deflate, gzip;q=0", &large);
    send("GET /openapi/v2", &plain);
    ck_assert_uint_gt(plain.body.len, 128 << 10);
    ck_assert_str_eq(header(&large, "Content-Encoding"), "gzip");
    ck_assert_str_eq(header(&large, "Vary"), "Accept-Encoding, Accept");
    ck_assert(large.body.len < plain.body.len / 2 && (unsigned char)large.body.data[0] == 0x1f);
    http_fixture_close(&fixture);
}
END_TEST

/* ---- health and metrics ---- */

START_TEST(test_not_ready) /* IL-145 */
{
    SCOPED(response_fini)
    struct response ready = {0}, live = {0}, single = {0}, draining = {0}, version = {0};
    setup(NULL);
    fixture.is_ready = false;
    send_as(NULL, "GET /readyz", &ready);
    ck_assert_int_eq(ready.status, 500);
    ck_assert_str_eq(
        buf_cstr(&ready.body),
        "[+]ping ok\n[-]store failed: reason withheld\n[+]shutdown ok\nreadyz check failed\n");
    send_as(NULL, "GET /livez", &live);
    ck_assert_int_eq(live.status, 200);
    send("GET /readyz/store", &single);
    ck_assert_int_eq(single.status, 500);
    fixture.is_ready = true;
    unsigned long asked = pipeline_asked(fixture.pipeline);
    pipeline_drain(fixture.pipeline);
    send_as(NULL, "GET /readyz", &draining);
    ck_assert_int_eq(draining.status, 500);
    ck_assert(strstr(buf_cstr(&draining.body), "[-]shutdown failed"));
    ck_assert_uint_eq(pipeline_asked(fixture.pipeline), asked); /* probes are no clients */
    send("GET /version", &version);
    ck_assert_uint_eq(pipeline_asked(fixture.pipeline), asked + 1);
    http_fixture_close(&fixture);
}
END_TEST

START_TEST(test_metrics)
{
    SCOPED(response_fini) struct response list = {0}, metrics = {0};
    setup(NULL);
    send("GET " B, &list);
    send("GET /metrics", &metrics);
    ck_assert_str_eq(header(&metrics, "Content-Type"), "text/plain; version=0.0.4; charset=utf-8");
    const char *text = buf_cstr(&metrics.body);
    ck_assert(strstr(text, "apiserver_request_total{verb=\"LIST\",dry_run=\"\",group=\"agents.x-"
                           "k8s.io\",version=\"v1beta1\","
                           "resource=\"sandboxes\",subresource=\"\",scope=\"namespace\",component="
                           "\"apiserver\",code=\"200\"} 1\n"));
    ck_assert(strstr(text, "apiserver_request_duration_seconds_count{verb=\"LIST\""));
    ck_assert(strstr(
        text, "apiserver_current_inflight_requests{request_kind=\"readOnly\"} 1\n")); /* this one */
    http_fixture_close(&fixture);
}
END_TEST

/* ---- watches ---- */

static size_t count_of(const char *text, const char *word)
{
    size_t n = 0;
    for (; (text = strstr(text, word)); text += strlen(word))
        n++;
    return n;
}

START_TEST(test_live_watch)
{
    SCOPED(response_fini) struct response watch = {0}, gone = {0};
    setup(NULL);
    create("a");
    send("GET " B "?watch=1", &watch);
    ck_assert_int_eq(watch.status, 200);
    ck_assert_str_eq(header(&watch, "Content-Type"), "application/json");
    http_fixture_pull(&watch, 1, 5000);
    ck_assert_uint_eq(count_of(buf_cstr(&watch.body), "\"type\":\"ADDED\""), 1);
    create("b");
    http_fixture_pull(&watch, 2, 5000);
    send("DELETE " B "/a", &gone);
    http_fixture_pull(&watch, 3, 5000);
    ck_assert_uint_eq(count_of(buf_cstr(&watch.body), "\"type\":\"ADDED\""), 2);
    ck_assert_uint_eq(count_of(buf_cstr(&watch.body), "\"type\":\"DELETED\""), 1);
    response_fini(&watch);
    http_fixture_close(&fixture);
}
END_TEST

/* A version from the future is told inside the stream, after some seconds. */
START_TEST(test_watch_too_new)
{
    SCOPED(response_fini) struct response watch = {0};
    setup(NULL);
    send("GET " B "?watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&"
         "resourceVersion=99999&timeoutSeconds=9",
         &watch);
    ck_assert_int_eq(watch.status, 200);
    http_fixture_pull(&watch, 2, 9000);
    ck_assert(strstr(buf_cstr(&watch.body), "{\"type\":\"ERROR\",\"object\":{\"kind\":\"Status\""));
    ck_assert(strstr(buf_cstr(&watch.body), "ResourceVersionTooLarge"));
    ck_assert_uint_eq(count_of(buf_cstr(&watch.body), "\n"), 1);
    response_fini(&watch);
    http_fixture_close(&fixture);
}
END_TEST

/* Nobody pulls: closing what was never started frees everything. */
START_TEST(test_watch_dropped)
{
    SCOPED(response_fini) struct response watch = {0};
    setup(NULL);
    send("GET " B "?watch=1", &watch);
    ck_assert(watch.stream != NULL);
    create("a");
    response_fini(&watch);
    http_fixture_close(&fixture);
}
END_TEST

/* ---- large lists ---- */

START_TEST(test_long_list)
{
    SCOPED(response_fini) struct response list = {0};
    SCOPED(json_free_p) cJSON *tree = NULL;
    setup(NULL);
    for (int i = 0; i < 300; i++) {
        SCOPED_FREE char *name = xasprintf("s%03d", i);
        create(name);
    }
    send("GET " B, &list);
    ck_assert(json_parse(buf_cstr(&list.body), list.body.len, NULL, &tree, NULL) == 0);
    ck_assert_uint_eq(json_len(json_get(tree, "items")), 300);
    http_fixture_close(&fixture);
}
END_TEST

SUITE(pipeline)
{
    LOOP("trace", test_trace, 0, ARRAY_LEN(traces));
    http_fixture_init();
    TESTS("limits", test_too_many, test_body_size);
    TESTS("headers", test_audit_id, test_headers_through_the_front_proxy);
    TESTS("documents", test_etags, test_aggregated, test_openapi, test_version);
    TESTS("gzip", test_gzip);
    TESTS("health", test_not_ready, test_metrics);
    TESTS("watch", test_live_watch, test_watch_too_new, test_watch_dropped);
    TESTS("lists", test_long_list);
}
