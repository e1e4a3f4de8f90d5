/* A watch over a websocket (RFC 6455), as Java's clients ask for it: each event is a message of
 * text. What the client sends is of no interest but for pings and its going. */
#pragma once

#include <stdbool.h>

#include "apiserver/base/err.h"
#include "apiserver/http/request.h"

/* Does this request ask for one, and can it have one: a watch over HTTP/1.1? */
bool socket_is_wanted(const struct request *req);
/* ERR_BAD_REQUEST for a handshake that is none. */
int socket_check(const struct request *req, struct err *err);
/* Of a request that was checked: the answer's stream becomes one of frames, its status 101. */
void socket_upgrade(const struct request *req, struct response *resp);
