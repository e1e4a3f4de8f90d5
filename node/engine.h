/* A container engine of our own: `podman system service`, with all it keeps in one folder, so that
 * nothing of the user's is touched. Started again when it ends; containers go on without it. While
 * another one answers in that folder, that one is used. */
#pragma once

#include "node/podman.h"

/* At the end of a container's name: its standard input stays open when who attached to it leaves.
 * The engine knows no such setting, so a script of ours before its monitor heeds it. */
#define ENGINE_KEEPS_STDIN ".keeps-stdin"

struct engine_config {
    const char *folder;  /* absolute; made when absent */
    const char *program; /* podman */
    const char *runtime; /* runc, crun, ... */
    const char *storage; /* overlay, vfs, ... */
};
struct engine;
/* Returns when it answers. fetch is borrowed. Errors: ERR_UNAVAILABLE it does not, ERR_INVALID the
 * folder cannot be written. */
int engine_start(const struct engine_config *config, struct fetch *fetch, struct engine **ret,
                 struct err *err);
void engine_stop(struct engine *e); /* containers stay; frees; NULL is fine */
const char *engine_socket(const struct engine *e);
