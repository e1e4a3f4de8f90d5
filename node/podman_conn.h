/* What the files of the engine's door share, and nobody else uses. */
#pragma once

#include "node/podman.h"

#define PODMAN_API "/v4.0.0/libpod" /* what all paths begin with */

/* A GET that streams its answer; as fetch_open. */
struct fetch_stream *podman_open(struct podman *p, const char *path);
/* A connection of one's own. Errors: ERR_UNAVAILABLE. */
int podman_connect(struct podman *p, int *ret_fd, struct err *err);
