/* Which claims have to look when a pool or a template changes: those of that pool that have no
 * Sandbox yet, and, when a template comes, every claim of the pools that name it. Kept from what
 * the feed tells; one thread. */
#pragma once

#include <stdbool.h>

#include "apiserver/registry/object.h"

struct claim_wake;
/* wake: NAMESPACE/NAME of a claim. */
struct claim_wake *claim_wake_new(void (*wake)(void *ctx, const char *key), void *ctx);
void claim_wake_free(struct claim_wake *w);
/* Objects of that kind may have gone unseen; those that are there come next. */
void claim_wake_reset(struct claim_wake *w, const struct kind *kind);
/* An object of any kind that came, changed or went; of claims, pools and templates it takes
 * note. */
void claim_wake_note(struct claim_wake *w, const struct object *o, bool is_delete);
