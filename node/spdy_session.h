/* Sessions over SPDY/3.1: a stream of SPDY is a stream of the session, its kind, port and request
 * said by its headers (streamtype, port, requestid). Streams are opened by the peer alone.
 * Windows: the peers of today (moby/spdystream) keep none, so they are given leave to send as we
 * read, and theirs are kept to as soon as they show that they have one. */
#pragma once

#include "node/session.h"

/* Bytes in out from which on the session ends: the peer asks on and on and reads no answers. */
#define SPDY_UNREAD_MAX (4 * SESSION_OUT_MAX)

/* One whose frames are the bytes of s->out and session_feed, without a head before them. */
struct session *spdy_session_new(const struct session_wish *wish, const struct session_user *user,
                                 void *ctx);
