/* A server on a socket for tests of the transport: a handler that tells what arrived or does what
 * the path says, and streams that the test writes into. One at a time. */
#pragma once

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "apiserver/base/fetch.h"
#include "apiserver/http/server.h"
#include "tests/lib/tls_client.h"

/* A stream the test writes into. Kept by the test; close only marks it. */
struct test_stream {
    struct stream s; /* first */
    pthread_mutex_t lock;
    struct buf ready;
    bool is_armed; /* pulled once: wake may be called */
    bool is_over;
    atomic_int closed, pulls;
};
/* Appends text, NULL ends it; wakes. */
void test_stream_put(struct test_stream *t, const char *text);
void test_stream_wake(struct test_stream *t); /* without anything to say */

#define TRANSPORT_STREAMS 2200
struct transport {
    struct server *server;
    struct fetch *fetch;
    struct test_stream streams[TRANSPORT_STREAMS];
    atomic_size_t n_streams;      /* given out: each GET /stream or /socket gets the next one */
    atomic_int n_running, n_held; /* handlers; those of GET /held wait until is_released */
    atomic_bool is_released;
};
extern struct transport transport;

void transport_certificates(void); /* once, before the suite runs */
/* Fills in address, certificate and handler. */
void transport_start(struct server_config config);
void transport_start_http1(const struct server_config *config); /* without HTTP/2; NULL = {0} */
void transport_stop(void);
pthread_t transport_stop_behind(void); /* with ten seconds of grace, on a thread to be joined */
int transport_port(void);

/* Asks for stream i over HTTP/1.1, until it is pulled, so that what is put then is woken for.
 * request: NULL = a plain one. */
void transport_open_stream(struct tls_client *c, size_t i, const char *request);

struct transport_call {
    const char *method, *path;
    struct pairs headers;
    const void *body;
    size_t body_len;
    bool with_certificate;
};
/* Over HTTP/1.1; returns the status. */
int transport_call(const struct transport_call *call, struct fetch_response *ret);
bool transport_says(const struct fetch_response *r, const char *text);

void wait_ms(int ms);
int64_t now_ms(void);
int64_t cpu_us(void); /* used by this process */
#define WAIT_FOR(condition)                                                                        \
    do {                                                                                           \
        int waited_ = 0;                                                                           \
        while (!(condition) && waited_++ < 5000)                                                   \
            wait_ms(2);                                                                            \
        ck_assert_msg((condition), "%s", #condition);                                              \
    } while (0)
