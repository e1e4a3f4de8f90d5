/* What the tests of connections to nodes share: a node on loopback, which is the node's own TLS and
 * a script that it runs on a thread for the one connection it takes. */
#pragma once

#include <arpa/inet.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/socket.h>
#include <unistd.h>

#include "apiserver/base/clock.h"
#include "apiserver/http/dial.h"
#include "node/tls_conn.h"
#include "tests/lib/certs.h"
#include "tests/lib/suite.h"

#define PATIENCE_TEST_MS 20000 /* for what is going to happen */

static inline int64_t soon_ms(void)
{
    return clock_monotonic_ms(&clock_system) + PATIENCE_TEST_MS;
}

struct node;
typedef void node_script(struct node *n, struct tls_conn *c);
struct node {
    struct tls_server *tls;
    int listener, port;
    int stop[2]; /* the write end is closed at the stop */
    pthread_t thread;
    node_script *script; /* NULL = hangs up */
    const void *ctx;
    /* The script's, to be read after node_stop. */
    struct buf heard;
    char client[64]; /* common name */
};

/* Every certificate that these tests need; before the suite runs. */
static inline void node_certificates(void)
{
    static const struct {
        const char *name, *issuer, *subject;
        int days;
    } all[] = {
        {"n1", "ca", "/O=system:nodes/CN=system:node:n1", 2},
        {"n2", "ca", "/O=system:nodes/CN=system:node:n2", 2},
        {"any", "ca", "/O=system:nodes/CN=system:node:local", 2},
        {"no-group", "ca", "/O=others/CN=system:node:n1", 2},
        {"prefix", "ca", "/O=system:nodes/CN=n1", 2},
        {"over", "ca", "/O=system:nodes/CN=system:node:n1", -1},
        {"foreign", "other-ca", "/O=system:nodes/CN=system:node:n1", 2},
        {"server", "ca", "/CN=system:apiserver", 2},
    };
    certs_init();
    certs_make("ca", NULL, "/CN=ca", CERTS_CA, 2);
    certs_make("other-ca", NULL, "/CN=other", CERTS_CA, 2);
    for (size_t i = 0; i < ARRAY_LEN(all); i++)
        certs_make(all[i].name, all[i].issuer, all[i].subject, NULL, all[i].days);
}

static inline const char *node_cert(const char *name, const char *suffix)
{
    SCOPED_FREE char *file = xasprintf("%s.%s", name, suffix);
    return certs_path(file);
}

static inline int listen_on_loopback(int *ret_port)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    socklen_t n = sizeof at;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    ck_assert_int_eq(bind(fd, (struct sockaddr *)&at, sizeof at), 0);
    ck_assert_int_eq(listen(fd, 256), 0);
    ck_assert_int_eq(getsockname(fd, (struct sockaddr *)&at, &n), 0);
    *ret_port = ntohs(at.sin_port);
    return fd;
}

static inline void *node_run(void *arg)
{
    struct node *n = arg;
    struct tls_conn *c;
    int fd = accept(n->listener, NULL, NULL);
    if (fd < 0 || tls_conn_accept(n->tls, fd, n->stop[0], soon_ms(), &c, NULL) < 0)
        return NULL;
    SCOPED(subject_fini) struct subject client = {0};
    if (tls_conn_client(c, &client, NULL) == 0)
        snprintf(n->client, sizeof n->client, "%s", client.common_name);
    if (n->script)
        n->script(n, c);
    tls_conn_free(c);
    return NULL;
}

/* cert: of node_certificates. */
static inline void node_start(struct node *n, const char *cert, node_script *script,
                              const void *ctx)
{
    SCOPED(err_fini) struct err err = {0};
    signal(SIGPIPE, SIG_IGN); /* as the programs do */
    *n = (struct node){.script = script, .ctx = ctx};
    ck_assert_msg(tls_server_new(node_cert(cert, "crt"), node_cert(cert, "key"),
                                 certs_path("ca.crt"), &n->tls, &err) == 0,
                  "%s", err_text(&err));
    ck_assert_int_eq(pipe(n->stop), 0);
    n->listener = listen_on_loopback(&n->port);
    ck_assert_int_eq(pthread_create(&n->thread, NULL, node_run, n), 0);
}

static inline void node_join(struct node *n)
{
    shutdown(n->listener, SHUT_RDWR); /* whoever still waits for a connection */
    pthread_join(n->thread, NULL);
}

static inline void node_fini(struct node *n)
{
    close(n->listener);
    close(n->stop[0]);
    close(n->stop[1]);
    tls_server_free(n->tls);
    buf_fini(&n->heard);
}

/* ---- what scripts do ---- */

/* Until text was heard; false at the end of what comes. */
static inline bool node_hear(struct node *n, struct tls_conn *c, const char *text)
{
    char piece[4096];
    while (!strstr(buf_cstr(&n->heard), text)) {
        ssize_t got = tls_conn_receive(c, piece, sizeof piece, n->stop[0], soon_ms(), NULL);
        if (got <= 0)
            return false;
        buf_append(&n->heard, piece, (size_t)got);
    }
    return true;
}

static inline bool node_say(struct node *n, struct tls_conn *c, const char *text)
{
    return tls_conn_send(c, text, strlen(text), n->stop[0], soon_ms(), NULL) == 0;
}

/* ---- who dials ---- */

static inline struct dialer *dialer_start(void)
{
    SCOPED(err_fini) struct err err = {0};
    struct dialer *d = NULL;
    const struct dialer_config config = {.ca_file = certs_path("ca.crt"),
                                         .cert_file = certs_path("server.crt"),
                                         .key_file = certs_path("server.key"),
                                         .any_node = "system:node:local"};
    ck_assert_msg(dialer_new(&config, &d, &err) == 0, "%s", err_text(&err));
    return d;
}

static inline void dial_node(struct dialer *d, const struct node *n, struct line *ret)
{
    SCOPED(err_fini) struct err err = {0};
    ck_assert_msg(
        dial(d, &(struct dial_node){.name = "n1"}, "127.0.0.1", n->port, soon_ms(), ret, &err) == 0,
        "%s", err_text(&err));
}
