/* A session over SPDY whose bytes go in the binary messages of a websocket: how kubectl forwards
 * ports since it prefers websockets. Where messages begin and end means nothing. */
#pragma once

#include "node/session.h"

#define SPDY_TUNNEL_SUBPROTOCOL "SPDY/3.1+portforward.k8s.io"

/* The websocket is there already: s->out and session_feed are its frames. */
struct session *spdy_tunnel_new(const struct session_wish *wish, const struct session_user *user,
                                void *ctx);
