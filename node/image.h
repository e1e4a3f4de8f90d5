/* Images of our own, made from programs of this machine, so that nothing is needed from a registry.
 * The archives have the OCI layout; the same programs give the same bytes. */
#pragma once

#include "apiserver/base/buf.h"
#include "apiserver/base/err.h"

#define IMAGE_PAUSE "localhost/agent-sandbox/pause:node"
#define IMAGE_BUSYBOX "localhost/agent-sandbox/busybox:dev"

/* The first container of each Pod, from our program of that path. */
int image_make_pause(const char *program, struct buf *ret, struct err *err);
/* A small system from a statically linked busybox (Debian: busybox-static), NULL = from PATH. */
int image_make_busybox(const char *program, struct buf *ret, struct err *err);
