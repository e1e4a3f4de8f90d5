/* The door to libmicrohttpd: HTTP/1.1 on connections whose bytes come through a socket pair, into
 * struct request and out of struct response. One thread of libmicrohttpd's own runs all of it and
 * never blocks; handlers run on the workers. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "apiserver/base/err.h"
#include "apiserver/http/budget.h"
#include "apiserver/http/peer.h"
#include "apiserver/http/request.h"
#include "apiserver/http/workers.h"

struct mhd;
struct mhd_config {
    request_handler_fn handler;
    void *ctx;
    struct workers *workers; /* borrowed */
    struct budget *bodies;   /* borrowed; beyond it 429 */
    size_t max_body;         /* bytes */
    size_t max_connections;
    int64_t idle_timeout_ms; /* rounded up to seconds */
};
/* Errors: ERR_INTERNAL when threads or descriptors are lacking. */
int mhd_new(const struct mhd_config *config, struct mhd **ret, struct err *err);
/* Takes fd (a connected stream socket) and a reference of peer. False when it could not be taken
 * on; fd is closed then too. */
bool mhd_add(struct mhd *m, int fd, struct peer *peer);
/* From now on every answer says `Connection: close`. Any thread. */
void mhd_drain(struct mhd *m);
/* Before it, the workers must be stopped (what they have is suspended, and libmicrohttpd does not
 * end with suspended connections), the far end of every connection closed and its peer hung up. */
void mhd_free(struct mhd *m);
