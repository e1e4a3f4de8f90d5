/* Who is asking: each authenticator, their order, the settings' ConfigMap, and the headers that
 * must not go further. */
#include "apiserver/auth/auth.h"

#include <openssl/pem.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <time.h>

#include "apiserver/base/json.h"
#include "apiserver/base/log.h"
#include "tests/lib/certs.h"
#include "tests/lib/fake_kube.h"
#include "tests/lib/suite.h"

/* ---- fixture ---- */

static struct fake_kube *cluster;
static struct auth *auth;
static struct clock_fake now;

static void start(const struct auth_config *extra, bool with_cluster)
{
    struct auth_config config = extra ? *extra : (struct auth_config){0};
    SCOPED(err_fini) struct err err = {0};
    clock_fake_init(&now, clock_unix_ms(&clock_system));
    cluster = with_cluster ? fake_kube_new() : NULL;
    config.kube = with_cluster ? fake_kube_client(cluster) : NULL;
    config.clock = &now.clock;
    ck_assert_msg(auth_new(&config, &auth, &err) == 0, "%s", err_text(&err));
}

static void stop(void)
{
    auth_free(auth);
    if (cluster)
        fake_kube_free(cluster);
}

static const struct auth_config *files(void)
{
    static const char *names[] = {"front-proxy", "other-proxy", NULL};
    static struct auth_config config;
    config = (struct auth_config){.client_ca_file = certs_path("client-ca.crt"),
                                  .requestheader_ca_file = certs_path("proxy-ca.crt"),
                                  .requestheader_allowed_names = names};
    return &config;
}

/* One request: certificate's file or NULL, then header names and values, ended by NULL. */
struct asked {
    int r;
    struct user user;
    struct err err;
    struct pairs headers; /* what is left of them */
};

static void asked_fini(struct asked *a)
{
    user_fini(&a->user);
    err_fini(&a->err);
    pairs_fini(&a->headers);
}

static size_t load_chain(const char *name, struct cert_der *chain, size_t max)
{
    FILE *f = name ? fopen(certs_path(name), "re") : NULL;
    size_t n = 0;
    X509 *x;
    while (f && n < max && (x = PEM_read_X509(f, NULL, NULL, NULL))) {
        unsigned char *der = NULL;
        int len = i2d_X509(x, &der);
        chain[n] = (struct cert_der){.p = xmemdup(der, (size_t)len), .n = (size_t)len};
        n++;
        OPENSSL_free(der);
        X509_free(x);
    }
    if (f)
        fclose(f);
    return n;
}

static struct asked ask(const char *certificate, const char *const *headers)
{
    struct asked a = {0};
    struct cert_der chain[4];
    size_t n = load_chain(certificate, chain, ARRAY_LEN(chain));
    for (; headers && *headers; headers += 2)
        pairs_add(&a.headers, headers[0], headers[1]);
    struct credentials creds = {.chain = chain, .n_chain = n, .headers = &a.headers};
    a.r = auth_identify(auth, &creds, &a.user, &a.err);
    for (size_t i = 0; i < n; i++) {
        void *p;
        memcpy(&p, &chain[i].p, sizeof p);
        free(p);
    }
    return a;
}
#define HEADERS(...) ((const char *const[]){__VA_ARGS__, NULL})

static void print_user(const struct asked *a, struct buf *out)
{
    if (a->r < 0) {
        buf_printf(out, "%s: %s", err_name(a->err.code), err_text(&a->err));
        return;
    }
    buf_printf(out, "%s/%s", a->user.name, a->user.uid);
    for (char **g = a->user.groups; g && *g; g++)
        buf_printf(out, " %s", *g);
    for (size_t i = 0; i < a->user.extra.n; i++)
        buf_printf(out, " %s=%s", a->user.extra.v[i].name, a->user.extra.v[i].value);
}

#define EXPECT(certificate, given, want)                                                           \
    do {                                                                                           \
        SCOPED(asked_fini) struct asked asked_ = ask(certificate, given);                          \
        SCOPED(buf_fini) struct buf got_ = {0};                                                    \
        print_user(&asked_, &got_);                                                                \
        ck_assert_str_eq(buf_cstr(&got_), want);                                                   \
        ck_assert_ptr_null(pairs_get_ci(&asked_.headers, "Authorization"));                        \
        ck_assert_ptr_null(pairs_get_ci(&asked_.headers, "X-Remote-User"));                        \
        ck_assert_ptr_null(pairs_get_ci(&asked_.headers, "X-Remote-Group"));                       \
        ck_assert_ptr_null(pairs_get_ci(&asked_.headers, "x-remote-EXTRA-a"));                     \
        ck_assert_ptr_null(pairs_get_ci(&asked_.headers, "X-Remote-Uid"));                         \
    } while (0)

