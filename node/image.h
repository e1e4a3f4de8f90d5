/* Images of our own, made from this machine's programs and its distribution's packages, so that
 * nothing is needed from a registry. The archives have the OCI layout; the same programs and
 * packages give the same bytes. */
#pragma once

#include "apiserver/base/buf.h"
#include "apiserver/base/err.h"

#define IMAGE_PAUSE "localhost/agent-sandbox/pause:node"
/* Label: digest of what the image was made from. Packages count by name, not by version. */
#define IMAGE_RECIPE "node.agent-sandbox.dev/recipe"
#define IMAGE_RECIPE_SIZE 65

/* The first container of each Pod, from our program of that path. */
int image_make_pause(const char *program, struct buf *ret, struct err *err);

struct image_kind {
    const char *name;      /* on the command line */
    const char *reference; /* of the image */
    const char *packages;  /* of the distribution, with commas between, NULL = none */
    const char *command;   /* that it runs unless it is told otherwise */
};
extern const struct image_kind image_kinds[]; /* ended by a row without a name */
const struct image_kind *image_find(const char *name);
/* One to be made: image_start, then image_make; image_fini. */
struct image {
    const struct image_kind *kind;
    struct buf base; /* layer of a statically linked busybox */
    char recipe[IMAGE_RECIPE_SIZE];
};
/* busybox: the program's path (Debian: busybox-static), NULL = the machine's. Takes no time.
 * Errors: ERR_NOT_FOUND there is none. */
int image_start(const struct image_kind *kind, const char *busybox, struct image *ret,
                struct err *err);
/* May fetch packages, from where this machine has its own, and then needs root. */
int image_make(const struct image *image, struct buf *ret, struct err *err);
void image_fini(struct image *image);
