/* One stored object, immutable once published and shared by reference: the bytes as stored, the
 * place where resourceVersion is spliced in, and a small index. Any thread may hold references;
 * nobody changes anything. */
#pragma once

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stdint.h>

#include "apiserver/base/buf.h"
#include "apiserver/base/err.h"
#include "apiserver/base/str.h"
#include "openapi/shape.h"

struct object {
    unsigned refs; /* atomic */
    const struct kind *kind;
    char *namespace_name, *name, *uid; /* of metadata */
    int64_t rev;                       /* mod revision = resourceVersion */
    char *json; /* compact, members sorted, without metadata.resourceVersion */
    size_t json_len;
    size_t splice_at; /* where `"resourceVersion":"N",` goes in json */
    struct pairs labels;
    char **fields; /* values of its kind's field_labels, in their order; NULL when it has none */
    bool is_terminating;   /* metadata.deletionTimestamp is set */
    struct object *origin; /* whose bytes and strings these are; NULL = its own (object.c) */
};

/* From stored bytes (takes json over, also on failure). Errors: ERR_INTERNAL when the bytes are no
 * object of that kind. */
int object_from_bytes(const struct kind *kind, char *take_json, size_t len, int64_t rev,
                      struct object **ret, struct err *err);
struct object *object_ref(struct object *o);
void object_unref(struct object *o); /* NULL is fine */
void object_unref_p(struct object **o);
/* A shallow copy that differs in rev alone (a DELETED event carries the deletion's revision). */
struct object *object_at_rev(struct object *o, int64_t rev);
/* The JSON with resourceVersion, as clients see it. */
void object_write(const struct object *o, struct buf *out);
/* The same as a tree of the caller's own (json_free). */
cJSON *object_tree(const struct object *o);
/* The same with metadata.managedFields, which no change looks into, as raw text (json_raw). */
cJSON *object_tree_to_change(const struct object *o);
