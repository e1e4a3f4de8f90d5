/* A field path as a chain of steps on the stack, and its text as clients of kube-apiserver know it:
 * .spec.containers[name="main"].ports[containerPort=80,protocol="TCP"].name, .metadata.finalizers
 * [="a/b"], .args[0]. Pure; any thread. */
#pragma once

#include "openapi/fieldset.h"

struct fieldpath {
    const struct fieldpath *up; /* NULL = this is the first step */
    char kind;                  /* enum fieldset_kind */
    const char *text;           /* as in struct fieldset_item; of STEP_INDEX not used */
    size_t index;               /* STEP_INDEX */
};
void fieldpath_print(const struct fieldpath *path, struct buf *out); /* "" for NULL */

/* Calls fn for each path of the set: those that end at a level before those that go on, each by
 * name, keys, values, numbers by their amount. Source: structured-merge-diff's Set.Iterate. */
typedef void fieldpath_fn(void *ctx, const struct fieldpath *path);
void fieldpath_each(const struct fieldset *set, fieldpath_fn *fn, void *ctx);
