/* Connections to nodes: who is believed to be one, and requests over them. */
#include "tests/unit/http/node_fixture.h"

static const struct dial_node n1 = {.name = "n1"};

/* ---- who answers ---- */

static const struct {
    const char *id, *cert, *error; /* NULL = it is believed */
    bool is_alone;
} answerers[] = {
    {"the node", "n1", NULL},
    {"who may answer for any node", "any", NULL},
    {"the node, which is alone", "n1", NULL, .is_alone = true},
    {"who may answer for any node, for one that is alone", "any",
     "does not hold the certificate of system:node:n1", .is_alone = true},
    {"another node", "n2", "does not hold the certificate of system:node:n1"},
    {"not of the group", "no-group", "does not hold the certificate of system:node:n1"},
    {"the name without its prefix", "prefix", "does not hold the certificate of system:node:n1"},
    {"the server itself", "server", "does not hold the certificate of system:node:n1"},
    {"another authority's", "foreign", "tls: unable to get local issuer certificate"},
    {"a certificate that is over", "over", "tls: certificate has expired"},
};

START_TEST(test_who_answers)
{
    SCOPED(err_fini) struct err err = {0};
    SCOPED(line_fini) struct line l = {0};
    struct dialer *d = dialer_start();
    struct node n;
    const struct dial_node node = {.name = "n1", .is_alone = answerers[_i].is_alone};
    node_start(&n, answerers[_i].cert, NULL, NULL);
    int rc = dial(d, &node, "127.0.0.1", n.port, soon_ms(), &l, &err);
    node_join(&n);
    if (answerers[_i].error) {
        ck_assert_msg(rc == -ERR_UNKNOWN, "%s: %d", answerers[_i].id, rc);
        ck_assert_msg(strstr(err_text(&err), answerers[_i].error) != NULL, "%s: %s",
                      answerers[_i].id, err_text(&err));
        ck_assert_ptr_null(l.ssl);
    } else {
        ck_assert_msg(rc == 0, "%s: %s", answerers[_i].id, err_text(&err));
        ck_assert_str_eq(n.client, "system:apiserver");
    }
    node_fini(&n);
    dialer_free(d);
}
END_TEST

START_TEST(test_nobody_answers)
{
    SCOPED(err_fini) struct err refused = {0}, name = {0}, silent = {0};
    SCOPED(line_fini) struct line l = {0};
    struct dialer *d = dialer_start();
    int port, listener = listen_on_loopback(&port);
    int64_t until_ms = clock_monotonic_ms(&clock_system) + 100;
    ck_assert_int_eq(dial(d, &n1, "127.0.0.1", port, until_ms, &l, &silent), -ERR_UNKNOWN);
    ck_assert_str_eq(err_text(&silent), "error dialing backend: tls: no handshake");
    close(listener);
    ck_assert_int_eq(dial(d, &n1, "127.0.0.1", port, soon_ms(), &l, &refused), -ERR_UNKNOWN);
    SCOPED_FREE char *want = xasprintf(
        "error dialing backend: dial tcp 127.0.0.1:%d: connect: Connection refused", port);
    ck_assert_str_eq(err_text(&refused), want);
    ck_assert_int_eq(dial(d, &n1, "localhost", port, soon_ms(), &l, &name), -ERR_UNKNOWN);
    ck_assert_ptr_nonnull(strstr(err_text(&name), "dial tcp localhost"));
    ck_assert_ptr_null(l.ssl);
    dialer_free(d);
}
END_TEST

#define DIALS 128 /* at once */
struct crowd {
    struct dialer *d;
    int port;
};

static void *dial_in_crowd(void *arg)
{
    const struct crowd *c = arg;
    SCOPED(err_fini) struct err err = {0};
    struct line l = {0};
    int rc = dial(c->d, &n1, "127.0.0.1", c->port, soon_ms(), &l, &err);
    return rc == -ERR_UNKNOWN ? NULL : arg;
}

START_TEST(test_too_many)
{
    SCOPED(err_fini) struct err err = {0}, later = {0};
    SCOPED(line_fini) struct line l = {0};
    pthread_t threads[DIALS];
    int taken[DIALS];
    struct crowd crowd = {.d = dialer_start()};
    int listener = listen_on_loopback(&crowd.port);
    for (int i = 0; i < DIALS; i++)
        ck_assert_int_eq(pthread_create(&threads[i], NULL, dial_in_crowd, &crowd), 0);
    for (int i = 0; i < DIALS; i++) /* now all of them wait for a handshake */
        ck_assert_int_ge(taken[i] = accept(listener, NULL, NULL), 0);
    ck_assert_int_eq(dial(crowd.d, &n1, "127.0.0.1", crowd.port, soon_ms(), &l, &err),
                     -ERR_TOO_MANY);
    ck_assert_int_eq(err.retry_after_s, 1);
    for (int i = 0; i < DIALS; i++) {
        void *result;
        close(taken[i]);
        pthread_join(threads[i], &result);
        ck_assert_ptr_null(result);
    }
    close(listener); /* there is room again: the call gets as far as the socket */
    ck_assert_int_eq(dial(crowd.d, &n1, "127.0.0.1", crowd.port, soon_ms(), &l, &later),
                     -ERR_UNKNOWN);
    dialer_free(crowd.d);
}
END_TEST

