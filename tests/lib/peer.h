/* A scripted HTTP/1.1 server on loopback for tests of clients: a thread a connection, one request
 * at a time, answers written by the test's own function byte by byte as it likes. Not for anything
 * but tests: it trusts its client. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "apiserver/base/buf.h"
#include "apiserver/base/str.h"

struct peer;
struct peer_conn;
struct peer_request {
    const char *method, *target; /* target with its query */
    struct pairs headers;
    struct buf body;
};
/* Answers one request; called on the connection's thread. False closes the connection. */
typedef bool (*peer_fn)(void *ctx, struct peer_conn *conn, const struct peer_request *req);

/* Listens on 127.0.0.1, or on a Unix socket when path is not NULL. */
struct peer *peer_start(const char *unix_path, peer_fn fn, void *ctx);
void peer_stop(struct peer *p); /* breaks all connections, waits for their threads */
int peer_port(const struct peer *p);
int peer_connections(struct peer *p); /* accepted so far */

void peer_printf(struct peer_conn *c, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* A whole answer; content_type may be NULL. */
void peer_answer(struct peer_conn *c, int status, const char *content_type, const char *body);
/* The head of a chunked answer, and one chunk; an empty one ends it. */
void peer_begin_chunks(struct peer_conn *c, int status);
void peer_chunk(struct peer_conn *c, const char *text);
/* Waits until the client hangs up or peer_stop; false at the time-out. */
bool peer_wait_hangup(struct peer_conn *c, int timeout_ms);