#define ANONYMOUS "system:anonymous/ system:unauthenticated"
#define NOBODY "ERR_UNAUTHORIZED: Unauthorized"
#define WAIT_FOR(condition)                                                                        \
    do {                                                                                           \
        bool is_true_ = false;                                                                     \
        for (int i_ = 0; i_ < 2500 && !(is_true_ = (condition)); i_++)                             \
            nanosleep(&(struct timespec){.tv_nsec = 2000000}, NULL);                               \
        ck_assert_msg(is_true_, "%s", #condition);                                                 \
    } while (0)

/* ---- without a cluster ---- */

START_TEST(test_anonymous)
{
    start(NULL, false);
    EXPECT(NULL, NULL, ANONYMOUS);
    EXPECT(NULL, HEADERS("Authorization", "Basic abc"), ANONYMOUS);
    EXPECT(NULL, HEADERS("Authorization", "Bearer"), ANONYMOUS);
    EXPECT(NULL, HEADERS("Authorization", "Bearer "), ANONYMOUS);
    EXPECT(NULL, HEADERS("X-Remote-User", "root", "X-Remote-Group", "system:masters"), ANONYMOUS);
    EXPECT(NULL, HEADERS("Authorization", "Bearer x"), NOBODY);
    EXPECT("jane.crt", NULL, NOBODY);
    ck_assert(auth_is_ready(auth));
    stop();
}
END_TEST

START_TEST(test_front_proxy)
{
    start(files(), false);
    EXPECT("front-proxy.crt", HEADERS("X-Remote-User", "jane"), "jane/ system:authenticated");
    EXPECT("front-proxy.crt",
           HEADERS("x-remote-user", "", "X-Remote-Group", "a", "X-Remote-User", "second",
                   "X-Remote-Group", "", "x-remote-GROUP", "b"),
           NOBODY); /* the first value is empty: it names nobody, and no client authority knows the
                       certificate */
    EXPECT("front-proxy.crt",
           HEADERS("X-Remote-User", "u", "X-Remote-Group", "a", "x-remote-GROUP", "b"),
           "u/ a b system:authenticated");
    EXPECT("front-proxy.crt",
           HEADERS("X-Remote-User", "u", "X-Remote-Group", "system:unauthenticated"),
           "u/ system:unauthenticated");
    EXPECT("front-proxy.crt",
           HEADERS("X-Remote-User", "u", "X-Remote-Group", "system:authenticated"),
           "u/ system:authenticated");
    EXPECT("front-proxy.crt",
           HEADERS("X-Remote-User", "u", "X-Remote-Extra-Example.com%2fK", "v",
                   "x-remote-extra-EXAMPLE.com%2Fk", "w", "X-Remote-Extra-%zz%2", "raw",
                   "X-Remote-Extra-a%00b", "nul"),
           "u/ system:authenticated example.com/k=v example.com/k=w %zz%2=raw a%00b=nul");
    /* the uid's header is never assumed */
    EXPECT("front-proxy.crt", HEADERS("X-Remote-User", "u", "X-Remote-Uid", "7"),
           "u/ system:authenticated");
    EXPECT("front-proxy.crt", NULL, NOBODY);
    stop();
}
END_TEST

START_TEST(test_false_proxies)
{
    start(files(), false);
    const char *const *forged =
        HEADERS("X-Remote-User", "root", "X-Remote-Group", "system:masters");
    EXPECT("wrong-name.crt", forged, NOBODY);
    EXPECT("stranger.crt", forged, NOBODY);
    EXPECT("old-proxy.crt", forged, NOBODY);
    EXPECT("jane.crt", forged, "jane/ team ops system:authenticated");
    EXPECT(NULL, forged, ANONYMOUS);
    /* the proxy's name under the client authority is a client of that name */
    EXPECT("fake-proxy.crt", forged, "front-proxy/ system:authenticated");
    stop();
}
END_TEST

START_TEST(test_any_proxy_name)
{
    struct auth_config config = *files();
    config.requestheader_allowed_names = NULL;
    config.uid_headers = HEADERS("X-Remote-Uid", "X-Other-Uid");
    config.username_headers = HEADERS("X-First-User", "X-Remote-User");
    start(&config, false);
    EXPECT("wrong-name.crt", HEADERS("X-Remote-User", "u", "X-Other-Uid", "7"),
           "u/7 system:authenticated");
    SCOPED(asked_fini)
    struct asked a = ask("wrong-name.crt",
                         HEADERS("X-Remote-User", "u", "X-First-User", "f", "X-Other-Uid", "7"));
    ck_assert_str_eq(a.user.name, "f");
    ck_assert_uint_eq(a.headers.n, 0);
    stop();
}
END_TEST

/* Browsers send certificates along with what a page of any site asks for. */
START_TEST(test_certificates_and_other_sites)
{
    static const struct {
        const char *host, *origin;
        bool is_own;
    } rows[] = {
        {"a.example:6443", "https://a.example:6443", true},
        {"A.example:6443", "https://a.EXAMPLE:6443", true},
        {"a.example", "https://a.example", true},
        {"a.example:6443", "https://a.example", false},
        {"a.example", "https://b.example", false},
        {"a.example", "https://a.example.b.example", false},
        {"a.example", "null", false},
        {"a.example", "", false},
    };
    start(files(), false);
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        EXPECT("jane.crt", HEADERS("Host", rows[i].host, "Origin", rows[i].origin),
               rows[i].is_own ? "jane/ team ops system:authenticated" : NOBODY);
    EXPECT("jane.crt", HEADERS("Origin", "https://a.example"), NOBODY);
    EXPECT("front-proxy.crt",
           HEADERS("X-Remote-User", "u", "Host", "a.example", "Origin", "https://b.example"),
           "u/ system:authenticated"); /* who is in front of us has asked who it is */
    stop();
}
END_TEST

START_TEST(test_client_certificates)
{
    start(files(), false);
    EXPECT("jane.crt", NULL, "jane/ team ops system:authenticated");
    EXPECT("jane.crt", HEADERS("Authorization", "Bearer x"), "jane/ team ops system:authenticated");
    EXPECT("with-uid.crt", NULL, "kim/u-7 system:authenticated");
    EXPECT("nameless.crt", NULL, NOBODY); /* the front proxy's authority does not know it */
    EXPECT("stranger.crt", NULL, NOBODY);
    EXPECT("server.crt", NULL, NOBODY);
    clock_fake_advance(&now, (int64_t)11 * 86400 * 1000);
    EXPECT("jane.crt", NULL, NOBODY);
    stop();
}
END_TEST

START_TEST(test_impersonation)
{
    start(files(), false);
#define REFUSED "ERR_FORBIDDEN: forbidden: impersonation is not supported by this server"
    EXPECT("jane.crt", HEADERS("Impersonate-User", "root"), REFUSED);
    EXPECT("jane.crt", HEADERS("impersonate-extra-x", "y"), REFUSED);
    EXPECT(NULL, HEADERS("Impersonate-Group", "system:masters"), REFUSED);
    EXPECT("stranger.crt", HEADERS("Impersonate-User", "root"), NOBODY);
    stop();
}
END_TEST

/* Where there is no cluster: jane may act for what this list has, each value by itself. */
static int judge_by_list(void *ctx, const cJSON *spec, cJSON **ret_status, struct err *err)
{
    static const char *const allowed[] = {"jane users//joe",
                                          "jane groups//blue",
                                          "jane uids//u-1",
                                          "jane userextras/team/red",
                                          "jane serviceaccounts//robot in x",
                                          "jane users//system:anonymous"};
    const cJSON *of = json_get(spec, "resourceAttributes");
    SCOPED_FREE char *asked = xasprintf(
        "%s %s/%s/%s%s%s", json_str_or(spec, "user", ""), json_str_or(of, "resource", ""),
        json_str_or(of, "subresource", ""), json_str_or(of, "name", ""),
        json_str_or(of, "namespace", "")[0] ? " in " : "", json_str_or(of, "namespace", ""));
    bool is_allowed = false;
    (void)ctx, (void)err;
    for (size_t i = 0; i < ARRAY_LEN(allowed); i++)
        is_allowed |= strcmp(asked, allowed[i]) == 0;
    ck_assert_str_eq(json_str_or(of, "verb", ""), "impersonate");
    *ret_status = json_object();
    json_set_bool(*ret_status, "allowed", is_allowed);
    return 0;
}

START_TEST(test_impersonation_without_a_cluster)
{
    static const struct auth_judge judge = {.access = judge_by_list};
    struct auth_config config = *files();
    config.judge = &judge;
    start(&config, false);
#define CANNOT(what) "ERR_FORBIDDEN: " what
    EXPECT("jane.crt", HEADERS("Impersonate-User", "joe"), "joe/ system:authenticated");
    EXPECT("jane.crt",
           HEADERS("Impersonate-User", "joe", "impersonate-group", "blue", "Impersonate-Uid", "u-1",
                   "Impersonate-Extra-Team", "red"),
           "joe/u-1 blue system:authenticated team=red");
    EXPECT("jane.crt", HEADERS("Impersonate-User", "system:serviceaccount:x:robot"),
           "system:serviceaccount:x:robot/ system:serviceaccounts system:serviceaccounts:x "
           "system:authenticated");
    EXPECT("jane.crt", HEADERS("Impersonate-User", "system:anonymous"),
           "system:anonymous/ system:unauthenticated");
    EXPECT("jane.crt", HEADERS("Impersonate-User", "root"),
           CANNOT("users \"root\" is forbidden: User \"jane\" cannot impersonate resource "
                  "\"users\" in API group \"\" at the cluster scope"));
    EXPECT("jane.crt",
           HEADERS("Impersonate-User", "joe", "Impersonate-Group", "blue", "Impersonate-Group",
                   "system:masters"),
           CANNOT("groups \"system:masters\" is forbidden: User \"jane\" cannot impersonate "
                  "resource \"groups\" in API group \"\" at the cluster scope"));
    EXPECT("jane.crt", HEADERS("Impersonate-User", "system:serviceaccount:y:robot"),
           CANNOT("serviceaccounts \"robot\" is forbidden: User \"jane\" cannot impersonate "
                  "resource \"serviceaccounts\" in API group \"\" in the namespace \"y\""));
    EXPECT("jane.crt", HEADERS("Impersonate-Group", "blue"),
           "ERR_BAD_REQUEST: impersonation without a user");
    EXPECT(NULL, HEADERS("Impersonate-User", "joe"),
           CANNOT("users \"joe\" is forbidden: User \"system:anonymous\" cannot impersonate "
                  "resource \"users\" in API group \"\" at the cluster scope"));
    SCOPED(asked_fini)
    struct asked a = ask("jane.crt", HEADERS("Impersonate-User", "joe", "Accept", "x"));
    ck_assert_uint_eq(a.headers.n, 1); /* nobody behind this sees them */
    stop();
}
END_TEST

START_TEST(test_bad_files)
{
    SCOPED(err_fini) struct err err = {0};
    struct auth *none = NULL;
    struct auth_config config = {.clock = &clock_system, .client_ca_file = "/nonexistent"};
    ck_assert_int_eq(auth_new(&config, &none, &err), -ERR_NOT_FOUND);
    config.client_ca_file = certs_path("jane.key");
    ck_assert_int_eq(auth_new(&config, &none, &err), -ERR_INVALID);
    ck_assert_ptr_nonnull(strstr(err_text(&err), "jane.key"));
    ck_assert_ptr_null(none);
}
END_TEST

/* ---- tokens ---- */

#define JANE "jane/u-1 devs qa system:authenticated k=v1 k=v2"

START_TEST(test_tokens)
{
    start(files(), true);
    EXPECT(NULL, HEADERS("Authorization", "Bearer good"), JANE);
    SCOPED_FREE char *review = fake_kube_last_review(cluster);
    ck_assert_str_eq(
        review, "{\"apiVersion\":\"authentication.k8s.io/v1\",\"kind\":\"TokenReview\",\"spec\":{"
                "\"token\":\"good\"}}");
    EXPECT(NULL, HEADERS("authorization", "bEARER good and more"), JANE);
    EXPECT(NULL, HEADERS("Authorization", "Bearer refused"), NOBODY);
    EXPECT(NULL, HEADERS("Authorization", "Bearer noname"), NOBODY);
    EXPECT(NULL, HEADERS("Authorization", "Bearer masters"),
           "root/ system:masters system:authenticated");
    /* a certificate of nobody we know does not spoil a good token, nor does a bad token a good
     * certificate */
    EXPECT("stranger.crt", HEADERS("Authorization", "Bearer good"), JANE);
    EXPECT("jane.crt", HEADERS("Authorization", "Bearer refused"),
           "jane/ team ops system:authenticated");
    stop();
}
END_TEST

START_TEST(test_tokens_are_cached)
{
    start(files(), true);
    for (int i = 0; i < 50; i++) {
        EXPECT(NULL, HEADERS("Authorization", "Bearer good"), JANE);
        EXPECT(NULL, HEADERS("Authorization", "Bearer refused"), NOBODY);
    }
    ck_assert_int_eq(fake_kube_reviews(cluster), 2);
    clock_fake_advance(&now, 10000);
    EXPECT(NULL, HEADERS("Authorization", "Bearer good"), JANE);
    EXPECT(NULL, HEADERS("Authorization", "Bearer refused"), NOBODY);
    ck_assert_int_eq(fake_kube_reviews(cluster), 4);
    fake_kube_break(cluster); /* who is in stays in for a while */
    EXPECT(NULL, HEADERS("Authorization", "Bearer good"), JANE);
    stop();
}
END_TEST

START_TEST(test_token_trouble)
{
    start(files(), true);
    EXPECT(NULL, HEADERS("Authorization", "Bearer flaky"), JANE);
    ck_assert_int_eq(fake_kube_reviews(cluster), 2);
    EXPECT(NULL, HEADERS("Authorization", "Bearer forbidden"),
           "ERR_UNAVAILABLE: token review: no luck");
    EXPECT(NULL, HEADERS("Authorization", "Bearer forbidden"),
           "ERR_UNAVAILABLE: token review: no luck");
    ck_assert_int_eq(fake_kube_reviews(cluster), 4); /* neither tried again nor kept */
    EXPECT(NULL, HEADERS("Authorization", "Bearer odd"),
           "ERR_UNAVAILABLE: token review: the cluster's review has no status");
    EXPECT(NULL, HEADERS("Authorization", "Bearer broken"),
           "ERR_UNAVAILABLE: token review: no luck");
    ck_assert_int_eq(fake_kube_reviews(cluster), 10); /* five tries */
    stop();
}
END_TEST

static void *ask_slowly(void *arg)
{
    (void)arg;
    EXPECT(NULL, HEADERS("Authorization", "Bearer slow"), JANE);
    return NULL;
}

START_TEST(test_one_review_for_many)
{
    start(files(), true);
    pthread_t t[10];
    for (size_t i = 0; i < ARRAY_LEN(t); i++)
        pthread_create(&t[i], NULL, ask_slowly, NULL);
    for (size_t i = 0; i < ARRAY_LEN(t); i++)
        pthread_join(t[i], NULL);
    ck_assert_int_eq(fake_kube_reviews(cluster), 1);
    stop();
}
END_TEST

#define SOCKET_HEADERS(protocols)                                                                  \
    HEADERS("Connection", "keep-alive, Upgrade", "Upgrade", "websocket", "Sec-WebSocket-Protocol", \
            protocols)
#define P "base64url.bearer.authorization.k8s.io."

START_TEST(test_socket_tokens)
{
    start(files(), true);
    SCOPED(asked_fini) struct asked a = ask(NULL, SOCKET_HEADERS("one, " P "Z29vZA, two"));
    ck_assert_str_eq(a.user.name, "jane");
    ck_assert_str_eq(pairs_get_ci(&a.headers, "Sec-WebSocket-Protocol"), "one, two");
    EXPECT(NULL, SOCKET_HEADERS("one, two"), ANONYMOUS);
    EXPECT(NULL, SOCKET_HEADERS("one," P), ANONYMOUS);
    EXPECT(NULL, SOCKET_HEADERS(P "Z29vZA"), NOBODY);
    EXPECT(NULL, SOCKET_HEADERS("one, " P "Z29vZA, " P "Z29vZA"), NOBODY);
    EXPECT(NULL, SOCKET_HEADERS("one, " P "Z29vZ?"), NOBODY);
    EXPECT(NULL, SOCKET_HEADERS("one, " P "cmVmdXNlZA"), NOBODY);
    EXPECT(NULL, HEADERS("Sec-WebSocket-Protocol", "one, " P "Z29vZA"), ANONYMOUS);
    stop();
}
END_TEST

/* ---- the ConfigMap ---- */

static char *quote_file(const char *name)
{
    SCOPED(buf_fini) struct buf text = {0}, quoted = {0};
    FILE *f = fopen(certs_path(name), "re");
    int c;
    while ((c = getc(f)) != EOF)
        buf_putc(&text, (char)c);
    fclose(f);
    buf_json_string(&quoted, buf_cstr(&text), text.len);
    return buf_take(&quoted, NULL);
}

static char *make_data(const char *client_ca, const char *proxy_ca, const char *allowed)
{
    SCOPED_FREE char *client = quote_file(client_ca);
    SCOPED_FREE char *proxy = quote_file(proxy_ca);
    return xasprintf("{\"client-ca-file\":%s,\"requestheader-client-ca-file\":%s,\"requestheader-"
                     "allowed-names\":\"%s\","
                     "\"requestheader-username-headers\":\"[\\\"X-Remote-User\\\"]\","
                     "\"requestheader-group-headers\":"
                     "\"[\\\"X-Remote-Group\\\"]\",\"requestheader-extra-headers-prefix\":\"[\\\"X-"
                     "Remote-Extra-\\\"]\","
                     "\"requestheader-uid-headers\":\"[\\\"X-Remote-Uid\\\"]\"}",
                     client, proxy, allowed);
}

static bool is_known(const char *certificate, const char *const *headers, const char *name)
{
    SCOPED(asked_fini) struct asked a = ask(certificate, headers);
    return a.r == 0 && strcmp(a.user.name, name) == 0;
}

START_TEST(test_configmap) /* IL-131 */
{
    start(NULL, true);
    const char *const *jane =
        HEADERS("X-Remote-User", "proxied", "X-Remote-Uid", "9", "X-Remote-Extra-A", "b");
    SCOPED_FREE char *first = make_data("client-ca.crt", "proxy-ca.crt", "[\\\"front-proxy\\\"]");
    ck_assert(!auth_is_ready(auth));
    EXPECT(NULL, NULL, ANONYMOUS);
    EXPECT("jane.crt", NULL,
           "ERR_UNAVAILABLE: the cluster's authentication settings are not known yet");
    auth_start(auth);
    fake_kube_set_config(cluster, first); /* it appears later, or before the list */
    WAIT_FOR(auth_is_ready(auth));
    EXPECT("front-proxy.crt", jane, "proxied/9 system:authenticated a=b");
    EXPECT("jane.crt", jane, "jane/ team ops system:authenticated");
    EXPECT("wrong-name.crt", jane, NOBODY);
    /* another name is allowed from now on */
    SCOPED_FREE char *second = make_data("client-ca.crt", "proxy-ca.crt", "[\\\"wrong-name\\\"]");
    fake_kube_set_config(cluster, second);
    WAIT_FOR(is_known("wrong-name.crt", jane, "proxied"));
    EXPECT("front-proxy.crt", jane, NOBODY);
    /* what cannot be read changes nothing */
    fake_kube_set_config(cluster, "{\"requestheader-allowed-names\":\"[\"}");
    fake_kube_set_config(cluster, "{\"client-ca-file\":\"rubbish\"}");
    fake_kube_set_config(cluster, "{\"requestheader-allowed-names\":\"[1]\"}");
    fake_kube_set_config(cluster, "{\"requestheader-allowed-names\":\"{}\"}");
    fake_kube_set_config(cluster, NULL);
    nanosleep(&(struct timespec){.tv_nsec = 300000000}, NULL);
    EXPECT("wrong-name.crt", jane, "proxied/9 system:authenticated a=b");
    /* authorities are exchanged */
    SCOPED_FREE char *third = make_data("proxy-ca.crt", "client-ca.crt", "[]");
    fake_kube_set_config(cluster, third);
    WAIT_FOR(is_known("jane.crt", jane, "proxied"));
    EXPECT("front-proxy.crt", jane, "front-proxy/ system:authenticated");
    ck_assert(auth_is_ready(auth));
    stop();
}
END_TEST

/* Absent keys: no authority, no header names; nobody comes in by them. */
START_TEST(test_sparse_configmap)
{
    start(NULL, true);
    fake_kube_set_config(cluster, "{\"requestheader-username-headers\":\"\"}");
    auth_start(auth);
    WAIT_FOR(auth_is_ready(auth));
    EXPECT("front-proxy.crt", HEADERS("X-Remote-User", "jane"), NOBODY);
    EXPECT(NULL, NULL, ANONYMOUS);
    stop();
}
END_TEST

START_TEST(test_files_before_configmap)
{
    struct auth_config config = {.client_ca_file = certs_path("client-ca.crt")};
    start(&config, true);
    SCOPED_FREE char *data = make_data("proxy-ca.crt", "proxy-ca.crt", "[]");
    fake_kube_set_config(cluster, data);
    auth_start(auth);
    WAIT_FOR(auth_is_ready(auth));
    EXPECT("jane.crt", NULL, "jane/ team ops system:authenticated");
    EXPECT("front-proxy.crt", HEADERS("X-Remote-User", "u"), "u/ system:authenticated");
    EXPECT("front-proxy.crt", NULL, NOBODY); /* not a client, whatever the ConfigMap says */
    stop();
}
END_TEST

static atomic_int hints;
static void look_for_hint(void *ctx, const char *line)
{
    (void)ctx;
    if (strstr(line, "extension-apiserver-authentication-reader"))
        atomic_fetch_add(&hints, 1);
}

START_TEST(test_forbidden_configmap)
{
    start(NULL, true);
    fake_kube_forbid_config(cluster);
    log_set_sink(look_for_hint, NULL);
    auth_start(auth);
    WAIT_FOR(atomic_load(&hints) == 1);
    ck_assert(!auth_is_ready(auth));
    stop();
    log_set_sink(NULL, NULL);
}
END_TEST

static atomic_bool is_over;
static void *ask_on(void *arg)
{
    (void)arg;
    while (!atomic_load(&is_over))
        ck_assert(is_known("jane.crt", NULL, "jane"));
    return NULL;
}

/* The set is exchanged under the feet of those who use it. */
START_TEST(test_swap_while_asking) /* IL-131 */
{
    start(NULL, true);
    SCOPED_FREE char *data = make_data("client-ca.crt", "proxy-ca.crt", "[]");
    fake_kube_set_config(cluster, data);
    auth_start(auth);
    WAIT_FOR(auth_is_ready(auth));
    pthread_t t[3];
    for (size_t i = 0; i < ARRAY_LEN(t); i++)
        pthread_create(&t[i], NULL, ask_on, NULL);
    for (int i = 0; i < 50; i++) {
        fake_kube_set_config(cluster, data);
        nanosleep(&(struct timespec){.tv_nsec = 5000000}, NULL);
    }
    atomic_store(&is_over, true);
    for (size_t i = 0; i < ARRAY_LEN(t); i++)
        pthread_join(t[i], NULL);
    stop();
}
END_TEST

SUITE(auth)
{
    certs_init();
    certs_make("client-ca", NULL, "/CN=client-ca", CERTS_CA, 10);
    certs_make("proxy-ca", NULL, "/CN=proxy-ca", CERTS_CA, 10);
    certs_make("stranger-ca", NULL, "/CN=client-ca", CERTS_CA, 10);
    certs_make("jane", "client-ca", "/O=team/O=ops/CN=jane", CERTS_CLIENT, 10);
    certs_make("with-uid", "client-ca", "/CN=kim/userUid=u-7", CERTS_CLIENT, 10);
    certs_make("nameless", "client-ca", "/O=team", CERTS_CLIENT, 10);
    certs_make("fake-proxy", "client-ca", "/CN=front-proxy", CERTS_CLIENT, 10);
    certs_make("server", "client-ca", "/CN=server", CERTS_SERVER, 10);
    certs_make("stranger", "stranger-ca", "/O=system:masters/CN=front-proxy", CERTS_CLIENT, 10);
    certs_make("front-proxy", "proxy-ca", "/CN=front-proxy", CERTS_CLIENT, 10);
    certs_make("wrong-name", "proxy-ca", "/CN=wrong-name", CERTS_CLIENT, 10);
    certs_make("old-proxy", "proxy-ca", "/CN=front-proxy", CERTS_CLIENT, -1);
    TESTS("identities", test_anonymous, test_front_proxy, test_false_proxies, test_any_proxy_name,
          test_client_certificates, test_certificates_and_other_sites, test_impersonation,
          test_impersonation_without_a_cluster, test_bad_files);
    TESTS("tokens", test_tokens, test_tokens_are_cached, test_token_trouble,
          test_one_review_for_many, test_socket_tokens);
    TESTS("settings", test_configmap, test_sparse_configmap, test_files_before_configmap,
          test_forbidden_configmap, test_swap_while_asking);
}
