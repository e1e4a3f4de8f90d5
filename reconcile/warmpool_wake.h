/* Which pools look again when a template changes: those of its namespace that make their members
 * from it. */
#pragma once

#include "apiserver/registry/registry.h"

/* Calls found with NAMESPACE/NAME of each. Nothing while pools cannot be listed: their own watch
 * ends with the cache then, and brings them all when it is back. */
void warmpool_wake_note(struct registry *registry, const struct object *template,
                        void (*found)(void *ctx, const char *key), void *ctx);
