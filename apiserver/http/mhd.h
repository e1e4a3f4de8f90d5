/* The door to libmicrohttpd: HTTP/1.1 on connections whose bytes come through a socket pair, into
 * struct request and out of struct response. One thread of libmicrohttpd's own runs all of it and
 * never blocks; handlers run on the workers. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "apiserver/base/err.h"
#include "apiserver/http/peer.h"
#include "apiserver/http/request.h"

struct mhd;
struct mhd_config {
    request_handler_fn handler;
    void *ctx;
    int workers;
    size_t max_body; /* bytes */
    size_t max_connections;
    int64_t idle_timeout_ms; /* rounded up to seconds */
};
/* Errors: ERR_INTERNAL when threads or descriptors are lacking. */
int mhd_new(const struct mhd_config *config, struct mhd **ret, struct err *err);
/* Takes fd (a connected stream socket) and a reference of peer. False when it could not be taken
 * on; fd is closed then too. */
bool mhd_add(struct mhd *m, int fd, struct peer *peer);
/* From now on every answer says `Connection: close` and streams end with their terminating chunk.
 * Any thread. */
void mhd_drain(struct mhd *m);
/* Waits for the handlers that run. Before it, the far end of every connection must be closed and
 * its peer hung up. */
void mhd_free(struct mhd *m);
