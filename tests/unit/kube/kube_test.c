#include "apiserver/kube/kube.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "apiserver/base/file.h"
#include "apiserver/base/json.h"
#include "apiserver/base/metric.h"
#include "apiserver/kube/client.h"
#include "apiserver/kube/config.h"
#include "tests/lib/peer.h"
#include "tests/lib/suite.h"

/* ---- files ---- */

static char dir[64];

static void make_dir(void)
{
    snprintf(dir, sizeof dir, "/tmp/kube-test-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(dir));
    setenv("TMPDIR", dir, 1);
}

/* The path belongs to the caller. */
static char *put_file(const char *name, const char *text)
{
    char *path = xasprintf("%s/%s", dir, name);
    FILE *f = fopen(path, "w");
    ck_assert_ptr_nonnull(f);
    ck_assert_int_ge(fputs(text, f), 0);
    fclose(f);
    return path;
}

/* Fails when anything but the named files is left in the folder. */
static void remove_dir(const char *const *names)
{
    for (; *names != NULL; names++) {
        SCOPED_FREE char *path = xasprintf("%s/%s", dir, *names);
        ck_assert_int_eq(unlink(path), 0);
    }
    ck_assert_int_eq(rmdir(dir), 0);
}
#define REMOVE(...) remove_dir((const char *const[]){__VA_ARGS__, NULL})

static void check_file(const char *path, const char *text)
{
    struct stat st;
    SCOPED(buf_fini) struct buf got = {0};
    ck_assert_int_eq(stat(path, &st), 0);
    ck_assert_uint_eq(st.st_mode & 0777, 0600);
    ck_assert_int_eq(file_read(path, 100, &got, NULL), 0);
    ck_assert_str_eq(buf_cstr(&got), text);
}

/* ---- kubeconfig ---- */

static const char head[] = "apiVersion: v1\n"
                           "kind: Config\n"
                           "current-context: here\n"
                           "contexts:\n"
                           "- name: there\n"
                           "  context: {cluster: none, user: none}\n"
                           "- name: here\n"
                           "  context: {cluster: c, user: u}\n";

START_TEST(test_inline_data)
{
    make_dir();
    SCOPED_FREE char *text = xasprintf("%sclusters:\n"
                                       "- name: c\n"
                                       "  cluster:\n"
                                       "    server: https://10.0.0.1:6443/\n"
                                       "    certificate-authority: ignored.crt\n"
                                       "    certificate-authority-data: Y2E=\n"
                                       "users:\n"
                                       "- name: u\n"
                                       "  user:\n"
                                       "    client-certificate-data: Y2VydA==\n"
                                       "    client-key-data: a2V5\n",
                                       head);
    SCOPED_FREE char *path = put_file("config", text);
    struct kube_config c = {0};
    ck_assert_int_eq(kube_config_load_file(path, &c, NULL), 0);
    ck_assert_str_eq(c.server, "https://10.0.0.1:6443");
    check_file(c.ca_file, "ca");
    check_file(c.cert_file, "cert");
    check_file(c.key_file, "key");
    struct stat st;
    ck_assert_int_eq(stat(c.temp_dir, &st), 0);
    ck_assert_uint_eq(st.st_mode & 0777, 0700);
    ck_assert(!c.insecure);
    kube_config_fini(&c);
    REMOVE("config");
}
END_TEST

/* A kubeconfig with that at its cluster and its user. */
static char *put_config(const char *cluster, const char *user)
{
    SCOPED_FREE char *text = xasprintf("%sclusters: [{name: c, cluster: {%s}}]\n"
                                       "users: [{name: u, user: {%s}}]\n",
                                       head, cluster, user);
    return put_file("config", text);
}

#define INLINE(cert, key) "client-certificate-data: " cert ", client-key-data: " key
#define SERVER "server: 'https://h'"
#define CA SERVER ", certificate-authority-data: Y2E="

/* What it holds inline is followed, in the same files; broken or of another form it is not. */
START_TEST(test_follow)
{
    make_dir();
    SCOPED_FREE char *path = put_config(CA, INLINE("Y2VydA==", "a2V5") ", token: abc");
    SCOPED(err_fini) struct err err = {0};
    struct kube_config c = {0};
    ck_assert_int_eq(kube_config_load_file(path, &c, NULL), 0);
    SCOPED_FREE char *cert = xstrdup(c.cert_file);
    ck_assert_int_eq(kube_config_follow(&c, &err), 0);
    free(put_config(CA, INLINE("bmV3IGNlcnQ=", "bmV3IGtleQ==") ", token: other"));
    ck_assert_int_eq(kube_config_follow(&c, &err), 1);
    ck_assert_str_eq(c.cert_file, cert);
    check_file(c.cert_file, "new cert");
    check_file(c.key_file, "new key");
    check_file(c.ca_file, "ca");
    ck_assert_str_eq(c.token, "other");
    ck_assert_int_eq(kube_config_follow(&c, &err), 0);
    free(put_file("config", "half a fi"));
    ck_assert_int_eq(kube_config_follow(&c, &err), -(int)ERR_INVALID);
    ck_assert_int_eq(kube_config_follow(&c, &err), 0); /* it is said once */
    check_file(c.cert_file, "new cert");
    free(put_config(CA, INLINE("bmV3ZXIgY2VydA==", "bmV3ZXIga2V5") ", token: newest"));
    ck_assert_int_eq(kube_config_follow(&c, &err), 1);
    check_file(c.cert_file, "newer cert");
    unlink(path);
    ck_assert_int_eq(kube_config_follow(&c, &err), -(int)ERR_NOT_FOUND);
    check_file(c.cert_file, "newer cert");
    ck_assert_str_eq(c.token, "newest");
    free(put_config(SERVER, ""));
    kube_config_fini(&c);
    REMOVE("config");
}
END_TEST

static const struct {
    const char *cluster, *user;
} other_forms[] = {
    {CA, INLINE("Y2VydA==", "a2V5")},                               /* no token */
    {CA, "client-certificate: c, client-key: k, token: abcd"},      /* files */
    {SERVER, INLINE("Y2VydA==", "a2V5") ", token: abcd"},           /* no authority */
    {CA, INLINE("Y2VydA==", "a2V5") ", token: abcd, tokenFile: t"}, /* a token's file */
    {CA ", insecure-skip-tls-verify: true", INLINE("Y2VydA==", "a2V5") ", token: abcd"},
    {"server: 'https://other', certificate-authority-data: Y2E=",
     INLINE("Y2VydA==", "a2V5") ", token: abcd"},
};

START_TEST(test_follow_other_form)
{
    make_dir();
    SCOPED_FREE char *path = put_config(CA, INLINE("Y2VydA==", "a2V5") ", token: abc");
    SCOPED(err_fini) struct err err = {0};
    struct kube_config c = {0};
    ck_assert_int_eq(kube_config_load_file(path, &c, NULL), 0);
    free(put_config(other_forms[_i].cluster, other_forms[_i].user));
    ck_assert_int_eq(kube_config_follow(&c, &err), -(int)ERR_INVALID);
    ck_assert_str_eq(c.token, "abc");
    ck_assert_str_eq(c.server, "https://h");
    check_file(c.cert_file, "cert");
    kube_config_fini(&c);
    REMOVE("config");
}
END_TEST

START_TEST(test_named_files)
{
    make_dir();
    SCOPED_FREE char *text = xasprintf(
        "%sclusters: [{name: c, cluster: {server: 'http://h', certificate-authority: a/ca, "
        "insecure-skip-tls-verify: true}}]\n"
        "users: [{name: u, user: {token: abc, tokenFile: /t, client-certificate: c, "
        "client-key: /k}}]\n",
        head);
    SCOPED_FREE char *path = put_file("config", text);
    SCOPED_FREE char *ca = xasprintf("%s/a/ca", dir);
    SCOPED_FREE char *cert = xasprintf("%s/c", dir);
    struct kube_config c = {0};
    ck_assert_int_eq(kube_config_load_file(path, &c, NULL), 0);
    ck_assert_str_eq(c.ca_file, ca);
    ck_assert_str_eq(c.cert_file, cert);
    ck_assert_str_eq(c.key_file, "/k");
    ck_assert_str_eq(c.token, "abc");
    ck_assert_str_eq(c.token_file, "/t");
    ck_assert(c.insecure);
    ck_assert_ptr_null(c.temp_dir);
    kube_config_fini(&c);
    REMOVE("config");
}
END_TEST

#define CLUSTER "clusters: [{name: c, cluster: {server: 'https://h'}}]\n"
static const struct {
    const char *text, *message;
    bool has_head;
} broken[] = {
    {"{", "is no YAML", false},
    {"a: b", "no context \"\"", false},
    {"current-context: x", "no context \"x\"", false},
    {"clusters: []", "no cluster \"c\"", true},
    {CLUSTER, "no user \"u\"", true},
    {"clusters: [{name: c, cluster: {}}]\nusers: [{name: u, user: {}}]", "server", true},
    {"clusters: [{name: c, cluster: {server: 'ftp://h'}}]\nusers: [{name: u, user: {}}]", "server",
     true},
    {"clusters: [{name: c, cluster: {server: 'https://h', proxy-url: x}}]\nusers: [{name: u, user: "
     "{}}]",
     "proxy-url is not supported", true},
    {CLUSTER "users: [{name: u, user: {exec: {command: x}}}]", "exec is not supported", true},
    {CLUSTER "users: [{name: u, user: {as: admin}}]", "as is not supported", true},
    {CLUSTER "users: [{name: u, user: {client-key: k}}]", "go together", true},
    {CLUSTER "users: [{name: u, user: {client-key-data: '*'}}]", "client-key-data is no base64",
     true},
};

START_TEST(test_broken)
{
    make_dir();
    SCOPED_FREE char *text = xasprintf("%s%s", broken[_i].has_head ? head : "", broken[_i].text);
    SCOPED_FREE char *path = put_file("config", text);
    struct kube_config c = {0};
    SCOPED(err_fini) struct err err = {0};
    ck_assert_msg(kube_config_load_file(path, &c, &err) == -(int)ERR_INVALID, "%s", text);
    ck_assert_msg(strstr(err_text(&err), broken[_i].message) != NULL, "%s", err_text(&err));
    ck_assert_ptr_nonnull(strstr(err_text(&err), path));
    ck_assert_ptr_null(c.server);
    REMOVE("config");
}
END_TEST

START_TEST(test_no_file)
{
    struct kube *k = NULL;
    ck_assert_int_eq(kube_new("/nonexistent/config", NULL, &k, NULL), -(int)ERR_NOT_FOUND);
    ck_assert_int_eq(kube_new("/etc", NULL, &k, NULL), -(int)ERR_INVALID);
    ck_assert_ptr_null(k);
    kube_free(k);
}
END_TEST

START_TEST(test_pod)
{
    make_dir();
    struct kube_config c = {0};
    setenv("KUBERNETES_SERVICE_HOST", "10.96.0.1", 1);
    setenv("KUBERNETES_SERVICE_PORT", "443", 1);
    ck_assert_int_eq(kube_config_load_pod(dir, &c, NULL), -(int)ERR_NOT_FOUND);
    SCOPED_FREE char *token = put_file("token", "abc");
    SCOPED_FREE char *ca = put_file("ca.crt", "x");
    ck_assert_int_eq(kube_config_load_pod(dir, &c, NULL), 0);
    ck_assert_str_eq(c.server, "https://10.96.0.1:443");
    ck_assert_str_eq(c.token_file, token);
    ck_assert_str_eq(c.ca_file, ca);
    kube_config_fini(&c);
    setenv("KUBERNETES_SERVICE_HOST", "fd00::1", 1);
    ck_assert_int_eq(kube_config_load_pod(dir, &c, NULL), 0);
    ck_assert_str_eq(c.server, "https://[fd00::1]:443");
    kube_config_fini(&c);
    unsetenv("KUBERNETES_SERVICE_PORT");
    ck_assert_int_eq(kube_config_load_pod(dir, &c, NULL), -(int)ERR_NOT_FOUND);
    REMOVE("token", "ca.crt");
}
END_TEST

/* ---- requests ---- */

static const char invalid[] =
    "{\"kind\":\"Status\",\"apiVersion\":\"v1\",\"status\":\"Failure\",\"message\":\"Pod \\\"p\\\" "
    "is "
    "invalid\",\"reason\":\"Invalid\",\"details\":{\"name\":\"p\",\"group\":\"\",\"kind\":\"Pod\","
    "\"uid\":\"u-1\",\"causes\":[{\"reason\":\"FieldValueRequired\",\"message\":\"Required value\","
    "\"field\":\"spec.containers\"}]},\"code\":422}";
static const char too_many[] =
    "{\"kind\":\"Status\",\"message\":\"slow down\",\"reason\":"
    "\"TooManyRequests\",\"details\":{\"retryAfterSeconds\":7},\"code\":429}";
static const char expired[] =
    "{\"kind\":\"Status\",\"metadata\":{\"continue\":\"tok\"},\"message\":"
    "\"old\",\"reason\":\"Expired\",\"code\":410}";
static const char gone_status[] = "{\"kind\":\"Status\",\"message\":\"pods \\\"p\\\" not "
                                  "found\",\"reason\":\"NotFound\",\"code\":404}";

static void echo(struct peer_conn *c, const struct peer_request *req)
{
    SCOPED(json_free_p) cJSON *tree = json_object();
    json_set_str(tree, "method", req->method);
    json_set_str(tree, "target", req->target);
    json_set_str(tree, "body", buf_cstr(&req->body));
    cJSON *headers = json_ensure_object(tree, "headers");
    for (size_t i = 0; i < req->headers.n; i++)
        json_set_str(headers, req->headers.v[i].name, req->headers.v[i].value);
    SCOPED_FREE char *text = json_to_str(tree);
    peer_answer(c, 200, NULL, text);
}

static bool serve(void *ctx, struct peer_conn *c, const struct peer_request *req)
{
    (void)ctx;
    const char *t = req->target;
    if (str_has_prefix(t, "/echo"))
        echo(c, req);
    else if (strcmp(t, "/invalid") == 0)
        peer_answer(c, 422, NULL, invalid);
    else if (strcmp(t, "/toomany") == 0)
        peer_answer(c, 429, NULL, too_many);
    else if (strcmp(t, "/expired") == 0)
        peer_answer(c, 410, NULL, expired);
    else if (strcmp(t, "/gone") == 0)
        peer_answer(c, 404, NULL, gone_status);
    else if (str_has_prefix(t, "/text"))
        peer_printf(c, "HTTP/1.1 503 X\r\nRetry-After: 3\r\nContent-Length: 4\r\n\r\nbusy");
    else if (strcmp(t, "/nojson") == 0)
        peer_answer(c, 200, NULL, "<html>");
    else if (strcmp(t, "/unauthorized") == 0)
        peer_answer(c, 401, NULL, "{\"kind\":\"Status\",\"reason\":\"Unauthorized\",\"code\":401}");
    else
        return false;
    return true;
}

static struct peer *peer;
static struct fetch *fetch;
static struct kube *kube;

static void set_up(const char *user)
{
    make_dir();
    peer = peer_start(NULL, serve, NULL);
    fetch = fetch_new();
    SCOPED_FREE char *text =
        xasprintf("%sclusters: [{name: c, cluster: {server: 'http://127.0.0.1:%d'}}]\n"
                  "users: [{name: u, user: %s}]\n",
                  head, peer_port(peer), user);
    SCOPED_FREE char *path = put_file("config", text);
    SCOPED(err_fini) struct err err = {0};
    ck_assert_msg(kube_new(path, fetch, &kube, &err) == 0, "%s", err_text(&err));
}

static void tear_down(void)
{
    kube_free(kube);
    fetch_free(fetch);
    peer_stop(peer);
}

START_TEST(test_get)
{
    set_up("{token: abc}");
    SCOPED(json_free_p) cJSON *answer = NULL;
    struct kube_call call = {.method = "GET", .path = "/echo/pods?limit=1"};
    ck_assert_int_eq(kube_do(kube, &call, &answer, NULL), 0);
    ck_assert_str_eq(json_str(answer, "method"), "GET");
    ck_assert_str_eq(json_str(answer, "target"), "/echo/pods?limit=1");
    ck_assert_str_eq(json_str(answer, "headers.Authorization"), "Bearer abc");
    ck_assert_str_eq(json_str(answer, "headers.Accept"), "application/json");
    ck_assert_ptr_null(json_str(answer, "headers.Content-Type"));
    ck_assert_int_eq(kube_do(kube, &call, NULL, NULL), 0);
    tear_down();
    REMOVE("config");
}
END_TEST

/* rest_client_requests_total as client-go counts: by status, or <error>. */
START_TEST(test_counted)
{
    set_up("{}");
    SCOPED_FREE char *host = xasprintf("127.0.0.1:%d", peer_port(peer));
    SCOPED(buf_fini) struct buf text = {0}, gone = {0}, lost = {0};
    struct kube_call call = {.method = "GET", .path = "/gone"};
    ck_assert_int_lt(kube_do(kube, &call, NULL, NULL), 0);
    peer_stop(peer);
    ck_assert_int_lt(kube_do(kube, &call, NULL, NULL), 0);
    metric_print_all(&text);
    buf_printf(&gone, "rest_client_requests_total{code=\"404\",host=\"%s\",method=\"GET\"} 1\n",
               host);
    buf_printf(&lost, "rest_client_requests_total{code=\"<error>\",host=\"%s\",method=\"GET\"} 1\n",
               host);
    ck_assert_ptr_nonnull(strstr(buf_cstr(&text), buf_cstr(&gone)));
    ck_assert_ptr_nonnull(strstr(buf_cstr(&text), buf_cstr(&lost)));
    peer = peer_start(NULL, serve, NULL);
    tear_down();
    REMOVE("config");
}
END_TEST

START_TEST(test_write)
{
    set_up("{}");
    SCOPED(json_free_p) cJSON *body = json_object();
    json_set_int(body, "replicas", 9007199254740993);
    struct kube_call call = {.method = "POST", .path = "/echo", .body = body};
    SCOPED(json_free_p) cJSON *answer = NULL;
    ck_assert_int_eq(kube_do(kube, &call, &answer, NULL), 0);
    ck_assert_str_eq(json_str(answer, "body"), "{\"replicas\":9007199254740993}");
    ck_assert_str_eq(json_str(answer, "headers.Content-Type"), "application/json");
    ck_assert_ptr_null(json_str(answer, "headers.Authorization"));
    json_free(steal(&answer));
    call.method = "PATCH";
    call.content_type = "application/merge-patch+json";
    ck_assert_int_eq(kube_do(kube, &call, &answer, NULL), 0);
    ck_assert_str_eq(json_str(answer, "headers.Content-Type"), "application/merge-patch+json");
    ck_assert_str_eq(json_str(answer, "method"), "PATCH");
    tear_down();
    REMOVE("config");
}
END_TEST

static const struct {
    const char *method, *path;
    enum err_code code;
    int retry_after_s;
    const char *message;
} failures[] = {
    {"POST", "/invalid", ERR_INVALID, 0, "Pod \"p\" is invalid"},
    {"GET", "/toomany", ERR_TOO_MANY, 7, "slow down"},
    {"GET", "/expired", ERR_EXPIRED, 0, "old"},
    {"GET", "/gone", ERR_NOT_FOUND, 0, "pods \"p\" not found"},
    {"GET", "/text?secret=1", ERR_UNAVAILABLE, 3, "/text: the cluster answered 503"},
    {"GET", "/nojson", ERR_UNKNOWN, 0, "/nojson: the cluster's answer is no JSON"},
    {"GET", "/unauthorized", ERR_UNAUTHORIZED, 0, "the cluster gave no message"},
    {"GET", "/close", ERR_UNAVAILABLE, 0, NULL},
    {"DELETE", "/close", ERR_UNDETERMINED, 0, NULL},
};

START_TEST(test_failures)
{
    set_up("{}");
    SCOPED(err_fini) struct err err = {0};
    cJSON *answer = NULL;
    struct kube_call call = {.method = failures[_i].method, .path = failures[_i].path};
    ck_assert_int_eq(kube_do(kube, &call, &answer, &err), -(int)failures[_i].code);
    ck_assert_int_eq(err.code, failures[_i].code);
    ck_assert_ptr_null(answer);
    ck_assert_int_eq(err.retry_after_s, failures[_i].retry_after_s);
    if (failures[_i].message != NULL)
        ck_assert_str_eq(err_text(&err), failures[_i].message);
    ck_assert_int_eq(kube_do(kube, &call, &answer, NULL), -(int)failures[_i].code);
    tear_down();
    REMOVE("config");
}
END_TEST

START_TEST(test_status_details)
{
    set_up("{}");
    SCOPED(err_fini) struct err err = {0};
    struct kube_call call = {.method = "POST", .path = "/invalid"};
    kube_do(kube, &call, NULL, &err);
    ck_assert_str_eq(err.name, "p");
    ck_assert_str_eq(err.kind, "Pod");
    ck_assert_str_eq(err.uid, "u-1");
    ck_assert_uint_eq(err.n_causes, 1);
    ck_assert_str_eq(err.causes[0].reason, "FieldValueRequired");
    ck_assert_str_eq(err.causes[0].field, "spec.containers");
    ck_assert_str_eq(err.causes[0].message, "Required value");
    call.path = "/expired";
    kube_do(kube, &call, NULL, &err);
    ck_assert_str_eq(err.continue_token, "tok");
    tear_down();
    REMOVE("config");
}
END_TEST

static void check_token(const char *expect)
{
    SCOPED(json_free_p) cJSON *answer = NULL;
    struct kube_call call = {.method = "GET", .path = "/echo"};
    ck_assert_int_eq(kube_do(kube, &call, &answer, NULL), 0);
    const char *got = json_str(answer, "headers.Authorization");
    ck_assert_msg(str_equal(got, expect), "%s", got != NULL ? got : "none");
}

static void set_mtime(const char *path, time_t s)
{
    struct timespec times[2] = {{.tv_sec = s}, {.tv_sec = s}};
    ck_assert_int_eq(utimensat(AT_FDCWD, path, times, 0), 0);
}

START_TEST(test_token_file)
{
    set_up("{token: fallback, tokenFile: token}");
    check_token("Bearer fallback");
    SCOPED_FREE char *path = put_file("token", "  one\n");
    set_mtime(path, 1000);
    check_token("Bearer one");
    free(put_file("token", "two"));
    set_mtime(path, 1000); /* looks the same: not read for a minute */
    check_token("Bearer one");
    struct kube_call call = {.method = "GET", .path = "/unauthorized"};
    kube_do(kube, &call, NULL, NULL); /* or until it is refused */
    check_token("Bearer two");
    free(put_file("token", "three"));
    set_mtime(path, 2000);
    check_token("Bearer three");
    free(put_file("token", "\n"));
    set_mtime(path, 3000);
    check_token("Bearer three");
    unlink(path);
    check_token("Bearer three");
    tear_down();
    REMOVE("config");
}
END_TEST

START_TEST(test_token_of_a_changed_config)
{
    set_up("{token: abc}");
    check_token("Bearer abc");
    SCOPED_FREE char *text =
        xasprintf("%sclusters: [{name: c, cluster: {server: 'http://127.0.0.1:%d'}}]\n"
                  "users: [{name: u, user: {token: another}}]\n",
                  head, peer_port(peer));
    free(put_file("config", text));
    check_token("Bearer another");
    tear_down();
    REMOVE("config");
}
END_TEST

START_TEST(test_path)
{
    static const struct {
        struct kube_place place;
        const char *path;
    } rows[] = {
        {{.api = "/api/v1", .resource = "nodes"}, "/api/v1/nodes"},
        {{.api = "/api/v1", .resource = "nodes", .name = "a/b"}, "/api/v1/nodes/a%2Fb"},
        {{.api = "/apis/x.org/v1", .namespace_name = "n", .resource = "things"},
         "/apis/x.org/v1/namespaces/n/things"},
        {{"/api/v1", "n", "pods", "p", "status"}, "/api/v1/namespaces/n/pods/p/status"},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        SCOPED_FREE char *path = kube_path(&rows[i].place);
        ck_assert_str_eq(path, rows[i].path);
    }
}
END_TEST

SUITE(kube)
{
    TESTS("config", test_inline_data, test_follow, test_named_files, test_no_file, test_pod);
    LOOP("other forms", test_follow_other_form, 0, ARRAY_LEN(other_forms));
    LOOP("broken", test_broken, 0, ARRAY_LEN(broken));
    TESTS("do", test_path, test_get, test_counted, test_write, test_status_details, test_token_file,
          test_token_of_a_changed_config);
    LOOP("failures", test_failures, 0, ARRAY_LEN(failures));
}
