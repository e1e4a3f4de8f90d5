/* JSON Patch (RFC 6902) and merge patch (RFC 7386) over trees, with the leniencies that
 * kube-apiserver's clients know. Pure; any thread. Source: docs/kubernetes-api.md 27.1, 27.2. */
#pragma once

#include <cjson/cJSON.h>

#include "apiserver/base/err.h"

#define PATCH_OPERATIONS_MAX 10000
#define PATCH_STEPS_MAX 20000000 /* members and items that the operations of one patch may pass */
#define PATCH_COPY_MAX ((size_t)3 << 20) /* bytes that the copy operations of one patch may add */

/* ret is a new tree. patch is an array of operations, or null for none. Lenient: replace of a
 * missing member adds it, test of a missing member against null passes, a missing value is null,
 * index -1 appends, and of a path what stands before its first '/' is ignored. Errors:
 * ERR_TOO_LARGE too many operations, or too long ways; ERR_INVALID an operation does not apply, its
 * text and empty details fixed. */
int patch_json(const cJSON *doc, const cJSON *patch, cJSON **ret, struct err *err);
/* ret is a new tree; patch is an object. Never fails. */
void patch_merge(const cJSON *doc, const cJSON *patch, cJSON **ret);
/* A stored object's managers are raw text until something has to look into them: doc itself when
 * they are no business of the patch, else a copy with them as a tree, which *space owns. */
const cJSON *patch_expand(const cJSON *doc, const cJSON *patch, cJSON **space);
