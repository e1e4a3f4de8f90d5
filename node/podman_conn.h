/* What the files of the engine's door share, and nobody else uses. */
#pragma once

#include "node/podman.h"

/* A GET that streams its answer; as fetch_open. */
struct fetch_stream *podman_open(struct podman *p, const char *path,
                                 const struct fetch_stream_ops *ops, void *ctx);
