/* The door to libnghttp2: one HTTP/2 connection as a server sees it, bytes in and bytes out, into
 * struct request and out of struct response. Knows no socket and no TLS. A connection belongs to
 * one thread, its owner's; handlers run on the workers and come back through the owner's mailbox.
 * Needs libnghttp2 1.61, or Debian's 1.52 with the fixes for floods. Source: RFC 9113. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "apiserver/http/budget.h"
#include "apiserver/http/mailbox.h"
#include "apiserver/http/peer.h"
#include "apiserver/http/request.h"
#include "apiserver/http/workers.h"

/* Requests at once on one connection. The cluster's aggregator has one connection for all who watch
 * through it, and opens another when the streams run out (Go's transport does); each costs about a
 * kilobyte of ours while it watches. */
#define H2_STREAMS_MAX 1000
#define H2_HEADERS_MAX ((size_t)64 << 10) /* bytes of a header list, counted as RFC 9113, 6.5.2 */

/* Shared by all connections; borrowed. */
struct h2_config {
    request_handler_fn handler;
    void *ctx;
    struct workers *workers;   /* NULL = handlers run where they are started (tests) */
    struct budget *bodies;     /* heads too; beyond it 429 */
    size_t max_body;           /* bytes */
    int64_t header_timeout_ms; /* for the preface, and from a header block's begin to its end */
    int64_t idle_timeout_ms;   /* without a stream, or for a client to take what waits for it */
};

struct h2;
/* box: the owner's; spare: memory of its thread for what is about to be sent. notify(ctx) says on
 * the owner's thread, out of mailbox_open, that there is something to read. NULL when there is no
 * memory for it. */
struct h2 *h2_new(const struct h2_config *config, struct peer *peer, struct mailbox *box,
                  struct buf *spare, void (*notify)(void *ctx), void *ctx);
/* Closes all streams. Handlers that still run are left to end; their answers are thrown away when
 * the box is opened the next time. */
void h2_free(struct h2 *h);

/* What came from the client. False when nothing more is wanted from it. */
bool h2_feed(struct h2 *h, const char *p, size_t n);
/* What is to be sent: up to max bytes, 0 = nothing now. */
size_t h2_read(struct h2 *h, char *out, size_t max);
bool h2_is_over(struct h2 *h);   /* all is said: the connection is to be closed */
void h2_end_input(struct h2 *h); /* the client sends no more */
bool h2_tick(struct h2 *h,
             int64_t now_ms);  /* deadlines; false = needs none while nothing happens */
bool h2_is_used(struct h2 *h); /* a request has come over it */
/* The connection is to end: streams end, no new ones; to be called repeatedly, some time apart.
 * What the client sends before it has heard of it is still taken. */
void h2_drain(struct h2 *h);
