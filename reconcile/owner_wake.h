/* Which objects of ours have to look when a Sandbox changes: the one that controls it and the one
 * that did until now (G10). So a pool learns that a claim took a member. Kept from what the feed
 * tells; one thread. */
#pragma once

#include <stdbool.h>

#include "apiserver/registry/object.h"

struct owner_wake;
/* wake: the kind, and NAMESPACE/NAME of the owner. */
struct owner_wake *owner_wake_new(void (*wake)(void *ctx, const struct kind *kind, const char *key),
                                  void *ctx);
void owner_wake_free(struct owner_wake *w);
void owner_wake_note(struct owner_wake *w, const struct object *sandbox, bool is_delete);
/* Sandboxes may have gone unseen: every owner looks; those that are there come next. */
void owner_wake_reset(struct owner_wake *w);
