/* Follows the objects of the registry: one thread, one watch a kind, each change told once. A watch
 * that ends is opened again from the present state. Knows no kind. */
#pragma once

#include "apiserver/base/clock.h"
#include "apiserver/registry/registry.h"

struct feed_config {
    struct registry *registry; /* borrowed, like all below */
    const struct clock *clock;
    const struct kind *const *kinds; /* ended by NULL, at most KINDS_MAX */
    /* All run on the thread of the feed. Nothing is followed before is_ready (may be NULL) says
     * yes; on_begin comes once then. */
    bool (*is_ready)(void *ctx);
    void (*on_begin)(void *ctx);
    /* Every present object when its kind's watch opens, then every change. is_delete: its last
     * state. */
    void (*on_object)(void *ctx, const struct object *o, bool is_delete);
    /* Changes of that kind may have been missed: the present objects come next. */
    void (*on_gap)(void *ctx, const struct kind *kind);
    void *ctx;
};
struct feed;
struct feed *feed_start(const struct feed_config *config);
void feed_stop(struct feed *f); /* waits for a callback that runs; frees */
