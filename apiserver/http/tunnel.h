/* What goes on between clients and the nodes of their Pods for as long as they like: raw
 * connections, whose bytes are carried both ways untouched, and logs, which are streams that answer
 * a request. One thread moves all of it and holds, for each, 16 KiB a direction of a raw connection
 * and 64 KiB of a log at most: who does not take stops who sends. Nothing here knows what the bytes
 * mean. Any thread may call. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "apiserver/base/err.h"
#include "apiserver/http/dial.h"
#include "apiserver/http/request.h"

struct tunnels;
struct tunnels_config {
    size_t max;              /* at once, those included that are being opened; 0 = 1,000 */
    int64_t idle_timeout_ms; /* of a raw connection on which nothing moves; 0 = 4 hours */
};
/* Errors: ERR_INTERNAL when thread or descriptors are lacking. */
int tunnels_new(const struct tunnels_config *config, struct tunnels **ret, struct err *err);
void tunnels_stop(struct tunnels *t); /* ends all of them, and takes no more; joins the thread */
void tunnels_free(struct tunnels *t); /* stops first; streams must be closed; NULL is fine */

/* A place, before the node is dialled. False when there is none. */
bool tunnels_take_place(struct tunnels *t);
void tunnels_give_place(struct tunnels *t); /* nothing came of it */

/* Both take the place, the line and what came ahead on it. */
struct upgrade *tunnels_raw(struct tunnels *t, struct line *take_line, struct buf *take_ahead);
/* reply: the body is read on from its state. */
struct stream *tunnels_log(struct tunnels *t, struct line *take_line, struct reply *take_reply,
                           struct buf *take_ahead);
