/* Server-side apply of one partial object: what is stored and what is applied are merged, what the
 * same manager applied before and leaves out now is removed unless others own it, and fields that
 * others own and that change are conflicts. Pure; any thread. Source: docs/kubernetes-api.md 28. */
#pragma once

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stdint.h>

#include "apiserver/base/err.h"
#include "openapi/shape.h"

struct apply {
    const struct kind *kind;
    const char *subresource;           /* "", "status" or "scale" */
    const char *manager;               /* who applies */
    const char *namespace_name, *name; /* of the URL; looked at for scale alone */
    bool force;                        /* take fields from others */
    int64_t now_unix_s;
};
/* live is the stored object, NULL when there is none (never for a subresource). ret is the object
 * that shall be stored, with the managers of its fields, before defaults and validation; owned by
 * the caller. Of a scale, patch is a Scale and ret its parent.
 * Errors: ERR_CONFLICT with a cause per field; ERR_BAD_REQUEST; ERR_UNKNOWN for what does not fit
 * the table. */
int apply_run(const struct apply *a, const cJSON *patch, const cJSON *live, cJSON **ret,
              struct err *err);
