/* The files of a volume that the node alone writes, as one state that takes the place of another at
 * once: they are in a folder of their own, ..data is a link to it, and what a container opens are
 * links through ..data. So whoever reads two files through one look at ..data gets both of the same
 * state. Source: Kubernetes, the layout of ConfigMap and Secret volumes. Any thread, one a folder.
 */
#pragma once

#include <sys/types.h>

#include "apiserver/base/buf.h"
#include "apiserver/base/err.h"

#define PAYLOAD_MAX ((size_t)16 << 20) /* names and contents of one volume */

struct payload_file {
    char *path; /* relative, may name folders */
    struct buf bytes;
    mode_t mode;
};
struct payload { /* payload_fini */
    struct payload_file *files;
    size_t n, size;
};
void payload_fini(struct payload *p);
/* Of two of the same path the later counts. Errors: ERR_FORBIDDEN a path that is no file's name;
 * ERR_TOO_LARGE. */
int payload_put(struct payload *p, const char *path, struct buf *take_bytes, mode_t mode,
                struct err *err);

struct payload_place {  /* borrowed */
    const char *folder; /* absolute, there, and nobody else's to write in */
    const char *salt; /* names of states are made of it and their content, which they do not tell */
    gid_t group;      /* of files; (gid_t)-1 = the node's */
};
/* Nothing changes when the same is there. */
int payload_write(const struct payload *p, const struct payload_place *place, struct err *err);
/* Where a file or folder by its path is to be looked for. The caller's. */
char *payload_root(const char *folder);
/* The state that is there now stays on the disk though another takes its place: a part of it is
 * mounted. */
void payload_keep(const char *folder);