START_TEST(test_bad_files)
{
    struct dialer *d = NULL;
    struct dialer_config config = {.ca_file = certs_path("absent.crt"),
                                   .cert_file = certs_path("server.crt"),
                                   .key_file = certs_path("server.key")};
    ck_assert_int_eq(dialer_new(&config, &d, NULL), -ERR_INVALID);
    config.ca_file = certs_path("ca.crt");
    config.key_file = certs_path("n1.key");
    ck_assert_int_eq(dialer_new(&config, &d, NULL), -ERR_INVALID);
    ck_assert_ptr_null(d);
}
END_TEST

/* ---- asking ---- */

static const struct asked {
    const char *id, *pieces[6], *body, *error;
    int status;
    enum reply_state state; /* at the end */
} asked[] = {
    {"whole",
     {"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello"},
     "hello",
     NULL,
     200,
     REPLY_OVER},
    {"in pieces",
     {"HTTP/1.1 40", "3 Forbidden\r\nContent-Len", "gth: 5\r\n\r", "\nhel", "lo"},
     "hello",
     NULL,
     403,
     REPLY_OVER},
    {"chunked",
     {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nhel\r\n", "2\r\nlo\r\n0\r\n\r\n"},
     "hello",
     NULL,
     200,
     REPLY_OVER},
    {"to the end", {"HTTP/1.1 200 OK\r\n\r\nhel", "lo"}, "hello", NULL, 200, REPLY_TO_END},
    {"cut short",
     {"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhello"},
     "hello",
     NULL,
     200,
     REPLY_LENGTH},
    {"no HTTP any more",
     {"HTTP/1.1 101 Switching Protocols\r\n\r\nhello"},
     "hello",
     NULL,
     101,
     REPLY_RAW},
    {"nothing", {NULL}, NULL, "no answer", 0, REPLY_HEAD},
    {"half a head", {"HTTP/1.1 200 OK\r\n"}, NULL, "no answer", 0, REPLY_HEAD},
    {"another protocol", {"SSH-2.0-x\r\n\r\n"}, NULL, "the answer is no HTTP", 0, REPLY_HEAD},
    {"a body that is none",
     {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n"},
     NULL,
     "the answer is no HTTP",
     0,
     REPLY_HEAD},
};

static void answer_in_pieces(struct node *n, struct tls_conn *c)
{
    const struct asked *row = n->ctx;
    if (!node_hear(n, c, "\r\n\r\n"))
        return;
    for (size_t i = 0; i < ARRAY_LEN(row->pieces) && row->pieces[i]; i++)
        node_say(n, c, row->pieces[i]);
    tls_conn_end(c, n->stop[0], soon_ms());
}

START_TEST(test_ask)
{
    const struct asked *row = &asked[_i];
    SCOPED(err_fini) struct err err = {0};
    SCOPED(reply_fini) struct reply r = {0};
    SCOPED(buf_fini) struct buf request = {0}, body = {0};
    struct line l = {0};
    struct dialer *d = dialer_start();
    struct node n;
    node_start(&n, "n1", answer_in_pieces, row);
    dial_node(d, &n, &l);
    buf_puts(&request, "GET /x HTTP/1.1\r\n\r\n");
    int rc = line_ask(&l, &request, soon_ms(), &r, &body, &err);
    if (rc == 0)
        line_read_body(&l, &r, SIZE_MAX, soon_ms(), &body);
    line_fini(&l);
    node_join(&n);
    ck_assert_str_eq(buf_cstr(&n.heard), "GET /x HTTP/1.1\r\n\r\n");
    if (row->error) {
        ck_assert_msg(rc == -ERR_UNKNOWN && strstr(err_text(&err), row->error), "%s: %s", row->id,
                      err_text(&err));
    } else {
        ck_assert_msg(rc == 0, "%s: %s", row->id, err_text(&err));
        ck_assert_int_eq(r.status, row->status);
        ck_assert_int_eq(r.state, row->state);
        ck_assert_str_eq(buf_cstr(&body), row->body);
    }
    node_fini(&n);
    dialer_free(d);
}
END_TEST

static void say_much(struct node *n, struct tls_conn *c)
{
    node_say(n, c, "HTTP/1.1 500 No\r\nContent-Length: 1000000\r\n\r\n");
    for (bool goes_on = true; goes_on;)
        goes_on = node_say(n, c, "no, and here is why, at length; ");
}

START_TEST(test_body_has_a_ceiling)
{
    SCOPED(reply_fini) struct reply r = {0};
    SCOPED(buf_fini) struct buf request = {0}, body = {0};
    struct line l = {0};
    struct dialer *d = dialer_start();
    struct node n;
    node_start(&n, "n1", say_much, NULL);
    dial_node(d, &n, &l);
    buf_puts(&request, "GET / HTTP/1.1\r\n\r\n");
    ck_assert_int_eq(line_ask(&l, &request, soon_ms(), &r, &body, NULL), 0);
    line_read_body(&l, &r, 100000, soon_ms(), &body);
    ck_assert_uint_ge(body.len, 100000);
    ck_assert_uint_lt(body.len, 100000 + (16 << 10)); /* of one read */
    line_fini(&l);
    node_join(&n);
    node_fini(&n);
    dialer_free(d);
}
END_TEST

static void listen_only(struct node *n, struct tls_conn *c)
{
    node_hear(n, c, "never said");
}

START_TEST(test_time_is_over)
{
    SCOPED(err_fini) struct err err = {0};
    SCOPED(reply_fini) struct reply r = {0};
    SCOPED(buf_fini) struct buf request = {0}, body = {0};
    struct line l = {0};
    struct dialer *d = dialer_start();
    struct node n;
    node_start(&n, "n1", listen_only, NULL);
    dial_node(d, &n, &l);
    buf_puts(&request, "GET / HTTP/1.1\r\n\r\n");
    int64_t until_ms = clock_monotonic_ms(&clock_system) + 100;
    ck_assert_int_eq(line_ask(&l, &request, until_ms, &r, &body, &err), -ERR_UNKNOWN);
    ck_assert_str_eq(err_text(&err), "error dialing backend: no answer");
    line_fini(&l);
    node_join(&n);
    node_fini(&n);
    dialer_free(d);
}
END_TEST

/* ctx is the dialer. */
static void end_instead(struct node *n, struct tls_conn *c)
{
    struct dialer *d;
    memcpy(&d, &n->ctx, sizeof d);
    node_hear(n, c, "GET");
    dialer_end(d);
    listen_only(n, c);
}

START_TEST(test_end)
{
    SCOPED(err_fini) struct err err = {0}, later = {0};
    SCOPED(reply_fini) struct reply r = {0};
    SCOPED(buf_fini) struct buf request = {0}, body = {0};
    struct line l = {0};
    struct dialer *d = dialer_start();
    struct node n;
    int port, listener = listen_on_loopback(&port);
    int64_t never_ms = clock_monotonic_ms(&clock_system) + 600000;
    node_start(&n, "n1", end_instead, d);
    dial_node(d, &n, &l);
    buf_puts(&request, "GET / HTTP/1.1\r\n\r\n");
    ck_assert_int_eq(line_ask(&l, &request, never_ms, &r, &body, &err), -ERR_UNKNOWN);
    ck_assert_str_eq(err_text(&err), "error dialing backend: no answer");
    line_fini(&l);
    node_join(&n);
    ck_assert_int_eq(dial(d, &n1, "127.0.0.1", port, never_ms, &l, &later), -ERR_UNKNOWN);
    close(listener);
    node_fini(&n);
    dialer_free(d);
}
END_TEST

START_TEST(test_node_does_not_read)
{
    SCOPED(err_fini) struct err err = {0};
    SCOPED(reply_fini) struct reply r = {0};
    SCOPED(buf_fini) struct buf request = {0}, body = {0};
    struct line l = {0};
    struct dialer *d = dialer_start();
    struct node n;
    node_start(&n, "n1", NULL, NULL);
    dial_node(d, &n, &l);
    node_join(&n); /* it is gone */
    for (int i = 0; i < 1 << 18; i++)
        buf_puts(&request, "all in vain, all in vain, ......");
    ck_assert_int_eq(line_ask(&l, &request, soon_ms(), &r, &body, &err), -ERR_UNKNOWN);
    ck_assert_str_eq(err_text(&err), "error dialing backend: the request could not be sent");
    line_fini(&l);
    node_fini(&n);
    dialer_free(d);
}
END_TEST

SUITE(dial)
{
    node_certificates();
    LOOP("who answers", test_who_answers, 0, ARRAY_LEN(answerers));
    TESTS("dial", test_nobody_answers, test_too_many, test_bad_files);
    LOOP("asked", test_ask, 0, ARRAY_LEN(asked));
    TESTS("asking", test_body_has_a_ceiling, test_time_is_over, test_end, test_node_does_not_read);
}
