/* What the tests of HTTP/2 on a real socket share: a server, a client, and whole answers. */
#pragma once

#include "tests/lib/h2_client.h"
#include "tests/lib/suite.h"
#include "tests/lib/transport.h"

static inline void start(void)
{
    transport_start((struct server_config){0});
}

static inline void open_client(struct h2_client *c, const struct h2_client_opts *opts)
{
    ck_assert(h2_client_open(c, transport_port(), opts));
}

static inline bool has(const struct h2_reply *r, const char *text)
{
    return strstr(buf_cstr(&r->body), text) != NULL;
}

/* The whole answer to one request. */
static inline struct h2_reply *ask(struct h2_client *c, const char *method, const char *path,
                                   const struct pairs *headers, const char *body, size_t n)
{
    struct h2_reply *r = h2_client_send(c, method, path, headers, body, n);
    ck_assert_msg(H2_UNTIL(c, r->is_closed), "%s %s", method, path);
    return r;
}

static inline struct h2_reply *get(struct h2_client *c, const char *path)
{
    return ask(c, "GET", path, NULL, NULL, 0);
}

static inline struct h2_reply *open_stream(struct h2_client *c)
{
    size_t i = atomic_load(&transport.n_streams);
    struct h2_reply *r = h2_client_send(c, "GET", "/stream", NULL, NULL, 0);
    ck_assert(H2_UNTIL(c, r->status == 200)); /* the head comes before any event */
    ck_assert_ptr_null(pairs_get(&r->headers, "content-length"));
    WAIT_FOR(atomic_load(&transport.streams[i].pulls) > 0);
    return r;
}

static inline int closed(size_t i)
{
    return atomic_load(&transport.streams[i].closed);
}
