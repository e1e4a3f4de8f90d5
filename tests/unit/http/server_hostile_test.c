/* The transport over HTTP/1.1 (h2_hostile_test.c: over HTTP/2) and clients that break off, send
 * what is none, are slow, silent or too many. */
#include "apiserver/http/server.h"

#include <stdatomic.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tests/lib/suite.h"
#include "tests/lib/tls_client.h"
#include "tests/lib/transport.h"

START_TEST(test_early_close)
{
    transport_start_http1(NULL);
    static const char *const texts[] = {
        "",
        "G",
        "GET / HT",
        "GET / HTTP/1.1\r\nHost:",
        "GET / HTTP/1.1\r\nHost: x\r\n\r\n",
        "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\nabc",
        "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nab",
        "GET /big HTTP/1.1\r\nHost: x\r\n\r\n",
        "GET /stream HTTP/1.1\r\nHost: x\r\n\r\n"};
    for (int round = 0; round < 3; round++) {
        for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
            struct tls_client c;
            ck_assert(tls_client_open(&c, transport_port(), NULL));
            ck_assert(tls_client_send(&c, texts[i]) || !*texts[i]);
            wait_ms(round * 5);
            tls_client_close(&c);
        }
    }
    int fd = tcp_connect(transport_port());
    ck_assert_int_eq(send(fd, "no handshake\r\n\r\n", 16, 0), 16);
    char c;
    while (recv(fd, &c, 1, 0) > 0)
        ;
    close(fd);
    transport_stop();
    ck_assert_int_eq(atomic_load(&transport.n_running), 0);
}
END_TEST

static const struct {
    const char *text, *want;
} malformed[] = {
    {"rubbish\r\n\r\n", ""},
    {"GET /\r\n\r\n", ""},
    {"GET / HTTP/1.1\r\n\r\n", "HTTP/1.1 400"},
    {"GET / HTTP/9.9\r\nHost: x\r\n\r\n", "HTTP/1.1 505"},
    {"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: -1\r\n\r\n", "HTTP/1.1 400"},
    {"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", "HTTP/1.1 400"},
    /* of which it could be said in two ways where they end */
    {"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nContent-Length: 1\r\n\r\na",
     "HTTP/1.1 400"},
    {"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\nTransfer-Encoding: "
     "chunked\r\n\r\n0\r\n\r\n",
     "HTTP/1.1 400"},
    {"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding : chunked\r\n\r\n0\r\n\r\n", "HTTP/1.1 400"},
    {"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
     "HTTP/1.1 400"},
    {"POST / HTTP/1.0\r\nConnection: Keep-Alive\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
     "HTTP/1.1 400"},
};

START_TEST(test_malformed)
{
    transport_start_http1(NULL);
    struct tls_client c;
    ck_assert(tls_client_open(&c, transport_port(), NULL));
    ck_assert(tls_client_send(&c, malformed[_i].text));
    tls_client_read_all(&c);
    ck_assert_msg(strncmp(buf_cstr(&c.got), malformed[_i].want, strlen(malformed[_i].want)) == 0,
                  "%s -> %s", malformed[_i].text, buf_cstr(&c.got));
    tls_client_close(&c);
    transport_stop();
}
END_TEST

START_TEST(test_slow_head_is_cut)
{
    transport_start_http1(&(struct server_config){.workers = 2, .header_timeout_ms = 1000});
    struct tls_client c;
    ck_assert(tls_client_open(&c, transport_port(), NULL));
    ck_assert(tls_client_send(&c, "GET /first HTTP/1.1\r\nHost: x\r\n\r\n"));
    ck_assert(tls_client_read_until(&c, "path=/first\n"));
    wait_ms(1500); /* an idle connection is none */
    ck_assert(tls_client_send(&c, "GET / HTTP/1.1\r\n"));
    int64_t before = now_ms();
    bool is_cut = false;
    while (!is_cut && now_ms() - before < 5000) {
        is_cut = !tls_client_send(&c, "X: y\r\n");
        wait_ms(100);
    }
    ck_assert(is_cut);
    ck_assert_int_lt((int)(now_ms() - before), 3000);
    tls_client_close(&c);
    transport_stop();
}
END_TEST

START_TEST(test_slow_handshake_is_cut)
{
    transport_start_http1(&(struct server_config){.workers = 2, .handshake_timeout_ms = 500});
    int64_t before = now_ms();
    int fd = tcp_connect(transport_port());
    char c;
    ck_assert_int_eq(recv(fd, &c, 1, 0), 0);
    ck_assert_int_lt((int)(now_ms() - before), 2000);
    close(fd);
    transport_stop();
}
END_TEST

START_TEST(test_idle_is_ended)
{
    transport_start_http1(&(struct server_config){.workers = 2, .idle_timeout_ms = 1000});
    struct tls_client c;
    int64_t before = now_ms();
    ck_assert(tls_client_open(&c, transport_port(), NULL));
    ck_assert(tls_client_send(&c, "GET / HTTP/1.1\r\nHost: x\r\n\r\n"));
    ck_assert(tls_client_read_all(&c));
    ck_assert_ptr_nonnull(strstr(buf_cstr(&c.got), "sum="));
    ck_assert_int_ge((int)(now_ms() - before), 900);
    tls_client_close(&c);
    transport_stop();
}
END_TEST

START_TEST(test_connection_ceiling)
{
    transport_start_http1(&(struct server_config){.workers = 2, .max_connections = 3});
    struct tls_client c[4];
    for (int i = 0; i < 3; i++)
        ck_assert(tls_client_open(&c[i], transport_port(), NULL));
    ck_assert(!tls_client_open(&c[3], transport_port(), NULL));
    tls_client_close(&c[3]);
    tls_client_close(&c[0]);
    for (int i = 0; i < 1000 && !tls_client_open(&c[0], transport_port(), NULL); i++) {
        tls_client_close(&c[0]);
        wait_ms(5);
    }
    ck_assert(tls_client_send(&c[0], "GET / HTTP/1.1\r\nHost: x\r\n\r\n"));
    ck_assert(tls_client_read_until(&c[0], "sum="));
    for (int i = 0; i < 3; i++)
        tls_client_close(&c[i]);
    transport_stop();
}
END_TEST

SUITE(server_hostile)
{
    transport_certificates();
    TESTS("hostile", test_early_close, test_slow_head_is_cut, test_slow_handshake_is_cut,
          test_idle_is_ended, test_connection_ceiling);
    LOOP("malformed", test_malformed, 0, ARRAY_LEN(malformed));
}
