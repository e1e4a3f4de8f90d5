/* Carries the bytes of a session between its client and whoever uses it, on the thread of the
 * connection, until it is over: the one place that waits. */
#pragma once

#include <poll.h>

#include "node/session.h"
#include "node/tls_conn.h"

struct waits { /* what a user waits for, besides its client */
    struct pollfd *v;
    size_t n, cap;
    int64_t until_ms; /* monotonic; INT64_MAX = for ever */
};
/* Where its result stands afterwards: waits_result. */
size_t waits_add(struct waits *w, int fd, short events);
short waits_result(const struct waits *w, size_t at);
void waits_until(struct waits *w, int64_t at_ms); /* not later than that */

struct carry_user {
    /* Says what is to be waited for. */
    void (*wait)(void *ctx, struct waits *w);
    /* Does what can be done without waiting. */
    void (*act)(void *ctx, const struct waits *w);
    /* It holds as much of its client's as it cares to: nothing more is fed. */
    bool (*is_full)(void *ctx);
};

struct carry {
    struct tls_conn *conn;
    struct session *session; /* not yet started */
    int stop_fd;             /* can be read when the node ends */
    const struct carry_user *user;
    void *ctx;
};
/* first: what the client has sent behind its request. Returns when the session is over and what it
 * had to say is sent, or the client is gone, or silent for hours. */
void carry(struct carry *c, const char *first, size_t n);
