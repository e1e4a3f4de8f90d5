/* The transport's TLS: client certificates, resumption, the protocol that is chosen, certificates
 * read again. */
#include "apiserver/http/server.h"

#include "tests/lib/certs.h"
#include "tests/lib/suite.h"
#include "tests/lib/tls_client.h"
#include "tests/lib/transport.h"

START_TEST(test_client_chain)
{
    transport_start_http1(NULL);
    SCOPED(fetch_response_fini) struct fetch_response r = {0};
    transport_call(&(struct transport_call){.method = "GET", .path = "/", .with_certificate = true},
                   &r);
    ck_assert(transport_says(&r, "chain=2\nder="));
    ck_assert(transport_says(&r, " first=30\n"));
    transport_stop();
}
END_TEST

static SSL_SESSION *kept_session;
static int keep_session(SSL *ssl, SSL_SESSION *session)
{
    (void)ssl;
    SSL_SESSION_free(kept_session);
    kept_session = session;
    return 1;
}

/* Opens twice in one client context, the second time with the first one's session; whether it was
 * resumed. */
static bool is_resumed(int max_version, bool with_certificate, const char *want)
{
    SSL_CTX *ctx = SSL_CTX_new(TLS_client_method());
    SSL_CTX_set_max_proto_version(ctx, max_version);
    SSL_CTX_set_session_cache_mode(ctx, SSL_SESS_CACHE_CLIENT);
    SSL_CTX_sess_set_new_cb(ctx, keep_session);
    if (with_certificate) {
        SSL_CTX_use_certificate_chain_file(ctx, certs_path("client-chain.crt"));
        SSL_CTX_use_PrivateKey_file(ctx, certs_path("client.key"), SSL_FILETYPE_PEM);
    }
    bool reused = false;
    for (int i = 0; i < 2; i++) {
        struct tls_client c;
        struct tls_client_opts opts = {.ctx = ctx, .session = i ? kept_session : NULL};
        ck_assert(tls_client_open(&c, transport_port(), &opts));
        ck_assert(tls_client_send(&c, "GET / HTTP/1.1\r\nHost: x\r\n\r\n"));
        ck_assert(tls_client_read_until(&c, "sum="));
        ck_assert_msg(strstr(buf_cstr(&c.got), want) != NULL, "%s", buf_cstr(&c.got));
        reused = SSL_session_reused(c.ssl);
        SSL_shutdown(c.ssl); /* or the client holds the session for a bad one */
        tls_client_close(&c);
    }
    SSL_SESSION_free(kept_session);
    kept_session = NULL;
    SSL_CTX_free(ctx);
    return reused;
}

/* Who has no certificate resumes; who has one shows all of it each time. */
START_TEST(test_resumption)
{
    transport_start_http1(NULL);
    ck_assert(is_resumed(TLS1_3_VERSION, false, "chain=0\n"));
    ck_assert(is_resumed(TLS1_2_VERSION, false, "chain=0\n"));
    ck_assert(!is_resumed(TLS1_3_VERSION, true, "chain=2\n"));
    ck_assert(!is_resumed(TLS1_2_VERSION, true, "chain=2\n"));
    transport_stop();
}
END_TEST

static void expect_protocol(const char *offered, const char *want)
{
    struct tls_client c;
    bool is_open =
        tls_client_open(&c, transport_port(), &(struct tls_client_opts){.alpn = offered});
    const unsigned char *name = NULL;
    unsigned n = 0;
    ck_assert_msg(is_open == (want != NULL), "%s", offered ? offered : "nothing");
    if (is_open)
        SSL_get0_alpn_selected(c.ssl, &name, &n);
    ck_assert(!want || (n == strlen(want) && memcmp(name ? name : (const void *)"", want, n) == 0));
    tls_client_close(&c);
}

START_TEST(test_alpn)
{
    transport_start((struct server_config){0});
    expect_protocol("\x08http/1.1\x02h2", "h2");
    expect_protocol("\x02h2", "h2");
    expect_protocol("\x08http/1.1", "http/1.1");
    expect_protocol("\x08http/1.0\x03h2c", NULL);
    expect_protocol(NULL, "");
    transport_stop();
    transport_start_http1(NULL);
    expect_protocol("\x02h2\x08http/1.1", "http/1.1");
    expect_protocol("\x02h2", NULL);
    struct tls_client c;
    ck_assert(!tls_client_open(&c, transport_port(),
                               &(struct tls_client_opts){.max_version = TLS1_1_VERSION}));
    tls_client_close(&c);
    transport_stop();
}
END_TEST

static void common_name(struct tls_client *c, char *out, int n)
{
    X509 *x = SSL_get1_peer_certificate(c->ssl);
    X509_NAME_get_text_by_NID(X509_get_subject_name(x), NID_commonName, out, n);
    X509_free(x);
}

static void expect_certificate(const char *want)
{
    struct tls_client c;
    char cn[64] = "";
    ck_assert(tls_client_open(&c, transport_port(), NULL));
    common_name(&c, cn, sizeof cn);
    ck_assert_str_eq(cn, want);
    tls_client_close(&c);
}

START_TEST(test_reload) /* */
{
    certs_join("live.crt", (const char *[]){"server.crt", NULL});
    certs_join("live.key", (const char *[]){"server.key", NULL});
    transport_start_http1(&(struct server_config){
        .workers = 2, .cert_file = certs_path("live.crt"), .key_file = certs_path("live.key")});
    expect_certificate("first");
    struct tls_client old;
    ck_assert(tls_client_open(&old, transport_port(), NULL));
    certs_join("live.crt", (const char *[]){"renewed.crt", NULL});
    SCOPED(err_fini) struct err err = {0};
    ck_assert_int_eq(server_reload(transport.server, &err),
                     -ERR_INVALID); /* the key does not fit */
    expect_certificate("first");
    certs_join("live.key", (const char *[]){"renewed.key", NULL});
    ck_assert_int_eq(server_reload(transport.server, &err), 0);
    expect_certificate("renewed");
    certs_write("live.crt", "rubbish");
    ck_assert_int_eq(server_reload(transport.server, &err), -ERR_INVALID);
    expect_certificate("renewed");
    ck_assert(tls_client_send(&old, "GET / HTTP/1.1\r\nHost: x\r\n\r\n"));
    ck_assert(tls_client_read_until(&old, "sum="));
    tls_client_close(&old);
    /* and without being told */
    certs_join("live.crt", (const char *[]){"server.crt", NULL});
    certs_join("live.key", (const char *[]){"server.key", NULL});
    wait_ms(6000);
    expect_certificate("first");
    transport_stop();
}
END_TEST

START_TEST(test_start_errors)
{
    SCOPED(err_fini) struct err err = {0};
    struct server *s = NULL;
    struct server_config config = {
        .bind_address = "127.0.0.1", .cert_file = "/nonexistent", .key_file = "/nonexistent"};
    ck_assert_int_eq(server_start(&config, &s, &err), -ERR_INVALID);
    config.cert_file = certs_path("server.crt");
    config.key_file = certs_path("server.key");
    config.bind_address = "localhost";
    ck_assert_int_eq(server_start(&config, &s, &err), -ERR_INVALID);
    transport_start_http1(NULL);
    config.bind_address = "127.0.0.1";
    config.port = transport_port();
    ck_assert_int_eq(server_start(&config, &s, &err), -ERR_UNAVAILABLE);
    ck_assert_ptr_null(s);
    transport_stop();
}
END_TEST

SUITE(server_tls)
{
    transport_certificates();
    TESTS("tls", test_client_chain, test_resumption, test_alpn, test_reload, test_start_errors);
}
